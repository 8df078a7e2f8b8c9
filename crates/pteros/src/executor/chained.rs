//! One thread that runs the callbacks of the most urgent chain first.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use pteros_rmw::Core;
use pteros_rmw::reader::ReaderEndpoint;
use pteros_rmw::ready::Task;
use pteros_rmw::rtps::time::Instant;

use super::chain::{CHAINS_MAX, Chain, ChainError};
use super::chain_report::ChainReports;
use super::crew::Crew;
use super::panic::{PanicPolicy, Payload};
use super::single::or_panic;
use super::{ExecutorError, ExecutorHandle};
use crate::callback_group::CallbackGroup;
use crate::context::Context;
use crate::node::Node;
use crate::wait_set::Member;

/// Callbacks shorter than this do not make the network be looked at after each
/// of them: an urgent message waits that much longer at most.
const LOOK_PERIOD_NANOS: u64 = 20_000;

/// Runs the callbacks of its nodes one after the other, those of the most urgent
/// [`Chain`] first; after each it looks what has become ready meanwhile. So an
/// urgent chain waits for one callback of others at most. Callbacks in no chain
/// come last, in the order they became ready.
///
/// It measures how long each chain takes ([`ChainExecutor::reports`]). For chains
/// on several processors make one for each and spin them on threads of their own,
/// with [`ThreadSettings`](crate::ThreadSettings) as urgent as their most urgent
/// chain. It may be moved to another thread, not shared.
///
/// ```no_run
/// use std::time::Duration;
///
/// use pteros::interfaces::sensor_msgs::msg::{Image, LaserScan};
/// use pteros::interfaces::std_msgs::msg::Bool;
/// use pteros::prelude::*;
/// use pteros::{Chain, ChainExecutor};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let context = Context::new()?;
/// let node = context.node("guard")?;
/// let stop = node.create_publisher::<Bool>("stop", 1)?;
/// let scans = node.create_subscription("scan", 1, move |scan: Sample<LaserScan>| {
///     let data = scan.ranges.iter().any(|range| *range < 0.3);
///     let _ = stop.publish_owned(Bool { data });
/// })?;
/// let brake = node.create_subscription("stop", 1, |_: Sample<Bool>| ())?;
/// let images = node.create_subscription("image", 1, |_: Sample<Image>| ())?;
///
/// let executor = ChainExecutor::new(&context);
/// executor.add_node(&node)?;
/// let brake = Chain::new("brake", 10).then(&scans).then(&brake);
/// executor.add_chain(&brake.deadline(Duration::from_millis(5)))?;
/// executor.add_chain(&Chain::new("look", 1).then(&images))?;
/// executor.spin();
/// for report in executor.reports().all() {
///     println!("{report:?}");
/// }
/// # Ok(())
/// # }
/// ```
pub struct ChainExecutor {
    crew: Arc<Crew>,
    plan: RefCell<Plan>,
    ready: RefCell<Ready>,
    reports: ChainReports,
}

impl ChainExecutor {
    /// An executor without nodes and chains.
    pub fn new(context: &Context) -> Self {
        Self::with_panic_policy(context, PanicPolicy::default())
    }

    /// As [`Self::new`], and what ends when a callback panics.
    pub fn with_panic_policy(context: &Context, policy: PanicPolicy) -> Self {
        Self {
            crew: Crew::new(context, policy),
            plan: RefCell::default(),
            ready: RefCell::default(),
            reports: ChainReports::default(),
        }
    }

    /// What other threads and callbacks may do with it.
    pub fn handle(&self) -> ExecutorHandle {
        ExecutorHandle {
            crew: self.crew.clone(),
        }
    }

    /// As [`ExecutorHandle::add_node`].
    ///
    /// # Errors
    /// [`ExecutorError::OtherContext`], [`ExecutorError::AlreadyAdded`].
    pub fn add_node(&self, node: &Node) -> Result<(), ExecutorError> {
        self.crew.add_node(node)
    }

    /// As [`ExecutorHandle::remove_node`].
    pub fn remove_node(&self, node: &Node) -> bool {
        self.crew.remove_node(node)
    }

    /// As [`ExecutorHandle::add_callback_group`].
    ///
    /// # Errors
    /// As [`Self::add_node`].
    pub fn add_callback_group(&self, group: &CallbackGroup) -> Result<(), ExecutorError> {
        self.crew.add_group(group)
    }

    /// Declares a chain, 64 at most. Its callbacks are run here if their nodes or
    /// groups are added, before or after.
    ///
    /// # Errors
    /// See [`ChainError`].
    pub fn add_chain(&self, chain: &Chain) -> Result<(), ChainError> {
        self.plan.borrow_mut().add(chain)?;
        self.reports.add(chain);
        Ok(())
    }

    /// How long its chains take, for any thread.
    pub fn reports(&self) -> ChainReports {
        self.reports.clone()
    }

    // --- spinning ---

    /// Runs callbacks until the context shuts down or the executor is
    /// [cancelled](ExecutorHandle::cancel). Blocks.
    ///
    /// # Panics
    /// With the panic of a callback, as [`PanicPolicy::Process`] says; so does
    /// whatever else runs callbacks here.
    pub fn spin(&self) {
        let _spinning = self.crew.begin_spin();
        let Crew { context, home, .. } = &*self.crew;
        let core = context.core();
        while !self.crew.should_end() {
            if or_panic(self.run_one(core.env.now())) {
                continue;
            }
            // What recalled us may have left the queue just now.
            if self.crew.should_end() {
                break;
            }
            core.drive_until_work(&home.queue, home.timers.next());
        }
        self.leave();
    }

    /// Runs callbacks until `done` says so, which is asked after each of them,
    /// `timeout` has passed, the context shuts down or the executor is cancelled.
    /// Returns `done`'s last word. Blocks.
    pub fn spin_until(&self, mut done: impl FnMut() -> bool, timeout: Duration) -> bool {
        let _spinning = self.crew.begin_spin();
        let Crew { context, home, .. } = &*self.crew;
        let core = context.core();
        let until = core.env.now().after(timeout.into());
        let mut met = done();
        while !met && !self.crew.should_end() {
            let now = core.env.now();
            if !or_panic(self.run_one(now)) {
                if now >= until {
                    break;
                }
                core.drive(&home.queue, until.min(home.timers.next()));
            }
            met = done();
        }
        self.leave();
        met
    }

    /// Runs the callbacks that are ready now, and those that become ready through
    /// what the sockets hold now and through each other, a thousand at most; does
    /// not wait. Returns how many ran.
    pub fn spin_some(&self) -> usize {
        let core = self.crew.context.core();
        let now = core.env.now();
        core.drive(&self.crew.home.queue, now);
        let mut ran = 0;
        while ran < SOME_MAX && or_panic(self.run_one(now)) {
            ran += 1;
        }
        self.leave();
        ran
    }

    /// Runs the most urgent callback that is ready, if one is.
    fn run_one(&self, now: Instant) -> Result<bool, Payload> {
        let core = self.crew.context.core();
        self.gather(core, now);
        loop {
            let Some(item) = self.ready.borrow_mut().heap.pop() else {
                return Ok(false);
            };
            if let Some(task) = item.task.upgrade() {
                self.run(core, &task, item.at)?;
                return Ok(true);
            }
        }
    }

    /// Puts what is ready into its order.
    fn gather(&self, core: &Arc<Core>, now: Instant) {
        let home = &self.crew.home;
        let mut ready = self.ready.borrow_mut();
        let stale = now.as_nanos().saturating_sub(ready.looked_at.as_nanos());
        if !ready.heap.is_empty() && stale >= LOOK_PERIOD_NANOS {
            core.drive(&home.queue, now);
            ready.looked_at = now;
        }
        let plan = self.plan.borrow();
        while let Some(timer) = home.timers.pop_due(now) {
            let due = timer.due();
            let timer: Arc<dyn Task> = timer;
            ready.push(&plan, &timer, due);
        }
        while let Some(task) = home.queue.pop() {
            ready.push(&plan, &task, now);
        }
    }

    fn run(&self, core: &Arc<Core>, task: &Arc<dyn Task>, at: Instant) -> Result<(), Payload> {
        let begun = self.plan.borrow_mut().begin(core, task, at);
        let panic = self.crew.run(task, || task.run());
        if let Some(begun) = begun {
            let ended = core.env.now();
            let (mask, nanos) = self.plan.borrow_mut().end(begun, ended);
            if mask != 0 {
                self.reports.note(mask, nanos);
            }
        }
        panic.map_or(Ok(()), Err)
    }

    /// Leaves what did not run to whoever spins next.
    fn leave(&self) {
        let queue = &self.crew.home.queue;
        for item in self.ready.borrow_mut().heap.drain() {
            queue.push(item.task);
        }
        // We may have been chosen to drive next.
        self.crew.context.core().hand_over(queue);
    }
}

/// Callbacks of one [`ChainExecutor::spin_some`]: it ends even when work keeps
/// coming.
const SOME_MAX: usize = 1_000;

impl Drop for ChainExecutor {
    fn drop(&mut self) {
        self.crew.release();
    }
}

impl fmt::Debug for ChainExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChainExecutor")
            .field("executor", &self.handle())
            .field("reports", &self.reports)
            .finish()
    }
}

// --- what is ready, in its order ---

#[derive(Default)]
struct Ready {
    heap: BinaryHeap<Item>,
    next_number: u64,
    looked_at: Instant,
}

impl Ready {
    fn push(&mut self, plan: &Plan, task: &Arc<dyn Task>, at: Instant) {
        self.next_number += 1;
        self.heap.push(Item {
            rank: plan.rank(task),
            number: Reverse(self.next_number),
            task: Arc::downgrade(task),
            at,
        });
    }
}

struct Item {
    rank: Option<Rank>,
    number: Reverse<u64>,
    task: Weak<dyn Task>,
    /// When it was due or seen.
    at: Instant,
}

/// Greater goes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    priority: u32,
    /// Of equals the one declared first.
    chain: Reverse<usize>,
    /// Later callbacks go before earlier ones.
    position: usize,
}

impl PartialEq for Item {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Item {}

impl PartialOrd for Item {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Item {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.rank, self.number).cmp(&(other.rank, other.number))
    }
}

// --- the chains, and which instances are on their way ---

#[derive(Default)]
struct Plan {
    chains: usize,
    callbacks: Vec<Callback>,
    /// By the address of the entity, which is that of its task.
    places: HashMap<usize, usize>,
}

struct Callback {
    member: Weak<dyn Member>,
    rank: Rank,
    /// Chains that begin with it, one bit each; and that end with it.
    head: u64,
    tail: u64,
    next: Vec<Next>,
    /// Instances whose messages wait for it, oldest first; bounded by its queue.
    starts: VecDeque<Start>,
}

/// A callback that comes after another in some chains.
struct Next {
    place: usize,
    mask: u64,
    /// What had come to it when the one before began.
    arrivals: u64,
}

/// An instance of some chains, and when it was released.
#[derive(Clone, Copy)]
struct Start {
    mask: u64,
    at: Instant,
}

/// A callback of a chain that runs now.
struct Begun {
    place: usize,
    start: Start,
}

impl Plan {
    fn add(&mut self, chain: &Chain) -> Result<(), ChainError> {
        chain.check()?;
        if self.chains == CHAINS_MAX {
            let chain = chain.name.clone();
            return Err(ChainError::TooMany { chain });
        }
        let (number, bit) = (self.chains, 1 << self.chains);
        self.chains += 1;
        let mut before: Option<usize> = None;
        for (position, link) in chain.links.iter().enumerate() {
            let rank = Rank {
                priority: chain.priority,
                chain: Reverse(number),
                position,
            };
            let place = *self.places.entry(link.address).or_insert_with(|| {
                self.callbacks.push(Callback {
                    member: link.member.clone(),
                    rank,
                    head: 0,
                    tail: 0,
                    next: Vec::new(),
                    starts: VecDeque::new(),
                });
                self.callbacks.len() - 1
            });
            if let Some(callback) = self.callbacks.get_mut(place) {
                callback.rank = callback.rank.max(rank);
                callback.head |= if before.is_none() { bit } else { 0 };
                let is_last = position + 1 == chain.links.len();
                callback.tail |= if is_last { bit } else { 0 };
            }
            let earlier = before.and_then(|at| self.callbacks.get_mut(at));
            if let Some(earlier) = earlier {
                match earlier.next.iter_mut().find(|next| next.place == place) {
                    Some(next) => next.mask |= bit,
                    None => earlier.next.push(Next {
                        place,
                        mask: bit,
                        arrivals: 0,
                    }),
                }
            }
            before = Some(place);
        }
        Ok(())
    }

    fn place(&self, task: &Arc<dyn Task>) -> Option<usize> {
        let address = Arc::as_ptr(task).cast::<()>().addr();
        self.places.get(&address).copied()
    }

    fn rank(&self, task: &Arc<dyn Task>) -> Option<Rank> {
        let callback = self.callbacks.get(self.place(task)?)?;
        Some(callback.rank)
    }

    /// Of which instance the callback runs that is about to.
    fn begin(&mut self, core: &Arc<Core>, task: &Arc<dyn Task>, at: Instant) -> Option<Begun> {
        let place = self.place(task)?;
        let callback = self.callbacks.get_mut(place)?;
        let member = callback.member.upgrade()?;
        // Those that made room for newer ones before they were taken.
        let (_, waiting) = member.arrivals();
        while callback.starts.len() > waiting {
            callback.starts.pop_front();
        }
        let released = || Start {
            mask: callback.head,
            at: released_at(core, &*member, at),
        };
        let started = callback.starts.pop_front();
        let start = started.or_else(|| (callback.head != 0).then(released))?;
        let mut next = std::mem::take(&mut callback.next);
        for next in &mut next {
            next.arrivals = self.arrivals(next.place);
        }
        let callback = self.callbacks.get_mut(place)?;
        callback.next = next;
        Some(Begun { place, start })
    }

    fn arrivals(&self, place: usize) -> u64 {
        let member = self.callbacks.get(place).and_then(|c| c.member.upgrade());
        member.map_or(0, |member| member.arrivals().0)
    }

    /// The callback is done. Which chains are, and what they took.
    fn end(&mut self, begun: Begun, now: Instant) -> (u64, u64) {
        let Begun { place, start } = begun;
        let Some(callback) = self.callbacks.get_mut(place) else {
            return (0, 0);
        };
        let done = callback.tail & start.mask;
        let next = std::mem::take(&mut callback.next);
        for next in &next {
            self.pass_on(next, start);
        }
        if let Some(callback) = self.callbacks.get_mut(place) {
            callback.next = next;
        }
        let nanos = now.as_nanos().saturating_sub(start.at.as_nanos());
        (done, nanos)
    }

    /// What came to the next callback while this one ran is of its instance.
    fn pass_on(&mut self, next: &Next, start: Start) {
        let mask = start.mask & next.mask;
        let Some(callback) = self.callbacks.get_mut(next.place) else {
            return;
        };
        let Some(member) = callback.member.upgrade() else {
            return;
        };
        let (came, waiting) = member.arrivals();
        let came = usize::try_from(came.saturating_sub(next.arrivals)).unwrap_or(usize::MAX);
        for _ in 0..came.min(waiting) {
            callback.starts.push_back(Start { mask, at: start.at });
        }
        while callback.starts.len() > waiting {
            callback.starts.pop_front();
        }
    }
}

/// When the message that the callback gets next reached us, or the timer was due.
fn released_at(core: &Arc<Core>, member: &dyn Member, seen: Instant) -> Instant {
    let Some(reception) = member.reader().and_then(ReaderEndpoint::waits_since) else {
        return seen;
    };
    let waited = core
        .env
        .wall()
        .as_nanos()
        .saturating_sub(reception.as_nanos());
    let waited = u64::try_from(waited).unwrap_or(0);
    let now = core.env.now().as_nanos();
    Instant::from_nanos(now.saturating_sub(waited))
}
