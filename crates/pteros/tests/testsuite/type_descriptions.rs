//! Type descriptions: a node describes the types that it uses.

use std::time::Duration;

use pteros::args::Arguments;
use pteros::interfaces::type_description_interfaces::srv::{
    GetTypeDescription, GetTypeDescriptionRequest, GetTypeDescriptionResponse,
};
use pteros::interfaces::{example_interfaces, geometry_msgs, sensor_msgs};
use pteros::msg::hash::TypeHash;
use pteros::msg::message::{Message, Service as _};
use pteros::prelude::*;

const TIMEOUT: Duration = Duration::from_secs(20);

fn node_with_service(context: &Context, name: &str) -> Node {
    let options = NodeOptions::new(name).start_type_description_service(true);
    context.create_node(options).unwrap()
}

fn request_description(node: &Node, client_node: &Node, hash: &str) -> GetTypeDescriptionResponse {
    let service = format!("{}/get_type_description", node.fully_qualified_name());
    let client = client_node
        .create_client::<GetTypeDescription>(&service)
        .unwrap();
    let request = GetTypeDescriptionRequest {
        type_name: "any".into(),
        type_hash: hash.into(),
        include_type_sources: true,
    };
    let mut call = client.call_async(&request).unwrap();
    let mut answer = None;
    let answered = node.spin_until(
        || {
            answer = call.take().map(Result::unwrap);
            answer.is_some()
        },
        TIMEOUT,
    );
    assert!(answered, "{service} does not answer");
    answer.unwrap().into_inner()
}

#[test]
fn types_of_endpoints_are_described_and_others_are_not() {
    let context = Context::with_options(ContextOptions::local(81)).unwrap();
    let node = node_with_service(&context, "driver");
    let client_node = context.create_node("asker").unwrap();
    let _publisher = node
        .create_publisher::<geometry_msgs::msg::TwistStamped>("cmd")
        .unwrap();
    let twist = geometry_msgs::msg::TwistStamped::TYPE_HASH.to_string();
    let told = request_description(&node, &client_node, &twist);
    assert!(told.successful, "{}", told.failure_reason);
    let described = &told.type_description;
    assert_eq!(
        described.type_description.type_name,
        "geometry_msgs/msg/TwistStamped"
    );
    let referenced = &described.referenced_type_descriptions;
    let names: Vec<_> = referenced.iter().map(|ty| ty.type_name.as_str()).collect();
    let all = [
        "builtin_interfaces/msg/Time",
        "geometry_msgs/msg/Twist",
        "geometry_msgs/msg/Vector3",
        "std_msgs/msg/Header",
    ];
    assert_eq!(names, all);
    assert_eq!(told.type_sources.len(), 5);
    let source = &told.type_sources[0].raw_file_contents;
    assert!(
        source.ends_with("\nstd_msgs/Header header\nTwist twist\n"),
        "{source}"
    );
    let image = sensor_msgs::msg::Image::TYPE_HASH.to_string();
    let told = request_description(&node, &client_node, &image);
    assert!(!told.successful && told.failure_reason.contains(&image));
    let told = request_description(&node, &client_node, "RIHS01_12");
    assert!(
        told.failure_reason.contains("64 hexadecimal digits"),
        "{}",
        told.failure_reason
    );
}

#[test]
fn services_are_described_by_their_own_hash_and_by_those_of_their_parts() {
    type Add = example_interfaces::srv::AddTwoInts;
    let context = Context::with_options(ContextOptions::local(82)).unwrap();
    let node = node_with_service(&context, "adder");
    let client_node = context.create_node("asker").unwrap();
    let _service = node
        .create_service::<Add>("add", |_| {
            example_interfaces::srv::AddTwoIntsResponse::default()
        })
        .unwrap();
    let request = <Add as pteros::msg::message::Service>::Request::TYPE_HASH;
    for (hash, name) in [
        (Add::TYPE_HASH, "example_interfaces/srv/AddTwoInts"),
        (request, "example_interfaces/srv/AddTwoInts_Request"),
    ] as [(TypeHash, &str); 2]
    {
        let told = request_description(&node, &client_node, &hash.to_string());
        assert!(told.successful, "{}", told.failure_reason);
        assert_eq!(told.type_description.type_description.type_name, name);
    }
}

fn offers_descriptions(node: &Node) -> bool {
    let name = format!("{}/get_type_description", node.fully_qualified_name());
    let services = node.context().graph().services();
    services.iter().any(|service| service.name == name)
}

#[test]
fn the_first_node_of_a_context_offers_the_service_and_another_one_after_it() {
    let context = Context::with_options(ContextOptions::local(84)).unwrap();
    let first = context.create_node("first").unwrap();
    let second = context.create_node("second").unwrap();
    assert_eq!(
        [&first, &second].map(offers_descriptions),
        [true, false],
        "one service describes the types of all nodes"
    );
    let _publisher = second
        .create_publisher::<geometry_msgs::msg::TwistStamped>("cmd")
        .unwrap();
    let twist = geometry_msgs::msg::TwistStamped::TYPE_HASH.to_string();
    assert!(request_description(&first, &second, &twist).successful);
    drop(first);
    let third = context.create_node("third").unwrap();
    assert!(offers_descriptions(&third));
}

#[test]
fn the_program_starts_the_service_and_a_parameter_goes_before_it() {
    let words = "--ros-args -p quiet:start_type_description_service:=false -p asked:start_type_description_service:=true";
    let (arguments, _) = Arguments::parse(words.split_whitespace()).unwrap();
    let context = Context::with_options(ContextOptions {
        arguments,
        ..ContextOptions::local(83)
    })
    .unwrap();
    let quiet = node_with_service(&context, "quiet");
    let loud = node_with_service(&context, "loud");
    let asked = context.create_node("asked").unwrap();
    let plain = context.create_node("plain").unwrap();
    let serving: Vec<_> = [&quiet, &loud, &asked, &plain]
        .into_iter()
        .filter(|node| offers_descriptions(node))
        .map(Node::name)
        .collect();
    assert_eq!(serving, ["loud", "asked"]);
    let value = loud.parameter("start_type_description_service").unwrap();
    assert_eq!(value, true.into());
}
