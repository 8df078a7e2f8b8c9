//! Resolution of type names from the command line.

use crate::cli_context::MORE_INTERFACES;
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
        None => bail!(
            "unknown type '{name}'{} Known ones: pteros interface list; {MORE_INTERFACES}",
            did_you_mean(name, library.names()),
        ),
    }
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

/// The full name, by ROS or DDS name.
fn full_name(library: &InterfaceLibrary, name: &str) -> Option<String> {
    let named = library.full_name(name);
    named.or_else(|| library.with_dds_name(name))
}
