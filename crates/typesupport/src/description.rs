//! Type descriptions from introspection, for content filters, which refer to fields by
//! name.
//!
//! They are built for the first filter. Most subscriptions have none.

use std::fmt;

use pteros_msg::describe::{Field, FieldType, IndividualTypeDescription, TypeDescription, type_id};
use pteros_msg::dynamic::DynamicType;
use pteros_runtime::content_filter::BuildType;

use crate::introspection::{MessageMember, MessageMembers};
use crate::members::{self, DEPTH_MAX, type_id as introspected};

/// A type given by its introspection.
pub struct IntrospectedType {
    members: *const MessageMembers,
}

// SAFETY: rosidl's members are constants of a library that is never unloaded.
unsafe impl Send for IntrospectedType {}
// SAFETY: as above.
unsafe impl Sync for IntrospectedType {}

impl IntrospectedType {
    /// # Safety
    /// The members are those of a type of rosidl, which live for ever.
    pub unsafe fn new(members: &MessageMembers) -> Self {
        Self { members }
    }

    /// Builds the description. `None` for a type with a member that ROS 2 does not
    /// describe.
    pub fn describe(&self) -> Option<TypeDescription> {
        let mut referenced = Vec::new();
        // SAFETY: by contract of `new`.
        let type_description =
            unsafe { describe(self.members.as_ref()?, &mut referenced, DEPTH_MAX) }?;
        referenced.sort_by(|one, other| one.type_name.cmp(&other.type_name));
        Some(TypeDescription {
            type_description,
            referenced,
        })
    }
}

impl fmt::Debug for IntrospectedType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: by contract of `new`.
        let name = unsafe { self.members.as_ref() }.map(|members| unsafe { type_name(members) });
        f.debug_tuple("IntrospectedType").field(&name).finish()
    }
}

impl BuildType for IntrospectedType {
    fn build(&self) -> Option<DynamicType> {
        DynamicType::new(&self.describe()?).ok()
    }
}

/// `pkg/msg/Name`.
unsafe fn type_name(members: &MessageMembers) -> String {
    // SAFETY: as for `IntrospectedType::new`.
    let (namespace, name) = unsafe { members::names(members) };
    let namespace = namespace.replace("__", "/").replace("::", "/");
    format!("{namespace}/{name}")
}

unsafe fn describe(
    members: &MessageMembers,
    referenced: &mut Vec<IndividualTypeDescription>,
    depth: usize,
) -> Option<IndividualTypeDescription> {
    let depth = depth.checked_sub(1)?;
    let mut fields = Vec::new();
    // SAFETY: as for `IntrospectedType::new`.
    for member in unsafe { members::list(members) } {
        // SAFETY: as above.
        fields.push(unsafe { field(member, referenced, depth) }?);
    }
    Some(IndividualTypeDescription {
        // SAFETY: as above.
        type_name: unsafe { type_name(members) },
        fields,
        ..IndividualTypeDescription::default()
    })
}

unsafe fn field(
    member: &MessageMember,
    referenced: &mut Vec<IndividualTypeDescription>,
    depth: usize,
) -> Option<Field> {
    let mut field_type = FieldType {
        type_id: element_type(member)?,
        string_capacity: u64::try_from(member.string_upper_bound).ok()?,
        ..FieldType::default()
    };
    if member.is_array {
        field_type.capacity = u64::try_from(member.array_size).ok()?;
        field_type.type_id += match (member.array_size, member.is_upper_bound) {
            (0, _) => type_id::UNBOUNDED_SEQUENCE,
            (_, true) => type_id::BOUNDED_SEQUENCE,
            (_, false) => type_id::ARRAY,
        };
    }
    if member.type_id == introspected::MESSAGE {
        // SAFETY: as for `IntrospectedType::new`.
        let nested = unsafe { members::nested(member) }?;
        // SAFETY: as above.
        field_type.nested_type_name = unsafe { type_name(nested) };
        let is_known =
            |one: &IndividualTypeDescription| one.type_name == field_type.nested_type_name;
        if !referenced.iter().any(is_known) {
            // SAFETY: as above.
            let described = unsafe { describe(nested, referenced, depth) }?;
            if !referenced.iter().any(is_known) {
                referenced.push(described);
            }
        }
    }
    Some(Field {
        // SAFETY: as above.
        name: unsafe { members::member_name(member) }.into(),
        field_type,
        ..Field::default()
    })
}

/// The number in type_description_interfaces of an introspection type.
fn element_type(member: &MessageMember) -> Option<u8> {
    let is_bounded = member.string_upper_bound > 0;
    Some(match member.type_id & !introspected::BUFFER {
        1 => type_id::FLOAT,
        2 => type_id::DOUBLE,
        4 | 8 => type_id::UINT8,
        introspected::BOOLEAN => type_id::BOOLEAN,
        7 => type_id::BYTE,
        9 => type_id::INT8,
        10 => type_id::UINT16,
        11 => type_id::INT16,
        12 => type_id::UINT32,
        13 => type_id::INT32,
        14 => type_id::UINT64,
        15 => type_id::INT64,
        introspected::STRING if is_bounded => type_id::BOUNDED_STRING,
        introspected::STRING => type_id::STRING,
        introspected::WSTRING if is_bounded => type_id::BOUNDED_WSTRING,
        introspected::WSTRING => type_id::WSTRING,
        introspected::MESSAGE => type_id::NESTED,
        _ => return None,
    })
}
