//! Runs topologies: starts the processes, waits for discovery, starts and stops the
//! messages together, and collects the results. A process is this program with its
//! task as one argument.

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
use super::pairs::incompatible_pairs;
use super::problem::TopologyProblem;
use super::result::ProcessResult;
use super::system::ProcessTask;
use super::table;

/// Maximum processes of a run.
const PROCESSES_MAX: usize = 500;
/// Time limits for start and discovery, for the stop, and for the results.
const READY_TIMEOUT: Duration = Duration::from_secs(90);
const STOP_TIMEOUT: Duration = Duration::from_secs(60);
/// Poll period of Ctrl-C.
const INTERRUPT_POLL: Duration = Duration::from_millis(100);

/// How nodes are assigned to processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Division {
    /// A process per file, as `ros2-performance` does.
    PerFile,
    /// One process for everything.
    Composed,
    /// A process per node.
    PerNode,
}

#[derive(Clone, Debug)]
pub struct RunOptions {
    /// The program and its first arguments. The task follows.
    pub worker: Vec<String>,
    /// Duration of the messages.
    pub duration: Duration,
    /// How nodes are assigned to processes.
    pub division: Division,
    /// Folder of the results. Created if missing.
    pub out: PathBuf,
    /// Whether intra-process communication is on
    /// ([`pteros::NodeOptions::use_intra_process_comms`]).
    pub intra_process: bool,
    /// Threads of each executor. 0 and 1 are the single-threaded one.
    pub threads: usize,
    /// Loads nodes in containers instead of workers. The container then decides
    /// executors and threads.
    pub container: Option<Containers>,
}

/// Component containers that load the lab's nodes.
#[derive(Clone, Debug)]
pub struct Containers {
    /// The container program.
    pub program: PathBuf,
    /// Folder of the library with the nodes, [`Containers::LIBRARY`].
    pub folder: PathBuf,
    /// `single`, `multi` or `isolated`.
    pub executor: &'static str,
}

impl Containers {
    /// The package of the nodes' library.
    pub const LIBRARY: &'static str = "pteros_lab_nodes";

    /// The file of that package.
    pub const FILE: &'static str = "libpteros_lab_nodes.so";

    /// The command of a process with that task.
    fn command(&self, task: &ProcessTask, topologies: &[Topology]) -> Result<Command> {
        let file = task.folder.join("task.json");
        let text = task.to_json().to_string();
        fs::write(&file, text).with_context(|| format!("write {}", file.display()))?;
        let mut command = Command::new(&self.program);
        command.args(["--executor", self.executor]);
        // The directory of cargo's libraries may hold those of another build.
        command.env_remove("LD_LIBRARY_PATH");
        command.env("PTEROS_COMPONENT_PATH", &self.folder);
        if super::system::is_discovery_range_unset() {
            command.env("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST");
        }
        for (index, (of_file, node)) in task.nodes.iter().enumerate() {
            let spec = topologies.get(*of_file).and_then(|t| t.nodes.get(*node));
            let spec = spec.context("a task has nodes of its files")?;
            let class = if spec.is_managed {
                "ManagedTopologyNode"
            } else {
                "TopologyNode"
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

/// Result of a run.
#[derive(Clone, Debug)]
pub struct TopologyOutcome {
    /// Results of the processes.
    pub results: Vec<ProcessResult>,
    /// Whether Ctrl-C ended it early.
    pub interrupted: bool,
}

/// Reads all files of a run. Returns them with warnings.
///
/// # Errors
/// The first [`TopologyProblem`].
pub fn check(
    files: &[PathBuf],
    library: &InterfaceLibrary,
) -> Result<(Vec<Topology>, Vec<TopologyProblem>), TopologyProblem> {
    let topologies: Vec<Topology> = files
        .iter()
        .map(|file| Topology::read(file, library))
        .collect::<Result<_, _>>()?;
    let mut warnings: Vec<TopologyProblem> =
        topologies.iter().flat_map(|t| t.warnings.clone()).collect();
    warnings.extend(incompatible_pairs(&topologies));
    Ok((topologies, warnings))
}

/// Runs the graphs of the files and writes the results: for each process a folder
/// `<name>_log` with the tables of `ros2-performance`, its events and every latency
/// (`samples.csv`), and `results.json`. Blocks for the duration and a moment more.
/// `began` gets the number of processes after discovery, when messages start.
/// Ctrl-C then ends the run early and keeps the results.
///
/// # Errors
/// A file is wrong, the folder cannot be written, or a process does not start or
/// dies.
pub fn run(
    files: &[PathBuf],
    library: &InterfaceLibrary,
    options: &RunOptions,
    began: &mut dyn FnMut(usize),
) -> Result<TopologyOutcome> {
    let (topologies, _) = check(files, library)?;
    let parts = divide(&topologies, options.division)?;
    // The first Ctrl-C ends the measurement, the second kills.
    let interrupt = pteros_net::shutdown_signal().context("listen for Ctrl-C")?;
    let clock = RunClock::start();
    let tasks: Vec<ProcessTask> = parts
        .into_iter()
        .map(|(label, nodes)| {
            let folder = options.out.join(format!("{label}_log"));
            fs::create_dir_all(&folder)
                .with_context(|| format!("make the folder {}", folder.display()))?;
            Ok(ProcessTask {
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
    let mut group = ProcessGroup {
        processes: Vec::new(),
        lines: receive,
        is_interrupted: Box::new(|| interrupt.is_requested()),
    };
    for task in &tasks {
        let command = match &options.container {
            Some(containers) => containers.command(task, &topologies)?,
            None => worker_command(&options.worker, task)?,
        };
        let process = RunProcess::start(command, &task.label, group.processes.len(), &send)?;
        group.processes.push(process);
    }
    drop(send);
    group.wait_for("ready", READY_TIMEOUT, None)?;
    group.send_line("go")?;
    began(group.processes.len());
    group.wait_for("stopped", options.duration + STOP_TIMEOUT, Some("stop"))?;
    group.send_line("collect")?;
    let lines = group.wait_for("{", STOP_TIMEOUT, None)?;
    let results = tasks.iter().zip(lines).map(|(task, line)| {
        let value = serde_json::from_str(&line).ok();
        let result = value.and_then(|value| ProcessResult::from_json(&value));
        result.with_context(|| format!("{} gave no result: {line}", task.label))
    });
    let results: Vec<ProcessResult> = results.collect::<Result<_>>()?;
    group.end();
    write_results(options, files, &results)?;
    Ok(TopologyOutcome {
        results,
        interrupted: interrupt.is_requested(),
    })
}

/// A text summary: a line per process, then totals.
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
        let receiving_rows = || result.rows.iter().filter(|row| row.kind != "publisher");
        let received: u64 = receiving_rows().map(|row| row.received).sum();
        let lost: u64 = receiving_rows().map(|row| row.lost).sum();
        let twice: u64 = receiving_rows().map(|row| row.duplicates).sum();
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
        for unmatched in &result.unmatched {
            let _ = writeln!(text, "not matched within 30 s: {unmatched}");
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

/// Names of the processes and their nodes (file, node).
type ProcessParts = Vec<(String, Vec<(usize, usize)>)>;

fn divide(topologies: &[Topology], division: Division) -> Result<ProcessParts> {
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
    let mut parts: ProcessParts = Vec::new();
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
                    let name = if namespace.is_empty() {
                        node.name.clone()
                    } else {
                        format!("{namespace}.{}", node.name)
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
    // Processes of the same name get different folders.
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

fn worker_command(worker: &[String], task: &ProcessTask) -> Result<Command> {
    let (program, arguments) = worker.split_first().context("no program to start")?;
    let mut command = Command::new(program);
    command.args(arguments).arg(task.to_json().to_string());
    Ok(command)
}

struct RunProcess {
    label: String,
    child: Child,
    stdin: Option<ChildStdin>,
}

impl RunProcess {
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
        let stdin = child.stdin.take();
        let out = child.stdout.take();
        let process = Self {
            label: label.to_owned(),
            child,
            stdin,
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
        Ok(process)
    }
}

impl Drop for RunProcess {
    /// A process that has ended is only reaped.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// All processes of a run.
struct ProcessGroup {
    processes: Vec<RunProcess>,
    lines: Receiver<(usize, Option<String>)>,
    is_interrupted: Box<dyn Fn() -> bool>,
}

impl ProcessGroup {
    /// Waits until every process has printed a line that begins with `word`. On
    /// Ctrl-C sends `when_interrupted`, without which an interrupt is an error.
    fn wait_for(
        &mut self,
        word: &str,
        timeout: Duration,
        when_interrupted: Option<&str>,
    ) -> Result<Vec<String>> {
        let until = Instant::now() + timeout;
        let mut said: Vec<Option<String>> = vec![None; self.processes.len()];
        let mut stop_sent = word == "{";
        while said.iter().any(Option::is_none) {
            if !stop_sent && (self.is_interrupted)() {
                let Some(stop) = when_interrupted else {
                    bail!("interrupted before anything was measured");
                };
                // A process that received the signal continues by itself.
                let _ = self.send_line(stop);
                stop_sent = true;
            }
            match self.lines.recv_timeout(INTERRUPT_POLL) {
                Ok((index, Some(line))) if line.starts_with(word) => {
                    if let Some(place) = said.get_mut(index) {
                        *place = Some(line);
                    }
                }
                // Output of the nodes.
                Ok((_, Some(_))) => {}
                Ok((index, None)) => {
                    if said.get(index).is_some_and(Option::is_none) {
                        let label = self.processes.get(index).map_or("", |m| m.label.as_str());
                        bail!("the process of {label} ended before it printed {word:?}");
                    }
                }
                Err(RecvTimeoutError::Disconnected) => bail!("all processes have ended"),
                Err(RecvTimeoutError::Timeout) if Instant::now() >= until => {
                    let silent = self.processes.iter().zip(&said);
                    let silent = silent.filter(|(_, said)| said.is_none());
                    let labels: Vec<&str> = silent.map(|(m, _)| m.label.as_str()).collect();
                    bail!(
                        "no {word:?} within {} s from: {}",
                        timeout.as_secs(),
                        labels.join(", ")
                    );
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        Ok(said.into_iter().flatten().collect())
    }

    fn send_line(&mut self, word: &str) -> Result<()> {
        for process in &mut self.processes {
            let stdin = process.stdin.as_mut().context("its input is piped")?;
            let outcome = writeln!(stdin, "{word}").and_then(|()| stdin.flush());
            outcome.with_context(|| format!("write to the process of {}", process.label))?;
        }
        Ok(())
    }

    /// Lets the processes end by themselves.
    fn end(&mut self) {
        for process in &mut self.processes {
            drop(process.stdin.take());
            let _ = process.child.wait();
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
