//! Counting platform: this machine's clock and sockets, with a counter before each
//! call.
//!
//! Only the test's own thread drives the context, so the counts are those of the
//! message.

use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use pteros::error::OpenError;
use pteros::platform::{
    DatagramSockets, OpenedSockets, Platform, ReceivedDatagram, SocketPlan, SystemPlatform,
    UndrivenContext,
};
use pteros::platform::{Instant, Locator, Timestamp};

/// System calls and clock reads, by kind.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct SystemCalls {
    /// Datagrams sent.
    pub sends: u64,
    /// Datagrams received.
    pub receives: u64,
    /// Waits for a datagram, including polls that do not sleep.
    pub waits: u64,
    /// Other threads woken.
    pub wakes: u64,
    /// Reads of the monotonic clock, which are no system calls.
    pub monotonic_reads: u64,
    /// Reads of the wall clock, likewise.
    pub wall_reads: u64,
}

#[derive(Default)]
pub struct CallCounters([AtomicU64; 6]);

impl CallCounters {
    fn note(&self, at: usize) {
        self.0[at].fetch_add(1, Ordering::Relaxed);
    }

    pub fn snapshot(&self) -> SystemCalls {
        let [sends, receives, waits, wakes, monotonic_reads, wall_reads] =
            [0, 1, 2, 3, 4, 5].map(|at| self.0[at].load(Ordering::Relaxed));
        SystemCalls {
            sends,
            receives,
            waits,
            wakes,
            monotonic_reads,
            wall_reads,
        }
    }
}

/// This machine, with counters.
pub struct CountingEnv {
    system: SystemPlatform,
    pub counters: Arc<CallCounters>,
}

impl CountingEnv {
    pub fn new() -> Self {
        Self {
            system: SystemPlatform::new(),
            counters: Arc::default(),
        }
    }
}

impl Platform for CountingEnv {
    fn now(&self) -> Instant {
        self.counters.note(4);
        self.system.now()
    }

    fn wall_clock(&self) -> Timestamp {
        self.counters.note(5);
        self.system.wall_clock()
    }

    fn guid_seed(&self) -> [u8; 10] {
        self.system.guid_seed()
    }

    fn open(&self, plan: &SocketPlan) -> Result<OpenedSockets, OpenError> {
        let mut opened = self.system.open(plan)?;
        opened.sockets = Box::new(CountingSockets {
            sockets: opened.sockets,
            counters: self.counters.clone(),
        });
        Ok(opened)
    }

    fn drives_undriven(&self, _context: &Weak<dyn UndrivenContext>) -> bool {
        true
    }
}

struct CountingSockets {
    sockets: Box<dyn DatagramSockets>,
    counters: Arc<CallCounters>,
}

impl DatagramSockets for CountingSockets {
    fn send(&self, parts: &[IoSlice<'_>], to: &Locator) -> io::Result<()> {
        self.counters.note(0);
        self.sockets.send(parts, to)
    }

    fn receive(&self, buffer: &mut [u8]) -> Option<ReceivedDatagram> {
        let received = self.sockets.receive(buffer);
        if received.is_some() {
            self.counters.note(1);
        }
        received
    }

    fn check_readable(&self) {
        self.counters.note(2);
        self.sockets.check_readable();
    }

    fn sleep(&self, now: Instant, spin_both_until: Instant) {
        self.counters.note(2);
        self.sockets.sleep(now, spin_both_until);
    }

    fn wake(&self) {
        self.counters.note(3);
        self.sockets.wake();
    }

    fn shutdown_requested(&self) -> bool {
        self.sockets.shutdown_requested()
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.sockets.descriptor()
    }
}
