//! Switches of mutants and tolerated faults, and the counter of work steps. They belong
//! to the thread, so that runs on several threads do not disturb each other.

use std::cell::{Cell, RefCell};

/// The chance of a certain fault.
const ALWAYS: u32 = 10_000;

/// Steps between two calls of `take_steps` that no bounded work exceeds.
const STEPS_MAX: u64 = 2_000_000;

thread_local! {
    static ANY: Cell<bool> = const { Cell::new(false) };
    static ARMED: RefCell<Vec<(&'static str, u32)>> = const { RefCell::new(Vec::new()) };
    static CHANCE: Cell<u64> = const { Cell::new(0) };
    static STEPS: Cell<u64> = const { Cell::new(0) };
}

/// Switches bugs on for this thread, each with its chance in 1/10000, and all others off.
/// `seed` decides when they strike. The counter of work steps starts over.
pub fn arm(seed: u64, bugs: &[(&'static str, u32)]) {
    ANY.set(!bugs.is_empty());
    CHANCE.set(seed | 1);
    STEPS.set(0);
    ARMED.with_borrow_mut(|armed| *armed = bugs.to_vec());
}

/// The bugs that are on in this thread, to switch them on in another one.
pub fn armed() -> Vec<(&'static str, u32)> {
    ARMED.with_borrow(Clone::clone)
}

/// Whether the bug of that name strikes here and now. Edits of the table call it.
#[inline]
pub fn is_on(name: &'static str) -> bool {
    ANY.get() && strikes(name)
}

fn strikes(name: &str) -> bool {
    if std::thread::panicking() {
        // The run has failed already: nothing strikes during clean-up.
        return false;
    }
    let chance = ARMED.with_borrow(|armed| armed.iter().find(|(of, _)| *of == name).map(|at| at.1));
    chance.is_some_and(|chance| chance >= ALWAYS || below(ALWAYS) < chance)
}

/// A random number (xorshift64).
fn below(limit: u32) -> u32 {
    let mut x = CHANCE.get();
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    CHANCE.set(x);
    let high = u32::try_from(x >> 32).unwrap_or_default();
    high.checked_rem(limit).unwrap_or_default()
}

/// Counts one step of work on behalf of a peer. Edits of the table call it.
///
/// # Panics
/// After two million steps without a call of `take_steps`: an endless loop.
#[inline]
pub fn count_step() {
    let steps = STEPS.get().saturating_add(1);
    STEPS.set(steps);
    assert!(
        steps < STEPS_MAX || std::thread::panicking(),
        "I10: {steps} steps of work without an end"
    );
}

/// The number of steps of this thread since the last call. 0 without the seeded bugs.
pub fn take_steps() -> u64 {
    STEPS.replace(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bug_strikes_as_often_as_its_chance() {
        assert!(!is_on("gap-ignored"));
        arm(7, &[("gap-ignored", ALWAYS), ("spurious-wake-up", 2_500)]);
        assert!(is_on("gap-ignored") && !is_on("lease-never-ends"));
        let strikes = (0..4_000).filter(|_| is_on("spurious-wake-up")).count();
        assert!((800..1_200).contains(&strikes), "{strikes}");
        assert_eq!(armed().len(), 2);
        arm(0, &[]);
        assert!(!is_on("gap-ignored"));
    }

    #[test]
    #[should_panic(expected = "I10")]
    fn work_without_an_end_panics() {
        count_step();
        assert_eq!(take_steps(), 1);
        (0..STEPS_MAX).for_each(|_| count_step());
    }
}
