//! Transports that meet in one process, on fake time. They use the same sockets and
//! mappings as between processes.

mod connection;
mod pair;
mod peer_authenticator;
mod transfer;
