//! Plausibility checks of a writer's state: claims in its name that its history does not
//! explain, what contradicts them, and resynchronisation after it.
//!
//! Without security anyone who spoofs an address can claim anything in a writer's
//! name. No single claim is final:
//!
//! - A jump of more than [`JUMP_MAX`] numbers or counts is not believed before a
//!   second, consistent HEARTBEAT confirms it. It is requested at once, so an honest
//!   jump costs one round trip.
//! - Numbers that were skipped without being announced before are not acknowledged
//!   until a further HEARTBEAT agrees. So the writer keeps them.
//! - HEARTBEATs that keep naming less than is believed prove the belief wrong. So do
//!   lower first numbers of a built-in topic. Then the reader resets the writer's state
//!   ([`WriterProxy::resynchronise`]).
//! - A sample of a built-in topic that no HEARTBEAT follows requests one.
//! - A best-effort writer whose samples keep coming below the expected number is
//!   followed again.
//!
//! RTPS 2.5 §8.4.12 has no such rules. Called by the reader for each submessage.

use super::config::NackConfig;
use super::proxy::WriterProxy;
use crate::heartbeat_counts::{HeartbeatCounts, LATE_MAX, Observation};
use crate::late_samples::LateSamples;
use crate::seq::SequenceNumber;
use crate::time::{Duration, Instant};
use crate::wire::Heartbeat;

/// The largest jump of sequence numbers that is believed at once.
pub(super) const JUMP_MAX: i64 = 1 << 16;
/// Resynchronisation needs contradicting HEARTBEATs over this time, or over [`LATE_MAX`].
const OBSERVATION_TIME: Duration = Duration::from_millis(400);
/// When a contradiction or a skip requests a HEARTBEAT, unless one came by itself.
const PROBE_DELAY: Duration = Duration::from_millis(20);
/// When a sample of a built-in topic without a HEARTBEAT requests one.
const HEARTBEAT_DELAY: Duration = Duration::from_millis(100);
/// The period of further requests.
const PROBE_PERIOD: Duration = Duration::from_millis(100);
/// A jump without confirmation is forgotten after this many requests.
const PROBES_MAX: u32 = 15;
/// A lower number than was delivered is returned to the delivered one if the writer
/// names that again within this time.
const RETURN_MAX: Duration = Duration::from_secs(3);
/// Or if its samples go on from there, at most so many numbers later.
const RETURN_NUMBERS_MAX: i64 = 256;

/// Consequence of a HEARTBEAT for the proxy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum HeartbeatJudgement {
    /// It continues what is known.
    Plausible,
    /// It jumps: wait for a second one.
    Unconfirmed,
}

/// An unconfirmed jump.
#[derive(Clone, Copy, Debug)]
struct Jump {
    first: i64,
    last: i64,
    count: u32,
    at: Instant,
}

/// HEARTBEATs that name less than is believed.
#[derive(Clone, Copy, Debug)]
struct Contradiction {
    /// The believed last number when it began.
    believed: i64,
    seen: Observation,
}

/// A limit of acknowledgement.
#[derive(Clone, Copy, Debug)]
struct AckLimit {
    base: i64,
    /// A HEARTBEAT after this time that names this number lifts the limit.
    since: Instant,
    through: i64,
}

/// Open plausibility checks of one writer; most often none.
#[derive(Debug)]
pub(super) struct Plausibility {
    jump: Option<Jump>,
    contradiction: Option<Contradiction>,
    ack_limit: Option<AckLimit>,
    probe_at: Instant,
    probes: u32,
    /// The highest first number of the HEARTBEATs.
    first: i64,
    /// The highest number delivered, and the one before the last leap.
    delivered: i64,
    before_leap: i64,
    /// The delivered number that was given up, and when.
    given_up: (i64, Instant),
    /// Best effort: what came below the expected number.
    late: LateSamples,
}

impl Plausibility {
    pub const NONE: Self = Self {
        jump: None,
        contradiction: None,
        ack_limit: None,
        probe_at: Instant::FAR_FUTURE,
        probes: 0,
        first: 0,
        delivered: 0,
        before_leap: i64::MAX,
        given_up: (0, Instant::ZERO),
        late: LateSamples::NONE,
    };

    /// When to request a HEARTBEAT; far future if nothing is open.
    pub fn probe_at(&self) -> Instant {
        self.probe_at
    }

    /// Notes a request.
    pub fn note_probed(&mut self, now: Instant) {
        self.probes = self.probes.saturating_add(1);
        self.probe_at = now.after(PROBE_PERIOD);
        if self.probes >= PROBES_MAX {
            // The next claim starts again.
            self.probe_at = Instant::FAR_FUTURE;
            self.jump = None;
        }
    }

    fn probe_no_later(&mut self, at: Instant) {
        if self.probe_at == Instant::FAR_FUTURE {
            self.probes = 0;
        }
        self.probe_at = self.probe_at.min(at);
    }

    fn clear_if_resolved(&mut self) {
        let is_open =
            self.jump.is_some() || self.contradiction.is_some() || self.ack_limit.is_some();
        if !is_open {
            self.probe_at = Instant::FAR_FUTURE;
        }
    }

    /// The highest base that may be acknowledged.
    pub fn ack_base_max(&self) -> i64 {
        self.ack_limit.map_or(i64::MAX, |limit| limit.base)
    }

    /// Notes a delivered number.
    pub fn note_delivered(&mut self, number: i64) {
        if number.saturating_sub(self.delivered) > JUMP_MAX && self.delivered > 0 {
            self.before_leap = self.delivered;
        }
        self.delivered = number;
    }
}

impl WriterProxy {
    /// The highest number that the reader believes to exist.
    fn believed(&self) -> i64 {
        self.announced.max(self.next_number().saturating_sub(1))
    }

    /// Whether a number is too far ahead to be believed at once.
    pub(super) fn is_jump(&self, number: i64) -> bool {
        self.synced && self.reliable && number.saturating_sub(self.believed()) > JUMP_MAX
    }

    /// Requests a HEARTBEAT, because a claim was not believed.
    pub(super) fn request_confirmation(&mut self, now: Instant) {
        self.plausibility.probe_no_later(now);
    }

    /// Requests a HEARTBEAT unless one follows a sample soon, to learn whether the
    /// writer has really written it.
    pub(super) fn expect_heartbeat(&mut self, now: Instant, sequence: SequenceNumber) {
        if sequence.0 > self.sent_through {
            self.plausibility.probe_no_later(now.after(HEARTBEAT_DELAY));
        }
    }

    /// Judges a HEARTBEAT by what is known of the writer.
    pub(super) fn judge_heartbeat(
        &mut self,
        now: Instant,
        heartbeat: &Heartbeat,
    ) -> HeartbeatJudgement {
        let jumps = self.is_jump(heartbeat.last.0)
            || (self.synced && self.heartbeat_counts.is_jump(heartbeat.count));
        if !jumps {
            return HeartbeatJudgement::Plausible;
        }
        let claim = Jump {
            first: heartbeat.first.0,
            last: heartbeat.last.0,
            count: heartbeat.count,
            at: now,
        };
        let confirms = self.plausibility.jump.is_some_and(|jump| {
            let newer = claim.count.wrapping_sub(jump.count).cast_signed();
            jump.first <= claim.first && jump.last <= claim.last && newer > 0 && jump.at < now
        });
        if confirms {
            self.plausibility.jump = None;
            self.plausibility.clear_if_resolved();
            return HeartbeatJudgement::Plausible;
        }
        self.plausibility.jump = Some(claim);
        self.plausibility.probe_no_later(now);
        HeartbeatJudgement::Unconfirmed
    }

    /// Compares an accepted HEARTBEAT with what is believed, before it is applied.
    /// Returns true when the belief is proven wrong. `first_grows`: a lower first number
    /// contradicts, too, and one that skips something requests another HEARTBEAT. Writers
    /// of users lower it for a further reader of the participant.
    pub(super) fn note_contradiction(
        &mut self,
        now: Instant,
        (first, last): (i64, i64),
        first_grows: bool,
    ) -> bool {
        let believed = self.believed();
        let skips = first_grows && first > self.first_missing();
        let named = self.sent_through;
        let has_lower_count = self.heartbeat_counts.may_be_late();
        let plausibility = &mut self.plausibility;
        let names_earlier = first_grows && first < plausibility.first;
        plausibility.first = plausibility.first.max(first);
        if !self.synced {
            if first_grows {
                // It may be forged, so its count refuses no other one.
                self.heartbeat_counts = HeartbeatCounts::default();
            }
            if skips {
                plausibility.probe_no_later(now.after(HEARTBEAT_DELAY));
            }
            return false;
        }
        match &mut plausibility.contradiction {
            None if last < believed || names_earlier => {
                plausibility.contradiction = Some(Contradiction {
                    believed,
                    seen: Observation::begin(now),
                });
                plausibility.probe_no_later(now.after(PROBE_DELAY));
            }
            None => {}
            Some(open) if last >= open.believed && !names_earlier => {
                plausibility.contradiction = None;
            }
            Some(open) => {
                open.seen.note(now);
                // A late one has a lower count than the HEARTBEAT that named the believed
                // number, if one did. Samples of users may come ahead by shared memory.
                // A built-in topic only reads its history again, or has restarted.
                let may_be_late = !first_grows && (has_lower_count || open.believed > named);
                let time = if may_be_late {
                    LATE_MAX
                } else {
                    OBSERVATION_TIME
                };
                if open.seen.proves_over(time) {
                    return true;
                }
                plausibility.probe_no_later(now.after(PROBE_PERIOD));
            }
        }
        plausibility
            .ack_limit
            .take_if(|limit| now > limit.since && last >= limit.through);
        // A plausible HEARTBEAT refutes a jump that was not confirmed.
        plausibility.jump = None;
        let unnamed = self.announced.saturating_add(1);
        if first > unnamed {
            self.limit_acks(now, unnamed, first.saturating_sub(1));
        }
        self.plausibility.clear_if_resolved();
        if skips {
            self.plausibility.probe_no_later(now.after(HEARTBEAT_DELAY));
        }
        false
    }

    /// Requests a HEARTBEAT after one of a built-in topic whose count did not grow,
    /// because a forged one may have set count and start.
    pub(super) fn note_refused_heartbeat(&mut self, now: Instant, first: i64) {
        if first < self.plausibility.first {
            self.plausibility.probe_no_later(now.after(HEARTBEAT_DELAY));
        }
    }

    /// Acknowledges nothing from `base` on until a later HEARTBEAT names `through`.
    fn limit_acks(&mut self, since: Instant, base: i64, through: i64) {
        let plausibility = &mut self.plausibility;
        let before = plausibility.ack_limit.map_or((base, through), |limit| {
            (limit.base.min(base), limit.through.max(through))
        });
        plausibility.ack_limit = Some(AckLimit {
            base: before.0,
            since,
            through: before.1,
        });
        plausibility.probe_no_later(since.after(PROBE_DELAY));
    }

    /// Notes a GAP that reaches beyond the announced numbers. The HEARTBEAT in the
    /// same datagram confirms it.
    pub(super) fn note_unannounced_gap(&mut self, now: Instant, last: i64) {
        let unnamed = self.announced.saturating_add(1);
        if self.reliable && self.synced && last >= unnamed {
            let earlier = Instant::from_nanos(now.as_nanos().saturating_sub(1));
            self.limit_acks(earlier, unnamed, last);
        }
    }

    /// Forgets a history of `first..=last`, to read it again. The writer may replace
    /// changes meanwhile, so it is complete when a later HEARTBEAT names no more.
    pub(super) fn begin_reread(&mut self, now: Instant, first: i64, last: i64) {
        self.restart_at(first, last);
        self.sent_through = 0;
        self.plausibility.probe_no_later(now.after(HEARTBEAT_DELAY));
    }

    /// Resets the state of a writer to its HEARTBEAT. Continues after what was
    /// delivered, as far as that can be true; `from_start`: requests all it has.
    pub(super) fn resynchronise(
        &mut self,
        now: Instant,
        (first, last): (i64, i64),
        from_start: bool,
        config: &NackConfig,
    ) {
        let Plausibility {
            delivered,
            before_leap,
            ..
        } = self.plausibility;
        let continues = [delivered, before_leap].into_iter().find(|n| *n <= last);
        let next = match continues {
            _ if from_start => first,
            Some(delivered) => delivered.saturating_add(1).max(first),
            None => last.saturating_add(1),
        };
        self.plausibility = Plausibility {
            first,
            delivered: next.saturating_sub(1),
            given_up: (if continues.is_none() { delivered } else { 0 }, now),
            ..Plausibility::NONE
        };
        if from_start {
            self.begin_reread(now, next, last);
        } else {
            self.restart_at(next, last);
        }
        self.heartbeat_counts.forget_suspicion();
        self.acks.nack.requested = 0;
        self.acks.nack.unsuccessful_requests = 0;
        self.acks.nack.at = Instant::FAR_FUTURE;
        self.acks.nack.backoff = self.initial_backoff(config);
        self.acks.progress_count = self.acks.progress_count.saturating_add(1);
        self.acks.due = true;
    }

    /// The number to continue at if the writer names again what was delivered before
    /// the last resynchronisation: then that one was caused by forged HEARTBEATs.
    pub(super) fn returns_to(&mut self, now: Instant, first: i64, last: i64) -> Option<i64> {
        let (delivered, at) = self.plausibility.given_up;
        if delivered == 0 {
            return None;
        }
        let next = delivered.saturating_add(1);
        let is_recent = now.since(at) <= RETURN_MAX;
        let is_named = first <= next && next <= last.saturating_add(1);
        if !is_recent || is_named {
            self.plausibility.given_up = (0, now);
        }
        (is_recent && is_named && next > self.next_number()).then_some(next)
    }

    /// As [`Self::returns_to`], when the writer goes on with samples: the number to
    /// continue at.
    pub(super) fn returns_with(&mut self, now: Instant, sequence: SequenceNumber) -> Option<i64> {
        let (delivered, at) = self.plausibility.given_up;
        let is_next = delivered != 0
            && sequence.0 > delivered
            && sequence.0.saturating_sub(delivered) <= RETURN_NUMBERS_MAX
            && now.since(at) <= RETURN_MAX;
        is_next.then(|| {
            self.plausibility.given_up = (0, now);
            delivered.saturating_add(1)
        })
    }

    /// Notes a best-effort sample in order.
    pub(super) fn note_in_order(&mut self, now: Instant) {
        self.plausibility.late.note_in_order(now);
    }

    /// Whether late best-effort samples show that the expected number is wrong
    /// ([`LateSamples`]). Then this one is expected.
    pub(super) fn follows_late_samples(&mut self, now: Instant, sequence: SequenceNumber) -> bool {
        let follows = !self.reliable && self.plausibility.late.follows(now, sequence.0);
        if follows {
            self.restart_at(sequence.0, sequence.previous().0);
        }
        follows
    }
}
