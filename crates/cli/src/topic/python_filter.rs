//! Python filter expressions of `topic echo --filter`, translated to content
//! filters. ros2 accepts a Python expression over the message `m`. Comparisons of
//! fields differ from DDS's filter language only in syntax. Other Python
//! expressions are refused.

use anyhow::{Result, bail};

/// The expression as a content filter.
///
/// # Errors
/// Anything that is not a comparison of fields.
pub fn as_content_filter(python: &str) -> Result<String> {
    let mut sql = String::with_capacity(python.len());
    let mut rest = python;
    while let Some(c) = rest.chars().next() {
        let word = rest
            .find(|c: char| !(c.is_alphanumeric() || "_.[]".contains(c)))
            .unwrap_or(rest.len());
        let taken = match c {
            '\'' | '"' => {
                let (text, taken) = quoted(rest, c)?;
                sql += &format!("'{}'", text.replace('\'', "''"));
                taken
            }
            '=' if rest.starts_with("==") => {
                sql.push('=');
                2
            }
            '<' | '>' | '!' | '(' | ')' | '+' | '-' => {
                sql.push(c);
                1
            }
            // After !, < or >.
            '=' if sql.ends_with(['<', '>', '!']) => {
                sql.push('=');
                1
            }
            c if c.is_whitespace() => {
                sql.push(' ');
                c.len_utf8()
            }
            c if c.is_ascii_digit() || c == '.' => {
                sql += &rest[..word];
                word
            }
            c if c.is_alphabetic() || c == '_' => {
                sql += keyword_or_field(&rest[..word])?;
                word
            }
            other => bail!("--filter {python:?}: {other:?} is not supported; {SYNTAX_HINT}"),
        };
        rest = &rest[taken..];
    }
    Ok(sql)
}

const SYNTAX_HINT: &str = "compare fields of the message m, as in \"m.pose.position.x > 1.5 and m.header.frame_id == 'map'\", by ==, !=, <, <=, > or >=, joined by and, or, not and parentheses";

/// A name or a keyword.
fn keyword_or_field(word: &str) -> Result<&str> {
    if let Some(field) = word.strip_prefix("m.") {
        return Ok(field);
    }
    Ok(match word {
        "and" => "AND",
        "or" => "OR",
        "not" => "NOT",
        "True" => "TRUE",
        "False" => "FALSE",
        other => bail!("--filter: {other:?} is not a field of m; {SYNTAX_HINT}"),
    })
}

/// The text between quotes, and its length in bytes including the quotes.
fn quoted(text: &str, quote: char) -> Result<(String, usize)> {
    let mut inside = String::new();
    let mut characters = text.char_indices().skip(1);
    while let Some((at, c)) = characters.next() {
        match c {
            '\\' => inside.extend(characters.next().map(|(_, escaped)| escaped)),
            c if c == quote => return Ok((inside, at + 1)),
            c => inside.push(c),
        }
    }
    bail!("--filter: a string is not closed; close it with {quote}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparisons_are_translated_to_dds_syntax() {
        for (python, sql) in [
            ("m.data == 'a'", "data = 'a'"),
            ("m.data != \"it's\"", "data != 'it''s'"),
            (
                "m.pose.position.x>=1.5 and not (m.ranges[3] < -2e3)",
                "pose.position.x>=1.5 AND NOT (ranges[3] < -2e3)",
            ),
            ("m.on == True or m.x <= 3", "on = TRUE OR x <= 3"),
        ] {
            assert_eq!(as_content_filter(python).unwrap(), sql);
        }
        for python in [
            "len(m.data) > 3",
            "m.x ** 2 > 1",
            "data == 1",
            "m.x = 3",
            "m.a == 'b",
        ] {
            let error = as_content_filter(python).unwrap_err().to_string();
            assert!(error.contains("--filter"), "{python}: {error}");
        }
    }
}
