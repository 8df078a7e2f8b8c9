//! The texts of types, as ROS 2 tells them: definitions as they stand in files, constants
//! and comments included, of the standard packages and of those that types were
//! generated from. Of types made at run time they are written from the descriptions,
//! fields and defaults.

use std::fmt::Write as _;

use pteros_interfaces::type_description_interfaces::msg::TypeSource;
use pteros_msg::describe::{Field, IndividualTypeDescription, TypeDescription, type_id};
use pteros_msg::library::InterfaceLibrary;

/// One for each type. What stands in no file of its own, as the request of a service,
/// is `implicit` and has no text, as in ROS 2.
/// `texts` are those that the type was generated from, where it is no standard one.
pub(super) fn of(
    description: &TypeDescription,
    texts: Option<&InterfaceLibrary>,
) -> Vec<TypeSource> {
    let in_file = |ty: &IndividualTypeDescription| {
        let standard = pteros_interfaces::library();
        let mut libraries = texts.into_iter().chain([standard]);
        libraries.find_map(|library| in_file(library, ty))
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
        found.map(text).unwrap_or_default()
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
            _ => ("msg", in_file(ty).unwrap_or_else(|| text(ty))),
        };
        TypeSource {
            type_name: ty.type_name.clone(),
            encoding: encoding.into(),
            raw_file_contents,
        }
    };
    all.map(source).collect()
}

/// The definition that a library has of just that type.
fn in_file(library: &InterfaceLibrary, ty: &IndividualTypeDescription) -> Option<String> {
    let text = library.text(&ty.type_name)?;
    let known = library.describe(&ty.type_name).ok()?;
    (known.type_description == *ty).then(|| text.to_owned())
}

/// A line for each field.
fn text(ty: &IndividualTypeDescription) -> String {
    let mut out = String::new();
    for field in &ty.fields {
        // What an empty message is filled with on the wire is in no file.
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
        // Kinds of IDL that no `.msg` can name.
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

/// Descriptions write lists as `(1, 2)`, with a comma behind a single one, and texts
/// bare.
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

    /// Text that is read again makes the same type: from files, and written here.
    fn check<T: Message>() {
        let description = T::type_description();
        let all = [&description.type_description]
            .into_iter()
            .chain(&description.referenced);
        let told = of(description, None).into_iter().map(|source| {
            assert_eq!(source.encoding, "msg");
            (source.type_name, source.raw_file_contents)
        });
        let written = all.map(|ty| (ty.type_name.clone(), text(ty)));
        for texts in [told.collect::<Vec<_>>(), written.collect()] {
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
    fn constants_and_comments_are_told_where_a_file_has_them() {
        let told = of(action_msgs::msg::GoalStatus::type_description(), None);
        let text = &told[0].raw_file_contents;
        assert!(text.contains("int8 STATUS_CANCELING"), "{text}");
        let mut other = action_msgs::msg::GoalStatus::type_description().clone();
        // Another type of that name is not ours.
        other.type_description.fields.pop();
        let told = of(&other, None);
        let text = &told[0].raw_file_contents;
        assert_eq!(text, "action_msgs/GoalInfo goal_info\n");
    }

    #[test]
    fn texts_make_the_types_that_they_were_written_from() {
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
    fn a_service_has_its_file_and_its_parts_have_none() {
        let description = super::super::of_service::<pteros_interfaces::std_srvs::srv::Trigger>();
        let sources = of(&description, None);
        let text = |name: &str| {
            let found = sources
                .iter()
                .find(|source| source.type_name == name)
                .unwrap();
            (found.encoding.as_str(), found.raw_file_contents.as_str())
        };
        let file = "---\nbool success\nstring message\n";
        assert_eq!(text("std_srvs/srv/Trigger"), ("srv", file));
        assert_eq!(text("std_srvs/srv/Trigger_Response"), ("implicit", ""));
    }
}
