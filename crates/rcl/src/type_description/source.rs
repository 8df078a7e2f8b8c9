//! Type sources: the definition texts of types, as ROS 2 sends them.
//!
//! For standard packages, and for those that types were generated from, the text is
//! that of the file, with constants and comments. For types created at run time it
//! is generated from the description: fields and defaults.

use std::fmt::Write as _;

use pteros_interfaces::type_description_interfaces::msg::TypeSource;
use pteros_msg::describe::{Field, IndividualTypeDescription, TypeDescription, type_id};
use pteros_msg::library::InterfaceLibrary;
use pteros_msg::schema::is_idl;

/// One source per type.
///
/// A type without a file of its own, such as the request of a service, is
/// `implicit` and has no text, as in ROS 2. `texts` are the definitions that the
/// type was generated from, if it is not a standard one.
pub(super) fn sources_of(
    description: &TypeDescription,
    texts: Option<&InterfaceLibrary>,
) -> Vec<TypeSource> {
    let in_file = |ty: &IndividualTypeDescription| {
        let standard = pteros_interfaces::library();
        let mut libraries = texts.into_iter().chain([standard]);
        libraries.find_map(|library| text_in_library(library, ty))
    };
    let all = [&description.type_description]
        .into_iter()
        .chain(&description.referenced);
    let find = |suffix: &str| {
        let name = format!("{}{suffix}", description.type_description.type_name);
        let found = description
            .referenced
            .iter()
            .find(|ty| ty.type_name == name);
        found.map(definition_text_of).unwrap_or_default()
    };
    let source = |ty: &IndividualTypeDescription| {
        let mut parts = ty.type_name.split('/').skip(1);
        let (kind, name) = (parts.next().unwrap_or("msg"), parts.next().unwrap_or(""));
        let (encoding, raw_file_contents) = match kind {
            "srv" if !name.contains('_') => (
                "srv",
                in_file(ty)
                    .unwrap_or_else(|| format!("{}---\n{}", find("_Request"), find("_Response"))),
            ),
            "srv" | "action" => ("implicit", String::new()),
            _ => ("msg", in_file(ty).unwrap_or_else(|| definition_text_of(ty))),
        };
        let encoding = match encoding {
            "msg" | "srv" if is_idl(&raw_file_contents) => "idl",
            encoding => encoding,
        };
        TypeSource {
            type_name: ty.type_name.clone(),
            encoding: encoding.into(),
            raw_file_contents,
        }
    };
    all.map(source).collect()
}

/// The library's definition of exactly that type.
fn text_in_library(library: &InterfaceLibrary, ty: &IndividualTypeDescription) -> Option<String> {
    let text = library.text(&ty.type_name)?;
    let known = library.describe(&ty.type_name).ok()?;
    (known.type_description == *ty).then(|| text.to_owned())
}

/// Width of the line between two definitions in one text.
pub const SEPARATOR_WIDTH: usize = 80;

/// Definition text of a type with its nested types, as bags and viewers have it (schema
/// encoding `ros2msg`). A text of `library` is used if it describes the same type, because
/// it has constants and comments.
pub fn definition_text(description: &TypeDescription, library: &InterfaceLibrary) -> String {
    let text_of = |ty: &IndividualTypeDescription| {
        let is_message = ty.type_name.split('/').nth(1) == Some("msg");
        let known = is_message.then(|| text_in_library(library, ty)).flatten();
        let known = known.filter(|text| !is_idl(text));
        known.unwrap_or_else(|| definition_text_of(ty))
    };
    let mut out = text_of(&description.type_description);
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
        out.push_str(&text_of(nested));
    }
    out
}

/// The `.msg` text of a type: one line per field, with its default. It has no
/// constants and comments, which a description does not carry.
pub fn definition_text_of(ty: &IndividualTypeDescription) -> String {
    let mut out = String::new();
    for field in &ty.fields {
        // The placeholder member of an empty message is in no file.
        if field.name == PLACEHOLDER {
            continue;
        }
        // Writing to a String does not fail.
        let _ = write!(out, "{} {}", type_text(field), field.name);
        if !field.default_value.is_empty() {
            let _ = write!(out, " {}", default_text(field));
        }
        out.push('\n');
    }
    out
}

const PLACEHOLDER: &str = "structure_needs_at_least_one_member";

fn type_text(field: &Field) -> String {
    let ty = &field.field_type;
    let (shape, element) = (ty.type_id / 48 * 48, ty.type_id % 48);
    let mut text = match element {
        type_id::NESTED => {
            let name = &ty.nested_type_name;
            name.replacen("/msg/", "/", 1)
        }
        type_id::INT8 => "int8".into(),
        type_id::UINT8 => "uint8".into(),
        type_id::INT16 => "int16".into(),
        type_id::UINT16 => "uint16".into(),
        type_id::INT32 => "int32".into(),
        type_id::UINT32 => "uint32".into(),
        type_id::INT64 => "int64".into(),
        type_id::UINT64 => "uint64".into(),
        type_id::FLOAT => "float32".into(),
        type_id::DOUBLE => "float64".into(),
        type_id::BOOLEAN => "bool".into(),
        type_id::BYTE => "byte".into(),
        type_id::STRING => "string".into(),
        type_id::WSTRING => "wstring".into(),
        type_id::BOUNDED_STRING => format!("string<={}", ty.string_capacity),
        type_id::BOUNDED_WSTRING => format!("wstring<={}", ty.string_capacity),
        // IDL kinds that `.msg` files cannot express.
        other => format!("type_{other}"),
    };
    let _ = match shape {
        type_id::ARRAY => write!(text, "[{}]", ty.capacity),
        type_id::BOUNDED_SEQUENCE => write!(text, "[<={}]", ty.capacity),
        type_id::UNBOUNDED_SEQUENCE => write!(text, "[]"),
        _ => Ok(()),
    };
    text
}

/// Descriptions write lists as `(1, 2)`, a single element with a trailing comma,
/// and strings without quotes.
fn default_text(field: &Field) -> String {
    let text = &field.default_value;
    let list = text.strip_prefix('(').and_then(|t| t.strip_suffix(')'));
    match (field.field_type.type_id, list) {
        (id, Some(list)) if id > 48 => format!("[{}]", list.trim_end_matches(',')),
        (
            type_id::STRING | type_id::WSTRING | type_id::BOUNDED_STRING | type_id::BOUNDED_WSTRING,
            _,
        ) => {
            format!("{text:?}")
        }
        _ => text.clone(),
    }
}

#[cfg(test)]
mod tests {
    use pteros_interfaces::{action_msgs, geometry_msgs, test_msgs, type_description_interfaces};
    use pteros_msg::hash::rihs01;
    use pteros_msg::library::split_full_name;
    use pteros_msg::message::Message;

    use super::*;

    /// Parsing the text yields the same type, for texts of files and generated
    /// ones.
    fn check<T: Message>() {
        let description = T::type_description();
        let all = [&description.type_description]
            .into_iter()
            .chain(&description.referenced);
        let sources = sources_of(description, None).into_iter().map(|source| {
            assert_eq!(source.encoding, "msg");
            (source.type_name, source.raw_file_contents)
        });
        let written = all.map(|ty| (ty.type_name.clone(), definition_text_of(ty)));
        for texts in [sources.collect::<Vec<_>>(), written.collect()] {
            let mut library = InterfaceLibrary::new();
            for (full, text) in texts {
                let (package, kind, name) = split_full_name(&full).unwrap();
                library.insert_text(package, kind, name, text, "told");
            }
            let described = library.describe(T::TYPE_NAME).unwrap();
            assert_eq!(rihs01(&described), T::TYPE_HASH, "{}", T::TYPE_NAME);
            assert_eq!(&described, description);
        }
    }

    #[test]
    fn constants_and_comments_are_kept_where_a_file_has_them() {
        let sources = sources_of(action_msgs::msg::GoalStatus::type_description(), None);
        let text = &sources[0].raw_file_contents;
        assert!(text.contains("int8 STATUS_CANCELING"), "{text}");
        let mut other = action_msgs::msg::GoalStatus::type_description().clone();
        // A different type of the same name has no source here.
        other.type_description.fields.pop();
        let sources = sources_of(&other, None);
        let text = &sources[0].raw_file_contents;
        assert_eq!(text, "action_msgs/GoalInfo goal_info\n");
    }

    #[test]
    fn definition_text_ofs_parse_to_the_same_types() {
        check::<geometry_msgs::msg::PoseWithCovarianceStamped>();
        check::<type_description_interfaces::msg::TypeDescription>();
        check::<test_msgs::msg::Defaults>();
        check::<test_msgs::msg::Arrays>();
        check::<test_msgs::msg::BoundedSequences>();
        check::<test_msgs::msg::UnboundedSequences>();
        check::<test_msgs::msg::Strings>();
        check::<test_msgs::msg::Empty>();
    }

    #[test]
    fn a_service_has_a_source_and_its_messages_are_implicit() {
        let description = pteros_msg::type_support::service_description::<
            pteros_interfaces::std_srvs::srv::Trigger,
        >();
        let sources = sources_of(&description, None);
        let text = |name: &str| {
            let found = sources
                .iter()
                .find(|source| source.type_name == name)
                .unwrap();
            (found.encoding.as_str(), found.raw_file_contents.as_str())
        };
        let (encoding, file) = text("std_srvs/srv/Trigger");
        assert!(
            encoding == "srv" && file.contains("\n---\nbool success"),
            "{file}"
        );
        assert_eq!(text("std_srvs/srv/Trigger_Response"), ("implicit", ""));
    }
}
