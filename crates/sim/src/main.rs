//! `pteros-sim`: runs seeds, and replays and shrinks the first that fails.
//!
//! Usually called as `cargo xtask sim`. It also tests the mutants (`--mutants`) and
//! the workloads of whole nodes (`--nodes`), and prints its speed.
#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    reason = "a tool that measures its own speed"
)]

use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use pteros_rtps::fault::COMPILED;
use pteros_sim::mutants::{MutantResult, mutants_named, search};
use pteros_sim::nodes::{Workload, replay_command, run as run_workload};
use pteros_sim::plan::{Fault, Options};
use pteros_sim::{RunOutcome, faults, run_guarded, shrink};

const USAGE: &str = "usage: cargo xtask sim [--seeds N] [--start S] [--minutes M] [--standard] \
                     [--with FAULT,...] [--without FAULT,...] \
                     [--fault-millis MS] [--mutant NAME] [--trace] [--shrink] \
                     [--hashes]\n       cargo xtask sim --nodes WORKLOAD|all [--seeds N] [--start S] [--mutant NAME] [--trace]\n       cargo xtask sim --mutants [--only PART] [--seeds N] [--start S]";

/// Lines of a trace that are shown without `--trace`.
const LINES_SHOWN: usize = 60;

/// The parsed command line.
struct Request {
    seeds: Option<u64>,
    start: u64,
    minutes: Option<u64>,
    shrink: bool,
    trace: bool,
    hashes: bool,
    mutants: bool,
    only: String,
    /// Workloads of whole nodes, instead of random graphs.
    workloads: Vec<Workload>,
    options: Options,
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
    if !request.workloads.is_empty() {
        return run_workloads(&request);
    }
    let began = Instant::now();
    let limit = request.minutes.map(|m| Duration::from_secs(60 * m));
    let seeds = request.seeds.unwrap_or(match limit {
        Some(_) => u64::MAX,
        None => 200,
    });
    let mut total = Total::default();
    let mut failed = None;
    for seed in (request.start..).take(usize::try_from(seeds).unwrap_or(usize::MAX)) {
        let outcome = run_guarded(seed, &request.options);
        total.add(&outcome);
        if request.hashes {
            println!("{seed} {:016x}", outcome.hash);
        }
        if !outcome.violations.is_empty() {
            failed = Some(outcome);
            break;
        }
        if request.trace {
            show(&request, seed);
        }
        if limit.is_some_and(|limit| began.elapsed() >= limit) {
            break;
        }
    }
    total.print(began.elapsed());
    let Some(outcome) = failed else {
        return ExitCode::SUCCESS;
    };
    report(&request, &outcome);
    ExitCode::FAILURE
}

/// Runs per mutant, unless `--seeds` sets another number.
const RUNS_PER_MUTANT: u64 = 400;

/// Percentage of mutants that must be detected.
const CAUGHT_PERCENT_MIN: usize = 95;

/// Tests every mutant, on all cores, and prints which were detected.
fn mutants(request: &Request) -> ExitCode {
    let mutants: Vec<_> = mutants_named(&request.only).collect();
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
                    let result = search(*mutant, request.start, seeds, &request.options);
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
    published: u64,
    taken: u64,
    datagrams: u64,
    matches: u64,
    calls: (u64, u64),
}

impl Total {
    fn add(&mut self, outcome: &RunOutcome) {
        self.runs += 1;
        self.simulated += outcome.simulated;
        self.published += outcome.messages.0;
        self.taken += outcome.messages.1;
        self.datagrams += outcome.datagrams;
        self.matches += outcome.matches;
        self.calls.0 += outcome.calls.0;
        self.calls.1 += outcome.calls.1;
    }

    fn print(&self, wall: Duration) {
        let simulated = Duration::from_nanos(self.simulated).as_secs_f64();
        println!(
            "{} seeds, {:.2} simulated hours in {:.1} s: {:.0} simulated seconds a second",
            self.runs,
            simulated / 3600.0,
            wall.as_secs_f64(),
            simulated / wall.as_secs_f64().max(0.001)
        );
        println!(
            "{} messages published, {} taken, {} calls, {} answered, {} datagrams, {} matches",
            self.published, self.taken, self.calls.0, self.calls.1, self.datagrams, self.matches
        );
    }
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Request, String> {
    let mut request = Request {
        seeds: None,
        start: 1,
        minutes: None,
        shrink: false,
        trace: false,
        hashes: false,
        mutants: false,
        only: String::new(),
        workloads: Vec::new(),
        options: Options::default(),
    };
    while let Some(word) = words.next() {
        let mut number = || -> Result<u64, String> {
            let value = words.next().unwrap_or_default();
            let parsed = value.parse();
            parsed.map_err(|_| format!("{word} {value:?}: give a whole number"))
        };
        match word.as_str() {
            "--seeds" => request.seeds = Some(number()?),
            "--start" => request.start = number()?,
            "--minutes" => request.minutes = Some(number()?),
            "--fault-millis" => request.options.fault_millis = Some(number()?),
            "--standard" => request.options.standard = true,
            "--shrink" => request.shrink = true,
            "--trace" => request.trace = true,
            "--hashes" => request.hashes = true,
            "--mutants" => request.mutants = true,
            "--nodes" => request.workloads = workloads_named(&words.next().unwrap_or_default())?,
            "--only" => request.only = words.next().unwrap_or_default(),
            "--mutant" => {
                let name = words.next().unwrap_or_default();
                let mutant = faults::mutant_named(&name).ok_or_else(|| {
                    format!("--mutant {name}: no such mutant; --mutants lists them")
                })?;
                request.options.mutant = Some(mutant);
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
    if !COMPILED && (request.mutants || request.options.mutant.is_some()) {
        return Err("no fault points in this build: build with --features faults".into());
    }
    Ok(request)
}

/// The workloads of that name.
fn workloads_named(name: &str) -> Result<Vec<Workload>, String> {
    if name == "all" {
        return Ok(Workload::ALL.to_vec());
    }
    let known = Workload::ALL.map(Workload::name).join(", ");
    let workload = Workload::named(name);
    Ok(vec![workload.ok_or_else(|| {
        format!("--nodes {name}: no such workload; there are {known}, and all")
    })?])
}

/// Runs seeds of workloads, and prints the first that fails.
fn run_workloads(request: &Request) -> ExitCode {
    let began = Instant::now();
    let seeds = usize::try_from(request.seeds.unwrap_or(20)).unwrap_or(usize::MAX);
    for workload in &request.workloads {
        let (mut simulated, mut asked, mut done) = (Duration::ZERO, 0, 0);
        for seed in (request.start..).take(seeds) {
            let outcome = run_workload(*workload, seed, request.options.mutant, request.trace);
            let failed = !outcome.violations.is_empty();
            if request.trace {
                for line in &outcome.lines {
                    println!("{line}");
                }
            }
            if failed {
                println!("\n{workload}, seed {seed} at commit {} fails:", commit());
                for violation in &outcome.violations {
                    println!("  {violation}");
                }
                println!("replay: {}", replay_command(*workload, seed));
                return ExitCode::FAILURE;
            }
            if request.hashes {
                println!("{workload} {seed} {:016x}", outcome.hash);
            }
            simulated += outcome.simulated;
            asked += outcome.asked.0;
            done += outcome.asked.1;
        }
        println!(
            "{workload}: {seeds} seeds, {:.0} simulated s, {asked} requests, {done} done",
            simulated.as_secs_f64()
        );
    }
    println!("{:.1} s", began.elapsed().as_secs_f64());
    ExitCode::SUCCESS
}

/// The faults of a list of names.
fn faults_named(option: &str, names: &str) -> Result<Vec<Fault>, String> {
    let fault = |name: &str| {
        Fault::named(name).ok_or_else(|| {
            let known = Fault::ALL.map(Fault::name).join(", ");
            format!("{option} {name}: no such fault; there are {known}")
        })
    };
    names.split(',').map(fault).collect()
}

/// Prints what failed, the trace and the replay command.
fn report(request: &Request, outcome: &RunOutcome) {
    let mut options = request.options.clone();
    if request.shrink {
        println!("reducing ...");
        options = shrink(outcome, &options);
    }
    let readable = Options {
        readable: true,
        ..options.clone()
    };
    let again = run_guarded(outcome.seed, &readable);
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
    println!("\nseed {} at commit {} fails:", outcome.seed, commit());
    for violation in &again.violations {
        println!("  {violation}");
    }
    println!("replay: {}", options.replay_command(outcome.seed));
}

fn show(request: &Request, seed: u64) {
    let readable = Options {
        readable: true,
        ..request.options.clone()
    };
    for line in &run_guarded(seed, &readable).lines {
        println!("{line}");
    }
}

fn commit() -> String {
    let arguments = ["describe", "--always", "--dirty", "--abbrev=10"];
    let output = Command::new("git").args(arguments).output();
    let text = output.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned());
    text.ok()
        .filter(|text| !text.is_empty())
        .unwrap_or_else(|| "unknown".into())
}
