//! Several processes of tests at once, and once more, alone, what failed.
//!
//! Most modules wait: for a lease, a period of discovery, another process. Each has a
//! network of its own, so [`lanes`] of them run side by side where there are private
//! networks. What is on simulated time yields to them and fills the processors. What
//! would disturb others, or be disturbed, runs after them, one by one: [`ALONE`].
//!
//! Many tests wait with deadlines. On a loaded machine one of some thousand misses its
//! deadline now and then. Up to [`REPEATED_MAX`] failed tests run once more. A test that
//! fails twice fails the run. A test that passes then is reported as unsteady, so that it
//! is mended without holding up another change.

use std::collections::{BTreeMap, VecDeque};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::Result;

use crate::counts::Counts;
use crate::namespace;
use crate::test_process::{Filter, Network, Process, Surroundings, Tests};

/// Number of failed tests that are repeated. More have a cause in common.
const REPEATED_MAX: usize = 5;

/// The most processes of tests at once: each has as many threads as there are
/// processors.
const LANES_MAX: usize = 4;

/// Modules and programs that run alone: package, name, reason.
const ALONE: &[(&str, &str, &str)] = &[
    ("pteros", "idle", "counts wake-ups of processes"),
    ("pteros", "many_processes", "starts a hundred processes"),
    (
        "pteros",
        "message_cost",
        "counts system calls, of which a busy machine has more",
    ),
    (
        "pteros-rmw",
        "message_cost",
        "counts system calls, of which a busy machine has more",
    ),
    (
        "pteros-rmw-humble",
        "message_cost",
        "counts system calls, of which a busy machine has more",
    ),
    (
        "pteros-rmw-kilted",
        "message_cost",
        "counts system calls, of which a busy machine has more",
    ),
    (
        "pteros-lab",
        "topology",
        "loses messages where it gets no processor for a while",
    ),
    (
        "pteros-cli",
        "networks",
        "measures how long flows stop when links change",
    ),
    (
        "pteros-store",
        "store",
        "waits for the disk, which others keep busy",
    ),
    ("robot", "drives", "drives in real time, by many processes"),
    (
        "pteros-cli",
        "zenoh_networks a_hundred_nodes",
        "starts a hundred processes",
    ),
];

/// Modules on simulated time, where a busy machine changes nothing. Every one of a
/// package where the name is empty.
const SIMULATED: &[(&str, &str)] = &[
    ("pteros-dcps", ""),
    ("pteros-msg", ""),
    ("pteros-rtps", ""),
    ("pteros-runtime", "flow_control"),
    ("pteros-sim", ""),
];

/// Modules and programs that take longest, the longest first: they begin first, so that
/// none is left when the others are done.
const LONGEST: &[(&str, &str)] = &[
    ("pteros-sim", "mutants"),
    ("pteros", "interop"),
    ("pteros-python", "python"),
    ("pteros-cli", "zenoh_networks"),
    ("pteros-lab", "command"),
    ("pteros-zenoh", "router_kills"),
    ("pteros-sim", "nodes"),
    ("pteros-cli", "stopped_processes"),
    ("pteros-cli", "ros2_programs"),
    ("pteros", "conformance"),
    ("pteros-runtime", "flow_control"),
    ("shapes", "vendors"),
    ("pteros-sim", "seeds"),
    ("pteros", "clock_jumps"),
    ("pteros-python", "clean_root"),
    ("pteros-cli", "graph"),
    ("pteros-zenoh", "peers"),
    ("pteros-cli", "sim_time"),
    ("pteros-sim", "forgery"),
    ("pteros-zenoh", "slow_link"),
    ("pteros-sim", "networks"),
    ("pteros-rtps", "loss"),
];

/// What a step did.
#[derive(Default)]
pub struct TestRun {
    /// Numbers of tests.
    pub counts: Counts,
    /// Seconds and names of modules and programs.
    pub times: Vec<(f64, String)>,
    /// CPU time of all of them, seconds.
    pub cpu_seconds: f64,
    /// Tests that failed once and passed alone.
    pub unsteady: Vec<String>,
    /// Why tests were left out, and how to run them.
    pub skips: BTreeMap<String, usize>,
}

impl TestRun {
    /// The result of a single check.
    pub fn single(held: bool) -> TestRun {
        TestRun {
            counts: Counts {
                passed: usize::from(held),
                failed: usize::from(!held),
                skipped: 0,
            },
            ..TestRun::default()
        }
    }

    /// Adds another run.
    pub fn add(&mut self, more: TestRun) {
        self.counts.add(more.counts);
        self.times.extend(more.times);
        self.cpu_seconds += more.cpu_seconds;
        self.unsteady.extend(more.unsteady);
        for (reason, count) in more.skips {
            *self.skips.entry(reason).or_default() += count;
        }
    }

    /// Adds a process, and prints its result.
    fn add_process(&mut self, job: &Job, process: &Process, number: usize, total: usize) {
        self.counts.add(process.counts);
        self.cpu_seconds += process.cpu_seconds.unwrap_or_default();
        for (reason, is_ignored) in &process.skips {
            let line = job.tests.skip_line(reason, *is_ignored);
            *self.skips.entry(line).or_default() += 1;
        }
        let Counts {
            passed,
            failed,
            skipped,
        } = process.counts;
        let parts = [(passed, "passed"), (failed, "failed"), (skipped, "skipped")];
        let parts = parts.into_iter().filter(|(count, _)| *count > 0);
        let parts: Vec<String> = parts
            .map(|(count, word)| format!("{count} {word}"))
            .collect();
        let (title, seconds) = (job.title(), process.seconds);
        if parts.is_empty() {
            if process.has_result {
                println!("{title}: without tests; test = false in its Cargo.toml saves a build");
            }
            return;
        }
        let cpu = process.cpu_seconds.unwrap_or_default();
        println!(
            "[{number}/{total}] {seconds:6.1} s {cpu:6.1} s CPU  {title}: {}",
            parts.join(", ")
        );
        self.times.push((seconds, title));
    }
}

/// Tests that run in one process, and where.
#[derive(Clone, Copy)]
pub struct Job<'a> {
    /// The tests.
    pub tests: Tests<'a>,
    /// What they find there.
    pub surroundings: Surroundings<'a>,
    /// Which of them.
    pub filter: Filter<'a>,
}

impl Job<'_> {
    /// Package and module, and what tells it from another job with the same tests.
    fn title(&self) -> String {
        let mut title = self.tests.title();
        if self.surroundings.network == Network::WithoutMulticast {
            title.push_str(" without multicast");
        }
        if self.surroundings.seeded {
            title.push_str(" with seeded bugs");
        }
        if !self.filter.part.is_empty() {
            title.push(' ');
            title.push_str(self.filter.part);
        }
        if self.filter.ignored {
            title.push_str(" (ignored ones)");
        }
        title
    }

    /// Whether a row of a table means this job.
    fn is(&self, package: &str, name: &str) -> bool {
        let Tests::Group(group) = self.tests else {
            return false;
        };
        let (name, part) = name.split_once(' ').unwrap_or((name, ""));
        group.program.package == package
            && (name.is_empty() || name == group.name)
            && (part.is_empty() || part == self.filter.part)
    }

    fn runs_alone(&self) -> bool {
        ALONE
            .iter()
            .any(|(package, name, _)| self.is(package, name))
    }

    fn is_simulated(&self) -> bool {
        SIMULATED
            .iter()
            .any(|(package, name)| self.is(package, name))
    }

    /// Its place among those that begin first.
    fn place(&self) -> usize {
        let row = LONGEST
            .iter()
            .position(|(package, name)| self.is(package, name));
        row.unwrap_or(LONGEST.len())
    }

    /// Runs it, and prints what it prints at once.
    fn run_alone(&self, names: &[String]) -> Result<Process> {
        let mut show = |line: &str| println!("{line}");
        self.tests
            .run(self.surroundings, self.filter, names, &mut show)
    }
}

/// How many processes of tests run at once: as many as wanted, else one more than
/// processors, because most wait. One where there are no private networks.
pub fn lanes(wanted: Option<u8>) -> usize {
    if namespace::available().is_err() {
        return 1;
    }
    wanted.map_or_else(
        || {
            let processors = thread::available_parallelism().map_or(1, |count| count.get());
            (processors + 1).min(LANES_MAX)
        },
        usize::from,
    )
}

/// Jobs that wait for a lane.
struct Queue<'a> {
    timed: VecDeque<&'a Job<'a>>,
    simulated: VecDeque<&'a Job<'a>>,
}

impl<'a> Queue<'a> {
    /// The longest jobs come first.
    fn new(jobs: impl Iterator<Item = &'a Job<'a>>) -> Self {
        let mut jobs: Vec<&Job> = jobs.collect();
        jobs.sort_by_key(|job| job.place());
        let (simulated, timed) = jobs.into_iter().partition(|job| job.is_simulated());
        Queue { timed, simulated }
    }

    /// The next job of a lane. One lane prefers those on simulated time.
    fn next(&mut self, lane: usize) -> Option<Job<'a>> {
        let mut simulated = || {
            let mut job = **self.simulated.front()?;
            self.simulated.pop_front();
            job.surroundings.yields = true;
            Some(job)
        };
        if lane == 0 {
            simulated().or_else(|| self.timed.pop_front().copied())
        } else {
            self.timed.pop_front().copied().or_else(simulated)
        }
    }
}

/// A job that has ended: what it printed, and its result.
struct Ended<'a> {
    job: Job<'a>,
    output: String,
    result: Result<Process>,
}

/// One lane: takes jobs until there are none.
fn run_lane<'a>(lane: usize, queue: &Mutex<Queue<'a>>, ended: &Sender<Ended<'a>>) {
    loop {
        let next = queue
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .next(lane);
        let Some(job) = next else {
            return;
        };
        let mut output = String::new();
        let mut show = |line: &str| {
            output.push_str(line);
            output.push('\n');
        };
        let result = job.tests.run(job.surroundings, job.filter, &[], &mut show);
        let is_heard = ended.send(Ended {
            job,
            output,
            result,
        });
        if is_heard.is_err() {
            return;
        }
    }
}

/// Runs tests in so many lanes, and prints each result as it comes. Runs failed tests
/// once more.
///
/// # Errors
/// A process could not be started, or its output not read.
pub fn run_all<'a>(jobs: &'a [Job<'a>], lanes: usize) -> Result<TestRun> {
    let mut run = TestRun::default();
    let mut failed = Vec::new();
    let mut number = 0;
    let mut add = |job: Job<'a>, process: Process| {
        number += 1;
        run.add_process(&job, &process, number, jobs.len());
        if process.counts.failed > 0 {
            failed.push((job, process.failed));
        }
    };
    let (alone, beside): (Vec<&Job>, Vec<&Job>) = jobs
        .iter()
        .partition(|job| lanes == 1 || jobs.len() == 1 || job.runs_alone());
    let queue = Mutex::new(Queue::new(beside.into_iter()));
    thread::scope(|scope| {
        let (sender, ended) = channel();
        for lane in 0..lanes {
            let (queue, sender) = (&queue, sender.clone());
            scope.spawn(move || run_lane(lane, queue, &sender));
        }
        drop(sender);
        for Ended {
            job,
            output,
            result,
        } in ended
        {
            print!("{output}");
            add(job, result?);
        }
        anyhow::Ok(())
    })?;
    for job in alone {
        add(*job, job.run_alone(&[])?);
    }
    repeat(&mut run, failed)?;
    Ok(run)
}

/// Runs failed tests once more, alone, unless there are too many.
fn repeat(run: &mut TestRun, failed: Vec<(Job, Vec<String>)>) -> Result<()> {
    let names: usize = failed.iter().map(|(_, names)| names.len()).sum();
    if run.counts.failed != names || names > REPEATED_MAX {
        return Ok(());
    }
    for (job, names) in failed {
        println!("\nonce more, alone: {}", names.join(", "));
        let repeated = job.run_alone(&names)?;
        if repeated.counts.failed == 0 && repeated.counts.passed >= names.len() {
            run.counts.failed -= names.len();
            run.counts.passed += names.len();
            let title = job.title();
            run.unsteady
                .extend(names.iter().map(|name| format!("{title}: {name}")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};
    use std::process::Command;

    use super::*;
    use crate::test_programs::{Kind, TestGroup, TestProgram};
    use pteros_test_support::folder::Folder;

    /// A script stands for a program of tests. It prints its arguments as tests; `a`
    /// fails the first time, `b` always, and `c` aborts. `hears` and `says` wait for each
    /// other, and `low` passes at the lowest priority.
    fn program(folder: &Path) -> TestProgram {
        let path = folder.join("program");
        let text = "#!/bin/sh\n\
             code=0; passed=0; failed=0\n\
             for test in \"$@\"; do case \"$test\" in\n\
             --exact) ;;\n\
             c) exit 134;;\n\
             b) echo 'test b ... FAILED'; failed=$((failed + 1)); code=101;;\n\
             a) if mkdir seen 2> /dev/null; then echo 'test a ... FAILED'; failed=$((failed + 1))\n\
             code=101; else passed=$((passed + 1)); fi;;\n\
             s) echo 'skipped: no peer'; passed=$((passed + 1));;\n\
             low) [ \"$(nice)\" = 19 ] && passed=$((passed + 1));;\n\
             hears) timeout 60 cat meeting > /dev/null && passed=$((passed + 1));;\n\
             says) timeout 60 sh -c ': > meeting' && passed=$((passed + 1));;\n\
             *) passed=$((passed + 1));;\n\
             esac; done\n\
             echo \"test result: x. $passed passed; $failed failed; 0 ignored; 0 measured\"\n\
             exit $code\n";
        std::fs::write(&path, text).unwrap();
        let mut chmod = Command::new("chmod");
        assert!(chmod.arg("+x").arg(&path).status().unwrap().success());
        TestProgram {
            folder: folder.to_owned(),
            ..program_at(path)
        }
    }

    fn program_at(path: PathBuf) -> TestProgram {
        TestProgram {
            package: "p".into(),
            target: "testsuite".into(),
            kind: Kind::Integration,
            path,
            folder: PathBuf::new(),
            binaries: Vec::new(),
        }
    }

    #[test]
    fn a_failed_test_runs_once_more_and_an_aborted_process_fails() {
        let folder = Folder::new("test-process");
        let program = program(&folder);
        let run = |tests: &[&str]| {
            let group = TestGroup {
                program: program.clone(),
                name: "m".into(),
                tests: tests.iter().map(|&test| test.to_owned()).collect(),
            };
            run_all(&[job(&group)], 1).unwrap()
        };
        let unsteady = run(&["a", "x", "s"]);
        let counts = |passed, failed, skipped| Counts {
            passed,
            failed,
            skipped,
        };
        assert_eq!(unsteady.counts, counts(2, 0, 1));
        assert_eq!(unsteady.unsteady, ["p m: a"]);
        assert_eq!(unsteady.skips["no peer"], 1);
        let failed = run(&["a", "b"]);
        assert_eq!((failed.counts, failed.unsteady.len()), (counts(1, 1, 0), 0));
        assert_eq!(run(&["x", "c"]).counts, counts(0, 1, 0));
    }

    fn job<'a>(group: &'a TestGroup) -> Job<'a> {
        Job {
            tests: Tests::Group(group),
            surroundings: Surroundings {
                network: Network::Shared,
                ..Surroundings::default()
            },
            filter: Filter::default(),
        }
    }

    fn group(program: &TestProgram, package: &str, name: &str, tests: &[&str]) -> TestGroup {
        TestGroup {
            program: TestProgram {
                package: package.into(),
                ..program.clone()
            },
            name: name.into(),
            tests: tests.iter().map(|&test| test.to_owned()).collect(),
        }
    }

    #[test]
    fn jobs_run_side_by_side_and_those_that_failed_run_again_alone() {
        let folder = Folder::new("test-lanes");
        let program = program(&folder);
        let mut mkfifo = Command::new("mkfifo");
        let status = mkfifo.arg(folder.join("meeting")).status().unwrap();
        assert!(status.success());
        let groups = [
            group(&program, "p", "one", &["hears"]),
            group(&program, "p", "two", &["says"]),
            group(&program, "pteros-sim", "seeds", &["low"]),
            group(&program, "p", "three", &["a"]),
            group(&program, "pteros", "idle", &["x"]),
        ];
        let jobs: Vec<Job> = groups.iter().map(job).collect();
        let run = run_all(&jobs, 3).unwrap();
        assert_eq!(
            run.counts,
            Counts {
                passed: 5,
                failed: 0,
                skipped: 0,
            }
        );
        assert_eq!(run.unsteady, ["p three: a"]);
        assert_eq!(run.times.len(), 5);
        let (_, last) = run.times.last().unwrap();
        assert_eq!(last, "pteros idle");
    }

    #[test]
    fn the_longest_jobs_begin_first_and_one_lane_prefers_simulated_ones() {
        let program = program_at(PathBuf::new());
        let groups = [
            group(&program, "pteros", "actions", &[]),
            group(&program, "pteros-rtps", "limits", &[]),
            group(&program, "pteros", "interop", &[]),
            group(&program, "pteros-sim", "mutants", &[]),
        ];
        let jobs: Vec<Job> = groups.iter().map(job).collect();
        let order = |lane| {
            let mut queue = Queue::new(jobs.iter());
            let jobs = std::iter::from_fn(|| queue.next(lane));
            jobs.map(|job| (job.title(), job.surroundings.yields))
                .collect::<Vec<_>>()
        };
        let of =
            |names: [&str; 4]| names.map(|name| (name.to_owned(), name.starts_with("pteros-")));
        let [short, limits, interop, mutants] = [
            "pteros actions",
            "pteros-rtps limits",
            "pteros interop",
            "pteros-sim mutants",
        ];
        assert_eq!(order(0), of([mutants, limits, interop, short]));
        assert_eq!(order(1), of([interop, short, mutants, limits]));
    }
}
