//! `pteros run`, `pkg` and `new`, as a user types them.

use crate::folder::LaunchFolder;
use crate::support::{Answer, assert_contains, finish, pteros};
use std::process::Command;

/// An installation prefix with the package `box`, whose program `say` prints its
/// arguments.
fn prefix(name: &str) -> LaunchFolder {
    let folder = LaunchFolder::new(name);
    folder.write("share/ament_index/resource_index/packages/box", "");
    folder.program("lib/box/say", "#!/bin/sh\nprintf '<%s>' \"$@\"\nexit 3\n");
    folder.write("lib/box/readme.txt", "no program");
    folder
}

fn run(folder: &LaunchFolder, words: &[&str]) -> Answer {
    let mut command = pteros();
    command
        .args(words)
        .current_dir(folder.path())
        .env("AMENT_PREFIX_PATH", folder.path())
        .env_remove("PTEROS_PREFIX");
    finish(command)
}

#[test]
fn a_program_of_a_package_runs_with_all_its_arguments_and_its_exit_code() {
    let folder = prefix("run");
    let words = [
        "run",
        "box",
        "say",
        "-x",
        "a b",
        "--json",
        "--ros-args",
        "--unknown-to-us",
    ];
    let answer = run(&folder, &words);
    assert_eq!(answer.code, Some(3));
    assert_eq!(answer.out, "<-x><a b><--json><--ros-args><--unknown-to-us>");
    let answer = run(
        &folder,
        &["run", "--prefix", "echo so:", "box", "say", "hm"],
    );
    let program = folder.path().join("lib/box/say");
    assert_eq!(answer.ok(), format!("so: {} hm\n", program.display()));
    // Also those that the command itself knows.
    for word in ["--help", "-V", "--json", "--interfaces"] {
        let answer = run(&folder, &["run", "box", "say", word, "x"]);
        assert_eq!(answer.out, format!("<{word}><x>"));
    }
    let error = run(&folder, &["run", "box", "sya"]).failed(1);
    assert_contains(&error, "has no program \"sya\"; did you mean \"say\"?");
    let error = run(&folder, &["run", "bxo", "say"]).failed(1);
    assert_contains(&error, "no package \"bxo\"; did you mean \"box\"?");
    // Packages that pip installed into the active virtual environment.
    let mut command = pteros();
    command
        .args(["run", "box", "say", "x"])
        .env("VIRTUAL_ENV", folder.path())
        .env_remove("AMENT_PREFIX_PATH")
        .env_remove("PTEROS_PREFIX");
    assert_eq!(finish(command).out, "<x>");
}

#[test]
fn packages_and_programs_are_listed() {
    let folder = prefix("pkg");
    assert_eq!(run(&folder, &["pkg", "list"]).ok(), "box\n");
    assert_eq!(
        run(&folder, &["pkg", "executables", "box"]).ok(),
        "box say\n"
    );
    let share = folder.path().join("share/box");
    let output = run(&folder, &["pkg", "prefix", "--share", "box"]).ok();
    assert_eq!(output, format!("{}\n", share.display()));
    let json = run(&folder, &["pkg", "executables", "--json"]).json();
    assert_eq!(json[0]["executable"], "say");
    let json = run(&folder, &["pkg", "prefix", "box", "--json"]).json();
    assert_eq!(json["origin"], "installed");
}

#[test]
fn a_package_of_a_cargo_workspace_needs_no_installation() {
    let folder = LaunchFolder::new("cargo");
    folder.write(
        "Cargo.toml",
        "[workspace]\nmembers = [\n  \"nodes/*\",\n]\n",
    );
    folder.write("nodes/arm/Cargo.toml", "[package]\nname = \"arm-driver\"\n");
    folder.write("nodes/arm/src/main.rs", "");
    folder.write(
        "nodes/arm/launch/arm.launch.xml",
        "<launch><node pkg=\"arm_driver\" exec=\"arm-driver\"/></launch>",
    );
    let launch = |words: &str| {
        let mut command = folder.command(words);
        command.env_remove("CARGO_TARGET_DIR");
        finish(command)
    };
    let verb = |words: &str| {
        let mut command = pteros();
        command.args(words.split(' '));
        command.current_dir(folder.path().join("nodes/arm"));
        command.env_remove("CARGO_TARGET_DIR");
        finish(command)
    };
    let error = launch("nodes/arm/launch/arm.launch.xml --check").failed(1);
    assert_contains(&error, "is not built yet; run: cargo build -p arm-driver");
    // Its own types are known in its folder, without an option.
    folder.write("nodes/arm/interfaces/msg/Joint.msg", "float64 angle\n");
    assert_eq!(
        verb("interface show arm_driver/msg/Joint").ok(),
        "float64 angle\n"
    );
    // Launch files in Python learn the reason by this verb.
    let error = verb("pkg executables arm_driver arm-driver").failed(1);
    assert_contains(&error, "is not built yet; run: cargo build -p arm-driver");
    let error = verb("run arm_driver arm-drivr").failed(1);
    assert_contains(&error, "did you mean \"arm-driver\"?");
    let answer = verb("pkg executables arm_driver");
    assert_eq!((answer.code, answer.out.as_str()), (Some(0), ""));
    assert_contains(&answer.err, "cargo build -p arm-driver");
    assert_contains(
        &answer.err,
        "not built yet in package 'arm-driver': arm-driver",
    );
    let program = folder.program("target/debug/arm-driver", "#!/bin/sh\n");
    let answer = verb("pkg executables arm_driver");
    assert_eq!(answer.err, "");
    // A library, or interfaces alone: nothing to build.
    folder.write("nodes/lib/Cargo.toml", "[package]\nname = \"only-lib\"\n");
    folder.write("nodes/lib/src/lib.rs", "");
    let answer = verb("pkg executables only_lib");
    assert_eq!((answer.code, answer.out.as_str()), (Some(0), ""));
    assert_eq!(answer.err, "package 'only-lib' has no programs\n");
    let plan = launch("arm_driver arm.launch.xml --dry-run --json").json();
    assert_eq!(
        plan["steps"][0]["command"][0],
        program.display().to_string()
    );
    // A build folder that packages share, as those of `pteros new` do.
    let configured = LaunchFolder::new("configured");
    configured.write("arm/Cargo.toml", "[package]\nname = \"arm\"\n[workspace]\n");
    configured.write("arm/src/main.rs", "");
    configured.write(
        "arm/.cargo/config.toml",
        "[build]\ntarget-dir = \"../built\"\n",
    );
    configured.program("built/debug/arm", "#!/bin/sh\n");
    let mut command = pteros();
    command
        .args(["pkg", "executables", "arm"])
        .current_dir(configured.path().join("arm"))
        .env_remove("CARGO_TARGET_DIR");
    assert_eq!(finish(command).ok(), "arm arm\n");
    // Its folder, and that of a workspace whose packages lie in `src`, know the package.
    configured.write("src/leg/Cargo.toml", "[package]\nname = \"leg\"\n");
    configured.write("src/leg/src/main.rs", "");
    configured.program("src/leg/target/debug/leg", "#!/bin/sh\necho walks\n");
    let above = |words: &str| {
        let mut command = pteros();
        command.args(words.split(' '));
        command.current_dir(configured.path());
        command.env_remove("CARGO_TARGET_DIR");
        finish(command)
    };
    let listed = above("pkg list").ok();
    for package in ["arm", "leg"] {
        assert!(listed.lines().any(|line| line == package), "{listed}");
    }
    assert_eq!(above("pkg executables arm").ok(), "arm arm\n");
    assert_eq!(above("run leg leg").ok(), "walks\n");
    configured.write("arm/interfaces/msg/Joint.msg", "float64 angle\n");
    assert_eq!(
        above("interface show arm/msg/Joint").ok(),
        "float64 angle\n"
    );
    let error = launch("arm_driver amr.launch.xml --check").failed(1);
    assert!(error.contains("did you mean arm.launch.xml?"), "{error}");
    let error = launch("arm_driver other.launch.xml --check").failed(1);
    assert_contains(&error, "it has: arm.launch.xml");
}

#[test]
fn a_new_package_is_written_once_and_only_with_a_valid_name() {
    let folder = LaunchFolder::new("new");
    let output = run(&folder, &["new", "my_robot"]).ok();
    assert!(output.contains("my_robot"), "{output}");
    let text = folder.read("my_robot/src/lib.rs");
    assert!(
        text.contains("pub struct MyRobot") && !text.contains('@'),
        "{text}"
    );
    assert!(
        folder
            .read("my_robot/launch/my_robot.launch.xml")
            .contains("exec=\"my_robot\"")
    );
    let error = run(&folder, &["new", "my_robot"]).failed(1);
    assert!(error.contains("exists already"), "{error}");
    let long = "a".repeat(101);
    for name in [
        "My",
        "1st",
        "a-b",
        "a__b",
        "a/b",
        "",
        ".",
        "..",
        "a_",
        "ä",
        "a b",
        "a\nb",
        "test",
        "async",
        "deps",
        "incremental",
        &long,
    ] {
        let error = run(&folder, &["new", name]).failed(1);
        assert!(
            error.contains("choose") || error.contains("write lower-case letters"),
            "{error}"
        );
    }
    // Packages that are there: of the wheel's interfaces, of a folder, installed.
    folder.write("src/arm_msgs/msg/Arm.msg", "int8 x\n");
    folder.write("share/ament_index/resource_index/packages/crane", "");
    for verb in [&["new"][..], &["pkg", "create"]] {
        for (name, reason) in [
            ("std_msgs", "is the name of an interface package"),
            ("tf2_msgs", "is the name of an interface package"),
            ("arm_msgs", "is the name of an interface package"),
            ("crane", "is installed in"),
        ] {
            let mut command = pteros();
            command.args(verb).arg(name).current_dir(folder.path());
            command.env("PTEROS_INTERFACE_PATH", folder.path().join("src"));
            command.env("AMENT_PREFIX_PATH", folder.path());
            let error = finish(command).failed(1);
            assert_contains(&error, reason);
            assert_contains(&error, &format!("as my_{name}"));
            assert!(!folder.path().join(name).exists());
        }
    }
    // The folder comes first: whoever has made the package knows what it is.
    std::fs::create_dir(folder.path().join("crane")).unwrap();
    let mut command = pteros();
    command.args(["new", "crane"]).current_dir(folder.path());
    command.env("AMENT_PREFIX_PATH", folder.path());
    assert_contains(&finish(command).failed(1), "exists already");
    let error = run(&folder, &["new", "other", "--pteros", "/no/such"]).failed(1);
    assert_contains(&error, "this is not a checkout of Pteros");
    assert!(!folder.path().join("other").exists());
}

/// As docs/how_to/deploy.md copies a package to a robot: one program and its launch files.
#[test]
fn a_package_copied_to_a_prefix_is_launched_by_its_name() {
    let folder = LaunchFolder::new("deployed");
    run(&folder, &["new", "my_robot"]).ok();
    folder.program("install/lib/my_robot/my_robot", "#!/bin/sh\n");
    folder.write(
        "install/share/my_robot/launch/my_robot.launch.xml",
        &folder.read("my_robot/launch/my_robot.launch.xml"),
    );
    let mut command = folder.command("my_robot my_robot.launch.xml --check");
    command
        .current_dir("/")
        .env("PTEROS_PREFIX", folder.path().join("install"))
        .env_remove("AMENT_PREFIX_PATH");
    assert_contains(&finish(command).ok(), "no errors; 1 process, 1 file");
}

/// Builds the whole of Pteros again, which takes some minutes.
#[test]
#[ignore = "minutes: builds a package of its own"]
fn a_new_package_builds_tests_and_runs_by_its_launch_file() {
    let folder = LaunchFolder::new("build");
    run(&folder, &["new", "my_robot"]).ok();
    let package = folder.path().join("my_robot");
    let cargo = |words: &[&str]| {
        let mut command = Command::new("cargo");
        command.args(words).current_dir(&package).arg("--offline");
        let answer = finish(command);
        assert_eq!(answer.code, Some(0), "{}", answer.err);
    };
    cargo(&["test"]);
    cargo(&["build"]);
    assert!(folder.path().join("target/debug/my_robot").is_file());
    let domain = crate::support::Domain::new();
    let mut command =
        folder.command("my_robot/launch/my_robot.launch.xml rate:=20.0 namespace:=lab");
    command.env("ROS_DOMAIN_ID", domain.id().to_string());
    let launch = crate::support::start(command);
    let received = domain.run_until("topic echo /lab/count --once --timeout 20", |answer| {
        answer.code == Some(0)
    });
    assert!(
        received.out.contains("data:"),
        "{}{}",
        received.out,
        received.err
    );
    launch.signal("INT");
}

#[test]
fn a_created_package_has_a_manifest_that_xml_prints() {
    let folder = LaunchFolder::new("create");
    let words = [
        "pkg",
        "create",
        "arm_driver",
        "--dependencies",
        "std_msgs",
        "sensor_msgs",
        "--license",
        "Apache-2.0",
        "--description",
        "drives <an> arm",
        "--maintainer-name",
        "A. Smith",
        "--maintainer-email",
        "a@example.org",
        "--node-name",
        "arm",
        "--library-name",
        "arm_library",
    ];
    let made = run(&folder, &words).ok();
    assert_contains(&made, "created ./arm_driver");
    let package = folder.path().join("arm_driver");
    let read = |file: &str| std::fs::read_to_string(package.join(file)).unwrap();
    let manifest = read("Cargo.toml");
    for part in [
        "description = \"drives <an> arm\"\nlicense = \"Apache-2.0\"\n",
        "[lib]\nname = \"arm_library\"\n",
        "[[bin]]\nname = \"arm\"\npath = \"src/main.rs\"\n\n[dependencies]\n",
    ] {
        assert_contains(&manifest, part);
    }
    assert_contains(&read("src/main.rs"), "arm_library::Arm::new");
    assert_contains(
        &read("launch/arm_driver.launch.xml"),
        "exec=\"arm\" name=\"arm\"",
    );
    let within = |words: &[&str]| {
        let mut command = pteros();
        command
            .args(words)
            .current_dir(&package)
            .env("ROS_AUTOMATIC_DISCOVERY_RANGE", "OFF");
        finish(command)
    };
    let xml = within(&["pkg", "xml", "arm_driver"]).ok();
    assert!(
        xml.starts_with("<package format=\"3\">\n  <name>arm_driver</name>\n"),
        "{xml}"
    );
    for (tag, text) in [
        ("depend", "std_msgs\nsensor_msgs\n"),
        ("description", "drives <an> arm\n"),
        ("maintainer", "A. Smith\n"),
        ("version", "0.1.0\n"),
        ("export/build_type", "ament_cargo\n"),
    ] {
        assert_eq!(
            within(&["pkg", "xml", "arm_driver", "-t", tag]).ok(),
            text,
            "{tag}"
        );
    }
    let report = within(&["doctor", "--report", "--json"]).json();
    let rows = report["packages"].as_array().unwrap();
    let row = rows.iter().find(|row| row["name"] == "arm_driver").unwrap();
    assert_eq!(row["version"], "0.1.0");
    let report = within(&["doctor", "--report", "--json", "-ep"]).json();
    assert!(report["packages"].is_null(), "{report:#}");
    let error = within(&["pkg", "xml", "arm_driver", "-t", "licence"]).failed(1);
    assert_contains(&error, "has no tag 'licence'");
    let error = run(
        &folder,
        &["pkg", "create", "more", "--build-type", "ament_cmake"],
    );
    assert_contains(
        &error.failed(1),
        "of the build types ament_cargo (Rust) and ament_python",
    );
}

/// The tests of the wheel run such a package.
#[test]
fn a_package_in_python_is_written_whole() {
    let folder = LaunchFolder::new("python");
    let said = run(&folder, &["new", "my_py", "--python"]).ok();
    assert_contains(&said, "pip install ./my_py && pteros run my_py my_py");
    let words = [
        "pkg",
        "create",
        "arm_driver",
        "--build-type",
        "ament_python",
        "--node-name",
        "arm",
        "--library-name",
        "arm_library",
        "--description",
        "it's an \"arm\" \\ ü",
        "--dependencies",
        "std_msgs",
        "sensor_msgs",
    ];
    run(&folder, &words).ok();
    let setup = folder.read("arm_driver/setup.py");
    for part in [
        r#"description="it's an \"arm\" \\ ü","#,
        "packages=['arm_library']",
        "'arm = arm_library.arm:main'",
        "['resource/arm_driver']",
    ] {
        assert_contains(&setup, part);
    }
    let manifest = folder.read("arm_driver/package.xml");
    assert_contains(&manifest, "<build_type>ament_python</build_type>");
    let depends = manifest.matches("<depend>").count();
    assert_eq!(depends, 4, "{manifest}");
    for (package, library, node) in [
        ("my_py", "my_py", "my_py"),
        ("arm_driver", "arm_library", "arm"),
    ] {
        for file in [
            format!("{package}/setup.py"),
            format!("{package}/{library}/{node}.py"),
            format!("{package}/{library}/__init__.py"),
            format!("{package}/resource/{package}"),
            format!("{package}/test/test_{node}.py"),
            format!("{package}/launch/{package}.launch.xml"),
            format!("{package}/README.md"),
            format!("{package}/.gitignore"),
        ] {
            let text = folder.read(&file);
            assert!(!text.contains('@'), "{file}:\n{text}");
        }
    }
    for name in ["class", "rclpy", "launch", "std_msgs"] {
        let error = run(&folder, &["new", name, "--python"]).failed(1);
        assert_contains(&error, "choose another");
    }
    let words = ["new", "x", "--python", "--pteros", "/nowhere"];
    assert_contains(&run(&folder, &words).failed(2), "--pteros");
}

#[test]
fn scripts_that_restart_the_daemon_go_on() {
    let folder = LaunchFolder::new("daemon");
    assert_eq!(
        run(&folder, &["daemon", "stop"]).ok(),
        "The daemon is not running\n"
    );
    assert_contains(
        &run(&folder, &["daemon", "start"]).ok(),
        "There is no daemon to start",
    );
    let status = run(&folder, &["daemon", "status", "--json"]).json();
    assert_eq!(status["running"], false);
}
