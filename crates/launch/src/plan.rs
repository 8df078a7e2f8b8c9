//! Launch plan: every process, component and timer of a launch file with given
//! arguments. The plan is complete and checked before anything starts.

mod report;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pteros::parameter::ParameterValue;
use pteros_container::ComponentIndex;

use crate::error::SourceLocation;
use crate::packages::Packages;

/// A launch file, its arguments and the environment to read it in.
#[derive(Clone, Debug)]
pub struct LaunchRequest {
    /// The launch file.
    pub file: PathBuf,
    /// `name:=value` pairs of the command line; the last value of a name wins.
    pub arguments: Vec<(String, String)>,
    /// The initial environment.
    pub environment: BTreeMap<String, String>,
    /// Where packages are searched.
    pub packages: Packages,
    /// Where components are searched.
    pub components: ComponentIndex,
    /// The folder of this launch's log files, `$(log_dir)`. Reading the file writes
    /// nothing there.
    pub log_folder: PathBuf,
    /// This host's name, for `$(anon …)`.
    pub host: String,
    /// This process's id, for `$(anon …)`.
    pub process: u32,
    /// The command that runs `cmd="ros2 …"` where PATH has no `ros2`: `pteros`, which
    /// has the same verbs. None reports an error then.
    pub ros2_command: Option<PathBuf>,
}

/// Everything that a launch will do. Nothing has been started yet.
#[derive(Clone, Debug)]
pub struct LaunchPlan {
    /// The launch file.
    pub file: Arc<Path>,
    /// The arguments that the file and its includes declare, in order.
    pub arguments: Vec<LaunchArgument>,
    /// The steps in order. No step waits for the one before.
    pub steps: Vec<PlanStep>,
    /// Notes for the user that are not errors.
    pub notes: Vec<String>,
    /// Python launch files that were left out, and the actions that need a value of
    /// theirs, each with its location. Unless this is empty, the plan is incomplete
    /// and should not run.
    pub left_out: Vec<String>,
    /// All launch files that were read.
    pub files: Vec<PathBuf>,
}

/// A declared argument.
#[derive(Clone, Debug, PartialEq)]
pub struct LaunchArgument {
    /// The word before `:=` on the command line.
    pub name: String,
    /// Its default as written, with unevaluated substitutions.
    pub default: Option<String>,
    /// Text for `--show-args`; `None` if the file has none.
    pub description: Option<String>,
    /// The accepted values; empty accepts any.
    pub choices: Vec<String>,
    /// Its value in this launch; none if it has none.
    pub value: Option<String>,
    /// Where it is declared.
    pub location: SourceLocation,
}

/// One step of a launch.
#[derive(Clone, Debug)]
pub enum PlanStep {
    /// Starts a process.
    Start(Box<ProcessSpec>),
    /// Loads components into a container, one after the other.
    Load(ComponentLoad),
    /// Runs other steps later.
    Timer(LaunchTimer),
    /// Writes a log line.
    Log(LogMessage),
    /// Stops the whole launch.
    Shutdown(Shutdown),
}

/// A process to start.
#[derive(Clone, Debug)]
pub struct ProcessSpec {
    /// Its name in log lines and of its log file: the program's name and a number.
    pub name: String,
    /// Program and arguments.
    pub command: Vec<String>,
    /// Its complete environment.
    pub environment: BTreeMap<String, String>,
    /// Its working folder; none for the launcher's.
    pub working_folder: Option<PathBuf>,
    /// Where its output goes.
    pub output: ProcessOutput,
    /// Whether its output goes to pseudo-terminals instead of pipes.
    pub emulate_tty: bool,
    /// Whether and when it is started again after it ended by itself.
    pub respawn: Option<RespawnPolicy>,
    /// Time between SIGINT and SIGTERM.
    pub sigterm_timeout: Duration,
    /// Time between SIGTERM and SIGKILL.
    pub sigkill_timeout: Duration,
    /// Steps to run when it has ended and is not respawned.
    pub on_exit: Vec<PlanStep>,
    /// The node in it, if the launch file declares one.
    pub node: Option<NodeSpec>,
    /// Files to write before it starts: parameters with evaluated substitutions.
    pub files: Vec<(PathBuf, String)>,
    /// Its position in the launch file.
    pub location: SourceLocation,
}

/// The node in a process.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeSpec {
    /// Its package, if the launch file names one.
    pub package: Option<String>,
    /// Its program's name as written.
    pub executable: String,
    /// Its name, if the launch file gives one.
    pub name: Option<String>,
    /// Its absolute namespace; empty if the launch file gives none.
    pub namespace: String,
    /// The kind of node.
    pub kind: NodeKind,
    /// Full names of managed nodes that must be active before this one is brought
    /// up.
    pub depends_on: Vec<String>,
}

/// Kind of node in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// An ordinary node.
    Plain,
    /// A component container.
    Container,
    /// A managed (lifecycle) node.
    Lifecycle {
        /// Whether it is configured and activated, in the file's order.
        autostart: bool,
    },
}

impl NodeSpec {
    /// The full name, `/ns/name`; none if the launch file gives no name.
    pub fn full_name(&self) -> Option<String> {
        let name = self.name.as_deref()?;
        Some(format!("{}/{name}", self.namespace.trim_end_matches('/')))
    }
}

/// Destinations of the output of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessOutput {
    /// Destinations of standard output.
    pub stdout: OutputDestinations,
    /// Destinations of standard error.
    pub stderr: OutputDestinations,
}

/// Destinations of output lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutputDestinations {
    /// The launcher's own output.
    pub screen: bool,
    /// `launch.log`.
    pub log: bool,
    /// Files of the process: `NAME-stdout.log`, `NAME-stderr.log`, and both in
    /// `NAME.log`.
    pub own_files: bool,
}

/// Whether, when and how often a process is started again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RespawnPolicy {
    /// Delay before each respawn. If it is zero, the delay grows from 0.1 s up to
    /// [`RESPAWN_BACKOFF_MAX`] each time that the process ends within 10 s again.
    pub delay: Duration,
    /// The largest number of respawns; none for any number.
    pub retries_max: Option<u32>,
}

/// The longest respawn delay, unless the launch file gives one.
pub const RESPAWN_BACKOFF_MAX: Duration = Duration::from_secs(30);

/// Components to load into a container.
#[derive(Clone, Debug, PartialEq)]
pub struct ComponentLoad {
    /// The container's full name.
    pub container: String,
    /// The container's process in this launch; none if another launch runs it.
    pub process: Option<String>,
    /// The components, in order.
    pub components: Vec<ComponentSpec>,
    /// Position in the launch file.
    pub location: SourceLocation,
}

/// A component to load.
#[derive(Clone, Debug, PartialEq)]
pub struct ComponentSpec {
    /// The package that installs the component.
    pub package: String,
    /// The registered class, `demo::Talker`.
    pub class: String,
    /// Its node's name; empty keeps the component's default.
    pub name: String,
    /// Its node's namespace; empty keeps the component's default.
    pub namespace: String,
    /// Names and values of the load request.
    pub parameters: Vec<(String, ParameterValue)>,
    /// Its remap rules.
    pub remaps: Vec<String>,
    /// Extra arguments for the container.
    pub extra_arguments: Vec<(String, ParameterValue)>,
    /// Position in the launch file.
    pub location: SourceLocation,
}

/// A timer that runs steps once.
///
/// If the launcher is stopped, the steps run when it continues. There are no missed
/// periods to catch up with.
#[derive(Clone, Debug)]
pub struct LaunchTimer {
    /// Delay after the timer's own step.
    pub period: Duration,
    /// The clock that it uses; `ros_timer` uses ROS time.
    pub clock: TimerClock,
    /// Steps to run then.
    pub steps: Vec<PlanStep>,
    /// Whether a shutdown cancels it. Otherwise the launch ends only after it.
    pub cancel_on_shutdown: bool,
    /// Position in the launch file.
    pub location: SourceLocation,
}

/// The clock by which a timer runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerClock {
    /// Steady time.
    Steady,
    /// ROS time, which `/clock` provides if `use_sim_time` is set in the scope.
    Ros {
        /// Whether `/clock` provides the time.
        simulated: bool,
    },
}

/// A log line.
#[derive(Clone, Debug, PartialEq)]
pub struct LogMessage {
    /// Its severity.
    pub level: LogLevel,
    /// The line without level and time; substitutions are evaluated.
    pub text: String,
    /// Position in the launch file.
    pub location: SourceLocation,
}

/// Severity of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Detail for debugging.
    Debug,
    /// Normal operation.
    Info,
    /// A possible problem.
    Warning,
    /// A failure.
    Error,
}

/// A shutdown of the whole launch.
#[derive(Clone, Debug, PartialEq)]
pub struct Shutdown {
    /// Reason for the shutdown.
    pub reason: String,
    /// Position in the launch file.
    pub location: SourceLocation,
}

impl LaunchPlan {
    /// All processes in file order, including those of timers and `on_exit`.
    pub fn processes(&self) -> Vec<&ProcessSpec> {
        processes(&self.steps)
    }
}

/// All processes of these steps and of nested steps.
pub(crate) fn processes(steps: &[PlanStep]) -> Vec<&ProcessSpec> {
    let mut found = Vec::new();
    collect_processes(steps, &mut found);
    found
}

fn collect_processes<'p>(steps: &'p [PlanStep], found: &mut Vec<&'p ProcessSpec>) {
    for step in steps {
        match step {
            PlanStep::Start(process) => {
                found.push(process);
                collect_processes(&process.on_exit, found);
            }
            PlanStep::Timer(timer) => collect_processes(&timer.steps, found),
            _ => {}
        }
    }
}
