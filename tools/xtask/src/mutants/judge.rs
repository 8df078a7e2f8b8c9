//! Runs tests on mutants: each mutant only those that come to its place, the fastest
//! first, up to the first that notices it.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::copy::Program;
use super::schemata::{MUTANT, REACHED};
use crate::limited_command::{Output, run_limited};
use crate::namespace;

/// A test without a mutant may take so long; one that takes longer is left out.
const TEST_MAX: Duration = Duration::from_secs(60);

/// With a mutant tests may take this many times as long, and so much longer. Then they
/// hang, which is noticed too.
const SLOWER_MAX: f64 = 8.0;
const LONGER_MAX: f64 = 15.0;

/// Tests of the first call of a program; each further call has twice as many.
const CALL_TESTS: usize = 8;

/// Tests of its crate that a mutant runs, in seconds without it. The fastest are first.
const OWN_SECONDS: f64 = 120.0;

/// Tests of other crates and of the simulator that a mutant runs besides.
const OTHERS_SECONDS: f64 = 60.0;

/// The outcome of the tests on a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MutantOutcome {
    /// A test of its crate failed or hung.
    ByItsCrate,
    /// A test of another of these crates did.
    ByAnotherCrate,
    /// A test of the simulator did.
    BySimulator,
    /// All tests passed.
    Unnoticed,
    /// No test comes to it.
    Unreached,
}

impl MutantOutcome {
    /// All, by the words that `{:?}` prints.
    pub fn parse(word: &str) -> Option<Self> {
        let all = [
            Self::ByItsCrate,
            Self::ByAnotherCrate,
            Self::BySimulator,
            Self::Unnoticed,
            Self::Unreached,
        ];
        all.into_iter()
            .find(|outcome| format!("{outcome:?}") == word)
    }

    /// A test noticed it.
    pub fn is_noticed(self) -> bool {
        !matches!(self, Self::Unnoticed | Self::Unreached)
    }
}

/// A test, and what it does without a mutant.
struct Test {
    program: Program,
    name: String,
    seconds: f64,
    reached: BTreeSet<usize>,
}

pub struct Tests {
    tests: Vec<Test>,
    /// A name for the contents of their programs.
    key: String,
    runner: Runner,
}

/// How tests are run.
#[derive(Clone)]
pub struct Runner {
    /// A folder for their files.
    pub scratch: PathBuf,
    /// What was measured of a program is kept here, and used again for the same one.
    pub measured: PathBuf,
    /// How many run at once.
    pub jobs: usize,
    /// When no further mutant is judged.
    pub end: Option<Instant>,
    /// Whether each call of a program has a private network.
    pub has_private_network: bool,
}

impl Tests {
    /// Runs each test alone, to learn how long it takes and to which places it comes.
    /// A test that fails is left out, with a line.
    pub fn measure(programs: &[Program], runner: &Runner) -> Result<Self> {
        std::fs::create_dir_all(&runner.scratch)?;
        std::fs::create_dir_all(&runner.measured)?;
        let mut tests = Vec::new();
        let mut key = DefaultHasher::new();
        for (number, program) in (1..).zip(programs) {
            let name = fingerprint(&program.path)?;
            key.write(name.as_bytes());
            let kept = runner.measured.join(name);
            if let Ok(text) = std::fs::read_to_string(&kept) {
                tests.extend(text.lines().filter_map(|line| Test::parse(program, line)));
                continue;
            }
            let measured = runner.measure(program)?;
            let seconds: f64 = measured.iter().map(|test| test.seconds).sum();
            println!(
                "{number} of {} programs: {} tests of {}, {seconds:.0} s",
                programs.len(),
                measured.len(),
                program.title(),
            );
            let lines: String = measured.iter().map(Test::line).collect();
            std::fs::write(kept, lines)?;
            tests.extend(measured);
        }
        Ok(Self {
            tests,
            key: format!("{:016x}", key.finish()),
            runner: runner.clone(),
        })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.tests.len()
    }

    /// A name for the contents of their programs: the same tests have the same one.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Judges mutants, each with its number and the name of its crate, in parallel.
    /// Reports each outcome. One for which there was no time has none.
    pub fn judge(
        &self,
        mutants: &[(usize, &str)],
        tell: impl Fn(usize, MutantOutcome, Duration) + Sync,
    ) -> Result<Vec<Option<MutantOutcome>>> {
        in_parallel(mutants, self.runner.jobs, |_, (mutant, crate_name)| {
            let began = Instant::now();
            if self.runner.end.is_some_and(|end| began >= end) {
                return Ok(None);
            }
            let outcome = self.outcome(*mutant, crate_name)?;
            tell(*mutant, outcome, began.elapsed());
            Ok(Some(outcome))
        })
    }

    fn outcome(&self, mutant: usize, crate_name: &str) -> Result<MutantOutcome> {
        let reaching = self
            .tests
            .iter()
            .filter(|test| test.reached.contains(&mutant));
        let (own, others): (Vec<&Test>, Vec<&Test>) =
            reaching.partition(|test| test.program.crate_name() == crate_name);
        if own.is_empty() && others.is_empty() {
            return Ok(MutantOutcome::Unreached);
        }
        let own = fastest(own, OWN_SECONDS);
        let others = fastest(others, OTHERS_SECONDS);
        let (simulator, others): (Vec<&Test>, Vec<&Test>) = others
            .into_iter()
            .partition(|test| test.program.is_simulator());
        for (tests, outcome) in [
            (own, MutantOutcome::ByItsCrate),
            (others, MutantOutcome::ByAnotherCrate),
            (simulator, MutantOutcome::BySimulator),
        ] {
            for call in calls(tests) {
                if self.notices(mutant, &call)? {
                    return Ok(outcome);
                }
            }
        }
        Ok(MutantOutcome::Unnoticed)
    }

    /// Whether tests of one program fail or hang with the mutant. A failure counts if it
    /// comes again, and both count if the same tests pass without the mutant.
    fn notices(&self, mutant: usize, tests: &[&Test]) -> Result<bool> {
        let Some(program) = tests.first().map(|test| &test.program) else {
            return Ok(false);
        };
        let names: Vec<&str> = tests.iter().map(|test| test.name.as_str()).collect();
        let seconds: f64 = tests.iter().map(|test| test.seconds).sum();
        let limit = Duration::from_secs_f64(seconds * SLOWER_MAX + LONGER_MAX);
        let run = |names: &[&str], mutant: usize| -> Result<Output> {
            let mut command = self.runner.command(program, names)?;
            run_limited(command.env(MUTANT, mutant.to_string()), limit, false)
        };
        let output = run(&names, mutant)?;
        if output.ended_early {
            // They hang if they do not without the mutant: a busy machine is slow, too.
            return Ok(run(&names, 0)?.succeeded);
        }
        if output.succeeded {
            return Ok(false);
        }
        let failed: Vec<&str> = names
            .iter()
            .filter(|name| output.text.contains(&format!("test {name} ... FAILED")))
            .copied()
            .collect();
        // A program that was aborted names none.
        let failed = if failed.is_empty() { names } else { failed };
        // Neither by chance, nor because of a busy machine.
        Ok(run(&failed, mutant)?.failed() && run(&failed, 0)?.succeeded)
    }
}

impl Runner {
    /// Runs each test of a program alone.
    fn measure(&self, program: &Program) -> Result<Vec<Test>> {
        let ignored = self.names(program, &["--ignored"])?;
        let mut names = self.names(program, &[])?;
        names.retain(|name| program.runs(name) && !ignored.contains(name));
        let measured = in_parallel(&names, self.jobs, |index, name| {
            let reached = self.scratch.join(format!("reached-{index}"));
            let _ = std::fs::remove_file(&reached);
            let mut command = self.command(program, &[name])?;
            command.env(REACHED, &reached);
            let began = Instant::now();
            let output = run_limited(&mut command, TEST_MAX, false)?;
            let seconds = began.elapsed().as_secs_f64();
            if !output.succeeded {
                let why = if output.ended_early {
                    "takes too long"
                } else {
                    "fails without a mutant"
                };
                println!("left out: {} {name} {why}", program.title());
                return Ok(None);
            }
            let lines = std::fs::read_to_string(&reached).unwrap_or_default();
            Ok(Some(Test {
                program: program.clone(),
                name: name.clone(),
                seconds,
                reached: lines.lines().filter_map(|line| line.parse().ok()).collect(),
            }))
        })?;
        Ok(measured.into_iter().flatten().collect())
    }

    fn names(&self, program: &Program, words: &[&str]) -> Result<Vec<String>> {
        let mut command = Command::new(&program.path);
        command.args(["--list", "--format=terse"]).args(words);
        let output = run_limited(command.current_dir(&program.folder), TEST_MAX, false)?;
        let names = output
            .text
            .lines()
            .filter_map(|line| line.strip_suffix(": test"));
        Ok(names.map(Into::into).collect())
    }

    fn command(&self, program: &Program, names: &[impl AsRef<std::ffi::OsStr>]) -> Result<Command> {
        let mut command = if self.has_private_network {
            namespace::command(true, &program.path.to_string_lossy())?
        } else {
            Command::new(&program.path)
        };
        command
            .args(["--exact", "--test-threads=2"])
            .args(names)
            .current_dir(&program.folder)
            .env("CARGO_MANIFEST_DIR", &program.folder)
            .env("ROS_LOG_DIR", self.scratch.join("log"));
        Ok(command)
    }
}

impl Test {
    /// A line of the file in which measurements are kept.
    fn line(&self) -> String {
        let reached: Vec<String> = self.reached.iter().map(ToString::to_string).collect();
        format!("{}\t{}\t{}\n", self.name, self.seconds, reached.join(" "))
    }

    fn parse(program: &Program, line: &str) -> Option<Self> {
        let mut parts = line.split('\t');
        Some(Self {
            program: program.clone(),
            name: parts.next()?.into(),
            seconds: parts.next()?.parse().ok()?,
            reached: parts
                .next()?
                .split_whitespace()
                .filter_map(|number| number.parse().ok())
                .collect(),
        })
    }
}

/// A name for the contents of a program.
fn fingerprint(path: &Path) -> Result<String> {
    let bytes = std::fs::read(path).with_context(|| path.display().to_string())?;
    let mut hasher = DefaultHasher::new();
    hasher.write(&bytes);
    Ok(format!("{:016x}", hasher.finish()))
}

/// The fastest tests, so many as take so long together.
fn fastest(mut tests: Vec<&Test>, seconds_max: f64) -> Vec<&Test> {
    tests.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    let mut seconds = 0.0;
    tests.retain(|test| {
        seconds += test.seconds;
        seconds <= seconds_max
    });
    tests
}

/// Tests in the order of their programs' times, divided into calls.
fn calls(mut tests: Vec<&Test>) -> Vec<Vec<&Test>> {
    let total = |program: &Program| -> f64 {
        let of_it = tests.iter().filter(|test| test.program == *program);
        of_it.map(|test| test.seconds).sum()
    };
    let mut programs: Vec<(f64, Program)> = tests
        .iter()
        .map(|test| test.program.clone())
        .collect::<BTreeSet<_>>()
        .into_iter()
        .map(|program| (total(&program), program))
        .collect();
    programs.sort_by(|a, b| a.0.total_cmp(&b.0));
    tests.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    let mut calls = Vec::new();
    for (_, program) in programs {
        let of_it = tests.iter().filter(|test| test.program == program);
        let mut rest: &[&Test] = &of_it.copied().collect::<Vec<_>>();
        let mut size = CALL_TESTS;
        while !rest.is_empty() {
            let (call, after) = rest.split_at(size.min(rest.len()));
            calls.push(call.to_vec());
            rest = after;
            size *= 2;
        }
    }
    calls
}

/// Applies a function to each, in so many threads. The results keep the order.
fn in_parallel<T: Sync, R: Send>(
    items: &[T],
    jobs: usize,
    apply: impl Fn(usize, &T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(index) else { break };
                    let result = apply(index, item);
                    if let Ok(mut results) = results.lock() {
                        results.push((index, result));
                    }
                }
            });
        }
    });
    let mut results = results.into_inner().ok().context("a worker panicked")?;
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::super::copy::Group;
    use super::*;
    use pteros_test_support::folder::Folder;

    fn test(path: &str, name: &str, seconds: f64) -> Test {
        Test {
            program: Program {
                path: path.into(),
                folder: "crates/shm".into(),
                group: Group::Crates,
            },
            name: name.into(),
            seconds,
            reached: BTreeSet::from([1]),
        }
    }

    #[test]
    fn the_fastest_tests_are_chosen_within_a_limit() {
        let tests = [
            test("p", "a", 2.0),
            test("p", "b", 0.5),
            test("p", "c", 9.0),
        ];
        let names = |seconds| -> Vec<String> {
            let chosen = fastest(tests.iter().collect(), seconds);
            chosen.iter().map(|test| test.name.clone()).collect()
        };
        assert_eq!(names(3.0), ["b", "a"]);
        assert_eq!(names(20.0), ["b", "a", "c"]);
    }

    #[test]
    fn the_fastest_program_and_its_fastest_tests_come_first() {
        let mut tests = vec![test("slow", "s", 9.0), test("fast", "b", 0.2)];
        tests.extend((0..9).map(|n| test("fast", &format!("a{n}"), 0.1)));
        let calls = calls(tests.iter().collect());
        let names =
            |call: &Vec<&Test>| -> Vec<String> { call.iter().map(|t| t.name.clone()).collect() };
        assert_eq!(calls.iter().map(Vec::len).collect::<Vec<_>>(), [8, 2, 1]);
        assert_eq!(names(&calls[1]), ["a8", "b"]);
        assert_eq!(names(&calls[2]), ["s"]);
    }

    /// A script stands for a program of tests: it fails if the mutant is 2 and its
    /// test `a` is called.
    #[test]
    fn a_mutant_is_noticed_by_the_tests_that_come_to_it() {
        let folder = Folder::new("judge");
        let script = folder.join("program");
        let text = format!(
            "#!/bin/sh\n\
             case \"$*\" in *--ignored*) exit;; *--list*) echo 'a: test'; echo 'b: test'; exit;; esac\n\
             case \"$*\" in *b*) reached=1;; *) reached='1 2';; esac\n\
             [ -z \"${REACHED}\" ] || printf '%s\\n' $reached > \"${REACHED}\"\n\
             case \"${MUTANT} $*\" in '2 '*a*) echo 'test a ... FAILED'; exit 1;; esac\n"
        );
        std::fs::write(&script, text).unwrap();
        let program = Program {
            path: script.clone(),
            folder: folder.to_path_buf(),
            group: Group::Crates,
        };
        Command::new("chmod")
            .arg("+x")
            .arg(&script)
            .status()
            .unwrap();
        let runner = Runner {
            scratch: folder.join("scratch"),
            measured: folder.join("measured"),
            jobs: 2,
            end: None,
            has_private_network: false,
        };
        let own = program.crate_name();
        let own = own.as_str();
        // The second time what was measured is used again.
        for _ in 0..2 {
            let tests = Tests::measure(std::slice::from_ref(&program), &runner).unwrap();
            assert_eq!(tests.len(), 2);
            let mutants = [(1, own), (2, own), (3, own)];
            let outcomes = tests.judge(&mutants, |_, _, _| {}).unwrap();
            let wanted = [
                MutantOutcome::Unnoticed,
                MutantOutcome::ByItsCrate,
                MutantOutcome::Unreached,
            ];
            assert_eq!(outcomes, wanted.map(Some));
            let outcomes = tests.judge(&[(2, "rtps")], |_, _, _| {}).unwrap();
            assert_eq!(outcomes, [Some(MutantOutcome::ByAnotherCrate)]);
        }
        let late = Runner {
            end: Some(Instant::now()),
            ..runner.clone()
        };
        let tests = Tests::measure(std::slice::from_ref(&program), &late).unwrap();
        assert_eq!(tests.judge(&[(2, own)], |_, _, _| {}).unwrap(), [None]);
        assert_eq!(std::fs::read_dir(&runner.measured).unwrap().count(), 1);
    }
}
