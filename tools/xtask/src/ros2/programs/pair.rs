//! Two programs that talk, within a private network: starts them, waits for their lines,
//! ends them, and prints what they printed.

use std::io::{BufRead, BufReader, PipeReader};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::environment::Environment;
use super::table::{self, Code, End, Program};

/// Name of the task that runs inside the private network.
pub const INSIDE_TASK: &str = "ros2-programs-inside";
/// The longest that all lines may take. Four goals of the longest pair take 27 s.
const LINES_MAX: Duration = Duration::from_secs(90);
/// The longest that lines may take after a program has ended by itself: nothing that it
/// sent is under way any more.
const LAST_LINES_MAX: Duration = Duration::from_secs(15);
/// The longest that a program may take from Ctrl-C to its end. An action server finishes
/// the goal that it has.
const END_MAX: Duration = Duration::from_secs(20);
/// Traces of a crash, which a program of Python may survive.
const CRASHES: [&str; 3] = ["Fatal Python error", "panicked at", "Segmentation fault"];

/// Runs a pair: the folder of the suite, the pair's name, and the environment of each
/// program. Returns whether all lines came and all programs ended as they must.
pub fn run_inside(arguments: &[String]) -> Result<bool> {
    let [folder, name, environments @ ..] = arguments else {
        bail!("{INSIDE_TASK} is started by `cargo xtask ros2 --wheel`");
    };
    let folder = Path::new(folder);
    let pair = table::find(name).with_context(|| format!("no pair {name}"))?;
    let (sender, receiver) = channel();
    let mut talk = Talk {
        programs: Vec::new(),
        receiver,
        problems: Vec::new(),
    };
    for (program, environment) in pair.programs().zip(environments) {
        let index = talk.programs.len();
        let environment = Environment::read(folder, environment)?;
        let started = Running::start(program, &environment, folder, index, &sender)?;
        talk.programs.push(started);
    }
    drop(sender);
    talk.wait_for_lines();
    talk.end_programs();
    for problem in &talk.problems {
        println!("failed: {problem}");
    }
    Ok(talk.problems.is_empty())
}

/// A line of the program with this index; `None` at its end.
type Line = (usize, Option<String>);

struct Talk {
    programs: Vec<Running>,
    receiver: Receiver<Line>,
    problems: Vec<String>,
}

/// A program that was started. Killed when dropped.
struct Running {
    label: String,
    program: &'static Program,
    child: Child,
    /// The lines of the table that it has printed.
    found: usize,
    has_closed_output: bool,
    was_interrupted: bool,
    is_on_wheel: bool,
}

impl Running {
    fn start(
        program: &'static Program,
        environment: &Environment,
        folder: &Path,
        index: usize,
        sender: &Sender<Line>,
    ) -> Result<Self> {
        let (script, name) = match program.code {
            Code::EntryPoint { package, name } => (folder.join("bin").join(package), name),
            Code::Partner(name) => (folder.join("bin"), name),
        };
        let mut command = Command::new(&environment.python);
        match program.code {
            Code::EntryPoint { .. } => command.arg(script.join(name)),
            Code::Partner(name) => command.arg(script.join("partners")).arg(name),
        };
        environment.apply(&mut command);
        let (reader, writer) = std::io::pipe().context("make a pipe")?;
        let child = command
            .args(program.arguments)
            .stdin(Stdio::null())
            .stdout(writer.try_clone()?)
            .stderr(writer)
            .spawn()
            .with_context(|| format!("run {}", environment.python))?;
        // The command holds the writing end, and the reader would never see the end.
        drop(command);
        let sender = sender.clone();
        std::thread::spawn(move || read_lines(reader, index, &sender));
        Ok(Self {
            label: format!("{name} on {}", environment.name),
            program,
            child,
            found: 0,
            has_closed_output: false,
            was_interrupted: false,
            is_on_wheel: environment.is_wheel(),
        })
    }

    fn has_all_lines(&self) -> bool {
        self.found == self.program.lines.len()
    }

    /// Sends SIGINT, unless the program has ended.
    fn interrupt(&mut self) {
        if let Ok(None) = self.child.try_wait()
            && let Ok(id) = i32::try_from(self.child.id())
        {
            println!("[{}] <Ctrl-C>", self.label);
            self.was_interrupted = kill(Pid::from_raw(id), Signal::SIGINT).is_ok();
        }
    }

    /// Why the end of a program is a failure.
    fn judge_end(&self, status: ExitStatus) -> Option<String> {
        if is_expected(self.program.end, self.was_interrupted, status) {
            return None;
        }
        let when = match (self.program.end, self.was_interrupted) {
            (End::Interrupt, false) => " before Ctrl-C",
            _ => "",
        };
        Some(format!("{} ended{when} with {status}", self.label))
    }
}

/// Whether a program ended as the table says.
fn is_expected(end: End, was_interrupted: bool, status: ExitStatus) -> bool {
    match (end, was_interrupted, status.code()) {
        (End::Itself, _, code) | (End::Interrupt, false, code) => code == Some(0),
        (End::Exception, _, code) => code == Some(1),
        // Some let KeyboardInterrupt or a second shutdown pass.
        (End::Interrupt, true, Some(code)) => code < 2,
        (End::Interrupt, true, None) => status.signal() == Some(Signal::SIGINT as i32),
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read_lines(reader: PipeReader, index: usize, sender: &Sender<Line>) {
    for line in BufReader::new(reader).split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line).into_owned();
        let _ = sender.send((index, Some(line)));
    }
    let _ = sender.send((index, None));
}

impl Talk {
    /// Takes a line in and prints it. Returns false at the deadline.
    fn take_line(&mut self, deadline: Instant) -> bool {
        let left = deadline.saturating_duration_since(Instant::now());
        let (index, line) = match self.receiver.recv_timeout(left) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return false,
        };
        let running = &mut self.programs[index];
        let Some(line) = line else {
            running.has_closed_output = true;
            return true;
        };
        println!("[{}] {line}", running.label);
        if let Some(part) = running.program.lines.get(running.found)
            && line.contains(part)
        {
            running.found += 1;
        }
        if running.is_on_wheel && CRASHES.iter().any(|crash| line.contains(crash)) {
            self.problems
                .push(format!("{} crashed: {line}", running.label));
        }
        true
    }

    /// Waits until all lines have come, and until those that end by themselves have
    /// ended. A program that ends without its lines ends the wait.
    fn wait_for_lines(&mut self) {
        let mut deadline = Instant::now() + LINES_MAX;
        let is_done = |running: &Running| {
            running.has_all_lines()
                && (running.has_closed_output || running.program.end == End::Interrupt)
        };
        let has_failed = |running: &Running| running.has_closed_output && !running.has_all_lines();
        while !self.programs.iter().all(is_done) && !self.programs.iter().any(has_failed) {
            let ended = self.count_ended();
            if !self.take_line(deadline) {
                break;
            }
            if self.count_ended() > ended {
                deadline = deadline.min(Instant::now() + LAST_LINES_MAX);
            }
        }
        for running in &self.programs {
            if let Some(line) = running.program.lines.get(running.found) {
                let problem = format!("{} did not print {line:?}", running.label);
                self.problems.push(problem);
            }
        }
    }

    fn count_ended(&self) -> usize {
        let ended = self.programs.iter().filter(|one| one.has_closed_output);
        ended.count()
    }

    /// Interrupts those that run, and waits for their ends.
    fn end_programs(&mut self) {
        for running in &mut self.programs {
            running.interrupt();
        }
        let deadline = Instant::now() + END_MAX;
        while !self
            .programs
            .iter()
            .all(|running| running.has_closed_output)
        {
            if !self.take_line(deadline) {
                break;
            }
        }
        for running in &mut self.programs {
            if !running.has_closed_output {
                let problem = format!("{} did not end after Ctrl-C", running.label);
                self.problems.push(problem);
            } else if let Ok(status) = running.child.wait()
                && running.is_on_wheel
            {
                self.problems.extend(running.judge_end(status));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_before_the_interrupt_is_no_interrupt() {
        let failed = ExitStatus::from_raw(1 << 8);
        let interrupted = ExitStatus::from_raw(Signal::SIGINT as i32);
        let passed = ExitStatus::from_raw(0);
        assert!(is_expected(End::Interrupt, true, failed));
        assert!(is_expected(End::Interrupt, true, interrupted));
        assert!(is_expected(End::Interrupt, false, passed));
        assert!(!is_expected(End::Interrupt, false, failed));
        assert!(!is_expected(End::Interrupt, false, interrupted));
        assert!(!is_expected(End::Itself, true, failed));
        assert!(is_expected(End::Exception, false, failed));
        assert!(!is_expected(End::Exception, false, passed));
    }

    #[test]
    fn a_program_that_has_ended_is_not_interrupted() {
        let mut child = Command::new("false").spawn().unwrap();
        let status = child.wait().unwrap();
        let program = table::PAIRS
            .iter()
            .flat_map(table::Pair::programs)
            .find(|program| program.end == End::Interrupt)
            .unwrap();
        let mut running = Running {
            label: "talker".into(),
            program,
            child,
            found: 0,
            has_closed_output: false,
            was_interrupted: false,
            is_on_wheel: true,
        };
        running.interrupt();
        assert_eq!(
            running.judge_end(status).as_deref(),
            Some("talker ended before Ctrl-C with exit status: 1")
        );
    }
}
