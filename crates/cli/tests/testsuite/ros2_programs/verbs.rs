//! The verbs of `ros2` on the plug-in.

use crate::ros2_programs::PLUG_IN;
use crate::ros2_programs::ros2::Ros2;
use crate::support::Domain;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A line a verb: the program that it needs besides the talker, its words, and a part of
/// the output.
const VERBS: &str = "\
- | topic list -t --no-daemon => /chatter [std_msgs/msg/String]
- | topic info -v --no-daemon /chatter => Publisher count: 1
- | topic echo --no-daemon --once /chatter std_msgs/msg/String => data: 'Hello World
- | topic hz -w 2 /chatter => average rate
- | topic find --no-daemon std_msgs/msg/String => /chatter
- | node list --no-daemon => /talker
- | node info --no-daemon /talker => /chatter: std_msgs/msg/String
- | param list --no-daemon /talker => use_sim_time
- | param get --no-daemon /talker use_sim_time => False
- | param dump --no-daemon /talker => ros__parameters
- | interface show std_msgs/msg/String => string data
- | pkg executables demo_nodes_cpp => demo_nodes_cpp talker
demo_nodes_cpp/add_two_ints_server | service list -t --no-daemon => /add_two_ints [
demo_nodes_cpp/add_two_ints_server | service call /add_two_ints example_interfaces/srv/AddTwoInts {a:1,b:2} => sum=3
action_tutorials_py/fibonacci_action_server | action list -t => /fibonacci [
action_tutorials_py/fibonacci_action_server | action info /fibonacci => Action servers: 1
lifecycle/lifecycle_talker | lifecycle nodes --no-daemon => /lc_talker
lifecycle/lifecycle_talker | lifecycle get --no-daemon /lc_talker => unconfigured [1]
lifecycle/lifecycle_talker | lifecycle set --no-daemon /lc_talker configure => Transitioning successful
rclcpp_components/component_container | component list --no-daemon => /ComponentManager
action_tutorials_py/fibonacci_action_server | action send_goal /fibonacci action_tutorials_interfaces/action/Fibonacci {order:2} => SUCCEEDED
- | doctor --report => rmw_pteros_cpp";

#[test]
fn every_noun_of_ros2_works_on_the_plug_in() {
    let Some(ros2) = Ros2::find() else { return };
    if !ros2.has("ros2") {
        println!("left out: no ros2 command is installed");
        return;
    }
    let domain = Domain::new();
    let mut running = vec![ros2.start(&domain, PLUG_IN, "demo_nodes_cpp/talker")];
    for line in [
        "demo_nodes_cpp/add_two_ints_server",
        "action_tutorials_py/fibonacci_action_server",
        "lifecycle/lifecycle_talker",
        "rclcpp_components/component_container",
    ] {
        if ros2.has(line) {
            running.push(ros2.start(&domain, PLUG_IN, line));
        } else {
            println!("left out: {line} is not installed");
        }
    }
    let mut failed = Vec::new();
    for line in VERBS.lines() {
        let (needs, verb) = line.split_once(" | ").unwrap();
        let (words, part) = verb.split_once(" => ").unwrap();
        if needs != "-" && !ros2.has(needs) {
            continue;
        }
        // Each noun is a package of its own.
        let noun = words.split(' ').next().unwrap_or_default();
        if !ros2.prefix.join(format!("share/ros2{noun}")).is_dir() {
            println!("left out: ros2 {noun} is not installed");
            continue;
        }
        // A flow map needs spaces after its colons in YAML.
        let words = format!("ros2 {words}");
        let spaced = words.replace(":1", ": 1").replace(":2", ": 2");
        let split: Vec<&str> = match spaced.split_once('{') {
            Some((before, map)) => {
                let at = spaced.len() - map.len() - 1;
                let map = &spaced[at..];
                before.split_whitespace().chain([map]).collect()
            }
            None => spaced.split(' ').collect(),
        };
        let path = ros2.path("ros2").unwrap();
        let mut verb = ros2.start_path(&domain, PLUG_IN, &path, split.into_iter().skip(1));
        if catch_unwind(AssertUnwindSafe(|| verb.expect(part))).is_err() {
            failed.push(words);
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
    // The daemon, and a launch file of the test's own.
    let mut daemon = ros2.start(&domain, PLUG_IN, "ros2 daemon stop");
    daemon.expect("daemon");
    let launch = ros2.plug_in.join("talk.launch.xml");
    let text = "<launch><node pkg=\"demo_nodes_cpp\" exec=\"talker\" output=\"screen\"/></launch>";
    std::fs::write(&launch, text).unwrap();
    if ros2.prefix.join("share/ros2launch").is_dir() {
        let line = format!("ros2 launch {}", launch.display());
        let mut launched = ros2.start(&domain, PLUG_IN, &line);
        launched.expect("Publishing: 'Hello World");
        launched.interrupt();
    }
    running
        .into_iter()
        .for_each(|program| drop(program.interrupt()));
}
