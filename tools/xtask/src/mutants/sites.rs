//! Places in a source that a mutant changes.
//!
//! They are found in the tokens, so comments and strings are left alone. rustfmt
//! writes spaces around binary operators and none around generics, which tells them
//! apart. A place in a `#[cfg(test)]` module does not count.

use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};

/// One change of one source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// The crate, without `pteros-`.
    pub crate_name: &'static str,
    /// Path below the root.
    pub file: PathBuf,
    /// From 1.
    pub line: usize,
    /// Byte in that line.
    column: usize,
    from: &'static str,
    to: &'static str,
}

/// Binary operators, with the spaces around them, and what they become.
const OPERATORS: &[(&str, &str)] = &[
    (" == ", " != "),
    (" != ", " == "),
    (" < ", " <= "),
    (" <= ", " < "),
    (" > ", " >= "),
    (" >= ", " > "),
    (" && ", " || "),
    (" || ", " && "),
    (" + ", " - "),
    (" - ", " + "),
    (" += ", " -= "),
    (" -= ", " += "),
];

/// Words, and what they become.
const WORDS: &[(&str, &str)] = &[
    ("true", "false"),
    ("false", "true"),
    ("min", "max"),
    ("max", "min"),
    ("saturating_add", "saturating_sub"),
    ("saturating_sub", "saturating_add"),
    ("is_some", "is_none"),
    ("is_none", "is_some"),
    ("is_some_and", "is_none_or"),
    ("is_none_or", "is_some_and"),
    ("any", "all"),
    ("all", "any"),
    ("break", "continue"),
    ("first", "last"),
];

impl Site {
    /// `crates/rtps/src/seq.rs:12: < becomes <=`.
    pub fn title(&self) -> String {
        let (from, to) = (self.from.trim(), self.to.trim());
        format!("{}:{}: {from} becomes {to}", self.file.display(), self.line)
    }

    /// The source with the change.
    pub fn apply(&self, source: &str) -> String {
        let mut changed = String::with_capacity(source.len() + 8);
        for (index, line) in source.split_inclusive('\n').enumerate() {
            // The column is a character boundary of this line alone.
            let parts = line.split_at_checked(self.column);
            let parts = parts.filter(|_| index + 1 == self.line);
            let after = parts.and_then(|(_, rest)| rest.strip_prefix(self.from));
            match (parts, after) {
                (Some((before, _)), Some(after)) => {
                    changed.push_str(before);
                    changed.push_str(self.to);
                    changed.push_str(after);
                }
                _ => changed.push_str(line),
            }
        }
        changed
    }
}

/// All places in a source, in order. None in a text that is no Rust.
pub fn sites_in(crate_name: &'static str, file: &Path, source: &str) -> Vec<Site> {
    let source = source.split("#[cfg(test)]").next().unwrap_or_default();
    let Ok(tokens) = source.parse::<TokenStream>() else {
        return Vec::new();
    };
    let lines: Vec<&str> = source.split('\n').collect();
    let mut sites = Vec::new();
    walk(tokens, &mut |line, character, word| {
        let text = lines.get(line - 1).copied().unwrap_or_default();
        // Columns count characters.
        let bytes = text.char_indices().nth(character).map(|(at, _)| at);
        let (Some(bytes), attribute) = (bytes, text.trim_start().starts_with('#')) else {
            return;
        };
        let change = match word {
            Some(word) => WORDS
                .iter()
                .find(|(from, _)| *from == word)
                .map(|c| (bytes, c)),
            None => bytes.checked_sub(1).and_then(|at| {
                let rest = text.get(at..)?;
                let found = OPERATORS.iter().find(|(from, _)| rest.starts_with(from))?;
                Some((at, found))
            }),
        };
        if let Some((column, (from, to))) = change.filter(|_| !attribute) {
            sites.push(Site {
                crate_name,
                file: file.to_owned(),
                line,
                column,
                from,
                to,
            });
        }
    });
    sites
}

/// Calls `found` with line, column and word of every word and punctuation character.
fn walk(tokens: TokenStream, found: &mut impl FnMut(usize, usize, Option<&str>)) {
    for token in tokens {
        let start = token.span().start();
        match token {
            TokenTree::Group(group) => walk(group.stream(), found),
            TokenTree::Ident(word) => found(start.line, start.column, Some(&word.to_string())),
            TokenTree::Punct(_) => found(start.line, start.column, None),
            TokenTree::Literal(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "\
// a == b, true
fn f<T>(a: u32, b: Vec<T>) -> bool {
    let größe = \"x == true\";
    if größe.len() < 3 && a + 1 == 2 {
        return true;
    }
    b.iter().any(|_| a > 1)
}
#[cfg(test)]
mod tests { fn g() -> bool { true } }
";

    fn sites() -> Vec<Site> {
        sites_in("shm", Path::new("a.rs"), SOURCE)
    }

    #[test]
    fn operators_and_words_outside_of_comments_strings_and_tests_are_found() {
        let titles: Vec<String> = sites().iter().map(Site::title).collect();
        assert_eq!(
            titles,
            [
                "a.rs:4: < becomes <=",
                "a.rs:4: && becomes ||",
                "a.rs:4: + becomes -",
                "a.rs:4: == becomes !=",
                "a.rs:5: true becomes false",
                "a.rs:7: any becomes all",
                "a.rs:7: > becomes >=",
            ]
        );
    }

    #[test]
    fn a_mutant_differs_in_its_place_alone() {
        for site in sites() {
            let changed = site.apply(SOURCE);
            let differ = SOURCE.lines().zip(changed.lines()).filter(|(a, b)| a != b);
            assert_eq!(differ.count(), 1, "{}", site.title());
            assert!(changed.ends_with("fn g() -> bool { true } }\n"));
        }
        let changed = sites()[0].apply(SOURCE);
        assert!(changed.contains("if größe.len() <= 3 && a + 1 == 2 {"));
    }
}
