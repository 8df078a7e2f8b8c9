//! Parameters: `param` in nodes, `set_parameter` and its kin for all in scope.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use pteros::msg::yaml::{Content, Node};
use pteros::parameter::{ParameterFile, ParameterValue};

use super::Builder;
use crate::close_names::did_you_mean;
use crate::document::{Attribute, Element, Scalar, Value};
use crate::fault::{Fault, Place};
use crate::scope::GlobalParameter;
use crate::substitution::Template;

/// Types of parameters, as `launch/frontend/type_utils.py` names them.
const TYPES: [&str; 9] = [
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

/// What a node's `param` gives.
pub(super) enum Given {
    Value(String, ParameterValue),
    /// A file as it is.
    File(PathBuf),
    /// A file whose substitutions were done: its name and its text.
    Filled(PathBuf, String),
}

const PARAMS_FILE: &str = "--params-file";

impl Builder {
    /// `set_parameter`, `set_use_sim_time`, `set_parameters_from_file`.
    pub(super) fn set_parameter(&mut self, element: &Element) -> Result<(), Fault> {
        let set = match element.name.as_str() {
            "set_use_sim_time" => {
                let value = self.truth(element, "value")?.unwrap_or(true);
                GlobalParameter::Value("use_sim_time".into(), value.to_string())
            }
            "set_parameters_from_file" => {
                let path = PathBuf::from(self.required(element, "filename")?);
                let place = Self::place_of(element, "filename");
                check_file(&place, "filename", &path)?;
                GlobalParameter::File(path)
            }
            _ => {
                let name = self.required(element, "name")?;
                let value = self.value(element)?;
                GlobalParameter::Value(name, yaml_text(&value))
            }
        };
        self.scope.parameters.push(set);
        Ok(())
    }

    /// The words behind `--ros-args` for the parameters of a node; those of the
    /// scope come first, so that the node's own count. `node` is its full name, if
    /// the launch file gives it one.
    ///
    /// A `-p` is said of every node of the process, and yields to what files have for
    /// this one. So beside files the node's own values are files, too, as in launch_ros.
    pub(super) fn parameter_words(
        &mut self,
        element: &Element,
        node: Option<&str>,
        files: &mut Vec<(PathBuf, String)>,
    ) -> Result<Vec<(&'static str, String)>, Fault> {
        let mut words = Vec::new();
        for one in &self.scope.parameters {
            words.push(match one {
                GlobalParameter::Value(name, value) => ("-p", format!("{name}:={value}")),
                GlobalParameter::File(path) => (PARAMS_FILE, absolute_text(path)),
            });
        }
        let own = self.given(element)?;
        let is_value = |given: &Given| matches!(given, Given::Value(..));
        let beside_files =
            !own.iter().all(is_value) || words.iter().any(|(flag, _)| *flag == PARAMS_FILE);
        let mut values = String::new();
        for given in own {
            match given {
                Given::Value(name, value) if beside_files => {
                    let _ = writeln!(values, "    {}: {}", quoted(&name), yaml_text(&value));
                }
                Given::Value(name, value) => {
                    words.push(("-p", format!("{name}:={}", yaml_text(&value))));
                }
                Given::File(path) => {
                    self.end_values(&mut values, node, files, &mut words);
                    words.push((PARAMS_FILE, absolute_text(&path)));
                }
                Given::Filled(path, text) => {
                    self.end_values(&mut values, node, files, &mut words);
                    words.push((PARAMS_FILE, path.display().to_string()));
                    files.push((path, text));
                }
            }
        }
        self.end_values(&mut values, node, files, &mut words);
        Ok(words)
    }

    /// Makes a file of what was gathered, if anything.
    fn end_values(
        &mut self,
        values: &mut String,
        node: Option<&str>,
        files: &mut Vec<(PathBuf, String)>,
        words: &mut Vec<(&'static str, String)>,
    ) {
        if values.is_empty() {
            return;
        }
        let text = format!("{}:\n  ros__parameters:\n{values}", node.unwrap_or("/**"));
        values.clear();
        let path = self.new_file();
        words.push((PARAMS_FILE, path.display().to_string()));
        files.push((path, text));
    }

    /// A name for a parameter file of this launch.
    fn new_file(&mut self) -> PathBuf {
        self.filled_files += 1;
        let file = format!("parameters-{}.yaml", self.filled_files);
        self.around.log_folder.join(file)
    }

    /// All parameters of a component, by its full name; files are read now, since
    /// a container's request has values only.
    pub(super) fn parameter_values(
        &mut self,
        element: &Element,
        full_name: &str,
    ) -> Result<Vec<(String, ParameterValue)>, Fault> {
        let mut values: Vec<(String, ParameterValue)> = Vec::new();
        let mut set = |name: String, value: ParameterValue| {
            values.retain(|(known, _)| *known != name);
            values.push((name, value));
        };
        let from_file = |file: &ParameterFile, set: &mut dyn FnMut(String, ParameterValue)| {
            for parameter in file.parameters_of(full_name, true) {
                set(parameter.name, parameter.value);
            }
        };
        let wrong = |message: String| Fault::at(&element.place, message);
        for one in self.scope.parameters.clone() {
            match one {
                GlobalParameter::Value(name, value) => {
                    let value = ParameterValue::from_yaml(&value).map_err(wrong)?;
                    set(name, value);
                }
                GlobalParameter::File(path) => {
                    let file = ParameterFile::read(&path);
                    from_file(&file.map_err(|error| wrong(error.to_string()))?, &mut set);
                }
            }
        }
        for given in self.given(element)? {
            match given {
                Given::Value(name, value) => set(name, value),
                Given::File(path) => {
                    let file = ParameterFile::read(&path);
                    from_file(&file.map_err(|error| wrong(error.to_string()))?, &mut set);
                }
                Given::Filled(path, text) => {
                    let file = ParameterFile::parse(&path.display().to_string(), &text);
                    from_file(&file.map_err(|error| wrong(error.to_string()))?, &mut set);
                }
            }
        }
        Ok(values)
    }

    /// What the `param`s of an element give, in order, checked.
    fn given(&mut self, element: &Element) -> Result<Vec<Given>, Fault> {
        let mut given = Vec::new();
        for part in element
            .children
            .iter()
            .filter(|child| child.name == "param")
        {
            match part.attribute("from") {
                Some(from) => given.push(self.file_of(part, from)?),
                None => self.values_of(part, "", &mut given)?,
            }
        }
        Ok(given)
    }

    fn file_of(&mut self, part: &Element, from: &Attribute) -> Result<Given, Fault> {
        if let Some(other) = ["name", "value", "type"]
            .iter()
            .find_map(|name| part.attribute(name))
        {
            return Err(Fault::at(
                &other.place,
                format!("param has both from and {}; write two params", other.name),
            ));
        }
        let path = PathBuf::from(self.required(part, "from")?);
        let allowed = self.truth(part, "allow_substs")?.unwrap_or(false);
        if !allowed {
            check_file(&from.place, "from", &path)?;
            return Ok(Given::File(path));
        }
        let name = path.display();
        let wrong = |message: String| Fault::at(&from.place, format!("from: {message}"));
        let text = fs::read_to_string(&path);
        let text = text.map_err(|error| wrong(format!("cannot read {name}: {error}")))?;
        let template = Template::parse(&text).map_err(|m| wrong(format!("{name}: {m}")))?;
        let text = self.filled(&template);
        let text = text.map_err(|m| wrong(format!("{name}: {m}")))?;
        ParameterFile::parse(&name.to_string(), &text).map_err(|error| wrong(error.to_string()))?;
        Ok(Given::Filled(self.new_file(), text))
    }

    /// A value, or a group of them: `param name="a"` around `param name="b"` is `a.b`.
    fn values_of(
        &mut self,
        part: &Element,
        prefix: &str,
        given: &mut Vec<Given>,
    ) -> Result<(), Fault> {
        if part.attribute("name").is_none() {
            return Err(Fault::at(
                &part.place,
                "param has neither name nor from; write name=\"…\" value=\"…\", or from=\"FILE\"",
            ));
        }
        let name = format!("{prefix}{}", self.required(part, "name")?);
        if let Some(allowed) = part.attribute("allow_substs") {
            return Err(Fault::at(
                &allowed.place,
                "allow_substs is for files, beside from",
            ));
        }
        match (part.attribute("value"), part.children.is_empty()) {
            (Some(_), true) => {
                let value = self.value(part)?;
                given.push(Given::Value(name, value));
                Ok(())
            }
            (None, false) => {
                if let Some(of) = part.attribute("type") {
                    return Err(Fault::at(&of.place, "a group of params has no type"));
                }
                let prefix = format!("{name}.");
                let parts = part.children.iter();
                for inner in parts.filter(|child| child.name == "param") {
                    self.values_of(inner, &prefix, given)?;
                }
                Ok(())
            }
            (Some(_), false) => Err(Fault::at(
                &part.place,
                format!("param {name:?} has both a value and params in it; write one"),
            )),
            (None, true) => Err(Fault::at(
                &part.place,
                format!("param {name:?} has no value; write value=\"…\", or params in it"),
            )),
        }
    }

    /// `value`, of the type that `type` says, else of the one that it looks like.
    pub(super) fn value(&mut self, part: &Element) -> Result<ParameterValue, Fault> {
        let Some(attribute) = part.attribute("value") else {
            let message = format!("{} lacks the attribute \"value\"", part.name);
            return Err(Fault::at(&part.place, message));
        };
        let kind = self.parsed(part, "type", |text| {
            let known = TYPES.iter().find(|known| **known == text);
            known.copied().ok_or_else(|| {
                let way_out = format!("there are: {}", TYPES.join(", "));
                let similar = did_you_mean(text, TYPES, &way_out);
                format!("{text:?} is no type{similar}")
            })
        })?;
        let kind = kind.unwrap_or("yaml");
        let value = match &attribute.value {
            Value::Scalar(scalar) => {
                let text = self.evaluated(attribute, &scalar.text)?;
                typed(&text, kind, is_literal(scalar))
            }
            Value::List(list) => {
                let mut texts = Vec::new();
                for scalar in list {
                    let text = self.evaluated(attribute, &scalar.text)?;
                    texts.push((text, is_literal(scalar)));
                }
                list_of(&texts, kind)
            }
        };
        value.map_err(|message| Fault::at(&attribute.place, format!("value: {message}")))
    }
}

/// A text in YAML's quotes stays text, unless a substitution makes it.
fn is_literal(scalar: &Scalar) -> bool {
    let has_calls = Template::parse(&scalar.text).is_ok_and(|template| template.has_calls());
    scalar.quoted && !has_calls
}

/// The value that a text stands for.
fn typed(text: &str, kind: &str, literal: bool) -> Result<ParameterValue, String> {
    let plain = text.trim();
    let wrong = |what: &str, example: &str| format!("{text:?} is no {what}; write {example}");
    match kind {
        "str" => Ok(ParameterValue::String(text.into())),
        "bool" => crate::substitution::evaluate::truth(plain).map(ParameterValue::Bool),
        "int" => match ParameterValue::from_yaml(plain) {
            Ok(value @ ParameterValue::Integer(_)) => Ok(value),
            _ => Err(wrong("int", "an integer of 64 bits, as 42")),
        },
        "float" => match ParameterValue::from_yaml(plain) {
            Ok(value @ ParameterValue::Double(_)) => Ok(value),
            Ok(ParameterValue::Integer(value)) => Ok(ParameterValue::Double(value as f64)),
            _ => Err(wrong("float", "a number, as 2.5")),
        },
        "yaml" if literal => Ok(ParameterValue::String(text.into())),
        "yaml" => of_yaml(text),
        list => {
            let node = Node::read(text).map_err(|error| format!("{text:?} is no list: {error}"))?;
            let Content::List(items) = node.content else {
                return Err(wrong(list, "a list, as [1, 2]"));
            };
            let items = items.iter().map(|item| match &item.content {
                Content::Scalar { text, quoted } => Ok((text.clone(), *quoted)),
                _ => Err(wrong(list, "a list of scalars, as [1, 2]")),
            });
            list_of(&items.collect::<Result<Vec<_>, _>>()?, list)
        }
    }
}

/// As YAML has it; a text that is no YAML is a text, as in `coerce_to_type`.
fn of_yaml(text: &str) -> Result<ParameterValue, String> {
    let Ok(node) = Node::read(text) else {
        return Ok(ParameterValue::String(text.into()));
    };
    match node.content {
        _ if text.trim().is_empty() => Ok(ParameterValue::String(text.into())),
        Content::Mapping(_) => Err(format!(
            "{text:?} is a mapping; write params in the param, or type=\"str\" for a text"
        )),
        _ => ParameterValue::from_yaml(text),
    }
}

fn list_of(items: &[(String, bool)], kind: &str) -> Result<ParameterValue, String> {
    let each = match kind {
        "yaml" => "yaml",
        _ => kind.strip_prefix("list_of_").ok_or_else(|| {
            format!("a list is no {kind}; write type=\"list_of_{kind}\", or one value")
        })?,
    };
    let values = items
        .iter()
        .map(|(text, literal)| typed(text, each, *literal));
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

/// A value as `-p name:=…` takes it.
pub(super) fn yaml_text(value: &ParameterValue) -> String {
    fn list<T>(values: &[T], text: impl Fn(&T) -> String) -> String {
        let values: Vec<String> = values.iter().map(text).collect();
        format!("[{}]", values.join(", "))
    }
    match value {
        ParameterValue::Bool(value) => value.to_string(),
        ParameterValue::Integer(value) => value.to_string(),
        ParameterValue::Double(value) => double_text(*value),
        ParameterValue::String(value) => quoted(value),
        ParameterValue::ByteArray(values) => list(values, u8::to_string),
        ParameterValue::BoolArray(values) => list(values, bool::to_string),
        ParameterValue::IntegerArray(values) => list(values, i64::to_string),
        ParameterValue::DoubleArray(values) => list(values, |value| double_text(*value)),
        ParameterValue::StringArray(values) => list(values, |value| quoted(value)),
        _ => "null".into(),
    }
}

fn double_text(value: f64) -> String {
    match value {
        _ if value.is_nan() => ".nan".into(),
        f64::INFINITY => ".inf".into(),
        f64::NEG_INFINITY => "-.inf".into(),
        _ => format!("{value:?}"),
    }
}

/// In double quotes, whose escapes YAML shares with JSON.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn check_file(place: &Place, attribute: &str, path: &Path) -> Result<(), Fault> {
    let outcome = ParameterFile::read(path);
    outcome
        .map(|_| ())
        .map_err(|error| Fault::at(place, format!("{attribute}: {error}")))
}

fn absolute_text(path: &Path) -> String {
    crate::scope::absolute(path).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_typed_by_how_they_look_unless_a_type_is_given() {
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
        ] {
            assert_eq!(typed(text, kind, false), Ok(value), "{text} as {kind}");
        }
        for (text, kind) in [
            ("a", "int"),
            ("{a: 1}", "yaml"),
            ("1", "list_of_int"),
            ("x", "bool"),
        ] {
            assert!(typed(text, kind, false).is_err(), "{text} as {kind}");
        }
    }

    #[test]
    fn what_is_written_for_the_command_line_is_read_as_the_same_value() {
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
            let text = yaml_text(&value);
            assert_eq!(ParameterValue::from_yaml(&text), Ok(value), "{text}");
        }
    }
}
