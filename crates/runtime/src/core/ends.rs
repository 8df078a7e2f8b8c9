//! Deferred ends: the end of a peer or its endpoints is applied after everything that
//! arrived before it was received.
//!
//! The SPDP dispose of a participant arrives by multicast, its last samples in the
//! unicast socket or in shared memory. A discovery log is read at once, a socket in its
//! order. A lease may have expired while this process was stopped, although messages of
//! the peer are unread. SEDP disposes need no deferral, because they are in the same
//! socket as the samples.

use pteros_rtps::discovery::spdp;
use pteros_rtps::id::EntityId;
use pteros_rtps::locator::Locator;
use pteros_rtps::time::Instant;
use pteros_rtps::wire::Submessage;

/// Deferred disposes, and the size of such a datagram. Others are applied at once.
const DISPOSES_MAX: usize = 64;
const DISPOSE_BYTES_MAX: usize = 2_048;

/// The SPDP dispose of a participant.
pub(crate) struct DeferredDispose {
    since: Instant,
    pub(crate) from: Locator,
    pub(crate) datagram: Vec<u8>,
}

/// Deferred timeouts that end silent peers.
struct DeferredTimeouts {
    since: Instant,
    /// Time for which they are handled.
    clock: Instant,
}

/// Deferred ends, except removals reported by discovery logs.
#[derive(Default)]
pub(crate) struct DeferredEnds {
    pub(crate) disposes: Vec<DeferredDispose>,
    timeouts: Option<DeferredTimeouts>,
}

impl DeferredEnds {
    /// Defers a dispose of a participant. Returns false if it must be handled at once.
    pub(crate) fn defer_dispose(&mut self, now: Instant, from: Locator, datagram: &[u8]) -> bool {
        let is_deferred = self.disposes.len() < DISPOSES_MAX && datagram.len() <= DISPOSE_BYTES_MAX;
        // One datagram may contain several.
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

    /// Defers timeouts that end peers, which are handled for the time `clock`.
    pub(crate) fn defer_timeouts(&mut self, now: Instant, clock: Instant) {
        let waiting = &mut self.timeouts;
        waiting.get_or_insert(DeferredTimeouts { since: now, clock });
    }

    /// Time for which deferred timeouts are handled.
    pub(crate) fn timeouts_clock(&self) -> Option<Instant> {
        self.timeouts.as_ref().map(|timeouts| timeouts.clock)
    }

    /// When the oldest end was deferred.
    pub(crate) fn oldest(&self) -> Option<Instant> {
        let first = self.disposes.first().map(|dispose| dispose.since);
        let timeouts = self.timeouts.as_ref().map(|timeouts| timeouts.since);
        first.into_iter().chain(timeouts).min()
    }

    /// Number of deferred ends.
    pub(crate) fn len(&self) -> usize {
        self.disposes.len() + usize::from(self.timeouts.is_some())
    }
}

/// Whether a submessage is the dispose of a participant.
pub(crate) fn is_participant_dispose(submessage: &Submessage<'_>) -> bool {
    match submessage {
        Submessage::Data(data) => data.writer == EntityId::SPDP_WRITER && spdp::is_dispose(data),
        _ => false,
    }
}
