//! Type descriptions: the answers of `~/get_type_description` (REP 2016, rcl
//! `node_type_cache.c`).

mod source;

use std::str::FromStr;

use pteros_interfaces::type_description_interfaces::{msg, srv};
use pteros_msg::describe::{Field, IndividualTypeDescription, TypeDescription};
use pteros_msg::hash::TypeHash;
use pteros_msg::library::InterfaceLibrary;

use crate::known_types::KnownTypes;

pub use source::{SEPARATOR_WIDTH, definition_text, definition_text_of};

/// Answers a request from the types that a context knows.
pub fn handle_request(
    types: &KnownTypes,
    asked: &srv::GetTypeDescriptionRequest,
) -> srv::GetTypeDescriptionResponse {
    answer(asked, |hash| {
        let (description, texts) = types.describe(hash)?;
        Some((description, texts()))
    })
}

/// Answers a request from the type that `find` has for a hash, with the definitions that
/// it was generated from, if it is not a standard one.
pub fn answer<'a>(
    asked: &srv::GetTypeDescriptionRequest,
    find: impl FnOnce(&TypeHash) -> Option<(TypeDescription, Option<&'a InterfaceLibrary>)>,
) -> srv::GetTypeDescriptionResponse {
    let refused = |failure_reason: String| srv::GetTypeDescriptionResponse {
        failure_reason,
        ..Default::default()
    };
    let Ok(hash) = TypeHash::from_str(&asked.type_hash) else {
        return refused(format!(
            "Failed to parse type hash {:?}: it is RIHS01_ and 64 hexadecimal digits",
            asked.type_hash
        ));
    };
    let Some((description, texts)) = find(&hash) else {
        return refused(format!(
            "Type not currently in use by this node: {} {hash}",
            asked.type_name
        ));
    };
    srv::GetTypeDescriptionResponse {
        successful: true,
        type_sources: if asked.include_type_sources {
            source::sources_of(&description, texts)
        } else {
            Vec::new()
        },
        type_description: to_message(description),
        ..Default::default()
    }
}

fn to_message(description: TypeDescription) -> msg::TypeDescription {
    let referenced = description.referenced.into_iter();
    msg::TypeDescription {
        type_description: individual_to_message(description.type_description),
        referenced_type_descriptions: referenced.map(individual_to_message).collect(),
    }
}

fn individual_to_message(ty: IndividualTypeDescription) -> msg::IndividualTypeDescription {
    let field = |field: Field| msg::Field {
        name: field.name,
        r#type: msg::FieldType {
            type_id: field.field_type.type_id,
            capacity: field.field_type.capacity,
            string_capacity: field.field_type.string_capacity,
            nested_type_name: field.field_type.nested_type_name,
        },
        default_value: field.default_value,
    };
    msg::IndividualTypeDescription {
        type_name: ty.type_name,
        fields: ty.fields.into_iter().map(field).collect(),
    }
}

#[cfg(test)]
mod tests {
    use pteros_interfaces::rcl_interfaces;
    use pteros_msg::hash::rihs01;
    use pteros_msg::message::Service as ServiceType;
    use pteros_msg::type_support::service_description;

    use super::*;

    #[test]
    fn a_services_description_has_the_services_hash() {
        fn check<S: ServiceType>() {
            assert_eq!(
                rihs01(&service_description::<S>()),
                S::TYPE_HASH,
                "{}",
                S::TYPE_NAME
            );
        }
        check::<srv::GetTypeDescription>();
        check::<rcl_interfaces::srv::ListParameters>();
        check::<pteros_interfaces::std_srvs::srv::Trigger>();
    }
}
