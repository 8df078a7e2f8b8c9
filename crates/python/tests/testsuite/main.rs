//! The integration tests of the extension module: one program, a module for each subject.

mod beside_rclpy;
mod clean_root;
mod launch;
mod python;
mod wheel;
