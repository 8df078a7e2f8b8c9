//! Queue of deferred remote sends: writers with a deferred message, and each writer's
//! penalty for long delays.
//!
//! Publishing threads fill it and drain it ([`crate::core`] says when). It never
//! serializes and never sends.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pteros_rtps::id::EntityId;
use pteros_rtps::qos::{Durability, EndpointQos, History};
use pteros_rtps::time::{Duration, Instant, Timestamp};

use crate::lock::{Mutex, rank};
use crate::sample::SharedValue;

/// A deferred send waits at most as long as a wake-up of its readers takes.
const DELAY_MAX: Duration = Duration::from_micros(10);

/// Writers with a deferred message per context. Beyond it, messages are sent at
/// once.
const WRITERS_MAX: usize = 64;

/// Messages that are sent at once after one that was deferred for too long ...
const IMMEDIATE_MIN: u32 = 16;
/// ... doubled each time, up to this.
const IMMEDIATE_MAX: u32 = 4_096;

/// The writers of a context that have a deferred message.
#[derive(Default)]
pub(crate) struct DeferredSends {
    has_deferred: AtomicBool,
    list: Mutex<DeferredWriters, rank::DeferredWriters>,
}

#[derive(Default)]
struct DeferredWriters {
    writers: VecDeque<EntityId>,
    /// A round of callbacks has ended since the first message was deferred.
    round_ended: bool,
}

impl DeferredSends {
    /// Notes that a round of callbacks has ended. `None` without deferred messages,
    /// else whether a round had ended since the first of them.
    pub(crate) fn end_round(&self) -> Option<bool> {
        if !self.has_deferred.load(Ordering::Relaxed) {
            return None;
        }
        Some(std::mem::replace(&mut self.list.lock().round_ended, true))
    }

    /// Takes the writer that has waited longest. Takes no lock if there is none.
    pub(crate) fn pop(&self) -> Option<EntityId> {
        if !self.has_deferred.load(Ordering::Relaxed) {
            return None;
        }
        let mut list = self.list.lock();
        let next = list.writers.pop_front();
        self.has_deferred
            .store(!list.writers.is_empty(), Ordering::Relaxed);
        next
    }

    /// Queues a writer. Returns false when the queue is full.
    pub(crate) fn push(&self, writer: EntityId) -> bool {
        let mut list = self.list.lock();
        if list.writers.len() >= WRITERS_MAX {
            return false;
        }
        if list.writers.is_empty() {
            list.round_ended = false;
        }
        list.writers.push_back(writer);
        self.has_deferred.store(true, Ordering::Relaxed);
        true
    }
}

/// A writer's deferred message, if any, and the penalty for long delays.
#[derive(Default)]
pub(crate) struct DeferredSlot {
    message: Option<DeferredMessage>,
    /// Number of messages still to send at once.
    immediate_left: u32,
    /// The number after the last long delay.
    immediate_count: u32,
}

/// A message whose remote send is deferred.
pub(crate) struct DeferredMessage {
    pub(crate) value: Arc<dyn SharedValue>,
    pub(crate) source: Option<Timestamp>,
    pub(crate) bytes: usize,
    pub(crate) since: Instant,
}

impl DeferredSlot {
    pub(crate) fn is_empty(&self) -> bool {
        self.message.is_none()
    }

    pub(crate) fn take(&mut self, now: Instant) -> Option<DeferredMessage> {
        let held = self.message.take()?;
        if now.since(held.since) > DELAY_MAX {
            self.immediate_count = self.immediate_count.saturating_mul(2);
            self.immediate_count = self.immediate_count.clamp(IMMEDIATE_MIN, IMMEDIATE_MAX);
            self.immediate_left = self.immediate_count;
        } else {
            self.immediate_count /= 2;
        }
        Some(held)
    }

    /// Keeps a message that a queue has accepted ([`DeferredSends::push`]).
    pub(crate) fn keep(&mut self, message: DeferredMessage) {
        self.message = Some(message);
    }

    /// Whether the next message may be deferred.
    pub(crate) fn is_open(&mut self) -> bool {
        let is_open = self.immediate_left == 0 && self.message.is_none();
        self.immediate_left = self.immediate_left.saturating_sub(1);
        is_open
    }
}

/// Whether a writer with these policies may ever defer a send. Its messages must not wait
/// for space, be kept, or be ordered among writers.
pub(crate) fn may_defer(qos: &EndpointQos) -> bool {
    qos.history != History::KeepAll && qos.durability == Durability::Volatile
}
