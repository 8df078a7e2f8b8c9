//! Annotations for DDS features that `.msg` lacks, written as comments so that ROS
//! 2's own tools read the same file.
//!
//! ```text
//! # @appendable             before the first field: may grow at its end
//! # @final                  the same place: may not, the default
//! # @dds_name ShapeType     the same place: the type's name in DDS
//! string color  # @key      on a field's line: part of the key
//! ```
//! Text may follow. A comment with another word after `@` is an ordinary comment.
//! Annotations, like comments, do not change type hashes.

use super::{FieldSpec, StructSpec};
use crate::describe::Extensibility;
use alloc::format;
use alloc::string::{String, ToString};

/// Limit of a DDS type name; the limit of a topic name, since there is no other.
const DDS_NAME_BYTES_MAX: usize = 255;

/// One annotation as a comment line holds it.
pub(super) enum Annotation<'a> {
    Key,
    Extensibility(Extensibility),
    DdsName(&'a str),
}

/// The annotation at the start of a comment, and the text after it.
///
/// # Errors
/// An unsupported annotation.
pub(super) fn read(comment: &str) -> Result<Option<(Annotation<'_>, &str)>, String> {
    let Some(text) = comment.trim_start().strip_prefix('@') else {
        return Ok(None);
    };
    let (word, rest) = first_word(text);
    let annotation = match word {
        "key" => Annotation::Key,
        "final" => Annotation::Extensibility(Extensibility::Final),
        "appendable" => Annotation::Extensibility(Extensibility::Appendable),
        "mutable" => {
            return Err(
                "@mutable types, whose members travel with their numbers, are not spoken; write @appendable, or @final"
                    .to_string(),
            );
        }
        "dds_name" => {
            let (name, rest) = first_word(rest);
            check_dds_name(name)?;
            return Ok(Some((Annotation::DdsName(name), rest)));
        }
        _ => return Ok(None),
    };
    Ok(Some((annotation, rest)))
}

fn first_word(text: &str) -> (&str, &str) {
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    (word, rest.trim_start())
}

/// IDL's scoped names: `ShapeType`, `robots::Arm`.
fn check_dds_name(name: &str) -> Result<(), String> {
    let is_word = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    if name.len() <= DDS_NAME_BYTES_MAX && name.split("::").all(is_word) {
        return Ok(());
    }
    Err(format!(
        "@dds_name \"{name}\" is not a type name of DDS; write words of letters, digits and underscores with \"::\" between them, as in @dds_name ShapeType"
    ))
}

/// Takes the annotations out of a field's own comment.
pub(super) fn apply_to_field(field: &mut FieldSpec, comment: &str) -> Result<(), String> {
    let rest = match read(comment)? {
        Some((Annotation::Key, rest)) => {
            field.is_key = true;
            rest
        }
        Some(_) => return Err(misplaced(comment, "before the first field")),
        None => comment,
    };
    if !rest.is_empty() || !field.is_key {
        field.comments.push(rest.to_string());
    }
    Ok(())
}

/// Takes an annotation out of a comment line of its own; false for a comment.
pub(super) fn apply_to_struct(part: &mut StructSpec, comment: &str) -> Result<bool, String> {
    let Some((annotation, rest)) = read(comment)? else {
        return Ok(false);
    };
    match annotation {
        Annotation::Key => return Err(misplaced(comment, "on the line of its field, behind it")),
        _ if !part.fields.is_empty() => return Err(misplaced(comment, "before the first field")),
        Annotation::Extensibility(extensibility) => part.extensibility = extensibility,
        Annotation::DdsName(name) => part.dds_name = Some(name.to_string()),
    }
    if !rest.is_empty() {
        part.comments.push(rest.to_string());
    }
    Ok(true)
}

/// Services and actions have neither instances nor types that may grow.
pub(super) fn refuse_outside_messages(comment: &str) -> Result<(), String> {
    match read(comment)? {
        Some(_) => Err(misplaced(comment, "in a .msg file only")),
        None => Ok(()),
    }
}

/// On a constant's line.
pub(super) fn refuse_on_constant(comment: &str) -> Result<(), String> {
    match read(comment)? {
        Some(_) => Err(misplaced(comment, "on no constant")),
        None => Ok(()),
    }
}

fn misplaced(comment: &str, place: &str) -> String {
    let word = first_word(comment.trim_start()).0;
    format!("{word} stands {place}; move it there, or leave out the \"@\" for a plain comment")
}
