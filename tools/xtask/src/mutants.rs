//! `cargo xtask mutants [--sample N] [--seed S] [--crate NAME …]`: generated mutants.
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
//! The mutants of `verify/sim/src/fault_points.rs` are written by hand, and need
//! knowledge of the protocol. These need none, and find what nobody thought of.

mod copy;
mod judge;
mod page;
mod schemata;
mod sites;

use anyhow::{Context, Result, bail};

use crate::nightly;
use copy::Copy;
use judge::Tests;
use page::Sample;
use sites::CRATES;

const USAGE: &str = "usage: cargo xtask mutants [--sample N] [--seed S] [--crate NAME …]";

/// Mutants of a sample.
const SAMPLE_DEFAULT: usize = 300;

#[derive(Debug, PartialEq)]
struct Request {
    sample: usize,
    seed: u64,
    crates: Vec<&'static str>,
}

/// Runs the command.
pub fn run(arguments: &[String]) -> Result<()> {
    let request = parse_arguments(arguments)?;
    let on = nightly::occasion()?;
    let copy = Copy::make()?;
    let mut places = Vec::new();
    for name in &request.crates {
        places.extend(copy.sites_of(name)?);
    }
    let list = request.crates.join(", ");
    println!("{} places to mutate in {list}", places.len());
    let order = shuffled(places.len(), request.seed);
    let order: Vec<_> = order
        .iter()
        .filter_map(|index| places.get(*index).cloned())
        .collect();
    let (sample, programs) = copy.build(&order, request.sample)?;
    let tests = Tests::measure(&programs, &copy.scratch())?;
    println!("{} tests in {} programs", tests.len(), programs.len());
    let crates: Vec<&str> = sample.iter().map(|site| site.crate_name).collect();
    let verdicts = tests.judge(&crates, |mutant, verdict, time| {
        let title = sample.get(mutant - 1).map(|site| site.title());
        let seconds = time.as_secs_f64();
        println!(
            "{mutant}: {verdict:?} ({seconds:.1} s): {}",
            title.unwrap_or_default()
        );
    })?;
    let judged: Vec<_> = sample.iter().zip(verdicts).collect();
    let noticed = judged
        .iter()
        .filter(|(_, verdict)| verdict.is_noticed())
        .count();
    println!(
        "\n{noticed} of {} mutants noticed; seed {}",
        judged.len(),
        request.seed
    );
    for (number, (site, verdict)) in (1..).zip(&judged) {
        if !verdict.is_noticed() {
            println!("  {verdict:?}: {number}: {}", site.title());
        }
    }
    if request.crates == CRATES {
        page::write(&Sample {
            seed: request.seed,
            date: on.date,
            commit: on.commit.trim_end_matches('+').into(),
            places: places.len(),
            tests: tests.len(),
            judged,
        })?;
        println!(
            "written to {}; explain there what stays",
            page::path().display()
        );
    }
    Ok(())
}

fn parse_arguments(arguments: &[String]) -> Result<Request> {
    let mut request = Request {
        sample: SAMPLE_DEFAULT,
        seed: 1,
        crates: Vec::new(),
    };
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        let value = rest.next();
        match (word.as_str(), value) {
            ("--sample", Some(number)) => {
                let parsed = number.parse().ok().filter(|n| *n > 0);
                request.sample = parsed.with_context(|| {
                    format!("--sample {number}: give a whole number above zero")
                })?;
            }
            ("--seed", Some(number)) => {
                let parsed = number.parse().ok();
                request.seed =
                    parsed.with_context(|| format!("--seed {number}: give a whole number"))?;
            }
            ("--crate", Some(name)) => {
                let known = CRATES.iter().find(|known| *known == name);
                request.crates.push(
                    known.with_context(|| {
                        format!("--crate {name}: there are {}", CRATES.join(", "))
                    })?,
                );
            }
            ("--sample" | "--seed" | "--crate", None) => {
                bail!("{word}: a value is missing\n{USAGE}")
            }
            _ => bail!("{word}: not an option\n{USAGE}"),
        }
    }
    if request.crates.is_empty() {
        request.crates = CRATES.to_vec();
    }
    Ok(request)
}

/// The numbers below `count` in an order that the seed decides (splitmix64, then
/// Fisher and Yates).
fn shuffled(count: usize, seed: u64) -> Vec<usize> {
    let mut state = seed;
    let mut random = move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    let mut order: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        let other = usize::try_from(random() % (last as u64 + 1)).unwrap_or(0);
        order.swap(last, other);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkout::root;

    fn read(line: &str) -> Result<Request> {
        let words: Vec<String> = line.split_whitespace().map(Into::into).collect();
        parse_arguments(&words)
    }

    #[test]
    fn arguments_are_parsed_or_refused_by_name() {
        assert_eq!(read("").unwrap().crates, CRATES);
        let request = read("--sample 5 --seed 7 --crate shm").unwrap();
        assert_eq!((request.sample, request.seed), (5, 7));
        assert_eq!(request.crates, ["shm"]);
        for (line, named) in [
            ("--sample", "missing"),
            ("--sample none", "none"),
            ("--sample 0", "above zero"),
            ("--seed x", "x"),
            ("--crate cli", "rtps"),
            ("--all", "--all"),
        ] {
            let error = read(line).unwrap_err().to_string();
            assert!(error.contains(named), "{line}: {error}");
        }
    }

    #[test]
    fn a_seed_decides_the_order() {
        let mut order = shuffled(100, 3);
        assert_eq!(order, shuffled(100, 3));
        assert_ne!(order, shuffled(100, 4));
        order.sort_unstable();
        assert_eq!(order, (0..100).collect::<Vec<_>>());
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
