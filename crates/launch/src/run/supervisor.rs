//! Process supervisor: executes the commands of the [`LaunchStateMachine`]. One
//! thread waits in one poll for process exits, process output, Ctrl-C and the next
//! deadline.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use pteros_net::{Events, Poller, ReceivedSignal, shutdown_signal};

use super::child::{Child, Stream};
use super::files::LogFiles;
use super::launch_guard::LaunchGuard;
use super::launch_node::{self, LaunchNode, LaunchNodeEvent};
use super::log_folder::LogFolder;
use super::orphan_cleanup::LAUNCH_ID_VARIABLE;
use super::output_lines::OutputLines;
use super::screen::Screen;
use super::watchdog::WATCHDOG_ARGUMENT;
use crate::launch_state_machine::{LaunchCommand, LaunchStateMachine, StopSignal};
use crate::plan::{LaunchPlan, LogLevel, NodeKind};

/// Options of a launch.
pub struct RunOptions {
    /// The program to run as watchdog with the argument
    /// [`WATCHDOG_ARGUMENT`](super::WATCHDOG_ARGUMENT). Without it, the processes
    /// of the launch survive a launcher that is killed.
    pub watchdog: Option<PathBuf>,
    /// Folder of the log files.
    pub log_folder: LogFolder,
    /// Console output.
    pub screen: Screen,
}

/// Result of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchOutcome {
    /// Whether a process failed by itself or could not be started, or components
    /// could not be loaded.
    pub is_failed: bool,
    /// Number of processes that could not be ended.
    pub orphans: usize,
}

/// Error of a launch that cannot run.
pub enum RunError {
    /// An operation of the operating system failed: its name and the error.
    System(&'static str, io::Error),
}

pteros::msg::debug_as_display!(RunError);

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::System(what, error) = self;
        write!(f, "{what}: {error}")
    }
}

impl std::error::Error for RunError {}

fn system_error(what: &'static str) -> impl Fn(io::Error) -> RunError {
    move |error| RunError::System(what, error)
}

/// Bytes read from one stream before other events are served.
const READ_BYTES: usize = 64 << 10;
/// Largest pipe capacity (`fs.pipe-max-size`). More bytes than that come from a
/// process that still writes.
const PIPE_BYTES_MAX: usize = 1 << 20;
/// Poll tokens: Ctrl-C, the launch node, then four per started process.
const SIGNAL_TOKEN: u64 = 0;
const LAUNCH_NODE_TOKEN: u64 = 1;
const TOKENS_PER_CHILD: u64 = 4;

/// Largest number of ended processes whose output is still read because other
/// processes have it open. Beyond it, the one that ended first is dropped with a
/// warning.
const OPEN_OUTPUTS_MAX: usize = 64;

/// A running process, or an ended one whose output other processes still have open.
/// Those would get SIGPIPE if the launcher closed it.
struct RunningProcess {
    task: usize,
    child: Child,
    /// Lines of both streams.
    lines: [OutputLines; 2],
    has_ended: bool,
}

/// Runs a launch plan.
pub struct Supervisor {
    machine: LaunchStateMachine,
    options: RunOptions,
    files: LogFiles,
    poller: Poller,
    /// By start number.
    running: BTreeMap<u64, RunningProcess>,
    start_count: u64,
    start_time: Instant,
    guard: LaunchGuard,
    orphan_count: usize,
    is_over: bool,
    launch_node: Option<LaunchNode>,
    /// The domain of the processes, if it differs from the launcher's own.
    domain: Option<u32>,
    /// Managed nodes to bring up, each with the nodes that it depends on.
    managed_nodes: Vec<(String, Vec<String>)>,
    lifecycle_waker: Option<OwnedFd>,
}

impl Supervisor {
    /// Creates the log folder; starts no process of the plan.
    ///
    /// # Errors
    /// See [`RunError`].
    pub fn new(plan: &LaunchPlan, options: RunOptions) -> Result<Self, RunError> {
        options
            .log_folder
            .create()
            .map_err(system_error("log files"))?;
        let files = LogFiles::new(options.log_folder.path());
        let poller = Poller::new().map_err(system_error("wait for processes"))?;
        let signal = shutdown_signal().map_err(system_error("receive SIGINT and SIGTERM"))?;
        signal.clear();
        poller
            .add(signal, SIGNAL_TOKEN)
            .map_err(system_error("receive SIGINT and SIGTERM"))?;
        // The folder's name has time, host and process id, so it is a unique launch
        // id.
        let name = options.log_folder.path().file_name().unwrap_or_default();
        let launch_id = name.to_string_lossy().replace(':', "_");
        Ok(Self {
            machine: LaunchStateMachine::new(plan.steps.clone()),
            options,
            files,
            poller,
            running: BTreeMap::new(),
            start_count: 0,
            start_time: Instant::now(),
            guard: LaunchGuard::new(&launch_id),
            orphan_count: 0,
            is_over: false,
            launch_node: None,
            domain: plan_domain(plan),
            managed_nodes: managed_nodes(plan),
            lifecycle_waker: None,
        })
    }

    /// Runs until all processes have ended. Blocks.
    ///
    /// # Errors
    /// See [`RunError`]. The watchdog then ends the running processes.
    pub fn run(mut self) -> Result<LaunchOutcome, RunError> {
        if let Some(program) = &self.options.watchdog {
            let mut watchdog = Command::new(program);
            watchdog.args([WATCHDOG_ARGUMENT, self.guard.launch_id()]);
            let started = self.guard.start_watchdog(watchdog);
            started.map_err(system_error("start the watchdog"))?;
        }
        let mut events = Events::default();
        let folder = self.options.log_folder.path().display().to_string();
        self.log(
            LogLevel::Info,
            None,
            &format!("All log files can be found below {folder}"),
        );
        loop {
            self.run_commands();
            if self.machine.is_stopping()
                && let Some(ros) = &mut self.launch_node
            {
                ros.stop_supervising();
            }
            let status = self.machine.status();
            self.options
                .screen
                .status(if self.is_over { "" } else { &status });
            self.options.screen.flush();
            if self.is_over {
                break;
            }
            let timeout = self.machine.next_timeout();
            let timeout = timeout.map(|due| due.saturating_sub(self.start_time.elapsed()));
            let looks = self
                .launch_node
                .as_ref()
                .is_some_and(LaunchNode::needs_polling);
            let timeout = if looks {
                Some(
                    timeout
                        .unwrap_or(launch_node::CONTAINER_POLL_PERIOD)
                        .min(launch_node::CONTAINER_POLL_PERIOD),
                )
            } else {
                timeout
            };
            self.poller
                .wait(&mut events, timeout)
                .map_err(system_error("wait for processes"))?;
            let tokens: Vec<u64> = events.iter().map(|event| event.token).collect();
            for token in tokens {
                self.handle_event(token)?;
            }
            if looks {
                self.poll_launch_node();
            }
        }
        self.guard.finish();
        Ok(LaunchOutcome {
            is_failed: self.machine.is_failed(),
            orphans: self.orphan_count,
        })
    }

    fn now(&self) -> Duration {
        self.start_time.elapsed()
    }

    /// Executes all pending commands of the state machine.
    fn run_commands(&mut self) {
        while let Some(command) = self.machine.poll(self.now()) {
            match command {
                LaunchCommand::Start { task } => self.start(task),
                LaunchCommand::Signal { task, stop } => {
                    let mut running = self.running.values();
                    let found = running.find(|one| one.task == task && !one.has_ended);
                    if let Some(running) = found {
                        running.child.signal(stop);
                    }
                }
                LaunchCommand::Log { level, task, text } => self.log(level, task, &text),
                LaunchCommand::CleanUpOrphans { stop } => {
                    self.orphan_count = self.guard.signal(stop);
                    self.machine.handle_orphans_counted(self.orphan_count);
                }
                LaunchCommand::Finish => {
                    self.drain_all_outputs();
                    self.is_over = true;
                }
                LaunchCommand::Load { load } => self.start_load(load),
                LaunchCommand::CancelLoad { load } => {
                    if let Some(ros) = &mut self.launch_node {
                        ros.cancel_load(load);
                    }
                }
                LaunchCommand::RosTimer {
                    timer,
                    period,
                    simulated,
                } => self.start_ros_timer(timer, period, simulated),
            }
        }
    }

    fn log(&mut self, level: LogLevel, task: Option<usize>, text: &str) {
        let name = task.and_then(|task| self.machine.tasks().get(task));
        let name = name.map(|task| task.process.name.as_str());
        let label = level.label();
        self.files
            .launch_line(label, name.unwrap_or("launch"), text);
        self.options.screen.log(level, name, text);
        if let Some(failure) = self.files.take_failure() {
            self.options.screen.log(LogLevel::Warning, None, &failure);
        }
    }

    /// The launch node, created when it is first needed.
    fn launch_node(&mut self) -> Result<&mut LaunchNode, String> {
        if self.launch_node.is_none() {
            let ros = LaunchNode::new(self.domain)?;
            let watched = self.poller.add(ros.as_fd(), LAUNCH_NODE_TOKEN);
            watched.map_err(|error| error.to_string())?;
            self.launch_node = Some(ros);
        }
        self.launch_node
            .as_mut()
            .ok_or_else(|| "there is no node".into())
    }

    fn start_load(&mut self, number: usize) {
        let Some(load) = self.machine.load(number).cloned() else {
            return;
        };
        let begun = self.launch_node().and_then(|ros| ros.load(number, &load));
        if let Err(why) = begun {
            let location = &load.location;
            self.log(LogLevel::Error, None, &format!("{location}: {why}"));
            self.machine.handle_loaded(number, load.components.len());
        }
    }

    fn start_ros_timer(&mut self, number: usize, period: Duration, simulated: bool) {
        let begun = self
            .launch_node()
            .and_then(|ros| ros.timer(number, period, simulated));
        if let Err(why) = begun {
            self.log(LogLevel::Error, None, &format!("ros_timer: {why}"));
            self.machine.handle_failed();
        }
    }

    /// Starts the supervision of managed nodes with `autostart`, when the first one
    /// starts.
    fn start_supervision(&mut self) {
        let nodes = std::mem::take(&mut self.managed_nodes);
        if nodes.is_empty() {
            return;
        }
        let domain = self.domain;
        let begun = self.launch_node().and_then(|ros| {
            let waker = ros.supervise(domain, nodes)?;
            waker
                .try_clone_to_owned()
                .map_err(|error| error.to_string())
        });
        let begun = begun.and_then(|waker| {
            let watched = self.poller.add(&waker, LAUNCH_NODE_TOKEN);
            self.lifecycle_waker = Some(waker);
            watched.map_err(|error| error.to_string())
        });
        if let Err(why) = begun {
            self.log(LogLevel::Error, None, &format!("lifecycle_node: {why}"));
            self.machine.handle_failed();
        }
    }

    /// Handles the events of the launch node.
    fn poll_launch_node(&mut self) {
        let events = self
            .launch_node
            .as_mut()
            .map(LaunchNode::poll)
            .unwrap_or_default();
        for one in events {
            match one {
                // During the shutdown, managed nodes end on request.
                LaunchNodeEvent::Log(..) | LaunchNodeEvent::SupervisionGivenUp
                    if self.machine.is_stopping() => {}
                LaunchNodeEvent::Log(level, text) => self.log(level, None, &text),
                LaunchNodeEvent::SupervisionGivenUp => self.machine.handle_failed(),
                LaunchNodeEvent::Loaded(load, failed) => self.machine.handle_loaded(load, failed),
                LaunchNodeEvent::TimerDue(timer) => {
                    self.machine.handle_ros_timer(self.now(), timer)
                }
            }
        }
    }

    fn start(&mut self, task: usize) {
        let Some(process) = self.machine.tasks().get(task).map(|one| &one.process) else {
            return;
        };
        let written = process.files.iter().try_for_each(|(path, text)| {
            fs::write(path, text).map_err(|error| {
                io::Error::new(error.kind(), format!("write {}: {error}", path.display()))
            })
        });
        let outer = std::env::var(LAUNCH_ID_VARIABLE).ok();
        let mark = self.guard.mark(outer.as_deref());
        let started = written.and_then(|()| Child::start(process, mark));
        self.start_count += 1;
        let number = self.start_count;
        let started = started.and_then(|child| {
            self.watch_child(number, &child)?;
            Ok(child)
        });
        let now = self.now();
        let kind = process.node.as_ref().map(|node| node.kind);
        let is_managed = kind == Some(NodeKind::Lifecycle { autostart: true });
        let program = process.command.first().cloned().unwrap_or_default();
        match started {
            Ok(child) => {
                self.guard.add_leader(child.pid());
                self.machine.handle_started(now, task, child.pid());
                let running = RunningProcess {
                    task,
                    child,
                    lines: Default::default(),
                    has_ended: false,
                };
                self.running.insert(number, running);
                if is_managed {
                    self.start_supervision();
                }
            }
            Err(error) => {
                let why = format!("{program}: {error}");
                self.machine.handle_not_started(now, task, &why);
            }
        }
    }

    /// Registers the end and the output of a process with the poll.
    fn watch_child(&self, number: u64, child: &Child) -> io::Result<()> {
        let token = number * TOKENS_PER_CHILD;
        self.poller.add(child.descriptor(), token)?;
        for (stream, offset) in [(Stream::Out, 1), (Stream::Err, 2)] {
            if let Some(descriptor) = child.stream(stream) {
                self.poller.add(descriptor.as_fd(), token + offset)?;
            }
        }
        Ok(())
    }

    fn handle_event(&mut self, token: u64) -> Result<(), RunError> {
        if token == SIGNAL_TOKEN {
            let signal = shutdown_signal().map_err(system_error("receive SIGINT and SIGTERM"))?;
            let received = match signal.received() {
                Some(ReceivedSignal::Terminate) => StopSignal::Terminate,
                _ => StopSignal::Interrupt,
            };
            // A later one counts as a new one.
            signal.clear();
            self.machine.handle_signal(self.now(), received);
            return Ok(());
        }
        if token == LAUNCH_NODE_TOKEN {
            self.poll_launch_node();
            return Ok(());
        }
        let number = token / TOKENS_PER_CHILD;
        match token % TOKENS_PER_CHILD {
            1 => drop(self.read(number, Stream::Out)),
            2 => drop(self.read(number, Stream::Err)),
            _ => self.handle_exit(number)?,
        }
        let running = self.running.get(&number);
        if running.is_some_and(|one| one.has_ended && one.child.is_closed()) {
            self.running.remove(&number);
        }
        Ok(())
    }

    /// Reads once. The poll reports remaining bytes again.
    fn read(&mut self, number: u64, stream: Stream) -> Option<usize> {
        let mut buffer = vec![0; READ_BYTES];
        let running = self.running.get_mut(&number)?;
        let task = running.task;
        let read = running.child.read(stream, &mut buffer);
        // Lines are written while the process is not borrowed.
        let mut lines = std::mem::take(&mut running.lines[stream as usize]);
        lines.push(&buffer[..read.unwrap_or(0)], |line| {
            self.write_line(task, stream, line);
        });
        if let Some(running) = self.running.get_mut(&number) {
            running.lines[stream as usize] = lines;
        }
        if read.is_none() {
            self.flush_partial_line(number, stream);
        }
        read
    }

    fn write_line(&mut self, task: usize, stream: Stream, line: &[u8]) {
        let Some(process) = self.machine.tasks().get(task).map(|one| &one.process) else {
            return;
        };
        let (to, name) = match stream {
            Stream::Out => (process.output.stdout, "stdout"),
            Stream::Err => (process.output.stderr, "stderr"),
        };
        if to.screen {
            self.options.screen.output(task, &process.name, name, line);
        }
        if to.log {
            self.files.output_line(&process.name, line);
        }
        if to.own_files {
            self.files.own_line(&process.name, name, line);
        }
    }

    fn handle_exit(&mut self, number: u64) -> Result<(), RunError> {
        let Some(running) = self.running.get_mut(&number) else {
            return Ok(());
        };
        let task = running.task;
        let Some(exit) = running.child.try_wait() else {
            return Ok(());
        };
        running.has_ended = true;
        self.guard.remove_leader(running.child.pid());
        let removed = self.poller.remove(running.child.descriptor());
        removed.map_err(system_error("wait for processes"))?;
        self.drain_output(number);
        self.machine.handle_exited(self.now(), task, exit);
        self.limit_open_outputs();
        Ok(())
    }

    /// Reads what an ended process wrote before its end. Other processes may have
    /// the output open, and their later lines are read when they arrive.
    fn drain_output(&mut self, number: u64) {
        for stream in [Stream::Out, Stream::Err] {
            // A pseudo-terminal returns at most one page per read.
            let mut byte_count = 0;
            while byte_count < PIPE_BYTES_MAX {
                match self.read(number, stream) {
                    None | Some(0) => break,
                    Some(count) => byte_count += count,
                }
            }
            self.flush_partial_line(number, stream);
        }
    }

    /// Drops the oldest ended processes beyond [`OPEN_OUTPUTS_MAX`].
    fn limit_open_outputs(&mut self) {
        let ended = self.running.iter();
        let ended = ended.filter(|(_, one)| one.has_ended && !one.child.is_closed());
        let ended: Vec<(u64, usize)> = ended.map(|(number, one)| (*number, one.task)).collect();
        let many = ended.len().saturating_sub(OPEN_OUTPUTS_MAX);
        for (number, task) in ended.into_iter().take(many) {
            self.running.remove(&number);
            let text = format!(
                "its output is no longer read, although orphaned processes have it open: {OPEN_OUTPUTS_MAX} processes that ended later have open outputs too"
            );
            self.log(LogLevel::Warning, Some(task), &text);
        }
    }

    /// Reads the remaining output after all processes have ended.
    fn drain_all_outputs(&mut self) {
        let numbers: Vec<u64> = self.running.keys().copied().collect();
        for number in numbers {
            self.drain_output(number);
        }
    }

    /// Writes a partial line that will not be completed.
    fn flush_partial_line(&mut self, number: u64, stream: Stream) {
        let Some(running) = self.running.get_mut(&number) else {
            return;
        };
        let task = running.task;
        if let Some(rest) = running.lines[stream as usize].take_rest() {
            self.write_line(task, stream, &rest);
        }
    }
}

/// The domain of all containers and managed nodes, if the launch file sets one.
fn plan_domain(plan: &LaunchPlan) -> Option<u32> {
    let with_ros = plan.processes().into_iter().filter(|process| {
        let kind = process.node.as_ref().map(|node| node.kind);
        kind.is_some_and(|kind| kind != NodeKind::Plain)
    });
    let mut domains = with_ros.filter_map(|process| process.environment.get("ROS_DOMAIN_ID"));
    domains.next()?.trim().parse().ok()
}

/// The managed nodes to bring up, each with the nodes that it depends on.
fn managed_nodes(plan: &LaunchPlan) -> Vec<(String, Vec<String>)> {
    let nodes = plan.processes().into_iter().filter_map(|process| {
        let node = process.node.as_ref()?;
        let is_managed = node.kind == NodeKind::Lifecycle { autostart: true };
        let name = node.full_name().filter(|_| is_managed)?;
        Some((name, node.depends_on.clone()))
    });
    nodes.collect()
}
