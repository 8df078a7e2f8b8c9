//! The commands of the book: each line of a `sh` block that calls `pteros` parses,
//! and docs/reference/commands.md has every verb with every option. The lab checks
//! its own (tools/lab/tests/testsuite/book.rs).

use crate::checker::{arguments, check_lines, check_reference, with_verbs};

#[test]
fn every_command_line_of_the_book_parses() {
    let count = check_lines(|noun| noun != "lab", 0);
    assert!(count >= 60, "only {count} command lines");
}

#[test]
fn words_are_split_as_a_shell_does() {
    let line = "ROS_DOMAIN_ID=5 pteros topic pub /t T '{a: 1}' -r 10 --ros-args -r a:=b # why";
    assert_eq!(
        arguments(line).unwrap(),
        ["topic", "pub", "/t", "T", "{a: 1}", "-r", "10"]
    );
    assert_eq!(arguments("cargo run"), None);
}

#[test]
fn the_reference_has_every_verb_with_every_option() {
    let nouns = with_verbs("", &[]).split_off(1);
    let nouns = nouns.iter().map(|words| words[1].as_str());
    let of_noun = |noun: &str| with_verbs(noun, &[noun]);
    let others = nouns.filter(|noun| *noun != "lab");
    let verbs: Vec<_> = others.flat_map(of_noun).collect();
    check_reference(&verbs, 0);
}
