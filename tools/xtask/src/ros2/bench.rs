//! A run's environment: installation, middleware, folders, expected failures.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use pteros_peers::ros2::Installation;

use super::case::{CaseStatus, ProgramRun};
use super::exceptions::{Exceptions, PLUG_IN_FILE};
use crate::checkout::root;
use crate::namespace;
use crate::peers::target_folder;
use crate::plug_ins::{INSTALLED, PLUG_INS};

/// The middleware under test, which alone has exceptions.
pub const PLUG_IN: &str = "rmw_pteros_cpp";
/// The plug-in's variable for loans and content filters.
pub const OPTIONAL_FEATURES: &str = "PTEROS_RMW_OPTIONAL_FEATURES";

/// Where the plug-in comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PlugIn {
    /// It is built alone, as users have it.
    ToBuild,
    /// The build folder has it. Built alone it has other features than with the tests of
    /// the whole workspace, and all that it uses would be compiled again.
    Built,
}

/// Environment and folders of a run.
pub struct Bench {
    pub installation: Installation,
    /// The middleware.
    pub rmw: String,
    /// The value of [`OPTIONAL_FEATURES`].
    pub optional_features: &'static str,
    /// A folder with the plug-in alone, for `LD_LIBRARY_PATH`.
    plug_in_folder: Option<PathBuf>,
    /// Logs, and a home for ROS's own files.
    pub folder: PathBuf,
    pub exceptions: Exceptions,
}

impl Bench {
    /// Builds the plug-in, if it is the one under test. Runs for different purposes
    /// have different folders, so that they can go on side by side.
    pub fn new(
        installation: Installation,
        rmw: &str,
        purpose: &str,
        plug_in: PlugIn,
    ) -> Result<Self> {
        let folder = target_folder()?.join(purpose).join(rmw);
        if folder.exists() {
            fs::remove_dir_all(&folder).context("remove the logs of the last run")?;
        }
        fs::create_dir_all(&folder)?;
        let plug_in_folder = (rmw == PLUG_IN).then(|| folder.join("lib"));
        if let Some(lib) = &plug_in_folder {
            fs::create_dir_all(lib)?;
            let built = plug_in_library(&installation.rmw_abi()?, plug_in)?;
            fs::copy(&built, lib.join(INSTALLED)).context("copy the plug-in")?;
        }
        Ok(Self {
            installation,
            rmw: rmw.to_owned(),
            optional_features: "on",
            plug_in_folder,
            folder,
            exceptions: if rmw == PLUG_IN {
                Exceptions::read(PLUG_IN_FILE)?
            } else {
                Exceptions::default()
            },
        })
    }

    /// A shell command line with the installation sourced and the middleware chosen.
    /// The words are its arguments, and replace the shell.
    pub fn command(&self, words: &[&str], environment: &[(String, String)]) -> Result<Command> {
        let setup = self.installation.setup();
        let mut script = String::new();
        if let Some(setup) = &setup {
            script += &format!(". '{}' > /dev/null\n", setup.display());
        }
        if let Some(lib) = &self.plug_in_folder {
            let lib = lib.display();
            script += &format!("export LD_LIBRARY_PATH='{lib}':\"$LD_LIBRARY_PATH\"\n");
        }
        // `append` of CTest's list puts a folder behind those that are there.
        for (name, value) in environment {
            script += &match name.strip_suffix('+') {
                Some(name) => format!("export {name}=\"${{{name}:+${name}:}}\"'{value}'\n"),
                None => format!("export {name}='{value}'\n"),
            };
        }
        script += "exec \"$@\"\n";
        let mut command = namespace::command_where_available(true, "bash")?;
        command
            .args(["-c", &script, "bash"])
            .args(words)
            .env("RMW_IMPLEMENTATION", &self.rmw)
            .env(OPTIONAL_FEATURES, self.optional_features)
            .env("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
            .env("ROS_DOMAIN_ID", "77")
            .env("ROS_HOME", self.folder.join("home"))
            .env_remove("ROS_STATIC_PEERS")
            .env_remove("ROS_LOCALHOST_ONLY");
        Ok(command)
    }

    /// The log of a program.
    pub fn log(&self, suite: &str, program: &str) -> PathBuf {
        let features = self.optional_features;
        let program = program.replace('/', ".");
        self.folder
            .join(format!("{suite}.{program}.{features}.log"))
    }
}

/// Runs a program, and repeats it once if a case failed unexpectedly: many of them
/// measure time, which a busy machine disturbs.
pub fn run_twice(
    exceptions: &Exceptions,
    suite: &str,
    run_once: impl Fn() -> Result<ProgramRun>,
) -> Result<ProgramRun> {
    let has_failed = |run: &ProgramRun| {
        let mut failed = run
            .cases
            .iter()
            .filter(|case| case.status == CaseStatus::Failed);
        failed.any(|case| {
            let reason = exceptions.reason(suite, &run.program, &case.name);
            reason.is_none()
        })
    };
    let run = run_once()?;
    if !has_failed(&run) {
        return Ok(run);
    }
    let again = run_once()?;
    Ok(ProgramRun {
        was_repeated: !has_failed(&again),
        ..again
    })
}

/// The plug-in of the development profile, for that version of rmw.
fn plug_in_library(rmw_abi: &str, plug_in: PlugIn) -> Result<PathBuf> {
    let found = PLUG_INS.iter().find(|plug_in| plug_in.rmw_abi == rmw_abi);
    let package = found.with_context(|| format!("Pteros has no plug-in for rmw {rmw_abi}"))?;
    let folder = match plug_in {
        PlugIn::ToBuild => build_package(package.package)?,
        PlugIn::Built => debug_folder()?,
    };
    Ok(folder.join(package.library))
}

/// Where the development profile puts what it makes.
fn debug_folder() -> Result<PathBuf> {
    Ok(target_folder()?.join("debug"))
}

/// Builds a package with the development profile, and returns the folder of what it makes.
pub fn build_package(package: &str) -> Result<PathBuf> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--quiet", "-p", package])
        .current_dir(root())
        .status()
        .context("run cargo")?;
    ensure!(status.success(), "{package} was not built ({status})");
    debug_folder()
}

/// Writes a log and returns its path.
pub fn write_log(path: &Path, text: &str) -> Result<PathBuf> {
    fs::write(path, text).with_context(|| format!("write {}", path.display()))?;
    Ok(path.to_owned())
}
