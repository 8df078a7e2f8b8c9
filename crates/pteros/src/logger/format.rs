//! Lines for the console, as RCUTILS_CONSOLE_OUTPUT_FORMAT wants them.

use std::fmt::Write as _;

use super::Record;

/// rcutils's format without a setting.
pub(super) const DEFAULT: &str = "[{severity}] [{time}] [{name}]: {message}";

/// A format, taken apart once.
#[derive(Clone, Debug)]
pub(super) struct Format(Vec<Piece>);

#[derive(Clone, Debug, PartialEq)]
enum Piece {
    Text(String),
    Severity,
    Name,
    Message,
    Function,
    File,
    Line,
    /// Seconds with nine digits behind the point.
    Time,
    /// Nanoseconds, whole.
    Nanoseconds,
    /// `2026-11-21 18:30:00.123`, in UTC.
    Date,
}

impl Format {
    /// Names in braces that rcutils does not know stay text, as there.
    pub(super) fn parse(text: &str) -> Self {
        let mut pieces = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(open) = rest.find('{') {
            let (before, from) = rest.split_at(open);
            plain.push_str(before);
            let token = from
                .find('}')
                .and_then(|close| Some((piece(&from[1..close])?, close)));
            match token {
                Some((piece, close)) => {
                    pieces.push(Piece::Text(unescaped(&std::mem::take(&mut plain))));
                    pieces.push(piece);
                    rest = &from[close + 1..];
                }
                None => {
                    plain.push('{');
                    rest = &from[1..];
                }
            }
        }
        plain.push_str(rest);
        pieces.push(Piece::Text(unescaped(&plain)));
        pieces.retain(|piece| *piece != Piece::Text(String::new()));
        Self(pieces)
    }

    pub(super) fn line(&self, record: &Record<'_>) -> String {
        let mut out = String::with_capacity(80 + record.message.len());
        for piece in &self.0 {
            // Writing to a String does not fail.
            let _ = match piece {
                Piece::Text(text) => write!(out, "{text}"),
                Piece::Severity => write!(out, "{}", record.severity),
                Piece::Name => write!(out, "{}", record.name),
                Piece::Message => write!(out, "{}", record.message),
                Piece::Function => write!(out, "{}", record.function),
                Piece::File => write!(out, "{}", record.file),
                Piece::Line => write!(out, "{}", record.line),
                Piece::Time => write!(out, "{}", record.time),
                Piece::Nanoseconds => write!(out, "{}", record.time.as_nanos()),
                Piece::Date => write!(out, "{}", date(record.time.as_nanos())),
            };
        }
        out
    }
}

fn piece(name: &str) -> Option<Piece> {
    Some(match name {
        "severity" => Piece::Severity,
        "name" => Piece::Name,
        "message" => Piece::Message,
        "function_name" => Piece::Function,
        "file_name" => Piece::File,
        "line_number" => Piece::Line,
        "time" => Piece::Time,
        "time_as_nanoseconds" => Piece::Nanoseconds,
        "date_time_with_ms" => Piece::Date,
        _ => return None,
    })
}

/// `\n`, `\t` and their kin, as rcutils expands them.
fn unescaped(text: &str) -> String {
    let replaced = text.replace("\\n", "\n").replace("\\t", "\t");
    replaced.replace("\\r", "\r").replace("\\x1b", "\x1b")
}

/// Days to a date: the civil calendar, counted from 1 March of year 0.
fn date(nanos: i64) -> String {
    let (seconds, rest) = (
        nanos.div_euclid(1_000_000_000),
        nanos.rem_euclid(1_000_000_000),
    );
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute) = (second / 3_600, second / 60 % 60);
    let (second, millis) = (second % 60, rest / 1_000_000);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{millis:03}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Time;
    use crate::log::Severity;

    #[test]
    fn a_line_has_what_its_format_names() {
        let record = Record {
            severity: Severity::Warn,
            time: Time::from_nanos(951_782_400_123_456_789),
            name: "robot.arm",
            message: "hot {time}",
            file: "arm.rs",
            function: "arm::move",
            line: 7,
        };
        let line = |format: &str| Format::parse(format).line(&record);
        assert_eq!(
            line(DEFAULT),
            "[WARN] [951782400.123456789] [robot.arm]: hot {time}"
        );
        assert_eq!(
            line("{file_name}:{line_number} {function_name} {what} {"),
            "arm.rs:7 arm::move {what} {"
        );
        assert_eq!(line("{date_time_with_ms}\\n"), "2000-02-29 00:00:00.123\n");
        assert_eq!(line("{time_as_nanoseconds}"), "951782400123456789");
    }
}
