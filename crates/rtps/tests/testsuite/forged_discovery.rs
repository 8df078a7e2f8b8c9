//! Forged discovery in the name of a living participant: from another address it
//! changes nothing, from its own address everything is undone within two seconds.

use pteros_test_support::rtps::domain;

use std::sync::Arc;

use domain::{Domain, address, config, endpoint, prefix};
use pteros_rtps::discovery::data::{EndpointData, ParticipantMessageData};
use pteros_rtps::id::{EntityId, Guid};
use pteros_rtps::locator::Locator;
use pteros_rtps::outbox::{MessageBuilder, Outbox};
use pteros_rtps::participant::{LostReason, Participant, ParticipantConfig, ParticipantEvent};
use pteros_rtps::qos::{EndpointQos, Liveliness};
use pteros_rtps::seq::{FragmentNumber, SequenceNumber};
use pteros_rtps::time::Duration;
use pteros_rtps::wire::{
    AckNack, DataFragHead, DataHead, Gap, Heartbeat, InlineQosHead, SequenceSet, StatusInfo,
};

/// The attacker's own address, which nobody announces.
const ATTACKER: Locator = Locator::udp_v4([10, 0, 0, 66], 9);
const FAR: i64 = 1 << 40;
const RECOVERY: Duration = Duration::from_secs(2);

/// A publisher on node 0 and its subscription on node 1. The attacker speaks in the
/// name of node 0.
struct Victim {
    domain: Domain,
    writer: Guid,
    reader: Guid,
}

impl Victim {
    fn new() -> Self {
        let mut domain = Domain::met(2);
        let writer = domain.add_writer(0, "rt/chatter", EndpointQos::default());
        let reader = domain.add_reader(1, "rt/chatter", EndpointQos::default());
        domain.run_for(Duration::from_secs(5));
        let victim = Self {
            domain,
            writer,
            reader,
        };
        victim.check_matched();
        victim
    }

    /// Node 1 receives a datagram in the name of node 0.
    fn attack(&mut self, from: Locator, write: impl FnOnce(&mut MessageBuilder<'_>)) {
        let nowhere: Arc<[Locator]> = Arc::from([address(1)]);
        let mut out = Outbox::new();
        let mut message = out.begin(prefix(0, 0), &nowhere, 60_000);
        message.info_destination(prefix(1, 0));
        write(&mut message);
        message.finish();
        let bytes = out.iter().next().unwrap().parts.concat();
        self.domain.deliver(1, Some(from), &bytes);
        self.domain.flush(1);
    }

    fn sedp(&mut self, from: Locator, sequence: i64, data: &EndpointData) {
        let head = head(EntityId::SEDP_PUBLICATIONS_WRITER, sequence);
        self.attack(from, |message| {
            message.data(&head, &data.encode());
        });
    }

    /// As [`Self::sedp`], as a fragment that is the whole sample.
    fn sedp_fragment(&mut self, from: Locator, sequence: i64, data: &EndpointData) {
        let body = data.encode();
        let size = u16::try_from(body.len()).unwrap();
        let head = DataFragHead {
            reader: EntityId::UNKNOWN,
            writer: EntityId::SEDP_PUBLICATIONS_WRITER,
            sequence: SequenceNumber(sequence),
            first_fragment: FragmentNumber(1),
            fragment_count: 1,
            fragment_size: size,
            sample_size: size.into(),
            inline_qos: InlineQosHead::NONE,
            key_only: false,
        };
        self.attack(from, |message| {
            assert!(message.data_frag(&head, body));
        });
    }

    fn dispose_endpoint(&mut self, from: Locator, sequence: i64) {
        let key = EndpointData::encode_key(self.writer);
        let head = DataHead {
            inline_qos: InlineQosHead {
                key_hash: Some(self.writer.to_bytes()),
                status_info: Some(StatusInfo::DISPOSED_UNREGISTERED),
                ..InlineQosHead::NONE
            },
            key_only: true,
            ..head(EntityId::SEDP_PUBLICATIONS_WRITER, sequence)
        };
        self.attack(from, |message| {
            message.data(&head, &key);
        });
    }

    fn heartbeat(&mut self, from: Locator, first: i64, last: i64, count: u32) {
        self.attack(from, |message| {
            message.heartbeat(&Heartbeat {
                reader: EntityId::UNKNOWN,
                writer: EntityId::SEDP_PUBLICATIONS_WRITER,
                first: SequenceNumber(first),
                last: SequenceNumber(last),
                count,
                is_final: false,
                liveliness: false,
                group_info: None,
            });
        });
    }

    fn gap(&mut self, from: Locator, first: i64, last: i64) {
        let (first, last) = (SequenceNumber(first), SequenceNumber(last));
        let (reader, writer) = (EntityId::UNKNOWN, EntityId::SEDP_PUBLICATIONS_WRITER);
        self.attack(from, |message| {
            message.gap(&Gap::range(reader, writer, first, last));
        });
    }

    /// Answers the probes of the victim in the name of the participant.
    fn answer_probes(&mut self, from: Locator, count: u32) {
        self.attack(from, |message| {
            message.acknack(&AckNack {
                reader: EntityId::SEDP_PUBLICATIONS_READER,
                writer: EntityId::SEDP_PUBLICATIONS_WRITER,
                state: SequenceSet::empty(SequenceNumber(1)),
                count,
                is_final: true,
            });
        });
    }

    fn assert_liveliness(&mut self, from: Locator, sequence: i64, kind: Liveliness) {
        let assertion = ParticipantMessageData::liveliness(prefix(0, 0), kind);
        let head = head(EntityId::WLP_WRITER, sequence);
        self.attack(from, |message| {
            message.data(&head, &assertion.encode());
        });
    }

    fn spdp(&mut self, from: Locator, config: ParticipantConfig) {
        let now = self.domain.now;
        let mut of_it = Participant::new(now, config);
        let mut out = Outbox::new();
        of_it.poll_transmit(now, &mut out);
        let bytes = out.iter().next().unwrap().parts.concat();
        self.domain.deliver(1, Some(from), &bytes);
        self.domain.flush(1);
    }

    fn dispose_participant(&mut self, from: Locator) {
        self.dispose(from, config(0, 0));
    }

    fn dispose(&mut self, from: Locator, who: ParticipantConfig) {
        let mut leaving = Domain::new(1);
        let node = leaving.join(who);
        let mut out = Outbox::new();
        leaving.nodes[node].machine.shut_down(leaving.now, &mut out);
        let bytes = out.iter().next().unwrap().parts.concat();
        self.domain.deliver(1, Some(from), &bytes);
        self.domain.flush(1);
    }

    fn is_matched(&self) -> bool {
        self.domain.matches(0).contains(&(self.writer, self.reader))
            && self.domain.matches(1).contains(&(self.reader, self.writer))
    }

    fn check_matched(&self) {
        assert!(self.is_matched());
        let known = self.domain.nodes[1].machine.endpoints().remotes();
        let known: Vec<Guid> = known.map(|known| known.guid()).collect();
        assert_eq!(known, [self.writer]);
    }

    /// The pair is matched again, and a new writer is found beside it.
    fn check_recovery_with_new_writer(&mut self) {
        let own = self.domain.add_writer(0, "rt/own", EndpointQos::default());
        self.domain.run_for(RECOVERY);
        assert!(self.is_matched());
        let known = self.domain.nodes[1].machine.endpoints().remotes();
        let known: Vec<Guid> = known.map(|known| known.guid()).collect();
        assert_eq!(known, [self.writer, own]);
    }

    /// The rule *recovery*: the pair is matched again, nothing forged is left, and
    /// new endpoints are found.
    fn check_recovery(&mut self) {
        self.domain.run_for(RECOVERY);
        self.check_matched();
        let route = self.domain.nodes[1]
            .events
            .iter()
            .rev()
            .find_map(|e| match e {
                ParticipantEvent::EndpointChanged { remote, route }
                    if remote.guid == self.writer =>
                {
                    Some(route.clone())
                }
                ParticipantEvent::Matched { route, .. } => Some(route.clone()),
                _ => None,
            });
        let user = Locator {
            port: 7411,
            ..address(0)
        };
        assert_eq!(route.unwrap().locators.to_vec(), [user]);
        let later = self
            .domain
            .add_writer(0, "rt/later", EndpointQos::default());
        let here = self
            .domain
            .add_reader(1, "rt/later", EndpointQos::default());
        self.domain.run_for(Duration::from_millis(300));
        assert!(self.domain.matches(1).contains(&(here, later)));
        self.domain.remove(0, later);
        self.domain.remove(1, here);
        self.domain.run_for(Duration::from_millis(300));
        self.check_matched();
    }

    /// Nothing happens at all, it is counted, and told once with the address.
    fn check_refused(&mut self) {
        assert!(self.is_matched());
        assert!(losses(&self.domain).is_empty());
        let stats = *self.domain.nodes[1].machine.stats();
        assert!(stats.foreign_sources + stats.impersonation > 0);
        self.check_recovery();
        assert!(losses(&self.domain).is_empty());
        let matched = |e: &&ParticipantEvent| matches!(e, ParticipantEvent::Unmatched { remote, .. } if *remote == self.writer);
        let unmatched = self.domain.nodes[1].events.iter().filter(matched);
        assert_eq!(unmatched.count(), 0);
    }

    /// The number that the SEDP writer gives its next change.
    fn next(&self) -> i64 {
        2
    }

    fn other_type(&self) -> EndpointData {
        endpoint(self.writer, "rt/chatter", "Other", EndpointQos::default())
    }

    fn fake_reader(&self) -> EndpointData {
        let fake = prefix(0, 0).with(EntityId::new([0, 9, 9], EntityId::KIND_WRITER_NO_KEY));
        endpoint(fake, "rt/chatter", "T", EndpointQos::default())
    }
}

fn head(writer: EntityId, sequence: i64) -> DataHead<'static> {
    DataHead {
        writer,
        sequence: SequenceNumber(sequence),
        ..DataHead::default()
    }
}

fn losses(domain: &Domain) -> Vec<LostReason> {
    let events = domain.nodes[1].events.iter();
    let lost = events.filter_map(|e| match e {
        ParticipantEvent::ParticipantLost { reason, .. } => Some(*reason),
        _ => None,
    });
    lost.collect()
}

/// Node 0 with these locators in place of its own.
fn moved(metatraffic: Locator, default: Locator) -> ParticipantConfig {
    let mut moved = config(0, 0);
    moved.metatraffic_unicast = vec![metatraffic];
    moved.default_unicast = vec![default];
    moved
}

#[test]
fn sedp_from_another_address_changes_nothing() {
    let mut victim = Victim::new();
    let next = victim.next();
    victim.dispose_endpoint(ATTACKER, next);
    victim.check_refused();
    let next = victim.next() + 2;
    let other = victim.other_type();
    victim.sedp(ATTACKER, next, &other);
    victim.heartbeat(ATTACKER, FAR, FAR, 1_000);
    victim.attack(ATTACKER, |message| {
        let writer = EntityId::SEDP_PUBLICATIONS_WRITER;
        let all = (SequenceNumber(1), SequenceNumber(FAR));
        message.gap(&Gap::range(EntityId::UNKNOWN, writer, all.0, all.1));
    });
    victim.check_refused();
    let told = victim.domain.nodes[1].events.iter();
    let told: Vec<_> = told
        .filter(|e| matches!(e, ParticipantEvent::SourceRefused { .. }))
        .collect();
    let expected = ParticipantEvent::SourceRefused {
        prefix: prefix(0, 0),
        from: [10, 0, 0, 66].into(),
    };
    assert_eq!(told, [&expected], "told once");
}

/// WLP: neither the assertion counts, nor does it renew the participant's lease.
#[test]
fn a_liveliness_assertion_from_another_address_is_dropped_and_counted() {
    let mut victim = Victim::new();
    let assertions = |victim: &Victim| {
        let events = victim.domain.nodes[1].events.iter();
        let asserted = events.filter_map(|e| match e {
            ParticipantEvent::LivelinessAsserted { kind, .. } => Some(*kind),
            _ => None,
        });
        asserted.collect::<Vec<_>>()
    };
    let foreign = |victim: &Victim| victim.domain.nodes[1].machine.stats().foreign_sources;
    let before = foreign(&victim);
    let kinds = [Liveliness::Automatic, Liveliness::ManualByParticipant];
    for (sequence, kind) in (1..).zip(kinds) {
        victim.assert_liveliness(ATTACKER, sequence, kind);
    }
    victim.domain.run_for(Duration::from_millis(300));
    assert_eq!(assertions(&victim), []);
    // INFO_DST and DATA of both datagrams.
    assert_eq!(foreign(&victim), before + 4);
    // The same bytes from its own address are believed: nothing else was wrong.
    for (sequence, kind) in (1..).zip(kinds) {
        victim.assert_liveliness(address(0), sequence, kind);
    }
    assert_eq!(assertions(&victim), kinds);
    assert_eq!(foreign(&victim), before + 4);
    victim.domain.nodes[0].dead = true;
    for sequence in 3..43 {
        victim.assert_liveliness(ATTACKER, sequence, Liveliness::Automatic);
        victim.domain.run_for(Duration::from_secs(1));
    }
    assert_eq!(losses(&victim.domain), [LostReason::LeaseExpired]);
    assert_eq!(assertions(&victim), kinds);
}

#[test]
fn user_traffic_is_accepted_from_proven_addresses_only() {
    let mut victim = Victim::new();
    let now = victim.domain.now;
    let machine = &mut victim.domain.nodes[1].machine;
    let ephemeral = Locator {
        port: 40_000,
        ..address(0)
    };
    assert!(machine.accepts_source(now, prefix(0, 0), Some(ephemeral)));
    assert!(!machine.accepts_source(now, prefix(0, 0), Some(ATTACKER)));
    assert!(!machine.accepts_source(now, prefix(0, 0), Some(address(1))));
    assert!(
        machine.accepts_source(now, prefix(9, 9), Some(ATTACKER)),
        "unknown"
    );
    victim.domain.run_for(Duration::from_secs(3));
    let (now, machine) = (victim.domain.now, &mut victim.domain.nodes[1].machine);
    assert!(!machine.accepts_source(now, prefix(0, 0), Some(ATTACKER)));
}

#[test]
fn a_participant_with_several_addresses_may_send_from_each() {
    let mut domain = Domain::new(1);
    let other = Locator::udp_v4([10, 0, 5, 1], 7410);
    let user = Locator::udp_v4([10, 0, 6, 1], 7411);
    let mut several = config(0, 0);
    several.metatraffic_unicast.push(other);
    several.default_unicast.push(user);
    domain.join(several);
    domain.join(config(1, 0));
    domain.run_for(Duration::from_secs(1));
    let (now, machine) = (domain.now, &mut domain.nodes[1].machine);
    for from in [address(0), other, user] {
        assert!(machine.accepts_source(now, prefix(0, 0), Some(from)));
    }
}

#[test]
fn a_participant_that_lost_its_address_is_heard_from_the_new_one_soon() {
    let mut victim = Victim::new();
    let there = Locator::udp_v4([10, 0, 0, 77], 7410);
    victim.domain.nodes[0].address = there;
    victim.spdp(there, moved(there, there));
    let now = victim.domain.now;
    let machine = &mut victim.domain.nodes[1].machine;
    assert!(!machine.accepts_source(now, prefix(0, 0), Some(there)));
    victim.domain.run_for(Duration::from_millis(700));
    let (now, machine) = (victim.domain.now, &mut victim.domain.nodes[1].machine);
    assert!(machine.accepts_source(now, prefix(0, 0), Some(there)));
    assert!(!machine.accepts_source(now, prefix(0, 0), Some(ATTACKER)));
}

#[test]
fn a_living_participant_is_not_moved_by_one_who_answers_in_its_name() {
    let mut victim = Victim::new();
    victim.spdp(ATTACKER, moved(ATTACKER, ATTACKER));
    for count in 0..200 {
        // The attacker answers every probe.
        victim.answer_probes(ATTACKER, count);
        victim.domain.run_for(Duration::from_millis(10));
        let known = victim.domain.nodes[1]
            .machine
            .participants()
            .next()
            .unwrap();
        assert_eq!(known.metatraffic_unicast, [address(0)]);
    }
    victim.check_refused();
}

#[test]
fn a_forged_announcement_from_its_own_address_does_not_misdirect_traffic() {
    let at = |port| Locator { port, ..address(0) };
    for forged in [
        moved(at(9), at(9)),
        moved(address(0), ATTACKER),
        moved(address(0), at(10)),
        ParticipantConfig {
            lease: Duration::from_millis(1),
            announce_period: Duration::from_secs(3),
            ..config(0, 0)
        },
    ] {
        let mut victim = Victim::new();
        victim.spdp(address(0), forged);
        victim.check_recovery();
        assert!(losses(&victim.domain).is_empty());
    }
}

#[test]
fn a_forged_dispose_of_an_endpoint_is_undone() {
    let mut victim = Victim::new();
    let next = victim.next();
    victim.dispose_endpoint(address(0), next);
    assert!(!victim.is_matched());
    victim.check_recovery();
    assert!(losses(&victim.domain).is_empty());
}

#[test]
fn a_forged_change_of_type_is_undone() {
    let mut victim = Victim::new();
    let (next, other) = (victim.next(), victim.other_type());
    victim.sedp(address(0), next, &other);
    assert!(!victim.is_matched());
    victim.check_recovery();
}

#[test]
fn a_forged_endpoint_disappears() {
    let mut victim = Victim::new();
    let (next, fake) = (victim.next(), victim.fake_reader());
    victim.sedp(address(0), next, &fake);
    victim.check_recovery();
}

#[test]
fn a_forged_endpoint_in_a_fragment_disappears() {
    let mut victim = Victim::new();
    let (next, fake) = (victim.next(), victim.fake_reader());
    victim.sedp_fragment(address(0), next, &fake);
    victim.check_recovery();
    // The writer gives the same number to a change of its own.
    let mut victim = Victim::new();
    victim.sedp_fragment(address(0), next, &fake);
    victim.check_recovery_with_new_writer();
}

#[test]
fn a_forged_dispose_is_undone_although_the_writer_goes_on() {
    // The writer gives the same number to a change of its own.
    let mut victim = Victim::new();
    let next = victim.next();
    victim.dispose_endpoint(address(0), next);
    victim.check_recovery_with_new_writer();
}

#[test]
fn forged_ranges_and_counts_of_sedp_are_undone() {
    let mut victim = Victim::new();
    victim.heartbeat(address(0), FAR, FAR, 1 << 30);
    victim.check_recovery();
    let mut victim = Victim::new();
    for count in 1_000..1_040 {
        victim.heartbeat(address(0), FAR, FAR + 1, count);
        victim.domain.run_for(Duration::from_millis(10));
    }
    victim.check_recovery();
}

/// The forged counts rise for so long that the true ones look like those of a writer that
/// restarted. The participant acknowledges what it had before, so it did not.
#[test]
fn forged_counts_of_sedp_do_not_end_a_participant() {
    for last in [1, 5] {
        let mut victim = Victim::new();
        for count in 1_000..2_000 {
            victim.heartbeat(address(0), 1, last, count);
            victim.domain.run_for(Duration::from_millis(5));
        }
        victim.check_recovery();
        victim.domain.run_for(Duration::from_secs(10));
        victim.check_matched();
        assert!(losses(&victim.domain).is_empty());
        let unmatched = |e: &&ParticipantEvent| matches!(e, ParticipantEvent::Unmatched { remote, .. } if *remote == victim.writer);
        let events = victim.domain.nodes[1].events.iter();
        assert_eq!(events.filter(unmatched).count(), 0);
    }
}

/// Another process with its GUID, and lower counts: it has nothing of what the one before
/// acknowledged, so it is discovered anew.
#[test]
fn a_participant_that_restarts_with_lower_counts_is_discovered_anew() {
    let mut victim = Victim::new();
    for _ in 0..40 {
        let writer = victim.domain.add_writer(0, "rt/b", EndpointQos::default());
        victim.domain.run_for(Duration::from_millis(50));
        victim.domain.remove(0, writer);
        victim.domain.run_for(Duration::from_millis(50));
    }
    victim.domain.nodes[0].dead = true;
    victim.domain.run_for(Duration::from_secs(1));
    let again = victim.domain.join(config(0, 0));
    victim.domain.new_guid(again, EntityId::KIND_WRITER_NO_KEY);
    let other = victim
        .domain
        .add_writer(again, "rt/chatter", EndpointQos::default());
    victim.domain.run_for(Duration::from_secs(8));
    assert_eq!(losses(&victim.domain), [LostReason::Restarted]);
    assert_eq!(victim.domain.matches(1), [(victim.reader, other)]);
}

#[test]
fn a_forged_dispose_of_a_participant_is_undone_and_a_true_one_is_not() {
    let mut victim = Victim::new();
    victim.dispose_participant(ATTACKER);
    assert!(victim.is_matched());
    victim.dispose_participant(address(0));
    assert_eq!(losses(&victim.domain), [LostReason::Disposed]);
    victim.check_recovery();
    assert_eq!(victim.domain.nodes[1].machine.stats().returned, 1);
    let told = victim.domain.nodes[1].events.iter();
    let told = told.filter(|e| {
        matches!(
            e,
            ParticipantEvent::ParticipantReturned {
                reason: LostReason::Disposed,
                ..
            }
        )
    });
    assert_eq!(told.count(), 1);
    victim.domain.leave(0);
    victim.domain.run_for(Duration::from_secs(30));
    assert_eq!(victim.domain.nodes[1].machine.participants().count(), 0);
    assert_eq!(losses(&victim.domain).len(), 2);
}

/// A newcomer whose first answer is lost, and which is disposed of with a spoofed address: it
/// is asked again at once, not with its next announcement (seed 9900014195).
#[test]
fn a_forged_dispose_of_a_newcomer_ends_no_probes() {
    let mut victim = Victim::new();
    let newcomer = address(2);
    victim.spdp(newcomer, config(2, 0));
    let probed = |victim: &Victim| {
        let sent = victim.domain.sent.get(&newcomer);
        sent.map_or(0, |(datagrams, _)| *datagrams)
    };
    assert_eq!(victim.domain.nodes[1].machine.unvalidated_count(), 1);
    victim.dispose(newcomer, config(2, 0));
    assert_eq!(victim.domain.nodes[1].machine.unvalidated_count(), 1);
    let before = probed(&victim);
    victim.domain.run_for(Duration::from_millis(200));
    assert!(probed(&victim) > before);
}

/// A dispose, then an announcement at a port where nobody is: the participant is asked
/// where it was proven, and the false announcement is not believed meanwhile.
#[test]
fn a_forged_announcement_after_a_forged_dispose_delays_nothing() {
    let at = |port| Locator { port, ..address(0) };
    for (times, pause) in [(1, 0), (200, 5), (40, 50)] {
        let mut victim = Victim::new();
        for _ in 0..times {
            victim.dispose_participant(address(0));
            victim.spdp(address(0), moved(at(9), at(9)));
            victim.domain.run_for(Duration::from_millis(pause));
        }
        assert!(losses(&victim.domain).contains(&LostReason::Disposed));
        victim.check_recovery();
        let known = victim.domain.nodes[1].machine.participants().next();
        assert_eq!(known.expect("it lives").metatraffic_unicast, [address(0)]);
    }
}

/// A dispose with a spoofed address, then the attacker announces itself in the name of the
/// participant and answers in its name: the participant still answers where it was proven.
#[test]
fn a_forged_dispose_gives_the_name_of_a_living_participant_to_nobody() {
    let mut victim = Victim::new();
    victim.dispose_participant(address(0));
    for count in 0..400 {
        if count % 8 == 0 {
            victim.spdp(ATTACKER, moved(ATTACKER, ATTACKER));
        }
        victim.answer_probes(ATTACKER, count);
        victim.domain.run_for(Duration::from_millis(10));
        let mut known = victim.domain.nodes[1].machine.participants();
        let is_moved = known.any(|of_it| of_it.metatraffic_unicast != [address(0)]);
        assert!(!is_moved, "{count}");
        if count >= 100 {
            assert!(victim.is_matched(), "{count}");
        }
    }
    victim.check_recovery();
    assert_eq!(losses(&victim.domain), [LostReason::Disposed]);
}

/// It really ended, and another process got its GUID at another address: it is believed
/// when the old address has been silent for a second.
#[test]
fn a_participant_that_ended_and_begins_elsewhere_is_discovered_there() {
    let mut victim = Victim::new();
    victim.domain.leave(0);
    victim.domain.run_for(Duration::from_millis(100));
    let there = Locator::udp_v4([10, 0, 0, 77], 7410);
    let new = victim.domain.join(moved(there, there));
    victim.domain.run_for(Duration::from_secs(5));
    assert_ne!(new, 0);
    let known = victim.domain.nodes[1].machine.participants().next();
    assert_eq!(known.expect("it lives").metatraffic_unicast, [there]);
}

#[test]
fn a_participant_that_really_leaves_gets_few_probes_even_if_its_last_answer_is_late() {
    let mut victim = Victim::new();
    victim.domain.leave(0);
    victim.domain.run_for(Duration::from_millis(1));
    victim.attack(address(0), |message| {
        message.acknack(&AckNack {
            reader: EntityId::SEDP_PUBLICATIONS_READER,
            writer: EntityId::SEDP_PUBLICATIONS_WRITER,
            state: SequenceSet::empty(SequenceNumber(1)),
            count: 500,
            is_final: true,
        });
    });
    victim.domain.sent.clear();
    victim.domain.run_for(Duration::from_secs(30));
    assert_eq!(victim.domain.nodes[1].machine.participants().count(), 0);
    let sent = victim.domain.sent.get(&address(0)).copied();
    assert!(sent.unwrap_or_default().0 <= 8, "{sent:?}");
}

/// Two contradictions within half a second: the second one is not forgotten.
/// Found by the simulator (seed 409 on networks that change): all preemptive ACKNACKs after
/// the return were lost in an outage, and the other side knew of no loss.
#[test]
fn a_forged_dispose_before_an_outage_is_undone_after_it() {
    let mut victim = Victim::new();
    victim.domain.cuts = vec![(1, 0)];
    victim.dispose_participant(address(0));
    for count in 1..50 {
        // In its name the attacker answers the probes.
        victim.attack(address(0), |message| {
            message.acknack(&AckNack {
                reader: EntityId::SEDP_PUBLICATIONS_READER,
                writer: EntityId::SEDP_PUBLICATIONS_WRITER,
                state: SequenceSet::empty(SequenceNumber(1)),
                count,
                is_final: true,
            });
        });
        victim.domain.run_for(Duration::from_millis(100));
    }
    let known = victim.domain.nodes[1].machine.participants().count();
    assert_eq!((known, victim.is_matched()), (1, false));
    victim.domain.run_for(Duration::from_secs(12));
    victim.domain.cuts.clear();
    victim.check_recovery();
}

#[test]
fn a_contradiction_soon_after_another_one_is_undone_too() {
    let mut victim = Victim::new();
    let other = victim.other_type();
    victim.sedp(address(0), 1, &other);
    victim.domain.run_for(Duration::from_millis(100));
    let next = victim.next();
    victim.dispose_endpoint(address(0), next);
    victim.check_recovery_with_new_writer();
}

/// The announcements are read again, and the network fails meanwhile. The writer changes its
/// announcement, so the number that is read is irrelevant when the network works again.
/// A change that was announced under another number ends no match.
#[test]
fn announcements_that_change_while_they_are_read_again_end_no_match() {
    for outage_millis in (500..6_000).step_by(250) {
        let mut victim = Victim::new();
        victim.domain.cuts = vec![(0, 1), (1, 0)];
        let with_lifespan = |writer, seconds| {
            let qos = EndpointQos {
                lifespan: Duration::from_secs(seconds),
                ..EndpointQos::default()
            };
            endpoint(writer, "rt/chatter", "T", qos)
        };
        let (forged, own) = (
            with_lifespan(victim.writer, 5),
            with_lifespan(victim.writer, 6),
        );
        victim.sedp(address(0), 1, &forged);
        victim.domain.write_endpoint(0, own);
        victim.domain.run_for(Duration::from_millis(outage_millis));
        victim.domain.cuts.clear();
        victim.check_recovery();
        let unmatched = |e: &&ParticipantEvent| matches!(e, ParticipantEvent::Unmatched { remote, .. } if *remote == victim.writer);
        let events = victim.domain.nodes[1].events.iter();
        assert_eq!(events.filter(unmatched).count(), 0, "{outage_millis} ms");
    }
}

/// A forged HEARTBEAT agrees with a forged change: it drops all numbers below, which the
/// writer takes for acknowledged.
#[test]
fn a_forged_heartbeat_that_agrees_with_a_forged_change_is_undone() {
    for count in [1 << 8, 1 << 12] {
        let mut victim = Victim::new();
        victim.dispose_endpoint(address(0), 300);
        victim.domain.run_for(Duration::from_millis(350));
        victim.heartbeat(address(0), 300, 300, count);
        assert!(!victim.is_matched());
        victim.check_recovery();
    }
}

/// A participant is discovered again, and the first words of its SEDP writer are forged:
/// they set no start, and what comes before its first HEARTBEAT is no announcement.
#[test]
fn forged_announcements_before_the_first_true_ones_are_undone() {
    type Attack = fn(&mut Victim);
    let attacks: [(&str, Attack); 9] = [
        ("HEARTBEAT", |victim| victim.heartbeat(address(0), 3, 3, 1)),
        ("HEARTBEAT of nothing", |victim| {
            victim.heartbeat(address(0), 4, 3, 1 << 30)
        }),
        ("GAP", |victim| victim.gap(address(0), 1, 2)),
        ("DATA 1", |victim| {
            victim.sedp(address(0), 1, &victim.fake_reader())
        }),
        ("DATA 3", |victim| {
            victim.sedp(address(0), 3, &victim.fake_reader())
        }),
        ("DATA 4", |victim| {
            victim.sedp(address(0), 4, &victim.fake_reader())
        }),
        ("DATA 50", |victim| {
            victim.sedp(address(0), 50, &victim.fake_reader())
        }),
        ("DATA_FRAG 1", |victim| {
            victim.sedp_fragment(address(0), 1, &victim.fake_reader())
        }),
        ("DATA_FRAG 50", |victim| {
            victim.sedp_fragment(address(0), 50, &victim.fake_reader())
        }),
    ];
    for ((name, attack), times) in attacks.iter().flat_map(|of| [(of, 1), (of, 100)]) {
        if *name == "GAP" && times > 1 {
            // One behind the first HEARTBEAT is no announcement, but hides some.
            continue;
        }
        let mut victim = Victim::new();
        let others = ["rt/b", "rt/c"]
            .map(|topic| victim.domain.add_writer(0, topic, EndpointQos::default()));
        victim.domain.run_for(Duration::from_secs(1));
        victim.dispose_participant(address(0));
        let is_known = |victim: &Victim| victim.domain.nodes[1].machine.participants().count() > 0;
        while !is_known(&victim) {
            victim.domain.run_for(Duration::from_micros(50));
        }
        assert!(!victim.is_matched(), "{name}");
        for _ in 0..times {
            attack(&mut victim);
            victim.domain.run_for(Duration::from_micros(50));
        }
        victim.domain.run_for(RECOVERY);
        assert!(victim.is_matched(), "{name}, {times} times");
        let known = victim.domain.nodes[1].machine.endpoints().remotes();
        let known: Vec<Guid> = known.map(|known| known.guid()).collect();
        assert_eq!(known, [victim.writer, others[0], others[1]], "{name}");
    }
}

/// A peer that sends changes before its first HEARTBEAT is read again once: its endpoints
/// stay, and then it gets no more datagrams than one whose HEARTBEAT comes first.
#[test]
fn a_peer_that_announces_before_its_first_heartbeat_is_read_again_once() {
    let [without, with] = [false, true].map(|is_early| {
        let mut victim = Victim::new();
        victim.dispose_participant(address(0));
        while victim.domain.nodes[1].machine.participants().count() == 0 {
            victim.domain.run_for(Duration::from_micros(50));
        }
        if is_early {
            let own = endpoint(victim.writer, "rt/chatter", "T", EndpointQos::default());
            victim.sedp(address(0), 1, &own);
            assert!(victim.is_matched());
        }
        let unmatched = |victim: &Victim| {
            let events = victim.domain.nodes[1].events.iter();
            events
                .filter(|e| matches!(e, ParticipantEvent::Unmatched { .. }))
                .count()
        };
        let before = unmatched(&victim);
        victim.domain.run_for(RECOVERY);
        assert_eq!(unmatched(&victim), before);
        victim.check_matched();
        victim.domain.sent.clear();
        victim.domain.run_for(Duration::from_secs(20));
        victim.domain.sent.get(&address(0)).copied()
    });
    assert_eq!(with, without);
}

/// The participant answers where it is, and announces itself in between: however often
/// the false announcement is repeated, it moves nothing.
#[test]
fn repeated_false_announcements_of_a_living_participant_move_nothing() {
    let at = |port| Locator { port, ..address(0) };
    for (metatraffic, default) in [(at(9), at(9)), (address(0), at(10)), (ATTACKER, ATTACKER)] {
        let mut victim = Victim::new();
        for _ in 0..100 {
            victim.spdp(address(0), moved(metatraffic, default));
            victim.domain.run_for(Duration::from_millis(100));
            let known = victim.domain.nodes[1].machine.participants().next();
            let known = known.expect("it lives");
            assert_eq!(known.metatraffic_unicast, [address(0)]);
        }
        victim.check_recovery();
        assert!(losses(&victim.domain).is_empty());
    }
}

/// It keeps answering where it was, as behind a NAT: after a lease its word counts.
#[test]
fn a_participant_that_gives_up_an_address_that_still_answers_is_believed_after_a_lease() {
    let mut victim = Victim::new();
    victim.domain.cuts.push((0, 1));
    let there = Locator {
        port: 7500,
        ..address(0)
    };
    for second in 0..30 {
        victim.spdp(address(0), moved(address(0), there));
        // The answers of the participant come, its own announcements do not.
        for _ in 0..4 {
            victim.domain.run_for(Duration::from_millis(250));
            victim.attack(address(0), |message| {
                message.acknack(&AckNack {
                    reader: EntityId::SEDP_PUBLICATIONS_READER,
                    writer: EntityId::SEDP_PUBLICATIONS_WRITER,
                    state: SequenceSet::empty(SequenceNumber(1)),
                    count: 900 + second,
                    is_final: true,
                });
            });
        }
    }
    let known = victim.domain.nodes[1].machine.participants().next();
    assert_eq!(known.expect("it lives").default_unicast, [there]);
}

/// Each repetition of SEDP is caused by a small datagram, so a flood of contradictions
/// must not cause a flood of repetitions.
#[test]
fn a_flood_of_contradictions_causes_two_repetitions_a_second() {
    let mut victim = Victim::new();
    let other = victim.other_type();
    victim.domain.sent.clear();
    for _ in 0..200 {
        victim.sedp(address(0), 1, &other);
        victim.domain.run_for(Duration::from_millis(10));
    }
    let requests = victim.domain.sent.get(&address(0)).copied();
    let requests = requests.unwrap_or_default().0;
    assert!((4..=20).contains(&requests), "{requests} in two seconds");
    victim.check_recovery();
}
