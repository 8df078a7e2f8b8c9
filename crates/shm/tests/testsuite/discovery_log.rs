//! Discovery logs that meet in one process, on fake time. They use the same sockets
//! and mappings as between processes.

use std::collections::BTreeMap;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use pteros_shm::{
    DiscoveryLog, DiscoveryLogEvent, DiscoveryLogFull, DiscoveryLogOptions, PeerName,
};
use pteros_test_support::own_process;

/// Separates the domains of tests that run at the same time.
fn domain(story: u32) -> u32 {
    std::process::id() * 100 + story
}

fn name(n: u8) -> PeerName {
    let mut name = [n; 12];
    name[..4].copy_from_slice(&std::process::id().to_le_bytes());
    name
}

fn open(story: u32, n: u8) -> DiscoveryLog {
    let log = DiscoveryLog::open(domain(story), name(n), DiscoveryLogOptions::default());
    log.expect("a discovery log")
}

fn post(log: &DiscoveryLog, records: &[&str]) {
    let records = records.iter().map(|record| record.as_bytes());
    log.append(0, records).expect("room");
}

/// The events of each log, as text.
#[derive(Default)]
struct Heard(BTreeMap<u8, Vec<String>>);

impl Heard {
    fn note(&mut self, who: u8, event: DiscoveryLogEvent<'_>) {
        let of = |peer: PeerName| peer[11];
        let line = match event {
            DiscoveryLogEvent::Reset { peer } => format!("{} reset", of(peer)),
            DiscoveryLogEvent::Record { peer, record } => {
                format!("{}: {}", of(peer), String::from_utf8_lossy(record))
            }
            DiscoveryLogEvent::CaughtUp { peer } => format!("{} caught up", of(peer)),
            DiscoveryLogEvent::LivelinessAsserted { peer } => format!("{} beat", of(peer)),
            DiscoveryLogEvent::PeerLost { peer, reason } => format!("{} gone: {reason}", of(peer)),
            other => format!("{other:?}"),
        };
        self.0.entry(who).or_default().push(line);
    }

    fn take(&mut self, who: u8) -> Vec<String> {
        self.0.remove(&who).unwrap_or_default()
    }
}

/// Polls all logs until nothing is left to report; `now` advances.
fn settle(logs: &[(u8, &DiscoveryLog)], now: &mut u64, heard: &mut Heard) {
    for _ in 0..8 {
        *now += 1_000_000;
        for (who, log) in logs {
            log.poll(*now, &mut |event| heard.note(*who, event));
        }
    }
}

#[test]
fn a_late_peer_reads_existing_and_new_records() {
    let (a, mut now, mut heard) = (open(1, 1), 0, Heard::default());
    post(&a, &["alpha", ""]);
    let b = open(1, 2);
    post(&b, &["beta"]);
    assert_eq!(b.connect_to_all(now), 1);
    settle(&[(1, &a), (2, &b)], &mut now, &mut heard);
    assert_eq!(heard.take(2), ["1 reset", "1: alpha", "1: ", "1 caught up"]);
    assert_eq!(heard.take(1), ["2 reset", "2: beta", "2 caught up"]);
    post(&a, &["more"]);
    settle(&[(1, &a), (2, &b)], &mut now, &mut heard);
    assert_eq!(heard.take(2), ["1: more"]);
    assert_eq!((a.peers(), b.peers()), (1, 1));
    assert_eq!(b.connect_to_all(now), 0, "known already");
}

#[test]
fn records_appended_during_the_handshake_are_reported() {
    let (a, b, mut now, mut heard) = (open(11, 1), open(11, 2), 0, Heard::default());
    post(&a, &["before"]);
    assert_eq!(a.connect_to_all(now), 1);
    b.poll(now, &mut |event| heard.note(2, event));
    assert_eq!(heard.take(2), ["1 reset", "1: before", "1 caught up"]);
    // The caller has not looked at the answer yet.
    post(&a, &["between"]);
    settle(&[(1, &a), (2, &b)], &mut now, &mut heard);
    assert_eq!(heard.take(2), ["1: between"]);
}

#[test]
fn a_log_rewritten_during_the_handshake_is_sent() {
    let (a, b, mut now, mut heard) = (open(12, 1), open(12, 2), 0, Heard::default());
    post(&a, &["old"]);
    assert_eq!(a.connect_to_all(now), 1);
    b.poll(now, &mut |event| heard.note(2, event));
    heard.take(2);
    a.rewrite([b"all".as_slice()].into_iter()).expect("room");
    post(&a, &["more"]);
    settle(&[(1, &a), (2, &b)], &mut now, &mut heard);
    assert_eq!(
        heard.take(2),
        ["1 reset", "1: all", "1: more", "1 caught up"]
    );
}

#[test]
fn logs_of_another_domain_are_not_connected() {
    let (_a, b) = (open(2, 1), open(3, 2));
    assert_eq!(b.connect_to_all(0), 0);
}

#[test]
fn peers_that_connect_to_each_other_at_once_connect_once() {
    let (mut now, mut heard) = (0, Heard::default());
    let logs: Vec<(u8, DiscoveryLog)> = (1..=12).map(|n| (n, open(4, n))).collect();
    for (n, log) in &logs {
        post(log, &[&format!("board {n}")]);
    }
    for (_, log) in &logs {
        log.connect_to_all(now);
    }
    let all: Vec<(u8, &DiscoveryLog)> = logs.iter().map(|(n, log)| (*n, log)).collect();
    settle(&all, &mut now, &mut heard);
    for (n, log) in &all {
        assert_eq!(log.peers(), 11);
        let mut lines = heard.take(*n);
        lines.sort();
        let others = (1..=12).filter(|m| m != n);
        let mut expected: Vec<String> = others
            .flat_map(|m| {
                [
                    format!("{m} reset"),
                    format!("{m}: board {m}"),
                    format!("{m} caught up"),
                ]
            })
            .collect();
        expected.sort();
        assert_eq!(lines, expected);
    }
}

#[test]
fn a_full_log_takes_no_record_until_it_is_rewritten() {
    let (a, b, mut now, mut heard) = (open(5, 1), open(5, 2), 0, Heard::default());
    b.connect_to_all(now);
    let large = vec![b'x'; 6 << 20];
    let two = [large.as_slice(), large.as_slice()];
    a.append(now, two.into_iter()).expect("room");
    settle(&[(1, &a), (2, &b)], &mut now, &mut heard);
    heard.take(2);
    assert_eq!(a.append(now, two.into_iter()), Err(DiscoveryLogFull));
    a.rewrite([&b"what holds"[..]].into_iter()).expect("room");
    settle(&[(1, &a), (2, &b)], &mut now, &mut heard);
    assert_eq!(heard.take(2), ["1 reset", "1: what holds", "1 caught up"]);
    post(&a, &["and more"]);
    settle(&[(1, &a), (2, &b)], &mut now, &mut heard);
    assert_eq!(heard.take(2), ["1: and more"]);
    let three = [large.as_slice(); 3];
    assert_eq!(a.rewrite(three.into_iter()), Err(DiscoveryLogFull));
    post(&a, &["still there"]);
}

/// In a process of its own: while another test starts a process, that inherits the
/// sockets until it executes its program, and the closed log seems to stay.
#[test]
fn a_closing_peer_is_lost_after_its_last_records() {
    if !own_process!() {
        return;
    }
    let (a, b, mut now, mut heard) = (open(6, 1), open(6, 2), 0, Heard::default());
    b.connect_to_all(now);
    settle(&[(1, &a), (2, &b)], &mut now, &mut heard);
    heard.take(2);
    post(&a, &["farewell"]);
    drop(a);
    settle(&[(2, &b)], &mut now, &mut heard);
    assert_eq!(heard.take(2), ["1: farewell", "1 gone: closed by the peer"]);
    assert_eq!(b.peers(), 0);
    let again = open(6, 1);
    again.connect_to_all(now);
    settle(&[(1, &again), (2, &b)], &mut now, &mut heard);
    assert_eq!(heard.take(2), ["1 reset", "1 caught up"]);
}

/// A process that was stopped wakes its peers, although it has no new record.
#[test]
fn peers_are_woken_without_a_record() {
    let (a, b, mut now, mut heard) = (open(13, 1), open(13, 2), 0, Heard::default());
    assert_eq!(b.connect_to_all(now), 1);
    settle(&[(1, &a), (2, &b)], &mut now, &mut heard);
    heard.take(2);
    let is_woken = || {
        let mut waits = [PollFd::from_borrowed_fd(b.descriptor(), PollFlags::IN)];
        poll(&mut waits, Some(&Timespec::default())).expect("poll") == 1
    };
    a.assert_liveliness();
    assert!(!is_woken(), "a usual assertion wakes nobody");
    a.wake_peers(now + 1_000_000_000);
    assert!(is_woken());
    b.poll(now, &mut |event| heard.note(2, event));
    b.poll_liveliness(&mut |event| heard.note(2, event));
    assert_eq!(heard.take(2), ["1 beat"]);
    assert!(!is_woken());
}

#[test]
fn liveliness_assertions_are_reported() {
    let (a, b, mut now, mut heard) = (open(7, 1), open(7, 2), 0, Heard::default());
    b.connect_to_all(now);
    settle(&[(1, &a), (2, &b)], &mut now, &mut heard);
    heard.take(2);
    let look = || {
        let mut count = 0;
        b.poll_liveliness(&mut |_| count += 1);
        count
    };
    assert_eq!(look(), 0);
    a.assert_liveliness();
    a.assert_liveliness();
    assert_eq!((look(), look()), (1, 0));
}

#[test]
fn a_log_can_be_replayed_from_its_start() {
    let (a, b, mut now, mut heard) = (open(10, 1), open(10, 2), 0, Heard::default());
    post(&a, &["alpha"]);
    b.connect_to_all(now);
    settle(&[(1, &a), (2, &b)], &mut now, &mut heard);
    post(&a, &["omega"]);
    settle(&[(1, &a), (2, &b)], &mut now, &mut heard);
    heard.take(2);
    b.replay(name(1));
    settle(&[(2, &b)], &mut now, &mut heard);
    assert_eq!(
        heard.take(2),
        ["1 reset", "1: alpha", "1: omega", "1 caught up"]
    );
    b.replay(name(3));
    settle(&[(2, &b)], &mut now, &mut heard);
    assert!(heard.take(2).is_empty());
}

#[test]
fn records_within_a_millisecond_share_one_wake_and_can_be_polled_before() {
    let (a, b, mut now, mut heard) = (open(8, 1), open(8, 2), 0, Heard::default());
    b.connect_to_all(now);
    settle(&[(1, &a), (2, &b)], &mut now, &mut heard);
    heard.take(2);
    let mut post_at = |record: &str| {
        let posted = a.append(now, [record.as_bytes()].into_iter());
        posted.expect("room");
        b.poll(now, &mut |event| heard.note(2, event));
        heard.take(2)
    };
    assert_eq!(post_at("one"), ["1: one"], "woken at once");
    assert!(post_at("two").is_empty(), "not again so soon");
    assert!(post_at("three").is_empty());
    assert_eq!(a.poll(now, &mut |_| {}), Some(now + 1_000_000));
    assert!(b.has_unread(name(1)));
    b.poll_peer(name(1), &mut |event| heard.note(2, event));
    assert!(!b.has_unread(name(1)) && !b.has_unread(name(7)));
    assert_eq!(heard.take(2), ["1: two", "1: three"]);
    assert_eq!(a.poll(now + 1_000_000, &mut |_| {}), None);
    b.poll(now, &mut |event| heard.note(2, event));
    assert!(heard.take(2).is_empty());
}

/// Events are delivered between polls, so many peers need no more memory than one.
#[test]
fn a_poll_reports_16_kib_round_robin_over_the_peers() {
    let (a, b, c) = (open(15, 1), open(15, 2), open(15, 3));
    let (mut now, mut heard) = (0, Heard::default());
    b.connect_to_all(now);
    settle(&[(1, &a), (2, &b), (3, &c)], &mut now, &mut heard);
    heard.take(2);
    let long: Vec<String> = (0..1000).map(|n| format!("{n:0>200}")).collect();
    post(&a, &long.iter().map(String::as_str).collect::<Vec<_>>());
    post(&c, &["short"]);
    let (mut reported, mut turns, mut short_at) = (Vec::new(), 0, None);
    while reported.len() < long.len() {
        now += 1_000_000;
        a.poll(now, &mut |_| {});
        c.poll(now, &mut |_| {});
        let next = b.poll(now, &mut |event| heard.note(2, event));
        let lines = heard.take(2);
        turns += 1;
        let bytes: usize = lines.iter().map(String::len).sum();
        assert!(bytes <= (17 << 10), "{bytes} in one turn");
        for line in lines {
            match line.strip_prefix("1: ") {
                Some(record) => reported.push(record.to_owned()),
                None => short_at = Some(turns).filter(|_| line == "3: short"),
            }
        }
        let is_over = reported.len() == long.len();
        assert!(
            is_over || next == Some(now),
            "there is more to be told at once"
        );
        assert!(turns < 100, "{} of 1000 told", reported.len());
    }
    assert_eq!(reported, long);
    assert!(short_at.is_some_and(|poll| poll <= 3), "{short_at:?}");
    assert!(turns > 10, "{turns} turns");
}

/// A former bug: the log was reported from the start and then once more, empty, so
/// all its records were taken for removed.
#[test]
fn a_replay_reports_the_whole_log_exactly_once() {
    let (a, b, mut now, mut heard) = (open(14, 1), open(14, 2), 0, Heard::default());
    post(&a, &["alpha", "beta"]);
    b.connect_to_all(now);
    settle(&[(1, &a), (2, &b)], &mut now, &mut heard);
    heard.take(2);
    let whole = ["1 reset", "1: alpha", "1: beta", "1 caught up"];
    b.replay(name(1));
    assert!(b.has_unread(name(1)));
    b.poll_peer(name(1), &mut |event| heard.note(2, event));
    settle(&[(1, &a), (2, &b)], &mut now, &mut heard);
    assert_eq!(heard.take(2), whole);
    b.replay(name(1));
    b.replay(name(1));
    settle(&[(1, &a), (2, &b)], &mut now, &mut heard);
    assert_eq!(heard.take(2), whole);
    // A replay is requested while a long one is in progress.
    let long: Vec<String> = (0..300).map(|n| format!("{n:0>200}")).collect();
    post(&a, &long.iter().map(String::as_str).collect::<Vec<_>>());
    settle(&[(1, &a), (2, &b)], &mut now, &mut heard);
    assert_eq!(heard.take(2).len(), long.len());
    b.replay(name(1));
    b.poll_peer(name(1), &mut |event| heard.note(2, event));
    b.replay(name(1));
    settle(&[(1, &a), (2, &b)], &mut now, &mut heard);
    let lines = heard.take(2);
    assert_eq!(lines.len(), long.len() + whole.len());
    assert_eq!(lines.first().map(String::as_str), Some("1 reset"));
    assert_eq!(lines.last().map(String::as_str), Some("1 caught up"));
}

#[test]
fn a_silent_connection_times_out_after_30_s() {
    let (a, mut heard) = (open(9, 1), Heard::default());
    let path = format!(
        "pteros-board-{}-{}",
        domain(9),
        name(1)
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect::<String>()
    );
    let address = rustix::net::SocketAddrUnix::new_abstract_name(path.as_bytes());
    let address = address.expect("a name");
    let caller = rustix::net::socket(
        rustix::net::AddressFamily::UNIX,
        rustix::net::SocketType::SEQPACKET,
        None,
    )
    .expect("a socket");
    rustix::net::connect(&caller, &address).expect("it listens");
    assert_eq!(
        a.poll(0, &mut |event| heard.note(1, event)),
        Some(30_000_000_000)
    );
    assert_eq!(
        a.poll(30_000_000_000, &mut |event| heard.note(1, event)),
        None
    );
    let rude = rustix::net::socket(
        rustix::net::AddressFamily::UNIX,
        rustix::net::SocketType::SEQPACKET,
        None,
    )
    .expect("a socket");
    rustix::net::connect(&rude, &address).expect("it listens");
    rustix::net::send(&rude, b"nonsense", rustix::net::SendFlags::empty()).expect("sent");
    a.poll(0, &mut |event| heard.note(1, event));
    assert_eq!(
        a.poll(0, &mut |event| heard.note(1, event)),
        None,
        "hung up on"
    );
    assert!(heard.take(1).is_empty());
    assert_eq!(a.peers(), 0);
}
