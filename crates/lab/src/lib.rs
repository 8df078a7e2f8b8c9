//! The lab: published measurements of ROS 2, repeated, beside real peers.
//!
//! `pteros lab run m16.1` measures one experiment of one paper with ours and with
//! other stacks in turns, keeps every raw sample, and writes a report that needs nothing but a
//! browser. In the order in which a run goes:
//!
//! | module | what it is |
//! |---|---|
//! | [`experiment`] | what an experiment is: cells, how one is measured, what the paper printed, what is shown |
//! | [`experiments`] | all of them, a file each |
//! | [`run`] | who takes part, a private network, cell by cell in turns |
//! | [`lab`], [`flow`], [`pipeline`], [`worker`] | what an experiment may use; a publisher and its subscriptions as processes; nodes in a row; ours among them |
//! | [`store`] | the folder of a run: raw samples, a journal that a killed run is resumed by |
//! | [`stats`], [`results`] | medians, intervals, verdicts; cells with all their repeats; findings |
//! | [`exhibit`], [`report`] | tables and figures as data; as text, HTML and SVG |
//! | [`compare`] | two runs side by side |
//! | [`topology`] | graphs of nodes from the JSON files of ros2-performance |
//! | [`keystore`] | keys and permissions for secured experiments |
//! | [`capture`] | packets counted on a device, and the RTPS in them |
//!
//! It never judges by samples of one run, never hides a failure and never leaves
//! this machine: other stacks are asked in a network of their own.

#![forbid(unsafe_code)]
#![deny(missing_docs)]
#![allow(
    clippy::disallowed_methods,
    reason = "measures a real machine in real time"
)]

pub mod capture;
pub mod compare;
pub mod environment;
pub mod exhibit;
pub mod experiment;
pub mod experiments;
pub mod flow;
pub mod keystore;
pub mod lab;
pub mod pipeline;
pub mod progress;
pub mod report;
pub mod results;
pub mod run;
pub mod stats;
pub mod store;
pub mod topology;
pub mod worker;
