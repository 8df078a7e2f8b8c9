//! CVE and bug regressions: one test case for each way in which a packet broke some
//! DDS stack or ROS 2. Each names its advisory or issue and describes the defect.
//!
//! Attacks on endpoints use an `EndpointHarness`, attacks on discovery a
//! `DiscoveryHarness`. Each makes the common checks when it is dropped, at the end of
//! every test case. README.md maps the test cases to advisories. Regressions of message payloads are in `pteros-msg`, those of node
//! lists in `pteros-runtime`.

mod addresses;
mod endpoints;
mod fragments;
mod liveliness;
mod parameters;
mod participants;
mod readme_table;
mod requests;
mod sequences;
mod silent;
mod submessages;
mod tables;
mod times;
