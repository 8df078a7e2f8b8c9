//! A publisher's store: samples wait in memory until the storing thread writes
//! them, all waiting ones at once.
//!
//! Guarantee: a sample is stored when its batch is committed. With
//! `Safety::Process` the kernel has it then, and no end of the process loses it.
//! With `Safety::Disk` it is on the disk. A process killed before loses only the
//! waiting samples.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::error::StoreError;
use crate::file::StoreFile;
use crate::index::LimitExceeded;
use crate::location::file_name;
use crate::retention::{Depth, Retention};
use crate::sample::StoredSample;
use crate::simulated_disk::has_mutant;
use crate::spec::StoreSpec;
use crate::thread::StoringThread;

/// Limit of bytes that wait for the disk, per store. Beyond it a KEEP_LAST store
/// drops the oldest waiting sample, and a KEEP_ALL store refuses the new one. Both
/// report it.
pub const WAITING_BYTES_MAX: u64 = 64 << 20;

/// Published samples that are not, or not yet, in the store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Loss {
    /// Samples that will never be stored, since the store was opened.
    pub total: u64,
    /// Samples that wait for the disk.
    pub waiting: usize,
    /// The reason, with file and remedy.
    pub reason: String,
}

/// Callback for lost samples.
pub type OnLoss = Box<dyn Fn(Loss) + Send + Sync>;

/// Totals of a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StoreCounts {
    /// Samples in the file now.
    pub kept: usize,
    /// Bytes of those samples; the file is larger.
    pub bytes: u64,
    /// Samples that wait for the disk.
    pub waiting: usize,
    /// Samples not stored because of a limit, since it was opened.
    pub not_stored: u64,
}

/// A publisher's store; see the module. Dropping it closes it, which waits for the
/// disk.
pub struct Store {
    inner: Arc<Inner>,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Store")
            .field(&self.inner.spec.path())
            .finish()
    }
}

pub(crate) struct Inner {
    spec: StoreSpec,
    storing: &'static StoringThread,
    waiting: Mutex<WriteQueue>,
    /// Signalled after each batch.
    done: Condvar,
    /// Locked while a batch is written; `None` when it must be opened again.
    file: Mutex<Option<StoreFile>>,
    on_loss: OnLoss,
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.spec.fmt(f)
    }
}

#[derive(Default)]
struct WriteQueue {
    samples: VecDeque<StoredSample>,
    bytes: u64,
    /// A batch is being written.
    writing: bool,
    /// The storing thread is scheduled, or will retry by itself.
    scheduled: bool,
    closed: bool,
    /// The disk failed, and this was reported.
    failing: bool,
    /// Waiting samples were dropped, and this was reported.
    overrun: bool,
    counts: StoreCounts,
}

impl Store {
    /// Opens or creates the store, and returns its samples, oldest first. Blocks
    /// for the disk. `wall_nanos`: the wall clock, for the clean-up delay.
    /// `on_loss` is called without a lock, by the thread that detects the loss, at
    /// most once per batch.
    ///
    /// # Errors
    /// See [`StoreError`]. The file is then left unchanged.
    pub fn open(
        spec: StoreSpec,
        wall_nanos: i64,
        on_loss: OnLoss,
    ) -> Result<(Self, Vec<StoredSample>), StoreError> {
        if !cfg!(feature = "database") {
            return Err(StoreError::NotBuilt);
        }
        file_name(&spec.name)?;
        let storing = StoringThread::of_process().map_err(|e| StoreError::Thread(e.to_string()))?;
        let (file, samples) = StoreFile::open(&spec, wall_nanos)?;
        let inner = Arc::new(Inner::new(spec, storing, file, on_loss));
        Ok((Self { inner }, samples))
    }

    /// Queues a sample to be stored. Never waits for the disk. Costs a lock, a
    /// queue entry and, when the storing thread sleeps, a wake-up.
    pub fn put(&self, sample: StoredSample) {
        self.inner.put(sample);
    }

    /// The file.
    pub fn path(&self) -> PathBuf {
        self.inner.spec.path()
    }

    /// The totals.
    pub fn counts(&self) -> StoreCounts {
        let waiting = self.inner.waiting.lock();
        StoreCounts {
            waiting: waiting.samples.len(),
            ..waiting.counts
        }
    }

    /// Waits until no sample waits for the disk, at most `timeout`. Returns whether
    /// that is so and no sample was refused.
    pub fn wait_until_stored(&self, timeout: Duration) -> bool {
        let mut waiting = self.inner.waiting.lock();
        let busy = |w: &mut WriteQueue| !w.samples.is_empty() || w.writing;
        let in_time = !self
            .inner
            .done
            .wait_while_for(&mut waiting, busy, timeout)
            .timed_out();
        in_time && waiting.counts.not_stored == 0
    }

    /// Writes the waiting samples and closes the file. Blocks for the disk. Later
    /// samples are not stored.
    pub fn close(&self) {
        self.inner.close();
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.close();
    }
}

impl Inner {
    fn new(
        spec: StoreSpec,
        storing: &'static StoringThread,
        file: StoreFile,
        on_loss: OnLoss,
    ) -> Self {
        let mut waiting = WriteQueue::default();
        waiting.counts.kept = file.samples();
        waiting.counts.bytes = file.bytes();
        Self {
            spec,
            storing,
            waiting: Mutex::new(waiting),
            done: Condvar::new(),
            file: Mutex::new(Some(file)),
            on_loss,
        }
    }

    /// A store that is written only when the test says so.
    #[cfg(all(test, feature = "database"))]
    pub(crate) fn open_undriven(
        spec: StoreSpec,
        on_loss: OnLoss,
    ) -> Result<(Arc<Self>, Vec<StoredSample>), StoreError> {
        let (file, samples) = StoreFile::open(&spec, 0)?;
        let inner = Self::new(spec, StoringThread::never_running(), file, on_loss);
        Ok((Arc::new(inner), samples))
    }

    /// Bytes that wait for the disk.
    #[cfg(all(test, feature = "database"))]
    pub(crate) fn waiting_bytes(&self) -> u64 {
        self.waiting.lock().bytes
    }

    /// The process is killed: nothing is written any more.
    #[cfg(all(test, feature = "database"))]
    pub(crate) fn forget(&self) {
        std::mem::forget(self.file.lock().take());
    }

    pub(crate) fn put(self: &Arc<Self>, sample: StoredSample) {
        let mut waiting = self.waiting.lock();
        if waiting.closed {
            return;
        }
        let weight = sample.weight();
        let lost = match self.spec.retention.depth {
            Depth::KeepLast(_) => waiting.make_room(&self.spec.retention, &sample),
            Depth::KeepAll if waiting.bytes.saturating_add(weight) > WAITING_BYTES_MAX => {
                waiting.counts.not_stored += 1;
                drop(waiting);
                self.report_overrun();
                return;
            }
            Depth::KeepAll => 0,
        };
        waiting.counts.not_stored += lost;
        waiting.bytes = waiting.bytes.saturating_add(weight);
        waiting.samples.push_back(sample);
        let wake = !std::mem::replace(&mut waiting.scheduled, true);
        drop(waiting);
        if wake {
            self.storing.schedule(self.clone());
        }
        if lost > 0 {
            self.report_overrun();
        }
    }

    /// Writes the waiting samples as one batch. Returns false if the disk failed:
    /// the caller retries.
    pub(crate) fn write_out(&self) -> bool {
        // Locked before the queue, so that batches stay in order.
        let mut file = self.file.lock();
        let mut waiting = self.waiting.lock();
        if waiting.closed && waiting.samples.is_empty() {
            return true;
        }
        let batch: Vec<StoredSample> = std::mem::take(&mut waiting.samples).into();
        waiting.bytes = 0;
        waiting.scheduled = false;
        waiting.overrun = false;
        waiting.writing = true;
        drop(waiting);

        let result = self.commit(&mut file, &batch);
        let kept = file.as_ref().map(|f| (f.samples(), f.bytes()));
        drop(file);

        let mut waiting = self.waiting.lock();
        waiting.writing = false;
        if let Some((kept, bytes)) = kept {
            waiting.counts.kept = kept;
            waiting.counts.bytes = bytes;
        }
        let was_failing = std::mem::replace(&mut waiting.failing, result.is_err());
        let reason = match &result {
            Ok(refused) => {
                waiting.counts.not_stored += refused.len() as u64;
                refused.first().map(|exceeded| self.full_text(*exceeded))
            }
            Err(error) => {
                for sample in batch.into_iter().rev() {
                    if has_mutant("failed-batch-dropped") {
                        break;
                    }
                    waiting.bytes = waiting.bytes.saturating_add(sample.weight());
                    waiting.samples.push_front(sample);
                }
                waiting.scheduled = true;
                let tells = !was_failing || has_mutant("failing-disk-reported-each-time");
                (tells && !has_mutant("failing-disk-not-reported"))
                    .then(|| format!("{error}; samples wait for it, live traffic goes on"))
            }
        };
        let closed = waiting.closed;
        let loss = reason.map(|reason| Loss {
            total: waiting.counts.not_stored,
            waiting: waiting.samples.len(),
            reason,
        });
        drop(waiting);
        self.done.notify_all();
        if let Some(loss) = loss {
            (self.on_loss)(loss);
        }
        result.is_ok() || closed
    }

    fn commit(
        &self,
        file: &mut Option<StoreFile>,
        batch: &[StoredSample],
    ) -> Result<Vec<LimitExceeded>, StoreError> {
        let (mut open, missing) = match file.take() {
            Some(open) => (open, batch),
            None => {
                // The last commit may have succeeded despite its error.
                let (open, known) = StoreFile::open(&self.spec, i64::MIN)?;
                let known: BTreeSet<_> = known.iter().map(|sample| sample.origin).collect();
                let there = batch
                    .iter()
                    .rposition(|sample| known.contains(&sample.origin))
                    .filter(|_| !has_mutant("batch-written-twice"))
                    .map_or(0, |at| at + 1);
                (open, batch.get(there..).unwrap_or_default())
            }
        };
        let refused = open.commit(missing)?;
        *file = Some(open);
        Ok(refused)
    }

    fn close(&self) {
        let mut waiting = self.waiting.lock();
        if std::mem::replace(&mut waiting.closed, true) {
            return;
        }
        drop(waiting);
        self.write_out();
        let mut file = self.file.lock();
        *file = None;
        let mut waiting = self.waiting.lock();
        let lost = waiting.samples.len();
        waiting.samples.clear();
        waiting.counts.not_stored += lost as u64;
        if lost > 0 {
            tracing::warn!(
                "store {}: {lost} samples could not be stored before it was closed",
                self.spec.path().display()
            );
        }
        drop(waiting);
        self.done.notify_all();
    }

    /// Reports once, until a batch has been written.
    fn report_overrun(&self) {
        let mut waiting = self.waiting.lock();
        if std::mem::replace(&mut waiting.overrun, true) {
            return;
        }
        let loss = Loss {
            total: waiting.counts.not_stored,
            waiting: waiting.samples.len(),
            reason: format!(
                "store {}: the disk is too slow, {} MiB wait for it; publish less, keep \
                 fewer samples, or use a faster disk",
                self.spec.path().display(),
                WAITING_BYTES_MAX >> 20
            ),
        };
        drop(waiting);
        (self.on_loss)(loss);
    }

    fn full_text(&self, exceeded: LimitExceeded) -> String {
        let retention = &self.spec.retention;
        let limit = match exceeded {
            LimitExceeded::Samples => format!("{} samples", retention.samples_max()),
            LimitExceeded::Instances => format!("{} instances", retention.instances_max),
            LimitExceeded::SamplesOfInstance => {
                format!(
                    "{} samples of one instance",
                    retention.samples_per_instance_max
                )
            }
            LimitExceeded::Bytes => format!("{} bytes", retention.bytes_max),
        };
        format!(
            "store {} is full: its limit is {limit}; raise the durability service's resource \
             limits or PTEROS_STORE_BYTES, or keep the last samples only",
            self.spec.path().display()
        )
    }
}

impl WriteQueue {
    /// Drops waiting samples that a KEEP_LAST store would replace anyway. Returns
    /// how many of them may have been stored otherwise.
    fn make_room(&mut self, retention: &Retention, sample: &StoredSample) -> u64 {
        let (depth, _) = retention.per_instance();
        if sample.key_hash.is_none() {
            while self.samples.len() >= depth && self.pop() {}
        }
        let mut lost = 0;
        while self.bytes.saturating_add(sample.weight()) > WAITING_BYTES_MAX
            && !has_mutant("waits-without-limit")
            && self.pop()
        {
            lost += 1;
        }
        lost
    }

    fn pop(&mut self) -> bool {
        let Some(oldest) = self.samples.pop_front() else {
            return false;
        };
        self.bytes = self.bytes.saturating_sub(oldest.weight());
        true
    }
}
