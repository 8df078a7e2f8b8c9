//! The table of seeded bugs: a text of entries, each with its edits.
//!
//! ```text
//! # A comment.
//! mutant gap-ignored: GAPs are not processed
//! in crates/rtps/src/reader/mod.rs
//!   let guid = source.prefix.with(gap.writer);
//! - if !self.begin_submessage(now, guid, false) {
//! + if !self.begin_submessage(now, guid, false) || SEEDED {
//! ```
//! The first line has the kind, the name and the effect. A workload before the name,
//! `mutant actions/result-not-sent`, is the one that must detect the mutant. Each edit
//! begins with its file. Its lines are those of a diff: the anchor, which the file
//! contains exactly once, has the lines with a space and a minus sign; what takes its
//! place has those with a space and a plus sign. Layout and comments do not matter.
//! `SEEDED` becomes the call of the bug's switch.

use std::collections::BTreeSet;
use std::sync::LazyLock;

/// What an entry of the table is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BugKind {
    /// A bug that the simulator must detect: with this workload of nodes, or with graphs
    /// and scenarios.
    Mutant(Option<&'static str>),
    /// A fault that correct code survives.
    Tolerated,
    /// A step at which a test stops a process.
    Stop,
    /// Steps of work that the simulated processor must do.
    WorkSteps,
}

/// One edit of one source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// Path below the root of the repository.
    pub file: &'static str,
    /// The line of the table where the edit begins, from 1.
    pub table_line: usize,
    /// The text that the file contains exactly once, in its own layout.
    pub anchor: String,
    /// The text that takes its place, with the call of the switch.
    pub replacement: String,
}

/// One entry of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeededBug {
    /// What it is for.
    pub kind: BugKind,
    /// Its name, which no other entry has.
    pub name: &'static str,
    /// Its effect, in words.
    pub what: &'static str,
    /// The changes that make it, at least one.
    pub edits: Vec<Edit>,
}

/// All seeded bugs, in the order of the table.
pub fn table() -> &'static [SeededBug] {
    static TABLE: LazyLock<Vec<SeededBug>> = LazyLock::new(|| {
        parse(include_str!("../table.txt")).unwrap_or_else(|why| panic!("table.txt, {why}"))
    });
    &TABLE
}

/// Parses a table.
///
/// # Errors
/// The first line that is wrong, by its number, and what it should be.
pub fn parse(text: &'static str) -> Result<Vec<SeededBug>, String> {
    let mut bugs: Vec<SeededBug> = Vec::new();
    let mut names = BTreeSet::new();
    let mut is_in_edit = false;
    for (number, line) in (1..).zip(text.lines()) {
        let wrong = |why: &str| Err(format!("line {number}: {why}: {line:?}"));
        let bug = bugs.last_mut();
        match (line.get(..1).unwrap_or(""), bug) {
            ("", _) => is_in_edit = false,
            ("#", _) => {}
            (" " | "-" | "+", Some(bug)) if is_in_edit => {
                let call = call_of(bug.kind, bug.name);
                if let Some(edit) = bug.edits.last_mut() {
                    read_edit_line(edit, line, &call);
                }
            }
            (" " | "-" | "+", _) => return wrong("a line of an edit without its file"),
            (_, bug) => match (line.split_once(' '), bug) {
                (Some(("in", file)), Some(bug)) => {
                    is_in_edit = true;
                    bug.edits.push(Edit {
                        file,
                        table_line: number,
                        anchor: String::new(),
                        replacement: String::new(),
                    });
                }
                (Some((kind, rest)), _) => {
                    let Some(bug) = read_entry(kind, rest) else {
                        return wrong(
                            "write `mutant`, `tolerated`, `stop` or `work`, a name, a colon \
                             and the effect, or `in` and a file",
                        );
                    };
                    if !names.insert(bug.name) {
                        return wrong("a name twice");
                    }
                    is_in_edit = false;
                    bugs.push(bug);
                }
                (None, _) => return wrong("a single word"),
            },
        }
    }
    for bug in &bugs {
        if bug.edits.is_empty() {
            return Err(format!("{} has no edit", bug.name));
        }
        for edit in &bug.edits {
            let line = edit.table_line;
            if edit.anchor.is_empty() || edit.anchor == edit.replacement {
                return Err(format!("line {line}: {} changes nothing", bug.name));
            }
        }
    }
    Ok(bugs)
}

fn read_entry(kind: &str, rest: &'static str) -> Option<SeededBug> {
    let (place, what) = rest.split_once(": ")?;
    let (workload, name) = match place.split_once('/') {
        Some((workload, name)) => (Some(workload), name),
        None => (None, place),
    };
    let kind = match (kind, workload) {
        ("mutant", workload) => BugKind::Mutant(workload),
        ("tolerated", None) => BugKind::Tolerated,
        ("stop", None) => BugKind::Stop,
        ("work", None) => BugKind::WorkSteps,
        _ => return None,
    };
    Some(SeededBug {
        kind,
        name,
        what,
        edits: Vec::new(),
    })
}

/// Adds a line of an edit to its anchor, its replacement, or both.
fn read_edit_line(edit: &mut Edit, line: &str, call: &str) {
    let (sign, text) = line.split_at(1);
    if sign != "+" {
        edit.anchor += text.trim();
        edit.anchor.push('\n');
    }
    if sign != "-" {
        edit.replacement += &text.trim().replace("SEEDED", call);
        edit.replacement.push('\n');
    }
}

/// The call that takes the place of `SEEDED`.
fn call_of(kind: BugKind, name: &str) -> String {
    match kind {
        BugKind::Mutant(_) | BugKind::Tolerated => {
            format!("::pteros_seeded_bugs::is_on(\"{name}\")")
        }
        BugKind::Stop => format!("::pteros_seeded_bugs::stop(\"{name}\")"),
        BugKind::WorkSteps => "::pteros_seeded_bugs::count_step()".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_kind_name_effect_and_edits() {
        let text = "# Actions.\nmutant actions/lost: a result is lost\nin a.rs\n  let a = b;\n- send(a);\n+ if !SEEDED {\n+     send(a);\n+ }\n\nin b.rs\n- c\n+ d\nstop sent: after it\nin a.rs\n  x();\n+ SEEDED;\n";
        let bugs = parse(text).unwrap();
        assert_eq!(bugs.len(), 2);
        assert_eq!(bugs[0].kind, BugKind::Mutant(Some("actions")));
        assert_eq!((bugs[0].name, bugs[0].what), ("lost", "a result is lost"));
        let edit = &bugs[0].edits[0];
        assert_eq!((edit.file, edit.table_line), ("a.rs", 3));
        assert_eq!(edit.anchor, "let a = b;\nsend(a);\n");
        let call = "::pteros_seeded_bugs::is_on(\"lost\")";
        assert_eq!(
            edit.replacement,
            format!("let a = b;\nif !{call} {{\nsend(a);\n}}\n")
        );
        assert_eq!(bugs[0].edits[1].file, "b.rs");
        assert_eq!(
            bugs[1].edits[0].replacement,
            "x();\n::pteros_seeded_bugs::stop(\"sent\");\n"
        );
    }

    #[test]
    fn what_is_wrong_is_named_by_its_line() {
        for (text, named) in [
            ("mutant a: b\n", "a has no edit"),
            ("mutant a b\n", "line 1"),
            ("bug a: b\n", "line 1"),
            ("\n- c\n", "line 2: a line of an edit without its file"),
            (
                "mutant a: b\nin a.rs\n- c\n+ d\nmutant a: e\n",
                "line 5: a name twice",
            ),
            ("mutant a: b\nin a.rs\n  c\n", "line 2: a changes nothing"),
            ("mutant a: b\nin a.rs\n+ c\n", "line 2: a changes nothing"),
            ("mutant\n", "line 1: a single word"),
            ("in a.rs\n", "line 1"),
        ] {
            let why = parse(text).unwrap_err();
            assert!(why.contains(named), "{text:?}: {why}");
        }
    }

    #[test]
    fn the_table_has_every_kind() {
        for kind in [
            BugKind::Mutant(None),
            BugKind::Mutant(Some("actions")),
            BugKind::Tolerated,
            BugKind::Stop,
            BugKind::WorkSteps,
        ] {
            assert!(table().iter().any(|bug| bug.kind == kind), "{kind:?}");
        }
    }
}
