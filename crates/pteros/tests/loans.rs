//! Loans and views where things go wrong: the pool is empty, a message is too
//! large, a process that holds some is killed. The other process of the last
//! stories is this test binary again.
#![allow(
    clippy::disallowed_methods,
    reason = "the test runs itself again and says so in variables"
)]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use pteros::interfaces::sensor_msgs::msg::Image;
use pteros::prelude::*;
use pteros::{InPlace, Loan, Path, PublishError, SubscriptionOptions};

const PATIENCE: Duration = Duration::from_secs(20);
const PART: &str = "PTEROS_TEST_PART";
const DOMAIN: &str = "PTEROS_TEST_DOMAIN";
const BYTES: usize = 200_000;

fn context(domain: u32) -> Context {
    let mut options = ContextOptions::local(domain);
    options.shared_memory.pool_bytes = 4 << 20;
    options.shared_memory.largest_bytes = 1 << 20;
    Context::with_options(options).unwrap()
}

fn views(node: &Node, qos: &QosProfile) -> Subscription<InPlace<Image>> {
    let options = SubscriptionOptions::new(qos);
    node.create_view_subscription_with("image", options)
        .unwrap()
}

/// Two linked contexts of 4 MiB of shared memory, chunks of 1 MiB at most.
fn pair(
    domain: u32,
    qos: &QosProfile,
) -> (Context, Publisher<Image>, Subscription<InPlace<Image>>) {
    let (a, b) = (context(domain), context(domain));
    let (talker, listener) = (a.node("talker").unwrap(), b.node("listener").unwrap());
    let publisher = talker.create_publisher("image", qos).unwrap();
    let views = views(&listener, qos);
    assert!(publisher.wait_for_matched(1, PATIENCE) && views.wait_for_matched(1, PATIENCE));
    let linked = || a.path_to(b.guid()).path == Path::SharedMemory;
    assert!(a.graph().wait_until(PATIENCE, linked));
    (a, publisher, views)
}

fn lend(publisher: &Publisher<Image>, count: usize) -> Result<Loan<Image, [u8]>, PublishError> {
    publisher.loan_sequence(&mut Image::default(), |image| &mut image.data, count)
}

fn chunks_used(context: &Context) -> usize {
    context.link_counts().unwrap().chunks_used
}

#[test]
fn who_holds_all_loans_is_told_so_and_gets_more_once_one_is_dropped() {
    let (context, publisher, views) = pair(210, &QosProfile::default());
    let before = chunks_used(&context);
    let mut loans = Vec::new();
    let refused = loop {
        match lend(&publisher, BYTES) {
            Ok(loan) => loans.push(loan),
            Err(refused) => break refused,
        }
        assert!(loans.len() < 50, "4 MiB hold no 10 MB");
    };
    let PublishError::NoSharedMemory { waited_ms, .. } = &refused else {
        panic!("{refused}");
    };
    assert!(*waited_ms >= 99, "{waited_ms}");
    assert!(loans.iter().all(Loan::is_shared));
    assert_eq!(chunks_used(&context), before + loans.len());
    drop(loans.pop());
    let mut loan = lend(&publisher, BYTES).unwrap();
    drop(loans);
    assert_eq!(chunks_used(&context), before + 1);
    loan.fill(5);
    publisher.publish_loaned(loan).unwrap();
    let sample = views.take_timeout(PATIENCE).unwrap();
    assert_eq!(sample.view().unwrap().data[..], [5; BYTES]);
}

#[test]
fn a_best_effort_publisher_without_shared_memory_lends_its_own() {
    let (context, publisher, views) = pair(211, &QosProfile::default().best_effort());
    let mut loans = Vec::new();
    let started = Instant::now();
    while loans.last().is_none_or(Loan::is_shared) {
        loans.push(lend(&publisher, BYTES).unwrap());
        assert!(loans.len() < 50, "4 MiB hold no 10 MB");
    }
    assert!(started.elapsed() < PATIENCE / 2, "it waits for nothing");
    // Still no chunk: lost to the one linked, and counted.
    let refused = |context: &Context| context.link_counts().unwrap().refused_exhausted;
    let (mut own, before) = (loans.pop().unwrap(), refused(&context));
    own.fill(6);
    publisher.publish_loaned(own).unwrap();
    assert_eq!(refused(&context), before + 1);
    // By the time of publishing there is one: then it is copied into it.
    let mut own = lend(&publisher, BYTES).unwrap();
    assert!(!own.is_shared());
    own.fill(7);
    loans.clear();
    publisher.publish_loaned(own).unwrap();
    let sample = views.take_timeout(PATIENCE).unwrap();
    assert_eq!(sample.view().unwrap().data[..], [7; BYTES]);
    assert_eq!(sample.info().path, Path::SharedMemory);
}

#[test]
fn a_loan_beyond_the_largest_chunk_is_refused_at_once() {
    let (_context, publisher, _views) = pair(212, &QosProfile::default());
    let refused = lend(&publisher, 2 << 20).unwrap_err();
    let said = refused.to_string();
    assert!(matches!(refused, PublishError::NoSharedMemory { .. }));
    for word in ["\"/image\"", "2097196", "raise the largest"] {
        assert!(said.contains(word), "{said}");
    }
}

/// The other process.
#[test]
fn child() {
    let Ok(part) = std::env::var(PART) else {
        return;
    };
    let context = context(std::env::var(DOMAIN).unwrap().parse().unwrap());
    let node = context.node("child").unwrap();
    let qos = QosProfile::default();
    let mut held = Vec::new();
    let mut lent = Vec::new();
    if part == "holds views" {
        let views = views(&node, &qos);
        assert!(views.wait_for_matched(1, PATIENCE));
        while held.len() < 3 {
            held.extend(views.take_timeout(PATIENCE));
        }
        assert!(
            held.iter()
                .all(|view| view.info().path == Path::SharedMemory)
        );
    } else {
        let publisher = node.create_publisher::<Image>("image", &qos).unwrap();
        assert!(publisher.wait_for_matched(1, PATIENCE));
        let mut first = lend(&publisher, BYTES).unwrap();
        first.fill(1);
        publisher.publish_loaned(first).unwrap();
        let mut half = lend(&publisher, BYTES).unwrap();
        half[..BYTES / 2].fill(2);
        lent.push(half);
    }
    println!("ready");
    node.spin_until(|| false, PATIENCE * 3);
}

fn start(part: &str, domain: u32) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["child", "--exact", "--nocapture"])
        .env(PART, part)
        .env(DOMAIN, domain.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn is_ready(child: &mut Child) -> bool {
    let out = BufReader::new(child.stdout.as_mut().unwrap());
    out.lines().any(|line| line.unwrap().contains("ready"))
}

#[test]
fn the_chunks_of_a_killed_reader_come_back() {
    let context = context(213);
    let node = context.node("parent").unwrap();
    let qos = QosProfile::default();
    let publisher = node.create_publisher::<Image>("image", &qos).unwrap();
    let mut child = start("holds views", 213);
    assert!(publisher.wait_for_matched(1, PATIENCE));
    // Until it is linked a message goes by UDP.
    let peers = || context.link_counts().unwrap().links == 1;
    assert!(context.graph().wait_until(PATIENCE, peers));
    for n in 0..3 {
        let mut loan = lend(&publisher, BYTES).unwrap();
        loan.fill(n);
        publisher.publish_loaned(loan).unwrap();
    }
    assert!(is_ready(&mut child));
    assert!(publisher.wait_for_all_acked(PATIENCE));
    assert!(context.link_counts().unwrap().loans >= 3);
    child.kill().unwrap();
    child.wait().unwrap();
    let killed = Instant::now();
    let back = || context.link_counts().unwrap().loans == 0;
    assert!(context.graph().wait_until(PATIENCE, back));
    assert!(killed.elapsed() < Duration::from_secs(1), "{killed:?}");
    drop(publisher);
    assert_eq!(chunks_used(&context), 0);
}

#[test]
fn what_a_killed_process_was_writing_is_never_seen_and_what_it_published_stays() {
    let context = context(214);
    let node = context.node("parent").unwrap();
    let views = views(&node, &QosProfile::default());
    let mut child = start("holds a loan", 214);
    let sample = views.take_timeout(PATIENCE).expect("what it published");
    assert!(is_ready(&mut child));
    child.kill().unwrap();
    child.wait().unwrap();
    let gone = || views.matched_count() == 0;
    assert!(context.graph().wait_until(PATIENCE, gone));
    assert!(views.take().is_none());
    assert_eq!(sample.view().unwrap().data[..], [1; BYTES]);
    assert_eq!(views.counts().received, 1);
}
