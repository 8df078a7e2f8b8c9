//! The behaviour table of launch, `tests/behaviour/descriptions.yaml`: the rows in XML and
//! YAML. `crates/python/tests/test_launch_descriptions.py` runs them in Python.

use std::fmt::Write as _;

use crate::reading::LaunchFolder;
use pteros::msg::yaml::{YamlContent, YamlNode};
use pteros_launch::LaunchPlan;
use pteros_launch::plan::{ComponentLoad, OutputDestinations, PlanStep, ProcessSpec};

const TABLE: &str = include_str!("../behaviour/descriptions.yaml");

/// The value of a key; an empty mapping if there is none.
fn entry<'y>(node: &'y YamlNode, key: &str) -> Option<&'y YamlNode> {
    let YamlContent::Mapping(entries) = &node.content else {
        panic!("a mapping with {key}, not {}", node.found_text());
    };
    let mut found = entries.iter().filter(|entry| entry.key == key);
    found.next().map(|entry| &entry.value)
}

fn text(node: &YamlNode) -> &str {
    match &node.content {
        YamlContent::Scalar { text, .. } => text,
        _ => panic!("a text, not {}", node.found_text()),
    }
}

fn texts(node: Option<&YamlNode>) -> Vec<(&str, &str)> {
    match node.map(|node| &node.content) {
        None => Vec::new(),
        Some(YamlContent::Mapping(entries)) => entries
            .iter()
            .map(|entry| (entry.key.as_str(), text(&entry.value)))
            .collect(),
        Some(_) => panic!("a mapping of texts"),
    }
}

#[test]
fn a_description_starts_the_same_processes_in_xml_and_yaml() {
    let table = YamlNode::read(TABLE).unwrap();
    let folder = LaunchFolder::new();
    for program in ["lib/box/talk", "lib/box/hear"] {
        folder.program(program);
    }
    // The class is one of C++, whose containers are installed.
    let index = "share/ament_index/resource_index";
    folder.write(&format!("{index}/packages/rclcpp_components"), "");
    let classes = "parts::Eye;lib/libparts.so\n";
    folder.write(&format!("{index}/rclcpp_components/parts"), classes);
    for (name, content) in texts(entry(&table, "files")) {
        folder.write(name, content);
    }
    let Some(YamlContent::List(rows)) = entry(&table, "rows").map(|rows| &rows.content) else {
        panic!("the table has no rows");
    };
    assert!(rows.len() > 20);
    let place = folder.text("");
    let place = place.trim_end_matches('/');
    let mut wrong = String::new();
    for row in rows {
        let cell = |key| entry(row, key).map(text).unwrap_or_default();
        let arguments = texts(entry(row, "arguments"));
        let xml = format!("<launch>{}</launch>", cell("xml"));
        let yaml = format!("launch:\n{}\n", cell("yaml"));
        for (name, file) in [("a.launch.xml", xml), ("a.launch.yaml", yaml)] {
            folder.write(name, &file.replace("FOLDER", place));
            let given = match folder.plan(name, &arguments) {
                Ok(plan) => processes(&plan).replace(place, "FOLDER"),
                Err(errors) => errors.to_string(),
            };
            if given != cell("processes") {
                let (row, expected) = (cell("name"), cell("processes"));
                let _ = writeln!(wrong, "{row}, {name}:\n{given}instead of:\n{expected}");
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

fn processes(plan: &LaunchPlan) -> String {
    let mut out = String::new();
    for step in &plan.steps {
        match step {
            PlanStep::Start(process) => write_process(&mut out, process),
            PlanStep::Load(load) => write_load(&mut out, load),
            _ => {}
        }
    }
    out
}

fn write_process(out: &mut String, process: &ProcessSpec) {
    let words = process.command.iter().map(|word| {
        let mut files = process.files.iter();
        let written = files.find(|(path, _)| path.to_str() == Some(word));
        written.map_or_else(|| word.clone(), |(_, text)| shown_file(text))
    });
    let words: Vec<String> = words.collect();
    let has_blanks = words
        .iter()
        .any(|word| word.is_empty() || word.contains(' ') && !word.starts_with('«'));
    let separator = if has_blanks { "|" } else { " " };
    let (name, _number) = process.name.rsplit_once('-').unwrap();
    let _ = writeln!(out, "{name}: {}", words.join(separator));
    for (name, value) in &process.environment {
        if name != "PATH" {
            let _ = writeln!(out, "  env {name}={value}");
        }
    }
    if let Some(folder) = &process.working_folder {
        let _ = writeln!(out, "  cwd {}", folder.display());
    }
    let shown = [process.output.stdout, process.output.stderr].map(destinations);
    if shown != ["log", "screen log"] {
        let _ = writeln!(out, "  stdout {}\n  stderr {}", shown[0], shown[1]);
    }
    if let Some(respawn) = process.respawn {
        let _ = write!(out, "  respawn delay {:?}", respawn.delay.as_secs_f64());
        let most = respawn.retries_max.map(|most| format!(" max {most}"));
        let _ = writeln!(out, "{}", most.unwrap_or_default());
    }
    if process.emulate_tty {
        out.push_str("  tty\n");
    }
    let timeouts = [process.sigterm_timeout, process.sigkill_timeout];
    let [term, kill] = timeouts.map(|timeout| timeout.as_secs_f64());
    if [term, kill] != [5.0, 5.0] {
        let _ = writeln!(out, "  timeouts {term:?} {kill:?}");
    }
    if matches!(process.on_exit.as_slice(), [PlanStep::Shutdown(_)]) {
        out.push_str("  on_exit shutdown\n");
    }
}

fn shown_file(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    format!("«{}»", lines.join("; "))
}

fn destinations(to: OutputDestinations) -> String {
    let all = [
        (to.screen, "screen"),
        (to.log, "log"),
        (to.own_files, "own_log"),
    ];
    let names: Vec<&str> = all.iter().filter(|one| one.0).map(|one| one.1).collect();
    names.join(" ")
}

fn write_load(out: &mut String, load: &ComponentLoad) {
    for component in &load.components {
        let values = |values: &[(String, pteros::parameter::ParameterValue)]| {
            let mut values: Vec<String> = values
                .iter()
                .map(|(name, value)| format!("{name:?}: {}", value.to_yaml()))
                .collect();
            values.sort();
            format!("{{{}}}", values.join(", "))
        };
        let _ = writeln!(
            out,
            "load {}: {} {} as {} {} {} {} {}",
            load.container,
            component.package,
            component.class,
            component.namespace,
            component.name,
            values(&component.parameters),
            component.remaps.join(" "),
            values(&component.extra_arguments),
        );
    }
}
