//! `rmw_wait`: the wait set of `rcl` over the arrays of rmw, whose entries it sets to null.
//!
//! A wait lasts until an entity is ready or its timeout has passed, also after signals
//! and after `rmw_shutdown`. rcl and rclcpp end waits with guard conditions.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use pteros_rcl::event_status::StatusKind;
use pteros_rcl::guard_condition::GuardCondition as GuardState;
use pteros_rcl::wait_set::{self as rcl, Entries, FirstLook, WaitSource};
use pteros_runtime::Core;
use pteros_runtime::ready_queue::ReadyQueue;
use pteros_runtime::rtps::time::{Duration, Instant};

use crate::abi::{Context, Event, Ret, Time, WaitArray, WaitSet, ret};
use crate::context::{self, ContextState};
use crate::error::{
    Failure, IDENTIFIER, Outcome, check_identifier, create, non_null, run, run_end,
};
use crate::event::{self, EventState};
use crate::handle::Handle;
use crate::listener::DataWaiter;

/// Checks in a row that find nothing, after which a thread yields its CPU. A timer that is
/// due makes one; the next wait blocks.
const EMPTY_CHECKS_MAX: u32 = 4;

/// State behind a wait set handle.
pub(crate) struct WaitSetState {
    context: Arc<ContextState>,
    set: rcl::WaitSet,
    /// Whether the last wait that did not block kept messages for the next one.
    holds_back: AtomicBool,
    /// Checks in a row that found nothing.
    empty_checks: AtomicU32,
}

/// How a wait ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waiting {
    /// It checked once, because its timeout is zero.
    Look,
    /// An entity was ready when it started.
    None,
    /// It was blocked.
    Blocked,
}

/// End of a timeout of rmw; `None` never ends.
pub(crate) fn deadline(core: &Core, timeout: Option<Time>) -> Instant {
    let Some(timeout) = timeout else {
        return Instant::FAR_FUTURE;
    };
    let seconds = i64::try_from(timeout.sec).unwrap_or(i64::MAX);
    let nanoseconds = i64::try_from(timeout.nsec).unwrap_or(i64::MAX);
    let total = seconds
        .saturating_mul(1_000_000_000)
        .saturating_add(nanoseconds);
    if total == i64::MAX {
        return Instant::FAR_FUTURE;
    }
    core.platform.now().after(Duration::from_nanos(total))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_create_wait_set(
    context: *mut Context,
    _max_conditions: usize,
) -> *mut WaitSet {
    create("rmw_create_wait_set", || {
        // SAFETY: the contract of rmw (lib.rs).
        let context = unsafe { context::state(context) }?.clone();
        let state = Arc::new(WaitSetState {
            set: rcl::WaitSet::new(&context.waits),
            context,
            holds_back: AtomicBool::new(false),
            empty_checks: AtomicU32::new(0),
        });
        let abi = WaitSet {
            implementation_identifier: IDENTIFIER.as_ptr(),
            guard_conditions: std::ptr::null_mut(),
            data: Arc::as_ptr(&state).cast_mut().cast(),
        };
        Ok(Handle::new(abi, state, Default::default()).into_raw())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_destroy_wait_set(wait_set: *mut WaitSet) -> Ret {
    run_end("rmw_destroy_wait_set", || {
        if wait_set.is_null() {
            // RMW_RET_ERROR, as upstream's tests require.
            return Err(Failure::error("argument wait_set is null"));
        }
        // SAFETY: the contract of rmw (lib.rs).
        unsafe {
            check_identifier((*wait_set).implementation_identifier, "wait set")?;
            Handle::<WaitSet, WaitSetState>::state(wait_set)?;
            Handle::<WaitSet, WaitSetState>::destroy(wait_set);
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_wait(
    subscriptions: *mut WaitArray,
    guard_conditions: *mut WaitArray,
    services: *mut WaitArray,
    clients: *mut WaitArray,
    events: *mut WaitArray,
    wait_set: *mut WaitSet,
    timeout: *const Time,
) -> Ret {
    run("rmw_wait", || {
        // SAFETY: the contract of rmw (lib.rs).
        let (wait_set, timeout) = unsafe {
            let handle = non_null(wait_set, "wait_set")?;
            check_identifier(handle.implementation_identifier, "wait set")?;
            let state = Handle::<WaitSet, WaitSetState>::state(wait_set)?;
            (state, timeout.as_ref().copied())
        };
        let entries = Waited {
            // SAFETY: entries are the data of entities, by the contract of rmw (lib.rs).
            data: unsafe { [entries(subscriptions), entries(services), entries(clients)] },
            // SAFETY: as above.
            guards: unsafe { entries(guard_conditions) },
            // SAFETY: as above; events come as themselves.
            events: unsafe { entries(events) },
        };
        // SAFETY: as above.
        unsafe { wait_set.wait(entries, timeout) }
    })
}

/// The entities of one wait.
struct Waited<'a> {
    data: [&'a mut [*mut DataWaiter]; 3],
    guards: &'a mut [*mut GuardState],
    events: &'a mut [*mut Event],
}

/// # Safety
/// `array` is null or an array of pointers to `T`.
unsafe fn entries<'a, T>(array: *mut WaitArray) -> &'a mut [*mut T] {
    // SAFETY: as for this function.
    match unsafe { array.as_mut() } {
        // SAFETY: so many entries.
        Some(array) if !array.entries.is_null() => unsafe {
            std::slice::from_raw_parts_mut(array.entries.cast(), array.count)
        },
        _ => &mut [],
    }
}

impl WaitSetState {
    /// # Safety
    /// The entries are valid.
    unsafe fn wait(&self, mut entries: Waited<'_>, timeout: Option<Time>) -> Outcome {
        // SAFETY: as for this function.
        unsafe { entries.attach(self.set.queue()) }?;
        let core = &self.context.core;
        let first = self.set.begin(&mut entries);
        let is_look = timeout.is_some_and(|timeout| timeout.sec == 0 && timeout.nsec == 0);
        let waiting = match first {
            _ if is_look => Waiting::Look,
            FirstLook::Nothing => Waiting::Blocked,
            FirstLook::Ready | FirstLook::ReadyBeforePoll => Waiting::None,
        };
        if first != FirstLook::Ready {
            self.set.wait(&mut entries, first, deadline(core, timeout));
        }
        // SAFETY: as for this function.
        let is_any_ready = unsafe { entries.keep_ready(waiting, &self.holds_back) };
        if is_any_ready || waiting == Waiting::Blocked {
            self.empty_checks.store(0, Ordering::Relaxed);
        }
        if is_any_ready || (timeout.is_none() && !core.is_shut_down()) {
            // Another thread may have taken it. For rcl, that is a wait without result.
            Ok(())
        } else if timeout.is_none() {
            Err(Failure::error("the context was finalized during the wait"))
        } else {
            if is_look {
                self.note_empty_check();
            }
            Err(Failure::new(ret::TIMEOUT, "nothing is ready"))
        }
    }

    /// Notes a check that found nothing, and yields the CPU to other threads after several.
    ///
    /// A multi-threaded executor checks without end while the callback of a timer's group
    /// runs in another thread. That thread may wait for this CPU.
    fn note_empty_check(&self) {
        if self.empty_checks.fetch_add(1, Ordering::Relaxed) >= EMPTY_CHECKS_MAX {
            self.empty_checks.store(0, Ordering::Relaxed);
            std::thread::yield_now();
        }
    }
}

impl Waited<'_> {
    /// Attaches every entity to the queue.
    unsafe fn attach(&self, queue: &Arc<ReadyQueue>) -> Outcome {
        // SAFETY: as for `WaitSetState::wait`.
        unsafe {
            for waiter in self.data.iter().flat_map(|list| list.iter()) {
                non_null(waiter.cast_const(), "entry of a wait array")?.attach(queue);
            }
            for guard in &*self.guards {
                non_null(guard.cast_const(), "entry of guard_conditions")?.attach(queue);
            }
            for event in &*self.events {
                event_state(*event)?.0.attach(queue);
            }
        }
        Ok(())
    }

    /// Whether a message or an event is ready.
    unsafe fn is_other_ready(&self) -> bool {
        // SAFETY: as for `is_any_ready`.
        unsafe {
            let mut data = self.data.iter().flat_map(|list| list.iter());
            data.any(|waiter| (**waiter).is_ready())
                || self.events.iter().any(|event| is_event_ready(*event))
        }
    }

    /// Sets the entries that are not ready to null. Returns whether one is ready.
    ///
    /// A guard condition that interrupts a wait is reported alone. Other ready entities
    /// are reported by the next wait. The reason: rclcpp triggers one when a node is removed from an
    /// executor, whose wait still has the node's subscriptions. With a later message, the
    /// executor would call into a destroyed node. A trigger interrupts a blocked wait. If
    /// another thread triggered it, it also interrupts a wait that starts now. It does so
    /// only once in a row, so that endless triggers do not stop messages.
    unsafe fn keep_ready(&mut self, waiting: Waiting, holds_back: &AtomicBool) -> bool {
        let (mut any, mut is_of_others) = (false, false);
        let mut take = |guard: *mut GuardState| {
            // SAFETY: as for `WaitSetState::wait`.
            let guard = unsafe { &*guard };
            is_of_others |= guard.is_triggered() && guard.is_of_other_thread();
            guard.take()
        };
        // SAFETY: as for `WaitSetState::wait`.
        unsafe {
            for guard in &mut *self.guards {
                keep(guard, &mut take, &mut any);
            }
            let is_interrupted = match waiting {
                Waiting::Look => false,
                Waiting::None => {
                    is_of_others && !holds_back.load(Ordering::Relaxed) && self.is_other_ready()
                }
                Waiting::Blocked => any,
            };
            let keeps = is_interrupted && waiting == Waiting::None;
            holds_back.store(keeps, Ordering::Relaxed);
            for waiter in self.data.iter_mut().flat_map(|list| list.iter_mut()) {
                let is_ready = |waiter: *mut DataWaiter| !is_interrupted && (*waiter).is_ready();
                keep(waiter, is_ready, &mut any);
            }
            for event in &mut *self.events {
                let is_ready = |event: *mut Event| !is_interrupted && is_event_ready(event);
                keep(event, is_ready, &mut any);
            }
        }
        any
    }
}

impl Entries for Waited<'_> {
    fn is_any_ready(&mut self) -> bool {
        // SAFETY: as for `WaitSetState::wait`; `attach` has checked for null.
        unsafe { self.is_other_ready() || self.guards.iter().any(|guard| (**guard).is_triggered()) }
    }
}

fn keep<T>(entry: &mut *mut T, is_ready: impl FnOnce(*mut T) -> bool, any: &mut bool) {
    if is_ready(*entry) {
        *any = true;
    } else {
        *entry = std::ptr::null_mut();
    }
}

unsafe fn event_state<'e>(event: *const Event) -> Outcome<(&'e EventState, StatusKind)> {
    // SAFETY: as for `WaitSetState::wait`.
    unsafe {
        let event = non_null(event, "entry of events")?;
        Ok((
            non_null(event.data.cast(), "event->data")?,
            event::kind(event)?,
        ))
    }
}

unsafe fn is_event_ready(event: *const Event) -> bool {
    // SAFETY: as for `WaitSetState::wait`.
    unsafe { event_state(event) }.is_ok_and(|(state, kind)| state.is_ready(kind))
}
