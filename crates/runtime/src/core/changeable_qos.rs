//! Changes of QoS policies: applies them to endpoints and evaluates their matches
//! again (DDS 1.4 §2.2.3, column "changeable").

use std::sync::Arc;

use pteros_dcps::cache::ReaderCache;
use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::matching::{MatchOutcome, evaluate_match};
use pteros_rtps::qos::EndpointQos;
use pteros_rtps::time::Instant;

use crate::core::Core;
use crate::core::discovery::Discovery;
use crate::core::matching::protocol_qos;
use crate::endpoints::reader::ReaderEndpoint;
use crate::endpoints::writer::WriterEndpoint;
use crate::error::QosChangeError;
use crate::qos::{QosProfile, change};

impl Discovery {
    /// Evaluates two endpoints of this context again after one of them has changed;
    /// `writer_before` and `reader_before` are what they announced before.
    pub(crate) fn rematch_local(
        &self,
        now: Instant,
        writer: &Arc<WriterEndpoint>,
        reader: &Arc<ReaderEndpoint>,
        writer_before: &EndpointData,
        reader_before: &EndpointData,
    ) {
        let is_barred =
            self.security.is_revoked(writer.guid()) || self.security.is_revoked(reader.data.guid);
        if !writer.may_match_locally(reader) || is_barred {
            return;
        }
        let was = evaluate_match(writer_before, reader_before);
        let is = evaluate_match(&writer.announced(), &reader.announced());
        if was == MatchOutcome::Matched && is == was {
            self.publishing.intra_process.update_match(writer, reader);
        } else if is != was {
            if was == MatchOutcome::Matched {
                self.publishing.intra_process.end_match(now, writer, reader);
            }
            self.apply_local_match(now, writer, reader, is);
        }
    }
}

impl Core {
    /// Applies the changeable policies of `profile` to a writer.
    ///
    /// These are partition, user/topic/group data, deadline, latency budget, ownership
    /// strength, transport priority, lifespan and autodispose of unregistered instances.
    /// Matches are evaluated again: they end, start, or are reported as incompatible. A
    /// new match is a late joiner like any other.
    ///
    /// # Errors
    /// See [`QosChangeError`]; nothing has changed then.
    pub fn set_writer_qos(
        &self,
        writer: &Arc<WriterEndpoint>,
        profile: &QosProfile,
    ) -> Result<(), QosChangeError> {
        if self.scheduler.is_closed() {
            return Err(QosChangeError::ShutDown);
        }
        let now = self.platform.now();
        let order = self.discovery().endpoints.begin_match();
        let before = writer.announced();
        let is_grouped = writer.group.is_some();
        let after =
            with_changeable_policies(&before, is_grouped, profile, QosProfile::to_endpoint)?;
        let after = Arc::new(after);
        let moves = before.qos.partition != after.qos.partition;
        if moves {
            self.discovery()
                .security
                .check_partition_permission(&after)
                .map_err(QosChangeError::Denied)?;
        }
        if moves && writer.group.as_ref().is_some_and(|group| group.is_open()) {
            return Err(QosChangeError::SetOpen);
        }
        let mut state = writer.state.lock();
        writer.policies.store(after.clone(), profile.lifecycle());
        let qos = protocol_qos(&after.qos, writer.is_keyed);
        state.machine.set_qos(now, &qos);
        if let Some(instances) = &mut state.instances {
            instances.set_deadline(now, after.qos.deadline);
        }
        drop(state);
        if before.qos.transport_priority != after.qos.transport_priority {
            self.discovery().publishing.update_flow_priority(writer);
        }
        if before != after {
            self.discovery().graph.change_own_endpoint(&after);
            let readers: Vec<_> = self.discovery().endpoints.readers();
            for reader in readers {
                let theirs = reader.announced();
                self.discovery()
                    .rematch_local(now, writer, &reader, &before, &theirs);
            }
            self.discovery().transports.announce_endpoint(now, &after);
        }
        drop(order);
        self.discovery().serve_participant(now);
        self.discovery().publishing.serve_writer(now, writer);
        self.scheduler.wake_waiters();
        Ok(())
    }

    /// Applies the changeable policies of `profile` to a reader.
    ///
    /// These are partition, user/topic/group data, deadline, latency budget,
    /// time-based filter and autopurge delays. Matches are handled as in
    /// [`Core::set_writer_qos`]. A "best available" policy keeps its resolved
    /// value.
    ///
    /// # Errors
    /// See [`QosChangeError`]; nothing has changed then.
    pub fn set_reader_qos(
        &self,
        reader: &Arc<ReaderEndpoint>,
        profile: &QosProfile,
    ) -> Result<(), QosChangeError> {
        if self.scheduler.is_closed() {
            return Err(QosChangeError::ShutDown);
        }
        let now = self.platform.now();
        let order = self.discovery().endpoints.begin_match();
        let before = reader.announced();
        let profile = profile.resolved_for_publishers([&*before.qos]);
        let is_grouped = reader.group.is_some();
        let after = with_changeable_policies(&before, is_grouped, &profile, QosProfile::to_reader)?;
        if before.qos.partition != after.qos.partition {
            self.discovery()
                .security
                .check_partition_permission(&after)
                .map_err(QosChangeError::Denied)?;
        }
        let mut machine = reader.machine.lock();
        let qos = protocol_qos(&after.qos, reader.is_keyed());
        machine.set_qos(now, &qos, reader.received_count() > 0);
        let mut cache = reader.cache();
        cache.set_qos(now, &after.qos, profile.lifecycle());
        drop(cache);
        if ReaderCache::needs_filtering(&after.qos) {
            reader.require_filtering();
        }
        drop(machine);
        if *before != after {
            let after = Arc::new(after);
            self.discovery().graph.change_own_endpoint(&after);
            *reader.announced.lock() = after.clone();
            let writers: Vec<_> = self.discovery().endpoints.writers();
            for writer in writers {
                let theirs = writer.announced();
                self.discovery()
                    .rematch_local(now, &writer, reader, &theirs, &before);
            }
            self.discovery().transports.announce_endpoint(now, &after);
        }
        drop(order);
        self.discovery().serve_participant(now);
        self.discovery().serve_reader(now, reader);
        self.scheduler.wake_waiters();
        Ok(())
    }
}

/// The announced data with the changeable policies of `profile`.
fn with_changeable_policies(
    before: &EndpointData,
    is_grouped: bool,
    profile: &QosProfile,
    announced: impl FnOnce(&QosProfile) -> EndpointQos,
) -> Result<EndpointData, QosChangeError> {
    profile.validate()?;
    let qos = change::changed_qos(&before.qos, announced(profile), is_grouped)
        .map_err(QosChangeError::Immutable)?;
    Ok(EndpointData {
        qos: qos.into(),
        ..before.clone()
    })
}
