//! One process of tests: its command, what it prints, its results, and its CPU time.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;

use crate::checkout::root;
use crate::counts::Counts;
use crate::test_programs::{TestGroup, cargo_program};
use crate::{namespace, peers, ros2};

/// Environment variable with the folder of the peer programs.
const PEERS_VARIABLE: &str = "PTEROS_PEERS";

/// Environment variable with the Python environment that has rclpy of ROS 2 Kilted.
const KILTED_VARIABLE: &str = "PTEROS_ROS2_KILTED";

/// Environment variable of a build with the seeded bugs.
const SEEDED_VARIABLE: &str = "PTEROS_TEST_SEEDED";

/// Parts of a second in which `/proc` counts CPU time, on every Linux that Rust has.
const TICKS_PER_SECOND: f64 = 100.0;

/// The network in which tests run.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub enum Network {
    /// A namespace for each process.
    #[default]
    Private,
    /// A namespace for each process, without multicast.
    WithoutMulticast,
    /// That of this process.
    Shared,
}

/// What tests find where they run.
#[derive(Clone, Copy, Default)]
pub struct Surroundings<'a> {
    /// Folder of other DDS stacks.
    pub peers: Option<&'a Path>,
    /// An installed ROS 2 Jazzy.
    pub ros2: Option<&'a Path>,
    /// An installed ROS 2 Humble.
    pub humble: Option<&'a Path>,
    /// The build has the seeded bugs: a test that needs them must run.
    pub seeded: bool,
    /// They run only while no other process wants the processor.
    pub yields: bool,
    /// Their network.
    pub network: Network,
}

/// Tests that run in one process.
#[derive(Clone, Copy)]
pub enum Tests<'a> {
    /// A module, or a whole program.
    Group(&'a TestGroup),
    /// Documentation tests, which cargo runs, with its selection of packages.
    Documentation(&'a [&'a str]),
    /// A hidden task of this program, which prints its result as a harness does: what it
    /// is, and its words.
    Task(&'a str, &'a [&'a str]),
}

/// Which tests of a group run.
#[derive(Clone, Copy, Default)]
pub struct Filter<'a> {
    /// Part of their names.
    pub part: &'a str,
    /// Ignored ones, and no others.
    pub ignored: bool,
}

impl Tests<'_> {
    /// Package and module, as results name them.
    pub fn title(&self) -> String {
        match self {
            Self::Group(group) => group.title(),
            Self::Documentation(_) => "documentation tests".into(),
            Self::Task(title, _) => (*title).into(),
        }
    }

    /// The command that runs the tests with these names, or those of a filter.
    fn command(
        &self,
        surroundings: Surroundings,
        filter: Filter,
        names: &[String],
    ) -> Result<Command> {
        let program = match self {
            Self::Group(group) => group.program.path.display().to_string(),
            Self::Documentation(_) => cargo_program(),
            Self::Task(..) => {
                let own = std::env::current_exe().context("find this program's own path")?;
                own.display().to_string()
            }
        };
        let first = if surroundings.yields {
            "nice"
        } else {
            &program
        };
        let mut command = match surroundings.network {
            Network::Shared => Command::new(first),
            network => namespace::command(network == Network::Private, first)?,
        };
        if surroundings.yields {
            command.args(["-n", "19", &program]);
        }
        if let Some(folder) = surroundings.peers {
            command.env(PEERS_VARIABLE, folder);
            if std::env::var_os(KILTED_VARIABLE).is_none() {
                command.env(KILTED_VARIABLE, folder.with_file_name(peers::VENV_KILTED));
            }
        }
        if surroundings.seeded {
            command.env(SEEDED_VARIABLE, "1");
        }
        if let Some(prefix) = surroundings.ros2 {
            command.env(ros2::VARIABLE, prefix);
        }
        if let Some(prefix) = surroundings.humble {
            command.env(ros2::HUMBLE_VARIABLE, prefix);
        }
        if std::env::var_os("RUST_TEST_THREADS").is_none() {
            command.env("RUST_TEST_THREADS", test_threads().to_string());
        }
        let mut chosen = names.to_vec();
        match self {
            Self::Group(group) => {
                group.program.prepare(&mut command)?;
                if chosen.is_empty() {
                    let tests = group.tests.iter();
                    chosen.extend(tests.filter(|name| name.contains(filter.part)).cloned());
                    if chosen.is_empty() && !group.tests.is_empty() {
                        bail!(
                            "{}: no test has {:?} in its name",
                            group.title(),
                            filter.part
                        );
                    }
                }
            }
            Self::Documentation(packages) => {
                command.args(["test", "--doc", "--offline", "--no-fail-fast"]);
                command.args(*packages).arg("--").current_dir(root());
            }
            Self::Task(_, words) => {
                command.args(*words).current_dir(root());
            }
        }
        if filter.ignored {
            command.arg("--ignored");
        }
        if !chosen.is_empty() {
            command.arg("--exact").args(chosen);
        } else if !filter.part.is_empty() {
            command.arg(filter.part);
        }
        Ok(command)
    }

    /// Runs the tests with these names, or those of a filter, until their process has
    /// ended. Gives each line that it prints to `show`, but those of passed tests.
    ///
    /// # Errors
    /// The process could not be started, or its output not read.
    pub fn run(
        &self,
        surroundings: Surroundings,
        filter: Filter,
        names: &[String],
        show: &mut dyn FnMut(&str),
    ) -> Result<Process> {
        let mut command = self.command(surroundings, filter, names)?;
        // The harness prints on stdout, and the tests' processes on stderr: one pipe
        // keeps their order.
        let (output, input) = std::io::pipe().context("a pipe for the tests' output")?;
        command
            .stdout(input.try_clone().context("a pipe for the tests' output")?)
            .stderr(input);
        let began = Instant::now();
        let mut child = command
            .spawn()
            .with_context(|| format!("run {}", self.title()))?;
        // It holds the writing end, which would keep the pipe open.
        drop(command);
        let mut process = Process::default();
        for line in BufReader::new(output).split(b'\n') {
            let line = line.context("read the tests' output")?;
            let line = String::from_utf8_lossy(&line);
            process.read_line(&line);
            if !is_noise(&line) {
                show(&line);
            }
        }
        process.cpu_seconds = cpu_seconds_of_ended(child.id());
        let status = child.wait().context("wait for the tests")?;
        process.end(status.success(), |why| {
            show(&format!("{}: {why}", self.title()));
        });
        let has_tests = match self {
            Self::Group(group) => !group.tests.is_empty(),
            Self::Documentation(_) => false,
            Self::Task(..) => true,
        };
        if has_tests && !process.has_result && process.counts.failed == 0 {
            show(&format!("{}: ended without a result", self.title()));
            process.counts.failed = 1;
        }
        process.seconds = began.elapsed().as_secs_f64();
        Ok(process)
    }

    /// The line of a skip, with the command that runs the test if the reason has none.
    pub fn skip_line(&self, reason: &str, is_ignored: bool) -> String {
        match self {
            Self::Group(group) if is_ignored && !reason.contains("cargo ") => {
                format!("{reason}: {}", group.ignored_command())
            }
            _ => reason.to_owned(),
        }
    }
}

/// Waits until a child has ended, and reads what CPU time it and the processes that it
/// waited for have taken. The child is still to be waited for.
fn cpu_seconds_of_ended(child: u32) -> Option<f64> {
    let pid = Pid::from_raw(i32::try_from(child).ok()?);
    waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT).ok()?;
    cpu_seconds(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The CPU time in the text of a file `/proc/PID/stat`.
fn cpu_seconds(stat: &str) -> Option<f64> {
    // The name before it may have any letters. User and system time are fields 14 and 15,
    // and 16 and 17 those of children.
    let (_, fields) = stat.rsplit_once(") ")?;
    let times = fields.split(' ').skip(11).take(4);
    let ticks: f64 = times.map(str::parse::<f64>).sum::<Result<_, _>>().ok()?;
    Some(ticks / TICKS_PER_SECOND)
}

/// What a process of tests printed, and what it took.
#[derive(Default)]
pub struct Process {
    /// Numbers of its tests.
    pub counts: Counts,
    /// Whether the harness printed a result.
    pub has_result: bool,
    /// From its start to its end.
    pub seconds: f64,
    /// CPU time of it and its children.
    pub cpu_seconds: Option<f64>,
    /// Full names of failed tests.
    pub failed: Vec<String>,
    /// Reasons of skipped tests, and whether `#[ignore]` gives them.
    pub skips: Vec<(String, bool)>,
}

impl Process {
    fn read_line(&mut self, line: &str) {
        let result = line.strip_prefix("test ");
        if let Some(name) = result.and_then(|rest| rest.strip_suffix(" ... FAILED")) {
            self.failed.push(name.to_owned());
        }
        if let Some(more) = Counts::of_result(line) {
            self.counts.add(more);
            self.has_result = true;
        }
        self.skips
            .extend(skip_reason(line).map(|(reason, is_ignored)| (reason.to_owned(), is_ignored)));
    }

    /// Adds what the lines do not say: a test without its peer prints a skip and
    /// returns, which its harness counts as passed, and an aborted process has no counts.
    fn end(&mut self, succeeded: bool, report: impl FnOnce(&str)) {
        if !succeeded && self.counts.failed == 0 {
            report("ended early");
            self.counts.failed = self.failed.len().max(1);
        }
        let own = self.skips.iter().filter(|(_, is_ignored)| !is_ignored);
        let own = own.count();
        self.counts.passed = self.counts.passed.saturating_sub(own);
        self.counts.skipped += own;
    }
}

/// The reason in `skipped: …`, which a test prints, or in `test … ignored, …`, and
/// whether it is the latter.
fn skip_reason(line: &str) -> Option<(&str, bool)> {
    if let Some(reason) = line.strip_prefix("skipped: ") {
        return Some((reason, false));
    }
    let (_, reason) = line.strip_prefix("test ")?.split_once(" ... ignored")?;
    Some((reason.strip_prefix(", ").unwrap_or("ignored"), true))
}

/// Interoperability tests mostly wait for their peers, so more threads than cores
/// are used.
fn test_threads() -> usize {
    std::thread::available_parallelism().map_or(4, |cores| cores.get().max(4))
}

/// Lines of passed tests, which would hide the failed ones.
fn is_noise(line: &str) -> bool {
    let starts = ["running ", "test result: ok."];
    let is_skip = line.starts_with("test ") && line.contains(" ... ignored");
    line.is_empty()
        || is_skip
        || line.ends_with(" ... ok")
        || starts.iter().any(|s| line.starts_with(s))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skipped_test_says_why() {
        let ignored = "test long ... ignored, minutes";
        assert_eq!(skip_reason(ignored), Some(("minutes", true)));
        assert_eq!(
            skip_reason("test long ... ignored"),
            Some(("ignored", true))
        );
        let skipped = skip_reason("skipped: no python3");
        assert_eq!(skipped, Some(("no python3", false)));
        assert_eq!(skip_reason("test a ... ok"), None);
    }

    #[test]
    fn cpu_time_is_that_of_a_process_and_its_children() {
        let stat = "77 (a) b) S 1 77 77 0 -1 4194560 900 0 0 0 150 50 25 75 20 0 4 0 1 2 3";
        assert_eq!(cpu_seconds(stat), Some(3.0));
        assert_eq!(cpu_seconds(""), None);
    }
}
