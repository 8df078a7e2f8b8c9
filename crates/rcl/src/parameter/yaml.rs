//! The typing rule: the type of a parameter value that was written as text.
//!
//! The declared type wins, wherever one is known (`parameter_text.rs`).
//! Without one, ROS 2 has two rules for a plain scalar, and so has [`TypingRule`]:
//! rcl's parser reads parameter files and `-p`, YAML 1.1 is for all that ROS 2 does
//! in Python. A quoted scalar, or one with the tag `!!str`, is a string. YAML 1.1 has
//! further tags, which decide the type; rcl ignores them. Sources: rcl_yaml_param_parser,
//! `parse.c`; PyYAML, `resolver.py` and `constructor.py`.

use pteros_msg::yaml::{YamlContent, YamlNode};

use super::value::{ParameterType, ParameterValue};
use super::yaml11;

/// How a plain scalar without a declared type is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypingRule {
    /// As rcl: a boolean (`yes`, `On`, `n` …), an integer in C notation (`0777` is
    /// octal, `0x1F` hexadecimal), a double (`.inf`, `nan`, `1e3`), a string. For
    /// parameter files and `-p`.
    Rcl,
    /// As YAML 1.1, which launch files, `param set` and rclpy follow: `y`, `nan`,
    /// `1e3` and `08` are strings, `1_000` and `1:30` are integers.
    Yaml11,
}

impl TypingRule {
    /// The value of a scalar without quotes. An empty one is an empty string.
    pub fn value_of(self, plain_text: &str) -> ParameterValue {
        plain(plain_text, self)
    }
}

/// The value of a scalar with one of YAML's own tags, as `str` for `!!str`, by YAML 1.1.
/// `None` if the text is not of that type, or for another tag.
pub fn tagged_scalar(text: &str, tag: &str) -> Option<ParameterValue> {
    match (tag, TypingRule::Yaml11.value_of(text)) {
        ("str", _) => Some(ParameterValue::String(text.into())),
        ("null", _) => Some(ParameterValue::NotSet),
        ("bool", value @ ParameterValue::Bool(_))
        | ("int", value @ ParameterValue::Integer(_))
        | ("float", value @ ParameterValue::Double(_)) => Some(value),
        // As Python's float() and int(), which PyYAML calls for a tag.
        ("float", _) => text.trim().parse().ok().map(ParameterValue::Double),
        ("int", _) => text.trim().parse().ok().map(ParameterValue::Integer),
        _ => None,
    }
}

/// Error in a YAML value: the problem, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct YamlValueError {
    pub(super) problem: String,
    pub(super) hint: &'static str,
}

fn invalid<T>(problem: impl Into<String>, hint: &'static str) -> Result<T, YamlValueError> {
    let problem = problem.into();
    Err(YamlValueError { problem, hint })
}

/// Value of a YAML node.
pub(super) fn value(node: &YamlNode, rule: TypingRule) -> Result<ParameterValue, YamlValueError> {
    let tag = node.tag.as_deref().and_then(|tag| tag.strip_prefix(CORE));
    match &node.content {
        YamlContent::Scalar { text, quoted } => scalar(text, *quoted, tag, rule),
        YamlContent::List(items) => list(items, rule),
        YamlContent::Mapping(_) => invalid(
            "a mapping is not a parameter value",
            "write a scalar or an array; groups of parameters go into files",
        ),
    }
}

/// Namespace of YAML's core tags.
const CORE: &str = "tag:yaml.org,2002:";

fn scalar(
    text: &str,
    quoted: bool,
    tag: Option<&str>,
    rule: TypingRule,
) -> Result<ParameterValue, YamlValueError> {
    match tag {
        Some("str") => return Ok(ParameterValue::String(text.into())),
        Some(tag @ ("bool" | "int" | "float")) if rule == TypingRule::Yaml11 => {
            return tagged_scalar(text, tag).map_or_else(
                || {
                    invalid(
                        format!("{text:?} does not match its tag !!{tag}"),
                        "write a value of that type, or leave the tag out",
                    )
                },
                Ok,
            );
        }
        _ => {}
    }
    if quoted {
        return Ok(ParameterValue::String(text.into()));
    }
    if text.is_empty() {
        return invalid("no value", "write '' for an empty string");
    }
    Ok(plain(text, rule))
}

/// A scalar without quotes and tag.
pub(super) fn plain(text: &str, rule: TypingRule) -> ParameterValue {
    let is_rcl = rule == TypingRule::Rcl;
    let value = bool_of(text)
        .filter(|_| is_rcl || text.len() > 1)
        .map(ParameterValue::Bool);
    let value = value.or_else(|| {
        let integer = if is_rcl {
            integer_of(text)
        } else {
            yaml11::integer_of(text)
        };
        integer.map(ParameterValue::Integer)
    });
    let value = value.or_else(|| {
        let double = if is_rcl {
            double_of(text)
        } else {
            yaml11::double_of(text)
        };
        double.map(ParameterValue::Double)
    });
    value.unwrap_or_else(|| ParameterValue::String(text.into()))
}

/// Array of one type. As in rcl, mixed integers and doubles are an error. An empty
/// array is one of strings until a declared type decides.
fn list(items: &[YamlNode], rule: TypingRule) -> Result<ParameterValue, YamlValueError> {
    let mut values = Vec::with_capacity(items.len());
    for item in items {
        let value = value(item, rule)?;
        if value.parameter_type().is_array() {
            return invalid("a list in a list", "parameters have lists of scalars only");
        }
        values.push(value);
    }
    let types = || values.iter().map(ParameterValue::parameter_type);
    let first = types().next().unwrap_or(ParameterType::String);
    if let Some((at, other)) = types().enumerate().find(|(_, other)| *other != first) {
        return invalid(
            format!(
                "a list of {first} has, at place {}, a value of type {other}",
                at + 1
            ),
            "use one type: [1.0, 2.5], not [1, 2.5]",
        );
    }
    Ok(array(values, first))
}

/// The array of values that are all of one type.
pub(super) fn array(values: Vec<ParameterValue>, of: ParameterType) -> ParameterValue {
    match of {
        ParameterType::Bool => {
            collect_array(values, ParameterValue::BoolArray, |value| match value {
                ParameterValue::Bool(value) => Some(value),
                _ => None,
            })
        }
        ParameterType::Integer => {
            collect_array(values, ParameterValue::IntegerArray, |value| match value {
                ParameterValue::Integer(value) => Some(value),
                _ => None,
            })
        }
        ParameterType::Double => {
            collect_array(values, ParameterValue::DoubleArray, |value| match value {
                ParameterValue::Double(value) => Some(value),
                _ => None,
            })
        }
        _ => collect_array(values, ParameterValue::StringArray, |value| match value {
            ParameterValue::String(value) => Some(value),
            _ => None,
        }),
    }
}

fn collect_array<T>(
    values: Vec<ParameterValue>,
    array: fn(Vec<T>) -> ParameterValue,
    one: fn(ParameterValue) -> Option<T>,
) -> ParameterValue {
    array(values.into_iter().filter_map(one).collect())
}

fn bool_of(text: &str) -> Option<bool> {
    match text {
        "Y" | "y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            Some(true)
        }
        "N" | "n" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            Some(false)
        }
        _ => None,
    }
}

/// `strtoll` with base 0: a sign, then `0x` and hexadecimal, `0` and octal, or
/// decimal digits. rcl is built for C11, where `0b` begins no number.
fn integer_of(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let strip = |lower, upper| digits.strip_prefix(lower).or(digits.strip_prefix(upper));
    let (digits, radix) = if let Some(rest) = strip("0x", "0X") {
        (rest, 16)
    } else if digits.len() > 1 && digits.starts_with('0') {
        (digits, 8)
    } else {
        (digits, 10)
    };
    // from_str_radix would accept another sign.
    if !digits.starts_with(|first: char| first.is_digit(radix)) {
        return None;
    }
    let magnitude = i128::from_str_radix(digits, radix).ok()?;
    i64::try_from(if negative { -magnitude } else { magnitude }).ok()
}

/// `strtod`, plus YAML's infinities and NaN. A value beyond the range of a double
/// is not a number, as in rcl, which checks ERANGE.
fn double_of(text: &str) -> Option<f64> {
    let (negative, magnitude) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let value = match magnitude {
        ".inf" | ".Inf" | ".INF" => f64::INFINITY,
        ".nan" | ".NaN" | ".NAN" if magnitude.len() == text.len() => f64::NAN,
        _ => finite_of(magnitude)?,
    };
    Some(if negative { -value } else { value })
}

fn finite_of(text: &str) -> Option<f64> {
    let word = text.to_ascii_lowercase();
    match word.as_str() {
        "inf" | "infinity" => return Some(f64::INFINITY),
        "nan" => return Some(f64::NAN),
        _ => {}
    }
    let is_number = text.starts_with(|first: char| first.is_ascii_digit() || first == '.');
    let value: f64 = text.parse().ok().filter(|_| is_number)?;
    value.is_finite().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameter::ParameterText;

    #[track_caller]
    fn reads(text: &str, value: impl Into<ParameterValue>) {
        assert_eq!(ParameterValue::from_yaml(text), Ok(value.into()), "{text}");
    }

    #[test]
    fn scalars_are_typed_as_rcl_types_them() {
        for text in [
            "y",
            "Y",
            "yes",
            "Yes",
            "on",
            "ON",
            "true",
            "TRUE",
            "!!bool on",
        ] {
            reads(text, true);
        }
        for text in ["n", "No", "off", "false", "False"] {
            reads(text, false);
        }
        reads("0777", 0o777);
        reads("0x1F", 31);
        reads("-12", -12);
        reads("+3", 3);
        reads("9223372036854775807", i64::MAX);
        reads("-9223372036854775808", i64::MIN);
        // Too large for an integer, so a double; 08 is not octal.
        reads("9223372036854775808", 9_223_372_036_854_775_808.0);
        reads("08", 8.0);
        reads("1.", 1.0);
        reads(".5", 0.5);
        reads("1e3", 1000.0);
        reads("-.inf", f64::NEG_INFINITY);
        reads("inf", f64::INFINITY);
        for text in ["1e999", "--1", "1_000", "tRuE", "0x", "1.2.3", "e5"] {
            reads(text, text);
        }
        for (text, value) in [
            ("'yes'", "yes"),
            ("\"12\"", "12"),
            ("!!str 12", "12"),
            ("!!int '5'", "5"),
            ("!!float '5'", "5"),
            ("!!bool 'true'", "true"),
            ("''", ""),
        ] {
            reads(text, value);
        }
        reads("!!float 5", 5);
        reads("!!int 1.5", 1.5);
        reads(
            "[!!int '1', !!float '2']",
            vec!["1".to_owned(), "2".to_owned()],
        );
        let nan = ParameterValue::from_yaml(".nan");
        assert!(matches!(nan, Ok(ParameterValue::Double(v)) if v.is_nan()));
    }

    #[test]
    fn tags_decide_the_type_by_yaml_1_1() {
        let read = |text| ParameterText::read(text, TypingRule::Yaml11);
        let reads = |text, value: ParameterValue| {
            assert_eq!(read(text).unwrap().value(), &value, "{text}");
        };
        reads("!!int '5'", 5.into());
        reads("!!float 5", 5.0.into());
        reads("!!float 1e3", 1000.0.into());
        reads("!!bool 'yes'", true.into());
        reads("!!str 5", "5".into());
        reads("[!!float 1, !!float '2']", vec![1.0, 2.0].into());
        for text in ["!!int 1.5", "!!int x", "!!bool 1", "!!float x"] {
            let error = read(text).unwrap_err();
            assert!(error.contains("does not match its tag"), "{error}");
        }
    }

    #[test]
    fn arrays_have_one_type() {
        reads("[1, 0x2]", vec![1_i64, 2]);
        reads("[1.0, .inf]", vec![1.0, f64::INFINITY]);
        reads("[yes, no]", vec![true, false]);
        reads("[a, '5']", vec!["a".to_owned(), "5".to_owned()]);
        reads("[]", Vec::<String>::new());
        for (text, says) in [
            ("[1, 2.5]", "place 2, a value of type double"),
            ("[a, 1]", "place 2, a value of type integer"),
            ("[[1]]", "a list in a list"),
            ("{a: 1}", "a mapping"),
            ("", "no value"),
            ("[1,", "not valid YAML"),
        ] {
            let error = ParameterValue::from_yaml(text).unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
