//! The driver: one thread at a time polls the sockets and runs the protocol.
//!
//! The driver sleeps in the poll of the sockets, handles what arrives and queues
//! work for user code. Spinning threads take the role in turn. A thread that finds
//! the role taken sleeps on its own queue, and wakes when that queue has work or
//! the role is free (leader/followers). While user code keeps every spinning thread
//! busy, the background I/O thread drives.
//!
//! [`Driver::poll`] is a plain function of `now`. A simulation calls it as well.

use std::sync::Arc;

use pteros_rtps::id::GuidPrefix;
use pteros_rtps::receiver::MessageReader;
use pteros_rtps::time::{Duration, Instant};

use crate::core::descriptor_check::DescriptorCheck;
use crate::core::discovery::Discovery;
use crate::core::dispatch::ReceiveBuffers;
use crate::core::ends::{DeferredDispose, is_participant_dispose};
use crate::core::receive_path::ReceivePath;
use crate::core::shared_parts::SharedParts;
use crate::lock::{Mutex, rank};
use crate::platform::{DatagramSockets, Platform, ReceivedDatagram};
use crate::scheduler::Scheduler;
use crate::scheduler::busy_poll::BusyPoll;
use crate::scheduler::ready_queue::ReadyQueue;
use crate::scheduler::timeout_queue::TimeoutOwner;
use crate::send::SendPath;
use crate::send::deferred::DeferredSends;
use crate::shm_transport::ShmTransport;
use crate::trace::Tracer;

/// Datagrams handled between two checks of the ready queue. The number suffices for a
/// burst of fragments, and delays no callback for long.
const DATAGRAMS_PER_POLL: usize = 64;

/// Shared-memory messages handled before a datagram that arrived after them. More
/// than a descriptor ring holds.
const SHM_MESSAGES_BEFORE_DATAGRAM_MAX: usize = 8_192;

/// How often sockets are checked while there is always other work. One system call
/// per millisecond costs a thousandth of the time.
const SOCKET_CHECK_PERIOD: Duration = Duration::from_millis(1);

/// How often sockets are checked while a thread busy-polls shared memory. Most
/// messages arrive through memory then.
const POLL_PERIOD: Duration = Duration::from_micros(5);

/// Deferred sleeps in a row in which nothing was received, after which peers wake this
/// process again. So an idle process has no timer.
const VAIN_SLEEPS_MAX: u32 = 20;

/// After a sleep longer than this, a thread informs the background I/O thread that it is
/// not needed. That costs one or two system calls per wake-up, and saves a wake-up of
/// another thread.
const LONG_SLEEP: Duration = Duration::from_millis(10);

/// How long an end waits for callbacks and a socket that is never empty. Then everything
/// else is received at once, as far as the history of each reader allows.
const END_DELAY_MAX: Duration = Duration::from_millis(100);

/// How long an end waits for readers whose history is full. Then it is applied, even if
/// messages are unread.
const END_WAIT_MAX: Duration = Duration::from_secs(60);

/// Datagrams and messages received at once: more than a socket holds.
const RECEIVED_AT_ONCE_MAX: usize = 16_384;

/// State that only the driver uses.
pub struct DriverState {
    pub(crate) inbox: ReceiveBuffers,
    /// When the sockets were last checked.
    sockets_checked_at: Instant,
    /// How long the last sleep was.
    slept: Duration,
    busy_poll: BusyPoll,
    /// Deferred sleeps in a row in which nothing was received, from memory or sockets.
    vain_sleeps: u32,
}

impl DriverState {
    /// Creates the state of a driver that busy-polls for `busy_poll` before it sleeps.
    pub(crate) fn new(busy_poll_max: Duration) -> Self {
        Self {
            busy_poll: BusyPoll::new(busy_poll_max),
            ..Self::default()
        }
    }
}

impl Default for DriverState {
    /// For `Driver::poll` and `Driver::poll_now` on one context.
    fn default() -> Self {
        Self {
            inbox: ReceiveBuffers::new(),
            sockets_checked_at: Instant::ZERO,
            slept: Duration::ZERO,
            busy_poll: BusyPoll::new(Duration::ZERO),
            vain_sleeps: VAIN_SLEEPS_MAX,
        }
    }
}

/// See the module documentation. Thread-safe.
pub struct Driver {
    pub(crate) platform: Arc<dyn Platform>,
    pub(crate) datagrams: Arc<dyn DatagramSockets>,
    pub(crate) scheduler: Arc<Scheduler>,
    pub(crate) prefix: GuidPrefix,
    /// How long a sleep may defer the wake-up by a peer.
    pub(crate) latency_budget: Duration,
    pub(crate) send: Arc<SendPath>,
    pub(crate) receiving: ReceivePath,
    /// The role of the driver: a lock that is only ever tried.
    pub(crate) role: Mutex<DriverState, rank::Driver>,
    /// A queue that never has work, for polls that serve no executor.
    pub(crate) idle_queue: ReadyQueue,
    /// Remote sends that are deferred until waiting callbacks have run.
    pub(crate) deferred: DeferredSends,
    pub(crate) tracer: Option<Arc<Tracer>>,
    pub(crate) descriptor_check: DescriptorCheck,
}

impl Driver {
    pub(crate) fn new(
        parts: &SharedParts,
        busy_poll_max: Duration,
        latency_budget: Duration,
        receiving: ReceivePath,
    ) -> Self {
        Self {
            platform: parts.platform.clone(),
            datagrams: parts.datagrams.clone(),
            scheduler: parts.scheduler.clone(),
            prefix: parts.prefix,
            latency_budget,
            send: parts.send.clone(),
            receiving,
            role: Mutex::new(DriverState::new(busy_poll_max)),
            idle_queue: ReadyQueue::new(|| {}),
            deferred: DeferredSends::default(),
            tracer: parts.tracer.clone(),
            descriptor_check: DescriptorCheck::default(),
        }
    }

    pub(crate) fn discovery(&self) -> &Discovery {
        &self.receiving.discovery
    }

    /// Waits until `queue` has work, `until` has passed or the context shuts down.
    ///
    /// May return earlier. Drives the sockets if no other thread does. `queue`
    /// belongs to the caller alone. The caller runs the work and calls this again;
    /// a caller that stops uses [`Driver::hand_over`].
    pub fn drive(&self, queue: &Arc<ReadyQueue>, until: Instant) {
        self.drive_by(queue, until, |_, _| false);
    }

    /// As [`Driver::drive`], for callers that depend only on `queue` and the clock.
    /// Wake-ups for the protocol do not return to them.
    pub fn drive_until_work(&self, queue: &Arc<ReadyQueue>, until: Instant) {
        self.drive_by(queue, until, |slept, now| {
            slept && queue.is_empty() && now < until && !self.scheduler.is_shut_down()
        });
    }

    fn drive_by(
        &self,
        queue: &Arc<ReadyQueue>,
        until: Instant,
        goes_on: impl Fn(bool, Instant) -> bool,
    ) {
        if let Some(mut state) = self.role.try_lock() {
            self.scheduler.enter_poll();
            loop {
                let (slept, now) = self.poll(&mut state, queue, until);
                if !goes_on(slept, now) {
                    break;
                }
            }
            // Under the lock, so that the next driver enters afterwards.
            self.scheduler.leave_poll();
            drop(state);
        } else {
            self.scheduler.follow(
                queue,
                until,
                || !self.role.is_locked(),
                || self.span_until(until),
            );
        }
        // A caller without work returns at once and drives itself.
        if !queue.is_empty() || self.platform.now() >= until {
            self.hand_over(queue);
        }
    }

    /// Polls once: first due timeouts, then datagrams.
    ///
    /// Sleeps at most once, and only when neither gave work. Returns whether it
    /// slept, and the present time.
    pub fn poll(
        &self,
        state: &mut DriverState,
        queue: &ReadyQueue,
        until: Instant,
    ) -> (bool, Instant) {
        let now = self.platform.now();
        let answers = self.receive_shm_before_timeouts(state, now, queue);
        self.fire_timeouts(state, now);
        let handled = answers + self.receive(state, now, queue);
        if handled > 0 || !queue.is_empty() {
            state.vain_sleeps = 0;
            self.check_sockets(state, now);
            return (false, now);
        }
        let now = match state.busy_poll.span() {
            Some(span) => match self.poll_sockets(state, queue, until, now, span) {
                Ok(now) => return (false, now),
                Err(now) => now,
            },
            None => now,
        };
        let slept = self.sleep_in_sockets(state, queue, until, now);
        let slept_from = now;
        if slept {
            state.sockets_checked_at = now;
        } else if until <= now {
            self.datagrams.check_readable();
            self.disarm_shm_doorbell();
            state.sockets_checked_at = now;
        } else {
            self.check_sockets(state, now);
        }
        let now = self.platform.now();
        if slept {
            let span = now.since(slept_from);
            state.slept = span;
            state.busy_poll.note_slept(span);
        }
        let answers = self.receive_shm_before_timeouts(state, now, queue);
        self.fire_timeouts(state, now);
        let handled = answers + self.receive(state, now, queue);
        state.vain_sleeps = match handled {
            0 => state.vain_sleeps.saturating_add(u32::from(slept)),
            _ => 0,
        };
        self.handle_shutdown_signal();
        (slept, now)
    }

    /// Before timeouts fire: handles shared-memory messages that arrived without a
    /// wake-up, since they may make a timeout unnecessary.
    fn receive_shm_before_timeouts(
        &self,
        state: &mut DriverState,
        now: Instant,
        queue: &ReadyQueue,
    ) -> usize {
        if self.discovery().shm_connections.get().is_some() && self.scheduler.next_timeout() <= now
        {
            self.receive(state, now, queue)
        } else {
            0
        }
    }

    /// Polls without sleeping, for the background I/O thread and for simulations.
    /// Returns how many datagrams were handled.
    pub fn poll_now(&self, state: &mut DriverState) -> usize {
        self.datagrams.check_readable();
        self.disarm_shm_doorbell();
        let now = self.platform.now();
        state.sockets_checked_at = now;
        let answers = self.receive_shm_before_timeouts(state, now, &self.idle_queue);
        self.fire_timeouts(state, now);
        let handled = answers + self.receive(state, now, &self.idle_queue);
        self.handle_shutdown_signal();
        handled
    }

    /// Busy-polls for at most `span` instead of sleeping. `Ok` when something
    /// arrived or is due, or when the caller must return. Both variants hold the
    /// present time.
    fn poll_sockets(
        &self,
        state: &mut DriverState,
        queue: &ReadyQueue,
        until: Instant,
        from: Instant,
        span: Duration,
    ) -> Result<Instant, Instant> {
        let end = from.after(span);
        let mut now = from;
        while now < end {
            // Shared memory costs a load, a socket costs a system call.
            let mut handled = self.receive(state, now, queue);
            let checks_sockets = self.discovery().shm_connections.get().is_none()
                || now.since(state.sockets_checked_at) >= POLL_PERIOD;
            if handled == 0 && checks_sockets {
                self.datagrams.check_readable();
                self.disarm_shm_doorbell();
                state.sockets_checked_at = now;
                handled = self.receive(state, now, queue);
            }
            now = self.platform.now();
            if handled > 0 || !queue.is_empty() {
                state.busy_poll.note_polled(false);
                return Ok(now);
            }
            if until <= now || self.scheduler.next_timeout() <= now || self.scheduler.is_shut_down()
            {
                return Ok(now);
            }
            std::hint::spin_loop();
        }
        state.busy_poll.note_polled(true);
        Err(now)
    }

    /// Checks the sockets regularly, even if other work is pending. User code that always
    /// has work must not stop reception.
    fn check_sockets(&self, state: &mut DriverState, now: Instant) {
        if now.since(state.sockets_checked_at) >= SOCKET_CHECK_PERIOD {
            state.sockets_checked_at = now;
            self.datagrams.check_readable();
            self.disarm_shm_doorbell();
        }
    }

    fn handle_shutdown_signal(&self) {
        if self.datagrams.shutdown_requested() {
            self.scheduler.request_shutdown();
        }
    }

    /// Sleeps until something arrives, if nothing waits. Returns whether it slept.
    fn sleep_in_sockets(
        &self,
        state: &DriverState,
        queue: &ReadyQueue,
        until: Instant,
        now: Instant,
    ) -> bool {
        if self.scheduler.is_shut_down() {
            return false;
        }
        self.schedule_trace_writing(now);
        let mut wake_at = self.scheduler.begin_sleep(until);
        let deferral = self.deferral(state);
        let is_armed = || match deferral {
            None => self.arm_shm_doorbell(),
            Some(_) => self.defer_shm_doorbell(),
        };
        let sleeps = wake_at > now && is_armed() && queue.begin_socket_sleep();
        if let Some(deferral) = deferral {
            wake_at = wake_at.min(now.after(deferral));
        }
        if sleeps {
            if state.slept >= LONG_SLEEP {
                self.scheduler.note_poll_sleeping(state.slept);
            }
            self.datagrams.sleep(now, wake_at);
            queue.end_sleep();
        }
        self.disarm_shm_doorbell();
        self.scheduler.end_sleep();
        sleeps
    }

    /// How long messages may wait during the next sleep without a wake-up. `None` if each
    /// message wakes this process: before the first message, and after
    /// [`VAIN_SLEEPS_MAX`].
    fn deferral(&self, state: &DriverState) -> Option<Duration> {
        let budget = self.latency_budget;
        let has_budget =
            budget > Duration::ZERO && self.discovery().shm_connections.get().is_some();
        (has_budget && state.vain_sleeps < VAIN_SLEEPS_MAX).then_some(budget)
    }

    /// Defers the doorbell: messages do not wake this process unless they are many.
    /// Returns true if no connection has a message waiting.
    fn defer_shm_doorbell(&self) -> bool {
        self.discovery()
            .shm_connections
            .get()
            .is_none_or(|shm| shm.defer_doorbell())
    }

    /// Arms the doorbell. Returns true if no connection has a message waiting; from
    /// here on peers wake this process.
    pub(crate) fn arm_shm_doorbell(&self) -> bool {
        self.discovery()
            .shm_connections
            .get()
            .is_none_or(|shm| shm.arm_doorbell())
    }

    pub(crate) fn disarm_shm_doorbell(&self) {
        if let Some(shm) = self.discovery().shm_connections.get() {
            shm.disarm_doorbell();
            if shm.is_due() {
                self.discovery().poll_shm_connections(self.platform.now());
            }
        }
    }

    fn receive(&self, state: &mut DriverState, now: Instant, queue: &ReadyQueue) -> usize {
        let mut handled = 0;
        // First the discovery log: a peer known by its log needs no announcement
        // over the network.
        if self.datagrams.discovery_log_changed() {
            self.discovery().poll_same_host_peers(now);
            handled = 1;
        }
        if self.datagrams.interfaces_changed() {
            self.discovery().note_interfaces_changed();
        }
        // The ends that waited when the sockets were last checked.
        let mut checked_for = 0;
        let mut is_drained = false;
        while handled < DATAGRAMS_PER_POLL {
            if !self.receive_one(state, now, handled) {
                let ends = self.deferred_ends(state);
                is_drained = ends == checked_for;
                if is_drained {
                    break;
                }
                // Receives what was sent before them.
                self.datagrams.check_readable();
                checked_for = ends;
                continue;
            }
            handled += 1;
            // Work for user code takes precedence; the remaining datagrams wait in the
            // socket.
            if !queue.is_empty() {
                break;
            }
        }
        self.apply_deferred_ends(state, now, is_drained);
        if handled > 0 {
            self.scheduler.wake_waiters();
            if queue.is_empty() {
                // A mere acknowledgement is sent before callbacks.
                self.fire_timeouts(state, now);
            }
        }
        handled
    }

    /// Handles one message of a connection or a socket. Returns false if there is
    /// none.
    pub(crate) fn receive_one(
        &self,
        state: &mut DriverState,
        now: Instant,
        handled: usize,
    ) -> bool {
        let Some(shm) = self.discovery().shm_connections.get() else {
            return self.receive_datagram(state, now);
        };
        let is_young = self.discovery().shm_connections.is_settling(now);
        if is_young {
            self.datagrams.check_readable();
        }
        // A connection with endless traffic must not starve the sockets.
        let sockets_first = is_young || handled % 8 == 7;
        if sockets_first && self.receive_datagram(state, now) {
            return true;
        }
        if is_young {
            self.discovery().shm_connections.note_drained(now);
        }
        self.receive_shm_message(shm, state, now, &mut None)
            || (!sockets_first && self.receive_datagram(state, now))
    }

    fn receive_datagram(&self, state: &mut DriverState, now: Instant) -> bool {
        let mut pending = self.datagrams.receive(&mut state.inbox.buffer);
        if pending.is_none() {
            return false;
        }
        if let Some(shm) = self.discovery().shm_connections.get() {
            // Earlier shared-memory messages are received first: the last samples of a
            // writer precede the announcement of its end.
            let mut budget = SHM_MESSAGES_BEFORE_DATAGRAM_MAX;
            while budget > 0 && self.receive_shm_message(shm, state, now, &mut pending) {
                budget -= 1;
            }
        }
        if let Some(received) = pending {
            self.receiving.dispatch(now, &mut state.inbox, received);
        }
        true
    }

    /// Handles one message of a connection. If no reader knows its writer, the writer's
    /// announcement is in a socket or is the `pending` datagram, and is handled first.
    fn receive_shm_message(
        &self,
        shm: &dyn ShmTransport,
        state: &mut DriverState,
        now: Instant,
        pending: &mut Option<ReceivedDatagram>,
    ) -> bool {
        let Some(record) = shm.receive(&mut state.inbox.shm_message) else {
            return false;
        };
        if self
            .receiving
            .dispatch_shm_message(now, &mut state.inbox, &record)
        {
            return true;
        }
        self.datagrams.check_readable();
        let mut may_be_known = false;
        for _ in 0..DATAGRAMS_PER_POLL {
            let next = pending.take();
            let next = next.or_else(|| self.datagrams.receive(&mut state.inbox.buffer));
            let Some(received) = next else { break };
            self.receiving.dispatch(now, &mut state.inbox, received);
            may_be_known = true;
        }
        if may_be_known {
            self.receiving
                .dispatch_shm_message(now, &mut state.inbox, &record);
        }
        true
    }

    fn fire_timeouts(&self, state: &mut DriverState, now: Instant) {
        if self.scheduler.next_timeout() > now {
            return;
        }
        // Each owner fires at most once. An owner that schedules the same instant again
        // waits for the next poll.
        let mut budget = 1024;
        while budget > 0 {
            let Some(machine) = self.scheduler.pop_due(now) else {
                break;
            };
            self.fire(state, now, machine);
            budget -= 1;
        }
        self.scheduler.wake_waiters();
    }

    fn fire(&self, state: &mut DriverState, now: Instant, machine: TimeoutOwner) {
        match machine {
            TimeoutOwner::Participant => {
                self.descriptor_check.run(now, &*self.platform);
                self.fire_participant_timeouts(state, now);
            }
            TimeoutOwner::ShmConnections => self.discovery().poll_shm_connections(now),
            TimeoutOwner::Transport(index) => {
                let _order = self.discovery().endpoints.begin_match();
                self.discovery().serve_transport(now, index);
            }
            TimeoutOwner::Interfaces => self.discovery().follow_interfaces(now),
            TimeoutOwner::Graph => self.discovery().announce_graph(now),
            TimeoutOwner::SameHostPeers => self.discovery().poll_same_host_peers(now),
            TimeoutOwner::Handshakes => self.discovery().poll_handshakes(now),
            TimeoutOwner::Writer(id) => {
                if let Some(writer) = self.discovery().endpoints.writer(id) {
                    writer.handle_timeout(now);
                    self.discovery().publishing.serve_writer(now, &writer);
                    self.discovery().report_stalls(now, &writer);
                }
            }
            TimeoutOwner::LingeringWriter(id) => {
                if let Some(writer) = self.discovery().endpoints.writer(id) {
                    self.discovery().end_linger(now, &writer);
                }
            }
            TimeoutOwner::TraceFile => self.write_trace_file(),
            TimeoutOwner::FlowController(controller) => self.run_flow_controller(now, controller),
            TimeoutOwner::Reader(id) => {
                if let Some(reader) = self.discovery().endpoints.reader(id) {
                    reader.machine.lock().handle_timeout(now);
                    self.discovery().serve_reader(now, &reader);
                    self.discovery().announce_undecodable(now, &reader);
                }
            }
        }
    }

    /// Passes the driver role, if it is free, to a waiting thread. Called by a
    /// thread that stops driving, or that was chosen and does not drive.
    pub fn hand_over(&self, own: &Arc<ReadyQueue>) {
        if self.role.is_locked() {
            return;
        }
        self.scheduler.wake_follower(Some(own));
    }

    /// As [`Driver::wait_until`], and also woken by work on `queue`, which `done`
    /// removes. `queue` belongs to the caller alone.
    pub fn drive_until(
        &self,
        queue: &Arc<ReadyQueue>,
        until: Instant,
        mut done: impl FnMut() -> bool,
    ) -> bool {
        let mut is_done = false;
        self.drive_while(queue, || {
            is_done = done();
            (!is_done && self.platform.now() < until).then_some(until)
        });
        is_done || done()
    }

    /// Drives the network until `sleep_until` returns `None`, or the context shuts down.
    /// Blocks. Asks it before each sleep, which ends at the returned time at the latest. It
    /// removes the work on `queue`, which belongs to the caller alone.
    pub fn drive_while(
        &self,
        queue: &Arc<ReadyQueue>,
        sleep_until: impl FnMut() -> Option<Instant>,
    ) {
        let _waiting = RegisteredWaiter::begin(self, queue);
        self.drive_woken_while(queue, sleep_until);
    }

    /// As [`Driver::drive_while`], for a caller that needs nothing but the work on `queue`:
    /// what other threads do to the context does not wake it.
    pub fn drive_woken_while(
        &self,
        queue: &Arc<ReadyQueue>,
        mut sleep_until: impl FnMut() -> Option<Instant>,
    ) {
        while let Some(until) = sleep_until()
            && !self.scheduler.is_shut_down()
        {
            self.drive(queue, until);
        }
        // This thread may have been chosen to drive next.
        self.hand_over(queue);
    }

    /// Drives the network until `done` returns true or `until` has passed. Blocks.
    ///
    /// Returns the last result of `done`. For callers without an executor.
    pub fn wait_until(&self, until: Instant, done: impl FnMut() -> bool) -> bool {
        let waiters = self.scheduler.waiters();
        let spare = waiters.take_spare();
        let queue = spare.unwrap_or_else(|| self.scheduler.ready_queue());
        let met = self.drive_until(&queue, until, done);
        waiters.keep_spare(queue);
        met
    }

    /// Polls a context that no executor spins: at most `rounds` times, without
    /// sleeping. Returns false when another thread drives it.
    pub fn drive_undriven(&self, rounds: usize) -> bool {
        let Some(mut state) = self.role.try_lock() else {
            return false;
        };
        self.send_all_deferred(false);
        for _ in 0..rounds {
            let handled = self.poll_now(&mut state);
            // The doorbell stays armed while the background I/O thread sleeps,
            // until the next poll.
            if handled == 0 && self.arm_shm_doorbell() {
                break;
            }
        }
        drop(state);
        self.scheduler.wake_follower(None);
        true
    }

    fn span_until(&self, until: Instant) -> Option<std::time::Duration> {
        if until == Instant::FAR_FUTURE {
            return None;
        }
        until.since(self.platform.now()).to_std()
    }

    /// Handles the participant's timeouts. Timeouts that end a silent peer are deferred.
    fn fire_participant_timeouts(&self, state: &mut DriverState, now: Instant) {
        let mut participant = self.discovery().participant().lock();
        let may_lose_peers = participant.may_lose_peers(now);
        if may_lose_peers {
            participant.handle_other_timeouts(now);
        } else {
            participant.handle_timeout(now);
        }
        drop(participant);
        self.discovery().serve_participant(now);
        if may_lose_peers {
            state.inbox.ends.defer_timeouts(now);
            // No thread sleeps until they are handled. They are not due again in this
            // poll.
            let soon = now.after(Duration::from_nanos(1));
            self.scheduler
                .schedule(TimeoutOwner::Participant, Some(soon));
        }
    }

    /// Number of deferred ends.
    fn deferred_ends(&self, state: &DriverState) -> usize {
        state.inbox.ends.len() + usize::from(self.discovery().same_host.has_deferred_removals())
    }

    /// Applies the deferred ends if everything that had arrived was received
    /// (`is_drained`). After [`END_DELAY_MAX`] it receives that first, as far as no
    /// reader's history loses samples. It applies them after [`END_WAIT_MAX`] at the
    /// latest.
    fn apply_deferred_ends(&self, state: &mut DriverState, now: Instant, is_drained: bool) {
        if self.deferred_ends(state) == 0 {
            return;
        }
        if !is_drained {
            let oldest = state.inbox.ends.oldest();
            let oldest = oldest
                .into_iter()
                .chain(self.discovery().same_host.oldest_deferred_removal())
                .min();
            let waited = oldest.map_or(END_WAIT_MAX, |at| now.since(at));
            if waited < END_DELAY_MAX
                || (!self.receive_within_histories(state, now) && waited < END_WAIT_MAX)
            {
                return;
            }
        }
        let ends = std::mem::take(&mut state.inbox.ends);
        self.discovery().same_host.apply_deferred_removals(now);
        for dispose in &ends.disposes {
            self.apply_dispose(now, dispose);
        }
        if let Some(at) = ends.timeouts {
            self.discovery().participant().lock().lose_silent_peers(at);
        }
        self.discovery().serve_participant(now);
    }

    /// Receives what has arrived, without callbacks. Stops before a reader would lose a
    /// sample that its callbacks did not take. Returns whether all was received.
    fn receive_within_histories(&self, state: &mut DriverState, now: Instant) -> bool {
        self.datagrams.check_readable();
        for _ in 0..RECEIVED_AT_ONCE_MAX {
            let table = self.discovery().endpoints.read();
            let have_space = table.readers.values().all(|reader| reader.has_space());
            drop(table);
            if !have_space {
                return false;
            }
            // Shared memory first: a datagram makes it be received to the end.
            if !self.receive_one(state, now, 0) {
                break;
            }
        }
        true
    }

    fn apply_dispose(&self, now: Instant, dispose: &DeferredDispose) {
        let Ok(message) = MessageReader::new(&dispose.datagram, self.prefix) else {
            return;
        };
        let mut participant = self.discovery().participant().lock();
        for (source, submessage) in message {
            if source.prefix != self.prefix && is_participant_dispose(&submessage) {
                participant.handle_submessage(now, Some(dispose.from), &source, &submessage);
            }
        }
    }
}

/// A registered waiter; ends when dropped.
struct RegisteredWaiter<'c> {
    driver: &'c Driver,
    queue: &'c Arc<ReadyQueue>,
}

impl<'c> RegisteredWaiter<'c> {
    /// Registers before the first check. `queue` belongs to this thread alone.
    fn begin(driver: &'c Driver, queue: &'c Arc<ReadyQueue>) -> Self {
        driver.send_deferred();
        driver.scheduler.waiters().register(queue);
        Self { driver, queue }
    }
}

impl Drop for RegisteredWaiter<'_> {
    fn drop(&mut self) {
        self.driver.scheduler.waiters().unregister(self.queue);
        // The waiter may have been chosen to drive next.
        self.driver.hand_over(self.queue);
    }
}
