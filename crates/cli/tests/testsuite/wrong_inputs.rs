//! Wrong inputs of every noun: each ends within seconds, with a nonzero exit code and
//! an error that names the thing, the value and the way out.

#![allow(
    clippy::disallowed_methods,
    reason = "a deadline for commands that hang"
)]

use crate::support::Domain;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

/// A command line, and what its error says.
struct WrongInput {
    words: &'static [&'static str],
    code: i32,
    /// The thing, its value, and the way out.
    says: &'static [&'static str],
}

const fn wrong(words: &'static [&'static str], says: &'static [&'static str]) -> WrongInput {
    WrongInput {
        words,
        code: 1,
        says,
    }
}

/// A command line that the parser refuses.
const fn usage(words: &'static [&'static str], says: &'static [&'static str]) -> WrongInput {
    WrongInput {
        words,
        code: 2,
        says,
    }
}

const STRING: &str = "std_msgs/msg/String";
const SUMS: &str = "example_interfaces/srv/AddTwoInts";
const FIBONACCI: &str = "example_interfaces/action/Fibonacci";

const WRONG_INPUTS: &[WrongInput] = &[
    // Nouns, verbs, options.
    usage(&["topics", "list"], &["topics", "topic"]),
    usage(&["topic", "lst"], &["lst", "list"]),
    usage(&["topic", "list", "--verbos"], &["--verbos", "--verbose"]),
    usage(
        &["topic", "list", "--spin-time", "soon"],
        &["--spin-time", "soon", "such as 0.5"],
    ),
    usage(
        &["topic", "list", "--ros-args", "--log-level", "loud"],
        &["--log-level", "loud", "debug"],
    ),
    usage(
        &["topic", "list", "--ros-args", "-r", "chatter"],
        &["-r", "chatter", ":="],
    ),
    usage(
        &["topic", "list", "--ros-args", "-p", "rate"],
        &["-p", "rate", ":="],
    ),
    wrong(
        &["interface", "list", "--interfaces", "/no/such/folder"],
        &["--interfaces", "/no/such/folder"],
    ),
    // Topics.
    wrong(
        &["topic", "info", "/chater"],
        &["unknown topic '/chater'", "did you mean /chatter?"],
    ),
    wrong(&["topic", "info", "/cha tter"], &["/cha tter"]),
    wrong(
        &["topic", "type", "/nothing/there"],
        &["unknown topic '/nothing/there'", "pteros topic list"],
    ),
    wrong(
        &["topic", "why", "/chattr"],
        &["unknown topic '/chattr'", "did you mean /chatter?"],
    ),
    wrong(
        &["topic", "echo", "/chater", "--once"],
        &["unknown topic '/chater'", "did you mean /chatter?"],
    ),
    wrong(
        &[
            "topic",
            "echo",
            "/chattre",
            STRING,
            "--once",
            "--timeout",
            "0.3",
        ],
        &["did you mean /chatter?", "pteros topic why /chattre"],
    ),
    wrong(
        &["topic", "echo", "/chatter", "std_msgs/msg/Sting", "--once"],
        &[
            "unknown type 'std_msgs/msg/Sting'",
            "did you mean std_msgs/msg/String",
        ],
    ),
    wrong(
        &["topic", "echo", "/chatter", SUMS, "--once"],
        &[SUMS, "not a message", "package/msg/Name"],
    ),
    wrong(
        &["topic", "echo", "/chatter", "--once", "--field", "dta"],
        &["--field", "dta", "its fields are data"],
    ),
    wrong(
        &["topic", "echo", "/chatter", "--once", "--field", "."],
        &["--field is empty", "such as data"],
    ),
    wrong(
        &[
            "topic",
            "echo",
            "/chatter",
            "--once",
            "--content-filter",
            "data =",
        ],
        &["data ="],
    ),
    wrong(
        &[
            "topic",
            "echo",
            "/chatter",
            "--once",
            "--content-filter",
            "dta = 'x'",
        ],
        &["dta", "data"],
    ),
    wrong(
        &[
            "topic",
            "echo",
            "/silent",
            STRING,
            "--once",
            "--timeout",
            "0.3",
        ],
        &["/silent", "pteros topic why /silent"],
    ),
    wrong(
        &["topic", "echo", "/chatter", "--once", "--qos-depth", "0"],
        &["--qos-depth 0", "at least 1"],
    ),
    usage(
        &["topic", "echo", "/chatter", "--qos-reliability", "good"],
        &["good", "reliable", "best_effort"],
    ),
    usage(
        &["topic", "echo", "/chatter", "--qos-profile", "fast"],
        &["fast", "sensor_data"],
    ),
    usage(
        &["topic", "echo", "/chatter", "-l", "-1"],
        &["-1", "whole number"],
    ),
    wrong(
        &["topic", "pub", "/x", "Strin", "{}"],
        &["unknown type 'Strin'", "pteros interface list"],
    ),
    wrong(
        &["topic", "pub", "/x", STRING, "data: [1"],
        &[STRING, "pteros interface proto"],
    ),
    wrong(
        &["topic", "pub", "/x", STRING, "{dat: a}"],
        &["dat", "data"],
    ),
    wrong(
        &["topic", "pub", "/x", STRING, "{data:hi}"],
        &[
            "\"data:hi\"",
            "write data: VALUE, with a blank after the colon",
        ],
    ),
    wrong(
        &["topic", "pub", "/x", STRING, "{data hi}"],
        &["\"data hi\"", "write data: VALUE"],
    ),
    usage(
        &["topic", "pub", "/x", STRING, "data:", "hi"],
        &["'hi'", "in quotes, as 'data: hi'"],
    ),
    usage(
        &["param", "set", "/talker", "gains", "[1,", "2]"],
        &["'2]'", "in quotes"],
    ),
    wrong(
        &["topic", "pub", "/x", "std_msgs/msg/Int8", "data: 300"],
        &["data", "300", "-128"],
    ),
    wrong(
        &["topic", "pub", "/x", "std_msgs/msg/Int8", "data: many"],
        &["data", "many", "int8"],
    ),
    wrong(
        &["topic", "pub", "//x", STRING, "{}", "--once", "-w", "0"],
        &["//x"],
    ),
    usage(
        &["topic", "pub", "/x", STRING, "-r", "0"],
        &["-r", "0", "above zero"],
    ),
    wrong(
        &[
            "topic",
            "pub",
            "/x",
            STRING,
            "{}",
            "--once",
            "--max-wait-time-secs",
            "0.2",
        ],
        &["/x", "found 0", "pteros topic why /x"],
    ),
    wrong(
        &["topic", "hz", "/silent", "--timeout", "0.3"],
        &["/silent", "pteros topic why /silent"],
    ),
    wrong(
        &["topic", "bw", "/silent", "--timeout", "0.3"],
        &["/silent", "pteros topic why /silent"],
    ),
    wrong(
        &["topic", "delay", "/chatter", "--timeout", "2"],
        &["/chatter", "no header", "pteros topic hz"],
    ),
    usage(
        &["topic", "hz", "/chatter", "-w", "0"],
        &["0", "above zero"],
    ),
    // Nodes and parameters.
    wrong(
        &["node", "info", "/greater"],
        &["'/greater'", "did you mean /greeter?"],
    ),
    wrong(&["node", "info", "no way"], &["no way", "pteros node list"]),
    wrong(
        &["param", "get", "/greater", "rate", "--timeout", "0"],
        &["'/greater'", "did you mean /greeter?"],
    ),
    wrong(
        &["param", "get", "/talker", "use_sim_tim"],
        &["use_sim_tim", "/talker"],
    ),
    wrong(
        &["param", "set", "/talker", "use_sim_time", "maybe"],
        &["use_sim_time", "bool"],
    ),
    wrong(
        &["param", "set", "/talker", "use_sim_time", "[1, a]"],
        &["use_sim_time", "bool", "string"],
    ),
    wrong(
        &["param", "describe", "/talker", "nothing"],
        &["nothing", "/talker"],
    ),
    wrong(
        &["param", "delete", "/talker", "nothing"],
        &["nothing", "pteros param list /talker"],
    ),
    wrong(
        &["param", "get", "/talker", "use_sim_tim"],
        &["'use_sim_tim'", "did you mean use_sim_time?"],
    ),
    wrong(
        &["param", "set", "/talker", "nothing", "1"],
        &["nothing", "pteros param list /talker"],
    ),
    wrong(
        &["param", "load", "/talker", "/no/such.yaml"],
        &["/no/such.yaml"],
    ),
    wrong(
        &["param", "list", "/talker", "--filter", "("],
        &["--filter", "(", "for example"],
    ),
    // Services and actions.
    wrong(
        &["service", "type", "/absent"],
        &["unknown service '/absent'", "pteros service list"],
    ),
    wrong(
        &["service", "info", "/talker/get_parameter"],
        &[
            "unknown service '/talker/get_parameter'",
            "did you mean /talker/get_parameters",
        ],
    ),
    wrong(
        &["service", "call", "/nobody", SUMS, "--timeout", "0.2"],
        &["/nobody", SUMS],
    ),
    wrong(
        &["service", "call", "/talker/get_parameters", SUMS],
        &[
            "/talker/get_parameters",
            "rcl_interfaces/srv/GetParameters",
            "use: pteros service call",
        ],
    ),
    wrong(
        &["service", "call", "/x", STRING],
        &[STRING, "not a service", "package/srv/Name"],
    ),
    wrong(
        &["service", "call", "/x", SUMS, "{c: 1}"],
        &["c", SUMS, "a, b"],
    ),
    wrong(
        &["service", "call", "/x", SUMS, "{a: x}"],
        &["a", "x", "int64"],
    ),
    wrong(
        &["service", "call", "/x", SUMS, "{a=1}"],
        &["\"a=1\"", "write a: VALUE"],
    ),
    usage(
        &["service", "call", "/x", SUMS, "a:", "1"],
        &["'1'", "in quotes"],
    ),
    wrong(
        &["service", "echo", "/absent"],
        &["unknown service '/absent'"],
    ),
    wrong(
        &["action", "info", "/nothing"],
        &["unknown action '/nothing'", "pteros action list"],
    ),
    wrong(
        &["action", "type", "/nothing"],
        &["unknown action '/nothing'", "pteros action list"],
    ),
    wrong(
        &["action", "send_goal", "/f", SUMS, "{}"],
        &[SUMS, "not an action", "package/action/Name"],
    ),
    wrong(
        &["action", "send_goal", "/f", FIBONACCI, "{ordr: 1}"],
        &["ordr", "order"],
    ),
    wrong(
        &[
            "action",
            "send_goal",
            "/f",
            FIBONACCI,
            "{order: 1}",
            "--timeout",
            "0.2",
        ],
        &["/f"],
    ),
    // Managed nodes and containers.
    wrong(
        &["lifecycle", "get", "/talker"],
        &["'/talker'", "not a managed node", "pteros lifecycle nodes"],
    ),
    wrong(
        &["lifecycle", "set", "/nobody", "configure"],
        &["'/nobody'", "pteros lifecycle nodes"],
    ),
    wrong(
        &["component", "list", "/nobody"],
        &["'/nobody'", "pteros component container"],
    ),
    wrong(
        &["component", "load", "/nobody", "p", "p::C"],
        &["'/nobody'", "pteros component container"],
    ),
    wrong(
        &["component", "unload", "/nobody", "1"],
        &["'/nobody'", "pteros component container"],
    ),
    usage(&["component", "unload", "/nobody", "one"], &["one"]),
    usage(
        &["component", "load", "/c", "p", "C", "-p", "rate"],
        &["rate", "NAME:=VALUE"],
    ),
    wrong(
        &["component", "types", "nowhere"],
        &["'nowhere'", "PTEROS_COMPONENT_PATH"],
    ),
    wrong(
        &["component", "standalone", "p", "C", "--program", "/no/such"],
        &["/no/such", "--program"],
    ),
    // Types, packages, launch files.
    wrong(
        &["interface", "show", "std_msgs/msg/Sting"],
        &["std_msgs/msg/Sting", "did you mean std_msgs/msg/String"],
    ),
    wrong(
        &["interface", "package", "std_msg"],
        &["std_msg", "std_msgs"],
    ),
    wrong(
        &["interface", "proto", "nothing"],
        &["nothing", "pteros interface list"],
    ),
    wrong(
        &["interface", "show", "std_msgs/Strin"],
        &["'std_msgs/Strin'", "did you mean std_msgs/msg/String"],
    ),
    wrong(
        &["interface", "show", "example_interfaces/AddTwoInt"],
        &["did you mean example_interfaces/srv/AddTwoInts?"],
    ),
    wrong(
        &["interface", "show", STRING, "--from", "/nobody"],
        &["'/nobody'", "pteros node list"],
    ),
    wrong(
        &["pkg", "prefix", "nowhere"],
        &["\"nowhere\"", "AMENT_PREFIX_PATH"],
    ),
    wrong(
        &["pkg", "xml", "nowhere"],
        &["\"nowhere\"", "AMENT_PREFIX_PATH"],
    ),
    wrong(
        &["pkg", "executables", "nowhere"],
        &["\"nowhere\"", "AMENT_PREFIX_PATH"],
    ),
    wrong(
        &["pkg", "create", "My-Robot"],
        &["'My-Robot'", "lower-case letters", "my_robot"],
    ),
    wrong(
        &["pkg", "create", "robot", "--build-type", "cmake"],
        &["--build-type cmake", "ros2 pkg create"],
    ),
    wrong(&["new", "type"], &["'type'", "type_node"]),
    wrong(
        &["new", "robot", "--pteros", "/no/such"],
        &["--pteros /no/such", "git"],
    ),
    wrong(
        &["run", "demo_nodes_cpp", "talker"],
        &["\"demo_nodes_cpp\"", "pteros demo talker"],
    ),
    wrong(
        &["run", "nowhere", "node"],
        &["\"nowhere\"", "AMENT_PREFIX_PATH"],
    ),
    wrong(&["launch", "/no/such.launch.xml"], &["/no/such.launch.xml"]),
    wrong(
        &["launch", "nowhere", "robot.launch.xml"],
        &["nowhere", "AMENT_PREFIX_PATH"],
    ),
    // Transforms, stores, keystores, traces, multicast.
    wrong(
        &["tf", "echo", "map", "nowhere", "--timeout", "0.3"],
        &["map", "nowhere"],
    ),
    wrong(
        &["store", "show", "nothing", "--folder", "/no/such"],
        &["nothing"],
    ),
    wrong(&["security", "check", "/no/such"], &["/no/such"]),
    wrong(
        &["security", "create_enclave", "/no/such", "/arm"],
        &["/no/such"],
    ),
    wrong(
        &["security", "create_zenoh_config", "/no/such"],
        &["/no/such"],
    ),
    usage(
        &[
            "security",
            "create_zenoh_config",
            "ks",
            "--connect",
            "tcp/10.0.0.1:7447",
        ],
        &["tcp/10.0.0.1:7447", "--connect", "write tls/HOST:PORT"],
    ),
    usage(
        &[
            "security",
            "create_zenoh_config",
            "ks",
            "--listen",
            "tls/:x",
        ],
        &["tls/:x", "--listen", "write tls/HOST:PORT"],
    ),
    usage(
        &[
            "security",
            "create_zenoh_config",
            "ks",
            "--domain-id",
            "233",
        ],
        &["233", "--domain-id"],
    ),
    wrong(
        &["security", "list_enclaves"],
        &["no keystore", "ROS_SECURITY_KEYSTORE"],
    ),
    wrong(
        &[
            "security",
            "create_permission",
            "/no/such",
            "/arm",
            "/no/policy.xml",
        ],
        &["/no/policy.xml"],
    ),
    usage(
        &["security", "init", "ks", "--domain-id", "300"],
        &["300", "232"],
    ),
    wrong(&["trace", "show", "/no/such"], &["/no/such"]),
    usage(
        &["multicast", "send", "--group", "10.0.0.1"],
        &["10.0.0.1", "225.0.0.1"],
    ),
    usage(
        &["multicast", "receive", "--port", "0"],
        &["'0'", "1 to 65535"],
    ),
    wrong(
        &["bag", "play", "x"],
        &["x: no such bag", ".mcap, .db3 or .bag file"],
    ),
    wrong(
        &["bag", "play", "x", "--topic-remap", "/a=/b"],
        &["--topic-remap /a=/b", "REGEX:=NEW"],
    ),
    wrong(
        &["bag", "play", "x", "--topic-remap", "/(:=/b"],
        &["regular expression \"/(\""],
    ),
    usage(&["bag", "play", "x", "-s", "hdf5"], &["hdf5", "sqlite3"]),
    wrong(
        &["bag", "play", "x", "--storage-config-file", "/no/such"],
        &["--storage-config-file /no/such", "No such file"],
    ),
    // Files that never end.
    wrong(
        &["bag", "play", "x", "--storage-config-file", "/dev/zero"],
        &["--storage-config-file /dev/zero", "it is a device"],
    ),
    wrong(
        &[
            "bag",
            "play",
            "x",
            "--qos-profile-overrides-path",
            "/dev/zero",
        ],
        &["--qos-profile-overrides-path /dev/zero", "it is a device"],
    ),
    wrong(
        &["bag", "record", "-a", "--storage-config-file", "/dev/zero"],
        &["--storage-config-file /dev/zero", "it is a device"],
    ),
    wrong(
        &["rmw", "install", "--prefix", "p", "--library", "/dev/zero"],
        &["reading the plug-in /dev/zero", "it is a device"],
    ),
    wrong(&["bag", "info", "/no/such"], &["/no/such"]),
    wrong(&["bag", "record"], &["-a"]),
    wrong(
        &["bag", "record", "-e", "(", "-o", "/no/such/bag"],
        &["regular expression \"(\""],
    ),
    usage(&["bag", "record", "-a", "-b", "7"], &["'7'", "1024"]),
    usage(
        &["bag", "record", "-a", "-d", "-1"],
        &["'-1'", "from zero on"],
    ),
    usage(
        &["bag", "record", "-a", "--repeat-transient-local", "/a=0"],
        &["/a=0", "TOPIC=DEPTH"],
    ),
    wrong(
        &[
            "bag",
            "record",
            "-a",
            "--snapshot-mode",
            "--max-cache-size",
            "0",
            "-o",
            "/no/such/bag",
        ],
        &["--max-cache-size above 0"],
    ),
    usage(
        &[
            "bag",
            "convert",
            "-i",
            "x",
            "-o",
            "y",
            "--compression",
            "brotli",
        ],
        &["brotli", "none, lz4 or zstd"],
    ),
    // Zenoh, which this build does not have.
    #[cfg(not(feature = "zenoh"))]
    wrong(&["router"], &["without Zenoh", "--features zenoh"]),
    #[cfg(not(feature = "zenoh"))]
    wrong(&["bridge"], &["without Zenoh", "--features zenoh"]),
    usage(
        &["bridge", "--rate", "/camera"],
        &["/camera", "such as /camera/.*=5"],
    ),
    usage(
        &["bridge", "--rate", "/camera=fast"],
        &["'fast'", "above zero"],
    ),
    usage(
        &["bridge", "--allow", "/a("],
        &["--allow", "/a(", "unclosed group", "whole names"],
    ),
    usage(
        &["bridge", "--deny", "chatter"],
        &["--deny", "chatter", "begins with a slash", "/camera/.*"],
    ),
    usage(&["bridge", "--rtps-domain", "300"], &["300", "0..=232"]),
    usage(&["daemon", "restart"], &["restart"]),
    usage(&["completion", "tcsh"], &["tcsh", "bash"]),
];

/// Far more than a command needs on a busy machine; a hang takes longer.
const DEADLINE: Duration = Duration::from_secs(60);
/// Words that leave the reader without a way out.
const POOR_WORDS: [&str; 7] = [
    "\" is no ",
    "' is no ",
    "does not tell",
    "panicked",
    "os error",
    "Err(",
    "None",
];

/// The exit code and the error output; `None` for a command that hangs.
fn run(mut command: Command) -> Option<(Option<i32>, String)> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let id = child.id();
    let (sender, receiver) = channel();
    std::thread::spawn(move || drop(sender.send(child.wait_with_output())));
    match receiver.recv_timeout(DEADLINE) {
        Ok(output) => {
            let output = output.unwrap();
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            Some((output.status.code(), text))
        }
        Err(_) => {
            let _ = Command::new("kill").arg(id.to_string()).status();
            None
        }
    }
}

/// The faults of the answer to a wrong input.
fn fault(domain: &Domain, input: &WrongInput) -> Option<String> {
    let mut command = domain.command(input.words);
    for variable in [
        "ROS_SECURITY_KEYSTORE",
        "PTEROS_COMPONENT_PATH",
        "PTEROS_PREFIX",
    ] {
        command.env_remove(variable);
    }
    command.current_dir(env!("CARGO_TARGET_TMPDIR"));
    let Some((code, text)) = run(command) else {
        return Some("hangs".into());
    };
    if code != Some(input.code) {
        return Some(format!(
            "exit code {code:?} instead of {}:\n{text}",
            input.code
        ));
    }
    if let Some(part) = input.says.iter().find(|part| !text.contains(**part)) {
        return Some(format!("does not say {part:?}:\n{text}"));
    }
    let poor = POOR_WORDS.iter().find(|word| text.contains(**word));
    poor.map(|word| format!("says {word:?}:\n{text}"))
}

#[test]
fn every_wrong_input_ends_with_the_thing_the_value_and_the_way_out() {
    assert!(WRONG_INPUTS.len() >= 60);
    let domain = Domain::new();
    let words = "topic pub /chatter std_msgs/msg/String -r 20 -p 0 -n greeter";
    let mut publisher = domain.start_with(words, "data: Hello");
    assert_eq!(publisher.line(), "publisher: beginning loop");
    let _talker = domain.start("demo talker --ros-args -r chatter:=hello");
    domain.run_until("param list /talker", |answer| answer.code == Some(0));
    let (next, faults) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while let Some(input) = WRONG_INPUTS.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Some(fault) = fault(&domain, input) {
                        let line = format!("pteros {}: {fault}", input.words.join(" "));
                        faults.lock().unwrap().push(line);
                    }
                }
            });
        }
    });
    let faults = faults.into_inner().unwrap();
    assert!(
        faults.is_empty(),
        "{} faults:\n{}",
        faults.len(),
        faults.join("\n")
    );
}

/// The limit of a file's size is an error, not a signal that ends the process.
#[test]
fn output_beyond_the_limit_of_a_file_is_an_error() {
    let domain = Domain::new();
    let verb = domain.command(["interface", "list"]);
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("beyond_the_limit.txt");
    let mut command = Command::new("sh");
    command.args([
        "-c",
        "ulimit -f 1; out=\"$1\"; shift; exec \"$@\" > \"$out\"",
        "sh",
    ]);
    command.arg(&file).arg(verb.get_program());
    command.args(verb.get_args());
    // The limit holds for shared memory too.
    command.args(["--ros-args", "--shared-memory", "off"]);
    let (code, text) = run(command).expect("ends");
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.contains("writing to standard output: File too large"),
        "{text}"
    );
}
