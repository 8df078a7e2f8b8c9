//! Endpoints of participants whose SEDP announcements are read again, and that were
//! not announced again yet. [`super::sedp_sweep`] begins and ends the sweeps.

use alloc::vec::Vec;

use crate::discovery::sedp::ReceivedVia;
use crate::id::{Guid, GuidPrefix};

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
    }
}
