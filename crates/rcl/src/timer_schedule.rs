//! Timer schedule: when a timer is due next, and what a jump of its clock changes
//! (the rule of rcl's `rcl_timer_call` and of its jump callback).
//!
//! Plain numbers, in nanoseconds of the timer's clock. The timers of all client libraries
//! share it. It never reads a clock by itself.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::clock::ClockChange;

/// When a timer was called last, and when it is due next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimerSchedule {
    /// Period in nanoseconds, not negative. A timer of period 0 is always due.
    ///
    /// A new value counts from the next call or restart.
    pub period: i64,
    last_call: i64,
    next_call: i64,
    /// The rest of the period at the moment when the clock began to change its source.
    left_before_switch: Option<i64>,
}

impl TimerSchedule {
    /// The first call is one period from `now`.
    pub fn starting_at(now: i64, period: i64) -> Self {
        Self {
            period,
            last_call: now,
            next_call: now.saturating_add(period),
            left_before_switch: None,
        }
    }

    /// When the timer was called last; before that, when it was created.
    pub fn last_call(&self) -> i64 {
        self.last_call
    }

    /// When the timer is due next.
    pub fn next_call(&self) -> i64 {
        self.next_call
    }

    /// Starts the period again.
    pub fn restart(&mut self, now: i64) {
        self.next_call = now.saturating_add(self.period);
        self.left_before_switch = None;
    }

    /// Notes a call and returns the time for which it was due.
    ///
    /// The next call is behind `now`: calls that were missed are skipped, and the
    /// phase is kept. If time has gone back and the jump is not handled yet, the period
    /// starts again.
    pub fn call(&mut self, now: i64) -> i64 {
        if now < self.last_call {
            *self = Self::starting_at(now, self.period);
            return now;
        }
        let due = self.next_call;
        self.last_call = now;
        self.left_before_switch = None;
        let behind = now.saturating_sub(due).max(0);
        let missed = behind.checked_div(self.period).unwrap_or(0);
        let periods = missed.saturating_add(1);
        self.next_call = match self.period {
            0 => due.max(now),
            period => due.saturating_add(periods.saturating_mul(period)),
        };
        due
    }

    /// The clock, which shows `now`, is about to change its source. 0 is no time yet.
    pub fn handle_switch(&mut self, now: i64) {
        let left = self.next_call.saturating_sub(now);
        self.left_before_switch = (now != 0).then_some(left);
    }

    /// The clock was set to `now`, or changed its source and shows `now`. Returns
    /// whether the next call is at another time.
    ///
    /// With another source the timer waits for what was left of the period. It starts again
    /// if the old source had no time, and when time has gone back behind the last call. A new
    /// source that shows 0 has no time yet: its first time changes the schedule, not the
    /// switch.
    pub fn handle_jump(&mut self, change: ClockChange, now: i64) -> bool {
        let left = match change {
            ClockChange::Activated | ClockChange::Deactivated if now != 0 => {
                self.left_before_switch.unwrap_or(self.period)
            }
            ClockChange::RosTimeNoChange if now < self.last_call => self.period,
            _ => return false,
        };
        self.next_call = now.saturating_add(left);
        self.last_call = self.next_call.saturating_sub(self.period).min(now);
        self.left_before_switch = None;
        true
    }
}

/// The schedule of a timer that can be stopped. Thread-safe.
///
/// Each `now` reads the timer's clock, in nanoseconds. It is called under the lock of the
/// schedule, so that a jump of the clock counts after it.
#[derive(Debug)]
pub struct TimerState {
    schedule: Mutex<TimerSchedule>,
    is_cancelled: AtomicBool,
}

/// A call of a timer, in nanoseconds of its clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimerCall {
    /// When it was due.
    pub expected: i64,
    /// When it was made.
    pub actual: i64,
}

impl TimerState {
    /// A timer whose period begins with [`TimerState::start`].
    pub fn new(period: i64, is_cancelled: bool) -> Self {
        Self {
            schedule: Mutex::new(TimerSchedule::starting_at(0, period)),
            is_cancelled: AtomicBool::new(is_cancelled),
        }
    }

    /// The first call is one period from now. To be called once jumps reach the timer.
    pub fn start(&self, now: impl FnOnce() -> i64) {
        let mut schedule = self.schedule.lock();
        *schedule = TimerSchedule::starting_at(now(), schedule.period);
    }

    /// A copy of the schedule.
    pub fn schedule(&self) -> TimerSchedule {
        *self.schedule.lock()
    }

    /// Changes the period, which counts from the next call or restart.
    pub fn set_period(&self, period: i64) {
        self.schedule.lock().period = period;
    }

    /// Stops the timer.
    pub fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Release);
    }

    /// Whether the timer is stopped.
    pub fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Acquire)
    }

    /// Starts the period again; a stopped timer stays stopped.
    pub fn restart(&self, now: impl FnOnce() -> i64) {
        let mut schedule = self.schedule.lock();
        schedule.restart(now());
    }

    /// Starts the period again, also if the timer was stopped.
    pub fn reset(&self, now: impl FnOnce() -> i64) {
        self.restart(now);
        self.is_cancelled.store(false, Ordering::Release);
    }

    /// Nanoseconds until the next call, not positive if it is due; `None` while stopped.
    pub fn remaining(&self, now: impl FnOnce() -> i64) -> Option<i64> {
        let next_call = self.schedule().next_call();
        (!self.is_cancelled()).then(|| next_call.saturating_sub(now()))
    }

    /// Notes a call; `None` while stopped.
    pub fn call(&self, now: impl FnOnce() -> i64) -> Option<TimerCall> {
        self.call_if(|_| true, now)
    }

    /// Notes a call if it is due; `None` otherwise, and while stopped.
    pub fn call_if_due(&self, now: impl FnOnce() -> i64) -> Option<TimerCall> {
        self.call_if(|remaining| remaining <= 0, now)
    }

    fn call_if(
        &self,
        accepts: impl FnOnce(i64) -> bool,
        now: impl FnOnce() -> i64,
    ) -> Option<TimerCall> {
        let mut schedule = self.schedule.lock();
        let actual = now();
        let remaining = schedule.next_call().saturating_sub(actual);
        (!self.is_cancelled() && accepts(remaining)).then(|| TimerCall {
            expected: schedule.call(actual),
            actual,
        })
    }

    /// See [`TimerSchedule::handle_switch`].
    pub fn handle_switch(&self, now: impl FnOnce() -> i64) {
        let mut schedule = self.schedule.lock();
        schedule.handle_switch(now());
    }

    /// See [`TimerSchedule::handle_jump`].
    pub fn handle_jump(&self, change: ClockChange, now: impl FnOnce() -> i64) -> bool {
        let mut schedule = self.schedule.lock();
        schedule.handle_jump(change, now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;

    fn at(last: i64, next: i64) -> TimerSchedule {
        TimerSchedule {
            period: S,
            last_call: last,
            next_call: next,
            left_before_switch: None,
        }
    }

    #[test]
    fn missed_calls_are_skipped_and_the_phase_is_kept() {
        for (now, next) in [
            (11 * S, 12 * S),
            (11 * S + 1, 12 * S),
            (12 * S - 1, 12 * S),
            // Whole periods: one call, not two.
            (12 * S, 13 * S),
            (20 * S, 21 * S),
            (20 * S + S / 2, 21 * S),
        ] {
            let mut schedule = TimerSchedule::starting_at(10 * S, S);
            assert_eq!(schedule.call(now), 11 * S);
            assert_eq!(schedule, at(now, next), "called at {now}");
        }
        let mut always = TimerSchedule::starting_at(10, 0);
        assert_eq!((always.call(15), always.next_call()), (10, 15));
    }

    #[test]
    fn a_jump_behind_the_last_call_or_another_source_starts_the_period_again() {
        let running = at(11 * S, 12 * S);
        let same = ClockChange::RosTimeNoChange;
        for (change, now, next) in [
            (same, 5 * S, Some(6 * S)),
            (same, 0, Some(S)),
            (same, 11 * S - 1, Some(12 * S - 1)),
            // Back, but not behind the last call; forward, by any span.
            (same, 11 * S, None),
            (same, 11 * S + 1, None),
            (same, 100 * S, None),
            (ClockChange::Deactivated, 1_700 * S, Some(1_701 * S)),
            (ClockChange::Activated, 3 * S, Some(4 * S)),
            (ClockChange::Activated, 0, None),
        ] {
            let mut schedule = running;
            assert_eq!(schedule.handle_jump(change, now), next.is_some());
            assert_eq!(
                schedule.next_call(),
                next.unwrap_or(12 * S),
                "{change:?} {now}"
            );
        }
        // A source without a time is switched on, and then tells its first one.
        let mut schedule = at(1_700 * S, 1_701 * S);
        assert!(!schedule.handle_jump(ClockChange::Activated, 0));
        assert!(schedule.handle_jump(same, 5 * S));
        assert_eq!(schedule.next_call(), 6 * S);
    }

    #[test]
    fn with_another_source_a_timer_waits_for_what_is_left_of_its_period() {
        for (before, left) in [
            (11 * S, S),
            (11 * S + S / 4, S - S / 4),
            (12 * S, 0),
            // It is due already.
            (15 * S, -3 * S),
            // Time has gone back, but not behind the last call.
            (11 * S + 1, S - 1),
        ] {
            let mut schedule = at(11 * S, 12 * S);
            schedule.handle_switch(before);
            assert!(schedule.handle_jump(ClockChange::Deactivated, 1_700 * S));
            assert_eq!(schedule.next_call(), 1_700 * S + left, "{before}");
            assert!(schedule.last_call() <= 1_700 * S);
            schedule.handle_switch(1_700 * S);
            assert!(schedule.handle_jump(ClockChange::Activated, before));
            assert_eq!(schedule.next_call(), 12 * S, "{before}");
        }
    }

    #[test]
    fn a_call_between_a_jump_and_its_handling_does_not_wait_for_the_old_time() {
        let same = ClockChange::RosTimeNoChange;
        let mut schedule = at(1_000 * S, 1_001 * S);
        assert_eq!(schedule.call(10 * S), 10 * S);
        schedule.handle_jump(same, 10 * S);
        assert_eq!(schedule, at(10 * S, 11 * S));
    }

    #[test]
    fn extreme_values_saturate() {
        let mut schedule = TimerSchedule::starting_at(i64::MAX - 5, i64::MAX);
        assert_eq!(schedule.next_call(), i64::MAX);
        schedule.call(i64::MAX);
        assert_eq!(schedule.next_call(), i64::MAX);
        assert!(schedule.handle_jump(ClockChange::RosTimeNoChange, i64::MIN));
    }
}
