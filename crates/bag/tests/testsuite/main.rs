//! The integration tests of the crate: one program, a module for each subject.

mod broken;
mod files;
mod formats;
mod player;
mod power_cut;
mod recorder;
mod targets;
