//! `pteros-sim`: runs seeds, replays and reduces the first that fails, and says
//! how fast it went. Usually called as `cargo xtask sim`.
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
use pteros_sim::mutants::{Verdict, bugs_named, hunt};
use pteros_sim::nodes::{Act, play, replay};
use pteros_sim::plan::{Fault, Options};
use pteros_sim::{Outcome, faults, reduce, run_guarded};

const USAGE: &str = "usage: cargo xtask sim [--seeds N] [--start S] [--minutes M] [--standard] \
                     [--with FAULT,...] [--without FAULT,...] \
                     [--fault-millis MS] [--bug NAME] [--trace] [--shrink] \
                     [--hashes]\n       cargo xtask sim --nodes ACT|all [--seeds N] [--start S] [--bug NAME] [--trace]\n       cargo xtask sim --mutants [--only PART] [--seeds N] [--start S]";

/// Lines of a trace that are shown without `--trace`.
const LINES_SHOWN: usize = 60;

/// What the command line asks for.
struct Request {
    seeds: Option<u64>,
    start: u64,
    minutes: Option<u64>,
    shrink: bool,
    trace: bool,
    hashes: bool,
    mutants: bool,
    only: String,
    /// Acts of whole nodes, in place of graphs.
    acts: Vec<Act>,
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
    if !request.acts.is_empty() {
        return play_nodes(&request);
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

/// Runs that may take to notice a bug, unless `--seeds` says otherwise.
const RUNS_PER_BUG: u64 = 400;

/// Of a hundred bugs so many must be noticed.
const CAUGHT_PERCENT_MIN: usize = 95;

/// Tries every bug, on all cores, and says which were noticed.
fn mutants(request: &Request) -> ExitCode {
    let bugs: Vec<_> = bugs_named(&request.only).collect();
    if bugs.is_empty() {
        eprintln!("--only {}: no bug is named so", request.only);
        return ExitCode::from(2);
    }
    // Panics are verdicts here, not news.
    std::panic::set_hook(Box::new(|_| {}));
    let began = Instant::now();
    let seeds = request.seeds.unwrap_or(RUNS_PER_BUG);
    let next = AtomicUsize::new(0);
    let verdicts: Mutex<Vec<Verdict>> = Mutex::default();
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                while let Some(bug) = bugs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let began = Instant::now();
                    let verdict = hunt(*bug, request.start, seeds, &request.options);
                    println!("{verdict}, {:.2} s", began.elapsed().as_secs_f64());
                    verdicts.lock().push(verdict);
                }
            });
        }
    });
    let verdicts = verdicts.into_inner();
    let caught = verdicts.iter().filter(|v| v.caught.is_some()).count();
    println!(
        "{caught} of {} bugs caught in {:.1} s; a bug is replayed with --bug NAME --start SEED --seeds 1",
        verdicts.len(),
        began.elapsed().as_secs_f64()
    );
    match 100 * caught >= CAUGHT_PERCENT_MIN * verdicts.len() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
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
    fn add(&mut self, outcome: &Outcome) {
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
        acts: Vec::new(),
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
            "--nodes" => request.acts = acts_named(&words.next().unwrap_or_default())?,
            "--only" => request.only = words.next().unwrap_or_default(),
            "--bug" => {
                let name = words.next().unwrap_or_default();
                let bug = faults::bug(&name)
                    .ok_or_else(|| format!("--bug {name}: no such bug; --mutants lists them"))?;
                request.options.bug = Some(bug);
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
    if !COMPILED && (request.mutants || request.options.bug.is_some()) {
        return Err("no fault points in this build: build with --features faults".into());
    }
    Ok(request)
}

/// The acts of that name.
fn acts_named(name: &str) -> Result<Vec<Act>, String> {
    if name == "all" {
        return Ok(Act::ALL.to_vec());
    }
    let known = Act::ALL.map(Act::name).join(", ");
    let act = Act::named(name);
    Ok(vec![act.ok_or_else(|| {
        format!("--nodes {name}: no such act; there are {known}, and all")
    })?])
}

/// Plays seeds of acts, and shows the first that fails.
fn play_nodes(request: &Request) -> ExitCode {
    let began = Instant::now();
    let seeds = usize::try_from(request.seeds.unwrap_or(20)).unwrap_or(usize::MAX);
    for act in &request.acts {
        let (mut simulated, mut asked, mut done) = (Duration::ZERO, 0, 0);
        for seed in (request.start..).take(seeds) {
            let played = play(*act, seed, request.options.bug, request.trace);
            let failed = !played.violations.is_empty();
            if request.trace {
                for line in &played.lines {
                    println!("{line}");
                }
            }
            if failed {
                println!("\n{act}, seed {seed} at commit {} fails:", commit());
                for violation in &played.violations {
                    println!("  {violation}");
                }
                println!("replay: {}", replay(*act, seed));
                return ExitCode::FAILURE;
            }
            if request.hashes {
                println!("{act} {seed} {:016x}", played.hash);
            }
            simulated += played.simulated;
            asked += played.asked.0;
            done += played.asked.1;
        }
        println!(
            "{act}: {seeds} seeds, {:.0} simulated s, {asked} asked for, {done} done",
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

/// What failed, where, and how to see it again.
fn report(request: &Request, outcome: &Outcome) {
    let mut options = request.options.clone();
    if request.shrink {
        println!("reducing ...");
        options = reduce(outcome, &options);
    }
    let readable = Options {
        readable: true,
        ..options.clone()
    };
    let again = run_guarded(outcome.seed, &readable);
    let skip = match request.trace {
        true => 0,
        false => again.lines.len().saturating_sub(LINES_SHOWN),
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
    println!("replay: {}", options.replay(outcome.seed));
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
