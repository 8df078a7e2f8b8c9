//! From `publish()` down: sequence number, local delivery, history, datagrams.

use std::cell::RefCell;

use bytes::Bytes;
use parking_lot::MutexGuard;
use pteros_rtps::history::ChangeKind;
use pteros_rtps::outbox::Outbox;
use pteros_rtps::qos::{History, Liveliness};
use pteros_rtps::time::{Instant, Timestamp};
use pteros_rtps::writer::NewChange;

use crate::core::Core;
use crate::deadline::Machine;
use crate::error::PublishError;
use crate::local::has_manual_lease;
use crate::sample::{Body, Path, SampleMeta};
use crate::writer::{Outgoing, WriterEndpoint, WriterState};

thread_local! {
    /// Each thread builds datagrams in a buffer of its own: nothing is
    /// allocated per message and no lock is shared between writers.
    static OUTBOX: RefCell<Outbox> = RefCell::new(Outbox::new());
}

/// Runs `fill` on this thread's outbox and sends what it put there, until it
/// says that nothing is left. `fill` must not publish.
pub(crate) fn transmit(core: &Core, fill: impl FnMut(&mut Outbox) -> bool) {
    transmit_marked(core, 0, fill);
}

/// As [`transmit`], every datagram marked with a code point unless that is 0.
fn transmit_marked(core: &Core, code_point: u8, mut fill: impl FnMut(&mut Outbox) -> bool) {
    OUTBOX.with_borrow_mut(|outbox| {
        loop {
            outbox.clear();
            let more = fill(outbox);
            core.send(outbox, code_point);
            if !more {
                break;
            }
        }
        outbox.clear();
    });
}

impl Core {
    /// Publishes one message on the caller's thread: local readers first, then
    /// the network. Blocks only for a reliable writer without room, at most
    /// its `max_blocking_time`.
    ///
    /// # Errors
    /// See [`PublishError`]; nothing was delivered then.
    pub fn publish(
        &self,
        writer: &WriterEndpoint,
        message: &mut dyn Outgoing,
        source: Timestamp,
    ) -> Result<i64, PublishError> {
        if self.is_closed() {
            return Err(PublishError::ShutDown);
        }
        let sequence = match writer.leaves_process() {
            true => self.publish_beyond(writer, message, source)?,
            false => self.publish_within(writer, message, source)?,
        };
        writer.note_published();
        let qos = &writer.data.qos;
        if qos.liveliness == Liveliness::ManualByParticipant && has_manual_lease(qos) {
            self.assert_participant(self.env.now());
        }
        Ok(sequence)
    }

    /// For readers of this process alone: no serialization, no datagram.
    fn publish_within(
        &self,
        writer: &WriterEndpoint,
        message: &mut dyn Outgoing,
        source: Timestamp,
    ) -> Result<i64, PublishError> {
        if writer.must_wait_locally() {
            self.wait_for_room(writer, || !writer.must_wait_locally())?;
        }
        let mut state = writer.state.lock();
        let meta = meta(writer, &mut state, source);
        let now = self.env.now();
        self.deliver_locally(now, writer, message, meta);
        state.machine.skip(now);
        if writer.is_watched() {
            let next = state.machine.next_timeout();
            self.schedule(Machine::Writer(writer.guid().entity), next);
        }
        Ok(meta.sequence)
    }

    /// For readers elsewhere too, or for those still to come. The sample is
    /// written before local readers see it only where writing may be refused.
    fn publish_beyond(
        &self,
        writer: &WriterEndpoint,
        message: &mut dyn Outgoing,
        source: Timestamp,
    ) -> Result<i64, PublishError> {
        let size = message.serialized_len();
        if size > writer.sample_bytes_max {
            return Err(PublishError::TooLarge {
                topic: writer.data.topic.clone(),
                size,
                max: writer.sample_bytes_max,
            });
        }
        if writer.data.qos.history == History::KeepAll {
            return self.publish_when_accepted(writer, message, source);
        }
        let mut state = writer.state.lock();
        let meta = meta(writer, &mut state, source);
        let now = self.env.now();
        self.deliver_locally(now, writer, message, meta);
        let payload = serialize(writer, message);
        // KEEP_LAST overwrites: the size was checked, so it cannot fail.
        let accepted = state.machine.write(now, change(&payload, meta.source));
        debug_assert!(accepted.is_ok(), "KEEP_LAST refused a sample: {accepted:?}");
        latch(&mut state, now, writer, message, payload, meta);
        self.send_new(writer, state, now);
        Ok(meta.sequence)
    }

    fn publish_when_accepted(
        &self,
        writer: &WriterEndpoint,
        message: &mut dyn Outgoing,
        source: Timestamp,
    ) -> Result<i64, PublishError> {
        let payload = serialize(writer, message);
        let mut accepted = None;
        let mut attempt = || {
            if writer.must_wait_locally() {
                return false;
            }
            let mut state = writer.state.lock();
            let meta = meta(writer, &mut state, source);
            let now = self.env.now();
            if state
                .machine
                .write(now, change(&payload, meta.source))
                .is_err()
            {
                return false;
            }
            self.deliver_locally(now, writer, message, meta);
            latch(&mut state, now, writer, message, payload.clone(), meta);
            self.send_new(writer, state, now);
            accepted = Some(meta.sequence);
            true
        };
        if !attempt() {
            self.wait_for_room(writer, attempt)?;
        }
        accepted.ok_or(PublishError::ShutDown)
    }

    /// Drives the network until `room` says yes, at most max_blocking_time.
    fn wait_for_room(
        &self,
        writer: &WriterEndpoint,
        room: impl FnMut() -> bool,
    ) -> Result<(), PublishError> {
        let start = self.env.now();
        let until = start.after(writer.data.qos.max_blocking_time);
        if self.wait_until(until, room) {
            return Ok(());
        }
        if self.is_shut_down() {
            return Err(PublishError::ShutDown);
        }
        let waited = self.env.now().since(start).as_nanos() / 1_000_000;
        Err(PublishError::TimedOut {
            topic: writer.data.topic.clone(),
            waited_ms: u64::try_from(waited).unwrap_or(0),
        })
    }

    /// Fills datagrams under the writer's lock and sends them without it.
    fn send_new(&self, writer: &WriterEndpoint, state: MutexGuard<'_, WriterState>, now: Instant) {
        let mut held = Some(state);
        transmit_marked(self, writer.code_point, |outbox| {
            let mut state = held.take().unwrap_or_else(|| writer.state.lock());
            let more = state.machine.poll_transmit(now, outbox);
            // Under the lock: a later deadline must not be written over.
            let next = state.machine.next_timeout();
            self.schedule(Machine::Writer(writer.guid().entity), next);
            more
        });
    }

    /// Sends what a writer has to send and tells its events.
    pub(crate) fn serve_writer(&self, now: Instant, writer: &WriterEndpoint) {
        transmit_marked(self, writer.code_point, |outbox| {
            let mut state = writer.state.lock();
            let more = state.machine.poll_transmit(now, outbox);
            writer.collect(&mut state.machine);
            let next = state.machine.next_timeout();
            self.schedule(Machine::Writer(writer.guid().entity), next);
            more
        });
    }

    /// Proves that a manual writer is alive.
    pub fn assert_liveliness(&self, writer: &WriterEndpoint) {
        let now = self.env.now();
        match writer.data.qos.liveliness {
            Liveliness::Automatic => {}
            Liveliness::ManualByTopic => self.assert_writer(now, writer),
            Liveliness::ManualByParticipant => self.assert_participant(now),
        }
    }

    fn assert_writer(&self, now: Instant, writer: &WriterEndpoint) {
        writer.state.lock().machine.assert_liveliness(now);
        self.serve_writer(now, writer);
        self.assert_locally(now, writer);
    }

    /// One writer that is manual by participant speaks for all of them.
    fn assert_participant(&self, now: Instant) {
        let kind = Liveliness::ManualByParticipant;
        let writers: Vec<_> = {
            let table = self.table.read();
            let all = table.writers.values();
            all.filter(|w| w.data.qos.liveliness == kind)
                .cloned()
                .collect()
        };
        for writer in &writers {
            self.assert_writer(now, writer);
        }
        self.participant.lock().assert_liveliness(now, kind);
        self.serve_participant(now);
    }
}

fn meta(writer: &WriterEndpoint, state: &mut WriterState, source: Timestamp) -> SampleMeta {
    let source = state.stamp(source);
    SampleMeta {
        source: Some(source),
        reception: source,
        sequence: state.machine.next_sequence().0,
        publisher: writer.guid(),
        path: Path::IntraProcess,
    }
}

fn serialize(writer: &WriterEndpoint, message: &mut dyn Outgoing) -> Bytes {
    writer.note_serialized();
    message.serialized()
}

fn change(payload: &Bytes, source: Option<Timestamp>) -> NewChange {
    NewChange {
        payload: payload.clone(),
        kind: ChangeKind::Alive,
        source_timestamp: source,
        related: None,
        key_hash: None,
        only_for: None,
        mark: None,
    }
}

/// Keeps the sample for local readers that come later.
fn latch(
    state: &mut WriterState,
    now: Instant,
    writer: &WriterEndpoint,
    message: &mut dyn Outgoing,
    payload: Bytes,
    meta: SampleMeta,
) {
    if writer.is_latching() {
        let body = message
            .shared()
            .map_or(Body::Serialized(payload), Body::Shared);
        state.latch(writer.item(now, body, meta));
    }
}
