//! Messages of the simulated graphs. Writer and number determine the content, so
//! every byte of a received copy can be checked (I3).

use std::any::TypeId;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use pteros_msg::cdr::Representation;
use pteros_msg::describe::type_id;
use pteros_msg::dynamic::{DynamicMessage, DynamicType};
use pteros_runtime::instance::InstanceIdentity;
use pteros_runtime::sample::{SampleBody, SharedValue};
use pteros_runtime::writer::OutboundMessage;

use crate::world::message_type::{instance_identity, message_type};

/// Encapsulation header, writer, number, instance.
const HEAD_BYTES: usize = 4 + 4 + 4 + 4;

/// Instances of a keyed topic. Every writer writes all of them.
pub const INSTANCES: u32 = 4;

/// The instance of a message.
pub fn instance_of(writer: u32, number: u64) -> u32 {
    let mixed = Stream::new(writer, number).next() >> 33;
    u32::try_from(mixed % u64::from(INSTANCES)).unwrap_or(0)
}

/// The message type as keys and content filters see it, without the padding.
pub fn ty(keyed: bool) -> &'static DynamicType {
    static TYPES: OnceLock<[DynamicType; 2]> = OnceLock::new();
    let [plain, with_key] = TYPES.get_or_init(|| [describe(false), describe(true)]);
    if keyed { with_key } else { plain }
}

fn describe(keyed: bool) -> DynamicType {
    message_type(
        "Message",
        &[
            ("writer", type_id::UINT32, false),
            ("number", type_id::UINT32, false),
            ("instance", type_id::UINT32, keyed),
        ],
    )
}

/// The key of an instance.
pub fn key(instance: u32) -> InstanceIdentity {
    let mut message = DynamicMessage::new(ty(true));
    let set = message.set("instance", instance);
    assert!(set.is_ok(), "a field of the simulator's messages: {set:?}");
    instance_identity(&message, Representation::Xcdr1)
}

/// A message, as a Rust type that local readers can share.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    payload: Bytes,
}

impl Message {
    /// The message `number` of writer `writer` with about `size` bytes.
    pub fn new(writer: u32, number: u64, size: usize) -> Self {
        let words = size.saturating_sub(HEAD_BYTES) / 8;
        let mut payload = Vec::with_capacity(HEAD_BYTES + 8 * words);
        payload.extend_from_slice(&[0, 1, 0, 0]);
        payload.extend_from_slice(&writer.to_le_bytes());
        // A run ends long before 2^32 messages.
        payload.extend_from_slice(&(number as u32).to_le_bytes());
        payload.extend_from_slice(&instance_of(writer, number).to_le_bytes());
        let mut stream = Stream::new(writer, number);
        for _ in 0..words {
            payload.extend_from_slice(&stream.next().to_le_bytes());
        }
        Self {
            payload: payload.into(),
        }
    }

    /// The Rust type that local readers may request.
    pub fn rust_type() -> TypeId {
        TypeId::of::<Message>()
    }

    /// Returns the writer, the number and the length of a received body.
    ///
    /// # Errors
    /// A byte differs from what that writer wrote.
    pub fn check(body: &SampleBody) -> Result<(u32, u64, usize), String> {
        let payload = match body {
            SampleBody::Serialized(payload) => payload.clone(),
            SampleBody::Shared(shared) => match shared.downcast_ref::<Message>() {
                Some(message) => message.payload.clone(),
                None => return Err("a value of a foreign type".into()),
            },
        };
        let (Some(writer), Some(number)) = (payload.get(4..8), payload.get(8..12)) else {
            return Err(format!("{} bytes are too few for a header", payload.len()));
        };
        let writer = u32::from_le_bytes(writer.try_into().unwrap_or_default());
        let number = u64::from(u32::from_le_bytes(number.try_into().unwrap_or_default()));
        if payload.get(12..HEAD_BYTES) != Some(&instance_of(writer, number).to_le_bytes()) {
            return Err(format!(
                "writer {writer} number {number} is of another instance"
            ));
        }
        let mut stream = Stream::new(writer, number);
        for (index, word) in payload[HEAD_BYTES..].chunks(8).enumerate() {
            if word != stream.next().to_le_bytes() {
                let at = HEAD_BYTES + 8 * index;
                return Err(format!("writer {writer} number {number} differs at {at}"));
            }
        }
        Ok((writer, number, payload.len()))
    }
}

impl Message {
    /// The length of a message of about `size` bytes.
    pub fn len_of(size: usize) -> usize {
        HEAD_BYTES + size.saturating_sub(HEAD_BYTES) / 8 * 8
    }
}

impl SharedValue for Message {
    fn payload(&self, _: Representation) -> Bytes {
        self.payload.clone()
    }

    fn size_bytes(&self) -> usize {
        self.payload.len()
    }
}

impl OutboundMessage for Message {
    fn message_type(&self) -> TypeId {
        Self::rust_type()
    }

    fn shared(&mut self) -> Option<Arc<dyn SharedValue>> {
        Some(Arc::new(self.clone()))
    }

    fn serialized(&mut self) -> Bytes {
        self.payload.clone()
    }

    fn serialized_len(&mut self) -> usize {
        self.payload.len()
    }
}

struct Stream(u64);

impl Stream {
    fn new(writer: u32, number: u64) -> Self {
        Self((u64::from(writer) << 40) ^ number ^ 0x5851_f42d_4c95_7f2d)
    }

    fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        self.0
    }
}
