//! `pteros lab`: starts the lab's own program, or says how to get it.

use pteros_test_support::folder::Folder;
use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use crate::support::{finish, install_program, pteros};

#[test]
fn the_lab_is_another_program_with_the_same_arguments() {
    let folder = Folder::absent("cli-lab");
    let on_path = folder.join("path");
    fs::create_dir_all(&on_path).expect("a folder");
    // Nothing lies beside this copy of the command.
    let own = folder.join("pteros");
    install_program(pteros().get_program(), &own);
    let lab = |words: &str| {
        let mut command = Command::new(&own);
        command.args(words.split(' ')).env("PATH", &on_path);
        finish(command)
    };
    let missing = lab("lab list").failed(1);
    for hint in [
        "pteros-lab is neither beside",
        "cargo install --locked --path tools/lab",
    ] {
        assert!(missing.contains(hint), "{missing}");
    }
    symlink("/bin/sh", on_path.join("sh")).expect("a link");
    let script = folder.join("script");
    fs::write(&script, "#!/bin/sh\necho \"$@\"\nexit 7\n").expect("written");
    install_program(&script, on_path.join("pteros-lab"));
    let words = "lab run m16.1 --quick --peers none -- --ros-args";
    let answer = lab(words);
    assert_eq!(answer.code, Some(7), "{}", answer.err);
    assert_eq!(answer.out, "run m16.1 --quick --peers none -- --ros-args\n");
    let answer = lab("--interfaces here lab --help --json");
    assert_eq!(answer.out, "--interfaces here --help --json\n");
}
