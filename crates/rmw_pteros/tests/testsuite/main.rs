//! The plug-in as rcl uses it: its exported functions, with typesupport made here, so
//! that no ROS 2 is needed. Every context is on 127.0.0.1 alone.

#![allow(
    clippy::disallowed_methods,
    reason = "conditions have deadlines of real time, since contexts use real sockets"
)]

mod allocations;
mod behaviour;
mod callbacks;
mod content_filters;
mod failing_allocators;
mod forks;
mod harness;
mod loans;
mod message_cost;
#[cfg(feature = "zenoh")]
mod over_zenoh;
mod service_identity;
mod system_calls;
mod undecodable;
mod waits;
mod within_context;

#[global_allocator]
static ALLOCATOR: allocations::CountingAllocator = allocations::CountingAllocator;
