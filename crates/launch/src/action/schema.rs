//! Which elements a launch file has, with which attributes and parts: those of
//! `launch_xml`, `launch_yaml` and `launch_ros`, and a few of ours.
//!
//! A file is held against it before anything is evaluated, so that a slip within
//! what a condition leaves out is found as well.

use crate::close_names::{did_you_mean, listed};
use crate::document::{Attribute, Element, Value};
use crate::fault::{Fault, Faults};
use crate::substitution::{Part, SUBSTITUTIONS, Template};

/// An element's form.
pub struct Form {
    /// Its name.
    pub name: &'static str,
    /// Attributes that must be there.
    pub required: &'static [&'static str],
    /// Attributes that may be there, beside `if` and `unless` of actions.
    pub optional: &'static [&'static str],
    /// Attributes that may be there, which other elements share.
    pub shared: &'static [&'static str],
    /// Elements in it, beside actions.
    pub parts: &'static [&'static str],
    /// Whether actions may lie in it.
    pub holds_actions: bool,
}

const fn action(
    name: &'static str,
    required: &'static [&'static str],
    optional: &'static [&'static str],
) -> Form {
    with_parts(name, required, optional, &[])
}

const fn with_parts(
    name: &'static str,
    required: &'static [&'static str],
    optional: &'static [&'static str],
    parts: &'static [&'static str],
) -> Form {
    Form {
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
) -> Form {
    Form {
        name,
        required,
        optional,
        shared: &[],
        parts,
        holds_actions: true,
    }
}

impl Form {
    /// The same, with the attributes that other elements have as well.
    const fn sharing(mut self, shared: &'static [&'static str]) -> Self {
        self.shared = shared;
        self
    }
}

/// Every action.
pub const ACTIONS: &[Form] = &[
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

/// What `executable`, `node` and its kin take: everything about a process.
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

/// What makes a process a node.
const NODE: &[&str] = &[
    "name",
    "pkg",
    "namespace",
    "args",
    "ros_args",
    "exec_name",
    "node-name",
];

/// What makes a node a managed one, which must have a name.
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

/// The form of a part, which depends on what it lies in.
fn part(owner: &str, name: &str) -> Option<Form> {
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

/// Holds a whole file against the forms.
pub fn check(root: &Element, faults: &mut Faults) {
    let form = block("launch", &[], &["version", "deprecated"], &[]);
    check_element(root, &form, false, faults);
}

fn check_element(element: &Element, form: &Form, is_action: bool, faults: &mut Faults) {
    let name = form.name;
    let conditions: &[&str] = if is_action { &["if", "unless"] } else { &[] };
    let known = form.required.iter().chain(form.optional);
    let known = known.chain(form.shared).chain(conditions);
    for attribute in &element.attributes {
        let wanted = attribute.name.as_str();
        if !known.clone().any(|one| *one == wanted) {
            let known: Vec<&str> = known.clone().copied().collect();
            let way_out = format!("it has: {}", listed(known.iter().copied()));
            let similar = did_you_mean(wanted, known, &way_out);
            faults.push(Fault::at(
                &attribute.place,
                format!("{name} has no attribute {wanted:?}{similar}"),
            ));
        }
        check_templates(attribute, faults);
    }
    for required in form.required {
        if element.attribute(required).is_none() {
            faults.push(Fault::at(
                &element.place,
                format!("{name} lacks the attribute {required:?}; write {required}=\"…\""),
            ));
        }
    }
    if element.attribute("if").is_some() && element.attribute("unless").is_some() {
        faults.push(Fault::at(
            &element.place,
            format!("{name} has both if and unless; write one: $(and …) and $(not …) combine them"),
        ));
    }
    for child in &element.children {
        check_child(child, form, faults);
    }
}

fn check_child(child: &Element, owner: &Form, faults: &mut Faults) {
    let name = child.name.as_str();
    if owner.parts.contains(&name)
        && let Some(form) = part(owner.name, name)
    {
        return check_element(child, &form, false, faults);
    }
    let actions: &[Form] = if owner.holds_actions { ACTIONS } else { &[] };
    if let Some(form) = actions.iter().find(|form| form.name == name) {
        return check_element(child, form, true, faults);
    }
    let known = actions.iter().map(|form| form.name);
    let known: Vec<&str> = known.chain(owner.parts.iter().copied()).collect();
    let way_out = match known.len() {
        0 => "it holds no elements".to_string(),
        _ => format!("there are: {}", known.join(", ")),
    };
    let similar = did_you_mean(name, known, &way_out);
    faults.push(Fault::at(
        &child.place,
        format!("{} has no element {name:?}{similar}", owner.name),
    ));
}

/// The form of substitutions, also where they are never evaluated.
fn check_templates(attribute: &Attribute, faults: &mut Faults) {
    let scalars = match &attribute.value {
        Value::Scalar(scalar) => std::slice::from_ref(scalar),
        Value::List(list) => list,
    };
    for scalar in scalars {
        let outcome = Template::parse(&scalar.text).and_then(|template| check_calls(&template));
        if let Err(message) = outcome {
            let message = format!("{}: {message}", attribute.name);
            faults.push(Fault::at(&attribute.place, message));
        }
    }
}

fn check_calls(template: &Template) -> Result<(), String> {
    for part in &template.parts {
        let Part::Call(call) = part else { continue };
        let names = SUBSTITUTIONS.iter().map(|known| known.0);
        if !names.clone().any(|name| name == call.name) {
            let way_out = format!(
                "there are: {}",
                names.clone().collect::<Vec<_>>().join(", ")
            );
            let similar = did_you_mean(&call.name, names, &way_out);
            return Err(format!(
                "there is no substitution $({}){similar}",
                call.name
            ));
        }
        call.arguments.iter().try_for_each(check_calls)?;
    }
    Ok(())
}
