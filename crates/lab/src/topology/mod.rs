//! Topologies: whole graphs from the JSON files of iRobot's `ros2-performance`.
//!
//! A file lists nodes with their publishers, subscriptions, clients and servers;
//! such files run here as they are. `document` reads one and refuses what is wrong
//! before anything starts, `types` has the messages that the files name, `system`
//! is one process of a run, `run` starts them all and gathers what they saw,
//! `tracker` judges messages and `table` prints as that framework does.
//! `generate` writes files of common shapes.

mod clock;
mod document;
mod entity;
mod fields;
mod generate;
mod message;
mod pairs;
mod problem;
mod qos;
mod resources;
mod result;
mod run;
mod system;
mod table;
mod tracker;
mod types;

pub use clock::RunClock;
pub use document::{
    ClientSpec, NodeSpec, PassBy, PublisherSpec, ServerSpec, SubscriptionSpec, Topology,
};
pub use generate::{Shape, generate};
pub use problem::Problem;
pub use resources::{Resources, Sampler};
pub use result::{Event, ProcessResult, Row};
pub use run::{Containers, Division, Outcome, RunOptions, check, run, summary};
pub use system::{Hosted, activate, worker};
pub use table::{latency_all, latency_total, resources_table};
pub use tracker::{Judged, Tracker};
pub use types::{add_to, library};
