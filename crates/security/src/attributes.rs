//! What a governance document asks for, as the bits that participants and
//! endpoints announce (DDS Security 1.1 §7.4.1.5, §7.4.1.6, §9.4.2): two that
//! protect in different ways do not match.

use crate::governance::{DomainRule, PayloadProtection, Protection, TopicRule};

/// PARTICIPANT_SECURITY_INFO or ENDPOINT_SECURITY_INFO.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SecurityInfo {
    /// What is protected.
    pub attributes: u32,
    /// How the built-in plug-ins do it.
    pub plugin_attributes: u32,
}

impl SecurityInfo {
    /// What a participant of a domain with this rule announces.
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

    /// What an endpoint of a topic with this rule announces.
    pub fn of_endpoint(rule: &TopicRule) -> Self {
        let encrypts_payload = rule.data == PayloadProtection::Encrypt;
        let attributes = [
            rule.read_access_control,
            rule.write_access_control,
            rule.discovery_protected,
            rule.metadata.is_on(),
            rule.data != PayloadProtection::None,
            // Keys are hashed where payloads are hidden.
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

    /// Whether both protect alike. One that announces nothing valid, or nothing
    /// at all, is an older implementation or an open one, and does not.
    pub fn matches(self, other: Self) -> bool {
        self.attributes & VALID != 0
            && self.attributes == other.attributes
            && self.plugin_attributes == other.plugin_attributes
    }

    /// What of a participant's governance is not as in this one; nothing where one
    /// of both announces nothing valid.
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
            match has(plugin, bit << 3) && kind != "NONE" {
                true => format!("{kind}_WITH_ORIGIN_AUTHENTICATION"),
                false => kind.to_owned(),
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

    /// The value of its parameter in this byte order.
    pub fn to_bytes(self, big_endian: bool) -> [u8; 8] {
        let bytes = |number: u32| match big_endian {
            true => number.to_be_bytes(),
            false => number.to_le_bytes(),
        };
        let ([a, b, c, d], [e, f, g, h]) = (bytes(self.attributes), bytes(self.plugin_attributes));
        [a, b, c, d, e, f, g, h]
    }

    /// Reads the value of the parameter in whichever byte order makes it valid.
    pub fn from_either(bytes: [u8; 8]) -> Option<Self> {
        let either = [false, true].map(|big_endian| Self::from_bytes(bytes, big_endian));
        either.into_iter().find(|info| info.attributes & VALID != 0)
    }

    /// Reads the value of the parameter.
    pub fn from_bytes(bytes: [u8; 8], big_endian: bool) -> Self {
        let [a, b, c, d, e, f, g, h] = bytes;
        let number = |bytes: [u8; 4]| match big_endian {
            true => u32::from_be_bytes(bytes),
            false => u32::from_le_bytes(bytes),
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

/// Without it the other bits mean nothing.
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
