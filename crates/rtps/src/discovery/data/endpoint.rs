//! SEDP data: the announcement of one writer or reader (RTPS 2.5 §8.5.4.4,
//! DiscoveredWriterData and DiscoveredReaderData).

use alloc::string::String;
use alloc::vec::Vec;
use bytes::Bytes;

use super::encapsulation::{begin_parameters, parse_parameters};
use super::filter::{read_filter, write_filter};
use super::limits::{self, DataLimits};
use super::qos::{dds_defaults, parse_policy, write_policies};
use super::value::{
    boolean, name, push_locator, read, write_bool, write_locators, write_string, write_u32,
};
use crate::content_filter::ContentFilterProperty;
use crate::id::{EntityId, Guid, ProtocolVersion, VendorId};
use crate::locator::Locator;
use crate::shared_qos::SharedQos;
use crate::wire::{
    Cursor, Parameter, Parameters, WireError, begin_parameter, end_parameter, pid, write_parameter,
    write_sentinel,
};

/// The announced properties of a writer or a reader; its GUID has the kind.
#[derive(Clone, PartialEq, Hash, Debug)]
pub struct EndpointData {
    /// Its identity.
    pub guid: Guid,
    /// Topic name in its wire form.
    pub topic: String,
    /// Type name in its wire form.
    pub type_name: String,
    /// Its QoS policies. The DDS defaults replace those that a peer leaves out.
    pub qos: SharedQos,
    /// Unicast locators; empty means the participant's default locators.
    pub unicast: Vec<Locator>,
    /// Multicast locators.
    pub multicast: Vec<Locator>,
    /// The reader requests QoS with every change.
    pub expects_inline_qos: bool,
    /// XTypes TypeInformation in its received form.
    pub type_information: Option<Bytes>,
    /// Size of the writer's largest sample, bytes.
    pub max_serialized_size: Option<u32>,
    /// The reader's content filter; `None` also for one that exceeds the limits.
    pub content_filter: Option<ContentFilterProperty>,
    /// The DDS publisher or subscriber, if it presents several endpoints as one
    /// group.
    pub group: Option<Guid>,
    /// ENDPOINT_SECURITY_INFO: which parts are protected, and how (DDS Security 1.1
    /// §7.4.1.5, §9.4.2).
    pub security_info: Option<(u32, u32)>,
    /// The matched readers that acknowledge nothing, at most
    /// [`limits::STALLED_READERS`]; announced by writers of Pteros alone.
    pub stalled_readers: Vec<Guid>,
    /// How many samples of matched writers did not decode as the reader's type, at most
    /// [`limits::UNDECODABLE_WRITERS`]; announced by readers of Pteros alone.
    pub undecodable: Vec<(Guid, u32)>,
}

impl EndpointData {
    /// An endpoint with the mandatory properties only.
    pub fn new(guid: Guid, topic: &str, type_name: &str, qos: impl Into<SharedQos>) -> Self {
        Self {
            guid,
            topic: String::from(topic),
            type_name: String::from(type_name),
            qos: qos.into(),
            unicast: Vec::new(),
            multicast: Vec::new(),
            expects_inline_qos: false,
            type_information: None,
            max_serialized_size: None,
            content_filter: None,
            group: None,
            security_info: None,
            stalled_readers: Vec::new(),
            undecodable: Vec::new(),
        }
    }

    /// Whether it is a writer.
    pub fn is_writer(&self) -> bool {
        self.guid.entity.is_writer()
    }

    /// Whether only authenticated participants receive its announcement.
    pub fn is_discovery_protected(&self) -> bool {
        let protected = SECURITY_VALID | DISCOVERY_PROTECTED;
        self.security_info
            .is_some_and(|(attributes, _)| attributes & protected == protected)
    }

    /// Reads the payload of an SEDP sample, encapsulation included, with the
    /// default limits.
    pub fn parse(payload: &[u8]) -> Result<Self, WireError> {
        Self::parse_within(payload, &DataLimits::default())
    }

    /// As [`EndpointData::parse`], with these limits.
    pub fn parse_within(payload: &[u8], within: &DataLimits) -> Result<Self, WireError> {
        let parameters = parse_parameters(payload)?;
        // The defaults depend on writer or reader, which the GUID shows.
        let guid = find_guid(&parameters)?;
        let mut data = Self::new(guid, "", "", dds_defaults(guid.entity.is_writer()));
        let vendor = parameters.find(pid::VENDOR_ID).map(|of| of.rest());
        let is_ours = vendor.is_some_and(|vendor| vendor.starts_with(&VendorId::PTEROS.0));
        for parameter in parameters.iter() {
            // Another vendor may use these ids for something else.
            if parameter.id == pid::PTEROS_STALLED_READERS {
                if is_ours {
                    data.stalled_readers = read(parameter, guids)?;
                }
            } else if parameter.id == pid::PTEROS_UNDECODABLE {
                if is_ours {
                    data.undecodable = read(parameter, counts)?;
                }
            } else if !parse_policy(&mut data.qos, parameter, within)? {
                data.apply_parameter(parameter, within)?;
            }
        }
        if data.topic.is_empty() {
            return Err(WireError::MissingParameter(pid::TOPIC_NAME));
        }
        if data.type_name.is_empty() {
            return Err(WireError::MissingParameter(pid::TYPE_NAME));
        }
        Ok(data)
    }

    fn apply_parameter(
        &mut self,
        parameter: Parameter<'_>,
        within: &DataLimits,
    ) -> Result<(), WireError> {
        let name = |at: &mut Cursor<'_>| name(parameter, at, within.name_bytes);
        match parameter.id {
            pid::TOPIC_NAME => self.topic = read(parameter, name)?,
            pid::TYPE_NAME => self.type_name = read(parameter, name)?,
            pid::UNICAST_LOCATOR => push_locator(parameter, &mut self.unicast)?,
            pid::MULTICAST_LOCATOR => push_locator(parameter, &mut self.multicast)?,
            pid::EXPECTS_INLINE_QOS => self.expects_inline_qos = read(parameter, boolean)?,
            pid::TYPE_INFORMATION => self.type_information = opaque(parameter),
            pid::CONTENT_FILTER_PROPERTY => {
                self.content_filter = read_filter(parameter, within.name_bytes)
            }
            pid::TYPE_MAX_SIZE_SERIALIZED => {
                self.max_serialized_size = Some(read(parameter, Cursor::u32)?);
            }
            // A group of another participant would let this writer block or corrupt
            // the coherent sets of that participant's publisher.
            pid::GROUP_GUID => {
                let group = Some(read(parameter, Cursor::guid)?);
                self.group = group.filter(|group| group.prefix == self.guid.prefix);
            }
            // Both parameters name the same group; the GUID is unambiguous.
            pid::GROUP_ENTITYID if self.group.is_none() => {
                let group = self.guid.prefix.with(read(parameter, Cursor::entity_id)?);
                self.group = Some(group).filter(|group| group.entity != EntityId::UNKNOWN);
            }
            pid::ENDPOINT_SECURITY_INFO => {
                self.security_info = Some(read(parameter, |at| Ok((at.u32()?, at.u32()?)))?);
            }
            id if id & pid::FLAG_MUST_UNDERSTAND != 0 => {
                return Err(WireError::NotUnderstood(id));
            }
            _ => {}
        }
        Ok(())
    }

    /// The payload of an SEDP sample, encapsulation included.
    pub fn encode(&self) -> Bytes {
        let mut out = begin_parameters();
        let o = &mut out;
        let version = [ProtocolVersion::OURS.major, ProtocolVersion::OURS.minor];
        let participant = self.guid.prefix.with(EntityId::PARTICIPANT);
        write_parameter(o, pid::ENDPOINT_GUID, &self.guid.to_bytes());
        write_parameter(o, pid::PARTICIPANT_GUID, &participant.to_bytes());
        // Older Fast DDS reads the identity from here.
        write_parameter(o, pid::KEY_HASH, &self.guid.to_bytes());
        write_parameter(o, pid::PROTOCOL_VERSION, &version);
        write_parameter(o, pid::VENDOR_ID, &VendorId::PTEROS.0);
        write_string(o, pid::TOPIC_NAME, &self.topic);
        write_string(o, pid::TYPE_NAME, &self.type_name);
        write_locators(o, pid::UNICAST_LOCATOR, &self.unicast);
        write_locators(o, pid::MULTICAST_LOCATOR, &self.multicast);
        if self.expects_inline_qos {
            write_bool(o, pid::EXPECTS_INLINE_QOS, true);
        }
        if let Some(size) = self.max_serialized_size {
            write_u32(o, pid::TYPE_MAX_SIZE_SERIALIZED, size);
        }
        write_policies(o, &self.qos, self.is_writer());
        if let Some(group) = &self.group {
            write_parameter(o, pid::GROUP_GUID, &group.to_bytes());
            write_parameter(o, pid::GROUP_ENTITYID, &group.entity.to_bytes());
        }
        if let Some(value) = &self.type_information {
            write_parameter(o, pid::TYPE_INFORMATION, value);
        }
        if let Some(filter) = &self.content_filter {
            write_filter(o, filter);
        }
        if let Some((attributes, plugin)) = self.security_info {
            let value = u64::from(attributes) | (u64::from(plugin) << 32);
            write_parameter(o, pid::ENDPOINT_SECURITY_INFO, &value.to_le_bytes());
        }
        if !self.stalled_readers.is_empty() {
            let at = begin_parameter(o, pid::PTEROS_STALLED_READERS);
            for reader in self.stalled_readers.iter().take(limits::STALLED_READERS) {
                o.extend_from_slice(&reader.to_bytes());
            }
            end_parameter(o, at);
        }
        if !self.undecodable.is_empty() {
            let at = begin_parameter(o, pid::PTEROS_UNDECODABLE);
            for (writer, count) in self.undecodable.iter().take(limits::UNDECODABLE_WRITERS) {
                o.extend_from_slice(&writer.to_bytes());
                o.extend_from_slice(&count.to_le_bytes());
            }
            end_parameter(o, at);
        }
        write_sentinel(o);
        // Exact size: it lives as long as the endpoint, and there are many.
        Bytes::from(out.into_boxed_slice())
    }

    /// Reads a payload that holds only the key of an endpoint, as a dispose does.
    pub fn parse_key(payload: &[u8]) -> Option<Guid> {
        find_guid(&parse_parameters(payload).ok()?).ok()
    }

    /// A payload that holds only the key of an endpoint.
    pub fn encode_key(guid: Guid) -> Bytes {
        let mut out = begin_parameters();
        write_parameter(&mut out, pid::ENDPOINT_GUID, &guid.to_bytes());
        write_sentinel(&mut out);
        Bytes::from(out)
    }
}

/// Without this bit the other bits have no meaning.
const SECURITY_VALID: u32 = 1 << 31;
const DISCOVERY_PROTECTED: u32 = 1 << 2;
/// Protection of discovery, submessages, payloads, keys and liveliness.
const PROTECTED: u32 = 0x7c;

/// Whether two endpoints have the same protection. Only such endpoints match.
pub(crate) fn has_same_protection(one: &EndpointData, other: &EndpointData) -> bool {
    let of = |data: &EndpointData| match data.security_info {
        Some((attributes, plugin)) if attributes & SECURITY_VALID != 0 => {
            (attributes & PROTECTED, plugin & !SECURITY_VALID)
        }
        // An older implementation, or one without security.
        _ => (0, 0),
    };
    of(one) == of(other)
}

/// The endpoint's GUID, or the key hash, which has the same bytes.
fn find_guid(parameters: &Parameters<'_>) -> Result<Guid, WireError> {
    let guid = parameters
        .find(pid::ENDPOINT_GUID)
        .or_else(|| parameters.find(pid::KEY_HASH))
        .ok_or(WireError::MissingParameter(pid::ENDPOINT_GUID))?
        .guid()
        .map_err(|_| WireError::InvalidParameter(pid::ENDPOINT_GUID))?;
    if guid.entity.is_writer() || guid.entity.is_reader() {
        Ok(guid)
    } else {
        Err(WireError::InvalidParameter(pid::ENDPOINT_GUID))
    }
}

/// GUIDs one after the other; the first ones are kept.
fn guids(at: &mut Cursor<'_>) -> Result<Vec<Guid>, WireError> {
    let mut guids = Vec::new();
    while !at.rest().is_empty() && guids.len() < limits::STALLED_READERS {
        guids.push(at.guid()?);
    }
    Ok(guids)
}

/// GUIDs with a count each; the first ones are kept.
fn counts(at: &mut Cursor<'_>) -> Result<Vec<(Guid, u32)>, WireError> {
    let mut counts = Vec::new();
    while !at.rest().is_empty() && counts.len() < limits::UNDECODABLE_WRITERS {
        counts.push((at.guid()?, at.u32()?));
    }
    Ok(counts)
}

fn opaque(parameter: Parameter<'_>) -> Option<Bytes> {
    let value = parameter.value.rest();
    (value.len() <= limits::OPAQUE_BYTES).then(|| Bytes::copy_from_slice(value))
}
