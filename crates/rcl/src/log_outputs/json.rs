//! Log lines in JSON, for log files.

use std::fmt::Write as _;

use pteros_interfaces::builtin_interfaces::msg;

use super::record::LogRecord;

/// The fields of `rcl_interfaces/msg/Log`, and the severity's name.
pub(super) fn line(record: &LogRecord<'_>) -> String {
    let stamp = msg::Time::from(record.time);
    let mut out = String::with_capacity(200 + record.message.len());
    // Writing to a String does not fail.
    let _ = write!(
        out,
        "{{\"stamp\":{{\"sec\":{},\"nanosec\":{}}},\"level\":{},\"severity\":\"{}\"",
        stamp.sec, stamp.nanosec, record.severity as u8, record.severity
    );
    for (key, text) in [
        ("name", record.name),
        ("msg", record.message),
        ("file", record.file),
        ("function", record.function),
    ] {
        let _ = write!(out, ",\"{key}\":\"");
        escape(&mut out, text);
        out.push('"');
    }
    let _ = write!(out, ",\"line\":{}}}", record.line);
    out
}

/// RFC 8259 §7.
fn escape(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if u32::from(c) < 0x20 => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Severity;
    use crate::time::Time;

    #[test]
    fn a_line_has_the_fields_of_the_message() {
        let record = LogRecord {
            severity: Severity::Error,
            time: Time::from_nanos(1_700_000_000_000_000_007),
            name: "robot.arm",
            message: "a \"b\" \\ \n\u{1} ü",
            keeps_lines: false,
            file: "arm.rs",
            function: "arm",
            line: 7,
        };
        assert_eq!(
            line(&record),
            "{\"stamp\":{\"sec\":1700000000,\"nanosec\":7},\"level\":40,\"severity\":\"ERROR\",\
             \"name\":\"robot.arm\",\"msg\":\"a \\\"b\\\" \\\\ \\n\\u0001 ü\",\
             \"file\":\"arm.rs\",\"function\":\"arm\",\"line\":7}"
        );
    }
}
