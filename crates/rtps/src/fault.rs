//! Named places in the production code where the simulator lets something go
//! wrong: `fault!("heartbeat-not-repeated")` is true when it shall.
//!
//! Two uses. A *bug* is always on for a run, to see whether the simulator
//! notices; a *mishap* is something that may happen to correct code (no room,
//! an early wake-up, a lost hint) and strikes now and then. The simulator
//! (`crates/sim`) lists all names and decides which are on.
//!
//! Without the cargo feature `faults`, which nothing turns on but the
//! simulator, every point is the constant `false` and is compiled away. With
//! it, the crate links `std` for one thread-local, so that runs on several
//! threads do not disturb each other.

/// Whether the named fault strikes here and now; `false` in normal builds.
#[macro_export]
macro_rules! fault {
    ($name:literal) => {
        $crate::fault::strikes($name)
    };
}

/// Whether fault points are compiled in.
pub const COMPILED: bool = cfg!(feature = "faults");

#[cfg(feature = "faults")]
pub use armed::{arm, armed, disarm, step, strikes, take_steps};

/// Whether the fault of that name strikes: never, without the feature.
#[cfg(not(feature = "faults"))]
#[inline(always)]
pub const fn strikes(_name: &'static str) -> bool {
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

    /// Certain to strike.
    const ALWAYS: u32 = 10_000;

    /// Steps between two looks that nothing bounded takes.
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

    /// Turns faults on for this thread, each with its chance in 1/10000; those
    /// of before are off. `seed` decides when they strike.
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

    /// Turns all faults of this thread off. Returns how often each that was
    /// on has been reached.
    pub fn disarm() -> Vec<(&'static str, u64)> {
        ANY.set(false);
        let points = POINTS.with_borrow_mut(core::mem::take);
        points.iter().map(|p| (p.name, p.reached)).collect()
    }

    /// The faults of this thread that are on, for another one to turn on.
    pub fn armed() -> Vec<(&'static str, u32)> {
        POINTS.with_borrow(|points| points.iter().map(|p| (p.name, p.chance)).collect())
    }

    /// Whether the fault of that name strikes.
    #[inline]
    pub fn strikes(name: &'static str) -> bool {
        ANY.get() && looked_up(name)
    }

    fn looked_up(name: &str) -> bool {
        if std::thread::panicking() {
            // The run has failed already; what is left ends in peace.
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
        ((x >> 32) % u64::from(limit)) as u32
    }

    /// Counts one step of work on behalf of a peer.
    ///
    /// # Panics
    /// After two million steps without a look: an endless loop.
    #[inline]
    pub fn step() {
        let steps = STEPS.get() + 1;
        STEPS.set(steps);
        assert!(
            steps < STEPS_MAX || std::thread::panicking(),
            "I10: {steps} steps of work and no end"
        );
    }

    /// Steps since the last look.
    pub fn take_steps() -> u64 {
        STEPS.replace(0)
    }
}
