//! `pteros._native`: the extension module on which the Python package `rclpy` runs.
//!
//! Contexts, nodes and endpoints of the runtime as Python classes; `poller` is the
//! receive loop of an executor, `program` the compiled message types. The stub
//! `python/pteros/_native.pyi` describes each item.
//!
//! No call into the runtime waits for Python's interpreter lock (GIL). So a thread may
//! hold the GIL while it takes a lock of the runtime. Calls that wait or send release
//! the GIL first.

mod client;
mod clock;
mod context;
mod decode;
mod definitions;
mod encode;
mod endpoint;
mod error;
mod event;
mod ffi;
mod goals;
mod graph;
mod graph_guard;
mod group_lock;
mod guard_condition;
mod handle;
mod introspection;
mod launch;
mod launch_guard;
mod lifecycle;
mod logging;
mod message_filters;
mod names;
mod native_log;
mod node;
mod parameter_hooks;
mod parameter_store;
mod parameters;
mod poller;
mod program;
mod publisher;
mod qos;
mod raw_message;
mod service;
mod signals;
mod spin;
mod subscription;
mod tf;
mod timer;
mod types;

use pteros_rcl::rmw_qos::{DURATION_BEST_AVAILABLE, DURATION_INFINITE};
use pyo3::prelude::*;

/// The module.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    ffi::check_interpreter()?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("DURATION_INFINITE", DURATION_INFINITE)?;
    module.add("DURATION_BEST_AVAILABLE", DURATION_BEST_AVAILABLE)?;
    error::register(module)?;
    module.add_class::<handle::Handle>()?;
    module.add_class::<qos::Profile>()?;
    module.add_function(wrap_pyfunction!(qos::qos_check_compatible, module)?)?;
    module.add_function(wrap_pyfunction!(qos::qos_policy_parameter, module)?)?;
    handle::register(module)?;
    context::register(module)?;
    signals::register(module)?;
    module.add_class::<node::Node>()?;
    module.add_class::<endpoint::MessageInfo>()?;
    module.add("RawMessage", raw_message::class(py)?)?;
    module.add_class::<publisher::Publisher>()?;
    module.add_class::<subscription::Subscription>()?;
    module.add_class::<client::RequestId>()?;
    module.add_class::<client::Client>()?;
    module.add_class::<service::Service>()?;
    module.add_class::<group_lock::GroupLock>()?;
    module.add_class::<lifecycle::StateMachine>()?;
    module.add_class::<goals::GoalTable>()?;
    module.add_class::<parameter_store::ParameterStore>()?;
    module.add_class::<guard_condition::GuardCondition>()?;
    graph_guard::register(module)?;
    module.add_class::<event::EventHandle>()?;
    module.add_class::<event::EventStatus>()?;
    clock::register(module)?;
    tf::register(module)?;
    message_filters::register(module)?;
    module.add_class::<timer::Timer>()?;
    module.add_class::<poller::Poller>()?;
    definitions::register(module)?;
    types::register(module)?;
    names::register(module)?;
    parameters::register(module)?;
    launch::register(module)?;
    launch_guard::register(module)?;
    native_log::start();
    logging::register(module)
}
