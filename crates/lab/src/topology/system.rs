//! One process of a run: its nodes on their executors, from discovery to its result.
//!
//! The parent says on standard input when to go on: `go` once every process has met
//! its peers, `collect` once nobody publishes any more. It ends when that is closed.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, Write as _};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};
use pteros::config::DiscoveryRange;
use pteros::msg::library::InterfaceLibrary;
use pteros::{
    Context, ContextOptions, LifecycleNode, MultiThreadedExecutor, Node, NodeOptions,
    SingleThreadedExecutor,
};
use serde_json::{Value, json};

use super::clock::RunClock;
use super::document::{NodeSpec, Topology};
use super::resources::Sampler;
use super::result::ProcessResult;
use super::{entity, table};

/// How long publishers and clients wait for whom they are to meet; as the framework.
const MEET: Duration = Duration::from_secs(30);
/// From one look at the process to the next.
const SAMPLING: Duration = Duration::from_secs(1);
/// Silence after which nothing more is under way, and how long to wait for it.
const SILENCE: Duration = Duration::from_millis(100);
const SILENCE_WAIT: Duration = Duration::from_secs(3);

/// What a process is told, as one argument of JSON.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Task {
    pub(super) label: String,
    pub(super) files: Vec<PathBuf>,
    /// Which nodes are its own: number of the file, number of the node.
    pub(super) nodes: Vec<(usize, usize)>,
    pub(super) duration: Duration,
    pub(super) ahead_ns: i64,
    /// Where its tables go.
    pub(super) folder: PathBuf,
    pub(super) intra_process: bool,
    /// Of each executor.
    pub(super) threads: usize,
}

impl Task {
    pub(super) fn to_json(&self) -> Value {
        let path = |path: &PathBuf| path.to_string_lossy().into_owned();
        let files: Vec<String> = self.files.iter().map(path).collect();
        json!({
            "label": self.label,
            "files": files,
            "nodes": self.nodes,
            "duration_ms": u64::try_from(self.duration.as_millis()).unwrap_or(u64::MAX),
            "ahead_ns": self.ahead_ns,
            "folder": path(&self.folder),
            "intra_process": self.intra_process,
            "threads": self.threads,
        })
    }

    fn from_json(value: &Value) -> Option<Self> {
        let list = |key: &str| value.get(key)?.as_array();
        let text = |value: &Value| Some(value.as_str()?.to_owned());
        let pair = |value: &Value| {
            let at = |index: usize| usize::try_from(value.get(index)?.as_u64()?).ok();
            Some((at(0)?, at(1)?))
        };
        Some(Self {
            label: text(value.get("label")?)?,
            files: list("files")?
                .iter()
                .map(|file| text(file).map(PathBuf::from))
                .collect::<Option<_>>()?,
            nodes: list("nodes")?.iter().map(pair).collect::<Option<_>>()?,
            duration: Duration::from_millis(value.get("duration_ms")?.as_u64()?),
            ahead_ns: value.get("ahead_ns")?.as_i64()?,
            folder: text(value.get("folder")?)?.into(),
            intra_process: value.get("intra_process")?.as_bool()?,
            threads: usize::try_from(value.get("threads")?.as_u64()?).ok()?,
        })
    }
}

/// Runs one process of a topology; `task` is what its parent gave it, `library` the
/// types, the framework's among them ([`super::add_to`]). Prints `ready`,
/// `stopped` and its result, a line each.
///
/// # Errors
/// When the task is not one, a node cannot be made, or its folder not be written.
pub fn worker(task: &str, library: InterfaceLibrary) -> Result<()> {
    let mut hosted = Hosted::read(task, library)?;
    let context = open_context()?;
    let mut executors: BTreeMap<i64, Executor> = BTreeMap::new();
    let (threads, intra_process) = (hosted.task.threads, hosted.task.intra_process);
    for index in 0..hosted.task.nodes.len() {
        let spec = hosted.spec(index)?;
        let (node, managed) = make_node(&context, spec, intra_process)?;
        let executor = executors.entry(spec.executor);
        let executor = executor.or_insert_with(|| Executor::new(&context, threads));
        executor.add_node(&node)?;
        hosted.adopt(&node, index)?;
        if let Some(managed) = managed {
            activate(&managed)?;
            hosted.managed.push(managed);
        }
    }
    for (id, executor) in executors {
        context.spawn_thread(&format!("executor_{id}"), move || executor.spin())?;
    }
    hosted.conduct(&context)
}

/// A process of a topology while its nodes are made, by whomever: [`worker`], or a
/// container that loads them one by one.
pub struct Hosted {
    task: Task,
    topologies: Vec<Topology>,
    world: entity::World,
    adopted: usize,
    managed: Vec<LifecycleNode>,
}

impl Hosted {
    /// Reads the task that the parent has given, and the files that it names.
    ///
    /// # Errors
    /// It is none, or a file is wrong.
    pub fn read(task: &str, library: InterfaceLibrary) -> Result<Self> {
        let value = serde_json::from_str(task).context("the task is not JSON")?;
        let task = Task::from_json(&value).ok_or_else(|| anyhow!("the task is incomplete"))?;
        let read = |file: &PathBuf| Topology::read(file, &library);
        let topologies = task.files.iter().map(read).collect::<Result<_, _>>()?;
        Ok(Self {
            topologies,
            world: entity::World::new(RunClock::of(task.ahead_ns), library),
            task,
            adopted: 0,
            managed: Vec::new(),
        })
    }

    fn spec(&self, index: usize) -> Result<&NodeSpec> {
        let (file, node) = self.task.nodes.get(index).copied().unwrap_or_default();
        let spec = self.topologies.get(file).and_then(|t| t.nodes.get(node));
        spec.with_context(|| format!("file {file} has no node {node} any more"))
    }

    /// Makes on `node` what the process's node number `index` is to have.
    ///
    /// # Errors
    /// There is no such node, or an endpoint is refused.
    pub fn adopt(&mut self, node: &Node, index: usize) -> Result<()> {
        let spec = self.spec(index)?.clone();
        self.world.add(node.clone(), &spec, &self.topologies)?;
        self.adopted += 1;
        Ok(())
    }

    /// Whether all nodes of the process have been adopted.
    pub fn is_whole(&self) -> bool {
        self.adopted == self.task.nodes.len()
    }

    /// Meets the peers, then does what the parent says on standard input until the
    /// result is told. Somebody else spins the nodes meanwhile.
    ///
    /// # Errors
    /// The parent cannot be told, or tables not be written.
    pub fn conduct(self, context: &Context) -> Result<()> {
        let Self {
            task,
            mut world,
            managed: _managed,
            ..
        } = self;
        let parent = listen()?;
        let unmet = world.meet(Instant::now() + MEET, context);
        say("ready")?;
        if expect(&parent, "go", context).is_err() {
            return Ok(());
        }
        let (looks, cpu_percent_of_one) = measure(&mut world, &task, &parent, context)?;
        say("stopped")?;
        // Whoever was interrupted collects what there is.
        let _ = expect(&parent, "collect", context);
        world.settle(SILENCE, SILENCE_WAIT, context);
        let result = ProcessResult {
            label: task.label.clone(),
            rows: world.rows(),
            cpu_percent_of_one,
            resources: looks.last().copied().unwrap_or_default(),
            unmet,
            publish_errors: world.publish_errors(),
        };
        write_tables(&task, &world, &looks, &result)?;
        say(&result.to_json().to_string())?;
        context.shutdown();
        Ok(())
    }
}

/// What runs the nodes of one `executor_id`.
enum Executor {
    Single(SingleThreadedExecutor),
    Multi(MultiThreadedExecutor),
}

impl Executor {
    fn new(context: &Context, threads: usize) -> Self {
        match threads {
            0 | 1 => Self::Single(SingleThreadedExecutor::new(context)),
            threads => Self::Multi(MultiThreadedExecutor::new(context, threads)),
        }
    }

    fn add_node(&self, node: &pteros::Node) -> Result<()> {
        match self {
            Self::Single(executor) => Ok(executor.add_node(node)?),
            Self::Multi(executor) => Ok(executor.add_node(node)?),
        }
    }

    fn spin(&self) {
        match self {
            Self::Single(executor) => executor.spin(),
            Self::Multi(executor) => {
                if let Err(error) = executor.spin() {
                    eprintln!("an executor ended: {error}");
                }
            }
        }
    }
}

/// This host alone, unless the environment says otherwise: a benchmark is not meant
/// to be heard by robots.
fn open_context() -> Result<Context> {
    let mut options = ContextOptions::from_process()?;
    if is_range_open() {
        options.discovery_range = Some(DiscoveryRange::Localhost);
    }
    Ok(Context::with_options(options)?)
}

/// Whether the environment does not say who is to be met.
pub(super) fn is_range_open() -> bool {
    let said = [
        "ROS_AUTOMATIC_DISCOVERY_RANGE",
        "ROS_LOCALHOST_ONLY",
        "ROS_STATIC_PEERS",
    ];
    said.iter().all(|name| std::env::var_os(name).is_none())
}

fn make_node(
    context: &Context,
    spec: &NodeSpec,
    intra_process: bool,
) -> Result<(Node, Option<LifecycleNode>)> {
    let options = NodeOptions::new(&spec.name)
        .namespace(&spec.namespace)
        .use_intra_process_comms(intra_process);
    let made = match spec.is_managed {
        false => context.node_with(options).map(|node| (node, None)),
        true => LifecycleNode::new(context, options, ())
            .map(|managed| (managed.node().clone(), Some(managed))),
    };
    made.with_context(|| format!("make node \"{}\"", spec.name))
}

/// Brings a managed node up.
///
/// # Errors
/// It refuses.
pub fn activate(managed: &LifecycleNode) -> Result<()> {
    managed.configure()?;
    managed.activate()?;
    Ok(())
}

/// Lets messages flow for as long as the task says.
fn measure(
    world: &mut entity::World,
    task: &Task,
    parent: &Receiver<String>,
    context: &Context,
) -> Result<(Vec<super::Resources>, f64)> {
    let mut sampler = Sampler::start(std::process::id());
    // The framework begins with a line of zeros.
    let mut looks = vec![super::Resources::default()];
    let end = Instant::now() + task.duration;
    world.start()?;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() || context.is_shut_down() {
            break;
        }
        match parent.recv_timeout(left.min(SAMPLING)) {
            Err(RecvTimeoutError::Timeout) => looks.push(sampler.look()),
            // Nobody will collect anything.
            Err(RecvTimeoutError::Disconnected) => break,
            // Its word to stop early.
            Ok(_) => break,
        }
    }
    let percent = sampler.cpu_percent_of_one();
    if looks.len() == 1 {
        looks.push(sampler.look());
    }
    world.stop(SILENCE_WAIT);
    Ok((looks, percent))
}

fn write_tables(
    task: &Task,
    world: &entity::World,
    looks: &[super::Resources],
    result: &ProcessResult,
) -> Result<()> {
    let write = |name: &str, text: String| {
        let path = task.folder.join(name);
        fs::write(&path, text).with_context(|| format!("write {}", path.display()))
    };
    write("latency_all.txt", table::latency_all(&result.rows))?;
    write("latency_total.txt", table::latency_total([result]))?;
    write("resources.txt", table::resources_table(looks))?;
    write("events.txt", world.events())?;
    write("samples.csv", world.samples())
}

fn say(line: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")
        .and_then(|()| out.flush())
        .context("tell the parent")
}

/// The parent's lines; the channel closes when it is gone.
fn listen() -> Result<Receiver<String>> {
    let (send, receive) = channel();
    std::thread::Builder::new()
        .name("parent".into())
        .spawn(move || {
            for line in std::io::stdin().lock().lines() {
                let Ok(line) = line else { return };
                if send.send(line).is_err() {
                    return;
                }
            }
        })
        .context("start a thread")?;
    Ok(receive)
}

/// Waits for one word. Fails when the parent is gone, says another, or Ctrl-C came.
fn expect(parent: &Receiver<String>, word: &str, context: &Context) -> Result<()> {
    loop {
        match parent.recv_timeout(SILENCE) {
            Ok(line) if line == word => return Ok(()),
            Ok(line) => bail!("the parent says {line:?}, {word:?} is expected"),
            Err(RecvTimeoutError::Disconnected) => bail!("the parent is gone"),
            Err(RecvTimeoutError::Timeout) if context.is_shut_down() => bail!("interrupted"),
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}
