//! Formatted text (f-string): texts and fields in braces.

use super::fault::{Fault, Outcome};
use super::limits::NESTING_MAX;
use super::parser;
use super::token::unescaped;
use super::tree::FormattedPart;

/// Parses the text between the quotes. `at` is the position of the whole text.
pub(super) fn parts(
    letters: &[char],
    raw: bool,
    at: u32,
    depth: u32,
) -> Outcome<Vec<FormattedPart>> {
    if depth > NESTING_MAX {
        return Err(Fault::at(
            at,
            format!("an f-string is nested more than {NESTING_MAX} deep"),
        ));
    }
    let mut parts = Vec::new();
    let mut plain: Vec<char> = Vec::new();
    let mut index = 0;
    while let Some(&letter) = letters.get(index) {
        let is_doubled = letters.get(index + 1) == Some(&letter);
        match letter {
            '{' | '}' if is_doubled => {
                plain.push(letter);
                index += 2;
            }
            '{' => {
                push_text(&mut parts, &mut plain, raw)?;
                index = field(letters, index + 1, raw, at, depth, &mut parts)?;
            }
            '}' => {
                return Err(Fault::at(
                    at,
                    "in an f-string } stands alone; write }} for the character",
                ));
            }
            _ => {
                plain.push(letter);
                index += 1;
            }
        }
    }
    push_text(&mut parts, &mut plain, raw)?;
    Ok(parts)
}

fn push_text(parts: &mut Vec<FormattedPart>, plain: &mut Vec<char>, raw: bool) -> Outcome<()> {
    if !plain.is_empty() {
        let text = match raw {
            true => plain.iter().collect(),
            false => unescaped(plain)?,
        };
        parts.push(FormattedPart::Text(text.into()));
        plain.clear();
    }
    Ok(())
}

/// Parses a field from behind its brace on. Returns the index behind it.
fn field(
    letters: &[char],
    start: usize,
    raw: bool,
    at: u32,
    depth: u32,
    parts: &mut Vec<FormattedPart>,
) -> Outcome<usize> {
    let unclosed = || {
        Fault::at(
            at,
            "in an f-string { is not closed; write {{ for the character",
        )
    };
    let end = value_end(letters, start).ok_or_else(unclosed)?;
    // `{a = }` shows the expression, too.
    let mut value_letters = &letters[start..end];
    let trimmed = trimmed_end(value_letters);
    let shows_itself = value_letters[..trimmed].last() == Some(&'=');
    if shows_itself {
        let text: String = value_letters.iter().collect();
        parts.push(FormattedPart::Text(text.into()));
        value_letters = &value_letters[..trimmed - 1];
    }
    if value_letters.iter().all(|letter| letter.is_whitespace()) {
        return Err(Fault::at(
            at,
            "in an f-string an expression is missing between { and }",
        ));
    }
    let value = parser::parse(value_letters, at, depth + 1).map_err(|mut fault| {
        // Escapes make the position within the text unknown.
        fault.at = Some(at);
        fault
    })?;
    let mut index = end;
    let mut conversion = None;
    if letters.get(index) == Some(&'!') {
        let letter = letters.get(index + 1).copied();
        conversion = letter.filter(|letter| "rsa".contains(*letter));
        if conversion.is_none() {
            return Err(Fault::at(at, "in an f-string ! is followed by r, s or a"));
        }
        index += 2;
    }
    let mut specification = Vec::new();
    if letters.get(index) == Some(&':') {
        let start = index + 1;
        let mut open = 0usize;
        index = start;
        loop {
            match letters.get(index) {
                None => return Err(unclosed()),
                Some('{') => open += 1,
                Some('}') if open == 0 => break,
                Some('}') => open -= 1,
                Some(_) => {}
            }
            index += 1;
        }
        specification = self::parts(&letters[start..index], raw, at, depth + 1)?;
    }
    if letters.get(index) != Some(&'}') {
        return Err(unclosed());
    }
    if shows_itself && conversion.is_none() && specification.is_empty() {
        conversion = Some('r');
    }
    parts.push(FormattedPart::Field {
        value,
        conversion,
        specification,
    });
    Ok(index + 1)
}

fn trimmed_end(letters: &[char]) -> usize {
    letters
        .iter()
        .rposition(|letter| !letter.is_whitespace())
        .map_or(0, |last| last + 1)
}

/// The index of the `!`, `:` or `}` that ends the expression of a field.
fn value_end(letters: &[char], start: usize) -> Option<usize> {
    let mut open = 0usize;
    let mut index = start;
    while let Some(&letter) = letters.get(index) {
        match letter {
            '\'' | '"' => {
                index += 1;
                while *letters.get(index)? != letter {
                    index += 1;
                }
            }
            '(' | '[' | '{' => open += 1,
            ')' | ']' => open = open.saturating_sub(1),
            '}' if open == 0 => return Some(index),
            '}' => open -= 1,
            '!' if open == 0 && letters.get(index + 1) != Some(&'=') => return Some(index),
            ':' if open == 0 => return Some(index),
            _ => {}
        }
        index += 1;
    }
    None
}
