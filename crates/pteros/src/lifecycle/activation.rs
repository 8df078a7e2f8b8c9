//! Activation of a managed node: gates its publishers and timers.
//!
//! Managed publishers check a flag. Managed timers are started and stopped with the
//! active state.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::timer::{Timer, TimerCore};

/// Shared by a node and its managed publishers.
#[derive(Default)]
pub(super) struct Activation {
    /// Managed publishers may publish.
    publishers_active: AtomicBool,
    /// Number of activations; publishers warn once between two of them.
    activation_count: AtomicU64,
    /// Managed timers tick.
    timers_active: AtomicBool,
    timers: Mutex<Vec<Weak<TimerCore>>>,
}

impl Activation {
    pub(super) fn are_publishers_active(&self) -> bool {
        self.publishers_active.load(Ordering::Acquire)
    }

    pub(super) fn activation_count(&self) -> u64 {
        self.activation_count.load(Ordering::Acquire)
    }

    pub(super) fn activate_publishers(&self) {
        if !self.publishers_active.swap(true, Ordering::AcqRel) {
            self.activation_count.fetch_add(1, Ordering::AcqRel);
        }
    }

    pub(super) fn deactivate_publishers(&self) {
        self.publishers_active.store(false, Ordering::Release);
    }

    /// Restarts all managed timers, each with a full period.
    pub(super) fn start_timers(&self) {
        self.set_timers(true, Timer::reset);
    }

    pub(super) fn stop_timers(&self) {
        self.set_timers(false, Timer::cancel);
    }

    /// Whether managed timers tick. A timer that its user reset may be due even if
    /// not.
    pub(super) fn are_timers_active(&self) -> bool {
        self.timers_active.load(Ordering::Acquire)
    }

    fn set_timers(&self, are_active: bool, change: impl Fn(&Timer)) {
        let mut timers = self.timers.lock();
        if self.timers_active.swap(are_active, Ordering::AcqRel) == are_active {
            return;
        }
        timers.retain(|timer| timer.strong_count() > 0);
        let all: Vec<Timer> = timers
            .iter()
            .filter_map(Weak::upgrade)
            .map(|core| Timer { core })
            .collect();
        all.iter().for_each(change);
        // Unlock before the timers are dropped: dropping a callback may run user
        // code.
        drop(timers);
    }

    /// Makes a timer follow the active state.
    pub(super) fn bind_timer(&self, timer: &Timer) {
        let mut timers = self.timers.lock();
        timers.retain(|timer| timer.strong_count() > 0);
        timers.push(Arc::downgrade(&timer.core));
        if !self.are_timers_active() {
            timer.cancel();
        }
    }
}
