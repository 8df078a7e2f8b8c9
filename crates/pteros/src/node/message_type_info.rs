//! Message type of an endpoint: name, RIHS01 type hash, key and definitions, and the
//! endpoint's announcement (SEDP) made from them.

use pteros_msg::dynamic::DynamicType;
use pteros_msg::hash::TypeHash;
use pteros_msg::key::key_reader;
use pteros_msg::message::Message;
use pteros_runtime::EndpointSpec;
use pteros_runtime::content_filter::MessageType;
use pteros_runtime::instance::TopicKey;
use pteros_runtime::names::dds_topic;

use crate::error::CreateError;
use crate::qos::QosProfile;
use crate::type_description::{DefinitionsFn, KnownTypes, TypeDescriptionSource};

/// The properties of a message type that an endpoint needs.
pub(crate) struct MessageTypeInfo<'a> {
    pub(super) name: &'a str,
    /// The DDS type name, as announced by SEDP.
    pub(super) dds_name: String,
    pub(super) hash: Option<TypeHash>,
    pub(super) keying: TopicKey,
    pub(super) message_type: MessageType,
    pub(super) definitions: DefinitionsFn,
}

impl<'a> MessageTypeInfo<'a> {
    pub(crate) fn of<T: Message>() -> Self {
        Self {
            name: T::TYPE_NAME,
            dds_name: T::dds_type_name(),
            hash: Some(T::TYPE_HASH),
            keying: key_reader::<T>().map_or(TopicKey::NoKey, TopicKey::WithKey),
            message_type: MessageType::Described {
                describe: T::type_description,
                announced: T::TYPE_INFORMATION,
            },
            definitions: T::definitions,
        }
    }

    pub(crate) fn of_dynamic(ty: &'a DynamicType) -> Self {
        Self {
            name: ty.name(),
            dds_name: if ty.name().contains('/') {
                ty.dds_type_name()
            } else {
                ty.dds_name().unwrap_or(ty.name()).into()
            },
            hash: Some(ty.hash()),
            keying: ty.key_reader().map_or(TopicKey::NoKey, TopicKey::WithKey),
            message_type: MessageType::Dynamic(ty.clone()),
            definitions: || None,
        }
    }

    /// Registers the type with the context, which serves its type description.
    pub(crate) fn register_in(&self, types: &KnownTypes) {
        types.register(self.hash, || {
            TypeDescriptionSource::Message(self.message_type.clone(), self.definitions)
        });
    }
}

/// Builds the endpoint's announcement (SEDP): DDS names, and the RIHS01 type hash
/// in USER_DATA, where ROS 2 puts it.
pub(crate) fn endpoint_spec(
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
        let entry = format!("typehash={hash};");
        endpoint_qos.user_data.splice(0..0, entry.into_bytes());
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
