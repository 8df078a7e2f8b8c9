//! The museum of failures: one story for each way in which a packet broke some
//! DDS stack or ROS 2, played against ours. Each names the advisory or issue it
//! stands for and says in our words what went wrong there.
//!
//! Attacks on endpoints happen in a [`hall::Hall`], attacks on discovery in a
//! [`town::Town`]; the rules that hold at the end of every story are in their
//! `close`; README.md lists which story stands for what. Payloads of messages
//! have a wing of their own in `pteros-msg`, node lists one in `pteros-rmw`.

mod addresses;
#[path = "../../../pteros/tests/walk/allocations.rs"]
mod allocations;
mod catalogue;
#[path = "../domain/mod.rs"]
mod domain;
mod endpoints;
mod fragments;
mod hall;
mod liveliness;
mod meter;
mod packet;
#[path = "../pair/mod.rs"]
mod pair;
mod parameters;
mod participants;
mod requests;
mod sequences;
mod submessages;
mod times;
mod town;
#[path = "../vectors/mod.rs"]
mod vectors;

#[global_allocator]
static ALLOCATOR: allocations::Counting = allocations::Counting;
