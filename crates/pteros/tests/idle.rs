//! How often the kernel wakes a process: an idle one at most once a second, one
//! that receives once per message, one that polls not at all. The other processes are this test binary
//! again, told by environment variables which part to play; their threads'
//! context switches are read from outside, which disturbs nobody.
#![allow(
    clippy::disallowed_methods,
    reason = "real processes are watched for real seconds"
)]

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;

const PART: &str = "PTEROS_TEST_IDLE_PART";
const DOMAIN: &str = "PTEROS_TEST_IDLE_DOMAIN";
const PATIENCE: Duration = Duration::from_secs(60);

/// Two nodes that publish what the other process's subscribe to, and the other
/// way round.
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
        let node = context.node(&format!("{own}{n}")).unwrap();
        executor.add_node(&node).unwrap();
        let theirs = format!("{other}{n}");
        let subscription = node.create_subscription::<Text>(&theirs, qos, |_| {});
        let publisher = node.create_publisher::<Text>(&format!("{own}{n}"), qos);
        ends.push((node, subscription.unwrap(), publisher.unwrap()));
    }
    let matched = || {
        ends.iter()
            .all(|(_, s, p)| s.matched_count() + p.matched_count() == 2)
    };
    assert!(executor.spin_until(matched, PATIENCE));
    for (_, _, publisher) in &ends {
        publisher.publish(&Text::default()).unwrap();
    }
    // Whoever publishes does so from a thread of its own, when it is told to.
    let publishers: Vec<_> = ends.iter().map(|(_, _, p)| p.clone()).collect();
    std::thread::spawn(move || {
        for line in std::io::stdin().lines() {
            let line = line.unwrap();
            let (which, count) = line.split_once(' ').unwrap();
            for _ in 0..count.parse().unwrap() {
                let publisher = &publishers[which.parse::<usize>().unwrap()];
                publisher.publish(&Text::default()).unwrap();
                pass(Duration::from_millis(20));
            }
            println!("published");
        }
        std::process::exit(0);
    });
    println!("ready");
    executor.spin();
}

/// Lets real time pass, of which so much is being measured.
fn pass(span: Duration) {
    let (_hold, never) = std::sync::mpsc::channel::<()>();
    let _ = never.recv_timeout(span);
}

struct Other {
    child: Child,
    stdin: ChildStdin,
    lines: BufReader<std::process::ChildStdout>,
}

impl Other {
    fn start(part: &str, domain: u32) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["child", "--exact", "--nocapture"])
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
    fn hears(&mut self, wanted: &str) {
        let mut line = String::new();
        while !line.contains(wanted) {
            line.clear();
            assert!(self.lines.read_line(&mut line).unwrap() > 0, "no {wanted}");
        }
    }

    /// How often its threads have slept and been woken, and what they have used
    /// of the processor, so far.
    fn switches(&self) -> (u64, Duration) {
        let mut switches = 0;
        let mut nanos = 0;
        for task in std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap() {
            let path = task.unwrap().path();
            let status = std::fs::read_to_string(path.join("status")).unwrap();
            let line = status.lines().find(|l| l.starts_with("voluntary_ctxt"));
            switches += number(line.and_then(|l| l.split_whitespace().nth(1)));
            let stat = std::fs::read_to_string(path.join("schedstat")).unwrap();
            nanos += number(stat.split_whitespace().next());
        }
        (switches, Duration::from_nanos(nanos))
    }
}

fn number(word: Option<&str>) -> u64 {
    word.unwrap().parse().unwrap()
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn pair(domain: u32) -> (Other, Other) {
    let (mut a, mut b) = (Other::start("a", domain), Other::start("b", domain));
    a.hears("ready");
    b.hears("ready");
    // The first announcements, acknowledgements and the graph's news.
    pass(Duration::from_secs(3));
    (a, b)
}

#[test]
fn an_idle_process_is_woken_at_most_once_a_second() {
    const SECONDS: u64 = 12;
    let (a, b) = pair(221);
    let before = [a.switches(), b.switches()];
    pass(Duration::from_secs(SECONDS));
    for (process, before) in [a, b].iter().zip(before) {
        let (switches, used) = process.switches();
        let (switches, used) = (switches - before.0, used - before.1);
        println!("{switches} wakes and {used:?} of a processor in {SECONDS} s");
        assert!(switches <= SECONDS, "{switches} wakes in {SECONDS} s");
    }
}

#[test]
fn a_receiver_is_woken_once_per_message() {
    use std::io::Write;
    const MESSAGES: u64 = 100;
    let (mut a, b) = pair(222);
    // Best effort, and reliable: what came by a link is acknowledged unasked.
    for which in [0, 1] {
        let began = std::time::Instant::now();
        let (before, _) = b.switches();
        writeln!(a.stdin, "{which} {MESSAGES}").unwrap();
        a.hears("published");
        let (after, _) = b.switches();
        let switches = after - before;
        println!("{switches} wakes for {MESSAGES} messages");
        // Some seconds of housekeeping come on top; who gets no processor for a
        // while finds several messages at once.
        let most = MESSAGES + MESSAGES / 10 + began.elapsed().as_secs();
        assert!((MESSAGES / 2..=most).contains(&switches), "{switches}");
    }
}

/// How often this thread has slept so far.
fn own_switches() -> u64 {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let line = status.lines().find(|l| l.starts_with("voluntary_ctxt"));
    number(line.and_then(|l| l.split_whitespace().nth(1)))
}

/// Rounds, of so many at most, in which a message that comes after 2 ms found the
/// receiver awake. Ends once there were `enough`.
fn awake_rounds(domain: u32, spin: Option<Duration>, rounds: usize, enough: usize) -> usize {
    let open = |spin| {
        let options = ContextOptions {
            spin,
            ..ContextOptions::local(domain)
        };
        Context::with_options(options).unwrap()
    };
    let (near, far) = (open(spin), open(None));
    let node = near.node("near").unwrap();
    let executor = SingleThreadedExecutor::new(&near);
    executor.add_node(&node).unwrap();
    let far = far.node("far").unwrap();
    let best_effort = QosProfile::default().best_effort();
    let _subscription = node.create_subscription::<Text>("t", &best_effort, |_| {});
    let publisher = far.create_publisher::<Text>("t", &best_effort).unwrap();
    assert!(publisher.wait_for_matched(1, PATIENCE));
    let (ask, asked) = std::sync::mpsc::channel::<()>();
    let teller = std::thread::spawn(move || {
        for () in asked {
            pass(Duration::from_millis(2));
            publisher.publish(&Text::default()).unwrap();
        }
    });
    let mut awake = 0;
    for _ in 0..rounds {
        if awake == enough {
            break;
        }
        ask.send(()).unwrap();
        let before = own_switches();
        assert!(executor.spin_once(PATIENCE));
        awake += usize::from(own_switches() == before);
    }
    drop(ask);
    teller.join().unwrap();
    awake
}

#[test]
fn who_polls_receives_without_being_woken() {
    // A receiver that gets no processor for those 2 ms finds the message there,
    // and one that polls may be kept from it: a busy machine makes exceptions.
    let awake = awake_rounds(223, None, 20, usize::MAX);
    assert!(awake <= 5, "{awake} of 20 without polling");
    let awake = awake_rounds(224, Some(Duration::from_millis(100)), 400, 20);
    assert_eq!(awake, 20, "of 400 with polling");
}
