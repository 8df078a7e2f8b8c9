//! The integration tests of the crate: one program, a module for each subject.

mod data;
mod handshake;
mod requests;
mod viewer;
