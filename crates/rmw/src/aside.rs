//! Messages put aside for a moment. What a callback publishes while other
//! callbacks of its executor wait, its own local reader's among them, goes to
//! other processes after those: serializing it and waking another process
//! takes longer than they do.
//!
//! Only where they do. How long a writer's messages stay aside is measured, and
//! one that stayed longer than [`LONGEST`] lets those after it go at once, more
//! of them each time it happens again. Whatever may take long sends what is
//! aside first: a wait, a nested spin, the end of a spin, a second message of
//! the same writer; while a callback goes on for ever, the helper does. Nothing
//! overtakes it: the writer's next message, match or end takes it up before.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use pteros_rtps::id::EntityId;
use pteros_rtps::qos::{Durability, EndpointQos, History};
use pteros_rtps::time::{Duration, Instant, Timestamp};
use pteros_rtps::writer::NewChange;

use crate::core::Core;
use crate::links::CHUNK_MIN_BYTES;
use crate::reader::Wants;
use crate::ready::ReadyQueue;
use crate::room::Patience;
use crate::sample::SharedValue;
use crate::writer::{Outgoing, WriterEndpoint, WriterState};

/// Messages stay aside no longer than waking their readers takes.
const LONGEST: Duration = Duration::from_micros(10);

/// Writers with a message aside, per context; messages of more go at once.
const WRITERS_MAX: usize = 64;

/// Messages that go at once after one that stayed too long ...
const AT_ONCE_MIN: u32 = 16;
/// ... twice as many each time, up to this.
const AT_ONCE_MAX: u32 = 4_096;

thread_local! {
    /// What this thread spins, innermost.
    static SPUN: RefCell<Option<Spun>> = const { RefCell::new(None) };
}

struct Spun {
    /// The address of its context.
    core: usize,
    queue: Arc<ReadyQueue>,
}

/// The writers of a context that have a message aside.
#[derive(Default)]
pub(crate) struct Aside {
    waits: AtomicBool,
    list: Mutex<List>,
}

#[derive(Default)]
struct List {
    writers: VecDeque<EntityId>,
    /// A round of callbacks has ended since the first came.
    aged: bool,
}

/// A writer's message that is aside, if there is one, and what came of others.
#[derive(Default)]
pub(crate) struct Stay {
    held: Option<Held>,
    /// So many go at once.
    at_once: u32,
    /// How many the last time.
    penalty: u32,
}

struct Held {
    value: Arc<dyn SharedValue>,
    source: Option<Timestamp>,
    bytes: usize,
    since: Instant,
}

impl Stay {
    pub(crate) fn is_empty(&self) -> bool {
        self.held.is_none()
    }

    fn take(&mut self, now: Instant) -> Option<Held> {
        let held = self.held.take()?;
        if now.since(held.since) > LONGEST {
            self.penalty = self.penalty.saturating_mul(2);
            self.penalty = self.penalty.clamp(AT_ONCE_MIN, AT_ONCE_MAX);
            self.at_once = self.penalty;
        } else {
            self.penalty /= 2;
        }
        Some(held)
    }

    /// Whether the next message may be put aside.
    fn is_open(&mut self) -> bool {
        let is_open = self.at_once == 0 && self.held.is_none();
        self.at_once = self.at_once.saturating_sub(1);
        is_open
    }
}

/// Whether messages of a writer with these policies may ever be put aside:
/// nothing has to wait for room, is kept, or has its place among others.
pub(crate) fn suits(qos: &EndpointQos) -> bool {
    qos.history != History::KeepAll && qos.durability == Durability::Volatile
}

/// A thread spins a queue of callbacks, until this is dropped.
pub struct Spinning<'c> {
    core: &'c Core,
    outer: Option<Spun>,
    /// It is this thread's.
    _not_send: PhantomData<*const ()>,
}

impl Drop for Spinning<'_> {
    fn drop(&mut self) {
        SPUN.set(self.outer.take());
        self.core.send_aside();
    }
}

impl Core {
    /// This thread runs the callbacks of `queue` from now on and calls
    /// [`Core::end_round`] after each round of them.
    pub fn begin_spin(&self, queue: &Arc<ReadyQueue>) -> Spinning<'_> {
        self.send_aside();
        let spun = Spun {
            core: std::ptr::from_ref(self).addr(),
            queue: queue.clone(),
        };
        Spinning {
            core: self,
            outer: SPUN.replace(Some(spun)),
            _not_send: PhantomData,
        }
    }

    /// Sends what was put aside, but lets what came in this round wait for the
    /// callbacks that are ready now: true, if they are to be run at once.
    pub fn end_round(&self, queue: &ReadyQueue) -> bool {
        if !self.aside.waits.load(Ordering::Relaxed) {
            return false;
        }
        let was_aged = std::mem::replace(&mut self.aside.list.lock().aged, true);
        if was_aged || queue.is_empty() {
            self.send_aside();
            return false;
        }
        true
    }

    /// Sends what was put aside. To be called with no lock held, by a thread that
    /// may wait.
    pub(crate) fn send_aside(&self) {
        self.send_all_aside(true);
    }

    /// The same for any thread: a full socket is waited for if it `may_wait`.
    pub(crate) fn send_all_aside(&self, may_wait: bool) {
        while self.aside.waits.load(Ordering::Relaxed) {
            let mut list = self.aside.list.lock();
            let next = list.writers.pop_front();
            self.aside
                .waits
                .store(!list.writers.is_empty(), Ordering::Relaxed);
            drop(list);
            if let Some(writer) = next.and_then(|id| self.writer(id)) {
                let now = self.env.now();
                let mut state = writer.state.lock();
                self.take_up(now, &writer, &mut state);
                let patience = match may_wait {
                    true => writer.patience(),
                    false => Patience::none(),
                };
                self.send_new_within(&writer, state, now, patience);
            }
        }
    }

    /// Under the writer's lock, before it writes or is matched: what is aside
    /// takes its place.
    pub(crate) fn take_up(&self, now: Instant, writer: &WriterEndpoint, state: &mut WriterState) {
        let Some(held) = state.stay.take(now) else {
            return;
        };
        writer.note_serialized();
        let representation = writer.representation();
        let links = self.linking.get();
        let links = links.filter(|_| writer.linked_count() > 0 && held.bytes > CHUNK_MIN_BYTES);
        let memory = links.and_then(|links| links.chunk(held.bytes).ok());
        let payload = match memory {
            Some(memory) => held.value.payload_in(representation, memory),
            None => held.value.payload(representation),
        };
        let written = state.machine.write(
            now,
            NewChange {
                payload,
                source_timestamp: held.source,
                ..NewChange::default()
            },
        );
        debug_assert!(written.is_ok(), "its size was checked: {written:?}");
    }

    /// After local readers were given a message: puts it aside if a callback
    /// waits in this thread's executor and nobody else drives meanwhile.
    pub(crate) fn put_aside(
        &self,
        now: Instant,
        writer: &WriterEndpoint,
        state: &mut WriterState,
        message: &mut dyn Outgoing,
        (source, bytes): (Option<Timestamp>, usize),
    ) -> bool {
        if state.local.is_empty() || !writer.may_put_aside {
            return false;
        }
        let wants = Wants::Type(message.message_type());
        let is_value = state.local.iter().any(|route| route.reader.wants == wants);
        let waits = || {
            SPUN.with_borrow(|spun| {
                let spun = spun.as_ref();
                spun.is_some_and(|spun| {
                    spun.core == std::ptr::from_ref(self).addr() && !spun.queue.is_empty()
                })
            })
        };
        let fits = is_value
            && writer.place.is_none()
            && state.machine.is_read()
            && waits()
            && !self.driver.is_locked()
            && state.stay.is_open();
        if !fits {
            return false;
        }
        let Some(value) = message.shared() else {
            return false;
        };
        let mut list = self.aside.list.lock();
        if list.writers.len() >= WRITERS_MAX {
            return false;
        }
        if list.writers.is_empty() {
            list.aged = false;
        }
        list.writers.push_back(writer.guid().entity);
        self.aside.waits.store(true, Ordering::Relaxed);
        drop(list);
        state.stay.held = Some(Held {
            value,
            source,
            bytes,
            since: now,
        });
        true
    }
}
