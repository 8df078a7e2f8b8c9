//! What is to be done next: which process starts, which gets which signal, when all
//! is over. Decides only; [`run::Supervisor`](crate::run::Supervisor) does it and
//! tells what came of it. Knows no clock: `now` is the time since the launch began.
//!
//! Stopping: every process gets SIGINT, the last started first; who is still there
//! after its `sigterm_timeout` gets SIGTERM, and after its `sigkill_timeout` SIGKILL.
//! When all processes have ended, what they have left behind is swept up, in
//! [`SWEEP_TERM`] and [`SWEEP_KILL`] at most. A second Ctrl-C skips to SIGTERM, a
//! third to SIGKILL.

mod respawn;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Duration;

use crate::plan::{Level, Load, Process, Step, Timer, TimerClock};
use respawn::Pauses;

/// How long what processes left behind is given after SIGTERM.
pub const SWEEP_TERM: Duration = Duration::from_secs(2);
/// How long it is then given after SIGKILL; what the kernel has not ended by then
/// is named and left.
pub const SWEEP_KILL: Duration = Duration::from_secs(2);
/// How often it is looked whether it has gone.
const SWEEP_LOOK: Duration = Duration::from_millis(50);

/// A signal that ends a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stop {
    /// SIGINT, as Ctrl-C.
    Interrupt,
    /// SIGTERM.
    Terminate,
    /// SIGKILL.
    Kill,
}

impl Stop {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Interrupt => "SIGINT",
            Self::Terminate => "SIGTERM",
            Self::Kill => "SIGKILL",
        }
    }
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Start a process; then [`Conductor::handle_started`] or
    /// [`Conductor::handle_not_started`].
    Start {
        /// Which.
        task: usize,
    },
    /// Send a signal to a process and all of its group.
    Signal {
        /// Which.
        task: usize,
        /// What.
        stop: Stop,
    },
    /// Load components; then [`Conductor::handle_loaded`].
    Load {
        /// Which.
        load: usize,
    },
    /// Forget a load that has not been answered.
    ForgetLoad {
        /// Which.
        load: usize,
    },
    /// Wait on the ROS clock; then [`Conductor::handle_ros_timer`].
    RosTimer {
        /// Which.
        timer: usize,
        /// How long.
        period: Duration,
        /// Whether `/clock` says what time it is.
        simulated: bool,
    },
    /// Say something.
    Say {
        /// How bad it is.
        level: Level,
        /// Whom it is about; none for the launch itself.
        task: Option<usize>,
        /// What.
        text: String,
    },
    /// Look for what ended processes have left behind, and send it a signal if one is
    /// named; then [`Conductor::handle_swept`].
    Sweep {
        /// What.
        stop: Option<Stop>,
    },
    /// It is over.
    End,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with a code.
    Code(i32),
    /// By a signal.
    Signal(i32),
}

/// How a task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It has been asked to start.
    Starting,
    /// It runs.
    Running {
        /// Its process number.
        pid: u32,
        /// Since when.
        since: Duration,
    },
    /// It is started again then.
    Pausing {
        /// When.
        until: Duration,
    },
    /// It has ended and will not be started again.
    Ended {
        /// How; none where it could not be started.
        exit: Option<Exit>,
    },
}

/// A process of the plan, and how it stands.
#[derive(Debug)]
pub struct Task {
    /// What the plan says.
    pub process: Process,
    /// How it stands.
    pub state: State,
    /// How often it was started again.
    pub restarts: u32,
    pauses: Pauses,
    /// The last signal sent, and when the next is due.
    stop: Option<(Stop, Duration)>,
}

#[derive(Debug)]
struct LoadState {
    load: Load,
    is_pending: bool,
}

#[derive(Debug)]
struct Pending {
    timer: Timer,
    /// None while the ROS clock is waited for.
    due: Option<Duration>,
    is_over: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Running,
    /// Everything is being stopped; how often Ctrl-C came.
    Stopping {
        interrupts: u32,
    },
    /// Processes have ended; what they left is looked for.
    Sweeping {
        stop: Stop,
        next_look: Duration,
        until: Duration,
    },
    Over,
}

/// See the module.
#[derive(Debug)]
pub struct Conductor {
    tasks: Vec<Task>,
    loads: Vec<LoadState>,
    timers: Vec<Pending>,
    commands: VecDeque<Command>,
    phase: Phase,
    is_failed: bool,
}

impl Conductor {
    /// Begins: the steps' commands are there at once.
    pub fn new(steps: Vec<Step>) -> Self {
        let mut conductor = Self {
            tasks: Vec::new(),
            loads: Vec::new(),
            timers: Vec::new(),
            commands: VecDeque::new(),
            phase: Phase::Running,
            is_failed: false,
        };
        conductor.take_steps(Duration::ZERO, steps);
        conductor
    }

    /// The processes so far, in the order of their first start.
    pub fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    /// The components of a [`Command::Load`].
    pub fn load(&self, load: usize) -> Option<&Load> {
        self.loads.get(load).map(|one| &one.load)
    }

    /// Whether everything is being stopped, or is over.
    pub fn is_stopping(&self) -> bool {
        self.phase != Phase::Running
    }

    /// Whether a process has failed by itself, could not be started, or components
    /// could not be loaded.
    pub fn is_failed(&self) -> bool {
        self.is_failed
    }

    /// How all are, in a line: how many run, wait, have ended, and whom it waits for.
    pub fn status(&self) -> String {
        let (mut running, mut pausing, mut ended) = (0, Vec::new(), 0);
        let mut last = Vec::new();
        for task in &self.tasks {
            match task.state {
                State::Starting | State::Running { .. } => {
                    running += 1;
                    last.push(task.process.name.as_str());
                }
                State::Pausing { .. } => pausing.push(task.process.name.as_str()),
                State::Ended { .. } => ended += 1,
            }
        }
        let mut text = format!("{running} running");
        if !pausing.is_empty() {
            text += &format!(", to be started again: {}", pausing.join(" "));
        }
        if ended > 0 {
            text += &format!(", {ended} ended");
        }
        match self.phase {
            Phase::Stopping { .. } => text += &format!("; stopping {}", last.join(" ")),
            Phase::Sweeping { .. } => text += "; looking for what they left behind",
            Phase::Running | Phase::Over => {}
        }
        text
    }

    fn say(&mut self, level: Level, task: Option<usize>, text: impl Into<String>) {
        self.commands.push_back(Command::Say {
            level,
            task,
            text: text.into(),
        });
    }

    fn take_steps(&mut self, now: Duration, steps: Vec<Step>) {
        for step in steps {
            match step {
                Step::Log(log) => self.say(log.level, None, log.text),
                Step::Start(process) if self.is_stopping() => {
                    let text = format!("{} is not started: all is being stopped", process.name);
                    self.say(Level::Info, None, text);
                }
                Step::Start(process) => self.add_task(*process),
                Step::Load(_) | Step::Timer(_) if self.is_stopping() => {}
                Step::Load(load) => {
                    self.loads.push(LoadState {
                        load,
                        is_pending: true,
                    });
                    let load = self.loads.len() - 1;
                    self.commands.push_back(Command::Load { load });
                }
                Step::Timer(timer) => self.add_timer(now, timer),
                Step::Shutdown(shutdown) => {
                    if !self.is_stopping() {
                        let text = format!("shutdown: {}", shutdown.reason);
                        self.say(Level::Info, None, text);
                        self.stop_all(now);
                    }
                }
            }
        }
    }

    fn add_task(&mut self, process: Process) {
        let respawn = process.respawn;
        self.tasks.push(Task {
            process,
            state: State::Starting,
            restarts: 0,
            pauses: Pauses::new(respawn),
            stop: None,
        });
        let task = self.tasks.len() - 1;
        self.commands.push_back(Command::Start { task });
    }

    fn add_timer(&mut self, now: Duration, timer: Timer) {
        let index = self.timers.len();
        let due = match timer.clock {
            TimerClock::Steady => Some(now.saturating_add(timer.period)),
            TimerClock::Ros { simulated } => {
                self.commands.push_back(Command::RosTimer {
                    timer: index,
                    period: timer.period,
                    simulated,
                });
                None
            }
        };
        self.timers.push(Pending {
            timer,
            due,
            is_over: false,
        });
    }

    /// A process has started.
    pub fn handle_started(&mut self, now: Duration, task: usize, pid: u32) {
        let stopping = self.is_stopping();
        let Some(one) = self.tasks.get_mut(task) else {
            return;
        };
        let name = one.process.name.clone();
        let is_again = one.restarts > 0;
        one.state = State::Running { pid, since: now };
        self.say(
            Level::Info,
            Some(task),
            format!("process started with pid [{pid}]"),
        );
        if is_again {
            // A container that comes again is empty.
            for load in 0..self.loads.len() {
                let one = &mut self.loads[load];
                if one.load.process.as_ref() == Some(&name) && !one.is_pending {
                    one.is_pending = true;
                    self.commands.push_back(Command::Load { load });
                }
            }
        }
        if stopping {
            self.signal(now, task, Stop::Interrupt);
        }
    }

    /// A process could not be started; `why` says why.
    pub fn handle_not_started(&mut self, now: Duration, task: usize, why: &str) {
        let Some(one) = self.tasks.get_mut(task) else {
            return;
        };
        one.state = State::Ended { exit: None };
        self.is_failed = true;
        self.say(
            Level::Error,
            Some(task),
            format!("process could not be started: {why}"),
        );
        self.after_end(now, task);
    }

    /// A process has ended.
    pub fn handle_exited(&mut self, now: Duration, task: usize, exit: Exit) {
        let stopping = self.is_stopping();
        let Some(one) = self.tasks.get_mut(task) else {
            return;
        };
        let State::Running { pid, since } = one.state else {
            return;
        };
        let was_stopped = one.stop.take().is_some();
        let pause = match stopping {
            true => None,
            false => one.pauses.next(now.saturating_sub(since)),
        };
        let is_clean = exit == Exit::Code(0);
        let text = match exit {
            Exit::Code(0) => format!("process has finished cleanly [pid {pid}]"),
            Exit::Code(code) => died(pid, code, &one.process.words),
            Exit::Signal(signal) => died(pid, -signal, &one.process.words),
        };
        let level = match is_clean || was_stopped {
            true => Level::Info,
            false => Level::Error,
        };
        match pause {
            Some(pause) => {
                one.state = State::Pausing {
                    until: now.saturating_add(pause),
                };
                self.say(level, Some(task), text);
                let pause = pause.as_secs_f64();
                self.say(
                    Level::Info,
                    Some(task),
                    format!("process will be started again in {pause} s"),
                );
                self.forget_loads_of(task, false);
            }
            None => {
                one.state = State::Ended { exit: Some(exit) };
                self.is_failed |= !is_clean && !was_stopped;
                self.say(level, Some(task), text);
                self.after_end(now, task);
            }
        }
    }

    /// A process will not come again: its loads are over, and `on_exit` is due.
    fn after_end(&mut self, now: Duration, task: usize) {
        self.forget_loads_of(task, true);
        if !self.is_stopping()
            && let Some(one) = self.tasks.get_mut(task)
        {
            let steps = std::mem::take(&mut one.process.on_exit);
            self.take_steps(now, steps);
        }
    }

    /// What a container that has ended has not answered. `is_final`: it does not come
    /// again, which is a failure of what was to be loaded.
    fn forget_loads_of(&mut self, task: usize, is_final: bool) {
        let name = self.tasks.get(task).map(|one| one.process.name.clone());
        for load in 0..self.loads.len() {
            let one = &mut self.loads[load];
            if !one.is_pending || one.load.process != name {
                continue;
            }
            one.is_pending = false;
            self.commands.push_back(Command::ForgetLoad { load });
            if is_final && !self.is_stopping() {
                self.is_failed = true;
                let container = self.loads[load].load.container.clone();
                self.say(
                    Level::Error,
                    None,
                    format!("components are not loaded: their container {container} has ended"),
                );
            }
        }
    }

    /// All components of a load have been answered; `failed` of them are not loaded.
    pub fn handle_loaded(&mut self, load: usize, failed: usize) {
        if let Some(one) = self.loads.get_mut(load) {
            one.is_pending = false;
            self.is_failed |= failed > 0;
        }
    }

    /// Something else that was to be done will not be done.
    pub fn handle_failed(&mut self) {
        self.is_failed = true;
    }

    /// A timer on the ROS clock is due.
    pub fn handle_ros_timer(&mut self, now: Duration, timer: usize) {
        if let Some(one) = self.timers.get_mut(timer) {
            one.due = Some(now);
        }
    }

    /// Ctrl-C.
    pub fn handle_interrupt(&mut self, now: Duration) {
        match self.phase {
            Phase::Running => {
                self.say(
                    Level::Warning,
                    None,
                    "user interrupted with ctrl-c (SIGINT)",
                );
                self.stop_all(now);
                self.phase = Phase::Stopping { interrupts: 1 };
            }
            Phase::Stopping { interrupts } => {
                self.phase = Phase::Stopping {
                    interrupts: interrupts + 1,
                };
                let stop = match interrupts {
                    0 => Stop::Interrupt,
                    1 => Stop::Terminate,
                    _ => Stop::Kill,
                };
                self.say(
                    Level::Warning,
                    None,
                    format!(
                        "user interrupted with ctrl-c (SIGINT) again: {}",
                        stop.name()
                    ),
                );
                for task in (0..self.tasks.len()).rev() {
                    if matches!(self.tasks[task].state, State::Running { .. }) {
                        self.signal(now, task, stop);
                    }
                }
                for one in &mut self.timers {
                    one.is_over = true;
                }
            }
            Phase::Sweeping { .. } => self.sweep(now, Stop::Kill),
            Phase::Over => {}
        }
    }

    /// Stops everything.
    fn stop_all(&mut self, now: Duration) {
        self.phase = Phase::Stopping { interrupts: 0 };
        for one in &mut self.timers {
            one.is_over |= one.timer.cancel_on_shutdown;
        }
        for load in 0..self.loads.len() {
            if std::mem::take(&mut self.loads[load].is_pending) {
                self.commands.push_back(Command::ForgetLoad { load });
            }
        }
        for task in (0..self.tasks.len()).rev() {
            match self.tasks[task].state {
                State::Running { .. } => self.signal(now, task, Stop::Interrupt),
                State::Pausing { .. } => self.tasks[task].state = State::Ended { exit: None },
                // A start that was asked for comes; it is stopped then.
                State::Starting | State::Ended { .. } => {}
            }
        }
    }

    fn signal(&mut self, now: Duration, task: usize, stop: Stop) {
        let one = &mut self.tasks[task];
        let pid = match one.state {
            State::Running { pid, .. } => pid,
            _ => return,
        };
        let patience = match stop {
            Stop::Interrupt => one.process.sigterm_timeout,
            Stop::Terminate => one.process.sigkill_timeout,
            Stop::Kill => Duration::MAX,
        };
        let is_late = one.stop.is_some();
        one.stop = Some((stop, now.saturating_add(patience)));
        let name = stop.name();
        if is_late {
            let level = Level::Error;
            let text = format!("process[pid {pid}] has not ended; sending signal '{name}'");
            self.say(level, Some(task), text);
        } else {
            self.say(Level::Debug, Some(task), format!("sending signal '{name}'"));
        }
        self.commands.push_back(Command::Signal { task, stop });
    }

    /// What is to be done now; `None` until something happens or
    /// [`Conductor::next_timeout`] has come.
    pub fn poll(&mut self, now: Duration) -> Option<Command> {
        if let Some(command) = self.commands.pop_front() {
            return Some(command);
        }
        self.take_due(now);
        if self.commands.is_empty() {
            self.take_end(now);
        }
        self.commands.pop_front()
    }

    fn take_due(&mut self, now: Duration) {
        for task in 0..self.tasks.len() {
            let one = &mut self.tasks[task];
            match (one.state, one.stop) {
                (State::Pausing { until }, _) if until <= now => {
                    one.state = State::Starting;
                    one.restarts += 1;
                    self.commands.push_back(Command::Start { task });
                }
                (State::Running { .. }, Some((Stop::Interrupt, due))) if due <= now => {
                    self.signal(now, task, Stop::Terminate);
                }
                (State::Running { .. }, Some((Stop::Terminate, due))) if due <= now => {
                    self.signal(now, task, Stop::Kill);
                }
                _ => {}
            }
        }
        for timer in 0..self.timers.len() {
            let one = &mut self.timers[timer];
            if !one.is_over && one.due.is_some_and(|due| due <= now) {
                one.is_over = true;
                let steps = std::mem::take(&mut one.timer.steps);
                self.take_steps(now, steps);
            }
        }
    }

    fn take_end(&mut self, now: Duration) {
        match self.phase {
            Phase::Running | Phase::Stopping { .. } => {
                let ended = |one: &Task| matches!(one.state, State::Ended { .. });
                let is_over = self.tasks.iter().all(ended)
                    && self.timers.iter().all(|one| one.is_over)
                    && !self.loads.iter().any(|one| one.is_pending);
                if is_over {
                    self.sweep(now, Stop::Terminate);
                }
            }
            Phase::Sweeping {
                stop,
                next_look,
                until,
            } if next_look <= now => {
                if until > now {
                    self.phase = Phase::Sweeping {
                        stop,
                        next_look: now.saturating_add(SWEEP_LOOK),
                        until,
                    };
                    self.commands.push_back(Command::Sweep { stop: None });
                } else if stop == Stop::Kill {
                    self.over();
                } else {
                    self.sweep(now, Stop::Kill);
                }
            }
            _ => {}
        }
    }

    fn sweep(&mut self, now: Duration, stop: Stop) {
        let patience = match stop {
            Stop::Kill => SWEEP_KILL,
            _ => SWEEP_TERM,
        };
        self.phase = Phase::Sweeping {
            stop,
            next_look: now.saturating_add(SWEEP_LOOK),
            until: now.saturating_add(patience),
        };
        self.commands.push_back(Command::Sweep { stop: Some(stop) });
    }

    /// So many processes are still there of what the launch's own have started.
    pub fn handle_swept(&mut self, left: usize) {
        if left == 0 && matches!(self.phase, Phase::Sweeping { .. }) {
            self.over();
        }
    }

    fn over(&mut self) {
        self.phase = Phase::Over;
        self.commands.push_back(Command::End);
    }

    /// When [`Conductor::poll`] has something to do even if nothing happens.
    pub fn next_timeout(&self) -> Option<Duration> {
        let tasks = self.tasks.iter().filter_map(|one| match one.state {
            State::Pausing { until } => Some(until),
            State::Running { .. } => one.stop.map(|(_, due)| due),
            _ => None,
        });
        let timers = self.timers.iter().filter(|one| !one.is_over);
        let timers = timers.filter_map(|one| one.due);
        let sweep = match self.phase {
            Phase::Sweeping { next_look, .. } => Some(next_look),
            _ => None,
        };
        tasks.chain(timers).chain(sweep).min()
    }
}

fn died(pid: u32, code: i32, words: &[String]) -> String {
    let command = words.join(" ");
    format!("process has died [pid {pid}, exit code {code}, cmd '{command}'].")
}
