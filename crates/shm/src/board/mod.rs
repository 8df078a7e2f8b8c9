//! Boards: what each process of a host wants all others to know, written once
//! and read by everybody in place.
//!
//! A [`Board`] is memory that its owner appends records to and that neighbours
//! map read-only. They are found without a packet on any network: the kernel
//! lists who listens in the abstract namespace of Unix sockets, so there is no registry that could be stale. Who opens
//! a board calls everybody who has one; both hand over their memory, and the
//! connection stays: a byte on it says that there is more to read, its end that
//! the process is gone.
//!
//! ```text
//! own board ── mapped read-only ──► n neighbours     one memory per process,
//!    ▲ post        "more"  ───────► n sockets        one socket per pair
//! ```
//! Time and memory grow with the number of processes, not with its square times
//! what they tell: a record is in memory once. The rules of the crate hold:
//! nothing has two writers, nothing read is trusted, nobody waits.
//!
//! When a board is full, everything that still holds is posted anew on fresh
//! memory ([`Board::post_all`]), which neighbours are handed.

mod door;
mod log;
mod names;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use parking_lot::Mutex;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;

use crate::error::{Name, Reason, ShmError};
use crate::life::Life;
use crate::memory::named;
use crate::packet::{self, Incoming, Packet};
use door::Call;
use log::{OwnLog, TheirLog};

pub use log::{BoardFull, Totals};

/// epoll's name for the listener.
const LISTENER: u64 = 0;
/// Beside a neighbour's number: that of its process.
const OF_LIFE: u64 = 1 << 63;
/// Events taken per look, and looks per turn.
const PER_LOOK: usize = 64;
const LOOKS_PER_TURN: usize = 32;
/// Bytes of records told per turn, of all neighbours together, over by one record
/// at most: what is made of them is passed on before more is read, so that
/// meeting many takes no more memory than meeting one. The rest follows with the
/// next turn.
const BYTES_PER_TURN: usize = 16 << 10;
/// What a record counts for at least.
const RECORD_BYTES_MIN: usize = 64;
/// Records told of a neighbour that is gone.
const LAST_RECORDS_MAX: usize = 16_384;
/// Pause between two wakes of the neighbours: at least, and for each of them, so
/// that what a host spends on news does not grow with the square of its
/// processes.
const GATHER_NS: u64 = 1_000_000;
const GATHER_EACH_NS: u64 = 50_000;
/// Neighbours whose process is watched beside their socket. Each costs one more
/// descriptor, of which a process has 1024 unless it asks for more; the death of
/// others whose socket somebody keeps open shows by their lease.
const LIVES_MAX: usize = 128;
/// Pause before a call that found the other's door crowded is repeated.
const RETRY_NS: u64 = 5_000_000;

/// Limits of a board.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BoardOptions {
    /// Neighbours at a time; 512. Others are not heard of here.
    pub neighbours_max: usize,
    /// Size of the board, bytes, 64 KiB to 64 MiB; 16 MiB. Only what is written
    /// takes memory. It has to hold twice of what is told at a time.
    pub bytes: usize,
    /// How long a neighbour may take to show its board, nanoseconds; 30 s. It is
    /// of this user, and may wait for a processor that long where some hundred
    /// processes start at once.
    pub greeting_ns: u64,
}

impl Default for BoardOptions {
    fn default() -> Self {
        Self {
            neighbours_max: 512,
            bytes: 16 << 20,
            greeting_ns: 30_000_000_000,
        }
    }
}

/// News of neighbours, from [`Board::turn`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BoardEvent<'a> {
    /// There is a neighbour, whose board is read from now on; or it has a
    /// fresh one. What was posted before holds no longer.
    Anew {
        /// Who.
        peer: Name,
    },
    /// A record of its board, each once and in order.
    Posted {
        /// Who.
        peer: Name,
        /// The record.
        record: &'a [u8],
    },
    /// All that stood on the board when [`BoardEvent::Anew`] was told has been
    /// told.
    Told {
        /// Who.
        peer: Name,
    },
    /// Its owner has done something since the last [`Board::look_at_beats`].
    Beat {
        /// Who.
        peer: Name,
    },
    /// It is gone: closed, ended or broken.
    Gone {
        /// Who.
        peer: Name,
        /// Why.
        reason: Reason,
    },
}

/// One process's board and those it reads. Methods take `&self` and may be
/// called by any thread; events are told under the board's lock, so they must
/// not call it back.
#[derive(Debug)]
pub struct Board {
    name: Name,
    domain: u32,
    options: BoardOptions,
    epoll: OwnedFd,
    listener: OwnedFd,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    log: OwnLog,
    calls: BTreeMap<u64, Call>,
    neighbours: BTreeMap<Name, Neighbour>,
    /// Whose socket it is.
    tokens: BTreeMap<u64, Name>,
    token: u64,
    /// When neighbours are woken, and when they were.
    ring_at: Option<u64>,
    rang_at: u64,
    /// Some neighbour's board has more than one turn tells.
    more: bool,
    /// How many bytes this turn may still tell, and whose were last.
    left: usize,
    last: Name,
    /// When to try again to hand over our board.
    hand_at: Option<u64>,
    /// The record that is read.
    record: Vec<u8>,
}

#[derive(Debug)]
struct Neighbour {
    socket: OwnedFd,
    /// Its process, for the first [`LIVES_MAX`].
    _life: Option<Life>,
    token: u64,
    log: TheirLog,
    /// Up to where [`BoardEvent::Told`] is due, until it was told.
    told_at: Option<usize>,
    /// Its board is to be told of from the start.
    again: bool,
    /// It has yet to be handed our board as it is now.
    is_owed: bool,
    beat: u64,
}

impl Board {
    /// Opens a board of `domain` called `name`. Nobody is called before
    /// [`Board::greet`], but who comes later finds it at once.
    ///
    /// # Errors
    /// [`ShmError::Option`] for a size out of range; [`ShmError::Open`] when the
    /// system refuses memory, a descriptor or the name.
    pub fn open(domain: u32, name: Name, options: BoardOptions) -> Result<Self, ShmError> {
        if !(64 << 10..=64 << 20).contains(&options.bytes) {
            return Err(ShmError::Option {
                name: "board bytes",
                value: options.bytes,
                allowed: "from 64 KiB to 64 MiB",
            });
        }
        let open = |action: &'static str| move |e| ShmError::Open(named(action, e));
        let log = OwnLog::create(options.bytes).map_err(ShmError::Open)?;
        let listener = door::listen(domain, &name).map_err(open("listen for neighbours"))?;
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(open("create an epoll set"))?;
        let data = EventData::new_u64(LISTENER);
        epoll::add(&epoll, &listener, data, EventFlags::IN)
            .map_err(open("watch for neighbours"))?;
        Ok(Self {
            name,
            domain,
            options,
            epoll,
            listener,
            state: Mutex::new(State {
                log,
                calls: BTreeMap::new(),
                neighbours: BTreeMap::new(),
                tokens: BTreeMap::new(),
                token: LISTENER,
                ring_at: None,
                rang_at: 0,
                more: false,
                left: 0,
                last: name,
                hand_at: None,
                record: Vec::new(),
            }),
        })
    }

    /// Readable when [`Board::turn`] has something to do.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    /// How many neighbours' boards are read.
    pub fn neighbours(&self) -> usize {
        self.state.lock().neighbours.len()
    }

    /// Calls everybody of this host and domain who has a board. To be called
    /// once; who comes later calls us. Returns how many were called. Where the
    /// system does not list them (no `/proc`), nobody is: they are found only
    /// when they come.
    pub fn greet(&self, now: u64) -> usize {
        let names = names::listed(self.domain);
        let mut state = self.state.lock();
        // What follows at once is told together.
        state.rang_at = now;
        let mut called = 0;
        for peer in names {
            if peer == self.name || state.knows(&peer) || !state.has_room(&self.options) {
                continue;
            }
            let deadline = now.saturating_add(self.options.greeting_ns);
            if let Ok(call) = Call::outgoing(self.domain, peer, deadline) {
                called += usize::from(self.begin(&mut state, call, now));
            }
        }
        called
    }

    /// Whether somebody was called whose board has not been seen yet.
    pub fn is_calling(&self, peer: Name) -> bool {
        let state = self.state.lock();
        state.calls.values().any(|call| call.peer == Some(peer))
    }

    /// Appends records and wakes neighbours; those that were woken less than a
    /// millisecond ago, with many neighbours some more, when that is over, by
    /// [`Board::turn`].
    ///
    /// # Errors
    /// [`BoardFull`]: not all fit; none was posted. Then [`Board::post_all`].
    pub fn post<'r>(
        &self,
        now: u64,
        records: impl Iterator<Item = &'r [u8]> + Clone,
    ) -> Result<(), BoardFull> {
        let mut state = self.state.lock();
        state.log.append(records)?;
        state.ring_soon(now);
        Ok(())
    }

    /// Takes fresh memory for everything that holds now, and hands it to the
    /// neighbours.
    ///
    /// # Errors
    /// [`BoardFull`]: it is more than a board holds, or there was no memory;
    /// what was posted before stands.
    pub fn post_all<'r>(
        &self,
        records: impl Iterator<Item = &'r [u8]> + Clone,
    ) -> Result<(), BoardFull> {
        let mut state = self.state.lock();
        let mut fresh = OwnLog::create(self.options.bytes).map_err(|_| BoardFull)?;
        fresh.append(records)?;
        fresh.beat_from(&state.log);
        state.log = fresh;
        for neighbour in state.neighbours.values_mut() {
            neighbour.is_owed = true;
        }
        for call in state.calls.values_mut().filter(|call| call.is_shown) {
            call.is_owed = true;
        }
        state.hand_at = Some(0);
        self.hand_over(&mut state, 0);
        Ok(())
    }

    /// Shows neighbours that the owner lives. One store.
    pub fn beat(&self) {
        self.state.lock().log.beat();
    }

    /// Shows neighbours these numbers from now on, without waking them.
    pub fn tell_totals(&self, totals: &Totals) {
        self.state.lock().log.tell_totals(totals);
    }

    /// The numbers that a neighbour shows; `None` for one whose board is not read.
    pub fn totals(&self, peer: Name) -> Option<Totals> {
        let state = self.state.lock();
        state
            .neighbours
            .get(&peer)
            .map(|neighbour| neighbour.log.totals())
    }

    /// Tells [`BoardEvent::Beat`] of those whose owner has beaten since the
    /// last call.
    pub fn look_at_beats(&self, events: &mut dyn FnMut(BoardEvent<'_>)) {
        for (peer, neighbour) in &mut self.state.lock().neighbours {
            let beat = neighbour.log.beat();
            if std::mem::replace(&mut neighbour.beat, beat) != beat {
                events(BoardEvent::Beat { peer: *peer });
            }
        }
    }

    /// Has the next turn tell of everything on a neighbour's board again,
    /// beginning with [`BoardEvent::Anew`].
    pub fn read_again(&self, peer: Name) {
        let mut state = self.state.lock();
        if let Some(neighbour) = state.neighbours.get_mut(&peer) {
            // Who is being told of is told of whole.
            neighbour.again |= neighbour.told_at.is_none();
            state.more = true;
        }
    }

    /// Whether a neighbour's board has more than was told. Costs a lock that
    /// nobody holds for long and a look at one word.
    pub fn has_news(&self, peer: Name) -> bool {
        let state = self.state.lock();
        let neighbour = state.neighbours.get(&peer);
        neighbour.is_some_and(|n| n.again || n.log.end() != n.log.at())
    }

    /// Tells what is new on one neighbour's board, woken or not; if
    /// [`Board::has_news`] still says so, there is more.
    pub fn catch_up(&self, peer: Name, events: &mut dyn FnMut(BoardEvent<'_>)) {
        let mut state = self.state.lock();
        state.left = BYTES_PER_TURN;
        self.read_on(&mut state, peer, events);
    }

    /// Accepts, reads what is new, wakes neighbours when it is due, and notes
    /// who is gone. To be called when [`Board::descriptor`] is readable and at
    /// the time it returned.
    pub fn turn(&self, now: u64, events: &mut dyn FnMut(BoardEvent<'_>)) -> Option<u64> {
        let mut state = self.state.lock();
        state.left = BYTES_PER_TURN;
        if std::mem::take(&mut state.more) {
            for peer in state.in_turns() {
                if state.left == 0 {
                    state.more = true;
                    break;
                }
                self.read_on(&mut state, peer, events);
            }
        }
        for _ in 0..LOOKS_PER_TURN {
            if !self.look(&mut state, now, events) {
                break;
            }
        }
        if state.hand_at.is_some_and(|at| at <= now) {
            self.hand_over(&mut state, now);
        }
        state.ring(now);
        self.look_at_time(&mut state, now)
    }

    /// One look at the sockets. False when they are quiet.
    fn look(&self, state: &mut State, now: u64, events: &mut dyn FnMut(BoardEvent<'_>)) -> bool {
        let mut ready = Vec::with_capacity(PER_LOOK);
        let at_once = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let spare = rustix::buffer::spare_capacity(&mut ready);
        if epoll::wait(&self.epoll, spare, Some(&at_once)).is_err() || ready.is_empty() {
            return false;
        }
        for token in ready.iter().map(|event| event.data.u64()) {
            // Its socket stays readable; of the end of its process is told once.
            if state.left == 0 && token & OF_LIFE == 0 {
                state.more = true;
                continue;
            }
            if token == LISTENER {
                self.look_at_door(state, now);
            } else if let Some(peer) = state.tokens.get(&(token & !OF_LIFE)).copied() {
                // Another process may keep its socket open.
                self.look_at_neighbour(state, (peer, token & OF_LIFE != 0), events);
            } else if state.calls.contains_key(&token) {
                self.look_at_call(state, token, events);
            }
        }
        state.left > 0
    }

    fn look_at_door(&self, state: &mut State, now: u64) {
        for _ in 0..PER_LOOK {
            let Some(knock) = door::accept(self.listener.as_fd()) else {
                return;
            };
            let Ok(socket) = knock else { continue };
            if !state.has_room(&self.options) {
                packet::refuse(socket.as_fd(), Reason::TooManyLinks);
                continue;
            }
            let deadline = now.saturating_add(self.options.greeting_ns);
            self.begin(state, Call::incoming(socket, deadline), now);
        }
    }

    /// Shows our board on a new connection, and waits for theirs.
    fn begin(&self, state: &mut State, mut call: Call, now: u64) -> bool {
        if !call.is_incoming && !self.try_show(state, &mut call, now) {
            return false;
        }
        state.token += 1;
        let data = EventData::new_u64(state.token);
        if epoll::add(&self.epoll, &call.socket, data, EventFlags::IN).is_err() {
            return false;
        }
        state.calls.insert(state.token, call);
        true
    }

    fn show(&self, state: &State, socket: BorrowedFd<'_>) -> Result<(), Errno> {
        let packet = door::board_packet(self.name, &state.log);
        packet::send(socket, &packet, &[state.log.descriptor()])
    }

    /// Connects and shows our board, or leaves that for later; false when it
    /// cannot be.
    fn try_show(&self, state: &State, call: &mut Call, now: u64) -> bool {
        call.retry_at = None;
        match call.connect(self.domain) {
            Ok(true) if call.is_shown => return true,
            Ok(true) => match self.show(state, call.socket.as_fd()) {
                Ok(()) => {
                    call.is_shown = true;
                    return true;
                }
                Err(error) if !is_passing(error) => return false,
                Err(_) => {}
            },
            Ok(false) => {}
            Err(_) => return false,
        }
        call.retry_at = Some(now.saturating_add(RETRY_NS));
        true
    }

    /// Hands our board as it is now to those who have another or none.
    fn hand_over(&self, state: &mut State, now: u64) {
        let packet = door::board_packet(self.name, &state.log);
        let State {
            log,
            neighbours,
            calls,
            hand_at,
            ..
        } = state;
        let of_neighbours = neighbours.values_mut().map(|n| (&n.socket, &mut n.is_owed));
        let of_calls = calls.values_mut().map(|c| (&c.socket, &mut c.is_owed));
        let mut later = false;
        for (socket, is_owed) in of_neighbours.chain(of_calls).filter(|(_, owed)| **owed) {
            let sent = packet::send(socket.as_fd(), &packet, &[log.descriptor()]);
            // One whose socket takes no more is not reading; its end shows when
            // it is written to again.
            *is_owed = sent.is_err_and(is_passing);
            later |= *is_owed;
        }
        *hand_at = later.then(|| now.saturating_add(RETRY_NS));
    }

    /// Somebody shows a board, or why not.
    fn look_at_call(&self, state: &mut State, token: u64, events: &mut dyn FnMut(BoardEvent<'_>)) {
        let Some(call) = state.calls.get(&token) else {
            return;
        };
        if call.is_connecting() {
            return;
        }
        let (peer, log) = match packet::receive(call.socket.as_fd()) {
            Incoming::Nothing => return,
            Incoming::Packet(Packet::Board { name, bytes }, descriptors)
                if call.peer.is_none_or(|peer| peer == name) && name != self.name =>
            {
                match TheirLog::map(bytes, &descriptors) {
                    Ok(log) => (name, log),
                    Err(reason) => return self.hang_up(state, token, Some(reason)),
                }
            }
            Incoming::Packet(Packet::Foreign(theirs), _) => {
                let reason = Reason::OtherVersion { theirs };
                return self.hang_up(state, token, Some(reason));
            }
            _ => return self.hang_up(state, token, None),
        };
        let is_incoming = call.is_incoming;
        if state.neighbours.contains_key(&peer) {
            return self.hang_up(state, token, Some(Reason::AlreadyLinked));
        }
        // Both called: the call of the smaller name holds.
        let other = state
            .calls
            .iter()
            .find(|(other, call)| **other != token && call.peer == Some(peer) && !call.is_incoming);
        if let Some((other, _)) = other.filter(|_| is_incoming) {
            let other = *other;
            if self.name < peer {
                return self.hang_up(state, token, Some(Reason::AlreadyLinked));
            }
            self.hang_up(state, other, None);
        }
        let mut is_owed = false;
        if is_incoming {
            let shown = match state.calls.get(&token) {
                Some(call) => self.show(state, call.socket.as_fd()),
                None => return,
            };
            is_owed = shown.is_err_and(is_passing);
            if shown.is_err() && !is_owed {
                return self.hang_up(state, token, None);
            }
        }
        let Some(call) = state.calls.remove(&token) else {
            return;
        };
        is_owed |= call.is_owed;
        if is_owed {
            state.hand_at.get_or_insert(0);
        }
        state.tokens.insert(token, peer);
        let is_watched = state.neighbours.len() < LIVES_MAX;
        let life = is_watched.then(|| Life::of(call.socket.as_fd())).flatten();
        if let Some(life) = &life {
            let once = EventFlags::IN | EventFlags::ONESHOT;
            let data = EventData::new_u64(token | OF_LIFE);
            let _ = epoll::add(&self.epoll, life, data, once);
        }
        let neighbour = Neighbour {
            socket: call.socket,
            _life: life,
            token,
            beat: log.beat(),
            told_at: None,
            again: false,
            is_owed,
            log,
        };
        state.neighbours.insert(peer, neighbour);
        self.read_anew(state, peer, events);
    }

    fn hang_up(&self, state: &mut State, token: u64, reason: Option<Reason>) {
        if let Some(call) = state.calls.remove(&token) {
            if let Some(reason) = reason {
                packet::refuse(call.socket.as_fd(), reason);
            }
            let _ = epoll::delete(&self.epoll, &call.socket);
        }
    }

    /// Reads its socket; if its process `is_over`, to the end.
    fn look_at_neighbour(
        &self,
        state: &mut State,
        (peer, is_over): (Name, bool),
        events: &mut dyn FnMut(BoardEvent<'_>),
    ) {
        // As many packets as wait at most: "more" is the usual one. Who is over
        // sends no more.
        let looks = if is_over { usize::MAX } else { PER_LOOK };
        for _ in 0..looks {
            let Some(neighbour) = state.neighbours.get_mut(&peer) else {
                return;
            };
            match packet::receive(neighbour.socket.as_fd()) {
                Incoming::Nothing => {
                    if is_over {
                        return self.lose(state, peer, Reason::Ended, events);
                    }
                    break;
                }
                Incoming::Packet(Packet::More, _) if is_over => {}
                // What else waits, the next look shows.
                Incoming::Packet(Packet::More, _) => break,
                Incoming::Packet(Packet::Board { name, bytes }, descriptors) if name == peer => {
                    match TheirLog::map(bytes, &descriptors) {
                        Ok(log) => {
                            neighbour.log = log;
                            self.read_anew(state, peer, events);
                        }
                        Err(reason) => return self.lose(state, peer, reason, events),
                    }
                }
                Incoming::Packet(Packet::Bye, _) => {
                    return self.lose(state, peer, Reason::Closed, events);
                }
                Incoming::End => return self.lose(state, peer, Reason::Ended, events),
                Incoming::Packet(..) | Incoming::Nonsense => {
                    let reason = Reason::Nonsense("an unexpected packet");
                    return self.lose(state, peer, reason, events);
                }
            }
        }
        self.read(state, peer, events);
    }

    fn read_on(&self, state: &mut State, peer: Name, events: &mut dyn FnMut(BoardEvent<'_>)) {
        let neighbour = state.neighbours.get_mut(&peer);
        match neighbour.is_some_and(|n| std::mem::take(&mut n.again)) {
            true => self.read_anew(state, peer, events),
            false => self.read(state, peer, events),
        }
    }

    fn read_anew(&self, state: &mut State, peer: Name, events: &mut dyn FnMut(BoardEvent<'_>)) {
        if let Some(neighbour) = state.neighbours.get_mut(&peer) {
            // With the event, or what is told of in between is not in its list.
            neighbour.log.rewind();
            events(BoardEvent::Anew { peer });
            neighbour.told_at = Some(neighbour.log.end());
            self.read(state, peer, events);
        }
    }

    /// Tells what is new on a neighbour's board.
    fn read(&self, state: &mut State, peer: Name, events: &mut dyn FnMut(BoardEvent<'_>)) {
        let State {
            neighbours,
            more,
            left,
            last,
            record,
            ..
        } = state;
        let Some(neighbour) = neighbours.get_mut(&peer) else {
            return;
        };
        *last = peer;
        loop {
            if neighbour
                .told_at
                .is_some_and(|end| neighbour.log.at() >= end)
            {
                neighbour.told_at = None;
                events(BoardEvent::Told { peer });
            }
            if *left == 0 {
                *more = true;
                return;
            }
            match neighbour.log.next(record) {
                Ok(Some(record)) => {
                    *left = left.saturating_sub(record.len().max(RECORD_BYTES_MIN));
                    events(BoardEvent::Posted { peer, record });
                }
                Ok(None) => return,
                Err(reason) => return self.lose(state, peer, reason, events),
            }
        }
    }

    fn lose(
        &self,
        state: &mut State,
        peer: Name,
        reason: Reason,
        events: &mut dyn FnMut(BoardEvent<'_>),
    ) {
        let Some(mut neighbour) = state.neighbours.remove(&peer) else {
            return;
        };
        // What it posted before it went.
        if matches!(reason, Reason::Closed | Reason::Ended) {
            for _ in 0..LAST_RECORDS_MAX {
                let Ok(Some(record)) = neighbour.log.next(&mut state.record) else {
                    break;
                };
                events(BoardEvent::Posted { peer, record });
            }
        }
        state.tokens.remove(&neighbour.token);
        let _ = epoll::delete(&self.epoll, &neighbour.socket);
        events(BoardEvent::Gone { peer, reason });
    }

    /// Repeats calls, gives up what is overdue; when to look again.
    fn look_at_time(&self, state: &mut State, now: u64) -> Option<u64> {
        let tokens: Vec<u64> = state.calls.keys().copied().collect();
        for token in tokens {
            let Some(call) = state.calls.get_mut(&token) else {
                continue;
            };
            if call.deadline <= now {
                self.hang_up(state, token, Some(Reason::TimedOut));
            } else if call.retry_at.is_some_and(|at| at <= now) {
                let Some(mut call) = state.calls.remove(&token) else {
                    continue;
                };
                let goes_on = self.try_show(state, &mut call, now);
                state.calls.insert(token, call);
                if !goes_on {
                    self.hang_up(state, token, None);
                }
            }
        }
        let calls = state.calls.values();
        let calls = calls.map(|call| {
            call.retry_at
                .map_or(call.deadline, |at| at.min(call.deadline))
        });
        let soon = state.more.then_some(now);
        calls
            .chain(state.ring_at)
            .chain(state.hand_at)
            .chain(soon)
            .min()
    }
}

impl State {
    /// The neighbours, beginning with those who were not told of last, so that
    /// nobody who writes without end keeps us from the others.
    fn in_turns(&self) -> Vec<Name> {
        let after = self
            .neighbours
            .range((Bound::Excluded(self.last), Bound::Unbounded));
        let before = self.neighbours.range(..=self.last);
        after.chain(before).map(|(peer, _)| *peer).collect()
    }

    fn knows(&self, peer: &Name) -> bool {
        self.neighbours.contains_key(peer) || self.calls.values().any(|c| c.peer == Some(*peer))
    }

    fn has_room(&self, options: &BoardOptions) -> bool {
        self.neighbours.len() + self.calls.len() < options.neighbours_max
    }

    /// Wakes neighbours, unless they have just been: then a little later.
    fn ring_soon(&mut self, now: u64) {
        let pause = GATHER_NS.max(GATHER_EACH_NS * self.neighbours.len() as u64);
        let at = self.rang_at.saturating_add(pause);
        self.ring_at = Some(at);
        self.ring(now);
    }

    /// Wakes neighbours if that is due.
    fn ring(&mut self, now: u64) {
        if self.ring_at.is_none_or(|at| at > now) {
            return;
        }
        self.ring_at = None;
        self.rang_at = now;
        // Who was shown our board and has not answered yet may have read it.
        let called = self.calls.values().filter(|call| call.is_shown);
        let sockets = called.map(|call| &call.socket);
        for socket in sockets.chain(self.neighbours.values().map(|n| &n.socket)) {
            // A full socket has woken its owner already.
            let _ = packet::send(socket.as_fd(), &Packet::More, &[]);
        }
    }
}

/// Whether what could not be sent now can be soon: a user's descriptors on
/// their way to others are limited by the kernel (`unix(7)`, `ETOOMANYREFS`).
fn is_passing(error: Errno) -> bool {
    error == Errno::TOOMANYREFS
}

impl Drop for Board {
    fn drop(&mut self) {
        for neighbour in self.state.lock().neighbours.values() {
            let _ = packet::send(neighbour.socket.as_fd(), &Packet::Bye, &[]);
        }
    }
}
