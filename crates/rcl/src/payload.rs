//! Serialized payload of a message during publishing: sized once and written once,
//! for all readers that need it.

use bytes::Bytes;
use pteros_msg::cdr::{Representation, payload_len, to_payload_in, to_payload_slice};
use pteros_msg::message::Encode;

use pteros_runtime::shm_transport::Chunk;

use crate::payload_memory::PayloadMemory;

/// The payload of the message that is being published.
pub struct Payload<'m> {
    size: Option<usize>,
    bytes: Option<Bytes>,
    /// Shared-memory chunk to write it into, if readers of other processes read it
    /// there.
    chunk: Option<Chunk>,
    memory: &'m PayloadMemory,
    representation: Representation,
}

impl<'m> Payload<'m> {
    /// Sizes and writes nothing yet.
    pub fn new(memory: &'m PayloadMemory, representation: Representation) -> Self {
        Self {
            size: None,
            bytes: None,
            chunk: None,
            memory,
            representation,
        }
    }

    /// The CDR representation.
    pub fn representation(&self) -> Representation {
        self.representation
    }

    /// Its size in bytes, encapsulation header included.
    pub fn len<M: Encode>(&mut self, message: &M) -> usize {
        let count = || payload_len(message, self.representation);
        *self.size.get_or_insert_with(count)
    }

    /// Offers memory of exactly its size to write it into.
    pub fn offer_buffer(&mut self, chunk: Chunk) {
        self.chunk = Some(chunk);
    }

    /// The payload, in memory of exactly its size.
    pub fn bytes<M: Encode>(&mut self, message: &M) -> Bytes {
        if let Some(bytes) = &self.bytes {
            return bytes.clone();
        }
        if let Some(mut chunk) = self.chunk.take()
            && to_payload_slice(message, self.representation, &mut chunk) == Ok(chunk.len())
        {
            return self.bytes.insert(chunk.freeze()).clone();
        }
        let memory = self.memory.take(self.len(message));
        let payload = Bytes::from(to_payload_in(message, self.representation, memory));
        self.memory.keep(&payload);
        self.bytes.insert(payload).clone()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use pteros_msg::cdr::Encoder;

    use super::*;

    /// Counts how often it is encoded.
    #[derive(Default)]
    struct Counted(Cell<usize>);

    impl Encode for Counted {
        fn encode(&self, out: &mut Encoder<'_>) {
            self.0.set(self.0.get() + 1);
            out.primitive_array(&[7_u32]);
        }
    }

    #[test]
    fn a_message_is_encoded_twice_to_size_and_to_write() {
        let (memory, message) = (PayloadMemory::default(), Counted::default());
        let mut payload = Payload::new(&memory, Representation::Xcdr1);
        assert_eq!(payload.len(&message), 8);
        assert_eq!(payload.bytes(&message).len(), 8);
        assert_eq!(payload.len(&message), 8);
        assert_eq!(&payload.bytes(&message)[4..], 7_u32.to_le_bytes());
        assert_eq!(message.0.get(), 2);
    }
}
