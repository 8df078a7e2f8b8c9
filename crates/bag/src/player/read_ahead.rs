//! Read-ahead: a thread reads messages before they are due, so that a slow disk or a
//! compressed chunk delays none.

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::{Condvar, Mutex};
use pteros::Context;

use super::state::Shared;
use crate::byte_queue::ByteQueue;
use crate::error::BagError;
use crate::reader::{BagMessage, BagReader, MessageFilter};

/// Limit of bytes read ahead. A single larger message is accepted.
const BYTES_MAX: usize = 64 << 20;

/// Messages of one round of playback.
pub(super) struct ReadAhead {
    queue: Arc<ByteQueue<BagMessage>>,
    returned: Arc<Returned>,
}

/// Slot in which the thread returns the bag reader.
struct Returned {
    bag: Mutex<Option<BagReader>>,
    changed: Condvar,
}

impl ReadAhead {
    /// Starts the thread, which reads the messages of a filter, at most `count` ahead,
    /// until playback is stopped.
    ///
    /// # Errors
    /// The system's, if it cannot create a thread. The bag reader is lost then.
    pub(super) fn start(
        context: &Context,
        shared: &Arc<Shared>,
        mut bag: BagReader,
        filter: MessageFilter,
        count: usize,
    ) -> Result<Self, BagError> {
        let queue = Arc::new(ByteQueue::bounded(BYTES_MAX, count));
        let returned = Arc::new(Returned {
            bag: Mutex::new(None),
            changed: Condvar::new(),
        });
        let (filled, home) = (queue.clone(), returned.clone());
        let (watched, stopped) = (queue.clone(), shared.clone());
        bag.interrupt_when(move || watched.is_closed() || stopped.is_stopped());
        let spawned = context.spawn_thread("bag_reader", move || {
            for mut message in bag.messages(filter) {
                // A view would keep its whole chunk in memory.
                message.payload = Bytes::copy_from_slice(&message.payload);
                if !filled.push_when_free(message.payload.len(), message) {
                    break;
                }
            }
            filled.close();
            *home.bag.lock() = Some(bag);
            home.changed.notify_all();
        });
        spawned.map_err(|error| {
            BagError::Invalid(format!("starting the thread that reads the bag: {error}"))
        })?;
        Ok(Self { queue, returned })
    }

    /// Returns the next message, `None` at the end. Blocks while the disk is slow.
    pub(super) fn next(&self) -> Option<BagMessage> {
        self.queue.pop()
    }

    /// Stops reading, and returns the bag reader.
    pub(super) fn finish(self) -> BagReader {
        self.queue.abandon();
        let mut bag = self.returned.bag.lock();
        loop {
            if let Some(bag) = bag.take() {
                return bag;
            }
            self.returned.changed.wait(&mut bag);
        }
    }
}
