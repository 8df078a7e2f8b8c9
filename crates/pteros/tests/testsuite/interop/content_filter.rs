//! Content filters across implementations: Fast DDS filters at the writer and
//! attaches the filter signatures; Cyclone DDS sends everything.

use std::time::Duration;

use pteros::SubscriptionOptions;
use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;

use crate::interop::harness::*;

fn best_effort(is_it: bool) -> QosProfile {
    if is_it {
        QosProfile::default().keep_last(100).best_effort()
    } else {
        QosProfile::default().keep_last(100)
    }
}

fn check_our_filter(harness: &Harness, is_best_effort: bool) {
    let node = harness.node();
    let options = SubscriptionOptions::new("chatter".qos(best_effort(is_best_effort)))
        .content_filter(
            "data LIKE %0 OR data BETWEEN 'Hello World: 7' AND 'Hello World: 8'",
            ["'%: _5'"],
        );
    let subscription = node.create_polled_subscription::<Text>(options).unwrap();
    let reliability = if is_best_effort {
        "best_effort"
    } else {
        "reliable"
    };
    let options = format!("--reliability {reliability} --rate 200 --count 25 --linger 60");
    let mut peer = harness.waiting_publisher(&options);
    wait_until_matched_and_start(&subscription, &mut peer);
    for n in [7, 8, 15, 25] {
        expect_hello(&subscription, n);
    }
    let counts = subscription.counts();
    let filtered_here = match harness.stack {
        Stack::FastDds => 0,
        _ => 21,
    };
    assert_eq!(
        (counts.received, counts.content_filtered),
        (4, filtered_here)
    );
    assert_eq!(counts.lost, 0);
}

pub fn our_content_filter_selects_their_samples(harness: &Harness) {
    check_our_filter(harness, false);
}

pub fn our_content_filter_selects_their_best_effort_samples(harness: &Harness) {
    check_our_filter(harness, true);
}

pub fn their_content_filter_selects_our_samples(harness: &Harness) {
    let node = harness.node();
    for reliability in ["reliable", "best_effort"] {
        let publisher = node
            .create_publisher::<Text>("chatter".qos(best_effort(false)))
            .unwrap();
        let mut peer = harness.peer(&format!(
            "sub --reliability {reliability} --filter data/LIKE/%0/OR/data='Hello/World:/9' \
             --filter-parameter '%:/3'"
        ));
        wait_until_peer_matched(&publisher, &mut peer);
        let announced = node.context().graph().subscriptions("/chatter");
        let filter = announced.iter().find_map(|e| e.content_filter.clone());
        let filter = filter.expect("their filter is announced");
        assert_eq!(filter.related_topic, "rt/chatter");
        assert_eq!(filter.parameters, ["'%: 3'"]);
        drive_for(&node, Duration::from_millis(300));
        for n in 1..=9 {
            publisher.publish(&hello(n)).unwrap();
        }
        peer_expects_hello(&mut peer, 3);
        peer_expects_hello(&mut peer, 9);
        assert_eq!(publisher.counts().content_filtered, 7);
        assert!(publisher.wait_for_all_acked(TIMEOUT));
        signal(&peer, "INT");
        // It prints each sample before it counts it.
        peer.expect("ended received=", TIMEOUT);
        let received = peer.seen().iter().filter(|l| l.starts_with("received"));
        assert_eq!(received.count(), 2);
        // Their best-effort readers count every missing number as lost, GAP or not.
        let lost = peer.seen().iter().find(|line| line.starts_with("lost"));
        assert!(reliability == "best_effort" || lost.is_none(), "{lost:?}");
        time_until(&node, TIMEOUT, || publisher.matched_count() == 0);
    }
}
