//! Type descriptions: `~/get_type_description` for the types a node uses (REP 2016,
//! rcl `node_type_cache.c`).
//!
//! A context records each endpoint's type once, by RIHS01 type hash, as the
//! function that describes it. Descriptions and sources are generated on request.
//! rcl keeps a list and a service per node, Pteros a list per context, and by default
//! one service, on its first node.

mod client;
mod source;

use std::str::FromStr;
use std::sync::Arc;

pub use client::RemoteTypeDescription;
pub use source::definition_text_of;

use pteros_interfaces::type_description_interfaces::{msg, srv};
use pteros_msg::describe::{Field, IndividualTypeDescription, TypeDescription};
use pteros_msg::hash::TypeHash;
use pteros_msg::library::InterfaceLibrary;

use crate::error::CreateError;
use crate::known_types::KnownTypes;
use crate::node::{Node, NodeOptions};
use crate::service::Service;

fn handle_request(
    types: &KnownTypes,
    asked: &srv::GetTypeDescriptionRequest,
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
    let Some((description, texts)) = types.describe(&hash) else {
        return refused(format!(
            "Type not currently in use by this node: {} {hash}",
            asked.type_name
        ));
    };
    response(description, asked.include_type_sources, texts())
}

/// The answer for a type. `texts` are the definitions that it was generated from, if it
/// is not a standard one.
pub(crate) fn response(
    description: TypeDescription,
    with_sources: bool,
    texts: Option<&InterfaceLibrary>,
) -> srv::GetTypeDescriptionResponse {
    srv::GetTypeDescriptionResponse {
        successful: true,
        type_sources: if with_sources {
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

/// Kept alive by the node's handles.
pub(crate) struct TypeDescriptionService {
    _service: Service<srv::GetTypeDescription>,
    types: Arc<KnownTypes>,
}

impl TypeDescriptionService {
    /// Starts the service of a node if the parameter, the option or the default says
    /// so, and declares the parameter.
    pub(crate) fn start(node: &Node, option: Option<bool>) -> Result<Option<Self>, CreateError> {
        let types = node.context().inner.known_types.clone();
        let declared = node.core().declare_type_descriptions(option)?;
        let is_server = match declared {
            Some(true) => {
                types.add_server();
                true
            }
            Some(false) => false,
            None => types.add_first_server(),
        };
        if !is_server {
            return Ok(None);
        }
        let described = types.clone();
        let answer = move |asked: crate::Sample<_>| handle_request(&described, &asked);
        let service = node.create_service("~/get_type_description", answer);
        match service {
            Ok(service) => Ok(Some(Self {
                _service: service,
                types,
            })),
            Err(error) => {
                types.remove_server();
                Err(error)
            }
        }
    }
}

impl Drop for TypeDescriptionService {
    fn drop(&mut self) {
        self.types.remove_server();
    }
}

impl NodeOptions {
    /// Whether the node offers `~/get_type_description`, which describes the types of
    /// all endpoints of the context.
    ///
    /// By default the first node of a context offers it, and a later one once that
    /// node is dropped. ROS 2 has it on every node; here each takes 8 to 13 KB. The
    /// parameter `start_type_description_service` overrides the option. DDS TypeLookup
    /// requests (XTypes 1.3) are answered without it.
    #[must_use]
    pub fn start_type_description_service(mut self, yes: bool) -> Self {
        self.type_description_service = Some(yes);
        self
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
