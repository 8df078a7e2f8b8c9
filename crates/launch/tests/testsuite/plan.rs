//! Launch plans of launch files. Nothing is started here.

use std::collections::BTreeMap;

use crate::reading::{LaunchFolder, both};
use pteros_launch::plan::{LaunchPlan, LogLevel, NodeKind, PlanStep, TimerClock};
use std::time::Duration;

/// The command of the only process.
fn words(plan: &LaunchPlan) -> Vec<String> {
    let processes = plan.processes();
    assert_eq!(processes.len(), 1, "{processes:?}");
    processes[0].command.clone()
}

fn messages(plan: &LaunchPlan) -> Vec<&str> {
    let steps = plan.steps.iter();
    steps
        .filter_map(|step| match step {
            PlanStep::Log(log) => Some(log.text.as_str()),
            _ => None,
        })
        .collect()
}

/// The message of `<log message="TEXT"/>`, or the error.
fn message(text: &str) -> Result<String, String> {
    let folder = LaunchFolder::new();
    let text = text
        .replace('&', "&amp;")
        .replace('"', "&quot;")
        .replace('<', "&lt;");
    let text = format!(
        r#"<launch><arg name="x" default="a b"/><set_env name="E" value="env"/>
           <set_parameter name="p" value="2.5"/><log message="{text}"/></launch>"#
    );
    folder.write("a.launch.xml", &text);
    let plan = folder
        .plan("a.launch.xml", &[])
        .map_err(|errors| errors.to_string())?;
    Ok(messages(&plan)[0].to_owned())
}

/// Whether launch files of these folders have a Python for their expressions.
fn has_python() -> bool {
    let mut python = std::process::Command::new("/usr/bin/env");
    let python = python
        .env("PATH", "/bin:/usr/bin")
        .args(["python3", "-I", "-c", ""]);
    python.output().is_ok_and(|output| output.status.success())
}

#[test]
fn every_substitution_evaluates_as_in_ros_2() {
    for (text, given) in [
        ("$(var x)", "a b"),
        ("$(var no default)", "default"),
        ("$(var $(var no x))", "a b"),
        ("$(env E)", "env"),
        ("$(env NO_SUCH_VARIABLE_HERE 'a default')", "a default"),
        ("$(eval '1 + 2')", "3"),
        ("$(eval 'len([x for x in range(9) if x % 2])')", "4"),
        (
            "$(eval \"'$(var x)'.split()[-1] if true else nothing\")",
            "b",
        ),
        ("$(eval 'floor(2.5) + math.ceil(pi)')", "6"),
        (
            "$(eval \"os.path.join('a', os.environ['PATH'][1:4])\" os)",
            "a/bin",
        ),
        ("$(eval \"'{:03d}'.format(7) + '%.1f' % 2\")", "0072.0"),
        ("$(eval \"'$(var x)' == 'a b'\")", "True"),
        ("$(param p)", "2.5"),
        ("$(param no 7)", "7"),
        ("$(if true yes no)", "yes"),
        ("$(if false $(var no-such-argument) no)", "no"),
        ("$(if 0 yes)", ""),
        ("$(not 1)", "false"),
        ("$(and true 0)", "false"),
        ("$(or true 0)", "true"),
        ("$(any false 0 true)", "true"),
        ("$(all true 1 false)", "false"),
        ("$(equals 1 true)", "true"),
        ("$(equals 1.0 1.00)", "true"),
        ("$(equals a b)", "false"),
        ("$(not-equals a b)", "true"),
        ("$(string-join . a b c)", "a.b.c"),
        ("$(path-join a b/ c.yaml)", "a/b/c.yaml"),
        ("$(command 'echo -n hi')", "hi"),
        (
            "$(command \"sh -c 'echo bad >&2; echo -n good'\" ignore)",
            "good",
        ),
        ("$(log_dir)", "/nowhere/log"),
        ("$(find-exec sh)", "/bin/sh"),
        ("\\$(var x) \\\\ $5", "$(var x) \\ $5"),
    ] {
        let needs_python = [" for ", "os.", ".format("]
            .iter()
            .any(|part| text.contains(part));
        if needs_python && !has_python() {
            eprintln!("skipped, for it needs python3: {text}");
            continue;
        }
        assert_eq!(message(text).as_deref(), Ok(given), "{text}");
    }
    assert_eq!(message("$(anon n)").unwrap(), "n_host_1_1");
    assert!(message("$(dirname)").unwrap().starts_with('/'));
    assert!(message("$(filename)").unwrap().ends_with("/a.launch.xml"));
}

#[test]
fn substitution_errors_name_the_reason_and_the_accepted_values() {
    for (text, wrong) in [
        ("$(var y)", "there is no argument \"y\""),
        ("$(var)", "write $(var NAME [DEFAULT])"),
        ("$(not maybe)", "write true, 1, yes or on"),
        ("$(env NO_SUCH_VARIABLE_HERE)", "is not set"),
        ("$(param q)", "no set_parameter above has set \"q\""),
        ("$(index i)", "there is no loop variable \"i\""),
        (
            "$(eval 'x + 1')",
            "expression \"x + 1\", character 1: the name x is not known",
        ),
        (
            "$(find-pkg-share nowhere)",
            "there is no package \"nowhere\"",
        ),
        (
            "$(find-exec no-such-program)",
            "no program \"no-such-program\" on PATH",
        ),
        ("$(file-content /no/such/file)", "cannot read /no/such/file"),
        ("$(command 'false')", "failed"),
        (
            "$(command \"sh -c 'echo bad >&2'\")",
            "wrote on standard error: bad",
        ),
        (
            "$(command 'true' perhaps)",
            "none of fail, ignore, warn and capture",
        ),
    ] {
        let error = message(text).unwrap_err();
        assert!(error.contains(wrong), "{text}: {error}");
        assert!(error.contains("a.launch.xml:2:"), "{text}: {error}");
    }
}

#[test]
fn a_nodes_command_equals_that_of_launch_ros() {
    let folder = LaunchFolder::new();
    folder.program("lib/box/talk");
    folder.write("p.yaml", "/**:\n  ros__parameters: {a: 1}\n");
    let p = folder.text("p.yaml");
    let plan = both(
        &folder,
        &format!(
            r#"<launch><group>
              <push_ros_namespace namespace="robot"/>
              <push_ros_namespace namespace="arm"/>
              <set_parameter name="g" value="true"/>
              <set_use_sim_time value="true"/>
              <set_remap from="a" to="b"/>
              <node pkg="box" exec="talk" name="t" namespace="left" args="-v 'two words'" ros_args="--log-level debug">
                <param name="rate" value="2"/>
                <param name="name" value="2" type="str"/>
                <param name="gains"><param name="p" value="[1.0, 2.0]"/></param>
                <param name="list" value="1;2" value-sep=";"/>
                <param from="{p}"/>
                <param name="last" value="1"/>
                <remap from="chatter" to="/talk"/>
                <env name="X" value="y"/>
              </node></group></launch>"#
        ),
        &format!(
            "launch:\n- group:\n  - push_ros_namespace: {{namespace: robot}}\n  - push-ros-namespace: {{namespace: arm}}\n  - set_parameter: {{name: g, value: &on true}}\n  - set_use_sim_time: {{value: *on }}\n  - set_remap: {{from: a, to: b}}\n  - node:\n      pkg: box\n      exec: talk\n      name: t\n      namespace: left\n      args: -v 'two words'\n      ros_args: --log-level debug\n      param:\n      - {{name: rate, value: 2}}\n      - {{name: name, value: '2'}}\n      - name: gains\n        param:\n        - {{name: p, value: [1.0, 2.0]}}\n      - {{name: list, value: [1, 2]}}\n      - {{from: {p}}}\n      - {{<<: {{name: last, value: 7}}, value: 1}}\n      remap:\n      - {{from: chatter, to: /talk}}\n      env:\n      - {{name: X, value: y}}\n"
        ),
    );
    let program = folder.text("lib/box/talk");
    let p = folder.text("p.yaml");
    let expected = [
        program.as_str(),
        "-v",
        "two words",
        "--ros-args",
        "--log-level",
        "debug",
        "--ros-args",
        "-r",
        "__node:=t",
        "-r",
        "__ns:=/robot/arm/left",
        "-p",
        "g:=true",
        "-p",
        "use_sim_time:=true",
        "--params-file",
        "/nowhere/log/parameters-1.yaml",
        "--params-file",
        p.as_str(),
        "--params-file",
        "/nowhere/log/parameters-2.yaml",
        "-r",
        "a:=b",
        "-r",
        "chatter:=/talk",
    ];
    for plan in plan {
        assert_eq!(words(&plan), expected);
        let process = plan.processes()[0];
        assert_eq!(process.name, "talk-1");
        // The node's own values name the node. They come last, so they override
        // values of files for every node or for this one.
        let texts: Vec<&str> = process.files.iter().map(|(_, text)| &**text).collect();
        let expected = [
            "/robot/arm/left/t:\n  ros__parameters:\n    rate: 2\n    name: '2'\n    gains.p: [1.0, 2.0]\n    list: [1, 2]\n",
            "/robot/arm/left/t:\n  ros__parameters:\n    last: 1\n",
        ];
        assert_eq!(texts, expected);
        let values = pteros::parameter::ParameterFile::parse("it", texts[0]).unwrap();
        assert_eq!(values.parameters_of("/robot/arm/left/t", true).len(), 4);
        assert_eq!(process.environment["X"], "y");
        let node = process.node.as_ref().unwrap();
        assert_eq!(node.full_name().as_deref(), Some("/robot/arm/left/t"));
    }
}

#[test]
fn groups_restore_the_scope_unless_they_are_not_scoped() {
    let folder = LaunchFolder::new();
    folder.write(
        "a.launch.xml",
        r#"<launch>
          <let name="x" value="outer"/>
          <group><let name="x" value="inner"/><set_env name="E" value="1"/><log message="$(var x)"/></group>
          <log message="$(var x) $(env E unset)"/>
          <group scoped="false"><let name="x" value="leaks"/></group>
          <log message="$(var x)"/>
          <group forwarding="false"><keep name="k" value="$(var x)"/><log message="$(var x none) $(var k)"/></group>
          <reset><keep name="x" value="kept"/></reset>
          <log message="$(var x)"/>
          <set_env name="L" value="a"/><append_env name="L" value="b"/>
          <append_env name="L" value="c" prepend="true" separator=";"/>
          <log message="$(env L)"/>
          <unset_env name="L"/><log message="$(env L none)"/>
          <set_env name="L" value="a"/><reset_env/><log message="$(env L none)"/>
        </launch>"#,
    );
    let plan = folder.plan("a.launch.xml", &[]).unwrap();
    assert_eq!(
        messages(&plan),
        [
            "inner",
            "outer unset",
            "leaks",
            "none leaks",
            "kept",
            "c;a:b",
            "none",
            "none"
        ]
    );
}

#[test]
fn includes_get_arguments_and_know_their_own_folder() {
    let folder = LaunchFolder::new();
    folder.write(
        "a.launch.xml",
        r#"<launch><include file="sub/b.launch.yaml"><arg name="who" value="moon"/></include>
           <include file="$(dirname)/sub/b.launch.yaml"><let name="who" value="sun"/></include>
           <log message="$(dirname)"/></launch>"#,
    );
    folder.write(
        "sub/b.launch.yaml",
        "launch:\n- arg: {name: who}\n- log: {message: $(var who) $(dirname), level: error}\n",
    );
    let plan = folder.plan("a.launch.xml", &[]).unwrap();
    let (own, sub) = (folder.text(""), folder.text("sub"));
    let own = own.trim_end_matches('/');
    assert_eq!(
        messages(&plan),
        [format!("moon {sub}"), format!("sun {sub}"), own.to_owned()]
    );
    let PlanStep::Log(log) = &plan.steps[0] else {
        panic!()
    };
    assert_eq!(log.level, LogLevel::Error);
}

#[test]
fn loops_conditions_timers_and_on_exit() {
    let folder = LaunchFolder::new();
    folder.write(
        "a.launch.xml",
        r#"<launch>
          <for len="2" name="i"><log message="$(index i)" unless="$(equals $(index i) 0)"/></for>
          <for_each values="{n: a, id: 1};{n: b}"><log_warning message="$(for-var n) $(for-var id 9)"/></for_each>
          <timer period="1.5"><log message="later"/></timer>
          <set_use_sim_time value="true"/>
          <ros_timer period="2"><shutdown reason="done"/></ros_timer>
          <executable cmd="sleep 1" respawn="true" respawn_delay="0.5" respawn_max_retries="-1"
            sigterm_timeout="1" output="full" if="true"><on_exit><log message="over"/></on_exit></executable>
          <executable cmd="sleep 1" on_exit="shutdown"/>
        </launch>"#,
    );
    let plan = folder.plan("a.launch.xml", &[]).unwrap();
    assert_eq!(messages(&plan), ["1", "a 1", "b 9"]);
    let timers = plan.steps.iter().filter_map(|step| match step {
        PlanStep::Timer(timer) => Some((timer.period, timer.clock)),
        _ => None,
    });
    let timers: Vec<_> = timers.collect();
    assert_eq!(timers[0], (Duration::from_millis(1500), TimerClock::Steady));
    assert_eq!(timers[1].1, TimerClock::Ros { simulated: true });
    let process = plan.processes()[0];
    let respawn = process.respawn.unwrap();
    assert_eq!(
        (respawn.delay, respawn.retries_max),
        (Duration::from_millis(500), None)
    );
    assert_eq!(process.sigterm_timeout, Duration::from_secs(1));
    assert!(process.output.stdout.own_files && process.output.stderr.screen);
    assert!(matches!(process.on_exit.as_slice(), [PlanStep::Log(_)]));
    assert!(matches!(
        plan.processes()[1].on_exit.as_slice(),
        [PlanStep::Shutdown(_)]
    ));
}

#[test]
fn managed_nodes_are_brought_up_in_dependency_order() {
    let folder = LaunchFolder::new();
    folder.program("lib/nav/map");
    folder.write(
        "a.launch.xml",
        r#"<launch><push_ros_namespace namespace="r"/>
          <lifecycle_node pkg="nav" exec="map" name="map" autostart="true"/>
          <lifecycle_node pkg="nav" exec="map" name="plan" autostart="true" depends_on="map"/>
        </launch>"#,
    );
    let plan = folder.plan("a.launch.xml", &[]).unwrap();
    let node = plan.processes()[1].node.clone().unwrap();
    assert_eq!(node.kind, NodeKind::Lifecycle { autostart: true });
    assert_eq!(node.depends_on, ["/r/map"]);
    folder.write(
        "b.launch.xml",
        r#"<launch><lifecycle_node pkg="nav" exec="map" name="plan" autostart="true" depends_on="mapp"/></launch>"#,
    );
    let errors = folder.plan("b.launch.xml", &[]).unwrap_err().to_string();
    assert!(
        errors.contains("no lifecycle_node with autostart is \"/mapp\""),
        "{errors}"
    );
}

#[test]
fn arguments_have_values_from_the_command_line_choices_and_descriptions() {
    let folder = LaunchFolder::new();
    folder.write(
        "a.launch.xml",
        r#"<launch><arg name="mode" default="sim" description="what runs"><choice value="sim"/><choice value="real"/></arg>
           <arg name="robot"/><log message="$(var mode) $(var robot)"/></launch>"#,
    );
    let plan = folder
        .plan("a.launch.xml", &[("mode", "real"), ("robot", "r2")])
        .unwrap();
    assert_eq!(messages(&plan), ["real r2"]);
    for (arguments, wrong) in [
        (
            vec![],
            "the argument \"robot\" has no value; give one: robot:=VALUE",
        ),
        (
            vec![("robot", "a"), ("mode", "rael")],
            "did you mean \"real\"?",
        ),
        (
            vec![("robot", "a"), ("mdoe", "real")],
            "there is no argument \"mdoe\", given as mdoe:=real; did you mean \"mode\"?",
        ),
    ] {
        let errors = folder
            .plan("a.launch.xml", &arguments)
            .unwrap_err()
            .to_string();
        assert!(errors.contains(wrong), "{errors}");
    }
    let declared = folder.arguments("a.launch.xml").unwrap();
    let names: Vec<&str> = declared.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["mode", "robot"]);
    assert_eq!(declared[0].choices, ["sim", "real"]);
    assert_eq!(declared[1].default, None);
}

#[test]
fn one_failed_action_gives_one_error_and_its_consequences_none() {
    let folder = LaunchFolder::new();
    folder.write(
        "a.launch.xml",
        r#"<launch>
  <let name="root" value="$(find-pkg-share nowhere)"/>
  <let name="config" value="$(var root)/config"/>
  <arg name="map" default="$(var config)/map.yaml"/>
  <set_env name="MAP" value="$(var map)"/>
  <executable cmd="echo $(var root) $(env MAP)"/>
  <log message="$(var other)"/>
  <group if="$(eval '$(var config)')"><log message="$(var inner)"/></group>
  <include file="$(var config)/b.launch.xml"><arg name="x" value="$(var map)"/></include>
  <log message="$(var set_in_b default) $(var set_in_b)"/>
  <let name="config" value="good"/>
  <log message="$(var config)"/>
  <executable cmd="echo" output="nowhere"/>
</launch>"#,
    );
    let errors = folder.plan("a.launch.xml", &[("given", "1")]).unwrap_err();
    let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
    // `other` and `nowhere` have nothing to do with the failed action.
    assert_eq!(lines.len(), 3, "{lines:#?}");
    assert!(lines[0].contains(":2:27: value: "), "{lines:#?}");
    assert!(
        lines[0].contains("there is no package \"nowhere\""),
        "{lines:#?}"
    );
    assert!(
        lines[1].contains("there is no argument \"other\""),
        "{lines:#?}"
    );
    assert!(
        lines[2].contains("\"nowhere\" is not an output destination"),
        "{lines:#?}"
    );
}

#[test]
fn names_of_a_file_that_cannot_be_read_are_no_errors_of_their_own() {
    let folder = LaunchFolder::new();
    folder.write(
        "a.launch.xml",
        r#"<launch>
  <include file="none.launch.xml"/>
  <log message="$(var declared_there)"/>
  <executable cmd="echo $(param set_there)"/>
</launch>"#,
    );
    let errors = folder.plan("a.launch.xml", &[("declared_there", "1")]);
    let errors = errors.unwrap_err().to_string();
    assert_eq!(errors.lines().count(), 1, "{errors}");
    assert!(errors.contains("cannot read launch file"), "{errors}");
}

#[test]
fn python_includes_are_left_out_and_the_rest_is_planned() {
    let folder = LaunchFolder::new();
    folder.write("b.launch.py", "def generate_launch_description(): ...");
    folder.write(
        "a.launch.xml",
        r#"<launch>
  <executable cmd="echo one"/>
  <include file="b.launch.py"><arg name="x" value="1"/></include>
  <executable cmd="echo $(param height)"/>
  <executable cmd="echo two $(var x)"/>
</launch>"#,
    );
    let plan = folder.plan("a.launch.xml", &[]).unwrap();
    let commands: Vec<&str> = plan
        .processes()
        .iter()
        .map(|process| process.command[1].as_str())
        .collect();
    assert_eq!(commands, ["one", "two"]);
    assert_eq!(plan.left_out.len(), 2, "{:#?}", plan.left_out);
    assert!(plan.left_out[0].contains("a.launch.xml:3:18: the Python launch file"));
    assert!(plan.left_out[0].contains("b.launch.py was left out"));
    assert!(plan.left_out[1].contains("a.launch.xml:4:20: cmd: $(param height)"));
    assert!(plan.left_out[1].contains("which was left out, might set that"));
    let json = plan.to_json(&BTreeMap::new());
    assert_eq!(json["left_out"].as_array().map(Vec::len), Some(2));

    folder.write(
        "c.launch.xml",
        "<launch><include file=\"no.launch.py\"/></launch>",
    );
    let errors = folder.plan("c.launch.xml", &[]).unwrap_err().to_string();
    assert!(errors.contains("no.launch.py: No such file"), "{errors}");
}

#[test]
fn ros2_commands_run_pteros_where_no_ros2_is_installed() {
    let folder = LaunchFolder::new();
    folder.write(
        "a.launch.xml",
        r#"<launch>
  <executable cmd="ros2 topic list"/>
  <executable cmd="ros2 topic list | head" shell="true"/>
  <executable cmd="echo ros2 topic list"/>
</launch>"#,
    );
    let commands = |plan: pteros_launch::LaunchPlan| -> Vec<Vec<String>> {
        let processes = plan.processes();
        processes.iter().map(|one| one.command.clone()).collect()
    };
    let mut request = folder.request("a.launch.xml", &[]);
    request
        .environment
        .insert("PATH".into(), format!("{}:/bin:/usr/bin", folder.text("")));
    let found = commands(pteros_launch::LaunchPlan::read(&request).unwrap());
    assert_eq!(found[0], ["/opt/pteros/bin/pteros", "topic", "list"]);
    let line = "ros2() { '/opt/pteros/bin/pteros' \"$@\"; }; ros2 topic list | head";
    assert_eq!(found[1], ["/bin/sh", "-c", line]);
    assert_eq!(found[2], ["echo", "ros2", "topic", "list"]);

    folder.program("ros2");
    let found = commands(pteros_launch::LaunchPlan::read(&request).unwrap());
    assert_eq!(found[0], ["ros2", "topic", "list"]);
    assert_eq!(found[1], ["/bin/sh", "-c", "ros2 topic list | head"]);
}

/// pip puts the programs of a package for ament_python into `bin`, not into
/// `lib/PACKAGE` as colcon does.
#[test]
fn console_scripts_of_an_installed_python_package_are_its_programs() {
    let folder = LaunchFolder::new();
    let site = "lib/python3.11/site-packages";
    folder.write("share/ament_index/resource_index/packages/arm_py", "");
    folder.write(
        &format!("{site}/arm_py-1.0.dist-info/entry_points.txt"),
        "[console_scripts]\nreach = arm_py.reach:main\ngone = arm_py.gone:main\n\n\
         [gui_scripts]\nwindow = arm_py.window:main\n",
    );
    folder.write(
        &format!("{site}/legs-1.0.dist-info/entry_points.txt"),
        "[console_scripts]\nwalk = legs:main\n",
    );
    for name in ["bin/reach", "bin/walk", "bin/window"] {
        folder.program(name);
    }
    folder.write(
        "a.launch.xml",
        r#"<launch><node pkg="arm_py" exec="reach"/></launch>"#,
    );
    let plan = folder.plan("a.launch.xml", &[]).unwrap();
    assert_eq!(words(&plan)[0], folder.text("bin/reach"));

    let packages = folder.request("a.launch.xml", &[]).packages;
    let known = packages.executables("arm_py").unwrap();
    assert_eq!(known, [("reach".into(), folder.text("bin/reach").into())]);
    let error = packages.executable("arm_py", "walk").unwrap_err();
    assert!(error.contains("it has: reach"), "{error}");
}

#[test]
fn a_prefix_with_the_package_s_marker_precedes_one_with_its_programs_alone() {
    let folder = LaunchFolder::new();
    folder.program("old/lib/arm/reach");
    folder.program("new/lib/arm/reach");
    folder.program("old/lib/legs/walk");
    folder.write("new/share/ament_index/resource_index/packages/arm", "");
    let prefixes = ["old", "new"].map(|prefix| folder.text(prefix).into());
    let index = pteros_container::ComponentIndex::new([], prefixes);
    let packages = pteros_launch::Packages::new(&index, None);
    for (package, program) in [("arm", "new/lib/arm/reach"), ("legs", "old/lib/legs/walk")] {
        let name = program.rsplit('/').next().unwrap();
        let found = packages.executable(package, name).unwrap();
        assert_eq!(found, std::path::PathBuf::from(folder.text(program)));
        assert!(packages.is_installed(package));
    }
    assert!(!packages.is_installed("../old"));
}

#[test]
fn the_json_plan_has_the_parameters_of_every_source() {
    let folder = LaunchFolder::new();
    folder.write("bin/camera", "");
    folder.program("bin/camera");
    folder.write(
        "own.yaml",
        "/**:\n  ros__parameters:\n    rate: 20\n    names: [left, '2']\n    nested: {on: true}\n\
         ---\n/**: {ros__parameters: {rate: 30}}\nleft: {ros__parameters: {side: 1}}\n",
    );
    folder.write(
        "substituted.yaml",
        "cam:\n  ros__parameters:\n    frame: $(var frame)_link\n",
    );
    folder.write("all.yaml", "/**: {ros__parameters: {gain: 0.5}}\n");
    let camera = folder.text("bin/camera");
    folder.write(
        "a.launch.xml",
        &format!(
            r#"<launch>
  <arg name="frame" default="camera"/>
  <set_parameter name="use_sim_time" value="true"/>
  <set_parameters_from_file filename="{0}/all.yaml"/>
  <node exec="{camera}" name="cam" ros_args="-p hidden:=7">
    <param name="inline" value="text"/>
    <param from="{0}/own.yaml"/>
    <param from="{0}/substituted.yaml" allow_substs="true"/>
  </node>
  <executable cmd="{camera} -p not:=one --ros-args -p cam:level:=2.5"/>
</launch>"#,
            folder.text("").trim_end_matches('/')
        ),
    );
    let plan = folder.plan("a.launch.xml", &[]).unwrap();
    let json = plan.to_json(&BTreeMap::new());
    let sources = &json["steps"][0]["parameters"];
    let text = sources.to_string();
    for part in [
        r#"{"source":"argument","node":null,"name":"hidden","value":7}"#,
        r#"{"source":"argument","node":null,"name":"use_sim_time","value":true}"#,
        r#"{"/**":{"ros__parameters":{"gain":0.5}}}"#,
        r#"{"/**":{"ros__parameters":{"inline":"text"}}}"#,
        r#"{"rate":30,"names":["left","2"],"nested":{"on":true}}"#,
        r#""left":{"ros__parameters":{"side":1}}"#,
        r#"{"cam":{"ros__parameters":{"frame":"camera_link"}}}"#,
    ] {
        assert!(text.contains(part), "{part} in\n{sources:#}");
    }
    let other = &json["steps"][1]["parameters"];
    assert_eq!(other.as_array().map(Vec::len), Some(1), "{other}");
    assert_eq!(other[0]["node"], "cam");
    assert_eq!(other[0]["value"], 2.5);
    // A tag makes a text, as quotes do.
    folder.write(
        "tags.launch.yaml",
        &format!(
            "launch:\n- node:\n    exec: {camera}\n    name: cam\n    param:\n    - {{name: tagged, value: !!str 5}}\n    - {{name: quoted, value: '5'}}\n    - {{name: plain, value: 5}}\n"
        ),
    );
    let plan = folder.plan("tags.launch.yaml", &[]).unwrap();
    let values = &plan.to_json(&BTreeMap::new())["steps"][0]["parameters"];
    let values = &values[0]["nodes"]["/**"]["ros__parameters"];
    let expected = r#"{"tagged":"5","quoted":"5","plain":5}"#;
    assert_eq!(values.to_string(), expected);
}
