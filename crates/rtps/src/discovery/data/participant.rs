//! SPDP data: the announcement of a participant (RTPS 2.5 §8.5.3.2,
//! SPDPdiscoveredParticipantData).

use alloc::string::String;
use alloc::vec::Vec;
use bytes::Bytes;

use super::encapsulation::{begin_parameters, parse_parameters};
use super::limits::{self, DataLimits};
use super::product::ProductVersion;
use super::value::{
    boolean, duration, name, octets, push_locator, put_string, put_u32, read, string_bytes,
    write_bool, write_duration, write_locators, write_octets, write_string, write_u32,
};
use crate::id::{EntityId, Guid, GuidPrefix, ProtocolVersion, VendorId};
use crate::locator::Locator;
use crate::time::Duration;
use crate::wire::{
    Cursor, Parameter, WireError, begin_parameter, end_parameter, pid, write_parameter,
    write_sentinel,
};

/// The announced properties of a participant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParticipantData {
    /// Its identity.
    pub prefix: GuidPrefix,
    /// Its protocol version.
    pub version: ProtocolVersion,
    /// The implementation that it runs (PID_VENDORID, RTPS 2.5 §9.3.2.1).
    pub vendor: VendorId,
    /// The version of the vendor's product, if announced.
    pub product: Option<ProductVersion>,
    /// Its domain; older peers do not announce it.
    pub domain_id: Option<u32>,
    /// Domain tag; participants discover each other only with equal tags.
    pub domain_tag: Option<String>,
    /// Its built-in endpoints (§9.3.2.12).
    pub builtin_endpoints: u32,
    /// QoS of those; bit 0: its liveliness reader is best effort.
    pub builtin_qos: u32,
    /// Unicast locators of its built-in endpoints.
    pub metatraffic_unicast: Vec<Locator>,
    /// The same by multicast.
    pub metatraffic_multicast: Vec<Locator>,
    /// Unicast locators of its endpoints that announce none of their own.
    pub default_unicast: Vec<Locator>,
    /// The same by multicast.
    pub default_multicast: Vec<Locator>,
    /// Participant lease: how long it stays known without a received message.
    pub lease: Duration,
    /// Grows with each manual liveliness assertion (old form).
    pub manual_liveliness_count: u32,
    /// USER_DATA; ROS puts `enclave=/…;` here.
    pub user_data: Vec<u8>,
    /// A readable name; Fast DDS puts the enclave here.
    pub entity_name: Option<String>,
    /// Property names and values, for diagnostics and vendors.
    pub properties: Vec<(String, String)>,
    /// Its readers request QoS with every change.
    pub expects_inline_qos: bool,
    /// DDS Security tokens and flags in their received form: parameter id and
    /// value.
    pub security_tokens: Vec<(u16, Bytes)>,
}

impl ParticipantData {
    /// The lease of a participant that announces none (§8.5.3.2).
    pub const LEASE_DEFAULT: Duration = Duration::from_secs(100);

    /// A participant with the mandatory properties only.
    pub fn new(prefix: GuidPrefix) -> Self {
        Self {
            prefix,
            version: ProtocolVersion::OURS,
            vendor: VendorId::PTEROS,
            product: Some(ProductVersion::OURS),
            domain_id: None,
            domain_tag: None,
            builtin_endpoints: 0,
            builtin_qos: 0,
            metatraffic_unicast: Vec::new(),
            metatraffic_multicast: Vec::new(),
            default_unicast: Vec::new(),
            default_multicast: Vec::new(),
            lease: Self::LEASE_DEFAULT,
            manual_liveliness_count: 0,
            user_data: Vec::new(),
            entity_name: None,
            properties: Vec::new(),
            expects_inline_qos: false,
            security_tokens: Vec::new(),
        }
    }

    /// Its GUID.
    pub fn guid(&self) -> Guid {
        self.prefix.with(EntityId::PARTICIPANT)
    }

    /// Whether it is a Pteros participant that names Fast DDS as its vendor, since discovery
    /// servers accept no other one.
    fn is_client_of_servers(&self) -> bool {
        self.vendor == VendorId::FAST_DDS && self.prefix.0.starts_with(&VendorId::PTEROS.0)
    }

    /// Reads the payload of an SPDP sample, encapsulation included, with the
    /// default limits.
    pub fn parse(payload: &[u8]) -> Result<Self, WireError> {
        Self::parse_within(payload, &DataLimits::default())
    }

    /// As [`ParticipantData::parse`], with these limits.
    pub fn parse_within(payload: &[u8], within: &DataLimits) -> Result<Self, WireError> {
        let mut data = Self::new(GuidPrefix::UNKNOWN);
        data.version = ProtocolVersion { major: 2, minor: 1 };
        data.vendor = VendorId::default();
        data.product = None;
        let mut guid = None;
        for parameter in parse_parameters(payload)?.iter() {
            if parameter.id == pid::PARTICIPANT_GUID {
                guid = Some(read(parameter, Cursor::guid)?);
            } else {
                data.apply_parameter(parameter, within)?;
            }
        }
        let guid = guid.ok_or(WireError::MissingParameter(pid::PARTICIPANT_GUID))?;
        if guid.prefix == GuidPrefix::UNKNOWN {
            return Err(WireError::InvalidParameter(pid::PARTICIPANT_GUID));
        }
        data.prefix = guid.prefix;
        if data.is_client_of_servers() {
            data.vendor = VendorId::PTEROS;
        }
        // Its meaning depends on the vendor, which a later parameter may name.
        if let Some(id) = ProductVersion::parameter_of(data.vendor) {
            let announced = parse_parameters(payload)?.find(id);
            data.product =
                announced.and_then(|mut value| ProductVersion::read(data.vendor, &mut value));
        }
        Ok(data)
    }

    fn apply_parameter(
        &mut self,
        parameter: Parameter<'_>,
        within: &DataLimits,
    ) -> Result<(), WireError> {
        match parameter.id {
            pid::PROTOCOL_VERSION => {
                let [major, minor] = read(parameter, Cursor::array)?;
                self.version = ProtocolVersion { major, minor };
            }
            pid::VENDOR_ID => self.vendor = VendorId(read(parameter, Cursor::array)?),
            pid::DOMAIN_ID => self.domain_id = Some(read(parameter, Cursor::u32)?),
            pid::DOMAIN_TAG => {
                self.domain_tag = Some(read(parameter, |at| {
                    name(parameter, at, within.name_bytes)
                })?);
            }
            pid::BUILTIN_ENDPOINT_SET => self.builtin_endpoints = read(parameter, Cursor::u32)?,
            pid::BUILTIN_ENDPOINT_QOS => self.builtin_qos = read(parameter, Cursor::u32)?,
            pid::METATRAFFIC_UNICAST_LOCATOR => {
                push_locator(parameter, &mut self.metatraffic_unicast)?;
            }
            pid::METATRAFFIC_MULTICAST_LOCATOR => {
                push_locator(parameter, &mut self.metatraffic_multicast)?;
            }
            pid::DEFAULT_UNICAST_LOCATOR => push_locator(parameter, &mut self.default_unicast)?,
            pid::DEFAULT_MULTICAST_LOCATOR => {
                push_locator(parameter, &mut self.default_multicast)?;
            }
            pid::PARTICIPANT_LEASE_DURATION => self.lease = read(parameter, duration)?,
            pid::PARTICIPANT_MANUAL_LIVELINESS_COUNT => {
                self.manual_liveliness_count = read(parameter, Cursor::u32)?;
            }
            pid::USER_DATA => self.user_data = octets(parameter, within.user_data_bytes)?,
            pid::ENTITY_NAME => {
                let text = read(parameter, string_bytes)?;
                self.entity_name = (text.len() <= limits::ENTITY_NAME_BYTES)
                    .then(|| String::from_utf8_lossy(text).into_owned());
            }
            pid::PROPERTY_LIST => self.properties = read(parameter, |at| properties(at, within))?,
            pid::EXPECTS_INLINE_QOS => self.expects_inline_qos = read(parameter, boolean)?,
            pid::IDENTITY_TOKEN
            | pid::PERMISSIONS_TOKEN
            | pid::IDENTITY_STATUS_TOKEN
            | pid::PARTICIPANT_SECURITY_INFO => self.apply_security_token(parameter),
            id if id & pid::FLAG_MUST_UNDERSTAND != 0 => {
                return Err(WireError::NotUnderstood(id));
            }
            _ => {}
        }
        Ok(())
    }

    fn apply_security_token(&mut self, parameter: Parameter<'_>) {
        let token = parameter.value.rest();
        let has_space = self.security_tokens.len() < limits::SECURITY_TOKENS;
        if has_space && token.len() <= limits::OPAQUE_BYTES {
            self.security_tokens
                .push((parameter.id, Bytes::copy_from_slice(token)));
        }
    }

    /// The payload of an SPDP sample, encapsulation included.
    pub fn encode(&self) -> Bytes {
        let mut out = begin_parameters();
        let o = &mut out;
        let version = [self.version.major, self.version.minor];
        write_parameter(o, pid::PROTOCOL_VERSION, &version);
        write_parameter(o, pid::VENDOR_ID, &self.vendor.0);
        let is_ours = self.vendor == VendorId::PTEROS || self.is_client_of_servers();
        if let Some(product) = self.product.filter(|_| is_ours) {
            write_parameter(o, pid::VENDOR_PRODUCT_VERSION, &product.0);
        }
        write_parameter(o, pid::PARTICIPANT_GUID, &self.guid().to_bytes());
        write_u32(o, pid::BUILTIN_ENDPOINT_SET, self.builtin_endpoints);
        if self.builtin_qos != 0 {
            write_u32(o, pid::BUILTIN_ENDPOINT_QOS, self.builtin_qos);
        }
        if let Some(domain_id) = self.domain_id {
            write_u32(o, pid::DOMAIN_ID, domain_id);
        }
        if let Some(tag) = self.domain_tag.as_deref().filter(|tag| !tag.is_empty()) {
            write_string(o, pid::DOMAIN_TAG, tag);
        }
        for (id, locators) in [
            (pid::METATRAFFIC_UNICAST_LOCATOR, &self.metatraffic_unicast),
            (
                pid::METATRAFFIC_MULTICAST_LOCATOR,
                &self.metatraffic_multicast,
            ),
            (pid::DEFAULT_UNICAST_LOCATOR, &self.default_unicast),
            (pid::DEFAULT_MULTICAST_LOCATOR, &self.default_multicast),
        ] {
            write_locators(o, id, locators);
        }
        write_duration(o, pid::PARTICIPANT_LEASE_DURATION, self.lease);
        if self.manual_liveliness_count != 0 {
            let count = self.manual_liveliness_count;
            write_u32(o, pid::PARTICIPANT_MANUAL_LIVELINESS_COUNT, count);
        }
        if self.expects_inline_qos {
            write_bool(o, pid::EXPECTS_INLINE_QOS, true);
        }
        if !self.user_data.is_empty() {
            write_octets(o, pid::USER_DATA, &self.user_data);
        }
        if let Some(name) = &self.entity_name {
            write_string(o, pid::ENTITY_NAME, name);
        }
        if !self.properties.is_empty() {
            write_properties(o, &self.properties);
        }
        for (id, token) in &self.security_tokens {
            write_parameter(o, *id, token);
        }
        write_sentinel(o);
        Bytes::from(out)
    }

    /// Reads a payload that holds only the key of a participant, as a dispose does.
    pub fn parse_key(payload: &[u8]) -> Option<Guid> {
        let mut value = parse_parameters(payload)
            .ok()?
            .find(pid::PARTICIPANT_GUID)?;
        value.guid().ok()
    }

    /// A payload that holds only the key of a participant.
    pub fn encode_key(prefix: GuidPrefix) -> Bytes {
        let mut out = begin_parameters();
        let guid = prefix.with(EntityId::PARTICIPANT);
        write_parameter(&mut out, pid::PARTICIPANT_GUID, &guid.to_bytes());
        write_sentinel(&mut out);
        Bytes::from(out)
    }
}

/// Pairs of strings; empty when the list exceeds its limit. Binary properties,
/// which may follow, belong to DDS Security and are skipped.
fn properties(
    at: &mut Cursor<'_>,
    within: &DataLimits,
) -> Result<Vec<(String, String)>, WireError> {
    let mut properties = Vec::new();
    if at.rest().len() > within.property_list_bytes {
        return Ok(properties);
    }
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    for _ in 0..at.u32()? {
        let name = text(string_bytes(at)?);
        let value = text(string_bytes(at)?);
        properties.push((name, value));
    }
    properties.shrink_to_fit();
    Ok(properties)
}

fn write_properties(out: &mut Vec<u8>, properties: &[(String, String)]) {
    let at = begin_parameter(out, pid::PROPERTY_LIST);
    put_u32(out, properties.len() as u32);
    for (name, value) in properties {
        put_string(out, name);
        put_string(out, value);
    }
    end_parameter(out, at);
}
