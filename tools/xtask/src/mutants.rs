//! `cargo xtask mutants [--sample N] [--seed S] [--crate NAME …]`: generated mutants.
//!
//! A mutant is the source with one operator or word changed: `<` to `<=`, `&&` to
//! `||`, `true` to `false`. The tests of its crate should notice it. The command
//! draws a sample, runs the tests on each, and lists those that nothing noticed.
//! Each is a missing test, a missing rule of the simulator, or a change without
//! effect. It works in a copy of the last commit, in `target/mutants`.
//!
//! The mutants of `verify/sim/src/fault_points.rs` are written by hand, and need
//! knowledge of the protocol. These need none, and find what nobody thought of.

mod sites;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::checkout::root;
use crate::limited_command::run_limited;
use sites::{Site, sites_in};

const USAGE: &str = "usage: cargo xtask mutants [--sample N] [--seed S] [--crate NAME …]";

/// The crates that are mutated: protocol, runtime, shared memory, security.
const CRATES: &[&str] = &["rtps", "runtime", "shm", "security"];

/// Mutants of a sample.
const SAMPLE_DEFAULT: usize = 300;

/// Tests may take this many times as long as without a mutant, and a minute more to
/// build. Then they hang, which is noticed too.
const SLOWER_MAX: u32 = 4;
const BUILD_MAX: Duration = Duration::from_secs(600);

/// What became of a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// A test failed or hung.
    Noticed,
    /// All tests passed.
    Unnoticed,
    /// It does not compile, so it is none.
    Invalid,
}

#[derive(Debug, PartialEq)]
struct Request {
    sample: usize,
    seed: u64,
    crates: Vec<&'static str>,
}

/// Runs the command.
pub fn run(arguments: &[String]) -> Result<()> {
    let request = parse_arguments(arguments)?;
    let copy = Copy::make()?;
    let mut baselines = Vec::new();
    for name in &request.crates {
        baselines.push((*name, copy.baseline(name)?));
    }
    let mut all = Vec::new();
    for name in &request.crates {
        all.extend(sites_of(&copy.tree, name)?);
    }
    println!(
        "{} places to mutate in {}",
        all.len(),
        request.crates.join(", ")
    );
    let (mut noticed, mut unnoticed) = (0, Vec::new());
    let order = shuffled(all.len(), request.seed);
    for site in order.iter().filter_map(|index| all.get(*index)) {
        if noticed + unnoticed.len() >= request.sample {
            break;
        }
        let baseline = baselines.iter().find(|(name, _)| *name == site.crate_name);
        let limit = baseline.map_or(BUILD_MAX, |(_, time)| *time * SLOWER_MAX);
        let began = Instant::now();
        let verdict = copy.judge(site, limit)?;
        let seconds = began.elapsed().as_secs();
        println!("{verdict:?} ({seconds} s): {}", site.title());
        match verdict {
            Verdict::Noticed => noticed += 1,
            Verdict::Unnoticed => unnoticed.push(site.title()),
            Verdict::Invalid => {}
        }
    }
    let tried = noticed + unnoticed.len();
    println!(
        "\n{noticed} of {tried} mutants noticed; seed {}",
        request.seed
    );
    for title in &unnoticed {
        println!("  unnoticed: {title}");
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

/// The places in a crate's sources, in the order of their files.
fn sites_of(tree: &Path, crate_name: &'static str) -> Result<Vec<Site>> {
    let sources = tree.join("crates").join(crate_name).join("src");
    let mut files = Vec::new();
    let mut folders = vec![sources];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") && !is_of_tests(&path) {
                files.push(path);
            }
        }
    }
    files.sort();
    let mut sites = Vec::new();
    for path in files {
        let text = std::fs::read_to_string(&path)?;
        let file = path.strip_prefix(tree).unwrap_or(&path).to_owned();
        sites.extend(sites_in(crate_name, &file, &text));
    }
    Ok(sites)
}

/// `tests.rs`, `hostile_tests.rs`, or a file in a folder `tests`.
fn is_of_tests(path: &Path) -> bool {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let in_folder = path.components().any(|part| part.as_os_str() == "tests");
    name.ends_with("tests") || in_folder
}

/// A copy of the last commit.
struct Copy {
    tree: PathBuf,
    build: PathBuf,
}

impl Copy {
    /// Makes it, or brings an earlier one to the last commit.
    fn make() -> Result<Self> {
        let folder = root().join("target/mutants");
        let tree = folder.join("tree");
        let _ = std::fs::remove_dir_all(&tree);
        std::fs::create_dir_all(&tree)?;
        let archive = folder.join("tree.tar");
        let steps = [
            Command::new("git")
                .args(["archive", "--output"])
                .arg(&archive)
                .arg("HEAD")
                .current_dir(root())
                .status(),
            Command::new("tar")
                .arg("-xf")
                .arg(&archive)
                .arg("-C")
                .arg(&tree)
                .status(),
        ];
        for step in steps {
            if !step.context("copy the last commit")?.success() {
                bail!("copy the last commit to {}: failed", tree.display());
            }
        }
        let build = folder.join("build");
        Ok(Self { tree, build })
    }

    fn cargo(&self, crate_name: &str, words: &[&str]) -> Command {
        let mut command = Command::new("cargo");
        command
            .args(["test", "--quiet", "--package"])
            .arg(format!("pteros-{crate_name}"))
            .args(["--lib", "--tests"])
            .args(words)
            .current_dir(&self.tree)
            .env("CARGO_TARGET_DIR", &self.build);
        command
    }

    /// How long a crate's tests take; they must pass.
    fn baseline(&self, crate_name: &str) -> Result<Duration> {
        let mut build = self.cargo(crate_name, &["--no-run"]);
        if !run_limited(&mut build, BUILD_MAX * 6, false)?.succeeded {
            bail!("the tests of pteros-{crate_name} do not build");
        }
        let began = Instant::now();
        let tests = run_limited(&mut self.cargo(crate_name, &[]), BUILD_MAX * 6, false)?;
        if !tests.succeeded {
            bail!(
                "the tests of pteros-{crate_name} fail without a mutant:\n{}",
                tests.text
            );
        }
        Ok(began.elapsed() + Duration::from_secs(15))
    }

    /// Runs the tests on a mutant.
    fn judge(&self, site: &Site, limit: Duration) -> Result<Verdict> {
        let path = self.tree.join(&site.file);
        let original = std::fs::read_to_string(&path)?;
        std::fs::write(&path, site.apply(&original))?;
        let verdict = self.judge_source(site, limit);
        std::fs::write(&path, original)?;
        verdict
    }

    fn judge_source(&self, site: &Site, limit: Duration) -> Result<Verdict> {
        let mut build = self.cargo(site.crate_name, &["--no-run"]);
        if !run_limited(&mut build, BUILD_MAX, false)?.succeeded {
            return Ok(Verdict::Invalid);
        }
        let tests = run_limited(&mut self.cargo(site.crate_name, &[]), limit, false)?;
        Ok(if tests.succeeded {
            Verdict::Unnoticed
        } else {
            Verdict::Noticed
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let sites = sites_of(&root(), name).unwrap();
            assert!(sites.len() > 100, "{name}: {}", sites.len());
            assert!(sites.iter().all(|site| !is_of_tests(&site.file)));
        }
    }
}
