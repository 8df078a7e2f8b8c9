//! Parameters of a node on its command line: `-p` and `--params-file` behind `--ros-args`,
//! as launch_ros writes them. XML, YAML and Python launch files share this.
//!
//! A `-p` applies to every node of the process, and values for one node in files take
//! precedence over it. So a node's own values are written to files that name the node.

use std::fmt::Write as _;

use pteros::msg::dynamic::yaml_string;

/// A source of a node's parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParameterSource {
    /// A parameter of every node in the process: name and value in YAML.
    Argument(String, String),
    /// A parameter of this node: name and value in YAML.
    Value(String, String),
    /// The path of a parameter file.
    File(String),
    /// The text of a parameter file that is still to be written.
    Text(String),
}

/// A pair of words behind `--ros-args`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParameterArgument {
    /// `-p` and this word.
    Value(String),
    /// `--params-file` and this path.
    File(String),
    /// `--params-file` and the path of a new file with this text.
    NewFile(String),
}

/// The arguments for the parameters of a node, in order, so that the last source of a
/// parameter counts. Values that follow each other share a file, in which a name stands
/// once. `node` is the node's full name, if it is known.
pub fn parameter_arguments(
    node: Option<&str>,
    sources: impl IntoIterator<Item = ParameterSource>,
) -> Vec<ParameterArgument> {
    let mut arguments = Vec::new();
    let mut values = Vec::new();
    for source in sources {
        let argument = match source {
            ParameterSource::Value(name, value) => {
                values.retain(|(known, _)| *known != name);
                values.push((name, value));
                continue;
            }
            ParameterSource::Argument(name, value) => {
                ParameterArgument::Value(format!("{name}:={value}"))
            }
            ParameterSource::File(path) => ParameterArgument::File(path),
            ParameterSource::Text(text) => ParameterArgument::NewFile(text),
        };
        arguments.extend(file_of(node, &mut values));
        arguments.push(argument);
    }
    arguments.extend(file_of(node, &mut values));
    arguments
}

/// Takes the collected values into a parameter file, if there are any.
fn file_of(node: Option<&str>, values: &mut Vec<(String, String)>) -> Option<ParameterArgument> {
    if values.is_empty() {
        return None;
    }
    let mut text = format!("{}:\n  ros__parameters:\n", node.unwrap_or("/**"));
    for (name, value) in values.drain(..) {
        // A write to memory cannot fail.
        let _ = writeln!(text, "    {}: {value}", yaml_string(&name));
    }
    Some(ParameterArgument::NewFile(text))
}
