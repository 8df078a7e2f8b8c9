//! `cargo xtask ros2 --wheel [--only PART] [SUITE …]`: ROS 2's own Python suites on the
//! packages of the Python wheel.
//!
//! `PTEROS_ROS2_SOURCES` names a folder with ROS 2's sources, such as the `src` of a
//! workspace. A suite is the folder `test` of a package in it. The wheel's packages come
//! first on `PYTHONPATH`. No ROS 2 is needed.
//!
//! The suite `programs` runs the programs of ros2/demos and ros2/examples, with partners
//! on the rclpy of a ROS 2 (`programs`).

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use super::bench::build_package;
use super::exceptions::{Exceptions, WHEEL_FILE};
use super::judgement::judge;
use super::programs::{self, Programs};
use super::pytest::Pytest;
use super::sources::{DEPTH_MAX, SOURCES, find_package, sources};
use super::wheel_programs::write_prefix;
use crate::counts::Counts;
use crate::namespace;
use crate::peers::target_folder;
use crate::wheel;

/// The packages whose tests run, and the suite of programs.
pub const SUITES: [&str; 13] = [
    "rclpy",
    "rosidl_runtime_py",
    "tf2_ros_py",
    "tf2_py",
    "tf2_sensor_msgs",
    "sensor_msgs_py",
    "message_filters",
    "ament_index_python",
    "launch",
    "launch_xml",
    "launch_yaml",
    "test_launch_ros",
    programs::SUITE,
];
/// The suite that starts programs.
const WITH_PROGRAMS: &str = "test_launch_ros";
/// A package whose programs `test_launch_ros` starts.
const PROGRAMS: &str = "demo_nodes_py";
/// The Python that runs the tests.
const PYTHON: &str = "python3";
/// Imports of the modules that the tests need beside the wheel.
const IMPORTS: &str = "import lark, numpy, pytest, yaml";
/// A package that the tests of `launch` import, if the sources have it. pip's copy would
/// be found by the tests of `ament_index_python`.
const FROM_SOURCES: &str = "osrf_pycommon";
/// Python modules in place of those that only a build of ROS 2 makes. They are a loader of
/// extensions on Windows, and the test's own build of the extension.
const STAND_INS: [(&str, &str); 2] = [
    (
        "rpyutils.py",
        "from contextlib import nullcontext\n\n\n\
         def add_dll_directories_from_env(name):\n    return nullcontext()\n",
    ),
    ("test_tf2_py/_tf2_py.py", "from tf2_py import *  # noqa\n"),
];

/// Where everything is.
struct Bench {
    sources: PathBuf,
    /// The unpacked wheel.
    packages: PathBuf,
    /// Copies of the tests, and logs.
    folder: PathBuf,
    /// Folders of Python modules behind the wheel.
    modules: Vec<PathBuf>,
}

/// Whether the sources are named.
pub fn is_found() -> bool {
    sources().is_some()
}

/// Runs suites. `only` is a part of the names of files.
pub fn run(suites: &[&str], only: &str) -> Result<Counts> {
    let bench = Bench::new()?;
    let exceptions = Exceptions::read(WHEEL_FILE)?;
    let mut total = Counts::default();
    for suite in suites {
        let began = Instant::now();
        let judged = match bench.run_suite(suite, only, &exceptions) {
            Ok(runs) => judge(suite, &runs, &exceptions),
            Err(why) => {
                println!("{suite}: left out: {why:#}");
                total.skipped += 1;
                continue;
            }
        };
        println!("{} ({} s)", judged.line(suite), began.elapsed().as_secs());
        judged.notes.iter().for_each(|note| println!("  {note}"));
        total.passed += judged.passed + judged.expected;
        total.failed += judged.failed;
        total.skipped += judged.skipped;
    }
    ensure!(
        total.passed + total.failed > 0,
        "every suite was left out, for the reasons above"
    );
    Ok(total)
}

impl Bench {
    /// Builds the wheel with the development profile and unpacks it.
    fn new() -> Result<Self> {
        let Some(sources) = sources() else {
            bail!("no sources of ROS 2: name the folder `src` of a workspace in {SOURCES}");
        };
        ensure!(
            sources.is_dir(),
            "{SOURCES}={}: no such folder; name the folder `src` of a workspace",
            sources.display()
        );
        let built = build_package("pteros-python")?;
        wheel::unpack(&built)?;
        let folder = target_folder()?.join("ros2-wheel-suites");
        if folder.exists() {
            fs::remove_dir_all(&folder).context("remove the logs of the last run")?;
        }
        fs::create_dir_all(&folder)?;
        let bench = Self {
            modules: vec![folder.join("stand-ins")],
            sources,
            packages: built.join("python-packages"),
            folder,
        };
        bench.with_modules()
    }

    /// Checks what Python has, and adds the modules that it lacks.
    fn with_modules(mut self) -> Result<Self> {
        let mut check = Command::new(PYTHON);
        // The suites do not have the folders of a sourced ROS 2, either.
        let output = check
            .env_remove("PYTHONPATH")
            .args(["-c", IMPORTS])
            .output();
        ensure!(
            output.is_ok_and(|output| output.status.success()),
            "{PYTHON} cannot `{IMPORTS}`: pip install lark numpy pytest pyyaml"
        );
        for (path, text) in STAND_INS {
            let path = self.folder.join("stand-ins").join(path);
            fs::create_dir_all(path.parent().context("a stand-in has a folder")?)?;
            fs::write(path, text)?;
        }
        let programs = find_package(&self.sources, PROGRAMS, DEPTH_MAX);
        let found = find_package(&self.sources, "launch_ros", DEPTH_MAX);
        if let (Some(package), Some(launch_ros)) = (&programs, found) {
            write_prefix(&self.prefix(), package, &launch_ros)?;
        }
        let imported = find_package(&self.sources, FROM_SOURCES, DEPTH_MAX);
        self.modules.extend(imported.into_iter().chain(programs));
        self.add_fixtures()?;
        Ok(self)
    }

    /// Copies the Python modules of `test_msgs`, which make messages for tests. A wheel
    /// has the interfaces alone.
    fn add_fixtures(&self) -> Result<()> {
        let Some(package) = find_package(&self.sources, "test_msgs", DEPTH_MAX) else {
            return Ok(());
        };
        let Ok(modules) = fs::read_dir(package.join("src/test_msgs")) else {
            return Ok(());
        };
        for module in modules {
            let module = module?;
            let name = module.file_name();
            if name != "__init__.py" && module.file_type()?.is_file() {
                fs::copy(module.path(), self.packages.join("test_msgs").join(name))?;
            }
        }
        Ok(())
    }

    fn prefix(&self) -> PathBuf {
        self.folder.join("prefix")
    }

    fn run_suite(
        &self,
        suite: &str,
        only: &str,
        exceptions: &Exceptions,
    ) -> Result<Vec<super::case::ProgramRun>> {
        if suite == programs::SUITE {
            let programs = Programs {
                sources: &self.sources,
                packages: &self.packages,
                python: PYTHON,
                folder: self.folder.join(suite),
                exceptions,
            };
            return programs.run(only);
        }
        let Some(package) = find_package(&self.sources, suite, DEPTH_MAX) else {
            bail!("{} has no package of that name", self.sources.display());
        };
        let folder = self.folder.join(suite);
        let pytest = Pytest {
            suite,
            python: PYTHON,
            exceptions,
            folder: folder.clone(),
            command: &|words| self.command(suite, &folder, words),
            log: &|program| {
                let program = program.replace('/', ".");
                self.folder.join(format!("{suite}.{program}.log"))
            },
        };
        pytest.run(&package.join("test"), only)
    }

    fn command(&self, suite: &str, folder: &Path, words: &[&str]) -> Result<Command> {
        let (program, arguments) = words.split_first().context("no program")?;
        let mut command = namespace::command_where_available(true, program)?;
        let mut paths = vec![self.packages.clone(), folder.join("test")];
        paths.extend(self.modules.iter().cloned());
        if suite == WITH_PROGRAMS {
            command.env("AMENT_PREFIX_PATH", self.prefix());
        } else {
            command.env_remove("AMENT_PREFIX_PATH");
        }
        if suite == "launch" {
            // ROS 2's `launch` imports it, and the tests use what it imported.
            command.env("PYTEST_PLUGINS", format!("{FROM_SOURCES}.process_utils"));
        }
        let paths: OsString = std::env::join_paths(paths).context("PYTHONPATH")?;
        command
            .args(arguments)
            .env("PYTHONPATH", paths)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            // Those of a ROS 2 import its packages before the wheel's.
            .env("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
            .env("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
            .env("ROS_DOMAIN_ID", "77")
            .env("ROS_HOME", self.folder.join("home"))
            .env_remove("ROS_STATIC_PEERS")
            .env_remove("ROS_LOCALHOST_ONLY");
        Ok(command)
    }
}
