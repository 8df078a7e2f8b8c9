//! `pteros interface` and command line parsing. These tests open no socket.

use crate::support::{Domain, assert_contains, pteros, run, run_with_input};
use pteros_test_support::folder::Folder;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

const STRING_HASH: &str = "RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18";

#[test]
fn a_definition_is_shown_with_nested_ones_indented_and_its_hash_on_request() {
    let plain = run("interface show std_msgs/msg/Header").ok();
    assert!(!plain.contains("RIHS01"), "{plain}");
    let text = run("interface show --type-hash std_msgs/msg/Header").ok();
    assert_contains(
        &text,
        "\n\tint32 sec\n\tuint32 nanosec\nstring frame_id  # Name of the tf frame",
    );
    assert!(text.ends_with(
        "# type hash: RIHS01_f49fb3ae2cf070f793645ff749683ac6b06203e41c891e17701b1cb597ce6a01\n"
    ));
}

#[test]
fn units_and_conventions_are_shown_unless_comments_are_disabled() {
    let scan = run("interface show sensor_msgs/msg/LaserScan").ok();
    assert_contains(
        &scan,
        "float32 angle_min  # Angle of the first beam, rad.\n",
    );
    // Nested definitions are shown without their comments.
    assert_contains(&scan, "\tbuiltin_interfaces/Time stamp\n\t\tint32 sec\n");
    let all = run("interface show sensor_msgs/msg/LaserScan --all-comments").ok();
    assert_contains(&all, "\t\tint32 sec  # Whole seconds");
    let plain = run("interface show std_msgs/msg/Header --no-comments").ok();
    assert_eq!(
        plain,
        "builtin_interfaces/Time stamp\n\tint32 sec\n\tuint32 nanosec\nstring frame_id\n"
    );
    let fields = run("interface show sensor_msgs/msg/Imu --json").json();
    let rate = &fields["parts"][0]["fields"][3];
    assert_eq!(rate["name"], "angular_velocity");
    assert_eq!(rate["comment"].as_str().map(str::trim), Some("rad/s."));
}

#[test]
fn json_gives_hash_and_fields() {
    let json = run("interface show std_msgs/String --json").json();
    assert_eq!(json["name"], "std_msgs/msg/String");
    assert_eq!(json["type_hash"], STRING_HASH);
    assert_eq!(json["parts"][0]["fields"][0]["name"], "data");
}

#[test]
fn every_listed_package_lists_its_interfaces() {
    let listed = run("interface list --json").json();
    let messages = listed["messages"].as_array().unwrap().len();
    assert!(messages > 150, "{messages} messages");
    assert!(listed["actions"].to_string().contains("Fibonacci"));
    let packages = run("interface packages").ok();
    assert!(packages.contains("sensor_msgs\n") && packages.contains("std_srvs\n"));
    assert_eq!(
        run("interface package std_srvs").ok(),
        "std_srvs/srv/Empty\nstd_srvs/srv/SetBool\nstd_srvs/srv/Trigger\n"
    );
    assert_eq!(run("interface package std_srvs -m").ok(), "");
    assert!(!run("interface packages -a").ok().contains("std_msgs"));
}

#[test]
fn a_prototype_is_quoted_yaml_unless_quotes_are_disabled() {
    assert_eq!(
        run("interface proto std_msgs/msg/Int8").ok(),
        "\"data: 0\n\"\n"
    );
    assert_eq!(
        run("interface proto std_msgs/msg/Int8 --no-quotes").ok(),
        "data: 0\n\n"
    );
    assert!(
        run("interface proto std_srvs/srv/SetBool")
            .ok()
            .contains("data: false")
    );
    // A part of a service or of an action, as errors about values name it.
    let request = run("interface proto std_srvs/srv/SetBool_Request --no-quotes").ok();
    assert_eq!(
        request,
        run("interface proto std_srvs/srv/SetBool --no-quotes").ok()
    );
    let result = run("interface proto example_interfaces/action/Fibonacci_Result --no-quotes");
    assert_eq!(result.ok(), "sequence: []\n\n");
}

#[test]
fn a_type_name_is_read_from_a_pipe() {
    let text = run_with_input("interface show -", "std_msgs/msg/String\n").ok();
    assert!(text.starts_with("string data\n"), "{text}");
    let error = run_with_input("interface show -", "").failed(1);
    assert!(error.contains("standard input, which was empty"), "{error}");
}

#[test]
fn an_unknown_type_is_reported_with_a_suggestion_and_a_hint() {
    let error = run("interface show std_msgs/msg/Strin").failed(1);
    assert!(error.contains("'std_msgs/msg/Strin'"), "{error}");
    assert_contains(&error, "did you mean std_msgs/msg/String?");
    assert!(error.contains("--interfaces DIR"), "{error}");
    let error = run("interface show nonsense/Nothing --json").failed(1);
    let json: serde_json::Value = serde_json::from_str(&error).unwrap();
    assert!(json["error"].as_str().unwrap().contains("nonsense/Nothing"));
    let error = run("interface show std_msgs").failed(1);
    assert_contains(&error, "pteros interface package std_msgs");
    let error = run("interface package std_msg").failed(1);
    assert!(error.contains("did you mean std_msgs?"), "{error}");
}

#[test]
fn unknown_verbs_and_flags_are_usage_errors() {
    let error = run("topic ecco").failed(2);
    assert!(error.contains("ecco") && error.contains("echo"), "{error}");
    let error = run("interface list --only-msg").failed(2);
    assert!(
        error.contains("--only-msg") && error.contains("--only-msgs"),
        "{error}"
    );
    let error = run("topic list --ros-args --nonsense").failed(2);
    assert!(error.contains("--nonsense"), "{error}");
}

#[test]
fn an_invalid_number_that_starts_with_a_dash_is_reported_by_flag() {
    for (words, flag) in [
        ("topic pub /x std_msgs/msg/Empty -r -1", "--rate"),
        ("topic pub /x std_msgs/msg/Empty --times -1", "--times"),
        ("topic echo /x --truncate-length -1", "--truncate-length"),
        ("topic echo /x --qos-depth -1", "--qos-depth"),
        ("topic list --spin-time -0.5", "--spin-time"),
        ("topic hz /x --timeout 1e19", "--timeout"),
    ] {
        let error = run(words).failed(2);
        let value = words.rsplit(' ').next().unwrap();
        assert!(error.contains(flag) && error.contains(value), "{error}");
        assert!(error.contains("is "), "says what it is not: {error}");
    }
}

#[test]
fn an_invalid_log_filter_is_reported() {
    let output = pteros()
        .args(["interface", "packages"])
        .env("RUST_LOG", "pteros=loud")
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("RUST_LOG=\"pteros=loud\""), "{error}");
}

#[test]
fn a_users_interface_folder_is_searched_and_its_errors_have_locations() {
    let folder = Folder::new("own_interfaces");
    folder.write(
        "robot_msgs/msg/Wheel.msg",
        "std_msgs/Header header\nfloat64 speed 0.5 # m/s\n",
    );
    folder.write("robot_msgs/msg/Broken.msg", "int32 a\nint3 b\n");
    let with = |words: &str| run(&format!("{words} --interfaces {}", folder.path().display()));
    let text = with("interface show robot_msgs/msg/Wheel").ok();
    assert!(text.contains("float64 speed 0.5 # m/s"), "{text}");
    assert!(
        !with("interface show robot_msgs/msg/Wheel --no-comments")
            .ok()
            .contains('#')
    );
    assert!(
        with("interface proto robot_msgs/msg/Wheel")
            .ok()
            .contains("speed: 0.5")
    );
    let error = with("interface show robot_msgs/msg/Broken").failed(1);
    assert!(
        error.contains("Broken.msg:2") && error.contains("int3"),
        "{error}"
    );
    folder.write("robot_msgs/msg/Folder.msg/file", "");
    with("interface show robot_msgs/msg/Wheel").ok();
    let error = with("interface show robot_msgs/msg/Folder").failed(1);
    assert!(error.contains("cannot read") && error.contains("Folder.msg"));
    let error = run("interface list --interfaces /nonexistent").failed(1);
    assert!(error.contains("/nonexistent"), "{error}");
}

#[test]
fn a_sourced_workspace_is_searched() {
    let folder = Folder::new("sourced");
    folder.write("share/robot_msgs/srv/Start.srv", "---\nbool ok\n");
    let output = pteros()
        .args(["interface", "package", "robot_msgs"])
        .env("AMENT_PREFIX_PATH", folder.path())
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "robot_msgs/srv/Start\n"
    );
}

#[test]
fn the_first_folder_of_the_interface_path_has_the_package() {
    let [first, second] = ["path-first", "path-second"].map(Folder::new);
    first.write("src/arms/robot_msgs/msg/Arm.msg", "int8 first\n");
    second.write("robot_msgs/msg/Arm.msg", "int8 second\n");
    second.write("robot_msgs/msg/Leg.msg", "int8 leg\n");
    second.write("src/toes/toe_msgs/msg/Toe.msg", "int8 toe\n");
    second.write("src/off/COLCON_IGNORE", "");
    second.write("src/off/off_msgs/msg/Off.msg", "int8 off\n");
    let show = |name: &str, folders: &[&str]| {
        let mut command = pteros();
        command.args(["interface", "proto", name]);
        let paths = std::env::join_paths(folders).unwrap();
        command.env("PTEROS_INTERFACE_PATH", paths);
        crate::support::finish(command)
    };
    let both = [&first, &second].map(|folder| folder.path().to_str().unwrap());
    let text = show("robot_msgs/msg/Arm", &both).ok();
    assert!(text.contains("first") && !text.contains("second"), "{text}");
    assert_contains(&show("toe_msgs/msg/Toe", &both).ok(), "toe");
    for name in ["robot_msgs/msg/Leg", "off_msgs/msg/Off"] {
        let error = show(name, &both).failed(1);
        assert_contains(&error, &format!("unknown type '{name}'"));
    }
    let error = show("robot_msgs/msg/Arm", &["/nonexistent"]).failed(1);
    assert_contains(
        &error,
        "PTEROS_INTERFACE_PATH /nonexistent: no interface found",
    );
}

#[test]
fn a_closed_pipe_is_not_a_failure() {
    let mut child = pteros()
        .args(["interface", "list"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut out = BufReader::with_capacity(16, child.stdout.take().unwrap());
    out.read_line(&mut line).unwrap();
    drop(out);
    let output = child.wait_with_output().unwrap();
    assert_eq!(line, "Messages:\n");
    assert!(output.status.success());
    assert!(output.stderr.is_empty());
}

#[test]
fn output_that_cannot_be_written_is_a_failure() {
    let output = pteros()
        .args(["interface", "packages", "--json"])
        .stdout(fs::File::create("/dev/full").unwrap())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let error: serde_json::Value = serde_json::from_slice(&output.stderr).unwrap();
    let error = error["error"].as_str().unwrap();
    assert!(error.starts_with("writing to standard output"), "{error}");
}

#[test]
fn a_shell_completes_verbs_types_and_packages() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = run(&format!("completion {shell}")).ok();
        assert!(script.contains("PTEROS_COMPLETE"), "{shell}");
        assert!(script.len() < 4_000, "{shell}: {} bytes", script.len());
    }
    let domain = Domain::new();
    let candidates = |line: &str| domain.candidates(line);
    let has = |line: &str, wanted: &str| {
        let found = candidates(line);
        assert!(found.iter().any(|one| one == wanted), "{line}: {found:?}");
    };
    has("pteros topic ec", "echo");
    has("pteros topic pub --ra", "--rate");
    has(
        "pteros interface show std_msgs/msg/Str",
        "std_msgs/msg/String",
    );
    has(
        "pteros service call /add example_interfaces/srv/Add",
        "example_interfaces/srv/AddTwoInts",
    );
    has("pteros interface package sensor", "sensor_msgs");
    let found = candidates("pteros topic pub /chatter std_msgs/msg/Str");
    assert_eq!(found, ["std_msgs/msg/String"]);
}

/// Sixty thousand fields, and types that nest eleven times in forty levels.
#[test]
fn a_large_definition_is_listed_in_linear_time_or_refused() {
    let folder = Folder::new("large-definitions");
    let fields: String = (0..60_000).map(|at| format!("int8 f{at}\n")).collect();
    folder.write("own/msg/Wide.msg", &fields);
    for level in 0..40 {
        let nested = |at: usize| match level {
            39 => format!("int8 f{at}\n"),
            _ => format!("own/L{} f{at}\n", level + 1),
        };
        let text: String = (0..11).map(nested).collect();
        folder.write(&format!("own/msg/L{level}.msg"), &text);
    }
    let show = |name: &str| {
        let mut command = pteros();
        command.env("PTEROS_INTERFACE_PATH", folder.path());
        command.args(["interface", "show", name]);
        crate::support::finish(command)
    };
    assert_eq!(show("own/msg/Wide").ok().lines().count(), 60_000);
    let refused = show("own/msg/L20").failed(1);
    assert_contains(
        &refused,
        "nested so often that the listing has more than 4 MiB",
    );
}

#[test]
fn c_structs_of_a_package_come_with_those_that_it_uses() {
    let folder = Folder::new("c_structs");
    let path = folder.path().display();
    let sources = run(&format!("interface generate --c {path} std_msgs")).ok();
    assert_eq!(
        sources,
        format!("{path}/builtin_interfaces/builtin_interfaces.c\n{path}/std_msgs/std_msgs.c\n")
    );
    let header = fs::read_to_string(folder.path().join("std_msgs/msg/header.h")).unwrap();
    assert_contains(&header, "  builtin_interfaces__msg__Time stamp;\n");
    let unknown = run(&format!("interface generate --c {path} std_msg")).failed(1);
    assert_contains(&unknown, "unknown package 'std_msg'");
}
