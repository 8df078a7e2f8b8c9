//! Parameters of a process as JSON: those of the command line, of files, and of
//! files that the launch writes before it starts the process.

use pteros::msg::regular_file;
use pteros::msg::yaml::{YamlContent, YamlNode};
use pteros::parameter::{PARAMETER_FILE_BYTES_MAX, ParameterValue};
use serde_json::{Map, Value, json};

use super::json as value_json;
use crate::plan::ProcessSpec;

/// The sources in the order of the command line. Later ones count.
///
/// A file shows all of its parameters by node name or pattern, since the name of a
/// node may be known only to its program.
pub(super) fn sources(process: &ProcessSpec) -> Vec<Value> {
    let mut found = Vec::new();
    let mut is_ros = false;
    let mut words = process.command.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--ros-args" => is_ros = true,
            "--" => is_ros = false,
            "-p" | "--param" if is_ros => found.extend(words.next().map(|word| argument(word))),
            "--params-file" if is_ros => found.extend(words.next().map(|path| file(process, path))),
            _ => {}
        }
    }
    found
}

/// `name:=value` or `node:name:=value`.
fn argument(word: &str) -> Value {
    let (name, value) = word.split_once(":=").unwrap_or((word, ""));
    let (node, name) = match name.split_once(':') {
        Some((node, name)) => (Some(node), name),
        None => (None, name),
    };
    json!({ "source": "argument", "node": node, "name": name, "value": scalar(value, false) })
}

fn file(process: &ProcessSpec, path: &str) -> Value {
    let written = process
        .files
        .iter()
        .find(|(name, _)| name.to_str() == Some(path));
    let source = if written.is_some() {
        "written file"
    } else {
        "file"
    };
    let text = match written {
        Some((_, text)) => Ok(text.clone()),
        None => regular_file::read_text(path.as_ref(), PARAMETER_FILE_BYTES_MAX)
            .map_err(|error| error.to_string()),
    };
    // The plan has read the file. It may have changed since.
    let documents =
        text.and_then(|text| YamlNode::read_documents(&text).map_err(|error| error.to_string()));
    match documents {
        Ok(documents) => {
            let nodes = documents.iter().map(node_json).fold(Value::Null, merged);
            json!({ "source": source, "path": path, "nodes": nodes })
        }
        Err(error) => json!({ "source": source, "path": path, "error": error }),
    }
}

/// Mappings of two documents as one. A later value replaces an earlier one.
fn merged(earlier: Value, later: Value) -> Value {
    match (earlier, later) {
        (Value::Object(mut all), Value::Object(added)) => {
            for (key, value) in added {
                match all.get_mut(&key) {
                    Some(known) => *known = merged(known.take(), value),
                    None => _ = all.insert(key, value),
                }
            }
            Value::Object(all)
        }
        (_, later) => later,
    }
}

fn node_json(node: &YamlNode) -> Value {
    match &node.content {
        YamlContent::Scalar { text, quoted } => scalar(text, *quoted),
        YamlContent::List(items) => items.iter().map(node_json).collect(),
        YamlContent::Mapping(entries) => {
            let entries = entries.iter();
            let entries = entries.map(|entry| (entry.key.clone(), node_json(&entry.value)));
            Value::Object(entries.collect::<Map<_, _>>())
        }
    }
}

/// A value with the type that YAML gives it.
fn scalar(text: &str, is_quoted: bool) -> Value {
    if is_quoted {
        return text.into();
    }
    match ParameterValue::from_yaml(text) {
        Ok(value) => value_json(&value),
        Err(_) => text.into(),
    }
}
