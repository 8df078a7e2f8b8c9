//! Clocks: system time, steady time, and ROS time, which a simulation may set.

use std::sync::{Arc, OnceLock};

use pteros_net::monotonic_nanos;
use pteros_rcl::clock::{
    ClockChange, FirstTime, JumpThreshold, PendingJump, RosClock, Sleep, SleepClock, SleepState,
};
use pteros_rcl::wakers::Wakers;
use pteros_runtime::platform::Platform;
use pteros_runtime::rtps::time::Instant;
use pteros_runtime::udp::SystemPlatform;
use pyo3::exceptions::PyValueError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::context::Context;
use crate::error::rcl;
use crate::ffi::call_back;
use crate::handle::{Handle, Lifetime};

const ROS: u32 = 1;
const SYSTEM: u32 = 2;
const STEADY: u32 = 3;

/// What a jump is, `rcl_clock_change_t`.
fn change_number(change: ClockChange) -> u32 {
    match change {
        ClockChange::RosTimeNoChange => 1,
        ClockChange::Activated => 2,
        ClockChange::Deactivated => 3,
    }
}

/// The state of a clock.
pub(crate) struct ClockState {
    kind: u32,
    pub(crate) clock: RosClock<Arc<JumpCallback>>,
    /// Times of its timers and sleepers that depend on jumps.
    pub(crate) wakers: Wakers,
}

pub(crate) struct JumpCallback {
    before: Option<Py<PyAny>>,
    after: Option<Py<PyAny>>,
}

fn wall_clock() -> i64 {
    static PLATFORM: OnceLock<SystemPlatform> = OnceLock::new();
    PLATFORM
        .get_or_init(SystemPlatform::new)
        .wall_clock()
        .as_nanos()
}

fn steady() -> i64 {
    i64::try_from(monotonic_nanos()).unwrap_or(i64::MAX)
}

impl ClockState {
    /// Its time, in nanoseconds.
    pub(crate) fn now(&self) -> i64 {
        match self.kind {
            STEADY => steady(),
            _ => self.clock.simulated_now().unwrap_or_else(wall_clock),
        }
    }

    fn check_ros(&self) -> PyResult<()> {
        if self.kind == ROS {
            return Ok(());
        }
        Err(rcl("only a clock of ROS time can be set"))
    }

    /// Makes a jump, with its callbacks before and after. As in rclpy, an exception of one
    /// ends it.
    fn make(&self, py: Python<'_>, jump: Option<PendingJump<Arc<JumpCallback>>>) -> PyResult<()> {
        let Some(pending) = jump else {
            return Ok(());
        };
        for before in pending
            .callbacks
            .iter()
            .filter_map(|one| one.before.as_ref())
        {
            call_back(before.bind(py), None)?;
        }
        self.clock.commit(&pending);
        self.wakers.wake();
        for after in pending
            .callbacks
            .iter()
            .filter_map(|one| one.after.as_ref())
        {
            let info = PyDict::new(py);
            info.set_item("clock_change", change_number(pending.jump.clock_change))?;
            info.set_item("delta", pending.jump.delta)?;
            call_back(after.bind(py), Some(&PyTuple::new(py, [info])?))?;
        }
        Ok(())
    }
}

/// A threshold as rcl has it: 0 for none.
fn threshold(nanos: i64) -> Option<std::time::Duration> {
    (nanos != 0).then(|| std::time::Duration::from_nanos(nanos.unsigned_abs()))
}

/// A clock.
#[pyclass(extends = Handle, frozen, module = "pteros._native")]
pub(crate) struct Clock {
    pub(crate) state: Arc<ClockState>,
    pub(crate) life: Arc<Lifetime>,
}

#[pymethods]
impl Clock {
    #[new]
    fn new(clock_type: u32) -> PyResult<PyClassInitializer<Self>> {
        if !(ROS..=STEADY).contains(&clock_type) {
            return Err(PyValueError::new_err(format!(
                "clock type {clock_type}: use 1 (ROS), 2 (system) or 3 (steady)"
            )));
        }
        let life = Lifetime::new(|| {});
        Ok(
            PyClassInitializer::from(Handle { life: life.clone() }).add_subclass(Self {
                state: Arc::new(ClockState {
                    kind: clock_type,
                    clock: RosClock::new(FirstTime::IsAJump),
                    wakers: Wakers::default(),
                }),
                life,
            }),
        )
    }

    fn now(&self) -> PyResult<i64> {
        self.life.check()?;
        Ok(self.state.now())
    }

    #[getter]
    fn clock_type(&self) -> u32 {
        self.state.kind
    }

    fn get_ros_time_override_is_enabled(&self) -> PyResult<bool> {
        self.life.check()?;
        self.state.check_ros()?;
        Ok(self.state.clock.is_simulated())
    }

    fn set_ros_time_override_is_enabled(&self, py: Python<'_>, enabled: bool) -> PyResult<()> {
        self.life.check()?;
        self.state.check_ros()?;
        self.state.make(py, self.state.clock.set_simulated(enabled))
    }

    fn set_ros_time_override(&self, py: Python<'_>, nanoseconds: i64) -> PyResult<()> {
        self.life.check()?;
        self.state.check_ros()?;
        self.state.make(py, self.state.clock.set_time(nanoseconds))
    }

    /// Adds a jump callback and returns its id.
    fn add_clock_callback(
        &self,
        pre_callback: Option<Py<PyAny>>,
        post_callback: Option<Py<PyAny>>,
        on_clock_change: bool,
        min_forward: i64,
        min_backward: i64,
    ) -> PyResult<u64> {
        self.life.check()?;
        let threshold = JumpThreshold {
            on_clock_change,
            min_forward: threshold(min_forward),
            min_backward: threshold(min_backward),
        };
        let callback = Arc::new(JumpCallback {
            before: pre_callback,
            after: post_callback,
        });
        Ok(self.state.clock.add_callback(threshold, callback))
    }

    fn remove_clock_callback(&self, callback_id: u64) -> PyResult<()> {
        self.life.check()?;
        drop(self.state.clock.remove_callback(callback_id));
        Ok(())
    }

    /// For the garbage collector: the callbacks of a node's clock often hold the node.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // No Python code runs under the lock, so it is free here.
        for callback in self.state.clock.try_callbacks() {
            visit.call(&callback.before)?;
            visit.call(&callback.after)?;
        }
        Ok(())
    }

    fn __clear__(&self) {
        drop(self.state.clock.clear_callbacks());
    }

    /// Sleeps; false if the context was shut down or ROS time was switched before.
    fn sleep_until(&self, py: Python<'_>, until_ns: i64, context: &Context) -> PyResult<bool> {
        self.life.check()?;
        context.life.check()?;
        let (state, core) = (&self.state, &context.state.core);
        let sleep = Sleep::new(state.clock.switches());
        let queue = core.ready_queue();
        state.wakers.add(&queue);
        let look = || {
            let clock = SleepClock {
                switches: state.clock.switches(),
                is_simulated: state.clock.is_simulated(),
                is_shut_down: context.state.is_shut_down(),
            };
            sleep.state(until_ns, state.now(), clock)
        };
        let mut is_reached = false;
        py.detach(|| {
            core.driver().drive_while(&queue, || {
                while let Some(task) = queue.pop() {
                    task.run();
                }
                match look() {
                    SleepState::Sleeping(None) => Some(Instant::FAR_FUTURE),
                    SleepState::Sleeping(Some(left)) => {
                        Some(core.platform.now().after(left.into()))
                    }
                    ended => {
                        is_reached = ended == SleepState::Reached;
                        None
                    }
                }
            });
        });
        py.check_signals()?;
        Ok(is_reached)
    }
}

/// Adds class and constants to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("CLOCK_ROS", ROS)?;
    module.add("CLOCK_SYSTEM", SYSTEM)?;
    module.add("CLOCK_STEADY", STEADY)?;
    module.add_class::<Clock>()
}
