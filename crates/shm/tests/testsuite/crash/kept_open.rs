//! Processes that are killed while another process, such as a forked child, keeps
//! their sockets open.

use std::process::Command;
use std::time::{Duration, Instant};

use pteros_shm::{DisconnectReason, DiscoveryLog, DiscoveryLogEvent, DiscoveryLogOptions};
use pteros_test_support::own_process;
use rustix::event::{PollFd, PollFlags, Timespec};

use crate::crash::process::{self, Child, from_text, name, to_text};
use crate::crash::{BACK_MAX, Scene};

/// A child with a discovery log that connects to its peers and does nothing more.
pub fn be_neighbour(words: &[&str]) {
    let [own, domain] = words[..] else {
        panic!("{words:?}");
    };
    let domain = domain.parse().expect("a domain");
    let log = DiscoveryLog::open(domain, from_text(own), DiscoveryLogOptions::default())
        .expect("a board");
    println!("> called {}", log.connect_to_all(0));
    let start = Instant::now();
    let minute = Timespec {
        tv_sec: 60,
        tv_nsec: 0,
    };
    while start.elapsed() < Duration::from_secs(60) {
        let descriptor = log.descriptor();
        let mut look = [PollFd::new(&descriptor, PollFlags::IN)];
        let _ = rustix::event::poll(&mut look, Some(&minute));
        log.poll(0, &mut |_| {});
    }
}

#[test]
fn loans_of_a_killed_process_end_though_its_sockets_stay_open() {
    let _alone = process::alone();
    if !own_process!() {
        return;
    }
    let descriptors = process::descriptors();
    let mut scene = Scene::new();
    for _ in 0..3 {
        let victim = scene.victim(None, 0);
        let name = victim.name;
        scene.survivor.step_until(|s| s.received_from(name) > 10);
        let Some(kept) = victim.sockets() else {
            eprintln!("skipped: this user may not copy descriptors of a process");
            return;
        };
        assert!(kept.len() >= 3, "a door and two connections");
        scene.descriptors += kept.len();
        victim.kill();
        scene.must_recover("with its sockets kept open");
        scene.descriptors -= kept.len();
    }
    scene.end(descriptors);
}

#[test]
fn a_killed_same_host_peer_is_lost_though_its_sockets_stay_open() {
    let _alone = process::alone();
    let domain = 4_100_000_000;
    let log = DiscoveryLog::open(domain, name(), DiscoveryLogOptions::default()).expect("a board");
    let theirs = name();
    let line = format!("peer {} {domain}", to_text(&theirs));
    let mut child = Child::start(theirs, &line, Command::new(process::own_path()));
    assert_eq!(child.says(), "called 1");
    let mut gone = None;
    let mut step = || {
        log.poll(0, &mut |event| {
            if let DiscoveryLogEvent::PeerLost { peer, reason } = event {
                gone = Some((peer, reason));
            }
        });
        (log.peers(), gone)
    };
    while step().0 == 0 {}
    let Some(kept) = child.sockets() else {
        eprintln!("skipped: this user may not copy descriptors of a process");
        return;
    };
    assert!(kept.len() >= 2, "a door and us");
    child.kill();
    let began = Instant::now();
    while step().1.is_none() && began.elapsed() < BACK_MAX {}
    assert_eq!(step(), (0, Some((theirs, DisconnectReason::ProcessEnded))));
}
