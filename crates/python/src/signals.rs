//! SIGINT and SIGTERM: the runtime's handler shuts the contexts down, wakes the pollers
//! and then calls Python's handler.
//!
//! Opening a context installs nothing. The program chooses the signals that get the
//! runtime's handler (`pteros_net::handle_shutdown_signals`); all contexts follow it.

use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;
use pteros_net::{ShutdownSignals, handle_shutdown_signals, shutdown_request};
use pteros_rcl::guard_condition::GuardCondition as GuardState;
use pyo3::prelude::*;

use crate::context::{ContextState, for_each_context};
use crate::error::rcl;
use crate::guard_condition::GuardCondition;

/// The bits of the signals in the options of rclpy.
const SIGINT: u32 = 1;
const SIGTERM: u32 = 2;
const ALL: u32 = SIGINT | SIGTERM;

/// Guards that a signal triggers, and whether the thread for them runs.
#[derive(Default)]
struct Guards {
    list: Vec<Weak<GuardState>>,
}

/// The signals that have the runtime's handler.
static HANDLED: Mutex<u32> = Mutex::new(0);
static GUARDS: OnceLock<Mutex<Guards>> = OnceLock::new();

/// Clears a signal that ended all contexts before, so that it is none for a new one.
pub(crate) fn before_open() {
    let mut any_open = false;
    for_each_context(|context| any_open |= !context.is_shut_down());
    if !any_open
        && let Ok(signal) = shutdown_request()
        && signal.is_requested()
    {
        for_each_context(ContextState::note_signal);
        signal.clear();
    }
}

/// Lets SIGINT (1) and SIGTERM (2) shut all contexts down.
#[pyfunction]
#[pyo3(signature = (options=ALL))]
fn install_signal_handlers(options: u32) -> PyResult<()> {
    let mut handled = HANDLED.lock();
    let signals = ShutdownSignals {
        interrupt: options & SIGINT != 0,
        terminate: options & SIGTERM != 0,
    };
    handle_shutdown_signals(signals).map_err(rcl)?;
    *handled = options & ALL;
    Ok(())
}

/// Puts the program's handlers back.
#[pyfunction]
fn uninstall_signal_handlers() -> PyResult<()> {
    install_signal_handlers(0)
}

/// The options in force.
#[pyfunction]
fn get_current_signal_handlers_options() -> u32 {
    *HANDLED.lock()
}

/// Triggers the guards that were registered, after a signal. Pollers call it.
pub(crate) fn trigger_guards() {
    let Some(guards) = GUARDS.get() else { return };
    guards.lock().list.retain(|guard| {
        let guard = guard.upgrade();
        guard.inspect(|guard| guard.trigger()).is_some()
    });
}

/// Triggers `guard` when a wait ends by SIGINT or SIGTERM.
#[pyfunction]
fn register_sigint_guard_condition(guard: &GuardCondition) {
    let guards = GUARDS.get_or_init(Mutex::default);
    guards.lock().list.push(Arc::downgrade(&guard.state));
}

/// Ends that.
#[pyfunction]
fn unregister_sigint_guard_condition(guard: &GuardCondition) {
    if let Some(guards) = GUARDS.get() {
        let is_it = |known: &Weak<GuardState>| known.as_ptr() == Arc::as_ptr(&guard.state);
        guards.lock().list.retain(|known| !is_it(known));
    }
}

/// Adds functions and constants to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("SIGNAL_HANDLERS_NO", 0)?;
    module.add("SIGNAL_HANDLERS_SIGINT", SIGINT)?;
    module.add("SIGNAL_HANDLERS_SIGTERM", SIGTERM)?;
    module.add("SIGNAL_HANDLERS_ALL", ALL)?;
    module.add_function(wrap_pyfunction!(install_signal_handlers, module)?)?;
    module.add_function(wrap_pyfunction!(uninstall_signal_handlers, module)?)?;
    module.add_function(wrap_pyfunction!(
        get_current_signal_handlers_options,
        module
    )?)?;
    module.add_function(wrap_pyfunction!(register_sigint_guard_condition, module)?)?;
    module.add_function(wrap_pyfunction!(unregister_sigint_guard_condition, module)?)
}
