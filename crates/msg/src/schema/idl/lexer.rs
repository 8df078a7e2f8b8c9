//! Tokens of OMG IDL 4.2 (§7.2): names, numbers, strings and punctuation with their
//! lines. Comments and `#include` lines are left out.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// A token and its line, counted from 1.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    pub kind: TokenKind,
    pub line: u32,
}

/// What a token is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum TokenKind {
    /// A name or a keyword.
    Word(String),
    /// A number as written, without sign.
    Number(String),
    /// A string without quotes and escapes.
    Text(String),
    /// One character of punctuation, or `::`.
    Mark(&'static str),
}

const MARKS: [&str; 16] = [
    "::", "{", "}", "(", ")", "[", "]", "<", ">", ",", ";", ":", "=", "@", "-", "+",
];

/// Splits a text into tokens.
///
/// # Errors
/// The line, and what is wrong there.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, (u32, String)> {
    let mut lexer = Lexer {
        rest: text.trim_start_matches('\u{feff}'),
        line: 1,
    };
    let mut tokens = Vec::new();
    while let Some(token) = lexer.next()? {
        tokens.push(token);
    }
    Ok(tokens)
}

struct Lexer<'t> {
    rest: &'t str,
    line: u32,
}

impl<'t> Lexer<'t> {
    /// Takes the first `bytes` of the rest.
    fn take(&mut self, bytes: usize) -> &'t str {
        let (taken, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, ""));
        let lines = taken.bytes().filter(|byte| *byte == b'\n').count();
        self.line = self
            .line
            .saturating_add(u32::try_from(lines).unwrap_or(u32::MAX));
        self.rest = rest;
        taken
    }

    fn take_while(&mut self, is_part: impl Fn(char) -> bool) -> &'t str {
        let end = self.rest.find(|c| !is_part(c));
        self.take(end.unwrap_or(self.rest.len()))
    }

    fn skip_blanks(&mut self) -> Result<(), (u32, String)> {
        loop {
            self.take_while(char::is_whitespace);
            if self.rest.starts_with("//") || self.rest.starts_with('#') {
                self.take_while(|c| c != '\n');
            } else if self.rest.starts_with("/*") {
                let Some(end) = self.rest.find("*/") else {
                    return Err((self.line, "a comment has no end: write */".to_string()));
                };
                self.take(end.saturating_add(2));
            } else {
                return Ok(());
            }
        }
    }

    fn next(&mut self) -> Result<Option<Token>, (u32, String)> {
        self.skip_blanks()?;
        let line = self.line;
        let Some(first) = self.rest.chars().next() else {
            return Ok(None);
        };
        let second_is_digit = self.rest.chars().nth(1).is_some_and(|c| c.is_ascii_digit());
        let kind = if first.is_ascii_alphabetic() || first == '_' {
            let word = self.take_while(|c| c.is_ascii_alphanumeric() || c == '_');
            TokenKind::Word(word.to_string())
        } else if first.is_ascii_digit() || (first == '.' && second_is_digit) {
            TokenKind::Number(self.number().to_string())
        } else if first == '"' || first == '\'' {
            TokenKind::Text(self.text(first)?)
        } else if let Some(mark) = MARKS.iter().find(|mark| self.rest.starts_with(**mark)) {
            self.take(mark.len());
            TokenKind::Mark(mark)
        } else {
            let message = format!("the character {first:?} has no meaning in IDL; remove it");
            return Err((line, message));
        };
        Ok(Some(Token { kind, line }))
    }

    /// `12`, `0x1F`, `1.5e-3`.
    fn number(&mut self) -> &'t str {
        let is_hexadecimal = self.rest.starts_with("0x") || self.rest.starts_with("0X");
        let mut before = ' ';
        let mut end = self.rest.len();
        for (at, c) in self.rest.char_indices() {
            let is_sign = matches!(c, '+' | '-') && matches!(before, 'e' | 'E');
            if !(c.is_ascii_alphanumeric() || c == '.' || (is_sign && !is_hexadecimal)) {
                end = at;
                break;
            }
            before = c;
        }
        self.take(end)
    }

    fn text(&mut self, quote: char) -> Result<String, (u32, String)> {
        let line = self.line;
        let mut value = String::new();
        let mut chars = self.rest.char_indices().skip(1);
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => match chars.next() {
                    Some((_, 'n')) => value.push('\n'),
                    Some((_, 't')) => value.push('\t'),
                    Some((_, 'r')) => value.push('\r'),
                    Some((_, escaped)) => value.push(escaped),
                    None => break,
                },
                c if c == quote => {
                    self.take(at.saturating_add(1));
                    return Ok(value);
                }
                c => value.push(c),
            }
        }
        Err((line, format!("a text lacks its closing {quote}")))
    }
}
