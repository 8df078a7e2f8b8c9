//! Workloads of whole nodes: contexts of `pteros` with its executors, in simulated
//! time.
//!
//! Each process runs on a thread of the cooperative scheduler. Clients send random
//! requests while link faults are injected. After healing every request must
//! succeed.
//!
//! Each workload has an oracle. Servers record what they did, clients record what
//! was reported, and both must agree. I13: each accepted request is answered once
//! or ends with an error. I11: no call exceeds its time limit.

mod action;
mod attacker;
mod chain;
mod component;
mod crash;
mod crowd;
mod flood;
pub mod flow;
mod lifecycle;
mod parameter;
mod recording;
mod secured;
mod world;

use std::fmt;

use self::world::NodeWorld;
use crate::harness::options::Options;
use crate::harness::{Check, Counts, Workload, World};
use crate::simulation::event_loop::EventLoop;

/// A workload of whole nodes.
#[derive(Clone, Copy)]
pub struct NodeWorkload {
    name: &'static str,
    run: fn(&NodeWorld),
}

impl NodeWorkload {
    /// Goals: accepted once, with one result, cancelled when the cancellation was
    /// accepted.
    pub const ACTIONS: Self = Self {
        name: "actions",
        run: action::run,
    };

    /// Parameters: set atomically, once, with parameter events in order.
    pub const PARAMETERS: Self = Self {
        name: "parameters",
        run: parameter::run,
    };

    /// Lifecycle nodes: legal transitions only, correct reports. A supervisor keeps
    /// the order of dependencies.
    pub const LIFECYCLE: Self = Self {
        name: "lifecycle",
        run: lifecycle::run,
    };

    /// Components: loaded and unloaded once, listed while they run, freed.
    pub const COMPONENTS: Self = Self {
        name: "components",
        run: component::run,
    };

    /// Timers and messages through single-threaded, static and chain executors.
    /// Executors with several threads wait on condition variables, which the
    /// scheduler cannot switch.
    pub const EXECUTORS: Self = Self {
        name: "executors",
        run: chain::run,
    };

    /// A process that dies and starts again: each request to it ends, and a
    /// supervisor brings its lifecycle node up again.
    pub const CRASHES: Self = Self {
        name: "crashes",
        run: crash::run,
    };

    /// Crowds of accepted peers: a full table, forged requests, unfinished samples.
    pub const CROWDS: Self = Self {
        name: "crowds",
        run: crowd::run,
    };

    /// Floods of hostile packets beside a flow, and a newcomer meanwhile.
    pub const FLOODS: Self = Self {
        name: "floods",
        run: flood::run,
    };

    /// Secured participants among intruders, forgers and a flood of claims.
    pub const SECURED: Self = Self {
        name: "secured",
        run: secured::run,
    };

    /// A recorder with a small buffer and a disk that is slow or fails, and publishers that
    /// restart: what was published equals what was written and lost by cause.
    pub const RECORDINGS: Self = Self {
        name: "recordings",
        run: recording::run,
    };

    /// All workloads.
    pub const ALL: [Self; 10] = [
        Self::ACTIONS,
        Self::PARAMETERS,
        Self::LIFECYCLE,
        Self::COMPONENTS,
        Self::EXECUTORS,
        Self::CRASHES,
        Self::CROWDS,
        Self::FLOODS,
        Self::SECURED,
        Self::RECORDINGS,
    ];

    /// The workload of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|workload| workload.name == name)
    }
}

impl fmt::Display for NodeWorkload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Workload for NodeWorkload {
    fn name(&self) -> String {
        self.name.into()
    }

    fn selection(&self) -> String {
        format!(" --nodes {self}")
    }

    fn open(&self, seed: u64, options: &Options) -> Box<dyn World> {
        Box::new(NodeRun {
            workload: *self,
            world: NodeWorld::new(seed, options),
        })
    }
}

/// A run of a workload.
struct NodeRun {
    workload: NodeWorkload,
    world: NodeWorld,
}

impl World for NodeRun {
    fn event_loop(&self) -> &EventLoop {
        self.world.sim.event_loop()
    }

    /// The only step is the whole run, because its threads wait in simulated time.
    fn apply(&mut self, step: usize) -> Option<u64> {
        (step == 0).then(|| (self.workload.run)(&self.world))?;
        Some(0)
    }

    fn checks(&self, _step: usize) -> Vec<Check<'_>> {
        vec![Box::new(|| self.world.violations())]
    }

    fn counts(&self) -> Counts {
        self.world.counts()
    }
}
