//! Shrinks a failure: fewer kinds of faults and a shorter fault phase, while the
//! same invariant stays violated.

use super::options::{Fault, Options};
use super::{RunOutcome, Workload, run};

/// The smallest options under which the seed still violates the first invariant
/// that `outcome` violated. Runs the seed some dozens of times.
pub fn shrink(workload: &dyn Workload, outcome: &RunOutcome, options: &Options) -> Options {
    let Some(rule) = outcome.violations.first().map(|v| rule_of(v).to_owned()) else {
        return options.clone();
    };
    let mut best = options.clone();
    let fails = |options: &Options| {
        let again = run(workload, outcome.seed, options);
        again.violations.iter().any(|v| rule_of(v) == rule)
    };
    for fault in Fault::ALL {
        let mut fewer = best.clone();
        if fewer.without.contains(fault) {
            continue;
        }
        fewer.without.push(*fault);
        if fails(&fewer) {
            best = fewer;
        }
    }
    let mut millis = best.fault_millis.unwrap_or(20_000);
    let mut cut = millis / 2;
    while cut >= 100 {
        let shorter = Options {
            fault_millis: Some(millis.saturating_sub(cut)),
            ..best.clone()
        };
        if millis > cut && fails(&shorter) {
            millis -= cut;
            best = shorter;
        } else {
            cut /= 2;
        }
    }
    best
}

fn rule_of(violation: &str) -> &str {
    violation.split(' ').next().unwrap_or_default()
}
