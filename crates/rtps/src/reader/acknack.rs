//! What a reliable reader answers, and when (RTPS 2.5 §8.4.12.2): ACKNACK for
//! whole samples, NACK_FRAG for samples of which some fragments came.
//!
//! The rule: while something announced is missing, a request is scheduled.
//! Heartbeats speed it up, answers reset its pauses, nothing but completeness
//! cancels it.

use super::Reader;
use super::config::NackConfig;
use super::proxy::WriterProxy;
use crate::id::EntityId;
use crate::outbox::Outbox;
use crate::pace::Pace;
use crate::seq::{FragmentNumber, SequenceNumber};
use crate::stats::Tally;
use crate::time::{Duration, Instant};
use crate::wire::{AckNack, FragmentSet, Heartbeat, NackFrag, SequenceSet};

/// After so many requests that brought nothing, heartbeats no longer speed the
/// next one up. Without this, a number that never comes (refused here for want
/// of room, or claimed by a liar) would be asked for at network speed.
const FRUITLESS_MAX: u32 = 3;
/// Samples in pieces asked for at a time; as many as are kept by default.
const NACK_FRAGS_MAX: usize = 8;

impl WriterProxy {
    /// Whether a heartbeat is new.
    pub(super) fn accepts_heartbeat(&mut self, now: Instant, heartbeat: &Heartbeat) -> bool {
        // Towards volatile readers ours may name less until it is answered.
        let has_less = self.is_told_all && heartbeat.last.0 < self.complete;
        self.counts.accept(now, heartbeat.count, has_less)
    }

    /// Decides on the answer to a heartbeat that has been taken in.
    pub(super) fn answer_heartbeat(&mut self, now: Instant, is_final: bool, config: &NackConfig) {
        let missing = self.is_missing_something();
        let news = missing
            && self.first_missing_from(self.nack.requested.saturating_add(1)) <= self.announced;
        let old = now >= self.nack.sent_at.after(self.suppression(config));
        if is_final && !news && !(missing && old) {
            self.tell_unasked(now, missing);
            return;
        }
        self.told.unasked = false;
        // What was asked for a moment ago may be on its way.
        self.nack.only_news = !old;
        self.respond |= !fault!("heartbeat-not-answered");
    }

    /// A writer behind a link is told what has come, if that is due.
    fn tell_unasked(&mut self, now: Instant, missing: bool) {
        let is_linked = self.route.is_shared_memory() && self.synced && !missing;
        if is_linked && !self.respond && self.told.is_due(now, self.first_missing()) {
            self.respond = true;
            self.told.unasked = true;
        }
    }

    /// The youngest age of a request that a heartbeat may repeat.
    pub(super) fn suppression(&self, config: &NackConfig) -> Duration {
        let (unknown, min) = (config.suppression, config.suppression_min);
        self.nack.round_trip.pause(unknown, min, config.max)
    }

    /// The pauses between requests for something that is newly missed.
    pub(super) fn fresh_pace(&self, config: &NackConfig) -> Pace {
        let way = &self.nack.round_trip;
        let first = way.pause(config.first, config.first_min, config.max);
        Pace::new(first, config.steady)
    }

    /// Keeps the timer in step with what is missing.
    pub(super) fn schedule(&mut self, now: Instant, config: &NackConfig) {
        self.nack.round_trip.heard(now, self.first_missing());
        if self.is_missing_something() {
            let gives_up = self.nack.fruitless > 0 && fault!("nack-not-rescheduled");
            if self.nack.at == Instant::FAR_FUTURE && !gives_up {
                self.nack.pace = self.fresh_pace(config);
                self.nack.at = match fault!("nack-at-once") {
                    true => now,
                    false => now.after(config.gap_delay),
                };
            }
        } else if self.synced || self.introductions_left == 0 {
            self.nack.at = Instant::FAR_FUTURE;
            self.nack.requested = self.nack.requested.min(self.announced);
        }
    }

    /// When something is to be sent: a request, or a question to a writer that
    /// may have begun anew.
    pub(super) fn wakes_at(&self) -> Instant {
        self.nack.at.min(self.counts.ask_at())
    }

    /// Whether something is to be sent at `now`.
    pub(super) fn owes_now(&self, now: Instant) -> bool {
        self.respond || self.wakes_at() <= now
    }

    /// Whether an ACKNACK would ask for nothing.
    fn only_confirms(&self) -> bool {
        let asks = self.is_missing_something() || self.counts.ask_at() != Instant::FAR_FUTURE;
        self.synced && !asks
    }

    /// The ACKNACK that tells the present state, and whether it asks for what
    /// is missing. Sets the timer for the next one.
    fn acknack(
        &mut self,
        now: Instant,
        reader: EntityId,
        full: bool,
        config: &NackConfig,
    ) -> (AckNack, bool) {
        let base = match !self.synced && self.introduces_with_zero {
            true => 0,
            false => self
                .first_missing()
                .saturating_add(fault!("acknowledges-one-too-many").into()),
        };
        let mut state = SequenceSet::empty(SequenceNumber(base));
        let mut requested = self.nack.requested;
        let timer_due = self.nack.at <= now;
        let asks = self.synced && !full && (timer_due || self.nack.fruitless <= FRUITLESS_MAX);
        let only_news = self.nack.only_news && !timer_due;
        if asks {
            let last = self.announced.min(base.saturating_add(255));
            let last = last.saturating_sub(fault!("nack-leaves-out-the-last").into());
            let from = match only_news {
                true => requested.saturating_add(1),
                false => base,
            };
            for number in self.missing(from, last) {
                crate::fault::step();
                state.insert(SequenceNumber(number));
            }
            if !state.is_empty() {
                self.nack.round_trip.asked(now, base, base <= requested);
            }
            requested = requested.max(last);
        }
        if !self.synced {
            self.introductions_left = self.introductions_left.saturating_sub(1);
        }
        let waits = self.is_missing_something() || (!self.synced && self.introductions_left > 0);
        let period_max = if self.synced {
            config.max
        } else {
            config.introduction_max
        };
        if self.arrivals != self.nack.arrivals_seen {
            self.nack.arrivals_seen = self.arrivals;
            self.nack.fruitless = 0;
            self.nack.pace = self.fresh_pace(config);
        } else if asks && waits && !only_news {
            self.nack.fruitless = self.nack.fruitless.saturating_add(1);
        }
        self.respond = false;
        self.nack.only_news = false;
        self.nack.requested = requested;
        if !waits {
            self.nack.at = Instant::FAR_FUTURE;
        } else if asks && only_news && self.nack.at != Instant::FAR_FUTURE {
            // What was asked for earlier is asked for again when it is due.
        } else if asks || !self.synced || timer_due {
            self.nack.sent_at = now;
            self.nack.at = match fault!("nack-not-rescheduled") {
                true => Instant::FAR_FUTURE,
                false => now.after(self.nack.pace.pause()),
            };
            self.nack.pace.advance(period_max);
        }
        self.told.note(now, base);
        self.acknack_count = self.acknack_count.wrapping_add(1);
        let in_doubt = self.counts.ask_at() <= now;
        let acknack = AckNack {
            reader,
            writer: self.guid.entity,
            state,
            count: self.acknack_count,
            // Before the first heartbeat, and in doubt, we ask for one.
            is_final: self.synced && !in_doubt,
        };
        if in_doubt {
            self.counts.note_asked(now);
        }
        (acknack, asks)
    }

    /// The request for missing fragments of one sample in pieces.
    fn nack_frag(&mut self, reader: EntityId, sequence: SequenceNumber) -> Option<NackFrag> {
        let mut runs = self
            .defrag
            .missing(sequence, self.last_fragment_sent(sequence));
        let number = |n: i64| u32::try_from(n).ok().map(FragmentNumber);
        let first = runs.next()?;
        let mut state = FragmentSet::empty(number(first.first)?);
        let wanted = core::iter::once(first)
            .chain(runs)
            .flat_map(|run| run.first..=run.last);
        for fragment in wanted.map_while(number) {
            if !state.insert(fragment) {
                break;
            }
        }
        self.nack_frag_count = self.nack_frag_count.wrapping_add(1);
        Some(NackFrag {
            reader,
            writer: self.guid.entity,
            sequence,
            state,
            count: self.nack_frag_count,
        })
    }

    /// The lowest samples in pieces that are worth asking for.
    fn incomplete(&self) -> ([SequenceNumber; NACK_FRAGS_MAX], usize) {
        let mut found = [SequenceNumber::ZERO; NACK_FRAGS_MAX];
        let overdue = self.first_missing();
        let mut count = 0_usize;
        let wanted = self
            .defrag
            .sequences()
            .filter(|sequence| sequence.0 <= self.complete || sequence.0 == overdue);
        for (place, sequence) in found.iter_mut().zip(wanted) {
            *place = sequence;
            count.tally();
        }
        (found, count)
    }
}

impl Reader {
    /// Whether there is something to send, all of which only confirms what has come:
    /// that may wait a moment.
    pub fn only_confirms(&self) -> bool {
        let mut owed = self.outgoing.iter();
        !self.outgoing.is_empty()
            && owed.all(|guid| {
                let proxy = self.writers.get(guid);
                proxy.is_none_or(|proxy| proxy.only_confirms())
            })
    }

    /// Puts ACKNACKs and NACK_FRAGs that are due into `out`. True: the outbox
    /// is full; send, clear and call again.
    pub fn poll_transmit(&mut self, now: Instant, out: &mut Outbox) -> bool {
        self.clock = now;
        while let Some(guid) = self.outgoing.last().copied() {
            if out.is_full() {
                return true;
            }
            self.outgoing.pop();
            let Some(proxy) = self.writers.get_mut(&guid) else {
                continue;
            };
            proxy.queued = false;
            if !proxy.owes_now(now) {
                continue;
            }
            let full = !self.ready.has_room();
            let reader = self.config.guid;
            let may_wait = proxy.told.unasked && !proxy.is_missing_something();
            let (acknack, asks) = proxy.acknack(now, reader.entity, full, &self.config.nack);
            let mut message = out.begin(
                reader.prefix,
                &proxy.route.locators,
                self.config.datagram_bytes_max,
            );
            message.info_destination(guid.prefix);
            message.acknack(&acknack);
            if may_wait {
                message.may_wait();
            }
            self.stats.acknacks.tally();
            if asks && !fault!("fragments-not-asked-for") {
                let (incomplete, count) = proxy.incomplete();
                for sequence in incomplete.into_iter().take(count) {
                    if let Some(nack) = proxy.nack_frag(reader.entity, sequence)
                        && message.nack_frag(&nack)
                    {
                        self.stats.nack_frags.tally();
                    }
                }
            }
            message.finish();
            if proxy.wakes_at() != Instant::FAR_FUTURE {
                self.timers
                    .set_no_later(super::TIMER_WRITERS, proxy.wakes_at());
            }
        }
        false
    }
}
