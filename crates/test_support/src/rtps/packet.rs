//! Datagrams of an attacker: every field is free, lengths included. Not built on
//! the encoder, which cannot write invalid messages.

use pteros_rtps::id::{EntityId, GuidPrefix};

/// Ids of submessages.
pub mod id {
    pub const ACKNACK: u8 = 0x06;
    pub const HEARTBEAT: u8 = 0x07;
    pub const GAP: u8 = 0x08;
    pub const INFO_TS: u8 = 0x09;
    pub const INFO_SRC: u8 = 0x0c;
    pub const INFO_DST: u8 = 0x0e;
    pub const INFO_REPLY: u8 = 0x0f;
    pub const NACK_FRAG: u8 = 0x12;
    pub const HEARTBEAT_FRAG: u8 = 0x13;
    pub const DATA: u8 = 0x15;
    pub const DATA_FRAG: u8 = 0x16;
    pub const SEC_PREFIX: u8 = 0x31;
    pub const SEC_POSTFIX: u8 = 0x32;
    pub const SRTPS_PREFIX: u8 = 0x33;
}

/// One datagram, little endian.
#[derive(Clone)]
pub struct Packet(pub Vec<u8>);

/// The fields of a DATA_FRAG, free of any rule.
#[derive(Clone, Copy)]
pub struct Frag<'a> {
    pub writer: EntityId,
    pub sequence: i64,
    pub first: u32,
    pub count: u16,
    pub size: u16,
    pub sample: u32,
    pub payload: &'a [u8],
}

impl Packet {
    /// A header that names this participant.
    pub fn from(prefix: GuidPrefix) -> Self {
        let mut bytes = b"RTPS\x02\x03\x01\x0f".to_vec();
        bytes.extend_from_slice(&prefix.0);
        Self(bytes)
    }

    /// Bytes as they are.
    pub fn raw(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    /// A submessage whose length is right.
    pub fn submessage(self, id: u8, flags: u8, body: &[u8]) -> Self {
        let length = u16::try_from(body.len()).unwrap_or(0);
        self.claiming(id, flags, length, body)
    }

    /// A submessage whose length is a claim.
    pub fn claiming(self, id: u8, flags: u8, length: u16, body: &[u8]) -> Self {
        let [low, high] = length.to_le_bytes();
        self.raw(&[id, flags | 1, low, high]).raw(body)
    }

    /// INFO_DST.
    pub fn to(self, prefix: GuidPrefix) -> Self {
        self.submessage(id::INFO_DST, 0, &prefix.0)
    }

    /// DATA for everybody.
    pub fn data(self, writer: EntityId, sequence: i64, payload: &[u8]) -> Self {
        let mut body = data_head(writer, sequence);
        body.extend_from_slice(payload);
        self.submessage(id::DATA, 0x04, &body)
    }

    /// DATA with inline QoS as it stands on the wire, sentinel included if any.
    pub fn data_with_qos(self, writer: EntityId, seq: i64, qos: &[u8], payload: &[u8]) -> Self {
        let mut body = data_head(writer, seq);
        body.extend_from_slice(qos);
        body.extend_from_slice(payload);
        self.submessage(id::DATA, 0x06, &body)
    }

    pub fn frag(self, f: Frag<'_>) -> Self {
        let mut body = vec![0, 0, 28, 0, 0, 0, 0, 0];
        body.extend_from_slice(&f.writer.to_bytes());
        body.extend_from_slice(&sequence_bytes(f.sequence));
        body.extend_from_slice(&f.first.to_le_bytes());
        body.extend_from_slice(&f.count.to_le_bytes());
        body.extend_from_slice(&f.size.to_le_bytes());
        body.extend_from_slice(&f.sample.to_le_bytes());
        body.extend_from_slice(f.payload);
        self.submessage(id::DATA_FRAG, 0, &body)
    }

    pub fn gap(self, writer: EntityId, start: i64, base: i64, bits: u32, words: &[u32]) -> Self {
        let mut body = vec![0; 4];
        body.extend_from_slice(&writer.to_bytes());
        body.extend_from_slice(&sequence_bytes(start));
        body.extend_from_slice(&sequence_bytes(base));
        push_bitmap(&mut body, bits, words);
        self.submessage(id::GAP, 0, &body)
    }

    pub fn heartbeat(self, writer: EntityId, first: i64, last: i64, count: u32) -> Self {
        let mut body = vec![0; 4];
        body.extend_from_slice(&writer.to_bytes());
        body.extend_from_slice(&sequence_bytes(first));
        body.extend_from_slice(&sequence_bytes(last));
        body.extend_from_slice(&count.to_le_bytes());
        self.submessage(id::HEARTBEAT, 0, &body)
    }

    pub fn heartbeat_frag(self, writer: EntityId, sequence: i64, last: u32, count: u32) -> Self {
        let mut body = vec![0; 4];
        body.extend_from_slice(&writer.to_bytes());
        body.extend_from_slice(&sequence_bytes(sequence));
        body.extend_from_slice(&last.to_le_bytes());
        body.extend_from_slice(&count.to_le_bytes());
        self.submessage(id::HEARTBEAT_FRAG, 0, &body)
    }

    /// `pair` is reader and writer.
    pub fn acknack(
        self,
        pair: (EntityId, EntityId),
        base: i64,
        bits: u32,
        words: &[u32],
        count: u32,
    ) -> Self {
        let mut body = pair.0.to_bytes().to_vec();
        body.extend_from_slice(&pair.1.to_bytes());
        body.extend_from_slice(&sequence_bytes(base));
        push_bitmap(&mut body, bits, words);
        body.extend_from_slice(&count.to_le_bytes());
        self.submessage(id::ACKNACK, 0, &body)
    }

    /// `set` is the base, the number of bits and the words of the fragments.
    pub fn nack_frag(
        self,
        pair: (EntityId, EntityId),
        sequence: i64,
        set: (u32, u32, &[u32]),
        count: u32,
    ) -> Self {
        let mut body = pair.0.to_bytes().to_vec();
        body.extend_from_slice(&pair.1.to_bytes());
        body.extend_from_slice(&sequence_bytes(sequence));
        body.extend_from_slice(&set.0.to_le_bytes());
        push_bitmap(&mut body, set.1, set.2);
        body.extend_from_slice(&count.to_le_bytes());
        self.submessage(id::NACK_FRAG, 0, &body)
    }
}

/// A sequence number, high word first.
pub fn sequence_bytes(number: i64) -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&((number >> 32) as i32).to_le_bytes());
    bytes[4..].copy_from_slice(&(number as u32).to_le_bytes());
    bytes
}

fn push_bitmap(body: &mut Vec<u8>, bits: u32, words: &[u32]) {
    body.extend_from_slice(&bits.to_le_bytes());
    for word in words {
        body.extend_from_slice(&word.to_le_bytes());
    }
}

/// The fixed part of a DATA for everybody.
pub fn data_head(writer: EntityId, sequence: i64) -> Vec<u8> {
    let mut body = vec![0, 0, 16, 0, 0, 0, 0, 0];
    body.extend_from_slice(&writer.to_bytes());
    body.extend_from_slice(&sequence_bytes(sequence));
    body
}

/// A parameter list, with or without encapsulation header.
#[derive(Clone)]
pub struct Plist(Vec<u8>);

impl Plist {
    /// As a payload: PL_CDR_LE.
    pub fn payload() -> Self {
        Self(vec![0, 3, 0, 0])
    }

    /// As inline QoS.
    pub fn inline() -> Self {
        Self(Vec::new())
    }

    /// A parameter, its value padded.
    pub fn with(self, id: u16, value: &[u8]) -> Self {
        let mut padded = value.to_vec();
        padded.resize(value.len().next_multiple_of(4), 0);
        let length = u16::try_from(padded.len()).unwrap();
        self.claiming(id, length, &padded)
    }

    /// A parameter whose length is a claim.
    pub fn claiming(mut self, id: u16, length: u16, value: &[u8]) -> Self {
        self.0.extend_from_slice(&id.to_le_bytes());
        self.0.extend_from_slice(&length.to_le_bytes());
        self.0.extend_from_slice(value);
        self
    }

    /// A CDR string whose length is a claim.
    pub fn string(self, id: u16, length: u32, text: &[u8]) -> Self {
        let mut value = length.to_le_bytes().to_vec();
        value.extend_from_slice(text);
        self.with(id, &value)
    }

    /// With its sentinel.
    pub fn end(self) -> Vec<u8> {
        self.claiming(1, 0, &[]).0
    }

    /// Without.
    pub fn unended(self) -> Vec<u8> {
        self.0
    }
}
