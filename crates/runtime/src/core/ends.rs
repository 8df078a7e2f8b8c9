//! Deferred ends: what ends a peer or its endpoints waits until everything is received
//! that had arrived before it.
//!
//! The SPDP dispose of a participant arrives by multicast, its last samples in the unicast
//! socket or in shared memory. A discovery log is read at once, a socket in its order. A
//! lease may have expired while this process was stopped, although messages of the peer
//! wait. SEDP disposes need no deferral: they wait in the socket of the samples.

use pteros_rtps::discovery::spdp;
use pteros_rtps::id::EntityId;
use pteros_rtps::locator::Locator;
use pteros_rtps::receiver::MessageReader;
use pteros_rtps::time::{Duration, Instant};
use pteros_rtps::wire::Submessage;

use crate::core::Core;
use crate::core::driver::DriverState;
use crate::scheduler::timeout_queue::TimeoutOwner;

/// How long an end waits for callbacks and a socket that is never empty. Then the rest
/// is received at once.
const DELAY_MAX: Duration = Duration::from_millis(100);

/// Datagrams and messages received at once then: more than a socket holds.
const RECEIVED_AT_ONCE_MAX: usize = 16_384;

/// Disposes that wait, and the size of such a datagram. Others are applied at once.
const DISPOSES_MAX: usize = 64;
const DISPOSE_BYTES_MAX: usize = 2_048;

/// The SPDP dispose of a participant.
struct DeferredDispose {
    since: Instant,
    from: Locator,
    datagram: Vec<u8>,
}

/// Timeouts of the participant, which may end peers that were not heard.
struct DeferredTimeouts {
    since: Instant,
    /// The time for which they are handled.
    clock: Instant,
}

/// The ends that wait, except removals from discovery logs.
#[derive(Default)]
pub(crate) struct DeferredEnds {
    disposes: Vec<DeferredDispose>,
    timeouts: Option<DeferredTimeouts>,
}

impl DeferredEnds {
    /// Defers the dispose in a datagram; false if it must be handled at once.
    pub(crate) fn defer_dispose(
        &mut self,
        now: Instant,
        from: Locator,
        submessage: &Submessage<'_>,
        datagram: &[u8],
    ) -> bool {
        let is_deferred = is_participant_dispose(submessage)
            && self.disposes.len() < DISPOSES_MAX
            && datagram.len() <= DISPOSE_BYTES_MAX;
        // One datagram may have several.
        let is_last = |last: &DeferredDispose| last.datagram == datagram;
        if is_deferred && !self.disposes.last().is_some_and(is_last) {
            self.disposes.push(DeferredDispose {
                since: now,
                from,
                datagram: datagram.to_vec(),
            });
        }
        is_deferred
    }

    fn oldest(&self) -> Option<Instant> {
        let first = self.disposes.first().map(|dispose| dispose.since);
        let timeouts = self.timeouts.as_ref().map(|timeouts| timeouts.since);
        first.into_iter().chain(timeouts).min()
    }

    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.disposes.len() + usize::from(self.timeouts.is_some())
    }
}

/// Whether a submessage says that a participant has ended.
fn is_participant_dispose(submessage: &Submessage<'_>) -> bool {
    match submessage {
        Submessage::Data(data) => data.writer == EntityId::SPDP_WRITER && spdp::is_dispose(data),
        _ => false,
    }
}

impl Core {
    /// Handles the participant's timeouts. They wait if one may end a peer that was not
    /// heard.
    pub(crate) fn fire_participant_timeouts(
        &self,
        state: &mut DriverState,
        now: Instant,
        clock: Instant,
    ) {
        if self.participant().lock().may_lose_peers(clock) {
            let waiting = &mut state.inbox.ends.timeouts;
            waiting.get_or_insert(DeferredTimeouts { since: now, clock });
            // Nobody sleeps until they are handled. They are not due again in this poll.
            let soon = now.after(Duration::from_nanos(1));
            self.scheduler
                .schedule(TimeoutOwner::Participant, Some(soon));
            return;
        }
        self.participant().lock().handle_timeout(clock);
        self.serve_participant(now);
    }

    /// How many ends wait.
    pub(crate) fn deferred_ends(&self, state: &DriverState) -> usize {
        state.inbox.ends.len() + usize::from(self.same_host.has_deferred_removals())
    }

    /// Applies the ends that wait, if everything was received that had arrived
    /// (`is_drained`). After [`DELAY_MAX`] it receives that first.
    pub(crate) fn apply_deferred_ends(
        &self,
        state: &mut DriverState,
        now: Instant,
        is_drained: bool,
    ) {
        if self.deferred_ends(state) == 0 {
            return;
        }
        if !is_drained {
            let oldest = state.inbox.ends.oldest();
            let oldest = oldest
                .into_iter()
                .chain(self.same_host.oldest_deferred_removal());
            if oldest.min().is_some_and(|at| now.since(at) < DELAY_MAX) {
                return;
            }
            self.transport.check_readable();
            let mut received = 0;
            while received < RECEIVED_AT_ONCE_MAX && self.receive_one(state, now, received) {
                received += 1;
            }
        }
        let ends = std::mem::take(&mut state.inbox.ends);
        self.same_host.apply_deferred_removals(now);
        for dispose in ends.disposes {
            self.apply_dispose(now, &dispose);
        }
        if let Some(timeouts) = ends.timeouts {
            self.participant().lock().handle_timeout(timeouts.clock);
        }
        self.serve_participant(now);
    }

    fn apply_dispose(&self, now: Instant, dispose: &DeferredDispose) {
        let Ok(message) = MessageReader::new(&dispose.datagram, self.prefix) else {
            return;
        };
        let mut participant = self.participant().lock();
        for (source, submessage) in message {
            if source.prefix != self.prefix && is_participant_dispose(&submessage) {
                participant.handle_submessage(now, Some(dispose.from), &source, &submessage);
            }
        }
    }
}
