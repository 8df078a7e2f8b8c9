//! Simulated disk for tests: fails, fills up, and loses at a power cut what it has not
//! synced. Without tests only the switch of the mutants is left, which is off.
//!
//! A test drives a store on its own thread: it adds samples, writes them out when it
//! likes (a slow disk), kills the process and cuts the power. An oracle knows what was
//! published and what was reported. Its rules:
//!
//! - *Durability*: a sample whose batch was written, and that the retention keeps, is
//!   restored, in order, after a kill or, with `Safety::Disk`, a power cut.
//! - *No invention*: what is restored was published, once.
//! - *Silence*: a failing disk is reported once, until it works again.
//! - *Recovery*: once the disk works, everything that waits is stored.
//! - *Fairness*: what waits stays within its limit.

/// Whether this mutant, a bug that the rules must notice, is on in this thread.
#[cfg(not(all(test, feature = "database")))]
pub(crate) const fn has_mutant(_name: &str) -> bool {
    false
}

#[cfg(all(test, feature = "database"))]
pub(crate) use tests::{backend_of_thread, has_mutant};

#[cfg(all(test, feature = "database"))]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::collections::BTreeSet;
    use std::io;
    use std::ops::Bound;
    use std::sync::Arc;

    use bytes::Bytes;
    use parking_lot::Mutex;
    use redb::{BackendError, StorageBackend};

    use crate::retention::{Depth, Retention};
    use crate::sample::{Origin, StoredSample};
    use crate::spec::{Safety, StoreSpec};
    use crate::store::{Inner, Loss, WAITING_BYTES_MAX};

    thread_local! {
        static MUTANT: Cell<&'static str> = const { Cell::new("") };
        static DISK: RefCell<Option<SimulatedDisk>> = const { RefCell::new(None) };
    }

    /// Whether this mutant is on in this thread.
    pub(crate) fn has_mutant(name: &str) -> bool {
        MUTANT.get() == name
    }

    /// The simulated disk of this thread, and whether its file is new.
    pub(crate) fn backend_of_thread() -> Option<(Box<dyn StorageBackend>, bool)> {
        let disk = DISK.with_borrow(Clone::clone)?;
        let is_new = disk.0.lock().bytes.is_empty();
        Some((Box::new(disk), is_new))
    }

    /// A small random generator (splitmix64), so that a seed replays a run.
    struct Random(u64);

    impl Random {
        fn next(&mut self) -> u64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        }

        fn below(&mut self, limit: u64) -> u64 {
            self.next() % limit
        }

        fn percent(&mut self, chance: u64) -> bool {
            self.below(100) < chance
        }
    }

    /// A change of the file that is not synced.
    enum Unsynced {
        Length(u64),
        Write(u64, Vec<u8>),
    }

    struct DiskState {
        /// The content that a process reads.
        bytes: Vec<u8>,
        /// The content that outlives a power cut in any case.
        synced: Vec<u8>,
        unsynced: Vec<Unsynced>,
        random: Random,
        /// Chance of an error, per cent of the writes and syncs.
        errors_percent: u64,
        /// Bytes that the file may have.
        space_bytes: u64,
        /// Writes and syncs that failed.
        failed: u64,
    }

    /// One file on a disk with faults.
    #[derive(Clone)]
    struct SimulatedDisk(Arc<Mutex<DiskState>>);

    impl std::fmt::Debug for SimulatedDisk {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("SimulatedDisk")
        }
    }

    fn apply(bytes: &mut Vec<u8>, change: &Unsynced) {
        match change {
            Unsynced::Length(length) => bytes.resize(usize::try_from(*length).unwrap(), 0),
            Unsynced::Write(offset, data) => {
                let at = usize::try_from(*offset).unwrap();
                let end = at + data.len();
                bytes.resize(bytes.len().max(end), 0);
                bytes[at..end].copy_from_slice(data);
            }
        }
    }

    impl SimulatedDisk {
        fn new(seed: u64) -> Self {
            Self(Arc::new(Mutex::new(DiskState {
                bytes: Vec::new(),
                synced: Vec::new(),
                unsynced: Vec::new(),
                random: Random(seed),
                errors_percent: 0,
                space_bytes: u64::MAX,
                failed: 0,
            })))
        }

        /// Of the unsynced changes any may be lost, in any combination.
        fn cut_power(&self) {
            let mut disk = self.0.lock();
            let unsynced = std::mem::take(&mut disk.unsynced);
            let mut left = disk.synced.clone();
            for change in &unsynced {
                if disk.random.percent(50) {
                    apply(&mut left, change);
                }
            }
            disk.synced.clone_from(&left);
            disk.bytes = left;
        }

        fn heal(&self) {
            let mut disk = self.0.lock();
            disk.errors_percent = 0;
            disk.space_bytes = u64::MAX;
        }

        fn change(&self, change: Unsynced) -> io::Result<()> {
            let mut disk = self.0.lock();
            let length = match &change {
                Unsynced::Length(length) => *length,
                Unsynced::Write(..) => 0,
            };
            if length > disk.space_bytes {
                disk.failed += 1;
                return Err(io::ErrorKind::StorageFull.into());
            }
            let chance = disk.errors_percent;
            if disk.random.percent(chance) {
                disk.failed += 1;
                return Err(io::Error::other("the disk fails"));
            }
            apply(&mut disk.bytes, &change);
            disk.unsynced.push(change);
            Ok(())
        }
    }

    type Locked = Result<bool, BackendError>;

    impl StorageBackend for SimulatedDisk {
        fn len(&self) -> io::Result<u64> {
            Ok(self.0.lock().bytes.len() as u64)
        }

        fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
            let disk = self.0.lock();
            let at = usize::try_from(offset).unwrap();
            let from = disk.bytes.get(at..at + out.len());
            out.copy_from_slice(from.ok_or(io::ErrorKind::UnexpectedEof)?);
            Ok(())
        }

        fn set_len(&self, len: u64) -> io::Result<()> {
            self.change(Unsynced::Length(len))
        }

        fn sync_data(&self) -> io::Result<()> {
            let mut disk = self.0.lock();
            let chance = disk.errors_percent;
            if disk.random.percent(chance) {
                disk.failed += 1;
                return Err(io::Error::other("the disk fails"));
            }
            let now = disk.bytes.clone();
            disk.synced = now;
            disk.unsynced.clear();
            Ok(())
        }

        fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
            self.change(Unsynced::Write(offset, data.to_vec()))
        }

        fn close(&self) -> io::Result<()> {
            Ok(())
        }

        fn try_lock_range(&self, _start: Bound<u64>, _end: Bound<u64>) -> Locked {
            Ok(true)
        }

        fn try_lock_shared_range(&self, _start: Bound<u64>, _end: Bound<u64>) -> Locked {
            Ok(true)
        }

        fn lock_range(&self, _start: Bound<u64>, _end: Bound<u64>) -> Result<(), BackendError> {
            Ok(())
        }

        fn lock_shared_range(
            &self,
            _start: Bound<u64>,
            _end: Bound<u64>,
        ) -> Result<(), BackendError> {
            Ok(())
        }

        fn unlock_range(&self, _start: Bound<u64>, _end: Bound<u64>) -> Result<(), BackendError> {
            Ok(())
        }

        fn query_lock_range(&self, _start: Bound<u64>, _end: Bound<u64>) -> Locked {
            Ok(false)
        }
    }

    /// Samples that the store keeps.
    const DEPTH: usize = 12;

    /// A store on a disk with faults, and the oracle's knowledge.
    struct Run {
        spec: StoreSpec,
        disk: SimulatedDisk,
        random: Random,
        store: Arc<Inner>,
        losses: Arc<Mutex<Vec<Loss>>>,
        /// The last sequence number published.
        published: i64,
        /// All up to here were in batches that were written.
        stored: i64,
        /// Batches have failed, one after another.
        is_failing: bool,
        wrong: Vec<String>,
    }

    fn sample(sequence: i64) -> StoredSample {
        StoredSample {
            origin: Origin {
                writer: [3; 16],
                sequence,
            },
            source_nanos: Some(sequence * 10),
            key_hash: None,
            disposed: false,
            ended_nanos: 0,
            payload: Bytes::from(vec![
                sequence.to_le_bytes()[0];
                40 + sequence as usize % 500
            ]),
        }
    }

    impl Run {
        fn new(seed: u64) -> Self {
            let mut random = Random(seed);
            let spec = StoreSpec {
                folder: "/simulated".into(),
                name: "0/talker:/chatter".into(),
                topic: "rt/chatter".into(),
                type_name: "std_msgs::msg::dds_::String_".into(),
                retention: Retention {
                    depth: Depth::KeepLast(DEPTH),
                    ..Retention::default()
                },
                safety: if random.percent(70) {
                    Safety::Disk
                } else {
                    Safety::Process
                },
                file_bytes_max: u64::MAX,
            };
            let disk = SimulatedDisk::new(seed);
            DISK.set(Some(disk.clone()));
            let losses = Arc::default();
            let store = open(&spec, &losses).expect("a healthy disk").0;
            Self {
                spec,
                disk,
                random,
                store,
                losses,
                published: 0,
                stored: 0,
                is_failing: false,
                wrong: Vec::new(),
            }
        }

        fn step(&mut self) {
            match self.random.below(10) {
                0..=3 => {
                    for _ in 0..=self.random.below(4) {
                        self.published += 1;
                        self.store.put(sample(self.published));
                    }
                }
                4..=6 => self.write_out(),
                7 => {
                    let mut disk = self.disk.0.lock();
                    disk.errors_percent = [0, 3, 30][self.random.below(3) as usize];
                    let more = self.random.below(64 << 10);
                    disk.space_bytes = match self.random.below(3) {
                        0 => disk.bytes.len() as u64 + more,
                        _ => u64::MAX,
                    };
                }
                8 => self.disk.heal(),
                _ => self.restart(),
            }
            let waiting = self.store.waiting_bytes();
            if waiting > WAITING_BYTES_MAX {
                self.wrong.push(format!("fairness: {waiting} bytes wait"));
            }
        }

        fn write_out(&mut self) {
            let told = self.losses.lock().len();
            let worked = self.store.write_out();
            let told = self.losses.lock().len() - told;
            let expected = usize::from(!worked && !self.is_failing);
            if told != expected {
                self.wrong.push(format!(
                    "silence: {told} reports, not {expected}, of a batch that worked: {worked}"
                ));
            }
            self.is_failing = !worked;
            if worked {
                self.stored = self.published;
            }
        }

        /// The process is killed, or the power fails, and it starts again.
        fn restart(&mut self) {
            self.disk.heal();
            let loses_power = self.spec.safety == Safety::Disk && self.random.percent(60);
            self.store.forget();
            if loses_power {
                self.disk.cut_power();
            }
            self.losses.lock().clear();
            let (store, restored) = match open(&self.spec, &self.losses) {
                Ok(opened) => opened,
                Err(error) => {
                    let why = format!("durability: power cut {loses_power}: {error}");
                    self.wrong.push(why);
                    return;
                }
            };
            self.store = store;
            self.is_failing = false;
            self.check_restored(&restored);
            // The process takes the waiting samples with it.
            self.published = restored.last().copied().unwrap_or(0).max(self.stored);
            self.stored = self.published;
        }

        fn check_restored(&mut self, restored: &[i64]) {
            let unique: BTreeSet<i64> = restored.iter().copied().collect();
            let is_ordered = restored.is_sorted() && unique.len() == restored.len();
            let last = restored.last().copied().unwrap_or(0);
            if !is_ordered || last > self.published || restored.iter().any(|n| *n < 1) {
                self.wrong
                    .push(format!("no invention: {restored:?} of {}", self.published));
            }
            let first_kept = (last - DEPTH as i64 + 1).max(1);
            let is_whole = (first_kept..=last).all(|n| unique.contains(&n));
            if last < self.stored || !is_whole {
                self.wrong.push(format!(
                    "durability: {restored:?} of {} that were stored",
                    self.stored
                ));
            }
        }

        /// Recovery: the disk works again.
        fn settle(&mut self) {
            self.disk.heal();
            self.write_out();
            if self.is_failing || self.store.waiting_bytes() > 0 {
                self.wrong
                    .push("recovery: samples wait for a disk that works".into());
            }
            let published = self.published;
            self.restart();
            if self.published != published {
                self.wrong.push(format!(
                    "recovery: {} of {published} are stored",
                    self.published
                ));
            }
        }
    }

    fn open(
        spec: &StoreSpec,
        losses: &Arc<Mutex<Vec<Loss>>>,
    ) -> Result<(Arc<Inner>, Vec<i64>), crate::StoreError> {
        let losses = losses.clone();
        let on_loss = Box::new(move |loss| losses.lock().push(loss));
        let (inner, samples) = Inner::open_undriven(spec.clone(), on_loss)?;
        Ok((inner, samples.iter().map(|s| s.origin.sequence).collect()))
    }

    /// Runs a seed. Returns the violated rules, and how often the disk failed.
    fn run(seed: u64, mutant: &'static str) -> (Vec<String>, u64) {
        let mut run = Run::new(seed);
        MUTANT.set(mutant);
        for _ in 0..60 {
            if run.wrong.is_empty() {
                run.step();
            }
        }
        if run.wrong.is_empty() {
            run.settle();
        }
        MUTANT.set("");
        DISK.set(None);
        let failed = run.disk.0.lock().failed;
        (run.wrong, failed)
    }

    const SEEDS: u64 = 150;

    #[test]
    fn a_store_keeps_its_promises_on_a_failing_full_and_slow_disk() {
        let mut failed = 0;
        for seed in 1..=SEEDS {
            let (wrong, of_seed) = run(seed, "");
            assert!(wrong.is_empty(), "seed {seed}: {wrong:#?}");
            failed += of_seed;
        }
        assert!(failed > SEEDS, "only {failed} faults");
    }

    #[test]
    fn the_rules_notice_each_mutant_of_the_store() {
        for (mutant, rule) in [
            ("batch-written-twice", "no invention"),
            ("failed-batch-dropped", "durability"),
            ("failing-disk-not-reported", "silence"),
            ("failing-disk-reported-each-time", "silence"),
            ("not-synced", "durability"),
        ] {
            let noticed = (1..=SEEDS).find_map(|seed| run(seed, mutant).0.into_iter().next());
            let noticed = noticed.unwrap_or_else(|| panic!("missed {mutant}"));
            let expected = [rule, "recovery"];
            assert!(
                expected.iter().any(|rule| noticed.starts_with(rule)),
                "{mutant}: {noticed}"
            );
        }
    }

    #[test]
    fn what_waits_for_a_dead_disk_stays_within_its_limit() {
        let fill = |mutant| {
            let mut run = Run::new(1);
            run.spec.retention.depth = Depth::KeepLast(1 << 20);
            run.store = Inner::open_undriven(run.spec.clone(), Box::new(|_| {}))
                .expect("a healthy disk")
                .0;
            MUTANT.set(mutant);
            let payload = Bytes::from(vec![7; 1 << 20]);
            for sequence in 1..=80 {
                let payload = payload.clone();
                run.store.put(StoredSample {
                    payload,
                    ..sample(sequence)
                });
            }
            MUTANT.set("");
            DISK.set(None);
            run.store.waiting_bytes()
        };
        assert!(fill("") <= WAITING_BYTES_MAX);
        assert!(fill("waits-without-limit") > WAITING_BYTES_MAX);
    }
}
