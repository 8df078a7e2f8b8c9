//! Mutants and tolerated faults of the product, by name.
//!
//! A mutant is a bug that some seed must detect. A tolerated fault is one that correct
//! code must survive. Both stand in `verify/seeded_bugs/table.txt`. Only the instrumented
//! copy that `cargo xtask sim` builds has them; elsewhere their switches do nothing.

use pteros_seeded_bugs::{BugKind, SeededBug, table};

/// Chance in 1/10000 of a fault that always strikes.
pub(crate) const ALWAYS: u32 = 10_000;

/// A mutant: a bug that a switch turns on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mutant {
    pub name: &'static str,
    /// Its effect.
    pub what: &'static str,
    /// The workload of nodes that must detect it. `None`: graphs and scenarios.
    pub workload: Option<&'static str>,
}

pub fn mutants() -> impl Iterator<Item = Mutant> {
    table().iter().filter_map(|bug| match bug.kind {
        BugKind::Mutant(workload) => Some(Mutant {
            name: bug.name,
            what: bug.what,
            workload,
        }),
        _ => None,
    })
}

/// The names of the faults that correct code tolerates: refused memory, limits that are
/// reached early, spurious wake-ups, lost hints.
pub fn tolerated_faults() -> impl Iterator<Item = &'static str> {
    let is_tolerated = |bug: &&SeededBug| bug.kind == BugKind::Tolerated;
    table().iter().filter(is_tolerated).map(|bug| bug.name)
}

/// Switches all mutants and faults of this thread off.
pub(crate) fn disarm() {
    pteros_seeded_bugs::arm(0, &[]);
}
