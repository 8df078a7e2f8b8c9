//! SIGINT and SIGTERM: the runtime's handler shuts the contexts down, wakes the pollers
//! and then calls Python's handler.
//!
//! The runtime installs its handler for both signals when the first context opens
//! (`pteros_net::shutdown_signal`). Here the program chooses for which of them it stays.

use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;
use pyo3::prelude::*;

use crate::context::{ContextState, for_each_context};
use crate::error::rcl;
use crate::guard_condition::{GuardCondition, GuardState};

/// The signals, with their bits in the options of rclpy.
const SIGNALS: [(libc::c_int, u32); 2] = [(libc::SIGINT, 1), (libc::SIGTERM, 2)];

/// What the handlers of the two signals are.
struct Handlers {
    /// Before the runtime's were installed, last.
    before: [libc::sigaction; 2],
    /// The runtime's; `None` until a context was opened.
    ours: Option<[libc::sigaction; 2]>,
    options: u32,
}

/// Guards that a signal triggers, and whether the thread for them runs.
#[derive(Default)]
struct Guards {
    list: Vec<Weak<GuardState>>,
}

static HANDLERS: Mutex<Option<Handlers>> = Mutex::new(None);
static GUARDS: OnceLock<Mutex<Guards>> = OnceLock::new();

fn current() -> [libc::sigaction; 2] {
    SIGNALS.map(|(signal, _)| {
        // SAFETY: plain data for which zeros are valid; a null action only queries.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &mut action);
            action
        }
    })
}

fn set(signal: libc::c_int, action: &libc::sigaction) {
    // SAFETY: an action that this process had installed for that signal before.
    unsafe { libc::sigaction(signal, action, std::ptr::null_mut()) };
}

/// Notes the handlers of the program before a context installs the runtime's.
pub(crate) fn before_open() {
    let mut handlers = HANDLERS.lock();
    if handlers.is_none() {
        *handlers = Some(Handlers {
            before: current(),
            ours: None,
            options: 0,
        });
    }
    drop(handlers);
    // A signal that ended the contexts before is none for a new one.
    let mut any_open = false;
    for_each_context(|context| any_open |= !context.is_shut_down());
    if !any_open
        && let Ok(signal) = pteros_net::shutdown_signal()
        && signal.is_requested()
    {
        for_each_context(ContextState::note_signal);
        signal.clear();
    }
}

/// Notes the runtime's handlers and puts back those that the program did not ask for.
pub(crate) fn after_open() {
    if let Some(handlers) = &mut *HANDLERS.lock()
        && handlers.ours.is_none()
    {
        handlers.ours = Some(current());
        handlers.apply();
    }
}

impl Handlers {
    fn apply(&self) {
        let Some(ours) = &self.ours else { return };
        for (((signal, bit), ours), before) in SIGNALS.iter().zip(ours).zip(&self.before) {
            let action = if self.options & bit == 0 {
                before
            } else {
                ours
            };
            set(*signal, action);
        }
    }
}

/// Lets SIGINT (1) and SIGTERM (2) shut all contexts down.
#[pyfunction]
#[pyo3(signature = (options=3))]
fn install_signal_handlers(options: u32) -> PyResult<()> {
    let mut handlers = HANDLERS.lock();
    let handlers = handlers.get_or_insert_with(|| Handlers {
        before: current(),
        ours: None,
        options: 0,
    });
    pteros_net::shutdown_signal().map_err(rcl)?;
    handlers.options = options & 3;
    if handlers.ours.is_none() {
        handlers.ours = Some(current());
    }
    handlers.apply();
    Ok(())
}

/// Puts the program's handlers back.
#[pyfunction]
fn uninstall_signal_handlers() {
    if let Some(handlers) = &mut *HANDLERS.lock() {
        handlers.options = 0;
        handlers.apply();
    }
}

/// The options in force.
#[pyfunction]
fn get_current_signal_handlers_options() -> u32 {
    HANDLERS
        .lock()
        .as_ref()
        .map_or(0, |handlers| handlers.options)
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
    module.add("SIGNAL_HANDLERS_SIGINT", 1)?;
    module.add("SIGNAL_HANDLERS_SIGTERM", 2)?;
    module.add("SIGNAL_HANDLERS_ALL", 3)?;
    module.add_function(wrap_pyfunction!(install_signal_handlers, module)?)?;
    module.add_function(wrap_pyfunction!(uninstall_signal_handlers, module)?)?;
    module.add_function(wrap_pyfunction!(
        get_current_signal_handlers_options,
        module
    )?)?;
    module.add_function(wrap_pyfunction!(register_sigint_guard_condition, module)?)?;
    module.add_function(wrap_pyfunction!(unregister_sigint_guard_condition, module)?)
}
