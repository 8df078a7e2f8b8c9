//! Publish and subscribe: nodes of one process and of several participants, on this
//! host only.

use pteros::subscription::SerializedMessage;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pteros::TimerOptions;
use pteros::interfaces::statistics_msgs::msg::{MetricsMessage, StatisticDataType};
use pteros::interfaces::std_msgs::msg::{String as Text, UInt8MultiArray};
use pteros::prelude::*;
use pteros::subscription::{SerializedType, TopicStatisticsOptions};
use pteros::{
    SubscriptionOptions,
    error::PublishError,
    event_handler::{EndpointEvent, PolicyId},
    subscription::DeliveryPath,
};

const TIMEOUT: Duration = Duration::from_secs(10);

fn text(n: usize) -> Text {
    Text {
        data: format!("Hello World: {n}"),
    }
}

/// DATA of a writer, with a text, as any local process can send it.
fn forged_text(writer: pteros::graph::Guid, sequence: u32, word: &str) -> Vec<u8> {
    let guid = writer.to_bytes();
    let mut body = vec![0, 0, 16, 0, 0, 0, 0, 0];
    body.extend_from_slice(&guid[12..]);
    body.extend_from_slice(&[0; 4]);
    body.extend_from_slice(&sequence.to_le_bytes());
    body.extend_from_slice(&[0, 1, 0, 0]);
    body.extend_from_slice(&u32::try_from(word.len() + 1).unwrap().to_le_bytes());
    body.extend_from_slice(word.as_bytes());
    body.push(0);
    body.resize(body.len().next_multiple_of(4), 0);
    let mut datagram = b"RTPS\x02\x05\x01\x42".to_vec();
    datagram.extend_from_slice(&guid[..12]);
    // Little endian, with data.
    datagram.extend_from_slice(&[0x15, 0x05]);
    datagram.extend_from_slice(&u16::try_from(body.len()).unwrap().to_le_bytes());
    datagram.extend_from_slice(&body);
    datagram
}

/// A UDP address of a peer on the own host proves nothing: every local user sends from it.
#[test]
fn datagrams_in_the_name_of_a_shared_memory_peer_are_refused() {
    for (domain, is_shared) in [(89, true), (90, false)] {
        let mut options = ContextOptions::local(domain);
        options.shared_memory.enabled = is_shared;
        let a = Context::with_options(options.clone()).unwrap();
        let b = Context::with_options(options).unwrap();
        let talker = a.create_node("talker").unwrap();
        let listener = b.create_node("listener").unwrap();
        let qos = QosProfile::default().keep_last(100);
        let publisher = talker
            .create_publisher::<Text>("chatter".qos(&qos))
            .unwrap();
        let subscription = listener
            .create_polled_subscription::<Text>("chatter".qos(&qos))
            .unwrap();
        assert!(publisher.wait_for_matched(1, TIMEOUT));
        assert!(subscription.wait_for_matched(1, TIMEOUT));
        let graph = b.graph();
        let path = if is_shared {
            DeliveryPath::SharedMemory
        } else {
            DeliveryPath::Network
        };
        let is_connected = || b.delivery_path_to(publisher.gid()).path == path;
        assert!(graph.wait_until(TIMEOUT, is_connected));
        let hear = |word: usize| {
            publisher.publish(&text(word)).unwrap();
            let sample = subscription.take_timeout(TIMEOUT).expect("the message");
            assert_eq!(*sample, text(word));
            sample.info().sequence
        };
        let mut last = hear(0);
        // It may have gone by a socket, before the connection was in use.
        for word in 1..20 {
            last = hear(word);
            graph.wait_until(Duration::from_millis(20), || false);
        }
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let before = b.counts().foreign_sources;
        for ahead in 1..=3u32 {
            let sequence = u32::try_from(last).unwrap() + ahead;
            let forged = forged_text(publisher.gid(), sequence, "forged");
            // The ports of the first participants of the domain (RTPS 2.5 §9.6.1.1).
            for number in 10..26u16 {
                let port = 7_400 + 250 * u16::try_from(domain).unwrap() + number;
                socket.send_to(&forged, ("127.0.0.1", port)).unwrap();
            }
        }
        if is_shared {
            let is_refused = || b.counts().foreign_sources >= before + 3;
            assert!(graph.wait_until(TIMEOUT, is_refused), "{:?}", b.counts());
            for word in 20..25 {
                hear(word);
            }
            assert_eq!(subscription.counts().lost, 0);
        } else {
            // So the datagrams are what they should be.
            let sample = subscription.take_timeout(TIMEOUT).expect("the forged one");
            assert_eq!(sample.data, "forged");
        }
    }
}

#[test]
fn two_participants_of_one_host_exchange_messages_over_udp() {
    let mut options = ContextOptions::local(101);
    options.shared_memory.enabled = false;
    let a = Context::with_options(options.clone()).unwrap();
    let b = Context::with_options(options).unwrap();
    let path = a.delivery_path_to(b.guid());
    assert_eq!(
        (path.path, path.reason.as_deref()),
        (DeliveryPath::Network, Some("switched off here"))
    );
    let talker = a.create_node("talker").unwrap();
    let listener = b.create_node("listener").unwrap();
    let publisher = talker.create_publisher::<Text>("chatter").unwrap();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let sink = heard.clone();
    let subscription = listener
        .create_subscription::<Text>("chatter", move |sample| {
            assert_eq!(sample.info().delivery_path, DeliveryPath::Network);
            sink.lock().unwrap().push(sample.data.clone());
        })
        .unwrap();
    assert!(publisher.wait_for_matched(1, TIMEOUT));
    assert!(subscription.wait_for_matched(1, TIMEOUT));
    for n in 0..10 {
        publisher.publish(&text(n)).unwrap();
    }
    assert!(listener.spin_until(|| heard.lock().unwrap().len() == 10, TIMEOUT));
    assert_eq!(heard.lock().unwrap()[9], "Hello World: 9");
    assert!(publisher.wait_for_all_acked(TIMEOUT));
}

#[test]
fn intra_process_the_message_itself_is_delivered() {
    let context = Context::with_options(ContextOptions::local(102)).unwrap();
    let node = context.create_node("both").unwrap();
    let seen = Arc::new(AtomicUsize::new(0));
    let sink = seen.clone();
    let _subscription = node
        .create_subscription::<Text>("chatter".keep_last(10), move |sample| {
            assert_eq!(sample.info().delivery_path, DeliveryPath::IntraProcess);
            sink.store(std::ptr::from_ref(&*sample) as usize, Ordering::Relaxed);
        })
        .unwrap();
    let publisher = node
        .create_publisher::<Text>("chatter".keep_last(10))
        .unwrap();
    let message = Arc::new(text(1));
    publisher.publish_arc(message.clone()).unwrap();
    assert!(node.spin_once(TIMEOUT));
    assert_eq!(
        seen.load(Ordering::Relaxed),
        std::ptr::from_ref(&*message) as usize
    );
    assert_eq!(publisher.counts().serialized, 0);
}

#[test]
fn a_late_joiner_gets_the_last_samples_over_both_paths() {
    let a = Context::with_options(ContextOptions::local(103)).unwrap();
    let b = Context::with_options(ContextOptions::local(103)).unwrap();
    let map = a.create_node("map").unwrap();
    let latched = QosProfile::default().keep_last(3).transient_local();
    let publisher = map.create_publisher::<Text>("map".qos(&latched)).unwrap();
    for n in 0..5 {
        publisher.publish(&text(n)).unwrap();
    }
    for context in [&a, &b] {
        let node = context.create_node("late").unwrap();
        let late = node
            .create_polled_subscription::<Text>("map".qos(&latched))
            .unwrap();
        for n in 2..5 {
            let sample = late.take_timeout(TIMEOUT).expect("a latched sample");
            assert_eq!(*sample, text(n));
        }
        assert!(late.take().is_none());
    }
}

#[test]
fn incompatible_qos_is_reported_on_both_sides() {
    let a = Context::with_options(ContextOptions::local(104)).unwrap();
    let b = Context::with_options(ContextOptions::local(104)).unwrap();
    let talker = a.create_node("talker").unwrap();
    let listener = b.create_node("listener").unwrap();
    let publisher = talker
        .create_publisher::<Text>("scan".sensor_data())
        .unwrap();
    let subscription = listener.create_polled_subscription::<Text>("scan").unwrap();
    let named = |event: Option<EndpointEvent>| {
        matches!(event, Some(EndpointEvent::IncompatibleQos { policies, .. })
            if policies == [PolicyId::Reliability])
    };
    let mut told = (false, false);
    let graph = b.graph();
    assert!(graph.wait_until(TIMEOUT, || {
        told.0 |= named(publisher.take_event());
        told.1 |= named(subscription.take_event());
        told == (true, true)
    }));
    assert_eq!(publisher.matched_count(), 0);
    let why = graph.match_reports("/scan");
    assert!(format!("{why:?}").contains("RELIABILITY"), "{why:?}");
}

#[test]
fn the_graph_has_nodes_and_topics_and_removes_left_nodes() {
    let a = Context::with_options(ContextOptions::local(105)).unwrap();
    let b = Context::with_options(ContextOptions::local(105)).unwrap();
    let graph = b.graph();
    let node = a
        .create_node(NodeOptions::new("talker").namespace("/robot1"))
        .unwrap();
    let publisher = node
        .create_publisher::<Text>("chatter".keep_last(10))
        .unwrap();
    let names = || -> Vec<String> {
        let nodes = graph.nodes();
        nodes.iter().map(|n| n.fully_qualified_name()).collect()
    };
    assert!(graph.wait_until(TIMEOUT, || names() == ["/robot1/talker"]
        && !graph.publishers("/robot1/chatter").is_empty()
        && graph.publishers("/robot1/chatter")[0].node_name.is_some()));
    let info = &graph.publishers("/robot1/chatter")[0];
    assert_eq!(info.topic_type, "std_msgs/msg/String");
    assert_eq!(info.type_hash, Some(Text::TYPE_HASH));
    assert_eq!(info.node_name.as_deref(), Some("talker"));
    drop(publisher);
    assert!(graph.wait_until(TIMEOUT, || graph.publishers("/robot1/chatter").is_empty()));
    drop(node);
    assert!(graph.wait_until(TIMEOUT, || names().is_empty()));
    drop(a);
    // Its dispose announcement ends it, not its lease.
    assert!(graph.wait_until(TIMEOUT, || graph.nodes().is_empty()));
}

#[test]
fn timers_tick_and_large_messages_arrive_whole() {
    use pteros::interfaces::sensor_msgs::msg::Image;
    let a = Context::with_options(ContextOptions::local(106)).unwrap();
    let b = Context::with_options(ContextOptions::local(106)).unwrap();
    let camera = a.create_node("camera").unwrap();
    let viewer = b.create_node("viewer").unwrap();
    let publisher = camera
        .create_publisher::<Image>("image".keep_last(5))
        .unwrap();
    let subscription = viewer
        .create_polled_subscription::<Image>("image".keep_last(5))
        .unwrap();
    assert!(publisher.wait_for_matched(1, TIMEOUT));
    assert!(subscription.wait_for_matched(1, TIMEOUT));
    let image = Image {
        height: 1080,
        width: 1920,
        data: (0..4_000_000_u32).map(|n| (n % 251) as u8).collect(),
        ..Image::default()
    };
    let sent = image.clone();
    let _timer = camera
        .create_timer(
            TimerOptions::new(Duration::from_millis(1)).one_shot(),
            move || {
                publisher.publish(&sent).unwrap();
            },
        )
        .unwrap();
    let arrived = camera.spin_until(|| subscription.counts().received > 0, TIMEOUT);
    assert!(arrived, "the image never arrived");
    let got = subscription.take().expect("the image");
    assert!(*got == image, "the image arrived changed");
}

/// Two contexts connected by shared memory, the first with a small pool, and a
/// publisher and a raw subscription of 200 KB messages.
fn with_a_small_pool(
    domain: u32,
    qos: &QosProfile,
) -> (
    Context,
    Publisher<UInt8MultiArray>,
    Subscription<SerializedMessage>,
) {
    let mut options = ContextOptions::local(domain);
    options.shared_memory.pool_bytes = 4 << 20;
    let a = Context::with_options(options.clone()).unwrap();
    let b = Context::with_options(options).unwrap();
    let (talker, listener) = (
        a.create_node("talker").unwrap(),
        b.create_node("listener").unwrap(),
    );
    let publisher = talker.create_publisher("bulk".qos(qos)).unwrap();
    let ty = "std_msgs::msg::dds_::UInt8MultiArray_";
    let subscription = listener
        .create_polled_subscription::<SerializedMessage>(SubscriptionOptions::of_type(
            &SerializedType::new(ty, None),
            "bulk".qos(qos.clone()),
        ))
        .unwrap();
    assert!(publisher.wait_for_matched(1, TIMEOUT));
    assert!(subscription.wait_for_matched(1, TIMEOUT));
    let linked = || a.delivery_path_to(b.guid()).path == DeliveryPath::SharedMemory;
    assert!(
        a.graph().wait_until(TIMEOUT, linked),
        "{:?}",
        a.delivery_path_to(b.guid())
    );
    (a, publisher, subscription)
}

fn bulk_message(n: u8) -> UInt8MultiArray {
    UInt8MultiArray {
        data: vec![n; 200_000],
        ..UInt8MultiArray::default()
    }
}

#[test]
fn a_reliable_publisher_blocks_on_an_exhausted_pool_and_names_the_limit() {
    let qos = QosProfile::default().keep_last(100);
    let (_context, publisher, subscription) = with_a_small_pool(107, &qos);
    let mut accepted = 0;
    let refused = loop {
        match publisher.publish(&bulk_message(accepted)) {
            Ok(()) => accepted += 1,
            Err(error) => break error,
        }
        assert!(accepted < 50, "4 MiB hold no 10 MB");
    };
    let PublishError::NoSharedMemory { waited_ms, .. } = &refused else {
        panic!("{refused}");
    };
    assert!(*waited_ms >= 99, "{waited_ms}");
    let said = refused.to_string();
    for word in ["/bulk", "4194304", "raise"] {
        assert!(said.contains(word), "{said}");
    }
    // Taking samples makes room, and nothing is lost or corrupted.
    for n in 0..accepted {
        let sample = subscription.take_timeout(TIMEOUT).expect("the next one");
        assert_eq!(sample[sample.len() - 1], n);
        assert_eq!(sample.info().delivery_path, DeliveryPath::SharedMemory);
    }
    assert!(publisher.wait_for_all_acked(TIMEOUT));
    publisher.publish(&bulk_message(accepted)).unwrap();
    let sample = subscription.take_timeout(TIMEOUT).expect("the last one");
    assert_eq!(sample[sample.len() - 1], accepted);
}

#[test]
fn a_best_effort_publisher_drops_and_counts_when_the_pool_is_exhausted() {
    let qos = QosProfile::default().keep_last(100).best_effort();
    let (context, publisher, subscription) = with_a_small_pool(108, &qos);
    let mut held = Vec::new();
    for n in 0..50 {
        publisher.publish(&bulk_message(n)).unwrap();
        held.extend(subscription.take_timeout(Duration::from_millis(1)));
    }
    while let Some(sample) = subscription.take_timeout(Duration::from_millis(100)) {
        held.push(sample);
    }
    let counts = context.connection_counts().unwrap();
    let refused = counts.refused_pool_share + counts.refused_pool_exhausted + counts.refused_loans;
    assert!(refused > 0 && held.len() < 50, "{counts:?}");
    // Held samples are not overwritten.
    for sample in &held {
        assert!(sample[20..].windows(2).all(|pair| pair[0] == pair[1]));
    }
}

#[test]
fn one_message_is_awaited_on_a_topic_and_none_is_an_answer_too() {
    let context = Context::with_options(ContextOptions::local(118)).unwrap();
    let node = context.create_node("reader").unwrap();
    let latched = || "word".keep_last(1).transient_local();
    let none = node.wait_for_message::<Text>(latched(), Duration::ZERO);
    assert!(none.unwrap().is_none());
    let publisher = node.create_publisher::<Text>(latched()).unwrap();
    publisher.publish(&text(7)).unwrap();
    let heard = node.wait_for_message::<Text>(latched(), TIMEOUT).unwrap();
    assert_eq!(heard.unwrap().data, "Hello World: 7");
    // The subscription ended with the wait.
    assert_eq!(publisher.matched_count(), 0);
}

#[test]
fn topic_statistics_report_age_and_period_of_the_messages_of_a_window() {
    let context = Context::with_options(ContextOptions::local(119)).unwrap();
    let node = context.create_node("measured").unwrap();
    let metrics = node
        .create_polled_subscription::<MetricsMessage>("/numbers_of_chatter".keep_last(1000))
        .unwrap();
    let statistics = TopicStatisticsOptions {
        publish_topic: "/numbers_of_chatter".into(),
        publish_period: Duration::from_millis(50),
    };
    let options = SubscriptionOptions::<Text>::new("chatter".keep_last(10));
    let heard = Arc::new(AtomicUsize::new(0));
    let count = heard.clone();
    let _subscription = node
        .create_subscription(options.topic_statistics(statistics), move |_| {
            count.fetch_add(1, Ordering::Relaxed);
        })
        .unwrap();
    let publisher = node
        .create_publisher::<Text>("chatter".keep_last(10))
        .unwrap();
    for n in 0..3 {
        publisher.publish(&text(n)).unwrap();
    }
    let value = |message: &MetricsMessage, kind: u8| {
        let found = message
            .statistics
            .iter()
            .find(|point| point.data_type == kind);
        found.unwrap().data
    };
    // Three messages have three ages and two periods, in one window or over several.
    let (mut ages, mut periods) = (0.0, 0.0);
    let all_reported = || {
        while let Some(message) = metrics.take() {
            assert_eq!(message.measurement_source_name, "measured");
            assert_eq!((message.unit.as_str(), message.statistics.len()), ("ms", 5));
            let counted = value(
                &message,
                StatisticDataType::STATISTICS_DATA_TYPE_SAMPLE_COUNT,
            );
            let average = value(&message, StatisticDataType::STATISTICS_DATA_TYPE_AVERAGE);
            assert_eq!(average.is_nan(), counted == 0.0);
            match message.metrics_source.as_str() {
                "message_age" => ages += counted,
                "message_period" => periods += counted,
                other => panic!("{other}"),
            }
        }
        ages >= 3.0 && periods >= 2.0
    };
    assert!(node.spin_until(all_reported, TIMEOUT));
    assert_eq!(
        (ages, periods, heard.load(Ordering::Relaxed)),
        (3.0, 2.0, 3)
    );
}

#[test]
fn topic_statistics_need_a_period() {
    let context = Context::with_options(ContextOptions::local(120)).unwrap();
    let node = context.create_node("measured").unwrap();
    let never = TopicStatisticsOptions {
        publish_period: Duration::ZERO,
        ..TopicStatisticsOptions::default()
    };
    let options = SubscriptionOptions::<Text>::new("chatter").topic_statistics(never);
    let error = node.create_polled_subscription(options).unwrap_err();
    assert!(error.to_string().contains("longer than zero"), "{error}");
}
