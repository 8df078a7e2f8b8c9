//! A run: who and what takes part, a private network around it, then cell by cell
//! in turns.
//!
//! The order is repeat, cell, contestant: A B C, A B C, … so that whatever the
//! machine does over time befalls all alike. Each finished repeat is on the disk before the
//! next begins, so Ctrl-C, a kill or a full disk costs one, and the next run with the same folder
//! goes on there.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use pteros::suggest::did_you_mean;
use pteros_net::ShutdownSignal;
use pteros_testbed::contestant::PTEROS;
use pteros_testbed::watch::Load;
use pteros_testbed::{Contestant, Failure, Workplace, contestant, network, programs};

use crate::experiment::{Better, Cell, Experiment, Extent, Metric, Scope};
use crate::lab::{Lab, Rights, WORKER_PROGRAM, Worker};
use crate::progress::{Progress, time_text};
use crate::report::Report;
use crate::store::{Entry, Journal, Outcome, Store};
use crate::{environment, experiments};

/// Set in the network that a run has made for itself.
const INSIDE: &str = "PTEROS_LAB_NETWORK";

/// Repeats of a cell that fail before the rest of it is left out.
const FAILURES_MAX: usize = 2;

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Request {
    /// Papers (`m16`), experiments (`m16.1`) or `all`.
    pub what: Vec<String>,
    /// How much.
    pub extent: Extent,
    /// Other stacks that take part; `None` is all that fit, empty is none.
    pub peers: Option<Vec<String>>,
    /// The folder of the run.
    pub out: PathBuf,
    /// Of each cell; `None` is the extent's own number.
    pub repeats: Option<usize>,
    /// Whether missing stacks may be installed.
    pub may_install: bool,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// All was measured, or told why not.
    Done,
    /// Ctrl-C; what was measured is kept and reported.
    Interrupted,
    /// Ctrl-C before anything was measured: there is nothing to report.
    Unbegun,
}

impl Request {
    /// The experiments that are meant, in the papers' order.
    ///
    /// # Errors
    /// A word that names none, with those that are like it.
    pub fn experiments(&self) -> Result<Vec<&'static Experiment>> {
        let mut chosen: Vec<&'static Experiment> = Vec::new();
        for word in &self.what {
            let word = word.to_lowercase();
            let is_meant = |id: &str| {
                word == "all"
                    || id == word
                    || id.split_once('.').is_some_and(|(paper, _)| paper == word)
            };
            let before = chosen.len();
            for experiment in experiments::ALL.iter().copied().filter(|e| is_meant(e.id)) {
                if !chosen.iter().any(|e| e.id == experiment.id) {
                    chosen.push(experiment);
                }
            }
            let is_known = experiments::ALL.iter().any(|e| is_meant(e.id));
            if chosen.len() == before && !is_known {
                let known = experiments::names();
                bail!(
                    "no experiment {word:?}{}; `pteros lab list` has them all",
                    did_you_mean(&word, known.iter().map(String::as_str)).trim_end_matches('.')
                );
            }
        }
        chosen.sort_by_key(|e| experiments::ALL.iter().position(|known| known.id == e.id));
        Ok(chosen)
    }

    /// The other stacks that take part: those that are wanted and of which the
    /// experiments have cells.
    fn stacks(&self, chosen: &[&Experiment]) -> Result<Vec<String>> {
        let known = contestant::peer_stacks();
        let all = Scope {
            extent: self.extent,
            contestants: contestant::names(),
        };
        let mut fitting: Vec<String> = Vec::new();
        for cell in chosen
            .iter()
            .flat_map(|experiment| (experiment.cells)(&all))
        {
            let stack = contestant::stack_of(cell.contestant);
            if known.contains(&stack) && !fitting.iter().any(|name| name == stack) {
                fitting.push(stack.to_owned());
            }
        }
        let Some(wanted) = &self.peers else {
            return Ok(fitting);
        };
        let is_unknown = |name: &&String| !known.contains(&name.as_str());
        if let Some(name) = wanted.iter().find(is_unknown) {
            bail!(
                "--peers {name}: no such peer{} Expected {}, or none",
                did_you_mean(name, known.iter().copied()),
                known.join(", ")
            );
        }
        fitting.retain(|stack| wanted.contains(stack));
        Ok(fitting)
    }
}

/// Runs it. Outside of a private network this program starts itself anew inside of
/// one, with the same words, where the system allows that.
///
/// # Errors
/// A wrong word, a folder that cannot be written, a full disk.
pub fn run(request: &Request, stop: &ShutdownSignal, say: &mut dyn FnMut(String)) -> Result<Ended> {
    let chosen = request.experiments()?;
    let stacks = request.stacks(&chosen)?;
    let store = Store::create(&request.out, request.extent)?;
    let is_inside = std::env::var_os(INSIDE).is_some();
    let may_install = request.may_install && !is_inside;
    // Who has no home has the run's own folder.
    let work = workplace(cache(), may_install)
        .or_else(|_| workplace(request.out.join("peers"), may_install))?;
    // Without a word this would mean all.
    let built = match stacks.is_empty() {
        true => Vec::new(),
        false => programs::prepare(&work, &stacks, &|| stop.is_requested()),
    };
    // Nobody would know of it inside.
    if stop.is_requested() {
        return Ok(Ended::Unbegun);
    }
    let rights = environment::rights();
    // One that somebody else has made is no other run's as long as this has its own.
    if !is_inside && network::available().is_ok() {
        return Err(enter_network());
    }
    let mut missing = Vec::new();
    missing.extend(environment::lack_of_room(&request.out, request.extent));
    for program in &built {
        if let Err(why) = &program.outcome {
            missing.push(format!("{}: {why:#}", program.stack));
        }
    }
    let contestants = contestants(&stacks, &work, &rights, &mut missing)?;
    for text in &missing {
        say(format!("missing: {text}"));
    }
    let scope = Scope {
        extent: request.extent,
        contestants: contestants.iter().map(|c| c.name).collect(),
    };
    let there: Vec<Contestant> = contestants
        .into_iter()
        .filter(Contestant::is_there)
        .collect();
    let repeats = |experiment: &Experiment| {
        let asked = request.repeats;
        asked.unwrap_or_else(|| usual_repeats(experiment, &scope))
    };
    let most = chosen.iter().map(|e| repeats(e)).max().unwrap_or(0);
    let described = environment::describe(request.extent, most, &rights, &there, &missing);
    store.write("environment.json", &format!("{described:#}\n"))?;
    let lab = Lab::new(request.extent, there, rights, &request.out.join("scratch"))?;
    let plan = Plan::new(&chosen, &scope, &repeats, &lab, &store)?;
    if plan.finished > 0 {
        say(format!(
            "{} has {} of {} repeats already; going on",
            request.out.display(),
            plan.finished,
            plan.finished + plan.steps.len()
        ));
    }
    say(format!(
        "{} repeats of cells, {} by their own estimates",
        plan.steps.len(),
        time_text(Duration::from_secs_f64(plan.seconds()))
    ));
    let ended = plan.walk(&lab, &store, stop, say);
    if matches!(ended, Ok(Ended::Interrupted)) && !store.has_measured() {
        return Ok(Ended::Unbegun);
    }
    // What was measured before the disk was full is shown as far as that goes.
    let written = Report::load(&store).and_then(|report| report.write(&store));
    let ended = ended?;
    written?;
    Ok(ended)
}

/// How often the cells of an experiment are measured unless asked otherwise. What is
/// told, not compared, needs no statistics; nor does, where it is to be quick, what only ours
/// has cells of.
fn usual_repeats(experiment: &Experiment, scope: &Scope) -> usize {
    let is_compared = |m: &Metric| m.better != Better::Neither;
    let is_ours = |cell: &Cell| contestant::stack_of(cell.contestant) == PTEROS;
    let is_told = !experiment.metrics.iter().any(is_compared);
    let is_alone = scope.extent == Extent::Quick && (experiment.cells)(scope).iter().all(is_ours);
    match is_told || is_alone {
        true => 1,
        false => scope.extent.repeats(),
    }
}

/// Where peers' programs are built once for all runs of a user.
fn cache() -> PathBuf {
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.filter(|path| path.is_absolute()).or_else(home);
    cache.unwrap_or_else(std::env::temp_dir).join("pteros/lab")
}

fn workplace(target: PathBuf, may_install: bool) -> Result<Workplace> {
    let sources = target.join("sources");
    programs::unpack(&sources)?;
    Workplace::open(sources, target, may_install)
}

/// Becomes this very command inside a network of its own; returns why not.
fn enter_network() -> anyhow::Error {
    let enter = || -> Result<std::io::Error> {
        let own = std::env::current_exe().context("find this program's own path")?;
        let mut command = network::command(true, &own.to_string_lossy())?;
        command.env(INSIDE, "yes");
        Ok(command.args(std::env::args_os().skip(1)).exec())
    };
    match enter() {
        Ok(error) => anyhow!("start the run in a network of its own: {error}"),
        Err(error) => error,
    }
}

/// Who takes part, ours first. Without a private network all must keep to this host.
fn contestants(
    stacks: &[String],
    work: &Workplace,
    rights: &Rights,
    missing: &mut Vec<String>,
) -> Result<Vec<Contestant>> {
    let worker = Worker::find()?;
    if worker.is_command() {
        missing.push(format!(
            "{WORKER_PROGRAM} is not beside this program: the command itself is measured, whose size and memory are \
             not a node's; cargo build --release builds both"
        ));
    }
    let mut all = contestant::all(&work.programs, &worker.program, worker.leading);
    all.retain(|c| c.is_ours() || stacks.iter().any(|stack| stack == c.stack));
    all.sort_by_key(|c| !c.is_ours());
    if rights.network.is_ok() {
        return Ok(all);
    }
    for contestant in &mut all {
        match contestant.stack {
            "pteros" => contestant
                .environment
                .push(("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST".into())),
            "cyclone" => {
                let on_loopback = "<General><Interfaces><NetworkInterface address=\"127.0.0.1\"/></Interfaces></General>";
                let settings = contestant.environment.iter_mut();
                match settings
                    .into_iter()
                    .find(|(name, _)| *name == "CYCLONEDDS_URI")
                {
                    Some((_, uri)) => uri.push_str(on_loopback),
                    None => contestant
                        .environment
                        .push(("CYCLONEDDS_URI", on_loopback.into())),
                }
            }
            stack => missing.push(format!(
                "{stack}: would be heard outside of this host without a network of its own"
            )),
        }
    }
    all.retain(|c| ["pteros", "cyclone"].contains(&c.stack));
    Ok(all)
}

/// One repeat of one cell.
struct Step {
    experiment: &'static Experiment,
    cell: Cell,
    repeat: usize,
}

/// What is still to be done.
struct Plan {
    steps: Vec<Step>,
    /// Repeats that the folder had already.
    finished: usize,
}

impl Plan {
    fn new(
        chosen: &[&'static Experiment],
        scope: &Scope,
        repeats: &dyn Fn(&Experiment) -> usize,
        lab: &Lab,
        store: &Store,
    ) -> Result<Self> {
        let mut plan = Self {
            steps: Vec::new(),
            finished: 0,
        };
        for experiment in chosen {
            let cells = (experiment.cells)(scope);
            let before = store.entries(experiment.id)?;
            for repeat in 0..repeats(experiment) {
                for cell in in_turns(&cells, repeat) {
                    if lab.contestant(cell.contestant).is_err() {
                        continue;
                    }
                    match before.iter().any(|e| is_settled(e, cell, repeat)) {
                        true => plan.finished += 1,
                        false => plan.steps.push(Step {
                            experiment,
                            cell: cell.clone(),
                            repeat,
                        }),
                    }
                }
            }
        }
        Ok(plan)
    }

    /// What all of it takes by the cells' own estimates.
    fn seconds(&self) -> f64 {
        self.steps.iter().map(|s| s.cell.seconds).sum()
    }

    fn walk(
        &self,
        lab: &Lab,
        store: &Store,
        stop: &ShutdownSignal,
        say: &mut dyn FnMut(String),
    ) -> Result<Ended> {
        let mut progress = Progress::new(self.seconds());
        let mut journal: Option<(&str, Journal)> = None;
        let mut failed: Vec<(String, usize)> = Vec::new();
        for step in &self.steps {
            let id = step.experiment.id;
            let key = format!("{id} {}", step.cell.key());
            let count = failed
                .iter()
                .filter(|(of, _)| *of == key)
                .map(|f| f.1)
                .sum::<usize>();
            if count >= FAILURES_MAX {
                progress.end(step.cell.seconds);
                continue;
            }
            progress.begin(&key);
            let before = Load::now()?;
            let outcome = match (step.experiment.run)(lab, &step.cell) {
                Ok(measured) => Outcome::Measured(measured),
                Err(Failure::Unsupported(why)) => {
                    failed.push((key.clone(), FAILURES_MAX));
                    Outcome::Unsupported(why)
                }
                Err(Failure::Failed(why)) => {
                    failed.push((key.clone(), 1));
                    Outcome::Failed(why)
                }
            };
            // What Ctrl-C reached may have failed by that alone.
            if stop.is_requested() {
                progress.close();
                return Ok(Ended::Interrupted);
            }
            if let Outcome::Failed(why) = &outcome {
                progress.close();
                say(format!("{key}: {why}"));
            }
            let others = Load::now()?.others_since(before);
            if journal.as_ref().is_none_or(|(of, _)| *of != id) {
                let names: Vec<&str> = step.cell.case.iter().map(|(name, _)| *name).collect();
                journal = Some((id, store.append(step.experiment, &names)?));
            }
            if let Some((_, journal)) = &mut journal {
                journal.add(step.experiment, &step.cell, step.repeat, others, outcome)?;
            }
            progress.end(step.cell.seconds);
        }
        progress.close();
        Ok(Ended::Done)
    }
}

/// Whether a repeat need not be asked: it was measured, or the stack has no such thing.
fn is_settled(entry: &Entry, cell: &Cell, repeat: usize) -> bool {
    let is_unsupported = entry.failure.is_some() && entry.is_final();
    let same = entry.contestant == cell.contestant
        && entry.case.len() == cell.case.len()
        && entry
            .case
            .iter()
            .zip(&cell.case)
            .all(|(a, b)| a.0 == b.0 && a.1 == b.1);
    same && entry.is_final() && (entry.repeat == repeat || is_unsupported)
}

/// The cells in their order, but those of one case begin with another contestant
/// each time.
fn in_turns(cells: &[Cell], repeat: usize) -> Vec<&Cell> {
    let mut order: Vec<&Cell> = cells.iter().collect();
    for same in order.chunk_by_mut(|a, b| a.case == b.case) {
        let by = repeat % same.len().max(1);
        same.rotate_left(by);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The estimates are those of a machine that has other things to do, too.
    const QUICK_MAX: f64 = 20.0 * 60.0;

    #[test]
    fn all_of_a_quick_run_fits_into_twenty_minutes() {
        let scope = Scope {
            extent: Extent::Quick,
            contestants: contestant::names(),
        };
        let seconds = |experiment: &&'static Experiment| {
            let once: f64 = (experiment.cells)(&scope).iter().map(|c| c.seconds).sum();
            once * usual_repeats(experiment, &scope) as f64
        };
        let list: Vec<(&str, f64)> = experiments::ALL
            .iter()
            .map(|e| (e.id, seconds(e)))
            .collect();
        let all: f64 = list.iter().map(|(_, seconds)| seconds).sum();
        assert!(all <= QUICK_MAX, "{all:.0} s: {list:.0?}");
    }
}
