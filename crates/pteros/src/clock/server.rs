//! Simulated time for others: `/clock` from this process, at any speed.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use pteros_interfaces::rosgraph_msgs::msg::Clock as ClockMessage;
use pteros_rmw::env::Instant;
use pteros_rmw::error::PublishError;
use thiserror::Error;

use super::Time;
use crate::error::CreateError;
use crate::node::Node;
use crate::publisher::Publisher;
use crate::qos::QosProfile;
use crate::timer::Timer;

/// Why simulated time is not what it was told to be.
#[derive(Clone, PartialEq, Debug, Error)]
#[non_exhaustive]
pub enum ClockServerError {
    /// A speed that time cannot have.
    #[error("simulated time at {0} times real time: give a finite speed from 0 on, or pause it")]
    Speed(f64),
}

/// Publishes `/clock`: simulated time that begins where it is told, goes on as fast
/// as it is told while the node is spun, and can be paused, stepped and set. One per
/// domain. Thread-safe; clones share it, and time stands when the last is dropped.
///
/// ```no_run
/// use std::time::Duration;
///
/// use pteros::clock::{ClockServer, Time};
/// use pteros::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let node = Context::new()?.node("time")?;
/// let period = Duration::from_millis(10);
/// let time = ClockServer::new(&node, Time::from_nanos(0), period)?;
/// time.set_speed(10.0)?;
/// node.spin();
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ClockServer {
    core: Arc<Core>,
    _timer: Timer,
}

struct Core {
    node: Node,
    publisher: Publisher<ClockMessage>,
    state: Mutex<State>,
}

#[derive(Clone, Copy)]
struct State {
    time: Time,
    speed: f64,
    paused: bool,
    /// When `time` was looked at.
    at: Instant,
}

impl ClockServer {
    /// Starts at `start`, at the speed of real time, and publishes every `period` of
    /// real time.
    ///
    /// # Errors
    /// See [`CreateError`]; [`CreateError::ZeroPeriod`] for a period of zero.
    pub fn new(node: &Node, start: Time, period: Duration) -> Result<Self, CreateError> {
        // Reliable, or the last message before a pause might be lost.
        let qos = QosProfile::clock().reliable();
        let publisher = node.create_publisher("/clock", qos)?;
        let core = Arc::new(Core {
            publisher,
            state: Mutex::new(State {
                time: start,
                speed: 1.0,
                paused: false,
                at: node.core().core().env.now(),
            }),
            node: node.clone(),
        });
        let ticking = Arc::downgrade(&core);
        let timer = node.create_timer(period, move || {
            if let Some(core) = ticking.upgrade() {
                core.change(|_| ());
            }
        })?;
        Ok(Self {
            core,
            _timer: timer,
        })
    }

    /// Simulated time now, which readers have as of the last message.
    pub fn now(&self) -> Time {
        self.core.advanced().time
    }

    /// Whether it stands.
    pub fn is_paused(&self) -> bool {
        self.core.state.lock().paused
    }

    /// Seconds of simulated time in one of real time, from now on.
    ///
    /// # Errors
    /// [`ClockServerError::Speed`] for negative and endless ones.
    pub fn set_speed(&self, speed: f64) -> Result<(), ClockServerError> {
        if !speed.is_finite() || speed < 0.0 {
            return Err(ClockServerError::Speed(speed));
        }
        self.core.change(|state| state.speed = speed);
        Ok(())
    }

    /// Lets time stand; it is published all the same, for those who come.
    pub fn pause(&self) {
        self.core.change(|state| state.paused = true);
    }

    /// Lets time go on.
    pub fn resume(&self) {
        self.core.change(|state| state.paused = false);
    }

    /// Moves time on by `span`, paused or not, and publishes it.
    pub fn step(&self, span: Duration) {
        self.core.change(|state| state.time = state.time + span);
    }

    /// Sets the time, forward or back, and publishes it.
    pub fn set(&self, time: Time) {
        self.core.change(|state| state.time = time);
    }
}

impl Core {
    fn advanced(&self) -> State {
        let now = self.node.core().core().env.now();
        self.state.lock().advanced(now)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let now = self.node.core().core().env.now();
        let mut state = self.state.lock();
        *state = state.advanced(now);
        change(&mut state);
        let clock = state.time.into();
        drop(state);
        match self.publisher.publish_owned(ClockMessage { clock }) {
            Ok(()) | Err(PublishError::ShutDown) => {}
            Err(error) => tracing::warn!("/clock: {error}"),
        }
    }
}

impl State {
    /// With the time that has passed since.
    fn advanced(mut self, now: Instant) -> Self {
        if !self.paused {
            let passed = now.as_nanos().saturating_sub(self.at.as_nanos());
            let span = Duration::from_nanos(passed).as_secs_f64() * self.speed;
            self.time = self.time + Duration::try_from_secs_f64(span).unwrap_or(Duration::MAX);
        }
        self.at = now;
        self
    }
}

impl fmt::Debug for ClockServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.core.advanced();
        f.debug_struct("ClockServer")
            .field("time", &state.time)
            .field("speed", &state.speed)
            .field("paused", &state.paused)
            .finish()
    }
}
