//! Counts what a context asks of the operating system: this machine's clock and
//! sockets with a counter before each call. Nobody but the test's own thread
//! drives, so what is counted is what the message cost.

use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use pteros::OpenError;
use pteros::env::{Core, Env, Opened, Received, SocketPlan, SystemEnv, Transport};
use pteros::env::{Instant, Locator, Timestamp};

/// System calls, and looks at clocks, by kind.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Calls {
    /// Datagrams sent.
    pub sends: u64,
    /// Datagrams received.
    pub receives: u64,
    /// Waits for a datagram, looks that do not sleep included.
    pub waits: u64,
    /// Other threads woken.
    pub wakes: u64,
    /// Looks at the monotonic clock, which are no system calls.
    pub nows: u64,
    /// Looks at the wall clock, likewise.
    pub walls: u64,
}

#[derive(Default)]
pub struct Counters([AtomicU64; 6]);

impl Counters {
    fn note(&self, at: usize) {
        self.0[at].fetch_add(1, Ordering::Relaxed);
    }

    pub fn so_far(&self) -> Calls {
        let [sends, receives, waits, wakes, nows, walls] =
            [0, 1, 2, 3, 4, 5].map(|at| self.0[at].load(Ordering::Relaxed));
        Calls {
            sends,
            receives,
            waits,
            wakes,
            nows,
            walls,
        }
    }
}

/// This machine, counted.
pub struct CountingEnv {
    system: SystemEnv,
    pub counters: Arc<Counters>,
}

impl CountingEnv {
    pub fn new() -> Self {
        Self {
            system: SystemEnv::new(),
            counters: Arc::default(),
        }
    }
}

impl Env for CountingEnv {
    fn now(&self) -> Instant {
        self.counters.note(4);
        self.system.now()
    }

    fn wall(&self) -> Timestamp {
        self.counters.note(5);
        self.system.wall()
    }

    fn unique(&self) -> [u8; 10] {
        self.system.unique()
    }

    fn open(&self, plan: &SocketPlan) -> Result<Opened, OpenError> {
        let mut opened = self.system.open(plan)?;
        opened.transport = Box::new(CountingTransport {
            sockets: opened.transport,
            counters: self.counters.clone(),
        });
        Ok(opened)
    }

    fn looks_after(&self, _core: &Weak<Core>) -> bool {
        true
    }
}

struct CountingTransport {
    sockets: Box<dyn Transport>,
    counters: Arc<Counters>,
}

impl Transport for CountingTransport {
    fn send(&self, parts: &[IoSlice<'_>], to: &Locator) -> io::Result<()> {
        self.counters.note(0);
        self.sockets.send(parts, to)
    }

    fn receive(&self, buffer: &mut [u8]) -> Option<Received> {
        let received = self.sockets.receive(buffer);
        if received.is_some() {
            self.counters.note(1);
        }
        received
    }

    fn look(&self) {
        self.counters.note(2);
        self.sockets.look();
    }

    fn sleep(&self, now: Instant, until: Instant) {
        self.counters.note(2);
        self.sockets.sleep(now, until);
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
