//! Unvalidated participants: announced, but not proven to exist (protection against
//! reflection and amplification).
//!
//! Anyone can announce a participant at a victim's address, and so direct our
//! traffic there (CVE-2021-38425 and similar ones in five stacks). So a new
//! participant starts unvalidated. It gets no proxies and no events, and at most
//! three times the bytes it sent us, at doubling delays. A message addressed to us
//! from an announced address validates it.
//!
//! The table is small. When it is full, the source address with the most entries
//! loses one, so that a flood from one address does not displace others.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::discovery::data::ParticipantData;
use crate::discovery::question::AskedEndpoints;
use crate::id::GuidPrefix;
use crate::locator::{IpAddress, Locator, NetworkScope, Route};
use crate::time::{Duration, Instant};

use super::config::ParticipantLimits;
use super::identity::has_identity_token;
use crate::stats::Tally;

/// The first delay between probes to one participant; doubles up to
/// [`PROBE_PERIOD_MAX`].
const PROBE_PERIOD_MIN: Duration = Duration::from_millis(100);
const PROBE_PERIOD_MAX: Duration = Duration::from_secs(3);

/// When a participant that was lost by a claim in its name is probed, how often, and how
/// many answers show that it lives.
const RETURN_DELAY: Duration = Duration::from_millis(300);
const RETURN_PROBE_PERIOD: Duration = Duration::from_millis(100);
const RETURN_ANSWERS: u8 = 2;
/// So long it has to answer. Until then no other announcement in its name counts, since
/// a forger of the claim may forge that, too.
const RETURN_PATIENCE: Duration = Duration::from_millis(800);
/// The bytes that count as received from it: enough for six small probes.
const RETURN_BYTES: usize = 200;

/// A participant that announces itself for so long and answers none of so many probes
/// is silent. It does not receive what we send, or does not understand it.
const SILENT_AFTER: Duration = Duration::from_secs(1);
const SILENT_PROBES: u32 = 3;
/// Its age when it is reported: until then it may be busy.
const SILENT_TOLD_AFTER: Duration = Duration::from_secs(5);
/// A silent participant is reported once, and one of them in this time.
const SILENT_TELL_PERIOD: Duration = Duration::from_secs(60);

pub(super) struct UnvalidatedParticipant {
    pub(super) data: Arc<ParticipantData>,
    pub(super) from: Option<Locator>,
    pub(super) route: Route,
    received_bytes: usize,
    sent_bytes: usize,
    /// When it last announced itself.
    last_announced: Instant,
    /// When it was noted.
    since: Instant,
    probes_sent: u32,
    next_probe_at: Instant,
    /// The endpoints that probes asked since it announced itself like this.
    pub(super) asked: AskedEndpoints,
    is_told: bool,
    /// It was lost by a claim in its name, and was proven at `route`.
    awaited: Option<Awaited>,
    /// So many answers are needed. One of an awaited participant may be late.
    answers_needed: u8,
}

/// How a participant was lost that may still live.
#[derive(Clone, Copy)]
struct Awaited {
    /// It seemed to have restarted. Otherwise its end was announced.
    seemed_restarted: bool,
    /// Answers count from this time on.
    from: Instant,
}

impl UnvalidatedParticipant {
    /// Whether it announced itself within this span.
    pub(super) fn is_announced_since(&self, now: Instant, span: Duration) -> bool {
        now.since(self.last_announced) < span
    }

    /// Whether it was lost by a claim in its name, and is awaited.
    pub(super) fn is_awaited(&self) -> bool {
        self.awaited.is_some()
    }

    /// Whether it is awaited since it seemed to have restarted.
    pub(super) fn seemed_restarted(&self) -> bool {
        self.awaited.is_some_and(|awaited| awaited.seemed_restarted)
    }

    /// Whether this announcement is another one than that of the participant awaited here,
    /// which may still answer where it was proven.
    fn is_kept_from(&self, now: Instant, data: &ParticipantData) -> bool {
        let may_answer = |awaited: Awaited| now < awaited.from.after(RETURN_PATIENCE);
        self.awaited.is_some_and(may_answer) && *self.data != *data
    }

    /// The pause until the next probe.
    fn probe_period(&self) -> Duration {
        match self.awaited {
            Some(_) => RETURN_PROBE_PERIOD,
            None => probe_period(self.probes_sent),
        }
    }

    /// Whether it has announced itself for so long and answers nothing. One with an
    /// identity need not answer a participant without security, and one without SEDP has
    /// nothing that answers.
    fn is_silent(&self, now: Instant, span: Duration) -> bool {
        let is_old = now.since(self.since) >= span;
        let has_probes = self.probes_sent >= SILENT_PROBES;
        let must_answer = AskedEndpoints::can_answer(&self.data) && !has_identity_token(&self.data);
        is_old && has_probes && !self.is_awaited() && must_answer
    }

    /// The bytes that may still be sent to it.
    pub(super) fn budget_bytes(&self, limits: &ParticipantLimits) -> usize {
        let budget = self
            .received_bytes
            .saturating_mul(limits.amplification_factor);
        budget.saturating_sub(self.sent_bytes)
    }
}

/// The content of a probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ParticipantProbe {
    /// Our announcement and a question.
    WithAnnouncement,
    QuestionOnly,
}

/// Bytes of probe datagrams without the question.
#[derive(Clone, Copy)]
pub(super) struct ProbeSizes {
    pub(super) with_announcement: usize,
    pub(super) question_only: usize,
}

/// A probe to send.
pub(super) struct DueProbe {
    pub(super) data: Arc<ParticipantData>,
    pub(super) route: Route,
    pub(super) kind: ParticipantProbe,
    pub(super) asked: AskedEndpoints,
}

/// All of them, at most `limits.unvalidated_participants`.
#[derive(Default)]
pub(super) struct UnvalidatedParticipants {
    list: Vec<UnvalidatedParticipant>,
    /// When a silent one was reported.
    silent_told_at: Option<Instant>,
}

impl UnvalidatedParticipants {
    /// Notes an announcement of `bytes` bytes. True if another entry was evicted.
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
            if known.is_kept_from(now, &data) {
                return false;
            }
            if known.data != data {
                known.awaited = None;
                known.answers_needed = 1;
                // Questions to other endpoints say nothing about these.
                known.asked = AskedEndpoints::default();
            }
            if known.route != route {
                // Probes that went elsewhere say nothing about this route.
                known.probes_sent = 0;
                known.asked = AskedEndpoints::default();
            }
            known.data = data;
            known.from = from;
            known.route = route;
            known.last_announced = now;
            known.received_bytes = known.received_bytes.saturating_add(bytes);
            let at = now + known.probe_period();
            // Answers to earlier probes would not count.
            let at = known.awaited.map_or(at, |awaited| at.max(awaited.from));
            known.next_probe_at = known.next_probe_at.min(at);
            return false;
        }
        let full = self.list.len() >= limits.unvalidated_participants.max(1);
        if full {
            self.evict();
        }
        self.list.push(UnvalidatedParticipant {
            data,
            from,
            route,
            received_bytes: bytes,
            sent_bytes: 0,
            last_announced: now,
            since: now,
            probes_sent: 0,
            next_probe_at: now,
            asked: AskedEndpoints::default(),
            is_told: false,
            awaited: None,
            answers_needed: 1,
        });
        full
    }

    /// Notes a participant that was lost by a claim in its name, and the route where it
    /// was proven. It is probed in a moment, when one that really ended no longer answers.
    pub(super) fn await_return(
        &mut self,
        now: Instant,
        limits: &ParticipantLimits,
        data: Arc<ParticipantData>,
        route: Route,
        seemed_restarted: bool,
    ) {
        let prefix = data.prefix;
        let from = match *route.locators {
            [at] => Some(at),
            _ => None,
        };
        self.take(prefix);
        self.note(now, limits, data, from, route, RETURN_BYTES);
        if let Some(awaited) = self.find_mut(prefix) {
            let at = now.after(RETURN_DELAY);
            awaited.next_probe_at = at;
            awaited.awaited = Some(Awaited {
                seemed_restarted,
                from: at,
            });
            awaited.answers_needed = RETURN_ANSWERS;
        }
    }

    /// Whether the last announcement of one came from an address that it names.
    pub(super) fn came_from_announced(&self, prefix: GuidPrefix, network: &NetworkScope) -> bool {
        self.find(prefix).is_some_and(|known| {
            let announced = &known.data.metatraffic_unicast;
            check_source(known.from, announced, network) != SourceCheck::Mismatch
        })
    }

    /// Notes an answer. True if it validates the participant.
    pub(super) fn note_answer(&mut self, now: Instant, prefix: GuidPrefix) -> bool {
        let Some(known) = self.find_mut(prefix) else {
            return false;
        };
        if known.awaited.is_some_and(|awaited| now < awaited.from) {
            return false;
        }
        known.answers_needed = known.answers_needed.saturating_sub(1);
        known.answers_needed == 0
    }

    /// Removes the oldest entry of the source address that has the most; one that is
    /// awaited only if all are.
    fn evict(&mut self) {
        let address = |c: &UnvalidatedParticipant| c.from.map(|from| from.address);
        let mut counts = BTreeMap::<_, usize>::new();
        for participant in &self.list {
            counts.entry(address(participant)).or_default().tally();
        }
        let count_of = |c: &UnvalidatedParticipant| counts.get(&address(c)).copied();
        let victim = self
            .list
            .iter()
            .enumerate()
            .max_by_key(|(_, c)| {
                let age = core::cmp::Reverse(c.last_announced);
                (!c.is_awaited(), count_of(c), age)
            })
            .map(|(index, _)| index);
        if let Some(index) = victim {
            self.list.remove(index);
        }
    }

    pub(super) fn find(&self, prefix: GuidPrefix) -> Option<&UnvalidatedParticipant> {
        self.list.iter().find(|c| c.data.prefix == prefix)
    }

    fn find_mut(&mut self, prefix: GuidPrefix) -> Option<&mut UnvalidatedParticipant> {
        self.list.iter_mut().find(|c| c.data.prefix == prefix)
    }

    /// Removes one, because it answered or was disposed.
    pub(super) fn take(&mut self, prefix: GuidPrefix) -> Option<UnvalidatedParticipant> {
        let index = self.list.iter().position(|c| c.data.prefix == prefix)?;
        Some(self.list.remove(index))
    }

    /// The participants that announce themselves and answer nothing.
    pub(super) fn silent(&self, now: Instant) -> impl Iterator<Item = &UnvalidatedParticipant> {
        let is_silent = move |c: &&UnvalidatedParticipant| c.is_silent(now, SILENT_AFTER);
        self.list.iter().filter(is_silent)
    }

    /// A silent participant that was not reported yet, at most one in a while.
    pub(super) fn take_silent(&mut self, now: Instant) -> Option<&UnvalidatedParticipant> {
        let told_at = self.silent_told_at;
        if told_at.is_some_and(|at| now.since(at) < SILENT_TELL_PERIOD) {
            return None;
        }
        let mut untold = self.list.iter_mut().filter(|c| !c.is_told);
        let found = untold.find(|c| c.is_silent(now, SILENT_TOLD_AFTER))?;
        found.is_told = true;
        self.silent_told_at = Some(now);
        Some(found)
    }

    /// The next due probe within the byte budget. Probes alternate between
    /// announcement and question only, which is enough for a participant that
    /// knows us already. Counts it as sent. `withheld` counts entries without
    /// budget.
    pub(super) fn next_probe(
        &mut self,
        now: Instant,
        limits: &ParticipantLimits,
        sizes: ProbeSizes,
        withheld: &mut u64,
    ) -> Option<DueProbe> {
        for participant in self.list.iter_mut().filter(|c| c.next_probe_at <= now) {
            let budget = participant
                .received_bytes
                .saturating_mul(limits.amplification_factor);
            let left = budget.saturating_sub(participant.sent_bytes);
            let asked = AskedEndpoints::of(&participant.data, participant.probes_sent);
            let question = asked.size_bytes();
            let with_announcement = sizes.with_announcement.saturating_add(question);
            let (kind, bytes) = if participant.probes_sent % 2 == 0 && with_announcement <= left {
                (ParticipantProbe::WithAnnouncement, with_announcement)
            } else {
                let bytes = sizes.question_only.saturating_add(question);
                (ParticipantProbe::QuestionOnly, bytes)
            };
            if bytes > left {
                withheld.tally();
                participant.next_probe_at = Instant::FAR_FUTURE;
                continue;
            }
            participant.sent_bytes = participant.sent_bytes.saturating_add(bytes);
            participant.next_probe_at = now + participant.probe_period();
            participant.probes_sent = participant.probes_sent.saturating_add(1);
            participant.asked = participant.asked.or(asked);
            return Some(DueProbe {
                data: participant.data.clone(),
                route: participant.route.clone(),
                kind,
                asked,
            });
        }
        None
    }

    /// Drops entries without a recent announcement; returns how many.
    pub(super) fn expire(&mut self, now: Instant, limits: &ParticipantLimits) -> usize {
        let before = self.list.len();
        self.list
            .retain(|c| c.last_announced + limits.unvalidated_age > now);
        before.saturating_sub(self.list.len())
    }

    pub(super) fn next_timeout(&self, limits: &ParticipantLimits) -> Option<Instant> {
        self.list
            .iter()
            .map(|c| {
                c.next_probe_at
                    .min(c.last_announced + limits.unvalidated_age)
            })
            .min()
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }
}

pub(super) fn probe_period(probes_sent: u32) -> Duration {
    let factor = 1i64 << probes_sent.min(10);
    PROBE_PERIOD_MIN.times(factor).min(PROBE_PERIOD_MAX)
}

/// The source address of a datagram compared with the locators its sender
/// announced.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum SourceCheck {
    /// It came from this announced address.
    Address(IpAddress),
    /// It came from this host, and the announced addresses belong to this host.
    SameHost,
    /// The driver does not know the source, or trusts it, as with the
    /// announcements of same-host peers.
    Unknown,
    /// It came from another address.
    Mismatch,
}

/// Checks the source address of a datagram.
pub(super) fn check_source(
    from: Option<Locator>,
    announced: &[Locator],
    network: &NetworkScope,
) -> SourceCheck {
    let Some((source, _)) = from.and_then(Locator::to_udp) else {
        return SourceCheck::Unknown;
    };
    let addresses = announced.iter().filter_map(|l| l.to_udp());
    if addresses.clone().any(|(ip, _)| ip == source) {
        return SourceCheck::Address(source);
    }
    if is_of_this_host(source, network) && network.choose_route(announced).is_same_host() {
        return SourceCheck::SameHost;
    }
    SourceCheck::Mismatch
}

/// Whether an address is one of ours. A link without a carrier keeps its address, at
/// which processes of this host still reach each other.
pub(super) fn is_of_this_host(ip: IpAddress, network: &NetworkScope) -> bool {
    ip.is_of_any_host() || network.has_address(ip)
}

/// The route to a peer: the announced address that it sends from, else the best
/// guess. (Several hosts may announce the same bridge address, such as Docker's
/// 172.17.0.1. Only the source address distinguishes them.)
pub(super) fn route(
    network: &NetworkScope,
    announced: &[Locator],
    source_check: SourceCheck,
) -> Route {
    if let SourceCheck::Address(source) = source_check {
        let last_announced: Vec<Locator> = announced
            .iter()
            .copied()
            .filter(|l| l.to_udp().is_some_and(|(ip, _)| ip == source))
            .collect();
        let route = network.choose_route(&last_announced);
        if !route.locators.is_empty() {
            return route;
        }
    }
    network.choose_route(announced)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locator::OwnAddress;

    fn network() -> NetworkScope {
        NetworkScope {
            addresses: alloc::vec![
                OwnAddress {
                    ip: [10, 0, 0, 5].into(),
                    prefix_length: 24
                },
                OwnAddress {
                    ip: [172, 17, 0, 1].into(),
                    prefix_length: 16
                }
            ],
            ..NetworkScope::default()
        }
    }

    #[test]
    fn a_bridge_address_of_many_hosts_does_not_hide_the_real_one() {
        let bridge = Locator::udp_v4([172, 17, 0, 1], 7410);
        let lan = Locator::udp_v4([10, 0, 0, 9], 7410);
        let from = Some(Locator::udp_v4([10, 0, 0, 9], 40_000));
        let source_check = check_source(from, &[bridge, lan], &network());
        assert_eq!(source_check, SourceCheck::Address([10, 0, 0, 9].into()));
        let route = route(&network(), &[bridge, lan], source_check);
        assert_eq!(route, Route::by_socket(&[lan], false));
    }

    #[test]
    fn a_loopback_source_validates_only_addresses_of_this_host() {
        let from = Some(Locator::udp_v4([127, 0, 0, 1], 40_000));
        let here = Locator::udp_v4([10, 0, 0, 5], 7410);
        let there = Locator::udp_v4([10, 0, 0, 9], 7410);
        assert_eq!(
            check_source(from, &[here], &network()),
            SourceCheck::SameHost
        );
        assert_eq!(
            check_source(from, &[there], &network()),
            SourceCheck::Mismatch
        );
        // As other stacks send by multicast on loopback.
        let nowhere = Some(Locator::udp_v4([0, 0, 0, 0], 40_000));
        assert_eq!(
            check_source(nowhere, &[here], &network()),
            SourceCheck::SameHost
        );
        assert_eq!(
            check_source(nowhere, &[there], &network()),
            SourceCheck::Mismatch
        );
        let authenticating_peer = Some(Locator::udp_v4([10, 0, 0, 66], 1));
        assert_eq!(
            check_source(authenticating_peer, &[here], &network()),
            SourceCheck::Mismatch
        );
    }

    #[test]
    fn an_address_without_a_carrier_is_still_of_this_host() {
        let mut network = network();
        let unplugged = network.addresses.remove(0);
        network.down.push(unplugged);
        let here = Locator::udp(unplugged.ip, 7410);
        assert!(is_of_this_host(unplugged.ip, &network));
        let other = network.addresses[0].ip;
        let from = Some(Locator::udp(other, 40_000));
        assert_eq!(check_source(from, &[here], &network), SourceCheck::SameHost);
        assert!(!is_of_this_host([10, 0, 0, 9].into(), &network));
    }

    #[test]
    fn a_flood_from_one_address_does_not_displace_others() {
        let limits = ParticipantLimits {
            unvalidated_participants: 4,
            ..ParticipantLimits::default()
        };
        let mut unvalidated = UnvalidatedParticipants::default();
        let mut note = |byte: u8, host: u8| {
            let data = ParticipantData::new(GuidPrefix([byte; 12]));
            let from = Locator::udp_v4([10, 0, 0, host], 7410);
            let route = network().choose_route(&[from]);
            let at = Instant::from_nanos(u64::from(byte));
            unvalidated.note(at, &limits, Arc::new(data), Some(from), route, 100);
        };
        note(1, 9);
        for byte in 2..100 {
            note(byte, 66);
        }
        assert_eq!(unvalidated.len(), 4);
        assert!(unvalidated.find(GuidPrefix([1; 12])).is_some());
    }

    /// The budget is three times what it sent: a probe of exactly that is sent, and the
    /// next one withheld.
    #[test]
    fn a_probe_that_takes_the_whole_budget_is_sent_and_no_other() {
        let limits = ParticipantLimits::default();
        let mut unvalidated = UnvalidatedParticipants::default();
        let prefix = GuidPrefix([1; 12]);
        let from = Locator::udp_v4([10, 0, 0, 9], 7410);
        let route = network().choose_route(&[from]);
        let data = Arc::new(ParticipantData::new(prefix));
        let now = Instant::from_nanos(1);
        unvalidated.note(now, &limits, data, Some(from), route, 100);
        let question = 32;
        let sizes = ProbeSizes {
            with_announcement: 100 * limits.amplification_factor + 1 - question,
            question_only: 100 * limits.amplification_factor - question,
        };
        let mut withheld = 0;
        let probe = unvalidated.next_probe(now, &limits, sizes, &mut withheld);
        let probe = probe.map(|probe| (probe.data.prefix, probe.kind));
        assert_eq!(probe, Some((prefix, ParticipantProbe::QuestionOnly)));
        let later = now.after(Duration::from_secs(1));
        let next = unvalidated.next_probe(later, &limits, sizes, &mut withheld);
        assert!(next.is_none());
        assert_eq!(withheld, 1);
    }

    /// Seed 50078 of the simulator: announcements brought probes forward whose answers did
    /// not count, and the ones that did came a second late.
    #[test]
    fn a_lost_participant_that_announces_itself_returns_no_later() {
        let limits = ParticipantLimits::default();
        let mut unvalidated = UnvalidatedParticipants::default();
        let prefix = GuidPrefix([1; 12]);
        let from = Locator::udp_v4([10, 0, 0, 9], 7410);
        let data = Arc::new(ParticipantData::new(prefix));
        let lost_at = Instant::from_nanos(1);
        let after = |millis| lost_at.after(Duration::from_millis(millis));
        let route = || network().choose_route(&[from]);
        unvalidated.await_return(lost_at, &limits, data.clone(), route(), false);
        let sizes = ProbeSizes {
            with_announcement: 268,
            question_only: 28,
        };
        let mut returned_at = None;
        for millis in 0..1_000 {
            let now = after(millis);
            if millis == 80 {
                unvalidated.note(now, &limits, data.clone(), Some(from), route(), 260);
            }
            let probe = unvalidated.next_probe(now, &limits, sizes, &mut 0);
            if probe.is_some() && unvalidated.note_answer(now, prefix) {
                returned_at = Some(millis);
                break;
            }
        }
        assert_eq!(returned_at, Some(400));
    }
}
