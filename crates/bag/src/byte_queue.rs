//! A queue between two threads, bounded by bytes.

use std::collections::VecDeque;

use parking_lot::{Condvar, Mutex};

/// Items with their sizes. What does not fit is given back.
pub(crate) struct ByteQueue<T> {
    state: Mutex<QueueState<T>>,
    changed: Condvar,
    bytes_max: usize,
}

struct QueueState<T> {
    items: VecDeque<(usize, T)>,
    bytes: usize,
    is_closed: bool,
}

impl<T> ByteQueue<T> {
    pub(crate) fn new(bytes_max: usize) -> Self {
        let state = QueueState {
            items: VecDeque::new(),
            bytes: 0,
            is_closed: false,
        };
        Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
            bytes_max,
        }
    }

    /// Whether `bytes` more fit. One item always fits into an empty queue.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        let state = self.state.lock();
        state.items.is_empty() || state.bytes + bytes <= self.bytes_max
    }

    /// Appends an item, whatever its size: the caller has asked for room.
    pub(crate) fn push(&self, bytes: usize, item: T) {
        let mut state = self.state.lock();
        state.bytes += bytes;
        state.items.push_back((bytes, item));
        self.changed.notify_one();
    }

    /// Waits for an item; `None` once the queue is closed and empty.
    pub(crate) fn pop(&self) -> Option<T> {
        let mut state = self.state.lock();
        loop {
            if let Some((bytes, item)) = state.items.pop_front() {
                state.bytes -= bytes;
                return Some(item);
            }
            if state.is_closed {
                return None;
            }
            self.changed.wait(&mut state);
        }
    }

    /// No more items come.
    pub(crate) fn close(&self) {
        self.state.lock().is_closed = true;
        self.changed.notify_all();
    }
}
