//! ROS clock: the time override of a clock, its jump callbacks, and the rule of sleeping
//! by a clock (`rcl_clock_t`, `rcl_set_ros_time_override`, `rcl_jump_threshold_t`).
//!
//! A clock shows system time, or a simulated time that somebody sets while the override is
//! on. Each change is a jump: it is checked against the thresholds of the jump callbacks
//! and told to the timers. This module never reads a clock, blocks, or calls callbacks.

use std::fmt;
use std::sync::Weak;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

/// A jump of ROS time, as in rclpy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimeJump {
    /// Whether the time source changed.
    pub clock_change: ClockChange,
    /// New time minus old time in nanoseconds; negative is backward. Zero with another
    /// time source, as in rcl: times of two sources have no distance.
    pub delta: i64,
}

/// Change of the time source that came with a jump (`rcl_clock_change_t`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClockChange {
    /// `use_sim_time` became true: ROS time is simulated now.
    Activated,
    /// `use_sim_time` became false: ROS time is system time now.
    Deactivated,
    /// No change of source: `/clock` advanced or went back.
    RosTimeNoChange,
}

/// Which jumps are reported to a callback.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct JumpThreshold {
    /// Whether to report changes of `use_sim_time`.
    pub on_clock_change: bool,
    /// Minimum forward step of `/clock` to report; `None` reports none.
    pub min_forward: Option<Duration>,
    /// Minimum backward step of `/clock` to report; `None` reports none.
    pub min_backward: Option<Duration>,
}

impl JumpThreshold {
    /// Whether the jump is as large as the threshold. A step of zero is no jump.
    pub fn is_exceeded_by(&self, jump: TimeJump) -> bool {
        let size = Duration::from_nanos(jump.delta.unsigned_abs());
        let is_reached = |minimum: Option<Duration>| minimum.is_some_and(|minimum| size >= minimum);
        match jump.clock_change {
            ClockChange::Activated | ClockChange::Deactivated => self.on_clock_change,
            ClockChange::RosTimeNoChange if jump.delta < 0 => is_reached(self.min_backward),
            ClockChange::RosTimeNoChange if jump.delta > 0 => is_reached(self.min_forward),
            ClockChange::RosTimeNoChange => false,
        }
    }
}

/// The rule for the first time of a simulated clock that had none before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FirstTime {
    /// Periods of timers begin with it, and no jump is reported (the rule of `pteros`).
    StartsPeriods,
    /// A step forward from 0 (the rule of rclcpp and rclpy).
    IsAJump,
}

/// The changes of its time that a clock reports to its timers.
pub trait ClockTimer: Send + Sync {
    /// Restarts the period. A stopped timer stays stopped.
    fn restart(&self);

    /// The timer's clock is about to change its source, and shows the time of the old one.
    fn handle_switch(&self);

    /// The timer's clock jumped, or has another source now. A stopped timer stays
    /// stopped.
    fn handle_jump(&self, change: ClockChange);
}

/// A clock of ROS time, with jump callbacks of the type `C`. Thread-safe.
///
/// A change has two steps, so that a client library can run callbacks before and after:
/// `set_time` and `set_simulated` return a [`PendingJump`], and [`RosClock::commit`]
/// makes it the time.
pub struct RosClock<C> {
    first_time: FirstTime,
    is_simulated: AtomicBool,
    /// 0 before the first time.
    simulated_nanos: AtomicI64,
    /// Whether there was a first time. A simulation that goes back to 0 has one.
    has_time: AtomicBool,
    /// Counts switches on and off.
    switches: AtomicU64,
    callbacks: Mutex<Vec<(u64, JumpThreshold, C)>>,
    next_id: AtomicU64,
    timers: Mutex<Vec<Weak<dyn ClockTimer>>>,
}

/// A jump that is not made yet.
#[must_use = "the clock keeps its time until the jump is committed"]
pub struct PendingJump<C> {
    /// Old and new time, for the callbacks.
    pub jump: TimeJump,
    /// The callbacks whose thresholds it exceeds, in the order of their registration.
    pub callbacks: Vec<C>,
    nanos: i64,
    is_first_time: bool,
}

impl<C: Clone> RosClock<C> {
    /// A clock that shows system time.
    pub fn new(first_time: FirstTime) -> Self {
        Self {
            first_time,
            is_simulated: AtomicBool::new(false),
            simulated_nanos: AtomicI64::new(0),
            has_time: AtomicBool::new(false),
            switches: AtomicU64::new(0),
            callbacks: Mutex::default(),
            next_id: AtomicU64::new(1),
            timers: Mutex::default(),
        }
    }

    /// Whether the time stands still unless somebody sets it.
    pub fn is_simulated(&self) -> bool {
        self.is_simulated.load(Ordering::Acquire)
    }

    /// The time in nanoseconds, or `None` if that is system time.
    pub fn simulated_now(&self) -> Option<i64> {
        self.is_simulated()
            .then(|| self.simulated_nanos.load(Ordering::Acquire))
    }

    /// Sets the simulated time. A clock that shows system time keeps it for later and
    /// makes no jump.
    pub fn set_time(&self, nanos: i64) -> Option<PendingJump<C>> {
        let Some(before) = self.simulated_now() else {
            self.simulated_nanos.store(nanos, Ordering::Release);
            self.has_time.store(nanos != 0, Ordering::Release);
            return None;
        };
        let has_time = self.has_time.load(Ordering::Acquire);
        let is_first_time = !has_time && self.first_time == FirstTime::StartsPeriods;
        let jump = TimeJump {
            clock_change: ClockChange::RosTimeNoChange,
            delta: nanos.saturating_sub(before),
        };
        let mut pending = self.pending(jump, nanos);
        if is_first_time {
            pending.callbacks.clear();
            pending.is_first_time = true;
        }
        Some(pending)
    }

    /// Switches between system time and simulated time. `None` if it is so already.
    pub fn set_simulated(&self, is_simulated: bool) -> Option<PendingJump<C>> {
        if self.is_simulated() == is_simulated {
            return None;
        }
        let clock_change = if is_simulated {
            ClockChange::Activated
        } else {
            ClockChange::Deactivated
        };
        let jump = TimeJump {
            clock_change,
            delta: 0,
        };
        Some(self.pending(jump, 0))
    }

    fn pending(&self, jump: TimeJump, nanos: i64) -> PendingJump<C> {
        let callbacks = self.callbacks.lock();
        let exceeded = callbacks
            .iter()
            .filter(|(_, threshold, _)| threshold.is_exceeded_by(jump));
        PendingJump {
            jump,
            callbacks: exceeded.map(|(_, _, callback)| callback.clone()).collect(),
            nanos,
            is_first_time: false,
        }
    }

    /// Makes the jump: changes the time and the schedules of the timers. The caller then
    /// wakes sleepers and runs the callbacks.
    pub fn commit(&self, pending: &PendingJump<C>) {
        let TimeJump {
            clock_change,
            delta,
        } = pending.jump;
        let before = self.simulated_nanos.load(Ordering::Acquire);
        // A step forward changes no schedule, unless there was no time before.
        let is_step = clock_change == ClockChange::RosTimeNoChange && delta >= 0;
        let timers: Vec<_> = if is_step && before != 0 {
            Vec::new()
        } else {
            let timers = self.timers.lock();
            timers.iter().filter_map(Weak::upgrade).collect()
        };
        match clock_change {
            ClockChange::RosTimeNoChange => {
                self.simulated_nanos.store(pending.nanos, Ordering::Release);
                self.has_time.store(true, Ordering::Release);
            }
            ClockChange::Activated | ClockChange::Deactivated => {
                for timer in &timers {
                    timer.handle_switch();
                }
                let is_simulated = clock_change == ClockChange::Activated;
                self.is_simulated.store(is_simulated, Ordering::Release);
                self.switches.fetch_add(1, Ordering::AcqRel);
            }
        }
        for timer in timers {
            if pending.is_first_time {
                timer.restart();
            } else {
                timer.handle_jump(clock_change);
            }
        }
    }

    /// Lets jumps change the schedule of a timer, while that lives.
    pub fn add_timer(&self, timer: Weak<dyn ClockTimer>) {
        let mut timers = self.timers.lock();
        timers.retain(|timer| timer.strong_count() > 0);
        timers.push(timer);
    }

    /// Adds a jump callback and returns its id.
    pub fn add_callback(&self, threshold: JumpThreshold, callback: C) -> u64 {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        self.callbacks.lock().push((id, threshold, callback));
        id
    }

    /// Removes the jump callbacks that do not fulfil a condition.
    pub fn retain_callbacks(&self, keeps: impl Fn(&C) -> bool) {
        let mut callbacks = self.callbacks.lock();
        callbacks.retain(|(_, _, callback)| keeps(callback));
    }

    /// Removes the jump callback of that id, and returns it for the caller to drop
    /// outside of locks.
    pub fn remove_callback(&self, id: u64) -> Option<C> {
        let mut callbacks = self.callbacks.lock();
        let index = callbacks.iter().position(|(known, ..)| *known == id)?;
        Some(callbacks.remove(index).2)
    }

    /// Removes all jump callbacks and returns them.
    pub fn clear_callbacks(&self) -> Vec<C> {
        let callbacks = std::mem::take(&mut *self.callbacks.lock());
        callbacks
            .into_iter()
            .map(|(_, _, callback)| callback)
            .collect()
    }

    /// The jump callbacks; empty while another thread changes them. Never blocks.
    pub fn try_callbacks(&self) -> Vec<C> {
        let callbacks = self.callbacks.try_lock();
        callbacks.map_or_else(Vec::new, |callbacks| {
            let callbacks = callbacks.iter();
            callbacks.map(|(_, _, callback)| callback.clone()).collect()
        })
    }

    /// How often the source of time has changed.
    pub fn switches(&self) -> u64 {
        self.switches.load(Ordering::Acquire)
    }
}

impl<C> fmt::Debug for RosClock<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RosClock")
            .field("is_simulated", &self.is_simulated)
            .field("simulated_nanos", &self.simulated_nanos)
            .finish_non_exhaustive()
    }
}

/// A sleep by a clock: what ends it, and with which result (`Clock.sleep_until`).
#[derive(Clone, Copy, Debug)]
pub struct Sleep {
    switches: u64,
}

/// What a sleeper finds when it looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SleepState {
    /// The time is reached.
    Reached,
    /// The context was shut down, or the clock has had another source since the sleep
    /// began: the time has lost its meaning.
    Interrupted,
    /// This span of time is left; `None` while only a jump can end the sleep.
    Sleeping(Option<Duration>),
}

impl Sleep {
    /// Begins with the clock's [`RosClock::switches`]; 0 for a clock of another type.
    pub fn new(switches: u64) -> Self {
        Self { switches }
    }

    /// State of a sleep until `until`, at `now`. Times are nanoseconds of the clock.
    ///
    /// A jump to `until` or beyond ends it. After a jump back it goes on.
    pub fn state(&self, until: i64, now: i64, clock: SleepClock) -> SleepState {
        if clock.is_shut_down || clock.switches != self.switches {
            return SleepState::Interrupted;
        }
        if now >= until {
            return SleepState::Reached;
        }
        let left = Duration::from_nanos(now.abs_diff(until));
        SleepState::Sleeping((!clock.is_simulated).then_some(left))
    }
}

/// The clock and the context of a sleeper, beside the time.
#[derive(Clone, Copy, Debug)]
pub struct SleepClock {
    /// The clock's [`RosClock::switches`]; 0 for a clock of another type.
    pub switches: u64,
    /// Whether the clock's time is simulated.
    pub is_simulated: bool,
    /// Whether the context was shut down.
    pub is_shut_down: bool,
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::rate::RateSchedule;
    use crate::timer_schedule::TimerState;

    const UNIT: f64 = 100e9;
    const WALL: i64 = 1_700_000_000_000_000_000;

    #[expect(clippy::cast_possible_truncation, reason = "small numbers")]
    fn time(word: &str) -> i64 {
        (word.parse::<f64>().unwrap() * UNIT).round() as i64
    }

    /// A timer of the table's clock.
    struct Timer {
        state: TimerState,
        clock: Arc<RosClock<()>>,
    }

    fn now(clock: &RosClock<()>) -> i64 {
        clock.simulated_now().unwrap_or(WALL)
    }

    impl ClockTimer for Timer {
        fn restart(&self) {
            self.state.restart(|| now(&self.clock));
        }

        fn handle_switch(&self) {
            self.state.handle_switch(|| now(&self.clock));
        }

        fn handle_jump(&self, change: ClockChange) {
            self.state.handle_jump(change, || now(&self.clock));
        }
    }

    fn make(clock: &RosClock<()>, pending: Option<PendingJump<()>>) -> Option<TimeJump> {
        let pending = pending?;
        clock.commit(&pending);
        (!pending.callbacks.is_empty()).then_some(pending.jump)
    }

    /// Plays a switch or a time of `/clock`; returns the jump that is reported.
    fn play(clock: &RosClock<()>, step: &str) -> Option<TimeJump> {
        let pending = match step {
            "on" | "off" => clock.set_simulated(step == "on"),
            time_of_clock => clock.set_time(time(time_of_clock)),
        };
        make(clock, pending)
    }

    fn clock_at(start: &str) -> Arc<RosClock<()>> {
        let clock = Arc::new(RosClock::new(FirstTime::StartsPeriods));
        play(&clock, "on");
        if start != "0" {
            play(&clock, start);
        }
        clock
    }

    fn timer_calls(start: &str, steps: &[&str]) -> Vec<String> {
        let clock = clock_at(start);
        let timer = Arc::new(Timer {
            state: TimerState::new(time("1"), false),
            clock: clock.clone(),
        });
        let weak = Arc::downgrade(&timer);
        clock.add_timer(weak);
        timer.state.start(|| now(&clock));
        let mut calls = 0;
        let count = |step: &&str| {
            match *step {
                "cancel" => timer.state.cancel(),
                "reset" => timer.state.reset(|| now(&clock)),
                step => match step.strip_prefix("period=") {
                    Some(period) => timer.state.set_period(time(period)),
                    None => drop(play(&clock, step)),
                },
            }
            for _ in 0..4 {
                calls += i32::from(timer.state.call_if_due(|| now(&clock)).is_some());
            }
            calls.to_string()
        };
        steps.iter().map(count).collect()
    }

    fn sleep_clock(clock: &RosClock<()>, is_shut_down: bool) -> SleepClock {
        SleepClock {
            switches: clock.switches(),
            is_simulated: clock.is_simulated(),
            is_shut_down,
        }
    }

    fn rate_sleeps(steps: &[&str]) -> Vec<String> {
        let clock = clock_at("10");
        let mut rate = RateSchedule::starting_at(now(&clock), time("1"));
        let (mut sleep, mut ended) = (None, 0);
        let count = |step: &&str| {
            if *step == "sleep" {
                assert!(sleep.replace(Sleep::new(clock.switches())).is_none());
            } else {
                play(&clock, step);
            }
            let now = now(&clock);
            let state = sleep.map(|sleep: Sleep| {
                sleep.state(rate.sleep_until(now), now, sleep_clock(&clock, false))
            });
            if !matches!(state, None | Some(SleepState::Sleeping(_))) {
                rate.wake(now);
                sleep = None;
                ended += 1;
            }
            ended.to_string()
        };
        steps.iter().map(count).collect()
    }

    fn sleep_states(steps: &[&str]) -> Vec<String> {
        let clock = clock_at("10");
        let (sleep, until) = (Sleep::new(clock.switches()), time(steps[0]));
        let state = |is_shut_down| {
            let state = sleep.state(until, now(&clock), sleep_clock(&clock, is_shut_down));
            let word = match state {
                SleepState::Reached => "true",
                SleepState::Interrupted => "false",
                SleepState::Sleeping(_) => "sleeping",
            };
            word.to_owned()
        };
        let mut states = vec![state(false)];
        for step in &steps[1..] {
            let is_shut_down = *step == "shutdown";
            if !is_shut_down {
                play(&clock, step);
            }
            states.push(state(is_shut_down));
        }
        states
    }

    fn reported_jumps(steps: &[&str]) -> Vec<String> {
        let clock = clock_at("10");
        let mut threshold = JumpThreshold::default();
        for word in steps[0].split(',') {
            let span = |text| Some(Duration::from_nanos(time(text).unsigned_abs()));
            match word.split_once('=') {
                Some(("forward", text)) => threshold.min_forward = span(text),
                Some((_, text)) => threshold.min_backward = span(text),
                None => threshold.on_clock_change = true,
            }
        }
        clock.add_callback(threshold, ());
        let report = |step: &&str| {
            let Some(jump) = play(&clock, step) else {
                return "-".to_owned();
            };
            match jump.clock_change {
                ClockChange::Activated => "on".into(),
                ClockChange::Deactivated => "off".into(),
                #[expect(clippy::cast_precision_loss, reason = "small numbers")]
                ClockChange::RosTimeNoChange => (jump.delta as f64 / UNIT).to_string(),
            }
        };
        steps[1..].iter().map(report).collect()
    }

    #[test]
    fn the_rows_of_the_behaviour_table_hold() {
        let rows = include_str!("../tests/behaviour/time.txt").lines();
        let mut count = 0;
        for row in rows.filter(|row| !row.starts_with('#') && !row.starts_with("source")) {
            let (steps, expected) = row.split_once("->").unwrap();
            let steps: Vec<_> = steps.split_whitespace().collect();
            let found = match steps[0] {
                "timer" => timer_calls("10", &steps[1..]),
                "unset" => timer_calls("0", &steps[1..]),
                "rate" => rate_sleeps(&steps[1..]),
                "sleep" => sleep_states(&steps[1..]),
                "jump" => reported_jumps(&steps[1..]),
                other => panic!("{other}: no such kind"),
            };
            let ours = expected.split('|').next().unwrap_or_default();
            let expected: Vec<_> = ours.split_whitespace().collect();
            assert_eq!(found, expected, "{row}");
            count += 1;
        }
        assert!(count > 40);
    }

    #[test]
    fn a_clock_keeps_the_time_that_is_set_while_it_shows_system_time() {
        let clock = RosClock::<()>::new(FirstTime::IsAJump);
        assert!(clock.set_time(5).is_none());
        assert_eq!(clock.simulated_now(), None);
        make(&clock, clock.set_simulated(true));
        assert_eq!(clock.simulated_now(), Some(5));
        assert!(clock.set_simulated(true).is_none());
    }

    #[test]
    fn removed_callbacks_get_no_jump() {
        let clock = RosClock::new(FirstTime::IsAJump);
        let threshold = JumpThreshold {
            on_clock_change: true,
            ..JumpThreshold::default()
        };
        let ids = [7, 8, 9].map(|number| clock.add_callback(threshold, number));
        assert_eq!(clock.remove_callback(ids[1]), Some(8));
        assert_eq!(clock.remove_callback(ids[1]), None);
        assert_eq!(clock.set_simulated(true).unwrap().callbacks, [7, 9]);
        clock.retain_callbacks(|number| *number == 9);
        assert_eq!(clock.try_callbacks(), [9]);
        assert_eq!(clock.clear_callbacks(), [9]);
    }
}
