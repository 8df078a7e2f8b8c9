//! Keeps `docs/glossary.md` true: every row names a file that exists and whose
//! `//!` header holds the term, rows are in order, and each has one sentence.

use std::fs;
use std::path::Path;

use super::{links, normalize};

/// The document, from the root.
pub const DOCUMENT: &str = "docs/glossary.md";
/// Terms that the glossary has at least.
const TERMS_MIN: usize = 90;

/// Checks the glossary in `text`.
pub fn check(root: &Path, text: &str, add: &mut impl FnMut(usize, String)) {
    let mut before = String::new();
    let mut terms = 0;
    for (index, line) in text.lines().enumerate() {
        let Some([term, meaning, file]) = row(line) else {
            continue;
        };
        terms += 1;
        let number = index + 1;
        let key = plain(term);
        if key <= before {
            add(
                number,
                format!("{term}: out of alphabetical order, or twice"),
            );
        }
        if !meaning.ends_with('.') || meaning.trim_end_matches('.').contains(". ") {
            add(number, format!("{term}: explain it in one sentence"));
        }
        match header(root, file) {
            None => add(number, format!("{term}: {file} names no source file")),
            Some(header) if !header.contains(&key) => add(
                number,
                format!("{term}: the header of {file} lacks the term; say it there"),
            ),
            Some(_) => {}
        }
        before = key;
    }
    if terms < TERMS_MIN {
        add(1, format!("{terms} terms, fewer than {TERMS_MIN}"));
    }
}

/// The cells of a row that is neither head nor rule.
fn row(line: &str) -> Option<[&str; 3]> {
    let cells = line.strip_prefix("| ")?.strip_suffix(" |")?;
    let mut cells = cells.split(" | ");
    let row = [cells.next()?, cells.next()?, cells.next()?];
    (row[0] != "term").then_some(row)
}

/// The `//!` header of the file that a cell links to.
fn header(root: &Path, cell: &str) -> Option<String> {
    let links = links(cell);
    let path = normalize(&Path::new("docs").join(links.first()?.target))?;
    let text = fs::read_to_string(root.join(path)).ok()?;
    let lines = text.lines().take_while(|line| line.starts_with("//!"));
    let words: Vec<&str> = lines.map(|line| line[3..].trim()).collect();
    Some(plain(&words.join(" ")))
}

/// Lower case, with spaces for hyphens and without marks of code and links.
fn plain(text: &str) -> String {
    let kept = text.chars().filter(|c| !"`*[]".contains(*c));
    let text: String = kept.map(|c| if c == '-' { ' ' } else { c }).collect();
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(row: &str) -> Vec<String> {
        let mut found = Vec::new();
        check(&crate::checkout::root(), row, &mut |_, message| {
            found.push(message);
        });
        found.retain(|message| !message.contains("fewer than"));
        found
    }

    #[test]
    fn a_row_whose_header_holds_the_term_passes() {
        let row = "| glossary.md | Keeps terms true. | [here](../tools/xtask/src/documents/glossary.rs) |";
        assert_eq!(messages(row), Vec::<String>::new());
    }

    #[test]
    fn a_missing_file_a_missing_term_and_two_sentences_are_found() {
        let gone = "| glossary | Keeps terms. | [x](../tools/xtask/src/gone.rs) |";
        assert!(messages(gone)[0].contains("no source file"));
        let lacks = "| zebra crossing | A term. | [x](../tools/xtask/src/documents/glossary.rs) |";
        assert!(messages(lacks)[0].contains("lacks the term"));
        let two = "| glossary | One. Two. | [x](../tools/xtask/src/documents/glossary.rs) |";
        assert!(messages(two)[0].contains("one sentence"));
    }

    #[test]
    fn rows_out_of_order_are_found() {
        let file = "[x](../tools/xtask/src/documents/glossary.rs)";
        let rows =
            format!("| term | A. | {file} |\n| rows | A. | {file} |\n| header | A. | {file} |");
        assert!(messages(&rows)[0].contains("order"));
    }
}
