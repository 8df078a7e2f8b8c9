//! The integration tests of the crate: one program, a module for each subject.

mod bad_input;
mod plan;
mod reading;
