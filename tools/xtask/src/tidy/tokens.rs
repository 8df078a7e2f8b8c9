//! Tokens of Rust sources: identifiers and punctuation with their lines. The import
//! check ([`super::modules`]) and the lock check ([`super::lock_ranks`]) read them.
//!
//! Comments, literals and lifetimes are dropped, so a name in a string or in a doc
//! comment is never taken for code. A text that is no Rust has no tokens; the
//! compiler refuses it.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

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
    let mut tokens = Vec::new();
    if let Ok(stream) = text.parse() {
        push_all(text, stream, &mut tokens);
    }
    tokens
}

fn push_all<'a>(text: &'a str, stream: TokenStream, tokens: &mut Vec<Token<'a>>) {
    let mut trees = stream.into_iter().peekable();
    while let Some(tree) = trees.next() {
        let line = tree.span().start().line;
        let mut push = |kind, line| tokens.push(Token { kind, line });
        match tree {
            TokenTree::Ident(name) => {
                let word = &text[name.span().byte_range()];
                // A doc comment is an attribute with its own text as name.
                if !word.starts_with('/') {
                    push(Kind::Word(word.strip_prefix("r#").unwrap_or(word)), line);
                }
            }
            // A lifetime is a quote and a name.
            TokenTree::Punct(mark) if mark.as_char() == '\'' => drop(trees.next()),
            TokenTree::Punct(mark) => {
                let is_colon = |tree: &TokenTree| tree.to_string() == ":";
                let kind = match mark.as_char() {
                    ':' if trees.next_if(is_colon).is_some() => Kind::PathSeparator,
                    character => Kind::Punctuation(character),
                };
                push(kind, line);
            }
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ('(', ')'),
                    Delimiter::Brace => ('{', '}'),
                    Delimiter::Bracket | Delimiter::None => ('[', ']'),
                };
                let end = group.span_close().start().line;
                push(Kind::Punctuation(open), line);
                push_all(text, group.stream(), tokens);
                tokens.push(Token {
                    kind: Kind::Punctuation(close),
                    line: end,
                });
            }
            TokenTree::Literal(_) => {}
        }
    }
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
