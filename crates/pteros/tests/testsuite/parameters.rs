//! Parameters: declared, read and set in the program and by other nodes.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pteros::args::Arguments;
use pteros::interfaces::rcl_interfaces::{msg, srv};
use pteros::parameter::{
    Parameter, ParameterDescriptor, ParameterError, ParameterType, ParameterValue,
    SetParameterError,
};
use pteros::prelude::*;

const TIMEOUT: Duration = Duration::from_secs(10);

fn context(words: &[&str]) -> Context {
    let words = ["--ros-args"].iter().chain(words);
    let (arguments, _) = Arguments::parse(words.copied()).unwrap();
    Context::with_options(ContextOptions {
        arguments,
        ..ContextOptions::local(16)
    })
    .unwrap()
}

/// Calls a service of a node in the same context, which is spun meanwhile.
fn call_service<S: pteros::msg::message::Service>(
    node: &Node,
    name: &str,
    request: S::Request,
) -> S::Response
where
    S::Response: Clone,
{
    let asker = node.context().create_node("asker").unwrap();
    call_from::<S>(&asker, node, name, request)
}

fn call_from<S: pteros::msg::message::Service>(
    asker: &Node,
    node: &Node,
    name: &str,
    request: S::Request,
) -> S::Response
where
    S::Response: Clone,
{
    let name = format!("{}/{name}", node.fully_qualified_name());
    let client = asker.create_client::<S>(&name).unwrap();
    assert!(client.wait_for_service(TIMEOUT));
    let mut call = client.call_async(&request).unwrap();
    let mut answer = None;
    node.spin_until(
        || {
            answer = call.take().map(|answer| (*answer.unwrap()).clone());
            answer.is_some()
        },
        TIMEOUT,
    );
    answer.expect("an answer")
}

fn set(node: &Node, name: &str, value: impl Into<ParameterValue>) -> (bool, String) {
    let request = srv::SetParametersRequest {
        parameters: vec![Parameter::new(name, value).into_message()],
    };
    let answer = call_service::<srv::SetParameters>(node, "set_parameters", request);
    let [result] = answer.results.as_slice() else {
        panic!("{answer:?}")
    };
    (result.successful, result.reason.clone())
}

#[test]
fn a_handle_follows_values_set_by_others() {
    let node = context(&[]).create_node("wheels").unwrap();
    let speed = node.declare_parameter("speed", 1.5).unwrap();
    let name = node.declare_parameter("name", "left").unwrap();
    assert_eq!((speed.value(), name.value()), (1.5, "left".to_owned()));
    assert_eq!(set(&node, "speed", 2.5), (true, String::new()));
    assert_eq!(set(&node, "name", "right"), (true, String::new()));
    assert_eq!((speed.value(), name.value()), (2.5, "right".to_owned()));
    node.set_parameter("speed", 0.5).unwrap();
    assert_eq!(speed.value(), 0.5);
    let names = vec!["speed".to_owned(), "name".to_owned()];
    let request = srv::GetParametersRequest { names };
    let answer = call_service::<srv::GetParameters>(&node, "get_parameters", request);
    let values: Vec<_> = answer
        .values
        .iter()
        .map(ParameterValue::from_message)
        .collect();
    assert_eq!(values, [Some(0.5.into()), Some("right".into())]);
}

#[test]
fn overrides_precede_defaults_and_options_precede_the_command_line() {
    let context = context(&[
        "-p",
        "speed:=3",
        "-p",
        "wheels:name:=both",
        "-p",
        "other:n:=1",
    ]);
    let options = NodeOptions::new("wheels").parameter_overrides([
        Parameter::new("frame", "odom"),
        Parameter::new("name", "mine"),
    ]);
    let node = context.create_node(options).unwrap();
    // An integer without loss as a double becomes one.
    assert_eq!(node.declare_parameter("speed", 1.5).unwrap().value(), 3.0);
    assert_eq!(
        node.declare_parameter("name", "none").unwrap().value(),
        "mine"
    );
    assert_eq!(
        node.declare_parameter("frame", "map").unwrap().value(),
        "odom"
    );
    assert_eq!(node.declare_parameter("n", 7).unwrap().value(), 7);
}

#[test]
fn a_wrong_override_is_an_error_that_names_its_source() {
    let node = context(&["-p", "speed:=fast"])
        .create_node("wheels")
        .unwrap();
    let error = node.declare_parameter("speed", 1.5).unwrap_err();
    assert_eq!(
        error.to_string(),
        "node \"/wheels\": parameter 'speed' = \"fast\", from -p speed:=fast: Wrong parameter type, \
         parameter {speed} is of type {double}, setting it to {string} is not allowed."
    );
    assert!(!node.has_parameter("speed"));
    let required = node.declare_required_parameter::<i64>("count", ParameterDescriptor::new());
    assert!(matches!(required, Err(ParameterError::NoValue { .. })));
    let again = node.declare_parameter("frame", "map").unwrap();
    let error = node.declare_parameter("frame", "map").unwrap_err();
    assert!(matches!(error, ParameterError::AlreadyDeclared { .. }));
    assert_eq!(again.value(), "map");
}

#[test]
fn rejections_have_the_texts_of_rclcpp() {
    let node = context(&[]).create_node("wheels").unwrap();
    let descriptor = ParameterDescriptor::new().float_range(0.0, 2.0, 0.5);
    let speed = node
        .declare_parameter_with("speed", 1.5, descriptor)
        .unwrap();
    let fixed = ParameterDescriptor::new().read_only();
    node.declare_parameter_with("fixed", 1, fixed).unwrap();
    let no = |reason: &str| (false, reason.to_owned());
    assert_eq!(
        set(&node, "speed", "fast"),
        no(
            "Wrong parameter type, parameter {speed} is of type {double}, setting it to {string} is not allowed."
        )
    );
    assert_eq!(
        set(&node, "speed", 3.0),
        no("Parameter {speed} doesn't comply with floating point range.")
    );
    assert_eq!(
        set(&node, "speed", 1.7),
        no("Parameter {speed} doesn't comply with floating point range.")
    );
    assert_eq!(
        set(&node, "fixed", 2),
        no("parameter 'fixed' cannot be set because it is read-only")
    );
    assert_eq!(
        set(&node, "none", 2),
        no("parameter 'none' cannot be set because it was not declared")
    );
    assert_eq!(set(&node, "", 2), no("parameter name must not be empty"));
    assert_eq!(
        set(&node, "speed", ParameterValue::NotSet),
        no("cannot undeclare a statically typed parameter")
    );
    // An integer in range is accepted for a double.
    assert_eq!(set(&node, "speed", 2), (true, String::new()));
    assert_eq!(speed.value(), 2.0);
    let request = srv::SetParametersAtomicallyRequest {
        parameters: vec![
            Parameter::new("speed", 0.5).into_message(),
            Parameter::new("none", 1).into_message(),
        ],
    };
    let answer =
        call_service::<srv::SetParametersAtomically>(&node, "set_parameters_atomically", request);
    assert!(!answer.result.successful);
    let reason = "One or more parameters were not declared before setting";
    assert_eq!(answer.result.reason, reason);
    assert_eq!(speed.value(), 2.0, "all or nothing");
}

#[test]
fn pre_set_on_set_and_post_set_callbacks_run() {
    let node = context(&[]).create_node("wheels").unwrap();
    let width = node.declare_parameter("width", 1).unwrap();
    let area = node.declare_parameter("area", 1).unwrap();
    let received = Arc::new(Mutex::new(Vec::new()));
    let of = |parameters: &[Parameter], name: &str| {
        let found = parameters.iter().find(|p| p.name == name)?;
        match found.value {
            ParameterValue::Integer(value) => Some(value),
            _ => None,
        }
    };
    let _pre = node.add_pre_set_parameters_callback(move |parameters| {
        if let Some(width) = of(parameters, "width") {
            parameters.push(Parameter::new("area", width * width));
        }
    });
    let judge =
        node.add_on_set_parameters_callback(move |parameters| match of(parameters, "area") {
            Some(area) if area > 100 => Err(format!("an area of {area} is too much")),
            _ => Ok(()),
        });
    let listener = received.clone();
    let _post = node.add_post_set_parameters_callback(move |parameters| {
        let names = parameters.iter().map(|parameter| parameter.name.clone());
        listener.lock().unwrap().extend(names);
    });
    assert_eq!(set(&node, "width", 5), (true, String::new()));
    assert_eq!((width.value(), area.value()), (5, 25));
    assert_eq!(*received.lock().unwrap(), ["width", "area"]);
    let refused = set(&node, "width", 11);
    assert_eq!(refused, (false, "an area of 121 is too much".to_owned()));
    assert_eq!((width.value(), area.value()), (5, 25));
    drop(judge);
    assert!(set(&node, "width", 11).0);
    assert_eq!(area.value(), 121);
}

#[test]
fn a_callback_that_sets_parameters_gets_an_error() {
    let node = context(&[]).create_node("wheels").unwrap();
    node.declare_parameter("width", 1).unwrap();
    let refused = Arc::new(AtomicUsize::new(0));
    let (inner, count) = (node.clone(), refused.clone());
    let callback = node.add_post_set_parameters_callback(move |_| {
        let error = inner.set_parameter("width", 3).unwrap_err();
        let ParameterError::Set { source, .. } = error else {
            panic!("{error}")
        };
        assert_eq!(source, SetParameterError::InCallback);
        count.fetch_add(1, Ordering::Relaxed);
    });
    node.set_parameter("width", 2).unwrap();
    assert_eq!(refused.load(Ordering::Relaxed), 1);
    drop(callback);
    node.set_parameter("width", 4).unwrap();
}

#[test]
fn dynamically_typed_parameters_can_change_type_and_be_deleted() {
    let node = context(&[]).create_node("wheels").unwrap();
    let any = ParameterValue::from(1);
    let handle = node.declare_parameter("any", any).unwrap();
    assert_eq!(set(&node, "any", "text"), (true, String::new()));
    assert_eq!(handle.value(), "text".into());
    assert_eq!(
        set(&node, "any", ParameterValue::NotSet),
        (true, String::new())
    );
    assert!(!node.has_parameter("any"));
    assert_eq!(
        set(&node, "any", 1).1,
        "parameter 'any' cannot be set because it was not declared"
    );
    let options = NodeOptions::new("free").allow_undeclared_parameters(true);
    let free = node.context().create_node(options).unwrap();
    assert_eq!(free.parameter("new").unwrap(), ParameterValue::NotSet);
    assert!(set(&free, "new", 1.5).0);
    assert_eq!(free.parameter("new").unwrap(), 1.5.into());
    assert!(set(&free, "new", true).0);
    free.undeclare_parameter("new").unwrap();
    assert!(!free.has_parameter("new"));
}

#[test]
fn overrides_are_declared_automatically_if_enabled() {
    let options = NodeOptions::new("wheels")
        .automatically_declare_parameters_from_overrides(true)
        .parameter_overrides([Parameter::new("a.b", 1), Parameter::new("c", true)]);
    let node = context(&["-p", "d:=x"]).create_node(options).unwrap();
    assert_eq!(node.parameter_names("a"), ["a.b"]);
    assert_eq!(node.parameter("d").unwrap(), "x".into());
    assert!(set(&node, "c", "other type").0);
}

#[test]
fn lists_types_and_descriptions_are_served() {
    let node = context(&[]).create_node("arm").unwrap();
    let speed = ParameterDescriptor::new()
        .description("m/s")
        .float_range(0.0, 2.0, 0.1);
    node.declare_parameter_with("joint.speed", 1.0, speed)
        .unwrap();
    node.declare_parameter("joint.limit.low", vec![1_i64])
        .unwrap();
    node.declare_parameter("jointed", true).unwrap();
    let list = |prefixes: &[&str], depth| {
        let prefixes = prefixes.iter().map(|&p| p.to_owned()).collect();
        let request = srv::ListParametersRequest { prefixes, depth };
        let result = call_service::<srv::ListParameters>(&node, "list_parameters", request).result;
        let own = |name: &String| name.starts_with("joint");
        (
            result.names.into_iter().filter(own).collect::<Vec<_>>(),
            result.prefixes,
        )
    };
    let all = ["joint.limit.low", "joint.speed", "jointed"];
    let (names, prefixes) = list(&[], 0);
    assert_eq!(names, all);
    assert!(prefixes.iter().any(|prefix| prefix == "joint.limit"));
    assert_eq!(list(&["joint"], 0).0, all[..2]);
    assert_eq!(list(&["joint"], 1).0, all[1..2]);
    assert_eq!(list(&[], 1).0, all[2..]);
    assert_eq!(list(&["jointed"], 1).0, all[2..]);
    let request = srv::GetParameterTypesRequest {
        names: vec!["joint.limit.low".into(), "jointed".into()],
    };
    let types = call_service::<srv::GetParameterTypes>(&node, "get_parameter_types", request).types;
    let numbers = [ParameterType::IntegerArray, ParameterType::Bool].map(ParameterType::number);
    assert_eq!(types, numbers);
    let request = srv::DescribeParametersRequest {
        names: vec!["joint.speed".into()],
    };
    let answer = call_service::<srv::DescribeParameters>(&node, "describe_parameters", request);
    let [described] = answer.descriptors.as_slice() else {
        panic!("{answer:?}")
    };
    assert_eq!(
        (described.r#type, described.description.as_str()),
        (3, "m/s")
    );
    assert_eq!(described.floating_point_range.len(), 1);
    // One unknown name leaves the response empty, as in rclcpp.
    let request = srv::GetParametersRequest {
        names: vec!["jointed".into(), "none".into()],
    };
    assert!(
        call_service::<srv::GetParameters>(&node, "get_parameters", request)
            .values
            .is_empty()
    );
}

#[test]
fn changes_are_published_on_parameter_events() {
    let context = context(&[]);
    let listener = context.create_node("listener").unwrap();
    let events = listener
        .create_polled_subscription::<msg::ParameterEvent>(
            "/parameter_events".qos(QosProfile::parameter_events()),
        )
        .unwrap();
    let node = context.create_node("wheels").unwrap();
    let next = || loop {
        let event = events.take_timeout(TIMEOUT).expect("an event");
        let names = |list: &[msg::Parameter]| {
            let names: Vec<_> = list.iter().map(|p| p.name.clone()).collect();
            names.join(" ")
        };
        let of_every_node = ["use_sim_time", "start_type_description_service"];
        let is_own = !of_every_node.contains(&names(&event.new_parameters).as_str());
        if event.node == "/wheels" && is_own {
            assert!(event.stamp.sec > 1_500_000_000);
            break [
                &event.new_parameters,
                &event.changed_parameters,
                &event.deleted_parameters,
            ]
            .map(|list| names(list));
        }
    };
    node.declare_parameter("any", ParameterValue::from(1))
        .unwrap();
    assert_eq!(next(), ["any", "", ""]);
    node.declare_parameter("speed", 1.0).unwrap();
    assert_eq!(next(), ["speed", "", ""]);
    let both = vec![
        Parameter::new("speed", 2.0),
        Parameter::new("any", ParameterValue::NotSet),
    ];
    node.set_parameters_atomically(both).unwrap();
    assert_eq!(next(), ["", "speed", "any"]);
    assert!(node.set_parameter("speed", "fast").is_err());
    node.set_parameter("speed", 3.0).unwrap();
    assert_eq!(next(), ["", "speed", ""]);
}

#[test]
fn a_node_without_parameter_services_has_no_endpoints_for_them() {
    let context = context(&[]);
    let counts = |options: NodeOptions| {
        let options = options.start_type_description_service(false);
        let node = context.create_node(options).unwrap();
        let graph = context.graph();
        let name = node.fully_qualified_name();
        let nodes = graph.nodes();
        let info = nodes.iter().find(|n| n.fully_qualified_name() == name);
        graph.endpoints_of_node(info.unwrap()).len()
    };
    assert_eq!(counts(NodeOptions::new("full")), 13);
    let lean = NodeOptions::new("lean")
        .start_parameter_services(false)
        .start_parameter_event_publisher(false);
    assert_eq!(counts(lean), 0);
}

#[test]
fn qos_is_overridden_by_parameters_where_the_program_lets_them() {
    use pteros::interfaces::std_msgs::msg::String as Text;
    use pteros::parameter::{QosOverridingOptions, QosPolicyKind};
    use pteros::qos::{HistoryPolicy, ReliabilityPolicy};
    use pteros::{PublisherOptions, SubscriptionOptions};
    let node = context(&[
        "-p",
        "qos_overrides./chatter.publisher.depth:=3",
        "-p",
        "qos_overrides./chatter.publisher.reliability:=best_effort",
        "-p",
        "qos_overrides./chatter.publisher.deadline:=100000000",
        "-p",
        "qos_overrides./chatter.subscription_slow.depth:=7",
        "-p",
        "qos_overrides./chatter.subscription_bad.reliability:=perhaps",
        "-p",
        "qos_overrides./plain.publisher.avoid_ros_namespace_conventions:=true",
    ])
    .create_node("talker")
    .unwrap();
    let options = PublisherOptions::new("chatter".keep_last(10))
        .qos_overrides(QosOverridingOptions::with_default_policies());
    let publisher = node.create_publisher::<Text>(options).unwrap();
    let qos = publisher.qos();
    assert_eq!(qos.history, HistoryPolicy::KeepLast(3));
    assert_eq!(qos.reliability, ReliabilityPolicy::BestEffort);
    assert_eq!(qos.deadline, None, "it is none of those that may");
    let depth = "qos_overrides./chatter.publisher.depth";
    assert_eq!(node.parameter(depth).unwrap(), 3.into());
    assert!(node.describe_parameter(depth).unwrap().read_only);
    let slow =
        QosOverridingOptions::new([QosPolicyKind::Depth, QosPolicyKind::Deadline]).id("slow");
    let options = SubscriptionOptions::<Text>::new("chatter".keep_last(10)).qos_overrides(slow);
    let subscription = node.create_polled_subscription(options).unwrap();
    assert_eq!(subscription.qos().history, HistoryPolicy::KeepLast(7));
    let deadline = node.parameter("qos_overrides./chatter.subscription_slow.deadline");
    assert_eq!(deadline.unwrap(), 0.into());
    let bad = QosOverridingOptions::with_default_policies().id("bad");
    let options = SubscriptionOptions::<Text>::new("chatter".keep_last(10)).qos_overrides(bad);
    let error = node.create_polled_subscription(options).unwrap_err();
    let error = error.to_string();
    assert!(
        error.contains("subscription_bad.reliability' = \"perhaps\", from -p"),
        "{error}"
    );
    assert!(error.contains("use reliable, best_effort"), "{error}");
    let plain = QosOverridingOptions::new([QosPolicyKind::AvoidRosNamespaceConventions]);
    let options = PublisherOptions::new("plain".keep_last(10)).qos_overrides(plain);
    let _plain = node.create_publisher::<Text>(options).unwrap();
    let names = node.context().graph().dds_topics();
    assert!(
        names.iter().any(|topic| topic.name == "/plain"),
        "{names:?}"
    );
    let never = QosOverridingOptions::default().validation_callback(|_| Err("never".into()));
    let options = SubscriptionOptions::<Text>::new("chatter".keep_last(10)).qos_overrides(never);
    assert!(node.create_polled_subscription(options).is_err());
}

#[test]
fn thread_parameters_apply_to_the_spinning_thread() {
    use pteros::thread::allowed_cpus;
    use pteros::{executors::IsolatedExecutor, thread::ThreadSettings};
    let before = allowed_cpus().unwrap();
    let first = before.numbers()[0];
    let context = context(&["-p", &format!("wheels:thread.cpus:={first}")]);
    let node = context.create_node("wheels").unwrap();
    assert_eq!(
        node.parameter("thread.cpus").unwrap(),
        i64::try_from(first).unwrap().into()
    );
    assert!(!node.has_parameter("thread.priority"), "nobody gave it");
    let executor = IsolatedExecutor::new(&context);
    executor.add_node(&node, ThreadSettings::default()).unwrap();
    let (sender, receiver) = std::sync::mpsc::channel();
    let _timer = node
        .create_timer(Duration::from_millis(1), {
            let context = context.clone();
            move || {
                let _ = sender.send(allowed_cpus().unwrap());
                context.shutdown();
            }
        })
        .unwrap();
    executor.spin().unwrap();
    assert_eq!(receiver.recv().unwrap().numbers(), [first]);
    assert_eq!(allowed_cpus().unwrap(), before, "of that thread alone");
}

#[test]
fn invalid_thread_parameters_are_errors() {
    for (said, says) in [
        ("thread.priority:=200", "a number from 1 to 99"),
        ("thread.priority:=high", "a number from 1 to 99"),
        ("thread.cpus:=many", "is not a CPU list"),
        ("thread.lock_memory:=3", "neither true nor false"),
    ] {
        let error = context(&["-p", said])
            .create_node("wheels")
            .unwrap_err()
            .to_string();
        assert!(
            error.contains(says) && error.contains("-p thread."),
            "{error}"
        );
    }
}

/// A client of another process asked for a million names at once, and the node took
/// 70 MB for the answer.
#[test]
fn a_request_for_too_many_parameters_is_refused_undecoded() {
    let (server, client) = (context(&[]), context(&[]));
    let node = server.create_node("many").unwrap();
    let handle = node.declare_parameter("speed", 1.0).unwrap();
    let asking = client.create_node("asking").unwrap();
    let names = |count: usize| vec!["speed".to_string(); count];
    let describe = |count| {
        let request = srv::DescribeParametersRequest {
            names: names(count),
        };
        call_from::<srv::DescribeParameters>(&asking, &node, "describe_parameters", request)
            .descriptors
            .len()
    };
    assert_eq!(describe(16_384), 16_384);
    assert_eq!(describe(16_385), 0);
    let request = srv::SetParametersRequest {
        parameters: vec![msg::Parameter::default(); 20_000],
    };
    let results =
        call_from::<srv::SetParameters>(&asking, &node, "set_parameters", request).results;
    let [result] = &results[..] else {
        panic!("{} results", results.len())
    };
    assert!(
        !result.successful && result.reason.contains("20000"),
        "{}",
        result.reason
    );
    assert_eq!(handle.value(), 1.0);
}

#[test]
fn parameters_of_a_map_have_the_prefix_and_their_overrides() {
    let context = context(&["-p", "gains.i:=0.5"]);
    let node = context.create_node("wheels").unwrap();
    let gains = node
        .declare_parameters("gains", [("p", 1.5), ("i", 0.1)])
        .unwrap();
    let values: Vec<_> = gains
        .iter()
        .map(|gain| (gain.name(), gain.value()))
        .collect();
    assert_eq!(values, [("gains.p", 1.5), ("gains.i", 0.5)]);
    node.declare_parameters("", [("name", ParameterValue::from("left"))])
        .unwrap();
    assert_eq!(node.parameter("name").unwrap(), "left".into());
    // The first error ends it; what is before stays declared.
    let error = node.declare_parameters("gains", [("d", 0.0), ("p", 2.0), ("f", 1.0)]);
    assert!(error.unwrap_err().to_string().contains("gains.p"));
    assert!(node.has_parameter("gains.d") && !node.has_parameter("gains.f"));
}
