//! From `publish()` down: sequence number, local delivery, history, datagrams.

use std::cell::RefCell;

use bytes::Bytes;
use parking_lot::MutexGuard;
use pteros_rtps::fault;
use pteros_rtps::history::ChangeKind;
use pteros_rtps::id::Guid;
use pteros_rtps::mark::Mark;
use pteros_rtps::outbox::Outbox;
use pteros_rtps::qos::{History, Liveliness};
use pteros_rtps::time::{Duration, Instant, Timestamp};
use pteros_rtps::writer::NewChange;

use crate::as_bytes::AsBytes;
use crate::core::Core;
use crate::deadline::Machine;
use crate::error::PublishError;
use crate::instance::Keyed;
use crate::local::has_manual_lease;
use crate::publisher_group::Turn;
use crate::room::Patience;
use crate::sample::{Body, Path, SampleMeta};
use crate::writer::{Outgoing, WriterEndpoint, WriterState};

thread_local! {
    /// Each thread builds datagrams in a buffer of its own: nothing is
    /// allocated per message and no lock is shared between writers.
    static OUTBOX: RefCell<Outbox> = RefCell::new(Outbox::new());
}

/// What goes with a message: its source time, its instance, and how long it may
/// wait for room.
type About<'a> = (Timestamp, Option<&'a Keyed>, Duration);

/// A message that may leave the process: its source time, its instance, and
/// how many bytes it has serialized.
type Draft<'a> = (Timestamp, Option<&'a Keyed>, usize);

/// The locks of a writer that writes.
type Held<'a> = (MutexGuard<'a, WriterState>, Option<Turn<'a>>);

/// What is known of a written message.
type Written<'a> = (SampleMeta, Option<&'a Keyed>, Option<Box<Mark>>);

/// Runs `fill` on this thread's outbox and sends what it put there, until it
/// says that nothing is left. `fill` must not publish. What a socket has no room
/// for is lost.
pub(crate) fn transmit(core: &Core, mut fill: impl FnMut(&mut Outbox) -> bool) {
    let mut more = true;
    while more {
        transmit_marked(core, 0, &Patience::none(), |outbox| {
            more = fill(outbox);
            false
        });
    }
}

/// As [`transmit`], every datagram marked with a code point unless that is 0, and
/// ends when there is no room for them any more: what was not asked for yet is
/// left where it is. False if a link has refused a datagram.
pub(crate) fn transmit_marked(
    core: &Core,
    code_point: u8,
    patience: &Patience,
    mut fill: impl FnMut(&mut Outbox) -> bool,
) -> bool {
    let mut taken = true;
    OUTBOX.with_borrow_mut(|outbox| {
        loop {
            outbox.clear();
            let more = fill(outbox);
            taken &= core.send(outbox, code_point, patience);
            if !more || patience.is_over() {
                break;
            }
        }
        outbox.clear();
    });
    taken
}

impl Core {
    /// Publishes one message on the caller's thread: local readers first, then
    /// the network. Blocks for a KEEP_ALL writer without room, at most its
    /// `max_blocking_time`, and for a network that is slower than the message:
    /// so long without any progress, and ten times that in all. What is not sent
    /// by then is the driver's to send.
    ///
    /// # Errors
    /// See [`PublishError`]; nothing was delivered then.
    pub fn publish(
        &self,
        writer: &WriterEndpoint,
        message: &mut dyn Outgoing,
        source: Timestamp,
    ) -> Result<i64, PublishError> {
        if let Some(tracer) = &self.tracer {
            return self.publish_traced(tracer, writer, message, source);
        }
        let patience = writer.data.qos.max_blocking_time;
        self.publish_within_time(writer, message, source, patience)
    }

    /// As [`Core::publish`], waiting no longer than `patience`.
    pub(crate) fn publish_within_time(
        &self,
        writer: &WriterEndpoint,
        message: &mut dyn Outgoing,
        source: Timestamp,
        patience: Duration,
    ) -> Result<i64, PublishError> {
        if self.is_closed() {
            return Err(PublishError::ShutDown);
        }
        let mut bytes;
        let message: &mut dyn Outgoing = match writer.as_bytes {
            true => {
                bytes = AsBytes(message);
                &mut bytes
            }
            false => message,
        };
        let keyed = match writer.is_keyed {
            true => Some(writer.register(message)?),
            false => None,
        };
        let about = (source, keyed.as_ref(), patience);
        let is_ours = |reader: Guid| reader.prefix == self.prefix;
        let stays = message.only_for().is_some_and(is_ours);
        let published = match writer.leaves_process() && !stays {
            true => self.publish_beyond(writer, message, about),
            false => self.publish_within(writer, message, about),
        };
        if let (Err(_), Some(keyed)) = (&published, &keyed) {
            writer.forget_unwritten(keyed);
        }
        let sequence = published?;
        let qos = &writer.data.qos;
        let speaks = qos.liveliness == Liveliness::ManualByParticipant && has_manual_lease(qos);
        if speaks && !fault!("publishing-proves-no-life") {
            self.assert_participant(self.env.now());
        }
        Ok(sequence)
    }

    /// For readers of this process alone: no serialization, no datagram.
    fn publish_within(
        &self,
        writer: &WriterEndpoint,
        message: &mut dyn Outgoing,
        (source, keyed, patience): About<'_>,
    ) -> Result<i64, PublishError> {
        let key = keyed.map(|keyed| &keyed.info.key);
        if writer.must_wait_locally(message, key) {
            let room = || !writer.must_wait_locally(message, key);
            self.wait_for_room(writer, patience, room)?;
        }
        let mut turn = writer.group.as_ref().map(|group| group.turn());
        let mut state = writer.state.lock();
        if !state.stay.is_empty() {
            self.take_up(self.env.now(), writer, &mut state);
        }
        let mark = mark(&mut turn, &mut state);
        let meta = meta(writer, &mut state, source);
        // A look at the clock costs as much as the rest of it.
        let now = match writer.minds_time() || !state.is_timeless() {
            true => self.env.now(),
            false => Instant::ZERO,
        };
        let about = (meta, keyed, mark.as_deref());
        if self.deliver_locally(now, writer, &mut state, message, about) {
            writer.note_serialized();
        }
        state.machine.skip(now);
        state.note_written(now, message.kind(), keyed);
        end_turn(self, now, writer, turn);
        if writer.is_watched() {
            let next = state.next_timeout();
            self.schedule(Machine::Writer(writer.guid().entity), next);
        }
        Ok(meta.sequence)
    }

    /// For readers elsewhere too, or for those still to come. Local readers have
    /// it before anybody serializes it.
    fn publish_beyond(
        &self,
        writer: &WriterEndpoint,
        message: &mut dyn Outgoing,
        (source, keyed, patience): About<'_>,
    ) -> Result<i64, PublishError> {
        let bytes = message.serialized_len();
        if bytes > writer.sample_bytes_max {
            return Err(PublishError::TooLarge {
                topic: writer.data.topic.clone(),
                size: bytes,
                max: writer.sample_bytes_max,
            });
        }
        self.seek_links_of(writer);
        if message.wants_memory()
            && let Some(memory) = self.shared_chunk(writer, bytes, patience)?
        {
            message.offer_memory(memory);
        }
        let draft = (source, keyed, bytes);
        if writer.data.qos.history == History::KeepAll {
            let published = self.publish_when_accepted(writer, message, draft, patience);
            if published.is_ok() {
                self.warm_ahead(writer, bytes);
            }
            return published;
        }
        // KEEP_LAST overwrites: the size was checked, so it cannot fail.
        let turn = writer.group.as_ref().map(|group| group.turn());
        let now = self.env.now();
        let mut state = writer.state.lock();
        while !state.stay.is_empty() {
            // What came before is sent, not only written: it could be replaced.
            self.take_up(now, writer, &mut state);
            self.send_new(writer, state, now);
            state = writer.state.lock();
        }
        Ok(self.put(now, writer, message, (state, turn), draft))
    }

    fn publish_when_accepted(
        &self,
        writer: &WriterEndpoint,
        message: &mut dyn Outgoing,
        draft: Draft<'_>,
        patience: Duration,
    ) -> Result<i64, PublishError> {
        let (_, keyed, bytes) = draft;
        let key = keyed.map(|keyed| &keyed.info.key);
        let mut payload = None;
        let mut accepted = None;
        let mut attempt = || {
            if writer.must_wait_locally(message, key) {
                return false;
            }
            let turn = writer.group.as_ref().map(|group| group.turn());
            let mut state = writer.state.lock();
            let now = self.env.now();
            if state.machine.has_filters() {
                // They decide for whom it must wait, and read it.
                let payload = payload.get_or_insert_with(|| serialize(writer, message));
                accepted = self.try_put(now, writer, message, (state, turn), (draft, payload));
                return accepted.is_some();
            }
            let blank = NewChange {
                deferred_bytes: bytes,
                key_hash: key.map(|key| key.0),
                ..NewChange::default()
            };
            if state.machine.reserve(now, &blank).is_err() {
                return false;
            }
            accepted = Some(self.put(now, writer, message, (state, turn), draft));
            true
        };
        if !attempt() {
            self.wait_for_room(writer, patience, attempt)?;
        }
        accepted.ok_or(PublishError::ShutDown)
    }

    /// Writes a sample for which there is room: local readers first, then it is
    /// serialized, once, if somebody reads that now.
    fn put(
        &self,
        now: Instant,
        writer: &WriterEndpoint,
        message: &mut dyn Outgoing,
        (mut state, mut turn): Held<'_>,
        (source, keyed, bytes): Draft<'_>,
    ) -> i64 {
        let mark = mark(&mut turn, &mut state);
        let meta = meta(writer, &mut state, source);
        let about = (meta, keyed, mark.as_deref());
        let is_made = self.deliver_locally(now, writer, &mut state, message, about);
        if is_made {
            writer.note_serialized();
        }
        if self.put_aside(now, writer, &mut state, message, (meta.source, bytes)) {
            state.note_written(now, message.kind(), keyed);
            return meta.sequence;
        }
        let is_read =
            state.machine.is_read() || writer.store.is_some() || message.shared().is_none();
        let payload = is_read.then(|| match is_made {
            true => message.serialized(),
            false => serialize(writer, message),
        });
        let new = change(
            message,
            payload.as_ref(),
            bytes,
            meta.source,
            (keyed, mark.clone()),
        );
        let written = state.machine.write(now, new);
        debug_assert!(written.is_ok(), "there was room for a sample: {written:?}");
        let about = (meta, keyed, mark);
        self.finish(now, writer, message, (state, turn), (about, payload));
        meta.sequence
    }

    /// Writes a sample if it is accepted, before local readers see it.
    fn try_put(
        &self,
        now: Instant,
        writer: &WriterEndpoint,
        message: &mut dyn Outgoing,
        (mut state, mut turn): Held<'_>,
        ((source, keyed, bytes), payload): (Draft<'_>, &Bytes),
    ) -> Option<i64> {
        let mark = turn.as_ref().and_then(|turn| turn.mark(&state));
        let meta = meta(writer, &mut state, source);
        let new = change(
            message,
            Some(payload),
            bytes,
            meta.source,
            (keyed, mark.clone()),
        );
        let sequence = state.machine.write(now, new).ok()?;
        if let Some(turn) = &mut turn {
            turn.accept(&mut state, sequence);
        }
        let about = (meta, keyed, mark.as_deref());
        self.deliver_locally(now, writer, &mut state, message, about);
        let about = (meta, keyed, mark);
        let payload = Some(payload.clone());
        self.finish(now, writer, message, (state, turn), (about, payload));
        Some(meta.sequence)
    }

    /// Keeps and sends what was written.
    fn finish(
        &self,
        now: Instant,
        writer: &WriterEndpoint,
        message: &mut dyn Outgoing,
        (mut state, turn): Held<'_>,
        ((meta, keyed, mark), payload): (Written<'_>, Option<Bytes>),
    ) {
        latch(
            &mut state,
            now,
            writer,
            message,
            payload,
            (meta, keyed, mark),
        );
        state.note_written(now, message.kind(), keyed);
        end_turn(self, now, writer, turn);
        self.send_new(writer, state, now);
    }

    /// Drives the network until `room` says yes.
    fn wait_for_room(
        &self,
        writer: &WriterEndpoint,
        patience: Duration,
        room: impl FnMut() -> bool,
    ) -> Result<(), PublishError> {
        let start = self.env.now();
        let late = Duration::from_millis(i64::from(fault!("publish-times-out-late")));
        let until = start.after(patience).after(late);
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

    /// Fills datagrams under the writer's lock and sends them without it. For
    /// threads that publish, which may wait.
    pub(crate) fn send_new(
        &self,
        writer: &WriterEndpoint,
        state: MutexGuard<'_, WriterState>,
        now: Instant,
    ) {
        self.send_new_within(writer, state, now, writer.patience());
    }

    /// The same, waiting for room as far as `patience` goes.
    pub(crate) fn send_new_within(
        &self,
        writer: &WriterEndpoint,
        state: MutexGuard<'_, WriterState>,
        now: Instant,
        patience: Patience,
    ) {
        if let Some(place) = writer.place() {
            return self.leave_to_flow(now, writer, place, state);
        }
        let mut held = Some((state, now));
        let taken = transmit_marked(self, writer.code_point(), &patience, |outbox| {
            let (mut state, now) = match held.take() {
                Some((mut state, now)) => {
                    if patience.is_none() && !self.may_send(now, writer, &mut state) {
                        self.schedule_writer(writer, &state);
                        return false;
                    }
                    (state, now)
                }
                None if !self.await_room(writer, &patience) => return true,
                None => (writer.state.lock(), self.env.now()),
            };
            let more = state.machine.poll_transmit(now, outbox);
            // The rest is ours to send.
            state.resumes_at = more.then_some(Instant::FAR_FUTURE);
            // Under the lock: a later deadline must not be written over.
            self.schedule_writer(writer, &state);
            more
        });
        if patience.is_over() {
            self.resume_later(writer);
        }
        if !taken {
            self.note_refused(now, writer);
        }
    }

    pub(crate) fn schedule_writer(&self, writer: &WriterEndpoint, state: &WriterState) {
        let next = state.next_timeout();
        self.schedule(Machine::Writer(writer.guid().entity), next);
    }

    /// A link has refused what a writer has just sent.
    pub(crate) fn note_refused(&self, now: Instant, writer: &WriterEndpoint) {
        let mut state = writer.state.lock();
        state.machine.note_refused(now);
        self.schedule_writer(writer, &state);
    }

    /// Asks for acknowledgements that have not come: somebody waits for them.
    pub fn hurry(&self, writer: &WriterEndpoint) {
        let now = self.env.now();
        let mut state = writer.state.lock();
        state.machine.hurry(now);
        let next = state.next_timeout();
        self.schedule(Machine::Writer(writer.guid().entity), next);
    }

    /// Sends what LATENCY_BUDGET holds back, or leaves it to the flow controller;
    /// and what waits for callbacks.
    pub fn flush(&self, writer: &WriterEndpoint) {
        self.send_aside();
        if writer.announced().qos.latency_budget != Duration::ZERO {
            writer.state.lock().machine.flush();
            self.serve_writer(self.env.now(), writer);
        }
    }

    /// Sends what a writer has to send and tells its events.
    pub(crate) fn serve_writer(&self, now: Instant, writer: &WriterEndpoint) {
        if let Some(place) = writer.place() {
            let mut state = writer.state.lock();
            writer.collect(&mut state.machine);
            return self.leave_to_flow(now, writer, place, state);
        }
        let patience = Patience::none();
        let taken = transmit_marked(self, writer.code_point(), &patience, |outbox| {
            let mut state = writer.state.lock();
            let more =
                self.may_send(now, writer, &mut state) && state.machine.poll_transmit(now, outbox);
            if more {
                self.doubt_room();
            }
            writer.collect(&mut state.machine);
            self.note_arrival(now, writer, &state);
            let next = state.next_timeout();
            self.schedule(Machine::Writer(writer.guid().entity), next);
            more
        });
        if patience.is_over() {
            self.resume_later(writer);
        }
        if !taken {
            self.note_refused(now, writer);
        }
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
        self.assert_beside_flow(writer);
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

/// The sample is written, and others of the group may write.
fn end_turn(core: &Core, now: Instant, writer: &WriterEndpoint, turn: Option<Turn<'_>>) {
    if let Some(turn) = turn {
        turn.tell_others(core, now, writer);
    }
}

/// The mark of a sample that will be accepted for sure.
fn mark(turn: &mut Option<Turn<'_>>, state: &mut WriterState) -> Option<Box<Mark>> {
    let turn = turn.as_mut()?;
    let mark = turn.mark(state);
    let sequence = state.machine.next_sequence();
    turn.accept(state, sequence);
    mark
}

fn change(
    message: &dyn Outgoing,
    payload: Option<&Bytes>,
    bytes: usize,
    source: Option<Timestamp>,
    (keyed, mark): (Option<&Keyed>, Option<Box<Mark>>),
) -> NewChange {
    NewChange {
        related: message.related(),
        only_for: message.only_for(),
        payload: payload.cloned().unwrap_or_default(),
        deferred_bytes: if payload.is_none() { bytes } else { 0 },
        kind: keyed.map_or(ChangeKind::Alive, |keyed| keyed.kind),
        source_timestamp: source,
        key_hash: keyed.map(|keyed| keyed.info.key.0),
        mark,
        ..NewChange::default()
    }
}

/// Keeps the sample for local readers that come later, and for later lives: its
/// bytes, which the history has anyway, or where nobody has serialized it the value.
fn latch(
    state: &mut WriterState,
    now: Instant,
    writer: &WriterEndpoint,
    message: &mut dyn Outgoing,
    payload: Option<Bytes>,
    (meta, keyed, mark): Written<'_>,
) {
    if !writer.is_latching() || message.only_for().is_some() {
        return;
    }
    if let Some(payload) = &payload {
        writer.store_sample(&meta, keyed, payload);
    }
    let body = match payload {
        Some(payload) => Body::Serialized(payload),
        None => match message.shared() {
            Some(value) => Body::Shared(value),
            None => Body::Serialized(Bytes::new()),
        },
    };
    let mut item = writer.item(now, body, meta, keyed);
    item.mark = mark;
    state.latched.push_or_drop_oldest(item);
}
