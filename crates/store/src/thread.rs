//! The storing thread: one per process. It writes the stores that have waiting
//! samples, one after another, and retries after a second if the disk fails. It
//! starts with the first store; publishing never waits for it.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::store::Inner;

/// Pause before a failed disk is retried.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Enough for the database, which runs on this thread.
const STACK_BYTES: usize = 1 << 20;

/// Handle of the thread.
#[derive(Debug)]
pub(crate) struct StoringThread {
    ready: Mutex<VecDeque<Arc<Inner>>>,
    work: Condvar,
}

impl StoringThread {
    /// The process's storing thread, started on first use.
    pub fn of_process() -> io::Result<&'static Self> {
        static SHARED: OnceLock<StoringThread> = OnceLock::new();
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

    /// One that never runs: a test writes the stores out itself.
    #[cfg(all(test, feature = "database"))]
    pub fn never_running() -> &'static Self {
        static NEVER: StoringThread = StoringThread {
            ready: Mutex::new(VecDeque::new()),
            work: Condvar::new(),
        };
        &NEVER
    }

    /// Queues a store to be written.
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
    reason = "a disk may block for seconds, which no other thread should wait for"
)]
fn spawn(shared: &'static StoringThread) -> io::Result<()> {
    std::thread::Builder::new()
        .name("pteros-store".into())
        .stack_size(STACK_BYTES)
        .spawn(|| shared.run())
        .map(drop)
}
