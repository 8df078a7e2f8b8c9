//! `topic echo --filter`: ros2 takes a Python expression over the message `m`. What
//! people write there, comparisons of fields, is the same in DDS's filter language but
//! for its spelling, so it is spelled anew; the rest of Python is not spoken.

use anyhow::{Result, bail};

/// The expression as a content filter.
///
/// # Errors
/// It has something that is no comparison of fields.
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
            // Behind !, < or >.
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
                sql += spelled(&rest[..word])?;
                word
            }
            other => bail!("--filter {python:?}: {other:?} is not understood; {WAY_OUT}"),
        };
        rest = &rest[taken..];
    }
    Ok(sql)
}

const WAY_OUT: &str = "compare fields of the message m, as in \"m.pose.position.x > 1.5 and m.header.frame_id == 'map'\", by ==, !=, <, <=, > or >=, joined by and, or, not and parentheses";

/// A name or a keyword.
fn spelled(word: &str) -> Result<&str> {
    if let Some(field) = word.strip_prefix("m.") {
        return Ok(field);
    }
    Ok(match word {
        "and" => "AND",
        "or" => "OR",
        "not" => "NOT",
        "True" => "TRUE",
        "False" => "FALSE",
        other => bail!("--filter: {other:?} is no field of m; {WAY_OUT}"),
    })
}

/// The text between quotes, and how many bytes it takes with them.
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
    bail!("--filter: a text does not end; close it with {quote}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparisons_are_spelled_as_dds_spells_them() {
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
