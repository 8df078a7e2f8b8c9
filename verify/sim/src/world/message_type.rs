//! Message types that exist at run time only, with their keys.

use pteros_msg::cdr::Representation;
use pteros_msg::describe::{Field, FieldType, IndividualTypeDescription, TypeDescription};
use pteros_msg::dynamic::{DynamicMessage, DynamicType};
use pteros_runtime::instance::InstanceIdentity;

/// The type `sim/msg/<name>` with these fields: name, type id, and whether it is a
/// part of the key.
pub fn message_type(name: &str, fields: &[(&str, u8, bool)]) -> DynamicType {
    let field = |(name, type_id, is_key): &(&str, u8, bool)| Field {
        name: (*name).into(),
        field_type: FieldType {
            type_id: *type_id,
            ..FieldType::default()
        },
        is_key: *is_key,
        ..Field::default()
    };
    let description = TypeDescription {
        type_description: IndividualTypeDescription {
            type_name: format!("sim/msg/{name}"),
            fields: fields.iter().map(field).collect(),
            ..IndividualTypeDescription::default()
        },
        referenced: Vec::new(),
    };
    match DynamicType::new(&description) {
        Ok(ty) => ty,
        Err(error) => unreachable!("a type of the simulator: {error}"),
    }
}

/// The instance that a message belongs to.
pub fn instance_identity(
    message: &DynamicMessage,
    representation: Representation,
) -> InstanceIdentity {
    InstanceIdentity {
        hash: message.key_hash(),
        key: message.key_payload(representation).into(),
    }
}
