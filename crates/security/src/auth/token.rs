//! Tokens (`DataHolder`) and the messages that carry them
//! (`ParticipantGenericMessage`; DDS Security 1.1 §7.2.4, §7.4.3.1).

use pteros_rtps::id::Guid;

use super::cdr::{Reader, Writer};

/// A class and its properties.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Token {
    /// What it is for.
    pub class: String,
    /// Properties that are text.
    pub properties: Vec<(String, String)>,
    /// Properties that are octets.
    pub binary: Vec<(String, Vec<u8>)>,
}

impl Token {
    /// The octets of this name.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        let mut found = self.binary.iter().filter(|(known, _)| known == name);
        found.next().map(|(_, value)| value.as_slice())
    }

    /// The octets that these names have, as they are hashed and signed.
    pub(super) fn serialized(named: &[(&str, &[u8])]) -> Vec<u8> {
        let mut writer = Writer::new(true);
        writer.number(named.len());
        for (name, value) in named {
            writer.string(name);
            writer.octets(value);
        }
        writer.into_bytes()
    }

    pub(super) fn write(&self, writer: &mut Writer) {
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

    pub(super) fn read(reader: &mut Reader<'_>) -> Option<Self> {
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

/// A message between participants, of the stateless or the volatile topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GenericMessage {
    /// Who sends it: its writer, and the how-many-eth of its messages it is.
    pub identity: (Guid, i64),
    /// Which message it answers; unknown and zero if none.
    pub related: (Guid, i64),
    /// For which participant; unknown for all.
    pub destination_participant: Guid,
    /// For which of its endpoints, if for one.
    pub destination_endpoint: Guid,
    /// About which endpoint of the sender, if about one.
    pub source_endpoint: Guid,
    /// What kind of message.
    pub class: String,
    /// What it says.
    pub data: Vec<Token>,
}

impl GenericMessage {
    /// As a payload with its encapsulation, little-endian.
    pub fn to_payload(&self) -> Vec<u8> {
        let mut writer = Writer::new(false);
        let identity = |writer: &mut Writer, (guid, number): (Guid, i64)| {
            writer.raw(&guid.to_bytes());
            writer.long_number(number);
        };
        identity(&mut writer, self.identity);
        identity(&mut writer, self.related);
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

    /// Reads a payload; nothing if it is none, or larger than is accepted.
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
        let mut reader = Reader::new(body, big);
        let identity = |reader: &mut Reader<'_>| {
            let guid = Guid::from_bytes(reader.array()?);
            Some((guid, reader.long_number()?))
        };
        let identities = (identity(&mut reader)?, identity(&mut reader)?);
        let mut guid = || Some(Guid::from_bytes(reader.array()?));
        let (participant, endpoint, source) = (guid()?, guid()?, guid()?);
        let class = reader.string()?;
        let mut data = Vec::new();
        for _ in 0..reader.count(TOKENS)? {
            data.push(Token::read(&mut reader)?);
        }
        Some(Self {
            identity: identities.0,
            related: identities.1,
            destination_participant: participant,
            destination_endpoint: endpoint,
            source_endpoint: source,
            class,
            data,
        })
    }
}

/// Properties of one token; a reply has twelve.
const PROPERTIES: usize = 32;
/// Tokens of one message; key exchange sends a few.
const TOKENS: usize = 8;
/// The largest message: permissions for thousands of topics fit.
const PAYLOAD_BYTES: usize = 1 << 20;
