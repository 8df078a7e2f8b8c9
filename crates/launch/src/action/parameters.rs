//! Node parameters: `param` in nodes, `set_parameter` and similar actions for all
//! nodes in scope.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use pteros::msg::regular_file;
use pteros::msg::yaml::{YamlContent, YamlNode};
use pteros::parameter::{
    PARAMETER_FILE_BYTES_MAX, ParameterFile, ParameterText, ParameterType, ParameterValue,
    TypingRule,
};

use super::Builder;
use crate::close_names::did_you_mean;
use crate::document::{Attribute, Element, Scalar, Value};
use crate::error::{LaunchFileError, SourceLocation};
use crate::scope::GlobalParameter;
use crate::substitution::Template;

/// Parameter types with the names of `launch/frontend/type_utils.py`.
const PARAMETER_TYPES: [&str; 9] = [
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

/// A value of a launch file, and the text that stands for it in YAML.
pub(super) struct TypedText {
    pub(super) value: ParameterValue,
    /// The text as written, if rcl reads it as this value. A node that declares a
    /// string takes it then; else the value in rcl's form.
    text: String,
}

/// A parameter source of a node, from its `param` elements.
pub(super) enum NodeParameterSource {
    Value(String, TypedText),
    /// An unchanged file.
    File(PathBuf),
    /// A generated file with evaluated substitutions: path and text.
    GeneratedFile(PathBuf, String),
}

const PARAMS_FILE: &str = "--params-file";

impl Builder {
    /// `set_parameter`, `set_use_sim_time`, `set_parameters_from_file`.
    pub(super) fn set_parameter(&mut self, element: &Element) -> Result<(), LaunchFileError> {
        let set = match element.name.as_str() {
            "set_use_sim_time" => {
                let value = self.truth(element, "value")?.unwrap_or(true);
                GlobalParameter::Value("use_sim_time".into(), value.to_string())
            }
            "set_parameters_from_file" => {
                let path = PathBuf::from(self.required(element, "filename")?);
                let location = Self::location_of(element, "filename");
                check_file(&location, "filename", &path)?;
                GlobalParameter::File(path)
            }
            _ => {
                let name = self.required(element, "name")?;
                let value = self.value(element)?;
                GlobalParameter::Value(name, value.text)
            }
        };
        self.scope.parameters.push(set);
        Ok(())
    }

    /// The `--ros-args` arguments for the parameters of a node. Parameters of the
    /// scope come first, so the node's own take precedence. `node` is the full
    /// name, if the launch file gives one.
    ///
    /// A `-p` applies to every node of the process, and values of this node in
    /// parameter files take precedence. So if there are parameter files, the node's
    /// own values are written to files too, as in launch_ros.
    pub(super) fn parameter_words(
        &mut self,
        element: &Element,
        node: Option<&str>,
        files: &mut Vec<(PathBuf, String)>,
    ) -> Result<Vec<(&'static str, String)>, LaunchFileError> {
        let mut words = Vec::new();
        for one in &self.scope.parameters {
            words.push(match one {
                GlobalParameter::Value(name, value) => ("-p", format!("{name}:={value}")),
                GlobalParameter::File(path) => (PARAMS_FILE, absolute_text(path)),
            });
        }
        let own = self.parameter_sources(element)?;
        let is_value =
            |given: &NodeParameterSource| matches!(given, NodeParameterSource::Value(..));
        let beside_files =
            !own.iter().all(is_value) || words.iter().any(|(flag, _)| *flag == PARAMS_FILE);
        let mut values = String::new();
        for given in own {
            match given {
                NodeParameterSource::Value(name, value) if beside_files => {
                    let _ = writeln!(values, "    {}: {}", quoted(&name), value.text);
                }
                NodeParameterSource::Value(name, value) => {
                    words.push(("-p", format!("{name}:={}", value.text)));
                }
                NodeParameterSource::File(path) => {
                    self.write_values(&mut values, node, files, &mut words);
                    words.push((PARAMS_FILE, absolute_text(&path)));
                }
                NodeParameterSource::GeneratedFile(path, text) => {
                    self.write_values(&mut values, node, files, &mut words);
                    words.push((PARAMS_FILE, path.display().to_string()));
                    files.push((path, text));
                }
            }
        }
        self.write_values(&mut values, node, files, &mut words);
        Ok(words)
    }

    /// Writes the collected values to a parameter file, if there are any.
    fn write_values(
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

    /// A path for a new parameter file of this launch.
    fn new_file(&mut self) -> PathBuf {
        self.written_parameter_files += 1;
        let file = format!("parameters-{}.yaml", self.written_parameter_files);
        self.evaluation.log_folder.join(file)
    }

    /// All parameters of a component with this full name. Files are read now, since
    /// a load request holds values only.
    pub(super) fn parameter_values(
        &mut self,
        element: &Element,
        full_name: &str,
    ) -> Result<Vec<(String, ParameterValue)>, LaunchFileError> {
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
        let wrong = |message: String| LaunchFileError::at(&element.location, message);
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
        for given in self.parameter_sources(element)? {
            match given {
                NodeParameterSource::Value(name, value) => set(name, value.value),
                NodeParameterSource::File(path) => {
                    let file = ParameterFile::read(&path);
                    from_file(&file.map_err(|error| wrong(error.to_string()))?, &mut set);
                }
                NodeParameterSource::GeneratedFile(path, text) => {
                    let file = ParameterFile::parse(&path.display().to_string(), &text);
                    from_file(&file.map_err(|error| wrong(error.to_string()))?, &mut set);
                }
            }
        }
        Ok(values)
    }

    /// The validated parameter sources of an element's `param`s, in order.
    fn parameter_sources(
        &mut self,
        element: &Element,
    ) -> Result<Vec<NodeParameterSource>, LaunchFileError> {
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

    fn file_of(
        &mut self,
        part: &Element,
        from: &Attribute,
    ) -> Result<NodeParameterSource, LaunchFileError> {
        if let Some(other) = ["name", "value", "type"]
            .iter()
            .find_map(|name| part.attribute(name))
        {
            return Err(LaunchFileError::at(
                &other.location,
                format!("param has both from and {}; write two params", other.name),
            ));
        }
        let path = PathBuf::from(self.required(part, "from")?);
        let allowed = self.truth(part, "allow_substs")?.unwrap_or(false);
        if !allowed {
            check_file(&from.location, "from", &path)?;
            return Ok(NodeParameterSource::File(path));
        }
        let name = path.display();
        let wrong =
            |message: String| LaunchFileError::at(&from.location, format!("from: {message}"));
        let text = regular_file::read_text(&path, PARAMETER_FILE_BYTES_MAX);
        let text = text.map_err(|error| wrong(format!("cannot read {name}: {error}")))?;
        let template = Template::parse(&text).map_err(|m| wrong(format!("{name}: {m}")))?;
        let text = self.substituted(&template);
        let text = text.map_err(|m| self.with_cause(wrong(format!("{name}: {m}"))))?;
        ParameterFile::parse(&name.to_string(), &text).map_err(|error| wrong(error.to_string()))?;
        Ok(NodeParameterSource::GeneratedFile(self.new_file(), text))
    }

    /// A value, or a group: `param name="a"` around `param name="b"` is `a.b`.
    fn values_of(
        &mut self,
        part: &Element,
        prefix: &str,
        given: &mut Vec<NodeParameterSource>,
    ) -> Result<(), LaunchFileError> {
        if part.attribute("name").is_none() {
            return Err(LaunchFileError::at(
                &part.location,
                "param has neither name nor from; write name=\"…\" value=\"…\", or from=\"FILE\"",
            ));
        }
        let name = format!("{prefix}{}", self.required(part, "name")?);
        if let Some(allowed) = part.attribute("allow_substs") {
            return Err(LaunchFileError::at(
                &allowed.location,
                "allow_substs is for files, beside from",
            ));
        }
        match (part.attribute("value"), part.children.is_empty()) {
            (Some(_), true) => {
                let value = self.value(part)?;
                given.push(NodeParameterSource::Value(name, value));
                Ok(())
            }
            (None, false) => {
                if let Some(of) = part.attribute("type") {
                    return Err(LaunchFileError::at(
                        &of.location,
                        "a group of params has no type",
                    ));
                }
                let prefix = format!("{name}.");
                let parts = part.children.iter();
                for inner in parts.filter(|child| child.name == "param") {
                    self.values_of(inner, &prefix, given)?;
                }
                Ok(())
            }
            (Some(_), false) => Err(LaunchFileError::at(
                &part.location,
                format!("param {name:?} has both a value and params in it; write one"),
            )),
            (None, true) => Err(LaunchFileError::at(
                &part.location,
                format!("param {name:?} has no value; write value=\"…\", or params in it"),
            )),
        }
    }

    /// The `value`, with the type of `type` or else the type that YAML 1.1 gives it.
    pub(super) fn value(&mut self, part: &Element) -> Result<TypedText, LaunchFileError> {
        let Some(attribute) = part.attribute("value") else {
            let message = format!("{} lacks the attribute \"value\"", part.name);
            return Err(LaunchFileError::at(&part.location, message));
        };
        let kind = self.parsed(part, "type", |text| {
            let known = PARAMETER_TYPES.iter().find(|known| **known == text);
            known.copied().ok_or_else(|| {
                let hint = format!("there are: {}", PARAMETER_TYPES.join(", "));
                let similar = did_you_mean(text, PARAMETER_TYPES, &hint);
                format!("{text:?} is not a parameter type{similar}")
            })
        })?;
        let kind = kind.unwrap_or("yaml");
        let value = match &attribute.value {
            Value::Scalar(scalar) => {
                let text = self.evaluated_attribute(attribute, &scalar.text)?;
                let literal = is_literal(scalar);
                let value = typed(&text, kind, literal);
                value.map(|value| {
                    TypedText::new(value, Some(text.as_str()).filter(|_| kind == "yaml"))
                })
            }
            Value::List(list) => {
                let mut texts = Vec::new();
                for scalar in list {
                    let text = self.evaluated_attribute(attribute, &scalar.text)?;
                    texts.push((text, is_literal(scalar)));
                }
                list_of(&texts, kind).map(|value| TypedText::new(value, None))
            }
        };
        value.map_err(|message| {
            LaunchFileError::at(&attribute.location, format!("value: {message}"))
        })
    }
}

impl TypedText {
    fn new(value: ParameterValue, written: Option<&str>) -> Self {
        let is_string = matches!(value, ParameterValue::String(_));
        let written = written.filter(|text| {
            !is_string
                && !text.contains('\n')
                && ParameterValue::from_yaml(text).as_ref() == Ok(&value)
        });
        let text = written.map_or_else(|| yaml_text(&value), |text| text.trim().to_owned());
        Self { value, text }
    }
}

/// A quoted YAML text stays a string, unless it holds a substitution.
fn is_literal(scalar: &Scalar) -> bool {
    let has_calls = Template::parse(&scalar.text).is_ok_and(|template| template.has_calls());
    scalar.quoted && !has_calls
}

/// Parses a text as a parameter value.
fn typed(text: &str, kind: &str, literal: bool) -> Result<ParameterValue, String> {
    let plain = text.trim();
    let wrong =
        |what: &str, example: &str| format!("{text:?} is not of type {what}; write {example}");
    match kind {
        "str" => Ok(ParameterValue::String(text.into())),
        "bool" => crate::substitution::evaluate::truth(plain).map(ParameterValue::Bool),
        // Python's `int` and `float` read decimal digits, also `010`.
        "int" => {
            let decimal = digits(plain).and_then(|digits| digits.parse().ok());
            match decimal.map(ParameterValue::Integer) {
                Some(value) => Ok(value),
                None => match ParameterText::lenient(plain).value_as(ParameterType::Integer) {
                    value @ ParameterValue::Integer(_) => Ok(value),
                    _ => Err(wrong("int", "a 64-bit integer, as 42")),
                },
            }
        }
        "float" => {
            let decimal = digits(plain).and_then(|digits| digits.parse().ok());
            match decimal.map(ParameterValue::Double) {
                Some(value) => Ok(value),
                None => match ParameterText::lenient(plain).value_as(ParameterType::Double) {
                    value @ ParameterValue::Double(_) => Ok(value),
                    _ => Err(wrong("float", "a number, as 2.5")),
                },
            }
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
            list_of(&items.collect::<Result<Vec<_>, _>>()?, list)
        }
    }
}

/// A decimal number without the underscores that Python accepts between digits.
fn digits(text: &str) -> Option<String> {
    let is_edge = text.starts_with('_') || text.ends_with('_') || text.contains("__");
    (!is_edge).then(|| text.replace('_', ""))
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
        _ => ParameterText::read(text, TypingRule::Yaml11).map(|text| text.value().clone()),
    }
}

fn list_of(items: &[(String, bool)], kind: &str) -> Result<ParameterValue, String> {
    let each = match kind {
        "yaml" => "yaml",
        _ => kind.strip_prefix("list_of_").ok_or_else(|| {
            format!("a list is not of type {kind}; write type=\"list_of_{kind}\", or one value")
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

/// A value as `-p name:=…` reads it.
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

/// A text in double quotes, with escapes that YAML shares with JSON.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn check_file(
    location: &SourceLocation,
    attribute: &str,
    path: &Path,
) -> Result<(), LaunchFileError> {
    let wrong = |error: &dyn std::fmt::Display| {
        LaunchFileError::at(location, format!("{attribute}: {error}"))
    };
    // A node may get a FIFO of a shell. A launch file that names one would never end.
    regular_file::open(path).map_err(|error| wrong(&format!("{}: {error}", path.display())))?;
    ParameterFile::read(path).map_err(|error| wrong(&error))?;
    Ok(())
}

fn absolute_text(path: &Path) -> String {
    crate::scope::absolute(path).display().to_string()
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
            ("123E5", "float", ParameterValue::Double(123e5)),
            ("123E5", "str", "123E5".into()),
            ("[]", "str", "[]".into()),
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
    fn a_text_is_passed_on_as_written_if_rcl_reads_it_as_launch_does() {
        for (written, passed_on) in [
            ("0x1F", "0x1F"),
            ("010", "010"),
            ("[1, 2]", "[1, 2]"),
            ("yes", "yes"),
            ("0483", "\"0483\""),
            ("y", "\"y\""),
            ("1e-3", "\"1e-3\""),
            ("1_000", "1000"),
            ("1:30", "90"),
            ("'5'", "\"5\""),
        ] {
            let value = typed(written, "yaml", false).unwrap();
            assert_eq!(TypedText::new(value, Some(written)).text, passed_on);
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
            let text = yaml_text(&value);
            assert_eq!(ParameterValue::from_yaml(&text), Ok(value), "{text}");
        }
    }
}
