//! Status events of publishers and subscriptions (rmw `event.h`; DDS 1.4 §2.2.4.1).
//!
//! The runtime queues events. This file accumulates them into one status per kind, with
//! changes since the last take.

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::Mutex;
use pteros_runtime::event::{EndpointEvent, EndpointEvents};
use pteros_runtime::ready_queue::{ReadyQueue, Task};

use crate::abi::{
    CountStatus, Event, EventCallback, IncompatibleQosStatus, LivelinessChangedStatus,
    MatchedStatus, MessageLostStatus, Ret, ret,
};
use crate::context::ContextState;
use crate::error::{
    Failure, IDENTIFIER, Outcome, check_identifier, non_null, non_null_mut, run, run_set_callback,
};
use crate::listener::Callback;
use crate::qos;

/// `rmw_event_type_t`.
pub(crate) mod kind {
    pub(crate) const LIVELINESS_CHANGED: u32 = 0;
    pub(crate) const REQUESTED_DEADLINE_MISSED: u32 = 1;
    pub(crate) const REQUESTED_QOS_INCOMPATIBLE: u32 = 2;
    pub(crate) const MESSAGE_LOST: u32 = 3;
    pub(crate) const SUBSCRIPTION_INCOMPATIBLE_TYPE: u32 = 4;
    pub(crate) const SUBSCRIPTION_MATCHED: u32 = 5;
    pub(crate) const LIVELINESS_LOST: u32 = 6;
    pub(crate) const OFFERED_DEADLINE_MISSED: u32 = 7;
    pub(crate) const OFFERED_QOS_INCOMPATIBLE: u32 = 8;
    pub(crate) const PUBLISHER_INCOMPATIBLE_TYPE: u32 = 9;
    pub(crate) const PUBLICATION_MATCHED: u32 = 10;
}

/// Number of kinds.
const KINDS: usize = 11;

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
    liveliness: LivelinessChangedStatus,
    deadline: CountStatus,
    liveliness_lost: CountStatus,
    incompatible_qos: IncompatibleQosStatus,
    incompatible_type: CountStatus,
    matched: MatchedStatus,
    lost: MessageLostStatus,
    /// Untaken changes of each kind.
    untaken: [usize; KINDS],
    /// Changes of each kind that were not passed to a callback.
    untold: [usize; KINDS],
}

/// Bit of a kind; 0 for a kind that rmw lacks.
fn bit(kind: u32) -> u32 {
    1u32.checked_shl(kind).unwrap_or(0)
}

fn to_i32(value: u64) -> i32 {
    i32::try_from(value).unwrap_or(i32::MAX)
}

fn to_usize(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

impl CountStatus {
    fn note_total(&mut self, total: u64) {
        let total = to_i32(total);
        self.total_count_change += total - self.total_count;
        self.total_count = total;
    }
}

impl Statuses {
    /// Applies an event. Returns its kind, if rmw has it.
    fn apply(&mut self, event: &EndpointEvent, is_reader: bool) -> Option<u32> {
        let of_side = |reader, writer| Some(if is_reader { reader } else { writer });
        match event {
            EndpointEvent::Matched {
                total,
                current,
                change,
                ..
            } => {
                let total = to_usize(*total);
                self.matched.total_count_change += total.saturating_sub(self.matched.total_count);
                self.matched.total_count = total;
                self.matched.current_count = *current;
                self.matched.current_count_change += change;
                of_side(kind::SUBSCRIPTION_MATCHED, kind::PUBLICATION_MATCHED)
            }
            EndpointEvent::IncompatibleQos {
                total, policies, ..
            } => {
                let total = to_i32(*total);
                let status = &mut self.incompatible_qos;
                status.total_count_change += total - status.total_count;
                status.total_count = total;
                status.last_policy_kind = policies
                    .first()
                    .map_or(1, |policy| qos::policy_kind(*policy));
                of_side(
                    kind::REQUESTED_QOS_INCOMPATIBLE,
                    kind::OFFERED_QOS_INCOMPATIBLE,
                )
            }
            EndpointEvent::IncompatibleType { total, .. } => {
                self.incompatible_type.note_total(*total);
                of_side(
                    kind::SUBSCRIPTION_INCOMPATIBLE_TYPE,
                    kind::PUBLISHER_INCOMPATIBLE_TYPE,
                )
            }
            EndpointEvent::DeadlineMissed { total } => {
                self.deadline.note_total(*total);
                of_side(
                    kind::REQUESTED_DEADLINE_MISSED,
                    kind::OFFERED_DEADLINE_MISSED,
                )
            }
            EndpointEvent::LivelinessLost { total } => {
                self.liveliness_lost.note_total(*total);
                Some(kind::LIVELINESS_LOST)
            }
            EndpointEvent::LivelinessChanged {
                alive, not_alive, ..
            } => {
                let (alive, not_alive) = (to_i32(*alive as u64), to_i32(*not_alive as u64));
                let status = &mut self.liveliness;
                status.alive_count_change += alive - status.alive_count;
                status.not_alive_count_change += not_alive - status.not_alive_count;
                status.alive_count = alive;
                status.not_alive_count = not_alive;
                Some(kind::LIVELINESS_CHANGED)
            }
            EndpointEvent::SampleLost { total, .. } => {
                let total = to_usize(*total);
                self.lost.total_count_change += total.saturating_sub(self.lost.total_count);
                self.lost.total_count = total;
                Some(kind::MESSAGE_LOST)
            }
            // Not in rmw; the runtime logs them.
            EndpointEvent::SampleRejected { .. }
            | EndpointEvent::NotStored { .. }
            | EndpointEvent::ReaderStalled { .. } => None,
        }
    }
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
            if let Some(kind) = statuses.apply(&event, self.is_reader) {
                let statuses = &mut *statuses;
                for count in [&mut statuses.untaken, &mut statuses.untold] {
                    if let Some(count) = count.get_mut(kind as usize) {
                        *count += 1;
                    }
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
    pub(crate) fn is_ready(&self, kind: u32) -> bool {
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
    unsafe fn take(&self, kind: u32, info: *mut c_void) -> Outcome {
        self.sync();
        let mut statuses = self.statuses.lock();
        let statuses = &mut *statuses;
        // SAFETY: as for this function.
        unsafe {
            match kind {
                kind::LIVELINESS_CHANGED => {
                    info.cast::<LivelinessChangedStatus>()
                        .write(statuses.liveliness);
                    statuses.liveliness.alive_count_change = 0;
                    statuses.liveliness.not_alive_count_change = 0;
                }
                kind::REQUESTED_DEADLINE_MISSED | kind::OFFERED_DEADLINE_MISSED => {
                    take_count(&mut statuses.deadline, info);
                }
                kind::LIVELINESS_LOST => take_count(&mut statuses.liveliness_lost, info),
                kind::SUBSCRIPTION_INCOMPATIBLE_TYPE | kind::PUBLISHER_INCOMPATIBLE_TYPE => {
                    take_count(&mut statuses.incompatible_type, info);
                }
                kind::REQUESTED_QOS_INCOMPATIBLE | kind::OFFERED_QOS_INCOMPATIBLE => {
                    info.cast::<IncompatibleQosStatus>()
                        .write(statuses.incompatible_qos);
                    statuses.incompatible_qos.total_count_change = 0;
                }
                kind::SUBSCRIPTION_MATCHED | kind::PUBLICATION_MATCHED => {
                    info.cast::<MatchedStatus>().write(statuses.matched);
                    statuses.matched.total_count_change = 0;
                    statuses.matched.current_count_change = 0;
                }
                kind::MESSAGE_LOST => {
                    info.cast::<MessageLostStatus>().write(statuses.lost);
                    statuses.lost.total_count_change = 0;
                }
                other => return Err(unknown(other)),
            }
        }
        for count in [&mut statuses.untaken, &mut statuses.untold] {
            if let Some(count) = count.get_mut(kind as usize) {
                *count = 0;
            }
        }
        self.untaken_kinds.fetch_and(!bit(kind), Ordering::Release);
        Ok(())
    }

    fn set_callback(
        &self,
        kind: u32,
        function: EventCallback,
        user_data: *const c_void,
    ) -> Outcome {
        let callback = self
            .callbacks
            .get(kind as usize)
            .ok_or_else(|| unknown(kind))?;
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

unsafe fn take_count(status: &mut CountStatus, info: *mut c_void) {
    // SAFETY: as for `EventState::take`.
    unsafe { info.cast::<CountStatus>().write(*status) };
    status.total_count_change = 0;
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

/// Initializes an event of an endpoint.
///
/// # Safety
/// By contract of rmw.
pub(crate) unsafe fn init(
    event: *mut Event,
    state: &Arc<EventState>,
    event_type: u32,
    is_known: bool,
) -> Outcome {
    // SAFETY: by contract of rmw.
    let event = unsafe { non_null_mut(event, "rmw_event") }?;
    if !event.implementation_identifier.is_null() {
        return Err(Failure::argument("the event is initialized already"));
    }
    if !is_known {
        return Err(unknown(event_type));
    }
    *event = Event {
        implementation_identifier: IDENTIFIER.as_ptr(),
        data: Arc::as_ptr(state).cast_mut().cast(),
        event_type,
    };
    Ok(())
}

unsafe fn state<'e>(event: *const Event) -> Outcome<(&'e EventState, u32)> {
    // SAFETY: by contract of rmw.
    unsafe {
        let event = non_null(event, "event")?;
        check_identifier(event.implementation_identifier, "event")?;
        let state: &EventState = non_null(event.data.cast(), "event->data")?;
        state.context.origin.check()?;
        Ok((state, event.event_type))
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_take_event(
    event: *const Event,
    info: *mut c_void,
    taken: *mut bool,
) -> Ret {
    run("rmw_take_event", || {
        // SAFETY: by contract of rmw.
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
        // SAFETY: by contract of rmw.
        let (state, kind) = unsafe { state(event) }?;
        state.set_callback(kind, callback, user_data)
    })
}
