//! The messages of a simulated graph: content that follows from writer and
//! number, so that a reader's copy can be checked to the last byte (I3).

use std::any::TypeId;
use std::sync::Arc;

use bytes::Bytes;
use pteros_msg::cdr::Representation;
use pteros_rmw::sample::{Body, SharedValue};
use pteros_rmw::writer::Outgoing;

/// Encapsulation header, writer, number.
const HEAD_BYTES: usize = 4 + 4 + 8;

/// One message, as the publisher's own type.
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
        payload.extend_from_slice(&number.to_le_bytes());
        let mut stream = Stream::new(writer, number);
        for _ in 0..words {
            payload.extend_from_slice(&stream.next().to_le_bytes());
        }
        Self {
            payload: payload.into(),
        }
    }

    /// The Rust type that local readers may ask for.
    pub fn rust_type() -> TypeId {
        TypeId::of::<Message>()
    }

    /// Which writer and number a received body claims, and its length; an
    /// error when any byte is not what that writer wrote.
    pub fn check(body: &Body) -> Result<(u32, u64, usize), String> {
        let payload = match body {
            Body::Serialized(payload) => payload.clone(),
            Body::Shared(shared) => match shared.downcast_ref::<Message>() {
                Some(message) => message.payload.clone(),
                None => return Err("a value of a foreign type".into()),
            },
        };
        let (Some(writer), Some(number)) = (payload.get(4..8), payload.get(8..HEAD_BYTES)) else {
            return Err(format!("{} bytes are too few", payload.len()));
        };
        let writer = u32::from_le_bytes(writer.try_into().unwrap_or_default());
        let number = u64::from_le_bytes(number.try_into().unwrap_or_default());
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
}

impl Outgoing for Message {
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
