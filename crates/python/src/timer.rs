//! Timers on the clocks of this module, with the schedule of the Rust library's timers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use pteros_rcl::timer_schedule::TimerSchedule;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::clock::{Clock, ClockState};
use crate::context::{Context, ContextState, Owner};
use crate::error::rcl;
use crate::handle::{Handle, Lifetime};
use crate::wakers::Wakers;

/// The state of a timer.
pub(crate) struct TimerState {
    pub(crate) clock: Arc<ClockState>,
    /// Shared with the clock, whose jumps change it.
    schedule: Arc<Mutex<TimerSchedule>>,
    is_canceled: AtomicBool,
    pub(crate) wakers: Wakers,
}

impl TimerState {
    /// Nanoseconds until it is due, not positive when it is; `None` while canceled.
    pub(crate) fn remaining(&self) -> Option<i64> {
        let next_call = self.schedule.lock().next_call();
        (!self.is_canceled.load(Ordering::Acquire))
            .then(|| next_call.saturating_sub(self.clock.now()))
    }

    /// Schedules the next call. Returns the expected and the actual time; `None` while
    /// canceled, or if `only_if_due` and it is not due.
    fn call(&self, only_if_due: bool) -> Option<(i64, i64)> {
        let mut schedule = self.schedule.lock();
        let now = self.clock.now();
        let is_refused =
            self.is_canceled.load(Ordering::Acquire) || (only_if_due && schedule.next_call() > now);
        (!is_refused).then(|| (schedule.call(now), now))
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.remaining().is_some_and(|remaining| remaining <= 0)
    }
}

/// A timer.
#[pyclass(extends = Handle, frozen, module = "pteros._native")]
pub(crate) struct Timer {
    pub(crate) state: Arc<TimerState>,
    pub(crate) life: Arc<Lifetime>,
    _context: Arc<ContextState>,
}

fn check_period(period: i64) -> PyResult<()> {
    if period >= 0 {
        return Ok(());
    }
    Err(rcl(format!(
        "timer period must be non-negative, got {period} ns: use 0 or more"
    )))
}

impl Timer {
    /// Schedules the next call if the timer is due.
    pub(crate) fn try_call(&self) -> PyResult<bool> {
        self.life.check()?;
        Ok(self.state.call(true).is_some())
    }

    /// Schedules the next call. Returns the expected and the actual time.
    fn call(&self) -> PyResult<(i64, i64)> {
        self.life.check()?;
        let call = self.state.call(false);
        call.ok_or_else(|| rcl("the timer is canceled"))
    }
}

#[pymethods]
impl Timer {
    #[new]
    #[pyo3(signature = (clock, context, period_ns, autostart=true))]
    fn new(
        py: Python<'_>,
        clock: &Clock,
        context: &Context,
        period_ns: i64,
        autostart: bool,
    ) -> PyResult<PyClassInitializer<Self>> {
        clock.life.check()?;
        context.life.check()?;
        context
            .state
            .check_valid(py, "create timer", Owner::Given)?;
        check_period(period_ns)?;
        let schedule = Arc::new(Mutex::new(TimerSchedule::starting_at(0, period_ns)));
        clock.state.add_schedule(&schedule);
        // Time is read under the lock, as in calls, so that a jump counts after it.
        let mut starting = schedule.lock();
        *starting = TimerSchedule::starting_at(clock.state.now(), period_ns);
        drop(starting);
        let life = Lifetime::new(|| {});
        Ok(
            PyClassInitializer::from(Handle { life: life.clone() }).add_subclass(Self {
                state: Arc::new(TimerState {
                    clock: clock.state.clone(),
                    schedule,
                    is_canceled: AtomicBool::new(!autostart),
                    wakers: Wakers::default(),
                }),
                life,
                _context: context.state.clone(),
            }),
        )
    }

    /// Due and not canceled.
    fn is_ready(&self) -> PyResult<bool> {
        self.life.check()?;
        Ok(self.state.is_ready())
    }

    /// As an executor takes it: schedules the next call if the timer is due. Returns the
    /// arguments of the callback, which are none, or None if it is not due.
    fn take_due<'py>(
        &self,
        py: Python<'py>,
        _executor: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyTuple>>> {
        Ok(self.try_call()?.then(|| PyTuple::empty(py)))
    }

    /// As `take_due`; returns the expected and the actual time.
    fn take_due_with_info(&self) -> PyResult<Option<(i64, i64)>> {
        self.life.check()?;
        Ok(self.state.call(true))
    }

    /// Schedules the next call; returns its lateness.
    fn call_timer(&self) -> PyResult<i64> {
        let (expected, actual) = self.call()?;
        Ok(actual.saturating_sub(expected))
    }

    /// As `call_timer`; returns the expected and the actual time.
    fn call_timer_with_info(&self) -> PyResult<(i64, i64)> {
        self.call()
    }

    fn cancel_timer(&self) -> PyResult<()> {
        self.life.check()?;
        self.state.is_canceled.store(true, Ordering::Release);
        Ok(())
    }

    fn reset_timer(&self) -> PyResult<()> {
        self.life.check()?;
        let mut schedule = self.state.schedule.lock();
        schedule.restart(self.state.clock.now());
        drop(schedule);
        self.state.is_canceled.store(false, Ordering::Release);
        self.state.wakers.wake();
        Ok(())
    }

    fn is_timer_canceled(&self) -> PyResult<bool> {
        self.life.check()?;
        Ok(self.state.is_canceled.load(Ordering::Acquire))
    }

    fn time_since_last_call(&self) -> PyResult<i64> {
        self.life.check()?;
        let last = self.state.schedule.lock().last_call();
        Ok(self.state.clock.now().saturating_sub(last))
    }

    fn time_until_next_call(&self) -> PyResult<Option<i64>> {
        self.life.check()?;
        Ok(self.state.remaining())
    }

    fn get_timer_period(&self) -> PyResult<i64> {
        self.life.check()?;
        Ok(self.state.schedule.lock().period)
    }

    fn change_timer_period(&self, period_ns: i64) -> PyResult<()> {
        self.life.check()?;
        check_period(period_ns)?;
        self.state.schedule.lock().period = period_ns;
        Ok(())
    }
}
