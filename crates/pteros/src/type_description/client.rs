//! Type description client: fetches a type's description from another node
//! (`~/get_type_description`, REP 2016).

use std::collections::BTreeSet;
use std::time::Duration;

use pteros_interfaces::type_description_interfaces::{msg, srv};
use pteros_msg::describe::{Field, FieldType, IndividualTypeDescription, TypeDescription};
use pteros_msg::hash::{TypeHash, rihs01};

use crate::node::Node;
use crate::service::CallError;

/// A type description as received from another node.
#[derive(Clone, Debug, PartialEq)]
pub struct RemoteTypeDescription {
    /// The description. Its hash is the requested one, unless that is of the service
    /// whose request or response the type is.
    pub description: TypeDescription,
    /// The sources it was generated from, as far as the node has them.
    pub sources: Vec<msg::TypeSource>,
}

impl Node {
    /// Fetches a type's description by hash from a node of any ROS 2
    /// implementation.
    ///
    /// `node` is its full name; the service is `~/get_type_description`, which ROS
    /// 2 nodes have since Iron. Endpoints announce hashes
    /// ([`EndpointInfo::type_hash`](crate::graph::EndpointInfo::type_hash)). Blocks, at
    /// most `timeout`; drives the network itself.
    ///
    /// The request or response of a service may be named with the hash of the service,
    /// which is what its endpoints announce: the type is then a part of the service's.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn fetch_type_description(
        &self,
        node: &str,
        type_name: &str,
        hash: TypeHash,
        timeout: Duration,
    ) -> Result<RemoteTypeDescription, CallError> {
        let service = ["_Request", "_Response"]
            .iter()
            .find_map(|end| type_name.strip_suffix(end));
        if let Some(service) = service {
            match self.fetch_description_of(node, service, hash, timeout) {
                Ok(whole) => {
                    if let Some(description) = part(&whole.description, type_name) {
                        return Ok(RemoteTypeDescription {
                            description,
                            sources: Vec::new(),
                        });
                    }
                }
                // The hash may be that of the request or response itself.
                Err(CallError::Refused { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        self.fetch_description_of(node, type_name, hash, timeout)
    }

    fn fetch_description_of(
        &self,
        node: &str,
        type_name: &str,
        hash: TypeHash,
        timeout: Duration,
    ) -> Result<RemoteTypeDescription, CallError> {
        let service = format!("{}/get_type_description", node.trim_end_matches('/'));
        let client = self.create_client::<srv::GetTypeDescription>(&service)?;
        let request = srv::GetTypeDescriptionRequest {
            type_name: type_name.into(),
            type_hash: hash.to_string(),
            include_type_sources: true,
        };
        let answer = client.call(&request, timeout)?.into_inner();
        if !answer.successful {
            let reason = answer.failure_reason;
            return Err(CallError::Refused {
                node: node.into(),
                reason: format!("has no description of {type_name}: {reason}"),
            });
        }
        let description = from_message(answer.type_description);
        let received = rihs01(&description);
        if received != hash {
            return Err(CallError::Refused {
                node: node.into(),
                reason: format!(
                    "sent a description of {type_name} with another hash, {received}; it is not used"
                ),
            });
        }
        Ok(RemoteTypeDescription {
            description,
            sources: answer.type_sources,
        })
    }
}

/// The description of a type that another one refers to, with all that it refers to
/// itself.
fn part(whole: &TypeDescription, name: &str) -> Option<TypeDescription> {
    let find = |name: &str| whole.referenced.iter().find(|of| of.type_name == name);
    let main = find(name)?;
    let mut names = BTreeSet::new();
    let mut open = vec![main];
    while let Some(of) = open.pop() {
        let nested = of
            .fields
            .iter()
            .map(|field| &field.field_type.nested_type_name);
        for nested in nested.filter(|nested| !nested.is_empty()) {
            if names.insert(nested.as_str()) {
                open.extend(find(nested));
            }
        }
    }
    Some(TypeDescription {
        type_description: main.clone(),
        referenced: names.into_iter().filter_map(find).cloned().collect(),
    })
}

fn from_message(message: msg::TypeDescription) -> TypeDescription {
    let referenced = message.referenced_type_descriptions.into_iter();
    TypeDescription {
        type_description: individual_from_message(message.type_description),
        referenced: referenced.map(individual_from_message).collect(),
    }
}

fn individual_from_message(ty: msg::IndividualTypeDescription) -> IndividualTypeDescription {
    let field = |field: msg::Field| Field {
        name: field.name,
        field_type: FieldType {
            type_id: field.r#type.type_id,
            capacity: field.r#type.capacity,
            string_capacity: field.r#type.string_capacity,
            nested_type_name: field.r#type.nested_type_name,
        },
        default_value: field.default_value,
        is_key: false,
    };
    IndividualTypeDescription {
        type_name: ty.type_name,
        fields: ty.fields.into_iter().map(field).collect(),
        ..IndividualTypeDescription::default()
    }
}
