//! Background compression of complete files. The writer's thread continues with the next
//! file meanwhile.
//!
//! A queued file is on disk and costs one path of memory. Nothing is dropped: when a
//! limited queue is full, the writer waits.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};
use pteros::Context;

use crate::error::BagError;
use crate::file_compression::compress_file;

/// How a recorder compresses complete files, with [`compress_files`](crate::BagOptions::compress_files).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileCompression {
    /// Compressing threads; 0 means one per processor.
    pub threads: usize,
    /// Complete files in the queue. When it is full, the writer waits and messages fill
    /// the buffer; 0 means no limit.
    pub queue: usize,
    /// Nice value of the threads, from -20 to 19; `None` keeps that of the process. If
    /// the system refuses it, a warning is logged.
    pub nice: Option<i32>,
}

/// Queue of complete files between the writer's thread and compressing threads.
/// Thread-safe.
pub(crate) struct CompressionQueue {
    state: Mutex<CompressionState>,
    changed: Condvar,
    /// Files in the queue; `usize::MAX` is no limit.
    limit: usize,
}

#[derive(Default)]
struct CompressionState {
    waiting: VecDeque<PathBuf>,
    /// Files being compressed now.
    running: usize,
    error: Option<BagError>,
    is_closed: bool,
}

impl CompressionQueue {
    /// Creates a queue of `limit` files; 0 means no limit.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            state: Mutex::default(),
            changed: Condvar::new(),
            limit: if limit == 0 { usize::MAX } else { limit },
        }
    }

    /// Starts the compressing threads.
    ///
    /// # Errors
    /// The system's, if it cannot create a thread.
    pub(crate) fn start(context: &Context, options: FileCompression) -> std::io::Result<Arc<Self>> {
        let threads = match options.threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            threads => threads,
        };
        let queue = Arc::new(Self::new(options.queue));
        for _ in 0..threads {
            let files = queue.clone();
            let started = context.spawn_thread("bag_compress", move || {
                if let Some(nice) = options.nice
                    && let Err(error) = set_own_nice(nice)
                {
                    tracing::warn!(
                        "a compression thread keeps its priority: nice value {nice}: {error}"
                    );
                }
                files.compress_all();
            });
            if let Err(error) = started {
                queue.close();
                return Err(error);
            }
        }
        Ok(queue)
    }

    /// Appends a file. Blocks while the queue is full.
    pub(crate) fn push(&self, file: PathBuf) {
        let mut state = self.state.lock();
        while state.waiting.len() >= self.limit && !state.is_closed {
            self.changed.wait(&mut state);
        }
        state.waiting.push_back(file);
        self.changed.notify_all();
    }

    /// Compresses files until the queue is closed and empty. Several threads may run it.
    pub(crate) fn compress_all(&self) {
        let mut state = self.state.lock();
        loop {
            let Some(file) = state.waiting.pop_front() else {
                if state.is_closed {
                    return;
                }
                self.changed.wait(&mut state);
                continue;
            };
            state.running += 1;
            self.changed.notify_all();
            drop(state);
            let result = compress_file(&file);
            state = self.state.lock();
            state.running -= 1;
            if let Err(error) = result {
                state.error.get_or_insert(error);
            }
            self.changed.notify_all();
        }
    }

    /// Closes the queue. The threads end after the queued files.
    pub(crate) fn close(&self) {
        self.state.lock().is_closed = true;
        self.changed.notify_all();
    }

    /// Closes the queue and waits until every file is compressed.
    ///
    /// # Errors
    /// The first failed compression. That file is complete and uncompressed.
    pub(crate) fn finish(&self) -> Result<(), BagError> {
        self.close();
        let mut state = self.state.lock();
        while state.running > 0 || !state.waiting.is_empty() {
            self.changed.wait(&mut state);
        }
        state.error.take().map_or(Ok(()), Err)
    }
}

/// Sets the nice value of the calling thread: on Linux each thread has its own.
fn set_own_nice(nice: i32) -> std::io::Result<()> {
    let thread = rustix::thread::gettid();
    Ok(rustix::process::setpriority_process(Some(thread), nice)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pteros_test_support::folder::Folder;

    #[test]
    fn a_file_that_cannot_be_compressed_is_the_error_at_the_end() {
        let folder = Folder::new("compression-error");
        let queue = CompressionQueue::new(0);
        queue.push(folder.join("missing"));
        queue.push(folder.write("a", &[7; 5000]));
        queue.close();
        queue.compress_all();
        let error = queue.finish().unwrap_err().to_string();
        assert!(error.contains("missing"), "{error}");
        assert!(folder.join("a.zstd").exists());
    }
}
