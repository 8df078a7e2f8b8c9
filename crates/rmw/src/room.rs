//! When the socket is full: who waits for room, and for how long.
//!
//! A network takes less than a program can write. What the kernel has no room
//! for is not lost here: the thread that publishes waits until the socket has
//! some, and what it has no patience for stays with its writer, which the driver
//! serves again in a moment. History decides meanwhile, as ever, what a later
//! sample replaces. Who drives never waits: discovery and acknowledgements that
//! find no room are lost datagrams, and repeated.
//!
//! The kernel says that there is room once half of its buffer is free, which is
//! more than a burst of datagrams of a network's size.

use std::cell::Cell;
use std::io;
use std::sync::atomic::Ordering;

use pteros_rtps::time::{Duration, Instant};

use crate::core::Core;
use crate::writer::{WriterEndpoint, WriterState};

/// Until the driver looks again whether a socket has room.
const PAUSE: Duration = Duration::from_millis(2);

/// So often as a publish may wait for once it may wait in all.
const WAITS: i64 = 10;

/// What one wait counts at least, so that none goes on for ever.
const WAIT_MIN: Duration = Duration::from_micros(100);

/// How long a sender may wait for room in the socket.
#[derive(Debug)]
pub(crate) struct Patience {
    each: Duration,
    left: Cell<Duration>,
    /// There was no room in spite of it.
    is_over: Cell<bool>,
}

impl Patience {
    /// A publishing thread's: so long without any room, and ten times that in all.
    pub(crate) const fn of(max_blocking_time: Duration) -> Self {
        Self {
            each: max_blocking_time,
            left: Cell::new(max_blocking_time.times(WAITS)),
            is_over: Cell::new(false),
        }
    }

    /// Of those who never wait.
    pub(crate) const fn none() -> Self {
        Self::of(Duration::ZERO)
    }

    /// Whether there was no room in spite of it.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.get()
    }

    /// Whether there is none to begin with.
    pub(crate) fn is_none(&self) -> bool {
        self.each <= Duration::ZERO
    }

    fn next_wait(&self) -> Option<Duration> {
        let span = self.each.min(self.left.get());
        (span > Duration::ZERO && !self.is_over()).then_some(span)
    }

    fn note_waited(&self, span: Duration) {
        let left = self.left.get().as_nanos() - span.max(WAIT_MIN).as_nanos();
        self.left.set(Duration::from_nanos(left));
    }
}

impl Core {
    /// What became of a datagram that `send` tries to send, again after each wait
    /// for room.
    pub(crate) fn send_when_roomy(
        &self,
        patience: &Patience,
        send: impl Fn() -> io::Result<()>,
    ) -> io::Result<()> {
        loop {
            let sent = send();
            let is_full = matches!(&sent, Err(e) if e.kind() == io::ErrorKind::WouldBlock);
            if !is_full {
                return sent;
            }
            self.doubt_room();
            if !self.wait_for_socket(patience) {
                return sent;
            }
        }
    }

    fn wait_for_socket(&self, patience: &Patience) -> bool {
        let Some(span) = patience.next_wait() else {
            patience.is_over.set(true);
            return false;
        };
        self.counters.waits.fetch_add(1, Ordering::Relaxed);
        let from = self.env.now();
        let is_roomy = self.transport.wait_for_room(span);
        patience.note_waited(self.env.now().since(from));
        patience.is_over.set(!is_roomy);
        is_roomy
    }

    /// The next look at [`Core::has_room`] asks the socket: it was full, or a burst
    /// was sent and more is to come.
    pub(crate) fn doubt_room(&self) {
        // Relaxed: who misses it finds out by itself.
        self.room_in_doubt.store(true, Ordering::Relaxed);
    }

    /// Whether the socket has room for a burst, as far as is known.
    pub(crate) fn has_room(&self) -> bool {
        if !self.room_in_doubt.load(Ordering::Relaxed) {
            return true;
        }
        let is_roomy = self.transport.wait_for_room(Duration::ZERO);
        self.room_in_doubt.store(!is_roomy, Ordering::Relaxed);
        is_roomy
    }

    /// Waits, before a burst that is not the first, until there is room for it.
    /// False when there is none: then the rest is the driver's. To be called with
    /// no lock held.
    pub(crate) fn await_room(&self, writer: &WriterEndpoint, patience: &Patience) -> bool {
        if !uses_socket(writer) {
            return true;
        }
        self.doubt_room();
        self.has_room() || self.wait_for_socket(patience)
    }

    /// Whether who drives, or publishes without patience, may send for a writer
    /// now: nobody else is at it, and there is room. Under the writer's lock.
    pub(crate) fn may_send(
        &self,
        now: Instant,
        writer: &WriterEndpoint,
        state: &mut WriterState,
    ) -> bool {
        if state.resumes_at.is_some_and(|at| at > now) {
            return false;
        }
        let is_held_up = state.machine.has_output() && uses_socket(writer) && !self.has_room();
        state.resumes_at = is_held_up.then(|| now.after(PAUSE));
        !is_held_up
    }

    /// Leaves what a writer has still to send to the driver, in a moment.
    pub(crate) fn resume_later(&self, writer: &WriterEndpoint) {
        let now = self.env.now();
        let mut state = writer.state.lock();
        state.resumes_at = Some(now.after(PAUSE));
        self.schedule_writer(writer, &state);
    }
}

/// When who found the socket full tries again.
pub(crate) fn next_look(now: Instant) -> Instant {
    now.after(PAUSE)
}

/// Whether some of a writer's readers are reached by the socket.
fn uses_socket(writer: &WriterEndpoint) -> bool {
    writer.remote_count() > writer.linked_count()
}
