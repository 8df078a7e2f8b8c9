//! What happens when: the agenda of a run, ordered by time and a random tie.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use fastrand::Rng;

/// One thing that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// A process starts.
    Start(usize),
    /// A process dies without a word.
    Crash(usize),
    /// A process says goodbye.
    Leave(usize),
    /// A process stands still until then.
    Pause(usize, u64),
    /// A process goes on.
    Resume(usize),
    /// A process gets or loses an endpoint or a node.
    Churn(usize),
    /// A writer publishes, and plans the next message.
    Publish(usize),
    /// A writer is asserted, and plans the next time.
    Assert(usize),
    /// A reader's user takes samples.
    Take(usize),
    /// A process's wall clock jumps.
    JumpWall(usize),
    /// A direction changes: cut, clogged, narrow, healed.
    Disturb,
    /// The attacker sends something.
    Attack,
    /// A process no longer hears another one, for longer than a lease.
    Deafen(usize),
    /// It hears it again.
    Hear(usize, usize),
    /// A client calls, and plans the next call.
    Call(usize),
    /// A caller loses patience.
    GiveUp(usize),
    /// A client takes replies.
    Collect(usize),
    /// A server takes requests.
    Serve(usize),
    /// A server sends a reply.
    Reply(usize),
}

/// The agenda.
#[derive(Debug)]
pub struct Script {
    /// The script's own random numbers.
    pub random: Rng,
    agenda: BinaryHeap<Reverse<(u64, u32, u64, Step)>>,
    serial: u64,
    /// Once healed, only reading goes on.
    pub healed: bool,
}

impl Script {
    /// An empty agenda.
    pub fn new(seed: u64) -> Self {
        Self {
            random: Rng::with_seed(seed),
            agenda: BinaryHeap::new(),
            serial: 0,
            healed: false,
        }
    }

    /// Plans a step.
    pub fn plan(&mut self, at: u64, step: Step) {
        self.serial += 1;
        let tie = self.random.u32(..);
        self.agenda.push(Reverse((at, tie, self.serial, step)));
    }

    /// When the next step is due.
    pub fn next_at(&self) -> Option<u64> {
        self.agenda.peek().map(|Reverse((at, ..))| *at)
    }

    /// The next step.
    pub fn next(&mut self) -> Option<Step> {
        self.agenda.pop().map(|Reverse((.., step))| step)
    }

    /// A random span around `mean`.
    pub fn around(&mut self, mean: u64) -> u64 {
        self.random.u64(mean / 2..=mean + mean / 2)
    }
}
