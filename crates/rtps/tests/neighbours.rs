//! Participants of one host that tell each other by notices what SPDP, SEDP
//! and WLP would: they match, notice changes and ends, and send nothing.

mod domain;

use domain::{Domain, config, endpoint, prefix};
use pteros_rtps::id::{EntityId, Guid};
use pteros_rtps::participant::{
    LostReason, Notice, Notices, ParticipantConfig, ParticipantEvent, RemoteEndpoint,
};
use pteros_rtps::qos::{EndpointQos, Liveliness};
use pteros_rtps::time::Duration;

/// A participant that posts, and announces itself to nobody.
fn posting(index: usize) -> ParticipantConfig {
    ParticipantConfig {
        posts_notices: true,
        announce_to: Vec::new(),
        metatraffic_multicast: Vec::new(),
        unposted_topics: vec!["of_the_host".into()],
        ..config(index, 0)
    }
}

/// So many neighbours that have read what the others posted.
fn neighbours(count: usize) -> Domain {
    let mut domain = Domain::new(1);
    for index in 0..count {
        domain.join(posting(index));
    }
    carry(&mut domain);
    domain
}

/// Carries what each posted to all others, as the owner does.
fn carry(domain: &mut Domain) {
    for from in 0..domain.nodes.len() {
        let Some(notices) = domain.nodes[from].machine.take_notices() else {
            continue;
        };
        let (all, list) = match notices {
            Notices::All(list) => (true, list),
            Notices::News(list) => (false, list),
        };
        for to in (0..domain.nodes.len()).filter(|to| *to != from) {
            tell(domain, from, to, &list);
            if all {
                let told: Vec<Guid> = list.iter().filter_map(guid_of).collect();
                let machine = &mut domain.nodes[to].machine;
                machine.keep_endpoints(prefix(from, 0), &told);
            }
            domain.flush(to);
        }
    }
}

fn tell(domain: &mut Domain, from: usize, to: usize, list: &[Notice]) {
    let now = domain.now;
    let machine = &mut domain.nodes[to].machine;
    for notice in list {
        let posted = Notice::parse(&notice.encode()).expect("our own");
        assert_eq!(&posted, notice);
        assert!(
            machine.handle_notice(now, prefix(from, 0), &posted),
            "{notice:?}"
        );
    }
}

fn guid_of(notice: &Notice) -> Option<Guid> {
    let Notice::Endpoint(payload) = notice else {
        return None;
    };
    let data = pteros_rtps::discovery::data::EndpointData::parse(payload);
    Some(data.expect("our own").guid)
}

#[test]
fn neighbours_match_without_one_datagram() {
    let mut domain = neighbours(3);
    let writer = domain.add_writer(0, "rt/chatter", EndpointQos::default());
    let reader = domain.add_reader(1, "rt/chatter", EndpointQos::default());
    domain.add_writer(0, "of_the_host", EndpointQos::default());
    domain.add_reader(2, "of_the_host", EndpointQos::default());
    carry(&mut domain);
    assert_eq!(domain.matches(0), [(writer, reader)]);
    assert_eq!(domain.matches(1), [(reader, writer)]);
    assert!(
        domain.matches(2).is_empty(),
        "an unposted topic was told of"
    );
    assert_eq!(domain.nodes[2].machine.endpoints().count(), 2);
    domain.run_for(Duration::from_secs(10));
    assert_eq!(domain.datagrams, 0);
    domain.remove(0, writer);
    carry(&mut domain);
    let gone = ParticipantEvent::EndpointLost(writer);
    assert!(domain.nodes[2].events.contains(&gone));
    let unmatched = ParticipantEvent::Unmatched {
        local: reader,
        remote: writer,
    };
    assert!(domain.nodes[1].events.contains(&unmatched));
}

#[test]
fn a_neighbour_lives_as_long_as_it_is_noted_alive_and_ends_when_its_process_does() {
    let mut domain = neighbours(3);
    domain.run_for(Duration::from_secs(15));
    let now = domain.now;
    domain.nodes[0].machine.note_alive(prefix(1, 0), now);
    domain.run_for(Duration::from_secs(15));
    let known: Vec<_> = {
        let participants = domain.nodes[0].machine.participants();
        participants.map(|data| data.prefix).collect()
    };
    assert_eq!(
        known,
        [prefix(1, 0)],
        "its lease of 20 s was renewed at 15 s"
    );
    let machine = &mut domain.nodes[0].machine;
    machine.lose_neighbour(prefix(1, 0), LostReason::Goodbye);
    assert_eq!(machine.participants().count(), 0);
}

#[test]
fn assertions_of_liveliness_are_told_and_cost_no_datagram() {
    let mut domain = neighbours(2);
    let manual = EndpointQos {
        liveliness: Liveliness::ManualByParticipant,
        lease_duration: Duration::from_millis(100),
        ..EndpointQos::default()
    };
    domain.add_writer(0, "rt/a", manual);
    let automatic = EndpointQos {
        lease_duration: Duration::from_millis(100),
        ..EndpointQos::default()
    };
    domain.add_writer(0, "rt/b", automatic);
    carry(&mut domain);
    let now = domain.now;
    let kind = Liveliness::ManualByParticipant;
    domain.nodes[0].machine.assert_liveliness(now, kind);
    for _ in 0..10 {
        domain.run_for(Duration::from_millis(50));
        carry(&mut domain);
    }
    let asserted = |kind: Liveliness| {
        let told = ParticipantEvent::LivelinessAsserted {
            prefix: prefix(0, 0),
            kind,
        };
        let events = &domain.nodes[1].events;
        events.iter().filter(|event| **event == told).count()
    };
    assert_eq!(asserted(Liveliness::ManualByParticipant), 1);
    assert!((9..=11).contains(&asserted(Liveliness::Automatic)));
    assert_eq!(domain.datagrams, 0);
}

#[test]
fn who_reads_late_or_anew_is_told_everything_and_forgets_what_is_gone() {
    let mut domain = neighbours(1);
    let first = domain.add_writer(0, "rt/a", EndpointQos::default());
    let second = domain.add_writer(0, "rt/b", EndpointQos::default());
    carry(&mut domain);
    domain.join(posting(1));
    let all = domain.nodes[0].machine.all_notices();
    tell(&mut domain, 0, 1, &all);
    let known = |domain: &Domain| -> Vec<Guid> {
        let endpoints = domain.nodes[1].machine.endpoints();
        endpoints.map(RemoteEndpoint::guid).collect()
    };
    assert_eq!(known(&domain), [first, second]);
    domain.remove(0, first);
    let all = domain.nodes[0].machine.all_notices();
    tell(&mut domain, 0, 1, &all);
    let machine = &mut domain.nodes[1].machine;
    machine.keep_endpoints(prefix(0, 0), &[second]);
    assert_eq!(known(&domain), [second]);
}

#[test]
fn more_news_than_are_kept_become_one_telling_of_everything() {
    let mut domain = neighbours(2);
    let guid = domain.new_guid(0, EntityId::KIND_WRITER_NO_KEY);
    for round in 0..1025 {
        let mut data = endpoint(guid, "rt/a", "T", EndpointQos::default());
        data.qos.user_data = round.to_string().into_bytes();
        domain.write_endpoint(0, data);
    }
    let Some(Notices::All(all)) = domain.nodes[0].machine.take_notices() else {
        panic!("1 025 changes are too many to keep");
    };
    assert_eq!(all.len(), 2, "itself and its one endpoint");
    assert_eq!(domain.nodes[0].machine.take_notices(), None);
}

#[test]
fn notices_are_believed_of_their_neighbour_alone() {
    let mut domain = neighbours(3);
    let now = domain.now;
    let writer = domain.add_writer(1, "rt/a", EndpointQos::default());
    carry(&mut domain);
    let machine = &mut domain.nodes[0].machine;
    let liar = prefix(2, 0);
    let data = endpoint(writer, "rt/b", "T", EndpointQos::default());
    assert!(!machine.handle_notice(now, liar, &Notice::Endpoint(data.encode())));
    assert!(!machine.handle_notice(now, liar, &Notice::Gone(writer)));
    assert_eq!(machine.stats().impersonation, 2);
    for posted in [&b""[..], &[9], &[3, 1, 2], &[1], &[2, 0, 3, 0, 0]] {
        if let Some(notice) = Notice::parse(posted) {
            assert!(!machine.handle_notice(now, liar, &notice), "{posted:?}");
        }
    }
    let stranger = prefix(7, 0);
    let alive = Notice::Alive(Liveliness::Automatic);
    assert!(!machine.handle_notice(now, stranger, &alive));
    assert_eq!(
        machine.endpoint(writer).map(RemoteEndpoint::topic),
        Some("rt/a")
    );
}
