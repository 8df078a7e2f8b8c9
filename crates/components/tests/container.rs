//! Components come and go by ROS 2's services; whoever misbehaves is reported
//! and harms nobody else.

mod support;

use pteros::interfaces::rcl_interfaces::msg::Parameter;
use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::log::Severity;
use pteros::parameter::ParameterValue;
use pteros_component::ContainerOptions;
use std::time::Duration;
use support::{BAD, BOX, Running, request};

#[test]
fn components_are_loaded_listed_and_unloaded_by_service() {
    let container = Running::plain();
    assert_eq!(container.list(), []);
    let talker = container.load(BOX, "Talker");
    assert!(talker.success, "{talker:?}");
    assert_eq!(
        (talker.unique_id, talker.full_node_name.as_str()),
        (1, "/talker")
    );
    let mut wanted = request(BOX, "Listener");
    wanted.node_name = "ear".into();
    wanted.node_namespace = "/left".into();
    wanted.remap_rules = vec!["chatter:=/talk".into()];
    let listener = container.ask(&wanted);
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
    let again = container.load(BOX, "Talker");
    assert_eq!(again.unique_id, 3, "numbers are not used again");
}

#[test]
fn a_component_without_intra_process_communication_shares_no_values() {
    let container = Running::plain();
    for shares in [true, false] {
        let mut wanted = request(BOX, "Talker");
        wanted.extra_arguments = vec![Parameter {
            name: "use_intra_process_comms".into(),
            value: ParameterValue::from(shares).into_message(),
        }];
        wanted.parameters = vec![Parameter {
            name: "rate".into(),
            value: ParameterValue::from(50.0).into_message(),
        }];
        let loaded = container.ask(&wanted);
        assert!(loaded.success, "{loaded:?}");
        let node = container.context.node("ears").unwrap();
        let ear = || node.create_polled_subscription::<Text>("chatter", 10);
        let (left, right) = (ear().unwrap(), ear().unwrap());
        let first = left.take_timeout(support::PATIENCE).unwrap();
        // The other may have come a moment later, and missed that.
        let same = std::iter::from_fn(|| right.take_timeout(support::PATIENCE))
            .find(|sample| sample.info().sequence >= first.info().sequence);
        let mut both = (first, same.unwrap());
        while both.0.info().sequence < both.1.info().sequence {
            both.0 = left.take_timeout(support::PATIENCE).unwrap();
        }
        assert_eq!(*both.0, *both.1);
        assert_eq!(std::ptr::eq(&*both.0, &*both.1), shares);
        assert!(container.unload(loaded.unique_id).success);
    }
}

#[test]
fn a_request_may_tell_its_node_what_to_log() {
    let container = Running::plain();
    let mut wanted = request(BOX, "Listener");
    wanted.log_level = 40;
    assert!(container.ask(&wanted).success);
    // One of the same name has the same logger.
    let other = container.context.node("listener").unwrap();
    assert_eq!(other.logger().level(), Severity::Error);
    wanted.log_level = 41;
    let said = container.refusal(&wanted);
    assert!(
        said.contains("log_level") && said.contains("\"41\""),
        "{said}"
    );
}

#[test]
fn whoever_fails_or_panics_in_its_constructor_is_reported_and_the_rest_goes_on() {
    let container = Running::plain();
    assert!(container.load(BOX, "Listener").success);
    let said = container.refusal(&request(BAD, "Refuses"));
    assert_eq!(
        said,
        "component \"misbehaving::Refuses\": its constructor failed: the device /dev/arm is not \
         there; plug it in"
    );
    let said = container.refusal(&request(BAD, "Panics"));
    assert!(
        said.contains("its constructor panicked: wheel 3 is square"),
        "{said}"
    );
    let nodes = container.context.graph().nodes();
    assert!(
        nodes.iter().all(|node| node.name != "misbehaving"),
        "{nodes:?}"
    );
    assert_eq!(container.list().len(), 1);
}

#[test]
fn whoever_hangs_in_its_constructor_is_given_up_and_dropped_when_it_comes_back() {
    let container = Running::new(ContainerOptions {
        load_timeout: Duration::from_millis(100),
        index: support::index(),
        ..ContainerOptions::default()
    });
    let hold = std::env::temp_dir().join(format!("hold_{}", std::process::id()));
    std::fs::write(&hold, "").unwrap();
    let mut wanted = request(BAD, "Hangs");
    wanted.node_name = hold.file_name().unwrap().to_str().unwrap().into();
    let said = container.refusal(&wanted);
    assert!(said.contains("has not come back within 100ms"), "{said}");
    assert!(
        container.load(BOX, "Talker").success,
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
    assert!(graph.wait_until(support::PATIENCE, is_gone));
    assert_eq!(container.list(), [(1, "/talker".into())]);
}

#[test]
fn an_unknown_number_a_destructor_that_panics_and_a_node_that_is_kept_are_told() {
    let container = Running::plain();
    let unknown = container.unload(7);
    assert!(!unknown.success);
    assert_eq!(
        unknown.error_message,
        "No node found with unique_id: 7; loaded are: none"
    );
    let id = container.load(BAD, "PanicsAtTheEnd").unique_id;
    let answer = container.unload(id);
    assert!(!answer.success);
    assert!(
        answer
            .error_message
            .ends_with("its destructor panicked: and stay out"),
        "{answer:?}"
    );
    let id = container.load(BAD, "Leaks").unique_id;
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
