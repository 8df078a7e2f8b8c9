//! The URDF reader: what it reads, and what it refuses.

use pteros::tf::Isometry;
use pteros_nodes::urdf::{JointKind, Urdf};

fn robot(joints: &str) -> String {
    format!(r#"<robot name="r"><link name="a"/><link name="b"/><link name="c"/>{joints}</robot>"#)
}

fn joint(name: &str, kind: &str, ends: [&str; 2], more: &str) -> String {
    let [parent, child] = ends;
    format!(
        r#"<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>{more}</joint>"#
    )
}

#[test]
fn joints_are_read_with_frames_axes_limits_and_mimics() {
    let arm = r#"<origin xyz="1 2 3" rpy="0 0 1.5"/><axis xyz="0 0 2"/>
        <limit lower="-1" upper="0.5" effort="1" velocity="1"/>
        <safety_controller soft_upper_limit="0.25"/>"#;
    let follower = r#"<mimic joint="arm" multiplier="-2" offset="0.5"/>"#;
    let text = robot(
        &(joint("arm", "revolute", ["a", "b"], arm)
            + &joint("hand", "continuous", ["b", "c"], follower)),
    );
    let model = Urdf::parse(&text).unwrap();
    assert_eq!((model.name.as_str(), model.root.as_str()), ("r", "a"));
    let arm = model.joint("arm").unwrap();
    assert_eq!(arm.kind, JointKind::Revolute);
    assert_eq!(
        arm.origin,
        Isometry::from_rpy([1.0, 2.0, 3.0], [0.0, 0.0, 1.5])
    );
    assert_eq!(arm.axis, [0.0, 0.0, 1.0], "of length 1");
    let limits = arm.limits.unwrap();
    assert_eq!((limits.lower, limits.upper), (Some(-1.0), Some(0.5)));
    assert_eq!(arm.soft_limits.upper, Some(0.25));
    assert!((arm.pose(0.25).yaw() - 1.75).abs() < 1e-12);
    let mimic = model.joint("hand").unwrap().mimic.clone().unwrap();
    assert_eq!((mimic.multiplier, mimic.offset), (-2.0, 0.5));
    assert_eq!(mimic.joint, "arm");
}

#[test]
fn what_urdfdom_refuses_is_refused_with_line_and_reason() {
    let fixed = |name: &str, ends| joint(name, "fixed", ends, "");
    let both = fixed("one", ["a", "b"]) + &fixed("two", ["b", "c"]);
    for (joints, reason) in [
        (String::new(), "two root links: \"a\" and \"b\""),
        (fixed("one", ["a", "b"]), "two root links"),
        (both.clone() + &fixed("three", ["c", "a"]), "no root link"),
        (
            fixed("one", ["b", "c"]) + &fixed("two", ["c", "b"]),
            "is its own ancestor",
        ),
        (
            both.clone() + &fixed("three", ["a", "c"]),
            "\"c\" is the child of two joints",
        ),
        (
            both.clone() + &fixed("one", ["a", "c"]),
            "a second joint \"one\"",
        ),
        (fixed("one", ["a", "z"]), "the unknown link \"z\""),
        (
            joint("one", "ball", ["a", "b"], ""),
            "the unknown type \"ball\"",
        ),
        (joint("one", "revolute", ["a", "b"], ""), "has no <limit>"),
        (
            joint("one", "fixed", ["a", "b"], r#"<origin xyz="1 2"/>"#),
            "not three numbers",
        ),
        (
            joint("one", "fixed", ["a", "b"], r#"<axis xyz="0 0 0"/>"#),
            "has no length",
        ),
        (
            r#"<joint name="one" type="fixed"/>"#.into(),
            "has no <parent>",
        ),
        (r#"<link name="a"/>"#.into(), "a second link \"a\""),
    ] {
        let problem = Urdf::parse(&robot(&joints)).unwrap_err();
        assert!(
            problem.contains(reason) && problem.contains("line 1"),
            "{joints}: {problem}"
        );
    }
    for (text, reason) in [
        ("<robot name='r'/>", "there is no link"),
        ("<sdf/>", "the root is <sdf>, not <robot>"),
        ("<robot", "not valid XML"),
        (
            r#"<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:arm/></robot>"#,
            "give the output of xacro",
        ),
    ] {
        let problem = Urdf::parse(text).unwrap_err();
        assert!(problem.contains(reason), "{text}: {problem}");
    }
}

#[test]
fn a_deeply_nested_document_does_not_exhaust_the_stack() {
    let depth = 200_000;
    let extension = "<e>".repeat(depth) + &"</e>".repeat(depth);
    let text = format!(r#"<robot name="r"><link name="a"/>{extension}</robot>"#);
    assert_eq!(Urdf::parse(&text).unwrap().root, "a");
}
