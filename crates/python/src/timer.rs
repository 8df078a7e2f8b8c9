//! Timers on the clocks of this module, with the schedule of the Rust library's timers.

use std::sync::{Arc, Weak};

use pteros_rcl::clock::{ClockChange, ClockTimer};
use pteros_rcl::timer_schedule as rcl;
use pteros_rcl::wait_set::WaitSource;
use pteros_rcl::wakers::Wakers;
use pteros_runtime::ready_queue::ReadyQueue;
use pteros_runtime::rtps::time::{Duration, Instant};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::clock::{Clock, ClockState};
use crate::context::{Context, ContextState, Owner};
use crate::error::rcl as rcl_error;
use crate::handle::{Handle, Lifetime};

/// The state of a timer.
pub(crate) struct TimerState {
    pub(crate) clock: Arc<ClockState>,
    state: rcl::TimerState,
    wakers: Wakers,
}

impl TimerState {
    /// Nanoseconds until it is due, not positive when it is; `None` while canceled.
    fn remaining(&self) -> Option<i64> {
        self.state.remaining(|| self.clock.now())
    }

    fn call_if_due(&self) -> Option<rcl::TimerCall> {
        self.state.call_if_due(|| self.clock.now())
    }
}

impl WaitSource for TimerState {
    fn attach(&self, queue: &Arc<ReadyQueue>) {
        self.wakers.add(queue);
        self.clock.wakers.add(queue);
    }

    fn is_ready(&self) -> bool {
        self.remaining().is_some_and(|remaining| remaining <= 0)
    }

    fn next_due(&self, now: Instant) -> Instant {
        match self.remaining() {
            Some(remaining) if remaining <= 0 || !self.clock.clock.is_simulated() => {
                now.after(Duration::from_nanos(remaining.max(0)))
            }
            _ => Instant::FAR_FUTURE,
        }
    }
}

impl ClockTimer for TimerState {
    fn restart(&self) {
        self.state.restart(|| self.clock.now());
    }

    fn handle_switch(&self) {
        self.state.handle_switch(|| self.clock.now());
    }

    fn handle_jump(&self, change: ClockChange) {
        self.state.handle_jump(change, || self.clock.now());
    }
}

/// A timer.
#[pyclass(extends = Handle, frozen, module = "pteros._native")]
pub(crate) struct Timer {
    pub(crate) state: Arc<TimerState>,
    pub(crate) life: Arc<Lifetime>,
    _context: Arc<ContextState>,
}

/// The expected and the actual time.
fn pair(call: rcl::TimerCall) -> (i64, i64) {
    (call.expected, call.actual)
}

fn check_period(period: i64) -> PyResult<()> {
    if period >= 0 {
        return Ok(());
    }
    Err(rcl_error(format!(
        "timer period must be non-negative, got {period} ns: use 0 or more"
    )))
}

impl Timer {
    /// Schedules the next call if the timer is due.
    pub(crate) fn try_call(&self) -> PyResult<bool> {
        self.life.check()?;
        Ok(self.state.call_if_due().is_some())
    }

    /// Schedules the next call. Returns the expected and the actual time.
    fn call(&self) -> PyResult<(i64, i64)> {
        self.life.check()?;
        let call = self.state.state.call(|| self.state.clock.now());
        call.map(pair)
            .ok_or_else(|| rcl_error("the timer is canceled"))
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
        let state = Arc::new(TimerState {
            clock: clock.state.clone(),
            state: rcl::TimerState::new(period_ns, !autostart),
            wakers: Wakers::default(),
        });
        let timer: Weak<TimerState> = Arc::downgrade(&state);
        clock.state.clock.add_timer(timer);
        state.state.start(|| clock.state.now());
        let life = Lifetime::new(|| {});
        Ok(
            PyClassInitializer::from(Handle { life: life.clone() }).add_subclass(Self {
                state,
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
        Ok(self.state.call_if_due().map(pair))
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
        self.state.state.cancel();
        Ok(())
    }

    fn reset_timer(&self) -> PyResult<()> {
        self.life.check()?;
        self.state.state.reset(|| self.state.clock.now());
        self.state.wakers.wake();
        Ok(())
    }

    fn is_timer_canceled(&self) -> PyResult<bool> {
        self.life.check()?;
        Ok(self.state.state.is_cancelled())
    }

    fn time_since_last_call(&self) -> PyResult<i64> {
        self.life.check()?;
        let last = self.state.state.schedule().last_call();
        Ok(self.state.clock.now().saturating_sub(last))
    }

    fn time_until_next_call(&self) -> PyResult<Option<i64>> {
        self.life.check()?;
        Ok(self.state.remaining())
    }

    fn get_timer_period(&self) -> PyResult<i64> {
        self.life.check()?;
        Ok(self.state.state.schedule().period)
    }

    fn change_timer_period(&self, period_ns: i64) -> PyResult<()> {
        self.life.check()?;
        check_period(period_ns)?;
        self.state.state.set_period(period_ns);
        Ok(())
    }
}
