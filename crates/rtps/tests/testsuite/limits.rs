//! Behaviour at each limit that peers can reach, with small limits.
//! `tests/regressions` tests the default limits.

use pteros_test_support::rtps::domain;
use pteros_test_support::rtps::pair;

use domain::{Domain, address, config, prefix};
use pair::Pair;
use pair::net::SubmessageSummary;
use pteros_rtps::discovery::data::{DataLimits, EndpointData, ParticipantData};
use pteros_rtps::id::{EntityId, Guid, VendorId};
use pteros_rtps::locator::{Locator, Route};
use pteros_rtps::participant::{ParticipantLimits, RefusedWriter};
use pteros_rtps::qos::{DestinationOrder, Durability, EndpointQos, History, Reliability};
use pteros_rtps::reader::{Reader, ReaderConfig, WriterProxyConfig};
use pteros_rtps::time::{Duration, Instant};
use pteros_rtps::writer::{Writer, WriterConfig};

/// A domain whose first participant has these limits, and `others` more.
fn domain_with_limits(limits: ParticipantLimits, others: usize) -> Domain {
    let mut domain = Domain::new(1);
    let mut first = config(0, 0);
    first.limits = limits;
    domain.join(first);
    domain.run_for(Duration::from_millis(100));
    for index in 1..=others {
        domain.join(config(index, 0));
        domain.run_for(Duration::from_millis(500));
    }
    domain
}

#[test]
fn at_the_participant_limit_new_ones_are_refused_and_none_is_dropped() {
    let limits = ParticipantLimits {
        participants: 2,
        ..ParticipantLimits::default()
    };
    let mut domain = domain_with_limits(limits, 4);
    domain.run_for(Duration::from_secs(30));
    let machine = &domain.nodes[0].machine;
    let known: Vec<_> = machine.participants().map(|p| p.prefix).collect();
    assert_eq!(known, [prefix(1, 0), prefix(2, 0)]);
    assert!(machine.stats().participants_refused > 0);
    assert_eq!(domain.nodes[1].machine.participants().count(), 4);
    // A place that is free again is taken.
    domain.leave(1);
    domain.run_for(Duration::from_secs(10));
    assert_eq!(domain.nodes[0].machine.participants().count(), 2);
}

#[test]
fn endpoints_beyond_either_limit_do_not_match_and_those_before_stay() {
    let limits = ParticipantLimits {
        endpoints_per_participant: 3,
        endpoints: 5,
        ..ParticipantLimits::default()
    };
    let mut domain = domain_with_limits(limits, 2);
    for node in 1..=2 {
        for number in 0..4 {
            domain.add_writer(node, &format!("rt/{node}_{number}"), EndpointQos::default());
            domain.run_for(Duration::from_millis(100));
        }
    }
    let machine = &domain.nodes[0].machine;
    let of = |node: usize| {
        let endpoints = machine.endpoints().remotes();
        endpoints
            .filter(|e| e.guid().prefix == prefix(node, 0))
            .count()
    };
    assert_eq!((of(1), of(2)), (3, 2));
    assert_eq!(machine.stats().endpoints_refused, 3);
    let reader = domain.add_reader(0, "rt/1_0", EndpointQos::default());
    domain.run_for(Duration::from_millis(100));
    assert!(domain.matches(0).iter().any(|(own, _)| *own == reader));
}

/// The writer takes our reader for matched: it would wait for its acknowledgements.
#[test]
fn a_writer_beyond_a_limit_is_refused_and_acknowledged_until_it_ends() {
    let limits = ParticipantLimits {
        endpoints_per_participant: 1,
        ..ParticipantLimits::default()
    };
    let mut domain = domain_with_limits(limits, 1);
    let reader = domain.add_reader(0, "rt/a", EndpointQos::default());
    let unreliable = EndpointQos {
        reliability: Reliability::BestEffort,
        ..EndpointQos::default()
    };
    let mut add = |topic: &str, qos: &EndpointQos| {
        let writer = domain.add_writer(1, topic, qos.clone());
        domain.run_for(Duration::from_millis(100));
        (
            writer,
            domain.nodes[0].machine.endpoints().has_refused_writers(),
        )
    };
    let (first, any) = add("rt/a", &EndpointQos::default());
    let (of_best_effort, any_of_best_effort) = add("rt/a", &unreliable);
    assert!(!any && !any_of_best_effort);
    let (second, _) = add("rt/a", &EndpointQos::default());
    let (elsewhere, _) = add("rt/b", &EndpointQos::default());
    let now = domain.now;
    let machine = &mut domain.nodes[0].machine;
    assert!(machine.endpoints().has_refused_writers());
    let refused = machine
        .refused_writer(now, second)
        .expect("it waits for us");
    assert_eq!(refused.readers, [reader.entity]);
    assert!(!refused.route.locators.is_empty());
    // Many HEARTBEATs at once get one answer.
    for other in [second, first, of_best_effort, elsewhere] {
        assert!(machine.refused_writer(now, other).is_none(), "{other}");
    }
    let late = domain.add_reader(0, "rt/b", EndpointQos::default());
    let refused = refused_writer(&mut domain, 0, elsewhere);
    assert_eq!(refused.map(|of| of.readers), Some(vec![late.entity]));
    domain.remove(1, second);
    domain.run_for(Duration::from_millis(100));
    assert!(refused_writer(&mut domain, 0, second).is_none());
    domain.leave(1);
    domain.run_for(Duration::from_millis(100));
    assert!(refused_writer(&mut domain, 0, elsewhere).is_none());
}

/// What other stacks compare, too, needs no answer. Fast DDS compares no presentation.
#[test]
fn a_writer_refused_by_a_rule_of_ours_is_acknowledged() {
    let mut domain = Domain::met(2);
    let hash = |digit: &str| EndpointQos {
        user_data: format!("typehash=RIHS01_{};", digit.repeat(64)).into(),
        ..EndpointQos::default()
    };
    let ordered = EndpointQos {
        destination_order: DestinationOrder::BySource,
        ..EndpointQos::default()
    };
    let swift = EndpointQos {
        deadline: Duration::from_millis(10),
        ..ordered.clone()
    };
    let elsewhere = EndpointQos {
        partition: vec!["b".into()],
        ..hash("2")
    };
    let cases = [
        (hash("1"), hash("2"), true),
        (hash("1"), hash("1"), false),
        (EndpointQos::default(), ordered, true),
        (EndpointQos::default(), swift, false),
        (hash("1"), elsewhere, false),
    ];
    for (number, (offered, requested, expected)) in cases.into_iter().enumerate() {
        let topic = format!("rt/{number}");
        let reader = domain.add_reader(0, &topic, requested);
        let writer = domain.add_writer(1, &topic, offered);
        domain.run_for(Duration::from_millis(100));
        let refused = refused_writer(&mut domain, 0, writer);
        let readers = refused.map(|of| of.readers);
        assert_eq!(readers, expected.then(|| vec![reader.entity]), "{topic}");
        // The other side waits for no reader.
        assert!(refused_writer(&mut domain, 1, reader).is_none());
        domain.remove(1, writer);
        domain.run_for(Duration::from_millis(100));
        assert!(refused_writer(&mut domain, 0, writer).is_none());
    }
}

fn refused_writer(domain: &mut Domain, node: usize, writer: Guid) -> Option<RefusedWriter> {
    let now = domain.now;
    domain.nodes[node].machine.refused_writer(now, writer)
}

/// A process must not keep all others of its host out of a full table.
#[test]
fn participants_of_one_host_share_a_full_table() {
    let limits = ParticipantLimits {
        endpoints: 2,
        ..ParticipantLimits::default()
    };
    let mut domain = domain_with_limits(limits, 1);
    let mut neighbor = config(2, 0);
    let at = |port| Locator { port, ..address(1) };
    neighbor.network = config(1, 0).network;
    neighbor.metatraffic_unicast = vec![at(7420)];
    neighbor.default_unicast = vec![at(7421)];
    domain.join(neighbor);
    domain.run_for(Duration::from_millis(500));
    for node in 1..=2 {
        for number in 0..2 {
            domain.add_writer(node, &format!("rt/{node}_{number}"), EndpointQos::default());
            domain.run_for(Duration::from_millis(100));
        }
    }
    let machine = &domain.nodes[0].machine;
    let topics: Vec<_> = machine
        .endpoints()
        .remotes()
        .map(|e| e.topic().to_owned())
        .collect();
    assert_eq!(topics, ["rt/1_0", "rt/2_0"]);
    let stats = machine.stats();
    assert_eq!((stats.endpoints_evicted, stats.endpoints_refused), (1, 1));
}

#[test]
fn an_endpoint_with_a_too_long_name_is_refused_but_not_its_participant() {
    let limits = ParticipantLimits {
        data: DataLimits {
            name_bytes: 64,
            ..DataLimits::default()
        },
        ..ParticipantLimits::default()
    };
    let mut domain = domain_with_limits(limits, 1);
    let (fits, longer) = ("t".repeat(64), "t".repeat(65));
    domain.add_writer(1, &longer, EndpointQos::default());
    domain.add_writer(1, &fits, EndpointQos::default());
    domain.run_for(Duration::from_millis(500));
    let machine = &domain.nodes[0].machine;
    let topics: Vec<_> = machine
        .endpoints()
        .remotes()
        .map(|e| e.topic().to_owned())
        .collect();
    assert_eq!(topics, [fits]);
    assert_eq!(machine.stats().malformed, 1);
}

#[test]
fn user_data_and_properties_beyond_their_limits_are_left_out() {
    let small = DataLimits {
        user_data_bytes: 8,
        property_list_bytes: 64,
        ..DataLimits::default()
    };
    let mut peer = ParticipantData::new(prefix(1, 0));
    peer.default_unicast = vec![address(1)];
    peer.user_data = vec![1; 8];
    peer.properties = vec![("name".into(), "value".into())];
    let read = |peer: &ParticipantData| ParticipantData::parse_within(&peer.encode(), &small);
    assert_eq!(read(&peer).unwrap(), peer);
    peer.user_data.push(1);
    peer.properties[0].1 = "v".repeat(64);
    let within = read(&peer).unwrap();
    assert!(within.user_data.is_empty() && within.properties.is_empty());
    assert_eq!(within.default_unicast, peer.default_unicast);

    let guid = prefix(1, 0).with(EntityId::new([0, 0, 1], EntityId::KIND_WRITER_NO_KEY));
    let qos = EndpointQos {
        user_data: vec![1; 9],
        topic_data: vec![2; 8],
        ..EndpointQos::default()
    };
    let endpoint = EndpointData::new(guid, "rt/a", "T", qos);
    let read = EndpointData::parse_within(&endpoint.encode(), &small).unwrap();
    assert_eq!(
        (read.qos.user_data.len(), read.qos.topic_data.len()),
        (0, 8)
    );
}

fn reliable() -> EndpointQos {
    EndpointQos {
        reliability: Reliability::Reliable,
        durability: Durability::Volatile,
        history: History::KeepAll,
        ..EndpointQos::default()
    }
}

#[test]
fn more_holes_than_intervals_delay_samples_and_lose_none() {
    let mut pair = Pair::new();
    let w = pair.writer(0, reliable());
    let r = pair.reader_with(1, reliable(), |config| config.limits.intervals_max = 4);
    pair.join(w, r);
    pair.run_ms(100);
    // Every second sample is lost the first time.
    for number in 0..100 {
        let lost = number % 2 == 0;
        pair.net.faults.loss_percent = if lost { 100 } else { 0 };
        pair.write(w, &[number; 8]);
        pair.flush();
    }
    pair.net.faults.loss_percent = 0;
    pair.run_ms(2);
    assert!(pair.readers[r.0].machine.exceeded_limit().is_none());
    assert!(pair.readers[r.0].machine.stats().buffer_full > 0);
    pair.run_ms(5_000);
    assert_eq!(pair.numbers(r), (1..=100).collect::<Vec<_>>());
}

#[test]
fn the_next_sample_is_accepted_though_the_number_runs_are_full() {
    let mut pair = Pair::new();
    let w = pair.writer(0, reliable());
    let r = pair.reader_with(1, reliable(), |config| config.limits.intervals_max = 2);
    pair.join(w, r);
    pair.run_ms(100);
    // Two received ones fill the set of runs; none of the others touches both.
    for number in 1..=30 {
        let comes = [15, 20].contains(&number);
        pair.net.faults.loss_percent = if comes { 0 } else { 100 };
        pair.write(w, &[number; 8]);
    }
    pair.net.faults.loss_percent = 0;
    pair.net.log.clear();
    pair.run_ms(15);
    assert_eq!(pair.numbers(r), (1..=30).collect::<Vec<_>>());
    // Nothing that is sent again is refused.
    let sent = pair
        .net
        .count(|summary| matches!(summary, SubmessageSummary::Data(_)));
    assert_eq!(sent, 28);
}

#[test]
fn partial_samples_beyond_the_limit_come_later_and_none_is_lost() {
    let mut pair = Pair::new();
    let w = pair.writer(0, reliable());
    let r = pair.reader_with(1, reliable(), |config| {
        config.limits.defrag.samples_max = 2;
        config.limits.defrag.sample_bytes_max = 10_000;
        config.limits.defrag.bytes_max = 20_000;
    });
    pair.join(w, r);
    pair.run_ms(100);
    // The second fragment of each is lost once, so all stay partial.
    pair.net.drop_next(10, |summary| {
        matches!(summary, SubmessageSummary::Frag(_, 2))
    });
    for number in 0..10 {
        pair.write(w, &[number; 10_000]);
    }
    pair.flush();
    assert!(pair.readers[r.0].machine.exceeded_limit().is_none());
    assert!(pair.readers[r.0].machine.memory_bytes() <= 40_000);
    pair.run_ms(10_000);
    assert_eq!(pair.numbers(r), (1..=10).collect::<Vec<_>>());
    // A sample above the limit is never assembled.
    pair.write(w, &[7; 10_001]);
    pair.run_ms(1_000);
    assert_eq!(pair.numbers(r).len(), 10);
    assert!(pair.readers[r.0].machine.stats().too_large > 0);
}

#[test]
fn one_poll_retransmits_no_more_than_its_bytes_and_the_next_ones_the_rest() {
    let mut pair = Pair::new();
    let w = pair.writer_with(0, reliable(), |config| {
        config.limits.retransmission_bytes_max = 4_000;
        config.flow_controlled = true;
    });
    let r = pair.reader(1, reliable());
    pair.join(w, r);
    pair.run_ms(100);
    pair.net.faults.loss_percent = 100;
    for number in 0..50 {
        pair.write(w, &[number; 1_000]);
    }
    while pair.send(w, 100) {}
    pair.net.faults.loss_percent = 0;
    pair.run_ms(200);
    let mut out = pteros_rtps::outbox::Outbox::new();
    let mut goes = 0;
    for _ in 0..200 {
        let now = pair.now();
        let machine = &mut pair.writers[w.0].machine;
        machine.handle_timeout(now);
        let before = machine.stats().samples_retransmitted;
        machine.poll_transmit(now, &mut out);
        let resent = machine.stats().samples_retransmitted - before;
        // Three whole ones and the one that reaches the limit.
        assert!(resent <= 4, "{resent} samples in one go");
        goes += usize::from(resent > 0);
        pair.net.send(&mut out);
        pair.run_ms(20);
    }
    assert_eq!(pair.numbers(r), (1..=50).collect::<Vec<_>>());
    assert!(goes >= 12, "{goes}");
}

/// Found by the simulator (seed 1504): each of several writers whose process
/// had died handed on as much as may wait behind a missing sample.
#[test]
fn reordered_samples_of_many_unmatched_writers_have_one_limit() {
    let reliable = EndpointQos {
        reliability: Reliability::Reliable,
        history: History::KeepAll,
        ..EndpointQos::default()
    };
    let mut pair = Pair::new();
    let r = pair.reader_with(1, reliable.clone(), |config| {
        config.limits.ready_samples_max = 2;
        config.limits.reorder_samples_max = 2;
    });
    let writers = [(); 3].map(|()| pair.writer(0, reliable.clone()));
    for w in writers {
        pair.join(w, r);
    }
    pair.run_ms(100);
    pair.readers[r.0].paused = true;
    pair.net.drop_next(1_000, |summary| {
        matches!(summary, SubmessageSummary::Data(1))
    });
    for w in writers {
        pair.write_many(w, 3);
    }
    pair.run_ms(20);
    for w in writers {
        let guid = pair.writer_guid(w);
        pair.readers[r.0].machine.unmatch_writer(guid);
    }
    let machine = &pair.readers[r.0].machine;
    assert_eq!(machine.exceeded_limit(), None);
    // The first of each, and two that were refused by a full buffer.
    assert_eq!(machine.stats().lost, 3 + 2);
}

/// Found by the simulator (seed 5537): each place that became free went to the writer with
/// the lowest GUID, as long as it had samples.
#[test]
fn writers_have_turns_when_a_full_queue_has_space_again() {
    let keep_all = EndpointQos {
        reliability: Reliability::Reliable,
        history: History::KeepAll,
        ..EndpointQos::default()
    };
    let mut pair = Pair::new();
    let r = pair.reader_with(1, keep_all.clone(), |config| {
        config.limits.ready_samples_max = 4;
    });
    let writers = [(); 3].map(|()| pair.writer(0, keep_all.clone()));
    for w in writers {
        pair.join(w, r);
    }
    pair.run_ms(100);
    pair.readers[r.0].paused = true;
    for w in writers {
        pair.write_many(w, 20);
    }
    pair.run_ms(200);
    let guids = writers.map(|w| pair.writer_guid(w));
    let mut taken = [0; 3];
    for _ in 0..4 + 12 {
        let change = pair.readers[r.0].machine.poll_sample().unwrap();
        taken[guids.iter().position(|g| *g == change.writer).unwrap()] += 1;
    }
    // The first four were there before it was full.
    assert!(taken.iter().all(|count| *count >= 4), "{taken:?}");
}

#[test]
fn the_worst_case_of_memory_adds_what_each_match_may_hold() {
    let entity = |number, kind| prefix(0, 0).with(EntityId::new([0, 0, number], kind));
    let mut config = ReaderConfig::new(entity(1, EntityId::KIND_READER_NO_KEY), reliable());
    config.limits.ready_samples_max = 10;
    config.limits.defrag.sample_bytes_max = 1_000;
    config.limits.reorder_bytes_max = 30_000;
    config.limits.defrag.bytes_max = 2_000;
    let mut reader = Reader::new(config);
    assert_eq!(reader.worst_case_bytes(), 10_000);
    for number in 1..=3 {
        let writer = WriterProxyConfig {
            guid: prefix(1, 0).with(EntityId::new([0, 0, number], EntityId::KIND_WRITER_NO_KEY)),
            qos: reliable().into(),
            route: Route::by_socket(&[address(1)], false),
            vendor: VendorId::PTEROS,
        };
        assert!(reader.match_writer(Instant::ZERO, writer));
        assert_eq!(
            reader.worst_case_bytes(),
            10_000 + usize::from(number) * 32_000
        );
    }

    let worst_case = |history_bytes_max, sample_bytes_max| {
        let guid = entity(2, EntityId::KIND_WRITER_NO_KEY);
        let mut config = WriterConfig::new(guid, reliable());
        config.limits.history_bytes_max = history_bytes_max;
        config.limits.sample_bytes_max = sample_bytes_max;
        Writer::new(config).worst_case_bytes()
    };
    // One sample is always accepted.
    assert_eq!(worst_case(500, 2_000), 2_000);
    assert_eq!(worst_case(9_000, 2_000), 9_000);
}
