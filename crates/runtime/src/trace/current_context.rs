//! Current trace context of a thread: the callback it runs, the message it
//! publishes, the datagram it has just received.
//!
//! Process-wide and not per context: a callback of one context may publish in
//! another, and is still the cause.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use pteros_rtps::id::Guid;
use pteros_rtps::time::Instant;

use crate::sample::{DeliveryPath, SampleMeta};

/// Span numbers of callbacks, unique in the process; 0 is none.
static SPANS: AtomicU64 = AtomicU64::new(1);

static THREADS: AtomicU32 = AtomicU32::new(1);

thread_local! {
    static THREAD_CONTEXT: ThreadContext = const { ThreadContext::new() };
}

struct ThreadContext {
    thread: Cell<u32>,
    span: Cell<u64>,
    call: Cell<Option<CallbackContext>>,
    began: Cell<Option<Instant>>,
    publish: Cell<Option<PublishContext>>,
    arrived_at: Cell<Option<Instant>>,
}

impl ThreadContext {
    const fn new() -> Self {
        Self {
            thread: Cell::new(0),
            span: Cell::new(0),
            call: Cell::new(None),
            began: Cell::new(None),
            publish: Cell::new(None),
            arrived_at: Cell::new(None),
        }
    }
}

/// The callback that this thread runs.
#[derive(Clone, Copy)]
pub(crate) struct CallbackContext {
    pub began_at: Instant,
    /// The sample taken for it, and when.
    pub taken: Option<(CallbackInput, Instant)>,
    pub started: Option<Instant>,
}

/// A taken sample.
#[derive(Clone, Copy)]
pub(crate) struct CallbackInput {
    pub writer: Guid,
    pub sequence: i64,
    pub path: DeliveryPath,
    pub bytes: u32,
}

impl CallbackInput {
    pub fn new(meta: &SampleMeta, bytes: usize) -> Self {
        Self {
            writer: meta.publisher,
            sequence: meta.sequence,
            path: meta.path,
            bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
        }
    }
}

/// The message that this thread publishes.
#[derive(Clone, Copy)]
pub(crate) struct PublishContext {
    pub began: Instant,
    pub entered: Instant,
    pub serialized: Option<(Instant, Instant)>,
    pub bytes: u32,
    pub handed: Option<Instant>,
}

/// The number of this thread, from 1.
pub(crate) fn thread() -> u32 {
    THREAD_CONTEXT.with(|context| {
        if context.thread.get() == 0 {
            context.thread.set(THREADS.fetch_add(1, Ordering::Relaxed));
        }
        context.thread.get()
    })
}

pub(crate) fn next_span() -> u64 {
    SPANS.fetch_add(1, Ordering::Relaxed)
}

/// The span of the callback that this thread runs; 0 without one, or untraced.
pub fn span() -> u64 {
    THREAD_CONTEXT.with(|context| context.span.get())
}

/// Continues another callback's span until dropped, as when a future that it
/// started is polled.
pub struct SpanGuard {
    outer: u64,
    /// It belongs to this thread.
    _not_send: PhantomData<*const ()>,
}

impl SpanGuard {
    /// Continues the callback with this [`span`].
    pub fn span(span: u64) -> Self {
        Self {
            outer: THREAD_CONTEXT.with(|context| context.span.replace(span)),
            _not_send: PhantomData,
        }
    }

    /// Marks work of the runtime itself, which neither a callback nor the program has
    /// started.
    pub(crate) fn detached() -> Self {
        Self::span(next_span())
    }
}

impl Drop for SpanGuard {
    fn drop(&mut self) {
        THREAD_CONTEXT.with(|context| context.span.set(self.outer));
    }
}

pub(crate) fn replace_call(call: Option<CallbackContext>) -> Option<CallbackContext> {
    THREAD_CONTEXT.with(|context| context.call.replace(call))
}

/// Changes the running callback; `None` without one.
pub(crate) fn with_call<R>(change: impl FnOnce(&mut CallbackContext) -> R) -> Option<R> {
    THREAD_CONTEXT.with(|context| {
        let mut call = context.call.get()?;
        let result = change(&mut call);
        context.call.set(Some(call));
        Some(result)
    })
}

pub(crate) fn set_publish_began(now: Instant) {
    THREAD_CONTEXT.with(|context| context.began.set(Some(now)));
}

pub(crate) fn take_publish_began() -> Option<Instant> {
    THREAD_CONTEXT.with(|context| context.began.take())
}

pub(crate) fn replace_publish(publish: Option<PublishContext>) -> Option<PublishContext> {
    THREAD_CONTEXT.with(|context| context.publish.replace(publish))
}

/// Changes the message that is being published, if any.
pub(crate) fn with_publish(change: impl FnOnce(&mut PublishContext)) {
    THREAD_CONTEXT.with(|context| {
        if let Some(mut publish) = context.publish.get() {
            change(&mut publish);
            context.publish.set(Some(publish));
        }
    });
}

pub(crate) fn set_arrived_at(now: Instant) {
    THREAD_CONTEXT.with(|context| context.arrived_at.set(Some(now)));
}

pub(crate) fn arrived_at() -> Option<Instant> {
    THREAD_CONTEXT.with(|context| context.arrived_at.get())
}
