//! Timers, with the schedule of rcl's.

use std::sync::Arc;

use parking_lot::Mutex;
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
    schedule: Mutex<Schedule>,
    pub(crate) wakers: Wakers,
}

#[derive(Clone, Copy)]
struct Schedule {
    period: i64,
    last_call: i64,
    next_call: i64,
    is_canceled: bool,
}

impl TimerState {
    /// Nanoseconds until it is due, not positive when it is; `None` while canceled.
    pub(crate) fn remaining(&self) -> Option<i64> {
        let schedule = *self.schedule.lock();
        (!schedule.is_canceled).then(|| schedule.next_call.saturating_sub(self.clock.now()))
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
        Ok(self.state.is_ready() && self.call().is_ok())
    }

    /// Schedules the next call. Returns the expected and the actual time.
    fn call(&self) -> PyResult<(i64, i64)> {
        self.life.check()?;
        let mut schedule = self.state.schedule.lock();
        if schedule.is_canceled {
            return Err(rcl("the timer is canceled"));
        }
        let now = self.state.clock.now();
        let expected = schedule.next_call;
        schedule.last_call = now;
        schedule.next_call = expected.saturating_add(schedule.period);
        if schedule.next_call < now {
            schedule.next_call = if schedule.period == 0 {
                now
            } else {
                // The periods that were missed are skipped.
                let behind = now.saturating_sub(schedule.next_call);
                let missed = 1 + (behind - 1).div_euclid(schedule.period);
                schedule
                    .next_call
                    .saturating_add(missed.saturating_mul(schedule.period))
            };
        }
        Ok((expected, now))
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
        let now = clock.state.now();
        let life = Lifetime::new(|| {});
        Ok(
            PyClassInitializer::from(Handle { life: life.clone() }).add_subclass(Self {
                state: Arc::new(TimerState {
                    clock: clock.state.clone(),
                    schedule: Mutex::new(Schedule {
                        period: period_ns,
                        last_call: now,
                        next_call: now.saturating_add(period_ns),
                        is_canceled: !autostart,
                    }),
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
        self.state.schedule.lock().is_canceled = true;
        Ok(())
    }

    fn reset_timer(&self) -> PyResult<()> {
        self.life.check()?;
        let mut schedule = self.state.schedule.lock();
        let now = self.state.clock.now();
        schedule.next_call = now.saturating_add(schedule.period);
        schedule.is_canceled = false;
        drop(schedule);
        self.state.wakers.wake();
        Ok(())
    }

    fn is_timer_canceled(&self) -> PyResult<bool> {
        self.life.check()?;
        Ok(self.state.schedule.lock().is_canceled)
    }

    fn time_since_last_call(&self) -> PyResult<i64> {
        self.life.check()?;
        let last = self.state.schedule.lock().last_call;
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
