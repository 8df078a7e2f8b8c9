//! Tokens of an expression: numbers, texts, names, signs.

use std::sync::Arc;

use super::fault::{Fault, Outcome};

#[derive(Clone, Debug, PartialEq)]
pub(super) enum TokenKind {
    Integer(i128),
    Double(f64),
    Text(String),
    Bytes(Vec<u8>),
    Name(Arc<str>),
    Sign(&'static str),
    End,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    pub kind: TokenKind,
    pub at: u32,
}

/// Longest first.
const SIGNS: &[&str] = &[
    "...", "**", "//", "<<", ">>", "<=", ">=", "==", "!=", ":=", "+", "-", "*", "/", "%", "@", "&",
    "|", "^", "~", "<", ">", "(", ")", "[", "]", "{", "}", ",", ":", ".", "=",
];

/// Splits an expression into tokens.
pub(super) fn tokens(letters: &[char]) -> Outcome<Vec<Token>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(&letter) = letters.get(at) {
        let place = at as u32;
        let wrong = |fault: Fault| fault.or_at(place);
        let next = letters.get(at + 1).copied();
        if letter.is_whitespace() || (letter == '\\' && next == Some('\n')) {
            at += 1;
            continue;
        }
        if letter == '#' {
            while letters.get(at).is_some_and(|letter| *letter != '\n') {
                at += 1;
            }
            continue;
        }
        let kind = if letter.is_ascii_digit()
            || (letter == '.' && next.is_some_and(|next| next.is_ascii_digit()))
        {
            number(letters, &mut at).map_err(wrong)?
        } else if let Some(prefix) = quote_prefix(&letters[at..]) {
            at += prefix.letters;
            quoted(letters, &mut at, &prefix).map_err(wrong)?
        } else if letter.is_alphabetic() || letter == '_' {
            TokenKind::Name(name(letters, &mut at).into())
        } else {
            let rest: String = letters[at..].iter().take(3).collect();
            let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign));
            let Some(sign) = sign else {
                return Err(Fault::at(
                    place,
                    format!("the character {letter:?} has no meaning in an expression"),
                ));
            };
            at += sign.len();
            TokenKind::Sign(sign)
        };
        found.push(Token { kind, at: place });
    }
    found.push(Token {
        kind: TokenKind::End,
        at: letters.len() as u32,
    });
    Ok(found)
}

fn name(letters: &[char], at: &mut usize) -> String {
    let start = *at;
    while letters
        .get(*at)
        .is_some_and(|letter| letter.is_alphanumeric() || *letter == '_')
    {
        *at += 1;
    }
    letters[start..*at].iter().collect()
}

fn number(letters: &[char], at: &mut usize) -> Outcome<TokenKind> {
    let start = *at;
    let base = letters.get(start + 1).map(char::to_ascii_lowercase);
    let base = base.filter(|base| letters[start] == '0' && "xob".contains(*base));
    if let Some(base) = base {
        *at += 2;
        let belongs = |letter: &char| match base {
            'x' => letter.is_ascii_hexdigit() || *letter == '_',
            _ => letter.is_ascii_digit() || *letter == '_',
        };
        while letters.get(*at).is_some_and(belongs) {
            *at += 1;
        }
    } else {
        let digits = |at: &mut usize| {
            let is_digit = |letter: &char| letter.is_ascii_digit() || *letter == '_';
            while letters.get(*at).is_some_and(is_digit) {
                *at += 1;
            }
        };
        digits(at);
        if letters.get(*at) == Some(&'.') {
            *at += 1;
            digits(at);
        }
        // In `1else` there is no exponent: one has digits.
        let is_sign = |letter: &&char| matches!(**letter, '+' | '-');
        let sign = usize::from(letters.get(*at + 1).as_ref().is_some_and(is_sign));
        let has_exponent = matches!(letters.get(*at), Some('e' | 'E'))
            && letters
                .get(*at + 1 + sign)
                .is_some_and(char::is_ascii_digit);
        if has_exponent {
            *at += 1 + sign;
            digits(at);
        }
        if matches!(letters.get(*at), Some('j' | 'J')) {
            *at += 1;
        }
    }
    let text: String = letters[start..*at].iter().collect();
    number_of(&text)
}

fn number_of(text: &str) -> Outcome<TokenKind> {
    let plain = text.replace('_', "");
    let based = |base| i128::from_str_radix(plain.get(2..).unwrap_or(""), base);
    let integer = match plain.get(..2).map(str::to_ascii_lowercase).as_deref() {
        Some("0x") => based(16),
        Some("0o") => based(8),
        Some("0b") => based(2),
        _ if plain.ends_with(['j', 'J']) => {
            return Err(Fault::needs_python("a complex number"));
        }
        _ if plain.contains(['.', 'e', 'E']) => {
            let double = plain.parse().map(TokenKind::Double);
            return double.map_err(|_| format!("{text} is not a number").into());
        }
        _ if plain.len() > 1 && plain.starts_with('0') && plain.contains(|l: char| l != '0') => {
            return Err(format!("{text} starts with 0; write 0o for an octal number").into());
        }
        _ => plain.parse(),
    };
    integer.map(TokenKind::Integer).map_err(|error| {
        use std::num::IntErrorKind::PosOverflow;
        match error.kind() {
            PosOverflow => Fault::needs_python(LARGE_INTEGER),
            _ => format!("{text} is not a number").into(),
        }
    })
}

/// Why a result of more than 127 bits has no value without Python.
pub(super) const LARGE_INTEGER: &str = "an integer of more than 127 bits";

struct QuotePrefix {
    letters: usize,
    raw: bool,
    bytes: bool,
    formatted: bool,
}

/// The prefix of a text, if one starts here.
fn quote_prefix(letters: &[char]) -> Option<QuotePrefix> {
    let count = letters
        .iter()
        .take(3)
        .position(|letter| matches!(letter, '\'' | '"'))?;
    let prefix: String = letters[..count]
        .iter()
        .collect::<String>()
        .to_ascii_lowercase();
    let is_known = matches!(
        prefix.as_str(),
        "" | "r" | "b" | "f" | "u" | "rb" | "br" | "rf" | "fr"
    );
    is_known.then(|| QuotePrefix {
        letters: count,
        raw: prefix.contains('r'),
        bytes: prefix.contains('b'),
        formatted: prefix.contains('f'),
    })
}

/// Reads a text from its opening quote on.
fn quoted(letters: &[char], at: &mut usize, prefix: &QuotePrefix) -> Outcome<TokenKind> {
    if prefix.formatted {
        return Err(Fault::needs_python("an f-string"));
    }
    let quote = letters[*at];
    let is_triple = letters.get(*at..*at + 3) == Some(&[quote; 3]);
    let length = if is_triple { 3 } else { 1 };
    *at += length;
    let start = *at;
    loop {
        match letters.get(*at) {
            None => return Err(format!("the quote {quote} is not closed").into()),
            Some('\\') => *at += 2,
            Some(_) => {
                let end = letters.get(*at..*at + length);
                if end.is_some_and(|end| end.iter().all(|letter| *letter == quote)) {
                    break;
                }
                *at += 1;
            }
        }
    }
    let body = &letters[start..*at];
    *at += length;
    if prefix.bytes {
        return bytes(body, prefix.raw).map(TokenKind::Bytes);
    }
    if prefix.raw {
        return Ok(TokenKind::Text(body.iter().collect()));
    }
    unescaped(body).map(TokenKind::Text)
}

/// Resolves the escapes of a text.
fn unescaped(letters: &[char]) -> Outcome<String> {
    let mut text = String::new();
    let mut at = 0;
    while let Some(&letter) = letters.get(at) {
        at += 1;
        if letter != '\\' {
            text.push(letter);
            continue;
        }
        let next = letters.get(at).copied().unwrap_or('\\');
        at += 1;
        match escape(next, letters, &mut at)? {
            Escape::Nothing => {}
            Escape::Code(code) => {
                text.push(char::from_u32(code).ok_or_else(|| {
                    Fault::from(format!("\\{next}: {code:#x} is not a character"))
                })?)
            }
            Escape::Unknown => text.extend(['\\', next]),
        }
    }
    Ok(text)
}

enum Escape {
    Nothing,
    Code(u32),
    /// The backslash stays.
    Unknown,
}

fn escape(next: char, letters: &[char], at: &mut usize) -> Outcome<Escape> {
    let mut digits = |count: usize, base: u32| -> Outcome<Escape> {
        let end = (*at + count).min(letters.len());
        let digits: String = letters[*at..end].iter().collect();
        let code = u32::from_str_radix(&digits, base).ok();
        let code = code.filter(|_| digits.len() == count);
        *at = end;
        code.map(Escape::Code)
            .ok_or_else(|| format!("\\{next} needs {count} hexadecimal digits").into())
    };
    Ok(match next {
        '\n' => Escape::Nothing,
        'n' => Escape::Code(10),
        't' => Escape::Code(9),
        'r' => Escape::Code(13),
        'a' => Escape::Code(7),
        'b' => Escape::Code(8),
        'f' => Escape::Code(12),
        'v' => Escape::Code(11),
        '\\' | '\'' | '"' => Escape::Code(next as u32),
        'x' => return digits(2, 16),
        'u' => return digits(4, 16),
        'U' => return digits(8, 16),
        'N' => {
            return Err(Fault::needs_python("\\N{…}, a character by its name"));
        }
        '0'..='7' => {
            let mut code = next.to_digit(8).unwrap_or(0);
            for _ in 0..2 {
                let Some(digit) = letters.get(*at).and_then(|letter| letter.to_digit(8)) else {
                    break;
                };
                code = code * 8 + digit;
                *at += 1;
            }
            Escape::Code(code)
        }
        _ => Escape::Unknown,
    })
}

fn bytes(letters: &[char], raw: bool) -> Outcome<Vec<u8>> {
    if let Some(letter) = letters.iter().find(|letter| !letter.is_ascii()) {
        return Err(format!("bytes hold ASCII characters only; {letter:?} is none").into());
    }
    if raw {
        return Ok(letters.iter().map(|letter| *letter as u8).collect());
    }
    let text = unescaped(letters)?;
    let bytes = text.chars().map(|letter| u8::try_from(letter as u32));
    bytes
        .collect::<Result<_, _>>()
        .map_err(|_| "a byte is larger than 255".into())
}
