//! The integration tests of the robot: one program, a module for each subject.

mod drives;
mod replay;
