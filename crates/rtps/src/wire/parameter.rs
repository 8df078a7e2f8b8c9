//! Parameter lists: the encoding of discovery data and inline QoS (RTPS 2.5
//! §9.4.2.11, §9.6.2.2, §9.6.4).

use alloc::vec::Vec;

use super::number_set::write_sequence;
use super::{Cursor, WireError};
use crate::seq::SequenceNumber;

/// One parameter.
///
/// ```text
/// 0               2               4
/// +---------------+---------------+
/// | id            | length        |  id: 0x8000 vendor's own,
/// +---------------+---------------+      0x4000 must be understood
/// | value, padded to four bytes …
/// +-------------------------------+
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Parameter<'a> {
    /// The id as it stands on the wire, flags included.
    pub id: u16,
    /// The value with its padding.
    pub value: Cursor<'a>,
}

/// A parameter list, sentinel included, whose framing has been checked: every
/// parameter lies inside.
#[derive(Clone, Copy, Debug)]
pub struct Parameters<'a> {
    at: Cursor<'a>,
}

impl<'a> Parameters<'a> {
    /// Checks a list up to its sentinel and moves the cursor past it. A length that
    /// is no multiple of four violates §9.4.2.11; it is rounded up, as other stacks
    /// do.
    pub fn parse(at: &mut Cursor<'a>) -> Result<Self, WireError> {
        let list = Self { at: *at };
        let mut rest = *at;
        while let Some(parameter) = next(&mut rest)? {
            let _ = parameter;
        }
        *at = rest;
        Ok(list)
    }

    /// No parameters.
    pub const fn empty() -> Self {
        Self {
            at: Cursor::new(&[], super::Endianness::Little),
        }
    }

    /// The parameters in their order, padding left out.
    pub fn iter(&self) -> impl Iterator<Item = Parameter<'a>> + use<'a> {
        let mut at = self.at;
        core::iter::from_fn(move || next(&mut at).ok().flatten())
    }

    /// The value of the first parameter with this id.
    pub fn find(&self, id: u16) -> Option<Cursor<'a>> {
        self.iter()
            .find(|parameter| parameter.id == id)
            .map(|parameter| parameter.value)
    }
}

/// The next parameter, or `None` at the sentinel.
fn next<'a>(at: &mut Cursor<'a>) -> Result<Option<Parameter<'a>>, WireError> {
    loop {
        let id = at.u16()?;
        let length = at.u16()?;
        if id == pid::SENTINEL {
            return Ok(None);
        }
        let padded = usize::from(length).next_multiple_of(4);
        let value = at
            .bytes(padded)
            .map_err(|_| WireError::InvalidParameter(id))?;
        if id != pid::PAD {
            let value = value.get(..usize::from(length)).unwrap_or(value);
            return Ok(Some(Parameter {
                id,
                value: Cursor::new(value, at.endianness()),
            }));
        }
    }
}

/// Begins a parameter with an open length; returns its offset.
pub(crate) fn begin_parameter(out: &mut Vec<u8>, id: u16) -> usize {
    let at = out.len();
    out.extend_from_slice(&id.to_le_bytes());
    out.extend_from_slice(&[0, 0]);
    at
}

/// Pads the parameter begun at `at` to four bytes and fills in its length.
pub(crate) fn end_parameter(out: &mut Vec<u8>, at: usize) {
    let written = out.len().saturating_sub(at).saturating_sub(4);
    let padded = written.next_multiple_of(4);
    out.resize(out.len().saturating_add(padded.saturating_sub(written)), 0);
    let length = u16::try_from(padded).unwrap_or(u16::MAX);
    if let Some(field) = out.get_mut(at..).and_then(|head| head.get_mut(2..4)) {
        field.copy_from_slice(&length.to_le_bytes());
    }
}

/// Appends a whole parameter.
pub(crate) fn write_parameter(out: &mut Vec<u8>, id: u16, value: &[u8]) {
    let at = begin_parameter(out, id);
    out.extend_from_slice(value);
    end_parameter(out, at);
}

/// Appends a parameter that is a sequence number.
pub(crate) fn write_number(out: &mut Vec<u8>, id: u16, number: SequenceNumber) {
    let at = begin_parameter(out, id);
    write_sequence(out, number);
    end_parameter(out, at);
}

/// Appends the sentinel.
pub(crate) fn write_sentinel(out: &mut Vec<u8>) {
    write_parameter(out, pid::SENTINEL, &[]);
}

/// Parameter ids (RTPS 2.5 §9.6.4 table 9.14; XTypes 1.3 §7.6.3; DDS-RPC 1.0
/// §7.8.2; DDS Security 1.1 §7.4).
#[allow(missing_docs, reason = "the names are those of the tables")]
pub mod pid {
    /// Flag: a vendor's own parameter.
    pub const FLAG_VENDOR: u16 = 0x8000;
    /// Flag: a receiver that does not know the parameter must ignore the whole
    /// list.
    pub const FLAG_MUST_UNDERSTAND: u16 = 0x4000;

    /// Pteros, Fast DDS and RTI Connext: the product version.
    pub const VENDOR_PRODUCT_VERSION: u16 = 0x8000;
    /// Cyclone DDS: the product version and further data.
    pub const CYCLONE_VERSION_INFO: u16 = 0x8007;

    /// Pteros: readers that acknowledge nothing, in the announcement of a writer.
    pub const PTEROS_STALLED_READERS: u16 = 0x8050;
    /// Pteros: writers whose samples do not decode, with their number, in the
    /// announcement of a reader.
    pub const PTEROS_UNDECODABLE: u16 = 0x8051;

    pub const PAD: u16 = 0x0000;
    pub const SENTINEL: u16 = 0x0001;
    pub const PARTICIPANT_LEASE_DURATION: u16 = 0x0002;
    pub const TIME_BASED_FILTER: u16 = 0x0004;
    pub const TOPIC_NAME: u16 = 0x0005;
    pub const OWNERSHIP_STRENGTH: u16 = 0x0006;
    pub const TYPE_NAME: u16 = 0x0007;
    pub const DOMAIN_ID: u16 = 0x000f;
    pub const DOMAIN_TAG: u16 = 0x4014;
    pub const PROTOCOL_VERSION: u16 = 0x0015;
    pub const VENDOR_ID: u16 = 0x0016;
    pub const RELIABILITY: u16 = 0x001a;
    pub const LIVELINESS: u16 = 0x001b;
    pub const DURABILITY: u16 = 0x001d;
    pub const DURABILITY_SERVICE: u16 = 0x001e;
    pub const OWNERSHIP: u16 = 0x001f;
    pub const PRESENTATION: u16 = 0x0021;
    pub const DEADLINE: u16 = 0x0023;
    pub const DESTINATION_ORDER: u16 = 0x0025;
    pub const LATENCY_BUDGET: u16 = 0x0027;
    pub const PARTITION: u16 = 0x0029;
    pub const LIFESPAN: u16 = 0x002b;
    pub const USER_DATA: u16 = 0x002c;
    pub const GROUP_DATA: u16 = 0x002d;
    pub const TOPIC_DATA: u16 = 0x002e;
    pub const UNICAST_LOCATOR: u16 = 0x002f;
    pub const MULTICAST_LOCATOR: u16 = 0x0030;
    pub const DEFAULT_UNICAST_LOCATOR: u16 = 0x0031;
    pub const METATRAFFIC_UNICAST_LOCATOR: u16 = 0x0032;
    pub const METATRAFFIC_MULTICAST_LOCATOR: u16 = 0x0033;
    pub const PARTICIPANT_MANUAL_LIVELINESS_COUNT: u16 = 0x0034;
    pub const CONTENT_FILTER_PROPERTY: u16 = 0x0035;
    pub const HISTORY: u16 = 0x0040;
    pub const RESOURCE_LIMITS: u16 = 0x0041;
    pub const EXPECTS_INLINE_QOS: u16 = 0x0043;
    pub const DEFAULT_MULTICAST_LOCATOR: u16 = 0x0048;
    pub const TRANSPORT_PRIORITY: u16 = 0x0049;
    pub const PARTICIPANT_GUID: u16 = 0x0050;
    pub const GROUP_GUID: u16 = 0x0052;
    pub const GROUP_ENTITYID: u16 = 0x0053;
    pub const CONTENT_FILTER_INFO: u16 = 0x0055;
    pub const COHERENT_SET: u16 = 0x0056;
    pub const DIRECTED_WRITE: u16 = 0x0057;
    pub const BUILTIN_ENDPOINT_SET: u16 = 0x0058;
    pub const PROPERTY_LIST: u16 = 0x0059;
    pub const ENDPOINT_GUID: u16 = 0x005a;
    pub const TYPE_MAX_SIZE_SERIALIZED: u16 = 0x0060;
    pub const ORIGINAL_WRITER_INFO: u16 = 0x0061;
    pub const ENTITY_NAME: u16 = 0x0062;
    pub const GROUP_COHERENT_SET: u16 = 0x0063;
    pub const GROUP_SEQ_NUM: u16 = 0x0064;
    pub const WRITER_GROUP_INFO: u16 = 0x0065;
    pub const SECURE_WRITER_GROUP_INFO: u16 = 0x0066;
    pub const KEY_HASH: u16 = 0x0070;
    pub const STATUS_INFO: u16 = 0x0071;
    pub const DATA_REPRESENTATION: u16 = 0x0073;
    pub const TYPE_CONSISTENCY_ENFORCEMENT: u16 = 0x0074;
    pub const TYPE_INFORMATION: u16 = 0x0075;
    pub const BUILTIN_ENDPOINT_QOS: u16 = 0x0077;
    pub const RELATED_SAMPLE_IDENTITY: u16 = 0x0083;
    pub const IDENTITY_TOKEN: u16 = 0x1001;
    pub const PERMISSIONS_TOKEN: u16 = 0x1002;
    pub const ENDPOINT_SECURITY_INFO: u16 = 0x1004;
    pub const PARTICIPANT_SECURITY_INFO: u16 = 0x1005;
    pub const IDENTITY_STATUS_TOKEN: u16 = 0x1006;
    /// Fast DDS's older id of [`RELATED_SAMPLE_IDENTITY`].
    pub const LEGACY_RELATED_SAMPLE_IDENTITY: u16 = 0x800f;
}
