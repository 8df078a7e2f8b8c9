//! topic_tools: relay, throttle, drop, delay and mux of serialized messages.

use std::time::Duration;

use pteros::interfaces::std_msgs::msg::UInt8;
use pteros::msg::dynamic::{DynamicMessage, DynamicService};
use pteros::msg::library::InterfaceLibrary;
use pteros::msg::schema::InterfaceKind;
use pteros::prelude::*;

use crate::{Started, TIMEOUT, start, try_start};

/// Publishers and the subscription of a tool's topics, matched.
struct Ends {
    inputs: Vec<Publisher<UInt8>>,
    output: Subscription<UInt8>,
}

impl Ends {
    fn new(started: &Started, inputs: &[&str], output: &str) -> Self {
        let node = &started.test;
        let inputs = inputs
            .iter()
            .map(|topic| node.create_publisher::<UInt8>(*topic).unwrap());
        let ends = Self {
            inputs: inputs.collect(),
            output: node
                .create_polled_subscription(output.keep_last(100))
                .unwrap(),
        };
        assert!(
            ends.inputs[0].wait_for_matched(1, TIMEOUT),
            "the tool subscribes"
        );
        assert!(
            ends.output.wait_for_matched(1, TIMEOUT),
            "the tool publishes"
        );
        ends
    }

    fn publish(&self, input: usize, numbers: impl IntoIterator<Item = u8>) {
        for data in numbers {
            self.inputs[input].publish_owned(UInt8 { data }).unwrap();
        }
    }

    fn take(&self) -> u8 {
        self.output.take_timeout(TIMEOUT).expect("a message").data
    }
}

#[test]
fn a_relay_passes_on_every_message() {
    let started = start("topic_tools", "relay", &["/in", "/out"]);
    let ends = Ends::new(&started, &["/in"], "/out");
    ends.publish(0, 1..=3);
    assert_eq!([ends.take(), ends.take(), ends.take()], [1, 2, 3]);
}

#[test]
fn a_drop_leaves_out_so_many_of_so_many() {
    let started = start("topic_tools", "drop", &["/in", "2", "3"]);
    let ends = Ends::new(&started, &["/in"], "/in_drop");
    ends.publish(0, 1..=9);
    assert_eq!([ends.take(), ends.take(), ends.take()], [3, 6, 9]);
}

#[test]
fn a_throttle_keeps_rate_and_bytes() {
    // One message in 1000 s, and none at first, as upstream.
    let started = start(
        "topic_tools",
        "throttle",
        &["messages", "/in", "0.001", "/slow"],
    );
    let ends = Ends::new(&started, &["/in"], "/slow");
    ends.publish(0, 1..=3);
    let none = ends.output.take_timeout(Duration::from_millis(100));
    assert!(none.is_none());
    // A message has 5 bytes: header and one. The third is over 10.
    let line = ["bytes", "/in", "10", "1000", "/few"];
    let started = start("topic_tools", "throttle", &line);
    let ends = Ends::new(&started, &["/in"], "/few");
    ends.publish(0, 1..=5);
    assert_eq!([ends.take(), ends.take()], [1, 2]);
    assert!(
        ends.output
            .take_timeout(Duration::from_millis(100))
            .is_none()
    );
}

#[test]
fn a_delay_keeps_the_order() {
    let started = start("topic_tools", "delay", &["/in", "0.2"]);
    let ends = Ends::new(&started, &["/in"], "/in_delay");
    let before = started.test.now();
    ends.publish(0, 1..=3);
    assert_eq!([ends.take(), ends.take(), ends.take()], [1, 2, 3]);
    assert!(started.test.now().since(before) >= Duration::from_millis(200));
}

#[test]
fn a_mux_switches_by_its_service() {
    let started = start("topic_tools", "mux", &["/out", "/one", "/two"]);
    let ends = Ends::new(&started, &["/one", "/two"], "/out");
    ends.publish(0, [1]);
    assert_eq!(ends.take(), 1);
    let mut library = InterfaceLibrary::default();
    let text = "string topic\n---\nstring prev_topic\nbool success\n";
    let package = "topic_tools_interfaces";
    library.insert_text(package, InterfaceKind::Service, "MuxSelect", text, "test");
    library.merge(pteros::interfaces::library());
    let ty = DynamicService::new(&library, "topic_tools_interfaces/srv/MuxSelect").unwrap();
    let options = pteros::ClientOptions::<DynamicService>::of_type(&ty, "/mux/select");
    let client = started.test.create_client(options).unwrap();
    assert!(client.wait_for_service(TIMEOUT));
    let select = |topic: &str| {
        let mut request = DynamicMessage::new(ty.request());
        request.set("topic", topic).unwrap();
        client.call(&request, TIMEOUT).unwrap().to_json()
    };
    assert_eq!(select("/three"), r#"{"prev_topic":"/one","success":false}"#);
    assert_eq!(select("two"), r#"{"prev_topic":"/one","success":true}"#);
    assert!(ends.inputs[1].wait_for_matched(1, TIMEOUT));
    ends.publish(1, [2]);
    assert_eq!(ends.take(), 2);
}

#[test]
fn wrong_arguments_name_themselves() {
    for (tool, line, reason) in [
        ("relay", &[][..], "input_topic"),
        (
            "throttle",
            &["often", "/in"],
            "Unknown throttle type \"often\"",
        ),
        (
            "throttle",
            &["messages", "/in", "x"],
            "msgs_per_sec = x: it is a number",
        ),
        (
            "throttle",
            &["messages", "/in", "0"],
            "msgs_per_sec is a number above 0",
        ),
        ("drop", &["/in", "1"], "Y"),
        ("mux", &["/out"], "mux takes arguments"),
        ("relay", &["a", "b", "c"], "too many arguments"),
    ] {
        let problem = try_start("topic_tools", tool, line).err().expect(tool);
        assert!(problem.contains(reason), "{tool} {line:?}: {problem}");
    }
}
