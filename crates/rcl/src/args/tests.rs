//! Command lines as users write them, and the resulting node and topic names.

use super::*;
use crate::log::Severity;
use pteros_runtime::names::NameKind::{Service, Topic};

fn parse(line: &str) -> Result<(Arguments, Vec<String>), ArgumentsError> {
    Arguments::parse(line.split_whitespace())
}

fn rules(lines: &[&str]) -> Arguments {
    let words = lines.iter().flat_map(|line| ["-r", line]);
    let words = std::iter::once("--ros-args").chain(words);
    Arguments::parse(words).unwrap().0
}

fn setting(node: Option<&str>, name: &str, value: &str) -> ParameterArgument {
    ParameterArgument::Value(ParameterSetting {
        node: node.map(Into::into),
        name: name.into(),
        value: value.into(),
    })
}

#[test]
fn ros_arguments_are_removed_wherever_they_stand() {
    let (arguments, rest) = parse(
        "--loud --ros-args -r a:=b -p rate:=5 -- file --ros-args --log-level debug \
         --log-level talker:=WARN -e /arm --params-file p.yaml --disable-rosout-logs",
    )
    .unwrap();
    assert_eq!(rest, ["--loud", "file"]);
    assert_eq!(arguments.remaps.len(), 1);
    assert_eq!(
        arguments.parameters,
        [
            setting(None, "rate", "5"),
            ParameterArgument::File("p.yaml".into())
        ]
    );
    assert_eq!(arguments.enclave.as_deref(), Some("/arm"));
    assert_eq!(arguments.log.level, Some(Severity::Debug));
    assert_eq!(arguments.log.rosout, Some(false));
    assert_eq!(arguments.log.filter(Severity::Info), "debug,talker=warn");

    let (none, rest) = parse("-r a:=b -- --log-level x").unwrap();
    assert_eq!(none, Arguments::default());
    assert_eq!(rest, ["-r", "a:=b", "--", "--log-level", "x"]);
}

#[test]
fn parameters_may_be_for_one_node_and_hold_any_yaml() {
    let (arguments, _) = Arguments::parse([
        "--ros-args",
        "-p",
        "talker:url.name:=http://a:=b",
        "-p",
        "list:=[1, 2]",
    ])
    .unwrap();
    assert_eq!(
        arguments.parameters,
        [
            setting(Some("talker"), "url.name", "http://a:=b"),
            setting(None, "list", "[1, 2]")
        ]
    );
}

#[test]
fn one_wire_or_both_may_be_chosen() {
    let wire = |text: &str| parse(&format!("--ros-args --wire {text}")).map(|(all, _)| all.wire);
    assert_eq!(wire("rtps").unwrap(), Some(WireChoice::Rtps));
    assert_eq!(wire("zenoh").unwrap(), Some(WireChoice::Zenoh));
    assert_eq!(wire("rtps,zenoh").unwrap(), Some(WireChoice::Both));
    assert_eq!(wire("zenoh,rtps").unwrap(), Some(WireChoice::Both));
    for bad in ["", "rtps,rtps", "dds", "rtps,"] {
        assert!(wire(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn invalid_arguments_are_named_with_a_hint() {
    let table = [
        (
            "--ros-args --rename a:=b",
            "--ros-args: \"--rename\" is not a ROS argument; known are -r, -p, --params-file, -e, --log-level, \
             --log-config-file, --log-file-name, --{enable,disable}-{rosout,stdout,external-lib}-logs, \
             --busy-poll, --shared-memory, --wire, --trace, --thread-priority, --thread-cpus and --lock-memory",
        ),
        (
            "--ros-args --log-level=debug",
            "--ros-args: \"--log-level=debug\" is not a ROS argument; write --log-level debug, \
             with a space",
        ),
        (
            "--ros-args a:=b",
            "--ros-args: \"a:=b\" is not a ROS argument; write -r a:=b to remap or -p a:=b to \
             set a parameter",
        ),
        (
            "--ros-args file",
            "--ros-args: \"file\" is not a ROS argument; end the ROS arguments with -- before it",
        ),
        (
            "--ros-args -r",
            "--ros-args: -r needs a value after it: [NODE:]FROM:=TO",
        ),
        (
            "--ros-args -p arm:speed:max:=1",
            "--ros-args: -p \"arm:speed:max:=1\": a second colon before :=; write NAME:=VALUE or \
             NODE:NAME:=VALUE",
        ),
        (
            "--ros-args -r -- x",
            "--ros-args: -r needs a value after it: [NODE:]FROM:=TO",
        ),
        (
            "--ros-args --log-level loud",
            "--ros-args: --log-level \"loud\": \"loud\" is not a log level; use debug, info, warn, \
             error or fatal, or unset",
        ),
        (
            "--ros-args -r /a/b*:=c",
            "--ros-args: -r \"/a/b*:=c\": a wildcard mixed with text; let * or ** stand alone \
             between slashes",
        ),
        (
            "--ros-args -r /a/*:=/b/\\2",
            "--ros-args: -r \"/a/*:=/b/\\\\2\": a reference to a wildcard that is not before :=; \
             use \\1 for the first * or ** there, \\2 for the second, up to \\9",
        ),
        (
            "--ros-args -r __ns:=ns",
            "--ros-args: -r \"__ns:=ns\": namespace name \"ns\" is not absolute at position 0: \
             start it with a slash",
        ),
        (
            "--ros-args -r http://a:=b",
            "--ros-args: -r \"http://a:=b\": an unknown scheme before ://; use rostopic:// or \
             rosservice://",
        ),
    ];
    for (line, message) in table {
        assert_eq!(parse(line).unwrap_err().to_string(), message);
    }
    for bad in [
        "-r a",
        "-r :=b",
        "-r a:=",
        "-r 2:a:=b",
        "-r a:=7",
        "-r __node:=a/b",
        "-p a",
        "-p :=1",
        "-p a:=",
        "-p a/b:c:=1",
        "-e arm",
        "--log-level :=info",
    ] {
        assert!(parse(&format!("--ros-args {bad}")).is_err(), "{bad}");
    }
}

#[test]
fn names_are_remapped_after_expansion_by_the_first_rule_that_matches() {
    // rule, name as written by the node, result (node /ns/talker)
    let table = [
        ("chatter:=talk", "chatter", "/ns/talk"),
        ("chatter:=/talk", "/ns/chatter", "/talk"),
        ("/chatter:=/talk", "chatter", "/ns/chatter"),
        ("~/out:=out", "~/out", "/ns/out"),
        ("~:=me", "~", "/ns/me"),
        ("{node}/out:=out", "talker/out", "/ns/out"),
        ("/a:=~/a", "/a", "/ns/talker/a"),
        ("talker:chatter:=talk", "chatter", "/ns/talk"),
        ("listener:chatter:=talk", "chatter", "/ns/chatter"),
        ("rostopic://chatter:=talk", "chatter", "/ns/talk"),
        ("talker:rostopic://chatter:=talk", "chatter", "/ns/talk"),
        ("rosservice://chatter:=talk", "chatter", "/ns/chatter"),
        ("/ns/*:=/other/\\1", "chatter", "/other/chatter"),
        ("/*:=/other/\\1", "chatter", "/ns/chatter"),
        ("/**:=/robot/\\1", "chatter", "/robot/ns/chatter"),
        ("/**/image:=/cam/\\1/picture", "/image", "/cam/picture"),
        (
            "/**/image:=/cam/\\1/picture",
            "/a/b/image",
            "/cam/a/b/picture",
        ),
        ("/*/x/**:=/\\2/y/\\1", "/a/x/b/c", "/b/c/y/a"),
        ("*:=/flat/\\1", "chatter", "/flat/chatter"),
    ];
    for (rule, name, full) in table {
        let global = rules(&[rule]);
        let found = resolve_name(&[&global], Topic, name, "talker", "/ns");
        assert_eq!(found.as_deref(), Ok(full), "{rule}");
    }
    let service = rules(&["rosservice://add:=sum", "rostopic://add:=never"]);
    let found = resolve_name(&[&service], Service, "add", "n", "/");
    assert_eq!(found.as_deref(), Ok("/sum"));
}

#[test]
fn a_nodes_own_rules_precede_those_of_the_process() {
    let local = rules(&["a:=local", "__node:=mine"]);
    let global = rules(&["a:=global", "b:=global_b", "__node:=theirs", "__ns:=/g"]);
    let both = [&local, &global];
    assert_eq!(
        node_identity(&both, "talker", "/ns"),
        Ok(("mine".into(), "/g".into()))
    );
    let resolve = |name| resolve_name(&both, Topic, name, "mine", "/g").unwrap();
    assert_eq!(resolve("a"), "/g/local");
    assert_eq!(resolve("b"), "/g/global_b");

    let first_wins = rules(&["a:=one", "a:=two"]);
    let found = resolve_name(&[&first_wins], Topic, "a", "n", "/").unwrap();
    assert_eq!(found, "/one");
}

#[test]
fn nodes_are_renamed_before_their_namespace_is() {
    let global = rules(&["talker:__name:=speaker", "speaker:__ns:=/robot"]);
    assert_eq!(
        node_identity(&[&global], "talker", ""),
        Ok(("speaker".into(), "/robot".into()))
    );
    assert_eq!(
        node_identity(&[&global], "listener", "a/b"),
        Ok(("listener".into(), "/a/b".into()))
    );
    assert!(node_identity(&[], "no good", "/").is_err());
}

#[test]
fn many_wildcards_cost_no_more_than_the_product_of_lengths() {
    let pattern = format!("/{}z:=/hit", "**/".repeat(30));
    let global = rules(&[&pattern]);
    let name = format!("/{}y", "a/".repeat(60));
    let found = resolve_name(&[&global], Topic, &name, "n", "/").unwrap();
    assert_eq!(found, name);
}

#[test]
fn an_unset_level_removes_an_earlier_one() {
    let line = "--ros-args --log-level warn --log-level a:=debug --log-level b:=info \
                --log-level UNSET --log-level a:=unset";
    let (arguments, _) = parse(line).unwrap();
    assert_eq!(arguments.log.level, None);
    assert_eq!(arguments.log.loggers, [("b".into(), Severity::Info)]);
}

#[test]
fn log_file_name_sets_a_prefix_not_a_path() {
    let given = |name: &str| parse(&format!("--ros-args --log-file-name {name}"));
    let (arguments, _) = given("arm").unwrap();
    assert_eq!(arguments.log.file_name.as_deref(), Some("arm"));
    let error = given("/tmp/arm").unwrap_err().to_string();
    assert!(
        error.contains("--log-file-name \"/tmp/arm\": not valid as the beginning of a file name"),
        "{error}"
    );
}

#[test]
fn shared_memory_accepts_only_on_or_off() {
    let given = |line: &str| parse(line).map(|(arguments, _)| arguments.shared_memory);
    assert_eq!(given("--ros-args").unwrap(), None);
    assert_eq!(given("--ros-args --shared-memory on").unwrap(), Some(true));
    let off = "--ros-args --shared-memory on --shared-memory off";
    assert_eq!(given(off).unwrap(), Some(false));
    let error = given("--ros-args --shared-memory perhaps").unwrap_err();
    let error = error.to_string();
    assert!(
        error
            .contains("--shared-memory \"perhaps\": neither on nor off; write --shared-memory off"),
        "{error}"
    );
}

#[test]
fn thread_settings_are_parsed() {
    let line = "--ros-args --busy-poll 50 --thread-priority 80 --thread-cpus 0,2-3 --lock-memory";
    let (arguments, _) = parse(line).unwrap();
    assert_eq!(arguments.busy_poll, Some(Duration::from_micros(50)));
    let thread = arguments.thread;
    assert_eq!(thread.priority.map(|p| p.number()), Some(80));
    assert_eq!(thread.cpus.unwrap().numbers(), [0, 2, 3]);
    assert!(thread.lock_memory);
    for (line, wanted) in [
        (
            "--thread-priority 100",
            "--thread-priority: \"100\" is not a SCHED_FIFO priority",
        ),
        (
            "--thread-cpus 3-1",
            "--thread-cpus: \"3-1\" is not a CPU list",
        ),
        (
            "--busy-poll long",
            "--busy-poll \"long\": not a number of microseconds",
        ),
        ("--thread-cpus", "--thread-cpus needs a value"),
    ] {
        let error = parse(&format!("--ros-args {line}"))
            .unwrap_err()
            .to_string();
        assert!(error.contains(wanted), "{error}");
    }
}

/// Log of kinds: paths that are not UTF-8.
#[test]
fn the_path_of_a_parameter_file_keeps_its_bytes() {
    use std::os::unix::ffi::OsStringExt as _;
    let path = OsString::from_vec(b"caf\xe9.yaml".to_vec());
    let words = ["--ros-args", "--params-file"].map(OsString::from);
    let words = words.into_iter().chain([path.clone()]);
    let (arguments, rest) = Arguments::parse_os(words).unwrap();
    assert_eq!(arguments.parameters, [ParameterArgument::File(path.into())]);
    assert!(rest.is_empty());
}

#[test]
fn the_rows_of_the_behaviour_table_hold() {
    let rows = include_str!("../../tests/behaviour/names.txt").lines();
    let mut count = 0;
    for row in rows.filter(|row| !row.starts_with('#')) {
        let (words, expected) = row.split_once(" -> ").expect(row);
        let words: Vec<_> = words.split(' ').collect();
        let (given, asked) = match words.as_slice() {
            [given @ .., "node"] => (given, None),
            [given @ .., kind, name] => (given, Some((*kind, *name))),
            _ => panic!("{row}"),
        };
        let arguments = rules(given);
        let sources = [&arguments];
        let (node, namespace) = remap::node_identity(&sources, "talker", "/ns").unwrap();
        let found = match asked {
            None => Ok(pteros_runtime::names::node_path(&namespace, &node)),
            Some((kind, name)) => {
                let kind = if kind == "topic" { Topic } else { Service };
                remap::resolve_name(&sources, kind, name, &node, &namespace)
            }
        };
        let found = found.unwrap_or_else(|_| "invalid".to_owned());
        assert_eq!(found, expected, "{row}");
        count += 1;
    }
    assert!(count > 60);
}
