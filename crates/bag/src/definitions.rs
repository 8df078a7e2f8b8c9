//! Message definitions of a bag: the text of a type, followed by its nested types after
//! separator lines.
//!
//! Pteros writes `.msg` texts (schema encoding `ros2msg`). rosbag2 also writes IDL
//! (`ros2idl`), and the `.srv` text for service events (`unknown`). There each section
//! begins with a separator line and a heading, the first one too.

use pteros::msg::dynamic::DynamicType;
use pteros::msg::library::{InterfaceLibrary, split_full_name};
use pteros::msg::schema::is_idl;
use pteros::type_description::SEPARATOR_WIDTH;
pub use pteros::type_description::definition_text;

use crate::topic::BagTopic;

/// The serialization format of ROS 2.
pub(crate) const CDR: &str = "cdr";
/// Headings of sections.
const MESSAGE_HEADING: &str = "MSG:";
const IDL_HEADING: &str = "IDL:";
const SERVICE_HEADING: &str = "SRV:";
/// Schema encodings of definitions.
const ROS2_MSG: &str = "ros2msg";
const ROS2_IDL: &str = "ros2idl";
/// What rosbag2 calls the `.srv` text of a service.
const UNKNOWN: &str = "unknown";

/// The text of a schema if it is a definition of ROS 2, or an empty one.
pub(crate) fn readable_definition(encoding: &str, text: &str) -> String {
    match encoding {
        // Definition of an empty message.
        ROS2_MSG if text.is_empty() => "\n".to_owned(),
        ROS2_MSG | ROS2_IDL => text.to_owned(),
        UNKNOWN if first_heading(text) == Some(SERVICE_HEADING) => text.to_owned(),
        _ => String::new(),
    }
}

/// Schema encoding of a definition.
pub(crate) fn schema_encoding(definition: &str) -> &'static str {
    match first_heading(definition) {
        _ if definition.is_empty() => "",
        Some(SERVICE_HEADING) => UNKNOWN,
        Some(IDL_HEADING) => ROS2_IDL,
        None if is_idl(definition) => ROS2_IDL,
        _ => ROS2_MSG,
    }
}

fn is_separator(line: &str) -> bool {
    line.len() >= SEPARATOR_WIDTH && line.bytes().all(|byte| byte == b'=')
}

/// The kind of the first section, if the text begins with a heading.
fn first_heading(text: &str) -> Option<&'static str> {
    let mut lines = text.lines();
    let heading = lines.next().filter(|line| is_separator(line));
    let heading = heading.and_then(|_| lines.next())?;
    let known = [MESSAGE_HEADING, IDL_HEADING, SERVICE_HEADING];
    known.into_iter().find(|kind| heading.starts_with(kind))
}

/// Type of a topic's messages, from the topic's own definition. Messages in formats other
/// than CDR have none: they are neither decoded nor published.
///
/// # Errors
/// The messages are no CDR, or the type has no description: with the way out.
pub fn message_type(topic: &BagTopic, library: &InterfaceLibrary) -> Result<DynamicType, String> {
    let format = topic.serialization_format.as_str();
    if !["", CDR].contains(&format) {
        return Err(format!(
            "its messages are {format}, and Pteros decodes and publishes {CDR} alone; convert them with the tool that recorded them"
        ));
    }
    let ty = type_of(&topic.type_name, &topic.definition, library)?;
    // The hash shows that the recorder had another definition, which the bag lacks.
    let recorded = topic.type_hash.as_str();
    if topic.definition.trim().is_empty()
        && is_type_hash(recorded)
        && ty.hash().to_string() != recorded
    {
        return Err(format!(
            "the bag has no definition of {}, and the known one has the hash {} instead of {recorded}; give the recorded package with --interfaces DIR",
            topic.type_name,
            ty.hash()
        ));
    }
    Ok(ty)
}

/// Whether a text is a complete RIHS01 hash.
fn is_type_hash(text: &str) -> bool {
    let digits = text.strip_prefix("RIHS01_").unwrap_or_default();
    digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Builds the type from a definition in a bag, or from `library` if the bag has none, or
/// an empty one of a type that is known. Nested types that the bag lacks are those of
/// `library`.
///
/// # Errors
/// Neither describes the type: with the way out.
pub fn type_of(
    type_name: &str,
    definition: &str,
    library: &InterfaceLibrary,
) -> Result<DynamicType, String> {
    let from_library = || {
        library.describe(type_name).map_err(|error| {
            format!(
                "the bag has no usable definition of {type_name}, and {error}; give its package with --interfaces DIR"
            )
        })
    };
    let from_bag = || {
        let own = own_definitions(type_name, definition);
        own.describe(type_name).or_else(|error| {
            // Only with a definition of the type itself: the rest may be missing.
            own.file(defined_name(type_name)).map_err(|_| error)?;
            let mut all = library.clone();
            all.merge(&own);
            all.describe(type_name)
        })
    };
    let described = if definition.trim().is_empty() {
        from_library().or_else(|error| match definition {
            "" => Err(error),
            _ => from_bag().map_err(|_| error),
        })?
    } else {
        from_bag().or_else(|_| from_library())?
    };
    DynamicType::new(&described).map_err(|error| format!("{type_name}: {error}"))
}

/// The service of its event type, or the type itself.
fn defined_name(type_name: &str) -> &str {
    let service = type_name.strip_suffix("_Event");
    service
        .filter(|service| service.contains("/srv/"))
        .unwrap_or(type_name)
}

/// The definitions of a bag's text.
fn own_definitions(type_name: &str, definition: &str) -> InterfaceLibrary {
    let mut own = InterfaceLibrary::new();
    let (mut name, mut rest) = match first_heading(definition) {
        Some(_) => (
            String::new(),
            definition.split_once('\n').unwrap_or_default().1,
        ),
        None => (type_name.to_owned(), definition),
    };
    let mut text = String::new();
    while !rest.is_empty() {
        let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
        rest = after;
        let line = line.strip_suffix('\r').unwrap_or(line);
        if is_separator(line) {
            insert(&mut own, &name, std::mem::take(&mut text));
            name.clear();
        } else if name.is_empty() {
            name = full_name(line);
        } else {
            text.push_str(line);
            text.push('\n');
        }
    }
    insert(&mut own, &name, text);
    own
}

/// The name in a heading: `MSG: std_msgs/Header` is `std_msgs/msg/Header`.
fn full_name(heading: &str) -> String {
    let (kind, name) = heading
        .split_at_checked(MESSAGE_HEADING.len())
        .unwrap_or_default();
    let (kind, name) = match kind {
        SERVICE_HEADING => ("srv", name),
        MESSAGE_HEADING | IDL_HEADING => ("msg", name),
        _ => ("msg", heading),
    };
    let name = name.trim();
    match name.split('/').count() {
        2 => name.replacen('/', &format!("/{kind}/"), 1),
        _ => name.to_owned(),
    }
}

fn insert(library: &mut InterfaceLibrary, name: &str, text: String) {
    if let Some((package, kind, name)) = split_full_name(name) {
        library.insert_text(package, kind, name, text, "the bag");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_standard_type_is_the_same_after_a_bag() {
        let library = pteros::interfaces::library();
        let nothing = InterfaceLibrary::new();
        let messages = library.names().filter(|name| name.contains("/msg/"));
        let mut count = 0;
        for name in messages {
            let described = library.describe(name).unwrap();
            let text = definition_text(&described, library);
            let read = type_of(name, &text, &nothing).unwrap();
            assert_eq!(read.hash(), library.type_hash(name).unwrap(), "{name}");
            count += 1;
        }
        assert!(count > 150, "{count}");
    }
}
