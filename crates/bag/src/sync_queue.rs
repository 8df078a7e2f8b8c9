//! Background sync: a thread makes the written part of a bag durable, so that the
//! writer's thread never waits for the device.
//!
//! At most one file is queued. A request during a sync is served after it.

use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

use crate::error::BagError;
use crate::file_store::BagFile;

/// Files to sync, between the writer's thread and the sync thread. Thread-safe.
#[derive(Default)]
pub(crate) struct SyncQueue {
    state: Mutex<SyncState>,
    changed: Condvar,
}

#[derive(Default)]
struct SyncState {
    file: Option<Arc<dyn BagFile>>,
    /// Whether a sync runs, or its error has not been reported yet.
    is_syncing: bool,
    is_closed: bool,
}

impl SyncQueue {
    /// Requests a sync of a file. Replaces a queued request: its file is the same one, or
    /// was synced when it was closed.
    pub(crate) fn push(&self, file: Arc<dyn BagFile>) {
        self.state.lock().file = Some(file);
        self.changed.notify_all();
    }

    /// Ends the thread after the current sync.
    pub(crate) fn close(&self) {
        self.state.lock().is_closed = true;
        self.changed.notify_all();
    }

    /// Main function of the sync thread, until [`close`](Self::close).
    pub(crate) fn sync_all(&self, mut on_error: impl FnMut(&BagError)) {
        while let Some(file) = self.next() {
            if let Err(error) = sync_file(&*file) {
                on_error(&error);
            }
            self.state.lock().is_syncing = false;
            self.changed.notify_all();
        }
    }

    /// Waits until the current sync has ended and its error is reported. None starts
    /// after [`close`](Self::close). Blocks until the device has answered.
    pub(crate) fn wait_until_idle(&self) {
        let mut state = self.state.lock();
        while state.is_syncing {
            self.changed.wait(&mut state);
        }
    }

    fn next(&self) -> Option<Arc<dyn BagFile>> {
        let mut state = self.state.lock();
        loop {
            if state.is_closed {
                return None;
            }
            if let Some(file) = state.file.take() {
                state.is_syncing = true;
                return Some(file);
            }
            self.changed.wait(&mut state);
        }
    }
}

/// Makes the written part of an open bag durable. Blocks until the device has stored it.
///
/// # Errors
/// The file system's.
pub(crate) fn sync_file(file: &dyn BagFile) -> Result<(), BagError> {
    file.sync().map_err(|error| {
        BagError::Invalid(format!(
            "syncing the bag's file: {error}; what was written before may be lost at a power cut"
        ))
    })
}
