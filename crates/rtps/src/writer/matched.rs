//! Readers come and go; those of one participant that are reached the same way
//! share a group, worked out here and never per write.

use super::Writer;
use super::config::ReaderProxyConfig;
use super::proxy::{Group, ReaderProxy};
use super::transmit::Cursor;
use crate::id::{EntityId, Guid, GuidPrefix, VendorId};
use crate::interval::Run;
use crate::locator::Route;
use crate::qos::{self, Durability, Reliability};
use crate::stats::Tally;
use crate::time::Instant;

impl Writer {
    /// Begins to send to a reader; again with one that is matched, only its
    /// route and filter are taken over. False when the limit of readers is reached.
    ///
    /// A volatile reader gets what is written from now on. A transient-local
    /// one first gets what is kept; one of this stack, whose depth we know,
    /// gets no more than that depth.
    pub fn match_reader(&mut self, now: Instant, mut config: ReaderProxyConfig) -> bool {
        self.clock = now;
        if self.reader_mut(config.guid).is_some() {
            self.update_route(config.guid, config.route);
            self.set_content_filter(config.guid, config.content_filter);
            return true;
        }
        if self.readers.len() >= self.config.limits.readers_max {
            return false;
        }
        let is_filtered = config.content_filter.is_some();
        config.content_filter = self.admit_filter(config.guid, config.content_filter.take());
        let news = self.last.next().0;
        let wants_history =
            self.keeps_for_late_joiners() && config.qos.durability >= Durability::TransientLocal;
        let wants_history = (wants_history || fault!("volatile-reader-gets-history"))
            && !fault!("late-joiner-gets-no-history");
        let kept = if wants_history {
            let depth = match config.qos.history {
                qos::History::KeepLast(depth)
                    if config.vendor == VendorId::PTEROS && !config.guid.entity.is_keyed() =>
                {
                    let depth = depth
                        .saturating_sub(u32::from(depth > 1 && fault!("late-joiner-gets-too-few")));
                    usize::try_from(depth.max(1)).unwrap_or(usize::MAX)
                }
                _ => usize::MAX,
            };
            match &config.content_filter {
                // Whoever holds sets together sees a hole where a number is missing.
                Some(filter) if !config.qos.presentation.holds_samples() => {
                    self.judge_history(config.guid, filter, depth)
                }
                filter => {
                    // Who filters for itself finds the last so many that pass.
                    let finds_them = is_filtered && filter.is_none();
                    let depth = if finds_them { usize::MAX } else { depth };
                    let start = self.history.start_of_last(depth);
                    start.map(|s| (s.0, self.last_shared))
                }
            }
        } else {
            None
        };
        let (start, last_wanted) = kept.unwrap_or((news, 0));
        let reliable = self.config.qos.reliability == Reliability::Reliable
            && config.qos.reliability == Reliability::Reliable;
        let group = self.join_group(config.guid.prefix, &config.route);
        if let Some(group) = self.groups.get_mut(group) {
            group.is_ours = config.vendor == VendorId::PTEROS;
        }
        let mut reader = ReaderProxy::new(&config, reliable, group, start);
        reader.begins_now = !wants_history;
        reader.last_directed = last_wanted;
        let pushed = self.cursor.number.saturating_sub(1);
        if reliable {
            reader.heartbeat_due = true;
            self.has_debts = true;
            if start < news {
                self.all_acked = false;
                self.ask_group(group, now.after(self.config.heartbeat.first));
            }
        } else if start <= pushed {
            reader.replay = Some(Run {
                first: start,
                last: pushed,
            });
            self.has_debts = true;
        }
        self.readers.push(reader);
        self.count_filters();
        self.recount();
        true
    }

    /// A reader just matched knows of us and of our match, and asks for nothing
    /// by itself: while nothing was written, it need not be told so.
    pub fn meet_quietly(&mut self, guid: Guid) {
        let is_new = self.last.0 == 0;
        if let Some(reader) = self.reader_mut(guid).filter(|_| is_new) {
            reader.heartbeat_due = false;
        }
    }

    /// Stops sending to a reader. What only it still needed is dropped.
    pub fn unmatch_reader(&mut self, guid: Guid) {
        self.readers
            .retain(|reader| reader.guid != guid || fault!("gone-reader-not-forgotten"));
        if self.filtered_readers > 0 {
            self.forget_filter_of(guid);
        }
        self.recount();
        if self.readers.is_empty() {
            self.cursor = Cursor::at(self.last.next().0);
        }
        self.prune();
    }

    /// Sends to a reader elsewhere from now on.
    pub fn update_route(&mut self, guid: Guid, route: Route) {
        let Some(old) = self.reader_mut(guid).map(|reader| reader.group) else {
            return;
        };
        let group = self.join_group(guid.prefix, &route);
        let old = self.groups.get(old);
        let known = old.map(|old| (old.skipped, old.is_ours));
        if let Some(new) = self.groups.get_mut(group).filter(|new| new.readers == 0)
            && let Some((undeclared, is_ours)) = known
        {
            new.skipped = undeclared;
            new.is_ours = is_ours;
        }
        if let Some(reader) = self.reader_mut(guid) {
            reader.group = group;
        }
        self.recount();
        if !self.all_acked {
            self.ask_group(group, self.clock.after(self.config.heartbeat.first));
        }
    }

    /// The group of this destination, made if need be.
    pub(super) fn join_group(&mut self, prefix: GuidPrefix, route: &Route) -> usize {
        let same = |group: &Group| group.prefix == prefix && group.route == *route;
        if let Some(at) = self.groups.iter().position(same) {
            self.hand_out_skipped(at);
            return at;
        }
        let group = Group::new(prefix, route.clone(), &self.config.heartbeat);
        // A freed place may lie behind the cursor, and then would miss the
        // change being pushed: only a new one is safe.
        if self.cursor.group == 0
            && let Some(at) = self.groups.iter().position(|group| group.readers == 0)
            && let Some(place) = self.groups.get_mut(at)
        {
            *place = group;
            return at;
        }
        self.groups.push(group);
        self.groups.len().saturating_sub(1)
    }

    /// Somebody joins a group: what was not meant for the others is declared
    /// irrelevant to each of them alone, for the newcomer may want it.
    fn hand_out_skipped(&mut self, at: usize) {
        let Some(run) = self.groups.get_mut(at).and_then(|g| g.skipped.take()) else {
            return;
        };
        for reader in self.readers.iter_mut().filter(|reader| reader.group == at) {
            // Reliable readers ask for what they are not told.
            reader.skipped.get_or_insert(run);
            self.has_debts = true;
        }
    }

    /// Brings what groups know of their readers up to date.
    pub(super) fn recount(&mut self) {
        for group in &mut self.groups {
            group.readers = 0;
            group.reliable = 0;
            group.unheard = 0;
            group.silence = None;
            group.start = i64::MAX;
            group.hears_ends = false;
        }
        self.reliable_readers = 0;
        self.linked_readers = 0;
        let mut by_socket = 0_usize;
        for reader in &self.readers {
            let Some(group) = self.groups.get_mut(reader.group) else {
                continue;
            };
            group.readers.tally();
            group.sole = if group.readers == 1 {
                reader.guid.entity
            } else {
                EntityId::UNKNOWN
            };
            group.reliable.tally_by(reader.reliable.into());
            group.unheard.tally_by(reader.is_unheard().into());
            group.start = group.start.min(reader.start);
            group.hears_ends |= reader.hears_ends;
            self.reliable_readers.tally_by(reader.reliable.into());
            let is_linked = group.route.is_shared_memory();
            self.linked_readers.tally_by(is_linked.into());
            by_socket.tally_by((reader.reliable && (!is_linked || reader.is_unheard())).into());
        }
        self.note_linked(self.reliable_readers > 0 && by_socket == 0);
        let readers = &self.readers;
        for (at, group) in self.groups.iter_mut().enumerate() {
            let here = || readers.iter().filter(move |r| r.group == at && r.reliable);
            let is_silent = here().all(|reader| reader.is_unheard() && reader.begins_now);
            group.silence = match is_silent {
                true => here().map(|reader| reader.start.saturating_sub(1)).min(),
                false => None,
            };
        }
        for group in self.groups.iter_mut().filter(|group| group.readers == 0) {
            // Whoever comes here next is told nothing of what was before.
            group.skipped = None;
            group.heartbeat_due = false;
        }
        while self.groups.last().is_some_and(|group| group.readers == 0) {
            self.groups.pop();
        }
    }

    pub(super) fn reader_mut(&mut self, guid: Guid) -> Option<&mut ReaderProxy> {
        self.readers.iter_mut().find(|reader| reader.guid == guid)
    }
}
