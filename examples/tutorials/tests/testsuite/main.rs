//! The integration tests of the tutorials: one program, a module for each subject.

mod book;
mod programs;
