//! `pteros launch` as a user runs it. No test waits for a fixed time: each waits
//! for a line or for an exit.

#![allow(clippy::disallowed_methods, reason = "stopping has a time limit")]

use crate::folder::{LaunchFolder, processes_with};
use crate::support::{Running, assert_contains, start};
use std::io::{Read, Write};
use std::time::Duration;

/// Reads lines until one contains all of these words.
fn line_with(running: &mut Running, words: &[&str]) -> String {
    let mut lines = String::new();
    loop {
        let line = running.line();
        assert!(!line.is_empty(), "no line with {words:?} among:\n{lines}");
        if words.iter().all(|word| line.contains(word)) {
            return line;
        }
        lines += &line;
        lines += "\n";
    }
}

#[test]
fn processes_run_with_prefixed_output_and_reported_exits() {
    let folder = LaunchFolder::new("output");
    folder.write(
        "a.launch.xml",
        r#"<launch>
          <arg name="who" default="world"/>
          <log message="begin $(var who)"/>
          <executable cmd="echo 'hello  $(var who)'" output="screen"/>
          <executable cmd="sh -c 'echo to the log; echo oops >&amp;2'"/>
        </launch>"#,
    );
    let out = folder.launch("a.launch.xml who:=moon").ok();
    for line in [
        "[INFO] [launch]: begin moon",
        "[echo-1] hello  moon",
        "[INFO] [echo-1]: process has finished cleanly [pid ",
        "[sh-2] oops",
    ] {
        assert!(out.contains(line), "{line} in\n{out}");
    }
    assert!(!out.contains("to the log"), "{out}");
    let log = folder.read("log/latest/launch.log");
    for line in ["[sh-2] to the log", "[sh-2] oops", "begin moon"] {
        assert!(log.contains(line), "{line} in\n{log}");
    }
}

#[test]
fn the_exit_code_reports_whether_a_process_failed() {
    let folder = LaunchFolder::new("codes");
    for (command, code) in [("true", 0), ("false", 1), ("sh -c 'kill -9 $$'", 1)] {
        folder.write(
            "a.launch.yaml",
            &format!("launch:\n- executable: {{cmd: \"{command}\"}}\n"),
        );
        let answer = folder.launch("a.launch.yaml");
        assert_eq!(answer.code, Some(code), "{command}: {}", answer.out);
    }
}

#[test]
fn output_without_line_breaks_and_large_output_is_complete() {
    let folder = LaunchFolder::new("lines");
    folder.write(
        "a.launch.xml",
        r#"<launch>
          <executable name="rest" cmd="printf 'no end'" output="screen"/>
          <executable name="long" cmd="sh -c 'head -c 300000 /dev/zero | tr \\\\0 x'" output="own_log"/>
        </launch>"#,
    );
    let out = folder.launch("a.launch.xml").ok();
    assert!(out.contains("[rest-1] no end\n"), "{out}");
    let log = folder.read("log/latest/long-2-stdout.log");
    let letters = log.chars().filter(|letter| *letter == 'x').count();
    assert_eq!(letters, 300_000, "in pieces, but whole");
}

#[test]
fn ctrl_c_ends_all_processes_including_grandchildren_outside_of_the_process_group() {
    let folder = LaunchFolder::new("interrupt");
    folder.write(
        "a.launch.xml",
        r#"<launch>
          <executable name="family" shell="true" output="screen" sigterm_timeout="0.3" sigkill_timeout="0.3"
            cmd="sleep 1000 &amp; setsid sh -c 'trap : INT TERM; while :; do sleep 0.1; done' &amp; echo ready; wait"/>
          <executable name="stubborn" shell="true" output="screen" sigterm_timeout="0.3" sigkill_timeout="0.3"
            cmd="trap : INT TERM; echo ready; while :; do sleep 0.1; done"/>
        </launch>"#,
    );
    let mut launch = start(folder.command("a.launch.xml"));
    line_with(&mut launch, &["ready"]);
    line_with(&mut launch, &["ready"]);
    let launch_id = folder.launch_id();
    // A process within `exec` has no environment for a moment.
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    while processes_with(&launch_id).len() < 4 {
        assert!(std::time::Instant::now() < deadline);
        std::thread::yield_now();
    }
    let began = std::time::Instant::now();
    launch.signal("INT");
    let answer = launch.wait();
    assert!(processes_with(&launch_id).is_empty(), "{}", answer.out);
    // SIGINT, SIGTERM and SIGKILL with the configured timeouts, and 4 s for
    // orphans.
    assert!(began.elapsed() < Duration::from_secs(20));
    assert_eq!(answer.code, Some(0), "{}\n{}", answer.out, answer.err);
}

#[test]
fn output_of_a_grandchild_after_its_parents_end_is_read_and_the_grandchild_survives() {
    let folder = LaunchFolder::new("outlived");
    // Each line written to the pipe `go` is one that the grandchild prints.
    folder.write(
        "a.launch.xml",
        r#"<launch>
          <executable name="parent" shell="true" output="both"
            cmd="(while read word; do echo heard $word; echo wrote $word &gt;&amp;2; done &lt; go) &amp; echo done"/>
          <executable cmd="sleep 1000"/>
        </launch>"#,
    );
    folder.pipe_called("go");
    let mut launch = start(folder.command("a.launch.xml"));
    let mut go = folder.write_pipe("go");
    line_with(&mut launch, &["[parent-1]: process has finished cleanly"]);
    for word in ["one", "two", "three"] {
        go.write_all(format!("{word}\n").as_bytes()).unwrap();
        line_with(&mut launch, &["[parent-1]", word]);
        line_with(&mut launch, &["[parent-1]", word]);
    }
    launch.signal("INT");
    let answer = launch.wait();
    assert_eq!(answer.code, Some(0), "{}", answer.out);
    let log = folder.read("log/latest/launch.log");
    assert!(log.contains("[parent-1] wrote three"), "{log}");
}

#[test]
fn emulate_tty_gives_a_pseudo_terminal_from_attribute_or_argument() {
    let folder = LaunchFolder::new("terminal");
    let tell = "test -t 1 &amp;&amp; echo out is a terminal; test -t 2 &amp;&amp; echo err is a terminal &gt;&amp;2; test -t 0 || echo in is none; seq 20000";
    folder.write(
        "a.launch.xml",
        &format!(
            r#"<launch>
              <executable name="told" shell="true" output="screen" emulate_tty="true" cmd="{tell}"/>
              <executable name="plain" shell="true" output="screen" cmd="{tell}"/>
              <executable name="never" shell="true" output="screen" emulate_tty="false" cmd="{tell}"/>
            </launch>"#
        ),
    );
    let expect = |out: &str, name: &str, is_terminal: bool| {
        for stream in ["out", "err"] {
            let line = format!("[{name}] {stream} is a terminal\n");
            assert_eq!(out.contains(&line), is_terminal, "{line}{out}");
        }
        assert!(out.contains(&format!("[{name}] in is none\n")), "{name}");
        assert!(out.contains(&format!("[{name}] 20000\n")), "{name}");
        let own = format!("[{name}] ");
        let count = out.lines().filter(|line| line.starts_with(&own)).count();
        assert_eq!(count, if is_terminal { 20_003 } else { 20_001 }, "{name}");
    };
    let out = folder.launch("a.launch.xml").ok();
    expect(&out, "told-1", true);
    expect(&out, "plain-2", false);
    expect(&out, "never-3", false);
    let out = folder.launch("a.launch.xml emulate_tty:=true").ok();
    expect(&out, "plain-2", true);
    // As in ROS 2, the argument precedes the attribute.
    expect(&out, "never-3", true);
    let error = folder.launch("a.launch.xml emulate_tty:=maybe").failed(1);
    assert_contains(&error, "emulate_tty: \"maybe\" is not a boolean");
    let plan = folder.launch("a.launch.xml --dry-run --json").json();
    assert_eq!(plan["steps"][0]["emulate_tty"], true);
    assert_eq!(plan["steps"][1]["emulate_tty"], false);
}

#[test]
fn no_process_survives_a_killed_launcher() {
    let folder = LaunchFolder::new("killed");
    folder.write(
        "a.launch.xml",
        r#"<launch>
          <executable name="family" shell="true" output="screen"
            cmd="exec 3>alive; sleep 1000 &amp; setsid sleep 1000 &amp; env -i sleep 1000 &amp; echo ready; wait"/>
        </launch>"#,
    );
    folder.pipe();
    let mut launch = start(folder.command("a.launch.xml"));
    let mut alive = folder.open_pipe();
    line_with(&mut launch, &["ready"]);
    launch.signal("KILL");
    // Returns when the last of the four has ended.
    alive.read_to_end(&mut Vec::new()).unwrap();
}

#[test]
fn a_process_that_was_left_without_environment_ends_with_the_launch() {
    let folder = LaunchFolder::new("unmarked");
    folder.write(
        "a.launch.xml",
        r#"<launch>
          <executable name="parent" shell="true" output="screen"
            cmd="exec 3>alive; env -i sleep 1000 >/dev/null 2>&amp;1 &amp; echo ready"/>
        </launch>"#,
    );
    folder.pipe();
    let mut launch = start(folder.command("a.launch.xml"));
    let mut alive = folder.open_pipe();
    let answer = launch.wait();
    assert_eq!(answer.code, Some(0), "{}", answer.out);
    alive.read_to_end(&mut Vec::new()).unwrap();
}

#[test]
fn nothing_starts_on_an_error_and_every_error_has_a_location() {
    let folder = LaunchFolder::new("wrong");
    folder.write(
        "a.launch.xml",
        r#"<launch>
  <executable cmd="touch started"/>
  <nod pkg="a" exec="b"/>
  <executable cmd="no-such-program-here" outptu="screen"/>
  <let name="x" value="$(vra y)"/>
  <log message="$(var nobody)"/>
  <group if="maybe"/>
  <include file="nowhere.launch.xml"/>
  <node pkg="no_such_package" exec="b" name="1st"/>
</launch>
"#,
    );
    let error = folder.launch("a.launch.xml").failed(1);
    for fault in [
        ":3:3: launch has no element \"nod\"; did you mean \"node\"?",
        ":4:50: executable has no attribute \"outptu\"; did you mean \"output\"?",
        ":5:24: value: there is no substitution $(vra); did you mean",
        ":4:20: cmd: there is no program \"no-such-program-here\"",
        ":6:17: message: $(var nobody): there is no argument \"nobody\"",
        ":7:14: if: \"maybe\" is not a boolean",
        ":8:18: cannot read launch file",
        ":9:14: there is no package \"no_such_package\"",
    ] {
        assert!(error.contains(fault), "{fault} in\n{error}");
    }
    assert!(!folder.path().join("started").exists());
    let json = folder.launch("a.launch.xml --check --json");
    let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(json["ok"], false);
    assert_eq!(json["faults"][0]["line"], 3);
}

#[test]
fn a_hundred_processes_start_soon_and_all_end_with_ctrl_c() {
    let folder = LaunchFolder::new("hundred");
    folder.write(
        "a.launch.xml",
        r#"<launch><for len="100" name="i">
          <executable name="p$(index i)" cmd="sleep 1000"/>
        </for></launch>"#,
    );
    let began = std::time::Instant::now();
    let mut launch = start(folder.command("a.launch.xml"));
    line_with(&mut launch, &["[p99-100]: process started"]);
    let started = began.elapsed();
    let launch_id = folder.launch_id();
    launch.signal("INT");
    let answer = launch.wait();
    assert_eq!(answer.code, Some(0), "{}", answer.err);
    assert!(processes_with(&launch_id).is_empty());
    // The documentation promises 3 s on two idle cores (docs/tutorials/launch.md).
    // Other tests run here at the same time.
    assert!(started < Duration::from_secs(20), "{started:?}");
}

#[test]
fn the_tours_launch_files_give_the_same_plan_in_both_formats() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/tour/launch");
    let folder = LaunchFolder::new("tour");
    let plan = |form: &str| {
        let words = format!("{root}/talker_listener.launch.{form} count:=4 --dry-run --json");
        let mut plan = folder.launch(&words).json();
        // Only locations and files differ.
        forget(&mut plan, &["at", "file", "files", "declared_at"]);
        plan
    };
    let (xml, yaml) = (plan("xml"), plan("yaml"));
    assert_eq!(xml, yaml);
    let command = xml["steps"][0]["command"].to_string();
    for word in ["demo", "talker", "-t", "4", "__ns:=/tour", "chatter:=talk"] {
        assert!(command.contains(word), "{word} in {command}");
    }
}

/// Removes entries of that name everywhere.
fn forget(value: &mut serde_json::Value, names: &[&str]) {
    if let Some(map) = value.as_object_mut() {
        map.retain(|name, _| !names.contains(&name.as_str()));
        map.values_mut().for_each(|value| forget(value, names));
    }
    if let Some(list) = value.as_array_mut() {
        list.iter_mut().for_each(|value| forget(value, names));
    }
}

#[test]
fn the_tours_launch_file_starts_a_talker_and_a_listener_that_communicate() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/tour/launch");
    let folder = LaunchFolder::new("hear");
    let domain = crate::support::Domain::new();
    let mut command = folder.command(&format!("{root}/talker_listener.launch.xml count:=1000"));
    command.env("ROS_DOMAIN_ID", domain.id().to_string());
    let mut launch = start(command);
    line_with(&mut launch, &["[listener-2]", "I heard", "Hello World"]);
    launch.signal("INT");
    assert_eq!(launch.wait().code, Some(0));
}

#[test]
fn a_launch_with_a_python_file_is_handed_to_python() {
    let folder = LaunchFolder::new("python");
    folder.write(
        "prefix/share/ament_index/resource_index/packages/bringup",
        "",
    );
    folder.write("prefix/share/bringup/launch/robot.launch.py", "");
    folder.write("prefix/share/bringup/launch/other.launch.xml", "<launch/>");
    folder.write(
        "a.launch.xml",
        r#"<launch><executable cmd="echo"/><include file="$(find-pkg-share bringup)/launch/robot.launch.py"/></launch>"#,
    );
    let prefix = folder.path().join("prefix");
    // It says what it was asked to do, unless it is asked whether it has the wheel.
    let python = folder.program("python", "#!/bin/sh\n[ \"$3\" = --probe ] || echo \"$@\"");
    let python = python.display().to_string();
    let launch = |words: &str, python: &str| {
        let mut command = folder.command(words);
        command.env("AMENT_PREFIX_PATH", &prefix);
        command.env("PTEROS_PYTHON", python);
        crate::support::finish(command)
    };
    let said = launch("bringup robot.launch.py speed:=2 --check", &python).ok();
    assert_contains(&said, "pteros.launch");
    assert_contains(&said, "bringup/launch/robot.launch.py --check speed:=2");
    let said = launch("a.launch.xml --dry-run --json", &python).ok();
    assert_contains(&said, "a.launch.xml --dry-run --json");
    let said = launch("a.launch.xml --show-args", &python).ok();
    assert_contains(&said, "a.launch.xml --show-args");
    let said = launch("a.launch.xml -d", &python).ok();
    assert_contains(&said, "a.launch.xml --debug");
    let said = launch("bringup other.launch.xml --check", &python).ok();
    assert_contains(&said, "no errors; 0 processes, 1 file");

    let error = launch("a.launch.xml", "/no/python").failed(1);
    assert_contains(
        &error,
        "PTEROS_PYTHON=/no/python cannot run Python launch files",
    );
    assert_contains(&error, "install the wheel into it");
}

#[test]
fn a_plan_is_printed_without_starting_anything() {
    let folder = LaunchFolder::new("plan");
    folder.write(
        "a.launch.yaml",
        "launch:\n- arg: {name: count, default: '2', description: how many}\n- for:\n    len: $(var count)\n    name: i\n    children:\n    - executable: {cmd: \"echo $(index i)\", env: [{name: WHICH, value: $(index i)}]}\n",
    );
    let plan = folder.launch("a.launch.yaml --dry-run --json").json();
    assert_eq!(plan["steps"][1]["command"][1], "1");
    assert_eq!(plan["steps"][1]["environment"]["WHICH"], "1");
    assert_eq!(plan["arguments"][0]["value"], "2");
    let shown = folder.launch("a.launch.yaml --show-args").ok();
    assert_contains(&shown, "'count':\n        how many\n        (default: '2')");
    folder.launch("a.launch.yaml --check").ok();
    // A missing `:=` is not taken for a package name.
    let error = folder.launch("a.launch.yaml count").failed(1);
    assert_contains(
        &error,
        "'count' is not an argument of a.launch.yaml; write NAME:=VALUE",
    );
    assert!(!folder.path().join("log").exists(), "no log folder is made");
}
