//! Printable text: what a peer sends cannot steer a terminal, nor pass for a line of
//! its own in a log.
//!
//! Names, messages and error texts of peers are any Unicode. Log outputs and the
//! command call this where they print them. JSON needs none of it but
//! [`escape_json`], because its strings escape control characters already.

use alloc::borrow::Cow;
use alloc::string::String;
use core::fmt::Write as _;

use pteros_msg::dynamic::is_bidi_control;

/// One line of text: control characters, line breaks included, and bidirectional
/// controls as `\n`, `\t`, `\r`, `\x1b` or `\u{202e}`. Borrows text without any.
pub fn escape_line(text: &str) -> Cow<'_, str> {
    escape(text, |_| false)
}

/// As [`escape_line`], for a text of several lines: line feeds and tabs stay.
pub fn escape_lines(text: &str) -> Cow<'_, str> {
    escape(text, |c| matches!(c, '\n' | '\t'))
}

fn escape(text: &str, stays: impl Fn(char) -> bool) -> Cow<'_, str> {
    let is_unsafe = |c: char| is_unprintable(c) && !stays(c);
    if !text.chars().any(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len().saturating_add(16));
    for c in text.chars() {
        // Writing to a String does not fail.
        let _ = match c {
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
        // All of them are in the basic plane, so one escape is enough.
        let _ = match c {
            c if is_unsafe(c) => write!(out, "\\u{:04x}", u32::from(c)),
            c => out.write_char(c),
        };
    }
    Cow::Owned(out)
}

/// Controls (C0, DEL, C1), separators that end a line, bidirectional controls.
fn is_unprintable(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') || is_bidi_control(c)
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
        assert!(matches!(escape_line("grüße \\n"), Cow::Borrowed(_)));
        assert_eq!(escape_lines("a\n\tb\x1b"), "a\n\tb\\x1b");
    }

    #[test]
    fn json_stays_the_same_document() {
        let json = "{\n  \"a\": \"\u{9b}\u{202e}ü\"\n}";
        assert_eq!(escape_json(json), "{\n  \"a\": \"\\u009b\\u202eü\"\n}");
    }
}
