//! Endpoints of participants whose SEDP announcements are read again, and that were
//! not announced again yet. [`super::sedp_sweep`] begins and ends the sweeps.

use alloc::vec::Vec;

use crate::discovery::sedp::ReceivedVia;
use crate::id::{Guid, GuidPrefix};
use crate::time::{Duration, Instant};

/// How long after a sweep that removed endpoints the announcements are read once more:
/// longer than what was forged before is under way.
const CONFIRMATION_DELAY: Duration = Duration::from_secs(1);
/// Participants that wait for that. Further ones are not read once more.
const CONFIRMATIONS_MAX: usize = 64;

/// One participant's publications or subscriptions that are read again.
#[derive(Debug)]
pub(super) struct Sweep {
    pub(super) prefix: GuidPrefix,
    pub(super) by: ReceivedVia,
    /// Known endpoints that were not announced again yet.
    pub(super) left: Vec<Guid>,
}

/// All sweeps that go on.
#[derive(Debug, Default)]
pub(super) struct Sweeps {
    pub(super) list: Vec<Sweep>,
    /// Participants that lost endpoints by a sweep, and when they are read once more.
    confirmations: Vec<(GuidPrefix, Instant)>,
}

impl Sweeps {
    /// Notes an announced endpoint.
    pub(super) fn note_announced(&mut self, guid: Guid) {
        for sweep in &mut self.list {
            sweep.left.retain(|left| *left != guid);
        }
    }

    pub(super) fn remove_participant(&mut self, prefix: GuidPrefix) {
        self.list.retain(|sweep| sweep.prefix != prefix);
        self.confirmations.retain(|(known, _)| *known != prefix);
    }

    /// Notes that a sweep removed endpoints. A GAP or HEARTBEAT that was forged while the
    /// announcements were read again may have hidden them.
    pub(super) fn note_removal(&mut self, now: Instant, prefix: GuidPrefix) {
        let is_known = self.confirmations.iter().any(|(known, _)| *known == prefix);
        if !is_known && self.confirmations.len() < CONFIRMATIONS_MAX {
            let at = now.after(CONFIRMATION_DELAY);
            self.confirmations.push((prefix, at));
        }
    }

    /// When [`Self::take_confirmation`] has something.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.confirmations.iter().map(|(_, at)| *at).min()
    }

    /// A participant whose announcements are to be read once more.
    pub(super) fn take_confirmation(&mut self, now: Instant) -> Option<GuidPrefix> {
        let mut all = self.confirmations.iter();
        let at = all.position(|(_, at)| *at <= now)?;
        Some(self.confirmations.swap_remove(at).0)
    }
}
