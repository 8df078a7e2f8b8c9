//! Who drives the sockets, and how others wait meanwhile.
//!
//! One thread at a time is the driver: it sleeps in the sockets' poll, runs
//! the protocol and queues work. Threads that spin take the role in turn; a
//! thread that finds it taken sleeps on its own queue and is woken when there
//! is work for it or the role is free. While user code keeps every spinning
//! thread busy, the helper thread drives.
//!
//! [`Core::turn`] is a plain function of `now`: a simulation calls it as well.

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use pteros_rtps::fault;
use pteros_rtps::time::{Duration, Instant};

use crate::core::Core;
use crate::deadline::Machine;
use crate::dispatch::Inbox;
use crate::env::Received;
use crate::links::Links;
use crate::ready::ReadyQueue;
use crate::spin::Spin;
use crate::waiters::Waiting;

/// Datagrams handled between two looks at the ready queue. Enough to empty a
/// burst of fragments in one go, few enough that a callback never waits long.
const DATAGRAMS_PER_TURN: usize = 64;

/// Messages of links handled before a datagram that came after them: more than
/// a ring holds.
const OVERTAKEN_MAX: usize = 8_192;

/// While there is always work, the sockets are looked at this often. A system
/// call per millisecond costs a thousandth of it.
const LOOK_PERIOD: Duration = Duration::from_millis(1);

/// While a thread polls links, the sockets are asked this often: most of what it
/// polls for then comes while it looks at memory.
const POLL_PERIOD: Duration = Duration::from_micros(5);

/// A thread that sleeps longer than this between two wakes has time to tell the
/// helper each time that it needs none. A system call or two per wake then spare
/// another thread's.
const LONG_SLEEP: Duration = Duration::from_millis(10);

/// What only the driver touches.
pub struct DriverState {
    pub(crate) inbox: Inbox,
    /// When the sockets were last asked.
    looked_at: Instant,
    /// How long the last sleep was.
    slept: Duration,
    spin: Spin,
}

impl DriverState {
    /// One that polls for so long before it sleeps.
    pub(crate) fn new(spin: Duration) -> Self {
        Self {
            spin: Spin::new(spin),
            ..Self::default()
        }
    }
}

impl Default for DriverState {
    /// For [`Core::turn`] and [`Core::turn_now`] on one context.
    fn default() -> Self {
        Self {
            inbox: Inbox::new(),
            looked_at: Instant::ZERO,
            slept: Duration::ZERO,
            spin: Spin::new(Duration::ZERO),
        }
    }
}

impl Core {
    /// Waits until `queue` has work, `until` has passed or the context shuts
    /// down, or for a shorter time; drives the sockets if nobody else does.
    /// `queue` is the caller's alone. The caller runs the work, then calls
    /// this again; when it does not mean to, [`Core::hand_over`].
    pub fn drive(&self, queue: &Arc<ReadyQueue>, until: Instant) {
        self.drive_by(queue, until, |_, _| false);
    }

    /// As [`Core::drive`], for callers who look at nothing but `queue` and the
    /// clock: what the protocol alone is woken for does not come back to them.
    pub fn drive_until_work(&self, queue: &Arc<ReadyQueue>, until: Instant) {
        self.drive_by(queue, until, |slept, now| {
            slept && queue.is_empty() && now < until && !self.is_shut_down()
        });
    }

    fn drive_by(
        &self,
        queue: &Arc<ReadyQueue>,
        until: Instant,
        goes_on: impl Fn(bool, Instant) -> bool,
    ) {
        if let Some(mut state) = self.driver.try_lock() {
            self.enter_turn();
            loop {
                let (slept, now) = self.turn(&mut state, queue, until);
                if !goes_on(slept, now) {
                    break;
                }
            }
            // Under the lock, so that the next driver's entry comes after.
            self.leave_turn();
            drop(state);
        } else {
            self.followers.lock().push(queue.clone());
            // The driver may have left between the two looks.
            if !self.driver.is_locked() {
                queue.nudge();
            }
            match self.transport.rest(queue, until) {
                true => queue.forget_nudges(),
                false => queue.sleep(self.span_until(until)),
            }
            self.followers.lock().retain(|f| !Arc::ptr_eq(f, queue));
        }
        // A caller without work comes back at once and drives itself.
        if !queue.is_empty() || self.env.now() >= until {
            self.hand_over(queue);
        }
    }

    /// One turn: due deadlines, then datagrams; sleeps at most once, and only
    /// when neither gave work. Returns whether it slept, and what time it is.
    pub fn turn(
        &self,
        state: &mut DriverState,
        queue: &ReadyQueue,
        until: Instant,
    ) -> (bool, Instant) {
        let now = self.env.now();
        let answers = self.take_answers(state, now, queue);
        self.fire_deadlines(now);
        let handled = answers + self.receive(state, now, queue);
        if handled > 0 || !queue.is_empty() {
            self.look(state, now);
            return (false, now);
        }
        let now = match state.spin.span() {
            Some(span) => match self.poll_sockets(state, queue, until, (now, span)) {
                Ok(now) => return (false, now),
                Err(now) => now,
            },
            None => now,
        };
        let slept = self.sleep_in_sockets(state, queue, until, now);
        let slept_from = now;
        if slept {
            state.looked_at = now;
        } else if until <= now {
            self.transport.look();
            self.wake_links();
            state.looked_at = now;
        } else {
            self.look(state, now);
        }
        let now = self.env.now();
        if slept {
            let span = now.since(slept_from);
            state.slept = span;
            state.spin.note_slept(span);
        }
        self.take_answers(state, now, queue);
        self.fire_deadlines(now);
        self.receive(state, now, queue);
        self.notice_shutdown();
        (slept, now)
    }

    /// Before something is due: what came by links without waking anybody may
    /// make it unnecessary.
    fn take_answers(&self, state: &mut DriverState, now: Instant, queue: &ReadyQueue) -> usize {
        match self.linking.get().is_some() && self.deadlines.next() <= now {
            true => self.receive(state, now, queue),
            false => 0,
        }
    }

    /// A turn that never sleeps, for the helper and for simulations. Returns
    /// how many datagrams were handled.
    pub fn turn_now(&self, state: &mut DriverState) -> usize {
        self.transport.look();
        self.wake_links();
        let now = self.env.now();
        state.looked_at = now;
        let answers = self.take_answers(state, now, &self.no_queue);
        self.fire_deadlines(now);
        let handled = answers + self.receive(state, now, &self.no_queue);
        self.notice_shutdown();
        handled
    }

    /// Polls for at most `span` instead of sleeping. Ok when something came, or
    /// is due, or the caller is wanted; either way with what time it is.
    fn poll_sockets(
        &self,
        state: &mut DriverState,
        queue: &ReadyQueue,
        until: Instant,
        (from, span): (Instant, Duration),
    ) -> Result<Instant, Instant> {
        let end = from.after(span);
        let mut now = from;
        while now < end {
            // Links are memory, sockets a system call.
            let mut handled = self.receive(state, now, queue);
            let asks = self.linking.get().is_none() || now.since(state.looked_at) >= POLL_PERIOD;
            if handled == 0 && asks {
                self.transport.look();
                self.wake_links();
                state.looked_at = now;
                handled = self.receive(state, now, queue);
            }
            now = self.env.now();
            if handled > 0 || !queue.is_empty() {
                state.spin.note_polled(false);
                return Ok(now);
            }
            if until <= now || self.deadlines.next() <= now || self.is_shut_down() {
                return Ok(now);
            }
            std::hint::spin_loop();
        }
        state.spin.note_polled(true);
        Err(now)
    }

    /// Looks at the sockets although there is other work, now and then: user
    /// code that always has work must not make us deaf.
    fn look(&self, state: &mut DriverState, now: Instant) {
        if now.since(state.looked_at) >= LOOK_PERIOD {
            state.looked_at = now;
            self.transport.look();
            self.wake_links();
        }
    }

    fn notice_shutdown(&self) {
        if self.transport.shutdown_requested() {
            self.request_shutdown();
        }
    }

    /// Sleeps until something comes, if nothing has. Returns whether it slept.
    fn sleep_in_sockets(
        &self,
        state: &DriverState,
        queue: &ReadyQueue,
        until: Instant,
        now: Instant,
    ) -> bool {
        if self.is_shut_down() {
            return false;
        }
        let wake_at = until.min(self.deadlines.next());
        // The fence pairs with the one in `schedule`: either it sees that we
        // sleep past its deadline and wakes us, or we see its deadline here.
        self.sleeping_until
            .store(wake_at.as_nanos(), Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let wake_at = wake_at.min(self.deadlines.next());
        let sleeps = wake_at > now && self.links_rest() && queue.may_sleep_in_sockets();
        if sleeps {
            if state.slept >= LONG_SLEEP {
                self.rest_in_turn(state.slept);
            }
            self.transport.sleep(now, wake_at);
            queue.awake();
        }
        self.wake_links();
        self.sleeping_until.store(0, Ordering::SeqCst);
        sleeps
    }

    /// Whether nothing waits in a link: from here on peers wake us.
    pub(crate) fn links_rest(&self) -> bool {
        self.linking.get().is_none_or(|links| links.before_sleep())
    }

    pub(crate) fn wake_links(&self) {
        if let Some(links) = self.linking.get() {
            links.awake();
            if links.is_due() {
                self.turn_links(self.env.now());
            }
        }
    }

    fn receive(&self, state: &mut DriverState, now: Instant, queue: &ReadyQueue) -> usize {
        let mut handled = 0;
        // First: who is known by its board is not asked over the network.
        if self.transport.board_stirs() {
            self.turn_neighbours(now);
            handled = 1;
        }
        let mut looked_for_ends = false;
        while handled < DATAGRAMS_PER_TURN {
            if !self.receive_one(state, now, handled) {
                if self.have_neighbours_ended() && !looked_for_ends {
                    // What they sent before is received first.
                    self.transport.look();
                    looked_for_ends = true;
                    continue;
                }
                break;
            }
            handled += 1;
            // Work for user code goes first; what is left waits in the socket.
            if !queue.is_empty() {
                break;
            }
        }
        self.heed_ends(now, looked_for_ends);
        if handled > 0 {
            self.note_progress();
            if queue.is_empty() {
                // No callback goes before what only confirms.
                self.fire_deadlines(now);
            }
        }
        handled
    }

    /// Handles one message, of a link or a socket; false when none is there.
    fn receive_one(&self, state: &mut DriverState, now: Instant, handled: usize) -> bool {
        let Some(links) = self.linking.get() else {
            return self.receive_datagram(state, now);
        };
        let is_young = self.linking.is_young(now);
        if is_young {
            self.transport.look();
        }
        // A link that never ends must not hide the sockets.
        let sockets_first = is_young || handled % 8 == 7;
        if sockets_first && self.receive_datagram(state, now) {
            return true;
        }
        self.receive_record(links, state, now, &mut None)
            || (!sockets_first && self.receive_datagram(state, now))
    }

    fn receive_datagram(&self, state: &mut DriverState, now: Instant) -> bool {
        let mut pending = self.transport.receive(&mut state.inbox.buffer);
        if pending.is_none() {
            return false;
        }
        if let Some(links) = self.linking.get() {
            // What was sent by a link before comes before: the last samples of a
            // writer before word of its end.
            let mut budget = OVERTAKEN_MAX;
            while budget > 0 && self.receive_record(links, state, now, &mut pending) {
                budget -= 1;
            }
        }
        if let Some(received) = pending {
            self.dispatch(now, &mut state.inbox, received);
        }
        true
    }

    /// Handles one message of a link. If it is of a writer that no reader knows,
    /// word of that one waits in a socket, or is the `pending` datagram: those
    /// go first then.
    fn receive_record(
        &self,
        links: &dyn Links,
        state: &mut DriverState,
        now: Instant,
        pending: &mut Option<Received>,
    ) -> bool {
        let Some(record) = links.receive(&mut state.inbox.head) else {
            return false;
        };
        if self.dispatch_record(now, &mut state.inbox, &record) {
            return true;
        }
        let mut handled = 0;
        while handled < DATAGRAMS_PER_TURN {
            if handled == 0 {
                self.transport.look();
            }
            let next = pending.take();
            let next = next.or_else(|| self.transport.receive(&mut state.inbox.buffer));
            let Some(received) = next else { break };
            self.dispatch(now, &mut state.inbox, received);
            handled += 1;
        }
        if handled > 0 {
            self.dispatch_record(now, &mut state.inbox, &record);
        }
        true
    }

    fn fire_deadlines(&self, now: Instant) {
        if fault!("woken-for-nothing") {
            self.fire(now, Machine::Participant);
        }
        if self.deadlines.next() > now {
            return;
        }
        // Each machine at most once: one that asks for the same instant again
        // waits for the next turn.
        let mut budget = 1024;
        while budget > 0 {
            let Some(machine) = self.deadlines.pop_due(now) else {
                break;
            };
            self.fire(now, machine);
            budget -= 1;
        }
        self.note_progress();
    }

    fn fire(&self, now: Instant, machine: Machine) {
        match machine {
            Machine::Participant => {
                let clock = match fault!("lease-on-the-wrong-clock") {
                    true => Instant::from_nanos(self.env.wall().as_nanos().unsigned_abs()),
                    false => now,
                };
                self.participant.lock().handle_timeout(clock);
                self.serve_participant(now);
            }
            Machine::Links => self.turn_links(now),
            Machine::Graph => self.announce_graph(now),
            Machine::Neighbours => self.turn_neighbours(now),
            Machine::Handshakes => self.turn_handshakes(now),
            Machine::Writer(id) => {
                if let Some(writer) = self.writer(id) {
                    writer.handle_timeout(now);
                    self.serve_writer(now, &writer);
                }
            }
            Machine::Departure(id) => {
                if let Some(writer) = self.writer(id) {
                    self.depart(now, &writer);
                }
            }
            Machine::Flow(controller) => self.turn_flow(now, controller),
            Machine::Reader(id) => {
                if let Some(reader) = self.reader(id) {
                    reader.machine.lock().handle_timeout(now);
                    self.serve_reader(now, &reader);
                }
            }
        }
    }

    /// Notes a machine's next deadline and wakes a driver that would oversleep.
    pub(crate) fn schedule(&self, machine: Machine, at: Option<Instant>) {
        if !self.deadlines.schedule(machine, at) {
            return;
        }
        let Some(at) = at else { return };
        fence(Ordering::SeqCst);
        let sleeping_until = self.sleeping_until.load(Ordering::SeqCst);
        if sleeping_until != 0 && at.as_nanos() < sleeping_until {
            self.transport.wake();
        }
    }

    /// Gives the role, if it is free, to a thread that waits for it. Called by
    /// whoever stops driving, or was chosen to and does not.
    pub fn hand_over(&self, own: &Arc<ReadyQueue>) {
        if self.driver.is_locked() {
            return;
        }
        let followers = self.followers.lock();
        let next = followers.iter().find(|f| !Arc::ptr_eq(f, own));
        if let Some(next) = next {
            next.nudge();
        }
    }

    /// As [`Core::wait_until`], woken by work on `queue` as well, which `done`
    /// removes. `queue` is the caller's alone.
    pub fn drive_until(
        &self,
        queue: &Arc<ReadyQueue>,
        until: Instant,
        mut done: impl FnMut() -> bool,
    ) -> bool {
        let _waiting = Waiting::begin(self, queue);
        loop {
            if done() {
                return true;
            }
            if self.env.now() >= until || self.is_shut_down() {
                return done();
            }
            self.drive(queue, until);
        }
    }

    fn span_until(&self, until: Instant) -> Option<std::time::Duration> {
        if until == Instant::FAR_FUTURE {
            return None;
        }
        until.since(self.env.now()).to_std()
    }
}
