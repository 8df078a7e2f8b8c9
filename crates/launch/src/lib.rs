//! Launch system: reads, checks and runs ROS 2's XML and YAML launch files.
//!
//! 1. [`Document::read`](document::Document::read) parses either format into one
//!    tree. Every attribute keeps its source location.
//! 2. [`LaunchPlan::read`](plan::LaunchPlan::read) walks the tree, evaluates
//!    substitutions and conditions, follows includes, and resolves packages,
//!    programs and components. The plan holds everything that will happen. If
//!    anything is wrong, nothing starts.
//! 3. [`run`] starts the plan's processes and supervises them until they end or
//!    Ctrl-C stops them. Decisions ([`launch_state_machine`]) are separate from
//!    actions ([`run::Supervisor`]), so they are tested on simulated time.
//!
//! This crate never runs Python: it leaves Python launch files out, with a note.
//! `pteros launch` hands a launch with one to Python.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod built_in_nodes;
pub mod command_output;
pub mod document;
pub mod error;
pub mod launch_state_machine;
pub mod node_arguments;
pub mod packages;
pub mod parameter_value;
pub mod plan;
pub mod python;
pub mod run;
pub mod substitution;

mod action;
mod close_names;
mod ros_log_folder;
mod scope;

pub use error::{LaunchFileError, LaunchFileErrors, SourceLocation};
pub use packages::Packages;
pub use plan::{LaunchPlan, LaunchRequest};
