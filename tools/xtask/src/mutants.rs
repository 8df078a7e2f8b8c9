//! `cargo xtask mutants [--sample N] [--seed S] [--crate NAME …] [--jobs N] [--minutes M] [--resume]`:
//! generated mutants.
//!
//! A mutant is the source with one operator or word changed: `<` to `<=`, `&&` to
//! `||`, `true` to `false`. A test should notice it. The command draws a sample, runs
//! the tests on each, and lists those that nothing noticed. Each is a missing test, a
//! missing rule of the simulator, or a change without effect. A sample over all crates
//! is written to `docs/measurements/mutants.md`.
//!
//! All mutants are in one build (schemata.rs) of a copy of the last commit, in
//! `target/mutants` (copy.rs). An environment variable says which one a process is. A
//! mutant runs only the tests that come to its place (judge.rs).
//!
//! A seed gives every place its rank by its own words, so a change of one file leaves
//! the rest of the sample as it was. `--minutes` ends a run early; the page then has the
//! mutants that were judged. `--resume` goes on with the last run, after it was stopped
//! or tests were added: a mutant that it noticed is not judged again, nor one that passed
//! the same tests.
//!
//! The mutants of `verify/seeded_bugs/table.txt` are written by hand, and need
//! knowledge of the protocol. These need none, and find what nobody thought of.

mod copy;
mod judge;
mod page;
mod schemata;
mod sites;

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::ops::Range;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::{namespace, nightly};
use copy::{Copy, Group};
use judge::{MutantOutcome, Runner, Tests};
use page::Sample;
use sites::{CRATES, Site};

/// Mutants that one group of tests runs before the next one does.
const BATCH: usize = 50;

#[derive(clap::Args)]
pub struct Arguments {
    /// Mutants of the sample
    #[arg(long, value_name = "N", default_value_t = 300, value_parser = above_zero)]
    sample: usize,
    /// Decides which are in the sample
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Of this crate only; may be repeated
    #[arg(long = "crate", value_name = "NAME", value_parser = crate_name, default_values = CRATES, hide_default_value = true)]
    crates: Vec<&'static str>,
    /// Mutants that are judged at once; by default one a processor
    #[arg(long, value_name = "N", value_parser = above_zero)]
    jobs: Option<usize>,
    /// After so many minutes no further mutant is judged
    #[arg(long, value_name = "M", value_parser = clap::value_parser!(u64).range(1..100_000))]
    minutes: Option<u64>,
    /// Go on with the last run
    #[arg(long)]
    resume: bool,
}

fn crate_name(name: &str) -> Result<&'static str, String> {
    let known = CRATES.iter().find(|known| **known == name);
    known
        .copied()
        .ok_or_else(|| format!("there are {}", CRATES.join(", ")))
}

fn above_zero(number: &str) -> Result<usize, String> {
    let parsed = number.parse().ok().filter(|n| *n > 0);
    parsed.ok_or_else(|| "give a whole number above zero".into())
}

/// Runs the command.
pub fn run(request: Arguments) -> Result<()> {
    let minutes = request
        .minutes
        .map(|minutes| Duration::from_secs(60 * minutes));
    let end = minutes.and_then(|span| Instant::now().checked_add(span));
    let on = nightly::occasion()?;
    let copy = Copy::make()?;
    let mut places = Vec::new();
    for name in &request.crates {
        places.extend(copy.sites_of(name)?);
    }
    let list = request.crates.join(", ");
    println!("{} places to mutate in {list}", places.len());
    places.sort_by_cached_key(|site| rank(&site.identity, request.seed));
    let sample = copy.draw(&places, request.sample)?;
    let runner = Runner {
        scratch: copy.scratch(),
        measured: copy.kept("measured"),
        jobs: request.jobs.unwrap_or_else(|| {
            std::thread::available_parallelism().map_or(1, |processors| processors.get())
        }),
        end,
        has_private_network: namespace::available()
            .inspect_err(|why| println!("without private networks: {why}"))
            .is_ok(),
    };
    let mut verdicts = MutantOutcomes::open(&sample, &copy.kept("verdicts"), request.resume)?;
    let mut groups: Vec<Tests> = Vec::new();
    // In batches, so that a run that ends early has the whole outcome of most.
    'all: for first in (1..=sample.len()).step_by(BATCH) {
        let batch = first..first + BATCH;
        for (at, group) in Group::ALL.into_iter().enumerate() {
            if end.is_some_and(|end| Instant::now() >= end) {
                break 'all;
            }
            if verdicts.open_mutants(&batch).is_empty() {
                break;
            }
            if at == groups.len() {
                let programs = copy.programs(group)?;
                let tests = Tests::measure(&programs, &runner)?;
                println!("{} tests in {} programs", tests.len(), programs.len());
                groups.push(tests);
            }
            if let Some(tests) = groups.get(at) {
                verdicts.judge(tests, &batch)?;
            }
        }
    }
    let tests_run = groups.iter().map(Tests::len).sum();
    let judged = verdicts.end();
    let noticed = judged
        .iter()
        .filter(|(_, verdict)| verdict.is_noticed())
        .count();
    println!(
        "\n{noticed} of {} mutants noticed; seed {}",
        judged.len(),
        request.seed
    );
    for (site, verdict) in &judged {
        if !verdict.is_noticed() {
            println!("  {verdict:?}: {}", site.title());
        }
    }
    if request.crates == CRATES {
        page::write(&Sample {
            seed: request.seed,
            date: on.date,
            commit: on.commit.trim_end_matches('+').into(),
            places: places.len(),
            tests: tests_run,
            size: sample.len(),
            judged,
        })?;
        println!(
            "written to {}; explain there what stays",
            page::path().display()
        );
    }
    Ok(())
}

/// The outcomes of a sample. Each is kept in a file at once.
struct MutantOutcomes<'s> {
    sample: &'s [Site],
    /// By mutant. Unnoticed ones are open.
    of: BTreeMap<usize, MutantOutcome>,
    /// What the last run found, by the key of its tests and the mutant's identity.
    before: BTreeMap<(String, String), MutantOutcome>,
    kept: Mutex<File>,
}

impl<'s> MutantOutcomes<'s> {
    fn open(sample: &'s [Site], kept: &Path, resumes: bool) -> Result<Self> {
        let mut before = BTreeMap::new();
        if resumes {
            before = verdicts_before(&std::fs::read_to_string(kept).unwrap_or_default());
        } else {
            let _ = std::fs::remove_file(kept);
        }
        // What no tests noticed so far is open, and stays unnoticed if there is no time.
        let mut known: BTreeMap<&str, MutantOutcome> = BTreeMap::new();
        for ((_, identity), verdict) in &before {
            let of_it = known.entry(identity).or_insert(*verdict);
            if verdict.is_noticed() || *verdict == MutantOutcome::Unnoticed && !of_it.is_noticed() {
                *of_it = *verdict;
            }
        }
        let of = (1..)
            .zip(sample)
            .filter_map(|(number, site)| Some((number, *known.get(site.identity.as_str())?)))
            .collect();
        let file = OpenOptions::new().create(true).append(true).open(kept)?;
        Ok(Self {
            sample,
            of,
            before,
            kept: Mutex::new(file),
        })
    }

    /// Those with these numbers that nothing has noticed.
    fn open_mutants(&self, numbers: &Range<usize>) -> Vec<(usize, &'s Site)> {
        let is_noticed = |number: &usize| self.of.get(number).is_some_and(|v| v.is_noticed());
        (1..)
            .zip(self.sample)
            .filter(|(number, _)| numbers.contains(number) && !is_noticed(number))
            .collect()
    }

    /// Runs tests on the open mutants, but not those that it passed before.
    fn judge(&mut self, tests: &Tests, numbers: &Range<usize>) -> Result<()> {
        let mut open = Vec::new();
        for (number, site) in self.open_mutants(numbers) {
            let ran = (tests.key().to_string(), site.identity.clone());
            match self.before.get(&ran).copied() {
                Some(verdict) => self.note(number, verdict),
                None => open.push((number, site.crate_name)),
            }
        }
        println!("{} mutants to judge", open.len());
        let verdicts = tests.judge(&open, |number, verdict, time| {
            self.keep(tests.key(), number, verdict, time);
        })?;
        for ((number, _), verdict) in open.into_iter().zip(verdicts) {
            if let Some(verdict) = verdict {
                self.note(number, verdict);
            }
        }
        Ok(())
    }

    fn note(&mut self, number: usize, verdict: MutantOutcome) {
        let before = self.of.insert(number, verdict);
        if verdict == MutantOutcome::Unreached && before == Some(MutantOutcome::Unnoticed) {
            self.of.insert(number, MutantOutcome::Unnoticed);
        }
    }

    fn keep(&self, key: &str, number: usize, verdict: MutantOutcome, time: Duration) {
        let Some(site) = self.sample.get(number - 1) else {
            return;
        };
        let seconds = time.as_secs_f64();
        println!("{number}: {verdict:?} ({seconds:.1} s): {}", site.title());
        if let Ok(mut file) = self.kept.lock() {
            // Without it a resumed run judges the mutant again.
            let _ = writeln!(file, "{verdict:?} {key} {}", site.identity);
        }
    }

    /// The mutants that were judged, in the order of the sample.
    fn end(self) -> Vec<(&'s Site, MutantOutcome)> {
        (1..)
            .zip(self.sample)
            .filter_map(|(number, site)| Some((site, *self.of.get(&number)?)))
            .collect()
    }
}

/// The lines of a file of outcomes. One that was cut is left out.
fn verdicts_before(text: &str) -> BTreeMap<(String, String), MutantOutcome> {
    let verdict_of = |line: &str| {
        let (word, rest) = line.split_once(' ')?;
        let (key, identity) = rest.split_once(' ')?;
        Some(((key.into(), identity.into()), MutantOutcome::parse(word)?))
    };
    text.lines().filter_map(verdict_of).collect()
}

/// The rank of a place in a sample: a hash of its words (FNV-1a), mixed with the seed
/// (splitmix64).
fn rank(identity: &str, seed: u64) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in identity.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    let mut z = hash ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkout::root;
    use pteros_test_support::folder::Folder;

    #[test]
    fn a_seed_decides_the_order() {
        let order = |names: &[&'static str], seed| {
            let mut names = names.to_vec();
            names.sort_by_cached_key(|name| rank(name, seed));
            names
        };
        let names = ["a.rs f < #1", "a.rs f < #2", "b.rs g + #1", "c.rs h || #1"];
        let one = order(&names, 1);
        assert!((2..20).any(|seed| order(&names, seed) != one));
        // A place that goes leaves the order of the others.
        let fewer: Vec<_> = names[1..].to_vec();
        let rest: Vec<_> = one.into_iter().filter(|name| *name != names[0]).collect();
        assert_eq!(order(&fewer, 1), rest);
    }

    #[test]
    fn a_run_goes_on_without_those_that_the_last_one_noticed() {
        let source = "fn f() { a < b; c > d; e == f; }";
        let sample = sites::sites_in("shm", Path::new("a.rs"), source).unwrap();
        let text = format!(
            "ByItsCrate k {}\nUnnoticed k {}\nUnreached l {1}\ncut",
            sample[0].identity, sample[1].identity
        );
        let kept = Folder::absent("verdicts");
        std::fs::write(&kept, text).unwrap();
        let verdicts = MutantOutcomes::open(&sample, &kept, true).unwrap();
        let open = |verdicts: &MutantOutcomes| -> Vec<usize> {
            let open = verdicts.open_mutants(&(1..4));
            open.into_iter().map(|(number, _)| number).collect()
        };
        assert_eq!(open(&verdicts), [2, 3]);
        assert_eq!(
            verdicts.of.get(&2),
            Some(&MutantOutcome::Unnoticed),
            "so far"
        );
        assert_eq!(verdicts.of.get(&3), None);
        let of = |key: &str| {
            verdicts
                .before
                .get(&(key.into(), sample[1].identity.clone()))
        };
        assert_eq!(of("k"), Some(&MutantOutcome::Unnoticed));
        assert_eq!(of("l"), Some(&MutantOutcome::Unreached));
        assert_eq!(of("m"), None);
        let so_far = [
            (&sample[0], MutantOutcome::ByItsCrate),
            (&sample[1], MutantOutcome::Unnoticed),
        ];
        assert_eq!(verdicts.end(), so_far);
        // A run that does not go on begins anew.
        let verdicts = MutantOutcomes::open(&sample, &kept, false).unwrap();
        assert_eq!(open(&verdicts), [1, 2, 3]);
    }

    #[test]
    fn every_crate_has_places_and_none_of_them_is_in_a_test() {
        for name in CRATES {
            let sites = copy::sites_of(&root(), name).unwrap();
            assert!(sites.len() > 100, "{name}: {}", sites.len());
            assert!(sites.iter().all(|site| !copy::is_of_tests(&site.file)));
        }
    }
}
