//! Whether a managed node is at work, for whatever works only then: its
//! publishers look at a flag, its timers are started and stopped.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::timer::{Timer, TimerCore};

/// Shared by a node and its managed publishers.
#[derive(Default)]
pub(super) struct Activation {
    /// Managed publishers speak.
    open: AtomicBool,
    /// How often it has been opened; publishers warn once in between.
    phase: AtomicU64,
    /// Managed timers tick.
    ticking: AtomicBool,
    timers: Mutex<Vec<Weak<TimerCore>>>,
}

impl Activation {
    pub(super) fn is_open(&self) -> bool {
        self.open.load(Ordering::Acquire)
    }

    pub(super) fn phase(&self) -> u64 {
        self.phase.load(Ordering::Acquire)
    }

    pub(super) fn open(&self) {
        if !self.open.swap(true, Ordering::AcqRel) {
            self.phase.fetch_add(1, Ordering::AcqRel);
        }
    }

    pub(super) fn close(&self) {
        self.open.store(false, Ordering::Release);
    }

    /// Starts all timers anew, each with a whole period.
    pub(super) fn start_timers(&self) {
        self.set_timers(true, Timer::reset);
    }

    pub(super) fn stop_timers(&self) {
        self.set_timers(false, Timer::cancel);
    }

    /// Whether timers tick: one that is reset by its user may be due all the same.
    pub(super) fn is_ticking(&self) -> bool {
        self.ticking.load(Ordering::Acquire)
    }

    fn set_timers(&self, ticking: bool, change: impl Fn(&Timer)) {
        let mut timers = self.timers.lock();
        if self.ticking.swap(ticking, Ordering::AcqRel) == ticking {
            return;
        }
        timers.retain(|timer| timer.strong_count() > 0);
        let all: Vec<Timer> = timers
            .iter()
            .filter_map(Weak::upgrade)
            .map(|core| Timer { core })
            .collect();
        all.iter().for_each(change);
        // Before the timers are let go: what the last one's callback holds is
        // user code.
        drop(timers);
    }

    /// Binds a timer to the active state.
    pub(super) fn bind(&self, timer: &Timer) {
        let mut timers = self.timers.lock();
        timers.retain(|timer| timer.strong_count() > 0);
        timers.push(Arc::downgrade(&timer.core));
        if !self.is_ticking() {
            timer.cancel();
        }
    }
}
