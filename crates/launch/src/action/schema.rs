//! Schema of launch files: elements, attributes and children of `launch_xml`,
//! `launch_yaml` and `launch_ros`, with a few additions.
//!
//! A file is checked against it before evaluation. So errors in parts that
//! conditions exclude are found as well.

use crate::close_names::{did_you_mean, listed};
use crate::document::{Attribute, Element, Value};
use crate::error::{LaunchFileError, LaunchFileErrors};
use crate::substitution::{SUBSTITUTIONS, Template, TemplatePart};

/// The attributes and children that an element of a launch file may have.
pub struct ElementSchema {
    /// The tag in XML, the key in YAML.
    pub name: &'static str,
    /// Required attributes.
    pub required: &'static [&'static str],
    /// Optional attributes, besides `if` and `unless` of actions.
    pub optional: &'static [&'static str],
    /// Optional attributes that several elements share.
    pub shared: &'static [&'static str],
    /// Child elements, besides actions.
    pub parts: &'static [&'static str],
    /// Whether it may contain actions.
    pub holds_actions: bool,
}

const fn action(
    name: &'static str,
    required: &'static [&'static str],
    optional: &'static [&'static str],
) -> ElementSchema {
    with_parts(name, required, optional, &[])
}

const fn with_parts(
    name: &'static str,
    required: &'static [&'static str],
    optional: &'static [&'static str],
    parts: &'static [&'static str],
) -> ElementSchema {
    ElementSchema {
        name,
        required,
        optional,
        shared: &[],
        parts,
        holds_actions: false,
    }
}

const fn block(
    name: &'static str,
    required: &'static [&'static str],
    optional: &'static [&'static str],
    parts: &'static [&'static str],
) -> ElementSchema {
    ElementSchema {
        name,
        required,
        optional,
        shared: &[],
        parts,
        holds_actions: true,
    }
}

impl ElementSchema {
    /// The same schema with shared attributes.
    const fn sharing(mut self, shared: &'static [&'static str]) -> Self {
        self.shared = shared;
        self
    }
}

/// Every action.
pub const ACTIONS: &[ElementSchema] = &[
    action("append_env", &["name", "value"], &["prepend", "separator"]),
    with_parts("arg", &["name"], &["default", "description"], &["choice"]),
    with_parts("executable", &["cmd"], &["name"], &["env", "on_exit"]).sharing(PROCESS),
    block("for", &["len", "name"], &[], &[]),
    block("for_each", &["values"], &[], &[]),
    block("group", &[], &["scoped", "forwarding"], &["keep"]),
    with_parts("include", &["file"], &[], &["arg", "let"]),
    action("let", &["name", "value"], &[]),
    with_parts("lifecycle_node", &["exec", "name"], MANAGED, NODE_PARTS).sharing(PROCESS),
    with_parts(
        "load_composable_node",
        &["target"],
        &[],
        &["composable_node"],
    ),
    action("log", &["message"], &["level"]),
    action("log_debug", &["message"], &[]),
    action("log_error", &["message"], &[]),
    action("log_info", &["message"], &[]),
    action("log_warning", &["message"], &[]),
    with_parts("node", &["exec"], NODE, NODE_PARTS).sharing(PROCESS),
    with_parts("node_container", &["exec", "name"], NODE, CONTAINER_PARTS).sharing(PROCESS),
    action("push-ros-namespace", &["namespace"], &[]),
    action("push_ros_namespace", &["namespace"], &[]),
    with_parts("reset", &[], &[], &["keep"]),
    action("reset_env", &[], &[]),
    block("ros_timer", &["period"], &["cancel_on_shutdown"], &[]),
    action("set_env", &["name", "value"], &[]),
    action("set_parameter", &["name", "value"], &["type"]),
    action("set_parameters_from_file", &["filename"], &[]),
    action("set_remap", &["from", "to"], &[]),
    action("set_ros_log_dir", &["new_log_dir"], &[]),
    action("set_use_sim_time", &["value"], &[]),
    action("shutdown", &[], &["reason"]),
    block("timer", &["period"], &["cancel_on_shutdown"], &[]),
    action("unset_env", &["name"], &[]),
];

/// Elements that packages add to launch files: name and package. Each is Python
/// code, so none of them can run here.
const EXTENSIONS: &[(&str, &str)] = &[
    ("gz_server", "ros_gz_sim"),
    ("gz_spawn_model", "ros_gz_sim"),
    ("ld_preload", "tracetools_launch"),
    ("ros_gz_bridge", "ros_gz_bridge"),
    ("ros_gz_payload_bridge", "ros_gz_payload_bridge"),
    ("ros_gz_sim", "ros_gz_sim"),
    ("trace", "tracetools_launch"),
];

/// Process attributes of `executable`, `node`, `lifecycle_node` and
/// `node_container`.
const PROCESS: &[&str] = &[
    "cwd",
    "on_exit",
    "launch-prefix",
    "output",
    "respawn",
    "respawn_delay",
    "respawn_max_retries",
    "sigterm_timeout",
    "sigkill_timeout",
    "shell",
    "emulate_tty",
];

/// Node attributes.
const NODE: &[&str] = &[
    "name",
    "pkg",
    "namespace",
    "args",
    "ros_args",
    "exec_name",
    "node-name",
];

/// Attributes of managed nodes, which need a name.
const MANAGED: &[&str] = &[
    "pkg",
    "namespace",
    "args",
    "ros_args",
    "exec_name",
    "autostart",
    "depends_on",
];

const NODE_PARTS: &[&str] = &["param", "remap", "env", "on_exit"];
const CONTAINER_PARTS: &[&str] = &["param", "remap", "env", "on_exit", "composable_node"];

/// The schema of a child element, which depends on its parent.
fn part_schema(owner: &str, name: &str) -> Option<ElementSchema> {
    Some(match (owner, name) {
        ("arg", "choice") => action("choice", &["value"], &[]),
        ("include", "arg") => action("arg", &["name", "value"], &[]),
        ("include", "let") => action("let", &["name", "value"], &[]),
        ("group" | "reset", "keep") => action("keep", &["name", "value"], &[]),
        ("param", "param") => with_parts("param", &["name"], &["value", "type"], &["param"]),
        (_, "param") => with_parts(
            "param",
            &[],
            &["name", "value", "type", "from", "allow_substs"],
            &["param"],
        ),
        (_, "remap") => action("remap", &["from", "to"], &[]),
        (_, "env") => action("env", &["name", "value"], &[]),
        (_, "extra_arg") => action("extra_arg", &["name", "value"], &[]),
        (_, "on_exit") => block("on_exit", &[], &[], &[]),
        (_, "composable_node") => with_parts(
            "composable_node",
            &["pkg", "plugin"],
            &["name", "namespace", "if", "unless"],
            &["param", "remap", "extra_arg"],
        ),
        _ => return None,
    })
}

/// Checks a whole file against the schema.
pub fn check(root: &Element, errors: &mut LaunchFileErrors) {
    let form = block("launch", &[], &["version", "deprecated"], &[]);
    check_element(root, &form, false, errors);
}

fn check_element(
    element: &Element,
    form: &ElementSchema,
    is_action: bool,
    errors: &mut LaunchFileErrors,
) {
    let name = form.name;
    let conditions: &[&str] = if is_action { &["if", "unless"] } else { &[] };
    let known = form.required.iter().chain(form.optional);
    let known = known.chain(form.shared).chain(conditions);
    for attribute in &element.attributes {
        let wanted = attribute.name.as_str();
        if !known.clone().any(|one| *one == wanted) {
            let known: Vec<&str> = known.clone().copied().collect();
            let hint = format!("it has: {}", listed(known.iter().copied()));
            let similar = did_you_mean(wanted, known, &hint);
            errors.push(LaunchFileError::at(
                &attribute.location,
                format!("{name} has no attribute {wanted:?}{similar}"),
            ));
        }
        check_templates(attribute, errors);
    }
    for required in form.required {
        if element.attribute(required).is_none() {
            errors.push(LaunchFileError::at(
                &element.location,
                format!("{name} lacks the attribute {required:?}; write {required}=\"…\""),
            ));
        }
    }
    if element.attribute("if").is_some() && element.attribute("unless").is_some() {
        errors.push(LaunchFileError::at(
            &element.location,
            format!("{name} has both if and unless; write one: $(and …) and $(not …) combine them"),
        ));
    }
    for child in &element.children {
        check_child(child, form, errors);
    }
}

fn check_child(child: &Element, owner: &ElementSchema, errors: &mut LaunchFileErrors) {
    let name = child.name.as_str();
    if owner.parts.contains(&name)
        && let Some(form) = part_schema(owner.name, name)
    {
        return check_element(child, &form, false, errors);
    }
    let actions: &[ElementSchema] = if owner.holds_actions { ACTIONS } else { &[] };
    if let Some(form) = actions.iter().find(|form| form.name == name) {
        return check_element(child, form, true, errors);
    }
    let extension = EXTENSIONS.iter().find(|(element, _)| *element == name);
    if let (true, Some((_, package))) = (owner.holds_actions, extension) {
        errors.push(LaunchFileError::at(
            &child.location,
            format!(
                "{name:?} is an element of the package {package}, whose code is Python and cannot run here; start its programs with node, executable or load_composable_node"
            ),
        ));
        return;
    }
    let known = actions.iter().map(|form| form.name);
    let known: Vec<&str> = known.chain(owner.parts.iter().copied()).collect();
    let hint = match known.len() {
        0 => "it holds no elements".to_string(),
        _ => format!("there are: {}", known.join(", ")),
    };
    let similar = did_you_mean(name, known, &hint);
    errors.push(LaunchFileError::at(
        &child.location,
        format!("{} has no element {name:?}{similar}", owner.name),
    ));
}

/// Checks the syntax of substitutions, including those that are never evaluated.
fn check_templates(attribute: &Attribute, errors: &mut LaunchFileErrors) {
    let scalars = match &attribute.value {
        Value::Scalar(scalar) => std::slice::from_ref(scalar),
        Value::List(list) => list,
    };
    for scalar in scalars {
        let outcome = Template::parse(&scalar.text).and_then(|template| check_calls(&template));
        if let Err(message) = outcome {
            let message = format!("{}: {message}", attribute.name);
            errors.push(LaunchFileError::at(&attribute.location, message));
        }
    }
}

fn check_calls(template: &Template) -> Result<(), String> {
    for part in &template.parts {
        let TemplatePart::Call(call) = part else {
            continue;
        };
        let names = SUBSTITUTIONS.iter().map(|known| known.0);
        if !names.clone().any(|name| name == call.name) {
            let hint = format!(
                "there are: {}",
                names.clone().collect::<Vec<_>>().join(", ")
            );
            let similar = did_you_mean(&call.name, names, &hint);
            return Err(format!(
                "there is no substitution $({}){similar}",
                call.name
            ));
        }
        call.arguments.iter().try_for_each(check_calls)?;
    }
    Ok(())
}
