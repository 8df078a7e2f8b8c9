//! What a launch file comes to, with the arguments given: everything that will be
//! started and said, looked up and checked beforehand.

mod report;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pteros::parameter::ParameterValue;
use pteros_component::Index;

use crate::action::Builder;
use crate::fault::{Faults, Place};
use crate::packages::Packages;

/// What is to be launched, and with what.
#[derive(Clone, Debug)]
pub struct Request {
    /// The launch file.
    pub file: PathBuf,
    /// `name:=value` of the command line; of several of one name the last counts.
    pub arguments: Vec<(String, String)>,
    /// The environment at the beginning.
    pub environment: BTreeMap<String, String>,
    /// Where packages are.
    pub packages: Packages,
    /// Where components are.
    pub components: Index,
    /// The folder of this launch's log files, `$(log_dir)`. Nothing is written there
    /// while the file is read.
    pub log_folder: PathBuf,
    /// This host's name, for `$(anon …)`.
    pub host: String,
    /// This process's number, for `$(anon …)`.
    pub process: u32,
}

/// Everything that will happen. Nothing of it has happened yet.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The launch file.
    pub file: Arc<Path>,
    /// The arguments that the file and its includes declare, in their order.
    pub arguments: Vec<Argument>,
    /// What is done, in order; nothing waits for the step before.
    pub steps: Vec<Step>,
    /// Remarks for the user that are no faults.
    pub remarks: Vec<String>,
    /// All launch files that were read.
    pub files: Vec<PathBuf>,
}

/// A declared argument.
#[derive(Clone, Debug, PartialEq)]
pub struct Argument {
    /// Its name.
    pub name: String,
    /// Its default as written, substitutions still in it.
    pub default: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// The values that it may have; any where there are none.
    pub choices: Vec<String>,
    /// Its value in this launch.
    pub value: Option<String>,
    /// Where it is declared.
    pub place: Place,
}

/// One thing that happens.
#[derive(Clone, Debug)]
pub enum Step {
    /// A process is started.
    Start(Box<Process>),
    /// Components are loaded into a container, one after the other.
    Load(Load),
    /// Something happens later.
    Timer(Timer),
    /// A line is said.
    Log(Log),
    /// Everything is stopped.
    Shutdown(Shutdown),
}

/// A process to be started.
#[derive(Clone, Debug)]
pub struct Process {
    /// Its name in messages and of its log file: the program's and a number.
    pub name: String,
    /// Program and arguments.
    pub words: Vec<String>,
    /// Its whole environment.
    pub environment: BTreeMap<String, String>,
    /// Its working folder; the launcher's where there is none.
    pub folder: Option<PathBuf>,
    /// Where its output goes.
    pub output: Output,
    /// Whether it writes to terminals instead of pipes.
    pub emulate_tty: bool,
    /// Whether it is started again when it ends by itself.
    pub respawn: Option<Respawn>,
    /// How long it has between SIGINT and SIGTERM.
    pub sigterm_timeout: Duration,
    /// How long it has between SIGTERM and SIGKILL.
    pub sigkill_timeout: Duration,
    /// What happens when it has ended and is not started again.
    pub on_exit: Vec<Step>,
    /// The node in it, where the file says it is one.
    pub node: Option<NodeFacts>,
    /// Files that are written before it starts: parameters with substitutions.
    pub files: Vec<(PathBuf, String)>,
    /// Where the launch file says so.
    pub place: Place,
}

/// What is known of the node in a process.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeFacts {
    /// Its package, where it is named by one.
    pub package: Option<String>,
    /// Its program's name as written.
    pub executable: String,
    /// Its name, where the file gives one.
    pub name: Option<String>,
    /// Its namespace, absolute; empty where the file gives none.
    pub namespace: String,
    /// What kind of node it is.
    pub kind: NodeKind,
    /// Managed nodes, by full name, that have to be active before this one is brought
    /// up.
    pub needs: Vec<String>,
}

/// What kind of node a process has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// One as any other.
    Plain,
    /// A container of components.
    Container,
    /// A managed node; whether it is brought up to active.
    Lifecycle {
        /// Configure and activate it, in the file's order.
        autostart: bool,
    },
}

impl NodeFacts {
    /// The full name, `/ns/name`, where the file gives a name.
    pub fn full_name(&self) -> Option<String> {
        let name = self.name.as_deref()?;
        Some(format!("{}/{name}", self.namespace.trim_end_matches('/')))
    }
}

/// Where the output of a process goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Output {
    /// What it writes on standard output.
    pub stdout: Destinations,
    /// What it writes on standard error.
    pub stderr: Destinations,
}

/// Places for lines of output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Destinations {
    /// The launcher's own output.
    pub screen: bool,
    /// `launch.log`.
    pub log: bool,
    /// A file of its own, `NAME-stdout.log` and `NAME-stderr.log`, and both in
    /// `NAME.log`.
    pub own_log: bool,
}

/// How often and when a process is started again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Respawn {
    /// How long to wait before the first time. When it ends again soon, twice as
    /// long each time, up to [`RESPAWN_PAUSE_MAX`].
    pub delay: Duration,
    /// How many times at most; any number where there is none.
    pub retries_max: Option<u32>,
}

/// The longest pause before a process is started again, unless its own delay is
/// longer.
pub const RESPAWN_PAUSE_MAX: Duration = Duration::from_secs(30);

/// Components for a container.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// The container's full name.
    pub container: String,
    /// Its process in this launch, by name; none where it runs elsewhere.
    pub process: Option<String>,
    /// The components, in order.
    pub components: Vec<Component>,
    /// Where the launch file says so.
    pub place: Place,
}

/// A component to be loaded.
#[derive(Clone, Debug, PartialEq)]
pub struct Component {
    /// Its package.
    pub package: String,
    /// Its class.
    pub class: String,
    /// Its node's name; empty for the component's own.
    pub name: String,
    /// Its node's namespace; empty for the component's own.
    pub namespace: String,
    /// Its parameters.
    pub parameters: Vec<(String, ParameterValue)>,
    /// Its remap rules.
    pub remaps: Vec<String>,
    /// Arguments for the container.
    pub extra_arguments: Vec<(String, ParameterValue)>,
    /// Where the launch file says so.
    pub place: Place,
}

/// Something that happens later.
#[derive(Clone, Debug)]
pub struct Timer {
    /// How long after this step.
    pub period: Duration,
    /// Whether time is ROS time, which may be simulated (`ros_timer`).
    pub clock: TimerClock,
    /// What happens then.
    pub steps: Vec<Step>,
    /// Whether it is forgotten when everything is stopped; else the launch ends only
    /// after it.
    pub cancel_on_shutdown: bool,
    /// Where the launch file says so.
    pub place: Place,
}

/// Which time a timer measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerClock {
    /// Real time.
    Steady,
    /// ROS time; `simulated` where `use_sim_time` is set in its scope.
    Ros {
        /// Whether `/clock` says what time it is.
        simulated: bool,
    },
}

/// A line to be said.
#[derive(Clone, Debug, PartialEq)]
pub struct Log {
    /// How bad it is.
    pub level: Level,
    /// What.
    pub text: String,
    /// Where the launch file says so.
    pub place: Place,
}

/// How bad something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// For whoever looks for a fault.
    Debug,
    /// As it should be.
    Info,
    /// Perhaps not.
    Warning,
    /// It is not.
    Error,
}

/// Everything is stopped.
#[derive(Clone, Debug, PartialEq)]
pub struct Shutdown {
    /// Why.
    pub reason: String,
    /// Where the launch file says so.
    pub place: Place,
}

impl Plan {
    /// Reads a launch file and what it includes.
    ///
    /// Commands of `$(command …)` are run and waited for; nothing else happens.
    ///
    /// # Errors
    /// Everything that is wrong: the files themselves, unknown elements, attributes
    /// and substitutions, arguments without value, and whatever is referred to and
    /// not there.
    pub fn read(request: &Request) -> Result<Self, Faults> {
        Builder::new(request).build(request)
    }

    /// The arguments that a launch file declares, whatever else is wrong with it
    /// beyond its form; those of includes as far as the file can be followed without
    /// values.
    ///
    /// # Errors
    /// The form of the files.
    pub fn arguments(request: &Request) -> Result<Vec<Argument>, Faults> {
        Builder::new(request).arguments(request)
    }

    /// All processes, those of timers and of `on_exit` too, in the file's order.
    pub fn processes(&self) -> Vec<&Process> {
        processes(&self.steps)
    }
}

/// All processes of these steps and of what lies in them.
pub(crate) fn processes(steps: &[Step]) -> Vec<&Process> {
    let mut found = Vec::new();
    collect(steps, &mut found);
    found
}

fn collect<'p>(steps: &'p [Step], found: &mut Vec<&'p Process>) {
    for step in steps {
        match step {
            Step::Start(process) => {
                found.push(process);
                collect(&process.on_exit, found);
            }
            Step::Timer(timer) => collect(&timer.steps, found),
            _ => {}
        }
    }
}
