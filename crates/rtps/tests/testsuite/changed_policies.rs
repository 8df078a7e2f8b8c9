//! Changeable QoS policies of local and remote writers and readers (DDS 1.4 §2.2.3,
//! column "changeable").

use pteros_test_support::rtps::domain;
use pteros_test_support::rtps::pair;

use domain::{Domain, endpoint};
use pair::net::SubmessageSummary;
use pair::{Pair, R, W, prefix};
use pteros_rtps::id::EntityId;
use pteros_rtps::participant::ParticipantEvent;
use pteros_rtps::qos::{Durability, EndpointQos, History, Ownership, Reliability};
use pteros_rtps::reader::ReaderEvent;
use pteros_rtps::receiver::Source;
use pteros_rtps::seq::SequenceNumber;
use pteros_rtps::shared_qos::SharedQos;
use pteros_rtps::time::Duration;
use pteros_rtps::wire::{Header, Heartbeat};
use pteros_rtps::writer::WriterEvent;

fn millis(n: i64) -> Duration {
    Duration::from_millis(n)
}

fn joined(qos: &EndpointQos) -> (Pair, W, R) {
    let (mut pair, w, r) = Pair::matched(qos.clone(), qos.clone());
    pair.run_ms(50);
    pair.net.log.clear();
    (pair, w, r)
}

fn set(pair: &mut Pair, w: W, r: R, qos: &EndpointQos) {
    let now = pair.now();
    pair.writers[w.0].machine.set_qos(now, qos);
    let reader = &mut pair.readers[r.0];
    let runs = !reader.received.is_empty();
    reader.machine.set_qos(now, qos, runs);
    let writer = pair.writer_guid(w);
    pair.readers[r.0].machine.update_writer(writer, qos);
    pair.flush();
}

/// Deadlines missed by writer and reader.
fn missed(pair: &Pair, w: W, r: R) -> (usize, usize) {
    let offered = |e: &&WriterEvent| matches!(e, WriterEvent::DeadlineMissed { .. });
    let requested = |e: &&ReaderEvent| matches!(e, ReaderEvent::DeadlineMissed { .. });
    (
        pair.writers[w.0].events.iter().filter(offered).count(),
        pair.readers[r.0].events.iter().filter(requested).count(),
    )
}

#[test]
fn a_deadline_that_changes_counts_from_the_change_on_both_ends() {
    let plain = EndpointQos::default();
    let hasty = EndpointQos {
        deadline: millis(100),
        ..plain.clone()
    };
    let (mut pair, w, r) = joined(&plain);
    // Nothing was written: nothing is missed.
    set(&mut pair, w, r, &hasty);
    pair.run_ms(500);
    assert_eq!(missed(&pair, w, r), (0, 0));
    set(&mut pair, w, r, &plain);
    pair.write_many(w, 1);
    pair.run_ms(500);
    set(&mut pair, w, r, &hasty);
    pair.run_ms(99);
    assert_eq!(missed(&pair, w, r), (0, 0));
    pair.run_ms(2);
    assert_eq!(missed(&pair, w, r), (1, 1));
    // An unchanged deadline keeps counting.
    let renamed = EndpointQos {
        user_data: vec![7],
        ..hasty.clone()
    };
    pair.run_ms(50);
    set(&mut pair, w, r, &renamed);
    pair.run_ms(50);
    assert_eq!(missed(&pair, w, r), (2, 2));
    set(&mut pair, w, r, &plain);
    pair.run_ms(5_000);
    assert_eq!(missed(&pair, w, r), (2, 2));
}

#[test]
fn a_new_latency_budget_holds_samples_and_its_end_releases_them() {
    let plain = EndpointQos {
        latency_budget: Duration::ZERO,
        ..EndpointQos::default()
    };
    let patient = EndpointQos {
        latency_budget: millis(50),
        ..plain.clone()
    };
    let (mut pair, w, r) = joined(&plain);
    pair.write_many(w, 2);
    pair.run_ms(1);
    assert_eq!(pair.numbers(r), [1, 2]);
    set(&mut pair, w, r, &patient);
    pair.write_many(w, 3);
    pair.run_ms(40);
    assert_eq!(pair.numbers(r), [1, 2]);
    set(&mut pair, w, r, &plain);
    pair.run_ms(1);
    assert_eq!(pair.numbers(r), [1, 2, 3, 4, 5]);
    pair.net.log.clear();
    pair.write_many(w, 2);
    pair.run_ms(1);
    assert_eq!(
        pair.net
            .count(|summary| matches!(summary, SubmessageSummary::Data(_))),
        2
    );
    // A shorter one ends the running pause.
    set(&mut pair, w, r, &patient);
    pair.write_many(w, 1);
    let brief = EndpointQos {
        latency_budget: millis(2),
        ..plain
    };
    set(&mut pair, w, r, &brief);
    pair.run_ms(3);
    assert_eq!(pair.numbers(r).last(), Some(&8));
}

#[test]
fn a_shorter_lifespan_expires_before_a_longer_one_that_began_earlier() {
    let kept = EndpointQos {
        durability: Durability::TransientLocal,
        history: History::KeepAll,
        ..EndpointQos::default()
    };
    let brief = EndpointQos {
        lifespan: millis(100),
        ..kept.clone()
    };
    let (mut pair, w, r) = joined(&kept);
    pair.write_many(w, 1);
    pair.run_ms(1);
    set(&mut pair, w, r, &brief);
    pair.write_many(w, 2);
    pair.run_ms(50);
    set(&mut pair, w, r, &kept);
    pair.write_many(w, 1);
    pair.run_ms(1);
    let received = &pair.readers[r.0].received;
    assert_eq!(received.len(), 4);
    let ends: Vec<_> = received.iter().map(|c| c.expires_at.as_nanos()).collect();
    assert!(ends[1] < ends[0] && ends[1] == ends[2], "{ends:?}");
    assert_eq!(pair.writers[w.0].machine.cached_samples(), 4);
    pair.run_ms(60);
    assert_eq!(pair.writers[w.0].machine.cached_samples(), 2);
    assert_eq!(pair.writers[w.0].machine.stats().expired, 2);
    let late = pair.reader(2, kept);
    pair.join(w, late);
    pair.run_ms(50);
    assert_eq!(pair.numbers(late), [1, 4]);
    assert!(pair.writers[w.0].machine.readers().is_acked_by_all());
}

/// Found by moving a subscription to another partition and back again.
#[test]
fn a_delayed_heartbeat_of_an_earlier_match_causes_no_loss() {
    let (mut pair, w, r) = joined(&EndpointQos::default());
    pair.write_many(w, 3);
    pair.run_ms(50);
    assert_eq!(pair.numbers(r), [1, 2, 3]);
    let (writer, reader) = (pair.writer_guid(w), pair.guid(r));
    pair.readers[r.0].machine.unmatch_writer(writer);
    pair.writers[w.0].machine.unmatch_reader(reader);
    pair.match_writer_only(r, w);
    let source = Source::of(Header::ours(prefix(0)));
    let overtaken = Heartbeat {
        reader: reader.entity,
        writer: writer.entity,
        first: SequenceNumber(3),
        last: SequenceNumber(2),
        count: 1,
        is_final: true,
        liveliness: false,
        group_info: None,
    };
    let now = pair.now();
    let machine = &mut pair.readers[r.0].machine;
    machine.handle_heartbeat(now, &source, &overtaken);
    pair.match_reader_only(w, r);
    pair.run_ms(50);
    pair.write_many(w, 1);
    pair.run_ms(50);
    assert_eq!(pair.numbers(r), [1, 2, 3, 4]);
    let lost = |e: &ReaderEvent| matches!(e, ReaderEvent::SampleLost { .. });
    assert!(!pair.readers[r.0].events.iter().any(lost));
}

/// The writer matches a returning reader a moment later. Samples written until then
/// are addressed to no reader, though a delayed heartbeat makes them seem to
/// follow.
#[test]
fn samples_written_before_the_writer_matches_a_returning_reader_are_not_lost() {
    let (mut pair, w, r) = joined(&EndpointQos::default());
    pair.write_many(w, 3);
    pair.run_ms(50);
    let (writer, reader) = (pair.writer_guid(w), pair.guid(r));
    pair.readers[r.0].machine.unmatch_writer(writer);
    pair.match_writer_only(r, w);
    let overtaken = Heartbeat {
        reader: reader.entity,
        writer: writer.entity,
        first: SequenceNumber(4),
        last: SequenceNumber(3),
        count: 1,
        is_final: true,
        liveliness: false,
        group_info: None,
    };
    let (now, source) = (pair.now(), Source::of(Header::ours(prefix(0))));
    let machine = &mut pair.readers[r.0].machine;
    machine.handle_heartbeat(now, &source, &overtaken);
    pair.writers[w.0].machine.unmatch_reader(reader);
    pair.write_many(w, 2);
    pair.match_reader_only(w, r);
    pair.run_ms(50);
    pair.write_many(w, 1);
    pair.run_ms(50);
    assert_eq!(pair.numbers(r), [1, 2, 3, 6]);
    let lost = |e: &ReaderEvent| match e {
        ReaderEvent::SampleLost { count, .. } => *count,
        _ => 0,
    };
    let total = |pair: &Pair| pair.readers[r.0].events.iter().map(lost).sum::<u64>();
    assert_eq!(total(&pair), 0);
    // From then on what is missing is lost.
    let data = |summary: &SubmessageSummary| matches!(summary, SubmessageSummary::Data(_));
    pair.net.drop_next(usize::MAX, data);
    pair.write_many(w, 12);
    pair.run_ms(500);
    pair.net.heal();
    pair.run_ms(500);
    let depth = 10;
    assert_eq!(pair.numbers(r).len(), 4 + depth, "{:?}", pair.numbers(r));
    assert_eq!(total(&pair), 2);
}

/// Found by the simulator (seed 10600023491): a process was stopped, made a reader, and then
/// read heartbeats to all readers that had waited since before. What they name may be gone.
#[test]
fn heartbeats_to_all_readers_from_before_the_match_cause_no_loss() {
    let (mut pair, w, _) = joined(&EndpointQos::default());
    let late = pair.reader(1, EndpointQos::default());
    pair.match_writer_only(late, w);
    let (writer, reader) = (pair.writer_guid(w), pair.guid(late).entity);
    let source = Source::of(Header::ours(prefix(0)));
    let now = pair.now();
    let mut count = 1_000;
    let mut hear = |pair: &mut Pair, reader, first, last| {
        count += 1;
        let heartbeat = Heartbeat {
            reader,
            writer: writer.entity,
            first: SequenceNumber(first),
            last: SequenceNumber(last),
            count,
            is_final: true,
            liveliness: false,
            group_info: None,
        };
        let machine = &mut pair.readers[late.0].machine;
        machine.handle_heartbeat(now, &source, &heartbeat);
        machine.stats().lost
    };
    for (first, last) in [(15, 23), (15, 24), (15, 26), (24, 28), (25, 29), (28, 32)] {
        assert_eq!(
            hear(&mut pair, EntityId::UNKNOWN, first, last),
            0,
            "{first}..{last}"
        );
    }
    // The writer says where the match begins. From there on what is gone is lost.
    assert_eq!(hear(&mut pair, reader, 31, 32), 0);
    assert_eq!(hear(&mut pair, EntityId::UNKNOWN, 33, 36), 2);
    assert_eq!(hear(&mut pair, reader, 36, 36), 5);
}

#[test]
fn a_peer_that_changes_partition_unmatches_and_matches_without_an_incompatibility() {
    let mut domain = Domain::met(2);
    let here = EndpointQos::default();
    let there = EndpointQos {
        partition: vec!["there".into()],
        ..here.clone()
    };
    let writer = domain.add_writer(0, "rt/a", here.clone());
    let reader = domain.add_reader(1, "rt/a", here.clone());
    domain.run_for(millis(100));
    for _ in 0..3 {
        for (qos, matched) in [(&there, 0), (&here, 1)] {
            domain.write_endpoint(0, endpoint(writer, "rt/a", "T", qos.clone()));
            domain.run_for(millis(100));
            assert_eq!(domain.matches(0).len(), matched);
            assert_eq!(domain.matches(1).len(), matched);
        }
    }
    assert_eq!(domain.matches(1), [(reader, writer)]);
    for node in &domain.nodes {
        let misfit = |e: &ParticipantEvent| matches!(e, ParticipantEvent::IncompatibleQos { .. });
        assert!(!node.events.iter().any(misfit));
    }
}

#[test]
fn a_peer_that_changes_an_immutable_policy_is_matched_again() {
    let mut domain = Domain::met(2);
    let guid = domain.new_guid(0, EntityId::KIND_WRITER_NO_KEY);
    let reader = domain.add_reader(
        1,
        "rt/a",
        EndpointQos {
            reliability: Reliability::BestEffort,
            ..EndpointQos::default()
        },
    );
    let before = EndpointQos::default();
    let weaker = EndpointQos {
        reliability: Reliability::BestEffort,
        ..before.clone()
    };
    let unlike = EndpointQos {
        ownership: Ownership::Exclusive,
        ..before.clone()
    };
    let changes = |domain: &Domain| {
        let mut announced = Vec::new();
        for event in &domain.nodes[1].events {
            match event {
                ParticipantEvent::Matched { remote, .. } => {
                    announced.push(Some(remote.qos.clone()))
                }
                ParticipantEvent::Unmatched { .. } => announced.push(None),
                _ => {}
            }
        }
        announced
    };
    for qos in [&before, &weaker, &unlike, &before] {
        domain.write_endpoint(0, endpoint(guid, "rt/a", "T", qos.clone()));
        domain.run_for(millis(100));
    }
    // Its proxy is created with its present policies.
    let expected = [Some(before.clone()), None, Some(weaker), None, Some(before)]
        .map(|qos| qos.map(SharedQos::from));
    assert_eq!(changes(&domain), expected);
    assert_eq!(domain.matches(1), [(reader, guid)]);
}
