//! CVE and bug regressions: one test case for each way in which a packet broke some
//! DDS stack or ROS 2. Each names its advisory or issue and describes the defect.
//!
//! Attacks on endpoints use an [`endpoint_harness::EndpointHarness`], attacks on
//! discovery a [`discovery_harness::DiscoveryHarness`]. Each makes the common checks
//! when it is dropped, at the end of every test case. README.md maps the test cases to
//! advisories. Regressions of message payloads are in `pteros-msg`, those of node
//! lists in `pteros-runtime`.

mod addresses;
#[path = "../../../pteros/tests/message_cost/allocations.rs"]
mod allocations;
mod discovery_harness;
#[path = "../domain/mod.rs"]
mod domain;
mod endpoint_harness;
mod endpoints;
mod fragments;
mod liveliness;
mod meter;
mod packet;
#[path = "../pair/mod.rs"]
mod pair;
mod parameters;
mod participants;
mod readme_table;
mod requests;
mod sequences;
mod silent;
mod submessages;
mod tables;
mod times;
#[path = "../vectors/mod.rs"]
mod vectors;

#[global_allocator]
static ALLOCATOR: allocations::CountingAllocator = allocations::CountingAllocator;
