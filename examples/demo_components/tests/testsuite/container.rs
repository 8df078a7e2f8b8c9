//! Component containers: components are loaded and unloaded by ROS 2's services. A
//! misbehaving component is reported and does not affect others.

use crate::support::{DEMO_PACKAGE, MISBEHAVING_PACKAGE, Running, assert_contains, index, request};
use pteros::NamedQosExt;
use pteros::interfaces::rcl_interfaces::msg::Parameter;
use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::log::Severity;
use pteros::parameter::ParameterValue;
use pteros_container::ContainerOptions;
use std::time::Duration;

#[test]
fn components_are_loaded_listed_and_unloaded_by_service() {
    let container = Running::plain();
    assert_eq!(container.list(), []);
    let talker = container.load(DEMO_PACKAGE, "Talker");
    assert!(talker.success, "{talker:?}");
    assert_eq!(
        (talker.unique_id, talker.full_node_name.as_str()),
        (1, "/talker")
    );
    let mut wanted = request(DEMO_PACKAGE, "Listener");
    wanted.node_name = "ear".into();
    wanted.node_namespace = "/left".into();
    wanted.remap_rules = vec!["chatter:=/talk".into()];
    let listener = container.call_load(&wanted);
    assert_eq!(
        (listener.unique_id, listener.full_node_name.as_str()),
        (2, "/left/ear")
    );
    let both = [(1, "/talker".into()), (2, "/left/ear".into())];
    assert_eq!(container.list(), both);
    let topics = container.context.graph().topics();
    let topics: Vec<_> = topics.iter().map(|topic| topic.name.as_str()).collect();
    assert!(
        topics.contains(&"/chatter") && topics.contains(&"/talk"),
        "{topics:?}"
    );
    assert!(container.unload(1).success);
    assert_eq!(container.list(), both[1..]);
    let again = container.load(DEMO_PACKAGE, "Talker");
    assert_eq!(again.unique_id, 3, "numbers are not used again");
}

#[test]
fn a_component_without_intra_process_communication_shares_no_values() {
    let container = Running::plain();
    for shares in [true, false] {
        let mut wanted = request(DEMO_PACKAGE, "Talker");
        wanted.extra_arguments = vec![Parameter {
            name: "use_intra_process_comms".into(),
            value: ParameterValue::from(shares).into_message(),
        }];
        wanted.parameters = vec![Parameter {
            name: "rate".into(),
            value: ParameterValue::from(50.0).into_message(),
        }];
        let loaded = container.call_load(&wanted);
        assert!(loaded.success, "{loaded:?}");
        let node = container.context.create_node("ears").unwrap();
        let ear = || node.create_polled_subscription::<Text>("chatter".keep_last(10));
        let (left, right) = (ear().unwrap(), ear().unwrap());
        let first = left.take_timeout(crate::support::TIMEOUT).unwrap();
        // The other message may arrive later.
        let same = std::iter::from_fn(|| right.take_timeout(crate::support::TIMEOUT))
            .find(|sample| sample.info().sequence >= first.info().sequence);
        let mut both = (first, same.unwrap());
        while both.0.info().sequence < both.1.info().sequence {
            both.0 = left.take_timeout(crate::support::TIMEOUT).unwrap();
        }
        assert_eq!(*both.0, *both.1);
        assert_eq!(std::ptr::eq(&*both.0, &*both.1), shares);
        assert!(container.unload(loaded.unique_id).success);
    }
}

#[test]
fn a_load_request_sets_the_log_level_of_its_node() {
    let container = Running::plain();
    let mut wanted = request(DEMO_PACKAGE, "Listener");
    wanted.log_level = 40;
    assert!(container.call_load(&wanted).success);
    // A node of the same name has the same logger.
    let other = container.context.create_node("listener").unwrap();
    assert_eq!(other.logger().level(), Severity::Error);
    wanted.log_level = 41;
    let error = container.load_error(&wanted);
    assert_contains(&error, "log_level: log level 41: unknown; use debug, info");
}

#[test]
fn a_constructor_that_fails_or_panics_is_reported_and_other_components_go_on() {
    let container = Running::plain();
    assert!(container.load(DEMO_PACKAGE, "Listener").success);
    let error = container.load_error(&request(MISBEHAVING_PACKAGE, "Refuses"));
    assert_eq!(
        error,
        "component \"misbehaving::Refuses\": its constructor failed: the device /dev/arm is not \
         there; plug it in"
    );
    let error = container.load_error(&request(MISBEHAVING_PACKAGE, "Panics"));
    assert_contains(&error, "its constructor panicked: wheel 3 is square");
    let nodes = container.context.graph().nodes();
    assert!(
        nodes.iter().all(|node| node.name != "misbehaving"),
        "{nodes:?}"
    );
    assert_eq!(container.list().len(), 1);
}

#[test]
fn a_constructor_that_hangs_times_out_and_its_late_component_is_dropped() {
    let container = Running::new(ContainerOptions {
        load_timeout: Duration::from_millis(100),
        index: crate::support::index(),
        ..ContainerOptions::default()
    });
    let hold = std::env::temp_dir().join(format!("hold_{}", std::process::id()));
    std::fs::write(&hold, "").unwrap();
    let mut wanted = request(MISBEHAVING_PACKAGE, "Hangs");
    wanted.node_name = hold.file_name().unwrap().to_str().unwrap().into();
    let error = container.load_error(&wanted);
    assert!(error.contains("did not return within 100ms"), "{error}");
    assert!(
        container.load(DEMO_PACKAGE, "Talker").success,
        "others are loaded meanwhile"
    );
    std::fs::remove_file(&hold).unwrap();
    let graph = container.context.graph();
    let is_gone = || {
        graph
            .nodes()
            .iter()
            .all(|node| node.name != wanted.node_name)
    };
    assert!(graph.wait_until(crate::support::TIMEOUT, is_gone));
    assert_eq!(container.list(), [(1, "/talker".into())]);
}

#[test]
fn unload_errors_report_unknown_ids_panics_and_nodes_that_are_still_held() {
    let container = Running::plain();
    let unknown = container.unload(7);
    assert!(!unknown.success);
    assert_eq!(
        unknown.error_message,
        "No node found with unique_id: 7; loaded are: none"
    );
    let id = container
        .load(MISBEHAVING_PACKAGE, "PanicsAtTheEnd")
        .unique_id;
    let answer = container.unload(id);
    assert!(!answer.success);
    assert!(
        answer
            .error_message
            .ends_with("its destructor panicked: and stay out"),
        "{answer:?}"
    );
    let id = container.load(MISBEHAVING_PACKAGE, "Leaks").unique_id;
    let answer = container.unload(id);
    assert!(!answer.success);
    assert!(
        answer
            .error_message
            .contains("its node /misbehaving is still in the graph"),
        "{answer:?}"
    );
    assert_eq!(container.list(), []);
}

#[test]
fn built_in_nodes_stand_in_for_components_of_missing_packages() {
    let container = Running::new(ContainerOptions {
        index: index(),
        substitutes: pteros_nodes::COMPONENTS,
        ..ContainerOptions::default()
    });
    let parameter = |name: &str, value: ParameterValue| Parameter {
        name: name.into(),
        value: value.into_message(),
    };
    let mut relay = request("topic_tools", "RelayNode");
    relay.node_name = "copy".into();
    relay.parameters = vec![parameter("input_topic", "/scan".into())];
    let loaded = container.call_load(&relay);
    assert_eq!(loaded.full_node_name, "/copy", "{loaded:?}");
    let mut fixed = request("tf2_ros", "StaticTransformBroadcasterNode");
    fixed.parameters = vec![
        parameter("translation.x", 0.5.into()),
        parameter("frame_id", "base".into()),
        parameter("child_frame_id", "laser".into()),
    ];
    let loaded = container.call_load(&fixed);
    assert!(loaded.success, "{loaded:?}");
    let topics = container.context.graph().topics();
    assert!(topics.iter().any(|topic| topic.name == "/tf_static"));
    fixed.parameters.truncate(1);
    fixed.parameters.extend([
        parameter("frame_id", "base".into()),
        parameter("child_frame_id", "base".into()),
    ]);
    let same = container.load_error(&fixed);
    assert_contains(&same, "child_frame_id cannot equal frame_id");
    relay.parameters.clear();
    assert_contains(&container.load_error(&relay), "input_topic");
    let unknown = container.load_error(&request("topic_tools", "Nothing"));
    assert_contains(&unknown, "topic_tools");
    assert!(container.unload(1).success);
}
