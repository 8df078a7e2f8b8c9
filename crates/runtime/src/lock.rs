//! Lock ranks: the one table of this crate's mutexes and the order in which a
//! thread may take them.
//!
//! Every mutex names its rank in its type. A debug build records the ranks that a thread
//! holds, and panics with both names when it takes a lock out of order. So a deadlock is
//! found without two threads blocking each other: every test and every simulated graph
//! checks the order. A release build has no such code.
//!
//! User code runs under none of these locks, except a reader's inline listener.
//! A thread that may block for socket space holds no lock but a publisher group's,
//! or security's for a goodbye. Discovery sends under `MatchOrder` without blocking.

#[cfg(debug_assertions)]
use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

/// The position of a lock in the order.
pub trait Rank: 'static {
    /// The entry of the table.
    const RANK: LockRank;
}

/// Declares the table: variants of [`LockRank`] and types in [`rank`], outermost
/// first. A rank marked `several` may be held more than once by a thread.
macro_rules! lock_ranks {
    ($($(#[$doc:meta])* $name:ident $(: $several:ident)?,)*) => {
        /// The ranks, outermost first.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum LockRank {
            $($(#[$doc])* $name,)*
        }

        impl LockRank {
            /// All ranks, outermost first.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Whether a thread may hold several locks of this rank.
            #[cfg(debug_assertions)]
            const fn allows_several(self) -> bool {
                match self {
                    $(Self::$name => lock_ranks!(@several $($several)?),)*
                }
            }
        }

        /// The ranks as types, for [`Mutex`] and [`RwLock`].
        pub mod rank {
            $(
                $(#[$doc])*
                #[derive(Debug)]
                pub struct $name;

                impl super::Rank for $name {
                    const RANK: super::LockRank = super::LockRank::$name;
                }
            )*
        }
    };
    (@several several) => { true };
    (@several) => { false };
}

lock_ranks! {
    /// The driver role and its buffers. Only ever tried, so no thread waits for it.
    Driver,
    /// Calls of a typed service client (`pteros`) without a response. Held while the
    /// request is published.
    ClientCalls,
    /// Open requests of a service client. Held while the request is published.
    OpenCalls,
    /// Replies that wait until their client is discovered.
    PendingReplies,
    /// State about same-host peers beside their discovery logs.
    SameHostPeers,
    /// No data: endpoint matching happens under it, so that a match and its end reach an
    /// endpoint in the order of discovery.
    MatchOrder,
    /// Handshakes, authenticated peers and their permissions.
    SecurityState,
    /// The permissions of the context.
    Permissions,
    /// The participant: discovery. Never held together with an endpoint's lock.
    Participant,
    /// The tables of local endpoints and of their matches.
    EndpointTable,
    /// The coherent set of a publisher group and the order of its writers. Held while
    /// a member writes and while the end of a set is sent.
    PublisherGroup,
    /// A writer's protocol machine, its routes within the process and its history.
    /// A group announces its position to its other writers under the lock of one.
    WriterState: several,
    /// A reader's protocol machine.
    ReaderMachine,
    /// Held writers on further transports.
    TransportHolds,
    /// Coherent sets and ordered access over the readers of a subscription group.
    SubscriptionGroup,
    /// A reader's history cache: the samples that wait for the callback.
    ReaderCache,
    /// Publishers without liveliness whose instances are not updated yet.
    NotAliveWriters,
    /// Samples of a reader that were not of its type.
    UndecodableSamples,
    /// Announced data of an endpoint.
    AnnouncedData,
    /// A reader's content filter, for publishers of its process.
    LocalFilter,
    /// Nodes and endpoints of the graph cache.
    GraphState,
    /// Connection states of the peers on this host.
    ShmPeers,
    /// Writers with a deferred message.
    DeferredWriters,
    /// The queue of a flow controller.
    FlowController,
    /// When each owner of a timeout is due.
    Timeouts,
    /// Status events of an endpoint.
    EventQueue,
    /// Threads that wait for the driver role.
    Followers,
    /// Threads that wait for a condition.
    Waiters,
    /// Unused queues of such threads.
    SpareWaiters,
    /// Tasks that wait at a mutual-exclusion gate.
    Gate,
    /// The queue and the task of an entity.
    ReadySlot,
    /// The tasks of an executor, and how its owner sleeps.
    ReadyQueue,
    /// Waker of an external event loop.
    ExternalWaker,
    /// The background I/O thread of this process.
    BackgroundThread,
    /// Contexts that the background I/O thread has not seen yet.
    NewContexts,
    /// Names of endpoints and nodes in a trace.
    TraceNames,
    /// A trace file while it is written.
    TraceFile,
    /// The network interfaces as last listed.
    Interfaces,
    /// Recently logged moves of traffic between addresses.
    ToldMoves,
    /// The address with most rate-limited datagrams.
    MostLimited,
}

/// A mutex with a rank.
pub struct Mutex<T, R> {
    inner: parking_lot::Mutex<T>,
    rank: PhantomData<fn() -> R>,
}

/// The lock of a [`Mutex`], until it is dropped.
pub struct MutexGuard<'a, T, R: Rank> {
    inner: parking_lot::MutexGuard<'a, T>,
    _held: Held<R>,
}

impl<T, R: Rank> Mutex<T, R> {
    /// Creates it unlocked.
    pub const fn new(value: T) -> Self {
        Self {
            inner: parking_lot::Mutex::new(value),
            rank: PhantomData,
        }
    }

    /// Waits for the lock.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, T, R> {
        let held = Held::enter();
        MutexGuard {
            inner: self.inner.lock(),
            _held: held,
        }
    }

    /// Takes the lock if it is free. May break the order, since it never waits.
    #[inline]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T, R>> {
        Some(MutexGuard {
            inner: self.inner.try_lock()?,
            _held: Held::enter_without_waiting(),
        })
    }

    /// Whether some thread holds the lock.
    #[inline]
    pub fn is_locked(&self) -> bool {
        self.inner.is_locked()
    }

    /// Mutable access for the only owner.
    #[inline]
    pub fn get_mut(&mut self) -> &mut T {
        self.inner.get_mut()
    }
}

impl<T: Default, R: Rank> Default for Mutex<T, R> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T: fmt::Debug, R> fmt::Debug for Mutex<T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl<T, R: Rank> Deref for MutexGuard<'_, T, R> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T, R: Rank> DerefMut for MutexGuard<'_, T, R> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}

/// A condition variable for a [`Mutex`].
#[derive(Debug, Default)]
pub struct Condvar(parking_lot::Condvar);

impl Condvar {
    /// Creates it.
    pub const fn new() -> Self {
        Self(parking_lot::Condvar::new())
    }

    /// Wakes one waiting thread.
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Releases the lock, waits for a wake-up and takes the lock again.
    pub fn wait<T, R: Rank>(&self, guard: &mut MutexGuard<'_, T, R>) {
        self.0.wait(&mut guard.inner);
    }

    /// As [`Condvar::wait`], no longer than `limit`.
    pub fn wait_for<T, R: Rank>(&self, guard: &mut MutexGuard<'_, T, R>, limit: Duration) {
        self.0.wait_for(&mut guard.inner, limit);
    }
}

/// A readers-writer lock with a rank.
pub struct RwLock<T, R> {
    inner: parking_lot::RwLock<T>,
    rank: PhantomData<fn() -> R>,
}

/// The shared lock of an [`RwLock`], until it is dropped.
pub struct ReadGuard<'a, T, R: Rank> {
    inner: parking_lot::RwLockReadGuard<'a, T>,
    _held: Held<R>,
}

/// The exclusive lock of an [`RwLock`], until it is dropped.
pub struct WriteGuard<'a, T, R: Rank> {
    inner: parking_lot::RwLockWriteGuard<'a, T>,
    _held: Held<R>,
}

impl<T, R: Rank> RwLock<T, R> {
    /// Creates it unlocked.
    pub const fn new(value: T) -> Self {
        Self {
            inner: parking_lot::RwLock::new(value),
            rank: PhantomData,
        }
    }

    /// Waits for the shared lock.
    #[inline]
    pub fn read(&self) -> ReadGuard<'_, T, R> {
        let held = Held::enter();
        ReadGuard {
            inner: self.inner.read(),
            _held: held,
        }
    }

    /// Waits for the exclusive lock.
    #[inline]
    pub fn write(&self) -> WriteGuard<'_, T, R> {
        let held = Held::enter();
        WriteGuard {
            inner: self.inner.write(),
            _held: held,
        }
    }
}

impl<T: Default, R: Rank> Default for RwLock<T, R> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T, R: Rank> Deref for ReadGuard<'_, T, R> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T, R: Rank> Deref for WriteGuard<'_, T, R> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T, R: Rank> DerefMut for WriteGuard<'_, T, R> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}

/// The entry of a held lock among the ranks that its thread holds. Empty in a
/// release build.
struct Held<R: Rank>(PhantomData<*const R>);

#[cfg(not(debug_assertions))]
impl<R: Rank> Held<R> {
    #[inline(always)]
    fn enter() -> Self {
        Self(PhantomData)
    }

    #[inline(always)]
    fn enter_without_waiting() -> Self {
        Self(PhantomData)
    }
}

#[cfg(debug_assertions)]
thread_local! {
    /// How many locks of each rank this thread holds, by position in the table.
    static HELD: [Cell<u8>; LockRank::ALL.len()] =
        const { [const { Cell::new(0) }; LockRank::ALL.len()] };
}

#[cfg(debug_assertions)]
impl<R: Rank> Held<R> {
    fn enter() -> Self {
        let rank = R::RANK;
        let innermost = HELD.with(|held| held.iter().rposition(|count| count.get() > 0));
        let innermost = innermost.and_then(|at| LockRank::ALL.get(at).copied());
        let in_order =
            innermost.is_none_or(|held| held < rank || (held == rank && rank.allows_several()));
        assert!(
            in_order || std::thread::panicking(),
            "lock order: {rank:?} is taken while {innermost:?} is held"
        );
        Self::enter_without_waiting()
    }

    fn enter_without_waiting() -> Self {
        Self::count(|count| count.saturating_add(1));
        Self(PhantomData)
    }

    fn count(change: impl FnOnce(u8) -> u8) {
        HELD.with(|held| {
            if let Some(count) = held.get(R::RANK as usize) {
                count.set(change(count.get()));
            }
        });
    }
}

#[cfg(debug_assertions)]
impl<R: Rank> Drop for Held<R> {
    fn drop(&mut self) {
        Self::count(|count| count.saturating_sub(1));
    }
}

#[cfg(all(test, debug_assertions))]
mod tests {
    use super::*;

    type Outer = Mutex<(), rank::WriterState>;
    type Inner = Mutex<(), rank::ReaderMachine>;

    #[test]
    fn locks_are_taken_inwards_and_released_in_any_order() {
        let (outer, inner) = (Outer::default(), Inner::default());
        let first = outer.lock();
        let second = inner.lock();
        drop(first);
        drop(second);
        drop(outer.lock());
        assert!(outer.try_lock().is_some());
    }

    #[test]
    #[should_panic(expected = "WriterState is taken while Some(ReaderMachine) is held")]
    fn a_lock_taken_outwards_panics_with_both_names() {
        let (outer, inner) = (Outer::default(), Inner::default());
        let _inner = inner.lock();
        let _outer = outer.lock();
    }

    #[test]
    #[should_panic(expected = "EndpointTable is taken while Some(EndpointTable) is held")]
    fn a_shared_lock_is_not_taken_twice_since_a_writer_may_wait_between() {
        let table = RwLock::<(), rank::EndpointTable>::default();
        let _once = table.read();
        let _twice = table.read();
    }

    #[test]
    fn only_marked_ranks_are_held_several_times() {
        let pair = [Outer::default(), Outer::default()];
        let _guards = pair.each_ref().map(Mutex::lock);
        let several = LockRank::ALL.iter().filter(|rank| rank.allows_several());
        assert_eq!(several.count(), 1);
    }

    #[test]
    fn a_tried_lock_may_break_the_order_and_still_counts() {
        let driver = Mutex::<(), rank::Driver>::default();
        let calls = Mutex::<(), rank::OpenCalls>::default();
        let _calls = calls.lock();
        let _driver = driver.try_lock();
        let held = HELD.with(|held| held.iter().filter(|count| count.get() > 0).count());
        assert_eq!(held, 2);
    }
}
