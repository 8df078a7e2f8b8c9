//! `pteros-sim`: runs seeds of workloads, and replays and shrinks the first that
//! fails.
//!
//! Usually called as `cargo xtask sim`. The workloads are random graphs, whole nodes
//! (`--nodes`) and scenarios (`--scenarios`). It also tests the mutants
//! (`--mutants`), and prints its speed.
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "measures its own speed")]

use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use pteros_seeded_bugs::INSERTED;
use pteros_sim::fault_points;
use pteros_sim::harness::options::{Fault, Options};
use pteros_sim::harness::shrink::shrink;
use pteros_sim::harness::{Counts, RunOutcome, Workload, run};
use pteros_sim::mutants::{MutantResult, search};
use pteros_sim::world::graph::Graphs;
use pteros_sim::world::nodes::NodeWorkload;
use pteros_sim::world::scenario;

const USAGE: &str = "usage: cargo xtask sim [--nodes WORKLOAD|all | --scenarios PART|all] \
                     [--seeds N] [--start S] [--minutes M] [--standard] \
                     [--with FAULT,...] [--without FAULT,...] \
                     [--fault-millis MS] [--mutant NAME] [--trace] [--shrink] \
                     [--hashes]\n       cargo xtask sim --mutants [--only PART] [--seeds N] [--start S]";

/// Lines of a trace that are shown without `--trace`.
const LINES_SHOWN: usize = 60;

/// The parsed command line.
#[derive(Default)]
struct Request {
    seeds: Option<u64>,
    start: Option<u64>,
    minutes: Option<u64>,
    shrink: bool,
    trace: bool,
    hashes: bool,
    mutants: bool,
    only: String,
    workloads: Vec<Box<dyn Workload>>,
    /// Seeds of each workload, unless `--seeds` or `--minutes` says otherwise.
    seeds_default: u64,
    options: Options,
}

impl Request {
    fn start(&self) -> u64 {
        self.start.unwrap_or(1)
    }

    fn readable(&self) -> Options {
        Options {
            readable: true,
            ..self.options.clone()
        }
    }
}

fn main() -> ExitCode {
    let request = match parse(std::env::args().skip(1)) {
        Ok(request) => request,
        Err(why) => {
            eprintln!("{why}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    if request.mutants {
        return mutants(&request);
    }
    let mut workloads = request.workloads.iter();
    if workloads.all(|workload| run_seeds(&request, &**workload)) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Runs the seeds of a workload up to the first that fails, which it prints. Returns
/// whether all were sound.
fn run_seeds(request: &Request, workload: &dyn Workload) -> bool {
    let began = Instant::now();
    let limit = request.minutes.map(|m| Duration::from_secs(60 * m));
    let seeds = request.seeds.unwrap_or(match limit {
        Some(_) => u64::MAX,
        None => request.seeds_default,
    });
    let mut total = Total::default();
    let mut failed = None;
    for seed in (request.start()..).take(usize::try_from(seeds).unwrap_or(usize::MAX)) {
        let outcome = run(workload, seed, &request.options);
        total.add(&outcome);
        if request.hashes {
            println!("{} {seed} {:016x}", workload.name(), outcome.hash);
        }
        if !outcome.violations.is_empty() {
            failed = Some(outcome);
            break;
        }
        if request.trace {
            for line in &run(workload, seed, &request.readable()).lines {
                println!("{line}");
            }
        }
        if limit.is_some_and(|limit| began.elapsed() >= limit) {
            break;
        }
    }
    total.print(&workload.name(), began.elapsed());
    if let Some(outcome) = &failed {
        report(request, workload, outcome);
    }
    failed.is_none()
}

/// Runs per mutant, unless `--seeds` sets another number.
const RUNS_PER_MUTANT: u64 = 400;

/// Percentage of mutants that must be detected.
const CAUGHT_PERCENT_MIN: usize = 95;

/// Tests every mutant, on all cores, and prints which were detected.
fn mutants(request: &Request) -> ExitCode {
    let mutants: Vec<_> = fault_points::mutants()
        .filter(|mutant| mutant.name.contains(&request.only))
        .collect();
    if mutants.is_empty() {
        eprintln!("--only {}: no mutant has this in its name", request.only);
        return ExitCode::from(2);
    }
    // A panic is a result here and is not printed.
    std::panic::set_hook(Box::new(|_| {}));
    let began = Instant::now();
    let seeds = request.seeds.unwrap_or(RUNS_PER_MUTANT);
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<MutantResult>> = Mutex::default();
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                while let Some(mutant) = mutants.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let began = Instant::now();
                    let result = search(*mutant, request.start(), seeds, &request.options);
                    println!("{result}, {:.2} s", began.elapsed().as_secs_f64());
                    results.lock().push(result);
                }
            });
        }
    });
    let results = results.into_inner();
    let caught = results.iter().filter(|v| v.caught.is_some()).count();
    println!(
        "{caught} of {} mutants caught in {:.1} s; replay one with --mutant NAME --start SEED --seeds 1",
        results.len(),
        began.elapsed().as_secs_f64()
    );
    if 100 * caught >= CAUGHT_PERCENT_MIN * results.len() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Sums over the runs.
#[derive(Default)]
struct Total {
    runs: u64,
    simulated: u64,
    counts: Counts,
}

impl Total {
    fn add(&mut self, outcome: &RunOutcome) {
        self.runs += 1;
        self.simulated += outcome.simulated;
        self.counts += outcome.counts;
    }

    fn print(&self, name: &str, wall: Duration) {
        let simulated = Duration::from_nanos(self.simulated).as_secs_f64();
        println!(
            "{name}: {} seeds, {:.2} simulated hours in {:.1} s: {:.0} simulated seconds a second",
            self.runs,
            simulated / 3600.0,
            wall.as_secs_f64(),
            simulated / wall.as_secs_f64().max(0.001)
        );
        let counts = &self.counts;
        println!(
            "{} messages published, {} taken, {} calls, {} answered, {} datagrams, {} matches",
            counts.published,
            counts.taken,
            counts.asked,
            counts.answered,
            counts.datagrams,
            counts.matches
        );
    }
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Request, String> {
    let mut request = Request {
        workloads: vec![Box::new(Graphs)],
        seeds_default: 200,
        ..Request::default()
    };
    while let Some(word) = words.next() {
        let mut number = || -> Result<u64, String> {
            let value = words.next().unwrap_or_default();
            let parsed = value.parse();
            parsed.map_err(|_| format!("{word} {value:?}: give a whole number"))
        };
        match word.as_str() {
            "--seeds" => request.seeds = Some(number()?),
            "--start" => request.start = Some(number()?),
            "--minutes" => request.minutes = Some(number()?),
            "--fault-millis" => request.options.fault_millis = Some(number()?),
            "--standard" => request.options.standard = true,
            "--shrink" => request.shrink = true,
            "--trace" => request.trace = true,
            "--hashes" => request.hashes = true,
            "--mutants" => request.mutants = true,
            "--nodes" => {
                request.workloads = nodes_named(&words.next().unwrap_or_default())?;
                request.seeds_default = 20;
            }
            "--scenarios" => {
                request.workloads = scenarios_named(&words.next().unwrap_or_default())?;
                request.seeds_default = 1;
            }
            "--only" => request.only = words.next().unwrap_or_default(),
            "--mutant" => {
                let name = words.next().unwrap_or_default();
                let known = fault_points::mutants().find(|mutant| mutant.name == name);
                let mutant = known.ok_or_else(|| {
                    format!("--mutant {name}: no such mutant; --mutants lists them")
                })?;
                request.options.mutant = Some(mutant.name);
            }
            "--without" | "--with" => {
                let names = words.next().unwrap_or_default();
                let faults = faults_named(&word, &names)?;
                match word.as_str() {
                    "--with" => request.options.forced = faults,
                    _ => request.options.without = faults,
                }
            }
            _ => return Err(format!("{word}: not an option")),
        }
    }
    if !INSERTED && (request.mutants || request.options.mutant.is_some()) {
        return Err(
            "no seeded bugs in this build: run `cargo xtask sim`, which inserts them".into(),
        );
    }
    Ok(request)
}

/// The workloads of nodes of that name.
fn nodes_named(name: &str) -> Result<Vec<Box<dyn Workload>>, String> {
    let mut named = Vec::from(NodeWorkload::ALL);
    named.retain(|workload| name == "all" || workload.name() == name);
    if named.is_empty() {
        let known = NodeWorkload::ALL.map(|workload| workload.name()).join(", ");
        return Err(format!(
            "--nodes {name}: no such workload; there are {known}, and all"
        ));
    }
    Ok(boxed(named))
}

/// The scenarios with a part of a name.
fn scenarios_named(part: &str) -> Result<Vec<Box<dyn Workload>>, String> {
    let mut named = scenario::all()?;
    named.retain(|scenario| part == "all" || scenario.name().contains(part));
    if named.is_empty() {
        return Err(format!(
            "--scenarios {part}: no scenario has this in its name"
        ));
    }
    Ok(boxed(named))
}

fn boxed(workloads: Vec<impl Workload + 'static>) -> Vec<Box<dyn Workload>> {
    let workloads = workloads.into_iter();
    workloads
        .map(|workload| Box::new(workload) as Box<dyn Workload>)
        .collect()
}

/// The faults of a list of names.
fn faults_named(option: &str, names: &str) -> Result<Vec<Fault>, String> {
    let fault = |name: &str| {
        Fault::named(name).ok_or_else(|| {
            let known = list(Fault::ALL.iter().map(|fault| fault.name()).collect());
            format!("{option} {name}: no such fault; there are {known}")
        })
    };
    names.split(',').map(fault).collect()
}

/// Names for a message. Not inlined: `join` over names that LLVM knows takes it more
/// than ten minutes (constraint elimination, exponential in their number).
#[inline(never)]
fn list(names: Vec<&str>) -> String {
    names.join(", ")
}

/// Prints what failed, the trace and the replay command.
fn report(request: &Request, workload: &dyn Workload, outcome: &RunOutcome) {
    let mut options = request.readable();
    if request.shrink {
        println!("reducing ...");
        options = shrink(workload, outcome, &options);
    }
    let again = run(workload, outcome.seed, &options);
    let skip = if request.trace {
        0
    } else {
        again.lines.len().saturating_sub(LINES_SHOWN)
    };
    if skip > 0 {
        println!("... {skip} lines before; --trace shows them");
    }
    for line in &again.lines[skip..] {
        println!("{line}");
    }
    let (name, seed) = (workload.name(), outcome.seed);
    println!("\n{name}, seed {seed} at commit {} fails:", commit());
    for violation in &again.violations {
        println!("  {violation}");
    }
    println!(
        "replay: {}",
        options.replay_command(&workload.selection(), seed)
    );
}

fn commit() -> String {
    let arguments = ["describe", "--always", "--dirty", "--abbrev=10"];
    let output = Command::new("git").args(arguments).output();
    let text = output.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned());
    text.ok()
        .filter(|text| !text.is_empty())
        .unwrap_or_else(|| "unknown".into())
}
