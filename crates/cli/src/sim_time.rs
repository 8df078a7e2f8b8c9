//! `--use-sim-time`: ROS time of `/clock` in verbs that measure time or publish at a
//! rate.

use crate::cli_context::CliContext;
use crate::session::Session;
use anyhow::Result;
use clap::Args;
use pteros::clock::Clock;
use pteros::{ContextOptions, TimerOptions};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The flag.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct SimTimeFlag {
    /// Use the simulated time of /clock
    #[arg(short = 's', long)]
    use_sim_time: bool,
}

/// How long `/clock` may take to appear before a warning.
const CLOCK_TIMEOUT: Duration = Duration::from_secs(1);
/// Longest time without a look at Ctrl-C.
const POLL_PERIOD: Duration = Duration::from_millis(100);

impl SimTimeFlag {
    /// Sets the time of the context's nodes.
    pub fn apply(self, options: ContextOptions) -> ContextOptions {
        ContextOptions {
            use_sim_time: self.use_sim_time || options.use_sim_time,
            ..options
        }
    }

    /// Opens a session whose node has this time.
    pub fn open(self, cli: &CliContext) -> Result<Session> {
        Session::open_with(cli, None, |options| Ok(self.apply(options)))
    }

    /// The time of a session's node.
    pub fn clock(self, session: &Session) -> SessionClock {
        SessionClock {
            simulated: self.use_sim_time.then(|| session.node.clock()),
            started: Instant::now(),
        }
    }
}

/// System time, or simulated time.
#[derive(Clone)]
pub struct SessionClock {
    simulated: Option<Clock>,
    started: Instant,
}

impl SessionClock {
    /// Seconds since 1970, or of simulated time. `system` is the system time of the
    /// event, which is known better than the time now. `None` before the first
    /// `/clock` message.
    pub fn seconds_at(&self, system: SystemTime) -> Option<f64> {
        match &self.simulated {
            None => {
                let since = system.duration_since(UNIX_EPOCH).unwrap_or_default();
                Some(since.as_secs_f64())
            }
            Some(clock) => Some(clock.now().as_secs_f64()).filter(|seconds| *seconds > 0.0),
        }
    }

    /// Seconds of a clock that never jumps, or of simulated time. `None` before the
    /// first `/clock` message.
    pub fn steady_seconds(&self) -> Option<f64> {
        match &self.simulated {
            None => Some(self.started.elapsed().as_secs_f64()),
            Some(_) => self.seconds_at(UNIX_EPOCH),
        }
    }

    /// The time for a stamp: 0 before the first `/clock` message.
    pub fn stamp(&self) -> SystemTime {
        match &self.simulated {
            None => SystemTime::now(),
            Some(clock) => {
                let nanos = u64::try_from(clock.now().as_nanos()).unwrap_or(0);
                UNIX_EPOCH + Duration::from_nanos(nanos)
            }
        }
    }

    /// Whether the time is simulated.
    pub fn is_simulated(&self) -> bool {
        self.simulated.is_some()
    }

    /// Says once that no `/clock` message has come.
    pub fn warner(&self) -> ClockWarner<'_> {
        ClockWarner {
            clock: self,
            is_done: !self.is_simulated(),
        }
    }
}

/// The warning of missing `/clock` messages.
pub struct ClockWarner<'a> {
    clock: &'a SessionClock,
    is_done: bool,
}

impl ClockWarner<'_> {
    /// Warns if the time has come; to be called now and then.
    pub fn check(&mut self, cli: &CliContext) {
        if self.is_done || self.clock.started.elapsed() < CLOCK_TIMEOUT {
            return;
        }
        self.is_done = true;
        if self.clock.steady_seconds().is_none() {
            cli.console.note(
                "WARNING: --use-sim-time: no message on /clock yet; start the simulator, or leave the option out",
            );
        }
    }
}

/// Turns of a period in simulated time.
pub struct SimulatedPace {
    timer: pteros::Timer,
    seen: u64,
}

impl SimulatedPace {
    /// The first turn is one period after the first `/clock` message.
    pub fn new(session: &Session, period: Duration) -> Result<Self> {
        let options = TimerOptions::new(period).on_ros_time();
        Ok(Self {
            timer: session.node.create_timer(options, || {})?,
            seen: 0,
        })
    }

    /// Serves the network until the next turn; false if Ctrl-C came first.
    pub fn wait(&mut self, session: &Session, mut meanwhile: impl FnMut()) -> bool {
        while self.timer.ticks() == self.seen {
            if session.context.is_shut_down() {
                return false;
            }
            session.spin_once(POLL_PERIOD);
            meanwhile();
        }
        self.seen = self.timer.ticks();
        true
    }
}
