//! Security attributes: the governance rules as the bits that participants and
//! endpoints announce (DDS Security 1.1 §7.4.1.5, §7.4.1.6, §9.4.2). Endpoints that
//! are protected differently do not match.

use crate::governance::{DomainRule, PayloadProtection, Protection, TopicRule};

/// PARTICIPANT_SECURITY_INFO or ENDPOINT_SECURITY_INFO.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SecurityInfo {
    /// The protection.
    pub attributes: u32,
    /// How the built-in plug-ins protect it.
    pub plugin_attributes: u32,
}

impl SecurityInfo {
    /// The attributes of a participant in a domain with this rule.
    pub fn of_participant(rule: &DomainRule) -> Self {
        let kinds = [rule.rtps, rule.discovery, rule.liveliness];
        let bits = |is: fn(Protection) -> bool| {
            let set = kinds.iter().zip([1, 2, 4]).filter(|(kind, _)| is(**kind));
            set.fold(0, |bits, (_, bit)| bits | bit)
        };
        Self {
            attributes: VALID | bits(Protection::is_on),
            plugin_attributes: VALID
                | bits(Protection::encrypts)
                | (bits(Protection::authenticates_origin) << 3),
        }
    }

    /// The attributes of an endpoint of a topic with this rule.
    pub fn of_endpoint(rule: &TopicRule) -> Self {
        let encrypts_payload = rule.data == PayloadProtection::Encrypt;
        let attributes = [
            rule.read_access_control,
            rule.write_access_control,
            rule.discovery_protected,
            rule.metadata.is_on(),
            rule.data != PayloadProtection::None,
            // Key hashes are sent as hashes where payloads are encrypted.
            encrypts_payload,
            rule.liveliness_protected,
        ];
        let plugin = [
            rule.metadata.encrypts(),
            encrypts_payload,
            rule.metadata.authenticates_origin(),
        ];
        Self {
            attributes: VALID | bits(&attributes),
            plugin_attributes: VALID | bits(&plugin),
        }
    }

    /// Whether both have the same protection. A peer that announces no valid
    /// attributes is an older implementation or an unprotected one, and does not
    /// match.
    pub fn matches(self, other: Self) -> bool {
        self.attributes & VALID != 0
            && self.attributes == other.attributes
            && self.plugin_attributes == other.plugin_attributes
    }

    /// How a participant's governance differs from this one; `None` if either
    /// announces no valid attributes.
    pub fn difference(self, theirs: Self) -> Option<String> {
        if (self.attributes & theirs.attributes & VALID) == 0 {
            return None;
        }
        let kind = |info: Self, bit: u32| {
            let has = |bits: u32, bit: u32| bits & bit != 0;
            let plugin = info.plugin_attributes;
            let kind = match (has(info.attributes, bit), has(plugin, bit)) {
                (false, _) => "NONE",
                (true, false) => "SIGN",
                (true, true) => "ENCRYPT",
            };
            if has(plugin, bit << 3) && kind != "NONE" {
                format!("{kind}_WITH_ORIGIN_AUTHENTICATION")
            } else {
                kind.to_owned()
            }
        };
        let kinds = [("rtps", 1), ("discovery", 2), ("liveliness", 4)];
        let all = kinds.map(|(name, bit)| (name, kind(theirs, bit), kind(self, bit)));
        let mut different = all.into_iter().filter(|(_, there, here)| there != here);
        let (name, there, here) = different.next()?;
        Some(format!(
            "its governance has <{name}_protection_kind> {there}, and ours {here}; all of a domain \
             need the same governance.p7s"
        ))
    }

    /// Encodes the value of its parameter in this byte order.
    pub fn to_bytes(self, big_endian: bool) -> [u8; 8] {
        let bytes = |number: u32| {
            if big_endian {
                number.to_be_bytes()
            } else {
                number.to_le_bytes()
            }
        };
        let ([a, b, c, d], [e, f, g, h]) = (bytes(self.attributes), bytes(self.plugin_attributes));
        [a, b, c, d, e, f, g, h]
    }

    /// Decodes the value of the parameter in the byte order that makes it valid.
    pub fn from_either(bytes: [u8; 8]) -> Option<Self> {
        let either = [false, true].map(|big_endian| Self::from_bytes(bytes, big_endian));
        either.into_iter().find(|info| info.attributes & VALID != 0)
    }

    /// Decodes the value of the parameter.
    pub fn from_bytes(bytes: [u8; 8], big_endian: bool) -> Self {
        let [a, b, c, d, e, f, g, h] = bytes;
        let number = |bytes: [u8; 4]| {
            if big_endian {
                u32::from_be_bytes(bytes)
            } else {
                u32::from_le_bytes(bytes)
            }
        };
        Self {
            attributes: number([a, b, c, d]),
            plugin_attributes: number([e, f, g, h]),
        }
    }
}

/// The first is bit 0.
fn bits(flags: &[bool]) -> u32 {
    let mut bits = 0;
    for flag in flags.iter().rev() {
        bits = (bits << 1) | u32::from(*flag);
    }
    bits
}

/// Without this bit the other bits mean nothing.
const VALID: u32 = 1 << 31;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::date::UnixTime;
    use crate::enclave::Enclave;

    #[test]
    fn sros_2s_governance_is_announced_as_cyclone_and_fast_dds_announce_it() {
        let folder = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/fixtures/sros2/enclaves/talker"
        );
        let enclave = Enclave::load(folder.as_ref(), UnixTime(1_893_456_000)).unwrap();
        let rule = enclave.governance.rule(0).unwrap();
        let info = SecurityInfo::of_participant(rule);
        // Debian's Cyclone DDS 0.10.2 and Fast DDS 2.9.1, recorded.
        let recorded = [7, 0, 0, 0x80, 6, 0, 0, 0x80];
        assert_eq!(info.to_bytes(false), recorded);
        assert_eq!(SecurityInfo::from_bytes(recorded, false), info);
        assert_eq!(SecurityInfo::from_bytes(info.to_bytes(true), true), info);
        let endpoint = SecurityInfo::of_endpoint(rule.topic("rt/chatter").unwrap());
        assert_eq!(endpoint.attributes, 0x8000_007f);
        assert_eq!(endpoint.plugin_attributes, 0x8000_0003);
        assert!(info.matches(info) && !info.matches(endpoint));
        let nothing = SecurityInfo::from_bytes([0; 8], false);
        assert!(!nothing.matches(nothing));

        let mut strict = rule.clone();
        strict.rtps = Protection::EncryptWithOriginAuthentication;
        strict.liveliness = Protection::None;
        let info = SecurityInfo::of_participant(&strict);
        assert_eq!(info.attributes, 0x8000_0003);
        assert_eq!(info.plugin_attributes, 0x8000_000b);
        let usual = SecurityInfo::from_either(recorded).unwrap();
        assert_eq!(SecurityInfo::from_either(usual.to_bytes(true)), Some(usual));
        assert_eq!(usual.difference(usual), None);
        assert_eq!(usual.difference(nothing), None);
        let why = usual.difference(info).unwrap();
        let kinds = "<rtps_protection_kind> ENCRYPT_WITH_ORIGIN_AUTHENTICATION, and ours SIGN";
        assert!(why.contains(kinds), "{why}");
    }
}
