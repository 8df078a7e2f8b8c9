//! All experiments, a file each: those of the papers, then benchmarks.

pub mod c23;
pub mod f20;
pub mod k21;
pub mod m16;
pub mod own;

use crate::experiment::Experiment;

/// All experiments, in the order of the papers and of their figures; benchmarks
/// last.
pub const ALL: &[&Experiment] = &[
    &m16::latency::EXPERIMENT,
    &m16::capability::EXPERIMENT,
    &m16::breakdown::EXPERIMENT,
    &m16::policies::EXPERIMENT,
    &m16::subscribers::EXPERIMENT,
    &m16::throughput::EXPERIMENT,
    &m16::footprint::EXPERIMENT,
    &m16::bridge::EXPERIMENT,
    &c23::memory::EXPERIMENT,
    &c23::sizes::EXPERIMENT,
    &c23::goodput::EXPERIMENT,
    &c23::containers::EXPERIMENT,
    &c23::graphs::NAV2,
    &c23::graphs::CREATE3,
    &f20::EXPERIMENT,
    &k21::frequency::EXPERIMENT,
    &k21::scale::EXPERIMENT,
    &k21::profile::EXPERIMENT,
    &k21::reliability::EXPERIMENT,
    &own::wire::EXPERIMENT,
    &own::host::EXPERIMENT,
    &own::loss::EXPERIMENT,
    &own::executor::EXPERIMENT,
    &own::composition::EXPERIMENT,
    &own::robot::EXPERIMENT,
    &own::security::EXPERIMENT,
    &own::start::EXPERIMENT,
    &own::bag::EXPERIMENT,
    &own::ros2::EXPERIMENT,
    &own::ros2::OF_WHEEL,
    &own::zenoh::EXPERIMENT,
];

/// All words that select experiments: `all`, papers, `own`, experiments.
pub fn names() -> Vec<String> {
    let mut names = vec!["all".to_owned()];
    for experiment in ALL {
        if let Some((paper, _)) = experiment.id.split_once('.')
            && !names.iter().any(|name| name == paper)
        {
            names.push(paper.to_owned());
        }
        names.push(experiment.id.to_owned());
    }
    names
}
