//! Signed participant data of the authentication handshake (`c.pdata`, DDS Security
//! 1.1 §9.3.2.5.1): a parameter list without encapsulation, big-endian, as all
//! peers read it.

use alloc::vec::Vec;

use super::ParticipantData;
use crate::locator::Locator;
use crate::wire::{WireError, pid};

/// Encapsulation of a big-endian parameter list.
const PL_CDR_BE: [u8; 4] = [0, 2, 0, 0];

impl ParticipantData {
    /// The signed properties: identity, protocol and locators.
    pub fn to_signed(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut put = |id: u16, value: &[u8]| {
            let padded = value.len().next_multiple_of(4);
            out.extend_from_slice(&id.to_be_bytes());
            out.extend_from_slice(&u16::try_from(padded).unwrap_or(u16::MAX).to_be_bytes());
            out.extend_from_slice(value);
            let padding = padded.saturating_sub(value.len());
            out.resize(out.len().saturating_add(padding), 0);
        };
        let version = [self.version.major, self.version.minor];
        put(pid::PROTOCOL_VERSION, &version);
        put(pid::VENDOR_ID, &self.vendor.0);
        put(pid::PARTICIPANT_GUID, &self.guid().to_bytes());
        let builtin = self.builtin_endpoints.to_be_bytes();
        put(pid::BUILTIN_ENDPOINT_SET, &builtin);
        if let Some(domain_id) = self.domain_id {
            put(pid::DOMAIN_ID, &domain_id.to_be_bytes());
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
            for locator in locators {
                put(id, &big_endian(locator));
            }
        }
        let (seconds, fraction) = self.lease.to_wire();
        let lease = [seconds.to_be_bytes(), fraction.to_be_bytes()].concat();
        put(pid::PARTICIPANT_LEASE_DURATION, &lease);
        put(pid::SENTINEL, &[]);
        out
    }

    /// Reads the signed properties of a participant.
    pub fn parse_signed(signed: &[u8]) -> Result<Self, WireError> {
        Self::parse(&[&PL_CDR_BE, signed].concat())
    }
}

fn big_endian(locator: &Locator) -> [u8; 24] {
    let mut out = [0; 24];
    let (head, address) = out.split_at_mut(8);
    let (kind, port) = head.split_at_mut(4);
    kind.copy_from_slice(&locator.kind.to_be_bytes());
    port.copy_from_slice(&locator.port.to_be_bytes());
    address.copy_from_slice(&locator.wire_address());
    out
}
