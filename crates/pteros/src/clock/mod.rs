//! Clocks: the system's, the steady one, and ROS time, which may be simulated.
//!
//! A node's ROS time is the system's, or what `/clock` says while its parameter
//! `use_sim_time` is true. `docs/time.md` has the whole of it.

mod jump;
mod rate;
mod server;
mod sim;
mod time;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use pteros_rmw::env::Instant;

pub use jump::{JumpCallback, JumpKind, JumpThreshold, TimeJump};
pub use rate::Rate;
pub use server::{ClockServer, ClockServerError};
pub use time::Time;

pub(crate) use sim::{NodeTime, SimTime, TimeWatch};

use jump::JumpTask;

use crate::node::{Node, NodeCore};

/// Which clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum ClockKind {
    /// The system's: nanoseconds since 1970, set by people and by NTP.
    System,
    /// Since boot; never set.
    Steady,
    /// The system's, or `/clock` while the node's `use_sim_time` is true.
    Ros,
}

/// A clock of a node. Cheap to clone, thread-safe.
///
/// ```no_run
/// use std::time::Duration;
///
/// use pteros::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let node = Context::new()?.node("planner")?;
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
    kind: ClockKind,
}

impl Clock {
    /// Which clock it is.
    pub fn kind(&self) -> ClockKind {
        self.kind
    }

    /// The time now. Simulated time is 0 until `/clock` has said something.
    pub fn now(&self) -> Time {
        let env = &self.node.core().env;
        match self.kind {
            ClockKind::System => Time::from_nanos(env.wall().as_nanos()),
            ClockKind::Steady => {
                Time::from_nanos(i64::try_from(env.now().as_nanos()).unwrap_or(i64::MAX))
            }
            ClockKind::Ros => self.node.time.now(),
        }
    }

    /// Whether it is ROS time, simulated now.
    pub fn is_simulated(&self) -> bool {
        self.kind == ClockKind::Ros && self.node.time.is_simulated()
    }

    /// Waits until that time has come; false when the context shuts down before, or
    /// `use_sim_time` changes. Blocks; drives the network itself and runs no
    /// callbacks. While simulated time stands, so does it.
    pub fn sleep_until(&self, time: Time) -> bool {
        let (core, simulated) = (self.node.core(), self.is_simulated());
        let is_over = || core.is_shut_down() || self.is_simulated() != simulated;
        while self.now() < time && !is_over() {
            let until = match simulated {
                true => Instant::FAR_FUTURE,
                false => core.env.now().after(time.since(self.now()).into()),
            };
            core.wait_until(until, || is_over() || self.now() >= time);
        }
        self.now() >= time && self.is_simulated() == simulated
    }

    /// Waits that long; otherwise as [`Clock::sleep_until`].
    pub fn sleep(&self, span: Duration) -> bool {
        self.sleep_until(self.now() + span)
    }

    /// Calls `callback` from the node's executor when ROS time jumps so far; also
    /// each time `/clock` goes on by as much. Clocks of other kinds never do.
    pub fn on_jump(
        &self,
        threshold: JumpThreshold,
        callback: impl FnMut(TimeJump) + Send + 'static,
    ) -> JumpCallback {
        let task = JumpTask::start(&self.node, threshold, Box::new(callback));
        if self.kind == ClockKind::Ros {
            self.node.time.add_jump(&task);
        }
        JumpCallback { _task: task }
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clock")
            .field("kind", &self.kind)
            .field("now", &self.now())
            .finish()
    }
}

impl Node {
    /// The node's ROS clock.
    pub fn clock(&self) -> Clock {
        self.clock_of(ClockKind::Ros)
    }

    /// A clock of that kind.
    pub fn clock_of(&self, kind: ClockKind) -> Clock {
        Clock {
            node: self.core().clone(),
            kind,
        }
    }

    /// ROS time now.
    pub fn now(&self) -> Time {
        self.core().time.now()
    }
}
