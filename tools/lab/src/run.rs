//! Runs experiments: selects implementations, enters a private network, and
//! measures all configurations in turns.
//!
//! The order is repeat, configuration, implementation (A B C, A B C, …), so that
//! changes of the machine over time affect all equally. Each finished repeat is on
//! disk before the next begins. Ctrl-C, a kill or a full disk cost one repeat, and
//! the next run with the same folder resumes there.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::time::Duration;

use crate::testbed::implementation::{FLOOR, PTEROS, RCLCPP, RCLPY, ROSBAG2, WHEEL};
use crate::testbed::procfs::CpuLoad;
use crate::testbed::{
    Implementation, MeasurementFailure, PeerBuild, implementation, network, programs, ros2, wheel,
};
use anyhow::{Context, Result, anyhow, bail};
use pteros::msg::suggest::did_you_mean;
use pteros_net::ShutdownSignal;

use crate::experiment::{Experiment, Paper, Scope};
use crate::experiments::own;
use crate::lab::{Lab, Privileges, worker};
use crate::measurement::{Better, Configuration, Extent, Metric};
use crate::progress::{Progress, time_text};
use crate::report::Report;
use crate::store::{Journal, JournalEntry, RepeatOutcome, Store};
use crate::{environment, experiments};

/// Set inside the private network of a run.
const INSIDE_VARIABLE: &str = "PTEROS_LAB_NETWORK";

/// Failed repeats of a configuration before the rest is skipped.
const FAILED_REPEATS_MAX: usize = 2;

/// Options of a run.
#[derive(Clone, Debug)]
pub struct RunRequest {
    /// Papers (`m16`), experiments (`m16.1`), `own` benchmarks, or `all` of the
    /// papers.
    pub what: Vec<String>,
    pub extent: Extent,
    /// Other stacks. `None` selects all that apply, empty none.
    pub peers: Option<Vec<String>>,
    /// Implementations by name. Empty selects all.
    pub implementations: Vec<String>,
    /// Starts of cases (`inter-64B`). If there are any, all configurations of a full
    /// run whose case begins so are measured, and no others.
    pub only: Vec<String>,
    /// The folder of the run.
    pub out: PathBuf,
    /// Repeats of each configuration. `None` is the default of the extent.
    pub repeats: Option<usize>,
    /// Whether missing stacks may be installed.
    pub install_allowed: bool,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunStatus {
    /// Everything was measured, or has a reason why not.
    Done,
    /// Ctrl-C. The results so far are kept and reported.
    Interrupted,
    /// Ctrl-C before any result.
    NothingMeasured,
}

/// The values of a case, as `--only` compares them.
fn case(configuration: &Configuration) -> String {
    let values = configuration.case.iter().map(|(_, value)| value.as_str());
    values.collect::<Vec<_>>().join(" ")
}

impl RunRequest {
    /// The cases of an experiment's full run.
    ///
    /// # Errors
    /// No such experiment.
    pub fn cases(id: &str) -> Result<Vec<String>> {
        let Some(experiment) = experiments::ALL.iter().find(|e| e.id == id) else {
            let known = experiments::ALL.iter().map(|e| e.id);
            bail!("no experiment {id:?}{}", did_you_mean(id, known));
        };
        let scope = Scope {
            extent: Extent::Full,
            implementations: implementation::names(),
        };
        let mut cases: Vec<String> = (experiment.configurations)(&scope)
            .iter()
            .map(case)
            .collect();
        cases.dedup();
        Ok(cases)
    }

    /// The selected experiments in the order of the papers.
    ///
    /// # Errors
    /// An unknown word, with similar ones.
    pub fn experiments(&self) -> Result<Vec<&'static Experiment>> {
        let mut chosen: Vec<&'static Experiment> = Vec::new();
        for word in &self.what {
            let word = word.to_lowercase();
            let is_meant = |e: &Experiment| {
                (word == "all" && e.paper != Paper::Own)
                    || e.id == word
                    || e.id.split_once('.').is_some_and(|(paper, _)| paper == word)
            };
            let before = chosen.len();
            for experiment in experiments::ALL.iter().copied().filter(|e| is_meant(e)) {
                if !chosen.iter().any(|e| e.id == experiment.id) {
                    chosen.push(experiment);
                }
            }
            let is_known = experiments::ALL.iter().any(|e| is_meant(e));
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

    /// The other stacks that take part: selected, and with configurations in the
    /// experiments.
    fn stacks(&self, chosen: &[&Experiment]) -> Result<Vec<String>> {
        let known = implementation::peer_stacks();
        let all = Scope {
            extent: self.extent,
            implementations: implementation::names(),
        };
        let mut fitting: Vec<String> = Vec::new();
        for configuration in chosen
            .iter()
            .flat_map(|experiment| self.configurations(experiment, &all))
        {
            let stack = implementation::stack_of(configuration.implementation);
            let is_other = known.contains(&stack) || stack == FLOOR;
            if is_other && !fitting.iter().any(|name| name == stack) {
                fitting.push(stack.to_owned());
            }
        }
        let Some(wanted) = &self.peers else {
            let of_ros2 = [own::ros2::EXPERIMENT.id, own::ros2::OF_WHEEL.id];
            let is_of_ros2 = chosen.iter().any(|e| of_ros2.contains(&e.id));
            fitting.retain(|stack| is_of_ros2 || !implementation::is_client_library(stack));
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
        fitting.retain(|stack| stack == FLOOR || wanted.contains(stack));
        Ok(fitting)
    }

    /// The configurations of an experiment that this run measures.
    fn configurations(&self, experiment: &Experiment, scope: &Scope) -> Vec<Configuration> {
        let wider = Scope {
            extent: Extent::Full,
            ..scope.clone()
        };
        let scope = if self.only.is_empty() { scope } else { &wider };
        let mut all = (experiment.configurations)(scope);
        all.retain(|c| {
            let of = &self.implementations;
            (of.is_empty() || of.iter().any(|name| name == c.implementation))
                && (self.only.is_empty()
                    || self.only.iter().any(|start| case(c).starts_with(start)))
        });
        all
    }
}

/// Runs experiments. Outside of a private network the program executes itself
/// inside of one with the same arguments, if the system allows it.
///
/// # Errors
/// A wrong argument, a folder that cannot be written, a full disk.
pub fn run(
    request: &RunRequest,
    stop: &ShutdownSignal,
    print_line: &mut dyn FnMut(String),
) -> Result<RunStatus> {
    let chosen = request.experiments()?;
    implementation::select(Vec::new(), &request.implementations)?;
    let stacks = request.stacks(&chosen)?;
    let store = Store::create(&request.out, request.extent)?;
    let is_inside = std::env::var_os(INSIDE_VARIABLE).is_some();
    let may_install = request.install_allowed && !is_inside;
    // Without a home directory the run's own folder is used.
    let peer_build = open_peer_build(cache(), may_install)
        .or_else(|_| open_peer_build(request.out.join("peers"), may_install))?;
    // An empty list would select all stacks.
    let built = if stacks.is_empty() {
        Vec::new()
    } else {
        programs::prepare(&peer_build, &stacks, &|| stop.is_requested())
    };
    // The process inside would not see the interrupt.
    if stop.is_requested() {
        return Ok(RunStatus::NothingMeasured);
    }
    let privileges = environment::privileges();
    // A private network of another program may be shared with other runs.
    if !is_inside && network::available().is_ok() {
        return Err(enter_network());
    }
    let mut missing = Vec::new();
    missing.extend(environment::low_disk_warning(&request.out, request.extent));
    for program in &built {
        if let Err(why) = &program.outcome {
            missing.push(format!("{}: {why:#}", program.stack));
        }
    }
    let implementations = implementations(&stacks, &peer_build, &privileges, &mut missing)?;
    for text in &missing {
        print_line(format!("missing: {text}"));
    }
    let scope = Scope {
        extent: request.extent,
        implementations: implementations.iter().map(|c| c.name).collect(),
    };
    let available: Vec<Implementation> = implementations
        .into_iter()
        .filter(Implementation::is_built)
        .collect();
    let repeats = |experiment: &Experiment| {
        let asked = request.repeats;
        asked.unwrap_or_else(|| default_repeats(experiment, &scope))
    };
    let most = chosen.iter().map(|e| repeats(e)).max().unwrap_or(0);
    let described = environment::describe(request.extent, most, &privileges, &available, &missing);
    store.write("environment.json", &format!("{described:#}\n"))?;
    let lab = Lab::new(
        request.extent,
        available,
        privileges,
        &request.out.join("scratch"),
    )?;
    let plan = RunPlan::new(request, &chosen, &scope, &repeats, &lab, &store)?;
    if plan.finished > 0 {
        print_line(format!(
            "{} has {} of {} repeats already; resuming",
            request.out.display(),
            plan.finished,
            plan.finished + plan.tasks.len()
        ));
    }
    print_line(format!(
        "{} repeats of configurations, estimated time {}",
        plan.tasks.len(),
        time_text(Duration::from_secs_f64(plan.seconds()))
    ));
    let ended = plan.execute(&lab, &store, stop, print_line);
    if matches!(ended, Ok(RunStatus::Interrupted)) && !store.has_measured() {
        return Ok(RunStatus::NothingMeasured);
    }
    // With a full disk the results so far are shown.
    let written = Report::load(&store).and_then(|report| report.write(&store));
    let ended = ended?;
    written?;
    Ok(ended)
}

/// Default repeats of an experiment. One repeat suffices for metrics without
/// comparison, and in quick runs for experiments of Pteros alone and benchmarks.
fn default_repeats(experiment: &Experiment, scope: &Scope) -> usize {
    let is_compared = |m: &Metric| m.better != Better::Neither;
    let is_ours = |configuration: &Configuration| {
        implementation::stack_of(configuration.implementation) == PTEROS
    };
    let is_informative = !experiment.metrics.iter().any(is_compared);
    let is_ours_only =
        scope.extent == Extent::Quick && (experiment.configurations)(scope).iter().all(is_ours);
    let is_quick_benchmark = scope.extent == Extent::Quick && experiment.paper == Paper::Own;
    if is_informative || is_ours_only || is_quick_benchmark {
        1
    } else {
        scope.extent.repeats()
    }
}

/// Build directory of the peers' programs, shared by all runs of a user.
fn cache() -> PathBuf {
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.filter(|path| path.is_absolute()).or_else(home);
    cache.unwrap_or_else(std::env::temp_dir).join("pteros/lab")
}

fn open_peer_build(target: PathBuf, may_install: bool) -> Result<PeerBuild> {
    let sources = target.join("sources");
    programs::unpack(&sources)?;
    PeerBuild::open(sources, target, may_install)
}

/// Executes this command inside a private network. Returns why that failed.
fn enter_network() -> anyhow::Error {
    let enter = || -> Result<std::io::Error> {
        let own = std::env::current_exe().context("find this program's own path")?;
        let mut command = network::command(true, &own.to_string_lossy())?;
        command.env(INSIDE_VARIABLE, "yes");
        Ok(command.args(std::env::args_os().skip(1)).exec())
    };
    match enter() {
        Ok(error) => anyhow!("start the run in a network of its own: {error}"),
        Err(error) => error,
    }
}

/// The implementations, Pteros first. Without a private network only those that
/// stay on this host.
fn implementations(
    stacks: &[String],
    peer_build: &PeerBuild,
    privileges: &Privileges,
    missing: &mut Vec<String>,
) -> Result<Vec<Implementation>> {
    let mut all = implementation::all(&peer_build.programs, &worker()?);
    all.retain(|c| c.is_ours() || stacks.iter().any(|stack| stack == c.stack));
    all.sort_by_key(|c| !c.is_ours());
    ros2::complete(&mut all, &peer_build.target, missing)?;
    wheel::complete(&mut all)?;
    if privileges.network.is_ok() {
        return Ok(all);
    }
    for implementation in &mut all {
        match implementation.stack {
            // It sends on loopback only.
            FLOOR => {}
            PTEROS | RCLCPP | RCLPY | ROSBAG2 | WHEEL => implementation
                .environment
                .push(("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST".into())),
            "cyclone" => {
                let on_loopback = "<General><Interfaces><NetworkInterface address=\"127.0.0.1\"/></Interfaces></General>";
                let settings = implementation.environment.iter_mut();
                match settings
                    .into_iter()
                    .find(|(name, _)| *name == "CYCLONEDDS_URI")
                {
                    Some((_, uri)) => uri.push_str(on_loopback),
                    None => implementation
                        .environment
                        .push(("CYCLONEDDS_URI", on_loopback.into())),
                }
            }
            stack => missing.push(format!(
                "{stack}: needs a private network, because it would send off this host"
            )),
        }
    }
    let stay = [PTEROS, RCLCPP, RCLPY, ROSBAG2, WHEEL, "cyclone", FLOOR];
    all.retain(|c| stay.contains(&c.stack));
    Ok(all)
}

/// Runs one repeat of one configuration.
struct RepeatTask {
    experiment: &'static Experiment,
    configuration: Configuration,
    repeat: usize,
}

/// The remaining work of a run.
struct RunPlan {
    tasks: Vec<RepeatTask>,
    /// Repeats that the folder already has.
    finished: usize,
}

impl RunPlan {
    fn new(
        request: &RunRequest,
        chosen: &[&'static Experiment],
        scope: &Scope,
        repeats: &dyn Fn(&Experiment) -> usize,
        lab: &Lab,
        store: &Store,
    ) -> Result<Self> {
        let mut plan = Self {
            tasks: Vec::new(),
            finished: 0,
        };
        for experiment in chosen {
            let configurations = request.configurations(experiment, scope);
            let before = store.entries(experiment.id)?;
            for repeat in 0..repeats(experiment) {
                for configuration in interleaved(&configurations, repeat) {
                    if lab.implementation(configuration.implementation).is_err() {
                        continue;
                    }
                    if before.iter().any(|e| is_settled(e, configuration, repeat)) {
                        plan.finished += 1
                    } else {
                        plan.tasks.push(RepeatTask {
                            experiment,
                            configuration: configuration.clone(),
                            repeat,
                        })
                    }
                }
            }
        }
        Ok(plan)
    }

    /// Estimated duration in seconds.
    fn seconds(&self) -> f64 {
        self.tasks.iter().map(|s| s.configuration.seconds).sum()
    }

    fn execute(
        &self,
        lab: &Lab,
        store: &Store,
        stop: &ShutdownSignal,
        print_line: &mut dyn FnMut(String),
    ) -> Result<RunStatus> {
        let mut progress = Progress::new(self.seconds());
        let mut journal: Option<(&str, Journal)> = None;
        let mut failed: Vec<(String, usize)> = Vec::new();
        for task in &self.tasks {
            let id = task.experiment.id;
            let key = format!("{id} {}", task.configuration.key());
            let count = failed
                .iter()
                .filter(|(of, _)| *of == key)
                .map(|f| f.1)
                .sum::<usize>();
            if count >= FAILED_REPEATS_MAX {
                progress.end(task.configuration.seconds);
                continue;
            }
            progress.begin(&key);
            let before = CpuLoad::now()?;
            let outcome = match (task.experiment.run)(lab, &task.configuration) {
                Ok(measured) => RepeatOutcome::Measured(measured),
                Err(MeasurementFailure::Unsupported(why)) => {
                    failed.push((key.clone(), FAILED_REPEATS_MAX));
                    RepeatOutcome::Unsupported(why)
                }
                Err(MeasurementFailure::Failed(why)) => {
                    failed.push((key.clone(), 1));
                    RepeatOutcome::Failed(why)
                }
            };
            // Ctrl-C itself may have made the repeat fail.
            if stop.is_requested() {
                progress.close();
                return Ok(RunStatus::Interrupted);
            }
            if let RepeatOutcome::Failed(why) = &outcome {
                progress.close();
                print_line(format!("{key}: {why}"));
            }
            let other_load = CpuLoad::now()?.share_of_others_since(before);
            if journal.as_ref().is_none_or(|(of, _)| *of != id) {
                let names: Vec<&str> = task
                    .configuration
                    .case
                    .iter()
                    .map(|(name, _)| *name)
                    .collect();
                journal = Some((id, store.append(id, task.experiment.metrics, &names)?));
            }
            if let Some((_, journal)) = &mut journal {
                journal.add(&task.configuration, task.repeat, other_load, outcome)?;
            }
            progress.end(task.configuration.seconds);
        }
        progress.close();
        Ok(RunStatus::Done)
    }
}

/// Whether a repeat is done: it was measured, or the stack does not have the
/// feature.
fn is_settled(entry: &JournalEntry, configuration: &Configuration, repeat: usize) -> bool {
    let is_unsupported = entry.failure.is_some() && entry.is_final();
    let same = entry.implementation == configuration.implementation
        && entry.case.len() == configuration.case.len()
        && entry
            .case
            .iter()
            .zip(&configuration.case)
            .all(|(a, b)| a.0 == b.0 && a.1 == b.1);
    same && entry.is_final() && (entry.repeat == repeat || is_unsupported)
}

/// The configurations in their order. Those of one case start with another
/// implementation in each repeat.
fn interleaved(configurations: &[Configuration], repeat: usize) -> Vec<&Configuration> {
    let mut order: Vec<&Configuration> = configurations.iter().collect();
    for same in order.chunk_by_mut(|a, b| a.case == b.case) {
        let by = repeat % same.len().max(1);
        same.rotate_left(by);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The estimates are for a machine with other load.
    const QUICK_MAX: f64 = 20.0 * 60.0;

    #[test]
    fn all_of_a_quick_run_fits_into_twenty_minutes() {
        let scope = Scope {
            extent: Extent::Quick,
            // Client libraries of ROS 2 take part where they are named.
            implementations: implementation::names()
                .into_iter()
                .filter(|name| !implementation::is_client_library(implementation::stack_of(name)))
                .collect(),
        };
        let seconds = |experiment: &&'static Experiment| {
            let once: f64 = (experiment.configurations)(&scope)
                .iter()
                .map(|c| c.seconds)
                .sum();
            once * default_repeats(experiment, &scope) as f64
        };
        let of_papers = experiments::ALL.iter().filter(|e| e.paper != Paper::Own);
        let list: Vec<(&str, f64)> = of_papers.map(|e| (e.id, seconds(e))).collect();
        let all: f64 = list.iter().map(|(_, seconds)| seconds).sum();
        assert!(all <= QUICK_MAX, "{all:.0} s: {list:.0?}");
    }
}
