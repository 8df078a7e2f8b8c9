//! What this thread is in the middle of: the callback it runs, the message it
//! publishes, the datagram it has just received.
//!
//! Process-wide and not per context: a callback of one context may publish in
//! another, and is the cause all the same.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use pteros_rtps::id::Guid;
use pteros_rtps::time::Instant;

use crate::sample::{Path, SampleMeta};

/// Numbers of callbacks, unique in the process; 0 is none.
static SPANS: AtomicU64 = AtomicU64::new(1);

static THREADS: AtomicU32 = AtomicU32::new(1);

thread_local! {
    static HERE: Here = const { Here::new() };
}

struct Here {
    thread: Cell<u32>,
    span: Cell<u64>,
    call: Cell<Option<Call>>,
    began: Cell<Option<Instant>>,
    draft: Cell<Option<Draft>>,
    arrived: Cell<Option<Instant>>,
}

impl Here {
    const fn new() -> Self {
        Self {
            thread: Cell::new(0),
            span: Cell::new(0),
            call: Cell::new(None),
            began: Cell::new(None),
            draft: Cell::new(None),
            arrived: Cell::new(None),
        }
    }
}

/// A callback that this thread runs.
#[derive(Clone, Copy)]
pub(super) struct Call {
    pub began: Instant,
    /// What was taken for it, and when.
    pub taken: Option<(Input, Instant)>,
    pub started: Option<Instant>,
}

/// A sample that was taken.
#[derive(Clone, Copy)]
pub(super) struct Input {
    pub writer: Guid,
    pub sequence: i64,
    pub path: Path,
    pub bytes: u32,
}

impl Input {
    pub fn new(meta: &SampleMeta, bytes: usize) -> Self {
        Self {
            writer: meta.publisher,
            sequence: meta.sequence,
            path: meta.path,
            bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
        }
    }
}

/// A message that this thread publishes.
#[derive(Clone, Copy)]
pub(super) struct Draft {
    pub began: Instant,
    pub entered: Instant,
    pub serialized: Option<(Instant, Instant)>,
    pub bytes: u32,
    pub handed: Option<Instant>,
}

/// A number of this thread, from 1 on.
pub(super) fn thread() -> u32 {
    HERE.with(|here| {
        if here.thread.get() == 0 {
            here.thread.set(THREADS.fetch_add(1, Ordering::Relaxed));
        }
        here.thread.get()
    })
}

pub(super) fn next_span() -> u64 {
    SPANS.fetch_add(1, Ordering::Relaxed)
}

/// The callback that this thread runs, 0 without one or untraced.
pub fn span() -> u64 {
    HERE.with(|here| here.span.get())
}

/// Until it is dropped this thread does what another callback has begun: a
/// future that it started is polled.
pub struct On {
    outer: u64,
    /// It is this thread's.
    _not_send: PhantomData<*const ()>,
}

impl On {
    /// Goes on with a callback, by its [`span`].
    pub fn span(span: u64) -> Self {
        Self {
            outer: HERE.with(|here| here.span.replace(span)),
            _not_send: PhantomData,
        }
    }

    /// Does what no callback has begun, nor this thread's program: the runtime's
    /// own work.
    pub(crate) fn apart() -> Self {
        Self::span(next_span())
    }
}

impl Drop for On {
    fn drop(&mut self) {
        HERE.with(|here| here.span.set(self.outer));
    }
}

pub(super) fn replace_call(call: Option<Call>) -> Option<Call> {
    HERE.with(|here| here.call.replace(call))
}

/// Changes the callback that runs here; `None` if none does.
pub(super) fn with_call<R>(change: impl FnOnce(&mut Call) -> R) -> Option<R> {
    HERE.with(|here| {
        let mut call = here.call.get()?;
        let result = change(&mut call);
        here.call.set(Some(call));
        Some(result)
    })
}

pub(super) fn set_began(now: Instant) {
    HERE.with(|here| here.began.set(Some(now)));
}

pub(super) fn take_began() -> Option<Instant> {
    HERE.with(|here| here.began.take())
}

pub(super) fn replace_draft(draft: Option<Draft>) -> Option<Draft> {
    HERE.with(|here| here.draft.replace(draft))
}

/// Changes what is published here, if something is.
pub(super) fn with_draft(change: impl FnOnce(&mut Draft)) {
    HERE.with(|here| {
        if let Some(mut draft) = here.draft.get() {
            change(&mut draft);
            here.draft.set(Some(draft));
        }
    });
}

pub(super) fn set_arrived(now: Instant) {
    HERE.with(|here| here.arrived.set(Some(now)));
}

pub(super) fn arrived() -> Option<Instant> {
    HERE.with(|here| here.arrived.get())
}
