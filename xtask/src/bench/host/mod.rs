//! `cargo xtask bench host [--quick] [--only ROW,…]`: Pteros on one host, compared
//! with Cyclone DDS, Fast DDS, iceoryx2 and Zenoh, and with the limit of the
//! kernel.
//!
//! Implementations take turns in every row, in a private network with a private
//! shared-memory file system. Wall time is reported and never fails a build. Ratios
//! within one run mean much more than absolute numbers.

mod measure;
mod report;
mod rows;
mod targets;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use anyhow::{Context, Result, bail};

use super::median;
use crate::{host_peers, namespace, peers};
use pteros_testbed::{Implementation, MeasurementFailure, implementation};
use rows::Row;

/// Name of the task that runs inside the namespace.
pub const INSIDE_TASK: &str = "bench-host-inside";

const USAGE: &str = "usage: cargo xtask bench host [--quick] [--only ROW,...] [--implementations NAME,...] [--repeats N] [--json FILE] [--list]\n\
     ROW: the start of row names, for example inter-64B or discovery; --list prints them all";

/// Failed repeats before the remaining ones of a row and implementation are
/// skipped.
const FAILURES_MAX: usize = 2;

/// Parsed command line.
#[derive(Default)]
struct HostBenchPlan {
    quick: bool,
    list: bool,
    only: Vec<String>,
    implementations: Vec<String>,
    repeats: usize,
    json: Option<PathBuf>,
}

/// Results of one implementation in one row.
pub struct RowResult {
    row: String,
    implementation: &'static str,
    repeats: Vec<Vec<(&'static str, f64)>>,
    path: Option<String>,
    failures: usize,
    failure: Option<String>,
}

/// All results of a run.
#[derive(Default)]
pub struct Results {
    row_results: Vec<RowResult>,
}

impl RowResult {
    /// Names of the row's values, in the order of measuring.
    fn names(&self) -> impl Iterator<Item = &'static str> {
        let first = self.repeats.first().into_iter().flatten();
        first.map(|(name, _)| *name)
    }

    /// Median of a value over the repeats.
    fn figure(&self, name: &str) -> Option<f64> {
        let of = |figures: &Vec<(&str, f64)>| figures.iter().find(|f| f.0 == name).map(|f| f.1);
        let all: Vec<f64> = self.repeats.iter().filter_map(of).collect();
        (!all.is_empty()).then(|| median(all))
    }
}

impl Results {
    fn row_result(&mut self, row: &str, implementation: &'static str) -> &mut RowResult {
        let is_same = |c: &RowResult| c.row == row && c.implementation == implementation;
        let index = self
            .row_results
            .iter()
            .position(is_same)
            .unwrap_or_else(|| {
                self.row_results.push(RowResult {
                    row: row.into(),
                    implementation,
                    repeats: Vec::new(),
                    path: None,
                    failures: 0,
                    failure: None,
                });
                self.row_results.len() - 1
            });
        &mut self.row_results[index]
    }

    fn add(&mut self, row: &str, implementation: &'static str, figures: &[(&'static str, f64)]) {
        self.row_result(row, implementation)
            .repeats
            .push(figures.to_vec());
    }

    fn record_failure(&mut self, row: &str, implementation: &'static str, why: &str) {
        let row_result = self.row_result(row, implementation);
        row_result.failures += 1;
        row_result.failure = Some(why.into());
    }

    /// Median of an implementation's value in a row.
    fn figure(&self, row: &str, implementation: &str, name: &str) -> Option<f64> {
        let is_same = |c: &&RowResult| c.row == row && c.implementation == implementation;
        self.row_results.iter().find(is_same)?.figure(name)
    }
}

/// Builds the programs, then measures them in a private network.
pub fn run(flags: &[String]) -> Result<ExitStatus> {
    let plan = HostBenchPlan::parse(flags)?;
    let own = std::env::current_exe()?;
    if plan.list {
        plan.chosen()
            .iter()
            .for_each(|row| println!("{}", row.name));
        return Command::new("true").status().context("run true");
    }
    let folder = host_peers::prepare(&plan.implementations)?;
    super::build(&["host-peer"])?;
    namespace::command(true, &own.to_string_lossy())?
        .arg(INSIDE_TASK)
        .arg(folder)
        .args(flags)
        .status()
        .context("run the bench in a private network")
}

/// Runs the measurement inside the namespace.
pub fn run_inside(arguments: &[String]) -> Result<()> {
    let [folder, flags @ ..] = arguments else {
        bail!(USAGE);
    };
    let plan = HostBenchPlan::parse(flags)?;
    let programs = peers::target_folder()?.join("release");
    let mut all = implementation::all(Path::new(folder), &programs.join("host-peer"));
    // ROS 1 needs a master process and has no row here.
    all.retain(|c| c.stack != implementation::ROS1);
    let implementations = implementation::select(all, &plan.implementations)?;
    let clean = private_shared_memory();
    println!(
        "One host, two or more processes; median of {} repeats, implementations take turns.",
        plan.repeats
    );
    for implementation in &implementations {
        let missing = if implementation.is_built() {
            ""
        } else {
            " – not built"
        };
        println!(
            "  {:<16} {}{missing}",
            implementation.name, implementation.about
        );
    }
    let rows = plan.chosen();
    let mut results = Results::default();
    let mut topic_number = 0;
    for (index, row) in rows.iter().enumerate() {
        eprint!("{} of {}: {}", index + 1, rows.len(), row.name);
        for repeat in 0..plan.repeats {
            eprint!(".");
            for at in 0..implementations.len() {
                let implementation = &implementations[(at + repeat) % implementations.len()];
                topic_number += 1;
                measure_once(row, implementation, &plan, topic_number, &mut results);
                if clean {
                    measure::remove_shared_memory_files();
                }
            }
        }
        eprintln!();
        // In the order of the table's head, whatever the order of measuring.
        let order = |c: &RowResult| {
            implementations
                .iter()
                .position(|implementation| implementation.name == c.implementation)
        };
        results
            .row_results
            .sort_by_key(|c| (c.row != row.name, order(c)));
        print!("{}", report::row(row, &results));
    }
    print!("{}", report::targets(&rows, &results));
    if let Some(file) = &plan.json {
        let json = serde_json::to_string_pretty(&report::json(&rows, &results))?;
        std::fs::write(file, json + "\n").with_context(|| format!("write {}", file.display()))?;
    }
    Ok(())
}

/// Mounts a private file system for shared memory, so that the run may clear it.
fn private_shared_memory() -> bool {
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "tmpfs", "/dev/shm"])
        .status();
    mounted.is_ok_and(|status| status.success())
}

/// Runs one repeat of one row and implementation.
fn measure_once(
    row: &Row,
    implementation: &Implementation,
    plan: &HostBenchPlan,
    topic_number: u64,
    results: &mut Results,
) {
    if !measure::applies_to(&row.kind, implementation.name) || !implementation.is_built() {
        return;
    }
    let row_result = results.row_result(&row.name, implementation.name);
    if row_result.failures >= FAILURES_MAX {
        return;
    }
    match measure::measure(&row.kind, implementation, plan.quick, topic_number) {
        Ok(outcome) => {
            results.add(&row.name, implementation.name, &outcome.figures);
            results.row_result(&row.name, implementation.name).path = outcome.path;
        }
        Err(MeasurementFailure::Unsupported(why)) => {
            results.record_failure(&row.name, implementation.name, &why);
            results.row_result(&row.name, implementation.name).failures = FAILURES_MAX;
        }
        Err(MeasurementFailure::Failed(why)) => {
            eprintln!("\n{}, {}: {why}", row.name, implementation.name);
            results.record_failure(&row.name, implementation.name, &why);
        }
    }
}

impl HostBenchPlan {
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
                "--implementations" => plan.implementations = list(value()?),
                other => bail!("{other}: no such option\n{USAGE}"),
            }
        }
        for wanted in &plan.only {
            if !rows::all().iter().any(|row| row.name.starts_with(wanted)) {
                bail!("--only {wanted}: no row name starts with this; --list prints them all");
            }
        }
        implementation::select(Vec::new(), &plan.implementations)?;
        if plan.repeats == 0 {
            plan.repeats = if plan.quick { 1 } else { 5 };
        }
        Ok(plan)
    }

    /// Rows of this run. `--only` also selects rows that are not quick.
    fn chosen(&self) -> Vec<Row> {
        let mut all = rows::all();
        all.retain(|row| {
            if self.only.is_empty() {
                row.quick || !self.quick
            } else {
                self.only.iter().any(|wanted| row.name.starts_with(wanted))
            }
        });
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<HostBenchPlan, String> {
        let flags: Vec<String> = line.split(' ').map(str::to_owned).collect();
        HostBenchPlan::parse(&flags).map_err(|e| e.to_string())
    }

    #[test]
    fn rows_are_selected_by_a_prefix_of_their_names() {
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
        assert!(wrong("--implementations them").contains("expected floor"));
        assert!(wrong("--slow").contains("--slow"));
        assert!(wrong("--json").contains("lacks a value"));
    }

    #[test]
    fn a_value_is_the_median_of_its_repeats() {
        let mut results = Results::default();
        for p50 in [5.0, 900.0, 6.0] {
            results.add("row", "floor", &[("p50", p50)]);
        }
        assert_eq!(results.figure("row", "floor", "p50"), Some(6.0));
        assert_eq!(results.figure("row", "floor", "p99"), None);
    }
}
