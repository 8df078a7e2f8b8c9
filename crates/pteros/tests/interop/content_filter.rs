//! Content filters across stacks: Fast DDS applies them where samples are written
//! and says so beside each; Cyclone DDS sends everything.

use std::time::Duration;

use pteros::SubscriptionOptions;
use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;

use crate::stage::*;

fn best_effort(is_it: bool) -> QosProfile {
    match is_it {
        true => QosProfile::default().keep_last(100).best_effort(),
        false => QosProfile::default().keep_last(100),
    }
}

fn we_get(stage: &Stage, is_best_effort: bool) {
    let node = stage.node();
    let options = SubscriptionOptions::new(best_effort(is_best_effort)).content_filter(
        "data LIKE %0 OR data BETWEEN 'Hello World: 7' AND 'Hello World: 8'",
        ["'%: _5'"],
    );
    let subscription = node
        .create_subscription_with::<Text>("chatter", options)
        .unwrap();
    let reliability = match is_best_effort {
        true => "best_effort",
        false => "reliable",
    };
    let options = format!("--reliability {reliability} --rate 200 --count 25 --linger 60");
    let mut peer = stage.waiting_publisher(&options);
    wait_until_we_hear(&subscription, &mut peer);
    for n in [7, 8, 15, 25] {
        expect_hello(&subscription, n);
    }
    let counts = subscription.counts();
    let filtered_here = match stage.stack {
        Stack::FastDds => 0,
        _ => 21,
    };
    assert_eq!((counts.received, counts.unwanted), (4, filtered_here));
    assert_eq!(counts.lost, 0);
}

pub fn we_get_what_we_want_of_theirs(stage: &Stage) {
    we_get(stage, false);
}

pub fn we_get_what_we_want_of_theirs_by_best_effort(stage: &Stage) {
    we_get(stage, true);
}

pub fn they_get_what_they_want_of_ours(stage: &Stage) {
    let node = stage.node();
    for reliability in ["reliable", "best_effort"] {
        let publisher = node
            .create_publisher::<Text>("chatter", best_effort(false))
            .unwrap();
        let mut peer = stage.peer(&format!(
            "sub --reliability {reliability} --filter data/LIKE/%0/OR/data='Hello/World:/9' \
             --filter-parameter '%:/3'"
        ));
        wait_until_they_hear(&publisher, &mut peer);
        let announced = node.context().graph().subscriptions("/chatter");
        let filter = announced.iter().find_map(|e| e.content_filter.clone());
        let filter = filter.expect("their filter is announced");
        assert_eq!(filter.related_topic, "rt/chatter");
        assert_eq!(filter.parameters, ["'%: 3'"]);
        live_for(&node, Duration::from_millis(300));
        for n in 1..=9 {
            publisher.publish(&hello(n)).unwrap();
        }
        peer_expects_hello(&mut peer, 3);
        peer_expects_hello(&mut peer, 9);
        assert_eq!(publisher.counts().kept_back, 7);
        assert!(publisher.wait_for_all_acked(PATIENCE));
        signal(&peer, "INT");
        // It prints each sample before it counts it.
        peer.expect("ended received=", PATIENCE);
        let heard = peer.seen().iter().filter(|l| l.starts_with("received"));
        assert_eq!(heard.count(), 2);
        // Their best-effort readers take every missing number for a loss, GAP
        // or not.
        let lost = peer.seen().iter().find(|line| line.starts_with("lost"));
        assert!(reliability == "best_effort" || lost.is_none(), "{lost:?}");
        time_until(&node, PATIENCE, || publisher.matched_count() == 0);
    }
}
