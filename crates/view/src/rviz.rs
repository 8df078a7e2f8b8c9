//! `.rviz` files: their YAML as JSON for the page, which knows the displays. A file comes
//! from the command line, or as text from a viewer.

use std::path::Path;

use pteros::msg::regular_file;
use pteros::msg::yaml::{YamlContent, YamlNode};
use pteros::parameter::{ParameterValue, TypingRule};
use serde_json::{Map, Value, json};

use crate::client::Client;
use crate::error::ViewError;
use crate::protocol;
use crate::server::Server;

/// Largest file. Those of public robots have 5 to 60 KB.
const BYTES_MAX: u64 = 1 << 20;
/// The parts of a file that say what is shown. The others place windows.
const SHOWN_PARTS: [&str; 2] = ["Panels", "Visualization Manager"];

/// Reads a file of the command line.
///
/// # Errors
/// The file cannot be read, or is no `.rviz` file.
pub fn read(path: &Path) -> Result<Value, ViewError> {
    let failed = |reason| ViewError::Rviz {
        path: path.to_owned(),
        reason,
    };
    let text = regular_file::read_text(path, BYTES_MAX);
    let text = text.map_err(|error| failed(error.to_string()))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    parse(&name, &text).map_err(failed)
}

/// Answers `pteros.rviz`: parses the message's text, or has the command line's file.
pub fn answer(server: &Server, client: &Client, message: &Value) {
    let parsed = match message["text"].as_str() {
        Some(text) => parse(message["name"].as_str().unwrap_or("file"), text),
        None => {
            let given = server.rviz.clone();
            given.ok_or_else(|| "pteros view was started without --rviz".to_owned())
        }
    };
    let mut answer = json!({ "op": "pteros.rviz", "id": message["id"] });
    match parsed {
        Ok(file) => answer["file"] = file,
        Err(reason) => answer["error"] = json!(reason),
    }
    client.outbox.send(protocol::text(&answer));
}

/// The shown parts of a file: `{name, Panels, Visualization Manager}`.
fn parse(name: &str, text: &str) -> Result<Value, String> {
    let root = YamlNode::read(text).map_err(|error| error.to_string())?;
    let YamlContent::Mapping(entries) = root.content else {
        return Err("no .rviz file: it is no mapping".into());
    };
    let mut file = Map::new();
    for entry in entries {
        if SHOWN_PARTS.contains(&entry.key.as_str()) {
            file.insert(entry.key, value_of(entry.value));
        }
    }
    if !file
        .get("Visualization Manager")
        .is_some_and(Value::is_object)
    {
        return Err("no .rviz file: it has no mapping \"Visualization Manager\"".into());
    }
    file.insert("name".into(), json!(name));
    Ok(Value::Object(file))
}

fn value_of(node: YamlNode) -> Value {
    match node.content {
        YamlContent::Scalar { text, quoted: true } => json!(text),
        YamlContent::Scalar { text, .. } => scalar(text),
        YamlContent::List(items) => items.into_iter().map(value_of).collect(),
        YamlContent::Mapping(entries) => {
            let entries = entries.into_iter();
            entries
                .map(|entry| (entry.key, value_of(entry.value)))
                .collect()
        }
    }
}

fn scalar(text: String) -> Value {
    match TypingRule::Yaml11.value_of(&text) {
        ParameterValue::Bool(value) => json!(value),
        ParameterValue::Integer(value) => json!(value),
        ParameterValue::Double(value) => json!(value),
        // A `~` is an empty text: the page reads it as the property's default.
        _ if text == "~" => json!(""),
        _ => json!(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shown_parts_of_a_file_become_json() {
        let text = "Panels:\n  - Class: rviz_common/Displays\nVisualization Manager:\n  Displays:\n    - Alpha: 0.5\n      Color: 160; 160; 164\n      Enabled: true\n      Name: \"1\"\n      Tree:\n        {}\n  Saved: ~\nWindow Geometry:\n  Height: 893\n";
        let file = parse("a.rviz", text).unwrap();
        let display = json!({
            "Alpha": 0.5, "Color": "160; 160; 164", "Enabled": true, "Name": "1", "Tree": {},
        });
        let expected = json!({
            "name": "a.rviz",
            "Panels": [{ "Class": "rviz_common/Displays" }],
            "Visualization Manager": { "Displays": [display], "Saved": "" },
        });
        assert_eq!(file, expected);
    }

    #[test]
    fn texts_that_are_no_such_file_are_refused() {
        let deep = "[".repeat(5000);
        for text in ["", "- a", "a: b", "Visualization Manager: 1", "a: [", &deep] {
            assert!(parse("a", text).is_err(), "{text}");
        }
    }
}
