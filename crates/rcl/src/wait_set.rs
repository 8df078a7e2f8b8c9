//! Wait set: waits until one of several sources is ready (`rcl_wait_set_t`).
//!
//! The waiting thread polls the sockets, runs the protocol and returns. Each wait set has
//! a ready queue, which what is ready wakes, as it wakes that of an executor. So no other
//! thread is part of the path of a message.
//!
//! A language keeps the entries of a wait in its own form ([`Entries`]). A wait without an
//! end may find nothing ready, since another thread may have taken it.
//!
//! Limits: the queue has one task per entity, so it holds at most as many as were attached.
//! A wait allocates nothing.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use pteros_runtime::Core;
use pteros_runtime::ready_queue::{ReadyQueue, Task};
use pteros_runtime::rtps::time::{Duration, Instant};

use crate::guard_condition::GuardCondition;

/// The longest that waits leave the sockets alone while something is always ready. A poll
/// of the sockets is a system call.
const POLL_PERIOD: Duration = Duration::from_millis(1);

/// The state that the wait sets of a context share.
pub struct WaitContext {
    core: Arc<Core>,
    /// Triggered by each change of the graph. One per node.
    graph_guards: Mutex<Vec<Weak<GuardCondition>>>,
    /// Graph revision at their last trigger.
    graph_reported: AtomicU64,
    /// When a wait polled the sockets last, in nanoseconds.
    polled_at: AtomicU64,
}

impl WaitContext {
    /// Before the first wait.
    pub fn new(core: &Arc<Core>) -> Arc<Self> {
        Arc::new(Self {
            graph_guards: Mutex::default(),
            graph_reported: AtomicU64::new(core.graph().revision()),
            polled_at: AtomicU64::new(0),
            core: core.clone(),
        })
    }

    /// Creates a guard condition that changes of the graph trigger. The waits of the
    /// context notice them.
    pub fn create_graph_guard(&self) -> Arc<GuardCondition> {
        let guard = Arc::default();
        let mut guards = self.graph_guards.lock();
        guards.retain(|known| known.strong_count() > 0);
        guards.push(Arc::downgrade(&guard));
        guard
    }

    fn report_graph_changes(&self) {
        let revision = self.core.graph().revision();
        // Most find no change, and a load costs less.
        if self.graph_reported.load(Ordering::Acquire) != revision
            && self.graph_reported.swap(revision, Ordering::AcqRel) != revision
        {
            let guards = self.graph_guards.lock();
            guards
                .iter()
                .filter_map(Weak::upgrade)
                .for_each(|guard| guard.trigger());
        }
    }

    /// Whether a wait that has something ready polls the sockets nevertheless.
    fn is_poll_due(&self) -> bool {
        let now = self.core.platform.now();
        let polled_at = Instant::from_nanos(self.polled_at.load(Ordering::Relaxed));
        now.since(polled_at) >= POLL_PERIOD
    }

    fn note_polled(&self, now: Instant) {
        self.polled_at.store(now.as_nanos(), Ordering::Relaxed);
    }
}

/// An entity that a wait set waits for: samples, a guard condition, a status, a timer.
pub trait WaitSource: Send + Sync {
    /// Lets it wake `queue`, at the begin of each wait. One load if it does. Samples and
    /// statuses wake one queue, that of the last wait.
    fn attach(&self, queue: &Arc<ReadyQueue>);

    /// Ends that. A wake-up that is not needed does no harm.
    fn detach(&self, _queue: &Arc<ReadyQueue>) {}

    /// Whether it is ready, during a wait.
    fn is_ready(&self) -> bool;

    /// Takes what a wait takes: the trigger of a guard condition. Returns false if another
    /// thread has.
    fn take(&self) -> bool {
        true
    }

    /// When it is ready by the time alone.
    fn next_due(&self, _now: Instant) -> Instant {
        Instant::FAR_FUTURE
    }
}

impl WaitSource for GuardCondition {
    fn attach(&self, queue: &Arc<ReadyQueue>) {
        self.add_waker(queue);
    }

    fn is_ready(&self) -> bool {
        self.is_triggered()
    }

    fn take(&self) -> bool {
        self.take()
    }
}

/// The entries of one wait, as a language keeps them.
pub trait Entries {
    /// Whether a look finds more than what woke the set. Then what another thread does to
    /// the context wakes it, too.
    const LOOKS_AT_ALL: bool = true;

    /// Handles a task of the queue.
    fn run_task(&mut self, task: Arc<dyn Task>) {
        task.run();
    }

    /// Looks whether one is ready. The wait ends with what the last look has found.
    fn is_any_ready(&mut self) -> bool;

    /// When the first timer is due.
    fn next_due(&self, _now: Instant) -> Instant {
        Instant::FAR_FUTURE
    }

    /// Whether something else ends the wait.
    fn is_over(&self) -> bool {
        false
    }
}

/// The result of a wait's first look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FirstLook {
    /// Something is ready. The wait ends.
    Ready,
    /// Something is ready, but the sockets have to be polled: sources that are always ready
    /// must not stop reception.
    ReadyBeforePoll,
    /// Nothing is ready.
    Nothing,
}

/// A wait set. Thread-safe, and made for one waiting thread.
pub struct WaitSet {
    context: Arc<WaitContext>,
    queue: Arc<ReadyQueue>,
    is_woken: AtomicBool,
}

impl WaitSet {
    /// A wait set of a context.
    pub fn new(context: &Arc<WaitContext>) -> Self {
        Self::with_queue(context, context.core.ready_queue())
    }

    /// A wait set with the queue of an executor.
    pub fn with_queue(context: &Arc<WaitContext>, queue: Arc<ReadyQueue>) -> Self {
        Self {
            context: context.clone(),
            queue,
            is_woken: AtomicBool::new(false),
        }
    }

    /// The queue that its sources wake.
    pub fn queue(&self) -> &Arc<ReadyQueue> {
        &self.queue
    }

    /// Ends the wait in progress, or the next one. Thread-safe, does not block.
    pub fn wake(&self) {
        self.is_woken.store(true, Ordering::Release);
        self.queue.interrupt();
    }

    /// Whether it was woken. That ends.
    pub fn take_wake(&self) -> bool {
        self.is_woken.load(Ordering::Relaxed) && self.is_woken.swap(false, Ordering::AcqRel)
    }

    /// Begins a wait, without blocking: looks once. Unless the result is
    /// [`FirstLook::Ready`], [`WaitSet::wait`] comes next.
    pub fn begin(&self, entries: &mut impl Entries) -> FirstLook {
        if !self.look(entries) {
            FirstLook::Nothing
        } else if entries.is_over() || self.context.is_poll_due() {
            FirstLook::ReadyBeforePoll
        } else {
            FirstLook::Ready
        }
    }

    /// Drives the network until an entry is ready, the wait is over or woken, `until` has
    /// passed, or the context shuts down. Polls once if something is ready, or `until` has
    /// passed. Blocks.
    pub fn wait(&self, entries: &mut impl Entries, first: FirstLook, until: Instant) {
        let core = &self.context.core;
        let now = core.platform.now();
        if first == FirstLook::Nothing && now < until {
            self.block(entries, until);
        } else {
            core.driver().drive(&self.queue, now);
            self.look(entries);
        }
        self.context.note_polled(core.platform.now());
    }

    fn block<E: Entries>(&self, entries: &mut E, until: Instant) {
        let core = &self.context.core;
        loop {
            let sleep_until = || {
                if self.look(entries) || entries.is_over() {
                    return None;
                }
                // Timers can be due before; a reset changes when.
                let now = core.platform.now();
                (now < until).then(|| entries.next_due(now).min(until))
            };
            if E::LOOKS_AT_ALL {
                core.driver().drive_while(&self.queue, sleep_until);
            } else {
                core.driver().drive_woken_while(&self.queue, sleep_until);
            }
            // Another thread may have taken what ended it.
            let is_ended = self.look(entries) || entries.is_over() || core.is_shut_down();
            if is_ended || core.platform.now() >= until {
                return;
            }
        }
    }

    /// Runs what was queued, and looks for a reason to end a wait.
    pub fn look(&self, entries: &mut impl Entries) -> bool {
        // Each task is queued once. Those that come meanwhile are for the next look.
        for _ in 0..self.queue.len() {
            let Some(task) = self.queue.pop() else { break };
            entries.run_task(task);
        }
        self.context.report_graph_changes();
        entries.is_any_ready() || self.is_woken.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, IoSlice};
    use std::os::fd::BorrowedFd;

    use pteros_runtime::CoreOptions;
    use pteros_runtime::error::OpenError;
    use pteros_runtime::platform::{
        DatagramSockets, OpenedSockets, Platform, ReceivedDatagram, SocketPlan, SystemPlatform,
        UndrivenContext,
    };
    use pteros_runtime::rtps::locator::Locator;
    use pteros_runtime::rtps::time::Timestamp;

    use super::*;

    /// A platform whose time passes while a wait sleeps, and at no other time.
    #[derive(Clone)]
    struct FakeTime {
        nanos: Arc<AtomicU64>,
    }

    impl FakeTime {
        fn advance(&self, by: Duration) {
            let later = self.now().after(by).as_nanos();
            self.nanos.store(later, Ordering::Relaxed);
        }
    }

    impl Platform for FakeTime {
        fn now(&self) -> Instant {
            Instant::from_nanos(self.nanos.load(Ordering::Relaxed))
        }

        fn wall_clock(&self) -> Timestamp {
            SystemPlatform::new().wall_clock()
        }

        fn guid_seed(&self) -> [u8; 10] {
            SystemPlatform::new().guid_seed()
        }

        fn open(&self, plan: &SocketPlan) -> Result<OpenedSockets, OpenError> {
            let mut opened = SystemPlatform::new().open(plan)?;
            opened.sockets = Box::new(FakeSleep {
                sockets: opened.sockets,
                time: self.clone(),
            });
            Ok(opened)
        }

        fn drives_undriven(&self, _context: &Weak<dyn UndrivenContext>) -> bool {
            true
        }
    }

    struct FakeSleep {
        sockets: Box<dyn DatagramSockets>,
        time: FakeTime,
    }

    impl DatagramSockets for FakeSleep {
        fn send(&self, parts: &[IoSlice<'_>], to: &Locator) -> io::Result<()> {
            self.sockets.send(parts, to)
        }

        fn receive(&self, buffer: &mut [u8]) -> Option<ReceivedDatagram> {
            self.sockets.receive(buffer)
        }

        fn check_readable(&self) {
            self.sockets.check_readable();
        }

        fn sleep(&self, now: Instant, until: Instant) {
            assert!(until < Instant::FAR_FUTURE, "a sleep without an end");
            self.time.advance(until.since(now));
        }

        fn wake(&self) {
            self.sockets.wake();
        }

        fn shutdown_requested(&self) -> bool {
            false
        }

        fn descriptor(&self) -> Option<BorrowedFd<'_>> {
            self.sockets.descriptor()
        }
    }

    /// Opens a context at 1 s, without a network.
    fn context() -> (FakeTime, Arc<WaitContext>) {
        let time = FakeTime {
            nanos: Arc::new(AtomicU64::new(1_000_000_000)),
        };
        let options = CoreOptions {
            domain_id: 231,
            local_only: true,
            multicast: false,
            ..CoreOptions::default()
        };
        let core = Core::open(Arc::new(time.clone()), options).expect("open");
        (time, WaitContext::new(&core))
    }

    /// Entries whose looks, counted from 1, follow a script.
    struct Scripted<F> {
        looks: usize,
        due: Instant,
        script: F,
    }

    impl<F: FnMut(usize, &mut Instant) -> bool> Scripted<F> {
        fn new(script: F) -> Self {
            Self {
                looks: 0,
                due: Instant::FAR_FUTURE,
                script,
            }
        }
    }

    impl<F: FnMut(usize, &mut Instant) -> bool> Entries for Scripted<F> {
        fn is_any_ready(&mut self) -> bool {
            self.looks += 1;
            (self.script)(self.looks, &mut self.due)
        }

        fn next_due(&self, _now: Instant) -> Instant {
            self.due
        }
    }

    #[test]
    fn a_wake_up_without_a_reason_does_not_end_a_wait() {
        let (time, context) = context();
        let set = WaitSet::new(&context);
        let mut entries = Scripted::new(|look, _: &mut Instant| {
            if look < 6 {
                set.queue().wake();
            }
            false
        });
        let until = time.now().after(Duration::from_millis(250));
        assert_eq!(set.begin(&mut entries), FirstLook::Nothing);
        set.wait(&mut entries, FirstLook::Nothing, until);
        assert_eq!(time.now(), until);
        assert!(entries.looks >= 6);
    }

    #[test]
    fn a_timer_that_is_reset_during_a_wait_ends_it() {
        let (time, context) = context();
        let set = WaitSet::new(&context);
        let is_due = time.now().after(Duration::from_millis(5));
        let mut entries = Scripted::new(|look, due: &mut Instant| {
            match look {
                2 => set.queue().wake(),
                3 => *due = is_due,
                _ => {}
            }
            time.now() >= *due
        });
        let late = time.now().after(Duration::from_secs(3_600));
        let first = set.begin(&mut entries);
        set.wait(&mut entries, first, late);
        assert_eq!(time.now(), is_due);
    }

    #[test]
    fn what_another_thread_takes_does_not_end_a_wait() {
        let (time, context) = context();
        let set = WaitSet::new(&context);
        let mut entries = Scripted::new(|look, _: &mut Instant| {
            set.queue().wake();
            look == 2 || look > 3
        });
        let late = time.now().after(Duration::from_secs(3_600));
        let first = set.begin(&mut entries);
        set.wait(&mut entries, first, late);
        assert_eq!(entries.looks, 5, "the third found it taken");
    }

    #[test]
    fn entries_that_are_always_ready_leave_a_poll_once_in_a_period() {
        let (time, context) = context();
        let set = WaitSet::new(&context);
        let mut entries = Scripted::new(|_, _: &mut Instant| true);
        for _ in 0..3 {
            let first = set.begin(&mut entries);
            assert_eq!(first, FirstLook::ReadyBeforePoll);
            set.wait(&mut entries, first, Instant::FAR_FUTURE);
            assert_eq!(set.begin(&mut entries), FirstLook::Ready);
            time.advance(POLL_PERIOD);
        }
    }

    #[test]
    fn a_wake_ends_one_wait() {
        let (_, context) = context();
        let set = WaitSet::new(&context);
        let mut entries = Scripted::new(|_, _: &mut Instant| false);
        set.wake();
        assert_ne!(set.begin(&mut entries), FirstLook::Nothing);
        assert!(set.take_wake() && !set.take_wake());
        assert_eq!(set.begin(&mut entries), FirstLook::Nothing);
    }

    #[test]
    fn a_change_of_the_graph_triggers_the_guard_conditions_of_all_nodes() {
        let (_, context) = context();
        let set = WaitSet::new(&context);
        let mut entries = Scripted::new(|_, _: &mut Instant| false);
        let guards = [(); 2].map(|()| context.create_graph_guard());
        let mut taken = || {
            set.look(&mut entries);
            guards.each_ref().map(|guard| guard.take())
        };
        assert_eq!(taken(), [false; 2]);
        context.core.discovery().add_node("talker", "/");
        assert_eq!(taken(), [true; 2]);
        assert_eq!(taken(), [false; 2]);
    }
}
