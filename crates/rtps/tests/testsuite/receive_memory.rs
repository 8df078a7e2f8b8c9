//! Receive memory: one budget per participant and per context for unfinished samples,
//! histories and records of discovery, growth below twice the received bytes, and no
//! stall when it is full.

use pteros_test_support::rtps::domain;
use pteros_test_support::rtps::pair;

use bytes::Bytes;
use pair::net::SubmessageSummary;
use pair::{Pair, R, W};
use pteros_rtps::memory_budget::{MemoryAccount, MemoryBudget};
use pteros_rtps::participant::{ParticipantEvent, Table};
use pteros_rtps::qos::{EndpointQos, History, Reliability};
use pteros_rtps::reader::ReaderEvent;
use pteros_rtps::time::Duration;
use pteros_rtps::writer::NewChange;
use std::sync::Arc;

const MIB: usize = 1 << 20;

fn qos(reliability: Reliability) -> EndpointQos {
    EndpointQos {
        reliability,
        history: History::KeepAll,
        ..EndpointQos::default()
    }
}

/// A writer at `node` and a reader at node 20, matched, which charges the account.
fn join(
    pair: &mut Pair,
    node: usize,
    reliability: Reliability,
    account: &Arc<MemoryAccount>,
) -> (W, R) {
    let w = pair.writer(node, qos(reliability));
    let r = pair.reader(20, qos(reliability));
    pair.join(w, r);
    let guid = pair.writer_guid(w);
    pair.readers[r.0]
        .machine
        .limit_memory(guid, account.clone());
    pair.run_ms(50);
    (w, r)
}

fn write(pair: &mut Pair, w: W, payload: &Bytes) {
    let change = NewChange {
        payload: payload.clone(),
        ..NewChange::default()
    };
    pair.try_write(w, change).expect("space");
}

fn image(bytes: usize) -> Bytes {
    vec![7; bytes].into()
}

fn held(pair: &Pair) -> usize {
    let readers = pair.readers.iter();
    readers.map(|r| r.machine.memory_bytes()).sum()
}

fn told(pair: &Pair) -> usize {
    let events = pair.readers.iter().flat_map(|r| &r.events);
    events
        .filter(|event| matches!(event, ReaderEvent::MemoryFull { .. }))
        .count()
}

/// Twenty writers of one participant send every second fragment of ever new samples.
#[test]
fn unfinished_samples_of_one_participant_share_one_budget() {
    for reliability in [Reliability::Reliable, Reliability::BestEffort] {
        let budget = MemoryBudget::new(MIB, 4 * MIB);
        let account = budget.account();
        let mut pair = Pair::new();
        let all: Vec<_> = (0..20)
            .map(|_| join(&mut pair, 0, reliability, &account))
            .collect();
        let is_odd =
            |s: &SubmessageSummary| matches!(s, SubmessageSummary::Frag(_, n) if n % 2 == 1);
        pair.net.drop_next(usize::MAX, is_odd);
        let payload = image(100_000);
        for _ in 0..8 {
            for (w, _) in &all {
                write(&mut pair, *w, &payload);
            }
            pair.run_ms(5);
        }
        assert!(budget.reserved() <= MIB, "{} reserved", budget.reserved());
        assert!(held(&pair) <= MIB, "{} held", held(&pair));
        assert!(told(&pair) >= 1 && told(&pair) < 20, "told {}", told(&pair));
        let refused: u64 = pair
            .readers
            .iter()
            .map(|r| r.machine.stats().memory_refused)
            .sum();
        assert!(refused > 0 && budget.refused() >= refused);
    }
}

/// The last fragments first, and gaps everywhere.
#[test]
fn memory_grows_with_the_received_bytes_whatever_the_holes() {
    let budget = MemoryBudget::new(64 * MIB, 256 * MIB);
    let mut pair = Pair::new();
    let (w, r) = join(&mut pair, 0, Reliability::Reliable, &budget.account());
    let rare = |s: &SubmessageSummary| matches!(s, SubmessageSummary::Frag(_, n) if n % 100 != 99);
    pair.net.drop_next(usize::MAX, rare);
    write(&mut pair, w, &image(4_000_000));
    pair.run_ms(2);
    let fragments = pair.readers[r.0].machine.stats().fragments;
    assert!(fragments > 20);
    let received = usize::try_from(fragments).unwrap() * 1_344;
    assert!(
        held(&pair) <= 2 * received,
        "{} for {received}",
        held(&pair)
    );
    pair.net.heal();
    pair.run_ms(2_000);
    assert_eq!(pair.readers[r.0].received[0].payload, image(4_000_000));
    assert_eq!(held(&pair), 0);
}

#[test]
fn a_participant_at_its_limit_does_not_stop_another() {
    let budget = MemoryBudget::new(MIB, 4 * MIB);
    let (greedy, honest) = (budget.account(), budget.account());
    let mut pair = Pair::new();
    let (w1, _) = join(&mut pair, 0, Reliability::Reliable, &greedy);
    let (w2, r2) = join(&mut pair, 1, Reliability::Reliable, &honest);
    pair.net
        .drop_next(usize::MAX, |s| matches!(s, SubmessageSummary::Frag(_, 3)));
    for _ in 0..12 {
        write(&mut pair, w1, &image(200_000));
    }
    pair.run_ms(20);
    assert!(greedy.reserved() > MIB / 2);
    pair.net.heal();
    pair.net.drop_next(
        usize::MAX,
        |s| matches!(s, SubmessageSummary::Frag(sequence, 3) if *sequence > 1),
    );
    write(&mut pair, w2, &image(900_000));
    pair.run_ms(200);
    assert_eq!(pair.numbers(r2), [1]);
}

/// Each of four samples takes more than half of the budget, and a fragment of each is
/// lost: they are completed one after the other.
#[test]
fn samples_beyond_the_budget_wait_for_each_other_and_all_arrive() {
    let budget = MemoryBudget::new(MIB, 4 * MIB);
    let account = budget.account();
    let mut pair = Pair::new();
    let all: Vec<_> = (0..4)
        .map(|_| join(&mut pair, 0, Reliability::Reliable, &account))
        .collect();
    pair.net
        .drop_next(4, |s| matches!(s, SubmessageSummary::Frag(1, 5)));
    for (w, _) in &all {
        write(&mut pair, *w, &image(700_000));
    }
    pair.run_ms(5_000);
    for (_, r) in &all {
        assert_eq!(pair.numbers(*r), [1]);
    }
    assert!(told(&pair) >= 1);
    assert!(budget.reserved() <= MIB / 2, "buffers kept for reuse alone");
}

#[test]
fn a_missing_sample_takes_the_memory_of_later_ones() {
    let budget = MemoryBudget::new(MIB, 4 * MIB);
    let mut pair = Pair::new();
    let (w, r) = join(&mut pair, 0, Reliability::Reliable, &budget.account());
    pair.net
        .drop_next(600, |s| matches!(s, SubmessageSummary::Frag(1, _)));
    write(&mut pair, w, &image(800_000));
    for _ in 0..100 {
        write(&mut pair, w, &image(10_000));
    }
    pair.run_ms(10_000);
    assert_eq!(pair.numbers(r), (1..=101).collect::<Vec<_>>());
}

/// Its rest is lost and never sent again.
#[test]
fn a_best_effort_sample_that_is_never_completed_gives_its_memory_back() {
    let budget = MemoryBudget::new(MIB, 4 * MIB);
    let mut pair = Pair::new();
    let (w, _) = join(&mut pair, 0, Reliability::BestEffort, &budget.account());
    pair.net
        .drop_next(usize::MAX, |s| matches!(s, SubmessageSummary::Frag(_, 3)));
    write(&mut pair, w, &image(500_000));
    pair.run_ms(100);
    assert_eq!(budget.reserved(), 500_000);
    pair.run_ms(3_000);
    assert_eq!((budget.reserved(), held(&pair)), (0, 0));
}

/// The application takes nothing. Another topic of the same participant goes on, and
/// what was refused arrives when samples are taken again.
#[test]
fn a_reliable_history_that_nobody_takes_fills_half_and_stops_nobody() {
    for bytes in [10_000, 60_000, 200_000] {
        let budget = MemoryBudget::new(MIB, 8 * MIB);
        let account = budget.account();
        let mut pair = Pair::new();
        let (w1, r1) = join(&mut pair, 0, Reliability::Reliable, &account);
        let (w2, r2) = join(&mut pair, 0, Reliability::Reliable, &account);
        pair.readers[r1.0].paused = true;
        let count = i64::try_from(3 * MIB / bytes).unwrap();
        for _ in 0..count {
            write(&mut pair, w1, &image(bytes));
            write(&mut pair, w2, &image(2_000));
            pair.run_ms(5);
        }
        let (held, limit) = (budget.reserved(), MIB / 2 + bytes + 2_000);
        assert!(held <= limit, "{held} of {limit} reserved");
        assert_eq!(pair.numbers(r2), (1..=count).collect::<Vec<_>>());
        assert_eq!(told(&pair), 1);
        pair.readers[r1.0].paused = false;
        pair.run_ms(20_000);
        assert_eq!(pair.numbers(r1), (1..=count).collect::<Vec<_>>());
        assert!(budget.reserved() <= bytes, "a buffer kept for reuse alone");
    }
}

#[test]
fn best_effort_samples_beyond_the_memory_are_rejected_and_lost() {
    let budget = MemoryBudget::new(MIB, 8 * MIB);
    let mut pair = Pair::new();
    let (w, r) = join(&mut pair, 0, Reliability::BestEffort, &budget.account());
    pair.readers[r.0].paused = true;
    for _ in 0..100 {
        write(&mut pair, w, &image(50_000));
        pair.run_ms(5);
    }
    let stats = *pair.readers[r.0].machine.stats();
    let held = pair.readers[r.0].machine.memory_bytes();
    assert!(held <= MIB / 2, "{held}");
    assert!(stats.samples_rejected + stats.memory_refused > 50);
    assert_eq!(told(&pair), 1);
    pair.readers[r.0].paused = false;
    write(&mut pair, w, &image(50_000));
    pair.run_ms(50);
    let received = pair.readers[r.0].received.len() as u64;
    assert_eq!(received + pair.readers[r.0].machine.stats().lost, 101);
}

/// Samples below 1 KiB are bounded by the depth of the history, and cost no counter.
#[test]
fn small_samples_are_not_charged() {
    let budget = MemoryBudget::new(MIB, 8 * MIB);
    let mut pair = Pair::new();
    let (w, r) = join(&mut pair, 0, Reliability::Reliable, &budget.account());
    pair.readers[r.0].paused = true;
    for _ in 0..10 {
        write(&mut pair, w, &image(1_000));
    }
    pair.run_ms(20);
    assert_eq!(budget.reserved(), 0);
    write(&mut pair, w, &image(1_024));
    pair.run_ms(20);
    assert_eq!(budget.reserved(), 1_024);
}

/// Discovery records of endpoints are charged to their participant. The charge has a
/// limit, is reported, and is given back.
#[test]
fn records_of_endpoints_are_charged_and_bounded() {
    let mut domain = domain::Domain::new(1);
    let mut config = domain::config(0, 0);
    config.limits.participant_memory_bytes = MIB;
    config.limits.memory_bytes = 2 * MIB;
    domain.join(config);
    domain.join(domain::config(1, 0));
    domain.join(domain::config(2, 0));
    domain.run_for(Duration::from_secs(1));
    let used = domain.nodes[0].machine.receive_memory_use();
    assert!(used.reserved > 0 && used.most_refused.is_none(), "{used:?}");
    for number in 0..200 {
        let qos = EndpointQos {
            user_data: vec![number; 1_000],
            ..EndpointQos::default()
        };
        domain.add_writer(1, &format!("rt/topic{number}"), qos);
    }
    domain.run_for(Duration::from_secs(5));
    let known = |domain: &domain::Domain, node| {
        let of = domain::prefix(node, 0);
        let machine = &domain.nodes[0].machine;
        machine
            .endpoints()
            .remotes()
            .filter(|e| e.guid().prefix == of)
            .count()
    };
    let first = known(&domain, 1);
    assert!((50..130).contains(&first), "{first} of 200");
    let used = domain.nodes[0].machine.receive_memory_use();
    assert!(
        used.records > MIB / 16 && used.records <= MIB / 4,
        "{used:?}"
    );
    assert_eq!(
        used.most_refused.map(|of| of.prefix),
        Some(domain::prefix(1, 0))
    );
    let told = domain.nodes[0].events.iter().filter(|event| {
        matches!(
            event,
            ParticipantEvent::TableFull {
                table: Table::Memory,
                ..
            }
        )
    });
    assert_eq!(told.count(), 1);
    // Another participant has an account of its own.
    domain.add_writer(2, "rt/other", EndpointQos::default());
    domain.run_for(Duration::from_secs(1));
    assert_eq!(known(&domain, 2), 1);
    domain.leave(1);
    domain.run_for(Duration::from_secs(60));
    assert_eq!(known(&domain, 1), 0);
    let left = domain.nodes[0].machine.receive_memory_use().records;
    assert!(left < 10_000, "{left} bytes left");
}
