//! Inserts seeded bugs into a source. Anchors are compared by their tokens, so layout,
//! comments and trailing commas do not matter. Only the tokens that an edit changes are
//! written, so that several edits may share an anchor, and lines keep their numbers.

use std::ops::Range;

use pteros_seeded_bugs::{Edit, SeededBug, TABLE_FILE};

/// A seeded bug, and one of its edits.
pub type BugEdit<'b> = (&'b SeededBug, &'b Edit);

/// The source with all of these edits, or why some do not fit.
pub fn insert(source: &str, edits: &[BugEdit<'_>]) -> Result<String, Vec<String>> {
    let tokens = tokens_of(source);
    let mut changes = Vec::new();
    let mut problems = Vec::new();
    for (bug, edit) in edits {
        match change(source, &tokens, edit) {
            Ok(change) => changes.push((change, *bug, *edit)),
            Err(why) => problems.push(problem(bug, edit, &why)),
        }
    }
    changes.sort_by_key(|((range, _), ..)| (range.start, range.end));
    for pair in changes.windows(2) {
        let [((before, _), other, _), ((range, _), bug, edit)] = pair else {
            continue;
        };
        if range.start < before.end || range == before {
            let name = other.name;
            problems.push(problem(
                bug,
                edit,
                &format!("it changes what {name} changes"),
            ));
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let mut text = source.to_owned();
    for ((range, change), ..) in changes.into_iter().rev() {
        let lines = source[range.clone()].matches('\n').count();
        text.replace_range(range, &format!(" {change} {}", "\n".repeat(lines)));
    }
    Ok(text)
}

fn problem(bug: &SeededBug, edit: &Edit, why: &str) -> String {
    let (line, name) = (edit.table_line, bug.name);
    format!("{TABLE_FILE}:{line}: {name}: {why}")
}

/// The bytes that an edit changes, and what they become.
fn change(
    source: &str,
    tokens: &[Range<usize>],
    edit: &Edit,
) -> Result<(Range<usize>, String), String> {
    let anchor = tokens_of(&edit.anchor);
    let replacement = tokens_of(&edit.replacement);
    let in_source = |at: usize| &source[tokens[at].clone()];
    let anchor_text = |at: usize| &edit.anchor[anchor[at].clone()];
    let replacement_text = |at: usize| &edit.replacement[replacement[at].clone()];
    let starts = 0..(tokens.len() + 1).saturating_sub(anchor.len());
    let mut places =
        starts.filter(|start| (0..anchor.len()).all(|at| in_source(start + at) == anchor_text(at)));
    let first = places.next();
    let count = usize::from(first.is_some()) + places.count();
    let (Some(start), 1) = (first, count) else {
        let (file, line) = (edit.file, edit.anchor.lines().next().unwrap_or_default());
        return Err(format!(
            "the anchor `{line}` stands {count} times in {file}, not once; bring the entry to \
             the code"
        ));
    };
    let shorter = anchor.len().min(replacement.len());
    let alike = |at: &usize| anchor_text(*at) == replacement_text(*at);
    let before = (0..shorter).take_while(alike).count();
    let alike_at_end =
        |at: &usize| anchor_text(anchor.len() - at) == replacement_text(replacement.len() - at);
    let after = (1..=shorter - before).take_while(alike_at_end).count();
    let changed = start + before..start + anchor.len() - after;
    let bytes = match (changed.is_empty(), before) {
        (false, _) => tokens[changed.start].start..tokens[changed.end - 1].end,
        (true, 0) => tokens[start].start..tokens[start].start,
        (true, _) => tokens[changed.start - 1].end..tokens[changed.start - 1].end,
    };
    let new = &replacement[before..replacement.len() - after];
    let new = match (new.first(), new.last()) {
        (Some(first), Some(last)) => &edit.replacement[first.start..last.end],
        _ => "",
    };
    Ok((bytes, new.replace('\n', " ")))
}

/// The tokens of a source: words, literals and single characters. Comments are none, nor
/// is a comma before a closing bracket.
fn tokens_of(text: &str) -> Vec<Range<usize>> {
    let mut tokens: Vec<Range<usize>> = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if let Some(length) = literal_length(rest) {
            length
        } else if is_word(first) {
            rest.find(|c| !is_word(c)).unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        let is_token = !(first.is_whitespace() || rest.starts_with("//") || rest.starts_with("/*"));
        if is_token {
            let closes = matches!(first, ')' | ']' | '}');
            if closes && tokens.last().is_some_and(|last| &text[last.clone()] == ",") {
                tokens.pop();
            }
            tokens.push(at..at + length);
        }
        at += length;
    }
    tokens
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The length of the string or character at the start of `text`, if there is one. A
/// lifetime is none.
fn literal_length(text: &str) -> Option<usize> {
    let raw = text.strip_prefix('b').unwrap_or(text).strip_prefix('r');
    let hashes = raw.map_or(0, |raw| raw.len() - raw.trim_start_matches('#').len());
    if let Some(raw) = raw
        && raw[hashes..].starts_with('"')
    {
        let end = format!("\"{}", &raw[..hashes]);
        let begin = text.len() - raw.len() + hashes + 1;
        return Some(begin + text[begin..].find(&end)? + end.len());
    }
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return Some(at + 1),
            // `'a` without its second quote is a lifetime.
            _ if quote == '\'' && at > 1 && !text[1..].starts_with('\\') => return None,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use pteros_seeded_bugs::parse;

    const SOURCE: &str = "\
fn f<'a>(a: &'a str) -> bool {
    // if a == \"x\" { no }
    if a == \"x // y\" && b(
        '\"',
        2,
    ) {
        g(a); // Why.
        return true;
    }
    g(a);
    false
}
";

    fn inserted(table: &'static str) -> Result<String, Vec<String>> {
        let bugs = parse(table).unwrap();
        let edits: Vec<BugEdit<'_>> = bugs
            .iter()
            .flat_map(|bug| bug.edits.iter().map(move |edit| (bug, edit)))
            .collect();
        insert(SOURCE, &edits)
    }

    /// A line, from 0, with single spaces.
    fn words(text: &str, line: usize) -> String {
        let words = text.lines().nth(line).unwrap().split_whitespace();
        words.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn an_anchor_is_found_in_any_layout_and_lines_keep_their_numbers() {
        let text = inserted(
            "mutant one: x\nin a.rs\n- if a == \"x // y\" && b('\"', 2) {\n+ if a == \"x // y\" && !SEEDED {\n\n\
             mutant two: x\nin a.rs\n  return true;\n  }\n+ SEEDED;\n",
        )
        .unwrap();
        let call = "::pteros_seeded_bugs::is_on";
        assert_eq!(
            words(&text, 2),
            format!("if a == \"x // y\" && !{call}(\"one\"")
        );
        assert_eq!(words(&text, 6), "g(a); // Why.");
        assert_eq!(words(&text, 8), format!("}} {call}(\"two\");"));
        assert_eq!(text.lines().count(), SOURCE.lines().count());
    }

    #[test]
    fn edits_of_one_anchor_are_combined() {
        let text = inserted(
            "mutant one: x\nin a.rs\n- if a == \"x // y\" && b\n+ if (a == \"x // y\" || SEEDED) && b\n\n\
             mutant two: x\nin a.rs\n- if a == \"x // y\" && b\n+ if a == \"x // y\" && !SEEDED && b\n",
        )
        .unwrap();
        let call = "::pteros_seeded_bugs::is_on";
        assert_eq!(
            words(&text, 2),
            format!("if (a == \"x // y\" || {call}(\"one\")) && !{call}(\"two\") && b(")
        );
    }

    #[test]
    fn an_anchor_that_is_missing_or_ambiguous_and_two_edits_of_one_place_are_named() {
        for (table, named) in [
            (
                "mutant one: x\nin a.rs\n- h(a);\n+ SEEDED;\n",
                "table.txt:2: one: the anchor `h(a);` stands 0 times in a.rs",
            ),
            (
                "mutant one: x\nin a.rs\n- g(a);\n+ SEEDED;\n",
                "stands 2 times in a.rs",
            ),
            (
                "mutant one: x\nin a.rs\n- eturn true\n+ SEEDED\n",
                "stands 0 times",
            ),
            (
                "mutant one: x\nin a.rs\n- return true;\n+ SEEDED;\n\nmutant two: x\nin a.rs\n- true;\n+ SEEDED;\n",
                "table.txt:7: two: it changes what one changes",
            ),
        ] {
            let problems = inserted(table).unwrap_err();
            assert!(
                problems.len() == 1 && problems[0].contains(named),
                "{problems:?}"
            );
        }
    }
}
