//! Static allocation: wait sets and the static executor allocate nothing after
//! set-up.

use std::sync::Arc;

use pteros::NamedQosExt;
use pteros::interfaces::std_msgs::msg::UInt8MultiArray;
use pteros::{
    executors::{DataSemantics, StaticExecutor},
    wait_set::WaitSet,
};

use crate::message_cost::{CountingProcess, TIMEOUT, allocations_of, unused_domain};

#[test]
fn a_wait_set_allocates_nothing() {
    let party = CountingProcess::new(unused_domain());
    let [a, b] = ["a", "b"].map(|topic| {
        let publisher = party
            .node
            .create_publisher::<UInt8MultiArray>(topic.keep_last(10));
        let polled = party
            .node
            .create_polled_subscription::<UInt8MultiArray>(topic.keep_last(10));
        (publisher.unwrap(), polled.unwrap())
    });
    let mut set = WaitSet::new(&party.context);
    let (key_a, key_b) = (set.add(&a.1).unwrap(), set.add(&b.1).unwrap());
    let message = Arc::new(UInt8MultiArray::default());
    let round = || {
        a.0.publish_arc(message.clone()).unwrap();
        assert_eq!(set.wait(TIMEOUT), [key_a]);
        b.0.publish_arc(message.clone()).unwrap();
        assert_eq!(set.wait(TIMEOUT), [key_a, key_b]);
        assert!(a.1.take().is_some() && b.1.take().is_some());
    };
    assert_eq!(allocations_of(round), 0);
}

#[test]
fn a_static_executor_allocates_nothing_after_its_set_up() {
    let party = CountingProcess::new(unused_domain());
    let publisher = party
        .node
        .create_publisher::<UInt8MultiArray>("in".keep_last(10))
        .unwrap();
    let polled = party
        .node
        .create_polled_subscription::<UInt8MultiArray>("in".keep_last(10))
        .unwrap();
    let given = party
        .node
        .create_publisher::<UInt8MultiArray>("out".keep_last(10))
        .unwrap();
    let out = party
        .node
        .create_polled_subscription::<UInt8MultiArray>("out".keep_last(10))
        .unwrap();
    let message = Arc::new(UInt8MultiArray::default());
    let mut executor = StaticExecutor::new(&party.context);
    executor.set_semantics(DataSemantics::LogicalExecutionTime);
    let (output, answer) = (executor.add_output(&given, 1), message.clone());
    let step = move |_| output.publish_arc(answer.clone());
    executor.add_subscription(&polled, step).unwrap();
    let guard = party.node.create_guard_condition(None, || ());
    executor.add_guard_condition(&guard).unwrap();
    let round = || {
        publisher.publish_arc(message.clone()).unwrap();
        guard.trigger();
        assert!(executor.spin_once(TIMEOUT));
        assert!(out.take().is_some());
    };
    assert_eq!(allocations_of(round), 0);
}
