//! `~/get_type_description`: what the types are that a node uses, for tools that have
//! no definition of them (rcl `node_type_cache.c`).
//!
//! A context notes the type of each endpoint once, as the function that describes it;
//! descriptions and texts are made when somebody asks. Where rcl has a list for each
//! node, ours is the process's.

mod asking;
mod source;

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::Arc;

pub use asking::{AskTypeError, ToldType};

use parking_lot::Mutex;
use pteros_interfaces::type_description_interfaces::{msg, srv};
use pteros_msg::describe::{Field, FieldType, IndividualTypeDescription, TypeDescription, type_id};
use pteros_msg::hash::TypeHash;
use pteros_msg::library::InterfaceLibrary;
use pteros_msg::message::{Message, Service as ServiceType};
use pteros_rmw::content_filter::MessageType;

use crate::error::CreateError;
use crate::node::{Node, NodeOptions};
use crate::service::Service;

/// Types of a context; what comes beyond is not described. A process that makes types
/// for ever would else keep them all.
const TYPES_MAX: usize = 10_000;

/// How a type is described.
#[derive(Clone)]
pub(crate) enum Described {
    Message(MessageType, Definitions),
    /// A service's own type.
    Service(fn() -> TypeDescription, Definitions),
}

/// The texts that a type was generated from, where its package is not a standard one.
pub(crate) type Definitions = fn() -> Option<&'static InterfaceLibrary>;

/// The types that endpoints of a context have, or had.
#[derive(Default)]
pub(crate) struct TypesInUse(Mutex<BTreeMap<TypeHash, Described>>);

impl TypesInUse {
    pub(crate) fn note(&self, hash: Option<TypeHash>, described: impl FnOnce() -> Described) {
        let mut types = self.0.lock();
        if let Some(hash) = hash
            && types.len() < TYPES_MAX
        {
            types.entry(hash).or_insert_with(described);
        }
    }

    fn describe(&self, hash: &TypeHash) -> Option<(TypeDescription, Definitions)> {
        let described = self.0.lock().get(hash).cloned()?;
        match described {
            Described::Message(MessageType::Unknown, _) => None,
            Described::Message(MessageType::Described { describe, .. }, texts) => {
                Some((describe().clone(), texts))
            }
            Described::Message(MessageType::Dynamic(ty), texts) => Some((ty.description(), texts)),
            Described::Service(describe, texts) => Some((describe(), texts)),
        }
    }

    fn answer(&self, asked: &srv::GetTypeDescription_Request) -> srv::GetTypeDescription_Response {
        let refused = |failure_reason: String| srv::GetTypeDescription_Response {
            failure_reason,
            ..Default::default()
        };
        let Ok(hash) = TypeHash::from_str(&asked.type_hash) else {
            return refused(format!(
                "Failed to parse type hash {:?}: it is RIHS01_ and 64 hexadecimal digits",
                asked.type_hash
            ));
        };
        let Some((description, texts)) = self.describe(&hash) else {
            return refused(format!(
                "Type not currently in use by this node: {} {hash}",
                asked.type_name
            ));
        };
        srv::GetTypeDescription_Response {
            successful: true,
            type_sources: match asked.include_type_sources {
                true => source::of(&description, texts()),
                false => Vec::new(),
            },
            type_description: message(description),
            ..Default::default()
        }
    }
}

fn message(description: TypeDescription) -> msg::TypeDescription {
    let referenced = description.referenced.into_iter();
    msg::TypeDescription {
        type_description: individual(description.type_description),
        referenced_type_descriptions: referenced.map(individual).collect(),
    }
}

fn individual(ty: IndividualTypeDescription) -> msg::IndividualTypeDescription {
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

/// A service's own type: a request, a response and an event.
pub(crate) fn of_service<S: ServiceType>() -> TypeDescription {
    let parts = [
        ("request_message", S::Request::type_description()),
        ("response_message", S::Response::type_description()),
        ("event_message", S::Event::type_description()),
    ];
    let mut referenced = BTreeMap::new();
    let mut fields = Vec::new();
    for (name, part) in parts {
        let own = &part.type_description;
        fields.push(Field {
            name: name.into(),
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
            type_name: S::TYPE_NAME.into(),
            fields,
            ..IndividualTypeDescription::default()
        },
        referenced: referenced.into_values().collect(),
    }
}

/// Kept by the node's handles.
pub(crate) struct TypeDescriptionService {
    _service: Service<srv::GetTypeDescription>,
}

impl TypeDescriptionService {
    pub(crate) fn start(node: &Node) -> Result<Arc<Self>, CreateError> {
        let types = node.context().inner.types.clone();
        let answer = move |asked: crate::Sample<_>| types.answer(&asked);
        let service = node.create_service("~/get_type_description", answer)?;
        Ok(Arc::new(Self { _service: service }))
    }
}

impl NodeOptions {
    /// Whether the node says of the types that it uses what they are made of, on
    /// `~/get_type_description`, unless the parameter `start_type_description_service`
    /// says otherwise. Off by default, other than in ROS 2: it takes 8 to 13 KB of each
    /// node, and who asks DDS for a type (XTypes 1.3) is answered without.
    #[must_use]
    pub fn start_type_description_service(mut self, yes: bool) -> Self {
        self.type_description_service = yes;
        self
    }
}

#[cfg(test)]
mod tests {
    use pteros_interfaces::rcl_interfaces;
    use pteros_msg::hash::rihs01;

    use super::*;

    #[test]
    fn a_services_description_has_the_services_hash() {
        fn check<S: ServiceType>() {
            assert_eq!(rihs01(&of_service::<S>()), S::TYPE_HASH, "{}", S::TYPE_NAME);
        }
        check::<srv::GetTypeDescription>();
        check::<rcl_interfaces::srv::ListParameters>();
        check::<pteros_interfaces::std_srvs::srv::Trigger>();
    }
}
