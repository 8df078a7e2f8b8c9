//! Tokens (`DataHolder`) and the messages that carry them
//! (`ParticipantGenericMessage`; DDS Security 1.1 §7.2.4, §7.4.3.1).

use pteros_rtps::id::Guid;

use super::cdr::{CdrReader, CdrWriter};

/// A token: a class and its properties.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Token {
    /// Name and version of what it is for, as in `DDS:Auth:PKI-DH:1.0+Req`.
    pub class: String,
    /// Text properties.
    pub properties: Vec<(String, String)>,
    /// Binary properties.
    pub binary: Vec<(String, Vec<u8>)>,
}

impl Token {
    /// The value of this binary property.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        let mut found = self.binary.iter().filter(|(known, _)| known == name);
        found.next().map(|(_, value)| value.as_slice())
    }

    /// Serialises these properties, for hashes and signatures.
    pub(super) fn serialized(named: &[(&str, &[u8])]) -> Vec<u8> {
        let mut writer = CdrWriter::new(true);
        writer.number(named.len());
        for (name, value) in named {
            writer.string(name);
            writer.octets(value);
        }
        writer.into_bytes()
    }

    pub(super) fn write(&self, writer: &mut CdrWriter) {
        writer.string(&self.class);
        writer.number(self.properties.len());
        for (name, value) in &self.properties {
            writer.string(name);
            writer.string(value);
        }
        writer.number(self.binary.len());
        for (name, value) in &self.binary {
            writer.string(name);
            writer.octets(value);
        }
    }

    pub(super) fn read(reader: &mut CdrReader<'_>) -> Option<Self> {
        let mut token = Self {
            class: reader.string()?,
            ..Self::default()
        };
        for _ in 0..reader.count(PROPERTIES)? {
            token.properties.push((reader.string()?, reader.string()?));
        }
        for _ in 0..reader.count(PROPERTIES)? {
            token.binary.push((reader.string()?, reader.octets()?));
        }
        Some(token)
    }
}

/// The identity of a [`GenericMessage`] (`MessageIdentity`; DDS Security 1.1
/// §7.2.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageIdentity {
    /// The sender's writer.
    pub source_guid: Guid,
    /// The number of the message at this writer.
    pub sequence_number: i64,
}

impl MessageIdentity {
    /// No message.
    pub const UNKNOWN: Self = Self {
        source_guid: Guid::UNKNOWN,
        sequence_number: 0,
    };

    fn write(self, writer: &mut CdrWriter) {
        writer.raw(&self.source_guid.to_bytes());
        writer.long_number(self.sequence_number);
    }

    fn read(reader: &mut CdrReader<'_>) -> Option<Self> {
        Some(Self {
            source_guid: Guid::from_bytes(reader.array()?),
            sequence_number: reader.long_number()?,
        })
    }
}

/// A message between participants on the stateless or the volatile topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GenericMessage {
    /// The sender's writer and the sequence number.
    pub identity: MessageIdentity,
    /// The message that it replies to; [`MessageIdentity::UNKNOWN`] if none.
    pub related: MessageIdentity,
    /// The destination participant; unknown for all.
    pub destination_participant: Guid,
    /// The destination endpoint, if any.
    pub destination_endpoint: Guid,
    /// The sender's endpoint that the message is about, if any.
    pub source_endpoint: Guid,
    /// Kind of message.
    pub class: String,
    /// The tokens it carries.
    pub data: Vec<Token>,
}

impl GenericMessage {
    /// Encodes a payload with its encapsulation, little-endian.
    pub fn to_payload(&self) -> Vec<u8> {
        let mut writer = CdrWriter::new(false);
        self.identity.write(&mut writer);
        self.related.write(&mut writer);
        writer.raw(&self.destination_participant.to_bytes());
        writer.raw(&self.destination_endpoint.to_bytes());
        writer.raw(&self.source_endpoint.to_bytes());
        writer.string(&self.class);
        writer.number(self.data.len());
        for token in &self.data {
            token.write(&mut writer);
        }
        [&[0, 1, 0, 0], &writer.into_bytes()[..]].concat()
    }

    /// Decodes a payload; `None` if it is malformed or too large.
    pub fn from_payload(payload: &[u8]) -> Option<Self> {
        if payload.len() > PAYLOAD_BYTES {
            return None;
        }
        let ([_, kind, _, _], body) = payload.split_first_chunk::<4>()?;
        let big = match kind {
            0 => true,
            1 => false,
            _ => return None,
        };
        let mut reader = CdrReader::new(body, big);
        let identity = MessageIdentity::read(&mut reader)?;
        let related = MessageIdentity::read(&mut reader)?;
        let mut guid = || Some(Guid::from_bytes(reader.array()?));
        let (participant, endpoint, source) = (guid()?, guid()?, guid()?);
        let class = reader.string()?;
        let mut data = Vec::new();
        for _ in 0..reader.count(TOKENS)? {
            data.push(Token::read(&mut reader)?);
        }
        Some(Self {
            identity,
            related,
            destination_participant: participant,
            destination_endpoint: endpoint,
            source_endpoint: source,
            class,
            data,
        })
    }
}

/// Limit of properties in a token; a reply has twelve.
const PROPERTIES: usize = 32;
/// Limit of tokens in a message; a key exchange sends a few.
const TOKENS: usize = 8;
/// Limit of a message, bytes: permissions for thousands of topics fit.
const PAYLOAD_BYTES: usize = 1 << 20;
