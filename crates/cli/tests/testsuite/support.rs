//! Runs the binary as a user would, each test in its own domain and on loopback
//! only. The tests of `pteros-lab` use it as well.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, UdpSocket};
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// A domain that no other process on this host uses.
pub struct Domain(u32);

/// Exit code and output of a finished command.
pub struct Answer {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

/// A command in the background; killed when dropped.
pub struct Running {
    child: Child,
    pub out: BufReader<ChildStdout>,
    pub err: BufReader<ChildStderr>,
}

static NEXT: AtomicU32 = AtomicU32::new(0);

impl Domain {
    pub fn new() -> Self {
        loop {
            let next = NEXT.fetch_add(1, Ordering::Relaxed);
            let domain = 21 + (std::process::id() * 7 + next) % 80;
            let port = u16::try_from(7400 + 250 * domain + 10).unwrap();
            if UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
                return Self(domain);
            }
        }
    }

    /// Its number.
    pub fn id(&self) -> u32 {
        self.0
    }

    pub fn command<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Command {
        let mut command = pteros();
        command
            .env("ROS_DOMAIN_ID", self.0.to_string())
            .env("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
            .args(arguments);
        command
    }

    /// Runs a command to its end. Words are separated by spaces.
    pub fn run(&self, words: &str) -> Answer {
        finish(self.command(words.split(' ')))
    }

    /// Runs a command whose last word may contain spaces.
    pub fn run_with(&self, words: &str, last: &str) -> Answer {
        finish(self.command(words.split(' ').chain([last])))
    }

    /// Starts a command in the background.
    pub fn start(&self, words: &str) -> Running {
        start(self.command(words.split(' ')))
    }

    /// As [`start`](Self::start), with a last word that may contain spaces.
    pub fn start_with(&self, words: &str, last: &str) -> Running {
        start(self.command(words.split(' ').chain([last])))
    }

    /// The candidates that a shell offers at the end of a line, without options.
    pub fn candidates(&self, line: &str) -> Vec<String> {
        let words: Vec<&str> = line.split(' ').collect();
        let mut command = self.command(["--"].iter().chain(&words));
        command
            .env("PTEROS_COMPLETE", "bash")
            .env("_CLAP_COMPLETE_INDEX", (words.len() - 1).to_string())
            .env("_CLAP_IFS", "\n");
        let output = finish(command).ok();
        let found = output.lines().filter(|one| {
            words.last().is_some_and(|word| word.starts_with('-')) || !one.starts_with('-')
        });
        found.map(str::to_owned).collect()
    }

    /// Repeats a command until its output satisfies `done`, which takes one attempt
    /// on a healthy graph.
    pub fn run_until(&self, words: &str, done: impl Fn(&Answer) -> bool) -> Answer {
        let mut answer = self.run(words);
        for _ in 0..10 {
            if done(&answer) {
                break;
            }
            answer = self.run(words);
        }
        answer
    }
}

/// The binary of the crate whose tests these are.
const PROGRAM: &str = match (
    option_env!("CARGO_BIN_EXE_pteros"),
    option_env!("CARGO_BIN_EXE_pteros-lab"),
) {
    (Some(program), _) | (None, Some(program)) => program,
    (None, None) => panic!("neither the command nor the lab"),
};

/// The binary without ROS environment variables.
pub fn pteros() -> Command {
    let mut command = Command::new(PROGRAM);
    for variable in [
        "ROS_DOMAIN_ID",
        "ROS_LOCALHOST_ONLY",
        "ROS_STATIC_PEERS",
        "ROS_DISCOVERY_SERVER",
        "AMENT_PREFIX_PATH",
        "RUST_LOG",
    ] {
        command.env_remove(variable);
    }
    command
}

/// Copies a program, in a child. A child that another thread forks meanwhile would keep a
/// file open that this process writes, and a program that is open cannot run (ETXTBSY).
pub fn install_program(from: impl AsRef<OsStr>, to: impl AsRef<OsStr>) {
    let mut install = Command::new("install");
    let status = install.args(["-D", "-m", "755"]).arg(from).arg(to).status();
    assert!(status.unwrap().success());
}

/// Runs a command that needs no graph.
pub fn run(words: &str) -> Answer {
    let mut command = pteros();
    command.args(words.split(' '));
    finish(command)
}

/// Runs a command with a text on its standard input.
pub fn run_with_input(words: &str, input: &str) -> Answer {
    let mut child = pteros()
        .args(words.split(' '))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    answer(child.wait_with_output().unwrap())
}

/// Runs a command to its end. A program that the test has just written is busy while a
/// child of another thread, which has not begun its own program yet, holds the file.
pub fn finish(mut command: Command) -> Answer {
    command.stdin(Stdio::null());
    loop {
        match command.output() {
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => std::thread::yield_now(),
            output => return answer(output.unwrap()),
        }
    }
}

fn answer(output: std::process::Output) -> Answer {
    Answer {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Starts a command in the background.
pub fn start(command: Command) -> Running {
    start_with_input(command, Stdio::null())
}

/// Starts a command in the background that reads from `input`.
pub fn start_with_input(mut command: Command, input: impl Into<Stdio>) -> Running {
    let mut child = command
        .stdin(input)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    Running {
        out: BufReader::new(child.stdout.take().unwrap()),
        err: BufReader::new(child.stderr.take().unwrap()),
        child,
    }
}

/// Fails with the whole text unless it contains the part.
#[track_caller]
pub fn assert_contains(text: &str, part: &str) {
    assert!(text.contains(part), "no {part:?} in:\n{text}");
}

impl Answer {
    /// The output of a command that succeeded.
    #[track_caller]
    pub fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "out: {}\nerr: {}", self.out, self.err);
        self.out
    }

    /// The error output of a command that failed with that code.
    #[track_caller]
    pub fn failed(self, code: i32) -> String {
        assert_eq!(
            self.code,
            Some(code),
            "out: {}\nerr: {}",
            self.out,
            self.err
        );
        self.err
    }

    #[track_caller]
    pub fn json(self) -> serde_json::Value {
        serde_json::from_str(&self.ok()).unwrap()
    }
}

impl Running {
    /// The next line of standard output; empty at its end.
    pub fn line(&mut self) -> String {
        let _limit = TimeLimit::start(&self.child);
        next_line(&mut self.out)
    }

    /// The next line of standard error; empty at its end.
    pub fn error_line(&mut self) -> String {
        let _limit = TimeLimit::start(&self.child);
        next_line(&mut self.err)
    }

    /// Writes to its standard input, which is a pipe.
    pub fn write(&mut self, text: &str) {
        let input = self.child.stdin.as_mut().unwrap();
        input.write_all(text.as_bytes()).unwrap();
        input.flush().unwrap();
    }

    /// The id of its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Closes the pipe behind its standard output, which has no more lines then.
    pub fn close_output(&mut self) {
        let mut silent = Command::new("true");
        let mut silent = silent.stdout(Stdio::piped()).spawn().unwrap();
        self.out = BufReader::new(silent.stdout.take().unwrap());
        silent.wait().unwrap();
    }

    /// Sends a signal by name, as `INT`.
    pub fn signal(&self, name: &str) {
        let status = Command::new("kill")
            .args([format!("-{name}"), self.child.id().to_string()])
            .status();
        assert!(status.unwrap().success());
    }

    /// Waits for the end, and for the end of every process that inherited its
    /// standard error.
    pub fn wait(&mut self) -> Answer {
        let _limit = TimeLimit::start(&self.child);
        let (mut out, mut err) = (String::new(), String::new());
        self.out.read_to_string(&mut out).unwrap();
        self.err.read_to_string(&mut err).unwrap();
        Answer {
            code: self.child.wait().unwrap().code(),
            out,
            err,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How long a process may take for one line, or to end.
const LINE_TIME_MAX: Duration = Duration::from_secs(180);

/// Kills a process that takes too long. Its output ends then, and the test fails.
struct TimeLimit {
    // Dropped in time: the thread ends.
    _in_time: Sender<()>,
}

impl TimeLimit {
    #[allow(clippy::disallowed_methods, reason = "reading has no time limit")]
    fn start(child: &Child) -> Self {
        let (in_time, wait) = channel::<()>();
        let id = child.id().to_string();
        let limit = move || {
            if wait.recv_timeout(LINE_TIME_MAX) == Err(RecvTimeoutError::Timeout) {
                eprintln!("process {id} took more than {LINE_TIME_MAX:?}; it is killed");
                let _ = Command::new("kill").args(["-KILL", &id]).status();
            }
        };
        std::thread::spawn(limit);
        Self { _in_time: in_time }
    }
}

fn next_line(reader: &mut impl BufRead) -> String {
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    line.trim_end().to_string()
}
