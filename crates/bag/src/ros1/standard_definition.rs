//! Definitions of ROS 1's standard types, derived from those of ROS 2, for connections
//! without a definition.
//!
//! Most standard types have the same fields in both. Headers have one more field in ROS
//! 1.

use pteros::msg::describe::{TypeDescription, type_id};

use super::definition::{Count, Definitions, Ros1Field, Ros1Type};
use super::plan::{PLACEHOLDER, TargetCount, element_and_count};

/// Type of `/rosout`, the only common type with other fields.
const LOG: &str = "Header header\nbyte level\nstring name\nstring msg\nstring file\nstring function\nuint32 line\nstring[] topics\n==========\nMSG: std_msgs/Header\nuint32 seq\ntime stamp\nstring frame_id\n";

/// Derives the ROS 1 definition of a type from its ROS 2 counterpart.
///
/// # Errors
/// The counterpart uses a type that ROS 1 lacks.
pub(super) fn standard_definition(
    type_name: &str,
    pair: &TypeDescription,
) -> Result<Definitions, String> {
    if type_name == "rosgraph_msgs/Log" {
        return Definitions::parse(type_name, LOG);
    }
    let outer = &pair.type_description;
    let mut all = Definitions::default();
    for ty in std::iter::once(outer).chain(&pair.referenced) {
        let mut fields = Vec::new();
        if ty.type_name == "std_msgs/msg/Header" {
            fields.push(Ros1Field {
                name: "seq".to_owned(),
                ty: Ros1Type::Uint32,
                count: Count::One,
            });
        }
        for field in ty.fields.iter().filter(|field| field.name != PLACEHOLDER) {
            let (element, count) = element_and_count(&field.field_type);
            fields.push(Ros1Field {
                name: field.name.clone(),
                ty: type_of_element(element, &field.field_type.nested_type_name)?,
                count: match count {
                    TargetCount::One => Count::One,
                    TargetCount::Fixed(count) => Count::Fixed(count),
                    TargetCount::Sequence(_) => Count::Variable,
                },
            });
        }
        let name = if ty.type_name == outer.type_name {
            type_name.to_owned()
        } else {
            ros1_name(&ty.type_name)
        };
        all.messages.insert(name, fields);
    }
    Ok(all)
}

/// `geometry_msgs/Point` for `geometry_msgs/msg/Point`.
fn ros1_name(ros2: &str) -> String {
    ros2.replacen("/msg/", "/", 1)
}

fn type_of_element(element: u8, nested: &str) -> Result<Ros1Type, String> {
    Ok(match element {
        type_id::NESTED => match nested {
            "builtin_interfaces/msg/Time" => Ros1Type::Time,
            "builtin_interfaces/msg/Duration" => Ros1Type::Duration,
            other => Ros1Type::Message(ros1_name(other)),
        },
        type_id::BOOLEAN => Ros1Type::Bool,
        type_id::INT8 | type_id::BYTE => Ros1Type::Int8,
        type_id::UINT8 => Ros1Type::Uint8,
        type_id::INT16 => Ros1Type::Int16,
        type_id::UINT16 => Ros1Type::Uint16,
        type_id::INT32 => Ros1Type::Int32,
        type_id::UINT32 => Ros1Type::Uint32,
        type_id::INT64 => Ros1Type::Int64,
        type_id::UINT64 => Ros1Type::Uint64,
        type_id::FLOAT => Ros1Type::Float32,
        type_id::DOUBLE => Ros1Type::Float64,
        type_id::STRING | type_id::BOUNDED_STRING => Ros1Type::String,
        other => return Err(format!("type id {other}, which ROS 1 does not have")),
    })
}
