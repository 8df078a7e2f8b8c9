//! Starts the processes of a run, lets them meet, flow and stop together, and gathers
//! what they saw. A process is this very program, told its part as one argument.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use pteros::msg::library::InterfaceLibrary;
use serde_json::json;

use super::clock::RunClock;
use super::document::Topology;
use super::pairs::contradictions;
use super::problem::Problem;
use super::result::ProcessResult;
use super::system::Task;
use super::table;

/// Processes of one run; each has its sockets, and the machine its limits.
const PROCESSES_MAX: usize = 500;
/// How long processes may take to start and meet, to stop, and to tell.
const READY: Duration = Duration::from_secs(90);
const STOPPED: Duration = Duration::from_secs(60);
/// How often Ctrl-C is looked for.
const LOOK: Duration = Duration::from_millis(100);

/// How nodes are put into processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Division {
    /// A process for each file, as `ros2-performance` does.
    PerFile,
    /// One process for everything.
    Composed,
    /// A process for each node.
    PerNode,
}

/// What a run is.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// The program and its first arguments; the task comes behind them.
    pub worker: Vec<String>,
    /// How long messages flow.
    pub duration: Duration,
    /// How nodes are put into processes.
    pub division: Division,
    /// Where results go; made if it is not there.
    pub out: PathBuf,
    /// Whether messages within a process are handed over as values
    /// ([`pteros::NodeOptions::use_intra_process_comms`]).
    pub intra_process: bool,
    /// Threads of each executor; 0 and 1 are the single-threaded one.
    pub threads: usize,
    /// Has nodes loaded by containers in place of the worker, which then composes
    /// nothing; `executor_id`s and threads are the container's matter.
    pub container: Option<Containers>,
}

/// Containers that load the lab's nodes.
#[derive(Clone, Debug)]
pub struct Containers {
    /// The container program.
    pub program: PathBuf,
    /// The folder of the library with the nodes, [`Containers::LIBRARY`].
    pub folder: PathBuf,
    /// `single`, `multi` or `isolated`.
    pub executor: &'static str,
}

impl Containers {
    /// The package of the nodes' library.
    pub const LIBRARY: &'static str = "pteros_lab_nodes";

    /// The file of that package.
    pub const FILE: &'static str = "libpteros_lab_nodes.so";

    /// A process for that task.
    fn command(&self, task: &Task, topologies: &[Topology]) -> Result<Command> {
        let file = task.folder.join("task.json");
        let text = task.to_json().to_string();
        fs::write(&file, text).with_context(|| format!("write {}", file.display()))?;
        let mut command = Command::new(&self.program);
        command.args(["--executor", self.executor]);
        // Where cargo's libraries lie those of another build may, too.
        command.env_remove("LD_LIBRARY_PATH");
        command.env("PTEROS_COMPONENT_PATH", &self.folder);
        if super::system::is_range_open() {
            command.env("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST");
        }
        for (index, (of_file, node)) in task.nodes.iter().enumerate() {
            let spec = topologies.get(*of_file).and_then(|t| t.nodes.get(*node));
            let spec = spec.context("a task names nodes of its files")?;
            let class = match spec.is_managed {
                true => "ManagedTopologyNode",
                false => "TopologyNode",
            };
            let class = format!("{}::{class}", Self::LIBRARY);
            command.args(["--load", Self::LIBRARY, &class, "-n", &spec.name]);
            if !spec.namespace.is_empty() {
                command.args(["--node-namespace", &spec.namespace]);
            }
            command.args(["-p", &format!("task:={}", file.display())]);
            command.args(["-p", &format!("index:={index}")]);
            let intra_process = task.intra_process;
            command.args(["-e", &format!("use_intra_process_comms:={intra_process}")]);
        }
        command.args(["--ros-args", "--log-level", "warn"]);
        Ok(command)
    }
}

/// What a run has given.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What each process has seen.
    pub results: Vec<ProcessResult>,
    /// Whether Ctrl-C ended it early.
    pub interrupted: bool,
}

/// Reads all files of a run; what will not do what it seems to comes beside them.
///
/// # Errors
/// The first [`Problem`].
pub fn check(
    files: &[PathBuf],
    library: &InterfaceLibrary,
) -> Result<(Vec<Topology>, Vec<Problem>), Problem> {
    let topologies: Vec<Topology> = files
        .iter()
        .map(|file| Topology::read(file, library))
        .collect::<Result<_, _>>()?;
    let mut warnings: Vec<Problem> = topologies.iter().flat_map(|t| t.warnings.clone()).collect();
    warnings.extend(contradictions(&topologies));
    Ok((topologies, warnings))
}

/// Runs the files' graphs and writes what was seen: for each process a folder
/// `<name>_log` with the tables of `ros2-performance`, its events and every latency
/// (`samples.csv`), and `results.json` beside them. Blocks for the duration and a
/// moment more; `began` is told how many processes there are once all have met and
/// messages flow. Ctrl-C then ends it early and keeps what was measured.
///
/// # Errors
/// A file is wrong, the folder cannot be written, a process does not start or dies.
pub fn run(
    files: &[PathBuf],
    library: &InterfaceLibrary,
    options: &RunOptions,
    began: &mut dyn FnMut(usize),
) -> Result<Outcome> {
    let (topologies, _) = check(files, library)?;
    let parts = divide(&topologies, options.division)?;
    // Second Ctrl-C kills; the first one ends the measurement.
    let interrupt = pteros_net::shutdown_signal().context("listen for Ctrl-C")?;
    let clock = RunClock::start();
    let tasks: Vec<Task> = parts
        .into_iter()
        .map(|(label, nodes)| {
            let folder = options.out.join(format!("{label}_log"));
            fs::create_dir_all(&folder)
                .with_context(|| format!("make the folder {}", folder.display()))?;
            Ok(Task {
                label,
                files: files.iter().map(|file| absolute(file)).collect(),
                nodes,
                duration: options.duration,
                ahead_ns: clock.ahead_ns(),
                folder: absolute(&folder),
                intra_process: options.intra_process,
                threads: options.threads,
            })
        })
        .collect::<Result<_>>()?;
    let (send, receive) = channel();
    let mut crew = Crew {
        members: Vec::new(),
        lines: receive,
        is_interrupted: Box::new(|| interrupt.is_requested()),
    };
    for task in &tasks {
        let command = match &options.container {
            Some(containers) => containers.command(task, &topologies)?,
            None => worker_command(&options.worker, task)?,
        };
        let member = Member::start(command, &task.label, crew.members.len(), &send)?;
        crew.members.push(member);
    }
    drop(send);
    crew.wait_for("ready", READY, None)?;
    crew.tell("go")?;
    began(crew.members.len());
    crew.wait_for("stopped", options.duration + STOPPED, Some("stop"))?;
    crew.tell("collect")?;
    let lines = crew.wait_for("{", STOPPED, None)?;
    let results = tasks.iter().zip(lines).map(|(task, line)| {
        let value = serde_json::from_str(&line).ok();
        let result = value.and_then(|value| ProcessResult::from_json(&value));
        result.with_context(|| format!("{} gave no result: {line}", task.label))
    });
    let results: Vec<ProcessResult> = results.collect::<Result<_>>()?;
    crew.end();
    write_results(options, files, &results)?;
    Ok(Outcome {
        results,
        interrupted: interrupt.is_requested(),
    })
}

/// For people: a line for each process, then everything together.
pub fn summary(results: &[ProcessResult]) -> String {
    let mut text = String::new();
    if let [only] = results {
        text += &table::latency_all(&only.rows);
    }
    let _ = writeln!(
        text,
        "\n{:<24}{:>10}{:>10}{:>9}{:>12}{:>10}{:>10}",
        "process", "PSS MB", "CPU %", "threads", "received", "lost", "twice"
    );
    for result in results {
        let heard = || result.rows.iter().filter(|row| row.kind != "publisher");
        let received: u64 = heard().map(|row| row.received).sum();
        let lost: u64 = heard().map(|row| row.lost).sum();
        let twice: u64 = heard().map(|row| row.duplicates).sum();
        let _ = writeln!(
            text,
            "{:<23} {:>10.1}{:>10.1}{:>9}{received:>12}{lost:>10}{twice:>10}",
            result.label,
            result.resources.pss_kb as f64 / 1024.0,
            result.cpu_percent_of_one,
            result.resources.threads,
        );
    }
    text += "\nSystem total:\n";
    text += &table::latency_total(results);
    for result in results {
        for unmet in &result.unmet {
            let _ = writeln!(text, "not met within 30 s: {unmet}");
        }
        if result.publish_errors > 0 {
            let (count, label) = (result.publish_errors, &result.label);
            let _ = writeln!(
                text,
                "{count} messages could not be published: {label}_log/events.txt"
            );
        }
    }
    text
}

/// Names of the processes, and which nodes (file, node) are theirs.
type Parts = Vec<(String, Vec<(usize, usize)>)>;

fn divide(topologies: &[Topology], division: Division) -> Result<Parts> {
    let stem = |topology: &Topology| {
        let stem = topology.file.file_stem();
        stem.map_or("topology".into(), |stem| {
            stem.to_string_lossy().into_owned()
        })
    };
    let nodes = |file: usize, topology: &Topology| {
        (0..topology.nodes.len())
            .map(|node| (file, node))
            .collect::<Vec<_>>()
    };
    let mut parts: Parts = Vec::new();
    for (file, topology) in topologies.iter().enumerate() {
        match division {
            Division::PerFile => parts.push((stem(topology), nodes(file, topology))),
            Division::Composed => match parts.first_mut() {
                Some((label, all)) => {
                    *label = "composed".into();
                    all.extend(nodes(file, topology));
                }
                None => parts.push((stem(topology), nodes(file, topology))),
            },
            Division::PerNode => {
                let of_node = |(index, node): (usize, &super::NodeSpec)| {
                    let namespace = node.namespace.trim_start_matches('/').replace('/', ".");
                    let name = match namespace.is_empty() {
                        true => node.name.clone(),
                        false => format!("{namespace}.{}", node.name),
                    };
                    (name, vec![(file, index)])
                };
                parts.extend(topology.nodes.iter().enumerate().map(of_node));
            }
        }
    }
    if parts.len() > PROCESSES_MAX {
        bail!(
            "{} processes are more than {PROCESSES_MAX}; leave out --processes, or run fewer nodes",
            parts.len()
        );
    }
    // Two of a name have folders of their own.
    for index in 1..parts.len() {
        let (before, rest) = parts.split_at_mut(index);
        let Some((label, _)) = rest.first_mut() else {
            break;
        };
        let own = label.clone();
        let mut number = 1;
        while before.iter().any(|(other, _)| other == label) {
            number += 1;
            *label = format!("{own}_{number}");
        }
    }
    Ok(parts)
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.into())
}

fn write_results(options: &RunOptions, files: &[PathBuf], results: &[ProcessResult]) -> Result<()> {
    let files: Vec<String> = files
        .iter()
        .map(|file| file.to_string_lossy().into_owned())
        .collect();
    let whole = json!({
        "files": files,
        "duration_s": options.duration.as_secs_f64(),
        "division": format!("{:?}", options.division),
        "intra_process": options.intra_process,
        "threads": options.threads,
        "processes": results.iter().map(ProcessResult::to_json).collect::<Vec<_>>(),
    });
    let path = options.out.join("results.json");
    fs::write(&path, format!("{whole:#}\n")).with_context(|| format!("write {}", path.display()))
}

fn worker_command(worker: &[String], task: &Task) -> Result<Command> {
    let (program, arguments) = worker.split_first().context("no program to start")?;
    let mut command = Command::new(program);
    command.args(arguments).arg(task.to_json().to_string());
    Ok(command)
}

/// One process.
struct Member {
    label: String,
    child: Child,
    told: Option<ChildStdin>,
}

impl Member {
    fn start(
        mut command: Command,
        label: &str,
        index: usize,
        lines: &Sender<(usize, Option<String>)>,
    ) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("start {:?} for {label}", command.get_program()))?;
        let told = child.stdin.take();
        let out = child.stdout.take();
        let member = Self {
            label: label.to_owned(),
            child,
            told,
        };
        let out = out.context("its output is piped")?;
        let lines = lines.clone();
        std::thread::Builder::new().spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                if lines.send((index, Some(line))).is_err() {
                    return;
                }
            }
            let _ = lines.send((index, None));
        })?;
        Ok(member)
    }
}

impl Drop for Member {
    /// One that ended by itself is only waited for.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// All processes of a run.
struct Crew {
    members: Vec<Member>,
    lines: Receiver<(usize, Option<String>)>,
    is_interrupted: Box<dyn Fn() -> bool>,
}

impl Crew {
    /// Waits until every process has said a line that begins so. Ctrl-C has them told
    /// `when_interrupted`; without such a word it is an error.
    fn wait_for(
        &mut self,
        word: &str,
        patience: Duration,
        when_interrupted: Option<&str>,
    ) -> Result<Vec<String>> {
        let until = Instant::now() + patience;
        let mut said: Vec<Option<String>> = vec![None; self.members.len()];
        let mut is_told = word == "{";
        while said.iter().any(Option::is_none) {
            if !is_told && (self.is_interrupted)() {
                let Some(stop) = when_interrupted else {
                    bail!("interrupted before anything was measured");
                };
                // Whoever heard the signal, too, has gone on by itself.
                let _ = self.tell(stop);
                is_told = true;
            }
            match self.lines.recv_timeout(LOOK) {
                Ok((index, Some(line))) if line.starts_with(word) => {
                    if let Some(place) = said.get_mut(index) {
                        *place = Some(line);
                    }
                }
                // What the nodes themselves print.
                Ok((_, Some(_))) => {}
                Ok((index, None)) => {
                    if said.get(index).is_some_and(Option::is_none) {
                        let label = self.members.get(index).map_or("", |m| m.label.as_str());
                        bail!("the process of {label} ended before it said {word:?}");
                    }
                }
                Err(RecvTimeoutError::Disconnected) => bail!("all processes have ended"),
                Err(RecvTimeoutError::Timeout) if Instant::now() >= until => {
                    let silent = self.members.iter().zip(&said);
                    let silent = silent.filter(|(_, said)| said.is_none());
                    let labels: Vec<&str> = silent.map(|(m, _)| m.label.as_str()).collect();
                    bail!(
                        "no {word:?} within {} s from: {}",
                        patience.as_secs(),
                        labels.join(", ")
                    );
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        Ok(said.into_iter().flatten().collect())
    }

    fn tell(&mut self, word: &str) -> Result<()> {
        for member in &mut self.members {
            let told = member.told.as_mut().context("its input is piped")?;
            let outcome = writeln!(told, "{word}").and_then(|()| told.flush());
            outcome.with_context(|| format!("tell the process of {}", member.label))?;
        }
        Ok(())
    }

    /// Lets them end by themselves.
    fn end(&mut self) {
        for member in &mut self.members {
            drop(member.told.take());
            let _ = member.child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topology(file: &str) -> Topology {
        let text = r#"{"nodes": [{"node_name": "a", "node_namespace": "left"},
            {"node_name": "b", "number": 2}]}"#;
        Topology::parse(Path::new(file), text, &super::super::library()).expect("right")
    }

    #[test]
    fn nodes_are_divided_by_file_by_node_or_not_at_all() {
        let both = [topology("x/one.json"), topology("y/one.json")];
        let labels = |division| -> Vec<(String, usize)> {
            let parts = divide(&both, division).expect("few");
            parts
                .into_iter()
                .map(|(label, nodes)| (label, nodes.len()))
                .collect()
        };
        assert_eq!(
            labels(Division::PerFile),
            [("one".into(), 3), ("one_2".into(), 3)]
        );
        assert_eq!(labels(Division::Composed), [("composed".into(), 6)]);
        let names: Vec<String> = labels(Division::PerNode).into_iter().map(|p| p.0).collect();
        assert_eq!(
            names,
            ["left.a", "b_1", "b_2", "left.a_2", "b_1_2", "b_2_2"]
        );
    }
}
