//! Clocks: system time, steady time, and ROS time, which a simulation may set.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;
use pteros::clock::ClockChange;
use pteros_net::monotonic_nanos;
use pteros_rcl::timer_schedule::TimerSchedule;
use pteros_runtime::platform::Platform;
use pteros_runtime::rtps::time::{Duration, Instant};
use pteros_runtime::udp::SystemPlatform;
use pyo3::exceptions::PyValueError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::context::Context;
use crate::error::rcl;
use crate::ffi::call_back;
use crate::handle::{Handle, Lifetime};
use crate::wakers::Wakers;

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
    /// Simulated time while it is on; ROS time only.
    simulated: Mutex<Simulated>,
    callbacks: Mutex<Vec<JumpCallback>>,
    /// Those of its timers. Jumps change them.
    schedules: Mutex<Vec<Weak<Mutex<TimerSchedule>>>>,
    next_id: AtomicU64,
    /// Times of its timers and sleepers that depend on jumps.
    pub(crate) wakers: Wakers,
}

#[derive(Clone, Copy, Default)]
struct Simulated {
    is_on: bool,
    now: i64,
    /// Counts switches on and off.
    switches: u64,
}

struct JumpCallback {
    id: u64,
    before: Option<Py<PyAny>>,
    after: Option<Py<PyAny>>,
    on_change: bool,
    min_forward: i64,
    min_backward: i64,
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
            ROS => {
                let simulated = *self.simulated.lock();
                if simulated.is_on {
                    simulated.now
                } else {
                    wall_clock()
                }
            }
            _ => wall_clock(),
        }
    }

    /// Whether its time stands still unless somebody sets it.
    pub(crate) fn is_simulated(&self) -> bool {
        self.kind == ROS && self.simulated.lock().is_on
    }

    /// Lets jumps change the schedule of a timer, while that lives.
    pub(crate) fn add_schedule(&self, schedule: &Arc<Mutex<TimerSchedule>>) {
        let mut schedules = self.schedules.lock();
        schedules.retain(|one| one.strong_count() > 0);
        schedules.push(Arc::downgrade(schedule));
    }

    fn check_ros(&self) -> PyResult<()> {
        if self.kind == ROS {
            return Ok(());
        }
        Err(rcl("only a clock of ROS time can be set"))
    }

    /// Changes the time with the callbacks of those jumps before and behind.
    fn jump(
        &self,
        py: Python<'_>,
        change: ClockChange,
        next: impl FnOnce(&mut Simulated),
    ) -> PyResult<()> {
        let mut simulated = *self.simulated.lock();
        let before = self.now();
        next(&mut simulated);
        let after = if simulated.is_on {
            simulated.now
        } else {
            wall_clock()
        };
        // As in rcl, another source is no distance.
        let delta = if change == ClockChange::RosTimeNoChange {
            after.saturating_sub(before)
        } else {
            0
        };
        let is_told = |callback: &JumpCallback| {
            if change == ClockChange::RosTimeNoChange {
                (callback.min_forward > 0 && delta >= callback.min_forward)
                    || (callback.min_backward < 0 && delta <= callback.min_backward)
            } else {
                callback.on_change
            }
        };
        let clone = |callback: &Option<Py<PyAny>>| callback.as_ref().map(|one| one.clone_ref(py));
        let told: Vec<_> = self
            .callbacks
            .lock()
            .iter()
            .filter(|callback| is_told(callback))
            .map(|callback| (clone(&callback.before), clone(&callback.after)))
            .collect();
        for (callback, _) in &told {
            if let Some(callback) = callback {
                call_back(callback.bind(py), None)?;
            }
        }
        *self.simulated.lock() = simulated;
        for schedule in self.schedules.lock().iter().filter_map(Weak::upgrade) {
            schedule.lock().handle_jump(change, after);
        }
        self.wakers.wake();
        if told.is_empty() {
            return Ok(());
        }
        for (_, callback) in &told {
            if let Some(callback) = callback {
                let info = PyDict::new(py);
                info.set_item("clock_change", change_number(change))?;
                info.set_item("delta", delta)?;
                call_back(callback.bind(py), Some(&PyTuple::new(py, [info])?))?;
            }
        }
        Ok(())
    }
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
                    simulated: Mutex::default(),
                    callbacks: Mutex::default(),
                    schedules: Mutex::default(),
                    next_id: AtomicU64::new(1),
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
        Ok(self.state.is_simulated())
    }

    fn set_ros_time_override_is_enabled(&self, py: Python<'_>, enabled: bool) -> PyResult<()> {
        self.life.check()?;
        self.state.check_ros()?;
        if self.state.is_simulated() == enabled {
            return Ok(());
        }
        let change = if enabled {
            ClockChange::Activated
        } else {
            ClockChange::Deactivated
        };
        self.state.jump(py, change, |simulated| {
            simulated.is_on = enabled;
            simulated.switches += 1;
        })
    }

    fn set_ros_time_override(&self, py: Python<'_>, nanoseconds: i64) -> PyResult<()> {
        self.life.check()?;
        self.state.check_ros()?;
        if !self.state.is_simulated() {
            self.state.simulated.lock().now = nanoseconds;
            return Ok(());
        }
        self.state
            .jump(py, ClockChange::RosTimeNoChange, |simulated| {
                simulated.now = nanoseconds;
            })
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
        let id = self.state.next_id.fetch_add(1, Ordering::Relaxed);
        self.state.callbacks.lock().push(JumpCallback {
            id,
            before: pre_callback,
            after: post_callback,
            on_change: on_clock_change,
            min_forward,
            min_backward,
        });
        Ok(id)
    }

    fn remove_clock_callback(&self, callback_id: u64) -> PyResult<()> {
        self.life.check()?;
        let mut callbacks = self.state.callbacks.lock();
        let at = callbacks.iter().position(|one| one.id == callback_id);
        let removed = at.map(|at| callbacks.swap_remove(at));
        drop(callbacks);
        drop(removed);
        Ok(())
    }

    /// For the garbage collector: the callbacks of a node's clock often hold the node.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // No Python code runs under the lock, so it is free here.
        let Some(callbacks) = self.state.callbacks.try_lock() else {
            return Ok(());
        };
        for callback in callbacks.iter() {
            visit.call(&callback.before)?;
            visit.call(&callback.after)?;
        }
        Ok(())
    }

    fn __clear__(&self) {
        let callbacks = std::mem::take(&mut *self.state.callbacks.lock());
        drop(callbacks);
    }

    /// Sleeps; false if the context was shut down or ROS time was switched before.
    fn sleep_until(&self, py: Python<'_>, until_ns: i64, context: &Context) -> PyResult<bool> {
        self.life.check()?;
        context.life.check()?;
        let state = &self.state;
        let core = &context.state.core;
        let switches = state.simulated.lock().switches;
        let queue = core.ready_queue();
        state.wakers.add(&queue);
        let is_switched = || state.simulated.lock().switches != switches;
        py.detach(|| {
            loop {
                let is_over =
                    || state.now() >= until_ns || context.state.is_shut_down() || is_switched();
                if is_over() {
                    break;
                }
                let until = if state.is_simulated() {
                    Instant::FAR_FUTURE
                } else {
                    let left = until_ns.saturating_sub(state.now()).max(0);
                    core.platform.now().after(Duration::from_nanos(left))
                };
                core.drive_until(&queue, until, || {
                    while let Some(task) = queue.pop() {
                        task.run();
                    }
                    is_over()
                });
            }
            core.hand_over(&queue);
        });
        py.check_signals()?;
        Ok(state.now() >= until_ns && !is_switched())
    }
}

/// Adds class and constants to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("CLOCK_ROS", ROS)?;
    module.add("CLOCK_SYSTEM", SYSTEM)?;
    module.add("CLOCK_STEADY", STEADY)?;
    module.add_class::<Clock>()
}
