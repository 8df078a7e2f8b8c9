//! `pteros rmw install` and `check`: the files of the overlay, its setup files in a
//! shell, and wrong inputs. The plug-in is a file with a build note here. With a ROS 2
//! (sourced, or named by PTEROS_ROS2) and a built plug-in beside the command, a talker
//! runs on it too.

#![allow(
    clippy::disallowed_methods,
    reason = "finds an installation of ROS 2 by the environment"
)]

use crate::support::{Answer, assert_contains, finish, install_program, pteros};
use pteros_test_support::folder::Folder;
use std::path::{Path, PathBuf};
use std::process::Command;

/// An installation of ROS 2 with a version of the package rmw.
fn ros2(folder: &Folder, rmw: &str) -> PathBuf {
    let manifest = format!("<package><name>rmw</name><version>{rmw}</version></package>");
    folder.write("ros2/share/rmw/package.xml", &manifest);
    for shell in ["sh", "bash"] {
        let text = b"export AMENT_PREFIX_PATH=/the/underlay\nexport UNDERLAY=sourced\n";
        folder.write(&format!("ros2/setup.{shell}"), text);
    }
    folder.join("ros2")
}

/// A library for this machine with a build note.
fn plug_in(folder: &Folder, rmw: &str) -> PathBuf {
    let mut bytes = elf_header();
    let note = format!("\0pteros-rmw-build version={VERSION} rmw={rmw};\0");
    bytes.extend(note.as_bytes());
    folder.write("librmw_pteros_cpp.so", &bytes)
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The header of this machine's shared libraries, from a program of it.
fn elf_header() -> Vec<u8> {
    let program = std::fs::read(env!("CARGO_BIN_EXE_pteros")).unwrap();
    let mut header = program[..64].to_vec();
    // ET_DYN.
    header[16] = 3;
    header
}

/// The command, with no ROS 2 but the given one.
fn command(words: &[&str], ros2: Option<&Path>) -> Command {
    let mut command = pteros();
    command.args(words);
    for variable in [
        "PTEROS_ROS2",
        "RMW_IMPLEMENTATION",
        "LD_LIBRARY_PATH",
        "XDG_DATA_HOME",
    ] {
        command.env_remove(variable);
    }
    if let Some(prefix) = ros2 {
        command.env("PTEROS_ROS2", prefix);
    }
    command
}

fn rmw(words: &[&str], ros2: Option<&Path>) -> Answer {
    finish(command(&[&["rmw"], words].concat(), ros2))
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn install(prefix: &Path, library: &Path, ros2: Option<&Path>) -> String {
    let words = [
        "install",
        "--prefix",
        text(prefix),
        "--library",
        text(library),
    ];
    rmw(&words, ros2).ok()
}

/// The variables after sourcing a setup file.
fn variables_after(shell: &str, setup: &Path) -> String {
    let script =
        ". \"$1\" && echo \"$AMENT_PREFIX_PATH|$CMAKE_PREFIX_PATH|$LD_LIBRARY_PATH|$UNDERLAY\"";
    let mut command = Command::new(shell);
    command.args(["-euc", script, "shell", text(setup)]);
    for variable in [
        "AMENT_PREFIX_PATH",
        "CMAKE_PREFIX_PATH",
        "COLCON_CURRENT_PREFIX",
    ] {
        command.env_remove(variable);
    }
    command
        .env("LD_LIBRARY_PATH", "/else/where")
        .env("UNDERLAY", "");
    finish(command).ok().trim().to_owned()
}

#[test]
fn an_overlay_has_what_ament_cmake_and_the_loader_look_up() {
    let folder = Folder::new("overlay");
    let (library, prefix) = (plug_in(&folder, "7.3"), folder.join("over lay"));
    let out = install(&prefix, &library, None);
    assert_contains(&out, "for ROS 2 jazzy into");
    assert_contains(&out, "export RMW_IMPLEMENTATION=rmw_pteros_cpp");
    assert_contains(&out, &format!("source {}/setup.bash", prefix.display()));
    assert_contains(&out, "not checked: no ROS 2 was found");

    let typesupport = "over lay/share/ament_index/resource_index/rmw_typesupport";
    let of_c = "rosidl_typesupport_c;rosidl_typesupport_introspection_c";
    let of_cpp = "rosidl_typesupport_cpp;rosidl_typesupport_introspection_cpp";
    let read = |suffix: &str| folder.read(&format!("{typesupport}{suffix}/rmw_pteros_cpp"));
    assert_eq!(read(""), format!("{of_c};{of_cpp}"));
    assert_eq!((read("_c"), read("_cpp")), (of_c.into(), of_cpp.into()));
    for file in [
        "share/ament_index/resource_index/packages/rmw_pteros_cpp",
        "share/colcon-core/packages/rmw_pteros_cpp",
        "share/rmw_pteros_cpp/package.xml",
        "share/rmw_pteros_cpp/cmake/rmw_pteros_cppConfig.cmake",
        "lib/librmw_pteros_cpp.so",
    ] {
        assert!(prefix.join(file).is_file(), "{file}");
    }
    assert_eq!(
        std::fs::read(prefix.join("lib/librmw_pteros_cpp.so")).unwrap(),
        std::fs::read(&library).unwrap()
    );
    // Nothing half-written stays behind.
    let left = std::fs::read_dir(prefix.join("lib")).unwrap().count();
    assert_eq!(left, 1);
}

#[test]
fn a_setup_file_adds_the_overlay_once_and_after_the_underlay() {
    let folder = Folder::new("setup");
    let (library, ros2, prefix) = (
        plug_in(&folder, "7.3"),
        ros2(&folder, "7.3.2"),
        folder.join("a b"),
    );
    install(&prefix, &library, Some(&ros2));
    let at = prefix.display();
    let expected = format!("{at}:/the/underlay|{at}|{at}/lib:/else/where|sourced");
    for shell in ["sh", "bash"] {
        assert_eq!(
            variables_after(shell, &prefix.join(format!("setup.{shell}"))),
            expected
        );
    }
    // A workspace with a folder per package is found by its install folder too.
    let isolated = folder.join("isolated");
    std::fs::create_dir_all(&isolated).unwrap();
    std::fs::rename(ros2.join("share"), isolated.join("share")).unwrap();
    std::fs::rename(&isolated, ros2.join("rmw")).unwrap();
    let out = install(&prefix, &library, Some(&ros2));
    assert_contains(&out, "has no talker");
    assert_eq!(
        variables_after("bash", &prefix.join("setup.bash")),
        expected
    );
    // A second time, and from a folder that was moved.
    let twice = folder.write(
        "twice.bash",
        format!(". '{at}/setup.bash'\n. '{at}/setup.bash'\n").as_bytes(),
    );
    assert_eq!(variables_after("bash", &twice), expected);
    let moved = folder.join("moved");
    std::fs::rename(&prefix, &moved).unwrap();
    let moved_to = expected.replace(&at.to_string(), &moved.display().to_string());
    assert_eq!(variables_after("bash", &moved.join("setup.bash")), moved_to);
}

#[test]
fn a_workspace_keeps_its_own_setup_files() {
    let folder = Folder::new("workspace");
    let library = plug_in(&folder, "7.3");
    folder.write("ws/setup.bash", b"# of colcon\n");
    folder.write("ws/.colcon_install_layout", b"merged\n");
    let out = install(&folder.join("ws"), &library, None);
    assert_contains(&out, "setup files of that workspace were kept");
    assert_eq!(folder.read("ws/setup.bash"), "# of colcon\n");
    assert!(!folder.join("ws/local_setup.bash").exists());
    assert_contains(
        &folder.read("ws/share/rmw_pteros_cpp/package.dsv"),
        "prepend-non-duplicate;LD_LIBRARY_PATH;lib",
    );
    // Our own ones are renewed.
    let again = folder.join("again");
    install(&again, &library, None);
    assert!(!install(&again, &library, None).contains("were kept"));
}

#[test]
fn wrong_inputs_name_the_thing_and_the_way_out() {
    let folder = Folder::new("wrong");
    let (library, ros2) = (plug_in(&folder, "7.3"), ros2(&folder, "7.8.2"));
    let prefix = folder.join("p");
    let run = |library: &Path, prefix: &Path, ros2: Option<&Path>| {
        let words = [
            "install",
            "--prefix",
            text(prefix),
            "--library",
            text(library),
        ];
        rmw(&words, ros2).failed(1)
    };
    let said = run(Path::new("/no/such.so"), &prefix, None);
    assert_contains(&said, "reading the plug-in /no/such.so: No such file");
    let words = folder.write("words.so", b"these are words, more than a header has");
    assert_contains(
        &run(&words, &prefix, None),
        "words.so is no shared library; name the file",
    );
    let mut other = elf_header();
    other[18] ^= 0x55;
    let other = folder.write("other.so", &other);
    assert_contains(
        &run(&other, &prefix, None),
        "for another kind of machine; build it here",
    );
    let foreign = folder.write("foreign.so", &elf_header());
    assert_contains(
        &run(&foreign, &prefix, None),
        "not the middleware plug-in of Pteros",
    );
    // Another distribution, and a prefix that is no installation.
    let said = run(&library, &prefix, Some(&ros2));
    assert_contains(
        &said,
        "built for ROS 2 jazzy (rmw 7.3), but this is ROS 2 kilted in",
    );
    let said = run(&library, &prefix, Some(Path::new("/no/ros")));
    assert_contains(
        &said,
        "PTEROS_ROS2=/no/ros: no installation of ROS 2 is there",
    );
    assert!(!prefix.exists(), "nothing is written before all is checked");
    // Folders that cannot be an overlay.
    let said = run(&library, Path::new("/a:b"), None);
    assert_contains(&said, "cannot hold ':'; use another folder");
    folder.write("isolated/.colcon_install_layout", b"isolated\n");
    let said = run(&library, &folder.join("isolated"), None);
    assert_contains(&said, "isolated/rmw_pteros_cpp");
    let file = folder.write("file", b"");
    let said = run(&library, &file, None);
    assert_contains(&said, "choose another folder with --prefix");
}

#[test]
fn the_plug_in_of_a_package_is_found_from_the_command() {
    let folder = Folder::new("package");
    let library = plug_in(&folder, "7.3");
    let command = folder.join("usr/bin/pteros");
    install_program(env!("CARGO_BIN_EXE_pteros"), &command);
    let install = || {
        let mut install = Command::new(&command);
        install
            .args(["rmw", "install"])
            .env("HOME", &folder)
            .env_remove("XDG_DATA_HOME")
            .env_remove("PTEROS_ROS2")
            .env_remove("AMENT_PREFIX_PATH");
        finish(install)
    };
    let said = install().failed(1);
    assert_contains(&said, "usr/bin/../lib/pteros/librmw_pteros_cpp.so)");
    assert_contains(&said, "or name the file with --library");
    let place = folder.join("usr/lib/pteros");
    std::fs::create_dir_all(&place).unwrap();
    std::fs::rename(&library, place.join("librmw_pteros_cpp.so")).unwrap();
    install().ok();
    let installed = folder.join(".local/share/pteros/rmw/lib/librmw_pteros_cpp.so");
    assert!(installed.is_file());
}

#[test]
fn the_plug_in_of_a_distribution_is_the_one_of_the_installation_or_the_named_one() {
    let folder = Folder::new("distributions");
    let command = folder.join("bin/pteros");
    install_program(env!("CARGO_BIN_EXE_pteros"), &command);
    for (name, rmw) in [
        ("", "7.3"),
        ("_humble", "6.1"),
        ("_kilted", "7.8"),
        ("_lyrical", "7.10"),
    ] {
        let note = format!("\0pteros-rmw-build version={VERSION} rmw={rmw};\0");
        let bytes = [elf_header(), note.into_bytes()].concat();
        folder.write(&format!("lib/pteros/librmw_pteros_cpp{name}.so"), &bytes);
    }
    let prefix = folder.join("p");
    let install = |rmw: Option<&str>, distro: &[&str]| {
        let ros2 = rmw.map(|version| ros2(&folder, version));
        let mut install = Command::new(&command);
        install
            .args(["rmw", "install", "--no-check", "--prefix", text(&prefix)])
            .args(distro)
            .env_remove("AMENT_PREFIX_PATH")
            .env("PTEROS_ROS2", ros2.unwrap_or_default());
        finish(install)
    };
    for (rmw, distro, expected) in [
        (None, [].as_slice(), "for ROS 2 jazzy into"),
        (None, &["--distro", "humble"], "for ROS 2 humble into"),
        (Some("6.1.2"), &[], "for ROS 2 humble into"),
        (Some("7.8.2"), &[], "for ROS 2 kilted into"),
        (Some("7.10.1"), &[], "for ROS 2 lyrical into"),
        (
            Some("7.8.2"),
            &["--distro", "kilted"],
            "for ROS 2 kilted into",
        ),
    ] {
        let said = install(rmw, distro).ok();
        assert_contains(&said, expected);
        let is_untried = expected.contains("lyrical");
        assert_eq!(said.contains("never run with it"), is_untried, "{said}");
        let installed = prefix.join("lib/librmw_pteros_cpp.so");
        assert!(
            installed.is_file(),
            "under the name that rmw_implementation looks for"
        );
    }
    for (rmw, distro, expected) in [
        (
            Some("7.1.0"),
            [].as_slice(),
            "no plug-in for ROS 2 iron; it has them for humble",
        ),
        (
            Some("9.9.0"),
            &[],
            "no plug-in for ROS 2 of an unknown distribution",
        ),
        (
            Some("6.1.2"),
            &["--distro", "jazzy"],
            "pteros rmw install --distro humble",
        ),
        (
            None,
            &["--distro", "foxy"],
            "possible values: humble, jazzy, kilted, lyrical",
        ),
    ] {
        let said = install(rmw, distro);
        assert_ne!(said.code, Some(0));
        assert_contains(&said.err, expected);
    }
    std::fs::remove_file(folder.join("lib/pteros/librmw_pteros_cpp_humble.so")).unwrap();
    let said = install(None, &["--distro", "humble"]).failed(1);
    assert_contains(&said, "cargo build --release -p pteros-rmw-humble");
}

#[test]
fn an_installation_without_a_talker_is_named() {
    let folder = Folder::new("talker");
    let (library, ros2) = (plug_in(&folder, "7.3"), ros2(&folder, "7.3.2"));
    let out = install(&folder.join("p"), &library, Some(&ros2));
    assert_contains(&out, "has no talker; install demo_nodes_cpp");
    // A talker that fails is an error with its words.
    let talker = folder.write(
        "ros2/lib/demo_nodes_cpp/talker",
        b"#!/bin/sh\necho 'no such middleware' >&2\nexit 3\n",
    );
    let made = Command::new("chmod").arg("+x").arg(&talker).status();
    assert!(made.unwrap().success());
    let words = [
        "install",
        "--prefix",
        text(&folder),
        "--library",
        text(&library),
    ];
    let said = rmw(&words, Some(&ros2)).failed(1);
    assert_contains(
        &said,
        "ended early (exit status: 3): it printed: no such middleware",
    );
}

#[test]
fn check_and_doctor_report_a_plug_in_that_is_missing_or_does_not_fit() {
    let folder = Folder::new("check");
    let (library, ros2) = (plug_in(&folder, "6.1"), ros2(&folder, "7.3.2"));
    let none = rmw(&["check"], None);
    assert_eq!(none.code, Some(1), "{}", none.out);
    assert_contains(
        &none.out,
        "no folder of LD_LIBRARY_PATH has librmw_pteros_cpp.so",
    );
    let prefix = folder.join("nothing");
    let said = rmw(&["check", "--prefix", text(&prefix)], Some(&ros2));
    assert_eq!(said.code, Some(1));
    assert_contains(&said.out, "lib/librmw_pteros_cpp.so does not exist");
    for words in [["doctor", "--json"].as_slice(), &["rmw", "check", "--json"]] {
        let mut command = command(words, Some(&ros2));
        command
            .env("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
            .env("LD_LIBRARY_PATH", library.parent().unwrap())
            .env("RMW_IMPLEMENTATION", "rmw_pteros_cpp");
        let answer = finish(command);
        assert_eq!(answer.code, Some(1), "{}{}", answer.out, answer.err);
        let found: serde_json::Value = serde_json::from_str(&answer.out).unwrap();
        let list = found["findings"].as_array().unwrap().iter();
        let ours: Vec<String> = list
            .filter(|finding| finding["area"] == "ROS 2 plug-in")
            .map(|f| format!("{}: {} / {}", f["result"], f["text"], f["fix"]))
            .collect();
        let has = |part: &str| assert!(ours.iter().any(|text| text.contains(part)), "{ours:#?}");
        has("ROS 2 jazzy in");
        has("rclcpp and rclpy programs run on Pteros");
        has("was built for ROS 2 humble (rmw 6.1)");
        has("pteros rmw install --distro jazzy");
    }
    // Programs of another middleware do not use it.
    let mut command = command(&["doctor", "--json"], Some(&ros2));
    command
        .env("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
        .env("LD_LIBRARY_PATH", library.parent().unwrap())
        .env("RMW_IMPLEMENTATION", "rmw_cyclonedds_cpp");
    let found = finish(command).json();
    let mut findings = found["findings"].as_array().unwrap().iter();
    let does_not_fit = findings.find(|finding| {
        let text = finding["text"].as_str().unwrap();
        text.contains("was built for ROS 2 humble (rmw 6.1)")
    });
    assert_eq!(does_not_fit.unwrap()["result"], "warning", "{found:#}");
}

/// The plug-in that a workspace build puts beside the command.
#[test]
fn a_talker_of_an_installed_ros2_runs_on_the_installed_plug_in() {
    let library = Path::new(env!("CARGO_BIN_EXE_pteros")).with_file_name("librmw_pteros_cpp.so");
    let is_found = std::env::var_os("PTEROS_ROS2").is_some()
        || std::env::var("AMENT_PREFIX_PATH").is_ok_and(|path| !path.is_empty());
    if !is_found || !library.is_file() {
        println!("skipped: no ROS 2 is sourced or named by PTEROS_ROS2, or no plug-in is built");
        return;
    }
    let folder = Folder::new("real");
    let prefix = folder.join("overlay");
    let run = |verb: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pteros"));
        command.args(["--json", "rmw", verb, "--prefix", text(&prefix)]);
        finish(command).json()
    };
    let installed = run("install");
    assert_eq!(
        installed["talker"]["library"], installed["library"],
        "{installed:#}"
    );
    let checked = run("check");
    assert_eq!(checked["errors"], 0, "{checked:#}");
    assert_contains(&checked.to_string(), "was heard after");
}
