//! A process of a topology: its nodes on their executors, from discovery to its
//! result.
//!
//! The parent controls it through standard input: `go` once every process has
//! completed discovery, `collect` once no process publishes. The process ends when
//! that closes.

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
    Context, ContextOptions, Node, NodeOptions,
    executors::{MultiThreadedExecutor, SingleThreadedExecutor},
    lifecycle::LifecycleNode,
};
use serde_json::{Value, json};

use super::clock::RunClock;
use super::document::{NodeSpec, Topology};
use super::resources::Sampler;
use super::result::ProcessResult;
use super::{entity, table};

/// Time limit of discovery, the same as in the framework.
const DISCOVERY_TIMEOUT: Duration = Duration::from_secs(30);
/// Period of resource samples.
const SAMPLE_PERIOD: Duration = Duration::from_secs(1);
/// Without messages for this long nothing is in flight; and the time limit for
/// that.
const QUIET_PERIOD: Duration = Duration::from_millis(100);
const DRAIN_TIMEOUT: Duration = Duration::from_secs(3);

/// The task of a process, one argument of JSON.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ProcessTask {
    pub(super) label: String,
    pub(super) files: Vec<PathBuf>,
    /// Its nodes: index of the file, index of the node.
    pub(super) nodes: Vec<(usize, usize)>,
    pub(super) duration: Duration,
    pub(super) ahead_ns: i64,
    /// Folder of its tables.
    pub(super) folder: PathBuf,
    pub(super) intra_process: bool,
    /// Threads of each executor.
    pub(super) threads: usize,
}

impl ProcessTask {
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

/// Runs one process of a topology. `task` comes from its parent. `library` has the
/// types, including the framework's ([`super::add_to`]). Prints `ready`, `stopped`
/// and its result, a line each.
///
/// # Errors
/// The task is invalid, a node cannot be created, or the folder cannot be written.
pub fn worker(task: &str, library: InterfaceLibrary) -> Result<()> {
    let mut hosted = HostedProcess::read(task, library)?;
    let context = open_context()?;
    let mut executors: BTreeMap<i64, Executor> = BTreeMap::new();
    let (threads, intra_process) = (hosted.task.threads, hosted.task.intra_process);
    for index in 0..hosted.task.nodes.len() {
        let spec = hosted.spec(index)?;
        let (node, managed) = make_node(&context, spec, intra_process)?;
        let executor = executors.entry(spec.executor);
        let executor = executor.or_insert_with(|| Executor::new(&context, threads));
        executor.add_node(&node)?;
        hosted.add_node_entities(&node, index)?;
        if let Some(managed) = managed {
            activate(&managed)?;
            hosted.managed.push(managed);
        }
    }
    for (id, executor) in executors {
        context.spawn_thread(&format!("executor_{id}"), move || executor.spin())?;
    }
    hosted.run_to_end(&context)
}

/// A process of a topology while its nodes are created, by [`worker`] or by a
/// component container.
pub struct HostedProcess {
    task: ProcessTask,
    topologies: Vec<Topology>,
    entities: entity::GraphEntities,
    nodes_added: usize,
    managed: Vec<LifecycleNode>,
}

impl HostedProcess {
    /// Parses the task and reads its files.
    ///
    /// # Errors
    /// The task or a file is invalid.
    pub fn read(task: &str, library: InterfaceLibrary) -> Result<Self> {
        let value = serde_json::from_str(task).context("the task is not JSON")?;
        let task =
            ProcessTask::from_json(&value).ok_or_else(|| anyhow!("the task is incomplete"))?;
        let read = |file: &PathBuf| Topology::read(file, &library);
        let topologies = task.files.iter().map(read).collect::<Result<_, _>>()?;
        Ok(Self {
            topologies,
            entities: entity::GraphEntities::new(RunClock::of(task.ahead_ns), library),
            task,
            nodes_added: 0,
            managed: Vec::new(),
        })
    }

    fn spec(&self, index: usize) -> Result<&NodeSpec> {
        let (file, node) = self.task.nodes.get(index).copied().unwrap_or_default();
        let spec = self.topologies.get(file).and_then(|t| t.nodes.get(node));
        spec.with_context(|| format!("file {file} no longer has node {node}"))
    }

    /// Creates the entities of node number `index` on `node`.
    ///
    /// # Errors
    /// There is no such node, or an endpoint is refused.
    pub fn add_node_entities(&mut self, node: &Node, index: usize) -> Result<()> {
        let spec = self.spec(index)?.clone();
        self.entities.add(node.clone(), &spec, &self.topologies)?;
        self.nodes_added += 1;
        Ok(())
    }

    /// Whether the entities of all nodes exist.
    pub fn is_complete(&self) -> bool {
        self.nodes_added == self.task.nodes.len()
    }

    /// Waits for discovery, then follows the parent's commands until the result is
    /// printed. Another thread spins the nodes.
    ///
    /// # Errors
    /// Standard output is closed, or tables cannot be written.
    pub fn run_to_end(self, context: &Context) -> Result<()> {
        let Self {
            task,
            mut entities,
            managed: _managed,
            ..
        } = self;
        let parent = read_parent_lines()?;
        let unmatched = entities.wait_for_discovery(Instant::now() + DISCOVERY_TIMEOUT, context);
        print_line("ready")?;
        if expect_line(&parent, "go", context).is_err() {
            return Ok(());
        }
        let (samples, cpu_percent_of_one) = measure(&mut entities, &task, &parent, context)?;
        print_line("stopped")?;
        // After an interrupt the results so far are collected.
        let _ = expect_line(&parent, "collect", context);
        entities.wait_until_quiet(QUIET_PERIOD, DRAIN_TIMEOUT, context);
        let result = ProcessResult {
            label: task.label.clone(),
            rows: entities.rows(),
            cpu_percent_of_one,
            resources: samples.last().copied().unwrap_or_default(),
            unmatched,
            publish_errors: entities.publish_errors(),
        };
        write_tables(&task, &entities, &samples, &result)?;
        print_line(&result.to_json().to_string())?;
        context.shutdown();
        Ok(())
    }
}

/// The executor of one `executor_id`.
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

/// A context that is limited to this host, unless the environment sets a range, so
/// that a benchmark does not reach robots.
fn open_context() -> Result<Context> {
    let mut options = ContextOptions::from_process()?;
    if is_discovery_range_unset() {
        options.discovery_range = Some(DiscoveryRange::Localhost);
    }
    Ok(Context::with_options(options)?)
}

/// Whether the environment sets no discovery range.
pub(super) fn is_discovery_range_unset() -> bool {
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
    let created = if spec.is_managed {
        LifecycleNode::new(context, options, ())
            .map(|managed| (managed.node().clone(), Some(managed)))
    } else {
        context.create_node(options).map(|node| (node, None))
    };
    created.with_context(|| format!("make node \"{}\"", spec.name))
}

/// Configures and activates a lifecycle node.
///
/// # Errors
/// A transition fails.
pub fn activate(managed: &LifecycleNode) -> Result<()> {
    managed.configure()?;
    managed.activate()?;
    Ok(())
}

/// Publishes for the duration of the task.
fn measure(
    entities: &mut entity::GraphEntities,
    task: &ProcessTask,
    parent: &Receiver<String>,
    context: &Context,
) -> Result<(Vec<super::Resources>, f64)> {
    let mut sampler = Sampler::start(std::process::id());
    // The framework starts with a line of zeros.
    let mut samples = vec![super::Resources::default()];
    let end = Instant::now() + task.duration;
    entities.start()?;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() || context.is_shut_down() {
            break;
        }
        match parent.recv_timeout(left.min(SAMPLE_PERIOD)) {
            Err(RecvTimeoutError::Timeout) => samples.push(sampler.sample()),
            // The parent is gone, so the result is not collected.
            Err(RecvTimeoutError::Disconnected) => break,
            // The parent's command to stop early.
            Ok(_) => break,
        }
    }
    let percent = sampler.cpu_percent_of_one();
    if samples.len() == 1 {
        samples.push(sampler.sample());
    }
    entities.stop(DRAIN_TIMEOUT);
    Ok((samples, percent))
}

fn write_tables(
    task: &ProcessTask,
    entities: &entity::GraphEntities,
    samples: &[super::Resources],
    result: &ProcessResult,
) -> Result<()> {
    let write = |name: &str, text: String| {
        let path = task.folder.join(name);
        fs::write(&path, text).with_context(|| format!("write {}", path.display()))
    };
    write("latency_all.txt", table::latency_all(&result.rows))?;
    write("latency_total.txt", table::latency_total([result]))?;
    write("resources.txt", table::resources_table(samples))?;
    write("events.txt", entities.events())?;
    write("samples.csv", entities.samples())
}

fn print_line(line: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")
        .and_then(|()| out.flush())
        .context("write to the parent")
}

/// The lines of the parent. The channel closes when the parent is gone.
fn read_parent_lines() -> Result<Receiver<String>> {
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

/// Waits for a command.
///
/// # Errors
/// The parent is gone or sends another one, or Ctrl-C.
fn expect_line(parent: &Receiver<String>, word: &str, context: &Context) -> Result<()> {
    loop {
        match parent.recv_timeout(QUIET_PERIOD) {
            Ok(line) if line == word => return Ok(()),
            Ok(line) => bail!("the parent sent {line:?}, expected {word:?}"),
            Err(RecvTimeoutError::Disconnected) => bail!("the parent is gone"),
            Err(RecvTimeoutError::Timeout) if context.is_shut_down() => bail!("interrupted"),
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}
