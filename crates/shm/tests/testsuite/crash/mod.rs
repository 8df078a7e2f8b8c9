//! Processes are stopped at every step of the table of seeded bugs and killed there, and
//! killed at any instant; the others continue.
//!
//! Real processes: this binary started again as [`peer`]. In each test case this
//! process (the survivor), a bystander and a victim exchange messages with
//! checksums, each with both others, and hold a few bodies for a while.
//!
//! Requirements (for both survivors): they continue while the victim is stopped and
//! after it was killed, no message they read is wrong, their loans to the victim
//! end within a second, and at the end no descriptor and no mapping is left. (There
//! is no thread to leave.)
#![allow(clippy::disallowed_methods, reason = "tests real processes")]

mod kept_open;
mod process;
mod talker;
mod unrelated_process;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use process::Child;
use pteros_seeded_bugs::{BugKind, INSERTED, table};
use pteros_test_support::own_process;
use talker::Talker;

/// Entry point of a child process. The first line of its input is `talker`,
/// `unrelated` or `peer`, with arguments.
#[test]
#[ignore = "a process of the other tests"]
fn peer() {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).expect("a line");
    let words: Vec<&str> = line.split_whitespace().collect();
    match words[..] {
        ["talker", ref rest @ ..] => talker::be(rest),
        ["unrelated", ref rest @ ..] => unrelated_process::run(rest),
        ["peer", ref rest @ ..] => kept_open::be_neighbour(rest),
        _ => {}
    }
}

/// How long a survivor may be without a message of another one.
const STALL_MAX: Duration = Duration::from_millis(100);
/// How long until everything that the dead one had is back.
const BACK_MAX: Duration = Duration::from_secs(1);

/// The survivor and the bystander, and what the survivor had before.
struct Scene {
    survivor: Talker,
    bystander: Child,
    descriptors: usize,
    stalled: Duration,
    back: Duration,
}

impl Scene {
    fn new() -> Self {
        let mut survivor = Talker::new(process::name());
        let bystander = Child::talker(&[survivor.name()], None, 0);
        survivor.step_until(|s| s.received_from(bystander.name) > 20);
        let descriptors = descriptors_besides_segments(&survivor);
        Self {
            survivor,
            bystander,
            descriptors,
            stalled: Duration::ZERO,
            back: Duration::ZERO,
        }
    }

    /// A victim that calls the bystander and is called by us.
    fn victim(&mut self, stop: Option<&str>, passes: u32) -> Child {
        let victim = Child::talker(&[self.bystander.name], stop, passes);
        self.survivor.connect(victim.name);
        victim
    }

    /// Continues for a while; returns the longest time without a message of the
    /// bystander.
    fn go_on(&mut self, time: Duration) -> Duration {
        let began = Instant::now();
        let (mut last, mut longest) = (began, Duration::ZERO);
        let mut seen = self.survivor.received_from(self.bystander.name);
        while began.elapsed() < time {
            self.survivor.step();
            let now = self.survivor.received_from(self.bystander.name);
            longest = longest.max(last.elapsed());
            if now != seen {
                (seen, last) = (now, Instant::now());
            }
        }
        longest
    }

    /// Continues for long enough to see a stall. On a busy machine a process may
    /// get no processor for that long; then it is tried again. A process that waits
    /// for the stopped one would not return from the first try.
    fn must_not_stall(&mut self, when: &str) {
        let mut stalls = Vec::new();
        while stalls.len() < 20 && stalls.last().is_none_or(|stall| *stall > STALL_MAX) {
            stalls.push(self.go_on(STALL_MAX * 3 / 2));
        }
        let last = stalls[stalls.len() - 1];
        assert!(last <= STALL_MAX, "{when}: stalled for {stalls:?}");
        self.stalled = self.stalled.max(last);
    }

    /// Everything that the dead one had is back.
    fn must_recover(&mut self, when: &str) {
        let began = Instant::now();
        loop {
            self.survivor.step();
            let counts = self.survivor.transport.counts();
            let known = (
                counts.connections,
                counts.pending_handshakes,
                counts.lingering_connections,
            );
            let descriptors = descriptors_besides_segments(&self.survivor);
            if known == (1, 0, 0) && descriptors == self.descriptors {
                break;
            }
            // A handshake with a silent process has its own second.
            assert!(
                began.elapsed() < BACK_MAX * 2,
                "{when}: {counts:?}, {descriptors} descriptors, {} before",
                self.descriptors
            );
        }
        self.back = self.back.max(began.elapsed());
        assert_eq!(self.survivor.wrong, 0, "{when}: a wrong message");
    }

    /// Ends the bystander and then the survivor; nothing is left.
    fn end(mut self, descriptors: usize) {
        let name = self.bystander.name;
        let report = self.bystander.quit(&mut self.survivor);
        assert!(report.contains("wrong 0"), "the bystander says {report}");
        self.survivor
            .step_until(|s| s.transport.counts().connections == 0);
        let received = self.survivor.received_from(name);
        let counts = self.survivor.transport.counts();
        assert_eq!(counts.loans, 0);
        println!(
            "longest stall {:?}, all back after {:?}; {received} messages of the bystander; it says {report}; {counts:?}",
            self.stalled, self.back,
        );
        drop((self.survivor, self.bystander));
        assert_eq!(process::descriptors(), descriptors, "descriptors left");
        assert_eq!(process::mappings(), Vec::<String>::new(), "memory left");
    }
}

/// The pool grows while it is used; each of its segments has a descriptor.
fn descriptors_besides_segments(talker: &Talker) -> usize {
    process::descriptors() - talker.transport.counts().segments
}

#[test]
fn a_process_stopped_and_killed_at_any_step_blocks_no_other() {
    if !INSERTED {
        let must_run = std::env::var_os("PTEROS_TEST_SEEDED").is_some();
        assert!(!must_run, "this build has no steps to stop at");
        // Not `println!`, whose output is captured when a test passes.
        let why = "no steps to stop at: cargo xtask test --all";
        let _ =
            std::io::Write::write_fmt(&mut std::io::stdout(), format_args!("\nskipped: {why}\n"));
        return;
    }
    let _alone = process::alone();
    if !own_process!() {
        return;
    }
    let descriptors = process::descriptors();
    let mut scene = Scene::new();
    let steps = table().iter().filter(|bug| bug.kind == BugKind::Stop);
    for (index, label) in steps.map(|step| step.name).enumerate() {
        // The first time, and where that comes again in the middle of things.
        let again = match label {
            "segment-made" | "segment-sent" => 3,
            "hello-sent" | "hello-read" | "hello-answered" | "answer-read" | "proof-sent"
            | "connection-up" | "bye-sent" => 0,
            _ => 7 + index as u32,
        };
        for passes in BTreeSet::from([0, again]) {
            let victim = scene.victim(Some(label), passes);
            let stopped = scene.survivor.try_until(|_| victim.is_stopped());
            assert!(stopped, "{label} was never reached");
            scene.must_not_stall(label);
            victim.kill();
            scene.must_recover(label);
            scene.must_not_stall(label);
        }
    }
    scene.end(descriptors);
}

#[test]
fn a_process_killed_at_any_instant_leaks_nothing() {
    let _alone = process::alone();
    if !own_process!() {
        return;
    }
    let descriptors = process::descriptors();
    let mut scene = Scene::new();
    let mut chance = 0x5eed_u64;
    for _ in 0..20 {
        let victim = scene.victim(None, 0);
        chance = chance
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let wanted = (chance >> 33) % 60;
        let name = victim.name;
        scene
            .survivor
            .step_until(|s| s.received_from(name) >= wanted);
        victim.kill();
        scene.must_recover("at any instant");
    }
    scene.must_not_stall("after all");
    scene.end(descriptors);
}

#[test]
fn repeated_connections_leak_nothing() {
    let _alone = process::alone();
    if !own_process!() {
        return;
    }
    let descriptors = process::descriptors();
    for _ in 0..300 {
        let (mut a, mut b) = (Talker::new(process::name()), Talker::new(process::name()));
        a.connect(b.name());
        while a.received_from(b.name()) < 3 || b.received_from(a.name()) < 3 {
            a.step();
            b.step();
        }
    }
    assert_eq!(process::descriptors(), descriptors);
    assert_eq!(process::mappings(), Vec::<String>::new());
}
