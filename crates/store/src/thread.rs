//! The one storing thread of a process: it writes out the stores that have
//! something waiting, one after the other, and tries again after a second
//! where the disk refused. Started with the first store; publishing never
//! waits for it.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::store::Inner;

/// When a disk that refused is asked again.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Enough for the database, which runs on it.
const STACK_BYTES: usize = 1 << 20;

/// The door to the thread.
#[derive(Debug)]
pub(crate) struct Storing {
    ready: Mutex<VecDeque<Arc<Inner>>>,
    work: Condvar,
}

impl Storing {
    /// The process's storing thread, started on first use.
    pub fn of_process() -> io::Result<&'static Self> {
        static SHARED: OnceLock<Storing> = OnceLock::new();
        static STARTED: Mutex<bool> = Mutex::new(false);
        let shared = SHARED.get_or_init(|| Self {
            ready: Mutex::default(),
            work: Condvar::new(),
        });
        let mut started = STARTED.lock();
        if !*started {
            spawn(shared)?;
            *started = true;
        }
        Ok(shared)
    }

    /// Has a store written out soon.
    pub fn schedule(&self, store: Arc<Inner>) {
        self.ready.lock().push_back(store);
        self.work.notify_one();
    }

    fn run(&self) {
        let mut refused: VecDeque<Arc<Inner>> = VecDeque::new();
        loop {
            let next = {
                let mut ready = self.ready.lock();
                while ready.is_empty() && refused.is_empty() {
                    self.work.wait(&mut ready);
                }
                if ready.is_empty() && self.work.wait_for(&mut ready, RETRY_AFTER).timed_out() {
                    ready.append(&mut refused);
                }
                ready.pop_front()
            };
            if let Some(store) = next
                && !store.write_out()
            {
                refused.push_back(store);
            }
        }
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "a disk may take seconds, and nobody else may wait so long"
)]
fn spawn(shared: &'static Storing) -> io::Result<()> {
    std::thread::Builder::new()
        .name("pteros-store".into())
        .stack_size(STACK_BYTES)
        .spawn(|| shared.run())
        .map(drop)
}
