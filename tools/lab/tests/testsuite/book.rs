//! The lab's commands in the book: each `pteros lab …` parses, and
//! docs/reference/commands.md has every verb with every option.

use crate::checker::{check_lines, check_reference, with_verbs};

#[test]
fn every_command_line_of_the_book_parses() {
    let count = check_lines(|noun| noun == "lab", 1);
    assert!(count >= 1, "no command line");
}

#[test]
fn the_reference_has_every_verb_with_every_option() {
    let verbs = with_verbs("lab", &[]);
    assert!(verbs.len() >= 6, "{verbs:?}");
    check_reference(&verbs, 1);
}
