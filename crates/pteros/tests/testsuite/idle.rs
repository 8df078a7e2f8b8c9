//! Wake-ups per process: idle at most one per second, a receiver one per message, a
//! busy-polling receiver none.
//!
//! The other processes are this test binary again, with their part in environment
//! variables. Their context switches are read from outside, without disturbing
//! them.
#![allow(clippy::disallowed_methods, reason = "watches real processes")]

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdin, Stdio};
use std::time::Duration;

use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;
use pteros_test_support::own_process;

const PART: &str = "PTEROS_TEST_IDLE_PART";
const DOMAIN: &str = "PTEROS_TEST_IDLE_DOMAIN";
const TIMEOUT: Duration = Duration::from_secs(60);

/// Two nodes, each with publishers for the other process and subscriptions to it.
#[test]
fn child() {
    let Ok(part) = std::env::var(PART) else {
        return;
    };
    let (own, other) = if part == "a" { ("a", "b") } else { ("b", "a") };
    let domain = std::env::var(DOMAIN).unwrap().parse().unwrap();
    let context = Context::with_options(ContextOptions::local(domain)).unwrap();
    let profiles = [QosProfile::default().best_effort(), QosProfile::default()];
    let executor = SingleThreadedExecutor::new(&context);
    let mut ends = Vec::new();
    for (n, qos) in profiles.iter().enumerate() {
        let node = context.create_node(format!("{own}{n}")).unwrap();
        executor.add_node(&node).unwrap();
        let theirs = format!("{other}{n}");
        let subscription = node.create_subscription::<Text>(theirs.as_str().qos(qos), |_| {});
        let publisher = node.create_publisher::<Text>(format!("{own}{n}").qos(qos));
        ends.push((node, subscription.unwrap(), publisher.unwrap()));
    }
    let matched = || {
        ends.iter()
            .all(|(_, s, p)| s.matched_count() + p.matched_count() == 2)
    };
    assert!(executor.spin_until(matched, TIMEOUT));
    for (_, _, publisher) in &ends {
        publisher.publish(&Text::default()).unwrap();
    }
    // Publishes from its own thread, on command.
    let publishers: Vec<_> = ends.iter().map(|(_, _, p)| p.clone()).collect();
    std::thread::spawn(move || {
        for line in std::io::stdin().lines() {
            let line = line.unwrap();
            let (which, count) = line.split_once(' ').unwrap();
            for _ in 0..count.parse().unwrap() {
                let publisher = &publishers[which.parse::<usize>().unwrap()];
                publisher.publish(&Text::default()).unwrap();
                wait_real_time(Duration::from_millis(20));
            }
            println!("published");
        }
        std::process::exit(0);
    });
    println!("ready");
    executor.spin();
}

/// Waits for real time, during which wake-ups are counted.
fn wait_real_time(span: Duration) {
    let (_hold, never) = std::sync::mpsc::channel::<()>();
    let _ = never.recv_timeout(span);
}

struct ChildProcess {
    child: Child,
    stdin: ChildStdin,
    lines: BufReader<std::process::ChildStdout>,
}

impl ChildProcess {
    fn start(part: &str, domain: u32) -> Self {
        let mut child = own_process::command("idle::child")
            .env(PART, part)
            .env(DOMAIN, domain.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self {
            child,
            stdin,
            lines,
        }
    }

    #[track_caller]
    fn expect_line(&mut self, wanted: &str) {
        let mut line = String::new();
        while !line.contains(wanted) {
            line.clear();
            assert!(self.lines.read_line(&mut line).unwrap() > 0, "no {wanted}");
        }
    }

    /// Context switches and CPU time of its threads so far.
    fn context_switches(&self) -> (u64, Duration) {
        let mut context_switches = 0;
        let mut nanos = 0;
        for task in std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap() {
            let path = task.unwrap().path();
            let status = std::fs::read_to_string(path.join("status")).unwrap();
            let line = status.lines().find(|l| l.starts_with("voluntary_ctxt"));
            context_switches += number(line.and_then(|l| l.split_whitespace().nth(1)));
            let stat = std::fs::read_to_string(path.join("schedstat")).unwrap();
            nanos += number(stat.split_whitespace().next());
        }
        (context_switches, Duration::from_nanos(nanos))
    }
}

fn number(word: Option<&str>) -> u64 {
    word.unwrap().parse().unwrap()
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn pair(domain: u32) -> (ChildProcess, ChildProcess) {
    let (mut a, mut b) = (
        ChildProcess::start("a", domain),
        ChildProcess::start("b", domain),
    );
    a.expect_line("ready");
    b.expect_line("ready");
    // Lets start-up announcements, acknowledgements and graph updates finish.
    wait_real_time(Duration::from_secs(3));
    (a, b)
}

#[test]
fn an_idle_process_is_woken_at_most_once_a_second() {
    const SECONDS: u64 = 12;
    let (a, b) = pair(221);
    let before = [a.context_switches(), b.context_switches()];
    wait_real_time(Duration::from_secs(SECONDS));
    for (process, before) in [a, b].iter().zip(before) {
        let (context_switches, used) = process.context_switches();
        let (context_switches, used) = (context_switches - before.0, used - before.1);
        println!("{context_switches} wakes and {used:?} of a processor in {SECONDS} s");
        assert!(
            context_switches <= SECONDS,
            "{context_switches} wakes in {SECONDS} s"
        );
    }
}

#[test]
fn a_receiver_is_woken_once_per_message() {
    use std::io::Write;
    const MESSAGES: u64 = 100;
    let (mut a, b) = pair(222);
    // Best effort and reliable: data over shared memory is acknowledged without a
    // heartbeat.
    for which in [0, 1] {
        let began = std::time::Instant::now();
        let (before, _) = b.context_switches();
        writeln!(a.stdin, "{which} {MESSAGES}").unwrap();
        a.expect_line("published");
        let (after, _) = b.context_switches();
        let context_switches = after - before;
        println!("{context_switches} wakes for {MESSAGES} messages");
        // Some seconds of housekeeping are added. A process without a CPU for a
        // while receives several messages at once.
        let most = MESSAGES + MESSAGES / 10 + began.elapsed().as_secs();
        assert!(
            (MESSAGES / 2..=most).contains(&context_switches),
            "{context_switches}"
        );
    }
}

/// Voluntary context switches of this thread so far.
fn own_context_switches() -> u64 {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let line = status.lines().find(|l| l.starts_with("voluntary_ctxt"));
    number(line.and_then(|l| l.split_whitespace().nth(1)))
}

/// Lets `far` publish a message 2 ms after `near` began to wait, in each round until `done`
/// says that it was the last. `done` lets the executor receive it.
fn exchange_late_messages(
    near: &Context,
    far: &Context,
    mut done: impl FnMut(&SingleThreadedExecutor) -> bool,
) {
    let node = near.create_node("near").unwrap();
    let executor = SingleThreadedExecutor::new(near);
    executor.add_node(&node).unwrap();
    let sender = far.create_node("far").unwrap();
    let best_effort = QosProfile::default().best_effort();
    let _subscription = node.create_subscription::<Text>("t".qos(&best_effort), |_| {});
    let publisher = sender.create_publisher::<Text>("t".qos(&best_effort));
    let publisher = publisher.unwrap();
    assert!(publisher.wait_for_matched(1, TIMEOUT));
    let has_connection = |context: &Context| context.connection_counts().unwrap().connections == 1;
    let are_connected = || has_connection(near) && has_connection(far);
    assert!(executor.spin_until(are_connected, TIMEOUT));
    let (ask, asked) = std::sync::mpsc::channel::<()>();
    let teller = std::thread::spawn(move || {
        for () in asked {
            wait_real_time(Duration::from_millis(2));
            publisher.publish(&Text::default()).unwrap();
        }
    });
    loop {
        ask.send(()).unwrap();
        if done(&executor) {
            break;
        }
    }
    drop(ask);
    teller.join().unwrap();
}

/// Number of rounds in which a message sent after 2 ms found the receiver awake.
/// Ends early after `enough` of them.
fn rounds_received_awake(
    domain: u32,
    spin: Option<Duration>,
    rounds: usize,
    enough: usize,
) -> usize {
    let open = |spin| {
        let options = ContextOptions {
            busy_poll: spin,
            ..ContextOptions::local(domain)
        };
        Context::with_options(options).unwrap()
    };
    let (mut awake, mut round) = (0, 0);
    exchange_late_messages(&open(spin), &open(None), |executor| {
        let before = own_context_switches();
        assert!(executor.spin_once(TIMEOUT));
        awake += usize::from(own_context_switches() == before);
        round += 1;
        round == rounds || awake == enough
    });
    awake
}

#[test]
fn a_busy_polling_receiver_is_not_woken() {
    // A receiver without a CPU for those 2 ms finds the message waiting, and a
    // polling receiver may be preempted. A busy machine causes exceptions.
    let awake = rounds_received_awake(223, None, 20, usize::MAX);
    assert!(awake <= 5, "{awake} of 20 without polling");
    let awake = rounds_received_awake(224, Some(Duration::from_millis(100)), 400, 20);
    assert_eq!(awake, 20, "of 400 with polling");
}

/// Doorbells that a publisher of another context rang for messages to a receiver with that
/// latency budget. Each message comes 2 ms after the receiver began to wait.
fn doorbells_rung(domain: u32, latency_budget: Duration, rounds: u64) -> u64 {
    let open = |latency_budget| {
        let mut options = ContextOptions::local(domain);
        options.shared_memory.latency_budget = latency_budget;
        Context::with_options(options).unwrap()
    };
    let (near, far) = (open(latency_budget), open(Duration::ZERO));
    let (mut before, mut round) = (0, 0);
    exchange_late_messages(&near, &far, |executor| {
        assert!(executor.spin_once(TIMEOUT), "each message is received");
        if round == 0 {
            before = far.connection_counts().unwrap().doorbells_rung;
        }
        round += 1;
        round == rounds
    });
    let counts = far.connection_counts().unwrap();
    assert!(
        counts.sent + 1 >= rounds,
        "not in shared memory: {counts:?}"
    );
    counts.doorbells_rung - before
}

#[test]
fn a_receiver_with_a_latency_budget_is_not_woken_for_a_message() {
    // A receiver without a CPU for those 2 ms is not asleep.
    let rung = doorbells_rung(225, Duration::ZERO, 21);
    assert!(rung >= 10, "{rung} of 20 without a budget");
    let rung = doorbells_rung(226, Duration::from_millis(20), 21);
    assert!(rung <= 2, "{rung} of 20 with a budget");
}
