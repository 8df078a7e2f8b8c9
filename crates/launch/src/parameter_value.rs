//! Values of parameters in launch files: the types that a text can be given, and the text
//! that hands a value to a node. XML, YAML and Python launch files share both.

use pteros::msg::yaml::{YamlContent, YamlNode};
use pteros::parameter::{ParameterFile, ParameterText, ParameterType, ParameterValue, TypingRule};

use crate::substitution::evaluate::truth;

/// Parameter types with the names of `launch/frontend/type_utils.py`.
pub const PARAMETER_TYPES: [&str; 9] = [
    "str",
    "bool",
    "int",
    "float",
    "list_of_str",
    "list_of_bool",
    "list_of_int",
    "list_of_float",
    "yaml",
];

/// The value as a text for `-p` and parameter files: as written, if rcl reads that as this
/// value, else in YAML. A node that declares a string takes the text as written.
///
/// Allocates; one line.
pub fn parameter_text(value: &ParameterValue, written: Option<&str>) -> String {
    let is_string = matches!(value, ParameterValue::String(_));
    let written = written.map(str::trim).filter(|text| {
        !is_string
            && !text.contains(['\n', '\r'])
            && ParameterValue::from_yaml(text).as_ref() == Ok(value)
            && of_line(text).as_ref() == Some(value)
    });
    written.map_or_else(|| value.to_yaml(), str::to_owned)
}

/// The value of a text behind the key of a parameter file. `- 1` and `--- 1` are documents,
/// but have no such place.
fn of_line(text: &str) -> Option<ParameterValue> {
    let file = format!("/**:\n  ros__parameters:\n    k: {text}\n");
    let file = ParameterFile::parse("", &file).ok()?;
    match file.parameters_of("/n", true).as_slice() {
        [only] if only.name == "k" => Some(only.value.clone()),
        _ => None,
    }
}

/// The value of a text as one of [`PARAMETER_TYPES`]. A `literal` is a string unless the
/// type says otherwise.
///
/// # Errors
/// The text is not of the type: the text, the type and an example.
pub fn typed_value(text: &str, kind: &str, literal: bool) -> Result<ParameterValue, String> {
    let plain = text.trim();
    let wrong =
        |what: &str, example: &str| format!("{text:?} is not of type {what}; write {example}");
    match kind {
        "str" => Ok(ParameterValue::String(text.into())),
        "bool" => truth(plain).map(ParameterValue::Bool),
        // Python's `int` and `float` read decimal digits, also `010`.
        "int" => {
            let decimal = digits(plain).and_then(|digits| digits.parse().ok());
            let value = decimal.map(ParameterValue::Integer);
            value.ok_or_else(|| wrong("int", "a 64-bit integer, as 42"))
        }
        "float" => {
            let decimal = digits(plain).and_then(|digits| digits.parse().ok());
            let value = decimal.map(ParameterValue::Double);
            value.ok_or_else(|| wrong("float", "a number, as 2.5"))
        }
        "yaml" if literal => Ok(ParameterValue::String(text.into())),
        "yaml" => of_yaml(text),
        list => {
            let node =
                YamlNode::read(text).map_err(|error| format!("{text:?} is not a list: {error}"))?;
            let YamlContent::List(items) = node.content else {
                return Err(wrong(list, "a list, as [1, 2]"));
            };
            let items = items.iter().map(|item| match &item.content {
                YamlContent::Scalar { text, quoted } => Ok((text.clone(), *quoted)),
                _ => Err(wrong(list, "a list of scalars, as [1, 2]")),
            });
            list_with(&items.collect::<Result<Vec<_>, _>>()?, list, item_of_yaml)
        }
    }
}

/// The value of an item of a list in YAML, where `0x1F` and `1_000` are numbers.
fn item_of_yaml(text: &str, kind: &str, literal: bool) -> Result<ParameterValue, String> {
    let declared = match kind {
        "int" => ParameterType::Integer,
        "float" => ParameterType::Double,
        _ => return typed_value(text, kind, literal),
    };
    let value = ParameterText::lenient(text.trim()).value_as(declared);
    if value.parameter_type() == declared {
        return Ok(value);
    }
    typed_value(text, kind, literal)
}

/// A decimal number without the underscores that Python accepts between digits.
fn digits(text: &str) -> Option<String> {
    let is_end = |part: &str| part.ends_with(|last: char| last.is_ascii_digit());
    let is_start = |part: &str| part.starts_with(|first: char| first.is_ascii_digit());
    let parts: Vec<&str> = text.split('_').collect();
    let mut pairs = parts.iter().zip(parts.iter().skip(1));
    pairs
        .all(|(before, after)| is_end(before) && is_start(after))
        .then(|| parts.concat())
}

/// Parses a text as YAML 1.1. Invalid YAML is a string, as in `coerce_to_type`.
fn of_yaml(text: &str) -> Result<ParameterValue, String> {
    let Ok(node) = YamlNode::read(text) else {
        return Ok(ParameterValue::String(text.into()));
    };
    match node.content {
        _ if text.trim().is_empty() => Ok(ParameterValue::String(text.into())),
        YamlContent::Mapping(_) => Err(format!(
            "{text:?} is a mapping; write params in the param, or type=\"str\" for a text"
        )),
        // A tag that PyYAML refuses, or nothing but the end of a document.
        YamlContent::Scalar { .. } => Ok(ParameterText::lenient(text).value().clone()),
        YamlContent::List(_) => {
            ParameterText::read(text, TypingRule::Yaml11).map(|text| text.value().clone())
        }
    }
}

/// The value of a list of texts, each with whether it is literal.
///
/// # Errors
/// A text is not of the type, or they have several types.
pub(crate) fn list_of(items: &[(String, bool)], kind: &str) -> Result<ParameterValue, String> {
    list_with(items, kind, typed_value)
}

fn list_with(
    items: &[(String, bool)],
    kind: &str,
    value_of: impl Fn(&str, &str, bool) -> Result<ParameterValue, String>,
) -> Result<ParameterValue, String> {
    let each = match kind {
        "yaml" => "yaml",
        _ => kind.strip_prefix("list_of_").ok_or_else(|| {
            format!("a list is not of type {kind}; write type=\"list_of_{kind}\", or one value")
        })?,
    };
    let values = items
        .iter()
        .map(|(text, literal)| value_of(text, each, *literal));
    let values = values.collect::<Result<Vec<_>, _>>()?;
    let mismatch = || {
        let kinds = values
            .iter()
            .map(|value| value.parameter_type().to_string());
        let kinds: Vec<String> = kinds.collect();
        format!("a list has values of one type, not {}", kinds.join(", "))
    };
    fn all<T>(
        values: &[ParameterValue],
        of: impl Fn(&ParameterValue) -> Option<T>,
    ) -> Option<Vec<T>> {
        values.iter().map(of).collect()
    }
    let list = match (values.first(), each) {
        (Some(ParameterValue::Bool(_)), _) | (None, "bool") => all(&values, |value| match value {
            ParameterValue::Bool(value) => Some(*value),
            _ => None,
        })
        .map(ParameterValue::BoolArray),
        (Some(ParameterValue::Integer(_)), _) | (None, "int") => {
            all(&values, |value| match value {
                ParameterValue::Integer(value) => Some(*value),
                _ => None,
            })
            .map(ParameterValue::IntegerArray)
        }
        (Some(ParameterValue::Double(_)), _) | (None, "float") => {
            all(&values, |value| match value {
                ParameterValue::Double(value) => Some(*value),
                _ => None,
            })
            .map(ParameterValue::DoubleArray)
        }
        _ => all(&values, |value| match value {
            ParameterValue::String(value) => Some(value.clone()),
            _ => None,
        })
        .map(ParameterValue::StringArray),
    };
    list.ok_or_else(mismatch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_typed_as_yaml_unless_a_type_is_given() {
        for (text, kind, value) in [
            ("1", "yaml", ParameterValue::Integer(1)),
            ("1", "float", ParameterValue::Double(1.0)),
            ("1", "str", "1".into()),
            ("1", "bool", ParameterValue::Bool(true)),
            ("'1'", "yaml", "1".into()),
            ("", "yaml", "".into()),
            ("@home", "yaml", "@home".into()),
            ("[1, 2]", "yaml", ParameterValue::IntegerArray(vec![1, 2])),
            ("[1, 2]", "list_of_float", vec![1.0, 2.0].into()),
            ("[]", "list_of_int", ParameterValue::IntegerArray(vec![])),
            (
                "[0x1F, 1_0]",
                "list_of_int",
                ParameterValue::IntegerArray(vec![31, 10]),
            ),
            // As ROS 2 Jazzy evaluates them.
            ("0483", "yaml", "0483".into()),
            ("123E5", "yaml", "123E5".into()),
            ("y", "yaml", "y".into()),
            ("nan", "yaml", "nan".into()),
            ("1_000", "yaml", ParameterValue::Integer(1000)),
            (
                "[0483, y]",
                "yaml",
                ParameterValue::StringArray(vec!["0483".into(), "y".into()]),
            ),
            ("0483", "int", ParameterValue::Integer(483)),
            ("010", "int", ParameterValue::Integer(10)),
            ("010", "float", ParameterValue::Double(10.0)),
            (" -1_000 ", "int", ParameterValue::Integer(-1000)),
            ("1_0.5e1_0", "float", ParameterValue::Double(10.5e10)),
            ("-inf", "float", ParameterValue::Double(f64::NEG_INFINITY)),
            ("123E5", "float", ParameterValue::Double(123e5)),
            ("123E5", "str", "123E5".into()),
            ("[]", "str", "[]".into()),
        ] {
            assert_eq!(
                typed_value(text, kind, false),
                Ok(value),
                "{text} as {kind}"
            );
        }
        for (text, kind) in [
            ("a", "int"),
            // Python's `int` and `float` refuse these.
            ("0x1F", "int"),
            ("0b1", "int"),
            ("'5'", "int"),
            ("-_1", "int"),
            ("1__0", "int"),
            ("1_", "int"),
            ("1_.5", "float"),
            ("1._5", "float"),
            ("0x1F", "float"),
            (".inf", "float"),
            ("{a: 1}", "yaml"),
            ("1", "list_of_int"),
            ("x", "bool"),
        ] {
            assert!(typed_value(text, kind, false).is_err(), "{text} as {kind}");
        }
    }

    #[test]
    fn a_text_is_passed_on_as_written_if_rcl_reads_it_as_launch_does() {
        for (written, passed_on) in [
            ("0x1F", "0x1F"),
            ("010", "010"),
            ("[1, 2]", "[1, 2]"),
            ("yes", "yes"),
            ("0483", "'0483'"),
            ("y", "'y'"),
            ("1e-3", "'1e-3'"),
            ("1_000", "1000"),
            ("1:30", "90"),
            ("'5'", "'5'"),
            (" 7 ", "7"),
            // These are documents, but no values behind a key.
            ("- 1", "[1]"),
            ("--- 5", "5"),
            ("--- [1, 2]", "[1, 2]"),
            ("[1] # one", "[1] # one"),
        ] {
            let value = typed_value(written, "yaml", false).unwrap();
            assert_eq!(parameter_text(&value, Some(written)), passed_on);
        }
    }

    #[test]
    fn written_parameter_values_are_read_back_unchanged() {
        for value in [
            ParameterValue::Bool(true),
            ParameterValue::Integer(-7),
            ParameterValue::Double(1.0),
            ParameterValue::Double(1e300),
            ParameterValue::Double(f64::NEG_INFINITY),
            "yes".into(),
            "a \"b\": [c]\n\té".into(),
            vec![1.0, 2.5].into(),
            ParameterValue::StringArray(vec!["1".into(), "x, y".into()]),
            ParameterValue::IntegerArray(vec![1, -2]),
        ] {
            let text = value.to_yaml();
            assert_eq!(ParameterValue::from_yaml(&text), Ok(value), "{text}");
        }
    }
}
