//! Receive memory budget: what unfinished samples of one participant, and of all
//! participants of a context, may take.
//!
//! Fragment reassembly (`defrag.rs`) and the reorder buffer (`reorder.rs`) of every
//! reader charge the account of the sender's participant. A partial sample reserves
//! its announced size before its first byte is stored: samples that are begun can be
//! completed, and no two of them wait for each other. Its memory grows with the
//! received bytes alone.
//!
//! A participant reserves at most its own limit, and at most as much as the context
//! has free (dynamic threshold, Choudhury and Hahne 1998). So one alone gets half of
//! the context's budget, and a newcomer always finds some.
//!
//! The counters are atomic: the readers of a context have different locks.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

/// The budget of one context. Thread-safe; nothing blocks.
#[derive(Debug)]
pub struct MemoryBudget {
    participant_max: usize,
    context_max: usize,
    reserved: AtomicUsize,
    refused: AtomicU64,
}

/// The account of one remote participant. Thread-safe; nothing blocks.
#[derive(Debug)]
pub struct MemoryAccount {
    budget: Arc<MemoryBudget>,
    reserved: AtomicUsize,
    /// Something was refused since it last was half empty.
    is_full: AtomicBool,
}

impl MemoryBudget {
    /// A budget with these limits, bytes.
    pub fn new(participant_max: usize, context_max: usize) -> Arc<Self> {
        Arc::new(Self {
            participant_max,
            context_max,
            reserved: AtomicUsize::new(0),
            refused: AtomicU64::new(0),
        })
    }

    /// A new account of a participant.
    pub fn account(self: &Arc<Self>) -> Arc<MemoryAccount> {
        Arc::new(MemoryAccount {
            budget: self.clone(),
            reserved: AtomicUsize::new(0),
            is_full: AtomicBool::new(false),
        })
    }

    /// Bytes that all participants have reserved.
    pub fn reserved(&self) -> usize {
        self.reserved.load(Relaxed)
    }

    /// The most bytes that they may reserve.
    pub fn context_max(&self) -> usize {
        self.context_max
    }

    /// The most bytes that one participant may reserve.
    pub fn participant_max(&self) -> usize {
        self.participant_max
    }

    /// How often something was refused; it only grows.
    pub fn refused(&self) -> u64 {
        self.refused.load(Relaxed)
    }
}

impl MemoryAccount {
    /// Bytes that the participant has reserved.
    pub fn reserved(&self) -> usize {
        self.reserved.load(Relaxed)
    }

    fn reserve(&self, bytes: usize, max: usize) -> bool {
        let budget = &*self.budget;
        let max = if fault!("memory-without-budget") {
            usize::MAX
        } else {
            max.min(budget.context_max.saturating_sub(budget.reserved()))
        };
        let add = |own: usize| own.checked_add(bytes).filter(|sum| *sum <= max);
        if self.reserved.fetch_update(Relaxed, Relaxed, add).is_err() {
            return false;
        }
        budget.reserved.fetch_add(bytes, Relaxed);
        true
    }

    fn release(&self, bytes: usize) {
        let before = self.reserved.fetch_sub(bytes, Relaxed);
        self.budget.reserved.fetch_sub(bytes, Relaxed);
        if before.saturating_sub(bytes) <= self.budget.participant_max / 2 {
            self.is_full.store(false, Relaxed);
        }
    }
}

/// Charges the samples of one writer. Without an account nothing is limited.
#[derive(Clone, Debug, Default)]
pub(crate) struct MemoryCharger(Option<Arc<MemoryAccount>>);

impl MemoryCharger {
    pub fn new(account: Arc<MemoryAccount>) -> Self {
        Self(Some(account))
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

    fn reserve_within(&self, bytes: usize, divisor: usize) -> Option<MemoryCharge> {
        if let Some(account) = &self.0 {
            let max = account.budget.participant_max.checked_div(divisor);
            if !account.reserve(bytes, max.unwrap_or(0)) {
                return None;
            }
        }
        Some(MemoryCharge {
            account: self.0.clone(),
            bytes,
        })
    }

    /// Notes a refusal. True for the first one since the account was half empty.
    pub fn note_refused(&self) -> bool {
        let Some(account) = &self.0 else { return false };
        account.budget.refused.fetch_add(1, Relaxed);
        !account.is_full.swap(true, Relaxed)
    }

    /// How often anything was refused in this context.
    pub fn refused(&self) -> u64 {
        self.0
            .as_ref()
            .map_or(0, |account| account.budget.refused())
    }

    /// Bytes reserved by the participant, its limit, those reserved in the context,
    /// and its limit.
    pub fn fill(&self) -> [usize; 4] {
        self.0.as_ref().map_or([0; 4], |account| {
            let budget = &account.budget;
            [
                account.reserved(),
                budget.participant_max,
                budget.reserved(),
                budget.context_max,
            ]
        })
    }
}

/// A part of an account; dropping it gives the bytes back.
#[derive(Debug)]
pub(crate) struct MemoryCharge {
    account: Option<Arc<MemoryAccount>>,
    bytes: usize,
}

impl Drop for MemoryCharge {
    fn drop(&mut self) {
        if let Some(account) = &self.account {
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
}
