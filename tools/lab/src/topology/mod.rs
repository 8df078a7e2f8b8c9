//! Topologies: whole graphs from the JSON files of iRobot's `ros2-performance`.
//!
//! A file lists nodes with their publishers, subscriptions, clients and servers,
//! and runs unchanged. `document` parses and validates it, `types` has the
//! messages, `system` is one process of a run, `run` starts all processes and
//! collects their results, `tracker` assesses messages, and `table` prints in the
//! framework's format. `generate` writes files of common shapes.

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
pub use problem::TopologyProblem;
pub use resources::{Resources, Sampler};
pub use result::{Event, ProcessResult, Row};
pub use run::{Containers, Division, RunOptions, TopologyOutcome, check, run, summary};
pub use system::{HostedProcess, activate, worker};
pub use table::{latency_all, latency_total, resources_table};
pub use tracker::{SampleAssessment, TopicLoad, Tracker};
pub use types::{add_to, library};
