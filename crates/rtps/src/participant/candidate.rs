//! Participants that only claim to exist.
//!
//! Anyone can announce a participant at somebody else's address and let us do
//! the shooting (CVE-2021-38425 and its siblings in five stacks). So a newcomer
//! is a candidate first: it gets no proxies, no events, and at most three times
//! the bytes it sent us, at doubling pauses. It becomes a participant when a
//! message addressed to us comes back from an address it announced.
//!
//! The table is small. When it is full, the source address with the most
//! claims loses one, so that a flood from one place does not keep others out.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::discovery::data::ParticipantData;
use crate::id::GuidPrefix;
use crate::locator::{Locator, Reach, Route};
use crate::time::{Duration, Instant};

use super::config::ParticipantLimits;
use crate::stats::Tally;

/// The first pause between answers to one candidate; doubles up to
/// [`LAST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LAST_PAUSE: Duration = Duration::from_secs(3);

/// One claim.
pub(super) struct Candidate {
    pub(super) data: Arc<ParticipantData>,
    pub(super) from: Option<Locator>,
    pub(super) route: Route,
    received_bytes: usize,
    sent_bytes: usize,
    /// When it last announced itself.
    seen: Instant,
    tries: u32,
    next_try: Instant,
}

impl Candidate {
    /// Bytes that may still be sent to it.
    pub(super) fn budget_bytes(&self, limits: &ParticipantLimits) -> usize {
        let budget = self.received_bytes.saturating_mul(limits.amplification);
        budget.saturating_sub(self.sent_bytes)
    }
}

/// What is sent to a candidate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Answer {
    /// Our announcement and the question.
    Whole,
    /// Only the question.
    Question,
}

/// Bytes of datagrams to a candidate.
#[derive(Clone, Copy)]
pub(super) struct AnswerSizes {
    pub(super) whole: usize,
    pub(super) question: usize,
}

/// All claims, at most `limits.candidates`.
#[derive(Default)]
pub(super) struct Candidates {
    list: Vec<Candidate>,
}

impl Candidates {
    /// Notes an announcement of `bytes` bytes. True if another candidate had
    /// to make room.
    pub(super) fn note(
        &mut self,
        now: Instant,
        limits: &ParticipantLimits,
        data: Arc<ParticipantData>,
        from: Option<Locator>,
        route: Route,
        bytes: usize,
    ) -> bool {
        if let Some(known) = self.find_mut(data.prefix) {
            known.data = data;
            known.from = from;
            known.route = route;
            known.seen = now;
            known.received_bytes = known.received_bytes.saturating_add(bytes);
            known.next_try = known.next_try.min(now + pause(known.tries));
            return false;
        }
        let early = !self.list.is_empty() && fault!("candidates-full-early");
        let full = self.list.len() >= limits.candidates.max(1) || early;
        if full {
            self.evict();
        }
        self.list.push(Candidate {
            data,
            from,
            route,
            received_bytes: bytes,
            sent_bytes: 0,
            seen: now,
            tries: 0,
            next_try: now,
        });
        full
    }

    /// Removes the oldest claim of the source address that has the most.
    fn evict(&mut self) {
        let address = |c: &Candidate| c.from.map(|from| from.address);
        let mut crowds = BTreeMap::<_, usize>::new();
        for candidate in &self.list {
            crowds.entry(address(candidate)).or_default().tally();
        }
        let crowd = |c: &Candidate| crowds.get(&address(c)).copied();
        let victim = self
            .list
            .iter()
            .enumerate()
            .max_by_key(|(_, c)| (crowd(c), core::cmp::Reverse(c.seen)))
            .map(|(index, _)| index);
        if let Some(index) = victim {
            self.list.remove(index);
        }
    }

    pub(super) fn find(&self, prefix: GuidPrefix) -> Option<&Candidate> {
        self.list.iter().find(|c| c.data.prefix == prefix)
    }

    fn find_mut(&mut self, prefix: GuidPrefix) -> Option<&mut Candidate> {
        self.list.iter_mut().find(|c| c.data.prefix == prefix)
    }

    /// Removes one, because it answered or said goodbye.
    pub(super) fn take(&mut self, prefix: GuidPrefix) -> Option<Candidate> {
        let index = self.list.iter().position(|c| c.data.prefix == prefix)?;
        Some(self.list.remove(index))
    }

    /// The next candidate that is due an answer and can afford it: in turns a
    /// whole one and just the question whether it lives, for one that knows us
    /// already. Counts it as sent. `withheld` grows for each that can't.
    pub(super) fn next_answer(
        &mut self,
        now: Instant,
        limits: &ParticipantLimits,
        sizes: AnswerSizes,
        withheld: &mut u64,
    ) -> Option<(GuidPrefix, Route, Answer)> {
        for candidate in self.list.iter_mut().filter(|c| c.next_try <= now) {
            let budget = candidate
                .received_bytes
                .saturating_mul(limits.amplification);
            let left = match fault!("answers-without-limit") {
                true => usize::MAX,
                false => budget.saturating_sub(candidate.sent_bytes),
            };
            let (answer, bytes) = if candidate.tries % 2 == 0 && sizes.whole <= left {
                (Answer::Whole, sizes.whole)
            } else {
                (Answer::Question, sizes.question)
            };
            if bytes > left {
                withheld.tally();
                candidate.next_try = Instant::FAR_FUTURE;
                continue;
            }
            candidate.sent_bytes = candidate.sent_bytes.saturating_add(bytes);
            candidate.next_try = now + pause(candidate.tries);
            candidate.tries = candidate.tries.saturating_add(1);
            let route = candidate.route.clone();
            return Some((candidate.data.prefix, route, answer));
        }
        None
    }

    /// Drops those that have been silent for too long; how many.
    pub(super) fn expire(&mut self, now: Instant, limits: &ParticipantLimits) -> usize {
        let before = self.list.len();
        self.list.retain(|c| c.seen + limits.candidate_age > now);
        before.saturating_sub(self.list.len())
    }

    pub(super) fn next_timeout(&self, limits: &ParticipantLimits) -> Option<Instant> {
        self.list
            .iter()
            .map(|c| c.next_try.min(c.seen + limits.candidate_age))
            .min()
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }
}

pub(super) fn pause(tries: u32) -> Duration {
    let factor = 1i64 << tries.min(10);
    FIRST_PAUSE.times(factor).min(LAST_PAUSE)
}

/// What a datagram's source address says about the locators its sender
/// announced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Proof {
    /// It came from this announced address.
    Address([u8; 4]),
    /// It came from this host, and so do the announced addresses.
    Plausible,
    /// The driver can't tell where it came from, or vouches for it: notices
    /// come from this host by another way.
    Untold,
    /// It came from somewhere else.
    None,
}

/// Judges the source address of a datagram.
pub(super) fn proof(from: Option<Locator>, announced: &[Locator], reach: &Reach) -> Proof {
    let Some((source, _)) = from.and_then(Locator::to_udp_v4) else {
        return Proof::Untold;
    };
    let addresses = announced.iter().filter_map(|l| l.to_udp_v4());
    if addresses.clone().any(|(ip, _)| ip == source) {
        return Proof::Address(source);
    }
    if is_of_this_host(source, reach) && reach.choose(announced).is_same_host() {
        return Proof::Plausible;
    }
    Proof::None
}

pub(super) fn is_of_this_host(ip: [u8; 4], reach: &Reach) -> bool {
    ip[0] == 127 || reach.own.iter().any(|own| own.ip == ip)
}

/// The route to a peer: the announced address that it was seen to use, else
/// the best guess. (Several hosts may announce the same bridge address, such
/// as Docker's 172.17.0.1; only the source address tells them apart.)
pub(super) fn route(reach: &Reach, announced: &[Locator], proof: Proof) -> Route {
    if let Proof::Address(source) = proof {
        let seen: Vec<Locator> = announced
            .iter()
            .copied()
            .filter(|l| l.to_udp_v4().is_some_and(|(ip, _)| ip == source))
            .collect();
        let route = reach.choose(&seen);
        if !route.locators.is_empty() {
            return route;
        }
    }
    reach.choose(announced)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locator::OwnAddress;

    fn reach() -> Reach {
        Reach {
            own: alloc::vec![
                OwnAddress {
                    ip: [10, 0, 0, 5],
                    prefix_length: 24
                },
                OwnAddress {
                    ip: [172, 17, 0, 1],
                    prefix_length: 16
                }
            ],
            local_only: false,
        }
    }

    #[test]
    fn a_bridge_address_that_everybody_has_does_not_hide_the_real_one() {
        let bridge = Locator::udp_v4([172, 17, 0, 1], 7410);
        let lan = Locator::udp_v4([10, 0, 0, 9], 7410);
        let from = Some(Locator::udp_v4([10, 0, 0, 9], 40_000));
        let proof = proof(from, &[bridge, lan], &reach());
        assert_eq!(proof, Proof::Address([10, 0, 0, 9]));
        let route = route(&reach(), &[bridge, lan], proof);
        assert_eq!(route, Route::by_socket(&[lan], false));
    }

    #[test]
    fn loopback_proves_only_what_is_on_this_host() {
        let from = Some(Locator::udp_v4([127, 0, 0, 1], 40_000));
        let here = Locator::udp_v4([10, 0, 0, 5], 7410);
        let there = Locator::udp_v4([10, 0, 0, 9], 7410);
        assert_eq!(proof(from, &[here], &reach()), Proof::Plausible);
        assert_eq!(proof(from, &[there], &reach()), Proof::None);
        let stranger = Some(Locator::udp_v4([10, 0, 0, 66], 1));
        assert_eq!(proof(stranger, &[here], &reach()), Proof::None);
    }

    #[test]
    fn a_crowd_from_one_address_makes_room_for_others() {
        let limits = ParticipantLimits {
            candidates: 4,
            ..ParticipantLimits::default()
        };
        let mut candidates = Candidates::default();
        let mut note = |byte: u8, host: u8| {
            let data = ParticipantData::new(GuidPrefix([byte; 12]));
            let from = Locator::udp_v4([10, 0, 0, host], 7410);
            let route = reach().choose(&[from]);
            let at = Instant::from_nanos(u64::from(byte));
            candidates.note(at, &limits, Arc::new(data), Some(from), route, 100);
        };
        note(1, 9);
        for byte in 2..100 {
            note(byte, 66);
        }
        assert_eq!(candidates.len(), 4);
        assert!(candidates.find(GuidPrefix([1; 12])).is_some());
    }
}
