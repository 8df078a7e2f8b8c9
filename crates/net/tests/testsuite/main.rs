//! The integration tests of sockets and signals.

mod shutdown;
