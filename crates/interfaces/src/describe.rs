//! Type descriptions as the messages that `~/get_type_description` sends.

use crate::type_description_interfaces::msg;
use pteros_msg::describe;

impl From<&describe::TypeDescription> for msg::TypeDescription {
    fn from(description: &describe::TypeDescription) -> Self {
        Self {
            type_description: (&description.type_description).into(),
            referenced_type_descriptions: description.referenced.iter().map(Into::into).collect(),
        }
    }
}

impl From<&describe::IndividualTypeDescription> for msg::IndividualTypeDescription {
    fn from(ty: &describe::IndividualTypeDescription) -> Self {
        let field = |field: &describe::Field| msg::Field {
            name: field.name.clone(),
            r#type: msg::FieldType {
                type_id: field.field_type.type_id,
                capacity: field.field_type.capacity,
                string_capacity: field.field_type.string_capacity,
                nested_type_name: field.field_type.nested_type_name.clone(),
            },
            default_value: field.default_value.clone(),
        };
        Self {
            type_name: ty.type_name.clone(),
            fields: ty.fields.iter().map(field).collect(),
        }
    }
}

/// Converts the type description of a peer. Its referenced types are sorted, as
/// hashes need them; `DynamicType` checks whether they are complete.
impl From<&msg::TypeDescription> for describe::TypeDescription {
    fn from(message: &msg::TypeDescription) -> Self {
        let mut referenced: Vec<describe::IndividualTypeDescription> = message
            .referenced_type_descriptions
            .iter()
            .map(Into::into)
            .collect();
        referenced.sort_by(|a, b| a.type_name.cmp(&b.type_name));
        Self {
            type_description: (&message.type_description).into(),
            referenced,
        }
    }
}

impl From<&msg::IndividualTypeDescription> for describe::IndividualTypeDescription {
    fn from(message: &msg::IndividualTypeDescription) -> Self {
        let field = |field: &msg::Field| describe::Field {
            name: field.name.clone(),
            field_type: describe::FieldType {
                type_id: field.r#type.type_id,
                capacity: field.r#type.capacity,
                string_capacity: field.r#type.string_capacity,
                nested_type_name: field.r#type.nested_type_name.clone(),
            },
            default_value: field.default_value.clone(),
            ..describe::Field::default()
        };
        Self {
            type_name: message.type_name.clone(),
            fields: message.fields.iter().map(field).collect(),
            ..Self::default()
        }
    }
}
