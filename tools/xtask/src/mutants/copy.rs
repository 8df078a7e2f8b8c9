//! A copy of the last commit, with all mutants in it, and its build.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::schemata::{Instrumented, instrument, switch};
use super::sites::{CRATES, Site, sites_in};
use crate::checkout::root;
use crate::limited_command::run_limited;
use crate::test::is_long;
use crate::test_programs::{self, Kind, TESTSUITE, TestProgram};
use crate::tree_copy::{TreeCopy, files_below};

/// The longest build.
const BUILD_MAX: Duration = Duration::from_secs(3_600);

/// Checks until all mutants of the sample compile.
const ROUNDS_MAX: usize = 30;

/// The simulator, whose tests notice what those of the crates do not.
const SIMULATOR: &str = "sim";

/// Tests in the order in which mutants run them. A group is not even built if
/// those before it noticed every mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// All of the crates with mutants.
    Crates,
    /// Some of the API, which come to what needs threads, sockets and several
    /// processes.
    Api,
    /// Some of the simulator.
    Simulator,
}

impl Group {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Crates, Self::Api, Self::Simulator];

    /// The package of another crate.
    fn package(self) -> Option<&'static str> {
        match self {
            Self::Crates => None,
            Self::Api => Some("pteros"),
            Self::Simulator => Some("pteros-sim"),
        }
    }

    /// Modules of integration tests of another crate. What measures time
    /// or memory, or needs minutes, is left out.
    fn names(self) -> &'static [&'static str] {
        match self {
            Self::Crates => &[],
            Self::Api => &[
                "conformance",
                "durable_restart",
                "executors",
                "guard_conditions",
                "loans",
                "processes",
                "pub_sub",
                "secured",
                "traces",
                "wait_sets",
                "warnings",
            ],
            Self::Simulator => &[
                "forgery",
                "networks",
                "nodes",
                "quick",
                "scenarios",
                "seeds",
                "transports",
            ],
        }
    }

    /// Whether it has integration tests of a package, by their module.
    fn has(self, package: &str, name: &str) -> bool {
        match self.package() {
            Some(own) => own == package && self.names().contains(&name),
            None => self.has_package(package) && !is_long(package, name),
        }
    }

    fn has_package(self, package: &str) -> bool {
        CRATES.iter().any(|name| package == package_of(name))
    }
}

/// A program of tests, and the group of which it runs tests.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Program {
    /// Where it is.
    pub path: PathBuf,
    /// The folder of its crate, in which it runs.
    pub folder: PathBuf,
    /// Whose tests run.
    pub group: Group,
}

impl Program {
    /// The tests of a group in a program, if it has any of them.
    fn of(group: Group, built: TestProgram) -> Option<Self> {
        let has_tests = match group {
            Group::Crates => group.has_package(&built.package),
            _ => group.package() == Some(&built.package) && built.kind == Kind::Integration,
        };
        let is_run = built.kind == Kind::Library || built.target == TESTSUITE;
        (has_tests && is_run).then_some(Self {
            path: built.path,
            folder: built.folder,
            group,
        })
    }

    /// Whether a test of the program runs, by its full name.
    pub fn runs(&self, test: &str) -> bool {
        let by_module = self.title().ends_with(TESTSUITE);
        let module = test.split("::").next().unwrap_or(test);
        !by_module || self.group.has(&package_of(&self.crate_name()), module)
    }

    /// The crate, without `pteros-`.
    pub fn crate_name(&self) -> String {
        let name = self.folder.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// The crate and the program, without cargo's suffix.
    pub fn title(&self) -> String {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let name = name.rsplit_once('-').map_or(&*name, |(name, _)| name);
        format!("{} {name}", self.crate_name())
    }

    /// Whether its tests are of the simulator.
    pub fn is_simulator(&self) -> bool {
        self.crate_name() == SIMULATOR
    }
}

/// A copy of the last commit.
pub struct Copy {
    /// As committed.
    plain: PathBuf,
    /// With mutants.
    tree: PathBuf,
    build: PathBuf,
}

impl Copy {
    pub fn make() -> Result<Self> {
        let folder = root().join("target/mutants");
        let plain = folder.join("plain");
        let _ = std::fs::remove_dir_all(&plain);
        std::fs::create_dir_all(&plain)?;
        let archive = folder.join("plain.tar");
        let mut export = Command::new("git");
        export.args(["archive", "--output"]).arg(&archive);
        let mut unpack = Command::new("tar");
        unpack.arg("-xf").arg(&archive).arg("-C").arg(&plain);
        for step in [export.arg("HEAD").current_dir(root()), &mut unpack] {
            if !step.status().context("copy the last commit")?.success() {
                bail!("copy the last commit to {}: failed", plain.display());
            }
        }
        Ok(Self {
            plain,
            tree: folder.join("tree"),
            build: folder.join("build"),
        })
    }

    /// A folder for files of the tests.
    pub fn scratch(&self) -> PathBuf {
        self.build.with_file_name("scratch")
    }

    /// A file with what a later run may use again.
    pub fn kept(&self, name: &str) -> PathBuf {
        self.build.with_file_name(name)
    }

    /// The places in a crate's sources, in the order of their files.
    pub fn sites_of(&self, crate_name: &'static str) -> Result<Vec<Site>> {
        sites_of(&self.plain, crate_name)
    }

    /// Draws the first `count` places in this order that compile. Mutant 1 is the
    /// first of the result.
    pub fn draw(&self, sites: &[Site], count: usize) -> Result<Vec<Site>> {
        let list = self.kept("refused");
        let before = std::fs::read_to_string(&list).unwrap_or_default();
        let mut invalid: BTreeSet<String> = before.lines().map(Into::into).collect();
        for _ in 0..ROUNDS_MAX {
            let valid = sites.iter();
            let valid = valid.filter(|site| !invalid.contains(&site.identity));
            let drawn: Vec<&Site> = valid.take(count).collect();
            let sources = self.write(&drawn)?;
            let mut check = self.cargo("check", CRATES);
            check.arg("--lib");
            let output = run_limited(&mut check, BUILD_MAX, false)?;
            if output.succeeded {
                return Ok(drawn.into_iter().cloned().collect());
            }
            let refused = refused_mutants(&output.text, &sources);
            println!("{} of {} do not compile", refused.len(), drawn.len());
            if refused.is_empty() {
                bail!("the mutants do not build:\n{}", rendered(&output.text));
            }
            let sites = refused.iter().filter_map(|number| drawn.get(number - 1));
            invalid.extend(sites.map(|site| site.identity.clone()));
            let lines: String = invalid.iter().map(|line| format!("{line}\n")).collect();
            std::fs::write(&list, lines)?;
        }
        bail!("the mutants do not build in {ROUNDS_MAX} rounds")
    }

    /// Brings the tree to the commit with these mutants.
    fn write(&self, drawn: &[&Site]) -> Result<BTreeMap<PathBuf, Instrumented>> {
        let mut by_file: BTreeMap<&Path, Vec<(usize, &Site)>> = BTreeMap::new();
        for (number, site) in (1..).zip(drawn) {
            by_file.entry(&site.file).or_default().push((number, site));
        }
        let mut sources = BTreeMap::new();
        for (file, sites) in &by_file {
            let text = std::fs::read_to_string(self.plain.join(file))?;
            sources.insert(file.to_path_buf(), instrument(&text, sites));
        }
        let crates: BTreeSet<&str> = drawn.iter().map(|site| site.crate_name).collect();
        let roots: Vec<PathBuf> = crates
            .iter()
            .map(|name| Path::new("crates").join(name).join("src/lib.rs"))
            .collect();
        let mut copy = TreeCopy::new(&self.tree);
        for path in files_below(&self.plain)? {
            let file = path.strip_prefix(&self.plain)?.to_owned();
            let mut bytes = match sources.get(&file) {
                Some(source) => source.text.clone().into_bytes(),
                None => std::fs::read(&path)?,
            };
            if roots.contains(&file) {
                bytes.extend(switch(drawn.len()).into_bytes());
            }
            copy.put(&file, &bytes, &path)?;
        }
        copy.end()?;
        Ok(sources)
    }

    /// A command of cargo on crates of the tree.
    fn cargo(&self, verb: &str, crates: &[&str]) -> Command {
        let mut command = Command::new("cargo");
        command
            .args([verb, "--message-format=json"])
            .args(crates.iter().map(|name| format!("-p{}", package_of(name))))
            .current_dir(&self.tree)
            .env("RUSTFLAGS", "--cap-lints=allow")
            .env("CARGO_TARGET_DIR", &self.build);
        command
    }

    /// Builds the tests of a group.
    pub fn programs(&self, group: Group) -> Result<Vec<Program>> {
        // Both at once, so that features are the same and nothing is built twice.
        let others = ["pteros", SIMULATOR];
        let crates = if group == Group::Crates {
            CRATES
        } else {
            &others
        };
        let mut cargo = self.cargo("test", crates);
        cargo.args(["--no-run", "--test", TESTSUITE]);
        if group == Group::Crates {
            cargo.arg("--lib");
        }
        let output = run_limited(&mut cargo, BUILD_MAX, false)?;
        if !output.succeeded {
            bail!("the tests do not build:\n{}", rendered(&output.text));
        }
        let built = test_programs::programs(&output.text).into_iter();
        let mut programs: Vec<Program> = built
            .filter_map(|built| Program::of(group, built))
            .collect();
        programs.sort();
        Ok(programs)
    }
}

/// The places in a crate's sources below a root.
pub fn sites_of(tree: &Path, crate_name: &'static str) -> Result<Vec<Site>> {
    let mut files = files_below(&tree.join("crates").join(crate_name).join("src"))?;
    files.sort();
    let mut sites = Vec::new();
    for path in files {
        if path.extension().is_none_or(|end| end != "rs") || is_of_tests(&path) {
            continue;
        }
        let text = std::fs::read_to_string(&path)?;
        let file = path.strip_prefix(tree).unwrap_or(&path);
        sites.extend(sites_in(crate_name, file, &text)?);
    }
    Ok(sites)
}

/// `tests.rs`, `hostile_tests.rs`, or a file in a folder `tests`.
pub fn is_of_tests(path: &Path) -> bool {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let in_folder = path.components().any(|part| part.as_os_str() == "tests");
    name.ends_with("tests") || in_folder
}

/// The package of a crate.
fn package_of(crate_name: &str) -> String {
    match crate_name {
        "pteros" => "pteros".into(),
        name => format!("pteros-{name}"),
    }
}

/// Cargo's messages, one JSON object a line.
fn messages(text: &str) -> impl Iterator<Item = Value> {
    text.lines()
        .filter(|line| line.starts_with('{'))
        .filter_map(|line| serde_json::from_str(line).ok())
}

/// The compiler's errors as it prints them.
fn rendered(text: &str) -> String {
    let errors = messages(text).filter(|message| message["message"]["level"] == "error");
    let texts = errors.filter_map(|error| Some(error["message"]["rendered"].as_str()?.to_owned()));
    texts.take(5).collect()
}

/// The mutants at which the compiler reports errors.
fn refused_mutants(text: &str, sources: &BTreeMap<PathBuf, Instrumented>) -> BTreeSet<usize> {
    let mut refused = BTreeSet::new();
    for message in messages(text) {
        let message = &message["message"];
        if message["level"] != "error" {
            continue;
        }
        let spans = message["spans"].as_array().into_iter().flatten();
        for span in spans.filter(|span| span["is_primary"] == true) {
            let file = Path::new(span["file_name"].as_str().unwrap_or_default());
            let byte = span["byte_start"].as_u64().unwrap_or(0);
            let source = sources.get(file);
            refused.extend(source.and_then(|source| source.mutant_at(byte as usize)));
        }
    }
    refused
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_compiler_names_its_mutant() {
        let source = "fn f(a: u8) -> u8 { a + 1 }";
        let sites = sites_in("shm", Path::new("a.rs"), source).unwrap();
        let instrumented = instrument(source, &[(7, &sites[0])]);
        let byte = instrumented.text.find("a - 1").unwrap();
        let sources = BTreeMap::from([(PathBuf::from("a.rs"), instrumented)]);
        let line = |level: &str| {
            let span =
                serde_json::json!({"file_name": "a.rs", "byte_start": byte, "is_primary": true});
            serde_json::json!({"message": {"level": level, "spans": [span]}}).to_string()
        };
        let text = format!("Compiling\n{}\n", line("error"));
        assert_eq!(refused_mutants(&text, &sources), BTreeSet::from([7]));
        assert!(refused_mutants(&line("warning"), &sources).is_empty());
    }

    #[test]
    fn every_module_that_is_to_notice_mutants_exists() {
        for (group, folder) in [
            (Group::Api, "crates/pteros/tests"),
            (Group::Simulator, "verify/sim/tests"),
        ] {
            let tests = root().join(folder);
            for name in group.names() {
                let exists = [tests.join(TESTSUITE), tests.clone()].iter().any(|place| {
                    let file = place.join(format!("{name}.rs"));
                    let folder = place.join(name);
                    let mains = ["mod.rs", "main.rs"].map(|main| folder.join(main));
                    file.exists() || mains.iter().any(|main| main.exists())
                });
                assert!(exists, "{group:?} {name}");
            }
        }
    }

    #[test]
    fn a_group_runs_its_modules_and_no_others() {
        let built = |package: &str, target: &str, kind| TestProgram {
            package: package.into(),
            target: target.into(),
            kind,
            path: format!("target/{target}-0a1b").into(),
            folder: format!("crates/{}", package.trim_start_matches("pteros-")).into(),
            binaries: Vec::new(),
        };
        let suite = built("pteros", TESTSUITE, Kind::Integration);
        let api = Program::of(Group::Api, suite.clone()).unwrap();
        assert!(api.runs("loans::one") && !api.runs("churn::one"));
        assert_eq!(Program::of(Group::Crates, suite), None);
        let rtps = built("pteros-rtps", TESTSUITE, Kind::Integration);
        let rtps = Program::of(Group::Crates, rtps).unwrap();
        assert!(rtps.runs("coherent::one") && !rtps.runs("soak::one"));
        let unit = built("pteros-rtps", "pteros_rtps", Kind::Library);
        let unit = Program::of(Group::Crates, unit).unwrap();
        assert!(unit.runs("soak::one"));
        let soak = built("pteros-rtps", "soak", Kind::Integration);
        assert_eq!(Program::of(Group::Crates, soak), None);
    }
}
