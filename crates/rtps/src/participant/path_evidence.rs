//! Path evidence: what is known of the addresses of peers that have several, without
//! the decisions. `paths.rs` decides, and describes the rules.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::id::GuidPrefix;
use crate::locator::{Locator, OwnAddress};
use crate::time::{Duration, Instant};

use super::config::ParticipantLimits;
use super::unvalidated_participant::SourceCheck;

/// How long an address in use may be quiet before it is asked.
pub(super) const QUIET: Duration = Duration::from_millis(250);
/// The same without user traffic.
pub(super) const QUIET_IDLE: Duration = Duration::from_secs(2);
/// The pause between questions to a silent address ...
pub(super) const RETRY: Duration = Duration::from_millis(80);
/// ... of which so many must fail. At 10 % loss in each direction that happens once
/// in 4 000 times, and the other path is a good one then.
pub(super) const RETRIES_MAX: u32 = 5;
/// A question of the peer so soon after another is a repeated one: our answer did not
/// arrive.
pub(super) const QUESTION_REPEATED: Duration = Duration::from_millis(150);
/// How long only answers count then.
pub(super) const ONE_WAY_TIME: Duration = Duration::from_secs(1);
/// Participants of one address that are asked at a time after a failed question.
pub(super) const ASKED_MAX: usize = 16;
/// From this number of questions on the other addresses are asked, too.
pub(super) const SUSPECT_AFTER: u32 = 2;
/// The pause after more failures.
pub(super) const RETRY_SLOW: Duration = Duration::from_secs(1);
/// How often a better address that is not in use is asked.
pub(super) const BETTER_PERIOD: Duration = Duration::from_millis(500);
/// How long a better address must answer before traffic returns to it ...
pub(super) const HOLD_MIN: Duration = Duration::from_secs(2);
/// ... at most, since each loss doubles it.
pub(super) const HOLD_MAX: Duration = Duration::from_secs(60);
/// A path that holds for so long is no longer considered to flap.
pub(super) const FLAP_MEMORY: Duration = Duration::from_secs(120);
/// An address with a datagram within this span may be used when a link is lost.
pub(super) const FRESH: Duration = Duration::from_secs(10);
/// Pauses between questions to an address that has never answered.
const VALIDATION_MIN: Duration = Duration::from_millis(100);
const VALIDATION_MAX: Duration = Duration::from_secs(30);
/// Bytes for questions to addresses that never answered: from the announcements
/// before the participant was accepted, and at most. Each announcement adds the bytes
/// that it causes at most (`amplification_factor`).
pub(super) const BUDGET_FIRST: usize = 600;
pub(super) const BUDGET_MAX: usize = 8 << 10;
/// The size of a question: RTPS header, INFO_DST, HEARTBEAT or the shorter ACKNACK.
pub(super) const QUESTION_BYTES: usize = 20 + 16 + 32;

/// Addresses of one participant that are considered.
pub(super) const CANDIDATES_MAX: usize = 8;

pub(super) use crate::locator::IpAddress as Ip;

/// Our addresses and links as they are now, see
/// [`Participant::set_local_links`](super::Participant::set_local_links).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LocalLinks {
    /// Our addresses on links that carry packets.
    pub addresses: Vec<OwnAddress>,
    /// Our addresses on links that do not, such as a cable without a carrier.
    pub down: Vec<OwnAddress>,
    /// The locators to announce.
    pub unicast: Vec<Locator>,
    /// The discovery group, if an interface has joined it.
    pub multicast: Vec<Locator>,
}

/// Why traffic moved to another address of a participant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathReason {
    /// Our link to the former address is down.
    LinkDown,
    /// The participant no longer announces the former address.
    AddressGone,
    /// The former address does not answer; this one does.
    Silent,
    /// The preferred address works again.
    Better,
}

/// The state of one address of a participant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathState {
    /// It answers.
    Working,
    /// No datagram came lately, and no question was sent.
    Unused,
    /// It does not answer.
    Silent,
    /// It has never answered, so nothing but questions is sent there.
    Unvalidated,
    /// Our link to it is down.
    LinkDown,
}

/// One address of a participant, for diagnostics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathInfo {
    /// The locator of its built-in endpoints there.
    pub locator: Locator,
    /// Whether it answers, and if not, why.
    pub state: PathState,
    /// Traffic goes there.
    pub in_use: bool,
    /// Why traffic moved there; `None` for the first choice.
    pub reason: Option<PathReason>,
}

/// The evidence for one address.
#[derive(Clone, Copy)]
pub(super) struct Address {
    pub(super) heard_at: Option<Instant>,
    /// The last proof that it receives, too.
    answered_at: Option<Instant>,
    /// Since when it answers without a gap.
    pub(super) good_since: Option<Instant>,
    /// Questions since it answered.
    pub(super) asked: u32,
    pub(super) first_asked_at: Instant,
    pub(super) last_asked_at: Instant,
    pub(super) next_ask_at: Instant,
    /// Until then only path answers count: the peer repeats its question, so it does not
    /// hear us.
    pub(super) one_way_until: Instant,
    /// A participant that is asked there answers where the question comes from: it is of
    /// Pteros.
    pub(super) has_answering_peer: bool,
}

impl Address {
    pub(super) const NEW: Self = Self {
        heard_at: None,
        answered_at: None,
        good_since: None,
        asked: 0,
        first_asked_at: Instant::ZERO,
        last_asked_at: Instant::ZERO,
        next_ask_at: Instant::ZERO,
        one_way_until: Instant::ZERO,
        has_answering_peer: false,
    };

    /// The same evidence, before the peers there are looked at.
    pub(super) const fn without_peers(self) -> Self {
        Self {
            has_answering_peer: false,
            ..self
        }
    }

    /// Notes a datagram that does not prove that it receives: the first question is
    /// asked later. Once it is asked, only answers count.
    pub(super) fn note_heard(&mut self, now: Instant) {
        if self.asked == 0 {
            self.heard_at = Some(now);
        }
    }

    /// Notes a proof that it receives our datagrams.
    pub(super) fn note_answer(&mut self, now: Instant) {
        self.heard_at = Some(now);
        self.answered_at = Some(now);
        self.good_since.get_or_insert(now);
        self.asked = 0;
        self.next_ask_at = Instant::ZERO;
    }

    pub(super) fn is_one_way(&self, now: Instant) -> bool {
        now < self.one_way_until
    }

    pub(super) fn note_asked(&mut self, now: Instant) {
        if self.asked == 0 {
            self.first_asked_at = now;
        }
        self.last_asked_at = now;
        self.asked = self.asked.saturating_add(1);
        if self.asked >= RETRIES_MAX {
            self.good_since = None;
        }
        let pause = if self.asked > 2 * RETRIES_MAX {
            RETRY_SLOW
        } else {
            RETRY
        };
        self.next_ask_at = now + pause;
    }

    /// When it is to be asked, if it may be quiet for so long.
    pub(super) fn ask_at(&self, now: Instant, quiet: Duration) -> Instant {
        match (self.asked, self.heard_at) {
            (0, Some(_)) if self.is_one_way(now) => now.max(self.last_asked_at + RETRY),
            (0, Some(heard_at)) => heard_at + quiet,
            _ => self.next_ask_at,
        }
    }

    /// Whether it has not answered lately, and is still asked often.
    pub(super) const fn is_suspect(&self) -> bool {
        self.asked >= SUSPECT_AFTER && self.asked <= 2 * RETRIES_MAX
    }

    pub(super) fn is_silent(&self, now: Instant) -> bool {
        self.asked >= RETRIES_MAX && self.last_asked_at + RETRY <= now
    }

    /// Whether it has answered for so long, so that traffic may return to it.
    pub(super) fn is_steady(&self, now: Instant, hold: Duration) -> bool {
        self.asked < SUSPECT_AFTER && self.good_since.is_some_and(|since| since + hold <= now)
    }

    /// Whether it answers again, after the last question to `other`. That may answer,
    /// too, since both were unreachable.
    pub(super) fn is_back_after(&self, other: &Self) -> bool {
        self.good_since
            .is_some_and(|since| since > other.last_asked_at)
    }

    /// Whether it answered after `since`.
    pub(super) fn is_answered_after(&self, since: Instant) -> bool {
        self.answered_at.is_some_and(|at| at > since)
    }

    /// Whether a datagram came after `since`.
    pub(super) fn is_heard_after(&self, since: Instant) -> bool {
        self.heard_at.is_some_and(|at| at > since)
    }
}

#[derive(Clone, Default)]
pub(super) struct PeerPath {
    /// The address in use; `None` where the driver does not know sources.
    pub(super) in_use: Option<Ip>,
    pub(super) reason: Option<PathReason>,
    /// When traffic last moved.
    moved_at: Option<Instant>,
    /// Losses of a path lately; lengthens the hold time.
    losses: u32,
    /// Questions to addresses that never answered.
    validations: u32,
    validated_at: Instant,
    next_validation_at: Instant,
    /// Bytes that may be sent to such addresses.
    budget_bytes: usize,
    /// The last question of the peer, and from where.
    questioned: Option<(Ip, Instant)>,
}

impl PeerPath {
    pub(super) fn at(source_check: SourceCheck) -> Self {
        Self {
            in_use: match source_check {
                SourceCheck::Address(ip) => Some(ip),
                _ => None,
            },
            budget_bytes: BUDGET_FIRST,
            ..Self::default()
        }
    }

    /// Notes an announcement from an address that has never answered. It is asked now,
    /// unless it was asked just before.
    pub(super) fn note_unvalidated_announcement(&mut self) {
        self.next_validation_at = self.validation_at(true);
    }

    /// Validation starts again: the peer named other addresses, or our links changed.
    pub(super) fn validate_again(&mut self) {
        self.validations = 0;
        self.next_validation_at = Instant::ZERO;
    }

    /// When the addresses that never answered are asked next. `is_suspect`: the address
    /// in use may be lost, so the others are asked as often as after the first contact.
    pub(super) fn validation_at(&self, is_suspect: bool) -> Instant {
        let soon = self.validated_at + VALIDATION_MIN;
        if is_suspect {
            self.next_validation_at.min(soon)
        } else {
            self.next_validation_at
        }
    }

    /// Notes that they were asked. The pause until the next time doubles.
    pub(super) fn note_validation(&mut self, now: Instant) {
        let factor = 1_i64 << self.validations.min(9);
        let pause = VALIDATION_MIN.times(factor).min(VALIDATION_MAX);
        self.validations = self.validations.saturating_add(1);
        self.validated_at = now;
        self.next_validation_at = now + pause;
    }

    /// Notes an announcement of this size, received in its name.
    pub(super) fn note_announcement(&mut self, bytes: usize, limits: &ParticipantLimits) {
        let more = bytes.saturating_mul(limits.amplification_factor);
        self.budget_bytes = self.budget_bytes.saturating_add(more).min(BUDGET_MAX);
    }

    /// Notes a question of the peer; true if it repeats one.
    pub(super) fn note_questioned(&mut self, now: Instant, from: Ip) -> bool {
        let before = self.questioned.replace((from, now));
        before.is_some_and(|(ip, at)| ip == from && now.since(at) < QUESTION_REPEATED)
    }

    /// Takes the bytes of a question from the budget; false if it is spent.
    pub(super) fn spend(&mut self, bytes: usize) -> bool {
        let left = self.budget_bytes.checked_sub(bytes);
        self.budget_bytes = left.unwrap_or(self.budget_bytes);
        left.is_some()
    }

    pub(super) fn hold(&self) -> Duration {
        if self.moved_at.is_none() {
            // The first address in use is the one that answered first.
            return Duration::ZERO;
        }
        HOLD_MIN.times(1 << self.losses.min(6)).min(HOLD_MAX)
    }

    /// Notes the address in use from now on. False for the first choice among those
    /// that answer.
    pub(super) fn note_moved(&mut self, now: Instant, to: Ip, reason: PathReason) -> bool {
        if reason == PathReason::Better && self.reason.is_none() {
            self.in_use = Some(to);
            return false;
        }
        let settled = self.moved_at.is_none_or(|at| now.since(at) > FLAP_MEMORY);
        if reason != PathReason::Better {
            self.losses = if settled {
                0
            } else {
                self.losses.saturating_add(1)
            };
        }
        self.in_use = Some(to);
        self.reason = Some(reason);
        self.moved_at = Some(now);
        true
    }
}

/// The evidence for all addresses of peers that have several.
#[derive(Default)]
pub(super) struct Paths {
    pub(super) addresses: BTreeMap<Ip, Address>,
    /// Questions to send.
    pub(super) questions: Vec<(GuidPrefix, Locator)>,
    /// Answers to send.
    pub(super) answers: Vec<(GuidPrefix, Locator)>,
    /// When to look at the paths again; `None` without a peer of several addresses.
    pub(super) next_turn: Option<Instant>,
}

impl Paths {
    /// Looks at all paths at the next turn.
    pub(super) fn look_at(&mut self, now: Instant) {
        self.next_turn = Some(self.next_turn.map_or(now, |at| at.min(now)));
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.next_turn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Ip = Ip::v4([10, 0, 0, 1]);
    const THERE: Ip = Ip::v4([10, 0, 1, 1]);

    fn at(ms: u64) -> Instant {
        Instant::from_nanos((10_000 + ms) * 1_000_000)
    }

    fn millis(count: i64) -> Duration {
        Duration::from_millis(count)
    }

    #[test]
    fn only_an_answer_counts_once_an_address_is_asked() {
        let mut address = Address::NEW;
        address.note_heard(at(5));
        assert!(address.is_heard_after(at(4)) && !address.is_heard_after(at(5)));
        assert!(!address.is_answered_after(Instant::ZERO));
        address.note_asked(at(10));
        address.note_heard(at(11));
        assert!(!address.is_heard_after(at(5)));
        address.note_answer(at(12));
        assert!(address.is_heard_after(at(11)) && address.is_answered_after(at(11)));
        assert!(!address.is_answered_after(at(12)));
        assert_eq!((address.asked, address.good_since), (0, Some(at(12))));
        // Since when it answers stays, until five questions have failed.
        address.note_asked(at(20));
        address.note_answer(at(21));
        assert_eq!(address.good_since, Some(at(12)));
        for question in 0..RETRIES_MAX {
            assert_eq!(address.good_since, Some(at(12)), "{question}");
            address.note_asked(at(30));
        }
        assert_eq!(address.good_since, None);
    }

    #[test]
    fn traffic_may_return_to_an_address_that_answers_for_a_while() {
        let mut address = Address::NEW;
        address.note_answer(at(0));
        assert!(!address.is_steady(at(1_999), HOLD_MIN));
        assert!(address.is_steady(at(2_000), HOLD_MIN));
        // One question may be lost. Two are a reason to stay away.
        address.note_asked(at(2_500));
        assert!(address.is_steady(at(2_501), HOLD_MIN));
        address.note_asked(at(2_580));
        assert!(!address.is_steady(at(2_581), HOLD_MIN));
        address.note_answer(at(2_590));
        assert!(address.is_steady(at(2_590), HOLD_MIN));
    }

    #[test]
    fn an_address_that_was_never_heard_was_not_heard_after_anything() {
        assert!(!Address::NEW.is_heard_after(Instant::ZERO));
        assert!(!Address::NEW.is_answered_after(Instant::ZERO));
    }

    #[test]
    fn a_quiet_address_is_asked_quickly_and_later_slowly() {
        let mut address = Address::NEW;
        assert_eq!(address.ask_at(at(0), QUIET), Instant::ZERO, "never heard");
        address.note_heard(at(0));
        assert_eq!(address.ask_at(at(1), QUIET), at(250));
        assert_eq!(address.ask_at(at(1), QUIET_IDLE), at(2_000));
        for number in 1..=12 {
            address.note_asked(at(number));
            let pause = if number <= 10 { 80 } else { 1_000 };
            assert_eq!(
                address.ask_at(at(number), QUIET),
                at(number + pause),
                "{number}"
            );
        }
        assert_eq!(address.first_asked_at, at(1));
        address.note_answer(at(900));
        assert_eq!(address.ask_at(at(901), QUIET), at(900 + 250));
        address.note_asked(at(1_200));
        assert_eq!(
            address.first_asked_at,
            at(1_200),
            "of the present one-way phase"
        );
    }

    #[test]
    fn a_one_way_address_is_asked_at_once() {
        let mut address = Address::NEW;
        address.note_answer(at(0));
        address.one_way_until = at(100);
        address.last_asked_at = at(0);
        assert_eq!(address.ask_at(at(50), QUIET), at(80), "asked just before");
        address.last_asked_at = Instant::ZERO;
        assert!(address.is_one_way(at(99)) && !address.is_one_way(at(100)));
        assert_eq!(address.ask_at(at(50), QUIET), at(50));
        assert_eq!(address.ask_at(at(100), QUIET), at(250));
        address.note_asked(at(50));
        assert_eq!(address.ask_at(at(51), QUIET), at(130), "not again");
    }

    #[test]
    fn an_address_is_silent_when_the_fifth_question_has_failed() {
        let mut address = Address::NEW;
        for number in 1..=5 {
            assert!(!address.is_silent(at(10_000)), "{number}");
            address.note_asked(at(80 * number));
        }
        assert!(!address.is_silent(at(479)));
        assert!(address.is_silent(at(480)));
        address.note_answer(at(490));
        assert!(!address.is_silent(at(10_000)));
    }

    #[test]
    fn an_address_is_back_if_it_answers_after_the_others_last_question() {
        let (mut one, mut other) = (Address::NEW, Address::NEW);
        other.note_asked(at(10));
        other.note_asked(at(20));
        assert!(!one.is_back_after(&other));
        one.note_answer(at(20));
        assert!(!one.is_back_after(&other));
        let mut one = Address::NEW;
        one.note_answer(at(21));
        assert!(one.is_back_after(&other));
    }

    #[test]
    fn each_loss_doubles_how_long_a_better_address_must_answer() {
        let mut path = PeerPath::at(SourceCheck::Address(HERE));
        assert_eq!((path.in_use, path.hold()), (Some(HERE), Duration::ZERO));
        // The first choice is no move.
        assert!(!path.note_moved(at(0), THERE, PathReason::Better));
        assert_eq!((path.in_use, path.reason), (Some(THERE), None));
        assert_eq!(path.hold(), Duration::ZERO);
        assert!(path.note_moved(at(0), HERE, PathReason::Silent));
        assert_eq!(path.hold(), millis(2_000));
        assert!(path.note_moved(at(2_000), THERE, PathReason::Better));
        assert_eq!(path.hold(), millis(2_000), "the way back is no loss");
        for (loss, hold) in [(1, 4), (2, 8), (3, 16), (4, 32), (5, 60), (6, 60), (7, 60)] {
            assert!(path.note_moved(at(2_000 + loss), HERE, PathReason::LinkDown));
            assert_eq!(path.hold(), millis(hold * 1_000), "{loss}");
        }
        // Two minutes later the link is no longer considered to flap.
        let moved = 2_007 + 120_000;
        let mut still = path.clone();
        assert!(still.note_moved(at(moved), THERE, PathReason::Silent));
        assert_eq!(still.hold(), millis(60_000));
        assert!(path.note_moved(at(moved + 1), THERE, PathReason::Silent));
        assert_eq!(path.hold(), millis(2_000));
    }

    #[test]
    fn questions_to_unproven_addresses_are_paid_by_announcements() {
        let mut path = PeerPath::at(SourceCheck::Address(HERE));
        let paid = |path: &mut PeerPath| {
            let mut questions = 0;
            while path.spend(QUESTION_BYTES) {
                questions += 1;
            }
            questions
        };
        assert_eq!(paid(&mut path), BUDGET_FIRST / QUESTION_BYTES);
        let limits = ParticipantLimits {
            amplification_factor: 3,
            ..ParticipantLimits::default()
        };
        // The rest of the first budget, and three times the announcement.
        path.note_announcement(100, &limits);
        assert_eq!(
            paid(&mut path),
            (BUDGET_FIRST % QUESTION_BYTES + 300) / QUESTION_BYTES
        );
        path.note_announcement(1 << 20, &limits);
        assert_eq!(paid(&mut path), BUDGET_MAX / QUESTION_BYTES);
        assert!(PeerPath::default().spend(0) && !PeerPath::default().spend(1));
        let mut exact = PeerPath::at(SourceCheck::Address(HERE));
        assert!(exact.spend(BUDGET_FIRST) && !exact.spend(1));
    }

    #[test]
    fn a_question_soon_after_another_of_the_same_path_repeats_it() {
        let mut path = PeerPath::default();
        assert!(!path.note_questioned(at(0), HERE));
        assert!(path.note_questioned(at(149), HERE));
        assert!(!path.note_questioned(at(150), THERE));
        assert!(!path.note_questioned(at(151), HERE));
        assert!(!path.note_questioned(at(151 + 150), HERE));
    }

    #[test]
    fn the_earliest_look_counts() {
        let mut paths = Paths::default();
        assert_eq!(paths.next_timeout(), None);
        for (look, next) in [(20, 20), (30, 20), (10, 10)] {
            paths.look_at(at(look));
            assert_eq!(paths.next_timeout(), Some(at(next)));
        }
    }
}
