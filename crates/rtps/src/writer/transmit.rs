//! What a writer puts on the wire, in this order: repairs for those who asked,
//! new changes for everybody, heartbeats that are due.
//!
//! A poll stops at the burst limit and goes on where it stopped. Nothing is
//! allocated but what the outbox needs to grow.

use super::Writer;
use super::proxy::Group;
use crate::history::{Change, ChangeKind};
use crate::id::{EntityId, Guid};
use crate::interval::Run;
use crate::outbox::{MessageBuilder, Outbox};
use crate::seq::{FragmentNumber, SequenceNumber};
use crate::stats::WriterStats;
use crate::time::Instant;
use crate::wire::{
    DataFragHead, DataHead, FragmentSet, Gap, Heartbeat, InlineQosHead, SequenceSet, StatusInfo,
};

/// The largest UDP datagram over IPv4.
const DATAGRAM_BYTES_MAX: usize = 65_507;

/// How far new changes have been pushed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor {
    /// The next number to push.
    pub number: i64,
    /// The next destination for it.
    pub group: usize,
    /// The next fragment for that destination, from 0.
    fragment: u32,
    /// Whether its heartbeat asks for acknowledgements; decided once.
    ask: Option<bool>,
}

impl Cursor {
    pub const fn at(number: i64) -> Self {
        Self {
            number,
            group: 0,
            fragment: 0,
            ask: None,
        }
    }
}

/// What is left of a burst.
struct Left {
    datagrams: usize,
    bytes: usize,
}

impl Left {
    fn is_over(&self, out: &Outbox) -> bool {
        self.datagrams == 0 || self.bytes == 0 || out.is_full()
    }

    /// Finishes a datagram that carries `body_bytes` of payload.
    fn finish(&mut self, message: MessageBuilder<'_>, stats: &mut WriterStats) {
        self.bytes = self.bytes.saturating_sub(message.size_bytes());
        if message.finish() {
            self.datagrams = self.datagrams.saturating_sub(1);
            stats.datagrams += 1;
        }
    }
}

/// Where one change goes, and what goes along.
struct Parcel<'a> {
    writer: Guid,
    to: &'a Group,
    reader: EntityId,
    /// Declared irrelevant before the change.
    gap: Option<Run>,
    /// Sent in the change's last datagram.
    heartbeat: Option<Heartbeat>,
}

impl Parcel<'_> {
    /// Sends the change from fragment `from` on (from 0), as far as the burst
    /// allows. Returns the next fragment, or `None` when it is through.
    fn send(
        &self,
        change: &Change,
        from: u32,
        out: &mut Outbox,
        left: &mut Left,
        stats: &mut WriterStats,
    ) -> Option<u32> {
        let total = fragments_total(change);
        if total <= 1 {
            self.send_whole(change, out, left, stats);
            return None;
        }
        for index in from..total {
            if left.is_over(out) {
                return Some(index);
            }
            self.send_fragment(change, index, index + 1 == total, out, left, stats);
        }
        None
    }

    fn begin<'o>(&self, out: &'o mut Outbox, change: &Change) -> MessageBuilder<'o> {
        let mut message = out.begin(
            self.writer.prefix,
            &self.to.route.locators,
            DATAGRAM_BYTES_MAX,
        );
        message.info_destination(self.to.prefix);
        if let Some(run) = self.gap {
            message.gap(&Gap::range(
                self.reader,
                self.writer.entity,
                SequenceNumber(run.first),
                SequenceNumber(run.last),
            ));
        }
        message.info_timestamp(change.source_timestamp);
        message
    }

    fn finish(&self, mut message: MessageBuilder<'_>, left: &mut Left, stats: &mut WriterStats) {
        if let Some(heartbeat) = &self.heartbeat
            && message.heartbeat(heartbeat)
        {
            stats.heartbeats += 1;
        }
        left.finish(message, stats);
    }

    fn send_whole(
        &self,
        change: &Change,
        out: &mut Outbox,
        left: &mut Left,
        stats: &mut WriterStats,
    ) {
        let mut message = self.begin(out, change);
        let head = DataHead {
            reader: self.reader,
            writer: self.writer.entity,
            sequence: change.sequence,
            inline_qos: inline_qos(change),
            key_only: change.kind != ChangeKind::Alive,
        };
        message.data(&head, &change.payload);
        self.finish(message, left, stats);
    }

    fn send_fragment(
        &self,
        change: &Change,
        index: u32,
        is_last: bool,
        out: &mut Outbox,
        left: &mut Left,
        stats: &mut WriterStats,
    ) {
        let size = usize::from(change.fragment_size);
        let start = usize::try_from(index)
            .unwrap_or(usize::MAX)
            .saturating_mul(size);
        let end = start.saturating_add(size).min(change.payload.len());
        if start >= end {
            return;
        }
        let mut message = self.begin(out, change);
        let head = DataFragHead {
            reader: self.reader,
            writer: self.writer.entity,
            sequence: change.sequence,
            first_fragment: FragmentNumber(index + 1),
            fragment_count: 1,
            fragment_size: change.fragment_size,
            sample_size: u32::try_from(change.payload.len()).unwrap_or(u32::MAX),
            inline_qos: inline_qos(change),
            key_only: change.kind != ChangeKind::Alive,
        };
        message.data_frag(&head, change.payload.slice(start..end));
        if is_last {
            self.finish(message, left, stats);
        } else {
            left.finish(message, stats);
        }
    }
}

fn fragments_total(change: &Change) -> u32 {
    let size = usize::from(change.fragment_size).max(1);
    u32::try_from(change.payload.len().div_ceil(size)).unwrap_or(u32::MAX)
}

fn inline_qos(change: &Change) -> InlineQosHead {
    InlineQosHead {
        status_info: match change.kind {
            ChangeKind::Alive => None,
            ChangeKind::Disposed => Some(StatusInfo::DISPOSED),
            ChangeKind::Unregistered => Some(StatusInfo::UNREGISTERED),
            ChangeKind::DisposedUnregistered => Some(StatusInfo::DISPOSED_UNREGISTERED),
        },
        key_hash: change.key_hash,
        related: change.related,
    }
}

impl Writer {
    /// Puts what is to be sent into `out`, one burst at most. True: there is
    /// more; send, clear `out` and call again.
    pub fn poll_transmit(&mut self, now: Instant, out: &mut Outbox) -> bool {
        self.clock = now;
        let mut left = Left {
            datagrams: self.config.burst.datagrams.max(1),
            bytes: self.config.burst.bytes.max(1),
        };
        if self.has_debts && !self.pay_debts(now, out, &mut left) {
            return true;
        }
        !self.push(now, out, &mut left)
    }

    /// Whether a poll would send something.
    pub(super) fn has_output(&self) -> bool {
        self.has_debts || (self.cursor.number <= self.last.0 && !self.readers.is_empty())
    }

    /// Sends new changes to every group. False when the burst is over.
    fn push(&mut self, now: Instant, out: &mut Outbox, left: &mut Left) -> bool {
        while self.cursor.number <= self.last.0 {
            let Some(number) = self.next_to_push() else {
                return true;
            };
            let last_in_history = number == self.last.0;
            let ask = match self.cursor.ask {
                Some(ask) => ask,
                None => self.decide_to_ask(now, number),
            };
            self.cursor.ask = Some(ask);
            while self.cursor.group < self.groups.len() {
                let at = self.cursor.group;
                if left.is_over(out) {
                    return false;
                }
                let heartbeat = (ask || last_in_history).then(|| self.heartbeat(at, !ask, number));
                let Some(next) = self.push_to(at, number, now, heartbeat, out, left) else {
                    self.cursor.group += 1;
                    self.cursor.fragment = 0;
                    continue;
                };
                self.cursor.fragment = next;
                return false;
            }
            self.cursor = Cursor::at(number.saturating_add(1));
            if self.reliable_readers == 0 {
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
                    group.skip(number - 1);
                }
            }
            self.cursor = Cursor::at(number);
        }
        self.fix_fragment_size(SequenceNumber(number));
        (number <= self.last.0).then_some(number)
    }

    fn fix_fragment_size(&mut self, sequence: SequenceNumber) {
        let sizes = self.config.fragment_size;
        let near = self
            .groups
            .iter()
            .all(|group| group.readers == 0 || group.route.same_host);
        if let Some(change) = self.history.find_mut(sequence)
            && change.fragment_size == 0
        {
            change.fragment_size = if near { sizes.same_host } else { sizes.network };
        }
    }

    /// Whether the heartbeat with this change asks for acknowledgements.
    fn decide_to_ask(&mut self, now: Instant, number: i64) -> bool {
        if self.reliable_readers == 0 {
            return false;
        }
        let bytes = self
            .history
            .find(SequenceNumber(number))
            .map_or(0, |change| change.payload.len());
        self.unasked_samples = self.unasked_samples.saturating_add(1);
        self.unasked_bytes = self.unasked_bytes.saturating_add(bytes);
        let half_full = self.is_keep_all() && self.history.len() >= self.samples_max / 2;
        let ask = self.unasked_samples >= self.config.heartbeat.ack_samples
            || self.unasked_bytes >= self.config.heartbeat.ack_bytes
            || self.blocked
            || half_full
            || self.timers.at(super::TIMER_HEARTBEAT) <= now;
        if ask {
            self.unasked_samples = 0;
            self.unasked_bytes = 0;
            let pause = if bytes >= self.config.heartbeat.ack_bytes {
                self.config.heartbeat.after_large
            } else {
                self.config.heartbeat.first
            };
            self.timers.set(super::TIMER_HEARTBEAT, now.after(pause));
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
        heartbeat: Option<Heartbeat>,
        out: &mut Outbox,
        left: &mut Left,
    ) -> Option<u32> {
        let from = self.cursor.fragment;
        let change = self.history.find(SequenceNumber(number))?;
        let group = self.groups.get_mut(at)?;
        if group.readers == 0 {
            return None;
        }
        let is_for_it = change.only_for.is_none_or(|only| {
            only.prefix == group.prefix
                && self
                    .readers
                    .iter()
                    .any(|reader| reader.guid == only && reader.group == at)
        });
        if !is_for_it || group.start > number || change.expires_at <= now {
            group.skip(number);
            return None;
        }
        let reader = change.only_for.map_or(group.sole, |only| only.entity);
        let gap = group.skipped;
        let reliable = group.reliable > 0;
        let parcel = Parcel {
            writer: self.config.guid,
            to: group,
            reader,
            gap,
            heartbeat: heartbeat.filter(|_| reliable),
        };
        let next = parcel.send(change, from, out, left, &mut self.stats);
        self.stats.gaps += u64::from(gap.is_some());
        group.skipped = None;
        if next.is_none() {
            self.stats.samples_sent += 1;
        }
        let sent = next.unwrap_or_else(|| fragments_total(change)) - from;
        if fragments_total(change) > 1 {
            self.stats.fragments_sent += u64::from(sent);
        }
        next
    }

    /// A heartbeat for a group, naming everything up to `last`.
    fn heartbeat(&mut self, at: usize, is_final: bool, last: i64) -> Heartbeat {
        let group = self.groups.get(at);
        let reader = group.map_or(EntityId::UNKNOWN, |group| group.sole);
        let start = group.map_or(1, |group| group.start);
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
        Heartbeat {
            reader,
            writer: self.config.guid.entity,
            first: SequenceNumber(first.min(last.saturating_add(1)).max(1)),
            last: SequenceNumber(last),
            count: self.heartbeat_count,
            is_final,
            liveliness: false,
        }
    }

    /// Serves requests, replays and heartbeats. False when the burst is over.
    fn pay_debts(&mut self, now: Instant, out: &mut Outbox, left: &mut Left) -> bool {
        for at in 0..self.readers.len() {
            if !self.repair(at, now, out, left) || !self.replay(at, now, out, left) {
                return false;
            }
        }
        if !self.send_heartbeats(out, left) {
            return false;
        }
        self.has_debts = false;
        true
    }

    /// Sends again what one reader asked for.
    fn repair(&mut self, at: usize, now: Instant, out: &mut Outbox, left: &mut Left) -> bool {
        let Some(reader) = self.readers.get(at) else {
            return true;
        };
        if !reader.has_requests() || reader.repair_at > now {
            return true;
        }
        if left.is_over(out) {
            return false;
        }
        let requested = self.declare_irrelevant(at, out, left);
        let mut rest = requested.iter();
        while let Some(sequence) = rest.next() {
            if !self.resend(at, sequence, out, left) {
                self.keep_requests(at, Some(sequence), rest);
                return false;
            }
        }
        self.keep_requests(at, None, core::iter::empty());
        if !self.repair_fragments(at, out, left) {
            return false;
        }
        if let Some(reader) = self.readers.get_mut(at) {
            reader.served_at = now;
            reader.repair_at = Instant::FAR_FUTURE;
            // Its answer tells at once whether the repair arrived.
            reader.heartbeat_due = true;
        }
        true
    }

    /// Leaves `first` and the `rest` to be sent in a later burst.
    fn keep_requests(
        &mut self,
        at: usize,
        first: Option<SequenceNumber>,
        rest: impl Iterator<Item = SequenceNumber>,
    ) {
        if let Some(reader) = self.readers.get_mut(at) {
            let base = first.unwrap_or(SequenceNumber::FIRST);
            reader.requested = SequenceSet::from_numbers(base, first.into_iter().chain(rest));
        }
    }

    /// Of what one reader asked for, declares irrelevant by one GAP what it
    /// will not get; returns what it will.
    fn declare_irrelevant(&mut self, at: usize, out: &mut Outbox, left: &mut Left) -> SequenceSet {
        let Some(reader) = self.readers.get(at) else {
            return SequenceSet::empty(SequenceNumber::FIRST);
        };
        let mut wanted = SequenceSet::empty(reader.requested.base());
        let mut gap: Option<Gap> = None;
        for sequence in reader.requested.iter() {
            let number = sequence.0;
            if number >= self.cursor.number {
                // On its way already.
                break;
            }
            let next = self.history.from(sequence);
            if next.is_some_and(|change| change.sequence == sequence && reader.wants(change)) {
                wanted.insert(sequence);
                continue;
            }
            if number <= self.lost_through && number >= reader.start {
                // The heartbeat's first number tells.
                continue;
            }
            match &mut gap {
                Some(gap) => {
                    gap.list.insert(sequence);
                }
                None => {
                    let end = match next {
                        Some(change) if change.sequence == sequence => number + 1,
                        Some(change) => change.sequence.0.min(self.cursor.number),
                        None => self.cursor.number,
                    };
                    // Below its start nothing is relevant, kept or not.
                    let end = if number < reader.start {
                        end.max(reader.start.min(self.cursor.number))
                    } else {
                        end
                    };
                    gap = Some(Gap::range(
                        reader.guid.entity,
                        self.config.guid.entity,
                        sequence,
                        SequenceNumber(end).previous(),
                    ));
                }
            }
        }
        if let Some(gap) = gap
            && let Some(group) = self.groups.get(reader.group)
        {
            let mut message = out.begin(
                self.config.guid.prefix,
                &group.route.locators,
                self.config.datagram_bytes_max,
            );
            message.info_destination(group.prefix);
            message.gap(&gap);
            left.finish(message, &mut self.stats);
            self.stats.gaps += 1;
        }
        wanted
    }

    /// Sends one change again to one reader. False when the burst is over.
    fn resend(
        &mut self,
        at: usize,
        sequence: SequenceNumber,
        out: &mut Outbox,
        left: &mut Left,
    ) -> bool {
        self.fix_fragment_size(sequence);
        let Some(reader) = self.readers.get_mut(at) else {
            return true;
        };
        let (Some(change), Some(group)) =
            (self.history.find(sequence), self.groups.get(reader.group))
        else {
            return true;
        };
        if left.is_over(out) {
            return false;
        }
        let parcel = Parcel {
            writer: self.config.guid,
            to: group,
            reader: reader.guid.entity,
            gap: None,
            heartbeat: None,
        };
        let from = reader.resume_fragment;
        let next = parcel.send(change, from, out, left, &mut self.stats);
        reader.resume_fragment = next.unwrap_or(0);
        if next.is_none() {
            self.stats.samples_resent += 1;
        }
        next.is_none()
    }

    /// Sends again the fragments that one reader asked for.
    fn repair_fragments(&mut self, at: usize, out: &mut Outbox, left: &mut Left) -> bool {
        let Some(reader) = self.readers.get_mut(at) else {
            return true;
        };
        let Some(group) = self.groups.get(reader.group) else {
            return true;
        };
        let parcel = Parcel {
            writer: self.config.guid,
            to: group,
            reader: reader.guid.entity,
            gap: None,
            heartbeat: None,
        };
        while let Some((sequence, set)) = reader.fragments.last().copied() {
            let change = self
                .history
                .find(sequence)
                .filter(|change| change.fragment_size > 0 && reader.wants(change));
            if let Some(change) = change {
                let total = fragments_total(change);
                let mut rest = set.iter().filter(|number| (1..=total).contains(&number.0));
                while let Some(number) = rest.next() {
                    if left.is_over(out) {
                        let open = core::iter::once(number).chain(rest);
                        let open = FragmentSet::from_numbers(number, open);
                        if let Some((_, set)) = reader.fragments.last_mut() {
                            *set = open;
                        }
                        return false;
                    }
                    parcel.send_fragment(change, number.0 - 1, false, out, left, &mut self.stats);
                    self.stats.fragments_resent += 1;
                }
            }
            reader.fragments.pop();
        }
        true
    }

    /// Sends kept samples to a best-effort late joiner, once.
    fn replay(&mut self, at: usize, now: Instant, out: &mut Outbox, left: &mut Left) -> bool {
        while let Some(run) = self.readers.get(at).and_then(|reader| reader.replay) {
            let next = self.history.from(SequenceNumber(run.first));
            let number = next
                .map(|change| change.sequence.0)
                .filter(|number| *number <= run.last);
            let is_wanted = next
                .zip(self.readers.get(at))
                .is_some_and(|(change, reader)| reader.wants(change) && change.expires_at > now);
            if let Some(number) = number
                && is_wanted
                && !self.resend(at, SequenceNumber(number), out, left)
            {
                return false;
            }
            let Some(reader) = self.readers.get_mut(at) else {
                return true;
            };
            reader.replay = number.and_then(|number| {
                (number < run.last).then_some(Run {
                    first: number + 1,
                    last: run.last,
                })
            });
        }
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
            if (!ask && !assert) || group.readers == 0 {
                continue;
            }
            let mut heartbeat = self.heartbeat(at, !ask, pushed);
            heartbeat.liveliness = assert;
            if !self.send_heartbeat(at, None, &heartbeat, out, left) {
                return false;
            }
            if let Some(group) = self.groups.get_mut(at) {
                group.heartbeat_due = false;
                group.assertion_due = false;
            }
        }
        for at in 0..self.readers.len() {
            let Some(reader) = self.readers.get(at).filter(|reader| reader.heartbeat_due) else {
                continue;
            };
            let (entity, start, group) = (reader.guid.entity, reader.start, reader.group);
            // Heartbeats for all readers of its process begin lower: without
            // the GAP it would take the difference for a loss.
            let gap = (start > 1 && reader.acked == start).then(|| Run {
                first: 1,
                last: start - 1,
            });
            let heartbeat = self.heartbeat_from(entity, start, false, pushed);
            if !self.send_heartbeat(group, gap, &heartbeat, out, left) {
                return false;
            }
            if let Some(reader) = self.readers.get_mut(at) {
                reader.heartbeat_due = false;
            }
        }
        true
    }

    fn send_heartbeat(
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
        if let Some(run) = gap.filter(|_| group.readers > 1) {
            message.gap(&Gap::range(
                heartbeat.reader,
                heartbeat.writer,
                SequenceNumber(run.first),
                SequenceNumber(run.last),
            ));
            self.stats.gaps += 1;
        }
        message.heartbeat(heartbeat);
        left.finish(message, &mut self.stats);
        self.stats.heartbeats += 1;
        true
    }
}
