//! Type descriptions: the model of `type_description_interfaces`.
//!
//! One description holds a type's fields and every type that it refers to, at any
//! depth. RIHS01 type hashes are computed from it, `~/get_type_description` returns
//! it, and a dynamic message needs nothing else. Beside ROS 2's content it has what
//! DDS adds: key, extensibility and name, which are not hashed. These are plain
//! values. Names are not resolved here; `dynamic::DynamicType::new` does that.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

/// A type with everything it refers to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypeDescription {
    /// The type itself.
    pub type_description: IndividualTypeDescription,
    /// All types reachable from it, sorted by name, each once.
    pub referenced: Vec<IndividualTypeDescription>,
}

/// How a type may evolve (XTypes 1.3 §7.2.4.2).
///
/// Mutable types, whose members are sent with their ids, are not supported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Extensibility {
    /// Not at all; the extensibility of ROS 2's types.
    #[default]
    Final,
    /// Members may be added at the end. XCDR2 puts the structure's size before it,
    /// and a reader skips or defaults members that only one side has.
    Appendable,
}

/// The description of a service, from those of its request, response and event.
pub(crate) fn describe_service(
    name: &str,
    request: &TypeDescription,
    response: &TypeDescription,
    event: &TypeDescription,
) -> TypeDescription {
    let parts = [
        ("request_message", request),
        ("response_message", response),
        ("event_message", event),
    ];
    let mut referenced = BTreeMap::new();
    let mut fields = Vec::new();
    for (field, part) in parts {
        let own = &part.type_description;
        fields.push(Field {
            name: field.into(),
            field_type: FieldType {
                type_id: type_id::NESTED,
                nested_type_name: own.type_name.clone(),
                ..FieldType::default()
            },
            ..Field::default()
        });
        for ty in part.referenced.iter().chain([own]) {
            referenced.insert(ty.type_name.clone(), ty.clone());
        }
    }
    TypeDescription {
        type_description: IndividualTypeDescription {
            type_name: name.into(),
            fields,
            ..IndividualTypeDescription::default()
        },
        referenced: referenced.into_values().collect(),
    }
}

/// One type's name and fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndividualTypeDescription {
    /// For example `geometry_msgs/msg/Twist`.
    pub type_name: String,
    /// In the order in which they are serialized.
    pub fields: Vec<Field>,
    /// How the type may evolve; ROS 2's descriptions have final types only.
    pub extensibility: Extensibility,
    /// Its DDS type name, where it is not ROS's mapping of `type_name`.
    pub dds_name: Option<String>,
}

/// One field of a type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Field {
    /// For example `linear`.
    pub name: String,
    /// The element type.
    pub field_type: FieldType,
    /// As text; empty for none. Lists look like `(1, 2)` or `('a', 'b')`.
    pub default_value: String,
    /// Whether it is part of the key; not in ROS 2's descriptions.
    pub is_key: bool,
}

/// A field's type, with the numbers of `type_description_interfaces/FieldType`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldType {
    /// An element type of [`type_id`], plus a multiple of 48 for collections.
    pub type_id: u8,
    /// Elements of an array, or the bound of a bounded sequence; else 0.
    pub capacity: u64,
    /// Bound of a bounded string in characters; else 0.
    pub string_capacity: u64,
    /// The nested type's name; else empty.
    pub nested_type_name: String,
}

/// Element types and collection offsets of [`FieldType::type_id`].
#[allow(missing_docs, reason = "the names without a comment say it all")]
pub mod type_id {
    /// A message type, named by `nested_type_name`.
    pub const NESTED: u8 = 1;
    pub const INT8: u8 = 2;
    /// `uint8`, also `.msg` `char`.
    pub const UINT8: u8 = 3;
    pub const INT16: u8 = 4;
    pub const UINT16: u8 = 5;
    pub const INT32: u8 = 6;
    pub const UINT32: u8 = 7;
    pub const INT64: u8 = 8;
    pub const UINT64: u8 = 9;
    /// `float32`.
    pub const FLOAT: u8 = 10;
    /// `float64`.
    pub const DOUBLE: u8 = 11;
    /// `bool`.
    pub const BOOLEAN: u8 = 15;
    pub const BYTE: u8 = 16;
    /// Unbounded `string`.
    pub const STRING: u8 = 17;
    /// Unbounded `wstring`.
    pub const WSTRING: u8 = 18;
    /// `string<=N`.
    pub const BOUNDED_STRING: u8 = 21;
    /// `wstring<=N`.
    pub const BOUNDED_WSTRING: u8 = 22;
    /// Added to an element type for `T[N]`.
    pub const ARRAY: u8 = 48;
    /// Added to an element type for `T[<=N]`.
    pub const BOUNDED_SEQUENCE: u8 = 96;
    /// Added to an element type for `T[]`.
    pub const UNBOUNDED_SEQUENCE: u8 = 144;
}
