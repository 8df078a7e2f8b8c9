//! Launch state machine: decides which process starts, which signal it gets and
//! when the launch is over. It is sans-IO:
//! [`run::Supervisor`](crate::run::Supervisor) executes its commands and reports
//! the results. It reads no clock; `now` is the time since the start of the launch.
//!
//! Shutdown sequence: every process gets SIGINT, the last started one first. A
//! process that is still running after its `sigterm_timeout` gets SIGTERM, and
//! after its `sigkill_timeout` SIGKILL. A second Ctrl-C skips to SIGTERM, a third
//! to SIGKILL. When all processes have ended, orphaned descendants are ended within
//! [`ORPHAN_TERM_TIMEOUT`] and [`ORPHAN_KILL_TIMEOUT`].

mod escalation;
mod respawn;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Duration;

use crate::plan::{ComponentLoad, LaunchTimer, LogLevel, PlanStep, ProcessSpec, TimerClock};
pub use escalation::{StopSignal, StopTimeouts};
pub use respawn::RespawnBackoff;

/// How long orphans have to end after SIGTERM.
pub const ORPHAN_TERM_TIMEOUT: Duration = Duration::from_secs(2);
/// How long orphans have to end after SIGKILL. Orphans that still run then are
/// reported and left.
pub const ORPHAN_KILL_TIMEOUT: Duration = Duration::from_secs(2);
/// Period between two counts of the orphans.
const ORPHAN_POLL_PERIOD: Duration = Duration::from_millis(50);

/// An action for the supervisor to execute.
#[derive(Clone, Debug, PartialEq)]
pub enum LaunchCommand {
    /// Start a process. The supervisor answers with
    /// [`LaunchStateMachine::handle_started`] or
    /// [`LaunchStateMachine::handle_not_started`].
    Start {
        /// Index of the task.
        task: usize,
    },
    /// Send a signal to a process and its whole process group.
    Signal {
        /// Index of the task.
        task: usize,
        /// The signal.
        stop: StopSignal,
    },
    /// Load components. The supervisor answers with
    /// [`LaunchStateMachine::handle_loaded`].
    Load {
        /// Index of the load.
        load: usize,
    },
    /// Cancel a load that has no response yet.
    CancelLoad {
        /// Index of the load.
        load: usize,
    },
    /// Start a timer on the ROS clock. The supervisor answers with
    /// [`LaunchStateMachine::handle_ros_timer`].
    RosTimer {
        /// Index of the timer.
        timer: usize,
        /// Period of the timer.
        period: Duration,
        /// Whether `/clock` provides the time.
        simulated: bool,
    },
    /// Write a log line.
    Log {
        /// Severity of the line.
        level: LogLevel,
        /// The task that the line is about; none for the launch itself.
        task: Option<usize>,
        /// Text of the line.
        text: String,
    },
    /// Count the orphans of ended processes, and send them a signal if one is
    /// given. The supervisor answers with
    /// [`LaunchStateMachine::handle_orphans_counted`].
    CleanUpOrphans {
        /// The signal, if any.
        stop: Option<StopSignal>,
    },
    /// The launch is over.
    Finish,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessExit {
    /// It exited with this code.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
}

/// Progress of a process of the plan, from its start to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskState {
    /// The start command has been issued.
    Starting,
    /// The process runs.
    Running {
        /// Its process id.
        pid: u32,
        /// Time of its start.
        since: Duration,
    },
    /// The process has ended and is respawned after a delay.
    WaitingToRespawn {
        /// Time of the respawn.
        until: Duration,
    },
    /// The process has ended and is not respawned.
    Ended {
        /// How it ended; none if it could not be started.
        exit: Option<ProcessExit>,
    },
}

/// A process of the plan and its state.
#[derive(Debug)]
pub struct Task {
    /// The process as the plan describes it.
    pub process: ProcessSpec,
    /// Its progress; respawns begin again.
    pub state: TaskState,
    /// How often it was respawned.
    pub restarts: u32,
    backoff: RespawnBackoff,
    /// The last signal sent, and the time at which the next one is due.
    stop: Option<(StopSignal, Duration)>,
}

#[derive(Debug)]
struct LoadState {
    load: ComponentLoad,
    is_pending: bool,
}

#[derive(Debug)]
struct TimerState {
    timer: LaunchTimer,
    /// None while the ROS clock timer runs.
    due: Option<Duration>,
    is_over: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LaunchPhase {
    Running,
    /// All processes are being stopped; `interrupts` counts Ctrl-C.
    Stopping {
        interrupts: u32,
    },
    /// All processes have ended; their orphans are being ended.
    CleaningUpOrphans {
        stop: StopSignal,
        next_poll: Duration,
        until: Duration,
    },
    Finished,
}

/// The launch state machine; see the module.
#[derive(Debug)]
pub struct LaunchStateMachine {
    tasks: Vec<Task>,
    loads: Vec<LoadState>,
    timers: Vec<TimerState>,
    commands: VecDeque<LaunchCommand>,
    phase: LaunchPhase,
    is_failed: bool,
}

impl LaunchStateMachine {
    /// Creates the machine. The commands of `steps` are available at once.
    pub fn new(steps: Vec<PlanStep>) -> Self {
        let mut machine = Self {
            tasks: Vec::new(),
            loads: Vec::new(),
            timers: Vec::new(),
            commands: VecDeque::new(),
            phase: LaunchPhase::Running,
            is_failed: false,
        };
        machine.apply_steps(Duration::ZERO, steps);
        machine
    }

    /// All processes started so far, in the order of their first start.
    pub fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    /// The components of a [`LaunchCommand::Load`].
    pub fn load(&self, load: usize) -> Option<&ComponentLoad> {
        self.loads.get(load).map(|one| &one.load)
    }

    /// Whether the launch is shutting down or over.
    pub fn is_stopping(&self) -> bool {
        self.phase != LaunchPhase::Running
    }

    /// Whether a process failed by itself or could not be started, or components
    /// could not be loaded.
    pub fn is_failed(&self) -> bool {
        self.is_failed
    }

    /// One status line: how many processes run, wait for a respawn and have ended,
    /// and which ones the shutdown waits for.
    pub fn status(&self) -> String {
        let (mut running, mut pausing, mut ended) = (0, Vec::new(), 0);
        let mut last = Vec::new();
        for task in &self.tasks {
            match task.state {
                TaskState::Starting | TaskState::Running { .. } => {
                    running += 1;
                    last.push(task.process.name.as_str());
                }
                TaskState::WaitingToRespawn { .. } => pausing.push(task.process.name.as_str()),
                TaskState::Ended { .. } => ended += 1,
            }
        }
        let mut text = format!("{running} running");
        if !pausing.is_empty() {
            text += &format!(", to be respawned: {}", pausing.join(" "));
        }
        if ended > 0 {
            text += &format!(", {ended} ended");
        }
        match self.phase {
            LaunchPhase::Stopping { .. } => text += &format!("; stopping {}", last.join(" ")),
            LaunchPhase::CleaningUpOrphans { .. } => text += "; ending orphaned processes",
            LaunchPhase::Running | LaunchPhase::Finished => {}
        }
        text
    }

    fn log(&mut self, level: LogLevel, task: Option<usize>, text: impl Into<String>) {
        self.commands.push_back(LaunchCommand::Log {
            level,
            task,
            text: text.into(),
        });
    }

    fn apply_steps(&mut self, now: Duration, steps: Vec<PlanStep>) {
        for step in steps {
            match step {
                PlanStep::Log(log) => self.log(log.level, None, log.text),
                PlanStep::Start(process) if self.is_stopping() => {
                    let text = format!(
                        "{} is not started: the launch is shutting down",
                        process.name
                    );
                    self.log(LogLevel::Info, None, text);
                }
                PlanStep::Start(process) => self.add_task(*process),
                PlanStep::Load(_) | PlanStep::Timer(_) if self.is_stopping() => {}
                PlanStep::Load(load) => {
                    self.loads.push(LoadState {
                        load,
                        is_pending: true,
                    });
                    let load = self.loads.len() - 1;
                    self.commands.push_back(LaunchCommand::Load { load });
                }
                PlanStep::Timer(timer) => self.add_timer(now, timer),
                PlanStep::Shutdown(shutdown) => {
                    if !self.is_stopping() {
                        let text = format!("shutdown: {}", shutdown.reason);
                        self.log(LogLevel::Info, None, text);
                        self.stop_all(now);
                    }
                }
            }
        }
    }

    fn add_task(&mut self, process: ProcessSpec) {
        let respawn = process.respawn;
        self.tasks.push(Task {
            process,
            state: TaskState::Starting,
            restarts: 0,
            backoff: RespawnBackoff::new(respawn),
            stop: None,
        });
        let task = self.tasks.len() - 1;
        self.commands.push_back(LaunchCommand::Start { task });
    }

    fn add_timer(&mut self, now: Duration, timer: LaunchTimer) {
        let index = self.timers.len();
        let due = match timer.clock {
            TimerClock::Steady => Some(now.saturating_add(timer.period)),
            TimerClock::Ros { simulated } => {
                self.commands.push_back(LaunchCommand::RosTimer {
                    timer: index,
                    period: timer.period,
                    simulated,
                });
                None
            }
        };
        self.timers.push(TimerState {
            timer,
            due,
            is_over: false,
        });
    }

    /// Handles the start of a process.
    pub fn handle_started(&mut self, now: Duration, task: usize, pid: u32) {
        let stopping = self.is_stopping();
        let Some(one) = self.tasks.get_mut(task) else {
            return;
        };
        let name = one.process.name.clone();
        let is_again = one.restarts > 0;
        one.state = TaskState::Running { pid, since: now };
        self.log(
            LogLevel::Info,
            Some(task),
            format!("process started with pid [{pid}]"),
        );
        if is_again {
            // A respawned container is empty, so its components are loaded again.
            for load in 0..self.loads.len() {
                let one = &mut self.loads[load];
                if one.load.process.as_ref() == Some(&name) && !one.is_pending {
                    one.is_pending = true;
                    self.commands.push_back(LaunchCommand::Load { load });
                }
            }
        }
        if stopping {
            self.signal(now, task, StopSignal::Interrupt);
        }
    }

    /// Handles a failed start; `why` is the reason.
    pub fn handle_not_started(&mut self, now: Duration, task: usize, why: &str) {
        let Some(one) = self.tasks.get_mut(task) else {
            return;
        };
        one.state = TaskState::Ended { exit: None };
        self.is_failed = true;
        self.log(
            LogLevel::Error,
            Some(task),
            format!("process could not be started: {why}"),
        );
        self.after_final_exit(now, task);
    }

    /// Handles the end of a process.
    pub fn handle_exited(&mut self, now: Duration, task: usize, exit: ProcessExit) {
        let stopping = self.is_stopping();
        let Some(one) = self.tasks.get_mut(task) else {
            return;
        };
        let TaskState::Running { pid, since } = one.state else {
            return;
        };
        let was_stopped = one.stop.take().is_some();
        let pause = if stopping {
            None
        } else {
            one.backoff.next_delay(now.saturating_sub(since))
        };
        let is_clean = exit == ProcessExit::Code(0);
        let text = match exit {
            ProcessExit::Code(0) => format!("process has finished cleanly [pid {pid}]"),
            ProcessExit::Code(code) => died_message(pid, code, &one.process.command),
            ProcessExit::Signal(signal) => died_message(pid, -signal, &one.process.command),
        };
        let level = if is_clean || was_stopped {
            LogLevel::Info
        } else {
            LogLevel::Error
        };
        match pause {
            Some(pause) => {
                one.state = TaskState::WaitingToRespawn {
                    until: now.saturating_add(pause),
                };
                self.log(level, Some(task), text);
                let pause = pause.as_secs_f64();
                self.log(
                    LogLevel::Info,
                    Some(task),
                    format!("process will be respawned in {pause} s"),
                );
                self.cancel_loads_of(task, false);
            }
            None => {
                one.state = TaskState::Ended { exit: Some(exit) };
                self.is_failed |= !is_clean && !was_stopped;
                self.log(level, Some(task), text);
                self.after_final_exit(now, task);
            }
        }
    }

    /// Cancels the loads of a process that is not respawned, and runs its `on_exit`
    /// steps.
    fn after_final_exit(&mut self, now: Duration, task: usize) {
        self.cancel_loads_of(task, true);
        if !self.is_stopping()
            && let Some(one) = self.tasks.get_mut(task)
        {
            let steps = std::mem::take(&mut one.process.on_exit);
            self.apply_steps(now, steps);
        }
    }

    /// Cancels the open loads of a container that has ended. `is_final` says that
    /// it is not respawned, which makes those loads fail.
    fn cancel_loads_of(&mut self, task: usize, is_final: bool) {
        let name = self.tasks.get(task).map(|one| one.process.name.clone());
        for load in 0..self.loads.len() {
            let one = &mut self.loads[load];
            if !one.is_pending || one.load.process != name {
                continue;
            }
            one.is_pending = false;
            self.commands.push_back(LaunchCommand::CancelLoad { load });
            if is_final && !self.is_stopping() {
                self.is_failed = true;
                let container = self.loads[load].load.container.clone();
                self.log(
                    LogLevel::Error,
                    None,
                    format!("components are not loaded: container {container} has ended"),
                );
            }
        }
    }

    /// Handles the last response of a load; `failed` components are not loaded.
    pub fn handle_loaded(&mut self, load: usize, failed: usize) {
        if let Some(one) = self.loads.get_mut(load) {
            one.is_pending = false;
            self.is_failed |= failed > 0;
        }
    }

    /// Handles the failure of another step.
    pub fn handle_failed(&mut self) {
        self.is_failed = true;
    }

    /// Handles the expiry of a timer on the ROS clock.
    pub fn handle_ros_timer(&mut self, now: Duration, timer: usize) {
        if let Some(one) = self.timers.get_mut(timer) {
            one.due = Some(now);
        }
    }

    /// Handles Ctrl-C or SIGTERM.
    pub fn handle_signal(&mut self, now: Duration, received: StopSignal) {
        let name = received.name();
        let what = match received {
            StopSignal::Interrupt => format!("user interrupted with ctrl-c ({name})"),
            _ => format!("received {name}"),
        };
        match self.phase {
            LaunchPhase::Running => {
                let text = format!("{what}, ending all processes");
                self.log(LogLevel::Warning, None, text);
                self.stop_all(now);
                self.phase = LaunchPhase::Stopping { interrupts: 1 };
            }
            LaunchPhase::Stopping { interrupts } => {
                self.phase = LaunchPhase::Stopping {
                    interrupts: interrupts + 1,
                };
                let stop = match interrupts {
                    0 => StopSignal::Interrupt,
                    1 => StopSignal::Terminate,
                    _ => StopSignal::Kill,
                };
                self.log(
                    LogLevel::Warning,
                    None,
                    format!("{what}, sending {} to all processes", stop.name()),
                );
                for task in (0..self.tasks.len()).rev() {
                    if matches!(self.tasks[task].state, TaskState::Running { .. }) {
                        self.signal(now, task, stop);
                    }
                }
                for one in &mut self.timers {
                    one.is_over = true;
                }
            }
            LaunchPhase::CleaningUpOrphans { .. } => self.clean_up_orphans(now, StopSignal::Kill),
            LaunchPhase::Finished => {}
        }
    }

    /// Begins the shutdown of all processes.
    fn stop_all(&mut self, now: Duration) {
        self.phase = LaunchPhase::Stopping { interrupts: 0 };
        for one in &mut self.timers {
            one.is_over |= one.timer.cancel_on_shutdown;
        }
        for load in 0..self.loads.len() {
            if std::mem::take(&mut self.loads[load].is_pending) {
                self.commands.push_back(LaunchCommand::CancelLoad { load });
            }
        }
        for task in (0..self.tasks.len()).rev() {
            match self.tasks[task].state {
                TaskState::Running { .. } => self.signal(now, task, StopSignal::Interrupt),
                TaskState::WaitingToRespawn { .. } => {
                    self.tasks[task].state = TaskState::Ended { exit: None }
                }
                // A process that is being started is stopped once it has started.
                TaskState::Starting | TaskState::Ended { .. } => {}
            }
        }
    }

    fn signal(&mut self, now: Duration, task: usize, stop: StopSignal) {
        let one = &mut self.tasks[task];
        if !matches!(one.state, TaskState::Running { .. }) {
            return;
        }
        let timeouts = StopTimeouts {
            sigterm: one.process.sigterm_timeout,
            sigkill: one.process.sigkill_timeout,
        };
        let timeout = timeouts.after(stop);
        let before = one.stop.replace((stop, now.saturating_add(timeout)));
        let escalated = before.map(|(_, due)| due <= now);
        let (level, text) = match escalated {
            Some(true) => (LogLevel::Error, timeouts.text(&one.process.name, stop)),
            _ => (
                LogLevel::Info,
                format!(
                    "sending signal '{}' to process[{}]",
                    stop.name(),
                    one.process.name
                ),
            ),
        };
        self.log(level, Some(task), text);
        self.commands
            .push_back(LaunchCommand::Signal { task, stop });
    }

    /// The next command; `None` until an event arrives or the time of
    /// [`LaunchStateMachine::next_timeout`] has come.
    pub fn poll(&mut self, now: Duration) -> Option<LaunchCommand> {
        if let Some(command) = self.commands.pop_front() {
            return Some(command);
        }
        self.poll_deadlines(now);
        if self.commands.is_empty() {
            self.poll_finish(now);
        }
        self.commands.pop_front()
    }

    fn poll_deadlines(&mut self, now: Duration) {
        for task in 0..self.tasks.len() {
            let one = &mut self.tasks[task];
            match (one.state, one.stop) {
                (TaskState::WaitingToRespawn { until }, _) if until <= now => {
                    one.state = TaskState::Starting;
                    one.restarts += 1;
                    self.commands.push_back(LaunchCommand::Start { task });
                }
                (TaskState::Running { .. }, Some((stop, due))) if due <= now => {
                    if let Some(stop) = stop.next() {
                        self.signal(now, task, stop);
                    }
                }
                _ => {}
            }
        }
        for timer in 0..self.timers.len() {
            let one = &mut self.timers[timer];
            if !one.is_over && one.due.is_some_and(|due| due <= now) {
                one.is_over = true;
                let steps = std::mem::take(&mut one.timer.steps);
                self.apply_steps(now, steps);
            }
        }
    }

    fn poll_finish(&mut self, now: Duration) {
        match self.phase {
            LaunchPhase::Running | LaunchPhase::Stopping { .. } => {
                let ended = |one: &Task| matches!(one.state, TaskState::Ended { .. });
                let is_over = self.tasks.iter().all(ended)
                    && self.timers.iter().all(|one| one.is_over)
                    && !self.loads.iter().any(|one| one.is_pending);
                if is_over {
                    self.clean_up_orphans(now, StopSignal::Terminate);
                }
            }
            LaunchPhase::CleaningUpOrphans {
                stop,
                next_poll: next_look,
                until,
            } if next_look <= now => {
                if until > now {
                    self.phase = LaunchPhase::CleaningUpOrphans {
                        stop,
                        next_poll: now.saturating_add(ORPHAN_POLL_PERIOD),
                        until,
                    };
                    self.commands
                        .push_back(LaunchCommand::CleanUpOrphans { stop: None });
                } else if stop == StopSignal::Kill {
                    self.finish();
                } else {
                    self.clean_up_orphans(now, StopSignal::Kill);
                }
            }
            _ => {}
        }
    }

    fn clean_up_orphans(&mut self, now: Duration, stop: StopSignal) {
        let timeout = match stop {
            StopSignal::Kill => ORPHAN_KILL_TIMEOUT,
            _ => ORPHAN_TERM_TIMEOUT,
        };
        self.phase = LaunchPhase::CleaningUpOrphans {
            stop,
            next_poll: now.saturating_add(ORPHAN_POLL_PERIOD),
            until: now.saturating_add(timeout),
        };
        self.commands
            .push_back(LaunchCommand::CleanUpOrphans { stop: Some(stop) });
    }

    /// Handles the number of orphans that are still running.
    pub fn handle_orphans_counted(&mut self, left: usize) {
        if left == 0 && matches!(self.phase, LaunchPhase::CleaningUpOrphans { .. }) {
            self.finish();
        }
    }

    fn finish(&mut self) {
        self.phase = LaunchPhase::Finished;
        self.commands.push_back(LaunchCommand::Finish);
    }

    /// The time at which [`LaunchStateMachine::poll`] has to run even without an
    /// event.
    pub fn next_timeout(&self) -> Option<Duration> {
        let tasks = self.tasks.iter().filter_map(|one| match one.state {
            TaskState::WaitingToRespawn { until } => Some(until),
            TaskState::Running { .. } => one.stop.map(|(_, due)| due),
            _ => None,
        });
        let timers = self.timers.iter().filter(|one| !one.is_over);
        let timers = timers.filter_map(|one| one.due);
        let sweep = match self.phase {
            LaunchPhase::CleaningUpOrphans {
                next_poll: next_look,
                ..
            } => Some(next_look),
            _ => None,
        };
        tasks.chain(timers).chain(sweep).min()
    }
}

fn died_message(pid: u32, code: i32, words: &[String]) -> String {
    let command = words.join(" ");
    format!("process has died [pid {pid}, exit code {code}, cmd '{command}'].")
}
