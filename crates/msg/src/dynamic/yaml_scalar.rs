//! YAML string style: plain, 'single' or "double" quoted.
//!
//! The same choice, and the same escapes, as PyYAML's `dump` with `allow_unicode`
//! and no line width, because ROS 2's tools print with it: scripts that compare
//! their output keep working. Plain when nothing in the text looks like YAML markup
//! and it would not parse as a number, bool, null or date; else single quotes;
//! double quotes for what single quotes cannot represent. Three differences: the line
//! breaks that YAML 1.1 has and 1.2 does not (U+0085, U+2028, U+2029) are always
//! escaped, so that parsers of both versions agree. Invisible characters are, too: on
//! a terminal they show other text than a message holds. Texts that only YAML 1.2
//! parses as numbers (`0483`, `1e3`, `0o7`) are quoted.

use alloc::string::String;
use core::fmt::Write;

/// A text as one YAML scalar for a file: every reader of YAML 1.1 and 1.2 reads the same
/// text. As `topic echo` prints it, and the words of YAML 1.1 for booleans that PyYAML does
/// not know (`y`, `n`) are quoted, and so are the numbers of C (`nan`). One line.
pub fn yaml_string(text: &str) -> String {
    let mut out = String::new();
    if text.contains('\n') {
        write_double_quoted(&mut out, text);
    } else if matches!(text, "y" | "Y" | "n" | "N") || reads_as_number_of_c(text) {
        write_single_quoted(&mut out, text, 0);
    } else {
        // Within brackets, more is quoted.
        write_string(&mut out, text, 0, true);
    }
    out
}

/// Appends `text`. Lines after the first begin `indent` columns in.
pub(super) fn write_string(out: &mut String, text: &str, indent: usize, in_flow: bool) {
    let found = Analysis::of(text);
    let plain = if in_flow {
        found.plain_in_flow
    } else {
        found.plain_in_block
    };
    if plain && !text.is_empty() && !reads_as_other_type(text) {
        out.push_str(text);
    } else if found.single_quoted {
        write_single_quoted(out, text, indent);
    } else {
        write_double_quoted(out, text);
    }
}

/// Which styles can carry a text.
struct Analysis {
    plain_in_block: bool,
    plain_in_flow: bool,
    single_quoted: bool,
}

impl Analysis {
    fn of(text: &str) -> Self {
        let (mut block_mark, mut flow_mark) = (false, false);
        let (mut breaks, mut special) = (false, false);
        let (mut space_then_break, mut break_then_space) = (false, false);
        if text.starts_with("---") || text.starts_with("...") {
            (block_mark, flow_mark) = (true, true);
        }
        let mut previous = None;
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            let blank_before = previous.is_none_or(is_blank);
            let blank_after = chars.peek().copied().is_none_or(is_blank);
            match (c, previous.is_none()) {
                (
                    '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"'
                    | '%' | '@' | '`',
                    true,
                ) => (block_mark, flow_mark) = (true, true),
                ('?' | ':', true) | (':', false) => {
                    flow_mark = true;
                    block_mark |= blank_after;
                }
                ('-', true) if blank_after => (block_mark, flow_mark) = (true, true),
                (',' | '?' | '[' | ']' | '{' | '}', false) => flow_mark = true,
                ('#', false) if blank_before => (block_mark, flow_mark) = (true, true),
                _ => {}
            }
            if c == '\n' {
                breaks = true;
                space_then_break |= previous == Some(' ');
            }
            break_then_space |= c == ' ' && previous == Some('\n');
            special |= !is_printable(c);
            previous = Some(c);
        }
        let edge = |c: Option<char>| matches!(c, Some(' ' | '\n'));
        let edges = edge(text.chars().next()) || edge(previous);
        let never_plain = edges || breaks || special;
        Self {
            plain_in_block: !never_plain && !block_mark,
            plain_in_flow: !never_plain && !flow_mark && !text.is_empty(),
            single_quoted: !(special || space_then_break || break_then_space),
        }
    }
}

fn is_blank(c: char) -> bool {
    matches!(c, '\0' | ' ' | '\t' | '\r' | '\n')
}

fn is_printable(c: char) -> bool {
    matches!(c,
        '\n' | ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}'
        | '\u{10000}'..='\u{10fffe}')
        && !matches!(c, '\u{2028}' | '\u{2029}')
        && !is_invisible(c)
}

/// Whether a character shows nothing by itself, or changes the direction of the text
/// around it: Unicode's default ignorable code points (UAX #44) and the bidirectional
/// controls (UAX #9 §2), among them zero-width spaces, the byte order mark and tags.
/// [Joiners](is_joiner) belong to the text of some languages, and are not among them.
pub fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
        && !is_joiner(c)
}

/// Whether a character joins or parts its neighbours, or chooses between two forms of one:
/// invisible, and a part of Persian, Hindi and emoji. Names need none.
pub fn is_joiner(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}')
}

fn write_single_quoted(out: &mut String, text: &str, indent: usize) {
    out.push('\'');
    let mut in_breaks = false;
    for c in text.chars() {
        if c == '\n' {
            // A single break would be folded into a space, so it is doubled.
            if !in_breaks {
                out.push('\n');
            }
            out.push('\n');
            in_breaks = true;
            continue;
        }
        if in_breaks {
            (0..indent).for_each(|_| out.push(' '));
            in_breaks = false;
        }
        if c == '\'' {
            out.push('\'');
        }
        out.push(c);
    }
    if in_breaks {
        (0..indent).for_each(|_| out.push(' '));
    }
    out.push('\'');
}

fn write_double_quoted(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        let short = match c {
            '\0' => '0',
            '\u{7}' => 'a',
            '\u{8}' => 'b',
            '\t' => 't',
            '\n' => 'n',
            '\u{b}' => 'v',
            '\u{c}' => 'f',
            '\r' => 'r',
            '\u{1b}' => 'e',
            '"' => '"',
            '\\' => '\\',
            '\u{85}' => 'N',
            '\u{2028}' => 'L',
            '\u{2029}' => 'P',
            ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' if !is_invisible(c) => {
                out.push(c);
                continue;
            }
            _ => {
                let code = u32::from(c);
                // Writing to a string cannot fail.
                let _ = match code {
                    0..=0xff => write!(out, "\\x{code:02X}"),
                    0x100..=0xffff => write!(out, "\\u{code:04X}"),
                    _ => write!(out, "\\U{code:08X}"),
                };
                continue;
            }
        };
        out.push('\\');
        out.push(short);
    }
    out.push('"');
}

/// Whether YAML 1.1 or 1.2 parses the plain text as something other than a string.
fn reads_as_other_type(text: &str) -> bool {
    let Some(first) = text.bytes().next() else {
        return true;
    };
    match first {
        b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'o' | b'O' | b'~' | b'<'
        | b'=' => matches!(
            text,
            "yes"
                | "Yes"
                | "YES"
                | "no"
                | "No"
                | "NO"
                | "true"
                | "True"
                | "TRUE"
                | "false"
                | "False"
                | "FALSE"
                | "on"
                | "On"
                | "ON"
                | "off"
                | "Off"
                | "OFF"
                | "~"
                | "null"
                | "Null"
                | "NULL"
                | "<<"
                | "="
        ),
        b'-' | b'+' | b'.' | b'0'..=b'9' => {
            reads_as_integer(text)
                || reads_as_float(text)
                || reads_as_date(text)
                || reads_as_core_number(text)
        }
        _ => false,
    }
}

/// Whether C's strtod reads the text whole, as rcl's parser of parameter files does:
/// `nan`, `-Infinity`, `0x1p3`.
fn reads_as_number_of_c(text: &str) -> bool {
    let digits = unsigned(text);
    let is_hex = digits.starts_with("0x") || digits.starts_with("0X");
    is_hex || text.parse::<f64>().is_ok()
}

fn unsigned(text: &str) -> &str {
    text.strip_prefix(['-', '+']).unwrap_or(text)
}

fn all(text: &str, allowed: impl Fn(u8) -> bool) -> bool {
    !text.is_empty() && text.bytes().all(allowed)
}

fn decimal(c: u8) -> bool {
    c.is_ascii_digit() || c == b'_'
}

/// Groups after the first `:` in base 60: one or two digits, at most 59.
fn sexagesimal_tail(text: &str) -> bool {
    text.split(':').all(|group| match group.as_bytes() {
        [one] => one.is_ascii_digit(),
        [ten, one] => (b'0'..=b'5').contains(ten) && one.is_ascii_digit(),
        _ => false,
    })
}

fn reads_as_integer(text: &str) -> bool {
    let digits = unsigned(text);
    if let Some(rest) = digits.strip_prefix("0b") {
        return all(rest, |c| matches!(c, b'0' | b'1' | b'_'));
    }
    if let Some(rest) = digits.strip_prefix("0x") {
        return all(rest, |c| c.is_ascii_hexdigit() || c == b'_');
    }
    if let Some(rest) = digits.strip_prefix('0') {
        return rest.is_empty() || all(rest, |c| matches!(c, b'0'..=b'7' | b'_'));
    }
    if !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return false;
    }
    match digits.split_once(':') {
        None => all(digits, decimal),
        Some((head, tail)) => all(head, decimal) && sexagesimal_tail(tail),
    }
}

fn reads_as_float(text: &str) -> bool {
    if matches!(text, ".nan" | ".NaN" | ".NAN") {
        return true;
    }
    let digits = unsigned(text);
    if matches!(digits, ".inf" | ".Inf" | ".INF") {
        return true;
    }
    let Some((whole, rest)) = digits.split_once('.') else {
        return false;
    };
    if whole.is_empty() {
        // No sign before a leading point.
        let (fraction, exponent) = split_exponent(rest);
        return digits.len() == text.len()
            && fraction.starts_with(|c: char| c.is_ascii_digit())
            && all(fraction, decimal)
            && exponent;
    }
    if !whole.starts_with(|c: char| c.is_ascii_digit()) {
        return false;
    }
    if let Some((head, tail)) = whole.split_once(':') {
        return all(head, decimal) && sexagesimal_tail(tail) && rest.bytes().all(decimal);
    }
    let (fraction, exponent) = split_exponent(rest);
    all(whole, decimal) && fraction.bytes().all(decimal) && exponent
}

/// A number of YAML 1.2's core schema (§10.3.2), with the underscores of its readers.
fn reads_as_core_number(text: &str) -> bool {
    let digits = unsigned(text);
    if let Some(rest) = digits.strip_prefix("0o") {
        return all(rest, |c| matches!(c, b'0'..=b'7' | b'_'));
    }
    let (mantissa, exponent) = match digits.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(unsigned(exponent))),
        None => (digits, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_number = |text: &str| text.bytes().all(decimal);
    let has_digit = mantissa.bytes().any(|c| c.is_ascii_digit());
    has_digit
        && is_number(whole)
        && is_number(fraction)
        && exponent.is_none_or(|exponent| all(exponent, decimal))
}

/// The part before `e`, and whether what follows is no or a valid exponent.
fn split_exponent(text: &str) -> (&str, bool) {
    match text.split_once(['e', 'E']) {
        None => (text, true),
        Some((fraction, exponent)) => {
            let digits = exponent.strip_prefix(['-', '+']).unwrap_or("");
            (fraction, all(digits, |c| c.is_ascii_digit()))
        }
    }
}

/// `2001-12-14`, or with a time of day behind it.
fn reads_as_date(text: &str) -> bool {
    let digits = |text: &str, least: usize, most: usize| {
        (least..=most).contains(&text.len()) && all(text, |c| c.is_ascii_digit())
    };
    let mut parts = text.splitn(3, '-');
    let (Some(year), Some(month), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
        return false;
    };
    if !digits(year, 4, 4) || !digits(month, 1, 2) {
        return false;
    }
    let Some(end) = rest.find(|c: char| !c.is_ascii_digit()) else {
        return digits(month, 2, 2) && digits(rest, 2, 2);
    };
    let (day, time) = rest.split_at(end);
    let time = time
        .strip_prefix(['T', 't'])
        .or_else(|| Some(time.trim_start_matches([' ', '\t'])).filter(|t| t.len() < time.len()));
    digits(day, 1, 2) && time.is_some_and(reads_as_time)
}

/// `21:59:43.10 -05:00`
fn reads_as_time(text: &str) -> bool {
    let digits = |text: &str, least: usize, most: usize| {
        (least..=most).contains(&text.len()) && all(text, |c| c.is_ascii_digit())
    };
    let mut parts = text.splitn(3, ':');
    let (Some(hour), Some(minute), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
        return false;
    };
    let second_end = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    let (second, rest) = rest.split_at(second_end);
    let rest = match rest.strip_prefix('.') {
        Some(fraction) => fraction.trim_start_matches(|c: char| c.is_ascii_digit()),
        None => rest,
    };
    let zone = rest.trim_start_matches([' ', '\t']);
    let zone_ok = match zone.strip_prefix(['-', '+']) {
        Some(offset) => match offset.split_once(':') {
            Some((hours, minutes)) => digits(hours, 1, 2) && digits(minutes, 2, 2),
            None => digits(offset, 1, 2),
        },
        None => rest.is_empty() || zone == "Z",
    };
    digits(hour, 1, 2) && digits(minute, 2, 2) && digits(second, 2, 2) && zone_ok
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::{YamlContent, YamlNode};
    use alloc::format;

    /// The first value of a list or a mapping, and the key of the latter.
    fn read_back(text: &str) -> [Option<String>; 2] {
        let node = YamlNode::read(text).unwrap_or_else(|error| panic!("{text:?}: {error}"));
        let scalar = |node: &YamlNode| match &node.content {
            YamlContent::Scalar { text, .. } => Some(text.clone()),
            _ => None,
        };
        match &node.content {
            YamlContent::List(items) => [None, items.first().and_then(scalar)],
            YamlContent::Mapping(entries) => {
                let entry = entries.first();
                let key = entry.map(|entry| entry.key.clone());
                [key, entry.and_then(|entry| scalar(&entry.value))]
            }
            YamlContent::Scalar { .. } => [None, scalar(&node)],
        }
    }

    /// All texts of up to three of these characters, in every place of a flow or a block.
    #[test]
    fn every_short_text_of_markup_is_read_back() {
        let alphabet = ['-', ' ', 'a', ',', ']', '}', ':', '?', '#', '1', '\'', '\n'];
        let mut texts = alloc::vec![String::new()];
        let mut from = 0;
        for _ in 0..3 {
            let before = texts.len();
            for index in from..before {
                for c in alphabet {
                    let text = format!("{}{c}", texts[index]);
                    texts.push(text);
                }
            }
            from = before;
        }
        for text in &texts {
            let written = |in_flow| {
                let mut out = String::new();
                write_string(&mut out, text, 2, in_flow);
                out
            };
            let (flow, block) = (written(true), written(false));
            let one_line = yaml_string(text);
            for yaml in [
                format!("{{k: {flow}}}"),
                format!("{{k: {flow}, l: 1}}"),
                format!("[{flow}]"),
                format!("[{flow}, [1]]"),
                format!("k: {block}\n"),
                format!("- {block}\n"),
                format!("{{k: {one_line}}}"),
                format!("k: {one_line}\n"),
            ] {
                assert_eq!(read_back(&yaml)[1].as_ref(), Some(text), "{yaml:?}");
            }
            if !one_line.is_empty() {
                let key = &read_back(&format!("{{{one_line}: 1}}"))[0];
                assert_eq!(key.as_ref(), Some(text), "{one_line}");
            }
        }
    }
}
