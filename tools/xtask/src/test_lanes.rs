//! Several processes of tests at once, and once more, alone, what failed.
//!
//! Most modules wait: for a lease, a period of discovery, another process. Each has a
//! network of its own, so [`lanes`] of them run side by side where there are private
//! networks, but few that compute. What is on simulated time yields to them
//! and fills the processors. What would disturb others, or be disturbed, runs after them,
//! one by one. The tables of `test_jobs.rs` say which these are.
//!
//! The other stacks are built meanwhile. Their tests wait for that.
//!
//! Many tests wait with deadlines. On a loaded machine one of some thousand misses its
//! deadline now and then. Up to [`REPEATED_MAX`] failed tests run once more. A test that
//! fails twice fails the run. A test that passes then is reported as unsteady, so that it
//! is mended without holding up another change.

use std::collections::BTreeMap;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use anyhow::Result;

use crate::counts::Counts;
use crate::namespace;
use crate::test_jobs::Job;
use crate::test_process::Process;
use crate::test_queue::SharedQueue;

/// Number of failed tests that are repeated. More have a cause in common.
const REPEATED_MAX: usize = 5;

/// Processes of tests beyond the number of processors, because most wait: three of four
/// leave a third of two processors idle.
const LANES_BEYOND: usize = 2;

/// The most processes of tests at once: each has as many threads as there are
/// processors.
const LANES_MAX: usize = 6;

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

/// How many processes of tests run at once: as many as wanted, else [`LANES_BEYOND`] more
/// than processors. One where there are no private networks.
pub fn lanes(wanted: Option<u8>) -> usize {
    if namespace::available().is_err() {
        return 1;
    }
    wanted.map_or_else(|| (processors() + LANES_BEYOND).min(LANES_MAX), usize::from)
}

fn processors() -> usize {
    thread::available_parallelism().map_or(1, |count| count.get())
}

/// A job that has ended: what it printed, and its result.
struct Ended<'a> {
    job: Job<'a>,
    output: String,
    result: Result<Process>,
}

/// One lane: takes jobs until there are none.
fn run_lane<'a>(lane: usize, queue: &SharedQueue<'a>, ended: &Sender<Ended<'a>>) {
    while let Some(job) = queue.next(lane) {
        let mut output = String::new();
        let mut show = |line: &str| {
            output.push_str(line);
            output.push('\n');
        };
        let result = job.tests.run(job.surroundings, job.filter, &[], &mut show);
        queue.end(&job);
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

/// Builds the other stacks, and returns those that are missing as skips.
pub type BuildPeers<'a> = &'a (dyn Fn() -> Result<TestRun> + Sync);

/// Runs tests in so many lanes, and prints each result as it comes. Runs failed tests
/// once more. Those that need other stacks begin when these are built.
///
/// # Errors
/// A process could not be started, or its output not read. The other stacks could not be
/// built at all.
pub fn run_all<'a>(
    jobs: &'a [Job<'a>],
    lanes: usize,
    build_peers: Option<BuildPeers>,
) -> Result<TestRun> {
    let mut run = TestRun::default();
    let mut failed = Vec::new();
    let mut number = 0;
    let mut add = |run: &mut TestRun, job: Job<'a>, process: Process| {
        number += 1;
        run.add_process(&job, &process, number, jobs.len());
        if process.counts.failed > 0 {
            failed.push((job, process.failed));
        }
    };
    let (alone, beside): (Vec<&Job>, Vec<&Job>) = jobs
        .iter()
        .partition(|job| lanes == 1 || jobs.len() == 1 || job.runs_alone());
    let (quiet, beside): (Vec<&Job>, Vec<&Job>) =
        beside.into_iter().partition(|job| job.needs_quiet());
    let mut build_peers = build_peers;
    if lanes == 1
        && let Some(build) = build_peers.take()
    {
        run.add(build()?);
    }
    for (jobs, build_peers) in [(beside, build_peers), (quiet, None)] {
        let built = run_side_by_side(&jobs, lanes, build_peers, &mut |job, process| {
            add(&mut run, job, process);
        })?;
        run.add(built);
    }
    for job in alone {
        add(&mut run, *job, job.run_alone(&[])?);
    }
    repeat(&mut run, failed)?;
    Ok(run)
}

/// Runs jobs in so many lanes, and prints and gives each result as it comes. Returns what
/// building the other stacks gave.
fn run_side_by_side<'a>(
    jobs: &[&'a Job<'a>],
    lanes: usize,
    build_peers: Option<BuildPeers>,
    add: &mut dyn FnMut(Job<'a>, Process),
) -> Result<TestRun> {
    let queue = SharedQueue::new(jobs, build_peers.is_some(), processors());
    thread::scope(|scope| {
        let (sender, ended) = channel();
        for lane in 0..lanes {
            let (queue, sender) = (&queue, sender.clone());
            scope.spawn(move || run_lane(lane, queue, &sender));
        }
        drop(sender);
        let build = |build: BuildPeers| {
            let built = build();
            queue.release();
            built
        };
        let building = build_peers.map(|peers| scope.spawn(move || build(peers)));
        for Ended {
            job,
            output,
            result,
        } in ended
        {
            print!("{output}");
            add(job, result?);
        }
        match building.map(thread::ScopedJoinHandle::join) {
            Some(Ok(built)) => built,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => Ok(TestRun::default()),
        }
    })
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
    use crate::test_process::{Filter, Network, Surroundings, Tests};
    use crate::test_programs::{Kind, TestGroup, TestProgram};
    use pteros_test_support::folder::Folder;

    /// A script stands for a program of tests. It prints its arguments as tests; `a`
    /// fails the first time, `b` always, and `c` aborts. `hears` and `says` wait for each
    /// other, `low` passes at the lowest priority, and `built` when other stacks are built.
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
             built) [ -d built ] && passed=$((passed + 1));;\n\
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
            run_all(&[job(&group)], 1, None).unwrap()
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
    fn tests_of_other_stacks_wait_until_these_are_built() {
        let folder = Folder::new("test-peers");
        let program = program(&folder);
        let groups = [
            group(&program, "pteros", "interop", &["built"]),
            group(&program, "p", "one", &["x"]),
        ];
        let mut jobs = groups.each_ref().map(job);
        for job in &mut jobs {
            job.surroundings.peers = Some(&folder);
        }
        let build = || {
            std::fs::create_dir(folder.join("built"))?;
            let mut run = TestRun::default();
            run.counts.skipped = 1;
            Ok(run)
        };
        for lanes in [2, 1] {
            let run = run_all(&jobs, lanes, Some(&build)).unwrap();
            let counts = run.counts;
            assert_eq!((counts.passed, counts.failed, counts.skipped), (2, 0, 1));
            std::fs::remove_dir(folder.join("built")).unwrap();
        }
        let failed = run_all(&jobs, 2, Some(&|| anyhow::bail!("no compiler")));
        assert!(failed.is_err_and(|why| why.to_string() == "no compiler"));
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
        let run = run_all(&jobs, 3, None).unwrap();
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
}
