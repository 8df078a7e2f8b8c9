//! Lexer of the content filter: tokens with their positions.

use super::{FilterError, TEXT_BYTES_MAX};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// A constant as it is written.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Literal {
    Integer(i128),
    Float(f64),
    Text(String),
    Bool(bool),
}

/// How two terms compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Like,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keyword {
    And,
    Or,
    Not,
    Between,
}

/// One name of a field's path, with its element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NamedStep {
    pub name: String,
    pub index: Option<usize>,
    /// Where it begins.
    pub at: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Keyword(Keyword),
    Relation(Relation),
    Literal(Literal),
    Field(Vec<NamedStep>),
    Parameter(usize),
    Open,
    Close,
    End,
}

/// A token and where it begins and ends, in bytes.
#[derive(Clone, Debug)]
pub(super) struct PositionedToken {
    pub token: Token,
    pub at: usize,
    pub end: usize,
}

/// Reads tokens one by one; never recursive, never behind the text.
pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

/// A syntax or type error at a byte of the text.
#[derive(Debug)]
pub(super) struct SyntaxError {
    pub at: usize,
    pub message: String,
}

impl SyntaxError {
    pub fn new(at: usize, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { at, message }
    }
}

impl<'a> Lexer<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Moves past characters as long as they are `wanted`.
    fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c| !wanted(c)).unwrap_or(rest.len());
        self.at = self.at.saturating_add(end);
        rest.get(..end).unwrap_or_default()
    }

    fn take(&mut self, text: &str) -> bool {
        let found = self.rest().starts_with(text);
        let taken = if found { text.len() } else { 0 };
        self.at = self.at.saturating_add(taken);
        found
    }

    pub fn next(&mut self) -> Result<PositionedToken, SyntaxError> {
        self.take_while(|c| c.is_ascii_whitespace());
        let at = self.at;
        let token = self.token(at)?;
        Ok(PositionedToken {
            token,
            at,
            end: self.at,
        })
    }

    fn token(&mut self, at: usize) -> Result<Token, SyntaxError> {
        const SIGNS: [(&str, Token); 9] = [
            ("(", Token::Open),
            (")", Token::Close),
            ("<>", Token::Relation(Relation::NotEqual)),
            ("!=", Token::Relation(Relation::NotEqual)),
            ("<=", Token::Relation(Relation::LessOrEqual)),
            (">=", Token::Relation(Relation::GreaterOrEqual)),
            ("<", Token::Relation(Relation::Less)),
            (">", Token::Relation(Relation::Greater)),
            ("=", Token::Relation(Relation::Equal)),
        ];
        let Some(first) = self.peek() else {
            return Ok(Token::End);
        };
        for (text, token) in SIGNS {
            if self.take(text) {
                return Ok(token);
            }
        }
        match first {
            '\'' | '`' => self.text().map(|text| Token::Literal(Literal::Text(text))),
            '%' => self.parameter(at),
            '0'..='9' | '+' | '-' | '.' => self.number(at).map(Token::Literal),
            'a'..='z' | 'A'..='Z' | '_' => self.word(),
            '"' => Err(SyntaxError::new(
                at,
                "strings stand in single quotes: 'text'",
            )),
            other => Err(SyntaxError::new(
                at,
                format!("expected a field, a value or an operator, found {other:?}"),
            )),
        }
    }

    /// A string; a left quote may open it (DDS 1.4 Annex B).
    fn text(&mut self) -> Result<String, SyntaxError> {
        let open = self.at;
        self.at = self.at.saturating_add(1);
        let mut text = String::new();
        loop {
            text.push_str(self.take_while(|c| c != '\'' && c != '\n'));
            if !self.take("'") {
                let message = "the string that begins here has no closing ' on its line";
                return Err(SyntaxError::new(open, message));
            }
            if !self.take("'") {
                break;
            }
            text.push('\'');
        }
        match text.len() {
            0..=TEXT_BYTES_MAX => Ok(text),
            bytes => Err(SyntaxError::new(
                open,
                format!("the string has {bytes} bytes, at most {TEXT_BYTES_MAX} are taken"),
            )),
        }
    }

    fn parameter(&mut self, at: usize) -> Result<Token, SyntaxError> {
        self.at = self.at.saturating_add(1);
        let digits = self.take_while(|c| c.is_ascii_digit());
        match digits.parse() {
            Ok(number) if digits.len() <= 2 => Ok(Token::Parameter(number)),
            _ => Err(SyntaxError::new(
                at,
                format!("expected a parameter %0 to %99, found \"%{digits}\""),
            )),
        }
    }

    fn number(&mut self, at: usize) -> Result<Literal, SyntaxError> {
        self.take_while(|c| matches!(c, '+' | '-'));
        self.take_while(|c| c.is_ascii_alphanumeric() || c == '.');
        let upto_sign = self.text.get(at..self.at).unwrap_or_default();
        let is_hex = upto_sign.contains(['x', 'X']);
        if !is_hex && upto_sign.ends_with(['e', 'E']) {
            self.take_while(|c| matches!(c, '+' | '-'));
            self.take_while(|c| c.is_ascii_digit());
        }
        let text = self.text.get(at..self.at).unwrap_or_default();
        let (is_negative, digits) = match text.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let is_number = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.');
        let hex = digits.strip_prefix("0x").or(digits.strip_prefix("0X"));
        let integer = match hex {
            Some(hex) => u64::from_str_radix(hex, 16).map(i128::from),
            None => digits.parse::<u64>().map(i128::from),
        };
        let signed = integer.map(|value| {
            if is_negative {
                value.saturating_neg()
            } else {
                value
            }
        });
        if let Ok(value) = signed
            && is_number
            && value >= i128::from(i64::MIN)
        {
            return Ok(Literal::Integer(value));
        }
        let is_whole = hex.is_some() || digits.bytes().all(|c| c.is_ascii_digit());
        if is_number
            && !is_whole
            && let Ok(value) = text.parse::<f64>()
            && value.is_finite()
        {
            return Ok(Literal::Float(value));
        }
        let message = if is_number && is_whole && hex != Some("") {
            format!("{text} is not a number of 64 bits")
        } else {
            format!("expected a number such as 5, -0.5, 1e-3 or 0xff, found \"{text}\"")
        };
        Err(SyntaxError::new(at, message))
    }

    /// A keyword, or the path of a field.
    fn word(&mut self) -> Result<Token, SyntaxError> {
        let mut steps = Vec::new();
        loop {
            let at = self.at;
            let name = self.take_while(is_name);
            if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
                return Err(SyntaxError::new(
                    at,
                    "expected the name of a field behind the dot",
                ));
            }
            let index = self.index()?;
            let is_alone = steps.is_empty() && index.is_none() && self.peek() != Some('.');
            if is_alone && let Some(token) = keyword(name) {
                return Ok(token);
            }
            steps.push(NamedStep {
                name: name.into(),
                index,
                at,
            });
            if !self.take(".") {
                return Ok(Token::Field(steps));
            }
        }
    }

    fn index(&mut self) -> Result<Option<usize>, SyntaxError> {
        if !self.take("[") {
            return Ok(None);
        }
        let at = self.at;
        let digits = self.take_while(|c| c.is_ascii_digit());
        match digits.parse::<u32>() {
            Ok(index) if self.take("]") => Ok(Some(usize::try_from(index).unwrap_or(usize::MAX))),
            _ => Err(SyntaxError::new(
                at,
                "expected the number of an element and ]",
            )),
        }
    }
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn keyword(name: &str) -> Option<Token> {
    let words = [
        ("AND", Token::Keyword(Keyword::And)),
        ("OR", Token::Keyword(Keyword::Or)),
        ("NOT", Token::Keyword(Keyword::Not)),
        ("BETWEEN", Token::Keyword(Keyword::Between)),
        ("LIKE", Token::Relation(Relation::Like)),
        ("TRUE", Token::Literal(Literal::Bool(true))),
        ("FALSE", Token::Literal(Literal::Bool(false))),
    ];
    let found = words
        .into_iter()
        .find(|(w, _)| name.eq_ignore_ascii_case(w));
    found.map(|(_, token)| token)
}

/// The text of a token, for messages.
pub(super) fn quoted(text: &str, placed: &PositionedToken) -> String {
    match text.get(placed.at..placed.end) {
        None | Some("") => "the end".into(),
        Some(found) => format!("{found:?}"),
    }
}

/// An error in an expression.
pub(super) fn in_expression(text: &str) -> impl Fn(SyntaxError) -> FilterError + '_ {
    move |error| FilterError::in_expression(text, error.at, error.message)
}
