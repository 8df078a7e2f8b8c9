//! Test programs: builds them, and lists the modules of integration tests, of which
//! each runs in a process of its own.
//!
//! A crate has one program of integration tests, [`TESTSUITE`], because linking takes
//! longer than running. Its top-level modules are what crates without this runner have
//! as programs: a module may set environment variables, fork, and count its open files.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::checkout::root;
use crate::progress;

/// Name of the integration-test program of a crate.
pub const TESTSUITE: &str = "testsuite";

/// What kind of tests a program has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Tests inside a library.
    Library,
    /// Tests inside a program.
    Binary,
    /// Tests in the folder `tests`.
    Integration,
}

/// A built program of tests.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TestProgram {
    /// Name of its package.
    pub package: String,
    /// Name of its target.
    pub target: String,
    /// What kind of tests it has.
    pub kind: Kind,
    /// The executable.
    pub path: PathBuf,
    /// The folder of its package, in which it runs.
    pub folder: PathBuf,
    /// The programs of its package, by name.
    pub binaries: Vec<(String, PathBuf)>,
}

/// Tests of a program that run in one process.
#[derive(Clone, Debug)]
pub struct TestGroup {
    pub program: TestProgram,
    /// The module of a [`TESTSUITE`], or else the target.
    pub name: String,
    /// Full names of the tests of a module. Empty: all tests of the program.
    pub tests: Vec<String>,
}

impl TestProgram {
    /// Whether each of its top-level modules runs in a process of its own.
    pub fn runs_by_module(&self) -> bool {
        self.kind == Kind::Integration && self.target == TESTSUITE
    }

    /// The program with the variables and the folder that cargo gives it.
    pub fn prepare(&self, command: &mut Command) -> Result<()> {
        command
            .current_dir(&self.folder)
            .env("CARGO_MANIFEST_DIR", &self.folder)
            .env("CARGO_PKG_NAME", &self.package)
            .env("LD_LIBRARY_PATH", self.library_path()?);
        for (name, path) in &self.binaries {
            command.env(format!("CARGO_BIN_EXE_{name}"), path);
        }
        Ok(())
    }

    /// Folders of shared libraries that tests link: those of the build and of the
    /// toolchain, before those of the environment.
    fn library_path(&self) -> Result<std::ffi::OsString> {
        let built = self.path.ancestors().skip(1).take(2).map(Path::to_owned);
        let given = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
        let given = std::env::split_paths(&given).collect::<Vec<_>>();
        let all = built.chain([toolchain_libraries()?]).chain(given);
        std::env::join_paths(all).context("LD_LIBRARY_PATH of the tests")
    }

    /// Divides its tests into those of one process each.
    pub fn groups(&self) -> Result<Vec<TestGroup>> {
        let group = |(name, tests)| TestGroup {
            program: self.clone(),
            name,
            tests,
        };
        if !self.runs_by_module() {
            return Ok(vec![group((self.target.clone(), Vec::new()))]);
        }
        let mut command = Command::new(&self.path);
        self.prepare(command.args(["--list", "--format=terse"]))?;
        let output = command.stderr(Stdio::inherit()).output();
        let output = output.with_context(|| format!("list tests of {}", self.path.display()))?;
        if !output.status.success() {
            bail!("{}: --list: {}", self.path.display(), output.status);
        }
        let modules = modules(&String::from_utf8_lossy(&output.stdout));
        Ok(modules.into_iter().map(group).collect())
    }
}

impl TestGroup {
    /// Package and module, as results name them.
    pub fn title(&self) -> String {
        match self.program.kind {
            Kind::Library | Kind::Binary => format!("{} (unit tests)", self.name),
            Kind::Integration => format!("{} {}", self.program.package, self.name),
        }
    }

    /// Cargo's command that runs its ignored tests.
    pub fn ignored_command(&self) -> String {
        let TestProgram {
            package, target, ..
        } = &self.program;
        let features = match package.as_str() {
            "pteros-cli" => " --features full",
            _ => "",
        };
        let start = format!("cargo test -p {package}{features}");
        match self.program.kind {
            Kind::Library => format!("{start} --lib -- --ignored"),
            Kind::Binary => format!("{start} --bin {target} -- --ignored"),
            Kind::Integration if self.program.runs_by_module() => {
                format!("{start} --test {target} {}:: -- --ignored", self.name)
            }
            Kind::Integration => format!("{start} --test {target} -- --ignored"),
        }
    }
}

/// The tests of each top-level module in the output of `--list --format=terse`. A test
/// outside modules is one of its own.
fn modules(list: &str) -> BTreeMap<String, Vec<String>> {
    let mut modules: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for test in list.lines().filter_map(|line| line.strip_suffix(": test")) {
        let module = test.split("::").next().unwrap_or(test);
        modules
            .entry(module.to_owned())
            .or_default()
            .push(test.to_owned());
    }
    modules
}

/// Cargo, the one that runs this task if any does.
pub fn cargo_program() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".into())
}

/// The folder of the toolchain's shared libraries. Asks `rustc` once.
fn toolchain_libraries() -> Result<PathBuf> {
    static FOLDER: std::sync::OnceLock<Option<PathBuf>> = std::sync::OnceLock::new();
    let ask = || {
        let mut rustc = Command::new("rustc");
        let output = rustc.args(["--print", "target-libdir"]).current_dir(root());
        let text = String::from_utf8(output.output().ok()?.stdout).ok()?;
        Some(PathBuf::from(text.trim()))
    };
    let folder = FOLDER.get_or_init(ask).clone();
    folder.context("rustc --print target-libdir failed")
}

/// Builds the test programs that cargo selects by `arguments`, with progress.
///
/// # Errors
/// Cargo could not be run, or the build failed.
pub fn build(arguments: &[&str]) -> Result<Vec<TestProgram>> {
    // Another task may build in this checkout at the same time.
    let file = format!("target/test-programs-{}.json", std::process::id());
    let file = root().join(file);
    let folder = file.parent().unwrap_or(&file);
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let output = File::create(&file).with_context(|| file.display().to_string())?;
    let mut cargo = Command::new(cargo_program());
    cargo
        .args(["test", "--no-run"])
        .arg("--message-format=json-render-diagnostics")
        .args(arguments)
        .current_dir(root())
        .stdout(output);
    let status = progress::run_build(&mut cargo).context("run cargo")?;
    if !status.success() {
        bail!("cargo test --no-run {} failed", arguments.join(" "));
    }
    let messages = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    std::fs::remove_file(&file).with_context(|| file.display().to_string())?;
    Ok(programs(&messages))
}

/// The programs with tests in cargo's messages.
pub fn programs(messages: &str) -> Vec<TestProgram> {
    let mut programs = Vec::new();
    let mut binaries: BTreeMap<PathBuf, Vec<(String, PathBuf)>> = BTreeMap::new();
    for message in messages.lines().filter(|line| line.starts_with('{')) {
        let Ok(message) = serde_json::from_str(message) else {
            continue;
        };
        if let Some(program) = program(&message) {
            programs.push(program);
        } else if let Some((folder, binary)) = binary(&message) {
            binaries.entry(folder).or_default().push(binary);
        }
    }
    for program in &mut programs {
        program.binaries = binaries.get(&program.folder).cloned().unwrap_or_default();
    }
    programs
}

/// The package's folder, name and path of a program without tests.
fn binary(message: &Value) -> Option<(PathBuf, (String, PathBuf))> {
    let path = message["executable"].as_str()?;
    let target = &message["target"];
    (target["kind"][0] == "bin").then_some(())?;
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?;
    let name = target["name"].as_str()?.to_owned();
    Some((folder.to_owned(), (name, path.into())))
}

/// The program in a message of cargo about one that is built, if it has tests.
fn program(message: &Value) -> Option<TestProgram> {
    message["profile"]["test"].as_bool().filter(|is| *is)?;
    let manifest = Path::new(message["manifest_path"].as_str()?);
    let kind = match message["target"]["kind"][0].as_str()? {
        "test" => Kind::Integration,
        "bin" => Kind::Binary,
        _ => Kind::Library,
    };
    Some(TestProgram {
        package: package(message["package_id"].as_str()?)?.to_owned(),
        target: message["target"]["name"].as_str()?.to_owned(),
        kind,
        path: message["executable"].as_str()?.into(),
        folder: manifest.parent()?.to_owned(),
        binaries: Vec::new(),
    })
}

/// The name in cargo's `path+file:///a/b#name@0.1.0`, or `path+file:///a/name#0.1.0`.
fn package(id: &str) -> Option<&str> {
    let (url, rest) = id.rsplit_once('#')?;
    match rest.split_once('@') {
        Some((name, _)) => Some(name),
        None => url.rsplit('/').next(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_read_from_cargos_messages() {
        let message = |kind: &str, name: &str, test: bool| {
            let message = serde_json::json!({
                "reason": "compiler-artifact",
                "package_id": "path+file:///p/crates/bag#pteros-bag@0.1.0",
                "manifest_path": "/p/crates/bag/Cargo.toml",
                "target": {"kind": [kind], "name": name},
                "profile": {"test": test},
                "executable": format!("/p/target/debug/{name}"),
            });
            format!("{message}\n")
        };
        let text = message("test", TESTSUITE, true)
            + "   Compiling a\n"
            + &message("bin", "bag", false)
            + &message("bin", "bag", true);
        let all = programs(&text);
        assert_eq!(all.len(), 2);
        assert_eq!(all[1].kind, Kind::Binary);
        let found = &all[0];
        let binary = ("bag".to_owned(), PathBuf::from("/p/target/debug/bag"));
        assert_eq!(found.binaries, [binary]);
        assert_eq!(found.package, "pteros-bag");
        assert_eq!(found.folder, Path::new("/p/crates/bag"));
        assert!(found.runs_by_module());
        assert_eq!(package("path+file:///p/examples/tour#0.1.0"), Some("tour"));
    }

    #[test]
    fn a_module_has_the_tests_below_its_name() {
        let list = "a::one: test\nab::one: test\na::part::two: test\nalone: test\n\n4 tests, 0 benchmarks\n";
        let found = modules(list);
        assert_eq!(found["a"], ["a::one", "a::part::two"]);
        assert_eq!(found["ab"], ["ab::one"]);
        assert_eq!(found["alone"], ["alone"]);
        assert_eq!(found.len(), 3);
    }

    #[test]
    fn ignored_tests_name_the_command_that_runs_them() {
        let group = |target: &str, kind| TestGroup {
            program: TestProgram {
                package: "pteros-cli".into(),
                target: target.into(),
                kind,
                path: PathBuf::new(),
                folder: PathBuf::new(),
                binaries: Vec::new(),
            },
            name: "packages".into(),
            tests: Vec::new(),
        };
        let start = "cargo test -p pteros-cli --features full";
        assert_eq!(
            group(TESTSUITE, Kind::Integration).ignored_command(),
            format!("{start} --test testsuite packages:: -- --ignored")
        );
        assert_eq!(
            group("pteros_cli", Kind::Library).ignored_command(),
            format!("{start} --lib -- --ignored")
        );
    }
}
