//! Processes of this host, known by their boards: no packet goes over a
//! network, nothing is kept twice, and who ends is missed at once.
//!
//! A board (`pteros-shm`) carries records; this file says what they are. The
//! first byte tells: below 16 a [`Notice`] of discovery, 16 the participant's
//! list of nodes, the rest is left for what comes. What `ros_discovery_info`
//! tells others, neighbours are told here, so its endpoints are not posted.
//!
//! Whose board is not read, another stack's or another user's, is met by SPDP
//! as ever, and so is a neighbour whose connection breaks.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::id::{Guid, GuidPrefix};
use pteros_rtps::participant::{LostReason, Notice, Notices};
use pteros_rtps::time::{Duration, Instant};
use pteros_shm::{Board, BoardEvent, Reason};

use crate::core::Core;
use crate::deadline::Machine;
use crate::links::LinkTotals;

/// First byte of a record that is a list of nodes.
const NODES: u8 = 16;

/// How often a process shows that it lives, and looks who does, at least: five
/// times per lease, and no lease of ours is longer than this allows.
const BEAT_MAX: Duration = Duration::from_secs(4);
const BEATS_PER_LEASE: i64 = 5;

/// How long the first announcement waits for each neighbour that was called, and
/// at most.
const ANSWER_EACH: Duration = Duration::from_millis(2);
const ANSWER_MAX: Duration = Duration::from_millis(500);

/// How long an end waits for a socket that is never empty.
const ENDS_WAIT_MAX: Duration = Duration::from_millis(100);

/// What a context knows of its neighbours' boards beside what they say.
#[derive(Default)]
pub(crate) struct Neighbours {
    /// When we show life next.
    beats_at: Instant,
    /// Endpoints told so far by those who are telling everything.
    telling: BTreeMap<GuidPrefix, Vec<Guid>>,
    /// Ends that wait until what was sent before them has been received: a board
    /// is read at once, a socket in its order.
    ends: Vec<(Instant, End)>,
}

enum End {
    Endpoint(GuidPrefix, Notice),
    Neighbour(GuidPrefix, LostReason),
}

/// How often a board is read on before its owner's next message is looked at,
/// 16 KiB at a time: all that a board of the usual size holds.
const CATCH_UPS_MAX: usize = 1024;

/// What a board told, kept until the board is let go of.
enum News {
    Anew(GuidPrefix),
    Posted(GuidPrefix, Notice),
    Nodes(GuidPrefix, Vec<u8>),
    Told(GuidPrefix),
    Beat(GuidPrefix),
    Gone(GuidPrefix, Reason),
}

impl News {
    fn of(event: BoardEvent<'_>) -> Option<Self> {
        Some(match event {
            BoardEvent::Anew { peer } => Self::Anew(GuidPrefix(peer)),
            BoardEvent::Posted { peer, record } => match record.split_first() {
                Some((&NODES, list)) => Self::Nodes(GuidPrefix(peer), list.to_vec()),
                _ => Self::Posted(GuidPrefix(peer), Notice::parse(record)?),
            },
            BoardEvent::Told { peer } => Self::Told(GuidPrefix(peer)),
            BoardEvent::Beat { peer } => Self::Beat(GuidPrefix(peer)),
            BoardEvent::Gone { peer, reason } => Self::Gone(GuidPrefix(peer), reason),
            _ => return None,
        })
    }
}

impl Core {
    /// Posts what there is to tell so far and calls everybody of this host.
    /// Before the first announcement goes out, so that neighbours know us by
    /// our board when they hear it.
    pub(crate) fn greet_neighbours(&self, now: Instant) {
        if let Some(board) = self.transport.board() {
            self.post_notices(now);
            let called = board.greet(now.as_nanos());
            tracing::debug!(called, "neighbours");
            if called > 0 {
                // Who shows its board meanwhile need not be announced to.
                let called = i64::try_from(called).unwrap_or(i64::MAX);
                let pause = ANSWER_EACH.times(called.saturating_add(1)).min(ANSWER_MAX);
                let at = now.after(pause);
                self.participant.lock().announce_first_at(at);
            }
            self.schedule(Machine::Neighbours, Some(now));
        }
    }

    /// Posts what the participant has to tell. Called in the order of its
    /// changes, under `match_order`, or before anybody else can.
    pub(crate) fn post_notices(&self, now: Instant) {
        let Some(board) = self.transport.board() else {
            return;
        };
        let Some(notices) = self.participant.lock().take_notices() else {
            return;
        };
        match notices {
            Notices::All(all) => self.post_all(board, &all),
            Notices::News(news) => {
                let records: Vec<Vec<u8>> = news.iter().map(Notice::encode).collect();
                self.post(now, board, &records);
            }
        }
    }

    /// Tells neighbours which nodes we have.
    pub(crate) fn post_nodes(&self, now: Instant, list: &[u8]) {
        if let Some(board) = self.transport.board() {
            let _order = self.match_order.lock();
            self.post(now, board, &[nodes_record(list)]);
        }
    }

    fn post(&self, now: Instant, board: &Board, records: &[Vec<u8>]) {
        let posted = board.post(now.as_nanos(), records.iter().map(Vec::as_slice));
        if posted.is_err() {
            // Full of what holds no longer.
            let all = self.participant.lock().all_notices();
            self.post_all(board, &all);
        }
        self.schedule(Machine::Neighbours, Some(now));
    }

    fn post_all(&self, board: &Board, all: &[Notice]) {
        let mut records: Vec<Vec<u8>> = all.iter().map(Notice::encode).collect();
        records.push(nodes_record(&self.node_list()));
        if board.post_all(records.iter().map(Vec::as_slice)).is_err() {
            tracing::error!(
                endpoints = all.len(),
                "neighbours are not told of new endpoints: their descriptions exceed a board"
            );
        }
    }

    /// Reads boards, wakes neighbours, shows life when it is time.
    pub(crate) fn turn_neighbours(&self, now: Instant) {
        let Some(board) = self.transport.board() else {
            return;
        };
        let mut state = self.neighbours.lock();
        let mut news = Vec::new();
        let mut note = |event: BoardEvent<'_>| news.extend(News::of(event));
        let mut next = board.turn(now.as_nanos(), &mut note);
        if now >= state.beats_at {
            state.beats_at = now.after(self.beat_pause());
            if let Some(counts) = self.link_counts() {
                board.tell_totals(&LinkTotals::from(&counts).to_words());
            }
            board.beat();
            board.look_at_beats(&mut note);
        }
        if !news.is_empty() {
            self.heed_all(now, board, &mut state, news);
            // What was asked to be read again.
            next = Some(now.as_nanos());
        }
        let next = next.map_or(Instant::FAR_FUTURE, Instant::from_nanos);
        let next = next.min(state.beats_at);
        drop(state);
        self.schedule(Machine::Neighbours, Some(next));
        self.serve_participant(now);
    }

    /// Reads the board of somebody whose message is next: what it told before it
    /// sent that holds already.
    pub(crate) fn catch_up(&self, now: Instant, peer: GuidPrefix) {
        let Some(board) = self.transport.board() else {
            return;
        };
        for _ in 0..CATCH_UPS_MAX {
            if !board.has_news(peer.0) {
                return;
            }
            let mut state = self.neighbours.lock();
            let mut news = Vec::new();
            board.catch_up(peer.0, &mut |event| news.extend(News::of(event)));
            self.heed_all(now, board, &mut state, news);
            drop(state);
            self.serve_participant(now);
        }
    }

    /// Whether a datagram's sender is about to be a neighbour: it has called us,
    /// or we have called it. What it sends meanwhile is for others; it will be
    /// repeated if nothing comes of that.
    pub(crate) fn is_becoming_neighbour(&self, now: Instant, peer: GuidPrefix) -> bool {
        let Some(board) = self.transport.board() else {
            return false;
        };
        // Most are known.
        let is_known = || self.participant.lock().participant(peer).is_some();
        if peer == self.prefix || is_known() {
            return false;
        }
        self.turn_neighbours(now);
        self.catch_up(now, peer);
        !is_known() && board.is_calling(peer.0)
    }

    /// Whether boards told ends that are not heeded yet.
    pub(crate) fn have_neighbours_ended(&self) -> bool {
        // Relaxed: set and cleared by the thread that drives, or before it.
        self.ends_wait.load(Ordering::Relaxed)
    }

    /// Ends that boards told hold once what was sent before them `is_received`,
    /// or after [`ENDS_WAIT_MAX`] if that never ceases.
    pub(crate) fn heed_ends(&self, now: Instant, is_received: bool) {
        if !self.have_neighbours_ended() {
            return;
        }
        let ends = {
            let mut state = self.neighbours.lock();
            let first = state.ends.first().map(|(at, _)| *at);
            if !is_received && first.is_some_and(|at| now.since(at) < ENDS_WAIT_MAX) {
                return;
            }
            self.ends_wait.store(false, Ordering::Relaxed);
            std::mem::take(&mut state.ends)
        };
        for (_, end) in ends {
            let mut participant = self.participant.lock();
            match end {
                End::Endpoint(peer, notice) => {
                    participant.handle_notice(now, peer, &notice);
                }
                End::Neighbour(peer, reason) => participant.lose_neighbour(peer, reason),
            }
        }
        self.serve_participant(now);
    }

    fn wait_to_end(&self, now: Instant, state: &mut Neighbours, end: End) {
        state.ends.push((now, end));
        self.ends_wait.store(true, Ordering::Relaxed);
    }

    fn beat_pause(&self) -> Duration {
        let theirs = self.participant.lock().shortest_lease();
        let shortest = theirs.map_or(self.options.lease, |lease| lease.min(self.options.lease));
        Duration::from_nanos(shortest.as_nanos() / BEATS_PER_LEASE).min(BEAT_MAX)
    }

    fn heed_all(&self, now: Instant, board: &Board, state: &mut Neighbours, news: Vec<News>) {
        for one in news {
            self.heed(now, board, state, one);
        }
    }

    fn heed(&self, now: Instant, board: &Board, state: &mut Neighbours, news: News) {
        match news {
            News::Anew(peer) => {
                state.telling.insert(peer, Vec::new());
            }
            News::Posted(peer, notice) => self.heed_notice(now, state, peer, notice),
            News::Nodes(peer, list) => self.absorb_nodes(peer, &list),
            News::Told(peer) => {
                let told = state.telling.remove(&peer).unwrap_or_default();
                self.participant.lock().keep_endpoints(peer, &told);
            }
            News::Beat(peer) => {
                let mut participant = self.participant.lock();
                if participant.is_neighbour(peer) {
                    participant.note_alive(peer, now);
                } else {
                    // It was silent for long, and lives.
                    drop(participant);
                    board.read_again(peer.0);
                }
            }
            News::Gone(peer, reason) => {
                state.telling.remove(&peer);
                tracing::debug!(%peer, %reason, "a neighbour is gone");
                let reason = match reason {
                    Reason::Ended => LostReason::ProcessEnded,
                    _ => LostReason::Goodbye,
                };
                self.wait_to_end(now, state, End::Neighbour(peer, reason));
            }
        }
    }

    fn heed_notice(&self, now: Instant, state: &mut Neighbours, peer: GuidPrefix, notice: Notice) {
        if let Some(told) = state.telling.get_mut(&peer) {
            told.extend(endpoint_of(&notice));
        }
        if matches!(notice, Notice::Gone(_)) {
            return self.wait_to_end(now, state, End::Endpoint(peer, notice));
        }
        self.participant.lock().handle_notice(now, peer, &notice);
    }
}

/// The endpoint that a notice is about, if it says that it exists.
fn endpoint_of(notice: &Notice) -> Option<Guid> {
    let Notice::Endpoint(payload) = notice else {
        return None;
    };
    EndpointData::parse_key(payload)
}

fn nodes_record(list: &[u8]) -> Vec<u8> {
    let mut record = Vec::with_capacity(list.len() + 1);
    record.push(NODES);
    record.extend_from_slice(list);
    record
}
