//! `cargo xtask bench host [--quick] [--only ROW,…]`: one host, ours beside
//! Cyclone DDS, Fast DDS, iceoryx2 and Zenoh, and beside what the kernel allows.
//!
//! Every row is asked of every contestant in turns, in a private network with
//! a shared-memory file system of its own. Wall time reports, it never fails a
//! build: ratios of one run mean much more than its numbers.

mod aims;
mod measure;
mod report;
mod rows;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use anyhow::{Context, Result, bail};

use super::median;
use crate::{host_peers, namespace, peers};
use pteros_testbed::{Contestant, Failure, contestant};
use rows::Row;

/// The task that runs inside the namespace.
pub const INSIDE_TASK: &str = "bench-host-inside";

const USAGE: &str = "usage: cargo xtask bench host [--quick] [--only ROW,...] [--contestants NAME,...] [--repeats N] [--json FILE] [--list]\n\
     ROW: the begin of row names, as inter-64B or discovery; --list prints them all";

/// Repeats that bring nothing before the rest of a cell is left out.
const FAILURES_MAX: usize = 2;

/// What the command line says.
#[derive(Default)]
struct Plan {
    quick: bool,
    list: bool,
    only: Vec<String>,
    contestants: Vec<String>,
    repeats: usize,
    json: Option<PathBuf>,
}

/// One row's answers of one contestant.
pub struct Cell {
    row: String,
    contestant: &'static str,
    repeats: Vec<Vec<(&'static str, f64)>>,
    path: Option<String>,
    failures: usize,
    why_not: Option<String>,
}

/// All answers of a run.
#[derive(Default)]
pub struct Results {
    cells: Vec<Cell>,
}

impl Cell {
    /// The names of its figures, in the order of measuring.
    fn names(&self) -> impl Iterator<Item = &'static str> {
        let first = self.repeats.first().into_iter().flatten();
        first.map(|(name, _)| *name)
    }

    /// The median of a figure over the repeats.
    fn figure(&self, name: &str) -> Option<f64> {
        let of = |figures: &Vec<(&str, f64)>| figures.iter().find(|f| f.0 == name).map(|f| f.1);
        let all: Vec<f64> = self.repeats.iter().filter_map(of).collect();
        (!all.is_empty()).then(|| median(all))
    }
}

impl Results {
    fn cell(&mut self, row: &str, contestant: &'static str) -> &mut Cell {
        let is_it = |c: &Cell| c.row == row && c.contestant == contestant;
        let index = self.cells.iter().position(is_it).unwrap_or_else(|| {
            self.cells.push(Cell {
                row: row.into(),
                contestant,
                repeats: Vec::new(),
                path: None,
                failures: 0,
                why_not: None,
            });
            self.cells.len() - 1
        });
        &mut self.cells[index]
    }

    fn add(&mut self, row: &str, contestant: &'static str, figures: &[(&'static str, f64)]) {
        self.cell(row, contestant).repeats.push(figures.to_vec());
    }

    fn why_not(&mut self, row: &str, contestant: &'static str, why: &str) {
        let cell = self.cell(row, contestant);
        cell.failures += 1;
        cell.why_not = Some(why.into());
    }

    /// The median of a contestant's figure in a row.
    fn figure(&self, row: &str, contestant: &str, name: &str) -> Option<f64> {
        let is_it = |c: &&Cell| c.row == row && c.contestant == contestant;
        self.cells.iter().find(is_it)?.figure(name)
    }
}

/// Prepares what is measured, then measures it in a private network.
pub fn run(flags: &[String]) -> Result<ExitStatus> {
    let plan = Plan::parse(flags)?;
    let own = std::env::current_exe()?;
    if plan.list {
        plan.chosen()
            .iter()
            .for_each(|row| println!("{}", row.name));
        return Command::new("true").status().context("run true");
    }
    let folder = host_peers::prepare(&plan.contestants)?;
    super::build(&["host-peer"])?;
    namespace::command(true, &own.to_string_lossy())?
        .arg(INSIDE_TASK)
        .arg(folder)
        .args(flags)
        .status()
        .context("run the bench in a private network")
}

/// The inner half.
pub fn run_inside(arguments: &[String]) -> Result<()> {
    let [folder, flags @ ..] = arguments else {
        bail!(USAGE);
    };
    let plan = Plan::parse(flags)?;
    let programs = peers::target_folder()?.join("release");
    let mut all = contestant::all(Path::new(folder), &programs.join("host-peer"), &[]);
    // Which needs a master beside it, and has a row in none of the questions.
    all.retain(|c| c.stack != contestant::ROS1);
    let contestants = contestant::chosen(all, &plan.contestants)?;
    let clean = private_shared_memory();
    println!(
        "One host, two processes and more; median of {} repeats, contestants in turns.",
        plan.repeats
    );
    for who in &contestants {
        let missing = if who.is_there() { "" } else { " – not built" };
        println!("  {:<16} {}{missing}", who.name, who.about);
    }
    let rows = plan.chosen();
    let mut results = Results::default();
    let mut turn = 0;
    for (index, row) in rows.iter().enumerate() {
        eprint!("{} of {}: {}", index + 1, rows.len(), row.name);
        for repeat in 0..plan.repeats {
            eprint!(".");
            for at in 0..contestants.len() {
                let who = &contestants[(at + repeat) % contestants.len()];
                turn += 1;
                ask(row, who, &plan, turn, &mut results);
                if clean {
                    measure::sweep_shared_memory();
                }
            }
        }
        eprintln!();
        // In the order of the head, whoever came first.
        let order = |c: &Cell| contestants.iter().position(|who| who.name == c.contestant);
        results.cells.sort_by_key(|c| (c.row != row.name, order(c)));
        print!("{}", report::row(row, &results));
    }
    print!("{}", report::aims(&rows, &results));
    if let Some(file) = &plan.json {
        let json = serde_json::to_string_pretty(&report::json(&rows, &results))?;
        std::fs::write(file, json + "\n").with_context(|| format!("write {}", file.display()))?;
    }
    Ok(())
}

/// A file system of this run's own, so that it may be cleared in between.
fn private_shared_memory() -> bool {
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "tmpfs", "/dev/shm"])
        .status();
    mounted.is_ok_and(|status| status.success())
}

/// One repeat of a cell.
fn ask(row: &Row, who: &Contestant, plan: &Plan, turn: u64, results: &mut Results) {
    if !measure::is_asked(&row.kind, who.name) || !who.is_there() {
        return;
    }
    let cell = results.cell(&row.name, who.name);
    if cell.failures >= FAILURES_MAX {
        return;
    }
    match measure::measure(&row.kind, who, plan.quick, turn) {
        Ok(outcome) => {
            results.add(&row.name, who.name, &outcome.figures);
            results.cell(&row.name, who.name).path = outcome.path;
        }
        Err(Failure::Unsupported(why)) => {
            results.why_not(&row.name, who.name, &why);
            results.cell(&row.name, who.name).failures = FAILURES_MAX;
        }
        Err(Failure::Failed(why)) => {
            eprintln!("\n{}, {}: {why}", row.name, who.name);
            results.why_not(&row.name, who.name, &why);
        }
    }
}

impl Plan {
    fn parse(flags: &[String]) -> Result<Self> {
        let mut plan = Self::default();
        let mut flags = flags.iter();
        while let Some(flag) = flags.next() {
            let mut value = || {
                flags
                    .next()
                    .with_context(|| format!("{flag} lacks a value"))
            };
            let list = |value: &str| value.split(',').map(str::to_owned).collect();
            match flag.as_str() {
                "--quick" => plan.quick = true,
                "--list" => plan.list = true,
                "--json" => plan.json = Some(value()?.into()),
                "--repeats" => plan.repeats = value()?.parse().context("--repeats")?,
                "--only" => plan.only = list(value()?),
                "--contestants" => plan.contestants = list(value()?),
                other => bail!("{other}: no such option\n{USAGE}"),
            }
        }
        for wanted in &plan.only {
            if !rows::all().iter().any(|row| row.name.starts_with(wanted)) {
                bail!("--only {wanted}: no row begins so; --list prints them all");
            }
        }
        contestant::chosen(Vec::new(), &plan.contestants)?;
        if plan.repeats == 0 {
            plan.repeats = if plan.quick { 1 } else { 5 };
        }
        Ok(plan)
    }

    /// The rows that this run asks: with `--only` also those that are not quick.
    fn chosen(&self) -> Vec<Row> {
        let mut all = rows::all();
        all.retain(|row| match self.only.is_empty() {
            true => row.quick || !self.quick,
            false => self.only.iter().any(|wanted| row.name.starts_with(wanted)),
        });
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Plan, String> {
        let flags: Vec<String> = line.split(' ').map(str::to_owned).collect();
        Plan::parse(&flags).map_err(|e| e.to_string())
    }

    #[test]
    fn rows_are_chosen_by_the_begin_of_their_names() {
        let names = |line: &str| -> Vec<String> {
            let chosen = parse(line).expect("right").chosen();
            chosen.into_iter().map(|row| row.name).collect()
        };
        assert_eq!(
            names("--quick --only discovery-20"),
            ["discovery-20", "discovery-200"]
        );
        assert!(names("--quick").len() < names("--repeats 5").len());
    }

    #[test]
    fn a_wrong_option_is_named() {
        let wrong = |line: &str| parse(line).err().unwrap_or_default();
        assert!(wrong("--only them").contains("--only them"));
        assert!(wrong("--contestants them").contains("expected floor"));
        assert!(wrong("--slow").contains("--slow"));
        assert!(wrong("--json").contains("lacks a value"));
    }

    #[test]
    fn a_figure_is_the_median_of_its_repeats() {
        let mut results = Results::default();
        for p50 in [5.0, 900.0, 6.0] {
            results.add("row", "floor", &[("p50", p50)]);
        }
        assert_eq!(results.figure("row", "floor", "p50"), Some(6.0));
        assert_eq!(results.figure("row", "floor", "p99"), None);
    }
}
