//! Failures of loans and views: an exhausted pool, a message that is too large, a
//! killed process that holds loans.
//!
//! The other process of the last tests is this test binary again.
#![allow(clippy::disallowed_methods, reason = "a child reads its part")]

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use pteros::interfaces::sensor_msgs::msg::Image;
use pteros::prelude::*;
use pteros::{
    SubscriptionOptions,
    error::PublishError,
    publisher::LoanedMessage,
    subscription::{DeliveryPath, InPlaceMessage},
};
use pteros_test_support::own_process;

const TIMEOUT: Duration = Duration::from_secs(20);
const CHILD_ROLE: &str = "PTEROS_TEST_PART";
const DOMAIN: &str = "PTEROS_TEST_DOMAIN";
const BYTES: usize = 200_000;

fn context(domain: u32) -> Context {
    let mut options = ContextOptions::local(domain);
    options.shared_memory.pool_bytes = 4 << 20;
    options.shared_memory.largest_bytes = 1 << 20;
    Context::with_options(options).unwrap()
}

fn views(node: &Node, qos: &QosProfile) -> Subscription<InPlaceMessage<Image>> {
    let options = SubscriptionOptions::new("image".qos(qos));
    node.create_polled_subscription(options).unwrap()
}

/// Two contexts connected by 4 MiB of shared memory, with chunks of 1 MiB at most.
fn pair(
    domain: u32,
    qos: &QosProfile,
) -> (
    Context,
    Publisher<Image>,
    Subscription<InPlaceMessage<Image>>,
) {
    let (a, b) = (context(domain), context(domain));
    let (talker, listener) = (
        a.create_node("talker").unwrap(),
        b.create_node("listener").unwrap(),
    );
    let publisher = talker.create_publisher("image".qos(qos)).unwrap();
    let views = views(&listener, qos);
    assert!(publisher.wait_for_matched(1, TIMEOUT) && views.wait_for_matched(1, TIMEOUT));
    let linked = || a.delivery_path_to(b.guid()).path == DeliveryPath::SharedMemory;
    assert!(a.graph().wait_until(TIMEOUT, linked));
    (a, publisher, views)
}

fn borrow(
    publisher: &Publisher<Image>,
    count: usize,
) -> Result<LoanedMessage<Image, [u8]>, PublishError> {
    publisher.borrow_loaned_sequence(&mut Image::default(), |image| &mut image.data, count)
}

fn chunks_used(context: &Context) -> usize {
    context.connection_counts().unwrap().chunks_used
}

#[test]
fn an_exhausted_loan_pool_is_an_error_until_a_loan_is_dropped() {
    let (context, publisher, views) = pair(215, &QosProfile::default());
    let before = chunks_used(&context);
    let mut loans = Vec::new();
    let refused = loop {
        match borrow(&publisher, BYTES) {
            Ok(loan) => loans.push(loan),
            Err(refused) => break refused,
        }
        assert!(loans.len() < 50, "4 MiB hold no 10 MB");
    };
    let PublishError::NoSharedMemory { waited_ms, .. } = &refused else {
        panic!("{refused}");
    };
    assert!(*waited_ms >= 99, "{waited_ms}");
    assert!(loans.iter().all(LoanedMessage::is_shared));
    assert_eq!(chunks_used(&context), before + loans.len());
    drop(loans.pop());
    let mut loan = borrow(&publisher, BYTES).unwrap();
    drop(loans);
    assert_eq!(chunks_used(&context), before + 1);
    loan.fill(5);
    publisher.publish_loaned(loan).unwrap();
    let sample = views.take_timeout(TIMEOUT).unwrap();
    assert_eq!(sample.view().unwrap().data[..], [5; BYTES]);
}

#[test]
fn a_best_effort_publisher_without_shared_memory_loans_process_memory() {
    let (context, publisher, views) = pair(216, &QosProfile::default().best_effort());
    let mut loans = Vec::new();
    let started = Instant::now();
    while loans.last().is_none_or(LoanedMessage::is_shared) {
        loans.push(borrow(&publisher, BYTES).unwrap());
        assert!(loans.len() < 50, "4 MiB hold no 10 MB");
    }
    assert!(started.elapsed() < TIMEOUT / 2, "it waits for nothing");
    // Still no chunk: lost to the connected reader, and counted.
    let refused = |context: &Context| context.connection_counts().unwrap().refused_pool_exhausted;
    let (mut own, before) = (loans.pop().unwrap(), refused(&context));
    own.fill(6);
    publisher.publish_loaned(own).unwrap();
    assert_eq!(refused(&context), before + 1);
    // A chunk is available at the time of publishing: the message is copied into
    // it.
    let mut own = borrow(&publisher, BYTES).unwrap();
    assert!(!own.is_shared());
    own.fill(7);
    loans.clear();
    publisher.publish_loaned(own).unwrap();
    let sample = views.take_timeout(TIMEOUT).unwrap();
    assert_eq!(sample.view().unwrap().data[..], [7; BYTES]);
    assert_eq!(sample.info().delivery_path, DeliveryPath::SharedMemory);
}

#[test]
fn a_loan_beyond_the_largest_chunk_is_refused_at_once() {
    let (_context, publisher, _views) = pair(217, &QosProfile::default());
    let refused = borrow(&publisher, 2 << 20).unwrap_err();
    let said = refused.to_string();
    assert!(matches!(refused, PublishError::NoSharedMemory { .. }));
    for word in ["\"/image\"", "2097196", "raise the largest"] {
        assert!(said.contains(word), "{said}");
    }
}

/// The other process.
#[test]
fn child() {
    let Ok(part) = std::env::var(CHILD_ROLE) else {
        return;
    };
    let context = context(std::env::var(DOMAIN).unwrap().parse().unwrap());
    let node = context.create_node("child").unwrap();
    let qos = QosProfile::default();
    let mut held = Vec::new();
    let mut lent = Vec::new();
    if part == "holds views" {
        let views = views(&node, &qos);
        assert!(views.wait_for_matched(1, TIMEOUT));
        while held.len() < 3 {
            held.extend(views.take_timeout(TIMEOUT));
        }
        assert!(
            held.iter()
                .all(|view| view.info().delivery_path == DeliveryPath::SharedMemory)
        );
    } else {
        let publisher = node.create_publisher::<Image>("image".qos(&qos)).unwrap();
        assert!(publisher.wait_for_matched(1, TIMEOUT));
        let mut first = borrow(&publisher, BYTES).unwrap();
        first.fill(1);
        publisher.publish_loaned(first).unwrap();
        let mut half = borrow(&publisher, BYTES).unwrap();
        half[..BYTES / 2].fill(2);
        lent.push(half);
    }
    println!("ready");
    node.spin_until(|| false, TIMEOUT * 3);
}

fn start(part: &str, domain: u32) -> Child {
    own_process::command("loans::child")
        .env(CHILD_ROLE, part)
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
    let context = context(218);
    let node = context.create_node("parent").unwrap();
    let qos = QosProfile::default();
    let publisher = node.create_publisher::<Image>("image".qos(&qos)).unwrap();
    let mut child = start("holds views", 218);
    assert!(publisher.wait_for_matched(1, TIMEOUT));
    // Before it is connected, a message travels by UDP.
    let peers = || context.connection_counts().unwrap().connections == 1;
    assert!(context.graph().wait_until(TIMEOUT, peers));
    for n in 0..3 {
        let mut loan = borrow(&publisher, BYTES).unwrap();
        loan.fill(n);
        publisher.publish_loaned(loan).unwrap();
    }
    assert!(is_ready(&mut child));
    assert!(publisher.wait_for_all_acked(TIMEOUT));
    assert!(context.connection_counts().unwrap().loans >= 3);
    child.kill().unwrap();
    child.wait().unwrap();
    let killed = Instant::now();
    let back = || context.connection_counts().unwrap().loans == 0;
    assert!(context.graph().wait_until(TIMEOUT, back));
    assert!(killed.elapsed() < Duration::from_secs(1), "{killed:?}");
    drop(publisher);
    assert_eq!(chunks_used(&context), 0);
}

#[test]
fn a_loan_of_a_killed_process_is_never_seen_and_its_published_messages_stay() {
    let context = context(219);
    let node = context.create_node("parent").unwrap();
    let views = views(&node, &QosProfile::default());
    let mut child = start("holds a loan", 219);
    let sample = views.take_timeout(TIMEOUT).expect("what it published");
    assert!(is_ready(&mut child));
    child.kill().unwrap();
    child.wait().unwrap();
    let gone = || views.matched_count() == 0;
    assert!(context.graph().wait_until(TIMEOUT, gone));
    assert!(views.take().is_none());
    assert_eq!(sample.view().unwrap().data[..], [1; BYTES]);
    assert_eq!(views.counts().received, 1);
}
