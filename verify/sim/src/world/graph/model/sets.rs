//! The oracle of coherent sets and ordered access (I17).

use std::collections::{BTreeMap, BTreeSet};

use pteros_rtps::qos::Durability;

use super::Model;
use super::matching::{is_lossless, is_reliable};
use super::records::{ReaderRecord, WriterRecord, matched};

/// A reader of ordered access waits 5 s for a sample. It may stop waiting before the next
/// look at the flow controllers, which follows within 1.5 s.
const LATE_AFTER: u64 = 3_500_000_000;

impl Model {
    /// Notes whether a reader may stop waiting for a sample of a flow controller before the
    /// next look.
    pub fn note_late_flows(&mut self, now: u64) {
        self.flow_was_late = self.flow_was_late || self.has_late_flow(now);
    }

    fn has_late_flow(&self, now: u64) -> bool {
        let mut controlled = self.living_writers().filter(|(_, w)| w.flow_controlled);
        controlled.any(|(_, writer)| {
            let readers = matched(&writer.peers).filter(|(peer, _)| !self.is_attacker(**peer));
            let mut written = readers.filter_map(|(peer, _)| {
                let number = writer.endpoint.first_unacknowledged(*peer)?;
                writer
                    .times
                    .get(usize::try_from(number.0).ok()?.checked_sub(1)?)
            });
            written.any(|at| at + LATE_AFTER <= now)
        })
    }

    /// Records an accepted message in the open set of its writer.
    pub fn record_in_set(&mut self, w: usize, number: u64) {
        self.orders += 1;
        self.writers[w].orders.push(self.orders);
        let group = self.writers[w].group.map(|group| &self.groups[group]);
        if let Some(set) = group.and_then(|group| group.open) {
            self.sets[set].messages.push((w, number));
            self.writers[w].in_set.insert(number, set);
        }
    }

    /// Whether a late joiner may be unable to complete a set: its writers are no longer
    /// those of its group, so discovery does not show those that the set names, or its
    /// samples expire (seed 1002004097).
    pub fn is_hidden_from_late_joiners(&self, set: usize) -> bool {
        let members = &self.sets[set].members;
        let Some(first) = members.first() else {
            return false;
        };
        let expires = |w: &usize| !self.writers[*w].endpoint.data.qos.lifespan.is_infinite();
        let group = self.writers[*first].group;
        let all = self.writers.iter().enumerate();
        let present = all.filter(|(_, writer)| writer.group == group && !writer.gone);
        members.iter().any(expires) || !present.map(|(w, _)| w).eq(members.iter().copied())
    }

    /// I17: the set of a taken message has ended, and no later message of its group
    /// was taken before.
    pub fn check_set_member(&mut self, r: usize, w: usize, number: u64) -> Option<String> {
        let (reader, writer) = (&self.readers[r], &self.writers[w]);
        if !reader.holds_samples() {
            return None;
        }
        let set = writer.in_set.get(&number).map(|set| &self.sets[*set]);
        self.in_sets += u64::from(set.is_some());
        if set.is_some_and(|set| !set.ended) {
            return Some(format!(
                "I17 r{r}: w{w} number {number} of a set that is still open"
            ));
        }
        let group = writer.group?;
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        let order = *writer.orders.get(index)?;
        let is_of_group = |guid| {
            let of = self.by_guid.get(guid).map(|w| self.writers[*w].group);
            of == Some(Some(group))
        };
        // After a new match a writer may start over.
        let again = reader
            .peers
            .iter()
            .any(|(guid, peer_match)| peer_match.epochs > 1 && is_of_group(guid));
        let ordered = reader.endpoint.data.qos.presentation.orders_group() && !again;
        let last = self.readers[r].orders.entry(group).or_default();
        let before = std::mem::replace(last, (*last).max(order));
        (ordered && order < before)
            .then(|| format!("I17 r{r}: w{w} number {number} after a later message of its group"))
    }

    /// I17: a reader got each set completely or not at all, and counted every set
    /// that it missed.
    pub fn check_completeness(&self, r: usize, reader: &ReaderRecord) -> Option<String> {
        let of_group = reader.endpoint.data.qos.presentation.is_of_group();
        let limited = reader
            .endpoint
            .data
            .qos
            .resource_limits
            .max_samples
            .is_some();
        let mut missed = 0;
        for set in &self.sets {
            // Per writer, or for the group together with group access.
            let mut seen = BTreeSet::new();
            let writers: BTreeSet<usize> = set.messages.iter().map(|(w, _)| *w).collect();
            let mut is_due = set.ended;
            for w in writers {
                let writer = &self.writers[w];
                let sent: Vec<i64> = set.of(w).filter_map(|n| i64::try_from(n).ok()).collect();
                let passes = |n: &i64| reader.passes_filter(w, *n);
                let wanted: Vec<i64> = sent.iter().copied().filter(passes).collect();
                // A set that began before the match is incomplete, whatever the filter
                // of the reader would have held back of it (seed 50246).
                let Some(first) = sent.first().filter(|_| !wanted.is_empty()) else {
                    continue;
                };
                let Some(steady) = reader.steadily_matched(writer, *first) else {
                    continue;
                };
                let taken_samples = reader.numbers_taken_from(writer.endpoint.guid());
                let came = wanted.iter().filter(|n| taken_samples.contains(n)).count();
                if came > 0 && came < wanted.len() {
                    return Some(format!("I17 r{r}: {came} of the set {wanted:?} of w{w}"));
                }
                let offered = &writer.endpoint.data.qos;
                let lossless = is_lossless(offered, &reader.endpoint.data.qos);
                if steady {
                    seen.insert(came > 0);
                }
                is_due &= steady && lossless;
                if set.ended && steady && lossless && came == 0 && !of_group {
                    if !limited {
                        return Some(format!("I17 r{r}: never got the set {wanted:?} of w{w}"));
                    }
                    missed += 1;
                }
            }
            if of_group && seen.len() > 1 {
                return Some(format!(
                    "I17 r{r}: got a part of the set {:?}",
                    set.messages
                ));
            }
            missed += u64::from(of_group && is_due && seen.contains(&false));
        }
        let counted = reader.endpoint.counts().incomplete_sets;
        (missed > counted)
            .then(|| format!("I17 r{r}: {missed} sets are missing, {counted} are counted"))
    }

    /// I17: ordered access loses no message outside of sets, unless a writer was
    /// unreachable or sent late for longer than the reader waits.
    pub fn check_order(
        &self,
        r: usize,
        reader: &ReaderRecord,
        has_long_waits: bool,
    ) -> Option<String> {
        let requested = &reader.endpoint.data.qos;
        if !requested.presentation.orders_group() {
            return None;
        }
        let mut missed = 0;
        for (w, writer) in self.writers.iter().enumerate().filter(|(_, w)| !w.gone) {
            let Some(peer_match) = writer.peers.get(&reader.endpoint.data.guid) else {
                continue;
            };
            let since = i64::try_from(peer_match.since).unwrap_or(i64::MAX);
            let has_only_live_readers = reader.steadily_matched(writer, since) == Some(true);
            if !has_only_live_readers || !is_lossless(&writer.endpoint.data.qos, requested) {
                continue;
            }
            let taken_samples = reader.numbers_taken_from(writer.endpoint.guid());
            let is_loose = |n: &u64| !writer.in_set.contains_key(n) && !writer.set_ends.contains(n);
            let loose = (peer_match.since..=writer.written).filter(is_loose);
            let loose = loose.filter_map(|n| i64::try_from(n).ok());
            let is_missed = |n: &i64| reader.passes_filter(w, *n) && !taken_samples.contains(n);
            missed += loose.filter(is_missed).count() as u64;
        }
        let late = reader.endpoint.counts().late;
        let in_time = !has_long_waits && self.has_timely_order_info(reader);
        if late > 0 && in_time {
            return Some(format!("I17 r{r}: {late} samples came too late"));
        }
        let excused = if in_time { 0 } else { late };
        (missed > excused).then(|| {
            format!("I17 r{r}: never got {missed} messages outside of sets, {late} came too late")
        })
    }

    /// Whether all writers of a reader announce their position in the group's
    /// order, and no old sample arrives, as after a late match within the group
    /// (seed 3168). A writer that died before it could send a lost sample again is
    /// silent for longer than the reader waits (seed 70714).
    fn has_timely_order_info(&self, reader: &ReaderRecord) -> bool {
        let requested = &reader.endpoint.data.qos;
        let mut met = BTreeMap::new();
        let mut writers = reader.peers.iter().map(|(guid, peer_match)| {
            let index = self.by_guid.get(guid).copied();
            let writer = index.map(|w| &self.writers[w]);
            let group = writer.and_then(|writer| writer.group);
            let is_met_at_once = *met.entry(group).or_insert(peer_match.at) == peer_match.at;
            let is_told = |w: &WriterRecord| is_reliable(&w.endpoint.data.qos, requested);
            peer_match.epochs == 1
                && is_met_at_once
                && writer.is_some_and(is_told)
                && index.is_some_and(|w| !self.died_with_samples(reader, w))
        });
        requested.durability == Durability::Volatile && writers.all(|reported| reported)
    }

    /// Whether the writer `w` is gone and the reader misses a sample of it.
    fn died_with_samples(&self, reader: &ReaderRecord, w: usize) -> bool {
        let writer = &self.writers[w];
        let Some(peer_match) = writer.peers.get(&reader.endpoint.data.guid) else {
            return writer.gone;
        };
        let taken = reader.numbers_taken_from(writer.endpoint.guid());
        let written = (peer_match.since..=writer.written).filter_map(|n| i64::try_from(n).ok());
        let is_set_end = |n: i64| u64::try_from(n).is_ok_and(|n| writer.set_ends.contains(&n));
        let mut wanted = written.filter(|n| reader.passes_filter(w, *n) && !is_set_end(*n));
        writer.gone && wanted.any(|n| !taken.contains(&n))
    }
}
