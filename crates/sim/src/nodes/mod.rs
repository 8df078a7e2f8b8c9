//! Worlds of whole nodes: contexts of `pteros` with its executors, each process on a
//! thread that takes turns with the others, in simulated time. Clients ask, each in
//! its own order of random deeds, while the weather is bad; then it clears up, all is
//! asked once more, and must go well.
//!
//! Each act has an oracle of its own: what servers did is written down where it is
//! done, what clients were told where they are told, and both must agree (I13: what
//! was accepted is answered once, or ends in an error that says so; I11: no call takes
//! longer than it may).

mod action;
mod chain;
mod component;
mod crash;
mod lifecycle;
mod parameter;
mod stage;

use std::fmt;
use std::time::Duration;

use stage::Stage;

use crate::run::Outcome;

/// What a world is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Goals: accepted once, their results told or unknown, cancelled when that was
    /// promised.
    Actions,
    /// Parameters: set whole or not at all, once, and told in order.
    Parameters,
    /// Managed nodes: legal sequences only, states told are states had; a supervisor
    /// keeps the order of dependencies.
    Lifecycle,
    /// Components: loaded and unloaded once, listed as they run, freed.
    Components,
    /// Timers and messages through single-threaded, static and chain executors: those
    /// of one thread. The threads of the others wait for each other on condition
    /// variables, where the simulation cannot take turns.
    Executors,
    /// A process that dies without goodbye and comes back: whatever was asked of it
    /// ends, and a supervisor brings its managed node up again.
    Crashes,
}

impl Act {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Actions,
        Self::Parameters,
        Self::Lifecycle,
        Self::Components,
        Self::Executors,
        Self::Crashes,
    ];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Actions => "actions",
            Self::Parameters => "parameters",
            Self::Lifecycle => "lifecycle",
            Self::Components => "components",
            Self::Executors => "executors",
            Self::Crashes => "crashes",
        }
    }

    /// The act of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|act| act.name() == name)
    }
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a world came to.
#[derive(Clone, Debug)]
pub struct Played {
    /// What it was about.
    pub act: Act,
    /// Its seed.
    pub seed: u64,
    /// Broken invariants.
    pub violations: Vec<String>,
    /// The hash of all that was sent.
    pub hash: u64,
    /// How long it was.
    pub simulated: Duration,
    /// What clients asked for, and what of it was done.
    pub asked: (u64, u64),
    /// What happened, if it was asked for.
    pub lines: Vec<String>,
}

impl From<Played> for Outcome {
    fn from(played: Played) -> Self {
        Self {
            seed: played.seed,
            hash: played.hash,
            violations: played.violations,
            simulated: u64::try_from(played.simulated.as_nanos()).unwrap_or(u64::MAX),
            messages: (0, 0),
            datagrams: 0,
            records: 0,
            in_sets: 0,
            calls: played.asked,
            matches: 0,
            lines: played.lines,
        }
    }
}

/// Plays an act. Same seed, same outcome. `bug` is one of [`crate::faults::BUGS`],
/// `readable` keeps lines to read.
pub fn play(act: Act, seed: u64, bug: Option<&'static str>, readable: bool) -> Played {
    arm(seed, bug);
    let caught = std::panic::catch_unwind(|| play_armed(act, seed, readable));
    disarm();
    caught.unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied());
        Played {
            act,
            seed,
            violations: vec![format!("panic: {}", text.unwrap_or("without a message"))],
            hash: 0,
            simulated: Duration::ZERO,
            asked: (0, 0),
            lines: Vec::new(),
        }
    })
}

/// The command that plays it again.
pub fn replay(act: Act, seed: u64) -> String {
    format!("cargo xtask sim --nodes {act} --seeds 1 --start {seed} --trace")
}

fn play_armed(act: Act, seed: u64, readable: bool) -> Played {
    let stage = Stage::new(seed, readable);
    match act {
        Act::Actions => action::play(&stage),
        Act::Parameters => parameter::play(&stage),
        Act::Lifecycle => lifecycle::play(&stage),
        Act::Components => component::play(&stage),
        Act::Executors => chain::play(&stage),
        Act::Crashes => crash::play(&stage),
    }
    stage.end(act, seed)
}

#[cfg(feature = "faults")]
fn arm(seed: u64, bug: Option<&'static str>) {
    let bugs: Vec<_> = bug.into_iter().map(|bug| (bug, 10_000)).collect();
    pteros_rtps::fault::arm(seed, &bugs);
}

#[cfg(feature = "faults")]
fn disarm() {
    pteros_rtps::fault::disarm();
}

/// Without fault points there is nothing to switch.
#[cfg(not(feature = "faults"))]
fn arm(_seed: u64, _bug: Option<&'static str>) {}

#[cfg(not(feature = "faults"))]
fn disarm() {}
