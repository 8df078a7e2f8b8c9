//! `cargo xtask bench composition [--quick]`: cost of nodes as separate processes,
//! composed by hand and loaded by a component container (Macenski et al. 2023, fig.
//! 2 and table I).
//!
//! It measures the memory of 1 to 20 empty nodes, and the memory and CPU time of a
//! graph of fifteen. As many processes of Cyclone DDS run for comparison, if their
//! program can be built. It runs in a private network, reports, and never fails.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::footprint::{cpu_ticks, pss_kb};
use crate::{namespace, peers};

/// Name of the task that runs inside the namespace.
pub const INSIDE_TASK: &str = "bench-composition-inside";

const USAGE: &str = "usage: cargo xtask bench composition [--quick]";
const NODES: [usize; 6] = [1, 2, 5, 10, 15, 20];
const GRAPH_NODES: usize = 15;
/// Pause before processes are measured; discovery is over by then.
const REST: Duration = Duration::from_secs(2);
const LIBRARY: &str = "compose_library";
/// Targets: KB of a composed node, KB of loading over composing by hand.
const NODE_KB_MAX: f64 = 60.0;
const DYNAMIC_KB_MAX: i64 = 100;

/// Builds the programs, then measures them in a private network.
pub fn run(flags: &[String]) -> Result<ExitStatus> {
    is_quick(flags, USAGE)?;
    let folder = peers::prepare_for_bench().unwrap_or_else(|why| {
        println!("without Cyclone DDS, because its program could not be built: {why:#}");
        PathBuf::new()
    });
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args([
            "build",
            "--release",
            "--quiet",
            "--package",
            "pteros-demo-components",
        ])
        .args(["--lib", "--bins", "--examples"])
        .status()
        .context("run cargo")?;
    if !status.success() {
        bail!("cargo build --release: {status}");
    }
    let own = std::env::current_exe()?;
    namespace::command(true, &own.to_string_lossy())?
        .arg(INSIDE_TASK)
        .arg(folder)
        .args(flags)
        .status()
        .context("run the bench in a private network")
}

/// Whether the flags contain `--quick`. Any other flag is an error with the usage.
pub(super) fn is_quick(flags: &[String], usage: &'static str) -> Result<bool> {
    match flags {
        [] => Ok(false),
        [flag] if flag == "--quick" => Ok(true),
        _ => bail!(usage),
    }
}

/// Runs the measurement inside the namespace.
pub fn run_inside(arguments: &[String]) -> Result<()> {
    let [folder, flags @ ..] = arguments else {
        bail!(USAGE);
    };
    let quick = is_quick(flags, USAGE)?;
    let programs = Programs {
        release: peers::target_folder()?.join("release"),
        cyclone: Path::new(folder).join("cyclone-peer"),
    };
    let numbers: &[usize] = if quick { &[1, 2, 10] } else { &NODES };
    println!("Empty nodes, as in ROS 2 (with parameter services)");
    programs.nodes("Empty", numbers)?;
    println!("Empty nodes without parameter services");
    programs.nodes("Bare", numbers)?;
    programs.graph(Duration::from_secs(if quick { 3 } else { 10 }))
}

/// Paths of the programs.
struct Programs {
    release: PathBuf,
    cyclone: PathBuf,
}

/// How nodes are distributed over processes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Placement {
    Processes,
    Static,
    Shared,
    Container(&'static str),
    Cyclone,
}

impl Placement {
    fn name(self) -> String {
        match self {
            Self::Processes => "one process each".into(),
            Self::Static => "by hand, static".into(),
            Self::Shared => "by hand, shared library".into(),
            Self::Container(executor) => format!("container, {executor}"),
            Self::Cyclone => "Cyclone DDS, one process each".into(),
        }
    }
}

impl Programs {
    fn nodes(&self, class: &str, numbers: &[usize]) -> Result<()> {
        let head: Vec<String> = numbers.iter().map(|n| format!("{n:>8}")).collect();
        println!(
            "  {:<30}{}{:>10}",
            "PSS of all processes, KB",
            head.concat(),
            "per node"
        );
        let placements = [
            Placement::Processes,
            Placement::Static,
            Placement::Shared,
            Placement::Container("single"),
            Placement::Cyclone,
        ];
        let mut rows = Vec::new();
        for placement in placements {
            if placement == Placement::Cyclone && (class == "Bare" || !self.cyclone.is_file()) {
                continue;
            }
            let mut row = Vec::new();
            for number in numbers {
                let processes = self.start(placement, class, *number)?;
                std::thread::sleep(REST);
                row.push(pss_of(&processes)?);
            }
            let cells: Vec<String> = row.iter().map(|kb| format!("{kb:>8}")).collect();
            let per_node = slope(numbers, &row);
            println!(
                "  {:<30}{}{per_node:>10.1}",
                placement.name(),
                cells.concat()
            );
            rows.push((placement, row, per_node));
        }
        let find = |placement| rows.iter().find(|row| row.0 == placement);
        println!("Targets");
        for placement in [
            Placement::Static,
            Placement::Shared,
            Placement::Container("single"),
        ] {
            if let Some((placement, _, per_node)) = find(placement) {
                let met = met_text(*per_node <= NODE_KB_MAX);
                println!(
                    "  {met}: a node {}: {per_node:.1} KB of {NODE_KB_MAX}",
                    placement.name()
                );
            }
        }
        let (container, shared) = (
            find(Placement::Container("single")),
            find(Placement::Shared),
        );
        if let (Some(container), Some(shared)) = (container, shared) {
            let more = container.1.iter().zip(&shared.1);
            let more = more.map(|(c, s)| c.cast_signed() - s.cast_signed()).max();
            let more = more.unwrap_or_default();
            let met = met_text(more <= DYNAMIC_KB_MAX);
            println!("  {met}: container minus composing by hand: {more} KB of {DYNAMIC_KB_MAX}");
        }
        if let Some((_, row, _)) = find(Placement::Processes) {
            let last = row.last().copied().unwrap_or_default() as f64;
            let number = numbers.last().copied().unwrap_or(1) as f64;
            let half = numbers.len() / 2;
            let (middle, count) = (row[half] as f64, numbers[half] as f64);
            // On a straight line the second half is as steep as the first.
            let early = (middle - row[0] as f64) / (count - 1.0);
            let late = (last - middle) / (number - count).max(1.0);
            let met = met_text(late <= early * 1.2);
            println!(
                "  {met}: processes linear in their number: {early:.0} KB each up to {count}, {late:.0} KB beyond"
            );
        }
        Ok(())
    }

    fn start(&self, placement: Placement, class: &str, number: usize) -> Result<Vec<Process>> {
        let by_hand = |program: &str, nodes: usize| {
            let mut command = Command::new(self.release.join("examples").join(program));
            command.args([&class.to_lowercase(), &nodes.to_string()]);
            Process::start(command, "ready")
        };
        Ok(match placement {
            Placement::Processes => (0..number)
                .map(|_| by_hand("compose_static", 1))
                .collect::<Result<_>>()?,
            Placement::Static => vec![by_hand("compose_static", number)?],
            Placement::Shared => vec![by_hand("compose_shared", number)?],
            Placement::Container(executor) => {
                let nodes = (0..number).map(|node| (format!("empty_{node}"), None));
                vec![self.container(executor, class, nodes)?]
            }
            Placement::Cyclone => (0..number)
                .map(|_| {
                    let mut command = Command::new(&self.cyclone);
                    command.arg("sub");
                    Process::start(command, "ready")
                })
                .collect::<Result<_>>()?,
        })
    }

    fn graph(&self, time: Duration) -> Result<()> {
        println!("Active graph of {GRAPH_NODES} managed nodes");
        println!("  {:<30}{:>10}{:>8}", "", "PSS KB", "CPU %");
        let placements = [
            Placement::Processes,
            Placement::Static,
            Placement::Shared,
            Placement::Container("single"),
            Placement::Container("isolated"),
            Placement::Container("multi"),
        ];
        for placement in placements {
            let processes = self.start_graph(placement)?;
            std::thread::sleep(REST);
            let began = Instant::now();
            let before = ticks_of(&processes)?;
            std::thread::sleep(time);
            let ticks = ticks_of(&processes)? - before;
            // USER_HZ is 100 on every supported Linux, so a tick per second is one
            // percent.
            let percent = ticks as f64 / began.elapsed().as_secs_f64();
            let pss = pss_of(&processes)?;
            println!("  {:<30}{pss:>10}{percent:>8.2}", placement.name());
        }
        println!(
            "  Published for ROS 2 on x86 (Macenski et al. 2023, table I, 15 nodes of Nav2 themselves):"
        );
        println!(
            "  one process each 118.85 MB and 48.6 %, by hand 67.13 MB and 36.6 %, container 67.67 MB and 36.1 %"
        );
        Ok(())
    }

    fn start_graph(&self, placement: Placement) -> Result<Vec<Process>> {
        let by_hand = |program: &str, words: &[&str]| {
            let mut command = Command::new(self.release.join("examples").join(program));
            command.args(words);
            Process::start(command, "ready")
        };
        Ok(match placement {
            Placement::Processes => (0..GRAPH_NODES)
                .map(|row| by_hand("compose_static", &["row", &row.to_string()]))
                .collect::<Result<_>>()?,
            Placement::Static => vec![by_hand("compose_static", &["graph"])?],
            Placement::Shared => vec![by_hand("compose_shared", &["graph"])?],
            Placement::Container(executor) => {
                let rows = (0..GRAPH_NODES).map(|row| (format!("row_{row}"), Some(row)));
                vec![self.container(executor, "GraphNode", rows)?]
            }
            Placement::Cyclone => bail!("Cyclone DDS has no such graph"),
        })
    }

    fn container(
        &self,
        executor: &str,
        class: &str,
        nodes: impl Iterator<Item = (String, Option<usize>)>,
    ) -> Result<Process> {
        let mut command = Command::new(self.release.join("pteros-container"));
        command
            .env("PTEROS_COMPONENT_PATH", self.release.join("examples"))
            .args(["--executor", executor]);
        for (name, row) in nodes {
            command.args([
                "--load",
                LIBRARY,
                &format!("{LIBRARY}::{class}"),
                "-n",
                &name,
            ]);
            if let Some(row) = row {
                command.args(["-p", &format!("row:={row}")]);
            }
        }
        Process::start(command, "is ready")
    }
}

/// A measured process, killed on drop.
pub(super) struct Process(Child);

impl Process {
    /// Starts the process and waits for a line that ends with these words.
    pub(super) fn start(mut command: Command, ready: &str) -> Result<Self> {
        for variable in [
            "ROS_DOMAIN_ID",
            "ROS_LOCALHOST_ONLY",
            "ROS_STATIC_PEERS",
            "RUST_LOG",
            // `cargo xtask` sets this to the library of the dev build, which is the
            // wrong one here.
            "LD_LIBRARY_PATH",
        ] {
            command.env_remove(variable);
        }
        let program = command.get_program().to_string_lossy().into_owned();
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("start {program}"))?;
        let mut process = Self(child);
        let said = match ready {
            "ready" => process.0.stdout.take().map(|out| read_until(out, ready)),
            _ => process.0.stderr.take().map(|err| read_until(err, ready)),
        };
        match said {
            Some(Ok(true)) => Ok(process),
            _ => bail!("{program} ended before it was ready"),
        }
    }
}

/// Reads up to a line that ends with these words. A thread drains the rest.
fn read_until(output: impl std::io::Read + Send + 'static, words: &str) -> Result<bool> {
    let mut lines = BufReader::new(output).lines();
    while let Some(line) = lines.next() {
        if line?.ends_with(words) {
            std::thread::spawn(move || lines.for_each(drop));
            return Ok(true);
        }
    }
    Ok(false)
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(super) fn pss_of(processes: &[Process]) -> Result<u64> {
    let mut sum = 0;
    for process in processes {
        sum += pss_kb(process.0.id())?;
    }
    Ok(sum)
}

pub(super) fn ticks_of(processes: &[Process]) -> Result<u64> {
    let mut sum = 0;
    for process in processes {
        sum += cpu_ticks(process.0.id())?;
    }
    Ok(sum)
}

/// Cost of one more node, between the smallest and the largest number.
fn slope(numbers: &[usize], kb: &[u64]) -> f64 {
    match (numbers, kb) {
        ([few, .., many], [least, .., most]) => {
            (*most as f64 - *least as f64) / (many - few) as f64
        }
        _ => f64::NAN,
    }
}

pub(super) fn met_text(is_met: bool) -> &'static str {
    if is_met { "met" } else { "not met" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slope_is_computed_from_the_smallest_and_largest_number() {
        assert_eq!(slope(&[1, 2, 20], &[1000, 1500, 1950]), 50.0);
        assert!(slope(&[1], &[1000]).is_nan());
    }
}
