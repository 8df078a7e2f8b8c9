//! Requests that wait for another node or for the disk. Each viewer has a thread for them,
//! from the first one on, so that its data go on meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use crate::client::Client;
use crate::protocol::{self, Level};

/// Requests that wait. Further ones are refused.
const WAITING_MAX: usize = 64;

type Work = Box<dyn FnOnce() -> Result<(), String> + Send>;

/// The requests of one viewer, one after the other.
pub struct Requests {
    client: Arc<Client>,
    worker: Option<Worker>,
    /// The viewer has left: what waits is dropped.
    is_over: Arc<AtomicBool>,
}

struct Worker {
    queue: SyncSender<Work>,
    thread: JoinHandle<()>,
}

impl Requests {
    /// Without a thread.
    pub fn new(client: &Arc<Client>) -> Self {
        Self {
            client: client.clone(),
            worker: None,
            is_over: Arc::default(),
        }
    }

    /// Runs `work` later. Its error becomes a status.
    ///
    /// # Errors
    /// Too many wait, or the system has no threads left.
    pub fn run(
        &mut self,
        work: impl FnOnce() -> Result<(), String> + Send + 'static,
    ) -> Result<(), String> {
        let worker = match self.worker.take() {
            Some(worker) => worker,
            None => self.start()?,
        };
        self.worker
            .insert(worker)
            .queue
            .try_send(Box::new(work))
            .map_err(|error| match error {
                TrySendError::Full(_) => format!("{WAITING_MAX} requests wait already"),
                TrySendError::Disconnected(_) => "the thread of requests has ended".into(),
            })
    }

    fn start(&self) -> Result<Worker, String> {
        let (queue, waiting) = sync_channel::<Work>(WAITING_MAX);
        let (client, is_over) = (self.client.clone(), self.is_over.clone());
        let run = move || {
            for work in waiting {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                if let Err(reason) = work() {
                    let status = protocol::status(Level::Error, None, &reason);
                    client.outbox.send(status);
                }
            }
        };
        let thread = std::thread::Builder::new().name("pteros-view-req".into());
        let thread = thread.spawn(run);
        let thread = thread.map_err(|error| format!("starting a thread: {error}"))?;
        Ok(Worker { queue, thread })
    }
}

impl Drop for Requests {
    fn drop(&mut self) {
        if let Some(Worker { queue, thread }) = self.worker.take() {
            self.is_over.store(true, Ordering::Relaxed);
            drop(queue);
            // A panic of the thread was printed.
            let _ = thread.join();
        }
    }
}
