//! Bounded queue between two threads, with limits of bytes and items.

use std::collections::VecDeque;

use parking_lot::{Condvar, Mutex};

/// Items with their sizes.
pub(crate) struct ByteQueue<T> {
    state: Mutex<QueueState<T>>,
    changed: Condvar,
    bytes_max: usize,
    items_max: usize,
}

struct QueueState<T> {
    items: VecDeque<(usize, T)>,
    bytes: usize,
    is_closed: bool,
}

impl<T> ByteQueue<T> {
    /// Creates a queue that is bounded by bytes only.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self::bounded(bytes_max, usize::MAX)
    }

    pub(crate) fn bounded(bytes_max: usize, items_max: usize) -> Self {
        let state = QueueState {
            items: VecDeque::new(),
            bytes: 0,
            is_closed: false,
        };
        Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
            bytes_max,
            items_max,
        }
    }

    /// Whether `bytes` more have space. An empty queue accepts any single item.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        self.fits(&self.state.lock(), bytes)
    }

    fn fits(&self, state: &QueueState<T>, bytes: usize) -> bool {
        let fits = state.bytes + bytes <= self.bytes_max && state.items.len() < self.items_max;
        state.items.is_empty() || fits
    }

    /// Appends an item of any size: the caller has checked for space.
    pub(crate) fn push(&self, bytes: usize, item: T) {
        let mut state = self.state.lock();
        state.bytes += bytes;
        state.items.push_back((bytes, item));
        self.changed.notify_all();
    }

    /// Waits for space and appends an item. Returns false if the queue is closed.
    pub(crate) fn push_when_free(&self, bytes: usize, item: T) -> bool {
        let mut state = self.state.lock();
        while !state.is_closed && !self.fits(&state, bytes) {
            self.changed.wait(&mut state);
        }
        if state.is_closed {
            return false;
        }
        state.bytes += bytes;
        state.items.push_back((bytes, item));
        self.changed.notify_all();
        true
    }

    /// Waits for an item. Returns `None` once the queue is closed and empty.
    pub(crate) fn pop(&self) -> Option<T> {
        let mut state = self.state.lock();
        loop {
            if let Some((bytes, item)) = state.items.pop_front() {
                state.bytes -= bytes;
                self.changed.notify_all();
                return Some(item);
            }
            if state.is_closed {
                return None;
            }
            self.changed.wait(&mut state);
        }
    }

    /// Takes the next item without waiting.
    pub(crate) fn try_pop(&self) -> Option<T> {
        let mut state = self.state.lock();
        let (bytes, item) = state.items.pop_front()?;
        state.bytes -= bytes;
        self.changed.notify_all();
        Some(item)
    }

    /// Whether [`close`](Self::close) or [`abandon`](Self::abandon) was called.
    pub(crate) fn is_closed(&self) -> bool {
        self.state.lock().is_closed
    }

    /// Closes the queue for new items. Queued ones can be taken.
    pub(crate) fn close(&self) {
        self.state.lock().is_closed = true;
        self.changed.notify_all();
    }

    /// Closes the queue for new items and drops the queued ones.
    pub(crate) fn abandon(&self) {
        let mut state = self.state.lock();
        state.is_closed = true;
        state.items.clear();
        state.bytes = 0;
        self.changed.notify_all();
    }
}
