//! The intra-process path: matches endpoints of one context and delivers between
//! them.

use std::sync::Arc;

use pteros_rtps::matching::{MatchOutcome, evaluate_match};
use pteros_rtps::time::Instant;

use crate::core::discovery::Discovery;
use crate::endpoints::mismatch;
use crate::endpoints::reader::ReaderEndpoint;
use crate::endpoints::writer::WriterEndpoint;

impl Discovery {
    /// Matches two endpoints of this context, or reports why they do not match.
    pub(crate) fn match_local(
        &self,
        now: Instant,
        writer: &Arc<WriterEndpoint>,
        reader: &Arc<ReaderEndpoint>,
    ) {
        if writer.may_match_locally(reader)
            && !self.security.is_revoked(writer.guid())
            && !self.security.is_revoked(reader.data.guid)
        {
            let decision = evaluate_match(&writer.announced(), &reader.announced());
            self.apply_local_match(now, writer, reader, decision);
        }
    }

    /// Applies the match decision for two endpoints that are not matched.
    pub(crate) fn apply_local_match(
        &self,
        now: Instant,
        writer: &Arc<WriterEndpoint>,
        reader: &Arc<ReaderEndpoint>,
        decision: MatchOutcome,
    ) {
        match decision {
            MatchOutcome::Matched => self
                .publishing
                .intra_process
                .start_match(now, writer, reader),
            MatchOutcome::NoCommonPartition | MatchOutcome::DifferentProtection => {}
            MatchOutcome::InconsistentType => {
                mismatch::warn_about_types(self.prefix, &writer.data, &reader.data);
                writer.events.note_incompatible_type(&reader.data);
                reader.events.note_incompatible_type(&writer.data);
            }
            MatchOutcome::IncompatibleQos(policies) => {
                mismatch::warn_about_qos(self.prefix, &writer.announced(), &reader.announced());
                writer
                    .events
                    .note_incompatible(reader.data.guid, policies.clone());
                reader.events.note_incompatible(writer.guid(), policies);
            }
        }
    }
}
