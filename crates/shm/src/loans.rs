//! Who lends what to whom, on one link: slots with a generation.
//!
//! The owner keeps the book in its own memory. The borrower gives a loan back
//! by writing the loan's generation into its own memory, `returned[slot]`,
//! which the owner looks at when it wants chunks. A borrower can therefore
//! give back only what was lent to it, and nothing needs to be undone when
//! either side dies between two steps.

use crate::layout::LOANS_MAX;
use crate::sync::{AtomicU32, Ordering, fence};

/// Loans looked at with each new one, so that a book stays short without ever
/// being searched.
const LOOK_PER_LOAN: usize = 2;

/// A loan's name on its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Loan {
    pub slot: u16,
    pub generation: u32,
}

/// The owner's book of one link.
#[derive(Debug)]
pub(crate) struct Loans<T> {
    /// Generation of the last loan of each slot, and what is lent.
    slots: Vec<(u32, Option<T>)>,
    free: Vec<u16>,
    /// Slots that are lent, in no order.
    lent: Vec<u16>,
    /// Where the next look begins.
    look: usize,
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
            lent: Vec::new(),
            look: 0,
            slots_max,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.lent.len()
    }

    /// Whether every slot is lent.
    pub(crate) fn is_full(&self) -> bool {
        self.lent.len() >= self.slots_max
    }

    /// Writes a loan into the book; `None` when every slot is lent.
    pub(crate) fn lend(&mut self, item: T) -> Option<Loan> {
        if self.is_full() {
            return None;
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push((0, None));
            (self.slots.len() - 1) as u16
        });
        let (generation, lent) = &mut self.slots[usize::from(slot)];
        // Zero is what `returned` holds at first.
        *generation = generation.wrapping_add(1).max(1);
        *lent = Some(item);
        self.lent.push(slot);
        Some(Loan {
            slot,
            generation: *generation,
        })
    }

    /// Strikes the loan just made, whose record was not pushed.
    pub(crate) fn cancel(&mut self, loan: Loan) -> Option<T> {
        let at = self.lent.iter().rposition(|slot| *slot == loan.slot)?;
        self.end_at(at)
    }

    /// Takes back a few of those that were given back.
    pub(crate) fn reclaim_some(&mut self, returned: &[AtomicU32], back: impl FnMut(T)) {
        self.reclaim(returned, LOOK_PER_LOAN, back);
    }

    /// Takes back all that were given back; returns how many.
    pub(crate) fn reclaim_all(&mut self, returned: &[AtomicU32], back: impl FnMut(T)) -> usize {
        self.reclaim(returned, self.lent.len(), back)
    }

    fn reclaim(&mut self, returned: &[AtomicU32], looks: usize, mut back: impl FnMut(T)) -> usize {
        let mut count = 0;
        for _ in 0..looks.min(self.lent.len()) {
            if self.look >= self.lent.len() {
                self.look = 0;
            }
            let slot = usize::from(self.lent[self.look]);
            if returned[slot].load(Ordering::Relaxed) != self.slots[slot].0 {
                self.look += 1;
                continue;
            }
            // Pairs with the release in `give_back`: the borrower's reading
            // came before it.
            fence(Ordering::Acquire);
            if let Some(item) = self.end_at(self.look) {
                back(item);
                count += 1;
            }
        }
        count
    }

    /// Takes everything back, given back or not: the borrower is gone.
    pub(crate) fn end(&mut self, mut back: impl FnMut(T)) {
        while !self.lent.is_empty() {
            if let Some(item) = self.end_at(self.lent.len() - 1) {
                back(item);
            }
        }
    }

    fn end_at(&mut self, at: usize) -> Option<T> {
        let slot = self.lent.swap_remove(at);
        self.free.push(slot);
        self.slots[usize::from(slot)].1.take()
    }
}

/// The borrower's side: says in its own memory that it is done with a loan.
/// A slot that cannot be was refused when the record was read.
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
    fn only_what_was_lent_comes_back_and_only_once() {
        let returned: [AtomicU32; 4] = Default::default();
        let mut loans = Loans::with_slots(4);
        let made: Vec<Loan> = (0..4).filter_map(|item| loans.lend(item)).collect();
        assert_eq!((made.len(), loans.lend(9)), (4, None));
        let mut back = Vec::new();
        // Nonsense of a broken borrower: wrong generations give nothing back.
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
        // The slot is lent again under another generation.
        let again = loans.lend(5).expect("a slot");
        assert_eq!(again.slot, made[2].slot);
        assert_eq!(loans.reclaim_all(&returned, |item| back.push(item)), 0);
        assert_eq!(loans.cancel(again), Some(5));
        loans.end(|item| back.push(item));
        back.sort_unstable();
        assert_eq!((back, loans.len()), (vec![0, 1, 2, 3], 0));
    }

    #[test]
    fn a_few_looks_per_loan_find_all_in_the_end() {
        let returned: [AtomicU32; 64] = std::array::from_fn(|_| AtomicU32::new(0));
        let mut loans = Loans::with_slots(64);
        let first = loans.lend(0).expect("a slot");
        for item in 1..10_000 {
            loans.reclaim_some(&returned, drop);
            let loan = loans.lend(item).expect("a slot");
            give_back(&returned, loan);
            assert!(loans.len() < 5, "{} at {item}", loans.len());
        }
        give_back(&returned, first);
        loans.reclaim_all(&returned, drop);
        assert_eq!(loans.len(), 0);
    }
}
