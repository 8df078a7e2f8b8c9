//! Parameter files: YAML with node names, `ros__parameters` and values.
//!
//! ```yaml
//! /**:                       # every node
//!   ros__parameters:
//!     use_sim_time: true
//! robot:                     # a namespace
//!   arm:                     # the node /robot/arm
//!     ros__parameters:
//!       speed: 0.5
//!       gripper: {force: 20} # gripper.force
//! ```
//!
//! Parsed as by rcl's parser and rclcpp's `parameter_map.cpp`. A file can have several
//! documents, which apply in their order.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use pteros_msg::regular_file;
use pteros_msg::suggest::is_slip_of;
use pteros_msg::yaml::{YamlContent, YamlEntry, YamlNode, YamlPosition};

use super::node_pattern::NodePattern;
use super::parameter_store::{Parameter, ParameterOverride, ParameterOverrides, add_override};
use super::parameter_text::ParameterText;
use super::yaml::{TypingRule, YamlValueError};
use crate::args::{Arguments, ParameterArgument, ParameterSetting};
use crate::arguments_error::ArgumentsError;

/// Parameters of a file, in file order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParameterFile {
    rules: Vec<ParameterRule>,
}

/// A value for one parameter of the matching nodes.
#[derive(Clone, Debug, PartialEq)]
struct ParameterRule {
    nodes: NodePattern,
    name: String,
    override_value: ParameterOverride,
}

impl ParameterFile {
    /// Reads a file, or a FIFO as a shell passes for `<(COMMAND)`. Blocks on disk I/O, and
    /// until the FIFO has a writer.
    ///
    /// # Errors
    /// See [`ArgumentsError`], which names the line.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, ArgumentsError> {
        Self::read_by(TypingRule::Rcl, path)
    }

    /// Reads a file as [`read`](Self::read) does, by the rule that decides where no type
    /// is declared. By [`TypingRule::Yaml11`], a list of several types is one of texts.
    ///
    /// # Errors
    /// See [`ArgumentsError`], which names the line.
    pub fn read_by(rule: TypingRule, path: impl AsRef<Path>) -> Result<Self, ArgumentsError> {
        let file = path.as_ref().display().to_string();
        let text = regular_file::read_text_or_pipe(path.as_ref(), PARAMETER_FILE_BYTES_MAX);
        let text = text.map_err(|error| ArgumentsError::Invalid {
            location: format!("parameter file {file}"),
            problem: error.to_string(),
            hint: "check its path",
        })?;
        Self::parse_by(rule, &file, &text)
    }

    /// Parses the text of a file. Errors name it as `file`.
    ///
    /// # Errors
    /// See [`ArgumentsError`], which names the line.
    pub fn parse(file: &str, text: &str) -> Result<Self, ArgumentsError> {
        Self::parse_by(TypingRule::Rcl, file, text)
    }

    fn parse_by(rule: TypingRule, file: &str, text: &str) -> Result<Self, ArgumentsError> {
        let mut parser = FileParser {
            file,
            rule,
            rules: Vec::new(),
        };
        let documents = YamlNode::read_documents(text).map_err(|error| {
            let hint = "check quotes, brackets and indentation there";
            parser.error_at(error.place, error.message, hint)
        })?;
        for document in &documents {
            match &document.content {
                YamlContent::Mapping(entries) => parser.nodes("", entries)?,
                _ if document.is_null() && documents.len() == 1 => {}
                _ => {
                    let found = document.found_text();
                    let problem = format!("{found} where node names should be");
                    return Err(parser.error_at(document.place, problem, SHAPE));
                }
            }
        }
        Ok(Self {
            rules: parser.rules,
        })
    }

    /// Parameters from `-p` and `--params-file`, in the order of
    /// [`ParameterArgument`](crate::args::ParameterArgument).
    #[doc(hidden)]
    pub fn from_arguments(arguments: &Arguments) -> Result<Self, ArgumentsError> {
        let mut rules = Vec::new();
        for argument in &arguments.parameters {
            match argument {
                ParameterArgument::File(path) => rules.append(&mut Self::read(path)?.rules),
                ParameterArgument::Value(setting) => {
                    rules.push(ParameterRule::from_setting(setting)?)
                }
            }
        }
        let mut first = BTreeMap::new();
        for rule in &rules {
            let next = first.len();
            first.entry(rule.nodes.clone()).or_insert(next);
        }
        rules.sort_by_key(|rule| first.get(&rule.nodes).copied());
        Ok(Self { rules })
    }

    /// Returns the parameters for a node with the fully qualified name `/ns/node`.
    /// If a parameter has several values, the last one counts. Without `wildcards`,
    /// only entries without `*` apply.
    pub fn parameters_of(&self, node: &str, wildcards: bool) -> Vec<Parameter> {
        let texts = self.texts_of(node, wildcards).into_iter();
        texts
            .map(|(name, text)| Parameter::new(name, text.value().clone()))
            .collect()
    }

    /// As [`Self::parameters_of`], with the texts, whose types the declarations decide.
    pub fn texts_of(&self, node: &str, wildcards: bool) -> Vec<(String, ParameterText)> {
        let mut found: Vec<(String, ParameterText)> = Vec::new();
        let mut places = BTreeMap::new();
        for rule in &self.rules {
            if !rule.nodes.matches(node) || (!wildcards && rule.nodes.has_wildcards()) {
                continue;
            }
            let text = rule.override_value.text.clone();
            let place = *places.entry(rule.name.as_str()).or_insert(found.len());
            match found.get_mut(place) {
                Some(known) => known.1 = text,
                None => found.push((rule.name.clone(), text)),
            }
        }
        found
    }

    /// The parameters of each node or pattern that the file names, in file order.
    pub fn parameters_by_node(&self) -> Vec<(String, Vec<Parameter>)> {
        let mut nodes: Vec<(String, Vec<Parameter>)> = Vec::new();
        for rule in &self.rules {
            let (name, value) = (rule.name.clone(), rule.override_value.text.value().clone());
            let node = rule.nodes.to_string();
            let parameter = Parameter::new(name, value);
            match nodes.iter_mut().find(|(known, _)| *known == node) {
                Some((_, parameters)) => parameters.push(parameter),
                None => nodes.push((node, vec![parameter])),
            }
        }
        nodes
    }

    /// Adds the values for a node; later values replace earlier ones.
    #[doc(hidden)]
    pub fn add_for(&self, node: &str, overrides: &mut ParameterOverrides) {
        for rule in self.rules.iter().filter(|rule| rule.nodes.matches(node)) {
            add_override(overrides, &rule.name, rule.override_value.clone());
        }
    }
}

impl ParameterRule {
    fn from_setting(setting: &ParameterSetting) -> Result<Self, ArgumentsError> {
        let (name, value) = (&setting.name, &setting.value);
        let invalid = |problem: String, hint| ArgumentsError::Invalid {
            location: format!("-p {name}:={value}"),
            problem,
            hint,
        };
        let node = YamlNode::read(value).map_err(|error| {
            let hint = "put strings with special characters into quotes of their own";
            invalid(format!("not valid YAML: {error}"), hint)
        })?;
        let read = ParameterText::of_node(&node, TypingRule::Rcl);
        let read = read.map_err(|YamlValueError { problem, hint }| invalid(problem, hint))?;
        Ok(Self {
            nodes: match &setting.node {
                Some(node) => NodePattern::in_root(node),
                None => NodePattern::all(),
            },
            name: name.clone(),
            override_value: ParameterOverride {
                text: read,
                origin: format!("-p {name}:={value}").into(),
                order: 0,
            },
        })
    }
}

/// Largest parameter file in bytes.
pub const PARAMETER_FILE_BYTES_MAX: u64 = 16 << 20;
const PARAMETERS: &str = "ros__parameters";
const SPELLING: &str = "write ros__parameters, with two underscores";
const SHAPE: &str = "write NODE: {ros__parameters: {NAME: VALUE}}";

struct FileParser<'f> {
    file: &'f str,
    rule: TypingRule,
    rules: Vec<ParameterRule>,
}

impl FileParser<'_> {
    fn error_at(
        &self,
        place: YamlPosition,
        problem: impl Into<String>,
        hint: &'static str,
    ) -> ArgumentsError {
        ArgumentsError::Invalid {
            location: format!("{}:{}:{}", self.file, place.line, place.column),
            problem: problem.into(),
            hint,
        }
    }

    /// Parses names of namespaces and nodes, down to `ros__parameters`.
    fn nodes(&mut self, above: &str, entries: &[YamlEntry]) -> Result<(), ArgumentsError> {
        let mut has_parameters = false;
        for entry in entries {
            let value = &entry.value;
            if entry.key == PARAMETERS {
                if has_parameters {
                    let problem = format!("node \"{above}\" has {PARAMETERS} twice");
                    let hint = "write all its parameters below one of them";
                    return Err(self.error_at(entry.place, problem, hint));
                }
                has_parameters = true;
                self.node_parameters(above, entry)?;
                continue;
            }
            if !above.is_empty() && entry.key.starts_with('/') {
                let problem = format!(
                    "the name {:?} below {above:?} begins with a slash",
                    entry.key
                );
                let hint = "leave the slash out, or write the full name at the left margin";
                return Err(self.error_at(entry.place, problem, hint));
            }
            if entry.key.contains("//") {
                let problem = format!("the name {:?} has two slashes in a row", entry.key);
                return Err(self.error_at(entry.place, problem, "leave one of them out"));
            }
            if has_own_parameters(value) && entry.key.len() > 1 && entry.key.ends_with('/') {
                let problem = format!("the node name {:?} ends with a slash", entry.key);
                return Err(self.error_at(entry.place, problem, "leave the slash out"));
            }
            let path = format!("{above}/{}", entry.key.trim_matches('/'));
            match &value.content {
                YamlContent::Mapping(entries) => self.nodes(&path, entries)?,
                _ => {
                    let found = value.found_text();
                    let misspelt = path.split('/').find(|part| is_slip_of(part, PARAMETERS));
                    let problem = match misspelt {
                        Some(part) => format!("\"{part}\" is misspelt"),
                        None => format!("node \"{path}\" has {found} before {PARAMETERS}"),
                    };
                    let hint = misspelt.map_or(SHAPE, |_| SPELLING);
                    return Err(self.error_at(value.place, problem, hint));
                }
            }
        }
        Ok(())
    }

    fn node_parameters(&mut self, node: &str, entry: &YamlEntry) -> Result<(), ArgumentsError> {
        if node.is_empty() {
            let problem = format!("no node name before {PARAMETERS}");
            return Err(self.error_at(entry.place, problem, "write /**: above it for every node"));
        }
        let pattern = NodePattern::parse(node).map_err(|source| ArgumentsError::Name {
            location: format!("{}:{}", self.file, entry.place.line),
            source,
        })?;
        match &entry.value.content {
            YamlContent::Mapping(entries) => self.parameters(&pattern, node, "", entries),
            _ => {
                let found = entry.value.found_text();
                let problem = format!("node \"{node}\": {PARAMETERS} is {found}, no mapping");
                Err(self.error_at(entry.value.place, problem, SHAPE))
            }
        }
    }

    fn parameters(
        &mut self,
        pattern: &NodePattern,
        node: &str,
        above: &str,
        entries: &[YamlEntry],
    ) -> Result<(), ArgumentsError> {
        for entry in entries {
            let name = match above {
                "" => entry.key.clone(),
                above => format!("{above}.{}", entry.key),
            };
            let message =
                |problem: &str| format!("node \"{node}\", parameter \"{name}\": {problem}");
            if entry.key.is_empty() {
                return Err(self.error_at(entry.place, message("no name"), "write NAME: VALUE"));
            }
            let value = match &entry.value.content {
                YamlContent::Mapping(entries) => {
                    self.parameters(pattern, node, &name, entries)?;
                    continue;
                }
                // rcl accepts such a list, but makes no value of it that a node could
                // expect: `m: [{a: 1}, {b: 2}]` is `m.a.b: [1, 2]` there.
                YamlContent::List(items) if items.iter().any(has_mapping) => {
                    tracing::warn!(
                        "{}:{}: {}",
                        self.file,
                        entry.place.line,
                        message("left out: a list of mappings is not a parameter value")
                    );
                    continue;
                }
                _ if self.rule == TypingRule::Yaml11 => {
                    ParameterText::of_mixed(&entry.value, self.rule)
                }
                _ => ParameterText::of_node(&entry.value, self.rule),
            };
            let text = value.map_err(|YamlValueError { problem, hint }| {
                self.error_at(entry.value.place, message(&problem), hint)
            })?;
            let origin: Arc<str> = format!("{}:{}", self.file, entry.place.line).into();
            self.rules.push(ParameterRule {
                nodes: pattern.clone(),
                name,
                override_value: ParameterOverride {
                    text,
                    origin,
                    order: 0,
                },
            });
        }
        Ok(())
    }
}

/// Whether the value of a name has parameters, so that the name is a node's.
fn has_own_parameters(value: &YamlNode) -> bool {
    match &value.content {
        YamlContent::Mapping(entries) => entries.iter().any(|entry| entry.key == PARAMETERS),
        _ => false,
    }
}

/// Whether the node is a mapping, or a list with one.
fn has_mapping(node: &YamlNode) -> bool {
    match &node.content {
        YamlContent::Mapping(_) => true,
        YamlContent::List(items) => items.iter().any(has_mapping),
        YamlContent::Scalar { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameter::ParameterValue;
    use pteros_test_support::folder::Folder;
    use std::fs;

    fn file(text: &str) -> ParameterFile {
        ParameterFile::parse("robot.yaml", text).unwrap()
    }

    fn values(file: &ParameterFile, node: &str) -> Vec<(String, ParameterValue)> {
        let found = file.parameters_of(node, true).into_iter();
        found.map(|found| (found.name, found.value)).collect()
    }

    #[test]
    fn nodes_get_matching_parameters_in_file_order() {
        let file = file(
            "/**:\n  ros__parameters:\n    rate: 10\n    frame: map\n\
             robot:\n  arm:\n    ros__parameters:\n      rate: 20\n      gripper: {force: 1.5}\n\
             /*:\n  ros__parameters: {frame: odom}\n\
             /robot/**:\n  ros__parameters:\n    team.name: red\n",
        );
        let arm = [
            ("rate", 20.into()),
            ("frame", "map".into()),
            ("gripper.force", 1.5.into()),
            ("team.name", "red".into()),
        ];
        let arm = arm.map(|(name, value): (&str, ParameterValue)| (name.to_owned(), value));
        assert_eq!(values(&file, "/robot/arm"), arm);
        let lone = [("rate", 10.into()), ("frame", "odom".into())];
        let lone = lone.map(|(name, value): (&str, ParameterValue)| (name.to_owned(), value));
        assert_eq!(values(&file, "/lone"), lone);
        let own = file.parameters_of("/robot/arm", false);
        assert_eq!(own.len(), 2, "{own:?}");
    }

    #[test]
    fn errors_name_file_line_node_and_parameter() {
        for (text, says) in [
            (
                "a:\n  ros__parameters:\n    list: [1, two]\n",
                "robot.yaml:3:11: node \"/a\", parameter \"list\": a list of integer has, at place 2, a value of type string; use one type",
            ),
            (
                "a:\n  ros__parameters:\n    group:\n      x:\n",
                "parameter \"group.x\": no value; write ''",
            ),
            (
                "a:\n  speed: 1\n",
                "robot.yaml:2:10: node \"/a/speed\" has 1 before ros__parameters; write NODE:",
            ),
            (
                "a:\n  ros_parameters:\n    rate: 5\n",
                "robot.yaml:3:11: \"ros_parameters\" is misspelt; write ros__parameters, with two",
            ),
            (
                "/**:\n  ros__paramters:\n    a:\n      b: 5\n",
                "\"ros__paramters\" is misspelt; write ros__parameters",
            ),
            (
                "ros__parameters:\n  a: 1\n",
                "no node name before ros__parameters",
            ),
            ("a:\n  ros__parameters: 5\n", "ros__parameters is 5"),
            (
                "robot:\n  /arm:\n    ros__parameters: {x: 1}\n",
                "robot.yaml:2:3: the name \"/arm\" below \"/robot\" begins with a slash; leave",
            ),
            (
                "a:\n  ros__parameters: {x: [[1, 2], [3]]}\n",
                "parameter \"x\": a list in a list",
            ),
            (
                "a/:\n  ros__parameters: {x: 1}\n",
                "robot.yaml:1:1: the node name \"a/\" ends with a slash; leave the slash out",
            ),
            (
                "//a:\n  ros__parameters: {x: 1}\n",
                "the name \"//a\" has two slashes in a row; leave one of them out",
            ),
            (
                "a:\n  ros__parameters: {x: 1}\n  ros__parameters: {y: 1}\n",
                "robot.yaml:3:3: node \"/a\" has ros__parameters twice; write all",
            ),
            (
                "a:\n  ros__parameters: {x: 1}\n---\n",
                "nothing where node names should be",
            ),
            ("- 1\n", "a list of 1 where node names should be"),
            ("a: *x\n", "robot.yaml:1:"),
            ("2a:\n  ros__parameters: {x: 1}\n", "robot.yaml:2: "),
        ] {
            let error = ParameterFile::parse("robot.yaml", text).unwrap_err();
            let error = error.to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
        let missing = ParameterFile::read("/nowhere/robot.yaml").unwrap_err();
        assert!(missing.to_string().contains("/nowhere/robot.yaml"));
    }

    #[test]
    fn a_list_of_mappings_is_left_out_and_the_rest_is_read() {
        let file = file(
            "a:\n  ros__parameters:\n    joints:\n      - {name: left}\n      - [{name: right}]\n    rate: 5\n",
        );
        assert_eq!(values(&file, "/a"), [("rate".into(), 5.into())]);
    }

    /// rcl's parser reads the documents of a file into one set of parameters.
    #[test]
    fn later_documents_add_nodes_and_replace_values() {
        let file = file(
            "a:\n  ros__parameters: {rate: 1, frame: map}\n---\n\
             b:\n  ros__parameters: {rate: 2}\n---\n\
             a:\n  ros__parameters: {rate: 3}\n",
        );
        let a = [("rate".into(), 3.into()), ("frame".into(), "map".into())];
        assert_eq!(values(&file, "/a"), a);
        assert_eq!(values(&file, "/b"), [("rate".into(), 2.into())]);
    }

    #[test]
    fn an_empty_file_has_no_parameters() {
        assert_eq!(file(""), ParameterFile::default());
        assert_eq!(
            file("a:\n  ros__parameters: {}\n"),
            ParameterFile::default()
        );
    }

    #[test]
    fn the_command_line_names_values_and_their_source() {
        let words = ["--ros-args", "-p", "speed:=3", "-p", "arm:speed:=4"];
        let (arguments, _) = Arguments::parse(words).unwrap();
        let message = ParameterFile::from_arguments(&arguments).unwrap();
        assert_eq!(values(&message, "/legs"), [("speed".into(), 3.into())]);
        assert_eq!(values(&message, "/arm"), [("speed".into(), 4.into())]);
        // As in rclcpp, whose patterns are fully qualified names.
        assert_eq!(values(&message, "/left/arm"), [("speed".into(), 3.into())]);
        let (wrong, _) = Arguments::parse(["--ros-args", "-p", "list:=[1, a]"]).unwrap();
        let error = ParameterFile::from_arguments(&wrong)
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("-p list:=[1, a]: a list of integer"),
            "{error}"
        );
    }

    /// Speed of `/arm` as rcl and rclcpp compute it from `-p` and files in one
    /// list.
    #[test]
    fn files_and_single_values_apply_in_order() {
        let folder = Folder::new("order");
        let text_of = |node: &str, speed: i64| {
            let word = node.trim_matches('/').replace('*', "all");
            let path = folder.join(format!("{word}{speed}.yaml"));
            let text = format!("{node}:\n  ros__parameters: {{speed: {speed}}}\n");
            fs::write(&path, text).unwrap();
            path.display().to_string()
        };
        let (all, arm, legs) = (text_of("/**", 1), text_of("/arm", 2), text_of("/legs", 3));
        let speed = |words: &[&str]| {
            let mut line = vec!["--ros-args"];
            for word in words {
                let flag = if word.ends_with(".yaml") {
                    "--params-file"
                } else {
                    "-p"
                };
                line.extend([flag, word]);
            }
            let (arguments, _) = Arguments::parse(line).unwrap();
            let message = ParameterFile::from_arguments(&arguments).unwrap();
            let [(_, value)] = &values(&message, "/arm")[..] else {
                panic!("{words:?}")
            };
            value.clone()
        };
        // A later value replaces an earlier one for all nodes.
        assert_eq!(speed(&[&all, "speed:=7"]), 7.into());
        assert_eq!(speed(&["speed:=7", &all]), 1.into());
        assert_eq!(speed(&["speed:=7", "speed:=8"]), 8.into());
        // An entry for the node itself comes after the pattern that preceded it ...
        assert_eq!(speed(&["speed:=7", &arm]), 2.into());
        assert_eq!(speed(&[&arm, "speed:=7"]), 7.into());
        assert_eq!(speed(&[&arm, &all]), 1.into());
        // ... and stays there, although the pattern gets another value later.
        assert_eq!(speed(&[&all, &arm, "speed:=7"]), 2.into());
        assert_eq!(speed(&[&legs, "speed:=7", &arm, "speed:=8"]), 2.into());
        assert_eq!(speed(&[&all, &arm, "arm:speed:=7"]), 7.into());
    }
}
