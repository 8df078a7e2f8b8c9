//! Message definitions in a bag: the type's `.msg` text, and those of all nested types
//! behind separator lines (schema encoding `ros2msg`).

use pteros::msg::describe::{IndividualTypeDescription, TypeDescription};
use pteros::msg::dynamic::DynamicType;
use pteros::msg::library::{InterfaceLibrary, split_full_name};
use pteros::msg::schema::is_idl;
use pteros::type_description::definition_text_of;

/// Width of the line between two definitions.
const SEPARATOR_WIDTH: usize = 80;

/// The text of a type with its nested types. Texts of `library` are taken where they
/// describe the same type, with constants and comments.
pub fn definition_text(description: &TypeDescription, library: &InterfaceLibrary) -> String {
    let mut out = text_of(&description.type_description, library);
    if out.is_empty() {
        // An empty message has a definition: an empty text means that nobody knows it.
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

/// Builds the type from a definition in a bag, or from `library` where the bag has
/// none.
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
