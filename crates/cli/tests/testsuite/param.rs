//! `pteros param` with nodes of this test.
#![allow(clippy::disallowed_methods, reason = "the nodes are a thread")]

use crate::spin_thread::{SPIN_PERIOD, SpinThread};
use crate::support::{Domain, assert_contains};
use pteros::parameter::{Parameter, ParameterDescriptor, ParameterValue};
use pteros::prelude::*;
use pteros_test_support::folder::Folder;

/// `/robot/left` and `/robot/right`, which spin in the background. Only the first takes
/// parameters that it has not declared.
fn wheels(domain: &Domain) -> SpinThread {
    let context = Context::with_options(ContextOptions::local(domain.id())).unwrap();
    let nodes = ["left", "right"].map(|name| {
        let options = NodeOptions::new(name)
            .namespace("/robot")
            .allow_undeclared_parameters(name == "left")
            .parameter_overrides([Parameter::new("name", name)]);
        let node = context.create_node(options).unwrap();
        let speed = ParameterDescriptor::new()
            .description("how fast, m/s")
            .additional_constraints("not on Sundays")
            .float_range(0.0, 2.0, 0.1);
        node.declare_parameter_with("speed", 1.5, speed).unwrap();
        node.declare_parameter("name", "").unwrap();
        node.declare_parameter("motor.limits", vec![0.5, 1.0])
            .unwrap();
        let any = ParameterValue::from(true);
        node.declare_parameter("motor.spare", any).unwrap();
        node
    });
    SpinThread::new(move |is_over| {
        let executor = SingleThreadedExecutor::new(&context);
        for node in &nodes {
            executor.add_node(node).unwrap();
        }
        while !executor.spin_until(is_over, SPIN_PERIOD) {}
    })
}

#[test]
fn parameters_are_listed_read_and_described_as_in_ros2() {
    let domain = Domain::new();
    let _wheels = wheels(&domain);
    let own = |text: String| -> Vec<String> {
        let of_every_node = ["use_sim_time", "start_type_description_service"];
        let is_own = |line: &&str| !of_every_node.iter().any(|name| line.contains(name));
        let lines = text.lines().filter(is_own);
        lines.map(str::to_owned).collect()
    };
    let names = ["  motor.limits", "  motor.spare", "  name", "  speed"];
    assert_eq!(own(domain.run("param list /robot/left").ok()), names);
    let all = own(domain.run("param list").ok());
    assert_eq!(all.len(), 10, "{all:?}");
    assert_eq!(
        (all[0].as_str(), all[5].as_str()),
        ("/robot/left:", "/robot/right:")
    );
    let typed = domain
        .run("param list /robot/left --param-type --filter m.*l")
        .ok();
    assert_eq!(typed, "  motor.limits (type: double array)\n");
    let group = domain
        .run("param list /robot/left --param-prefixes motor")
        .ok();
    assert_eq!(group, "  motor.limits\n  motor.spare\n");
    assert_eq!(
        domain.run("param get /robot/left speed").ok(),
        "Double value is: 1.5\n"
    );
    assert_eq!(
        domain.run("param get robot/left name --hide-type").ok(),
        "left\n"
    );
    assert_eq!(
        domain.run("param get /robot/* name").ok(),
        "/robot/left: String value is: left\n/robot/right: String value is: right\n"
    );
    let json = domain
        .run("param get /robot/left motor.limits --json")
        .json();
    assert_eq!(json["/robot/left"]["value"][0], 0.5);
    assert_eq!(json["/robot/left"]["type"], "double array");
    assert_eq!(
        domain.run("param describe /robot/left speed").ok(),
        "Parameter name: speed\n  Type: double\n  Description: how fast, m/s\n  Constraints:\n    \
         Min value: 0.0\n    Max value: 2.0\n    Step: 0.1\n    Additional constraints: not on Sundays\n"
    );
}

#[test]
fn parameters_are_set_deleted_dumped_and_loaded() {
    let domain = Domain::new();
    let _wheels = wheels(&domain);
    let done = "Set parameter successful\n";
    assert_eq!(domain.run("param set /robot/left speed 2").ok(), done);
    assert_eq!(
        domain.run("param get /robot/left speed --hide-type").ok(),
        "2.0\n"
    );
    for line in ["/robot/left ", "--timeout 1 robot/left "] {
        let found = domain.candidates(&format!("pteros param set {line}"));
        assert!(found.contains(&"speed".to_owned()), "{line}: {found:?}");
        assert!(
            !found.contains(&"/robot/left".to_owned()),
            "{line}: {found:?}"
        );
        let found = domain.candidates(&format!("pteros param set {line}speed "));
        assert_eq!(found, ["2.0"]);
    }
    let flag = domain.candidates("pteros param set /robot/left use_sim_time ");
    assert_eq!(flag, ["false", "true"]);
    let refused = domain.run("param set /robot/left speed 7.0").failed(1);
    assert_contains(
        &refused,
        "Setting parameter failed: Parameter {speed} doesn't comply with floating point range; its description: pteros param describe /robot/left speed",
    );
    let both = domain.run("param set /robot/* speed 0.5").ok();
    assert_eq!(both, format!("/robot/left: {done}/robot/right: {done}"));
    assert_eq!(
        domain.run("param delete /robot/left motor.spare").ok(),
        "Deleted parameter successfully\n"
    );
    let refused = domain.run("param delete /robot/left speed").failed(1);
    assert_contains(&refused, "cannot undeclare a statically typed parameter");
    let dumped = domain.run("param dump /robot/left").ok();
    assert!(
        dumped.starts_with("/robot/left:\n  ros__parameters:\n    motor:\n      limits:\n      - 0.5\n      - 1.0\n    name: left\n    speed: 0.5\n"),
        "{dumped}"
    );
    let path = Folder::absent("param.yaml");
    std::fs::write(
        &path,
        "/robot/*:\n  ros__parameters:\n    speed: 1.0\n    new: [1, 2]\n",
    )
    .unwrap();
    let file = path.display().to_string();
    assert_eq!(
        domain.run(&format!("param load /robot/left {file}")).ok(),
        "Set parameter speed successful\nSet parameter new successful\n"
    );
    let nothing = domain
        .run(&format!("param load /robot/left {file} --no-use-wildcard"))
        .failed(1);
    assert_contains(&nothing, "has no parameters of node /robot/left");
    assert_eq!(
        domain.run("param get /robot/left new --hide-type").ok(),
        "[1, 2]\n"
    );
}

/// A dump has read-only parameters too. One name that the node lacks spoils no other.
#[test]
fn a_dump_loads_again_and_an_unknown_name_fails_alone() {
    let domain = Domain::new();
    let _wheels = wheels(&domain);
    let path = Folder::absent("dump.yaml");
    let file = path.display().to_string();
    let dumped = domain.run("param dump /robot/right").ok();
    assert_contains(&dumped, "start_type_description_service");
    std::fs::write(&path, &dumped).unwrap();
    let loaded = domain.run(&format!("param load /robot/right {file}")).ok();
    assert_contains(
        &loaded,
        "Set parameter start_type_description_service successful",
    );
    let changed = "/robot/right:\n  ros__parameters:\n    colour: red\n    speed: 1.0\n    start_type_description_service: false\n";
    std::fs::write(&path, changed).unwrap();
    let failed = domain
        .run(&format!("param load /robot/right {file}"))
        .failed(1);
    assert_contains(&failed, "colour");
    assert_contains(&failed, "start_type_description_service");
    let speed = domain.run("param get /robot/right speed --hide-type").ok();
    assert_eq!(speed, "1.0\n");
}

/// Texts that ROS 2's two typing rules read differently, on parameters of a declared
/// type and of a dynamic one.
#[test]
fn the_declared_type_decides_how_a_text_is_read() {
    let domain = Domain::new();
    let _wheels = wheels(&domain);
    let value_of = |parameter: &str, text: &str| {
        let set = format!("param set /robot/left {parameter}");
        let done = domain.run_with(&set, text).ok();
        assert_eq!(done, "Set parameter successful\n", "{parameter} {text}");
        let get = format!("param get /robot/left {parameter}");
        domain.run(&get).ok()
    };
    for text in [
        "0483", "123E5", "y", "off", "nan", "[]", "{a: 1}", "a: b", "1:30",
    ] {
        assert_eq!(value_of("name", text), format!("String value is: {text}\n"));
    }
    assert_eq!(value_of("name", "'5'"), "String value is: 5\n");
    assert_eq!(value_of("speed", "1e-1"), "Double value is: 0.1\n");
    assert_eq!(
        value_of("motor.limits", "[1, 2]"),
        "Double values are: [1.0, 2.0]\n"
    );
    assert_eq!(value_of("motor.spare", "0483"), "String value is: 0483\n");
    assert_eq!(value_of("motor.spare", "1_000"), "Integer value is: 1000\n");
    let refused = domain.run("param set /robot/left speed fast").failed(1);
    assert_contains(&refused, "is of type {double}, setting it to {string}");
    let path = Folder::absent("typing.yaml");
    std::fs::write(
        &path,
        "/**:\n  ros__parameters: {name: 0483, speed: 2, motor: {spare: [0483, a]}}\n",
    )
    .unwrap();
    domain
        .run(&format!("param load /robot/left {}", path.display()))
        .ok();
    let loaded = domain.run("param get /robot/left name").ok();
    assert_eq!(loaded, "String value is: 0483\n");
    // A completed value is read back as the same value.
    let found = domain.candidates("pteros param set /robot/left name ");
    assert_eq!(found, ["'0483'"]);
    // PyYAML writes such a list for texts.
    let loaded = domain.run("param get /robot/left motor.spare").ok();
    assert_eq!(loaded, "String values are: ['0483', 'a']\n");
}

#[test]
fn mistakes_with_parameters_are_reported() {
    let domain = Domain::new();
    let _wheels = wheels(&domain);
    for (words, says) in [
        (
            "param get /robot/lef speed --timeout 0",
            "did you mean /robot/left?",
        ),
        ("param get /robot/left sped --timeout 0", "not set"),
        (
            "param set /robot/left speed [1,a]",
            "setting it to {string} is not allowed",
        ),
        ("param list --filter [", "is not a regular expression"),
        ("param load /robot/left /nowhere.yaml", "/nowhere.yaml"),
        (
            "param set /robot/right sped 1.0",
            "did you mean speed? Its parameters: pteros param list /robot/right",
        ),
        (
            "param delete /robot/right colour",
            ". Its parameters: pteros param list /robot/right",
        ),
        ("param get /robot/left", "PARAMETER_NAME"),
    ] {
        let answer = domain.run(words);
        let output = format!("{}{}", answer.out, answer.err);
        assert!(output.contains(says), "{words}: {output}");
    }
}
