//! Regular expressions that users write: in arguments of commands and in launch files.
//!
//! The syntax is that of the crate `regex`, without look-around and back-references. A
//! match takes time proportional to the text. Repetitions multiply the size of a compiled
//! expression, so [`COMPILED_BYTES_MAX`] limits it.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt;

use regex_automata::nfa::thompson::pikevm::PikeVM;
use regex_automata::nfa::thompson::{Config, State};
use regex_automata::{Anchored, Input};

/// The largest compiled expression, bytes.
pub const COMPILED_BYTES_MAX: usize = 1 << 20;

/// Which part of a text an expression must match.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extent {
    /// Any part, as Python's `re.search`.
    Anywhere,
    /// A part at the start, as Python's `re.match`.
    Start,
    /// All of it, as Python's `re.fullmatch`.
    Whole,
}

/// A compiled regular expression. Clones share it.
#[derive(Clone)]
pub struct Pattern {
    machine: PikeVM,
    extent: Extent,
}

impl Pattern {
    /// Compiles an expression. Allocates up to a few times [`COMPILED_BYTES_MAX`].
    ///
    /// # Errors
    /// It is no regular expression, or too large.
    pub fn new(expression: &str, extent: Extent) -> Result<Self, PatternError> {
        // Alone, so that an error has the positions that the user sees, and a bracket
        // does not close one of ours.
        let alone = compile(expression)?;
        let machine = match extent {
            Extent::Anywhere | Extent::Start => alone,
            // A comment of the flag `x` ends with a line, and would hold our bracket.
            Extent::Whole => compile(&format!("(?:{expression})$"))
                .or_else(|_| compile(&format!("(?:{expression}\n)$")))?,
        };
        Ok(Self { machine, extent })
    }

    /// Whether it matches the text. Allocates.
    pub fn is_match(&self, text: &str) -> bool {
        let cache = &mut self.machine.create_cache();
        self.machine.is_match(cache, self.input(text))
    }

    /// Expands `replacement` with the groups of the match, `$1` and so on. `None` without
    /// a match.
    pub fn replace(&self, text: &str, replacement: &str) -> Option<String> {
        let mut captures = self.machine.create_captures();
        let cache = &mut self.machine.create_cache();
        self.machine
            .captures(cache, self.input(text), &mut captures);
        captures
            .is_match()
            .then(|| captures.interpolate_string(text, replacement))
    }

    fn input<'t>(&self, text: &'t str) -> Input<'t> {
        let anchored = match self.extent {
            Extent::Anywhere => Anchored::No,
            Extent::Start | Extent::Whole => Anchored::Yes,
        };
        Input::new(text).anchored(anchored)
    }

    /// Whether a match may begin with that character of ASCII.
    pub fn may_begin_with(&self, byte: u8) -> bool {
        let nfa = self.machine.get_nfa();
        let mut seen = BTreeSet::new();
        let mut next = vec![nfa.start_anchored()];
        while let Some(id) = next.pop() {
            if !seen.insert(id) {
                continue;
            }
            let takes_byte = match nfa.state(id) {
                State::ByteRange { trans } => trans.matches_byte(byte),
                State::Sparse(all) => all.matches_byte(byte).is_some(),
                State::Dense(all) => all.matches_byte(byte).is_some(),
                State::Look { next: then, .. } | State::Capture { next: then, .. } => {
                    next.push(*then);
                    false
                }
                State::Union { alternates } => {
                    next.extend(alternates.iter());
                    false
                }
                State::BinaryUnion { alt1, alt2 } => {
                    next.extend([alt1, alt2]);
                    false
                }
                State::Fail | State::Match { .. } => false,
            };
            if takes_byte {
                return true;
            }
        }
        false
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pattern")
            .field("extent", &self.extent)
            .finish_non_exhaustive()
    }
}

fn compile(expression: &str) -> Result<PikeVM, PatternError> {
    let limit = Config::new().nfa_size_limit(Some(COMPILED_BYTES_MAX));
    let machine = PikeVM::builder().thompson(limit).build(expression);
    machine.map_err(|error| PatternError {
        reason: if error.size_limit().is_some() {
            format!(
                "compiled it takes more than {COMPILED_BYTES_MAX} bytes; write smaller repetitions"
            )
        } else {
            innermost(&error)
        },
    })
}

/// The reason of the innermost error in one line; the lines around it mark the position.
fn innermost(error: &dyn Error) -> String {
    if let Some(source) = error.source() {
        return innermost(source);
    }
    let text = error.to_string();
    let marked = text
        .lines()
        .find_map(|line| line.trim().strip_prefix("error:"));
    marked.unwrap_or(&text).trim().to_owned()
}

/// Why a text is no expression that can be used.
#[derive(Clone, PartialEq, Eq)]
pub struct PatternError {
    reason: String,
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl fmt::Debug for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error for PatternError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(expression: &str, extent: Extent) -> Pattern {
        Pattern::new(expression, extent).unwrap()
    }

    #[test]
    fn the_extent_decides_which_part_matches() {
        use Extent::{Anywhere, Start, Whole};
        for (expression, text, of) in [
            ("cam", "/front_cam/raw", [true, false, false]),
            ("/cam|/ca", "/camera", [true, true, false]),
            ("/ca|/cam", "/cam", [true, true, true]),
            ("^/x$", "/x", [true, true, true]),
            ("", "/x", [true, true, false]),
            // A comment ends with its line, not with the expression's bracket.
            ("(?x) /cam # in front", "/cam", [true, true, true]),
            ("(?x) /cam # in front", "/camera", [true, true, false]),
        ] {
            let found =
                [Anywhere, Start, Whole].map(|extent| pattern(expression, extent).is_match(text));
            assert_eq!(found, of, "{expression}");
        }
    }

    #[test]
    fn an_expression_has_a_limit_and_a_reason() {
        for extent in [Extent::Anywhere, Extent::Start, Extent::Whole] {
            let reason = |expression| Pattern::new(expression, extent).unwrap_err().to_string();
            assert_eq!(reason("/cam("), "unclosed group");
            assert_eq!(reason("a)|(b"), "unopened group");
            for large in ["(a{1000}){1000}", r"\w{5000}", "((a{100}){100}){100}"] {
                let reason = reason(large);
                assert!(
                    reason.starts_with("compiled it takes more than"),
                    "{reason}"
                );
            }
            assert!(Pattern::new(r"(/\w+){1,5}", extent).is_ok());
        }
    }

    #[test]
    fn groups_of_a_match_are_put_into_the_replacement() {
        let pattern = pattern("/(.*)/raw", Extent::Whole);
        assert_eq!(pattern.replace("/cam/raw", "/x/$1"), Some("/x/cam".into()));
        assert_eq!(pattern.replace("/cam/raw/more", "/x/$1"), None);
    }

    #[test]
    fn an_expression_tells_its_first_characters() {
        for (expression, may) in [
            ("/a.*", true),
            (".*", true),
            ("(?:a|/b)", true),
            ("a.*", false),
            ("[^/]*x", false),
        ] {
            let pattern = pattern(expression, Extent::Whole);
            assert_eq!(pattern.may_begin_with(b'/'), may, "{expression}");
        }
    }
}
