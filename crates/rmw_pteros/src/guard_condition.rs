//! Guard conditions: triggers of user code, which several wait sets may share.

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use pteros_runtime::ready_queue::ReadyQueue;

use crate::abi::{Context, GuardCondition, Ret};
use crate::context::state;
use crate::error::{IDENTIFIER, check_identifier, create, non_null, run, run_end};
use crate::handle::Handle;

/// State behind a guard condition handle.
#[derive(Default)]
pub(crate) struct GuardState {
    is_triggered: AtomicBool,
    /// [`this_thread`] at the last trigger.
    triggered_by: AtomicUsize,
    /// Queues of the wait sets that have waited for it.
    waiters: Mutex<Vec<Weak<ReadyQueue>>>,
}

impl GuardState {
    /// Triggers it and wakes its wait sets. Thread-safe, does not block.
    pub(crate) fn trigger(&self) {
        self.triggered_by.store(this_thread(), Ordering::Relaxed);
        self.is_triggered.store(true, Ordering::Release);
        let mut last = None;
        self.waiters.lock().retain(|queue| {
            let queue = queue.upgrade();
            let is_alive = queue.is_some();
            if let Some(before) = queue.and_then(|queue| last.replace(queue)) {
                before.wake();
            }
            is_alive
        });
        // Most have one wait set. It is woken without the lock, which its next wait
        // needs. A thread that finds the lock taken yields its CPU, for milliseconds on a
        // loaded host.
        if let Some(last) = last {
            last.wake();
        }
    }

    pub(crate) fn is_triggered(&self) -> bool {
        self.is_triggered.load(Ordering::Acquire)
    }

    /// Whether another thread made the last trigger.
    pub(crate) fn is_of_other_thread(&self) -> bool {
        self.triggered_by.load(Ordering::Relaxed) != this_thread()
    }

    /// Returns and clears the trigger.
    pub(crate) fn consume(&self) -> bool {
        // Most are not triggered, and a load costs less.
        self.is_triggered() && self.is_triggered.swap(false, Ordering::AcqRel)
    }

    /// Adds a queue to wake.
    pub(crate) fn add_waiter(&self, queue: &Arc<ReadyQueue>) {
        let mut waiters = self.waiters.lock();
        if !waiters
            .iter()
            .any(|known| std::ptr::eq(known.as_ptr(), Arc::as_ptr(queue)))
        {
            waiters.retain(|known| known.strong_count() > 0);
            waiters.push(Arc::downgrade(queue));
        }
    }
}

/// A number that is unique among living threads.
fn this_thread() -> usize {
    thread_local! {
        static OF_THREAD: u8 = const { 0 };
    }
    OF_THREAD.with(|own| std::ptr::from_ref(own).addr())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_create_guard_condition(context: *mut Context) -> *mut GuardCondition {
    create("rmw_create_guard_condition", || {
        // SAFETY: by contract of rmw.
        unsafe { state(context) }?;
        Ok(handle_of(Arc::default(), context).into_raw())
    })
}

/// Builds the handle of a guard condition.
pub(crate) fn handle_of(
    guard: Arc<GuardState>,
    context: *mut Context,
) -> Handle<GuardCondition, GuardState> {
    let abi = GuardCondition {
        implementation_identifier: IDENTIFIER.as_ptr(),
        data: Arc::as_ptr(&guard).cast::<c_void>().cast_mut(),
        context,
    };
    Handle::new(abi, guard, Default::default())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_destroy_guard_condition(guard: *mut GuardCondition) -> Ret {
    run_end("rmw_destroy_guard_condition", || {
        // SAFETY: by contract of rmw.
        unsafe {
            check_identifier(
                non_null(guard, "guard_condition")?.implementation_identifier,
                "guard condition",
            )?;
            Handle::<GuardCondition, GuardState>::state(guard)?;
            Handle::<GuardCondition, GuardState>::destroy(guard);
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_trigger_guard_condition(guard: *const GuardCondition) -> Ret {
    run("rmw_trigger_guard_condition", || {
        // SAFETY: by contract of rmw.
        unsafe {
            let guard = non_null(guard, "guard_condition")?;
            check_identifier(guard.implementation_identifier, "guard condition")?;
            Handle::<GuardCondition, GuardState>::state(guard)?.trigger();
        }
        Ok(())
    })
}
