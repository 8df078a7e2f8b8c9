//! The integration tests of the crate: one program, a module for each subject.

#![allow(clippy::disallowed_methods, reason = "the tests wait on real time")]

mod chromium;
mod data;
mod handshake;
mod page;
mod panels;
mod requests;
mod viewer;
