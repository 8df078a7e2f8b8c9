//! The publish path: sequence number, intra-process delivery, history cache,
//! datagrams.
//!
//! Implements `write` of a DDS DataWriter (DDS 1.4 §2.2.2.4.2.11). A KEEP_ALL
//! writer blocks here for at most its `max_blocking_time` (back-pressure).

use bytes::Bytes;
use pteros_rtps::coherent_mark::CoherentMark;
use pteros_rtps::history::{CacheChange, ChangeKind};
use pteros_rtps::id::Guid;
use pteros_rtps::qos::{History, Liveliness};
use pteros_rtps::seq::SequenceNumber;
use pteros_rtps::time::{Duration, Instant, Timestamp};
use pteros_rtps::writer::NewChange;

use crate::core::Core;
use crate::core::discovery::Discovery;
use crate::core::publish_path::PublishPath;
use crate::endpoints::intra_process::WrittenSample;
use crate::endpoints::local_route::has_manual_lease;
use crate::endpoints::publisher_group::GroupWriteGuard;
use crate::endpoints::serialize_only::SerializeOnly;
use crate::endpoints::writer::{WriterEndpoint, WriterState};
use crate::error::PublishError;
use crate::instance::SampleInstance;
use crate::lock::{MutexGuard, rank};
use crate::outbound::OutboundMessage;
use crate::sample::{DeliveryPath, SampleBody, SampleMeta};
use crate::scheduler::Scheduler;
use crate::scheduler::timeout_queue::TimeoutOwner;
use crate::send::back_pressure::{BlockingBudget, next_send_retry};

/// A message to write: source timestamp, instance and blocking budget.
#[derive(Clone, Copy)]
struct WriteRequest<'a> {
    source: Timestamp,
    instance: Option<&'a SampleInstance>,
    budget: Duration,
}

/// A message that may leave the process, with its serialized size.
#[derive(Clone, Copy)]
struct RemoteWrite<'a> {
    source: Timestamp,
    instance: Option<&'a SampleInstance>,
    bytes: usize,
}

/// The locks that a write holds: the writer's state and its group's order.
struct WriteLocks<'a> {
    state: MutexGuard<'a, WriterState, rank::WriterState>,
    group: Option<GroupWriteGuard<'a>>,
}

impl PublishPath {
    /// Publishes for a KEEP_LAST writer without instances, groups and local readers. It
    /// never waits for history space.
    ///
    /// # Errors
    /// [`PublishError::ShutDown`], [`PublishError::TooLarge`].
    pub(crate) fn overwrite(
        &self,
        writer: &WriterEndpoint,
        message: &mut dyn OutboundMessage,
        source: Timestamp,
    ) -> Result<(), PublishError> {
        if self.scheduler.is_closed() {
            return Err(PublishError::ShutDown);
        }
        let write = RemoteWrite {
            source,
            instance: None,
            bytes: message.serialized_len(),
        };
        writer.check_size(write.bytes)?;
        let payload = serialize(writer, message);
        let now = self.platform.now();
        let locks = WriteLocks {
            state: writer.state.lock(),
            group: None,
        };
        self.try_write_sample(now, writer, message, locks, write, &payload);
        Ok(())
    }

    /// Writes a sample if the history accepts it, before local readers get it.
    fn try_write_sample(
        &self,
        now: Instant,
        writer: &WriterEndpoint,
        message: &mut dyn OutboundMessage,
        locks: WriteLocks<'_>,
        write: RemoteWrite<'_>,
        payload: &Bytes,
    ) -> Option<i64> {
        let WriteLocks {
            mut state,
            mut group,
        } = locks;
        let mark = group.as_ref().and_then(|guard| guard.coherent_mark(&state));
        let meta = sample_meta(writer, &mut state, write.source);
        let sample = WrittenSample {
            meta,
            instance: write.instance,
            mark,
        };
        let new = new_change(message, Some(payload), write.bytes, &sample);
        let sequence = state.machine.write(now, new).ok()?;
        if let Some(guard) = &mut group {
            guard.commit(&mut state, sequence);
        }
        self.intra_process
            .deliver(now, writer, &mut state, message, &sample);
        let payload = Some(payload.clone());
        let locks = WriteLocks { state, group };
        self.keep_and_send(now, writer, message, locks, sample, payload);
        Some(meta.sequence)
    }

    /// Stores a written sample for late joiners and sends it.
    fn keep_and_send(
        &self,
        now: Instant,
        writer: &WriterEndpoint,
        message: &mut dyn OutboundMessage,
        locks: WriteLocks<'_>,
        sample: WrittenSample<'_>,
        payload: Option<Bytes>,
    ) {
        let WriteLocks { mut state, group } = locks;
        let instance = sample.instance;
        let has_transport_routes = !state.transports.is_empty();
        if has_transport_routes && let Some(payload) = &payload {
            let change = cache_change(message, payload, &sample);
            state.transports.write(now, &change, message.directed_to());
        }
        keep_for_late_joiners(&mut state, now, writer, message, payload, sample);
        state.note_written(now, message.kind(), instance);
        end_group_write(&self.scheduler, now, writer, group);
        if has_nothing_to_send(writer, &state) {
            self.schedule_unsent(writer, state);
        } else {
            self.send_new(writer, state, now);
        }
        if has_transport_routes {
            self.flush_transports(now, writer);
        }
    }

    /// Schedules the timeouts of a writer that sends nothing: LIFESPAN, DEADLINE, a
    /// lease.
    fn schedule_unsent(
        &self,
        writer: &WriterEndpoint,
        mut state: MutexGuard<'_, WriterState, rank::WriterState>,
    ) {
        state.resumes_at = None;
        if state.next_timeout().is_some() {
            self.schedule_writer(writer, &state);
        }
    }

    /// Fills datagrams under the writer's lock and sends them without it. For
    /// publishing threads, which may block.
    pub(crate) fn send_new(
        &self,
        writer: &WriterEndpoint,
        state: MutexGuard<'_, WriterState, rank::WriterState>,
        now: Instant,
    ) {
        self.send_new_within(writer, state, now, writer.blocking_budget());
    }

    /// The same, waiting for space in the socket within `budget`.
    pub(crate) fn send_new_within(
        &self,
        writer: &WriterEndpoint,
        state: MutexGuard<'_, WriterState, rank::WriterState>,
        now: Instant,
        budget: BlockingBudget,
    ) {
        if let Some(membership) = writer.flow_membership() {
            return self.enqueue_for_flow_control(now, writer, membership, state);
        }
        let mut held = Some((state, now));
        let taken = self
            .send
            .transmit_with_dscp(writer.code_point(), &budget, |outbox| {
                let (mut state, now) = match held.take() {
                    Some((mut state, now)) => {
                        if budget.is_non_blocking() && !writer.may_send(&self.send, now, &mut state)
                        {
                            self.schedule_writer(writer, &state);
                            return false;
                        }
                        (state, now)
                    }
                    None if writer.uses_socket() && !self.send.wait_for_socket_space(&budget) => {
                        return true;
                    }
                    None => (writer.state.lock(), self.platform.now()),
                };
                let more = state.machine.poll_transmit(now, outbox);
                // This thread sends the rest.
                state.resumes_at = more.then_some(Instant::FAR_FUTURE);
                // Under the lock: a later timeout must not be overwritten.
                self.schedule_writer(writer, &state);
                more
            });
        if budget.is_exhausted() {
            self.schedule_send_retry(writer);
        }
        if !taken {
            self.note_send_refused(now, writer);
        }
    }

    /// Leaves a writer's unsent data to the driver, which retries after a short delay.
    pub(crate) fn schedule_send_retry(&self, writer: &WriterEndpoint) {
        let now = self.platform.now();
        let mut state = writer.state.lock();
        state.resumes_at = Some(next_send_retry(now));
        self.schedule_writer(writer, &state);
    }

    pub(crate) fn schedule_writer(&self, writer: &WriterEndpoint, state: &WriterState) {
        let next = state.next_timeout();
        self.scheduler
            .schedule(TimeoutOwner::Writer(writer.guid().entity), next);
    }

    /// Notes that a shared-memory connection refused what a writer has just sent.
    pub(crate) fn note_send_refused(&self, now: Instant, writer: &WriterEndpoint) {
        let mut state = writer.state.lock();
        state.machine.note_send_refused(now);
        self.schedule_writer(writer, &state);
    }

    /// Requests missing acknowledgements at once, because a thread waits for them.
    pub fn request_acknowledgement(&self, writer: &WriterEndpoint) {
        let now = self.platform.now();
        let mut state = writer.state.lock();
        state.machine.request_acks_by(now);
        let next = state.next_timeout();
        self.scheduler
            .schedule(TimeoutOwner::Writer(writer.guid().entity), next);
    }

    /// Sends a writer's output and reports its events.
    pub(crate) fn serve_writer(&self, now: Instant, writer: &WriterEndpoint) {
        if let Some(membership) = writer.flow_membership() {
            let mut state = writer.state.lock();
            writer.collect(&mut state.machine);
            return self.enqueue_for_flow_control(now, writer, membership, state);
        }
        let budget = BlockingBudget::non_blocking();
        let taken = self
            .send
            .transmit_with_dscp(writer.code_point(), &budget, |outbox| {
                let mut state = writer.state.lock();
                let more = writer.may_send(&self.send, now, &mut state)
                    && state.machine.poll_transmit(now, outbox);
                if more {
                    self.send.recheck_socket_space();
                }
                writer.collect(&mut state.machine);
                self.finish_linger_if_acknowledged(now, writer, &state);
                let next = state.next_timeout();
                self.scheduler
                    .schedule(TimeoutOwner::Writer(writer.guid().entity), next);
                more
            });
        if budget.is_exhausted() {
            self.schedule_send_retry(writer);
        }
        if !taken {
            self.note_send_refused(now, writer);
        }
    }

    fn assert_writer(&self, now: Instant, writer: &WriterEndpoint) {
        let mut state = writer.state.lock();
        state.machine.assert_liveliness(now);
        state.transports.assert_writer(now, writer.guid());
        drop(state);
        self.count_liveliness_assertion(writer);
        self.serve_writer(now, writer);
        self.intra_process.assert_liveliness(now, writer);
    }
}

impl Discovery {
    /// Asserts liveliness for all MANUAL_BY_PARTICIPANT writers, which one assertion
    /// covers.
    pub(crate) fn assert_participant(&self, now: Instant) {
        let kind = Liveliness::ManualByParticipant;
        let writers: Vec<_> = {
            let table = self.endpoints.read();
            let all = table.writers.values();
            all.filter(|w| w.data.qos.liveliness == kind)
                .cloned()
                .collect()
        };
        for writer in &writers {
            self.publishing.assert_writer(now, writer);
        }
        for transport in self.transports.iter() {
            transport.assert_liveliness(now, kind);
        }
        self.serve_participant(now);
    }

    /// Asserts the liveliness of a manual writer (DDS 1.4 §2.2.3.11).
    pub fn assert_liveliness(&self, writer: &WriterEndpoint) {
        let now = self.platform.now();
        match writer.data.qos.liveliness {
            Liveliness::Automatic => {}
            Liveliness::ManualByTopic => self.publishing.assert_writer(now, writer),
            Liveliness::ManualByParticipant => self.assert_participant(now),
        }
    }
}

impl Core {
    /// Publishes one message on the caller's thread: local readers first, then the
    /// network.
    ///
    /// Blocks for at most `max_blocking_time` while a KEEP_ALL writer has no space.
    /// Blocks as well while the network is slower than the message: that long
    /// without progress, and ten times that in all. The driver sends the rest.
    ///
    /// # Errors
    /// See [`PublishError`]; nothing was delivered then.
    pub fn publish(
        &self,
        writer: &WriterEndpoint,
        message: &mut dyn OutboundMessage,
        source: Timestamp,
    ) -> Result<i64, PublishError> {
        if let Some(tracer) = &self.tracer {
            return self.publish_traced(tracer, writer, message, source);
        }
        let budget = writer.data.qos.max_blocking_time;
        self.publish_with_timeout(writer, message, source, budget)
    }

    /// As [`Core::publish`], blocking no longer than `budget`.
    pub(crate) fn publish_with_timeout(
        &self,
        writer: &WriterEndpoint,
        message: &mut dyn OutboundMessage,
        source: Timestamp,
        budget: Duration,
    ) -> Result<i64, PublishError> {
        if self.scheduler.is_closed() {
            return Err(PublishError::ShutDown);
        }
        let mut bytes;
        let message: &mut dyn OutboundMessage = if writer.serialize_only {
            bytes = SerializeOnly(message);
            &mut bytes
        } else {
            message
        };
        let instance = if writer.is_keyed {
            Some(writer.register(message)?)
        } else {
            None
        };
        let request = WriteRequest {
            source,
            instance: instance.as_ref(),
            budget,
        };
        let published = if self.goes_out(writer, message) {
            self.publish_remotely(writer, message, request)
        } else {
            self.publish_locally(writer, message, request)
        };
        if let (Err(_), Some(instance)) = (&published, &instance) {
            writer.forget_unwritten(instance);
        }
        let sequence = published?;
        let qos = &writer.data.qos;
        let asserts_participant =
            qos.liveliness == Liveliness::ManualByParticipant && has_manual_lease(qos);
        if asserts_participant {
            self.discovery().assert_participant(self.platform.now());
        }
        Ok(sequence)
    }

    /// Whether readers of other processes, or later ones, need a message.
    fn goes_out(&self, writer: &WriterEndpoint, message: &dyn OutboundMessage) -> bool {
        let is_ours = |reader: Guid| reader.prefix == self.prefix;
        writer.leaves_process() && !message.directed_to().is_some_and(is_ours)
    }

    /// Publishes to readers of this process only: no serialization, no datagram. If a
    /// reader of another process matches before that, it gets the message as well.
    fn publish_locally(
        &self,
        writer: &WriterEndpoint,
        message: &mut dyn OutboundMessage,
        request: WriteRequest<'_>,
    ) -> Result<i64, PublishError> {
        let WriteRequest {
            source,
            instance,
            mut budget,
        } = request;
        let key = instance.map(|instance| &instance.info.key);
        if writer.must_block_locally(message, key) {
            let until = self.platform.now().after(budget);
            let has_space =
                || !writer.must_block_locally(message, key) || self.goes_out(writer, message);
            self.wait_for_history_space(writer, budget, has_space)?;
            budget = until.since(self.platform.now());
        }
        let mut group = writer.group.as_ref().map(|group| group.begin_write());
        let mut state = writer.state.lock();
        if self.goes_out(writer, message) {
            drop((state, group));
            let request = WriteRequest { budget, ..request };
            return self.publish_remotely(writer, message, request);
        }
        if !state.deferred.is_empty() {
            self.discovery()
                .publishing
                .write_deferred(self.platform.now(), writer, &mut state);
        }
        let mark = next_coherent_mark(&mut group, &mut state);
        let meta = sample_meta(writer, &mut state, source);
        // Reading the clock costs as much as the rest of this path.
        let now = if writer.needs_clock() || !state.is_timeless() {
            self.platform.now()
        } else {
            Instant::ZERO
        };
        let sample = WrittenSample {
            meta,
            instance,
            mark,
        };
        if self
            .discovery()
            .publishing
            .intra_process
            .deliver(now, writer, &mut state, message, &sample)
        {
            writer.note_serialized();
        }
        state.machine.skip_sequence_number(now);
        state.note_written(now, message.kind(), instance);
        end_group_write(&self.scheduler, now, writer, group);
        if writer.has_deadline_or_lease() {
            let next = state.next_timeout();
            self.scheduler
                .schedule(TimeoutOwner::Writer(writer.guid().entity), next);
        }
        Ok(meta.sequence)
    }

    /// Publishes to readers of other processes, or for late joiners. Local readers
    /// get the message before it is serialized.
    fn publish_remotely(
        &self,
        writer: &WriterEndpoint,
        message: &mut dyn OutboundMessage,
        request: WriteRequest<'_>,
    ) -> Result<i64, PublishError> {
        let WriteRequest {
            source,
            instance,
            budget,
        } = request;
        let bytes = message.serialized_len();
        if bytes > writer.sample_bytes_max {
            return Err(PublishError::TooLarge {
                topic: writer.data.topic.clone(),
                size: bytes,
                max: writer.sample_bytes_max,
            });
        }
        if writer.take_wants_connections() {
            let now = self.platform.now();
            self.discovery()
                .shm_connections
                .connect_on_demand(now, writer.guid());
        }
        if message.wants_buffer()
            && let Some(memory) = self.chunk_for_payload(writer, bytes, budget)?
        {
            message.offer_buffer(memory);
        }
        let write = RemoteWrite {
            source,
            instance,
            bytes,
        };
        if writer.data.qos.history == History::KeepAll {
            let published = self.publish_when_accepted(writer, message, write, budget);
            if published.is_ok() {
                self.discovery().publishing.prefault_next(writer, bytes);
            }
            return published;
        }
        // KEEP_LAST overwrites. The size was checked, so writing cannot fail.
        let group = writer.group.as_ref().map(|group| group.begin_write());
        let now = self.platform.now();
        let mut state = writer.state.lock();
        while !state.deferred.is_empty() {
            // The earlier message is sent, not only written: KEEP_LAST could
            // replace it.
            self.discovery()
                .publishing
                .write_deferred(now, writer, &mut state);
            self.discovery().publishing.send_new(writer, state, now);
            state = writer.state.lock();
        }
        Ok(self.write_sample(now, writer, message, WriteLocks { state, group }, write))
    }

    fn publish_when_accepted(
        &self,
        writer: &WriterEndpoint,
        message: &mut dyn OutboundMessage,
        write: RemoteWrite<'_>,
        budget: Duration,
    ) -> Result<i64, PublishError> {
        let key = write.instance.map(|instance| &instance.info.key);
        let mut payload = None;
        let mut accepted = None;
        let mut attempt = || {
            if writer.must_block_locally(message, key) {
                return false;
            }
            let group = writer.group.as_ref().map(|group| group.begin_write());
            let mut state = writer.state.lock();
            if !state.transports.have_space(writer.guid(), write.bytes) {
                return false;
            }
            let now = self.platform.now();
            if state.machine.readers().has_filters() {
                // Filters read the payload and decide for which readers the writer must
                // wait.
                let payload: &Bytes = payload.get_or_insert_with(|| serialize(writer, message));
                let locks = WriteLocks { state, group };
                accepted = self
                    .discovery()
                    .publishing
                    .try_write_sample(now, writer, message, locks, write, payload);
                return accepted.is_some();
            }
            let blank = NewChange {
                deferred_bytes: write.bytes,
                key_hash: key.map(|key| key.0),
                ..NewChange::default()
            };
            if state.machine.reserve_space(now, &blank).is_err() {
                return false;
            }
            let locks = WriteLocks { state, group };
            accepted = Some(self.write_sample(now, writer, message, locks, write));
            true
        };
        if !attempt() {
            self.wait_for_history_space(writer, budget, attempt)?;
        }
        accepted.ok_or(PublishError::ShutDown)
    }

    /// Writes a sample that has space: local readers first. It is then serialized
    /// once, if some reader needs bytes now.
    fn write_sample(
        &self,
        now: Instant,
        writer: &WriterEndpoint,
        message: &mut dyn OutboundMessage,
        locks: WriteLocks<'_>,
        write: RemoteWrite<'_>,
    ) -> i64 {
        let WriteLocks {
            mut state,
            mut group,
        } = locks;
        let RemoteWrite {
            source,
            instance,
            bytes,
        } = write;
        let mark = next_coherent_mark(&mut group, &mut state);
        let meta = sample_meta(writer, &mut state, source);
        let sample = WrittenSample {
            meta,
            instance,
            mark,
        };
        let is_made = self
            .discovery()
            .publishing
            .intra_process
            .deliver(now, writer, &mut state, message, &sample);
        if is_made {
            writer.note_serialized();
        }
        if self
            .driver
            .defer_send(now, writer, &mut state, message, meta.source, bytes)
        {
            state.note_written(now, message.kind(), instance);
            return meta.sequence;
        }
        let is_read = !state.machine.readers().is_empty()
            || !state.transports.is_empty()
            || writer.store.is_some()
            || message.shared().is_none();
        let payload = is_read.then(|| {
            if is_made {
                message.serialized()
            } else {
                serialize(writer, message)
            }
        });
        let new = new_change(message, payload.as_ref(), bytes, &sample);
        let written = state.machine.write(now, new);
        debug_assert!(written.is_ok(), "there was space for a sample: {written:?}");
        let locks = WriteLocks { state, group };
        self.discovery()
            .publishing
            .keep_and_send(now, writer, message, locks, sample, payload);
        meta.sequence
    }

    /// Drives the network until `space` returns true.
    fn wait_for_history_space(
        &self,
        writer: &WriterEndpoint,
        budget: Duration,
        has_space: impl FnMut() -> bool,
    ) -> Result<(), PublishError> {
        let start = self.platform.now();
        if self.driver.wait_until(start.after(budget), has_space) {
            return Ok(());
        }
        if self.scheduler.is_shut_down() {
            return Err(PublishError::ShutDown);
        }
        let waited = self.platform.now().since(start).as_nanos() / 1_000_000;
        Err(PublishError::TimedOut {
            topic: writer.data.topic.clone(),
            waited_ms: u64::try_from(waited).unwrap_or(0),
        })
    }

    /// Sends messages held back by LATENCY_BUDGET or deferred sends, or queues the writer
    /// at its flow controller.
    pub fn flush(&self, writer: &WriterEndpoint) {
        self.driver.send_deferred();
        if writer.announced().qos.latency_budget != Duration::ZERO {
            writer.state.lock().machine.flush();
            self.discovery()
                .publishing
                .serve_writer(self.platform.now(), writer);
        }
    }
}

fn sample_meta(writer: &WriterEndpoint, state: &mut WriterState, source: Timestamp) -> SampleMeta {
    let source = state.stamp(source);
    SampleMeta {
        source: Some(source),
        reception: source,
        sequence: state.machine.next_sequence().0,
        publisher: writer.guid(),
        path: DeliveryPath::IntraProcess,
    }
}

/// Whether a sample is only kept for late joiners. The send path would find nothing to
/// send, and its cold code would delay the callback of a local reader.
fn has_nothing_to_send(writer: &WriterEndpoint, state: &WriterState) -> bool {
    let machine = &state.machine;
    writer.flow_membership.is_none() && machine.readers().is_empty() && !machine.has_output()
}

fn serialize(writer: &WriterEndpoint, message: &mut dyn OutboundMessage) -> Bytes {
    writer.note_serialized();
    message.serialized()
}

/// Ends the write, so that other members of the group may write.
fn end_group_write(
    scheduler: &Scheduler,
    now: Instant,
    writer: &WriterEndpoint,
    guard: Option<GroupWriteGuard<'_>>,
) {
    if let Some(guard) = guard {
        guard.announce_group_position(scheduler, now, writer);
    }
}

/// The mark of a sample that is certain to be accepted.
fn next_coherent_mark(
    guard: &mut Option<GroupWriteGuard<'_>>,
    state: &mut WriterState,
) -> Option<Box<CoherentMark>> {
    let guard = guard.as_mut()?;
    let mark = guard.coherent_mark(state);
    let sequence = state.machine.next_sequence();
    guard.commit(state, sequence);
    mark
}

fn new_change(
    message: &dyn OutboundMessage,
    payload: Option<&Bytes>,
    bytes: usize,
    sample: &WrittenSample<'_>,
) -> NewChange {
    let instance = sample.instance;
    NewChange {
        related_sample_identity: message.related(),
        directed_to: message.directed_to(),
        payload: payload.cloned().unwrap_or_default(),
        deferred_bytes: if payload.is_none() { bytes } else { 0 },
        kind: instance.map_or(ChangeKind::Alive, |instance| instance.kind),
        source_timestamp: sample.meta.source,
        key_hash: instance.map(|instance| instance.info.key.0),
        coherent_mark: sample.mark.clone(),
        ..NewChange::default()
    }
}

/// The sample as a further transport carries it.
fn cache_change(
    message: &dyn OutboundMessage,
    payload: &Bytes,
    sample: &WrittenSample<'_>,
) -> CacheChange {
    let meta = &sample.meta;
    let kind = sample.instance.map_or(ChangeKind::Alive, |of| of.kind);
    let sequence = SequenceNumber(meta.sequence);
    CacheChange {
        kind,
        source_timestamp: meta.source,
        key_only: kind != ChangeKind::Alive,
        key_hash: sample.instance.map(|of| of.info.key.0),
        related_sample_identity: message.related(),
        ..CacheChange::new(meta.publisher, sequence, payload.clone())
    }
}

/// Stores the sample for local late joiners and in the durable store: its bytes if they
/// exist, otherwise the shared value.
fn keep_for_late_joiners(
    state: &mut WriterState,
    now: Instant,
    writer: &WriterEndpoint,
    message: &mut dyn OutboundMessage,
    payload: Option<Bytes>,
    sample: WrittenSample<'_>,
) {
    let WrittenSample {
        meta,
        instance,
        mark,
    } = sample;
    if !writer.keeps_local_history() || message.directed_to().is_some() {
        return;
    }
    if let Some(payload) = &payload {
        writer.store_sample(&meta, instance, payload);
    }
    let body = match payload {
        Some(payload) => SampleBody::Serialized(payload),
        None => match message.shared() {
            Some(value) => SampleBody::Shared(value),
            None => SampleBody::Serialized(Bytes::new()),
        },
    };
    let mut item = writer.queued_sample(now, body, meta, instance);
    item.mark = mark;
    state.history.push_or_drop_oldest(item);
}
