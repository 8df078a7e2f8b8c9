//! Node parameters: `param` in nodes, `set_parameter` and similar actions for all
//! nodes in scope.

use std::path::{Path, PathBuf};

use pteros::msg::regular_file;
use pteros::msg::yaml::{YamlContent, YamlNode};
use pteros::parameter::{PARAMETER_FILE_BYTES_MAX, ParameterFile, ParameterValue, TypingRule};

use super::Builder;
use super::attributes::AttributeReader;
use crate::close_names::did_you_mean;
use crate::document::{Attribute, Element, Scalar, Value};
use crate::error::{LaunchFileError, SourceLocation};
use crate::node_arguments::{ParameterArgument, ParameterSource, parameter_arguments};
use crate::parameter_value::{PARAMETER_TYPES, list_of, parameter_text, typed_value};
use crate::scope::GlobalParameter;
use crate::substitution::Template;

/// A value of a launch file, and its text for a node.
pub(super) struct TypedText {
    pub(super) value: ParameterValue,
    /// See [`parameter_text`].
    text: String,
}

/// A parameter source of a node, from its `param` elements.
pub(super) enum NodeParameterSource {
    Value(String, TypedText),
    /// An unchanged file.
    File(PathBuf),
    /// The text of a file with evaluated substitutions, and the file's path.
    SubstitutedFile {
        path: PathBuf,
        text: String,
    },
}

const PARAMS_FILE: &str = "--params-file";

impl Builder {
    /// `set_parameter`, `set_use_sim_time`, `set_parameters_from_file`.
    pub(super) fn set_parameter(&mut self, element: &Element) -> Result<(), LaunchFileError> {
        let set = match element.name.as_str() {
            "set_use_sim_time" => {
                let value = self.attributes.truth(element, "value")?.unwrap_or(true);
                GlobalParameter::Value("use_sim_time".into(), value.to_string())
            }
            "set_parameters_from_file" => {
                let path = PathBuf::from(self.attributes.required(element, "filename")?);
                let location = element.location_of("filename");
                check_file(location, "filename", &path)?;
                GlobalParameter::File(path)
            }
            _ => {
                let name = self.attributes.required(element, "name")?;
                let value = self.attributes.value(element)?;
                GlobalParameter::Value(name, value.text)
            }
        };
        self.attributes.scope.parameters.push(set);
        Ok(())
    }

    /// The `--ros-args` arguments for the parameters of a node. Parameters of the
    /// scope come first, so the node's own take precedence. `node` is the full
    /// name, if the launch file gives one.
    pub(super) fn parameter_words(
        &mut self,
        element: &Element,
        node: Option<&str>,
        files: &mut Vec<(PathBuf, String)>,
    ) -> Result<Vec<(&'static str, String)>, LaunchFileError> {
        let of_scope = self
            .attributes
            .scope
            .parameters
            .iter()
            .map(|one| match one {
                GlobalParameter::Value(name, value) => {
                    ParameterSource::Argument(name.clone(), value.clone())
                }
                GlobalParameter::File(path) => ParameterSource::File(absolute_text(path)),
            });
        let mut sources: Vec<ParameterSource> = of_scope.collect();
        let own = self.parameter_sources(element)?.into_iter();
        sources.extend(own.map(|given| match given {
            NodeParameterSource::Value(name, value) => ParameterSource::Value(name, value.text),
            NodeParameterSource::File(path) => ParameterSource::File(absolute_text(&path)),
            NodeParameterSource::SubstitutedFile { text, .. } => ParameterSource::Text(text),
        }));
        let arguments = parameter_arguments(node, sources).into_iter();
        Ok(arguments
            .map(|argument| match argument {
                ParameterArgument::Value(word) => ("-p", word),
                ParameterArgument::File(path) => (PARAMS_FILE, path),
                ParameterArgument::NewFile(text) => {
                    let path = self.new_file();
                    let word = path.display().to_string();
                    files.push((path, text));
                    (PARAMS_FILE, word)
                }
            })
            .collect())
    }

    /// A path for a new parameter file of this launch.
    fn new_file(&mut self) -> PathBuf {
        self.written_parameter_files += 1;
        let file = format!("parameters-{}.yaml", self.written_parameter_files);
        self.attributes.context.log_folder.join(file)
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
        for one in self.attributes.scope.parameters.clone() {
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
                NodeParameterSource::SubstitutedFile { path, text } => {
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
                Some(from) => given.push(self.attributes.file_of(part, from)?),
                None => self.attributes.values_of(part, "", &mut given)?,
            }
        }
        Ok(given)
    }
}

impl AttributeReader {
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
        let is_yaml_first = part.name == "param" && kind == "yaml";
        let value = match read_first(&attribute.value).filter(|_| is_yaml_first) {
            Some(read) => read,
            None => attribute.value.clone(),
        };
        let value = match &value {
            Value::Scalar(scalar) => {
                let text = self.evaluated_attribute(attribute, &scalar.text)?;
                // Other elements take a text, which YAML types.
                let literal = part.name == "param" && is_literal(scalar);
                let written = Some(text.as_str()).filter(|_| kind == "yaml");
                typed_value(&text, kind, literal).map(|value| TypedText {
                    text: parameter_text(&value, written),
                    value,
                })
            }
            Value::List(list) => {
                let mut texts = Vec::new();
                for scalar in list {
                    let text = self.evaluated_attribute(attribute, &scalar.text)?;
                    texts.push((text, is_literal(scalar)));
                }
                list_of(&texts, kind).map(|value| TypedText {
                    text: value.to_yaml(),
                    value,
                })
            }
        };
        value.map_err(|message| {
            LaunchFileError::at(&attribute.location, format!("value: {message}"))
        })
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
        let name = path.display().to_string();
        let wrong =
            |message: String| LaunchFileError::at(&from.location, format!("from: {message}"));
        let text = regular_file::read_text(&path, PARAMETER_FILE_BYTES_MAX);
        let text = text.map_err(|error| wrong(format!("cannot read {name}: {error}")))?;
        let template = Template::parse(&text).map_err(|m| wrong(format!("{name}: {m}")))?;
        let text = self.substituted(&template);
        let text = text.map_err(|m| self.with_cause(wrong(format!("{name}: {m}"))))?;
        ParameterFile::parse(&name, &text).map_err(|error| wrong(error.to_string()))?;
        Ok(NodeParameterSource::SubstitutedFile { path, text })
    }
}

/// The value as YAML reads it before substitutions and escapes, as in ROS 2: YAML's quotes
/// end here, and a text that is a string stays one. `None` where YAML changes nothing.
fn read_first(value: &Value) -> Option<Value> {
    match value {
        Value::Scalar(scalar) if scalar.quoted => None,
        Value::Scalar(scalar) => {
            let node = YamlNode::read(&scalar.text).ok()?;
            match &node.content {
                YamlContent::List(items) => {
                    let items = items.iter().map(scalar_of);
                    Some(Value::List(items.collect::<Option<_>>()?))
                }
                _ => scalar_of(&node).map(Value::Scalar),
            }
        }
        Value::List(items) => {
            let read = |item: &Scalar| {
                let node = YamlNode::read(&item.text).ok().filter(|_| !item.quoted);
                let read = node.as_ref().and_then(scalar_of);
                read.unwrap_or_else(|| item.clone())
            };
            Some(Value::List(items.iter().map(read).collect()))
        }
    }
}

/// The scalar of a YAML node; one that YAML 1.1 takes for a string is as one in quotes.
fn scalar_of(node: &YamlNode) -> Option<Scalar> {
    let YamlContent::Scalar { text, quoted } = &node.content else {
        return None;
    };
    let is_plain = node.tag.is_none() && !text.is_empty() && Template::parse(text).is_ok();
    let value = TypingRule::Yaml11.value_of(text);
    is_plain.then(|| Scalar {
        text: text.clone(),
        quoted: *quoted || matches!(value, ParameterValue::String(_)),
    })
}

/// A quoted YAML text stays a string, unless it holds a substitution.
fn is_literal(scalar: &Scalar) -> bool {
    let has_calls = Template::parse(&scalar.text).is_ok_and(|template| template.has_calls());
    scalar.quoted && !has_calls
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
