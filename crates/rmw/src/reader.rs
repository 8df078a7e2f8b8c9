//! One subscription's endpoint: the protocol machine, the queue of samples
//! and the place where user code is told.
//!
//! Lock order within an endpoint: `machine`, then `intake`. Neither is held
//! while user code runs.

use std::any::TypeId;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::history::ChangeKind;
use pteros_rtps::id::Guid;
use pteros_rtps::reader::{Reader, ReaderEvent};
use pteros_rtps::time::{Instant, Timestamp};

use crate::event::{EndpointEvent, Events};
use crate::intake::{Entered, Intake};
use crate::ready::Slot;
use crate::sample::{Body, Item, Path, Popped, SampleMeta};

/// What a subscription's callback wants to be handed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wants {
    /// Shared values of one Rust type; serialized ones are decoded on take.
    Type(TypeId),
    /// Serialized bytes always (dynamic and raw subscriptions).
    Bytes,
}

/// The counters of a subscription. Totals since it was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReaderCounts {
    /// Samples put into the queue.
    pub received: u64,
    /// Samples that made room for newer ones before being taken.
    pub overwritten: u64,
    /// Samples that never came, or came when the queue refused them.
    pub lost: u64,
    /// Samples whose lifespan ended before they were taken.
    pub expired: u64,
    /// Samples that came too soon after another for the time based filter.
    pub filtered: u64,
    /// Samples of publishers that did not own the topic (exclusive ownership).
    pub outranked: u64,
    /// Samples older than one already taken (destination order by source).
    pub late: u64,
}

/// A reader as the runtime knows it.
pub struct ReaderEndpoint {
    /// What discovery announces of it.
    pub data: EndpointData,
    /// What local publishers must bring.
    pub wants: Wants,
    /// Whether samples of the same node or context are ignored.
    pub ignore_local: bool,
    pub(crate) machine: Mutex<Reader>,
    intake: Mutex<Intake>,
    judges: bool,
    /// What happens to it besides samples.
    pub events: Arc<Events>,
    /// Where user code waits for samples.
    pub slot: Slot,
    received: AtomicU64,
    lost: AtomicU64,
    graph: AtomicBool,
}

impl ReaderEndpoint {
    pub(crate) fn new(
        data: EndpointData,
        wants: Wants,
        ignore_local: bool,
        machine: Reader,
    ) -> Self {
        Self {
            intake: Mutex::new(Intake::new(&data.qos)),
            judges: Intake::judges(&data.qos),
            data,
            wants,
            ignore_local,
            machine: Mutex::new(machine),
            events: Arc::default(),
            slot: Slot::default(),
            received: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            graph: AtomicBool::new(false),
        }
    }

    /// Marks the graph's own reader, which no user code empties.
    pub(crate) fn mark_graph(&self) {
        self.graph.store(true, Ordering::Release);
    }

    pub(crate) fn is_graph(&self) -> bool {
        self.graph.load(Ordering::Acquire)
    }

    /// Takes the oldest sample; the caller does what [`Popped`] asks for, see
    /// [`Core::take`](crate::Core::take).
    pub(crate) fn pop(&self, now: impl FnOnce() -> Instant) -> Popped {
        self.intake.lock().queue.pop(now)
    }

    /// Whether a sample waits.
    pub fn has_samples(&self) -> bool {
        !self.intake.lock().queue.is_empty()
    }

    /// Publishers matched now, local ones included.
    pub fn matched_count(&self) -> usize {
        self.events.matched_count()
    }

    /// The counters.
    pub fn counts(&self) -> ReaderCounts {
        let intake = self.intake.lock();
        ReaderCounts {
            received: self.received.load(Ordering::Relaxed),
            overwritten: intake.queue.overwritten,
            lost: self.lost.load(Ordering::Relaxed),
            expired: intake.queue.expired,
            filtered: intake.filtered(),
            outranked: intake.outranked(),
            late: intake.queue.late(),
        }
    }

    /// Whether samples must come by [`Self::deliver_judged`].
    pub(crate) fn judges(&self) -> bool {
        self.judges
    }

    /// Hands over a sample of a publisher of this process. `may_refuse`: a
    /// full queue loses it. Otherwise its writer has waited for room.
    pub(crate) fn deliver_local(&self, item: Item, may_refuse: bool) {
        let mut intake = self.intake.lock();
        if may_refuse && intake.queue.is_full() {
            drop(intake);
            self.note_lost(1);
            return;
        }
        let queued = intake.queue.push_or_drop_oldest(item);
        drop(intake);
        if queued {
            self.note_received(1);
        }
    }

    /// As [`Self::deliver_local`], where a policy judges each sample.
    pub(crate) fn deliver_judged(
        &self,
        now: Instant,
        machine: &mut Reader,
        item: Item,
        may_refuse: bool,
    ) {
        let mut intake = self.intake.lock();
        if may_refuse && intake.queue.is_full() {
            drop(intake);
            self.note_lost(1);
            return;
        }
        let entered = enter(&mut intake, now, machine, item);
        drop(intake);
        self.note_received(u64::from(entered));
    }

    fn note_received(&self, count: u64) {
        if count > 0 {
            self.received.fetch_add(count, Ordering::Relaxed);
            self.slot.ready();
        }
    }

    /// A publisher matched, or announces another ownership strength.
    pub(crate) fn note_strength(&self, writer: Guid, strength: i32) {
        if let Some(owners) = &mut self.intake.lock().owners {
            owners.note_strength(writer, strength);
        }
    }

    /// A publisher is gone, and all it wrote has been handed over.
    pub(crate) fn forget_writer(&self, writer: Guid) {
        if let Some(owners) = &mut self.intake.lock().owners {
            owners.forget(writer);
        }
    }

    /// When the machine, or a sample held by the time filter, is due.
    pub(crate) fn next_timeout(&self, machine: &Reader) -> Option<Instant> {
        let next = machine.next_timeout();
        let held = match self.judges {
            true => self.intake.lock().release_at(),
            false => None,
        };
        [next, held].into_iter().flatten().min()
    }

    /// Whether a local KEEP_ALL delivery would have to wait.
    pub(crate) fn is_full(&self) -> bool {
        self.intake.lock().queue.is_full()
    }

    /// Moves what the machine has produced to the queue and tells user code.
    pub(crate) fn collect(&self, now: Instant, machine: &mut Reader, wall: Timestamp) {
        let mut arrived = 0;
        let mut intake = self.intake.lock();
        loop {
            if intake.queue.is_full() {
                // Reliable writers keep the rest; `Core::take` comes for it.
                intake.queue.hold_back();
                break;
            }
            let Some(change) = machine.poll_sample() else {
                break;
            };
            if change.kind != ChangeKind::Alive {
                continue;
            }
            let item = Item {
                body: Body::Serialized(change.payload),
                meta: SampleMeta {
                    source: change.source_timestamp,
                    reception: wall,
                    sequence: change.sequence.0,
                    publisher: change.writer,
                    path: Path::Network,
                },
                expires_at: change.expires_at,
            };
            arrived += u64::from(enter(&mut intake, now, machine, item));
        }
        arrived += u64::from(intake.release(now));
        drop(intake);
        self.note_received(arrived);
        self.collect_events(machine);
    }

    /// Moves the machine's events to the queue and tells user code.
    pub(crate) fn collect_events(&self, machine: &mut Reader) {
        while let Some(event) = machine.poll_event() {
            self.note_machine_event(event);
        }
    }

    fn note_machine_event(&self, event: ReaderEvent) {
        match event {
            ReaderEvent::SampleLost { count, .. } => self.note_lost(count),
            ReaderEvent::DeadlineMissed { total, .. } => {
                self.events.note(EndpointEvent::DeadlineMissed { total });
            }
            ReaderEvent::LivelinessChanged {
                alive_count,
                not_alive_count,
                writer,
                ..
            } => self.events.note(EndpointEvent::LivelinessChanged {
                alive: alive_count as usize,
                not_alive: not_alive_count as usize,
                writer,
            }),
        }
    }

    fn note_lost(&self, count: u64) {
        let total = self.lost.fetch_add(count, Ordering::Relaxed) + count;
        self.events.note(EndpointEvent::SampleLost { total, count });
    }
}

/// Lets a sample in; whether it waits to be taken.
fn enter(intake: &mut Intake, now: Instant, machine: &mut Reader, item: Item) -> bool {
    let entered = intake.offer(now, item, |writer| machine.is_alive(now, writer));
    if entered != Entered::Outranked {
        machine.note_update(now);
    }
    entered == Entered::Queued
}
