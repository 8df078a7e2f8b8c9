//! Clock server: publishes simulated time on /clock, at any speed.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use pteros_interfaces::rosgraph_msgs::msg::Clock as ClockMessage;
use pteros_runtime::error::PublishError;
use pteros_runtime::platform::Instant;

use super::Time;
use crate::error::CreateError;
use crate::named_qos::NamedQosExt;
use crate::node::Node;
use crate::publisher::Publisher;
use crate::qos::QosProfile;
use crate::timer::Timer;

/// Publishes simulated time on `/clock` while its node is spun. The time starts at
/// a given value, advances at a given speed, and can be paused, stepped and set.
/// Use one per domain. Thread-safe; clones share it, and time stops when the last
/// one is dropped.
///
/// ```no_run
/// use std::time::Duration;
///
/// use pteros::clock::{ClockServer, Time};
/// use pteros::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let node = Context::new()?.create_node("time")?;
/// let period = Duration::from_millis(10);
/// let time = ClockServer::new(&node, Time::from_nanos(0), period)?;
/// time.set_speed(10.0)?;
/// node.spin();
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ClockServer {
    core: Arc<ClockServerCore>,
    _timer: Timer,
}

struct ClockServerCore {
    node: Node,
    publisher: Publisher<ClockMessage>,
    state: Mutex<State>,
}

#[derive(Clone, Copy)]
struct State {
    time: Time,
    speed: f64,
    paused: bool,
    /// When `time` was sampled.
    sampled_at: Instant,
}

impl ClockServer {
    /// Creates a clock server that starts at `start`, at the speed of real time. It
    /// publishes every `period` of real time.
    ///
    /// # Errors
    /// See [`CreateError`]; [`CreateError::ZeroPeriod`] for a period of zero.
    pub fn new(node: &Node, start: Time, period: Duration) -> Result<Self, CreateError> {
        // Reliable, so that the last message before a pause is not lost.
        let qos = QosProfile::clock().reliable();
        let publisher = node.create_publisher("/clock".qos(qos))?;
        let core = Arc::new(ClockServerCore {
            publisher,
            state: Mutex::new(State {
                time: start,
                speed: 1.0,
                paused: false,
                sampled_at: node.core().core().platform.now(),
            }),
            node: node.clone(),
        });
        let weak_core = Arc::downgrade(&core);
        let timer = node.create_timer(period, move || {
            if let Some(core) = weak_core.upgrade() {
                core.change(|_| ());
            }
        })?;
        Ok(Self {
            core,
            _timer: timer,
        })
    }

    /// Current simulated time. Readers have the time of the last message.
    pub fn now(&self) -> Time {
        self.core.advanced_to_now().time
    }

    /// Whether the clock is paused.
    pub fn is_paused(&self) -> bool {
        self.core.state.lock().paused
    }

    /// Sets the speed: seconds of simulated time per second of real time.
    ///
    /// # Errors
    /// [`CreateError::ClockSpeed`] for a negative or infinite speed.
    pub fn set_speed(&self, speed: f64) -> Result<(), CreateError> {
        if !speed.is_finite() || speed < 0.0 {
            return Err(CreateError::ClockSpeed(speed));
        }
        self.core.change(|state| state.speed = speed);
        Ok(())
    }

    /// Pauses the clock. It is still published, for late joiners.
    pub fn pause(&self) {
        self.core.change(|state| state.paused = true);
    }

    /// Resumes the clock.
    pub fn resume(&self) {
        self.core.change(|state| state.paused = false);
    }

    /// Advances the time by `span`, paused or not, and publishes it.
    pub fn step(&self, span: Duration) {
        self.core.change(|state| state.time = state.time + span);
    }

    /// Sets the time, forward or backward, and publishes it.
    pub fn set(&self, time: Time) {
        self.core.change(|state| state.time = time);
    }
}

impl ClockServerCore {
    fn advanced_to_now(&self) -> State {
        let now = self.node.core().core().platform.now();
        self.state.lock().advanced_to_now(now)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let now = self.node.core().core().platform.now();
        let mut state = self.state.lock();
        *state = state.advanced_to_now(now);
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
    /// Advances by the real time that has passed.
    fn advanced_to_now(mut self, now: Instant) -> Self {
        if !self.paused {
            let passed = now.as_nanos().saturating_sub(self.sampled_at.as_nanos());
            let span = Duration::from_nanos(passed).as_secs_f64() * self.speed;
            self.time = self.time + Duration::try_from_secs_f64(span).unwrap_or(Duration::MAX);
        }
        self.sampled_at = now;
        self
    }
}

impl fmt::Debug for ClockServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.core.advanced_to_now();
        f.debug_struct("ClockServer")
            .field("time", &state.time)
            .field("speed", &state.speed)
            .field("paused", &state.paused)
            .finish()
    }
}
