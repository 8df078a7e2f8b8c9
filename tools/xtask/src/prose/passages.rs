//! Passages of prose: paragraphs of Markdown pages and of Rust comments, cut into
//! sentences. Code fences, tables' rules and headings are left out.

/// A paragraph, a list item or a table cell.
#[derive(Debug, PartialEq, Eq)]
pub struct Passage {
    /// Line from 1 on which it begins.
    pub line: usize,
    /// Its words, on one line.
    pub text: String,
}

/// First words of a sentence whose subject is a clause.
const HEADLESS: &[&str] = &[
    "What ",
    "Who ",
    "Whoever ",
    "Whom ",
    "Whose ",
    "Whatever ",
    "One that ",
    "One who ",
    "Those that ",
    "Those who ",
];

/// The passages of a file, by its ending.
pub fn passages(path: &str, text: &str) -> Vec<Passage> {
    let is_rust = path.ends_with(".rs");
    let mut found = Collector::default();
    let mut in_fence = false;
    for (index, line) in text.lines().enumerate() {
        let prose = if is_rust { comment(line) } else { Some(line) };
        let Some(prose) = prose.map(str::trim) else {
            found.end();
            in_fence = false;
            continue;
        };
        if prose.starts_with("```") {
            in_fence = !in_fence;
            found.end();
        } else if in_fence || prose.is_empty() || prose.starts_with('#') {
            found.end();
        } else if prose.starts_with('|') {
            found.end();
            for cell in prose.trim_matches('|').split(" | ") {
                found.add(index + 1, cell.trim());
                found.end();
            }
        } else {
            let item = prose
                .strip_prefix("- ")
                .or_else(|| prose.strip_prefix("* "));
            if item.is_some() {
                found.end();
            }
            found.add(index + 1, item.unwrap_or(prose));
        }
    }
    found.end();
    found.passages
}

/// The text of a line that is a comment as a whole.
fn comment(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("//")?;
    Some(rest.strip_prefix(['/', '!']).unwrap_or(rest))
}

#[derive(Default)]
struct Collector {
    passages: Vec<Passage>,
    open: Option<Passage>,
}

impl Collector {
    fn add(&mut self, line: usize, text: &str) {
        if let Some(open) = &mut self.open {
            open.text.push(' ');
            open.text.push_str(text);
        } else {
            self.open = Some(Passage {
                line,
                text: text.to_owned(),
            });
        }
    }

    fn end(&mut self) {
        self.passages.extend(self.open.take());
    }
}

/// The sentences of a passage: up to a full stop, question or exclamation mark,
/// or colon, that a space and a capital letter follow.
pub fn sentences(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut begin = 0;
    let mut in_code = false;
    for (at, c) in text.char_indices() {
        if c == '`' {
            in_code = !in_code;
        }
        let after = text[at..].strip_prefix(['.', '?', '!', ':']);
        let next = after.and_then(|after| after.strip_prefix(' '));
        let ends = next.is_some_and(|next| {
            next.starts_with(|c: char| c.is_uppercase() || "`[*\"".contains(c))
        });
        if ends && !in_code {
            found.push(text[begin..=at].trim().to_owned());
            begin = at + 1;
        }
    }
    found.push(text[begin..].trim().to_owned());
    found.retain(|sentence| !sentence.is_empty());
    found
}

/// Whether a clause stands for the subject: "Who waits hears of it."
pub fn is_headless(sentence: &str) -> bool {
    let is_question = sentence.ends_with('?');
    !is_question
        && HEADLESS.iter().any(|first| sentence.starts_with(first))
        && sentence.contains(' ')
        && sentence.ends_with('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(path: &str, text: &str) -> Vec<String> {
        let found = passages(path, text).into_iter();
        found.map(|passage| passage.text).collect()
    }

    #[test]
    fn comments_are_joined_and_code_is_left_out() {
        let text = "//! A header\n//! of two lines.\n//!\n//! ```\n//! let x = 1;\n//! ```\nlet y = 2;\n    // A reason.\n";
        assert_eq!(texts("a.rs", text), ["A header of two lines.", "A reason."]);
    }

    #[test]
    fn cells_and_items_are_passages_of_their_own() {
        let text = "# Title\n- one\n- two\n  more\n\n| a | b |\n";
        assert_eq!(texts("a.md", text), ["one", "two more", "a", "b"]);
    }

    #[test]
    fn sentences_end_at_stops_that_a_capital_follows() {
        let text = "RTPS 2.5 §8.4.9 says it. Then `a. B` goes on. e.g. this.";
        assert_eq!(
            sentences(text),
            [
                "RTPS 2.5 §8.4.9 says it.",
                "Then `a. B` goes on. e.g. this."
            ]
        );
    }

    #[test]
    fn questions_are_not_headless() {
        assert!(is_headless("What is small goes alone."));
        assert!(!is_headless("What is small?"));
        assert!(!is_headless("A writer waits."));
    }
}
