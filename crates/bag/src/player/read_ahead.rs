//! Reads messages ahead of their time on a thread of its own, so that a slow disk or a
//! compressed chunk delays no message.

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::{Condvar, Mutex};
use pteros::Context;

use super::state::Shared;
use crate::byte_queue::ByteQueue;
use crate::error::BagError;
use crate::reader::{BagMessage, BagReader, MessageFilter};

/// Bytes that are read ahead at most; one larger message still passes.
const BYTES_MAX: usize = 64 << 20;

/// The messages of one round.
pub(super) struct ReadAhead {
    queue: Arc<ByteQueue<BagMessage>>,
    returned: Arc<Returned>,
}

/// Where the reader comes back.
struct Returned {
    bag: Mutex<Option<BagReader>>,
    changed: Condvar,
}

impl ReadAhead {
    /// Begins to read the messages of a filter, `count` ahead at most, until playback is
    /// stopped.
    ///
    /// # Errors
    /// The operating system's, when it cannot create a thread. The bag is lost then.
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
                // A view would keep its whole chunk.
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

    /// The next message; `None` at the end. Blocks while the disk is slow.
    pub(super) fn next(&self) -> Option<BagMessage> {
        self.queue.pop()
    }

    /// Stops reading, and returns the bag.
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
