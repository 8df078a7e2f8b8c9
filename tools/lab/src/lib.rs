//! The lab: published measurements of ROS 2, reproduced beside other stacks, and
//! benchmarks of our own.
//!
//! `pteros lab run m16.1` measures one experiment of one paper. Pteros and the
//! other stacks take turns. It keeps every raw sample, and writes a report that
//! needs nothing but a browser. In the order of a run:
//!
//! | module | what it is |
//! |---|---|
//! | [`experiment`], [`measurement`] | an experiment: configurations, how one is measured, report items; measurements as data |
//! | [`experiments`] | all experiments, a file each |
//! | [`run`] | selects implementations, enters a private network, runs the configurations in turns |
//! | [`lab`], [`flow`], [`pipeline`], [`worker`] | environment of experiments; a publisher and its subscriptions; nodes in a row; the processes of Pteros |
//! | [`store`] | the folder of a run: raw samples, and a journal to resume it |
//! | [`stats`], [`results`] | medians, intervals, significance; configurations with all repeats; findings |
//! | [`report_items`], [`report`] | tables and figures as data; as text, HTML and SVG |
//! | [`compare`] | comparison of two runs |
//! | [`topology`] | graphs of nodes from the JSON files of ros2-performance |
//! | [`keystore`] | keystore of secured experiments |
//! | [`capture`] | packet capture and RTPS statistics |
//! | [`testbed`] | implementations under test, their programs and processes, two hosts |
//!
//! It draws no conclusion from the samples of one run, hides no failure, and sends
//! nothing off this machine: the stacks run in a private network.

#![forbid(unsafe_code)]
#![allow(missing_docs, reason = "a tool; names say what they can")]
#![allow(clippy::disallowed_methods, reason = "measures a real machine")]

pub mod capture;
pub mod compare;
pub mod environment;
pub mod experiment;
pub mod experiments;
pub mod flow;
pub mod keystore;
pub mod lab;
pub mod measurement;
pub mod pipeline;
pub mod progress;
pub mod report;
pub mod report_items;
pub mod results;
pub mod run;
pub mod stats;
pub mod store;
pub mod testbed;
pub mod topology;
pub mod worker;
