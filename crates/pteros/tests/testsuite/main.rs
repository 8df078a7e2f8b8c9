//! The integration tests of the API for nodes, in one program; each module is a topic.
//!
//! No two modules use the same domain, `interop` excepted: it has its own network.

mod actions;
mod api_stress;
mod chains;
mod churn;
mod clock_jumps;
mod clocks;
mod conformance;
mod context_leaks;
mod durable_restart;
mod dynamic_actions;
mod executors;
mod futures;
mod graph_rows;
mod guard_conditions;
mod idle;
mod interop;
mod introspection;
mod lifecycle;
mod lifecycle_supervisor;
mod loans;
mod local;
mod log_files;
mod logging;
mod many_processes;
mod message_cost;
mod parameters;
mod process_memory;
mod processes;
mod pub_sub;
mod secured;
mod setup_errors;
mod static_executor;
mod thread_settings;
mod threads;
mod traces;
mod transforms;
mod type_descriptions;
mod unique_names;
mod wait_sets;
mod warnings;
#[cfg(feature = "zenoh")]
mod zenoh_choice;

use pteros_test_support::allocations::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;
