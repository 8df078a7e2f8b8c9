//! Lexer for Rust sources: identifiers and punctuation with their lines. The import
//! check ([`super::modules`]) and the lock check ([`super::lock_ranks`]) read its
//! tokens.
//!
//! Comments, literals and lifetimes are dropped, so a name in a string or in a doc
//! comment is never taken for code. It never fails: an unknown character is
//! punctuation.

/// A token and its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    /// The token.
    pub kind: Kind<'a>,
    /// Line number from 1.
    pub line: usize,
}

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind<'a> {
    /// An identifier or keyword, without `r#`.
    Word(&'a str),
    /// `::`.
    PathSeparator,
    /// Any other punctuation character.
    Punctuation(char),
}

impl<'a> Token<'a> {
    /// The identifier or keyword, if the token is one.
    pub fn word(&self) -> Option<&'a str> {
        match self.kind {
            Kind::Word(word) => Some(word),
            _ => None,
        }
    }

    /// Whether the token is this punctuation character.
    pub fn is(&self, character: char) -> bool {
        self.kind == Kind::Punctuation(character)
    }

    /// Whether the token is this word.
    pub fn is_word(&self, word: &str) -> bool {
        self.kind == Kind::Word(word)
    }
}

/// The tokens of a source text.
pub fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut lexer = Lexer {
        rest: text,
        line: 1,
        tokens: Vec::new(),
    };
    while lexer.step() {}
    lexer.tokens
}

struct Lexer<'a> {
    rest: &'a str,
    line: usize,
    tokens: Vec<Token<'a>>,
}

impl<'a> Lexer<'a> {
    /// Reads one token or one skipped part. Returns whether text was left.
    fn step(&mut self) -> bool {
        let Some(first) = self.rest.chars().next() else {
            return false;
        };
        if self.rest.starts_with("//") {
            self.skip(self.rest.find('\n').unwrap_or(self.rest.len()));
        } else if self.rest.starts_with("/*") {
            self.skip(block_comment(self.rest));
        } else if let Some(length) = string_literal(self.rest) {
            self.skip(length);
        } else if first == '\'' {
            self.skip(character_or_lifetime(self.rest));
        } else if first.is_ascii_digit() {
            self.skip(number(self.rest));
        } else if first == '_' || first.is_alphabetic() {
            self.identifier();
        } else if self.rest.starts_with("::") {
            self.push(Kind::PathSeparator, 2);
        } else if first.is_whitespace() {
            self.skip(first.len_utf8());
        } else {
            self.push(Kind::Punctuation(first), first.len_utf8());
        }
        true
    }

    fn identifier(&mut self) {
        if let Some(raw) = self.rest.strip_prefix("r#") {
            self.rest = raw;
        }
        let length = identifier_length(self.rest);
        let word = &self.rest[..length];
        self.push(Kind::Word(word), length);
    }

    fn push(&mut self, kind: Kind<'a>, length: usize) {
        self.tokens.push(Token {
            kind,
            line: self.line,
        });
        self.skip(length);
    }

    fn skip(&mut self, length: usize) {
        let (skipped, rest) = self.rest.split_at(length);
        self.line += skipped.matches('\n').count();
        self.rest = rest;
    }
}

fn identifier_length(text: &str) -> usize {
    text.find(|c: char| c != '_' && !c.is_alphanumeric())
        .unwrap_or(text.len())
}

/// Length of a block comment; they nest.
fn block_comment(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// Length of a string literal of any kind (`"`, `b"`, `c"`, `r#"`, …), if `text`
/// begins with one.
fn string_literal(text: &str) -> Option<usize> {
    let prefix = ["", "b", "c", "r", "br", "cr"]
        .into_iter()
        .rev()
        .find(|prefix| {
            text.strip_prefix(prefix).is_some_and(|rest| {
                let rest = if prefix.ends_with('r') {
                    rest.trim_start_matches('#')
                } else {
                    rest
                };
                rest.starts_with('"')
            })
        })?;
    let body = &text[prefix.len()..];
    if prefix.ends_with('r') {
        let hashes = body.len() - body.trim_start_matches('#').len();
        let end = format!("\"{}", "#".repeat(hashes));
        let open = prefix.len() + hashes + 1;
        let length = text[open..].find(&end).map(|at| open + at + end.len());
        return Some(length.unwrap_or(text.len()));
    }
    Some(prefix.len() + quoted(body, '"'))
}

/// Length of a quoted text with escapes, including both quotes.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        if escaped {
            escaped = false;
        } else if character == '\\' {
            escaped = true;
        } else if character == quote {
            return at + 1;
        }
    }
    text.len()
}

/// Length of a character literal or a lifetime.
fn character_or_lifetime(text: &str) -> usize {
    let mut characters = text.chars().skip(1);
    let (first, second) = (characters.next(), characters.next());
    if first == Some('\\') || second == Some('\'') {
        return quoted(text, '\'');
    }
    1 + identifier_length(&text[1..])
}

/// Length of a number. `1..2` is a range: its dots are left.
fn number(text: &str) -> usize {
    let integer = identifier_length(text);
    let rest = &text[integer..];
    let fraction = rest
        .strip_prefix('.')
        .filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    integer + fraction.map_or(0, |digits| 1 + identifier_length(digits))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<&str> {
        tokens(text).iter().filter_map(Token::word).collect()
    }

    #[test]
    fn comments_and_literals_hold_no_words() {
        let text =
            "a // b\n/* c /* d */ e */ f \"g \\\" h\" r#\"i \" j\"# b\"k\" 'l' '\\'' 1.5e3 m";
        assert_eq!(words(text), ["a", "f", "m"]);
    }

    #[test]
    fn lifetimes_are_no_character_literals() {
        assert_eq!(
            words("fn f<'a>(x: &'a str, y: char) { 'x' }"),
            ["fn", "f", "x", "str", "y", "char"]
        );
    }

    #[test]
    fn each_token_has_its_line() {
        let all = tokens("a::b\n\"\n\" r#type");
        assert_eq!(all[1].kind, Kind::PathSeparator);
        assert_eq!((all[3].word(), all[3].line), (Some("type"), 3));
    }
}
