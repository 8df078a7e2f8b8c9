//! Discovery log: SPDP and SEDP announcements for same-host peers, in shared memory
//! instead of datagrams. Each process writes its data once, and all peers read it
//! in place.
//!
//! A [`DiscoveryLog`] is memory to which its owner appends records and that peers map
//! read-only. Peers are found without a packet on any network. The kernel lists the
//! listeners in the abstract namespace of Unix sockets, so no registry can become
//! stale. A process that opens a log connects to all processes that have one. Both
//! sides hand over their memory, and the connection stays open: a packet on it means
//! new records, and its end means that the process has exited.
//!
//! ```text
//! own log ── mapped read-only ────► n peers     one memory per process,
//!    ▲ append     "more"  ────────► n sockets        one socket per pair
//! ```
//! Time and memory grow with the number of processes, not with its square, because
//! a record is in memory once. The rules of the crate hold: no memory has two
//! writers, nothing read is trusted, no call waits.
//!
//! When a log is full, [`DiscoveryLog::rewrite`] writes all valid records to new
//! memory and hands that to the peers.

mod listener;
mod log;
mod socket_diag;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use parking_lot::Mutex;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;

use crate::error::{DisconnectReason, PeerName, ShmError};
use crate::memory::io_error;
use crate::packet::{self, Incoming, Packet};
use crate::process_watch::ProcessWatch;
use listener::PendingPeer;
use log::{LogReader, LogWriter};

pub use log::{DiscoveryLogFull, Totals};

/// epoll token of the listener.
const LISTENER_TOKEN: u64 = 0;
/// Added to a peer's token: the token of its process.
const PROCESS_TOKEN: u64 = 1 << 63;
/// Events taken per `epoll_wait`, and calls of it per poll.
const EVENTS_PER_WAIT: usize = 64;
const WAITS_PER_POLL: usize = 32;
/// Bytes of records reported per poll, over all peers, exceeded by one record at
/// most. The caller processes them before more are read, so meeting many peers
/// takes no more memory than meeting one. The rest follows with the next poll.
const BYTES_PER_POLL: usize = 16 << 10;
/// Least number of bytes that a record counts for.
const RECORD_BYTES_MIN: usize = 64;
/// Records still read of a peer that is gone.
const LAST_RECORDS_MAX: usize = 16_384;
/// Shortest interval between two wake-ups of the peers: a fixed part, and a part
/// for each peer. The cost of updates on a host then does not grow with the square
/// of its processes.
const WAKE_INTERVAL_NS: u64 = 1_000_000;
const WAKE_INTERVAL_PER_PEER_NS: u64 = 50_000;
/// Peers whose process is watched with a pidfd, besides the socket. Each costs one
/// more descriptor, and a process has 1024 by default. The exit of other processes
/// whose socket stays open elsewhere is detected by their participant lease.
const WATCHED_PROCESSES_MAX: usize = 128;
/// Pause before a connect is retried after the peer's listen queue was full.
const RETRY_NS: u64 = 5_000_000;

/// Limits of a discovery log.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DiscoveryLogOptions {
    /// Same-host peers at a time. Default 512. Others are not discovered this way.
    pub peers_max: usize,
    /// Size of the log, bytes: 64 KiB to 64 MiB. Default 16 MiB. Only written pages
    /// take memory. It must hold twice the data that is valid at a time.
    pub bytes: usize,
    /// How long a peer may take to send its log, nanoseconds. Default 30 s: when
    /// some hundred processes of a user start at once, one may wait that long for a
    /// processor.
    pub handshake_ns: u64,
}

impl Default for DiscoveryLogOptions {
    fn default() -> Self {
        Self {
            peers_max: 512,
            bytes: 16 << 20,
            handshake_ns: 30_000_000_000,
        }
    }
}

/// A change at a same-host peer, reported by [`DiscoveryLog::poll`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DiscoveryLogEvent<'a> {
    /// A new peer, or a peer that has rewritten its log. Earlier records of the
    /// peer are void.
    Reset {
        /// The participant whose log starts again.
        peer: PeerName,
    },
    /// A record of the peer's log, each once and in order.
    Record {
        /// The participant that wrote the record.
        peer: PeerName,
        /// Its bytes as the peer wrote them.
        record: &'a [u8],
    },
    /// All records that the log held at [`DiscoveryLogEvent::Reset`] have been
    /// reported.
    CaughtUp {
        /// The participant whose log is read to its end.
        peer: PeerName,
    },
    /// The peer asserted its liveliness since the last
    /// [`DiscoveryLog::poll_liveliness`].
    LivelinessAsserted {
        /// The participant that asserted it.
        peer: PeerName,
    },
    /// The peer is gone: closed, exited, or it violated the protocol.
    PeerLost {
        /// The participant that is gone.
        peer: PeerName,
        /// Why.
        reason: DisconnectReason,
    },
}

/// One process's discovery log and the peers' logs that it reads. Thread-safe;
/// methods take `&self`.
///
/// Events are reported under the log's lock, so a handler must not call the log.
#[derive(Debug)]
pub struct DiscoveryLog {
    name: PeerName,
    domain: u32,
    options: DiscoveryLogOptions,
    epoll: OwnedFd,
    listener: OwnedFd,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    log: LogWriter,
    pending: BTreeMap<u64, PendingPeer>,
    peers: BTreeMap<PeerName, SameHostPeer>,
    /// The peer of each socket token.
    tokens: BTreeMap<u64, PeerName>,
    token: u64,
    /// When peers are to be woken, and when they were last.
    wake_at: Option<u64>,
    woken_at: u64,
    /// A peer's log has more records than one poll reports.
    has_unread: bool,
    /// Bytes that this poll may still report, and the peer that was read last.
    budget_bytes: usize,
    last_read: PeerName,
    /// When to retry to send our log.
    send_log_at: Option<u64>,
    /// Buffer for the record that is read.
    record: Vec<u8>,
}

#[derive(Debug)]
struct SameHostPeer {
    socket: OwnedFd,
    /// The peer's process, for the first [`WATCHED_PROCESSES_MAX`].
    _process: Option<ProcessWatch>,
    token: u64,
    log: LogReader,
    /// Position at which [`DiscoveryLogEvent::CaughtUp`] is reported; `None`
    /// afterwards.
    caught_up_at: Option<usize>,
    /// The log must be reported from the start.
    must_replay: bool,
    /// Our current log is still to be sent to it.
    needs_log: bool,
    liveliness_count: u64,
}

impl DiscoveryLog {
    /// Opens the log `name` of `domain`. It connects to no peer before
    /// [`DiscoveryLog::connect_to_all`], but later processes find it at once.
    ///
    /// # Errors
    /// [`ShmError::Option`] for a size out of range. [`ShmError::Open`] when the
    /// system refuses memory, a descriptor or the name.
    pub fn open(
        domain: u32,
        name: PeerName,
        options: DiscoveryLogOptions,
    ) -> Result<Self, ShmError> {
        if !(64 << 10..=64 << 20).contains(&options.bytes) {
            return Err(ShmError::Option {
                name: "discovery log bytes",
                value: options.bytes,
                allowed: "from 64 KiB to 64 MiB",
            });
        }
        let open = |action: &'static str| move |e| ShmError::Open(io_error(action, e));
        let log = LogWriter::create(options.bytes).map_err(ShmError::Open)?;
        let listener = listener::listen(domain, &name).map_err(open("listen for peers"))?;
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(open("create an epoll set"))?;
        let data = EventData::new_u64(LISTENER_TOKEN);
        epoll::add(&epoll, &listener, data, EventFlags::IN).map_err(open("watch for peers"))?;
        Ok(Self {
            name,
            domain,
            options,
            epoll,
            listener,
            state: Mutex::new(State {
                log,
                pending: BTreeMap::new(),
                peers: BTreeMap::new(),
                tokens: BTreeMap::new(),
                token: LISTENER_TOKEN,
                wake_at: None,
                woken_at: 0,
                has_unread: false,
                budget_bytes: 0,
                last_read: name,
                send_log_at: None,
                record: Vec::new(),
            }),
        })
    }

    /// Readable when [`DiscoveryLog::poll`] has something to do.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    /// Number of peers whose logs are read.
    pub fn peers(&self) -> usize {
        self.state.lock().peers.len()
    }

    /// Connects to all processes of this host and domain that have a log. Call it
    /// once: later processes connect to us. Returns the number of connects. Without
    /// `/proc` and socket diagnostics it finds no process, and only later processes
    /// are discovered.
    pub fn connect_to_all(&self, now: u64) -> usize {
        let names = socket_diag::listening_peers(self.domain);
        let mut state = self.state.lock();
        // Records that follow at once share one wake-up.
        state.woken_at = now;
        let mut connected = 0;
        for peer in names {
            if peer == self.name || state.has_peer(&peer) || !state.has_room(&self.options) {
                continue;
            }
            let deadline = now.saturating_add(self.options.handshake_ns);
            if let Ok(call) = PendingPeer::outgoing(self.domain, peer, deadline) {
                connected += usize::from(self.add_pending(&mut state, call, now));
            }
        }
        connected
    }

    /// Whether a connect to this peer is pending, and its log not received yet.
    pub fn is_connecting_to(&self, peer: PeerName) -> bool {
        let state = self.state.lock();
        state.pending.values().any(|call| call.peer == Some(peer))
    }

    /// Appends records and wakes the peers. Peers that were woken less than a
    /// millisecond ago (longer with many peers) are woken later by
    /// [`DiscoveryLog::poll`].
    ///
    /// # Errors
    /// [`DiscoveryLogFull`]: the records do not all fit, and none was appended. Call [`DiscoveryLog::rewrite`].
    pub fn append<'r>(
        &self,
        now: u64,
        records: impl Iterator<Item = &'r [u8]> + Clone,
    ) -> Result<(), DiscoveryLogFull> {
        let mut state = self.state.lock();
        state.log.append(records)?;
        state.schedule_wake(now);
        Ok(())
    }

    /// Writes all valid records to new memory, and hands it to the peers.
    ///
    /// # Errors
    /// [`DiscoveryLogFull`]: the records exceed the log's size, or there was no memory.
    /// The old log stays.
    pub fn rewrite<'r>(
        &self,
        records: impl Iterator<Item = &'r [u8]> + Clone,
    ) -> Result<(), DiscoveryLogFull> {
        let mut state = self.state.lock();
        let mut fresh = LogWriter::create(self.options.bytes).map_err(|_| DiscoveryLogFull)?;
        fresh.append(records)?;
        fresh.continue_liveliness(&state.log);
        state.log = fresh;
        for host_peer in state.peers.values_mut() {
            host_peer.needs_log = true;
        }
        for call in state.pending.values_mut().filter(|call| call.log_sent) {
            call.needs_log = true;
        }
        state.send_log_at = Some(0);
        self.send_log_to_all(&mut state, 0);
        Ok(())
    }

    /// Asserts the liveliness of the owner to the peers. One store.
    pub fn assert_liveliness(&self) {
        self.state.lock().log.assert_liveliness();
    }

    /// Wakes the peers soon, as new records do. They notice then that this process asserts
    /// its liveliness.
    pub fn wake_peers(&self, now: u64) {
        self.state.lock().schedule_wake(now);
    }

    /// Publishes these numbers to the peers, without waking them.
    pub fn publish_totals(&self, totals: &Totals) {
        self.state.lock().log.publish_totals(totals);
    }

    /// The numbers that a peer publishes; `None` for a peer whose log is not read.
    pub fn totals(&self, peer: PeerName) -> Option<Totals> {
        let state = self.state.lock();
        state
            .peers
            .get(&peer)
            .map(|host_peer| host_peer.log.totals())
    }

    /// Reports [`DiscoveryLogEvent::LivelinessAsserted`] for each peer that
    /// asserted its liveliness since the last call.
    pub fn poll_liveliness(&self, events: &mut dyn FnMut(DiscoveryLogEvent<'_>)) {
        for (peer, host_peer) in &mut self.state.lock().peers {
            let beat = host_peer.log.liveliness_count();
            if std::mem::replace(&mut host_peer.liveliness_count, beat) != beat {
                events(DiscoveryLogEvent::LivelinessAsserted { peer: *peer });
            }
        }
    }

    /// Makes the next poll report everything in a peer's log again, beginning with
    /// [`DiscoveryLogEvent::Reset`].
    pub fn replay(&self, peer: PeerName) {
        let mut state = self.state.lock();
        if let Some(host_peer) = state.peers.get_mut(&peer) {
            // A replay in progress already reports the whole log.
            host_peer.must_replay |= host_peer.caught_up_at.is_none();
            state.has_unread = true;
        }
    }

    /// Whether a peer's log has unreported records. Costs a short lock and one
    /// load.
    pub fn has_unread(&self, peer: PeerName) -> bool {
        let state = self.state.lock();
        let host_peer = state.peers.get(&peer);
        host_peer.is_some_and(|n| n.must_replay || n.log.end() != n.log.at())
    }

    /// Reports new records of one peer's log, without waiting for a wake-up. There
    /// are more if [`DiscoveryLog::has_unread`] still returns true.
    pub fn poll_peer(&self, peer: PeerName, events: &mut dyn FnMut(DiscoveryLogEvent<'_>)) {
        let mut state = self.state.lock();
        state.budget_bytes = BYTES_PER_POLL;
        self.read_or_replay(&mut state, peer, events);
    }

    /// Accepts peers, reads new records, wakes peers when due, and removes lost
    /// peers. Call it when [`DiscoveryLog::descriptor`] is readable and at the
    /// returned time.
    pub fn poll(&self, now: u64, events: &mut dyn FnMut(DiscoveryLogEvent<'_>)) -> Option<u64> {
        let mut state = self.state.lock();
        state.budget_bytes = BYTES_PER_POLL;
        if std::mem::take(&mut state.has_unread) {
            for peer in state.round_robin() {
                if state.budget_bytes == 0 {
                    state.has_unread = true;
                    break;
                }
                self.read_or_replay(&mut state, peer, events);
            }
        }
        for _ in 0..WAITS_PER_POLL {
            if !self.poll_sockets(&mut state, now, events) {
                break;
            }
        }
        if state.send_log_at.is_some_and(|at| at <= now) {
            self.send_log_to_all(&mut state, now);
        }
        state.wake_peers_if_due(now);
        self.expire_pending(&mut state, now)
    }

    /// Polls the sockets once. Returns false when they are quiet.
    fn poll_sockets(
        &self,
        state: &mut State,
        now: u64,
        events: &mut dyn FnMut(DiscoveryLogEvent<'_>),
    ) -> bool {
        let mut ready = Vec::with_capacity(EVENTS_PER_WAIT);
        let at_once = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let spare = rustix::buffer::spare_capacity(&mut ready);
        if epoll::wait(&self.epoll, spare, Some(&at_once)).is_err() || ready.is_empty() {
            return false;
        }
        for token in ready.iter().map(|event| event.data.u64()) {
            // The socket stays readable, but the exit of a process is reported
            // once.
            if state.budget_bytes == 0 && token & PROCESS_TOKEN == 0 {
                state.has_unread = true;
                continue;
            }
            if token == LISTENER_TOKEN {
                self.accept_peers(state, now);
            } else if let Some(peer) = state.tokens.get(&(token & !PROCESS_TOKEN)).copied() {
                // Another process may keep the peer's socket open.
                self.poll_peer_socket(state, peer, token & PROCESS_TOKEN != 0, events);
            } else if state.pending.contains_key(&token) {
                self.poll_pending(state, token, events);
            }
        }
        state.budget_bytes > 0
    }

    fn accept_peers(&self, state: &mut State, now: u64) {
        for _ in 0..EVENTS_PER_WAIT {
            let Some(incoming) = listener::accept(self.listener.as_fd()) else {
                return;
            };
            let Ok(socket) = incoming else { continue };
            if !state.has_room(&self.options) {
                packet::refuse(socket.as_fd(), DisconnectReason::TooManyConnections);
                continue;
            }
            let deadline = now.saturating_add(self.options.handshake_ns);
            self.add_pending(state, PendingPeer::incoming(socket, deadline), now);
        }
    }

    /// Sends our log on a new connection, and waits for the peer's.
    fn add_pending(&self, state: &mut State, mut call: PendingPeer, now: u64) -> bool {
        if !call.is_incoming && !self.try_send_log(state, &mut call, now) {
            return false;
        }
        state.token += 1;
        let data = EventData::new_u64(state.token);
        if epoll::add(&self.epoll, &call.socket, data, EventFlags::IN).is_err() {
            return false;
        }
        state.pending.insert(state.token, call);
        true
    }

    fn send_log(&self, state: &State, socket: BorrowedFd<'_>) -> Result<(), Errno> {
        let packet = listener::log_packet(self.name, &state.log);
        packet::send(socket, &packet, &[state.log.descriptor()])
    }

    /// Connects and sends our log, or schedules a retry. Returns false when that is
    /// impossible.
    fn try_send_log(&self, state: &State, call: &mut PendingPeer, now: u64) -> bool {
        call.retry_at = None;
        match call.connect(self.domain) {
            Ok(true) if call.log_sent => return true,
            Ok(true) => match self.send_log(state, call.socket.as_fd()) {
                Ok(()) => {
                    call.log_sent = true;
                    return true;
                }
                Err(error) if !is_transient(error) => return false,
                Err(_) => {}
            },
            Ok(false) => {}
            Err(_) => return false,
        }
        call.retry_at = Some(now.saturating_add(RETRY_NS));
        true
    }

    /// Sends our current log to all peers that have an older one or none.
    fn send_log_to_all(&self, state: &mut State, now: u64) {
        let packet = listener::log_packet(self.name, &state.log);
        let State {
            log,
            peers: host_peers,
            pending: calls,
            send_log_at: hand_at,
            ..
        } = state;
        let of_peers = host_peers
            .values_mut()
            .map(|n| (&n.socket, &mut n.needs_log));
        let of_calls = calls.values_mut().map(|c| (&c.socket, &mut c.needs_log));
        let mut later = false;
        for (socket, is_owed) in of_peers.chain(of_calls).filter(|(_, owed)| **owed) {
            let sent = packet::send(socket.as_fd(), &packet, &[log.descriptor()]);
            // A peer whose socket is full is not reading. If it is gone, the next
            // write shows it.
            *is_owed = sent.is_err_and(is_transient);
            later |= *is_owed;
        }
        *hand_at = later.then(|| now.saturating_add(RETRY_NS));
    }

    /// Reads a pending peer's log, or the reason of its refusal.
    fn poll_pending(
        &self,
        state: &mut State,
        token: u64,
        events: &mut dyn FnMut(DiscoveryLogEvent<'_>),
    ) {
        let Some(call) = state.pending.get(&token) else {
            return;
        };
        if call.is_connecting() {
            return;
        }
        let (peer, log) = match packet::receive(call.socket.as_fd()) {
            Incoming::Nothing => return,
            Incoming::Packet(Packet::DiscoveryLog { name, bytes }, descriptors)
                if call.peer.is_none_or(|peer| peer == name) && name != self.name =>
            {
                match LogReader::map(bytes, &descriptors) {
                    Ok(log) => (name, log),
                    Err(reason) => return self.drop_pending(state, token, Some(reason)),
                }
            }
            Incoming::Packet(Packet::OtherVersion(theirs), _) => {
                let reason = DisconnectReason::OtherVersion { theirs };
                return self.drop_pending(state, token, Some(reason));
            }
            _ => return self.drop_pending(state, token, None),
        };
        let is_incoming = call.is_incoming;
        if state.peers.contains_key(&peer) {
            return self.drop_pending(state, token, Some(DisconnectReason::AlreadyConnected));
        }
        // Both sides connected: the connection of the smaller name stays.
        let other = state
            .pending
            .iter()
            .find(|(other, call)| **other != token && call.peer == Some(peer) && !call.is_incoming);
        if let Some((other, _)) = other.filter(|_| is_incoming) {
            let other = *other;
            if self.name < peer {
                return self.drop_pending(state, token, Some(DisconnectReason::AlreadyConnected));
            }
            self.drop_pending(state, other, None);
        }
        let mut is_owed = false;
        if is_incoming {
            let shown = match state.pending.get(&token) {
                Some(call) => self.send_log(state, call.socket.as_fd()),
                None => return,
            };
            is_owed = shown.is_err_and(is_transient);
            if shown.is_err() && !is_owed {
                return self.drop_pending(state, token, None);
            }
        }
        let Some(call) = state.pending.remove(&token) else {
            return;
        };
        is_owed |= call.needs_log;
        if is_owed {
            state.send_log_at.get_or_insert(0);
        }
        state.tokens.insert(token, peer);
        let is_watched = state.peers.len() < WATCHED_PROCESSES_MAX;
        let life = is_watched
            .then(|| ProcessWatch::of_peer(call.socket.as_fd()))
            .flatten();
        if let Some(life) = &life {
            let once = EventFlags::IN | EventFlags::ONESHOT;
            let data = EventData::new_u64(token | PROCESS_TOKEN);
            let _ = epoll::add(&self.epoll, life, data, once);
        }
        let host_peer = SameHostPeer {
            socket: call.socket,
            _process: life,
            token,
            liveliness_count: log.liveliness_count(),
            caught_up_at: None,
            must_replay: false,
            needs_log: is_owed,
            log,
        };
        state.peers.insert(peer, host_peer);
        self.replay_from_start(state, peer, events);
    }

    fn drop_pending(&self, state: &mut State, token: u64, reason: Option<DisconnectReason>) {
        if let Some(call) = state.pending.remove(&token) {
            if let Some(reason) = reason {
                packet::refuse(call.socket.as_fd(), reason);
            }
            let _ = epoll::delete(&self.epoll, &call.socket);
        }
    }

    /// Reads the peer's socket; to the end if its process has exited.
    fn poll_peer_socket(
        &self,
        state: &mut State,
        peer: PeerName,
        has_exited: bool,
        events: &mut dyn FnMut(DiscoveryLogEvent<'_>),
    ) {
        // One packet is the usual case ("more"), and the limit is the number that
        // may wait. A process that has exited sends no more.
        let looks = if has_exited {
            usize::MAX
        } else {
            EVENTS_PER_WAIT
        };
        for _ in 0..looks {
            let Some(host_peer) = state.peers.get_mut(&peer) else {
                return;
            };
            match packet::receive(host_peer.socket.as_fd()) {
                Incoming::Nothing => {
                    if has_exited {
                        return self.remove_peer(
                            state,
                            peer,
                            DisconnectReason::ProcessEnded,
                            events,
                        );
                    }
                    break;
                }
                Incoming::Packet(Packet::MoreRecords, _) if has_exited => {}
                // The next poll shows what else waits.
                Incoming::Packet(Packet::MoreRecords, _) => break,
                Incoming::Packet(Packet::DiscoveryLog { name, bytes }, descriptors)
                    if name == peer =>
                {
                    match LogReader::map(bytes, &descriptors) {
                        Ok(log) => {
                            host_peer.log = log;
                            self.replay_from_start(state, peer, events);
                        }
                        Err(reason) => return self.remove_peer(state, peer, reason, events),
                    }
                }
                Incoming::Packet(Packet::Bye, _) => {
                    return self.remove_peer(state, peer, DisconnectReason::ClosedByPeer, events);
                }
                Incoming::Closed => {
                    return self.remove_peer(state, peer, DisconnectReason::ProcessEnded, events);
                }
                Incoming::Packet(..) | Incoming::Invalid => {
                    let reason = DisconnectReason::ProtocolViolation("an unexpected packet");
                    return self.remove_peer(state, peer, reason, events);
                }
            }
        }
        self.read_records(state, peer, events);
    }

    fn read_or_replay(
        &self,
        state: &mut State,
        peer: PeerName,
        events: &mut dyn FnMut(DiscoveryLogEvent<'_>),
    ) {
        let host_peer = state.peers.get_mut(&peer);
        if host_peer.is_some_and(|n| std::mem::take(&mut n.must_replay)) {
            self.replay_from_start(state, peer, events)
        } else {
            self.read_records(state, peer, events)
        }
    }

    fn replay_from_start(
        &self,
        state: &mut State,
        peer: PeerName,
        events: &mut dyn FnMut(DiscoveryLogEvent<'_>),
    ) {
        if let Some(host_peer) = state.peers.get_mut(&peer) {
            // Together with the event, or records reported in between would be
            // missing from the replay.
            host_peer.log.rewind();
            events(DiscoveryLogEvent::Reset { peer });
            host_peer.caught_up_at = Some(host_peer.log.end());
            self.read_records(state, peer, events);
        }
    }

    /// Reports new records of a peer's log.
    fn read_records(
        &self,
        state: &mut State,
        peer: PeerName,
        events: &mut dyn FnMut(DiscoveryLogEvent<'_>),
    ) {
        let State {
            peers: host_peers,
            has_unread: more,
            budget_bytes: left,
            last_read: last,
            record,
            ..
        } = state;
        let Some(host_peer) = host_peers.get_mut(&peer) else {
            return;
        };
        *last = peer;
        loop {
            if host_peer
                .caught_up_at
                .is_some_and(|end| host_peer.log.at() >= end)
            {
                host_peer.caught_up_at = None;
                events(DiscoveryLogEvent::CaughtUp { peer });
            }
            if *left == 0 {
                *more = true;
                return;
            }
            match host_peer.log.next(record) {
                Ok(Some(record)) => {
                    *left = left.saturating_sub(record.len().max(RECORD_BYTES_MIN));
                    events(DiscoveryLogEvent::Record { peer, record });
                }
                Ok(None) => return,
                Err(reason) => return self.remove_peer(state, peer, reason, events),
            }
        }
    }

    fn remove_peer(
        &self,
        state: &mut State,
        peer: PeerName,
        reason: DisconnectReason,
        events: &mut dyn FnMut(DiscoveryLogEvent<'_>),
    ) {
        let Some(mut host_peer) = state.peers.remove(&peer) else {
            return;
        };
        // Records appended before the peer went.
        if matches!(
            reason,
            DisconnectReason::ClosedByPeer | DisconnectReason::ProcessEnded
        ) {
            for _ in 0..LAST_RECORDS_MAX {
                let Ok(Some(record)) = host_peer.log.next(&mut state.record) else {
                    break;
                };
                events(DiscoveryLogEvent::Record { peer, record });
            }
        }
        state.tokens.remove(&host_peer.token);
        let _ = epoll::delete(&self.epoll, &host_peer.socket);
        events(DiscoveryLogEvent::PeerLost { peer, reason });
    }

    /// Retries connects and drops overdue ones. Returns the next deadline.
    fn expire_pending(&self, state: &mut State, now: u64) -> Option<u64> {
        let tokens: Vec<u64> = state.pending.keys().copied().collect();
        for token in tokens {
            let Some(call) = state.pending.get_mut(&token) else {
                continue;
            };
            if call.deadline <= now {
                self.drop_pending(state, token, Some(DisconnectReason::TimedOut));
            } else if call.retry_at.is_some_and(|at| at <= now) {
                let Some(mut call) = state.pending.remove(&token) else {
                    continue;
                };
                let goes_on = self.try_send_log(state, &mut call, now);
                state.pending.insert(token, call);
                if !goes_on {
                    self.drop_pending(state, token, None);
                }
            }
        }
        let calls = state.pending.values();
        let calls = calls.map(|call| {
            call.retry_at
                .map_or(call.deadline, |at| at.min(call.deadline))
        });
        let soon = state.has_unread.then_some(now);
        calls
            .chain(state.wake_at)
            .chain(state.send_log_at)
            .chain(soon)
            .min()
    }
}

impl State {
    /// The peers, beginning after the one that was read last, so that a peer that
    /// writes endlessly does not starve the others.
    fn round_robin(&self) -> Vec<PeerName> {
        let after = self
            .peers
            .range((Bound::Excluded(self.last_read), Bound::Unbounded));
        let before = self.peers.range(..=self.last_read);
        after.chain(before).map(|(peer, _)| *peer).collect()
    }

    fn has_peer(&self, peer: &PeerName) -> bool {
        self.peers.contains_key(peer) || self.pending.values().any(|c| c.peer == Some(*peer))
    }

    fn has_room(&self, options: &DiscoveryLogOptions) -> bool {
        self.peers.len() + self.pending.len() < options.peers_max
    }

    /// Wakes the peers, now or when the wake interval is over.
    fn schedule_wake(&mut self, now: u64) {
        let pause = WAKE_INTERVAL_NS.max(WAKE_INTERVAL_PER_PEER_NS * self.peers.len() as u64);
        let at = self.woken_at.saturating_add(pause);
        self.wake_at = Some(at);
        self.wake_peers_if_due(now);
    }

    /// Wakes the peers if that is due.
    fn wake_peers_if_due(&mut self, now: u64) {
        if self.wake_at.is_none_or(|at| at > now) {
            return;
        }
        self.wake_at = None;
        self.woken_at = now;
        // A pending peer that has our log may have read it already.
        let connected = self.pending.values().filter(|call| call.log_sent);
        let sockets = connected.map(|call| &call.socket);
        for socket in sockets.chain(self.peers.values().map(|n| &n.socket)) {
            // A full socket has woken its owner already.
            let _ = packet::send(socket.as_fd(), &Packet::MoreRecords, &[]);
        }
    }
}

/// Whether sending may succeed soon: the kernel limits a user's descriptors in
/// flight (`unix(7)`, `ETOOMANYREFS`).
fn is_transient(error: Errno) -> bool {
    error == Errno::TOOMANYREFS
}

impl Drop for DiscoveryLog {
    fn drop(&mut self) {
        for host_peer in self.state.lock().peers.values() {
            let _ = packet::send(host_peer.socket.as_fd(), &Packet::Bye, &[]);
        }
    }
}
