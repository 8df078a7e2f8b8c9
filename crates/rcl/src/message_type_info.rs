//! Message type of an endpoint: name, RIHS01 type hash, key and definitions, and the
//! endpoint's announcement (SEDP) made from them.

use pteros_msg::describe::Extensibility;
use pteros_msg::hash::TypeHash;
use pteros_msg::type_support::{DescriptionOf, MessageTypeSupport};
use pteros_runtime::EndpointSpec;
use pteros_runtime::content_filter::MessageType;
use pteros_runtime::instance::TopicKey;
use pteros_runtime::names::dds_topic;
use pteros_runtime::user_data::{ANY_TYPE_HASH, type_hash_entry};

use crate::error::CreateError;
use crate::known_types::{DefinitionsFn, KnownTypes, TypeDescriptionSource};
use pteros_runtime::qos::QosProfile;

/// The properties of a message type that an endpoint needs.
pub struct MessageTypeInfo<'a> {
    /// ROS name, `std_msgs/msg/String`.
    pub name: &'a str,
    /// The DDS type name, as announced by SEDP.
    pub dds_name: String,
    /// RIHS01 type hash; `None` if it cannot be computed.
    pub hash: Option<TypeHash>,
    /// A subscription takes every version of the type, whatever the hash: it decodes
    /// none, or the type is appendable.
    pub takes_any_version: bool,
    /// Whether the topic has instances, and how their key is read.
    pub keying: TopicKey,
    /// How content filters and TypeLookup see the type.
    pub message_type: MessageType,
    /// Its `.msg` definitions, unless its package is a standard one.
    pub definitions: DefinitionsFn,
}

impl<'a> MessageTypeInfo<'a> {
    /// The properties of a type with type support.
    pub fn of<T: MessageTypeSupport>(support: &'a T::Support) -> Self {
        let of = T::properties(support);
        Self {
            name: of.name,
            dds_name: of.dds_name,
            hash: Some(of.hash),
            takes_any_version: of.extensibility == Extensibility::Appendable,
            keying: of.key_reader.map_or(TopicKey::NoKey, TopicKey::WithKey),
            message_type: match of.description {
                DescriptionOf::Generated {
                    describe,
                    announced,
                } => MessageType::Described {
                    describe,
                    announced,
                },
                DescriptionOf::Dynamic(ty) => MessageType::Dynamic(ty.clone()),
            },
            definitions: of.definitions,
        }
    }

    /// Registers the type with the context, which serves its type description.
    pub fn register_in(&self, types: &KnownTypes) {
        types.register(self.hash, || {
            TypeDescriptionSource::Message(self.message_type.clone(), self.definitions)
        });
    }
}

/// Builds the endpoint's announcement (SEDP): DDS names, and the RIHS01 type hash
/// in USER_DATA, where ROS 2 puts it.
pub fn endpoint_spec(
    topic: &str,
    ty: MessageTypeInfo<'_>,
    qos: &QosProfile,
    announced: impl FnOnce(&QosProfile) -> pteros_runtime::rtps::qos::EndpointQos,
) -> Result<EndpointSpec, CreateError> {
    // DDS type names have no slashes and are used unchanged.
    if ty.name.is_empty() || !matches!(ty.name.split('/').count(), 1 | 3) {
        return Err(CreateError::TypeName(ty.name.into()));
    }
    qos.validate().map_err(|source| CreateError::Qos {
        topic: topic.into(),
        source,
    })?;
    let mut endpoint_qos = announced(qos);
    if let Some(hash) = ty.hash {
        let mut entries = type_hash_entry(hash);
        if ty.takes_any_version {
            entries.extend_from_slice(ANY_TYPE_HASH.as_bytes());
        }
        endpoint_qos.user_data.splice(0..0, entries);
    }
    Ok(EndpointSpec {
        topic: dds_topic(topic, qos.avoid_ros_namespace_conventions),
        type_name: ty.dds_name,
        qos: endpoint_qos,
        topic_key: ty.keying,
        lifecycle: qos.lifecycle(),
        group: None,
        subscription_group: None,
        store: None,
        serialize_only: false,
        message_type: ty.message_type,
        content_filter: None,
    })
}
