//! Fault injection points: named places where the simulator makes production code
//! fail. `fault!("heartbeat-not-repeated")` is true when the fault is injected.
//!
//! There are two uses. A *mutant* is on during a whole run, to see whether the
//! simulator detects it. A *tolerated fault* may happen to correct code (a full
//! buffer, an early wake-up, a lost hint) and is injected now and then. The
//! simulator (`verify/sim`) lists all names and decides which are on.
//!
//! Only the simulator enables the cargo feature `faults`. Without it, every point
//! is the constant `false` and is compiled away. With it, the crate links `std` for
//! one thread-local, so that runs on several threads do not disturb each other.

/// Whether the named fault is injected here and now; `false` in normal builds.
#[macro_export]
macro_rules! fault {
    ($name:literal) => {
        $crate::fault::is_injected($name)
    };
}

/// Whether fault points are compiled in.
pub const COMPILED: bool = cfg!(feature = "faults");

#[cfg(feature = "faults")]
pub use armed::{arm, armed_faults, disarm, is_injected, step, take_steps};

/// Whether the fault of that name is injected: never, without the feature.
#[cfg(not(feature = "faults"))]
#[inline(always)]
pub const fn is_injected(_name: &'static str) -> bool {
    false
}

/// Counts one step of work on behalf of a peer: nothing, without the feature.
#[cfg(not(feature = "faults"))]
#[inline(always)]
pub const fn step() {}

#[cfg(feature = "faults")]
mod armed {
    extern crate std;

    use alloc::vec::Vec;
    use core::cell::{Cell, RefCell};
    use std::thread_local;

    /// The chance of a certain fault.
    const ALWAYS: u32 = 10_000;

    /// Steps between two calls of `take_steps` that no bounded work exceeds.
    const STEPS_MAX: u64 = 2_000_000;

    struct Point {
        name: &'static str,
        chance: u32,
        reached: u64,
    }

    thread_local! {
        static ANY: Cell<bool> = const { Cell::new(false) };
        static POINTS: RefCell<Vec<Point>> = const { RefCell::new(Vec::new()) };
        static CHANCE: Cell<u64> = const { Cell::new(0) };
        static STEPS: Cell<u64> = const { Cell::new(0) };
    }

    /// Turns faults on for this thread, each with its chance in 1/10000, and all
    /// others off. `seed` decides when they are injected.
    pub fn arm(seed: u64, faults: &[(&'static str, u32)]) {
        let point = |(name, chance): &(&'static str, u32)| Point {
            name,
            chance: *chance,
            reached: 0,
        };
        ANY.set(!faults.is_empty());
        CHANCE.set(seed | 1);
        STEPS.set(0);
        POINTS.with_borrow_mut(|points| *points = faults.iter().map(point).collect());
    }

    /// Turns all faults of this thread off. Returns how often each of them was
    /// reached.
    pub fn disarm() -> Vec<(&'static str, u64)> {
        ANY.set(false);
        let points = POINTS.with_borrow_mut(core::mem::take);
        points.iter().map(|p| (p.name, p.reached)).collect()
    }

    /// The faults that are on in this thread, to turn them on in another one.
    pub fn armed_faults() -> Vec<(&'static str, u32)> {
        POINTS.with_borrow(|points| points.iter().map(|p| (p.name, p.chance)).collect())
    }

    /// Whether the fault of that name is injected.
    #[inline]
    pub fn is_injected(name: &'static str) -> bool {
        ANY.get() && is_injected_slow(name)
    }

    fn is_injected_slow(name: &str) -> bool {
        if std::thread::panicking() {
            // The run has failed already: inject nothing during clean-up.
            return false;
        }
        POINTS.with_borrow_mut(|points| {
            let Some(point) = points.iter_mut().find(|p| p.name == name) else {
                return false;
            };
            point.reached = point.reached.saturating_add(1);
            point.chance >= ALWAYS || below(ALWAYS) < point.chance
        })
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

    /// Counts one step of work on behalf of a peer.
    ///
    /// # Panics
    /// After two million steps without a call of `take_steps`: an endless loop.
    #[inline]
    pub fn step() {
        let steps = STEPS.get().saturating_add(1);
        STEPS.set(steps);
        assert!(
            steps < STEPS_MAX || std::thread::panicking(),
            "I10: {steps} steps of work without an end"
        );
    }

    /// The number of steps since the last call.
    pub fn take_steps() -> u64 {
        STEPS.replace(0)
    }
}
