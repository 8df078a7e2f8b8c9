//! Built-in nodes by `pteros run` and by launch files, where their packages are missing.

use crate::folder::LaunchFolder;
use crate::support::{Domain, assert_contains, finish, start};

const LAUNCH: &str = r#"<launch>
  <node pkg="robot_state_publisher" exec="robot_state_publisher" output="screen">
    <param name="robot_description" value="$(file-content robot.urdf)" type="str"/>
  </node>
</launch>"#;

const ROBOT: &str = r#"<robot name="r"><link name="base"/><link name="laser"/>
  <joint name="j" type="fixed"><parent link="base"/><child link="laser"/><origin xyz="0 0 0.25"/></joint>
</robot>"#;

fn folder() -> LaunchFolder {
    let folder = LaunchFolder::new("built_in_nodes");
    folder.write("robot.launch.xml", LAUNCH);
    folder.write("robot.urdf", ROBOT);
    folder
}

#[test]
fn an_unchanged_launch_file_starts_the_built_in_node() {
    let (folder, domain) = (folder(), Domain::new());
    let mut command = folder.command("robot.launch.xml");
    command.env("ROS_DOMAIN_ID", domain.id().to_string());
    let mut launch = start(command);
    while !launch
        .line()
        .contains("built-in node of Pteros, because package")
    {}
    let words = "topic echo /tf_static --once --field transforms[0] --qos-reliability reliable --qos-durability transient_local";
    let transform = domain.run(words).ok();
    assert_contains(&transform, "child_frame_id: laser");
    assert_contains(&transform, "z: 0.25");
}

#[test]
fn a_switch_leaves_the_built_in_nodes_out() {
    let folder = folder();
    let mut command = folder.command("robot.launch.xml");
    command.env("PTEROS_BUILT_IN_NODES", "off");
    let answer = finish(command);
    assert_ne!(answer.code, Some(0));
    assert_contains(&answer.err, "there is no package \"robot_state_publisher\"");
}

#[test]
fn an_installed_program_comes_first() {
    let folder = folder();
    folder.write(
        "prefix/share/ament_index/resource_index/packages/tf2_ros",
        "",
    );
    folder.write_script(
        "prefix/lib/tf2_ros/static_transform_publisher",
        "#!/bin/sh\necho the real one\n",
    );
    let run = |program: &str, prefix: &str| {
        let mut command = crate::support::pteros();
        command
            .args(["run", "tf2_ros", program, "--help"])
            .env("AMENT_PREFIX_PATH", prefix);
        finish(command)
    };
    let prefix = folder.text("prefix");
    assert_eq!(
        run("static_transform_publisher", &prefix).ok(),
        "the real one\n"
    );
    let usage = run("static_transform_publisher", "").ok();
    assert_contains(&usage, "usage: static_transform_publisher [--x X]");
    let unknown = run("static_transform", "").failed(1);
    assert_contains(
        &unknown,
        "built in of it: buffer_server, static_transform_publisher",
    );
}

#[test]
fn built_in_programs_are_listed_and_completed_after_installed_ones() {
    let folder = folder();
    folder.write(
        "prefix/share/ament_index/resource_index/packages/tf2_ros",
        "",
    );
    folder.write_script(
        "prefix/lib/tf2_ros/static_transform_publisher",
        "#!/bin/sh\n",
    );
    let run = |words: &str, prefix: &str| {
        let mut command = crate::support::pteros();
        command
            .args(words.split(' '))
            .env("AMENT_PREFIX_PATH", prefix);
        finish(command)
    };
    let listed = run("pkg executables tf2_ros", "").ok();
    assert_eq!(
        listed,
        "tf2_ros buffer_server\ntf2_ros static_transform_publisher\n"
    );
    let prefix = folder.text("prefix");
    let listed = run("pkg executables tf2_ros --full-path", &prefix).ok();
    let lines: Vec<&str> = listed.lines().collect();
    assert!(
        lines[0].ends_with("prefix/lib/tf2_ros/static_transform_publisher"),
        "{listed}"
    );
    assert!(lines[1].ends_with(" run tf2_ros buffer_server"), "{listed}");
    assert_contains(&run("pkg executables", "").ok(), "joy joy_node\n");
    let domain = Domain::new();
    let completed = domain.candidates("pteros run tf2_ros b");
    assert_eq!(completed, ["buffer_server"]);
    assert_eq!(
        domain.candidates("pteros run teleop_twist_j"),
        ["teleop_twist_joy"]
    );
    let unknown = run("pkg executables tf2_rs", "").failed(1);
    assert_contains(&unknown, "there is no package \"tf2_rs\"");
}

#[test]
fn a_substitution_finds_the_built_in_program() {
    let folder = folder();
    folder.write(
        "exec.launch.xml",
        r#"<launch>
          <executable cmd="$(exec-in-pkg static_transform_publisher tf2_ros) --help" output="screen"/>
        </launch>"#,
    );
    let answer = finish(folder.command("exec.launch.xml"));
    let text = format!("{}{}", answer.out, answer.err);
    assert_contains(&text, "usage: static_transform_publisher [--x X]");
}

#[test]
fn rviz2_opens_the_page() {
    let (folder, domain) = (folder(), Domain::new());
    let mut command = crate::support::pteros();
    command
        .args(["run", "rviz2", "rviz2", "-f", "map"])
        .env("ROS_DOMAIN_ID", domain.id().to_string())
        // No browser.
        .env("PATH", folder.text("prefix"));
    let mut page = start(command);
    loop {
        let line = page.line();
        assert!(!line.is_empty(), "the page did not start");
        if line.starts_with("http://127.0.0.1:") {
            break;
        }
    }
}
