//! Status events of publishers and subscriptions (rmw `event.h`; DDS 1.4 §2.2.4.1).
//!
//! The runtime queues events, `pteros_rcl::event_status` makes one status per kind of
//! them, and this file writes it into the structs of rmw.

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::Mutex;
use pteros_rcl::event_status::{EventStatuses, StatusKind};
use pteros_runtime::event::EndpointEvents;
use pteros_runtime::ready_queue::{ReadyQueue, Task};

use crate::abi::{
    CountStatus, Event, EventCallback, IncompatibleQosStatus, LivelinessChangedStatus,
    MatchedStatus, MessageLostStatus, POLICY_INVALID, Ret, ret,
};
use crate::context::ContextState;
use crate::distribution::EventType;
use crate::error::{
    Failure, IDENTIFIER, Outcome, check_identifier, non_null, non_null_mut, run, run_set_callback,
};
use crate::listener::Callback;

/// Number of the kinds of statuses.
const KINDS: usize = StatusKind::Matched as usize + 1;

/// Statuses of one endpoint.
pub(crate) struct EventState {
    events: Arc<EndpointEvents>,
    context: Arc<ContextState>,
    is_reader: bool,
    statuses: Mutex<Statuses>,
    callbacks: [Callback; KINDS],
    /// Kinds with changes that were not taken, one bit each. Written under the lock of
    /// `statuses`; a wait reads it without the lock.
    untaken_kinds: AtomicU32,
}

#[derive(Default)]
struct Statuses {
    statuses: EventStatuses,
    /// Changes of each kind that were not passed to a callback.
    untold: [usize; KINDS],
}

fn bit(kind: StatusKind) -> u32 {
    1 << kind as u32
}

fn to_usize(count: i64) -> usize {
    usize::try_from(count).unwrap_or(0)
}

/// Saturates, as the statuses of rmw with 32 bits do.
fn to_i32(count: i64) -> i32 {
    i32::try_from(count).unwrap_or(if count < 0 { i32::MIN } else { i32::MAX })
}

impl EventState {
    pub(crate) fn new(
        context: &Arc<ContextState>,
        events: &Arc<EndpointEvents>,
        is_reader: bool,
    ) -> Arc<Self> {
        let state = Arc::new(Self {
            events: events.clone(),
            context: context.clone(),
            is_reader,
            statuses: Mutex::default(),
            callbacks: Default::default(),
            untaken_kinds: AtomicU32::default(),
        });
        let task: std::sync::Weak<Self> = Arc::downgrade(&state);
        state.events.slot.set_task(task);
        state
    }

    /// Applies the queued events.
    fn sync(&self) {
        let mut statuses = self.statuses.lock();
        while let Some(event) = self.events.take() {
            if let Some(kind) = statuses.statuses.apply(&event) {
                if let Some(count) = statuses.untold.get_mut(kind as usize) {
                    *count += 1;
                }
                self.untaken_kinds.fetch_or(bit(kind), Ordering::Release);
            }
        }
    }

    /// Wakes `queue` at an event, unless a callback is set.
    pub(crate) fn attach(&self, queue: &Arc<ReadyQueue>) {
        let has_callback = self.callbacks.iter().any(Callback::is_set);
        if !has_callback && !self.events.slot.is_attached_to(queue) {
            self.events.slot.attach(Some(queue.clone()), || false);
        }
    }

    /// Calls the callbacks for new changes. Returns false if it could not.
    fn tell(&self) -> bool {
        let mut could = true;
        for (kind, callback) in self.callbacks.iter().enumerate() {
            if callback.is_set() {
                could &= callback.tell_new(|| {
                    let mut statuses = self.statuses.lock();
                    statuses.untold.get_mut(kind).map_or(0, std::mem::take)
                });
            }
        }
        could
    }

    /// Whether a kind has untaken changes. Its callback is called before.
    pub(crate) fn is_ready(&self, kind: StatusKind) -> bool {
        if !self.events.is_empty() {
            self.sync();
        }
        self.tell();
        self.untaken_kinds.load(Ordering::Acquire) & bit(kind) != 0
    }

    /// Writes the status of a kind and resets its changes.
    ///
    /// # Safety
    /// `info` points to the status structure of the kind.
    unsafe fn take(&self, kind: StatusKind, info: *mut c_void) -> Outcome {
        self.sync();
        let mut statuses = self.statuses.lock();
        let status = statuses.statuses.take(kind);
        // SAFETY: as for this function.
        unsafe {
            match kind {
                StatusKind::LivelinessChanged => {
                    info.cast::<LivelinessChangedStatus>()
                        .write(LivelinessChangedStatus {
                            alive_count: to_i32(status.current),
                            not_alive_count: to_i32(status.not_alive),
                            alive_count_change: to_i32(status.current_change),
                            not_alive_count_change: to_i32(status.not_alive_change),
                        });
                }
                StatusKind::DeadlineMissed
                | StatusKind::LivelinessLost
                | StatusKind::IncompatibleType => {
                    info.cast::<CountStatus>().write(CountStatus {
                        total_count: to_i32(status.total),
                        total_count_change: to_i32(status.total_change),
                    });
                }
                StatusKind::IncompatibleQos => {
                    info.cast::<IncompatibleQosStatus>()
                        .write(IncompatibleQosStatus {
                            total_count: to_i32(status.total),
                            total_count_change: to_i32(status.total_change),
                            last_policy_kind: status.last_policy_kind.max(POLICY_INVALID),
                        });
                }
                StatusKind::Matched => {
                    info.cast::<MatchedStatus>().write(MatchedStatus {
                        total_count: to_usize(status.total),
                        total_count_change: to_usize(status.total_change),
                        current_count: to_usize(status.current),
                        current_count_change: to_i32(status.current_change),
                    });
                }
                StatusKind::MessageLost => {
                    info.cast::<MessageLostStatus>().write(MessageLostStatus {
                        total_count: to_usize(status.total),
                        total_count_change: to_usize(status.total_change),
                    });
                }
            }
        }
        if let Some(count) = statuses.untold.get_mut(kind as usize) {
            *count = 0;
        }
        self.untaken_kinds.fetch_and(!bit(kind), Ordering::Release);
        Ok(())
    }

    fn set_callback(
        &self,
        kind: StatusKind,
        function: EventCallback,
        user_data: *const c_void,
    ) -> Outcome {
        let callback = &self.callbacks[kind as usize];
        if function.is_none() {
            callback.set(None, user_data, 0);
            return Ok(());
        }
        let queue = self.context.callback_queue()?;
        self.sync();
        let untold = self
            .statuses
            .lock()
            .untold
            .get_mut(kind as usize)
            .map(std::mem::take);
        callback.set(function, user_data, untold.unwrap_or(0));
        self.events
            .slot
            .attach(Some(queue), || !self.events.is_empty());
        Ok(())
    }
}

impl Task for EventState {
    fn run(&self) {
        self.events.slot.begin_take();
        self.sync();
        if !self.tell() {
            self.events.slot.mark_ready();
        }
        // For a thread that waits for the event beside the callback.
        self.context.core.wake_waiters();
    }
}

fn unknown(kind: u32) -> Failure {
    Failure::new(
        ret::UNSUPPORTED,
        format!("events of type {kind} are not supported"),
    )
}

/// Initializes an event of an endpoint, also one that was initialized before, as other
/// middlewares do. An event owns nothing.
///
/// # Safety
/// The contract of rmw (lib.rs).
pub(crate) unsafe fn init(event: *mut Event, state: &Arc<EventState>, event_type: u32) -> Outcome {
    // SAFETY: the contract of rmw (lib.rs).
    let event = unsafe { non_null_mut(event, "rmw_event") }?;
    let known = EventType::of_number(event_type);
    if known.is_none_or(|event| event.of_subscription != state.is_reader) {
        return Err(unknown(event_type));
    }
    *event = Event {
        implementation_identifier: IDENTIFIER.as_ptr(),
        data: Arc::as_ptr(state).cast_mut().cast(),
        event_type,
    };
    Ok(())
}

unsafe fn state<'e>(event: *const Event) -> Outcome<(&'e EventState, StatusKind)> {
    // SAFETY: the contract of rmw (lib.rs).
    unsafe {
        let event = non_null(event, "event")?;
        check_identifier(event.implementation_identifier, "event")?;
        let state: &EventState = non_null(event.data.cast(), "event->data")?;
        state.context.origin.check()?;
        Ok((state, kind(event)?))
    }
}

/// The status that an event is about.
pub(crate) fn kind(event: &Event) -> Outcome<StatusKind> {
    let known = EventType::of_number(event.event_type);
    // Each wait asks it of each event: the error is made only where it is one.
    let known = known.ok_or_else(|| unknown(event.event_type))?;
    Ok(known.status)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_take_event(
    event: *const Event,
    info: *mut c_void,
    taken: *mut bool,
) -> Ret {
    run("rmw_take_event", || {
        // SAFETY: the contract of rmw (lib.rs).
        unsafe {
            let (state, kind) = state(event)?;
            if info.is_null() {
                return Err(Failure::argument("argument event_info is null"));
            }
            let taken = non_null_mut(taken, "taken")?;
            *taken = false;
            state.take(kind, info)?;
            *taken = true;
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_event_set_callback(
    event: *mut Event,
    callback: EventCallback,
    user_data: *const c_void,
) -> Ret {
    run_set_callback("rmw_event_set_callback", callback, || {
        // SAFETY: the contract of rmw (lib.rs).
        let (state, kind) = unsafe { state(event) }?;
        state.set_callback(kind, callback, user_data)
    })
}

/// Since Kilted.
#[unsafe(no_mangle)]
pub extern "C" fn rmw_event_type_is_supported(event_type: u32) -> bool {
    EventType::of_number(event_type).is_some()
}
