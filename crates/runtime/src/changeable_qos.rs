//! Changeable QoS policies of existing endpoints (DDS 1.4 §2.2.3, column
//! "changeable").
//!
//! A change is validated first. The endpoint and its protocol machine then apply
//! it. Each match is then evaluated again: with local endpoints here, with remote
//! ones by discovery, which announces the endpoint again under its GUID (SEDP).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, AtomicU8, Ordering};

use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::matching::{MatchOutcome, evaluate_match};
use pteros_rtps::qos::EndpointQos;
use pteros_rtps::time::{Duration, Instant};

use crate::core::Core;
use crate::error::QosChangeError;
use crate::intra_process::has_manual_lease;
use crate::lock::{Mutex, rank};
use crate::matching::protocol_qos;
use crate::qos::{DataLifecycle, QosProfile, change};
use crate::reader::ReaderEndpoint;
use crate::writer::WriterEndpoint;
use pteros_dcps::cache::ReaderCache;

/// The changeable policies of a writer that publishing reads.
pub(crate) struct ChangeableWriterQos {
    announced: Mutex<Arc<EndpointData>, rank::AnnouncedData>,
    lifespan: AtomicI64,
    code_point: AtomicU8,
    transport_priority: AtomicI32,
    always_needs_clock: bool,
    has_deadline_or_lease: AtomicBool,
    needs_clock: AtomicBool,
    autodisposes: AtomicBool,
}

// Relaxed throughout: each value stands for itself, and a change takes effect at
// some sample published meanwhile.
impl ChangeableWriterQos {
    /// `is_timed`: the writer needs the clock, whatever its policies are.
    pub(crate) fn new(
        data: &Arc<EndpointData>,
        lifecycle: DataLifecycle,
        always_needs_clock: bool,
    ) -> Self {
        let this = Self {
            announced: Mutex::new(data.clone()),
            lifespan: AtomicI64::new(0),
            code_point: AtomicU8::new(0),
            transport_priority: AtomicI32::new(0),
            always_needs_clock,
            has_deadline_or_lease: AtomicBool::new(false),
            needs_clock: AtomicBool::new(always_needs_clock),
            autodisposes: AtomicBool::new(false),
        };
        this.store(data.clone(), lifecycle);
        this
    }

    fn store(&self, data: Arc<EndpointData>, lifecycle: DataLifecycle) {
        let qos = &data.qos;
        self.lifespan
            .store(qos.lifespan.as_nanos(), Ordering::Relaxed);
        // Other values are only announced: each network maps them in its own way.
        let code_point = u8::try_from(qos.transport_priority).unwrap_or(0);
        let code_point = if code_point > 63 { 0 } else { code_point };
        self.code_point.store(code_point, Ordering::Relaxed);
        self.transport_priority
            .store(qos.transport_priority, Ordering::Relaxed);
        let is_watched = !qos.deadline.is_infinite() || has_manual_lease(qos);
        self.has_deadline_or_lease
            .store(is_watched, Ordering::Relaxed);
        let minds_time = self.always_needs_clock || is_watched || !qos.lifespan.is_infinite();
        self.needs_clock.store(minds_time, Ordering::Relaxed);
        let autodisposes = lifecycle.autodispose_unregistered_instances;
        self.autodisposes.store(autodisposes, Ordering::Relaxed);
        *self.announced.lock() = data;
    }
}

impl WriterEndpoint {
    /// The data that discovery announces now, with changed policies.
    pub fn announced(&self) -> Arc<EndpointData> {
        self.policies.announced.lock().clone()
    }

    /// LIFESPAN. Read it under `state`, so that each message is created with its
    /// time of publication.
    pub(crate) fn lifespan(&self) -> Duration {
        Duration::from_nanos(self.policies.lifespan.load(Ordering::Relaxed))
    }

    /// TRANSPORT_PRIORITY as datagrams carry it (DSCP), 0 to 63.
    pub(crate) fn code_point(&self) -> u8 {
        self.policies.code_point.load(Ordering::Relaxed)
    }

    /// TRANSPORT_PRIORITY as it orders flow-controlled writers.
    pub(crate) fn transport_priority(&self) -> i32 {
        self.policies.transport_priority.load(Ordering::Relaxed)
    }

    /// Whether its machine monitors DEADLINE or LIVELINESS. Then a write moves its
    /// next timeout even if nothing is sent.
    pub(crate) fn has_deadline_or_lease(&self) -> bool {
        self.policies.has_deadline_or_lease.load(Ordering::Relaxed)
    }

    /// Whether some policy reads the clock when a message is published. Read it
    /// under `state`, as [`WriterEndpoint::lifespan`].
    pub(crate) fn needs_clock(&self) -> bool {
        self.policies.needs_clock.load(Ordering::Relaxed)
    }

    /// Whether unregistering an instance disposes of it, too.
    pub(crate) fn autodisposes(&self) -> bool {
        self.policies.autodisposes.load(Ordering::Relaxed)
    }
}

impl ReaderEndpoint {
    /// The data that discovery announces now, with changed policies and content
    /// filter.
    pub fn announced(&self) -> Arc<EndpointData> {
        self.announced.lock().clone()
    }

    pub(crate) fn set_announced(&self, data: Arc<EndpointData>) {
        *self.announced.lock() = data;
    }
}

impl Core {
    /// Applies the changeable policies of `profile` to a writer.
    ///
    /// These are partition, user/topic/group data, deadline, latency budget,
    /// ownership strength, transport priority, lifespan and autodispose of
    /// unregistered instances. Matches are evaluated again: they end, begin, or are
    /// reported as incompatible. A new match is a late joiner like any other.
    ///
    /// # Errors
    /// See [`QosChangeError`]; nothing has changed then.
    pub fn set_writer_qos(
        &self,
        writer: &Arc<WriterEndpoint>,
        profile: &QosProfile,
    ) -> Result<(), QosChangeError> {
        if self.is_closed() {
            return Err(QosChangeError::ShutDown);
        }
        let now = self.platform.now();
        let order = self.match_order.lock();
        let before = writer.announced();
        let is_grouped = writer.group.is_some();
        let after =
            with_changeable_policies(&before, is_grouped, profile, QosProfile::to_endpoint)?;
        let after = Arc::new(after);
        let moves = before.qos.partition != after.qos.partition;
        if moves {
            self.check_partition_permission(&after)
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
            self.update_flow_priority(writer);
        }
        if before != after {
            self.graph.change_own_endpoint(&after);
            let readers: Vec<_> = self.endpoints.read().readers.values().cloned().collect();
            for reader in readers {
                let theirs = reader.announced();
                self.rematch_local(now, writer, &reader, &before, &theirs);
            }
            self.participant.lock().add_writer(now, after);
        }
        drop(order);
        self.serve_participant(now);
        self.serve_writer(now, writer);
        self.wake_waiters_now();
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
        if self.is_closed() {
            return Err(QosChangeError::ShutDown);
        }
        let now = self.platform.now();
        let order = self.match_order.lock();
        let before = reader.announced();
        let profile = profile.resolved_for_publishers([&*before.qos]);
        let is_grouped = reader.group.is_some();
        let after = with_changeable_policies(&before, is_grouped, &profile, QosProfile::to_reader)?;
        if before.qos.partition != after.qos.partition {
            self.check_partition_permission(&after)
                .map_err(QosChangeError::Denied)?;
        }
        let mut machine = reader.machine.lock();
        let qos = protocol_qos(&after.qos, reader.is_keyed());
        machine.set_qos(now, &qos, reader.has_received());
        let mut cache = reader.cache();
        cache.set_qos(now, &after.qos, profile.lifecycle());
        drop(cache);
        if ReaderCache::needs_filtering(&after.qos) {
            reader.require_filtering();
        }
        drop(machine);
        if *before != after {
            let after = Arc::new(after);
            self.graph.change_own_endpoint(&after);
            reader.set_announced(after.clone());
            let writers: Vec<_> = self.endpoints.read().writers.values().cloned().collect();
            for writer in writers {
                let theirs = writer.announced();
                self.rematch_local(now, &writer, reader, &theirs, &before);
            }
            self.participant.lock().add_reader(now, after);
        }
        drop(order);
        self.serve_participant(now);
        self.serve_reader(now, reader);
        self.wake_waiters_now();
        Ok(())
    }

    /// Evaluates two endpoints of this context again after one of them has changed;
    /// `writer_before` and `reader_before` are what they announced before.
    fn rematch_local(
        &self,
        now: Instant,
        writer: &Arc<WriterEndpoint>,
        reader: &Arc<ReaderEndpoint>,
        writer_before: &EndpointData,
        reader_before: &EndpointData,
    ) {
        let is_barred = self.is_revoked(writer.guid()) || self.is_revoked(reader.data.guid);
        if !writer.may_match_locally(reader) || is_barred {
            return;
        }
        let was = evaluate_match(writer_before, reader_before);
        let is = evaluate_match(&writer.announced(), &reader.announced());
        if was == MatchOutcome::Matched && is == was {
            self.update_local_match(writer, reader);
        } else if is != was {
            if was == MatchOutcome::Matched {
                self.unmatch_local(now, writer, reader);
            }
            self.apply_local_match(now, writer, reader, is);
        }
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
