//! SEDP sweep: which endpoints remain after the announcements of a participant were
//! read again.
//!
//! SEDP of a living participant may be forged: an endpoint added, changed or
//! removed. When that shows, the reader requests the whole history again
//! ([`ReaderEvent::Resynchronised`](crate::reader::ReaderEvent::Resynchronised)).
//! True endpoints are announced again by it. Other endpoints are removed once
//! everything has come. A GAP or HEARTBEAT that is forged meanwhile may hide some, so
//! after a removal everything is read once more, a second later. Called by
//! `Participant` for SEDP.

use alloc::vec::Vec;

use crate::discovery::sedp::SedpReset;
use crate::id::GuidPrefix;
use crate::time::Instant;

use super::local_participant::LocalParticipant;
use super::remote_participants::RemoteParticipants;
use super::sweeps::Sweep;
use super::{LostReason, RemoteEndpoint};

impl RemoteParticipants {
    /// Handles a participant whose SEDP contradicts what was received before.
    pub(super) fn handle_sedp_reset(
        &mut self,
        local: &mut LocalParticipant,
        now: Instant,
        reset: SedpReset,
    ) {
        local.clock = now;
        match reset {
            SedpReset::CountsAnew(prefix) if self.must_prove_restart(local, now, prefix) => {}
            SedpReset::Restarted(prefix) | SedpReset::CountsAnew(prefix) => {
                self.remove_participant(local, prefix, LostReason::Restarted);
            }
            SedpReset::Reread(prefix, by) => {
                let of_kind = |known: &RemoteEndpoint<'_>| {
                    known.guid().entity.is_writer() == by.is_publications
                        && known.is_discovery_protected() == by.secured
                };
                let known = local.endpoints.remotes.of(prefix).filter(of_kind);
                let left = known.map(RemoteEndpoint::guid).collect();
                self.sweeps
                    .list
                    .retain(|sweep| sweep.prefix != prefix || sweep.by != by);
                self.sweeps.list.push(Sweep { prefix, by, left });
            }
        }
    }

    /// Ends the sweeps of a participant whose announcements were all read again.
    pub(super) fn end_sweeps(&mut self, local: &mut LocalParticipant, prefix: GuidPrefix) {
        let sedp = &mut local.builtin.sedp;
        let mut ended = Vec::new();
        self.sweeps.list.retain_mut(|sweep| {
            let ends = sweep.prefix == prefix && sedp.has_everything_of(prefix, sweep.by);
            if ends {
                ended.append(&mut sweep.left);
            }
            !ends
        });
        if !ended.is_empty() {
            self.sweeps.note_removal(local.clock, prefix);
        }
        for guid in ended {
            local.endpoints.remove_remote(guid, &mut local.events);
        }
    }

    /// Reads announcements once more that were read again a second ago, if endpoints were
    /// removed then.
    pub(super) fn confirm_sweeps(&mut self, local: &mut LocalParticipant, now: Instant) {
        while let Some(prefix) = self.sweeps.take_confirmation(now) {
            local.builtin.sedp.reread(now, prefix);
        }
    }
}
