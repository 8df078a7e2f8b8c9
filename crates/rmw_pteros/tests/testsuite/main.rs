//! The plug-in as rcl uses it: its exported functions, with typesupport made here, so
//! that no ROS 2 is needed. Every context is on 127.0.0.1 alone.

#![allow(
    clippy::disallowed_methods,
    reason = "conditions have deadlines of real time, since contexts use real sockets"
)]
#![allow(
    clippy::needless_update,
    reason = "structures have more fields in other distributions"
)]
#![cfg_attr(
    distribution = "humble",
    allow(
        dead_code,
        unused_imports,
        reason = "tests that watch matches are left out"
    )
)]

// The library has the name of its distribution.
#[cfg(distribution = "humble")]
extern crate rmw_pteros_cpp_humble as rmw_pteros_cpp;
#[cfg(distribution = "kilted")]
extern crate rmw_pteros_cpp_kilted as rmw_pteros_cpp;
#[cfg(distribution = "lyrical")]
extern crate rmw_pteros_cpp_lyrical as rmw_pteros_cpp;

mod allocations;
// They watch matches by events, which Humble lacks.
#[cfg(not(distribution = "humble"))]
mod behaviour;
mod callbacks;
mod content_filters;
mod failing_allocators;
#[cfg(not(distribution = "humble"))]
mod forks;
mod harness;
mod loans;
mod message_cost;
#[cfg(feature = "zenoh")]
mod over_zenoh;
#[cfg(distribution = "lyrical")]
mod service_endpoints;
mod service_identity;
mod system_calls;
mod undecodable;
mod waits;
mod within_context;

#[global_allocator]
static ALLOCATOR: allocations::CountingAllocator = allocations::CountingAllocator;
