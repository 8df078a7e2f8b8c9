//! Counting platform: this machine's clock and sockets, with a counter before each
//! system call.

use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use pteros_runtime::error::OpenError;
use pteros_runtime::platform::{
    DatagramSockets, Instant, Locator, OpenedSockets, Platform, ReceivedDatagram, SignalHandling,
    SocketPlan, SystemPlatform, Timestamp,
};

/// System calls of a context so far.
#[derive(Default)]
pub struct CallCounters {
    sends: AtomicU64,
    receives: AtomicU64,
    waits: AtomicU64,
    wakes: AtomicU64,
}

/// System calls, by kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SystemCalls {
    /// Datagrams sent.
    pub sends: u64,
    /// Datagrams received.
    pub receives: u64,
    /// Waits for a datagram, including polls that do not sleep.
    pub waits: u64,
    /// Other threads woken.
    pub wakes: u64,
}

impl CallCounters {
    /// System calls within `work`, and its result.
    pub fn count<R>(&self, work: impl FnOnce() -> R) -> (SystemCalls, R) {
        let before = self.snapshot();
        let result = work();
        let after = self.snapshot();
        let made = SystemCalls {
            sends: after.sends - before.sends,
            receives: after.receives - before.receives,
            waits: after.waits - before.waits,
            wakes: after.wakes - before.wakes,
        };
        (made, result)
    }

    fn snapshot(&self) -> SystemCalls {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        SystemCalls {
            sends: read(&self.sends),
            receives: read(&self.receives),
            waits: read(&self.waits),
            wakes: read(&self.wakes),
        }
    }
}

fn note(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// What happens when a thread is about to sleep.
type SleepHook = Arc<Mutex<Option<Box<dyn FnOnce() + Send>>>>;

/// This machine, with counters.
pub struct CountingPlatform {
    system: SystemPlatform,
    pub counters: Arc<CallCounters>,
    before_sleep: SleepHook,
}

impl CountingPlatform {
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            system: SystemPlatform::with_signals(SignalHandling::Ignore),
            counters: Arc::default(),
            before_sleep: SleepHook::default(),
        })
    }

    /// Runs `work` on a thread of its own, just before the next sleep in the sockets.
    pub fn before_next_sleep(&self, work: impl FnOnce() + Send + 'static) {
        let hook = move || std::thread::spawn(work).join().unwrap();
        *self.before_sleep.lock().unwrap() = Some(Box::new(hook));
    }
}

impl Platform for CountingPlatform {
    fn now(&self) -> Instant {
        self.system.now()
    }

    fn wall_clock(&self) -> Timestamp {
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
            before_sleep: self.before_sleep.clone(),
        });
        Ok(opened)
    }
}

struct CountingSockets {
    sockets: Box<dyn DatagramSockets>,
    counters: Arc<CallCounters>,
    before_sleep: SleepHook,
}

impl DatagramSockets for CountingSockets {
    fn send(&self, parts: &[IoSlice<'_>], to: &Locator) -> io::Result<()> {
        note(&self.counters.sends);
        self.sockets.send(parts, to)
    }

    fn receive(&self, buffer: &mut [u8]) -> Option<ReceivedDatagram> {
        let received = self.sockets.receive(buffer);
        if received.is_some() {
            note(&self.counters.receives);
        }
        received
    }

    fn check_readable(&self) {
        note(&self.counters.waits);
        self.sockets.check_readable();
    }

    fn sleep(&self, now: Instant, until: Instant) {
        note(&self.counters.waits);
        let hook = self.before_sleep.lock().unwrap().take();
        if let Some(hook) = hook {
            hook();
        }
        self.sockets.sleep(now, until);
    }

    fn wake(&self) {
        note(&self.counters.wakes);
        self.sockets.wake();
    }

    fn shutdown_requested(&self) -> bool {
        self.sockets.shutdown_requested()
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.sockets.descriptor()
    }
}
