//! Resolution of type names from the command line.

use crate::cli_context::MORE_INTERFACES;
use crate::console::Console;
use crate::suggest::did_you_mean;
use anyhow::{Result, bail};
use pteros::msg::library::InterfaceLibrary;
use std::io::{IsTerminal, stdin};

/// `name`, or the first line of standard input for `-`.
pub fn name_or_stdin(name: String) -> Result<String> {
    if name != "-" {
        return Ok(name);
    }
    if stdin().is_terminal() {
        bail!(
            "'-' reads the type from standard input, which is a terminal: pipe a name into it, as in: pteros topic type /chatter | pteros interface show -"
        );
    }
    let mut line = String::new();
    stdin().read_line(&mut line)?;
    if line.trim().is_empty() {
        bail!(
            "'-' reads the type from standard input, which was empty: the command before the pipe printed no type"
        );
    }
    Ok(line.trim().to_string())
}

/// The full name of an interface that is given in full (`std_msgs/msg/String`),
/// without its kind (`std_msgs/String`) or with its DDS name (`ShapeType`).
pub fn find_interface(library: &InterfaceLibrary, name: &str) -> Result<String> {
    match full_name(library, name) {
        Some(full) => Ok(full),
        None if !is_type_name(name) => bail!(
            "'{name}' is not the name of a type; write it as package/msg/Name, for example std_msgs/msg/String. Known ones: pteros interface list"
        ),
        None if library.names().any(|known| is_of_package(known, name)) => bail!(
            "'{name}' is a package, not a type; list its types with: pteros interface package {name}"
        ),
        None => bail!(
            "unknown type '{name}'{} Known ones: pteros interface list; {MORE_INTERFACES}",
            similar_types(library, name),
        ),
    }
}

/// `; did you mean A?` or a full stop. A name without its kind, as `std_msgs/Strin`, is
/// compared with each kind.
fn similar_types(library: &InterfaceLibrary, name: &str) -> String {
    let similar = did_you_mean(name, library.names());
    match name.split_once('/') {
        Some((package, short)) if similar == "." && !short.contains('/') => {
            let kinds = ["msg", "srv", "action"].into_iter();
            let full = kinds.map(|kind| format!("{package}/{kind}/{short}"));
            let mut similar = full.map(|full| did_you_mean(&full, library.names()));
            similar
                .find(|similar| similar != ".")
                .unwrap_or_else(|| ".".into())
        }
        _ => similar,
    }
}

/// Whether the text has only characters of ROS and DDS type names.
fn is_type_name(text: &str) -> bool {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || "_/:".contains(c);
    !text.is_empty() && text.chars().all(is_of_name)
}

fn is_of_package(type_name: &str, package: &str) -> bool {
    let rest = type_name.strip_prefix(package);
    rest.is_some_and(|rest| rest.starts_with('/'))
}

/// As [`find_interface`], but the interface must be a message.
pub fn find_message_type(library: &InterfaceLibrary, name: &str) -> Result<String> {
    // Event types of service introspection have no file of their own.
    if name.ends_with("_Event") && library.describe(name).is_ok() {
        return Ok(name.into());
    }
    let full = find_interface(library, name)?;
    if !full.contains("/msg/") {
        bail!(
            "'{name}' is {full}, which is not a message: a topic needs a type of the form package/msg/Name"
        );
    }
    Ok(full)
}

/// As [`find_interface`], but the interface must be a service.
pub fn find_service_type(library: &InterfaceLibrary, name: &str) -> Result<String> {
    let full = find_interface(library, name)?;
    if !full.contains("/srv/") {
        bail!(
            "'{name}' is {full}, which is not a service: write a type of the form package/srv/Name"
        );
    }
    Ok(full)
}

/// As [`find_interface`], but the interface must be an action.
pub fn find_action_type(library: &InterfaceLibrary, name: &str) -> Result<String> {
    let full = find_interface(library, name)?;
    if !full.contains("/action/") {
        bail!(
            "'{name}' is {full}, which is not an action: write a type of the form package/action/Name"
        );
    }
    Ok(full)
}

/// The full name of a known type, else the given name. The graph may have types
/// without a local definition.
pub fn full_or_as_written(library: &InterfaceLibrary, name: &str) -> String {
    full_name(library, name).unwrap_or_else(|| name.to_string())
}

/// Warns about a type that nothing in the graph has and no definition is known for, since
/// it is probably misspelt. An unused type is no error, as in ROS 2.
pub fn warn_of_unknown(console: Console, library: &InterfaceLibrary, name: &str) {
    if let Err(unknown) = find_interface(library, name) {
        console.note(format!("WARNING: {unknown}"));
    }
}

/// The full name, by ROS or DDS name.
fn full_name(library: &InterfaceLibrary, name: &str) -> Option<String> {
    let named = library.full_name(name);
    named.or_else(|| library.with_dds_name(name))
}
