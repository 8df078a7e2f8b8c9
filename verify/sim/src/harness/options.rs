//! Kinds of faults, and the options of a run.

/// Declares the kinds, each with its name on the command line.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal,)*) => {
        /// A kind of fault. Leaving kinds out shows which one matters.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Fault {
            $($(#[$doc])* $kind,)*
        }

        impl Fault {
            /// All kinds.
            pub const ALL: &[Self] = &[$(Self::$kind),*];

            /// Its name on the command line.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)*
                }
            }
        }
    };
}

kinds! {
    /// Datagrams are lost.
    Loss = "loss",
    /// Datagrams are duplicated.
    Duplicate = "duplicate",
    /// Datagrams overtake each other.
    Reorder = "reorder",
    /// A direction delivers nothing for a while, then everything at once.
    Stall = "stall",
    /// A direction delivers nothing.
    Cut = "cut",
    /// Large datagrams are dropped.
    Mtu = "mtu",
    /// Socket buffers are full, when sending and when receiving.
    SocketFull = "socket-full",
    /// Processes die without notice and start again.
    Crash = "crash",
    /// Nodes and endpoints come and go.
    Churn = "churn",
    /// Processes pause, as those that get no CPU.
    Pause = "pause",
    /// The wall clock jumps.
    WallClock = "wall-clock",
    /// Subscriptions read late.
    SlowReader = "slow-reader",
    /// An attacker sends garbage and modified copies of datagrams.
    Attack = "attack",
    /// Bytes are corrupted. RTPS has no checksum, so only some invariants hold: no
    /// panic, no busy loop, calls return.
    Corrupt = "corrupt",
    /// Tolerated faults inside the engine strike ([`tolerated_faults`](crate::fault_points::tolerated_faults)):
    /// limits are reached early, hints are lost. Needs the seeded bugs.
    FaultPoints = "fault-points",
    /// A process returns with the GUID prefix of one that died. Events and
    /// deliveries before peers detect this are not checked. The state after healing
    /// is.
    GuidReuse = "guid-reuse",
    /// A direction is cut for longer than a lease: one side loses the other, which
    /// does not notice.
    OneWayOutage = "one-way-outage",
    /// Limits are so small that they are reached.
    SmallLimits = "small-limits",
    /// The attacker is reachable at its announced address, so peers discover and
    /// match it.
    MatchedAttacker = "matched-attacker",
    /// Processes of one host use shared memory. Connections are refused, are full,
    /// or end now and then.
    SharedMemory = "shared-memory",
    /// An attacker sends in the name of living participants, from its own address.
    Forgery = "forgery",
    /// An attacker sends in their name and from their addresses. Only the rule
    /// *recovery* is checked.
    SpoofedForgery = "spoofed-forgery",
    /// Hosts have several addresses on several networks, which come, go and change.
    Networks = "networks",
}

impl Fault {
    /// Kinds added later. They have random numbers of their own, so that older
    /// seeds keep their other faults.
    pub const ADDED_LATER: [Self; 5] = [
        Self::FaultPoints,
        Self::GuidReuse,
        Self::OneWayOutage,
        Self::SmallLimits,
        Self::MatchedAttacker,
    ];

    /// Kinds that end matches, or hold a flow up for as long.
    pub const ENDS_MATCHES: [Self; 11] = [
        Self::Cut,
        Self::Mtu,
        Self::Stall,
        Self::OneWayOutage,
        Self::Crash,
        Self::Churn,
        Self::Pause,
        Self::SmallLimits,
        Self::GuidReuse,
        Self::SharedMemory,
        Self::MatchedAttacker,
    ];

    /// The fault of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|fault| fault.name() == name)
    }
}

/// Options of the caller. The seed decides everything else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Faults left out.
    pub without: Vec<Fault>,
    /// Faults that the run has in any case.
    pub forced: Vec<Fault>,
    /// Length of the fault phase in milliseconds, instead of the seed's.
    pub fault_millis: Option<u64>,
    /// A standard graph to measure speed: five processes, twenty endpoints, fifty
    /// messages a second.
    pub standard: bool,
    /// Records readable trace lines.
    pub readable: bool,
    /// The mutant that is switched on ([`crate::fault_points::mutants`]).
    pub mutant: Option<&'static str>,
}

impl Options {
    /// The command that runs a seed of a workload again with these options.
    pub fn replay_command(&self, selection: &str, seed: u64) -> String {
        let mut command = format!("cargo xtask sim{selection} --seeds 1 --start {seed} --trace");
        if self.standard {
            command += " --standard";
        }
        if let Some(millis) = self.fault_millis {
            command += &format!(" --fault-millis {millis}");
        }
        let mut without = self.without.clone();
        if !pteros_seeded_bugs::INSERTED && !without.contains(&Fault::FaultPoints) {
            // The command's build has the seeded bugs, unlike this one.
            without.push(Fault::FaultPoints);
        }
        if !without.is_empty() {
            let names: Vec<_> = without.iter().map(|f| f.name()).collect();
            command += &format!(" --without {}", names.join(","));
        }
        if !self.forced.is_empty() {
            let names: Vec<_> = self.forced.iter().map(|f| f.name()).collect();
            command += &format!(" --with {}", names.join(","));
        }
        if let Some(mutant) = self.mutant {
            command += &format!(" --mutant {mutant}");
        }
        command
    }
}
