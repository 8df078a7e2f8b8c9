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
use crate::tree_copy::{TreeCopy, files_below};

/// The longest build.
const BUILD_MAX: Duration = Duration::from_secs(3_600);

/// Builds until all mutants of the sample compile.
const ROUNDS_MAX: usize = 30;

/// The simulator, whose tests notice what those of the crates do not.
const SIMULATOR: &str = "sim";

/// Test programs in the order in which mutants run them. A group is not even built if
/// those before it noticed every mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

    /// The test programs of another crate. What measures time or memory, or needs
    /// minutes, is left out.
    fn programs(self) -> &'static [&'static str] {
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
                "wires",
            ],
        }
    }
}

/// A program of tests.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Program {
    /// Where it is.
    pub path: PathBuf,
    /// The folder of its crate, in which it runs.
    pub folder: PathBuf,
}

impl Program {
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
    /// Makes it.
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
            let mut cargo = self.cargo(Group::Crates)?;
            let output = run_limited(&mut cargo, BUILD_MAX, false)?;
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

    /// Cargo that builds the tests of a group. It always names all packages, so that
    /// features are the same and nothing is built twice.
    fn cargo(&self, group: Group) -> Result<Command> {
        let mut command = Command::new("cargo");
        command
            .args(["test", "--no-run", "--message-format=json"])
            .args(CRATES.iter().map(|name| format!("-ppteros-{name}")))
            .args(["-ppteros", "-ppteros-sim"])
            .args(group.programs().iter().map(|name| format!("--test={name}")))
            .current_dir(&self.tree)
            .env("RUSTFLAGS", "--cap-lints=allow")
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            .env("CARGO_TARGET_DIR", &self.build);
        if group == Group::Crates {
            for name in CRATES {
                let package = format!("pteros-{name}");
                let programs = test_programs(&self.tree.join("crates").join(name).join("tests"))?;
                let quick = programs.iter().filter(|name| !is_long(&package, name));
                command.args(quick.map(|name| format!("--test={name}")));
            }
            command.arg("--lib");
        }
        Ok(command)
    }

    /// Builds the tests of a group.
    pub fn programs(&self, group: Group) -> Result<Vec<Program>> {
        let mut cargo = self.cargo(group)?;
        let output = run_limited(&mut cargo, BUILD_MAX, false)?;
        if !output.succeeded {
            bail!("the tests do not build:\n{}", rendered(&output.text));
        }
        let mut programs: Vec<Program> = messages(&output.text)
            .filter_map(|message| {
                let manifest = Path::new(message["manifest_path"].as_str()?);
                message["profile"]["test"].as_bool().filter(|is| *is)?;
                Some(Program {
                    path: PathBuf::from(message["executable"].as_str()?),
                    folder: manifest.parent()?.to_owned(),
                })
            })
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

/// The names of the test programs in a folder `tests`.
fn test_programs(folder: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry?.path();
        let is_source = path.extension().is_some_and(|end| end == "rs");
        if is_source || path.join("main.rs").exists() {
            names.extend(path.file_stem().map(|name| name.to_string_lossy().into()));
        }
    }
    names.sort();
    Ok(names)
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
    fn every_program_that_is_to_notice_mutants_exists() {
        for (group, folder) in [
            (Group::Api, "crates/pteros/tests"),
            (Group::Simulator, "verify/sim/tests"),
        ] {
            let all = test_programs(&root().join(folder)).unwrap();
            for name in group.programs() {
                assert!(all.iter().any(|known| known == name), "{group:?} {name}");
            }
        }
    }
}
