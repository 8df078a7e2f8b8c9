//! Heartbeats of a writer: when each destination gets the next one, and what it says
//! (RTPS 2.5 §8.4.7.1, heartbeatPeriod; §8.3.8.6).
//!
//! A heartbeat requests acknowledgements that have not come. Every destination has
//! its own back-off, because a slow or dead one must not slow down the others.
//! Heartbeats continue while a sample is not acknowledged (§8.4.2.2.3).

use super::ack_requests::AckRequests;
use super::burst_writer::BurstWriter;
use super::config::{HeartbeatConfig, WriterConfig};
use super::group_info::GroupInfo;
use super::matched_readers::MatchedReaders;
use super::pending_sends::PendingSends;
use super::proxy::Destination;
use super::reader_counts::ReaderCounts;
use super::reader_reset::ReaderResetDetector;
use super::send_cursor::SendCursor;
use super::timers::{TIMER_HEARTBEAT, TIMER_RESET_PROBE, WriterTimers};
use super::writer_cache::WriterCache;
use crate::id::EntityId;
use crate::interval::NumberRun;
use crate::seq::SequenceNumber;
use crate::time::Instant;
use crate::wire::Heartbeat;

/// The heartbeats of one writer.
#[derive(Debug)]
pub(super) struct Heartbeats {
    pub ack_requests: AckRequests,
    pub group_info: GroupInfo,
}

/// The changes that a heartbeat names, and how far they are sent.
#[derive(Clone, Copy)]
pub(super) struct HeartbeatSource<'a> {
    pub writer: EntityId,
    pub cache: &'a WriterCache,
    pub cursor: &'a SendCursor,
}

impl<'a> HeartbeatSource<'a> {
    pub fn new(config: &WriterConfig, cache: &'a WriterCache, cursor: &'a SendCursor) -> Self {
        Self {
            writer: config.guid.entity,
            cache,
            cursor,
        }
    }
}

impl Heartbeats {
    /// Nothing was sent.
    pub const NONE: Self = Self {
        ack_requests: AckRequests::NONE,
        group_info: GroupInfo::NONE,
    };

    /// Marks a heartbeat as due for every destination with unacknowledged changes
    /// whose time has come, and schedules its next one after a longer pause.
    ///
    /// `sent`: the last number sent. `is_blocked`: a write waits for acknowledgements.
    /// True if one is due.
    pub fn schedule_due(
        &mut self,
        now: Instant,
        config: &HeartbeatConfig,
        (sent, is_blocked): (i64, bool),
        matched: &mut MatchedReaders,
        timers: &mut WriterTimers,
    ) -> bool {
        let mut is_due = false;
        // Unsent changes need no acknowledgement.
        let shared = matched.last_undirected.min(sent);
        let is_new_data_due = self.ack_requests.new_data_at <= now;
        let mut next = if !is_new_data_due {
            self.ack_requests.new_data_at
        } else if sent < matched.last_undirected {
            // Unsent changes remain: readers owe acknowledgements soon after.
            now.after(config.period)
        } else {
            Instant::FAR_FUTURE
        };
        self.ack_requests.new_data_at = next;
        for reader in matched.proxies.iter_mut() {
            if !reader.has_unacked(shared) {
                continue;
            }
            let Some(destination) = matched.destinations.get_mut(reader.destination) else {
                continue;
            };
            let has_acknowledged = destination.unconfirmed == 0;
            let heartbeat_schedule = &mut destination.heartbeat_schedule;
            if heartbeat_schedule.requested_through < shared && is_new_data_due {
                heartbeat_schedule.requested_through = shared;
                heartbeat_schedule.reset(config, has_acknowledged);
                heartbeat_schedule.next_at = now;
            }
            if heartbeat_schedule.next_at <= now {
                heartbeat_schedule.next_at = now.after(heartbeat_schedule.backoff.delay());
                if !destination.heartbeat_due {
                    heartbeat_schedule.unanswered = heartbeat_schedule.unanswered.saturating_add(1);
                }
                destination.heartbeat_due = true;
                is_due = true;
                // A blocked write must not wait longer.
                let period_max = if is_blocked {
                    config.period_max
                } else {
                    config.period_max_after(heartbeat_schedule.unanswered)
                };
                heartbeat_schedule.backoff.advance(period_max);
            }
            next = next.min(heartbeat_schedule.next_at);
        }
        timers.set(TIMER_HEARTBEAT, next);
        is_due
    }

    /// Requests acknowledgement of the newest changes at `at`, or earlier.
    pub fn schedule_for_new_data(&mut self, at: Instant, timers: &mut WriterTimers) {
        self.ack_requests.new_data_at = self.ack_requests.new_data_at.min(at);
        timers.set_no_later(TIMER_HEARTBEAT, at);
    }

    /// Notes that a datagram requested acknowledgement up to `requested_through`
    /// from a destination. The next heartbeat follows when one for new data is due.
    pub fn note_ack_requested(
        &mut self,
        now: Instant,
        config: &HeartbeatConfig,
        destination: &mut Destination,
        requested_through: i64,
        timers: &mut WriterTimers,
    ) {
        // The heartbeat for new data may have been scheduled meanwhile.
        let next = match self.ack_requests.new_data_at {
            Instant::FAR_FUTURE => now.after(config.period),
            at => at,
        };
        destination.reset_heartbeat_backoff(config);
        destination.heartbeat_schedule.requested_through = destination
            .heartbeat_schedule
            .requested_through
            .max(requested_through);
        destination.heartbeat_schedule.next_at = next;
        destination.round_trip.note_sent(now, requested_through);
        timers.set_no_later(TIMER_HEARTBEAT, next);
    }

    /// Requests acknowledgements at `at`, or earlier, unless there is nothing to
    /// acknowledge.
    pub fn request_acks_by(
        &mut self,
        at: Instant,
        matched: &mut MatchedReaders,
        timers: &mut WriterTimers,
    ) {
        if matched.all_acked {
            return;
        }
        for destination in &mut matched.destinations {
            destination.heartbeat_schedule.next_at = destination.heartbeat_schedule.next_at.min(at);
        }
        self.schedule_for_new_data(at, timers);
    }

    /// Stops all heartbeats: everything is acknowledged.
    pub fn stop(&mut self, matched: &mut MatchedReaders, timers: &mut WriterTimers) {
        for destination in &mut matched.destinations {
            destination.heartbeat_schedule.next_at = Instant::FAR_FUTURE;
        }
        self.ack_requests.new_data_at = Instant::FAR_FUTURE;
        timers.stop(TIMER_HEARTBEAT);
        matched.stop_stall_checks(timers);
    }

    /// Whether the heartbeat with this change requests acknowledgements.
    pub fn decide_ack_request(
        &mut self,
        now: Instant,
        number: i64,
        config: &WriterConfig,
        counts: &ReaderCounts,
        cache: &WriterCache,
        timers: &mut WriterTimers,
    ) -> bool {
        if counts.reliable == 0 {
            return false;
        }
        let bytes = cache
            .history
            .find(SequenceNumber(number))
            .map_or(0, |change| change.payload.len());
        // With shared memory the first sample is acknowledged without a request.
        let before = self.ack_requests.bytes();
        self.ack_requests.count(bytes);
        let trusts = counts.expects_unsolicited_acks(cache.retention.blocked);
        let bytes_since_ack_request = if trusts {
            before
        } else {
            self.ack_requests.bytes()
        };
        let half_full =
            config.is_keep_all() && cache.history.samples() >= cache.retention.samples_max / 2;
        let requests_ack = self.ack_requests.samples() >= config.heartbeat.ack_request_samples
            || bytes_since_ack_request >= config.heartbeat.ack_request_bytes
            || cache.retention.blocked
            || half_full
            // The next write may be far away: this saves a separate heartbeat.
            || (self.ack_requests.is_first_after_idle && !trusts)
            // It replaces the separate heartbeat that is due soon.
            || timers.at(TIMER_HEARTBEAT) <= now.after(config.heartbeat.piggyback_window());
        self.ack_requests.is_first_after_idle &= !requests_ack;
        if requests_ack {
            self.ack_requests.restart();
            let pause = if trusts {
                config.heartbeat.shared_memory_period
            } else if bytes >= config.heartbeat.ack_request_bytes {
                config.heartbeat.period_after_large
            } else {
                config.heartbeat.period
            };
            self.ack_requests.new_data_at = now.after(pause);
            timers.set(TIMER_HEARTBEAT, self.ack_requests.new_data_at);
        }
        requests_ack
    }

    /// The heartbeat before a change, instead of behind it, while some reader has
    /// never answered. The heartbeat sent on matching may have arrived before that
    /// reader matched the writer. See [`Destination::announce`].
    pub fn leading_heartbeat(
        &mut self,
        destination: Option<&Destination>,
        number: i64,
        of: HeartbeatSource<'_>,
    ) -> Option<Heartbeat> {
        let unconfirmed = destination.is_some_and(|destination| destination.unconfirmed > 0);
        (unconfirmed && of.cursor.fragment == 0)
            .then(|| self.heartbeat(destination, false, number.saturating_sub(1), of))
    }

    /// A heartbeat for a destination, naming everything up to `last`.
    pub fn heartbeat(
        &mut self,
        destination: Option<&Destination>,
        is_final: bool,
        last: i64,
        of: HeartbeatSource<'_>,
    ) -> Heartbeat {
        let Some(destination) = destination else {
            return self.heartbeat_from((EntityId::UNKNOWN, 1), is_final, last, of);
        };
        let to = (destination.sole_reader, destination.start);
        self.heartbeat_from(to, is_final, destination.announce(last), of)
    }

    /// A heartbeat for readers whose first relevant number is `start`.
    pub fn heartbeat_from(
        &mut self,
        (reader, start): (EntityId, i64),
        is_final: bool,
        last: i64,
        of: HeartbeatSource<'_>,
    ) -> Heartbeat {
        let lost_through = of.cache.retention.lost_through;
        let count = self.ack_requests.next_heartbeat_count();
        let group_info = self.group_info_up_to(last.max(lost_through), of);
        // A reader that matched while samples are held back begins after those, too.
        let before = start.saturating_sub(1).max(lost_through);
        let last = last.max(before);
        let first = before.saturating_add(1);
        Heartbeat {
            reader,
            writer: of.writer,
            first: SequenceNumber(first.min(last.saturating_add(1)).max(1)),
            last: SequenceNumber(last.max(0)),
            count,
            is_final,
            liveliness: false,
            group_info,
        }
    }

    /// Sends the due heartbeats of destinations and single readers.
    /// False when the burst is over.
    pub fn send_due(
        &mut self,
        matched: &mut MatchedReaders,
        of: HeartbeatSource<'_>,
        burst: &mut BurstWriter<'_>,
    ) -> bool {
        let pushed = of.cursor.number.saturating_sub(1);
        for destination in &mut matched.destinations {
            let (requests_ack, assert) = (destination.heartbeat_due, destination.assertion_due);
            if (!requests_ack && !assert && !destination.group_info_due) || destination.readers == 0
            {
                continue;
            }
            // Readers would request numbers that no sample has declared irrelevant.
            let gap = destination
                .pending_gap
                .filter(|_| destination.announce_max.is_none());
            let mut heartbeat = self.heartbeat(Some(destination), !requests_ack, pushed, of);
            heartbeat.liveliness = assert;
            if !burst.send_heartbeat(destination, gap, &heartbeat) {
                return false;
            }
            if gap.is_some() {
                destination.pending_gap = None;
            }
            destination.heartbeat_due = false;
            destination.assertion_due = false;
            destination.group_info_due = false;
        }
        for reader in matched.proxies.iter_mut().filter(|of| of.heartbeat_due) {
            let destination = matched.destinations.get(reader.destination);
            let start = reader.start;
            // Heartbeats for all readers of its participant begin lower: without
            // the GAP it would count the difference as lost.
            let is_sole_reader = destination.is_none_or(|destination| destination.readers == 1);
            let gap = (start > 1 && reader.acked == start && !is_sole_reader).then(|| NumberRun {
                first: 1,
                last: start.saturating_sub(1),
            });
            let last = destination.map_or(pushed, |destination| destination.announce(pushed));
            let heartbeat = self.heartbeat_from((reader.guid.entity, start), false, last, of);
            let Some(destination) = destination else {
                if burst.is_exhausted() {
                    return false;
                }
                reader.heartbeat_due = false;
                continue;
            };
            if !burst.send_heartbeat(destination, gap, &heartbeat) {
                return false;
            }
            reader.heartbeat_due = false;
        }
        true
    }

    /// Sends only the due liveliness assertions.
    pub fn send_assertions(
        &mut self,
        matched: &mut MatchedReaders,
        of: HeartbeatSource<'_>,
        burst: &mut BurstWriter<'_>,
    ) {
        let sent = of.cursor.number.saturating_sub(1);
        let due =
            |destination: &&mut Destination| destination.assertion_due && destination.readers > 0;
        for destination in matched.destinations.iter_mut().filter(due) {
            let mut heartbeat = self.heartbeat(Some(destination), true, sent, of);
            heartbeat.liveliness = true;
            if !burst.send_heartbeat(destination, None, &heartbeat) {
                return;
            }
            destination.assertion_due = false;
        }
    }
}

impl MatchedReaders {
    /// Requests the state of readers that are suspected of a reset.
    pub(super) fn probe_suspected_resets(
        &mut self,
        now: Instant,
        pending: &mut PendingSends,
        timers: &mut WriterTimers,
    ) {
        let mut next = Instant::FAR_FUTURE;
        for reader in self.proxies.iter_mut() {
            if ReaderResetDetector::probe(&mut reader.reset_detector, now) {
                reader.heartbeat_due = true;
                pending.any = true;
            }
            if let Some(open) = &reader.reset_detector {
                next = next.min(open.probe_at());
            }
        }
        timers.set(TIMER_RESET_PROBE, next);
    }
}
