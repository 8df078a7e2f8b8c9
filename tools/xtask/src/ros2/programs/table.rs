//! The Python programs of ros2/demos and ros2/examples: which two of them talk, and the
//! lines that prove it.
//!
//! A line of the receiver is the proof: in its private network nobody else could have
//! sent what it prints. Programs whose partner is a program of C++ or a person with the
//! `ros2` command have one of `partners.py` instead.

/// Where the code of a program is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Code {
    /// An entry point of a package of the sources.
    EntryPoint {
        package: &'static str,
        name: &'static str,
    },
    /// A function of `partners.py`.
    Partner(&'static str),
}

/// How a program ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// By itself, with status 0.
    Itself,
    /// By an exception of its own, with status 1.
    Exception,
    /// By SIGINT, after the lines were seen.
    Interrupt,
}

/// A program, and what it must print.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    pub code: Code,
    pub arguments: &'static [&'static str],
    /// Parts of lines, in this order.
    pub lines: &'static [&'static str],
    pub end: End,
}

/// Programs that run together.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    pub name: &'static str,
    pub first: Program,
    /// `None`: the program talks to itself, and runs on the wheel alone.
    pub second: Option<Program>,
    /// An interface package that an installation of ROS 2 may lack. Both programs run on
    /// the wheel then.
    pub interfaces: Option<&'static str>,
}

impl Pair {
    pub fn programs(&self) -> impl Iterator<Item = &Program> {
        std::iter::once(&self.first).chain(&self.second)
    }
}

const fn entry_point(
    package: &'static str,
    name: &'static str,
    lines: &'static [&'static str],
) -> Program {
    Program {
        code: Code::EntryPoint { package, name },
        arguments: &[],
        lines,
        end: End::Interrupt,
    }
}

const fn demo(name: &'static str, lines: &'static [&'static str]) -> Program {
    entry_point("demo_nodes_py", name, lines)
}

const fn qos(name: &'static str, lines: &'static [&'static str]) -> Program {
    entry_point("quality_of_service_demo_py", name, lines)
}

const fn executors(name: &'static str, lines: &'static [&'static str]) -> Program {
    entry_point("examples_rclpy_executors", name, lines)
}

const fn partner(name: &'static str, lines: &'static [&'static str]) -> Program {
    Program {
        code: Code::Partner(name),
        arguments: &[],
        lines,
        end: End::Itself,
    }
}

impl Program {
    const fn with(self, arguments: &'static [&'static str]) -> Self {
        Self { arguments, ..self }
    }

    const fn raises(self) -> Self {
        let end = End::Exception;
        Self { end, ..self }
    }

    const fn ends(self) -> Self {
        let end = End::Itself;
        Self { end, ..self }
    }
}

const fn pair(name: &'static str, first: Program, second: Program) -> Pair {
    Pair {
        name,
        first,
        second: Some(second),
        interfaces: None,
    }
}

const fn alone(name: &'static str, first: Program) -> Pair {
    Pair {
        name,
        first,
        second: None,
        interfaces: None,
    }
}

const SENT_ONE: &str = "Publishing: \"Hello World: ";
const SENT: &[&str] = &[SENT_ONE];
const BRACKETS: &str = "I heard: [Hello World: ";
const QUOTES: &str = "I heard: \"Hello World: ";
const IN_BRACKETS: &[&str] = &[BRACKETS, BRACKETS];
const IN_QUOTES: &[&str] = &[QUOTES, QUOTES];
const REQUEST: &[&str] = &["Incoming request", "a: 41 b: 1"];
const SUM: &[&str] = &["Result of add_two_ints: for 41 + 1 = 42"];
/// The Fibonacci numbers of the action's goal of order 10. The first feedback may overtake
/// the answer to the goal, since it is another topic.
const GOAL_SENT: &[&str] = &[
    "Goal accepted :)",
    "Received feedback: array('i', [0, 1, 1, 2])",
    "Goal succeeded! Result: array('i', [0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55])",
];
const GOAL_DONE: &[&str] = &[
    "Executing goal...",
    "Publishing feedback: array('i', [0, 1, 1])",
    "Returning result: array('i', [0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55])",
];

const fn publisher(name: &'static str) -> Program {
    entry_point("examples_rclpy_minimal_publisher", name, SENT)
}

const fn subscriber(name: &'static str) -> Program {
    entry_point("examples_rclpy_minimal_subscriber", name, IN_QUOTES)
}

const fn service(name: &'static str) -> Program {
    entry_point("examples_rclpy_minimal_service", name, REQUEST)
}

const fn client(name: &'static str) -> Program {
    entry_point("examples_rclpy_minimal_client", name, SUM).ends()
}

const fn action_server(name: &'static str, lines: &'static [&'static str]) -> Program {
    entry_point("examples_rclpy_minimal_action_server", name, lines)
}

const fn action_client(name: &'static str, lines: &'static [&'static str]) -> Program {
    entry_point("examples_rclpy_minimal_action_client", name, lines).ends()
}

/// Those that take longest come first.
pub const PAIRS: &[Pair] = &[
    pair(
        "server-client_asyncio",
        action_server("server", GOAL_DONE),
        action_client(
            "client_asyncio",
            &["Goal accepted :)", "unfinished: 0", "A) result ", "B) result "],
        ),
    ),
    pair(
        "server_not_composable-client_not_composable",
        action_server("server_not_composable", GOAL_DONE),
        action_client("client_not_composable", GOAL_SENT),
    ),
    pair(
        "server_queue_goals-client",
        action_server("server_queue_goals", GOAL_DONE),
        action_client("client", GOAL_SENT),
    ),
    pair(
        "server_single_goal-client",
        action_server("server_single_goal", GOAL_DONE),
        action_client("client", GOAL_SENT),
    ),
    Pair {
        interfaces: Some("action_tutorials_interfaces"),
        ..pair(
            "fibonacci_action_server-fibonacci_action_client",
            entry_point(
                "action_tutorials_py",
                "fibonacci_action_server",
                &["Executing goal...", "Feedback: array('i', [0, 1, 1])"],
            ),
            entry_point(
                "action_tutorials_py",
                "fibonacci_action_client",
                &[
                    "Goal accepted :)",
                    "Received feedback: array('i', [0, 1, 1, 2])",
                    "Result: array('i', [0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55])",
                ],
            )
            .ends(),
        )
    },
    pair(
        "server_defer-client_cancel",
        action_server(
            "server_defer",
            &["Deferring execution...", "Received cancel request"],
        ),
        action_client(
            "client_cancel",
            &["Goal accepted :)", "Canceling goal", "Goal successfully canceled"],
        ),
    ),
    pair(
        "talker-listener",
        demo("talker", SENT),
        demo("listener", IN_BRACKETS),
    ),
    pair(
        "talker_qos-listener_qos",
        demo("talker_qos", &["Best effort talker", SENT_ONE]),
        demo(
            "listener_qos",
            &["Best effort listener", BRACKETS, BRACKETS],
        )
        .with(&["-n", "2"])
        .ends(),
    ),
    pair(
        "talker_qos-listener_qos.reliable",
        demo("talker_qos", &["Reliable talker", SENT_ONE]).with(&["--reliable"]),
        demo(
            "listener_qos",
            &["Reliable listener", BRACKETS, BRACKETS],
        )
        .with(&["--reliable", "-n", "2"])
        .ends(),
    ),
    pair(
        "talker-listener_serialized",
        demo("talker", SENT),
        demo("listener_serialized", &["Hello World: "]),
    ),
    pair(
        "add_two_ints_server-add_two_ints_client",
        demo("add_two_ints_server", &["Incoming request", "a: 2 b: 3"]),
        demo("add_two_ints_client", &["Result of add_two_ints: 5"]).ends(),
    ),
    pair(
        "add_two_ints_server-add_two_ints_client_async",
        demo("add_two_ints_server", &["Incoming request", "a: 2 b: 3"]),
        demo("add_two_ints_client_async", &["Result of add_two_ints: 5"]).ends(),
    ),
    pair(
        "async_param_client-blackboard",
        demo(
            "async_param_client",
            &[
                "Setting parameters:",
                "    string_parameter:",
                "        successful: True",
                "Listing Parameters:",
                "    - int_parameter",
                "Getting parameters:",
                "    - string_parameter: Fee Fi Fo Fum",
                "Loading parameters:",
                "        successful: True",
                "Deleting parameters:",
                "    string_parameter:",
                "        successful: True",
            ],
        )
        .ends(),
        partner("blackboard", &["set int_parameter 10", "set string_parameter None"]),
    ),
    pair(
        "set_parameters_callback-parameters",
        demo("set_parameters_callback", &[]),
        partner(
            "parameters",
            &["successful True", "event param1 1.5", "param1 1.5 param2 4.0"],
        ),
    ),
    pair(
        "introspection-events",
        demo("introspection", &["Incoming request", "Result of add_two_ints: 5"]),
        partner(
            "service_events",
            &["event 0 with 2 + 3", "event 1 with 2 + 3", "event 2 with 5", "event 3 with 5"],
        ),
    ),
    alone(
        "matched_event_detect",
        demo(
            "matched_event_detect",
            &[
                "First subscription is connected.",
                "The changed number of connected subscription is 1 and current number of connected subscription is 2",
                "The changed number of connected subscription is -1 and current number of connected subscription is 1",
                "Last subscription is disconnected.",
                "First publisher is connected.",
                "The changed number of connected publisher is 1 and current number of connected publisher is 2",
                "The changed number of connected publisher is -1 and current number of connected publisher is 1",
                "Last publisher is disconnected.",
            ],
        )
        .ends(),
    ),
    alone(
        "use_logger_service",
        demo(
            "use_logger_service",
            &[
                "Output 1 with INFO logger level.",
                "Current logger level: 0",
                "Output 2 with DEBUG logger level.",
                "Current logger level: 10",
                "Output 3 with WARN logger level.",
                "Current logger level: 30",
                "Output 4 with ERROR logger level.",
                "Current logger level: 40",
            ],
        )
        .ends(),
    ),
    pair(
        "data_publisher-topic_monitor",
        entry_point("topic_monitor", "data_publisher", &["Publishing: \""]),
        entry_point(
            "topic_monitor",
            "topic_monitor",
            &["Subscribing to topic: /topic1_data", "/topic1_data: ", "/topic1_data: Alive"],
        ),
    ),
    pair(
        "lifecycle_talker-lifecycle",
        entry_point(
            "lifecycle_py",
            "lifecycle_talker",
            &[
                "on_configure() is called.",
                "on_activate() is called.",
                "Lifecycle publisher is active. Publishing: [Lifecycle HelloWorld #",
                "on_deactivate() is called.",
                "on_cleanup() is called.",
                "on_shutdown() is called.",
            ],
        ),
        partner(
            "lifecycle",
            &[
                "state inactive",
                "event unconfigured configuring",
                "state active",
                "heard Lifecycle HelloWorld #",
                "state finalized",
            ],
        ),
    ),
    pair(
        "deadline-deadline_listener",
        qos(
            "deadline",
            &["Listener heard: [Talker says ", "Offered deadline missed - total 1 delta 1"],
        )
        .with(&["800", "--publish-for", "3000", "--pause-for", "3000"]),
        partner("deadline_listener", &["heard Talker says ", "requested deadline missed"]),
    ),
    pair(
        "incompatible_qos-incompatible_listener",
        qos("incompatible_qos", &["Offered incompatible qos - total 2"])
            .with(&["durability"])
            .ends(),
        partner("incompatible_listener", &["requested incompatible qos DURABILITY"]),
    ),
    pair(
        "lifespan-lifespan_listener",
        qos("lifespan", &["Publishing: 'Talker says 9'", "Listener starting up"])
            .with(&["1200", "--subscribe-after", "5500"]),
        partner("lifespan_listener", &["first heard without the expired ones"]),
    ),
    pair(
        "liveliness-liveliness_listener",
        qos(
            "liveliness",
            &["Liveliness changed event:", "  alive_count: 1", "  alive_count: 0"],
        )
        .with(&["1000", "--kill-publisher-after", "4000"]),
        partner("liveliness_listener", &["alive 1", "heard Talker says ", "alive 0"]),
    ),
    // Its callback of the publisher's event reads fields that the event does not have, and
    // ends it, with ROS 2's rclpy too. What its own listener prints then is left to chance.
    pair(
        "liveliness-liveliness_listener.manual",
        qos(
            "liveliness",
            &["Liveliness changed event:", "  alive_count: 1"],
        )
        .with(&["1000", "--policy", "MANUAL_BY_TOPIC", "--kill-publisher-after", "4000"])
        .raises(),
        partner(
            "liveliness_listener",
            &["alive 1", "heard Talker says ", "alive 0 not alive 1"],
        )
        .with(&["manual"]),
    ),
    pair(
        "message_lost_listener-images",
        qos(
            "message_lost_listener",
            &["I heard an Image. Message single trip latency: ["],
        ),
        partner("images", &["matched"]),
    ),
    pair(
        "qos_overrides_talker-qos_overrides_listener",
        qos("qos_overrides_talker", SENT).with(&[
            "--ros-args",
            "-p",
            "qos_overrides./qos_overrides_chatter.publisher.reliability:=best_effort",
        ]),
        qos("qos_overrides_listener", IN_BRACKETS).with(&[
            "--ros-args",
            "-p",
            "qos_overrides./qos_overrides_chatter.subscription.reliability:=best_effort",
        ]),
    ),
    pair(
        "publisher_old_school-subscriber_old_school",
        publisher("publisher_old_school"),
        subscriber("subscriber_old_school"),
    ),
    pair(
        "publisher_local_function-subscriber_lambda",
        publisher("publisher_local_function"),
        subscriber("subscriber_lambda"),
    ),
    pair(
        "publisher_member_function-subscriber_member_function",
        publisher("publisher_member_function"),
        subscriber("subscriber_member_function"),
    ),
    pair(
        "pointcloud_publisher-clouds",
        entry_point("examples_rclpy_pointcloud_publisher", "pointcloud_publisher", &[]),
        partner("clouds", &["cloud of 10000 points from -2.0 to 2.0"]),
    ),
    pair("service-client", service("service"), client("client")),
    pair(
        "service-client_async",
        service("service"),
        client("client_async"),
    ),
    pair(
        "service_member_function-client_async_member_function",
        service("service_member_function"),
        client("client_async_member_function"),
    ),
    pair(
        "service_member_function-client_async_callback",
        service("service_member_function"),
        client("client_async_callback"),
    ),
    pair(
        "executors.talker-listener",
        executors("talker", SENT),
        executors("listener", IN_QUOTES),
    ),
    pair(
        "callback_group-listener",
        executors("callback_group", &[SENT_ONE, QUOTES]),
        executors("listener", IN_QUOTES),
    ),
    pair(
        "composed-listener",
        executors("composed", &[SENT_ONE, QUOTES]),
        executors("listener", IN_QUOTES),
    ),
    pair(
        "custom_callback_group-listener",
        executors("custom_callback_group", SENT),
        executors("listener", IN_QUOTES),
    ),
    pair(
        "custom_executor-emergency_stop",
        executors("custom_executor", &["I heard: \"stop\""]),
        partner("emergency_stop", &["matched", "heard Hello World: "]),
    ),
    alone(
        "trigger_guard_condition",
        entry_point(
            "examples_rclpy_guard_conditions",
            "trigger_guard_condition",
            &[
                "waiting for 'spin_once' to finish...",
                "timer callback triggered guard condition",
                "guard callback called shutdown",
                "...'spin_once' finished!",
            ],
        )
        .ends(),
    ),
];

/// The pair of a name.
pub fn find(name: &str) -> Option<&'static Pair> {
    PAIRS.iter().find(|pair| pair.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_has_a_name_of_its_own_and_a_line_that_proves_something() {
        for (index, pair) in PAIRS.iter().enumerate() {
            assert!(!pair.name.contains([' ', '/']), "{}", pair.name);
            let same = PAIRS.iter().position(|other| other.name == pair.name);
            assert_eq!(same, Some(index), "{} is there twice", pair.name);
            let last = pair.second.as_ref().unwrap_or(&pair.first);
            assert!(!last.lines.is_empty(), "{}", pair.name);
        }
    }
}
