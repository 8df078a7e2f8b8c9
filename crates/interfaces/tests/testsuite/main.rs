//! The integration tests of the crate: one program, a module for each subject.

mod actions;
mod comments;
mod dynamic_hash;
mod lifecycle;
mod messages;
mod parameters;
mod type_hashes;
mod views;
mod wire_forms;
