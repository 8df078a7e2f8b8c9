//! Message definitions of a bag: the `.msg` text of a type, followed by its nested types
//! after separator lines (schema encoding `ros2msg`).

use pteros::msg::describe::{IndividualTypeDescription, TypeDescription};
use pteros::msg::dynamic::DynamicType;
use pteros::msg::library::{InterfaceLibrary, split_full_name};
use pteros::msg::schema::is_idl;
use pteros::type_description::definition_text_of;

use crate::topic::BagTopic;

/// The serialization format of ROS 2.
pub(crate) const CDR: &str = "cdr";
/// Width of the line between two definitions.
const SEPARATOR_WIDTH: usize = 80;

/// Definition text of a type with its nested types. A text of `library` is used if it
/// describes the same type, because it has constants and comments.
pub fn definition_text(description: &TypeDescription, library: &InterfaceLibrary) -> String {
    let mut out = text_of(&description.type_description, library);
    if out.is_empty() {
        // Not empty for an empty message, because an empty text means unknown.
        out.push('\n');
    }
    for nested in &description.referenced {
        if !out.ends_with('\n') {
            out.push('\n');
        }
        out.extend(std::iter::repeat_n('=', SEPARATOR_WIDTH));
        out.push_str("\nMSG: ");
        out.push_str(&nested.type_name);
        out.push('\n');
        out.push_str(&text_of(nested, library));
    }
    out
}

fn text_of(ty: &IndividualTypeDescription, library: &InterfaceLibrary) -> String {
    let known = || {
        let is_message = ty.type_name.split('/').nth(1) == Some("msg");
        let text = library
            .text(&ty.type_name)
            .filter(|text| is_message && !is_idl(text))?;
        let described = library.describe(&ty.type_name).ok()?;
        (described.type_description == *ty).then(|| text.to_owned())
    };
    known().unwrap_or_else(|| definition_text_of(ty))
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
    if topic.definition.is_empty() && is_type_hash(recorded) && ty.hash().to_string() != recorded {
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

/// Builds the type from a definition in a bag, or from `library` if the bag has none.
///
/// # Errors
/// Neither describes the type: with the way out.
pub fn type_of(
    type_name: &str,
    definition: &str,
    library: &InterfaceLibrary,
) -> Result<DynamicType, String> {
    let mut own = InterfaceLibrary::new();
    let is_message = type_name.split('/').nth(1) == Some("msg");
    if is_message && !definition.is_empty() && !is_idl(definition) {
        let mut name = type_name.to_owned();
        let mut text = String::new();
        for line in definition.lines() {
            if line.len() >= SEPARATOR_WIDTH && line.bytes().all(|byte| byte == b'=') {
                insert(&mut own, &name, std::mem::take(&mut text));
                name.clear();
            } else if name.is_empty() {
                let given = line.trim_start_matches("MSG:").trim();
                name = match given.split('/').count() {
                    2 => given.replacen('/', "/msg/", 1),
                    _ => given.to_owned(),
                };
            } else {
                text.push_str(line);
                text.push('\n');
            }
        }
        insert(&mut own, &name, text);
    }
    let from_bag = own.describe(type_name).ok();
    let described = match from_bag {
        Some(described) => described,
        None => library.describe(type_name).map_err(|error| {
            format!(
                "the bag has no usable definition of {type_name}, and {error}; give its package with --interfaces DIR"
            )
        })?,
    };
    DynamicType::new(&described).map_err(|error| format!("{type_name}: {error}"))
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
