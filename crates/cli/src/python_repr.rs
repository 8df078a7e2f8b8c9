//! Messages as Python's `repr()`, which `ros2 topic pub` prints:
//! `std_msgs.msg.String(data='Hello')`.
//!
//! Python has doubles only. A `float32` that was received is printed with the digits
//! of a double: `0.10000000149011612` for 0.1. A message that the user wrote keeps
//! the digits of the user, except within sequences, which rclpy stores as `float32`.
//!
//! Fixed-size arrays of numbers are printed as lists; numpy's format with line
//! breaks is not reproduced.

use pteros::msg::dynamic::{
    DynamicMessage, Element, MessageField, Shape, Value, is_invisible, is_joiner,
};
use std::fmt::Write;

/// Origin of a message, which decides the digits of its `float32` values.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    Written,
    Received,
}

/// A message that the user wrote on the command line.
pub fn message(message: &DynamicMessage) -> String {
    message_of(message, Origin::Written)
}

/// A message of another process.
pub fn received_message(message: &DynamicMessage) -> String {
    message_of(message, Origin::Received)
}

fn message_of(message: &DynamicMessage, origin: Origin) -> String {
    let class = message.ty().name().replace('/', ".");
    let fields: Vec<String> = message
        .ty()
        .user_fields()
        .iter()
        .map(|field| match message.get(&field.name) {
            Ok(value) => format!("{}={}", field.name, value_of(&value, Some(field), origin)),
            // A message holds every field of its type.
            Err(error) => format!("{}=<{error}>", field.name),
        })
        .collect();
    format!("{class}({})", fields.join(", "))
}

/// One received value as `print()` shows it: strings without quotes, nothing
/// truncated. Its field says whether numbers are bytes, and a sequence of others an
/// `array`.
pub fn value(value: &Value, field: Option<&MessageField>) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::WString(text) => text.to_string(),
        Value::Message(inner) => received_message(inner),
        other => {
            let shown = value_of(other, field, Origin::Received);
            let is_sequence = |field: &&MessageField| matches!(field.shape, Shape::Sequence { .. });
            let field = field.filter(is_sequence);
            match field.and_then(|field| field.element.number()) {
                Some(number) if other.len() == Some(0) => {
                    format!("array('{}')", number.array_code())
                }
                Some(number) => format!("array('{}', {shown})", number.array_code()),
                None => shown,
            }
        }
    }
}

/// Bytes as a Python literal, `b'\x00\x01a'`.
pub fn bytes(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() * 4 + 3);
    let has = |byte: u8| bytes.contains(&byte);
    let quote = if has(b'\'') && !has(b'"') { '"' } else { '\'' };
    out.push('b');
    out.push(quote);
    for byte in bytes {
        match byte {
            b'\\' => out.push_str("\\\\"),
            b'\'' if quote == '\'' => out.push_str("\\'"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            0x20..=0x7e => out.push(char::from(*byte)),
            other => {
                let _ = write!(out, "\\x{other:02x}");
            }
        }
    }
    out.push(quote);
    out
}

fn value_of(value: &Value, field: Option<&MessageField>, origin: Origin) -> String {
    let is_byte = field.is_some_and(|field| field.element == Element::Byte);
    match value {
        Value::Bool(value) => boolean(*value).into(),
        Value::String(value) => text(value),
        Value::WString(value) => text(&value.to_string()),
        Value::Message(value) => message_of(value, origin),
        Value::F32(value) if origin == Origin::Written => {
            float(f64::from(*value), &format!("{value:?}"))
        }
        Value::F32(value) => {
            let value = f64::from(*value);
            float(value, &format!("{value:?}"))
        }
        Value::F64(value) => float(*value, &format!("{value:?}")),
        Value::U8(value) if is_byte => bytes(&[*value]),
        single if single.len().is_none() => single
            .as_integer()
            .map_or_else(String::new, |value| value.to_string()),
        many => {
            let is_array = field.is_some_and(|field| matches!(field.shape, Shape::Array(_)));
            let origin = match many {
                Value::F32s(_) if !is_array => Origin::Received,
                _ => origin,
            };
            let element = field.map(|field| MessageField {
                shape: Shape::Single,
                ..field.clone()
            });
            let elements: Vec<String> = (0..many.len().unwrap_or(0))
                .filter_map(|index| many.element(index))
                .map(|one| value_of(&one, element.as_ref(), origin))
                .collect();
            format!("[{}]", elements.join(", "))
        }
    }
}

fn boolean(value: bool) -> &'static str {
    if value { "True" } else { "False" }
}

/// Quotes a string as Python does: with `'`, unless only that would need escapes.
fn text(value: &str) -> String {
    let quote = if value.contains('\'') && !value.contains('"') {
        '"'
    } else {
        '\''
    };
    let mut out = String::from(quote);
    for c in value.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() && u32::from(c) < 0x100 => {
                let _ = write!(out, "\\x{:02x}", u32::from(c));
            }
            c if is_invisible(c) || is_joiner(c) => {
                let code = u32::from(c);
                let _ = if code < 0x1_0000 {
                    write!(out, "\\u{code:04x}")
                } else {
                    write!(out, "\\U{code:08x}")
                };
            }
            c => out.push(c),
        }
    }
    out.push(quote);
    out
}

/// A float as Python prints it; `shortest` is Rust's debug format. It has the same
/// digits and another exponent: `1e-7` for `1e-07`.
fn float(value: f64, shortest: &str) -> String {
    if value.is_nan() {
        return "nan".into();
    }
    if value.is_infinite() {
        return if value > 0.0 {
            "inf".into()
        } else {
            "-inf".into()
        };
    }
    match shortest.split_once('e') {
        None => shortest.into(),
        Some((digits, exponent)) => {
            let digits = digits.strip_suffix(".0").unwrap_or(digits);
            let (sign, size) = match exponent.strip_prefix('-') {
                Some(size) => ('-', size),
                None => ('+', exponent),
            };
            format!("{digits}e{sign}{size:0>2}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pteros::msg::dynamic::{DynamicType, YamlOptions};

    fn made(type_name: &str, yaml: &str) -> DynamicMessage {
        let library = pteros::interfaces::library();
        let description = library.describe(type_name).unwrap();
        DynamicMessage::from_yaml(&DynamicType::new(&description).unwrap(), yaml).unwrap()
    }

    /// Python escapes them as well, since they print nothing of their own.
    #[test]
    fn text_cannot_change_the_direction_of_a_terminal() {
        let reversed = made("std_msgs/msg/String", r#"data: "a\u202Eb\u2066c""#);
        assert_eq!(
            message(&reversed),
            r"std_msgs.msg.String(data='a\u202eb\u2066c')"
        );
        assert_eq!(
            reversed.to_yaml(&YamlOptions::default()),
            "data: \"a\\u202Eb\\u2066c\"\n"
        );
    }

    #[test]
    fn messages_equal_pythons_repr() {
        assert_eq!(
            message(&made("std_msgs/msg/String", "data: \"it's\"")),
            "std_msgs.msg.String(data=\"it's\")"
        );
        assert_eq!(
            message(&made(
                "geometry_msgs/msg/Vector3",
                "{x: 1, y: 1.0e-7, z: .nan}"
            )),
            "geometry_msgs.msg.Vector3(x=1.0, y=1e-07, z=nan)"
        );
        assert_eq!(
            message(&made("std_msgs/msg/Empty", "{}")),
            "std_msgs.msg.Empty()"
        );
        assert_eq!(
            message(&made("std_msgs/msg/Bool", "data: true")),
            "std_msgs.msg.Bool(data=True)"
        );
    }

    #[test]
    fn lists_and_nested_messages_are_printed_in_full() {
        let text = message(&made(
            "sensor_msgs/msg/JointState",
            "{name: [a, b], position: [0.5, 2]}",
        ));
        assert!(text.contains("header=std_msgs.msg.Header(stamp=builtin_interfaces.msg.Time(sec=0, nanosec=0), frame_id='')"), "{text}");
        assert!(
            text.contains("name=['a', 'b'], position=[0.5, 2.0], velocity=[]"),
            "{text}"
        );
    }

    #[test]
    fn a_received_float32_has_the_digits_of_a_double() {
        let number = made("std_msgs/msg/Float32", "data: 0.1");
        assert_eq!(message(&number), "std_msgs.msg.Float32(data=0.1)");
        assert_eq!(
            received_message(&number),
            "std_msgs.msg.Float32(data=0.10000000149011612)"
        );
        let data = number.get("data").unwrap();
        assert_eq!(value(&data, None), "0.10000000149011612");
        let text = message(&made("sensor_msgs/msg/LaserScan", "ranges: [0.1, 0.5]"));
        assert!(text.contains("ranges=[0.10000000149011612, 0.5]"), "{text}");
    }

    #[test]
    fn bytes_are_a_python_literal() {
        assert_eq!(bytes(b"\x00\x01a'\xff"), r#"b"\x00\x01a'\xff""#);
        assert_eq!(bytes(b"'\""), r#"b'\'"'"#);
    }

    /// Output of `print()` of a field in rclpy, measured with Jazzy.
    #[test]
    fn a_field_is_printed_as_rclpy_prints_it() {
        for (type_name, yaml, path, printed) in [
            ("std_msgs/msg/Byte", "data: 65", "data", "b'A'"),
            ("std_msgs/msg/Byte", "data: 39", "data", "b\"'\""),
            ("std_msgs/msg/UInt8", "data: 65", "data", "65"),
            (
                "std_msgs/msg/ByteMultiArray",
                "data: [1, 97]",
                "data",
                r"[b'\x01', b'a']",
            ),
            (
                "std_msgs/msg/ByteMultiArray",
                "data: [1, 97]",
                "data[1]",
                "b'a'",
            ),
            (
                "std_msgs/msg/UInt8MultiArray",
                "data: [1, 2]",
                "data",
                "array('B', [1, 2])",
            ),
            (
                "std_msgs/msg/Int64MultiArray",
                "data: []",
                "data",
                "array('q')",
            ),
            (
                "sensor_msgs/msg/JointState",
                "{name: [a], position: [0.5]}",
                "name",
                "['a']",
            ),
            (
                "sensor_msgs/msg/JointState",
                "position: [0.5]",
                "position",
                "array('d', [0.5])",
            ),
        ] {
            let message = made(type_name, yaml);
            let field = message.field_at(path).unwrap();
            assert_eq!(value(&message.get(path).unwrap(), Some(&field)), printed);
        }
    }
}
