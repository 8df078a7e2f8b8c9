//! Network interfaces that appear, disappear or change: passes the new links to the
//! participant, and logs one line per change.

use std::sync::atomic::Ordering;

use pteros_rtps::id::GuidPrefix;
use pteros_rtps::locator::{IpAddress, Locator};
use pteros_rtps::participant::{PathInfo, PathReason};
use pteros_rtps::time::{Duration, Instant};

use crate::core::discovery::Discovery;
use crate::core::socket_report::SocketReport;
use crate::scheduler::timeout_queue::TimeoutOwner;
use crate::transport::rtps::RtpsTransport;

/// Pause between two lists of interfaces. One change of the network causes several
/// notices.
const LIST_PERIOD: Duration = Duration::from_millis(20);

/// How long the log line about a move to another address is suppressed for further
/// participants of the same host.
const MOVE_REPEATED: Duration = Duration::from_secs(5);

/// Moves that were logged last.
const MOVES_MAX: usize = 64;

impl RtpsTransport {
    /// Addresses of the context's sockets, one per interface. Datagrams of all its
    /// endpoints are sent and received there.
    pub fn unicast_locators(&self) -> Vec<Locator> {
        self.participant.lock().data().default_unicast.clone()
    }
}

impl SocketReport {
    /// Logs that traffic to a host has moved, once for all its participants.
    pub(crate) fn tell_move(
        &self,
        now: Instant,
        from: IpAddress,
        to: IpAddress,
        reason: PathReason,
    ) {
        let mut told = self.told_moves.lock();
        told.retain(|(.., at)| now.since(*at) < MOVE_REPEATED);
        if told.iter().any(|(f, t, _)| *f == from && *t == to) {
            return;
        }
        if told.len() < MOVES_MAX {
            told.push((from, to, now));
        }
        drop(told);
        match reason {
            PathReason::LinkDown => tracing::warn!(
                "traffic to {from} goes to {to}, another address of the same participant: our link to {from} is down"
            ),
            PathReason::AddressGone => tracing::warn!(
                "traffic to {from} goes to {to}: the participant no longer has the address {from}"
            ),
            PathReason::Silent => tracing::warn!(
                "traffic to {from} goes to {to}, another address of the same participant: {from} does not answer"
            ),
            PathReason::Better => {
                tracing::info!("traffic to {from} goes to {to} again: it answers");
            }
        }
    }
}

impl Discovery {
    /// Schedules a new list of interfaces after a notice of the kernel: [`LIST_PERIOD`]
    /// after the last list, or with the next due timeouts if that has passed.
    pub(crate) fn note_interfaces_changed(&self) {
        // Relaxed: only the thread that drives reads and writes it.
        let listed_at = self.sockets.interfaces_listed_at.load(Ordering::Relaxed);
        let next_at = Instant::from_nanos(listed_at).after(LIST_PERIOD);
        self.scheduler
            .schedule(TimeoutOwner::Interfaces, Some(next_at));
    }

    /// Lists the interfaces again and applies a change.
    pub(crate) fn follow_interfaces(&self, now: Instant) {
        let listed_at = &self.sockets.interfaces_listed_at;
        listed_at.store(now.as_nanos(), Ordering::Relaxed);
        let Some(change) = self.datagrams.follow_interfaces() else {
            return;
        };
        for lost in &change.lost {
            tracing::warn!("{lost}");
        }
        for gained in &change.gained {
            tracing::info!("{gained}");
        }
        self.participant().lock().set_local_links(now, change.links);
        self.serve_participant(now);
    }

    /// Addresses of a participant on another host: the one in use, and the evidence about
    /// the others. Empty for participants of this host.
    pub fn paths_to(&self, peer: GuidPrefix) -> Vec<PathInfo> {
        let now = self.platform.now();
        self.participant().lock().paths_to(now, peer)
    }
}
