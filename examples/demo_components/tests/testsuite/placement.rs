//! The same component, composed statically and loaded: messages pass between
//! libraries as pointers, whichever thread runs the callbacks.

use std::sync::mpsc::channel;

use crate::support::{DEMO_PACKAGE, MISBEHAVING_PACKAGE, Running, TIMEOUT, request};
use pteros::component::Component;
use pteros::interfaces::rcl_interfaces::msg::Parameter;
use pteros::interfaces::sensor_msgs::msg::Image;
use pteros::interfaces::statistics_msgs::msg::MetricsMessage;
use pteros::interfaces::std_msgs::msg::Empty;
use pteros::parameter::ParameterValue;
use pteros::prelude::*;
use pteros::subscription::DeliveryPath;
use pteros_container::{ContainerOptions, ExecutorKind};

fn parameter(name: &str, value: impl Into<ParameterValue>) -> Parameter {
    Parameter {
        name: name.into(),
        value: value.into().into_message(),
    }
}

/// The messages of a topic with their delivery path.
fn listen<T: Message + Clone>(
    node: &Node,
    topic: &str,
) -> (
    Subscription<T>,
    std::sync::mpsc::Receiver<(T, DeliveryPath)>,
) {
    let (sender, messages) = channel();
    let subscription = node.create_subscription::<T>(topic.sensor_data(), move |m| {
        let path = m.info().delivery_path;
        let _ = sender.send((m.into_inner(), path));
    });
    (subscription.unwrap(), messages)
}

fn images_flow(executor: ExecutorKind) {
    let container = Running::new(ContainerOptions {
        executor,
        index: crate::support::index(),
        ..ContainerOptions::default()
    });
    let node = container.context.create_node("viewer").unwrap();
    let (_images, images) = listen::<Image>(&node, "image_filtered");
    let (_statistics, statistics) = listen::<MetricsMessage>(&node, "/statistics");
    let mut source = request(DEMO_PACKAGE, "ImageSource");
    source.parameters = vec![
        parameter("rate", 100.0),
        parameter("width", 64_i64),
        parameter("height", 32_i64),
    ];
    let mut filter = request(DEMO_PACKAGE, "ImageFilter");
    filter.parameters = vec![parameter("threshold", 50_i64)];
    let mut throttle = request(DEMO_PACKAGE, "Throttle");
    throttle.parameters = vec![
        parameter("type", "sensor_msgs/msg/Image"),
        parameter("rate", 50.0),
    ];
    throttle.remap_rules = vec!["input:=image_filtered".into(), "output:=image_slow".into()];
    let mut probe = request(DEMO_PACKAGE, "LatencyProbe");
    probe.parameters = vec![
        parameter("type", "sensor_msgs/msg/Image"),
        parameter("rate", 20.0),
    ];
    probe.remap_rules = vec!["input:=image_slow".into()];
    for wanted in [&probe, &throttle, &filter, &source] {
        let answer = container.call_load(wanted);
        assert!(answer.success, "{answer:?}");
    }
    let seen = |image: &Image| (image.width, image.height, image.data.len());
    let mut got = Vec::new();
    let mut measured = None;
    let done = node.spin_until(
        || {
            got.extend(images.try_iter());
            measured = measured.take().or_else(|| statistics.try_iter().next());
            got.len() >= 3 && measured.is_some()
        },
        TIMEOUT,
    );
    assert!(done, "{} images, {measured:?}", got.len());
    for (image, path) in &got {
        assert_eq!(*path, DeliveryPath::IntraProcess);
        assert_eq!(seen(image), (64, 32, 64 * 32));
        let white = image.data.iter().filter(|pixel| **pixel == 255).count();
        let black = image.data.iter().filter(|pixel| **pixel == 0).count();
        assert!(
            white > 0 && white + black == 64 * 32,
            "{white} white, {black} black"
        );
    }
    let (message, _) = measured.unwrap();
    assert_eq!(message.measurement_source_name, "/latency_probe");
}

#[test]
fn images_go_through_four_components_of_one_process_by_pointer() {
    images_flow(ExecutorKind::Single);
}

#[test]
fn the_same_components_run_on_several_threads_and_on_a_thread_each() {
    images_flow(ExecutorKind::Multi(3));
    images_flow(ExecutorKind::Isolated);
}

#[test]
fn the_same_component_is_composed_statically() {
    let context = Context::with_options(ContextOptions {
        discovery_range: Some(pteros::config::DiscoveryRange::Off),
        ..ContextOptions::default()
    })
    .unwrap();
    let fast = [pteros::parameter::Parameter {
        name: "rate".into(),
        value: 200.0.into(),
    }];
    let options = NodeOptions::default().parameter_overrides(fast);
    let talker = pteros_demo_components::Talker::new(&context, options).unwrap();
    let listener = pteros_demo_components::Listener::new(&context, NodeOptions::default()).unwrap();
    let executor = SingleThreadedExecutor::new(&context);
    executor.add_node(talker.node()).unwrap();
    executor.add_node(listener.node()).unwrap();
    let (_heard, texts) =
        listen::<pteros::interfaces::std_msgs::msg::String>(listener.node(), "chatter");
    let mut first = None;
    executor.spin_until(
        || {
            first = first.take().or_else(|| texts.try_iter().next());
            first.is_some()
        },
        TIMEOUT,
    );
    let (text, path) = first.unwrap();
    assert!(text.data.starts_with("Hello World: "));
    assert_eq!(path, DeliveryPath::IntraProcess);
}

#[test]
fn a_panic_in_a_callback_ends_only_its_component() {
    let container = Running::plain();
    assert!(container.load(MISBEHAVING_PACKAGE, "PanicsLater").success);
    let mut fast = request(DEMO_PACKAGE, "Talker");
    fast.parameters = vec![parameter("rate", 200.0)];
    assert!(container.call_load(&fast).success);
    let node = container.context.create_node("witness").unwrap();
    let publisher = node
        .create_publisher::<Empty>("panic".keep_last(1))
        .unwrap();
    let (_heard, texts) = listen::<pteros::interfaces::std_msgs::msg::String>(&node, "chatter");
    publisher.publish_owned(Empty::default()).unwrap();
    let mut count = 0;
    let goes_on = node.spin_until(
        || {
            count += texts.try_iter().count();
            count >= 5
        },
        TIMEOUT,
    );
    assert!(goes_on);
    assert_eq!(container.list().len(), 2);
    assert!(container.unload(1).success);
}

#[test]
fn a_component_gets_its_own_thread_on_request() {
    let container = Running::plain();
    let is_there = || {
        let threads = std::fs::read_dir("/proc/self/task").unwrap();
        let name = |thread: std::io::Result<std::fs::DirEntry>| {
            std::fs::read_to_string(thread.ok()?.path().join("comm")).ok()
        };
        threads.filter_map(name).any(|name| name.trim() == "alone")
    };
    let mut own = request(DEMO_PACKAGE, "Talker");
    own.extra_arguments = vec![
        parameter("own_thread", true),
        parameter("forward_global_arguments", false),
    ];
    own.node_name = "alone".into();
    let id = container.call_load(&own).unique_id;
    assert!(is_there(), "the thread is named after the node");
    assert!(container.unload(id).success);
    assert!(!is_there());
}
