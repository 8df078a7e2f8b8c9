//! The integration tests of the extension module: one program, a module for each subject.

mod clean_root;
mod python;
