//! What a writer puts on the wire, in this order: repairs for those who asked,
//! new changes for everybody, heartbeats that are due.
//!
//! A poll stops at the burst limit and goes on where it stopped. Nothing is
//! allocated but what the outbox needs to grow.

use super::Writer;
use super::parcel::{Left, Parcel};
use super::proxy::{Group, ReaderProxy};
use crate::history::Change;
use crate::id::EntityId;
use crate::interval::Run;
use crate::locator::RouteKind;
use crate::outbox::Outbox;
use crate::seq::SequenceNumber;
use crate::stats::Tally;
use crate::time::Instant;
use crate::wire::{Gap, Heartbeat};

/// How far new changes have been pushed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor {
    /// The next number to push.
    pub number: i64,
    /// How many destinations have had it.
    pub group: usize,
    /// How many there were at the first, or 0 before.
    groups: usize,
    /// The next fragment for that destination, from 0.
    fragment: u32,
    /// Whether its heartbeat asks for acknowledgements; decided once.
    pub ask: Option<bool>,
    /// The last number of the batch that is being pushed, or 0.
    pub batch: i64,
}

impl Cursor {
    pub const fn at(number: i64) -> Self {
        Self {
            number,
            group: 0,
            groups: 0,
            fragment: 0,
            ask: None,
            batch: 0,
        }
    }

    /// The next destination. Each change begins with another one, so that nobody
    /// is always the last; who comes meanwhile is.
    fn turn(&self) -> usize {
        let first = usize::try_from(self.number).unwrap_or(0);
        match first.checked_rem(self.groups) {
            Some(first) if self.group < self.groups => {
                let at = self.group.saturating_add(first);
                at.checked_sub(self.groups).unwrap_or(at)
            }
            _ => self.group,
        }
    }

    /// Whether something of the change has been pushed.
    pub const fn is_begun(&self) -> bool {
        self.group > 0 || self.fragment > 0
    }
}

impl Writer {
    /// Puts what is to be sent into `out`, one burst at most. True: there is
    /// more; send, clear `out` and call again.
    pub fn poll_transmit(&mut self, now: Instant, out: &mut Outbox) -> bool {
        self.poll_transmit_up_to(now, self.config.burst, out)
    }

    /// Sends new changes to every group. False when the burst is over.
    pub(super) fn push(&mut self, now: Instant, out: &mut Outbox, left: &mut Left) -> bool {
        let released = self.released();
        while self.cursor.number <= released {
            let Some(number) = self.next_to_push() else {
                return true;
            };
            if number > released {
                return true;
            }
            match self.push_batch(number, now, out, left) {
                None => {}
                Some(true) => continue,
                Some(false) => return false,
            }
            let is_last = number == released;
            let ask = match self.cursor.ask {
                Some(ask) => ask,
                None => self.decide_to_ask(now, number),
            };
            self.cursor.ask = Some(ask);
            if !self.cursor.is_begun() {
                self.cursor.groups = self.groups.len();
            }
            while self.cursor.group < self.groups.len().max(self.cursor.groups) {
                let at = self.cursor.turn();
                if left.is_over(out) {
                    return false;
                }
                let prelude = self.prelude(at, number);
                let heartbeat = (ask || is_last)
                    .then(|| self.heartbeat(at, !ask, number))
                    .filter(|_| prelude.is_none());
                let Some(next) = self.push_to(at, number, now, (prelude, heartbeat), out, left)
                else {
                    self.cursor.group.tally();
                    self.cursor.fragment = 0;
                    continue;
                };
                self.cursor.fragment = next;
                return false;
            }
            self.cursor = Cursor::at(number.saturating_add(1));
            if self.reliable_readers == 0 || self.filtered_readers > 0 {
                self.prune();
            }
        }
        true
    }

    /// The number of the next change to push; numbers on the way there that
    /// were taken out are declared irrelevant with it.
    fn next_to_push(&mut self) -> Option<i64> {
        let from = self.cursor.number;
        let next = self.history.from(SequenceNumber(from));
        let number = next.map_or(self.last.0.saturating_add(1), |change| change.sequence.0);
        if number > from {
            let first = from.max(self.lost_through.saturating_add(1));
            if first < number {
                for group in &mut self.groups {
                    group.skip(first);
                    group.skip(number.saturating_sub(1));
                }
            }
            self.cursor = Cursor::at(number);
        }
        self.fix_fragment_size(SequenceNumber(number));
        (number <= self.last.0).then_some(number)
    }

    pub(super) fn fix_fragment_size(&mut self, sequence: SequenceNumber) {
        let sizes = self.config.fragment_size;
        let near = self.is_near();
        if let Some(change) = self.history.find_mut(sequence)
            && change.fragment_size == 0
        {
            change.fragment_size = if near { sizes.same_host } else { sizes.network };
        }
    }

    /// Whether all readers are on this host.
    pub(super) fn is_near(&self) -> bool {
        self.groups
            .iter()
            .all(|group| group.readers == 0 || group.route.is_same_host())
    }

    /// Whether the heartbeat with this change asks for acknowledgements.
    pub(super) fn decide_to_ask(&mut self, now: Instant, number: i64) -> bool {
        if self.reliable_readers == 0 {
            return false;
        }
        let bytes = self
            .history
            .find(SequenceNumber(number))
            .map_or(0, |change| change.payload.len());
        self.unasked_samples = self.unasked_samples.saturating_add(1);
        // By a link the first one asks for nothing: it is acknowledged anyway.
        let before = self.unasked_bytes;
        self.unasked_bytes = before.saturating_add(bytes);
        let trusts = self.trusts_links();
        let unasked_bytes = if trusts { before } else { self.unasked_bytes };
        let half_full = self.is_keep_all() && self.history.samples() >= self.samples_max / 2;
        let ask = self.unasked_samples >= self.config.heartbeat.ack_samples
            || unasked_bytes >= self.config.heartbeat.ack_bytes
            || self.blocked
            || half_full
            // The next one may be long in coming: this saves a heartbeat of its own.
            || (self.is_after_pause && !trusts)
            || fault!("acknowledgement-always-asked")
            // One of its own is soon due, and spared.
            || self.timers.at(super::TIMER_HEARTBEAT) <= now.after(self.config.heartbeat.ahead());
        self.is_after_pause &= !ask;
        if ask {
            self.unasked_samples = 0;
            self.unasked_bytes = 0;
            let pause = if trusts {
                self.config.heartbeat.linked
            } else if bytes >= self.config.heartbeat.ack_bytes {
                self.config.heartbeat.after_large
            } else {
                self.config.heartbeat.first
            };
            self.news_at = now.after(pause);
            self.timers.set(super::TIMER_HEARTBEAT, self.news_at);
        }
        ask
    }

    /// Sends one change to one group. Returns the fragment to go on with, or
    /// `None` when this group is through.
    fn push_to(
        &mut self,
        at: usize,
        number: i64,
        now: Instant,
        (prelude, heartbeat): (Option<Heartbeat>, Option<Heartbeat>),
        out: &mut Outbox,
        left: &mut Left,
    ) -> Option<u32> {
        let from = self.cursor.fragment;
        let change = self.history.find(SequenceNumber(number))?;
        let group = self.groups.get_mut(at)?;
        if group.readers == 0 {
            return None;
        }
        if !is_due(change, group, at, &self.readers, now) {
            group.skip(number);
            return None;
        }
        let reader = change.only_for.map_or(group.sole, |only| only.entity);
        let gap = group.skipped;
        let reliable = group.reliable > 0;
        let asks = reliable && heartbeat.is_some_and(|heartbeat| !heartbeat.is_final);
        let parcel = Parcel {
            writer: self.config.guid,
            to: group,
            reader,
            prelude,
            gap,
            heartbeat: heartbeat.filter(|_| reliable && !fault!("no-heartbeat-along")),
            is_for_all: self.config.spares_destinations
                && group.route.kind == RouteKind::Network
                && change.only_for.is_none()
                && change.filtering.is_none(),
        };
        let next = parcel.send(change, from, out, left, &mut self.stats);
        let total = parcel.pieces(change);
        self.stats.gaps.tally_by(u64::from(gap.is_some()));
        self.stats
            .heartbeats
            .tally_by(u64::from(prelude.is_some() && from == 0));
        group.skipped = None;
        if next.is_none() {
            self.stats.samples_sent.tally();
            if asks {
                self.note_asked(now, at, number);
            }
        }
        let sent = next.unwrap_or(total).saturating_sub(from);
        if total > 1 {
            self.stats.fragments_sent.tally_by(u64::from(sent));
        }
        next
    }

    /// The heartbeat that goes before a change, and not behind it, while some
    /// reader has never answered: the one sent on matching may have come before
    /// that reader knew the writer. See [`Group::last_to_name`].
    pub(super) fn prelude(&mut self, at: usize, number: i64) -> Option<Heartbeat> {
        let unheard = self.groups.get(at).is_some_and(|group| group.unheard > 0);
        (unheard && self.cursor.fragment == 0)
            .then(|| self.heartbeat(at, false, number.saturating_sub(1)))
    }

    /// A heartbeat for a group, naming everything up to `last`.
    pub(super) fn heartbeat(&mut self, at: usize, is_final: bool, last: i64) -> Heartbeat {
        let Some(group) = self.groups.get(at) else {
            return self.heartbeat_from(EntityId::UNKNOWN, 1, is_final, last);
        };
        let (reader, start) = (group.sole, group.start);
        let last = group.last_to_name(last);
        self.heartbeat_from(reader, start, is_final, last)
    }

    /// A heartbeat that asks for an answer, for a participant that may or may
    /// not have a reader of ours: discovery's way to see whether it lives.
    pub(crate) fn probe(&mut self) -> Heartbeat {
        self.heartbeat_from(EntityId::UNKNOWN, 1, false, self.last.0)
    }

    fn heartbeat_from(
        &mut self,
        reader: EntityId,
        start: i64,
        is_final: bool,
        last: i64,
    ) -> Heartbeat {
        self.heartbeat_count = self.heartbeat_count.wrapping_add(1);
        let last = last.max(self.lost_through);
        let first = self.lost_through.saturating_add(1).max(start);
        let first = first.saturating_add(fault!("heartbeat-begins-too-high").into());
        Heartbeat {
            reader,
            writer: self.config.guid.entity,
            first: SequenceNumber(first.min(last.saturating_add(1)).max(1)),
            last: SequenceNumber(
                last.saturating_sub(fault!("heartbeat-ends-too-low").into())
                    .max(0),
            ),
            count: self.heartbeat_count,
            is_final,
            liveliness: false,
            group: self.place_for(last),
        }
    }

    /// Serves requests, replays, GAPs and heartbeats. False when the burst is over:
    /// the next one begins with whose turn is next, so that nobody waits until
    /// a reader that asks all the time is content.
    pub(super) fn pay_debts(&mut self, now: Instant, out: &mut Outbox, left: &mut Left) -> bool {
        let readers = self.readers.len();
        let first = core::mem::take(&mut self.creditor);
        if first >= readers && !self.send_heartbeats(out, left) {
            return false;
        }
        let first = if first < readers { first } else { 0 };
        let reserved = left.reserve_beyond(self.config.limits.repair_bytes_max);
        for at in (first..readers).chain(0..first) {
            let had_turn = !left.is_over(out);
            if !self.send_skipped(at, out, left)
                || !self.repair(at, now, out, left)
                || !self.replay(at, now, out, left)
            {
                self.creditor = at.saturating_add(had_turn.into());
                return false;
            }
        }
        left.bytes = left.bytes.saturating_add(reserved);
        if !self.send_heartbeats(out, left) {
            return false;
        }
        self.has_debts = false;
        true
    }

    /// Sends the heartbeats that groups and single readers are owed.
    fn send_heartbeats(&mut self, out: &mut Outbox, left: &mut Left) -> bool {
        let pushed = self.cursor.number.saturating_sub(1);
        for at in 0..self.groups.len() {
            let Some(group) = self.groups.get(at) else {
                continue;
            };
            let (ask, assert) = (group.heartbeat_due, group.assertion_due);
            if (!ask && !assert && !group.place_due) || group.readers == 0 {
                continue;
            }
            // What no sample has declared irrelevant would be asked for.
            let gap = group.skipped.filter(|_| group.silence.is_none());
            let mut heartbeat = self.heartbeat(at, !ask, pushed);
            heartbeat.liveliness = assert;
            if !self.send_heartbeat(at, gap, &heartbeat, out, left) {
                return false;
            }
            if let Some(group) = self.groups.get_mut(at) {
                if gap.is_some() {
                    group.skipped = None;
                }
                group.heartbeat_due = false;
                group.assertion_due = false;
                group.place_due = false;
            }
        }
        for at in 0..self.readers.len() {
            let Some(reader) = self.readers.get(at).filter(|reader| reader.heartbeat_due) else {
                continue;
            };
            let (entity, start, group) = (reader.guid.entity, reader.start, reader.group);
            // Heartbeats for all readers of its process begin lower: without
            // the GAP it would take the difference for a loss.
            let is_alone = self
                .groups
                .get(group)
                .is_none_or(|group| group.readers == 1);
            let gap = (start > 1 && reader.acked == start && !is_alone).then(|| Run {
                first: 1,
                last: start.saturating_sub(1),
            });
            let last = match self.groups.get(group) {
                Some(group) => group.last_to_name(pushed),
                None => pushed,
            };
            let heartbeat = self.heartbeat_from(entity, start, false, last);
            if !self.send_heartbeat(group, gap, &heartbeat, out, left) {
                return false;
            }
            if let Some(reader) = self.readers.get_mut(at) {
                reader.heartbeat_due = false;
            }
        }
        true
    }

    pub(super) fn send_heartbeat(
        &mut self,
        group: usize,
        gap: Option<Run>,
        heartbeat: &Heartbeat,
        out: &mut Outbox,
        left: &mut Left,
    ) -> bool {
        if left.is_over(out) {
            return false;
        }
        let Some(group) = self.groups.get(group) else {
            return true;
        };
        let mut message = out.begin(
            self.config.guid.prefix,
            &group.route.locators,
            self.config.datagram_bytes_max,
        );
        message.info_destination(group.prefix);
        if let Some(run) = gap {
            message.gap(&Gap::range(
                heartbeat.reader,
                heartbeat.writer,
                SequenceNumber(run.first),
                SequenceNumber(run.last),
            ));
            self.stats.gaps.tally();
        }
        message.heartbeat(heartbeat);
        left.finish(message, &mut self.stats);
        self.stats.heartbeats.tally();
        true
    }
}

/// Whether a change is to be sent to the group, which is number `at`.
pub(super) fn is_due(
    change: &Change,
    group: &Group,
    at: usize,
    readers: &[ReaderProxy],
    now: Instant,
) -> bool {
    let is_for_it = change.only_for.is_none_or(|only| {
        only.prefix == group.prefix
            && readers
                .iter()
                .any(|reader| reader.guid == only && reader.group == at)
    });
    let is_heard = group.hears_ends || !change.is_end();
    is_for_it
        && is_heard
        && group.start <= change.sequence.0
        && change.expires_at > now
        && change.is_wanted(readers, at)
}
