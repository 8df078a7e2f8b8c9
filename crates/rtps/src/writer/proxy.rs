//! What a writer knows of one reader (RTPS 2.5 §8.4.7.5, ReaderProxy), and of
//! one destination that several readers may share.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::ask::Asking;
use super::config::{HeartbeatConfig, ReaderProxyConfig};
use super::lapse::Lapse;
use crate::content_filter::ContentFilter;
use crate::history::Change;
use crate::id::{EntityId, Guid, GuidPrefix};
use crate::interval::Run;
use crate::locator::Route;
use crate::seq::SequenceNumber;
use crate::time::{Duration, Instant};
use crate::wire::{AckNack, FragmentSet, SequenceSet};

/// Samples of which fragments are asked for at a time, per reader.
pub(super) const FRAGMENT_REQUESTS_MAX: usize = 8;
/// An ACKNACK whose count does not grow is a repeat, unless the reader has
/// been silent this long: then it has forgotten us and counts anew.
const COUNT_MEMORY: Duration = Duration::from_millis(500);
/// A reader that goes on sending empty, non-final ACKNACKs just answers so.
const UNASKED_MAX: u8 = 2;
/// Times it is asked again, at last every 200 ms, before a reader is told the
/// true last number though it never answered.
const UNANSWERED_MAX: u32 = 10;

/// One matched reader.
#[derive(Debug)]
pub(super) struct ReaderProxy {
    pub guid: Guid,
    /// Whether it acknowledges and asks again.
    pub reliable: bool,
    /// Index of its destination.
    pub group: usize,
    /// The first number that is meant for it.
    pub start: i64,
    /// All below are acknowledged.
    pub acked: i64,
    /// The last number that was meant for it alone, or that its filter let pass.
    pub last_directed: i64,
    /// What it wants of the topic; `None` is all.
    pub filter: Option<Arc<ContentFilter>>,
    /// Numbers to send again.
    pub requested: SequenceSet,
    /// Of these, what it will not get has been declared irrelevant.
    pub is_sifted: bool,
    /// The sample in which the last burst ended, and its next fragment.
    pub resume: (SequenceNumber, u32),
    /// Fragments to send again, lowest sample first.
    pub fragments: Vec<(SequenceNumber, FragmentSet)>,
    /// Requests are served in rounds, lowest number first: of this round all
    /// below is done. What is asked for again meanwhile waits for the next
    /// round, so that a round ends however slow it is and whatever is asked.
    pub done_below: SequenceNumber,
    /// When to serve the requests.
    pub repair_at: Instant,
    /// When requests were last served.
    pub served_at: Instant,
    /// Numbers a best-effort late joiner still gets.
    pub replay: Option<Run>,
    /// Numbers that were not meant for its group, when another joined that may
    /// want them: it is told alone.
    pub skipped: Option<Run>,
    /// It is owed a heartbeat of its own.
    pub heartbeat_due: bool,
    /// It gets what is written from its match on, nothing older.
    pub begins_now: bool,
    /// It is told where coherent sets end.
    pub hears_ends: bool,
    has_answered: bool,
    unasked: u8,
    /// It lacks what it had.
    pub lapse: Option<Lapse>,
    acknack_count: Option<u32>,
    acknack_at: Instant,
    nack_frag_count: Option<u32>,
    nack_frag_at: Instant,
}

impl ReaderProxy {
    pub fn new(config: &ReaderProxyConfig, reliable: bool, group: usize, start: i64) -> Self {
        Self {
            guid: config.guid,
            reliable,
            group,
            start,
            acked: start,
            last_directed: 0,
            filter: config.content_filter.clone(),
            requested: SequenceSet::empty(SequenceNumber::FIRST),
            is_sifted: false,
            resume: (SequenceNumber::ZERO, 0),
            fragments: Vec::new(),
            done_below: SequenceNumber::FIRST,
            repair_at: Instant::FAR_FUTURE,
            served_at: Instant::ZERO,
            replay: None,
            skipped: None,
            heartbeat_due: false,
            begins_now: true,
            hears_ends: config.qos.presentation.holds_samples(),
            has_answered: false,
            unasked: 0,
            lapse: None,
            acknack_count: None,
            acknack_at: Instant::ZERO,
            nack_frag_count: None,
            nack_frag_at: Instant::ZERO,
        }
    }

    /// Whether it should answer a heartbeat and never did: it may not have
    /// heard one yet.
    pub fn is_unheard(&self) -> bool {
        self.reliable && !self.has_answered
    }

    /// Takes an ACKNACK for the answer to a heartbeat, if it is one: some come
    /// unasked from readers that only know our announcement, and want nothing
    /// but a heartbeat (Cyclone DDS, Fast DDS). True when it is the first.
    pub fn note_answer(&mut self, acknack: &AckNack) -> bool {
        self.unasked = self.unasked.saturating_add(1);
        let is_answer = acknack.is_final || !acknack.state.is_empty();
        if self.has_answered || !(is_answer || self.unasked > UNASKED_MAX) {
            return false;
        }
        self.has_answered = true;
        true
    }

    /// Whether the change is meant for it.
    pub fn wants(&self, change: &Change) -> bool {
        change.sequence.0 >= self.start
            && change.only_for.is_none_or(|only| only == self.guid)
            && change.passes_for(self.guid)
            && (self.hears_ends || !change.is_end())
    }

    /// The highest number that is meant for it, when `shared` is the last one
    /// meant for everybody.
    pub fn last_relevant(&self, shared: i64) -> i64 {
        let is_for_it = self.filter.is_none() && shared >= self.start;
        let shared = if is_for_it { shared } else { 0 };
        shared.max(self.last_directed)
    }

    /// Whether it has yet to acknowledge something.
    pub fn owes_ack(&self, shared: i64) -> bool {
        let early = i64::from(fault!("acknowledged-one-too-early"));
        self.reliable && self.acked.saturating_add(early) <= self.last_relevant(shared)
    }

    /// Whether it has yet to acknowledge this number.
    pub fn needs(&self, number: i64) -> bool {
        let early = i64::from(fault!("sample-dropped-too-early"));
        let waits = self.reliable || fault!("best-effort-reader-waited-for");
        waits && self.acked.saturating_add(early) <= number
    }

    /// Whether something is to be sent again.
    pub fn has_requests(&self) -> bool {
        !self.requested.is_empty() || !self.fragments.is_empty()
    }

    /// Whether the count of an ACKNACK is not above that of the last one.
    pub fn went_back(&self, count: u32) -> bool {
        let last = self.acknack_count;
        last.is_some_and(|last| count.wrapping_sub(last).cast_signed() <= 0)
    }

    /// Whether an ACKNACK with this count is new.
    pub fn accepts_acknack(&mut self, now: Instant, count: u32) -> bool {
        accept(now, count, &mut self.acknack_count, &mut self.acknack_at)
    }

    /// Whether a NACK_FRAG with this count is new.
    pub fn accepts_nack_frag(&mut self, now: Instant, count: u32) -> bool {
        accept(
            now,
            count,
            &mut self.nack_frag_count,
            &mut self.nack_frag_at,
        )
    }

    /// Notes a request for a whole sample besides those of the last ACKNACK.
    /// False when it is too far from those.
    pub fn request_sample(&mut self, sequence: SequenceNumber) -> bool {
        if self.requested.is_empty() {
            self.requested = SequenceSet::empty(sequence);
        }
        self.is_sifted = false;
        self.requested.insert(sequence)
    }

    /// Notes a request for fragments; replaces an earlier one for the same
    /// sample. False when there are too many for lower ones.
    pub fn request_fragments(&mut self, sequence: SequenceNumber, mut set: FragmentSet) -> bool {
        if self.requested.contains(sequence) {
            // Since it was asked for as a whole some of it has come.
            match self.resume {
                (begun, next) if begun == sequence && next > 0 => {
                    let lost = set.iter().filter(|fragment| fragment.0 <= next);
                    set = FragmentSet::from_numbers(set.base(), lost);
                }
                _ => self.requested.remove(sequence),
            }
        }
        match self.fragments.binary_search_by_key(&sequence, |(s, _)| *s) {
            Ok(at) => {
                if let Some((_, old)) = self.fragments.get_mut(at) {
                    *old = set;
                }
            }
            Err(at) if at >= FRAGMENT_REQUESTS_MAX => return false,
            Err(at) => {
                self.fragments.insert(at, (sequence, set));
                self.fragments.truncate(FRAGMENT_REQUESTS_MAX);
            }
        }
        true
    }

    /// The lowest number that this round has yet to serve.
    pub fn next_request(&self) -> Option<SequenceNumber> {
        let is_left = |sequence: &SequenceNumber| *sequence >= self.done_below;
        let whole = self.requested.iter().find(is_left);
        let pieces = self.fragments.iter().map(|(sequence, _)| *sequence);
        whole.into_iter().chain(pieces.filter(is_left)).min()
    }

    /// All that was asked for of this sample is sent.
    pub fn note_served(&mut self, sequence: SequenceNumber) {
        self.requested.remove(sequence);
        self.fragments.retain(|(s, _)| *s != sequence);
        self.done_below = sequence.next();
    }

    /// Before a request is noted: with nothing asked for, it begins a round.
    pub fn begin_round_if_idle(&mut self) {
        if !self.has_requests() {
            self.done_below = SequenceNumber::FIRST;
        }
    }
}

fn accept(now: Instant, count: u32, last: &mut Option<u32>, at: &mut Instant) -> bool {
    let is_new = last.is_none_or(|last| count.wrapping_sub(last).cast_signed() > 0);
    if !is_new && now.since(*at) < COUNT_MEMORY {
        return false;
    }
    *last = Some(count);
    *at = now;
    true
}

/// Readers of one participant that are reached the same way: each new change
/// goes there once.
#[derive(Debug)]
pub(super) struct Group {
    pub prefix: GuidPrefix,
    pub route: Route,
    /// Readers in it; an empty group is a free place.
    pub readers: usize,
    /// Those of them that are reliable.
    pub reliable: usize,
    /// Those of them that never answered.
    pub unheard: usize,
    /// None of them did, and all begin with what is written from now on: the
    /// last number that is not for them. See [`Group::last_to_name`].
    pub silence: Option<i64>,
    /// When it is asked for acknowledgements.
    pub asking: Asking,
    /// It runs this stack.
    pub is_ours: bool,
    /// The only reader in it, else UNKNOWN.
    pub sole: EntityId,
    /// The lowest number meant for any of them.
    pub start: i64,
    /// Some of them is told where coherent sets end.
    pub hears_ends: bool,
    /// Numbers not meant for it and not yet declared so.
    pub skipped: Option<Run>,
    /// It is owed a heartbeat that asks for acknowledgements.
    pub heartbeat_due: bool,
    /// It is owed a heartbeat that asserts liveliness.
    pub assertion_due: bool,
    /// It is to be told where the publisher is.
    pub place_due: bool,
}

impl Group {
    pub fn new(prefix: GuidPrefix, route: Route, heartbeat: &HeartbeatConfig) -> Self {
        Self {
            prefix,
            route,
            readers: 0,
            reliable: 0,
            unheard: 0,
            silence: None,
            asking: Asking::new(heartbeat),
            is_ours: false,
            sole: EntityId::UNKNOWN,
            start: i64::MAX,
            hears_ends: false,
            skipped: None,
            heartbeat_due: false,
            assertion_due: false,
            place_due: false,
        }
    }

    /// The last number that a heartbeat may name. Cyclone DDS begins a volatile
    /// reader after the last number of the first heartbeat it hears, and drops
    /// what comes while it is still matching: until somebody has answered, no
    /// heartbeat names a sample that is meant for the readers here.
    pub fn last_to_name(&self, last: i64) -> i64 {
        match self.silence {
            Some(silence) if self.asking.unanswered() < UNANSWERED_MAX => last.min(silence),
            _ => last,
        }
    }

    /// Notes that a number is not meant for this group.
    pub fn skip(&mut self, number: i64) {
        match &mut self.skipped {
            Some(run) => run.last = number,
            None => {
                self.skipped = Some(Run {
                    first: number,
                    last: number,
                });
            }
        }
    }
}
