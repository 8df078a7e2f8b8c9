//! Event queue of a run, ordered by time and a random tie-break.

use std::collections::BTreeMap;

use fastrand::Rng;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimEvent {
    /// A process starts.
    Start(usize),
    /// A process dies without announcing it.
    Crash(usize),
    /// A process shuts down and announces it.
    Leave(usize),
    /// A process pauses, as one that gets no CPU.
    Pause(usize),
    /// A process continues.
    Resume(usize),
    /// A process gets or loses an endpoint or a node.
    Churn(usize),
    /// A writer publishes, and schedules its next message.
    Publish(usize),
    /// A writer's liveliness is asserted, and the next assertion is scheduled.
    Assert(usize),
    /// A reader's user takes samples.
    Take(usize),
    /// A process's wall clock jumps.
    JumpWallClock(usize),
    /// A network fault begins or ends: cut, stall, small MTU, full sockets.
    ChangeNetworkFault,
    /// The attacker sends a datagram.
    Attack,
    /// The attacker sends in the name of a living participant, and from its address
    /// if it spoofs that, too.
    Forge(bool),
    /// The networks between hosts change.
    ChangeNetworks,
    /// All flows between hosts are checked.
    CheckFlows,
    /// The reliable flows from one process to another are checked (I23).
    CheckAcknowledgements(usize, usize),
    /// A process receives nothing from another one for longer than a lease.
    StartOneWayOutage(usize),
    EndOneWayOutage(usize, usize),
    /// A client calls, and schedules its next call.
    Call(usize),
    /// A caller abandons its call.
    AbandonCall(usize),
    /// A client takes replies.
    TakeReplies(usize),
    /// A server takes requests.
    TakeRequests(usize),
    /// A server sends a reply.
    Reply(usize),
}

/// The event queue.
#[derive(Debug)]
pub struct Schedule {
    /// Random numbers of the schedule.
    pub random: Rng,
    agenda: BTreeMap<(u64, u32, u64), SimEvent>,
    serial: u64,
    /// After healing only reads and replies continue.
    pub healed: bool,
    /// When that was.
    pub healed_at: u64,
    /// Packets forged so far.
    pub forged: i64,
    /// When unsent samples were last acknowledged in a reader's name.
    pub acknowledged_at: u64,
}

impl Schedule {
    /// An empty schedule.
    pub fn new(seed: u64) -> Self {
        Self {
            random: Rng::with_seed(seed),
            agenda: BTreeMap::new(),
            serial: 0,
            healed: false,
            healed_at: 0,
            forged: 0,
            acknowledged_at: 0,
        }
    }

    /// Schedules an event.
    pub fn add(&mut self, at: u64, event: SimEvent) {
        self.serial += 1;
        let tie = self.random.u32(..);
        self.agenda.insert((at, tie, self.serial), event);
    }

    /// When the next event is due.
    pub fn next_at(&self) -> Option<u64> {
        self.agenda.first_key_value().map(|((at, ..), _)| *at)
    }

    /// The next event.
    pub fn next(&mut self) -> Option<SimEvent> {
        self.agenda.pop_first().map(|(_, event)| event)
    }

    /// A random span between half of `mean` and one and a half.
    pub fn around(&mut self, mean: u64) -> u64 {
        self.random.u64(mean / 2..=mean + mean / 2)
    }
}
