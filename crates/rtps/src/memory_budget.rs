//! Receive memory budget: what remote participants fill in a context.
//!
//! Fragment reassembly (`defrag.rs`), the reorder buffer (`reorder.rs`) and the history
//! of every reader charge the account of the sender's participant. A partial sample
//! reserves its announced size before its first byte is stored. So samples that are
//! begun can be completed, and no two of them wait for each other. Its memory grows
//! with the received bytes alone. A complete sample keeps its charge until the
//! application takes it. Samples in a peer's shared memory are not charged: the peer's
//! pool bounds them.
//!
//! Discovery charges its records (participants, endpoints, node lists, TypeObjects) and
//! the partial and reordered samples of its readers to the same accounts.
//!
//! A participant reserves at most its own limit, and at most as much as the context has
//! free (dynamic threshold, Choudhury and Hahne 1998). So one alone gets half of the
//! context's budget, and a newcomer always finds some. In the same way the samples of
//! one writer in one history take at most as much as they leave free of the
//! participant's limit. So a reader that takes nothing does not stop another one.
//!
//! The counters are atomic: the readers of a context have different locks.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Samples below this size are not charged in a history, whose depth bounds them.
pub const CHARGED_BYTES_MIN: usize = 1 << 10;

/// Records take at most this part of a limit. They always find it, because without
/// them nothing else works: samples may fill the whole limit before. The partial and
/// reordered samples of discovery find the same part beyond the limit.
const RECORDS_PART: usize = 8;

/// The budget of one context. Thread-safe; nothing blocks.
#[derive(Debug)]
pub struct MemoryBudget {
    participant_max: usize,
    context_max: usize,
    reserved: AtomicUsize,
    records: AtomicUsize,
    refused: AtomicU64,
}

/// The account of one remote participant. Thread-safe; nothing blocks.
#[derive(Debug)]
pub struct MemoryAccount {
    budget: Arc<MemoryBudget>,
    reserved: AtomicUsize,
    /// The part of it that records take.
    records: AtomicUsize,
    refused: AtomicU64,
    /// One more than was reserved when something was refused; 0 when half of that is
    /// free again.
    full_at: AtomicUsize,
}

impl MemoryBudget {
    /// A budget with these limits, bytes.
    pub fn new(participant_max: usize, context_max: usize) -> Arc<Self> {
        Arc::new(Self {
            participant_max,
            context_max,
            reserved: AtomicUsize::new(0),
            records: AtomicUsize::new(0),
            refused: AtomicU64::new(0),
        })
    }

    /// A new account of a participant.
    pub fn account(self: &Arc<Self>) -> Arc<MemoryAccount> {
        Arc::new(MemoryAccount {
            budget: self.clone(),
            reserved: AtomicUsize::new(0),
            records: AtomicUsize::new(0),
            refused: AtomicU64::new(0),
            full_at: AtomicUsize::new(0),
        })
    }

    /// Bytes that all participants have reserved.
    pub fn reserved(&self) -> usize {
        self.reserved.load(Relaxed)
    }

    /// The part of them that records of discovery take.
    pub fn records(&self) -> usize {
        self.records.load(Relaxed)
    }

    /// The most bytes that they may reserve. Records may exceed it by an eighth, until
    /// samples are taken, and samples of discovery by another.
    pub fn context_max(&self) -> usize {
        self.context_max
    }

    /// The most bytes that one participant may reserve, see [`Self::context_max`].
    pub fn participant_max(&self) -> usize {
        self.participant_max
    }

    /// How often something was refused; it only grows.
    pub fn refused(&self) -> u64 {
        self.refused.load(Relaxed)
    }

    fn free(&self) -> usize {
        self.context_max.saturating_sub(self.reserved())
    }
}

impl MemoryAccount {
    /// Bytes that the participant has reserved.
    pub fn reserved(&self) -> usize {
        self.reserved.load(Relaxed)
    }

    /// How often something of the participant was refused; it only grows.
    pub fn refused(&self) -> u64 {
        self.refused.load(Relaxed)
    }

    /// Reserves the bytes of a record of discovery. `None` when the participant's
    /// records, or those of all, take an eighth of the limit.
    pub fn reserve_record(self: &Arc<Self>, bytes: usize) -> Option<RecordCharge> {
        let budget = &*self.budget;
        let part = |max: usize| max.checked_div(RECORDS_PART).unwrap_or(0);
        let context_free = part(budget.context_max).saturating_sub(budget.records());
        let max = part(budget.participant_max).min(context_free);
        let add = |own: usize| own.checked_add(bytes).filter(|sum| *sum <= max);
        if self.records.fetch_update(Relaxed, Relaxed, add).is_err() {
            self.note_refused();
            return None;
        }
        budget.records.fetch_add(bytes, Relaxed);
        self.add(bytes);
        Some(RecordCharge {
            account: Some(self.clone()),
            bytes,
        })
    }

    /// The bytes that it may still reserve.
    fn free(&self) -> usize {
        let own = self.budget.participant_max.saturating_sub(self.reserved());
        own.min(self.budget.free())
    }

    fn reserve(&self, bytes: usize, max: usize) -> bool {
        self.reserve_below(bytes, max.min(self.budget.free()))
    }

    /// Reserves the bytes of a sample of discovery, beyond the limit by the part that
    /// is for records.
    fn reserve_for_discovery(&self, bytes: usize) -> bool {
        let more = |max: usize| {
            let part = max.checked_div(RECORDS_PART).unwrap_or(0);
            max.saturating_add(part)
        };
        let context_free = more(self.budget.context_max).saturating_sub(self.budget.reserved());
        self.reserve_below(bytes, more(self.budget.participant_max).min(context_free))
    }

    fn reserve_below(&self, bytes: usize, max: usize) -> bool {
        let add = |own: usize| own.checked_add(bytes).filter(|sum| *sum <= max);
        if self.reserved.fetch_update(Relaxed, Relaxed, add).is_err() {
            return false;
        }
        self.budget.reserved.fetch_add(bytes, Relaxed);
        true
    }

    fn add(&self, bytes: usize) {
        self.reserved.fetch_add(bytes, Relaxed);
        self.budget.reserved.fetch_add(bytes, Relaxed);
    }

    fn release(&self, bytes: usize) {
        let before = self.reserved.fetch_sub(bytes, Relaxed);
        self.budget.reserved.fetch_sub(bytes, Relaxed);
        if before.saturating_sub(bytes) < self.full_at.load(Relaxed).div_ceil(2) {
            self.full_at.store(0, Relaxed);
        }
    }

    fn note_refused(&self) -> bool {
        self.refused.fetch_add(1, Relaxed);
        self.budget.refused.fetch_add(1, Relaxed);
        let full_at = self.reserved().saturating_add(1);
        let told = self.full_at.compare_exchange(0, full_at, Relaxed, Relaxed);
        told.is_ok()
    }
}

/// The receive memory that one writer's samples occupy at one reader.
#[derive(Debug)]
struct WriterUse {
    account: Arc<MemoryAccount>,
    /// Bytes of its complete samples that were not taken.
    history: AtomicUsize,
}

impl WriterUse {
    /// Whether its history would take more than it leaves free.
    fn is_beyond_share(&self, bytes: usize) -> bool {
        let sum = self.history.load(Relaxed).saturating_add(bytes);
        sum > self.account.free()
    }
}

/// Complete samples of one writer that take the same number of bytes. A sample keeps a
/// reference to it: one word, where a size of its own would make two. Queued samples
/// must stay small, see `dcps/sample/outcome.rs`.
#[derive(Debug)]
struct SizeClass {
    used: Arc<WriterUse>,
    bytes: usize,
}

/// This many sizes of a writer's samples are counted exactly; further ones are rounded
/// down by less than an eighth.
const EXACT_SIZES: usize = 32;

/// Charges the samples of one writer. Without an account nothing is limited.
#[derive(Debug, Default)]
pub(crate) struct MemoryCharger {
    used: Option<Arc<WriterUse>>,
    sizes: BTreeMap<usize, Arc<SizeClass>>,
    /// Its reader is a built-in one, which takes complete samples at once.
    is_of_discovery: bool,
}

impl MemoryCharger {
    pub fn new(account: Arc<MemoryAccount>) -> Self {
        let used = WriterUse {
            account,
            history: AtomicUsize::new(0),
        };
        Self {
            used: Some(Arc::new(used)),
            ..Self::default()
        }
    }

    /// Charges the samples of a built-in writer: those that wait for fragments or for
    /// earlier samples. Complete ones are free, because discovery takes them at once.
    pub fn of_discovery(account: Arc<MemoryAccount>) -> Self {
        Self {
            is_of_discovery: true,
            ..Self::new(account)
        }
    }

    /// Another one of the same writer.
    pub fn of_same_writer(&self) -> Self {
        Self {
            used: self.used.clone(),
            sizes: BTreeMap::new(),
            is_of_discovery: self.is_of_discovery,
        }
    }

    /// Reserves the announced size of a partial sample. `None` when there is not
    /// enough.
    pub fn reserve(&self, bytes: usize) -> Option<MemoryCharge> {
        self.reserve_within(bytes, 1)
    }

    /// Reserves the bytes of a reordered sample, or of a buffer kept for reuse. They
    /// take at most half of the participant's limit, so that the missing sample finds
    /// space.
    pub fn reserve_from_half(&self, bytes: usize) -> Option<MemoryCharge> {
        self.reserve_within(bytes, 2)
    }

    /// Reserves the bytes of a complete sample. `None` when there is not enough. Small
    /// samples are not charged.
    pub fn reserve_sample(&mut self, bytes: usize) -> Option<SampleCharge> {
        if bytes < CHARGED_BYTES_MIN || self.is_of_discovery {
            return Some(SampleCharge::default());
        }
        let Some(used) = self.used.clone() else {
            return Some(SampleCharge::default());
        };
        if used.is_beyond_share(bytes) {
            return None;
        }
        let class = self.class_of(used, bytes);
        let (used, bytes) = (&class.used, class.bytes);
        if !used
            .account
            .reserve(bytes, used.account.budget.participant_max)
        {
            return None;
        }
        used.history.fetch_add(bytes, Relaxed);
        Some(SampleCharge(Some(class)))
    }

    /// Turns the charge of a sample that has become complete into one of the history.
    pub fn complete(&mut self, mut charge: MemoryCharge) -> SampleCharge {
        if self.is_of_discovery {
            return SampleCharge::default();
        }
        let Some(used) = charge.used.take() else {
            return SampleCharge::default();
        };
        let class = self.class_of(used, charge.bytes);
        let (used, bytes) = (&class.used, class.bytes);
        if bytes < charge.bytes {
            used.account.release(charge.bytes.saturating_sub(bytes));
        }
        used.history.fetch_add(bytes, Relaxed);
        SampleCharge(Some(class))
    }

    fn class_of(&mut self, used: Arc<WriterUse>, bytes: usize) -> Arc<SizeClass> {
        let is_exact = self.sizes.len() < EXACT_SIZES || self.sizes.contains_key(&bytes);
        let bytes = if is_exact { bytes } else { rounded_down(bytes) };
        let class = self.sizes.entry(bytes);
        let class = class.or_insert_with(|| Arc::new(SizeClass { used, bytes }));
        class.clone()
    }

    fn reserve_within(&self, bytes: usize, divisor: usize) -> Option<MemoryCharge> {
        if let Some(used) = &self.used {
            let account = &used.account;
            if self.is_of_discovery && !account.reserve_for_discovery(bytes) {
                return None;
            }
        }
        let user = self.used.as_ref().filter(|_| !self.is_of_discovery);
        if let Some(used) = user {
            let account = &used.account;
            let has_history = used.history.load(Relaxed) > 0;
            if has_history && used.is_beyond_share(bytes) {
                return None;
            }
            let max = account.budget.participant_max.checked_div(divisor);
            if !account.reserve(bytes, max.unwrap_or(0)) {
                return None;
            }
        }
        Some(MemoryCharge {
            used: self.used.clone(),
            bytes,
        })
    }

    /// Notes a refusal. True for the first one since half of the account was given back.
    pub fn note_refused(&self) -> bool {
        let used = self.used.as_ref();
        used.is_some_and(|used| used.account.note_refused())
    }

    /// How often anything was refused in this context.
    pub fn refused(&self) -> u64 {
        let used = self.used.as_ref();
        used.map_or(0, |used| used.account.budget.refused())
    }

    /// The reserved bytes and their limits.
    pub fn fill(&self) -> MemoryFill {
        self.used.as_ref().map_or(MemoryFill::default(), |used| {
            let budget = &used.account.budget;
            MemoryFill {
                participant: used.account.reserved(),
                participant_max: budget.participant_max,
                context: budget.reserved(),
                context_max: budget.context_max,
            }
        })
    }
}

/// The reserved receive memory and its limits, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryFill {
    /// Reserved by the participant.
    pub participant: usize,
    /// The limit of one participant.
    pub participant_max: usize,
    /// Reserved by all participants of the context.
    pub context: usize,
    /// The limit of the context.
    pub context_max: usize,
}

/// A part of an account; dropping it gives the bytes back.
#[derive(Debug)]
pub(crate) struct MemoryCharge {
    used: Option<Arc<WriterUse>>,
    bytes: usize,
}

impl Drop for MemoryCharge {
    fn drop(&mut self) {
        if let Some(used) = &self.used {
            used.account.release(self.bytes);
        }
    }
}

/// The charge of a complete sample to its participant's memory, until the application
/// takes the sample. Dropping it gives the bytes back. A clone, and the charge of a
/// sample in shared memory, is empty. It is no part of the sample's value.
#[derive(Debug, Default)]
pub struct SampleCharge(Option<Arc<SizeClass>>);

impl SampleCharge {
    /// Whether its writer's samples in this history leave no space for another one of
    /// this size. KEEP_LAST then drops an older one.
    pub fn is_crowded(&self) -> bool {
        let of = self.0.as_ref();
        of.is_some_and(|charge| charge.used.is_beyond_share(charge.bytes))
    }

    /// Whether both are of the same writer at the same reader.
    pub fn is_of_same_writer(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(one), Some(other)) => Arc::ptr_eq(&one.used, &other.used),
            _ => false,
        }
    }

    /// The bytes that it takes.
    pub fn bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |charge| charge.bytes)
    }
}

impl Clone for SampleCharge {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for SampleCharge {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for SampleCharge {}

impl Drop for SampleCharge {
    fn drop(&mut self) {
        if let Some(of) = &self.0 {
            of.used.history.fetch_sub(of.bytes, Relaxed);
            of.used.account.release(of.bytes);
        }
    }
}

/// The next lower of eight sizes per power of two.
fn rounded_down(bytes: usize) -> usize {
    let step = bytes.checked_ilog2().map_or(0, |log| log.saturating_sub(3));
    (bytes >> step) << step
}

/// The charge of a discovery record to its participant's memory. Dropping it gives the
/// bytes back. It is no part of the record's value.
#[derive(Debug, Default)]
pub struct RecordCharge {
    account: Option<Arc<MemoryAccount>>,
    bytes: usize,
}

impl PartialEq for RecordCharge {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Drop for RecordCharge {
    fn drop(&mut self) {
        if let Some(account) = &self.account {
            account.records.fetch_sub(self.bytes, Relaxed);
            account.budget.records.fetch_sub(self.bytes, Relaxed);
            account.release(self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn a_participant_reserves_no_more_than_its_limit_and_gets_it_back() {
        let budget = MemoryBudget::new(100, 1_000);
        let charger = MemoryCharger::new(budget.account());
        let first = charger.reserve(60).unwrap();
        assert!(charger.reserve(60).is_none());
        assert!(charger.note_refused());
        assert!(!charger.note_refused(), "told once");
        drop(first);
        let again = charger.reserve(60);
        assert!(again.is_some() && charger.note_refused());
        assert_eq!((budget.refused(), budget.reserved()), (3, 60));
    }

    #[test]
    fn samples_of_discovery_find_memory_when_user_samples_have_filled_it() {
        let budget = MemoryBudget::new(800, 8_000);
        let account = budget.account();
        let user = MemoryCharger::new(account.clone());
        let taken = user.reserve(800).unwrap();
        assert!(user.reserve(1).is_none());
        let mut discovery = MemoryCharger::of_discovery(account.clone());
        let partial = discovery.reserve(100).unwrap();
        assert!(
            discovery.reserve_from_half(1).is_none(),
            "an eighth is used"
        );
        assert!(discovery.reserve_sample(1 << 20).is_some(), "taken at once");
        assert_eq!(account.reserved(), 900);
        let complete = discovery.complete(partial);
        assert_eq!((complete.bytes(), account.reserved()), (0, 800));
        drop(taken);
        assert_eq!(budget.reserved(), 0);
    }

    #[test]
    fn greedy_participants_leave_space_for_a_newcomer() {
        let budget = MemoryBudget::new(1_000, 1_000);
        let mut charges = Vec::new();
        for _ in 0..9 {
            let charger = MemoryCharger::new(budget.account());
            let before = charges.len();
            while let Some(charge) = charger.reserve(1) {
                charges.push(charge);
            }
            assert!(charges.len() > before, "it found some");
        }
        assert!(budget.reserved() < 1_000);
        drop(charges);
        assert_eq!(budget.reserved(), 0);
    }

    #[test]
    fn reordered_samples_leave_half_for_the_missing_one() {
        let budget = MemoryBudget::new(100, 1_000);
        let charger = MemoryCharger::new(budget.account());
        let reordered = charger.reserve_from_half(50);
        assert!(reordered.is_some() && charger.reserve_from_half(1).is_none());
        assert!(charger.reserve(50).is_some());
    }

    #[test]
    fn a_history_that_nobody_takes_leaves_half_for_others() {
        let budget = MemoryBudget::new(100 << 10, 1 << 20);
        let account = budget.account();
        let fill = || {
            let mut charger = MemoryCharger::new(account.clone());
            let samples = core::iter::from_fn(move || charger.reserve_sample(2 << 10));
            samples.collect::<Vec<_>>()
        };
        let (first, second) = (fill(), fill());
        assert_eq!((first.len(), second.len()), (25, 13));
        assert!(first.iter().all(SampleCharge::is_crowded));
        assert!(!first[0].is_of_same_writer(&second[0]));
        drop(first);
        assert!(!second[0].is_crowded());
        assert_eq!(budget.reserved(), second.len() * (2 << 10));
    }

    #[test]
    fn a_complete_sample_keeps_the_charge_of_its_fragments() {
        let budget = MemoryBudget::new(1_000, 10_000);
        let mut charger = MemoryCharger::new(budget.account());
        let partial = charger.reserve(600).unwrap();
        let sample = charger.complete(partial);
        assert_eq!((sample.bytes(), budget.reserved()), (600, 600));
        assert!(charger.reserve(300).is_none(), "more than it leaves free");
        assert_eq!(sample.clone().bytes(), 0);
        drop(sample);
        assert_eq!(budget.reserved(), 0);
        assert!(charger.reserve(900).is_some());
    }

    #[test]
    fn samples_of_many_sizes_are_counted_within_an_eighth() {
        let budget = MemoryBudget::new(usize::MAX, usize::MAX);
        let mut charger = MemoryCharger::new(budget.account());
        let mut samples = Vec::new();
        let mut bytes = 0;
        for size in (2_000..2_000_000).step_by(997) {
            samples.extend(charger.reserve_sample(size));
            bytes += size;
        }
        assert!(charger.sizes.len() < 200, "{} sizes", charger.sizes.len());
        let reserved = budget.reserved();
        assert!(reserved <= bytes && reserved > bytes / 8 * 7, "{reserved}");
        drop(samples);
        assert_eq!(budget.reserved(), 0);
    }

    #[test]
    fn records_find_an_eighth_even_beside_a_full_history() {
        let budget = MemoryBudget::new(800, 8_000);
        let account = budget.account();
        let charger = MemoryCharger::new(account.clone());
        let _samples = charger.reserve(800);
        let record = account.reserve_record(100);
        assert!(record.is_some() && account.reserve_record(1).is_none());
        assert_eq!((budget.reserved(), budget.records()), (900, 100));
        assert_eq!((account.refused(), budget.refused()), (1, 1));
        drop(record);
        assert_eq!((budget.reserved(), budget.records()), (800, 0));
    }

    #[test]
    fn records_of_many_participants_leave_space_for_a_newcomer() {
        let budget = MemoryBudget::new(8_000, 8_000);
        let mut records = Vec::new();
        for _ in 0..9 {
            let (account, before) = (budget.account(), records.len());
            records.extend(core::iter::from_fn(|| account.reserve_record(1)));
            assert!(records.len() > before, "it found some");
        }
        assert!(budget.records() < 1_000);
    }

    #[test]
    fn the_records_of_all_participants_have_an_eighth_too() {
        let budget = MemoryBudget::new(800, 1_600);
        let accounts = [budget.account(), budget.account(), budget.account()];
        let first = accounts[0].reserve_record(100);
        let second = accounts[1].reserve_record(70);
        assert!(first.is_some() && second.is_some());
        assert!(accounts[2].reserve_record(31).is_none());
        assert!(accounts[2].reserve_record(30).is_some());
        drop(first);
        assert!(accounts[2].reserve_record(100).is_some());
    }
}
