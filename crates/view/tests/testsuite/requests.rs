//! Requests of viewers: parameters, services, publishing, files, the graph, statistics.

use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use pteros::NamedQosExt;
use pteros::interfaces::example_interfaces::srv::{
    AddTwoInts, AddTwoIntsRequest, AddTwoIntsResponse,
};
use pteros::interfaces::geometry_msgs::msg::{Twist, TwistStamped};
use pteros::interfaces::rcl_interfaces::msg::ParameterEvent;
use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::msg::cdr::{from_payload, to_payload};
use pteros::parameter::{Parameter, ParameterValue};
use pteros::qos::{QosProfile, Representation};
use pteros_test_support::folder::Folder;
use pteros_view::ViewOptions;
use serde_json::{Value, json};

use crate::viewer::{PATIENCE, Received, Robot, Viewer, allow_all};

/// Asks until the node is known.
fn parameters(viewer: &mut Viewer, names: &[&str]) -> Value {
    loop {
        viewer.send(&json!({ "op": "getParameters", "parameterNames": names, "id": "7" }));
        let answer = viewer.text("parameterValues");
        assert_eq!(answer["id"], "7");
        if answer["parameters"]
            .as_array()
            .is_some_and(|all| !all.is_empty())
        {
            return answer["parameters"].clone();
        }
    }
}

#[test]
fn a_viewer_may_only_look_unless_it_is_allowed_more() {
    let robot = Robot::start(|_| {});
    robot.node.declare_parameter("speed", 1.0).unwrap();
    let mut viewer = robot.viewer();
    let capabilities = viewer.info["capabilities"].clone();
    assert_eq!(
        capabilities,
        json!([
            "connectionGraph",
            "parameters",
            "parametersSubscribe",
            "assets"
        ])
    );
    let speed = json!([{ "name": "/robot.speed", "value": 2.0 }]);
    let topic =
        json!([{ "id": 1, "topic": "/x", "encoding": "cdr", "schemaName": "std_msgs/String" }]);
    for request in [
        json!({ "op": "setParameters", "parameters": speed }),
        json!({ "op": "advertise", "channels": topic }),
    ] {
        viewer.send(&request);
        let status = viewer.text("status");
        assert_eq!(status["level"], 2);
        assert!(
            status["message"].as_str().unwrap().contains("--allow"),
            "{status}"
        );
    }
    let mut call = vec![2];
    call.extend([1_u32, 9, 0].iter().flat_map(|number| number.to_le_bytes()));
    viewer.send_frame(call);
    let failure = viewer.text("serviceCallFailure");
    assert!(
        failure["message"]
            .as_str()
            .unwrap()
            .contains("--allow services"),
        "{failure}"
    );
    let values = parameters(&mut viewer, &["/robot.speed"]);
    assert_eq!(
        values,
        json!([{ "name": "/robot.speed", "value": 1.0, "type": "float64" }])
    );
}

#[test]
fn parameters_are_read_and_set() {
    let robot = Robot::start(allow_all);
    let speed = robot.node.declare_parameter("speed", 1.0).unwrap();
    robot.node.declare_parameter("name", "a").unwrap();
    let mut viewer = robot.viewer();
    let all = parameters(&mut viewer, &[]).to_string();
    assert!(
        all.contains("/robot.speed") && all.contains("/robot.name"),
        "{all}"
    );
    // A browser writes 2.0 as 2.
    let values = json!([{ "name": "/robot.speed", "value": 2 }]);
    viewer.send(&json!({ "op": "setParameters", "parameters": values, "id": "8" }));
    let answer = viewer.text("parameterValues");
    let expected = json!([{ "name": "/robot.speed", "value": 2.0, "type": "float64" }]);
    assert_eq!(
        (&answer["parameters"], &answer["id"]),
        (&expected, &json!("8"))
    );
    assert!((speed.value() - 2.0).abs() < f64::EPSILON);
    let wrong = json!([{ "name": "/robot.speed", "value": "fast" }]);
    viewer.send(&json!({ "op": "setParameters", "parameters": wrong }));
    let status = viewer.text("status");
    assert!(
        status["message"].as_str().unwrap().contains("/robot.speed"),
        "{status}"
    );
}

/// The rows of parameter updates up to this one.
fn updates_until(viewer: &mut Viewer, last: &Value) -> Vec<Value> {
    let mut rows = Vec::new();
    while rows.last() != Some(last) {
        let update = viewer.text("parameterValues");
        rows.extend(update["parameters"].as_array().unwrap().iter().cloned());
    }
    rows
}

#[test]
fn parameter_changes_are_pushed_to_viewers_that_want_them() {
    let robot = Robot::start(|options| {
        options.filter = std::sync::Arc::new(|name| !name.starts_with("/secret"));
    });
    let topic = "/parameter_events".qos(QosProfile::parameter_events());
    let publisher = robot.node.create_publisher::<ParameterEvent>(topic);
    let publisher = publisher.unwrap();
    let (mut one, mut all) = (robot.viewer(), robot.viewer());
    one.send(&json!({ "op": "subscribeParameterUpdates", "parameterNames": ["/robot.speed"] }));
    all.send(&json!({ "op": "subscribeParameterUpdates", "parameterNames": [] }));
    for viewer in [&mut one, &mut all] {
        // Refused at once, behind the request before it.
        viewer.send(&json!({ "op": "subscribe", "subscriptions": [{}] }));
        viewer.text("status");
    }
    assert!(publisher.wait_for_matched(1, PATIENCE));
    let set = |node: &str, name: &str, value: ParameterValue| {
        let event = ParameterEvent {
            node: node.into(),
            changed_parameters: vec![Parameter::new(name, value).into_message()],
            ..ParameterEvent::default()
        };
        publisher.publish(&event).unwrap();
    };
    set("/secret", "key", "x".into());
    set("/robot", "name", "b".into());
    set("/robot", "speed", 2.0.into());
    let speed = json!({ "name": "/robot.speed", "value": 2.0, "type": "float64" });
    let seen = updates_until(&mut all, &speed);
    assert!(seen.contains(&json!({ "name": "/robot.name", "value": "b" })));
    assert!(!format!("{seen:?}").contains("/secret"), "{seen:?}");
    let seen = updates_until(&mut one, &speed);
    assert!(
        seen.iter().all(|row| row["name"] == "/robot.speed"),
        "{seen:?}"
    );
    let gone = ParameterEvent {
        node: "/robot".into(),
        deleted_parameters: vec![Parameter::new("speed", 2.0).into_message()],
        ..ParameterEvent::default()
    };
    publisher.publish(&gone).unwrap();
    updates_until(&mut one, &json!({ "name": "/robot.speed" }));
    one.send(&json!({ "op": "unsubscribeParameterUpdates", "parameterNames": ["/robot.speed"] }));
    drop(all);
    let graph = robot.node.context().graph();
    let is_unheard = || publisher.matched_count() == 0;
    assert!(
        graph.wait_until(PATIENCE, is_unheard),
        "the subscription stays"
    );
}

#[test]
fn an_rviz_file_is_parsed_for_viewers() {
    let folder = Folder::new("view_rviz");
    let path = folder.path().join("robot.rviz");
    std::fs::write(&path, "Visualization Manager:\n  Displays: []\n").unwrap();
    let robot = Robot::start(|options| options.rviz = Some(path));
    let mut viewer = robot.viewer();
    assert_eq!(viewer.info["metadata"]["rviz"], "robot.rviz");
    viewer.send(&json!({ "op": "pteros.rviz", "id": 1 }));
    let answer = viewer.text("pteros.rviz");
    let expected = json!({ "name": "robot.rviz", "Visualization Manager": { "Displays": [] } });
    assert_eq!((&answer["id"], &answer["file"]), (&json!(1), &expected));
    viewer.send(&json!({ "op": "pteros.rviz", "id": 2, "name": "b", "text": "a: [" }));
    assert!(viewer.text("pteros.rviz")["error"].is_string());
}

#[test]
fn a_wrong_rviz_file_is_an_error_of_the_start() {
    let robot = Robot::start(|_| {});
    let missing = std::path::PathBuf::from("missing.rviz");
    let mut options = ViewOptions {
        rviz: Some(missing),
        ..ViewOptions::default()
    };
    options.address.set_port(0);
    let error = pteros_view::View::start(&robot.node, options).unwrap_err();
    assert!(error.to_string().starts_with("missing.rviz: "), "{error}");
}

/// An action server that nobody asks anything.
fn dance(node: &pteros::Node) -> impl Sized + use<> {
    use pteros::interfaces::example_interfaces::action::Fibonacci;
    let refuse = |goal: pteros::action::ServerGoalHandle<Fibonacci>| drop(goal);
    node.create_action_server("dance", refuse).unwrap()
}

#[test]
fn the_parts_of_actions_and_containers_are_shown_and_other_hidden_names_are_not() {
    let robot = Robot::start(|options| {
        allow_all(options);
        options.filter = std::sync::Arc::new(|name| {
            ["/dance", "/box/_container/add", "/_add", "/add", "/last"].contains(&name)
        });
    });
    let add = |_: pteros::Sample<AddTwoIntsRequest>| AddTwoIntsResponse { sum: 0 };
    let names = ["/box/_container/add", "/_add", "/add"];
    let _services = names.map(|name| robot.node.create_service::<AddTwoInts>(name, add).unwrap());
    let _dance = dance(&robot.node);
    let _sing = robot
        .node
        .create_publisher::<Text>("/sing/_action/feedback".keep_last(1));
    // A participant announces in order: who knows the last service knows the hidden one.
    let _last = robot
        .node
        .create_service::<AddTwoInts>("/last", add)
        .unwrap();
    let mut viewer = robot.viewer();
    let mut seen = std::collections::BTreeMap::new();
    while !seen.contains_key("/last") || seen.len() < 6 {
        let services = viewer.text("advertiseServices")["services"].clone();
        for service in services.as_array().into_iter().flatten() {
            let name = service["name"].as_str().unwrap().to_owned();
            seen.insert(name, service["type"].as_str().unwrap().to_owned());
        }
    }
    let expected = [
        ("/add", "example_interfaces/srv/AddTwoInts"),
        ("/box/_container/add", "example_interfaces/srv/AddTwoInts"),
        ("/dance/_action/cancel_goal", "action_msgs/srv/CancelGoal"),
        (
            "/dance/_action/get_result",
            "example_interfaces/action/Fibonacci_GetResult",
        ),
        (
            "/dance/_action/send_goal",
            "example_interfaces/action/Fibonacci_SendGoal",
        ),
        ("/last", "example_interfaces/srv/AddTwoInts"),
    ];
    let expected = expected.map(|(name, ty)| (name.to_owned(), ty.to_owned()));
    assert_eq!(seen, expected.into());
    let feedback = viewer.channel("/dance/_action/feedback");
    assert_eq!(
        feedback["schemaName"],
        "example_interfaces/action/Fibonacci_FeedbackMessage"
    );
    assert!(!viewer.channels.contains_key("/sing/_action/feedback"));
}

#[test]
fn a_service_is_called_with_cdr() {
    let robot = Robot::start(allow_all);
    let add = |request: pteros::Sample<AddTwoIntsRequest>| AddTwoIntsResponse {
        sum: request.a + request.b,
    };
    let _service = robot
        .node
        .create_service::<AddTwoInts>("/add", add)
        .unwrap();
    let mut viewer = robot.viewer();
    let service = viewer.find(|received| match received {
        Received::Text(value) => {
            let mut services = value["services"].as_array().into_iter().flatten();
            services.find(|service| service["name"] == "/add").cloned()
        }
        Received::Frame(_) => None,
    });
    assert_eq!(service["type"], "example_interfaces/srv/AddTwoInts");
    assert_eq!(service["request"]["encoding"], "cdr");
    let id = u32::try_from(service["id"].as_u64().unwrap()).unwrap();
    let mut frame = vec![2];
    frame.extend([id, 5, 3].iter().flat_map(|number| number.to_le_bytes()));
    frame.extend(b"cdr");
    let request = AddTwoIntsRequest { a: 2, b: 40 };
    frame.extend_from_slice(&to_payload(&request, Representation::Xcdr1));
    viewer.send_frame(frame);
    let answer = viewer.frame(3);
    let mut head = Vec::new();
    head.extend([id, 5, 3].iter().flat_map(|number| number.to_le_bytes()));
    head.extend(b"cdr");
    assert_eq!(&answer[..15], head);
    assert_eq!(
        from_payload::<AddTwoIntsResponse>(&answer[15..])
            .unwrap()
            .sum,
        42
    );
    // Malformed ones fail and reach no server.
    let mut wrong = vec![2];
    wrong.extend([id, 6, 3].iter().flat_map(|number| number.to_le_bytes()));
    wrong.extend(b"cdr\x00\x01");
    viewer.send_frame(wrong);
    assert_eq!(viewer.text("serviceCallFailure")["callId"], 6);
}

#[test]
fn a_viewer_publishes_cdr_and_json() {
    let robot = Robot::start(allow_all);
    let (send, received) = channel();
    let take = move |sample: pteros::Sample<Text>| send.send(sample.data.clone()).unwrap();
    let subscription = robot
        .node
        .create_subscription("/say".keep_last(10), take)
        .unwrap();
    let mut viewer = robot.viewer();
    let channels = json!([
        { "id": 1, "topic": "/say", "encoding": "cdr", "schemaName": "std_msgs/msg/String" },
        { "id": 2, "topic": "/say", "encoding": "json", "schemaName": "std_msgs/msg/String" },
    ]);
    viewer.send(&json!({ "op": "advertise", "channels": channels }));
    assert!(subscription.wait_for_matched(2, PATIENCE));
    let message = Text { data: "cdr".into() };
    let payload = to_payload(&message, Representation::Xcdr1);
    // The subscription matches a publisher before that matches it, so a first message of
    // each may go to nobody.
    let mut publish = |frame: Vec<u8>, text: &str| {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            viewer.send_frame(frame.clone());
            let mut next = || received.recv_timeout(Duration::from_millis(200)).ok();
            if std::iter::from_fn(&mut next).any(|data| data == text) {
                return;
            }
        }
        panic!("{text} was not received");
    };
    publish([&[1, 1, 0, 0, 0][..], &payload].concat(), "cdr");
    let json = br#"{"data": "json"}"#;
    publish([&[1, 2, 0, 0, 0][..], json].concat(), "json");
    viewer.send_frame(vec![1, 1, 0, 0, 0, 9, 9]);
    assert!(
        viewer.text("status")["message"]
            .as_str()
            .unwrap()
            .starts_with("/say: ")
    );
    drop(viewer);
    assert!(
        robot
            .node
            .context()
            .graph()
            .wait_until(PATIENCE, || subscription.matched_count() == 0)
    );
}

/// A viewer drives, then vanishes or goes silent: the robot gets a zero.
fn a_robot_stops(end: impl FnOnce(Viewer) -> Option<Viewer>) {
    let robot = Robot::start(allow_all);
    let (send, received) = channel();
    let take = {
        let send = send.clone();
        move |sample: pteros::Sample<Twist>| send.send(("twist", sample.linear.x)).unwrap()
    };
    let take_stamped = move |sample: pteros::Sample<TwistStamped>| {
        // Controllers refuse a zero with an old stamp.
        assert!(sample.header.stamp.sec > 0 && sample.header.frame_id == "base");
        send.send(("stamped", sample.twist.linear.x)).unwrap();
    };
    let plain = robot
        .node
        .create_subscription("/cmd_vel".keep_last(10), take)
        .unwrap();
    let stamped = robot
        .node
        .create_subscription("/cmd_vel_stamped".keep_last(10), take_stamped)
        .unwrap();
    let mut viewer = robot.viewer();
    let channels = json!([
        { "id": 1, "topic": "/cmd_vel", "encoding": "json", "schemaName": "geometry_msgs/msg/Twist" },
        { "id": 2, "topic": "/cmd_vel_stamped", "encoding": "json", "schemaName": "geometry_msgs/msg/TwistStamped" },
    ]);
    viewer.send(&json!({ "op": "advertise", "channels": channels }));
    assert!(plain.wait_for_matched(1, PATIENCE) && stamped.wait_for_matched(1, PATIENCE));
    let twist = br#"{"linear": {"x": 0.5}}"#;
    viewer.send_frame([&[1, 1, 0, 0, 0][..], twist].concat());
    assert_eq!(received.recv_timeout(PATIENCE).unwrap(), ("twist", 0.5));
    let twist = br#"{"header": {"stamp": {"sec": 7}, "frame_id": "base"}, "twist": {"angular": {"z": 0.5}, "linear": {"x": 0.25}}}"#;
    viewer.send_frame([&[1, 2, 0, 0, 0][..], twist].concat());
    assert_eq!(received.recv_timeout(PATIENCE).unwrap(), ("stamped", 0.25));
    let viewer = end(viewer);
    let mut ends = [0, 1].map(|_| received.recv_timeout(PATIENCE).unwrap());
    ends.sort_by_key(|(topic, _)| *topic);
    assert_eq!(ends, [("stamped", 0.0), ("twist", 0.0)]);
    drop(viewer);
    let graph = robot.node.context().graph();
    assert!(graph.wait_until(PATIENCE, || plain.matched_count() == 0));
    assert!(received.try_recv().is_err(), "it was stopped twice");
}

#[test]
fn a_robot_stops_when_its_viewer_vanishes() {
    a_robot_stops(|viewer| {
        drop(viewer);
        None
    });
}

#[test]
fn a_robot_stops_when_its_viewer_goes_silent() {
    // The connection stays open, as that of a laptop that sleeps.
    a_robot_stops(Some);
}

#[test]
fn a_robot_stops_when_its_viewer_ends_the_channel() {
    a_robot_stops(|mut viewer| {
        viewer.send(&json!({ "op": "unadvertise", "channelIds": [1, 2] }));
        Some(viewer)
    });
}

#[test]
fn meshes_of_packages_are_served_and_nothing_beside_them() {
    let folder = Folder::new("view_assets");
    let share = folder.path().join("arm");
    std::fs::create_dir_all(share.join("meshes")).unwrap();
    std::fs::write(share.join("meshes/link.stl"), "solid").unwrap();
    std::fs::write(folder.path().join("secret.stl"), "secret").unwrap();
    let robot = Robot::start(|options| {
        options.find_package =
            std::sync::Arc::new(move |name| (name == "arm").then(|| share.clone()));
    });
    let mut viewer = robot.viewer();
    let mut fetch = |uri: &str| {
        viewer.send(&json!({ "op": "fetchAsset", "uri": uri, "requestId": 3 }));
        let frame = viewer.frame(4);
        assert_eq!(frame[..4], 3_u32.to_le_bytes());
        (frame[4], frame.slice(9..))
    };
    assert_eq!(
        fetch("package://arm/meshes/link.stl"),
        (0, b"solid"[..].into())
    );
    for wrong in [
        "package://arm/../secret.stl",
        "package://arm/meshes/../../secret.stl",
        "package://leg/a.stl",
        "file:///etc/passwd",
        "package://arm/meshes",
        "package://arm/missing.stl",
    ] {
        assert_eq!(fetch(wrong).0, 1, "{wrong}");
    }
}

#[test]
fn statistics_have_rates_and_the_reason_of_a_mismatch() {
    let robot = Robot::start(|_| {});
    let publisher = robot
        .node
        .create_publisher::<Text>("/scan".best_effort().keep_last(1))
        .unwrap();
    let _deaf = robot
        .node
        .create_subscription::<Text>("/scan".keep_last(1), |_| {})
        .unwrap();
    let mut viewer = robot.viewer();
    let subscription = viewer.subscribe("/scan");
    viewer.send(&json!({ "op": "pteros.hello" }));
    assert!(publisher.wait_for_matched(1, PATIENCE));
    let scan = |viewer: &mut Viewer| {
        let report = viewer.text("pteros.stats");
        let mut topics = report["topics"].as_array().unwrap().iter();
        topics
            .find(|topic| topic["name"] == "/scan")
            .cloned()
            .unwrap_or_default()
    };
    let topic = loop {
        publisher.publish(&Text { data: "x".into() }).unwrap();
        viewer.payload(subscription);
        let topic = scan(&mut viewer);
        if topic["rate"].as_f64().is_some_and(|rate| rate > 0.0) {
            break topic;
        }
    };
    let publishers =
        json!([{ "node": "/robot", "reliability": "BEST_EFFORT", "durability": "VOLATILE" }]);
    assert_eq!(topic["publishers"], publishers);
    assert_eq!(topic["subscribers"][0]["node"], "/robot");
    assert_eq!(topic["lost"], 0);
    assert!(
        topic["paths"]
            .as_array()
            .is_some_and(|paths| !paths.is_empty()),
        "{topic}"
    );
    let mismatch = &topic["mismatches"][0];
    assert_eq!(
        (&mismatch["publisher"], &mismatch["subscriber"]),
        (&json!("/robot"), &json!("/robot"))
    );
    assert!(
        mismatch["policy"]
            .as_str()
            .unwrap()
            .to_lowercase()
            .contains("reliability"),
        "{mismatch}"
    );
    assert!(!mismatch["fix"].as_str().unwrap().is_empty());
}
