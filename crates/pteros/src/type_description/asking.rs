//! Asking another node what a type is made of.

use std::time::Duration;

use pteros_interfaces::type_description_interfaces::{msg, srv};
use pteros_msg::describe::{Field, FieldType, IndividualTypeDescription, TypeDescription};
use pteros_msg::hash::{TypeHash, rihs01};
use thiserror::Error;

use crate::node::Node;
use crate::service::CallError;

/// What a node told of a type.
#[derive(Clone, Debug, PartialEq)]
pub struct ToldType {
    /// What it is made of; its hash is the one that was asked for.
    pub description: TypeDescription,
    /// The texts it was made from, as far as the node has them.
    pub sources: Vec<msg::TypeSource>,
}

/// Why a node did not tell.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum AskTypeError {
    /// It could not be asked.
    #[error(transparent)]
    Call(#[from] CallError),
    /// It does not know.
    #[error("node \"{node}\" does not tell of {type_name}: {reason}")]
    Refused {
        /// The node.
        node: String,
        /// The type.
        type_name: String,
        /// Its words.
        reason: String,
    },
    /// It told of something else.
    #[error("node \"{node}\" told of {type_name} what has another hash, {told}; it is not used")]
    OtherType {
        /// The node.
        node: String,
        /// The type.
        type_name: String,
        /// The hash of what it told.
        told: TypeHash,
    },
}

impl Node {
    /// Asks a node of any stack, by its full name, what the type of a hash is made of
    /// (`~/get_type_description`, which ROS 2's nodes have since Iron). Endpoints
    /// announce hashes ([`EndpointInfo::type_hash`](crate::EndpointInfo::type_hash)).
    ///
    /// Blocks, at most `timeout`; drives the network itself.
    ///
    /// # Errors
    /// See [`AskTypeError`].
    pub fn ask_type(
        &self,
        node: &str,
        type_name: &str,
        hash: TypeHash,
        timeout: Duration,
    ) -> Result<ToldType, AskTypeError> {
        let service = format!("{}/get_type_description", node.trim_end_matches('/'));
        let client = match self.create_client::<srv::GetTypeDescription>(&service) {
            Ok(client) => client,
            Err(error) => {
                return Err(AskTypeError::Refused {
                    node: node.into(),
                    type_name: type_name.into(),
                    reason: error.to_string(),
                });
            }
        };
        let request = srv::GetTypeDescription_Request {
            type_name: type_name.into(),
            type_hash: hash.to_string(),
            include_type_sources: true,
        };
        let answer = client.call(&request, timeout)?.into_inner();
        if !answer.successful {
            return Err(AskTypeError::Refused {
                node: node.into(),
                type_name: type_name.into(),
                reason: answer.failure_reason,
            });
        }
        let description = described(answer.type_description);
        let told = rihs01(&description);
        if told != hash {
            return Err(AskTypeError::OtherType {
                node: node.into(),
                type_name: type_name.into(),
                told,
            });
        }
        Ok(ToldType {
            description,
            sources: answer.type_sources,
        })
    }
}

fn described(message: msg::TypeDescription) -> TypeDescription {
    let referenced = message.referenced_type_descriptions.into_iter();
    TypeDescription {
        type_description: individual(message.type_description),
        referenced: referenced.map(individual).collect(),
    }
}

fn individual(ty: msg::IndividualTypeDescription) -> IndividualTypeDescription {
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
