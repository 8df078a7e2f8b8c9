//! Demos and examples of rclcpp and rclpy, alone and together.

use crate::ros2_programs::PLUG_IN;
use crate::ros2_programs::ros2::Ros2;
use crate::support::Domain;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Programs that run together, in this order: command line, and what it prints.
type Together = &'static [(&'static str, &'static str)];

/// Graphs of one program, or of several that may have different middlewares.
const ALONE: &[Together] = &[
    &[(
        "demo_nodes_py/matched_event_detect",
        "First subscription is connected",
    )],
    &[("demo_nodes_py/introspection", "Result of add_two_ints: 5")],
    &[(
        "demo_nodes_py/use_logger_service",
        "Current logger level: 0",
    )],
    &[(
        "examples_rclpy_executors/composed",
        "I heard: \"Hello World: 1\"",
    )],
    &[(
        "examples_rclpy_executors/callback_group",
        "I heard: \"Hello World: 1\"",
    )],
    &[(
        "examples_rclpy_guard_conditions/trigger_guard_condition",
        "guard callback called shutdown",
    )],
    &[(
        "quality_of_service_demo_py/incompatible_qos durability",
        "Requested incompatible qos - total 1",
    )],
    &[(
        "quality_of_service_demo_py/deadline 600 --publish-for 3000 --pause-for 2000",
        "Requested deadline missed",
    )],
    &[(
        "quality_of_service_demo_py/liveliness 1000 --kill-publisher-after 2000",
        "alive_count_change: -1",
    )],
    &[("composition/manual_composition", "Got result: [5]")],
    &[("composition/linktime_composition", "Got result: [5]")],
    &[(
        "examples_rclcpp_minimal_publisher/publisher_wait_for_all_acked",
        "Publishing: 'Hello, world! 1'",
    )],
    &[(
        "demo_nodes_cpp/matched_event_detect",
        "First subscription is connected",
    )],
    &[("demo_nodes_cpp/parameter_events", "Parameter event")],
    &[("demo_nodes_cpp/set_and_get_parameters", "foo")],
    &[("demo_nodes_cpp/list_parameters", "foo.first")],
    &[("demo_nodes_cpp/one_off_timer", "in one_off_timer callback")],
    &[("demo_nodes_cpp/use_logger_service", "Current logger level")],
    &[(
        "demo_nodes_cpp/even_parameters_node",
        "shows a parameter callback",
    )],
    &[("demo_nodes_cpp/list_parameters_async", "foo.first")],
    &[("demo_nodes_cpp/set_and_get_parameters_async", "foo")],
    &[("demo_nodes_cpp/parameter_events_async", "Parameter event")],
    &[(
        "demo_nodes_cpp/parameter_event_handler",
        "monitoring for the following parameter changes",
    )],
    &[("demo_nodes_cpp/reuse_timer", "resetting one off timer")],
    &[(
        "demo_nodes_cpp/set_parameters_callback",
        "demonstrates the use of parameter callbacks",
    )],
    &[(
        "examples_rclcpp_minimal_timer/timer_lambda",
        "Hello, world!",
    )],
    &[(
        "examples_rclcpp_minimal_timer/timer_member_function",
        "Hello, world!",
    )],
    &[(
        "quality_of_service_demo_py/lifespan 1000 --publish-count 5 --subscribe-after 3000",
        "Listener heard",
    )],
    &[(
        "quality_of_service_demo_py/incompatible_qos deadline",
        "Requested incompatible qos - total 1",
    )],
    &[(
        "quality_of_service_demo_py/incompatible_qos liveliness_policy",
        "Requested incompatible qos - total 1",
    )],
    &[(
        "quality_of_service_demo_py/incompatible_qos liveliness_lease_duration",
        "Requested incompatible qos - total 1",
    )],
    &[(
        "quality_of_service_demo_py/incompatible_qos reliability",
        "Requested incompatible qos - total 1",
    )],
    &[(
        "examples_rclpy_executors/custom_callback_group",
        "Publishing: ",
    )],
];

const PAIRS: &[Together] = &[
    &[
        ("demo_nodes_cpp/talker", ""),
        ("demo_nodes_cpp/listener", "I heard: [Hello World"),
    ],
    &[
        ("demo_nodes_py/talker", ""),
        ("demo_nodes_cpp/listener", "I heard: [Hello World"),
    ],
    &[
        ("demo_nodes_cpp/talker", ""),
        ("demo_nodes_py/listener_serialized", "I heard: \"b'"),
    ],
    &[
        ("demo_nodes_cpp/talker_serialized_message", ""),
        (
            "demo_nodes_cpp/listener_serialized_message",
            "I heard data of length: ",
        ),
    ],
    &[
        ("demo_nodes_py/talker_qos", "requesting incompatible QoS"),
        (
            "demo_nodes_py/listener_qos --reliable",
            "offering incompatible QoS",
        ),
    ],
    &[
        ("demo_nodes_cpp/add_two_ints_server", ""),
        (
            "demo_nodes_cpp/add_two_ints_client",
            "Result of add_two_ints: 5",
        ),
        (
            "demo_nodes_py/add_two_ints_client_async",
            "Result of add_two_ints: 5",
        ),
    ],
    &[
        ("demo_nodes_py/add_two_ints_server", ""),
        (
            "demo_nodes_py/add_two_ints_client",
            "Result of add_two_ints: 5",
        ),
    ],
    &[
        ("demo_nodes_cpp/parameter_blackboard", "ready, and serving"),
        ("demo_nodes_py/async_param_client", "successful: True"),
    ],
    &[
        ("action_tutorials_cpp/fibonacci_action_server", ""),
        ("action_tutorials_py/fibonacci_action_client", "Result: "),
    ],
    &[
        ("action_tutorials_py/fibonacci_action_server", ""),
        (
            "action_tutorials_cpp/fibonacci_action_client",
            "Result received: ",
        ),
    ],
    &[
        ("examples_rclpy_minimal_action_server/server", ""),
        (
            "examples_rclpy_minimal_action_client/client_cancel",
            "Goal successfully canceled",
        ),
    ],
    &[
        ("lifecycle/lifecycle_talker", "on_activate() is called"),
        (
            "lifecycle/lifecycle_listener",
            "Transition from state activating to active",
        ),
        (
            "lifecycle/lifecycle_service_client",
            "has current state active",
        ),
    ],
    &[
        ("examples_rclcpp_minimal_publisher/publisher_lambda", ""),
        (
            "examples_rclcpp_minimal_subscriber/wait_set_subscriber",
            "I heard: 'Hello",
        ),
        (
            "examples_rclcpp_minimal_subscriber/static_wait_set_subscriber",
            "I heard: 'Hello",
        ),
        (
            "examples_rclcpp_minimal_subscriber/time_triggered_wait_set_subscriber",
            "I heard: 'Hello",
        ),
    ],
    &[
        ("demo_nodes_cpp/talker", ""),
        (
            "demo_nodes_cpp/listener_best_effort",
            "I heard: [Hello World",
        ),
    ],
    &[
        ("demo_nodes_cpp/talker_loaned_message", "Publishing: '1"),
        ("demo_nodes_cpp/listener", "I heard: [Hello World"),
    ],
    &[
        ("demo_nodes_cpp/content_filtering_publisher", ""),
        (
            "demo_nodes_cpp/content_filtering_subscriber",
            "I receive an emergency temperature data",
        ),
    ],
    &[
        ("demo_nodes_cpp/introspection_service", ""),
        (
            "demo_nodes_cpp/introspection_client",
            "Result of add_two_ints: 5",
        ),
    ],
    &[
        ("demo_nodes_cpp/add_two_ints_server", ""),
        (
            "demo_nodes_cpp/add_two_ints_client_async",
            "Result of add_two_ints: 5",
        ),
    ],
    &[
        (
            "examples_rclcpp_minimal_publisher/publisher_member_function",
            "Publishing: 'Hello",
        ),
        (
            "examples_rclcpp_minimal_subscriber/subscriber_lambda",
            "I heard: 'Hello",
        ),
        (
            "examples_rclcpp_minimal_subscriber/subscriber_member_function",
            "I heard: 'Hello",
        ),
        (
            "examples_rclcpp_minimal_subscriber/subscriber_not_composable",
            "I heard: 'Hello",
        ),
        (
            "examples_rclcpp_minimal_subscriber/subscriber_member_function_with_topic_statistics",
            "I heard: 'Hello",
        ),
        (
            "examples_rclcpp_minimal_subscriber/subscriber_content_filtering",
            "I heard: 'Hello",
        ),
        (
            "examples_rclpy_minimal_subscriber/subscriber_lambda",
            "I heard: \"Hello",
        ),
        (
            "examples_rclpy_minimal_subscriber/subscriber_member_function",
            "I heard: \"Hello",
        ),
        (
            "examples_rclpy_minimal_subscriber/subscriber_old_school",
            "I heard: \"Hello",
        ),
    ],
    &[
        (
            "examples_rclcpp_minimal_publisher/publisher_not_composable",
            "",
        ),
        (
            "examples_rclcpp_minimal_publisher/publisher_member_function_with_type_adapter",
            "Publishing: 'Hello",
        ),
        (
            "examples_rclcpp_minimal_subscriber/subscriber_member_function_with_type_adapter",
            "I heard: 'Hello",
        ),
    ],
    &[
        (
            "examples_rclcpp_minimal_publisher/publisher_member_function_with_unique_network_flow_endpoints",
            "Publishing",
        ),
        (
            "examples_rclcpp_minimal_subscriber/subscriber_member_function_with_unique_network_flow_endpoints",
            "",
        ),
    ],
    &[
        (
            "examples_rclpy_minimal_publisher/publisher_local_function",
            "Publishing: \"Hello",
        ),
        (
            "examples_rclpy_minimal_publisher/publisher_member_function",
            "Publishing: \"Hello",
        ),
        (
            "examples_rclpy_minimal_publisher/publisher_old_school",
            "Publishing: \"Hello",
        ),
        (
            "examples_rclcpp_minimal_subscriber/subscriber_lambda",
            "I heard: 'Hello",
        ),
    ],
    &[
        ("examples_rclcpp_minimal_service/service_main", ""),
        (
            "examples_rclcpp_minimal_client/client_main",
            "result of 41 + 1 = 42",
        ),
        ("examples_rclpy_minimal_client/client", "for 41 + 1 = 42"),
    ],
    &[
        ("examples_rclpy_minimal_service/service", ""),
        (
            "examples_rclpy_minimal_client/client_async",
            "for 41 + 1 = 42",
        ),
        (
            "examples_rclpy_minimal_client/client_async_callback",
            "for 41 + 1 = 42",
        ),
    ],
    &[
        ("examples_rclpy_minimal_service/service_member_function", ""),
        (
            "examples_rclpy_minimal_client/client_async_member_function",
            "for 41 + 1 = 42",
        ),
        (
            "examples_rclcpp_minimal_client/client_main",
            "result of 41 + 1 = 42",
        ),
    ],
    &[
        (
            "examples_rclcpp_minimal_action_server/action_server_not_composable",
            "",
        ),
        (
            "examples_rclcpp_minimal_action_client/action_client_member_functions",
            "Result received",
        ),
        (
            "examples_rclcpp_minimal_action_client/action_client_not_composable_with_cancel",
            "goal is being canceled",
        ),
    ],
    &[
        (
            "examples_rclcpp_minimal_action_server/action_server_member_functions",
            "",
        ),
        (
            "examples_rclcpp_minimal_action_client/action_client_not_composable",
            "result received",
        ),
        (
            "examples_rclpy_minimal_action_client/client",
            "Goal succeeded!",
        ),
    ],
    &[
        (
            "examples_rclpy_minimal_action_server/server_not_composable",
            "",
        ),
        (
            "examples_rclpy_minimal_action_client/client_not_composable",
            "Goal succeeded!",
        ),
    ],
    &[
        (
            "examples_rclpy_minimal_action_server/server_single_goal",
            "",
        ),
        (
            "examples_rclpy_minimal_action_client/client_asyncio",
            "Goal succeeded!",
        ),
    ],
    &[
        (
            "examples_rclpy_minimal_action_server/server_queue_goals",
            "Received goal request",
        ),
        (
            "examples_rclpy_minimal_action_client/client",
            "Goal succeeded!",
        ),
    ],
    &[
        (
            "examples_rclpy_minimal_action_server/server_defer",
            "Deferring execution",
        ),
        (
            "examples_rclpy_minimal_action_client/client",
            "Goal succeeded!",
        ),
    ],
    &[
        ("examples_rclpy_executors/talker", "Publishing: \"Hello"),
        ("examples_rclpy_executors/listener", "I heard: \"Hello"),
        ("examples_rclpy_executors/custom_executor", "I heard: \""),
    ],
    &[
        (
            "quality_of_service_demo_py/qos_overrides_talker",
            "Publishing: ",
        ),
        (
            "quality_of_service_demo_py/qos_overrides_listener",
            "I heard: [",
        ),
    ],
    &[
        ("topic_monitor/data_publisher probe --period 0.2", ""),
        ("topic_monitor/topic_monitor", "Alive"),
    ],
    &[
        (
            "tf2_ros/static_transform_publisher --x 1 --frame-id world --child-frame-id robot",
            "",
        ),
        (
            "tf2_ros/tf2_echo world robot",
            "Translation: [1.000, 0.000, 0.000]",
        ),
    ],
];

/// Runs programs together; the first one on `first`, the others on `rest`.
fn run_together(ros2: &Ros2, domain: &Domain, first: &str, rest: &str, programs: Together) -> bool {
    let names = programs
        .iter()
        .map(|(line, _)| line.split(' ').next().unwrap());
    for name in names {
        if !ros2.has(name) {
            println!("left out: {name} is not installed");
            return false;
        }
    }
    let mut running = Vec::new();
    for (at, (line, _)) in programs.iter().enumerate() {
        let rmw = if at == 0 { first } else { rest };
        running.push(ros2.start(domain, rmw, line));
    }
    for (program, (_, part)) in running.iter_mut().zip(programs) {
        program.expect(part);
    }
    running
        .into_iter()
        .for_each(|program| drop(program.interrupt()));
    true
}

/// Runs all of them, and names those that failed at the end.
fn run_all(
    ros2: &Ros2,
    domain: &Domain,
    graphs: impl Iterator<Item = (&'static str, &'static str, Together)>,
) {
    let (mut ran, mut failed) = (0, Vec::new());
    for (first, rest, graph) in graphs {
        let run = AssertUnwindSafe(|| run_together(ros2, domain, first, rest, graph));
        match catch_unwind(run) {
            Ok(is_installed) => ran += usize::from(is_installed),
            Err(_) => failed.push(format!("{first}, {rest}: {graph:?}")),
        }
    }
    println!("{ran} graphs ran");
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn programs_run_unchanged_on_the_plug_in() {
    let Some(ros2) = Ros2::find() else { return };
    let domain = Domain::new();
    let graphs = ALONE.iter().chain(PAIRS);
    run_all(
        &ros2,
        &domain,
        graphs.map(|graph| (PLUG_IN, PLUG_IN, *graph)),
    );
}

/// A node in a global variable is destroyed after the main thread's thread-local
/// values.
#[test]
fn a_node_in_a_global_variable_is_destroyed_at_exit() {
    let Some(ros2) = Ros2::find() else { return };
    let server = "examples_rclcpp_minimal_action_server/action_server_member_functions";
    let client = "examples_rclcpp_minimal_action_client/action_client_not_composable_with_feedback";
    if !ros2.has(server) || !ros2.has(client) {
        println!("left out: {server} or {client} is not installed");
        return;
    }
    let domain = Domain::new();
    let _server = ros2.start(&domain, PLUG_IN, server);
    let mut client = ros2.start(&domain, PLUG_IN, client);
    client.expect("Next number in sequence received");
    let text = client.interrupt();
    assert!(!text.contains("Error in destruction"), "{text}");
}

#[test]
fn programs_of_different_middlewares_work_together() {
    let Some(ros2) = Ros2::find() else { return };
    let domain = Domain::new();
    let both_ways = |other| {
        let ways = [(PLUG_IN, other), (other, PLUG_IN)];
        ways.into_iter()
            .flat_map(|(first, rest)| PAIRS.iter().map(move |graph| (first, rest, *graph)))
    };
    run_all(&ros2, &domain, ros2.others().flat_map(both_ways));
}
