//! The suite `programs` of `cargo xtask ros2 --wheel`: every Python program of ros2/demos
//! and ros2/examples, unchanged, on the wheel.
//!
//! Two programs talk in a private network (`pair`), one on the wheel and one on the rclpy
//! of a ROS 2, over each of its middlewares, and then the other way round. `table` names
//! them, and the lines that must appear. An entry point of the sources that the table
//! does not have fails, and so does one of the table that the sources do not have.

mod environment;
mod pair;
mod table;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use pteros_peers::ros2::{Installation, NOT_FOUND};

use self::environment::{Environment, WHEEL};
use self::table::{Code, PAIRS, Pair};
use super::bench::write_log;
use super::case::{Case, CaseStatus, ProgramRun};
use super::exceptions::Exceptions;
use super::sources::{DEPTH_MAX, find_package};
use crate::limited_command::run_limited;
use crate::namespace;

use self::pair::INSIDE_TASK;
pub use self::pair::run_inside;

/// The name of the suite.
pub const SUITE: &str = "programs";
/// The middlewares of the partners.
const MIDDLEWARES: [&str; 2] = ["rmw_cyclonedds_cpp", "rmw_fastrtps_cpp"];
/// A package of each repository, and the folders from it up to that of the repository.
const REPOSITORIES: [(&str, usize); 2] = [("demo_nodes_py", 1), ("examples_rclpy_executors", 2)];
/// Packages of plain Python that programs import, and that a ROS 2 may lack.
const IMPORTED: [&str; 1] = ["sensor_msgs_py"];
/// A package with a file that a program reads, and the file in the sources.
const WITH_FILES: (&str, &str) = ("demo_nodes_py", "demo_nodes_py/parameters/params.yaml");
/// The program whose cases are the entry points.
const ENTRY_POINTS: &str = "entry-points";
/// Prints the entry points of packages.
const LISTER: &str = include_str!("entry_points.py");
const PARTNERS: &str = include_str!("partners.py");
/// The script of an entry point. A shell may have started this with SIGINT
/// ignored, and a terminal never does.
const SCRIPT: &str = "import signal\nimport sys\n\nfrom MODULE import FUNCTION\n\n\
                      signal.signal(signal.SIGINT, signal.default_int_handler)\n\
                      sys.exit(FUNCTION())\n";
/// Lets Python read the `.pth` file of the wheel, as it does of an installed one.
const SITE: &str = "import site\n\nsite.addsitedir('PACKAGES')\n";
/// The longest that a pair may take, beyond its own deadlines.
const PAIR_MAX: Duration = Duration::from_secs(180);
/// The longest that a listing may take.
const LISTING_MAX: Duration = Duration::from_secs(60);
/// Pairs at once for each processor. Programs spend most of their time in timers of half
/// a second and more.
const PAIRS_PER_PROCESSOR: usize = 2;

/// The needs of the suite.
pub struct Programs<'a> {
    /// The folder of ROS 2's sources.
    pub sources: &'a Path,
    /// The unpacked wheel.
    pub packages: &'a Path,
    /// The Python of the wheel.
    pub python: &'a str,
    /// Scripts, environments and logs.
    pub folder: PathBuf,
    pub exceptions: &'a Exceptions,
}

/// An entry point of a `setup.py`.
struct EntryPoint {
    package: String,
    name: String,
    module: String,
    function: String,
}

/// A run of a pair.
struct Job {
    pair: &'static Pair,
    case: String,
    /// Names of the environments of the first and the second program.
    environments: Vec<String>,
    /// Why it does not run.
    left_out: Option<String>,
}

/// A failed job runs twice.
#[derive(Clone, Copy)]
enum Attempt {
    First,
    Second,
}

/// A job's index, its status, and whether it passed when it was repeated.
type JobResult = (usize, Result<(CaseStatus, bool)>);

impl Programs<'_> {
    /// Runs the pairs whose names have the part `only`, or all of them if the suite's
    /// name has it.
    ///
    /// # Errors
    /// No ROS 2 or no sources of the programs were found, or there are no private networks.
    pub fn run(&self, only: &str) -> Result<Vec<ProgramRun>> {
        let Some(installation) = Installation::find()? else {
            bail!(NOT_FOUND);
        };
        // Pairs that run at once use the same topics.
        namespace::available().map_err(|why| anyhow!("no private networks: {why}"))?;
        fs::create_dir_all(&self.folder)?;
        let packages = self.packages_of_programs()?;
        let entry_points = self.entry_points(&packages)?;
        self.write_scripts(&entry_points)?;
        let found = self.write_environments(&installation, &packages)?;
        let is_wanted = |name: &str| SUITE.contains(only) || name.contains(only);
        let mut runs = Vec::new();
        if is_wanted(ENTRY_POINTS) {
            runs.push(self.compare(&entry_points)?);
        }
        let pairs = PAIRS.iter().filter(|pair| is_wanted(pair.name));
        let jobs: Vec<Job> = pairs
            .flat_map(|pair| jobs(pair, &found, &installation))
            .collect();
        ensure!(
            !jobs.is_empty() || !runs.is_empty(),
            "no pair of programs has {only:?} in its name"
        );
        runs.extend(self.run_jobs(&jobs)?);
        Ok(runs)
    }

    /// Folders with a `setup.py` below those of the repositories.
    fn packages_of_programs(&self) -> Result<Vec<PathBuf>> {
        let mut packages = Vec::new();
        for (package, levels) in REPOSITORIES {
            let Some(folder) = find_package(self.sources, package, DEPTH_MAX) else {
                bail!("{} has no package {package}", self.sources.display());
            };
            let repository = folder.ancestors().nth(levels).context("a repository")?;
            find_setups(repository, &mut packages)?;
        }
        packages.sort();
        Ok(packages)
    }

    fn entry_points(&self, packages: &[PathBuf]) -> Result<Vec<EntryPoint>> {
        let mut command = Command::new(self.python);
        command.args(["-B", "-c", LISTER]).args(packages);
        let output = run_limited(&mut command, LISTING_MAX, false)?;
        ensure!(output.succeeded, "entry_points.py: {}", output.text.trim());
        parse_entry_points(&output.text)
    }

    /// Writes a script for each entry point, as pip does, and the partners.
    fn write_scripts(&self, entry_points: &[EntryPoint]) -> Result<()> {
        let bin = self.folder.join("bin");
        for point in entry_points {
            let folder = bin.join(&point.package);
            fs::create_dir_all(&folder)?;
            let script = SCRIPT.replace("MODULE", &point.module);
            let script = script.replace("FUNCTION", &point.function);
            fs::write(folder.join(&point.name), script)?;
        }
        fs::write(bin.join("partners"), PARTNERS)?;
        Ok(())
    }

    /// Writes the environments. Returns the middlewares that the installation has.
    fn write_environments(
        &self,
        installation: &Installation,
        packages: &[PathBuf],
    ) -> Result<Vec<&'static str>> {
        let (package, file) = WITH_FILES;
        let prefix = self.folder.join("prefix");
        let index = prefix.join("share/ament_index/resource_index/packages");
        let share = prefix.join("share").join(package);
        fs::create_dir_all(&index)?;
        fs::create_dir_all(&share)?;
        fs::write(index.join(package), "")?;
        let source = find_package(self.sources, package, DEPTH_MAX).context(package)?;
        let name = Path::new(file).file_name().context(file)?;
        fs::copy(source.join(file), share.join(name)).context(file)?;

        let imported = IMPORTED.iter();
        let imported = imported.filter_map(|name| find_package(self.sources, name, DEPTH_MAX));
        let modules: Vec<PathBuf> = packages.iter().cloned().chain(imported).collect();
        let mut found = Vec::new();
        let site = self.folder.join("site");
        fs::create_dir_all(&site)?;
        let customization = SITE.replace("PACKAGES", &self.packages.to_string_lossy());
        fs::write(site.join("sitecustomize.py"), customization)?;
        let behind: Vec<PathBuf> = packages.iter().cloned().chain([site]).collect();
        let mut all = vec![Environment::of_wheel(self.python, self.packages, &behind)?];
        for rmw in MIDDLEWARES {
            if let Some(environment) = Environment::of_ros2(installation, rmw, &modules)? {
                found.push(rmw);
                all.push(environment);
            }
        }
        ensure!(
            !found.is_empty(),
            "{} has none of the middlewares {}",
            installation.prefix().display(),
            MIDDLEWARES.join(", ")
        );
        for environment in &mut all {
            environment.add_prefix(&prefix)?;
            for pair in PAIRS {
                // The wheel reads its definition files.
                if let Some(name) = pair.interfaces
                    && let Some(folder) = find_package(self.sources, name, DEPTH_MAX)
                    && environment.is_wheel()
                {
                    environment.set("PTEROS_INTERFACE_PATH", &folder);
                }
            }
            environment.write(&self.folder)?;
        }
        Ok(found)
    }

    /// A case for each entry point of the sources and of the table.
    fn compare(&self, entry_points: &[EntryPoint]) -> Result<ProgramRun> {
        let found: BTreeSet<String> = entry_points
            .iter()
            .map(|point| format!("{}.{}", point.package, point.name))
            .collect();
        let programs = PAIRS.iter().flat_map(Pair::programs);
        let known: BTreeSet<String> = programs
            .filter_map(|program| match program.code {
                Code::EntryPoint { package, name } => Some(format!("{package}.{name}")),
                Code::Partner(_) => None,
            })
            .collect();
        let mut text = String::new();
        let mut cases = Vec::new();
        for name in found.union(&known) {
            let why = match (found.contains(name), known.contains(name)) {
                (true, true) => None,
                (true, false) => Some("the table has no pair with it"),
                (false, _) => Some("the sources have no such entry point"),
            };
            let status = match why {
                None => CaseStatus::Passed,
                Some(why) => {
                    text += &format!("{name}: {why}\n");
                    CaseStatus::Failed
                }
            };
            cases.push(Case::new(name, status));
        }
        Ok(ProgramRun {
            program: ENTRY_POINTS.to_owned(),
            cases,
            was_repeated: false,
            log: write_log(&self.folder.join("entry-points.log"), &text)?,
        })
    }

    /// Runs the jobs, several at once. The cases of a pair are one program.
    fn run_jobs(&self, jobs: &[Job]) -> Result<Vec<ProgramRun>> {
        let next = AtomicUsize::new(0);
        let results: Mutex<Vec<JobResult>> = Mutex::default();
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            for _ in 0..processors * PAIRS_PER_PROCESSOR {
                scope.spawn(|| {
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        let Some(job) = jobs.get(index) else { break };
                        let result = self.run_job(job);
                        let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
                        results.push((index, result));
                    }
                });
            }
        });
        let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
        results.sort_by_key(|(index, _)| *index);
        let mut runs: Vec<ProgramRun> = Vec::new();
        for (index, result) in results {
            let job = &jobs[index];
            let (status, was_repeated) = result?;
            if runs.last().is_none_or(|run| run.program != job.pair.name) {
                runs.push(ProgramRun {
                    program: job.pair.name.to_owned(),
                    cases: Vec::new(),
                    was_repeated: false,
                    log: self.folder.join(format!("{}.*.log", job.pair.name)),
                });
            }
            if let Some(run) = runs.last_mut() {
                run.cases.push(Case::new(&job.case, status));
                run.was_repeated |= was_repeated;
            }
        }
        Ok(runs)
    }

    /// Runs a pair, and once more if it fails without an exception. Returns whether the
    /// second run passed.
    fn run_job(&self, job: &Job) -> Result<(CaseStatus, bool)> {
        if let Some(why) = &job.left_out {
            println!("  left out: {} {}: {why}", job.pair.name, job.case);
            return Ok((CaseStatus::Skipped, false));
        }
        let status = self.run_once(job, Attempt::First)?;
        let reason = self.exceptions.reason(SUITE, job.pair.name, &job.case);
        if status == CaseStatus::Passed || reason.is_some() {
            return Ok((status, false));
        }
        let status = self.run_once(job, Attempt::Second)?;
        Ok((status, status == CaseStatus::Passed))
    }

    fn run_once(&self, job: &Job, attempt: Attempt) -> Result<CaseStatus> {
        let inside = std::env::current_exe().context("find this program's own path")?;
        let mut command = namespace::command(true, &inside.to_string_lossy())?;
        command
            .arg(INSIDE_TASK)
            .arg(&self.folder)
            .arg(job.pair.name)
            .args(&job.environments)
            .env("PYTHONUNBUFFERED", "1")
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
            .env("ROS_DOMAIN_ID", "77")
            .env("ROS_HOME", self.folder.join("home"))
            .env_remove("ROS_STATIC_PEERS")
            .env_remove("ROS_LOCALHOST_ONLY");
        let output = run_limited(&mut command, PAIR_MAX, false)?;
        self.write_attempt(job, attempt, &output.text)?;
        Ok(if output.succeeded {
            CaseStatus::Passed
        } else {
            CaseStatus::Failed
        })
    }

    /// Writes the log of a run. The logs of both runs stay.
    fn write_attempt(&self, job: &Job, attempt: Attempt, text: &str) -> Result<()> {
        let log = |suffix: &str| {
            let name = format!("{}.{}{suffix}.log", job.pair.name, job.case);
            self.folder.join(name)
        };
        let (first, second) = (log(""), log(".second"));
        match attempt {
            Attempt::First => {
                // One of an earlier call of the command.
                let _ = fs::remove_file(second);
                write_log(&first, text)?;
            }
            Attempt::Second => {
                write_log(&second, text)?;
            }
        }
        Ok(())
    }
}

/// The runs of a pair: each program on the wheel, over each middleware of the other.
fn jobs(pair: &'static Pair, found: &[&str], installation: &Installation) -> Vec<Job> {
    let job = |case: String, environments: &[&str], left_out| Job {
        pair,
        case,
        environments: environments.iter().map(|name| (*name).to_owned()).collect(),
        left_out,
    };
    if pair.second.is_none() {
        return vec![job("alone".into(), &[WHEEL], None)];
    }
    let lacking = pair.interfaces.filter(|package| {
        let share = installation.prefix().join("share").join(package);
        !share.join("package.xml").is_file()
    });
    let mut jobs = Vec::new();
    if lacking.is_some() {
        jobs.push(job("both".into(), &[WHEEL, WHEEL], None));
    }
    for rmw in MIDDLEWARES {
        let left_out = match lacking {
            _ if !found.contains(&rmw) => Some(format!("the installation has no {rmw}")),
            Some(package) => Some(format!("the installation has no {package}")),
            None => None,
        };
        let first = format!("first.{rmw}");
        jobs.push(job(first, &[WHEEL, rmw], left_out.clone()));
        jobs.push(job(format!("second.{rmw}"), &[rmw, WHEEL], left_out));
    }
    jobs
}

/// Appends the folders with a `setup.py`.
fn find_setups(folder: &Path, packages: &mut Vec<PathBuf>) -> Result<()> {
    let list = fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))?;
    for entry in list {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            find_setups(&entry.path(), packages)?;
        } else if entry.file_name() == "setup.py" {
            packages.push(folder.to_owned());
        }
    }
    Ok(())
}

fn parse_entry_points(text: &str) -> Result<Vec<EntryPoint>> {
    let parse = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [package, name, module, function] = words.as_slice() else {
            bail!("{line:?} is no entry point");
        };
        Ok(EntryPoint {
            package: (*package).to_owned(),
            name: (*name).to_owned(),
            module: (*module).to_owned(),
            function: (*function).to_owned(),
        })
    };
    text.lines().map(parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pteros_test_support::folder::Folder;

    #[test]
    fn entry_points_are_four_words() {
        let points = parse_entry_points("demo talk demo.topics.talk main\n").unwrap();
        assert_eq!(
            (&*points[0].name, &*points[0].module),
            ("talk", "demo.topics.talk")
        );
        assert!(parse_entry_points("demo talk demo.topics.talk\n").is_err());
    }

    #[test]
    fn the_log_of_the_second_run_leaves_that_of_the_first() {
        let folder = Folder::new("attempts");
        let programs = programs_in(&folder);
        let job = Job {
            pair: &PAIRS[0],
            case: "alone".into(),
            environments: Vec::new(),
            left_out: None,
        };
        let logs = || {
            let mut texts: Vec<String> = fs::read_dir(&folder)
                .unwrap()
                .map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap())
                .collect();
            texts.sort();
            texts
        };
        let write = |attempt, text| programs.write_attempt(&job, attempt, text).unwrap();
        write(Attempt::First, "1");
        write(Attempt::Second, "2");
        assert_eq!(logs(), ["1", "2"]);
        write(Attempt::First, "3");
        assert_eq!(logs(), ["3"]);
    }

    fn programs_in(folder: &Path) -> Programs<'_> {
        static NO_EXCEPTIONS: std::sync::LazyLock<Exceptions> =
            std::sync::LazyLock::new(Exceptions::default);
        Programs {
            sources: Path::new("/"),
            packages: Path::new("/"),
            python: "python3",
            folder: folder.to_owned(),
            exceptions: &NO_EXCEPTIONS,
        }
    }

    #[test]
    fn an_entry_point_that_only_the_table_or_only_the_sources_have_fails() {
        let folder = Folder::new("entries");
        let programs = programs_in(&folder);
        let found = "demo_nodes_py talker a main\ndemo_nodes_py new b main\n";
        let run = programs
            .compare(&parse_entry_points(found).unwrap())
            .unwrap();
        let has = |name, status| run.cases.contains(&Case::new(name, status));
        assert!(has("demo_nodes_py.talker", CaseStatus::Passed));
        assert!(has("demo_nodes_py.new", CaseStatus::Failed));
        assert!(has("demo_nodes_py.listener", CaseStatus::Failed));
    }
}
