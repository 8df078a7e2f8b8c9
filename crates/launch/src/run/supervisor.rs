//! Does what the [`Conductor`] decides, on one thread that sleeps in one poll: ends
//! of processes, their output, Ctrl-C and the next deadline.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use pteros_net::{Events, Poller, shutdown_signal};

use super::child::{Child, Stream};
use super::files::Files;
use super::guard::Guard;
use super::log_folder::LogFolder;
use super::remnants::{self, MARK_VARIABLE};
use super::ros::{self, News, Ros};
use super::screen::Screen;
use crate::conductor::{Command, Conductor};
use crate::plan::{Level, NodeKind, Plan};

/// How a launch runs.
pub struct RunOptions {
    /// The program that becomes the guard when its first word is
    /// [`GUARD_WORD`](super::GUARD_WORD); without one, nothing ends the launch's
    /// processes when the launcher is killed.
    pub guard: Option<PathBuf>,
    /// Where log files go.
    pub log_folder: LogFolder,
    /// Where lines go.
    pub screen: Screen,
}

/// What came of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Whether a process has failed by itself, could not be started, or components
    /// could not be loaded.
    pub is_failed: bool,
    /// How many processes of the launch could not be ended.
    pub left: usize,
}

/// Why a launch cannot run.
#[derive(Debug)]
pub enum RunError {
    /// The operating system refuses something, which is named.
    System(&'static str, io::Error),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::System(what, error) = self;
        write!(f, "{what}: {error}")
    }
}

impl std::error::Error for RunError {}

fn named(what: &'static str) -> impl Fn(io::Error) -> RunError {
    move |error| RunError::System(what, error)
}

/// A longer line is handed on in pieces.
const LINE_BYTES_MAX: usize = 64 << 10;
/// How much of one stream is read before others have their turn.
const READ_BYTES: usize = 64 << 10;
/// The most that a pipe can hold (`fs.pipe-max-size`): what comes beyond is of somebody
/// who still writes.
const PIPE_BYTES_MAX: usize = 1 << 20;
/// Tokens of the poll: Ctrl-C; then four for each start of a process.
const SIGNAL: u64 = 0;
/// The launch's own node.
const ROS: u64 = 1;
const PER_CHILD: u64 = 4;

/// Processes that have ended, whose output others still have open: so many are
/// listened to. Beyond it the one that ended first is let go, which is said.
const OUTLIVED_MAX: usize = 64;

/// A process that runs, or one that has ended and left others that may write to its
/// output: they would get SIGPIPE if nobody read that any more.
struct Running {
    task: usize,
    child: Child,
    /// The beginnings of lines.
    lines: [Vec<u8>; 2],
    has_ended: bool,
}

/// Runs a plan.
pub struct Supervisor {
    conductor: Conductor,
    options: RunOptions,
    files: Files,
    poller: Poller,
    /// By the number of their start.
    running: BTreeMap<u64, Running>,
    starts: u64,
    began: Instant,
    mark: String,
    marks: String,
    left: usize,
    is_over: bool,
    ros: Option<Ros>,
    /// The processes' domain, where it is not the launcher's own.
    domain: Option<u32>,
    /// Managed nodes to be brought up, and whom they need.
    managed: Vec<(String, Vec<String>)>,
    lifecycle_waker: Option<OwnedFd>,
}

impl Supervisor {
    /// Makes the log folder and the guard; starts nothing of the plan.
    ///
    /// # Errors
    /// See [`RunError`].
    pub fn new(plan: &Plan, options: RunOptions) -> Result<Self, RunError> {
        options.log_folder.create().map_err(named("log files"))?;
        let files = Files::new(options.log_folder.path());
        let poller = Poller::new().map_err(named("wait for processes"))?;
        let signal = shutdown_signal().map_err(named("hear Ctrl-C"))?;
        signal.clear();
        poller.add(signal, SIGNAL).map_err(named("hear Ctrl-C"))?;
        // The folder's name has moment, host and process: no other launch has it.
        let name = options.log_folder.path().file_name().unwrap_or_default();
        let mark = name.to_string_lossy().replace(':', "_");
        let outer = std::env::var(MARK_VARIABLE).ok();
        let marks = match outer.filter(|marks| !marks.is_empty()) {
            Some(outer) => format!("{outer}:{mark}"),
            None => mark.clone(),
        };
        Ok(Self {
            conductor: Conductor::new(plan.steps.clone()),
            options,
            files,
            poller,
            running: BTreeMap::new(),
            starts: 0,
            began: Instant::now(),
            mark,
            marks,
            left: 0,
            is_over: false,
            ros: None,
            domain: domain(plan),
            managed: managed(plan),
            lifecycle_waker: None,
        })
    }

    /// Runs until all processes have ended, or Ctrl-C has ended them.
    ///
    /// # Errors
    /// See [`RunError`]; what runs then is ended by the guard.
    pub fn run(mut self) -> Result<Outcome, RunError> {
        let program = self.options.guard.clone();
        let guard = program.map(|program| Guard::start(&program, &self.mark));
        let mut guard = guard
            .transpose()
            .map_err(named("start the launch's guard"))?;
        let mut events = Events::default();
        let folder = self.options.log_folder.path().display().to_string();
        self.say(
            Level::Info,
            None,
            &format!("All log files can be found below {folder}"),
        );
        loop {
            self.obey();
            if self.conductor.is_stopping()
                && let Some(ros) = &mut self.ros
            {
                ros.stop_supervising();
            }
            let status = self.conductor.status();
            self.options
                .screen
                .status(if self.is_over { "" } else { &status });
            self.options.screen.flush();
            if self.is_over {
                break;
            }
            let timeout = self.conductor.next_timeout();
            let timeout = timeout.map(|due| due.saturating_sub(self.began.elapsed()));
            let looks = self.ros.as_ref().is_some_and(Ros::needs_looks);
            let timeout = match looks {
                true => Some(timeout.unwrap_or(ros::LOOK).min(ros::LOOK)),
                false => timeout,
            };
            self.poller
                .wait(&mut events, timeout)
                .map_err(named("wait for processes"))?;
            let tokens: Vec<u64> = events.iter().map(|event| event.token).collect();
            for token in tokens {
                self.handle(token)?;
            }
            if looks {
                self.take_news();
            }
        }
        if let Some(guard) = &mut guard {
            guard.end();
        }
        Ok(Outcome {
            is_failed: self.conductor.is_failed(),
            left: self.left,
        })
    }

    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// Does all that is to be done now.
    fn obey(&mut self) {
        while let Some(command) = self.conductor.poll(self.now()) {
            match command {
                Command::Start { task } => self.start(task),
                Command::Signal { task, stop } => {
                    let mut running = self.running.values();
                    let found = running.find(|one| one.task == task && !one.has_ended);
                    if let Some(running) = found {
                        running.child.signal(stop);
                    }
                }
                Command::Say { level, task, text } => self.say(level, task, &text),
                Command::Sweep { stop } => {
                    self.left = remnants::signal(&self.mark, stop);
                    self.conductor.handle_swept(self.left);
                }
                Command::End => {
                    self.hear_the_last();
                    self.is_over = true;
                }
                Command::Load { load } => self.load(load),
                Command::ForgetLoad { load } => {
                    if let Some(ros) = &mut self.ros {
                        ros.forget(load);
                    }
                }
                Command::RosTimer {
                    timer,
                    period,
                    simulated,
                } => self.ros_timer(timer, period, simulated),
            }
        }
    }

    fn say(&mut self, level: Level, task: Option<usize>, text: &str) {
        let name = task.and_then(|task| self.conductor.tasks().get(task));
        let name = name.map(|task| task.process.name.as_str());
        let label = level.label();
        self.files
            .launch_line(label, name.unwrap_or("launch"), text);
        self.options.screen.say(level, name, text);
        if let Some(failure) = self.files.take_failure() {
            self.options.screen.say(Level::Warning, None, &failure);
        }
    }

    /// The launch's own node, made when it is first needed.
    fn ros(&mut self) -> Result<&mut Ros, String> {
        if self.ros.is_none() {
            let ros = Ros::new(self.domain)?;
            let watched = self.poller.add(ros.as_fd(), ROS);
            watched.map_err(|error| error.to_string())?;
            self.ros = Some(ros);
        }
        self.ros.as_mut().ok_or_else(|| "there is no node".into())
    }

    fn load(&mut self, number: usize) {
        let Some(load) = self.conductor.load(number).cloned() else {
            return;
        };
        let begun = self.ros().and_then(|ros| ros.load(number, &load));
        if let Err(why) = begun {
            let place = &load.place;
            self.say(Level::Error, None, &format!("{place}: {why}"));
            self.conductor.handle_loaded(number, load.components.len());
        }
    }

    fn ros_timer(&mut self, number: usize, period: Duration, simulated: bool) {
        let begun = self
            .ros()
            .and_then(|ros| ros.timer(number, period, simulated));
        if let Err(why) = begun {
            self.say(Level::Error, None, &format!("ros_timer: {why}"));
            self.conductor.handle_failed();
        }
    }

    /// Managed nodes with `autostart`, from when the first of them starts.
    fn supervise(&mut self) {
        let nodes = std::mem::take(&mut self.managed);
        if nodes.is_empty() {
            return;
        }
        let domain = self.domain;
        let begun = self.ros().and_then(|ros| {
            let waker = ros.supervise(domain, nodes)?;
            waker
                .try_clone_to_owned()
                .map_err(|error| error.to_string())
        });
        let begun = begun.and_then(|waker| {
            let watched = self.poller.add(&waker, ROS);
            self.lifecycle_waker = Some(waker);
            watched.map_err(|error| error.to_string())
        });
        if let Err(why) = begun {
            self.say(Level::Error, None, &format!("lifecycle_node: {why}"));
            self.conductor.handle_failed();
        }
    }

    /// What the launch's own node has to tell.
    fn take_news(&mut self) {
        let news = self.ros.as_mut().map(Ros::turn).unwrap_or_default();
        for one in news {
            match one {
                // Who goes now goes because it is told to.
                News::Say(..) | News::GivenUp if self.conductor.is_stopping() => {}
                News::Say(level, text) => self.say(level, None, &text),
                News::GivenUp => self.conductor.handle_failed(),
                News::Loaded(load, failed) => self.conductor.handle_loaded(load, failed),
                News::Due(timer) => self.conductor.handle_ros_timer(self.now(), timer),
            }
        }
    }

    fn start(&mut self, task: usize) {
        let Some(process) = self.conductor.tasks().get(task).map(|one| &one.process) else {
            return;
        };
        let written = process.files.iter().try_for_each(|(path, text)| {
            fs::write(path, text).map_err(|error| {
                io::Error::new(error.kind(), format!("write {}: {error}", path.display()))
            })
        });
        let started = written.and_then(|()| Child::start(process, &self.marks));
        self.starts += 1;
        let number = self.starts;
        let started = started.and_then(|child| {
            self.watch(number, &child)?;
            Ok(child)
        });
        let now = self.now();
        let kind = process.node.as_ref().map(|node| node.kind);
        let is_managed = kind == Some(NodeKind::Lifecycle { autostart: true });
        let program = process.words.first().cloned().unwrap_or_default();
        match started {
            Ok(child) => {
                self.conductor.handle_started(now, task, child.pid());
                let running = Running {
                    task,
                    child,
                    lines: [Vec::new(), Vec::new()],
                    has_ended: false,
                };
                self.running.insert(number, running);
                if is_managed {
                    self.supervise();
                }
            }
            Err(error) => {
                let why = format!("{program}: {error}");
                self.conductor.handle_not_started(now, task, &why);
            }
        }
    }

    /// Has the poll tell of its end and its output.
    fn watch(&self, number: u64, child: &Child) -> io::Result<()> {
        let token = number * PER_CHILD;
        self.poller.add(child.descriptor(), token)?;
        for (stream, offset) in [(Stream::Out, 1), (Stream::Err, 2)] {
            if let Some(descriptor) = child.stream(stream) {
                self.poller.add(descriptor.as_fd(), token + offset)?;
            }
        }
        Ok(())
    }

    fn handle(&mut self, token: u64) -> Result<(), RunError> {
        if token == SIGNAL {
            let signal = shutdown_signal().map_err(named("hear Ctrl-C"))?;
            // So that the next one is the first again, and kills nobody.
            signal.clear();
            self.conductor.handle_interrupt(self.now());
            return Ok(());
        }
        if token == ROS {
            self.take_news();
            return Ok(());
        }
        let number = token / PER_CHILD;
        match token % PER_CHILD {
            1 => drop(self.read(number, Stream::Out)),
            2 => drop(self.read(number, Stream::Err)),
            _ => self.ended(number)?,
        }
        let running = self.running.get(&number);
        if running.is_some_and(|one| one.has_ended && one.child.is_silent()) {
            self.running.remove(&number);
        }
        Ok(())
    }

    /// Reads once; what is left is reported again.
    fn read(&mut self, number: u64, stream: Stream) -> Option<usize> {
        let mut buffer = vec![0; READ_BYTES];
        let running = self.running.get_mut(&number)?;
        let task = running.task;
        let read = running.child.read(stream, &mut buffer);
        let count = read.unwrap_or(0);
        let pending = &mut running.lines[stream as usize];
        pending.extend_from_slice(buffer.get(..count).unwrap_or(&[]));
        let is_over = read.is_none();
        let mut pending = std::mem::take(pending);
        let mut start = 0;
        while let Some(length) = next_line(pending.get(start..).unwrap_or(&[]), is_over) {
            let line = pending.get(start..start + length).unwrap_or(&[]);
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            self.line(task, stream, line);
            start += length;
        }
        pending.drain(..start);
        if let Some(running) = self.running.get_mut(&number) {
            running.lines[stream as usize] = pending;
        }
        read
    }

    fn line(&mut self, task: usize, stream: Stream, line: &[u8]) {
        let Some(process) = self.conductor.tasks().get(task).map(|one| &one.process) else {
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
        if to.own_log {
            self.files.own_line(&process.name, name, line);
        }
    }

    fn ended(&mut self, number: u64) -> Result<(), RunError> {
        let Some(running) = self.running.get_mut(&number) else {
            return Ok(());
        };
        let task = running.task;
        let Some(exit) = running.child.ended() else {
            return Ok(());
        };
        running.has_ended = true;
        let removed = self.poller.remove(running.child.descriptor());
        removed.map_err(named("wait for processes"))?;
        self.hear_now(number);
        self.conductor.handle_exited(self.now(), task, exit);
        self.let_go();
        Ok(())
    }

    /// What a process that has ended wrote before. Others may have its output open and
    /// write later: that is read when it comes.
    fn hear_now(&mut self, number: u64) {
        for stream in [Stream::Out, Stream::Err] {
            // A terminal gives at most a page at a time.
            let mut heard = 0;
            while heard < PIPE_BYTES_MAX {
                match self.read(number, stream) {
                    None | Some(0) => break,
                    Some(count) => heard += count,
                }
            }
            self.rest(number, stream);
        }
    }

    /// No more than [`OUTLIVED_MAX`] that have ended are listened to.
    fn let_go(&mut self) {
        let ended = self.running.iter();
        let ended = ended.filter(|(_, one)| one.has_ended && !one.child.is_silent());
        let ended: Vec<(u64, usize)> = ended.map(|(number, one)| (*number, one.task)).collect();
        let many = ended.len().saturating_sub(OUTLIVED_MAX);
        for (number, task) in ended.into_iter().take(many) {
            self.running.remove(&number);
            let text = format!(
                "its output is no longer read, though what it has left behind has it open: {OUTLIVED_MAX} processes that ended later are listened to as well"
            );
            self.say(Level::Warning, Some(task), &text);
        }
    }

    /// All have gone: what they have written until then.
    fn hear_the_last(&mut self) {
        let numbers: Vec<u64> = self.running.keys().copied().collect();
        for number in numbers {
            self.hear_now(number);
        }
    }

    /// The beginning of a line that will have no end.
    fn rest(&mut self, number: u64, stream: Stream) {
        let Some(running) = self.running.get_mut(&number) else {
            return;
        };
        let task = running.task;
        let rest = std::mem::take(&mut running.lines[stream as usize]);
        if !rest.is_empty() {
            self.line(task, stream, &rest);
        }
    }
}

/// The domain that all containers and managed nodes are in, where the launch file
/// sets one.
fn domain(plan: &Plan) -> Option<u32> {
    let with_ros = plan.processes().into_iter().filter(|process| {
        let kind = process.node.as_ref().map(|node| node.kind);
        kind.is_some_and(|kind| kind != NodeKind::Plain)
    });
    let mut domains = with_ros.filter_map(|process| process.environment.get("ROS_DOMAIN_ID"));
    domains.next()?.trim().parse().ok()
}

/// The managed nodes that are to be brought up, and whom they need.
fn managed(plan: &Plan) -> Vec<(String, Vec<String>)> {
    let nodes = plan.processes().into_iter().filter_map(|process| {
        let node = process.node.as_ref()?;
        let is_managed = node.kind == NodeKind::Lifecycle { autostart: true };
        let name = node.full_name().filter(|_| is_managed)?;
        Some((name, node.needs.clone()))
    });
    nodes.collect()
}

/// How long the first line is, its end included.
fn next_line(bytes: &[u8], is_over: bool) -> Option<usize> {
    if let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
        return Some((end + 1).min(LINE_BYTES_MAX));
    }
    match bytes.len() {
        0 => None,
        length if length >= LINE_BYTES_MAX => Some(LINE_BYTES_MAX),
        length if is_over => Some(length),
        _ => None,
    }
}
