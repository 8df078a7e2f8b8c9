//! Status events of publishers and subscriptions (rmw `event.h`; DDS 1.4 §2.2.4.1).
//!
//! The runtime queues events, `pteros_rcl::event_waiter` keeps one status per kind of
//! them, and this file writes it into the structs of rmw.

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pteros_rcl::event_status::StatusKind;
use pteros_rcl::event_waiter::{EventListener, EventWaiter};
use pteros_runtime::event::EndpointEvents;

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

/// Callbacks of the user for the statuses of one endpoint.
pub(crate) struct StatusCallbacks {
    context: Arc<ContextState>,
    callbacks: [Callback; KINDS],
    /// Changes of each kind that were not passed to a callback.
    untold: [AtomicUsize; KINDS],
}

impl EventListener for StatusCallbacks {
    fn is_set(&self) -> bool {
        self.callbacks.iter().any(Callback::is_set)
    }

    fn note(&self, kind: StatusKind) {
        self.untold[kind as usize].fetch_add(1, Ordering::Relaxed);
    }

    fn note_taken(&self, kind: StatusKind) {
        self.untold[kind as usize].store(0, Ordering::Relaxed);
    }

    fn report(&self) -> bool {
        let mut could = true;
        for (callback, untold) in self.callbacks.iter().zip(&self.untold) {
            if callback.is_set() {
                could &= callback.tell(|_| untold.swap(0, Ordering::Relaxed));
            }
        }
        could
    }
}

/// Statuses of one endpoint.
pub(crate) type EventState = EventWaiter<StatusCallbacks>;

/// Creates the statuses of an endpoint.
pub(crate) fn create(
    context: &Arc<ContextState>,
    events: &Arc<EndpointEvents>,
    is_reader: bool,
) -> Arc<EventState> {
    let callbacks = StatusCallbacks {
        context: context.clone(),
        callbacks: Default::default(),
        untold: Default::default(),
    };
    EventWaiter::new(&context.core, events, is_reader, callbacks)
}

fn to_usize(count: i64) -> usize {
    usize::try_from(count).unwrap_or(0)
}

/// Saturates, as the statuses of rmw with 32 bits do.
fn to_i32(count: i64) -> i32 {
    i32::try_from(count).unwrap_or(if count < 0 { i32::MIN } else { i32::MAX })
}

/// Writes the status of a kind and resets its changes.
///
/// # Safety
/// `info` points to the status structure of the kind.
unsafe fn take(state: &EventState, kind: StatusKind, info: *mut c_void) {
    let status = state.take(kind);
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
}

fn set_callback(
    state: &EventState,
    kind: StatusKind,
    function: EventCallback,
    user_data: *const c_void,
) -> Outcome {
    let listener = &state.listener;
    let callback = &listener.callbacks[kind as usize];
    if function.is_none() {
        callback.set(None, user_data, 0);
        return Ok(());
    }
    let queue = listener.context.callback_queue()?;
    state.sync();
    let untold = listener.untold[kind as usize].swap(0, Ordering::Relaxed);
    callback.set(function, user_data, untold);
    state
        .events
        .slot
        .attach(Some(queue), || !state.events.is_empty());
    Ok(())
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
        state.listener.context.origin.check()?;
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
            take(state, kind, info);
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
        set_callback(state, kind, callback, user_data)
    })
}

/// Since Kilted.
#[unsafe(no_mangle)]
pub extern "C" fn rmw_event_type_is_supported(event_type: u32) -> bool {
    EventType::of_number(event_type).is_some()
}
