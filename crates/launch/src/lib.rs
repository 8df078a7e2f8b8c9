//! ROS 2's launch files, XML and YAML: read, checked, run and watched over.
//!
//! 1. [`Document::read`](document::Document::read) makes one tree of either form,
//!    in which every attribute knows its line.
//! 2. [`Plan::read`](plan::Plan::read) walks the tree, evaluates substitutions and
//!    conditions, follows includes, and looks up whatever is referred to. The plan
//!    holds all that will happen; nothing has been started, and nothing will be if
//!    anything was wrong.
//! 3. [`run`] starts the plan's processes and keeps them until they end or
//!    Ctrl-C. What is decided ([`conductor`]) is apart from what is done
//!    ([`run::Supervisor`]), so that decisions are tested on fake time.
//!
//! What it never does: run Python. Launch files of that kind are refused with
//! words.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod conductor;
pub mod document;
pub mod fault;
pub mod packages;
pub mod plan;
pub mod run;
pub mod substitution;

mod action;
mod close_names;
mod scope;

pub use fault::{Fault, Faults, Place};
pub use packages::Packages;
pub use plan::{Plan, Request};
