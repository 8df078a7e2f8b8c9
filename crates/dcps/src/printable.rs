//! Printable text: what a peer sends cannot steer a terminal, nor pass for a line of
//! its own in a log.
//!
//! Names, messages and error texts of peers are any Unicode. Log outputs and the
//! command call this where they print them. JSON needs none of it but
//! [`escape_json`], because its strings escape control characters already.

use alloc::borrow::Cow;
use alloc::string::String;
use core::fmt::Write as _;

use pteros_msg::dynamic::{is_invisible, is_joiner};

/// One line of text: control characters, line breaks included, and invisible characters
/// as `\n`, `\t`, `\r`, `\x1b` or `\u{202e}`. Borrows text without any.
///
/// A backslash that would read as the begin of such an escape is doubled, so the text
/// can be told from its escaped form: `\n` of the text becomes `\\n`. `C:\dir` stays.
pub fn escape_line(text: &str) -> Cow<'_, str> {
    escape(text, |_| false, begins_escape)
}

/// As [`escape_line`], for a text of several lines: line feeds and tabs stay, and so do
/// joiners, which belong to the text of some languages. Backslashes stay too, since the
/// lines may be escaped already.
pub fn escape_lines(text: &str) -> Cow<'_, str> {
    let stays = |c: char| matches!(c, '\n' | '\t') || is_joiner(c);
    escape(text, stays, |_| false)
}

/// As [`escape_line`], for a line in which names may be escaped already: tabs and
/// backslashes stay.
pub fn escape_row(text: &str) -> Cow<'_, str> {
    escape(text, |c| c == '\t', |_| false)
}

/// Whether a backslash before this character is doubled: it would read as an escape.
fn begins_escape(next: char) -> bool {
    matches!(next, '\\' | 'n' | 'r' | 't' | 'x' | 'u') || is_unprintable(next)
}

fn escape(
    text: &str,
    stays: impl Fn(char) -> bool,
    is_doubled_before: impl Fn(char) -> bool,
) -> Cow<'_, str> {
    let is_unsafe = |c: char| is_unprintable(c) && !stays(c);
    let nexts = text.chars().skip(1).map(Some).chain([None]);
    let pairs = text.chars().zip(nexts);
    let is_doubled =
        |c: char, next: Option<char>| c == '\\' && next.is_some_and(&is_doubled_before);
    if !pairs
        .clone()
        .any(|(c, next)| is_unsafe(c) || is_doubled(c, next))
    {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len().saturating_add(16));
    for (c, next) in pairs {
        // Writing to a String does not fail.
        let _ = match c {
            c if is_doubled(c, next) => out.write_str("\\\\"),
            c if !is_unsafe(c) => out.write_char(c),
            '\n' => out.write_str("\\n"),
            '\r' => out.write_str("\\r"),
            '\t' => out.write_str("\\t"),
            c if c.is_ascii() => write!(out, "\\x{:02x}", u32::from(c)),
            c => write!(out, "\\u{{{:x}}}", u32::from(c)),
        };
    }
    Cow::Owned(out)
}

/// The text of a JSON document with what JSON allows, and a terminal obeys, escaped.
pub fn escape_json(json: &str) -> Cow<'_, str> {
    let is_unsafe = |c: char| is_unprintable(c) && c >= '\x7f';
    if !json.chars().any(is_unsafe) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len().saturating_add(16));
    for c in json.chars() {
        if !is_unsafe(c) {
            out.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            // Writing to a String does not fail.
            let _ = write!(out, "\\u{unit:04x}");
        }
    }
    Cow::Owned(out)
}

/// Controls (C0, DEL, C1), separators that end a line, invisible characters.
fn is_unprintable(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') || is_invisible(c) || is_joiner(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_line_and_steers_nothing() {
        let text = "a\x1b[2J\nb\rc\td\u{9b}1m\u{202e}e\u{2028}\x7f";
        assert_eq!(
            escape_line(text),
            r"a\x1b[2J\nb\rc\td\u{9b}1m\u{202e}e\u{2028}\x7f"
        );
        assert!(matches!(escape_line("grüße"), Cow::Borrowed(_)));
        assert_eq!(escape_lines("a\n\tb\x1b"), "a\n\tb\\x1b");
    }

    /// Log of kinds: characters that show nothing. A name has none of them; a text of
    /// several lines keeps those that join letters.
    #[test]
    fn invisible_characters_are_shown() {
        for c in "\u{200b}\u{feff}\u{e0041}\u{2060}\u{ad}\u{180e}\u{3164}\u{fff9}".chars() {
            let text = alloc::format!("/a{c}b");
            let shown = alloc::format!("/a\\u{{{:x}}}b", u32::from(c));
            assert_eq!(escape_line(&text), shown);
            assert_eq!(escape_lines(&text), shown);
        }
        assert_eq!(escape_line("a\u{200d}b\u{fe0f}"), r"a\u{200d}b\u{fe0f}");
        assert_eq!(escape_lines("a\u{200d}b\n"), "a\u{200d}b\n");
        assert_eq!(escape_row("a\nb\t\\n\u{200d}"), "a\\nb\t\\n\\u{200d}");
        assert_eq!(escape_json("\"\u{e0041}\""), r#""\udb40\udc41""#);
    }

    /// Reads the escapes of a line as a person does.
    fn unescape_line(text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let tail = &rest[c.len_utf8()..];
            let escape = (c == '\\').then(|| tail.chars().next()).flatten();
            let code = |digits: &str| char::from_u32(u32::from_str_radix(digits, 16).unwrap());
            let (read, length) = match escape {
                Some('\\') => ('\\', 2),
                Some('n') => ('\n', 2),
                Some('r') => ('\r', 2),
                Some('t') => ('\t', 2),
                Some('x') => (code(&tail[1..3]).unwrap(), 4),
                Some('u') => {
                    let digits = tail[2..].split('}').next().unwrap();
                    (code(digits).unwrap(), digits.len() + 4)
                }
                _ => (c, c.len_utf8()),
            };
            out.push(read);
            rest = &rest[length..];
        }
        out
    }

    #[test]
    fn a_backslash_of_the_text_is_no_escape() {
        assert_eq!(escape_line("a\nb"), r"a\nb");
        assert_eq!(escape_line(r"a\nb"), r"a\\nb");
        assert_eq!(escape_line("a\\\nb"), r"a\\\nb");
        // Others stay as they are.
        for text in [r"C:\dir", r"\d+ of \", "say \\\"no\\\""] {
            assert!(matches!(escape_line(text), Cow::Borrowed(_)), "{text}");
        }
        // Lines may be escaped already.
        assert_eq!(escape_lines("a\\nb\n"), "a\\nb\n");
    }

    #[test]
    fn different_texts_have_different_lines() {
        let parts = ["\\", "\n", "n", "x1b", "\x1b", "u{85}", "\u{85}", "d", "\t"];
        let mut lines = alloc::collections::BTreeMap::new();
        let count = parts.len().pow(4);
        for number in 0..count {
            let part = |place: u32| parts[number / parts.len().pow(place) % parts.len()];
            let text: String = (0..4).map(part).collect();
            let line = escape_line(&text).into_owned();
            assert_eq!(unescape_line(&line), text, "{line}");
            lines.insert(text, line);
        }
        let distinct: alloc::collections::BTreeSet<_> = lines.values().collect();
        assert_eq!(distinct.len(), lines.len());
    }

    #[test]
    fn json_stays_the_same_document() {
        let json = "{\n  \"a\": \"\u{9b}\u{202e}ü\"\n}";
        assert_eq!(escape_json(json), "{\n  \"a\": \"\\u009b\\u202eü\"\n}");
    }
}
