//! The integration tests of the crate: one program, a module for each subject.

mod bad_input;
mod descriptions;
mod plan;
mod reading;
