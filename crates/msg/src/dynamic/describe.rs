//! Converts a resolved type back to its description, so that a type's hash can be
//! announced whatever the type was made from.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use super::types::{DynamicType, Element, MessageField, PLACEHOLDER, Shape};
use crate::cdr::UNBOUNDED;
use crate::describe::{Field, FieldType, IndividualTypeDescription, TypeDescription, type_id};
use crate::hash::{TypeHash, rihs01};

impl DynamicType {
    /// The type's description, without default values, which are not part of a
    /// type's identity.
    pub fn description(&self) -> TypeDescription {
        let mut referenced = BTreeMap::new();
        for field in self.fields() {
            gather(&field.element, &mut referenced);
        }
        referenced.remove(self.name());
        TypeDescription {
            type_description: self.individual(),
            referenced: referenced.into_values().collect(),
        }
    }

    /// The RIHS01 type hash that ROS 2 announces. Computed at each call.
    pub fn hash(&self) -> TypeHash {
        rihs01(&self.description())
    }

    fn individual(&self) -> IndividualTypeDescription {
        IndividualTypeDescription {
            type_name: self.name().into(),
            fields: self.fields().iter().map(described).collect(),
            extensibility: self.extensibility(),
            dds_name: self.dds_name().map(Into::into),
        }
    }
}

/// Types nest at most as deep as resolving allowed.
fn gather(element: &Element, found: &mut BTreeMap<String, IndividualTypeDescription>) {
    let Element::Message(ty) = element else {
        return;
    };
    if found.contains_key(ty.name()) {
        return;
    }
    found.insert(ty.name().into(), ty.individual());
    let nested: Vec<&Element> = ty.fields().iter().map(|f| &f.element).collect();
    for element in nested {
        gather(element, found);
    }
}

fn described(field: &MessageField) -> Field {
    let (shape_id, capacity) = match field.shape {
        Shape::Single => (0, 0),
        Shape::Array(count) => (type_id::ARRAY, count as u64),
        Shape::Sequence { bound: UNBOUNDED } => (type_id::UNBOUNDED_SEQUENCE, 0),
        Shape::Sequence { bound } => (type_id::BOUNDED_SEQUENCE, bound as u64),
    };
    let (element_id, string_capacity, nested) = match &field.element {
        Element::Bool => (type_id::BOOLEAN, 0, ""),
        Element::Byte => (type_id::BYTE, 0, ""),
        Element::I8 => (type_id::INT8, 0, ""),
        Element::U8 => (type_id::UINT8, 0, ""),
        Element::I16 => (type_id::INT16, 0, ""),
        Element::U16 => (type_id::UINT16, 0, ""),
        Element::I32 => (type_id::INT32, 0, ""),
        Element::U32 => (type_id::UINT32, 0, ""),
        Element::I64 => (type_id::INT64, 0, ""),
        Element::U64 => (type_id::UINT64, 0, ""),
        Element::F32 => (type_id::FLOAT, 0, ""),
        Element::F64 => (type_id::DOUBLE, 0, ""),
        Element::String { bound: UNBOUNDED } => (type_id::STRING, 0, ""),
        Element::String { bound } => (type_id::BOUNDED_STRING, *bound, ""),
        Element::WString { bound: UNBOUNDED } => (type_id::WSTRING, 0, ""),
        Element::WString { bound } => (type_id::BOUNDED_WSTRING, *bound, ""),
        Element::Message(ty) => (type_id::NESTED, 0, ty.name()),
    };
    debug_assert!(field.name != PLACEHOLDER || element_id == type_id::UINT8);
    Field {
        name: field.name.clone(),
        field_type: FieldType {
            type_id: element_id.saturating_add(shape_id),
            capacity,
            string_capacity: string_capacity as u64,
            nested_type_name: nested.into(),
        },
        default_value: String::new(),
        is_key: field.is_key,
    }
}
