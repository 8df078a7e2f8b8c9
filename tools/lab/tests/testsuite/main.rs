//! The integration tests of the lab: one program, a module for each subject.

mod book;
mod capture;
#[path = "../../../../crates/cli/tests/testsuite/checker.rs"]
mod checker;
mod command;
mod report;
#[path = "../../../../crates/cli/tests/testsuite/support.rs"]
mod support;
mod topology;
