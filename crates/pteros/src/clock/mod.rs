//! Clocks: system time, steady time, and ROS time (/clock, simulated time).
//!
//! A node's ROS time is system time, or the time on `/clock` while its parameter
//! `use_sim_time` is true. ROS 2 design: `clock_and_time`. See `docs/how_to/simulated_time.md`.

mod jump;
mod rate;
mod server;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use pteros_runtime::platform::Instant;

pub use crate::ros_clock::{ClockChange, JumpThreshold, TimeJump};
pub use crate::time::Time;
pub use jump::JumpHandle;
pub use rate::Rate;
pub use server::ClockServer;

use jump::JumpTask;

use crate::node::{Node, NodeCore};
use crate::ros_clock::{Sleep, SleepClock, SleepState};

/// Type of a clock, as in rclpy.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum ClockType {
    /// System time: nanoseconds since 1970. It jumps when a user or NTP sets the
    /// clock.
    SystemTime,
    /// Steady time: nanoseconds since boot. It never jumps.
    SteadyTime,
    /// ROS time: system time, or `/clock` while the node's `use_sim_time` is true.
    RosTime,
}

/// A clock of a node. Cheap to clone, thread-safe.
///
/// ```no_run
/// use std::time::Duration;
///
/// use pteros::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let node = Context::new()?.create_node("planner")?;
/// let clock = node.clock();
/// let deadline = clock.now() + Duration::from_secs(5);
/// // In simulated time, if use_sim_time says so:
/// let reached = clock.sleep_until(deadline);
/// # let _ = reached;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Clock {
    node: Arc<NodeCore>,
    clock_type: ClockType,
}

impl Clock {
    /// The source of its time: ROS, system or steady.
    pub fn clock_type(&self) -> ClockType {
        self.clock_type
    }

    /// Current time. Simulated time is 0 before the first `/clock` message.
    pub fn now(&self) -> Time {
        let platform = &self.node.core().platform;
        match self.clock_type {
            ClockType::SystemTime => Time::from_nanos(platform.wall_clock().as_nanos()),
            ClockType::SteadyTime => {
                Time::from_nanos(i64::try_from(platform.now().as_nanos()).unwrap_or(i64::MAX))
            }
            ClockType::RosTime => self.node.time.now(),
        }
    }

    /// Whether this is a ROS clock in simulated time.
    pub fn is_simulated(&self) -> bool {
        self.clock_type == ClockType::RosTime && self.node.time.is_simulated()
    }

    /// Waits until `time` is reached. Returns false if the context shuts down or
    /// `use_sim_time` changes first. Blocks; drives the network itself and runs no
    /// callbacks. It waits as long as simulated time stands still.
    pub fn sleep_until(&self, time: Time) -> bool {
        self.sleep_while(|_| time)
    }

    /// As `sleep_until`; `until` is asked at each look, with the time of the clock.
    fn sleep_while(&self, mut until: impl FnMut(Time) -> Time) -> bool {
        let core = self.node.core();
        let switches = || match self.clock_type {
            ClockType::RosTime => self.node.time.switches(),
            ClockType::SystemTime | ClockType::SteadyTime => 0,
        };
        let sleep = Sleep::new(switches());
        let mut state = || {
            let clock = SleepClock {
                switches: switches(),
                is_simulated: self.is_simulated(),
                is_shut_down: core.is_shut_down(),
            };
            let now = self.now();
            sleep.state(until(now).as_nanos(), now.as_nanos(), clock)
        };
        loop {
            let until = match state() {
                SleepState::Reached => return true,
                SleepState::Interrupted => return false,
                SleepState::Sleeping(None) => Instant::FAR_FUTURE,
                SleepState::Sleeping(Some(left)) => core.platform.now().after(left.into()),
            };
            core.driver()
                .wait_until(until, || !matches!(state(), SleepState::Sleeping(_)));
        }
    }

    /// Waits for `span`; otherwise as [`Clock::sleep_until`].
    pub fn sleep(&self, span: Duration) -> bool {
        self.sleep_until(self.now() + span)
    }

    /// Registers a callback for jumps of ROS time that reach `threshold`, including
    /// regular steps of `/clock` of that size. The node's executor calls it. Other
    /// clock types never jump.
    pub fn on_jump(
        &self,
        threshold: JumpThreshold,
        callback: impl FnMut(TimeJump) + Send + 'static,
    ) -> JumpHandle {
        let task = JumpTask::start(&self.node, Box::new(callback));
        if self.clock_type == ClockType::RosTime {
            let observer = Arc::downgrade(&task);
            self.node.time.add_jump_observer(threshold, observer);
        }
        JumpHandle { _task: task }
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clock")
            .field("clock_type", &self.clock_type)
            .field("now", &self.now())
            .finish()
    }
}

impl Node {
    /// Returns the node's ROS clock.
    pub fn clock(&self) -> Clock {
        self.clock_of(ClockType::RosTime)
    }

    /// Returns a clock of the given type.
    pub fn clock_of(&self, clock_type: ClockType) -> Clock {
        Clock {
            node: self.core().clone(),
            clock_type,
        }
    }

    /// Current ROS time of the node.
    pub fn now(&self) -> Time {
        self.core().time.now()
    }
}
