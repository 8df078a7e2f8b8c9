//! Loans of chunks on one connection: slots with a generation.
//!
//! The owner keeps the loan table in its own memory. The borrower returns a loan by
//! writing the loan's generation into its own memory, `returned[slot]`. The owner
//! reads that when it needs chunks. A borrower can therefore return only what was
//! on loan to it, and nothing must be undone when either side dies between two
//! steps.

use crate::layout::LOANS_MAX;
use crate::sync::{AtomicU32, Ordering, fence};

/// Slots checked with each new loan, so that the table stays short without a full
/// search.
const SLOTS_CHECKED_PER_LOAN: usize = 2;

/// Identifies a loan on its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Loan {
    pub slot: u16,
    pub generation: u32,
}

/// The owner's loan table of one connection.
#[derive(Debug)]
pub(crate) struct Loans<T> {
    /// Generation of the last loan of each slot, and the item on loan.
    slots: Vec<(u32, Option<T>)>,
    free: Vec<u16>,
    /// Slots on loan, in no order.
    loaned: Vec<u16>,
    /// Index of the slot that is checked next.
    check_next: usize,
    slots_max: usize,
}

impl<T> Default for Loans<T> {
    fn default() -> Self {
        Self::with_slots(LOANS_MAX)
    }
}

impl<T> Loans<T> {
    pub(crate) fn with_slots(slots_max: usize) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            loaned: Vec::new(),
            check_next: 0,
            slots_max,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.loaned.len()
    }

    /// Whether every slot is on loan.
    pub(crate) fn is_full(&self) -> bool {
        self.loaned.len() >= self.slots_max
    }

    /// Records a loan; `None` when every slot is on loan.
    pub(crate) fn loan(&mut self, item: T) -> Option<Loan> {
        if self.is_full() {
            return None;
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push((0, None));
            (self.slots.len() - 1) as u16
        });
        let (generation, lent) = &mut self.slots[usize::from(slot)];
        // Zero is the initial value of `returned`.
        *generation = generation.wrapping_add(1).max(1);
        *lent = Some(item);
        self.loaned.push(slot);
        Some(Loan {
            slot,
            generation: *generation,
        })
    }

    /// Cancels the loan just made, because its record was not pushed.
    pub(crate) fn cancel(&mut self, loan: Loan) -> Option<T> {
        let at = self.loaned.iter().rposition(|slot| *slot == loan.slot)?;
        self.end_at(at)
    }

    /// Collects some of the returned loans.
    pub(crate) fn reclaim_some(&mut self, returned: &[AtomicU32], back: impl FnMut(T)) {
        self.reclaim(returned, SLOTS_CHECKED_PER_LOAN, back);
    }

    /// Collects all returned loans. Returns how many.
    pub(crate) fn reclaim_all(&mut self, returned: &[AtomicU32], back: impl FnMut(T)) -> usize {
        self.reclaim(returned, self.loaned.len(), back)
    }

    fn reclaim(&mut self, returned: &[AtomicU32], looks: usize, mut back: impl FnMut(T)) -> usize {
        let mut count = 0;
        for _ in 0..looks.min(self.loaned.len()) {
            if self.check_next >= self.loaned.len() {
                self.check_next = 0;
            }
            let slot = usize::from(self.loaned[self.check_next]);
            if returned[slot].load(Ordering::Relaxed) != self.slots[slot].0 {
                self.check_next += 1;
                continue;
            }
            // Pairs with the release in `give_back`: the borrower's reads happen
            // before it.
            fence(Ordering::Acquire);
            if let Some(item) = self.end_at(self.check_next) {
                back(item);
                count += 1;
            }
        }
        count
    }

    /// Ends all loans, returned or not: the borrower is gone.
    pub(crate) fn end_all(&mut self, mut back: impl FnMut(T)) {
        while !self.loaned.is_empty() {
            if let Some(item) = self.end_at(self.loaned.len() - 1) {
                back(item);
            }
        }
    }

    fn end_at(&mut self, at: usize) -> Option<T> {
        let slot = self.loaned.swap_remove(at);
        self.free.push(slot);
        self.slots[usize::from(slot)].1.take()
    }
}

/// The borrower's side: returns a loan by a store in its own memory. An impossible
/// slot was refused when the record was read.
pub(crate) fn give_back(returned: &[AtomicU32], loan: Loan) {
    if let Some(word) = returned.get(usize::from(loan.slot)) {
        // Pairs with the fence in `reclaim`.
        word.store(loan.generation, Ordering::Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn only_loans_are_returned_and_only_once() {
        let returned: [AtomicU32; 4] = Default::default();
        let mut loans = Loans::with_slots(4);
        let made: Vec<Loan> = (0..4).filter_map(|item| loans.loan(item)).collect();
        assert_eq!((made.len(), loans.loan(9)), (4, None));
        let mut back = Vec::new();
        // A misbehaving borrower: wrong generations return nothing.
        for word in &returned {
            word.store(77, Ordering::Relaxed);
        }
        assert_eq!(loans.reclaim_all(&returned, |item| back.push(item)), 0);
        give_back(&returned, made[2]);
        give_back(
            &returned,
            Loan {
                slot: 900,
                ..made[1]
            },
        );
        assert_eq!(loans.reclaim_all(&returned, |item| back.push(item)), 1);
        assert_eq!(loans.reclaim_all(&returned, |item| back.push(item)), 0);
        assert_eq!(back, [2]);
        // The slot is on loan again with another generation.
        let again = loans.loan(5).expect("a slot");
        assert_eq!(again.slot, made[2].slot);
        assert_eq!(loans.reclaim_all(&returned, |item| back.push(item)), 0);
        assert_eq!(loans.cancel(again), Some(5));
        loans.end_all(|item| back.push(item));
        back.sort_unstable();
        assert_eq!((back, loans.len()), (vec![0, 1, 2, 3], 0));
    }

    #[test]
    fn a_few_checked_slots_per_loan_find_all_returns() {
        let returned: [AtomicU32; 64] = std::array::from_fn(|_| AtomicU32::new(0));
        let mut loans = Loans::with_slots(64);
        let first = loans.loan(0).expect("a slot");
        for item in 1..10_000 {
            loans.reclaim_some(&returned, drop);
            let loan = loans.loan(item).expect("a slot");
            give_back(&returned, loan);
            assert!(loans.len() < 5, "{} at {item}", loans.len());
        }
        give_back(&returned, first);
        loans.reclaim_all(&returned, drop);
        assert_eq!(loans.len(), 0);
    }
}
