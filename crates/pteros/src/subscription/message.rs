//! What a subscription yields: messages of generated types, of types known at run time,
//! and messages that stay serialized.
//!
//! [`SubscriptionMessage`] says how they are announced and decoded. Decoding happens
//! when a sample is taken.

use std::any::{Any, TypeId};
use std::ops::Deref;
use std::sync::Arc;

use bytes::Bytes;
use pteros_msg::cdr::{DecodeError, Representation, to_payload};
use pteros_msg::dynamic::DynamicType;
use pteros_msg::hash::TypeHash;
use pteros_msg::key::KeyReader;
use pteros_msg::message::dds_type_name;
use pteros_msg::type_support::MessageTypeSupport;
use pteros_runtime::content_filter::MessageType;
use pteros_runtime::instance::TopicKey;
use pteros_runtime::reader::DeliveryForm;
use pteros_runtime::sample::{SampleBody, SharedValue};

use crate::message_type_info::MessageTypeInfo;

/// Decodes a received sample body into a message.
pub(crate) type BodyDecoder<T> =
    Box<dyn Fn(SampleBody) -> Result<Decoded<T>, DecodeError> + Send + Sync>;

/// Decodes a serialized key into a message in which only the key is set.
pub(crate) type KeyDecoder<T> = Box<dyn Fn(&Bytes) -> Result<T, DecodeError> + Send + Sync>;

/// The decoders of a subscription's samples.
pub(crate) struct SubscriptionDecoders<T> {
    pub(crate) message: BodyDecoder<T>,
    pub(crate) key: KeyDecoder<T>,
}

/// A decoded message: shared with its publisher, or owned.
pub(crate) enum Decoded<T> {
    Shared(Arc<T>),
    Owned(T),
}

/// What a subscription yields: a message of a generated type, a
/// [`DynamicMessage`](pteros_msg::dynamic::DynamicMessage), a message read in place
/// ([`InPlaceMessage`](crate::subscription::InPlaceMessage)) or one that stays serialized
/// ([`SerializedMessage`]).
///
/// Users need it in bounds at most; `T: Message` implies it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a message type",
    label = "cannot be received",
    note = "messages are types as `pteros::interfaces::std_msgs::msg::String`, your own, generated in build.rs, or `pteros::msg::dynamic::DynamicMessage`"
)]
pub trait SubscriptionMessage: Send + Sync + 'static {
    /// The type support value beside the Rust type: `()` for generated types.
    type Support: Clone + Send + Sync + 'static;

    #[doc(hidden)]
    fn subscription_support(support: &Self::Support) -> SubscriptionSupport<'_, Self>
    where
        Self: Sized;
}

/// How a subscription announces and decodes its messages.
pub struct SubscriptionSupport<'a, T> {
    pub(crate) type_info: MessageTypeInfo<'a>,
    pub(crate) form: DeliveryForm,
    pub(crate) decoders: SubscriptionDecoders<T>,
}

impl<T: MessageTypeSupport> SubscriptionMessage for T {
    type Support = <T as MessageTypeSupport>::Support;

    fn subscription_support(support: &Self::Support) -> SubscriptionSupport<'_, T> {
        let key_support = support.clone();
        SubscriptionSupport {
            type_info: MessageTypeInfo::of::<T>(support),
            form: DeliveryForm::Type(TypeId::of::<T>()),
            decoders: SubscriptionDecoders {
                message: typed_decoder(support),
                key: Box::new(move |key| T::from_type_key(&key_support, key)),
            },
        }
    }
}

/// A serialized message: CDR with its encapsulation header; rclcpp's word.
///
/// A subscription to it never decodes. Dereferences to the bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SerializedMessage(pub Bytes);

impl Deref for SerializedMessage {
    type Target = Bytes;

    fn deref(&self) -> &Bytes {
        &self.0
    }
}

/// The type behind a subscription's serialized messages.
///
/// It needs only a name: the ROS name, or the DDS name, which has no slashes. Types
/// with a `@dds_name` match by that name alone
/// ([`DynamicType::dds_type_name`]).
///
/// If the topic has a key, the end of an instance carries the serialized key,
/// provided there is a [`key_reader`](Self::key_reader). Without one, the publishers
/// discovered so far decide whether the topic has a key. Publishers of other DDS
/// implementations that appear later and have a key do not match such a subscription;
/// a warning names them.
#[derive(Clone)]
pub struct SerializedType {
    name: String,
    hash: Option<TypeHash>,
    key_reader: Option<Arc<dyn KeyReader>>,
    message_type: MessageType,
    takes_any_version: bool,
}

impl SerializedType {
    /// A type by its name, announced with its hash if that is known.
    pub fn new(name: impl Into<String>, hash: Option<TypeHash>) -> Self {
        Self {
            name: name.into(),
            hash,
            key_reader: None,
            message_type: MessageType::Unknown,
            takes_any_version: false,
        }
    }

    /// Takes messages of every version of the type, as recorders do. Without it, a
    /// publisher with another type hash does not match.
    pub fn any_version(mut self) -> Self {
        self.takes_any_version = true;
        self
    }

    /// Distinguishes instances by the keys that `reader` extracts.
    ///
    /// Without it the subscription receives samples, but no ends of instances.
    pub fn key_reader(mut self, reader: Arc<dyn KeyReader>) -> Self {
        self.key_reader = Some(reader);
        self
    }

    /// Sets the message type behind the bytes. A content filter needs it.
    pub fn message_type(mut self, ty: &DynamicType) -> Self {
        self.message_type = MessageType::Dynamic(ty.clone());
        self
    }
}

impl SubscriptionMessage for SerializedMessage {
    type Support = SerializedType;

    fn subscription_support(ty: &SerializedType) -> SubscriptionSupport<'_, Self> {
        SubscriptionSupport {
            type_info: MessageTypeInfo {
                name: &ty.name,
                dds_name: if ty.name.contains('/') {
                    dds_type_name(&ty.name)
                } else {
                    ty.name.clone()
                },
                hash: ty.hash,
                takes_any_version: ty.takes_any_version,
                keying: match &ty.key_reader {
                    Some(reader) => TopicKey::WithKey(reader.clone()),
                    None => TopicKey::NoKey,
                },
                message_type: ty.message_type.clone(),
                definitions: || None,
            },
            form: DeliveryForm::Bytes,
            decoders: SubscriptionDecoders {
                message: Box::new(|body| match body {
                    SampleBody::Serialized(bytes) => Ok(Decoded::Owned(Self(bytes))),
                    SampleBody::Shared(_) => {
                        unreachable!("a shared sample reached a subscription to serialized ones")
                    }
                }),
                key: Box::new(|key| Ok(Self(key.clone()))),
            },
        }
    }
}

/// Decoder of a message type.
pub(crate) fn typed_decoder<T: MessageTypeSupport>(support: &T::Support) -> BodyDecoder<T> {
    let support = support.clone();
    Box::new(move |body| match body {
        SampleBody::Shared(value) => match downcast::<T>(value) {
            Ok(value) if value.is_of(&support) => Ok(Decoded::Shared(value)),
            // A dynamic type that is the same on the network, another one in this
            // process: decode it as received.
            Ok(value) => {
                let bytes = to_payload(&*value, Representation::Xcdr2);
                T::from_type_payload(&support, &bytes).map(Decoded::Owned)
            }
            // Routes are created by type, so this is a bug here, not in user code.
            Err(_) => unreachable!("a shared sample of another type reached a typed subscription"),
        },
        SampleBody::Serialized(bytes) => T::from_type_bytes(&support, bytes).map(Decoded::Owned),
    })
}

/// Downcasts a shared value to its message type.
pub(crate) fn downcast<T: Send + Sync + 'static>(
    value: Arc<dyn SharedValue>,
) -> Result<Arc<T>, Arc<dyn Any + Send + Sync>> {
    let value: Arc<dyn Any + Send + Sync> = value;
    value.downcast()
}
