//! Parameter values in the formats of ros2, YAML and JSON.

use crate::python_repr;
use pteros::msg::dynamic::{Value, yaml_float, yaml_string};
use pteros::parameter::{ParameterType, ParameterValue};
use serde_json::json;
use std::fmt::Write as _;

/// The value as Python prints it.
pub fn to_python(value: &ParameterValue) -> String {
    let value = match value {
        ParameterValue::NotSet => return "None".into(),
        ParameterValue::Bool(value) => Value::Bool(*value),
        ParameterValue::Integer(value) => Value::I64(*value),
        ParameterValue::Double(value) => Value::F64(*value),
        ParameterValue::String(value) => Value::String(value.clone()),
        ParameterValue::ByteArray(values) => {
            let bytes: Vec<_> = values.iter().map(|b| python_repr::bytes(&[*b])).collect();
            return format!("[{}]", bytes.join(", "));
        }
        ParameterValue::BoolArray(values) => Value::Bools(values.clone()),
        ParameterValue::IntegerArray(values) => Value::I64s(values.clone()),
        ParameterValue::DoubleArray(values) => Value::F64s(values.clone()),
        ParameterValue::StringArray(values) => Value::Strings(values.clone()),
    };
    python_repr::value(&value, None)
}

/// The text before the value in ros2's output.
pub fn ros2_label(value: &ParameterValue) -> &'static str {
    match value {
        ParameterValue::NotSet => "Parameter not set.",
        ParameterValue::Bool(_) => "Boolean value is:",
        ParameterValue::Integer(_) => "Integer value is:",
        ParameterValue::Double(_) => "Double value is:",
        ParameterValue::String(_) => "String value is:",
        ParameterValue::ByteArray(_) => "Byte values are:",
        ParameterValue::BoolArray(_) => "Boolean values are:",
        ParameterValue::IntegerArray(_) => "Integer values are:",
        ParameterValue::DoubleArray(_) => "Double values are:",
        ParameterValue::StringArray(_) => "String values are:",
    }
}

/// The type name in ros2's output.
pub fn type_name(type_of: ParameterType) -> &'static str {
    match type_of {
        ParameterType::NotSet => "not set",
        ParameterType::Bool => "boolean",
        ParameterType::Integer => "integer",
        ParameterType::Double => "double",
        ParameterType::String => "string",
        ParameterType::ByteArray => "byte array",
        ParameterType::BoolArray => "boolean array",
        ParameterType::IntegerArray => "integer array",
        ParameterType::DoubleArray => "double array",
        ParameterType::StringArray => "string array",
    }
}

/// The value as JSON. Infinite doubles and NaN are strings, since JSON lacks them.
pub fn to_json(value: &ParameterValue) -> serde_json::Value {
    let double = |value: f64| {
        if value.is_finite() {
            json!(value)
        } else {
            json!(value.to_string())
        }
    };
    match value {
        ParameterValue::NotSet => serde_json::Value::Null,
        ParameterValue::Bool(value) => json!(value),
        ParameterValue::Integer(value) => json!(value),
        ParameterValue::Double(value) => double(*value),
        ParameterValue::String(value) => json!(value),
        ParameterValue::ByteArray(values) => json!(values),
        ParameterValue::BoolArray(values) => json!(values),
        ParameterValue::IntegerArray(values) => json!(values),
        ParameterValue::DoubleArray(values) => values.iter().map(|v| double(*v)).collect(),
        ParameterValue::StringArray(values) => json!(values),
    }
}

/// The parameters of a node as a parameter file. Parameters without a value are
/// left out, since a file cannot express them.
pub fn parameter_file_text(node: &str, parameters: &[(String, ParameterValue)]) -> String {
    let mut out = format!("{node}:\n  ros__parameters:");
    let mut tree = ParameterGroup::default();
    let mut parameters: Vec<_> = parameters.iter().collect();
    // A parameter comes before the parameters in a group of the same name.
    parameters.sort_by(|one, other| one.0.cmp(&other.0));
    for (name, value) in parameters {
        if *value != ParameterValue::NotSet {
            tree.put(name, value);
        }
    }
    if tree.0.is_empty() {
        out.push_str(" {}\n");
        return out;
    }
    out.push('\n');
    tree.write(4, &mut out);
    out
}

/// Parameters, grouped by the parts of their names. If a name is both a parameter
/// and a group, the names in the group are not split.
#[derive(Default)]
struct ParameterGroup<'p>(std::collections::BTreeMap<String, GroupEntry<'p>>);

enum GroupEntry<'p> {
    Value(&'p ParameterValue),
    Group(ParameterGroup<'p>),
}

impl<'p> ParameterGroup<'p> {
    fn put(&mut self, name: &str, value: &'p ParameterValue) {
        let Some((first, rest)) = name
            .split_once('.')
            .filter(|(a, b)| !a.is_empty() && !b.is_empty())
        else {
            self.0.insert(name.into(), GroupEntry::Value(value));
            return;
        };
        let branch = self.0.entry(first.into());
        match branch.or_insert_with(|| GroupEntry::Group(ParameterGroup::default())) {
            GroupEntry::Group(group) => group.put(rest, value),
            GroupEntry::Value(_) => {
                self.0.insert(name.into(), GroupEntry::Value(value));
            }
        }
    }

    fn write(&self, indent: usize, out: &mut String) {
        for (name, branch) in &self.0 {
            let _ = write!(out, "{:indent$}{}:", "", yaml_string(name));
            match branch {
                GroupEntry::Group(group) => {
                    out.push('\n');
                    group.write(indent + 2, out);
                }
                GroupEntry::Value(value) => write_value(value, indent, out),
            }
        }
    }
}

fn write_value(value: &ParameterValue, indent: usize, out: &mut String) {
    let items: Vec<String> = match value {
        ParameterValue::ByteArray(values) => values.iter().map(u8::to_string).collect(),
        ParameterValue::BoolArray(values) => values.iter().map(bool::to_string).collect(),
        ParameterValue::IntegerArray(values) => values.iter().map(i64::to_string).collect(),
        ParameterValue::DoubleArray(values) => values.iter().map(|v| yaml_float(*v)).collect(),
        ParameterValue::StringArray(values) => values.iter().map(|v| yaml_string(v)).collect(),
        ParameterValue::NotSet => return,
        ParameterValue::Bool(value) => return line(out, &value.to_string()),
        ParameterValue::Integer(value) => return line(out, &value.to_string()),
        ParameterValue::Double(value) => return line(out, &yaml_float(*value)),
        ParameterValue::String(value) => return line(out, &yaml_string(value)),
    };
    if items.is_empty() {
        return line(out, "[]");
    }
    out.push('\n');
    for item in items {
        let _ = writeln!(out, "{:indent$}- {item}", "");
    }
}

fn line(out: &mut String, text: &str) {
    let _ = writeln!(out, " {text}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use pteros::parameter::{Parameter, ParameterFile};

    #[test]
    fn a_dumped_parameter_file_is_read_back_unchanged() {
        let parameters = [
            ("a", true.into()),
            ("b.c", (-3).into()),
            ("b.d.e", 1e300.into()),
            ("b", "a name that is a group, too".into()),
            ("flags", vec![true, false].into()),
            ("floats", vec![1.0, f64::INFINITY, f64::NEG_INFINITY].into()),
            ("ints", vec![1_i64, 2].into()),
            (
                "texts",
                [
                    "yes",
                    "12",
                    "",
                    "it's",
                    "two\nlines",
                    "a: b",
                    "-",
                    "null",
                    "é",
                    "y",
                    "0483",
                    "1e3",
                    "~",
                    "1_000",
                    "0o7",
                    "12:30:45",
                    ".inf",
                    "nan",
                    "-Infinity",
                    "0x1p3",
                    "2024-01-02",
                    "a, b]",
                    "\u{200b}\u{feff}",
                ]
                .as_slice()
                .into(),
            ),
            ("word", "plain/word".into()),
            ("zero", 0.0.into()),
            ("small", 1e-7.into()),
            ("y", "n".into()),
            ("empty", ParameterValue::StringArray(Vec::new())),
        ];
        let parameters: Vec<(String, ParameterValue)> = parameters
            .into_iter()
            .map(|(name, value): (&str, ParameterValue)| (name.to_owned(), value))
            .collect();
        let text = parameter_file_text("/ns/node", &parameters);
        let read = ParameterFile::parse("dump", &text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let mut found = read.parameters_of("/ns/node", true);
        found.sort_by(|one, other| one.name.cmp(&other.name));
        let mut wanted: Vec<_> = parameters
            .into_iter()
            .map(|(n, v)| Parameter::new(n, v))
            .collect();
        wanted.sort_by(|one, other| one.name.cmp(&other.name));
        assert_eq!(found, wanted, "{text}");
        assert!(text.contains("word: plain/word\n"), "{text}");
        // A point, without which YAML 1.1 takes it for a text.
        assert!(text.contains("small: 1.0e-07\n"), "{text}");
        assert!(text.contains("'y': 'n'\n"), "{text}");
        assert_eq!(
            parameter_file_text("/n", &[]),
            "/n:\n  ros__parameters: {}\n"
        );
    }

    #[test]
    fn values_are_printed_as_python_prints_them() {
        for (value, printed) in [
            (true.into(), "True"),
            (1e16.into(), "1e+16"),
            ("it's".into(), "it's"),
            (vec![1_u8, 65].into(), r"[b'\x01', b'A']"),
            (vec![true, false].into(), "[True, False]"),
            (vec![0.5, 2.0].into(), "[0.5, 2.0]"),
            (["a"].as_slice().into(), "['a']"),
        ] {
            let value: ParameterValue = value;
            assert_eq!(to_python(&value), printed);
        }
    }
}
