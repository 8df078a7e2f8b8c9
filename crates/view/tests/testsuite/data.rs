//! Messages from a publisher to viewers.

use pteros::NamedQosExt;
use pteros::interfaces::std_msgs::msg::{String as Text, UInt8MultiArray};
use pteros::msg::cdr::{from_payload, to_payload};
use pteros::qos::Representation;

use serde_json::Value;

use crate::viewer::{PATIENCE, Received, Robot, wait_until};

fn text(data: &str) -> Text {
    Text { data: data.into() }
}

fn decoded(payload: &[u8]) -> String {
    from_payload::<Text>(payload).unwrap().data
}

#[test]
fn a_message_arrives_as_it_was_published() {
    let robot = Robot::start(|_| {});
    let publisher = robot
        .node
        .create_publisher::<Text>("/chatter".keep_last(10))
        .unwrap();
    let mut viewer = robot.viewer();
    let channel = viewer.channel("/chatter");
    assert_eq!(channel["encoding"], "cdr");
    assert_eq!(channel["schemaName"], "std_msgs/msg/String");
    assert_eq!(channel["schemaEncoding"], "ros2msg");
    assert!(
        channel["schema"].as_str().unwrap().contains("string data"),
        "{channel}"
    );
    let subscription = viewer.subscribe("/chatter");
    assert!(publisher.wait_for_matched(1, PATIENCE));
    publisher.publish(&text("hello")).unwrap();
    let payload = viewer.payload(subscription);
    assert_eq!(payload, to_payload(&text("hello"), Representation::Xcdr1));
}

#[test]
fn topics_that_are_denied_or_hidden_are_not_shown() {
    let robot =
        Robot::start(|options| options.filter = std::sync::Arc::new(|name| name != "/secret"));
    let create = |topic: &str| {
        robot
            .node
            .create_publisher::<Text>(topic.keep_last(1))
            .unwrap()
    };
    let _all = ["/secret", "/_hidden", "/shown"].map(create);
    let mut viewer = robot.viewer();
    viewer.channel("/shown");
    viewer.send(&serde_json::json!({ "op": "subscribeConnectionGraph" }));
    let graph = viewer.find(|received| match received {
        Received::Text(value) if value["op"] == "connectionGraphUpdate" => {
            Some(value.to_string()).filter(|text| text.contains("/shown"))
        }
        _ => None,
    });
    assert!(
        !graph.contains("/secret") && !graph.contains("_hidden"),
        "{graph}"
    );
}

#[test]
fn a_channel_ends_with_its_publisher_and_its_id_is_not_used_again() {
    let robot = Robot::start(|_| {});
    let create = || {
        robot
            .node
            .create_publisher::<Text>("/chatter".keep_last(1))
            .unwrap()
    };
    let publisher = create();
    let mut viewer = robot.viewer();
    let first = viewer.channel("/chatter")["id"].clone();
    drop(publisher);
    assert_eq!(
        viewer.text("unadvertise")["channelIds"],
        serde_json::json!([first])
    );
    let _publisher = create();
    let second = viewer.find(|received| match received {
        Received::Text(value) => {
            let mut channels = value["channels"].as_array().into_iter().flatten();
            let is_new = |one: &&Value| one["topic"] == "/chatter" && one["id"] != first;
            channels.find(is_new).map(|channel| channel["id"].clone())
        }
        Received::Frame(_) => None,
    });
    assert!(second.as_u64() > first.as_u64(), "{second} after {first}");
}

#[test]
fn a_late_viewer_gets_the_messages_that_the_publisher_keeps() {
    let robot = Robot::start(|_| {});
    let qos = "/map".transient_local().keep_last(3);
    let publisher = robot.node.create_publisher::<Text>(qos).unwrap();
    for data in ["one", "two", "three"] {
        publisher.publish(&text(data)).unwrap();
    }
    // The first one is still there when the second comes.
    let mut viewers = [robot.viewer(), robot.viewer()];
    for viewer in &mut viewers {
        let subscription = viewer.subscribe("/map");
        let got: Vec<_> = (0..3)
            .map(|_| decoded(&viewer.payload(subscription)))
            .collect();
        assert_eq!(got, ["one", "two", "three"]);
    }
}

#[test]
fn viewers_share_a_subscription_and_the_last_one_ends_it() {
    let robot = Robot::start(|_| {});
    let publisher = robot
        .node
        .create_publisher::<Text>("/chatter".keep_last(10))
        .unwrap();
    let (mut one, mut other) = (robot.viewer(), robot.viewer());
    let subscriptions = [one.subscribe("/chatter"), other.subscribe("/chatter")];
    assert!(publisher.wait_for_matched(1, PATIENCE));
    // Both are there when each has got a message.
    for (viewer, subscription) in [&mut one, &mut other].into_iter().zip(subscriptions) {
        viewer.send(&serde_json::json!({ "op": "pteros.hello" }));
        viewer.text("pteros.stats");
        publisher.publish(&text("hello")).unwrap();
        assert_eq!(decoded(&viewer.payload(subscription)), "hello");
    }
    assert_eq!(publisher.matched_count(), 1);
    one.send(&serde_json::json!({ "op": "unsubscribe", "subscriptionIds": [subscriptions[0]] }));
    publisher.publish(&text("again")).unwrap();
    while decoded(&other.payload(subscriptions[1])) != "again" {}
    drop(other);
    wait_until(|| publisher.matched_count() == 0, "the subscription ends");
}

#[test]
fn a_slow_viewer_skips_large_messages_and_gets_each_small_one() {
    let robot = Robot::start(|_| {});
    let images = robot
        .node
        .create_publisher::<UInt8MultiArray>("/image".keep_last(5))
        .unwrap();
    let commands = robot
        .node
        .create_publisher::<Text>("/command".keep_last(100))
        .unwrap();
    let mut viewer = robot.viewer();
    let image = viewer.subscribe("/image");
    let command = viewer.subscribe("/command");
    assert!(images.wait_for_matched(1, PATIENCE) && commands.wait_for_matched(1, PATIENCE));
    // 120 MB, far more than the socket and the queue hold, while nothing is read.
    for number in 0..40_u8 {
        let data = vec![number; 3 << 20];
        images
            .publish(&UInt8MultiArray {
                data,
                ..Default::default()
            })
            .unwrap();
        commands.publish(&text(&number.to_string())).unwrap();
        assert!(images.wait_for_all_acked(PATIENCE) && commands.wait_for_all_acked(PATIENCE));
    }
    let expected: Vec<_> = (0..40).map(|number| number.to_string()).collect();
    let got: Vec<_> = (0..40).map(|_| decoded(&viewer.payload(command))).collect();
    assert_eq!(got, expected);
    let mut count = 1;
    while viewer.payload(image).last() != Some(&39) {
        count += 1;
    }
    assert!(count < 40, "no image was skipped");
    let status = viewer.text("status");
    assert_eq!(status["level"], 1);
    let message = status["message"].as_str().unwrap();
    assert!(
        message.starts_with("/image: ") && message.contains("skipped"),
        "{message}"
    );
}
