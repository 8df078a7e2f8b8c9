//! Endpoint matching of a writer: adds and removes readers (RTPS 2.5 §8.4.7.4).

use alloc::sync::Arc;

use super::Writer;
use super::config::ReaderProxyConfig;
use super::matched_readers::MatchedReaders;
use super::proxy::ReaderProxy;
use super::send_cursor::SendCursor;
use super::stall_checks::schedule_stall_check;
use crate::content_filter::ContentFilter;
use crate::id::{Guid, VendorId};
use crate::interval::NumberRun;
use crate::locator::Route;
use crate::qos::{self, Durability, Reliability};
use crate::seq::SequenceNumber;
use crate::time::Instant;

impl Writer {
    /// The matched readers.
    pub fn readers(&self) -> &MatchedReaders {
        &self.matched
    }

    /// The matched readers, to share a retransmission window with them.
    pub fn readers_mut(&mut self) -> &mut MatchedReaders {
        &mut self.matched
    }

    /// Matches a reader, or updates the route and filter of a matched one. False
    /// when the limit of readers is reached.
    ///
    /// A volatile reader gets later changes only. A transient-local late joiner
    /// first gets the history; a Pteros reader, whose depth is known, gets no more
    /// than that depth.
    pub fn match_reader(&mut self, now: Instant, mut config: ReaderProxyConfig) -> bool {
        self.clock = now;
        if self.matched.contains(config.guid) {
            self.update_route(config.guid, config.route);
            self.set_content_filter(config.guid, config.content_filter);
            return true;
        }
        if self.matched.len() >= self.config.limits.readers_max {
            return false;
        }
        let is_filtered = config.content_filter.is_some();
        config.content_filter = self
            .matched
            .accept_filter(config.guid, config.content_filter.take());
        let next_number = self.cache.last.next().0;
        let wants_history = self.config.keeps_for_late_joiners()
            && config.qos.durability >= Durability::TransientLocal;
        let kept = if wants_history {
            let depth = match config.qos.history {
                qos::History::KeepLast(depth)
                    if config.vendor == VendorId::PTEROS && !config.guid.entity.is_keyed() =>
                {
                    usize::try_from(depth.max(1)).unwrap_or(usize::MAX)
                }
                _ => usize::MAX,
            };
            match &config.content_filter {
                // A reader of coherent sets takes a missing number for a loss.
                Some(filter) if !config.qos.presentation.holds_samples() => {
                    let filtered = &mut self.stats.filtered;
                    self.cache
                        .history
                        .filter_for_late_joiner(config.guid, filter, depth, filtered)
                }
                filter => {
                    // A reader that filters by itself finds the last samples that
                    // pass.
                    let filters_by_itself = is_filtered && filter.is_none();
                    let depth = if filters_by_itself { usize::MAX } else { depth };
                    let start = self.cache.history.first_of_last(depth);
                    start.map(|s| (s.0, self.matched.last_undirected))
                }
            }
        } else {
            None
        };
        let (start, last_passing) = kept.unwrap_or((next_number, 0));
        let reliable = self.config.qos.reliability == Reliability::Reliable
            && config.qos.reliability == Reliability::Reliable;
        let form = config.payload_form;
        let destination = self.matched.join_destination(
            config.guid.prefix,
            (&config.route, form),
            &self.config.heartbeat,
            &mut self.transmission,
        );
        if let Some(destination) = self.matched.destinations.get_mut(destination) {
            destination.is_pteros = config.vendor == VendorId::PTEROS;
        }
        let mut reader = ReaderProxy::new(&config, reliable, destination, start);
        reader.starts_at_match = !wants_history;
        reader.last_directed = last_passing;
        reader.history_end = next_number;
        let pushed = self.transmission.cursor.number.saturating_sub(1);
        if reliable {
            reader.heartbeat_due = true;
            self.transmission.pending.any = true;
            if start < next_number {
                self.matched.all_acked = false;
                schedule_stall_check(now, &mut self.timers);
                let config = &self.config.heartbeat;
                let at = now.after(config.period);
                self.matched
                    .schedule_heartbeat_to(destination, at, config, &mut self.timers);
            }
        } else if start <= pushed {
            reader.replay = Some(NumberRun {
                first: start,
                last: pushed,
            });
            self.transmission.pending.any = true;
        }
        self.matched.proxies.push(reader);
        self.matched.count_filters();
        self.update_destinations();
        true
    }

    /// Suppresses the heartbeat for a reader just matched, while nothing was
    /// written. For a reader that already knows this writer and sends no preemptive
    /// ACKNACK.
    pub fn suppress_initial_heartbeat(&mut self, guid: Guid) {
        let is_new = self.cache.last.0 == 0;
        if let Some(reader) = self.matched.proxies.find_mut(guid).filter(|_| is_new) {
            reader.heartbeat_due = false;
        }
    }

    /// Unmatches a reader. Changes that only it still needed are dropped.
    pub fn unmatch_reader(&mut self, guid: Guid) {
        if let Some(reader) = self.matched.proxies.find_mut(guid) {
            reader.progress.end_stall(true, guid, &mut self.events);
        }
        self.matched.proxies.remove(guid);
        if self.matched.counts.filtered > 0 {
            self.cache.history.forget_filter_of(guid);
            self.matched.count_filters();
        }
        self.update_destinations();
        if self.matched.is_empty() {
            let sent = SequenceNumber(self.transmission.cursor.number);
            self.transmission.cursor = SendCursor::at(self.cache.last.next().0);
            self.drop_surplus(sent);
        }
        self.prune();
    }

    /// Changes the route to a reader.
    pub fn update_route(&mut self, guid: Guid, route: Route) {
        let Some(old) = self
            .matched
            .proxies
            .find_mut(guid)
            .map(|reader| reader.destination)
        else {
            return;
        };
        let form = self
            .matched
            .destinations
            .get(old)
            .and_then(|old| old.payload_form);
        let destination = self.matched.join_destination(
            guid.prefix,
            (&route, form),
            &self.config.heartbeat,
            &mut self.transmission,
        );
        let old = self.matched.destinations.get(old);
        let known = old.map(|old| (old.pending_gap, old.is_pteros));
        if let Some(new) = self
            .matched
            .destinations
            .get_mut(destination)
            .filter(|new| new.readers == 0)
            && let Some((undeclared, is_pteros)) = known
        {
            new.pending_gap = undeclared;
            new.is_pteros = is_pteros;
        }
        if let Some(reader) = self.matched.proxies.find_mut(guid) {
            reader.destination = destination;
        }
        self.update_destinations();
        if !self.matched.all_acked {
            let config = &self.config.heartbeat;
            let at = self.clock.after(config.period);
            self.matched
                .schedule_heartbeat_to(destination, at, config, &mut self.timers);
        }
    }

    /// Sets the filter that a matched reader announced, or removes it.
    pub fn set_content_filter(&mut self, reader: Guid, filter: Option<Arc<ContentFilter>>) {
        self.matched.set_content_filter(reader, filter);
    }

    /// Updates the destinations' summaries of their readers.
    pub(super) fn update_destinations(&mut self) {
        if self.matched.update_destinations() {
            self.request_acks_by(self.clock.after(self.config.heartbeat.period));
        }
    }
}
