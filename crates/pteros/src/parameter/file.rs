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
//! As rcl's parser and rclcpp's `parameter_map.cpp` understand them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use pteros_msg::yaml::{Content, Entry, Node, Place};

use super::error::ParameterFileError;
use super::pattern::NodePattern;
use super::store::{Override, Overrides, Parameter};
use super::value::ParameterValue;
use super::yaml::{self, Wrong};
use crate::args::{Arguments, ParameterArgument, ParameterSetting};

/// The parameters of a file, in its order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParameterFile {
    rules: Vec<Rule>,
}

/// One value, for one parameter of some nodes.
#[derive(Clone, Debug, PartialEq)]
struct Rule {
    nodes: NodePattern,
    name: String,
    given: Override,
}

impl ParameterFile {
    /// Reads a file. Blocks for the disk.
    ///
    /// # Errors
    /// See [`ParameterFileError`], which names the line.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, ParameterFileError> {
        let file = path.as_ref().display().to_string();
        let text = fs::read_to_string(path).map_err(|error| ParameterFileError::Unreadable {
            file: file.clone(),
            reason: error.to_string(),
        })?;
        Self::parse(&file, &text)
    }

    /// Reads the text of a file, which errors call `file`.
    ///
    /// # Errors
    /// See [`ParameterFileError`], which names the line.
    pub fn parse(file: &str, text: &str) -> Result<Self, ParameterFileError> {
        let mut reader = Reader {
            file,
            rules: Vec::new(),
        };
        let root = Node::read(text).map_err(|error| {
            let way_out = "check quotes, brackets and indentation there";
            reader.wrong(error.place, error.message, way_out)
        })?;
        match &root.content {
            _ if root.is_null() => {}
            Content::Mapping(entries) => reader.nodes("", entries)?,
            _ => {
                let what = format!("{} where node names should be", root.found_text());
                return Err(reader.wrong(root.place, what, SHAPE));
            }
        }
        Ok(Self {
            rules: reader.rules,
        })
    }

    /// What `-p` and `--params-file` say, in the order of
    /// [`ParameterArgument`](crate::args::ParameterArgument).
    pub(crate) fn of_arguments(arguments: &Arguments) -> Result<Self, ParameterFileError> {
        let mut rules = Vec::new();
        for argument in &arguments.parameters {
            match argument {
                ParameterArgument::File(path) => rules.append(&mut Self::read(path)?.rules),
                ParameterArgument::Value(setting) => rules.push(Rule::of_setting(setting)?),
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

    /// The parameters that the file has for a node, by its full name, `/ns/node`;
    /// where it has several values the last one counts. Without `wildcards` only those
    /// of entries without `*`.
    pub fn parameters_of(&self, node: &str, wildcards: bool) -> Vec<Parameter> {
        let mut found: Vec<Parameter> = Vec::new();
        for rule in &self.rules {
            if !rule.nodes.matches(node) || (!wildcards && rule.nodes.has_wildcards()) {
                continue;
            }
            let value = rule.given.value.clone();
            match found.iter_mut().find(|known| known.name == rule.name) {
                Some(known) => known.value = value,
                None => found.push(Parameter::new(rule.name.clone(), value)),
            }
        }
        found
    }

    /// Adds what is said for a node; later sayings replace earlier ones.
    pub(crate) fn add_for(&self, node: &str, overrides: &mut Overrides) {
        for rule in self.rules.iter().filter(|rule| rule.nodes.matches(node)) {
            overrides.insert(rule.name.clone(), rule.given.clone());
        }
    }
}

impl Rule {
    fn of_setting(setting: &ParameterSetting) -> Result<Self, ParameterFileError> {
        let (name, value) = (&setting.name, &setting.value);
        let wrong = |what: String, way_out| ParameterFileError::Argument {
            name: name.clone(),
            value: value.clone(),
            what,
            way_out,
        };
        let node = Node::read(value).map_err(|error| {
            let way_out = "put texts with special characters into quotes of their own";
            wrong(format!("no YAML: {error}"), way_out)
        })?;
        let read = yaml::value(&node);
        let read = read.map_err(|Wrong { what, way_out }| wrong(what, way_out))?;
        Ok(Self {
            nodes: match &setting.node {
                Some(node) => NodePattern::in_root(node),
                None => NodePattern::all(),
            },
            name: name.clone(),
            given: Override {
                value: read,
                from: format!("-p {name}:={value}").into(),
            },
        })
    }
}

const PARAMETERS: &str = "ros__parameters";
const SHAPE: &str = "write NODE: {ros__parameters: {NAME: VALUE}}";

struct Reader<'f> {
    file: &'f str,
    rules: Vec<Rule>,
}

impl Reader<'_> {
    fn wrong(
        &self,
        place: Place,
        what: impl Into<String>,
        way_out: &'static str,
    ) -> ParameterFileError {
        ParameterFileError::Wrong {
            file: self.file.into(),
            line: place.line as usize,
            column: place.column as usize,
            what: what.into(),
            way_out,
        }
    }

    /// Names of namespaces and nodes, down to `ros__parameters`.
    fn nodes(&mut self, above: &str, entries: &[Entry]) -> Result<(), ParameterFileError> {
        for entry in entries {
            let value = &entry.value;
            if entry.key == PARAMETERS {
                self.of_node(above, entry)?;
                continue;
            }
            let path = format!("{above}/{}", entry.key.trim_matches('/'));
            match &value.content {
                Content::Mapping(entries) => self.nodes(&path, entries)?,
                _ => {
                    let found = value.found_text();
                    let what = format!("node \"{path}\" has {found} before {PARAMETERS}");
                    return Err(self.wrong(value.place, what, SHAPE));
                }
            }
        }
        Ok(())
    }

    fn of_node(&mut self, node: &str, entry: &Entry) -> Result<(), ParameterFileError> {
        if node.is_empty() {
            let what = format!("no node name before {PARAMETERS}");
            return Err(self.wrong(entry.place, what, "write /**: above it for every node"));
        }
        let pattern = NodePattern::parse(node).map_err(|source| ParameterFileError::Name {
            place: format!("{}:{}", self.file, entry.place.line),
            source,
        })?;
        match &entry.value.content {
            Content::Mapping(entries) => self.parameters(&pattern, node, "", entries),
            _ => {
                let found = entry.value.found_text();
                let what = format!("node \"{node}\": {PARAMETERS} is {found}, no mapping");
                Err(self.wrong(entry.value.place, what, SHAPE))
            }
        }
    }

    fn parameters(
        &mut self,
        pattern: &NodePattern,
        node: &str,
        above: &str,
        entries: &[Entry],
    ) -> Result<(), ParameterFileError> {
        for entry in entries {
            let name = match above {
                "" => entry.key.clone(),
                above => format!("{above}.{}", entry.key),
            };
            let said = |what: &str| format!("node \"{node}\", parameter \"{name}\": {what}");
            if entry.key.is_empty() {
                return Err(self.wrong(entry.place, said("no name"), "write NAME: VALUE"));
            }
            let value = match &entry.value.content {
                Content::Mapping(entries) => {
                    self.parameters(pattern, node, &name, entries)?;
                    continue;
                }
                _ => yaml::value(&entry.value),
            };
            let value: ParameterValue = value.map_err(|Wrong { what, way_out }| {
                self.wrong(entry.value.place, said(&what), way_out)
            })?;
            let from: Arc<str> = format!("{}:{}", self.file, entry.place.line).into();
            self.rules.push(Rule {
                nodes: pattern.clone(),
                name,
                given: Override { value, from },
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> ParameterFile {
        ParameterFile::parse("robot.yaml", text).unwrap()
    }

    fn values(file: &ParameterFile, node: &str) -> Vec<(String, ParameterValue)> {
        let found = file.parameters_of(node, true).into_iter();
        found.map(|found| (found.name, found.value)).collect()
    }

    #[test]
    fn nodes_get_what_matches_them_in_the_files_order() {
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
                "robot.yaml:3:11: node \"/a\", parameter \"list\": a list of integer has, at place 2, a value of type string; let all be of one type",
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
                "ros__parameters:\n  a: 1\n",
                "no node name before ros__parameters",
            ),
            ("a:\n  ros__parameters: 5\n", "ros__parameters is 5"),
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
    fn an_empty_file_says_nothing() {
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
        let said = ParameterFile::of_arguments(&arguments).unwrap();
        assert_eq!(values(&said, "/legs"), [("speed".into(), 3.into())]);
        assert_eq!(values(&said, "/arm"), [("speed".into(), 4.into())]);
        // As in rclcpp, whose patterns are full names.
        assert_eq!(values(&said, "/left/arm"), [("speed".into(), 3.into())]);
        let (wrong, _) = Arguments::parse(["--ros-args", "-p", "list:=[1, a]"]).unwrap();
        let error = ParameterFile::of_arguments(&wrong).unwrap_err().to_string();
        assert!(
            error.starts_with("-p list:=[1, a]: a list of integer"),
            "{error}"
        );
    }

    /// Speed of `/arm`, as rcl and rclcpp work it out of `-p` and files in one list.
    #[test]
    fn files_and_single_values_count_in_their_order() {
        let folder = std::env::temp_dir().join(format!("pteros-order-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
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
            let said = ParameterFile::of_arguments(&arguments).unwrap();
            let [(_, value)] = &values(&said, "/arm")[..] else {
                panic!("{words:?}")
            };
            value.clone()
        };
        // Whatever comes later replaces what was said of all nodes.
        assert_eq!(speed(&[&all, "speed:=7"]), 7.into());
        assert_eq!(speed(&["speed:=7", &all]), 1.into());
        assert_eq!(speed(&["speed:=7", "speed:=8"]), 8.into());
        // An entry of its own comes after the pattern that was named before it ...
        assert_eq!(speed(&["speed:=7", &arm]), 2.into());
        assert_eq!(speed(&[&arm, "speed:=7"]), 7.into());
        assert_eq!(speed(&[&arm, &all]), 1.into());
        // ... and stays there, though the pattern is given another value later.
        assert_eq!(speed(&[&all, &arm, "speed:=7"]), 2.into());
        assert_eq!(speed(&[&legs, "speed:=7", &arm, "speed:=8"]), 2.into());
        assert_eq!(speed(&[&all, &arm, "arm:speed:=7"]), 7.into());
        fs::remove_dir_all(&folder).unwrap();
    }
}
