//! Console lines in the format of RCUTILS_CONSOLE_OUTPUT_FORMAT.

use std::fmt::Write as _;

use pteros_runtime::printable::{escape_line, escape_lines};

use super::record::LogRecord;
use crate::local_time::LocalTime;

/// rcutils's default format.
pub(super) const DEFAULT: &str = "[{severity}] [{time}] [{name}]: {message}";

/// A parsed format.
#[derive(Clone, Debug)]
pub(super) struct ConsoleFormat(Vec<FormatToken>);

#[derive(Clone, Debug, PartialEq)]
enum FormatToken {
    Text(String),
    Severity,
    Name,
    Message,
    Function,
    File,
    Line,
    /// Seconds with nine decimals.
    Time,
    /// Nanoseconds, whole.
    Nanoseconds,
    /// `2026-11-21 18:30:00.123`, local time.
    Date,
}

impl ConsoleFormat {
    /// Parses a format. Unknown names in braces stay text, as in rcutils.
    pub(super) fn parse(text: &str) -> Self {
        let mut tokens = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(open) = rest.find('{') {
            let (before, from) = rest.split_at(open);
            plain.push_str(before);
            let token = from
                .find('}')
                .and_then(|close| Some((token(&from[1..close])?, close)));
            match token {
                Some((token, close)) => {
                    tokens.push(FormatToken::Text(unescaped(&std::mem::take(&mut plain))));
                    tokens.push(token);
                    rest = &from[close + 1..];
                }
                None => {
                    plain.push('{');
                    rest = &from[1..];
                }
            }
        }
        plain.push_str(rest);
        tokens.push(FormatToken::Text(unescaped(&plain)));
        tokens.retain(|token| *token != FormatToken::Text(String::new()));
        Self(tokens)
    }

    pub(super) fn line(&self, record: &LogRecord<'_>) -> String {
        let mut out = String::with_capacity(80 + record.message.len());
        for token in &self.0 {
            // Writing to a String does not fail.
            let _ = match token {
                FormatToken::Text(text) => write!(out, "{text}"),
                FormatToken::Severity => write!(out, "{}", record.severity),
                FormatToken::Name => out.write_str(&escape_line(record.name)),
                FormatToken::Message if record.keeps_lines => {
                    out.write_str(&escape_lines(record.message))
                }
                FormatToken::Message => out.write_str(&escape_line(record.message)),
                FormatToken::Function => write!(out, "{}", record.function),
                FormatToken::File => write!(out, "{}", record.file),
                FormatToken::Line => write!(out, "{}", record.line),
                FormatToken::Time => write!(out, "{}", record.time),
                FormatToken::Nanoseconds => write!(out, "{}", record.time.as_nanos()),
                FormatToken::Date => {
                    let time = LocalTime::of(record.time.as_nanos().into());
                    out.write_str(&date(time))
                }
            };
        }
        out
    }
}

fn token(name: &str) -> Option<FormatToken> {
    Some(match name {
        "severity" => FormatToken::Severity,
        "name" => FormatToken::Name,
        "message" => FormatToken::Message,
        "function_name" => FormatToken::Function,
        "file_name" => FormatToken::File,
        "line_number" => FormatToken::Line,
        "time" => FormatToken::Time,
        "time_as_nanoseconds" => FormatToken::Nanoseconds,
        "date_time_with_ms" => FormatToken::Date,
        _ => return None,
    })
}

/// Expands `\n`, `\t`, `\r` and `\x1b`, as rcutils does.
fn unescaped(text: &str) -> String {
    let replaced = text.replace("\\n", "\n").replace("\\t", "\t");
    replaced.replace("\\r", "\r").replace("\\x1b", "\x1b")
}

fn date(time: LocalTime) -> String {
    let millis = time.nanos / 1_000_000;
    format!("{}.{millis:03}", time.text("-", " ", ":"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::local_time::TimeZone;
    use crate::log::Severity;
    use crate::time::Time;

    #[test]
    fn a_line_has_what_its_format_names() {
        let record = LogRecord {
            severity: Severity::Warn,
            time: Time::from_nanos(951_782_400_123_456_789),
            name: "robot.arm",
            message: "hot {time}",
            keeps_lines: false,
            file: "arm.rs",
            function: "arm::move",
            line: 7,
        };
        let line = |format: &str| ConsoleFormat::parse(format).line(&record);
        assert_eq!(
            line(DEFAULT),
            "[WARN] [951782400.123456789] [robot.arm]: hot {time}"
        );
        assert_eq!(
            line("{file_name}:{line_number} {function_name} {what} {"),
            "arm.rs:7 arm::move {what} {"
        );
        let zone = TimeZone::of_variable("NST3:30NDT,M3.2.0,M11.1.0").unwrap();
        let local = zone.at(record.time.as_nanos().into());
        assert_eq!(date(local), "2000-02-28 20:30:00.123");
        let forged = LogRecord {
            message: "done\x1b[2K\r\n[FATAL] [0.0] [arm]: fire \u{202e}",
            ..record
        };
        assert_eq!(
            ConsoleFormat::parse("{message}").line(&forged),
            r"done\x1b[2K\r\n[FATAL] [0.0] [arm]: fire \u{202e}"
        );
        let table = LogRecord {
            message: "a\tb\n1\t2\x1b[2K \\n",
            keeps_lines: true,
            ..record
        };
        assert_eq!(
            ConsoleFormat::parse("{message}").line(&table),
            "a\tb\n1\t2\\x1b[2K \\n"
        );
        assert_eq!(line("{time_as_nanoseconds}"), "951782400123456789");
    }
}
