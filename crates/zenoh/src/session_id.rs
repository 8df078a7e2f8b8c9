//! Session ids, and the GUID prefix that represents a session in the runtime.
//!
//! The id of a Pteros session consists of its context's GUID prefix and a mark of four
//! bytes. So peers see the context under the same GUID on every transport. The prefix of
//! another session is a hash of its id.

use std::fmt;
use std::str::FromStr;

use pteros_rtps::id::GuidPrefix;
use xxhash_rust::xxh3::xxh3_128;

/// Last bytes of a Pteros session id. The last byte is first in the text form and must
/// not be zero.
const MARK: [u8; 4] = *b"etpP";
/// First bytes of the prefix of other sessions. No DDS vendor has that id.
const FOREIGN: [u8; 2] = [0xff, 0x7a];

/// A Zenoh session id. Displays as Zenoh prints it: hexadecimal, no leading zeros.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct SessionId(u128);

impl SessionId {
    /// Builds the session id of a context from its GUID prefix.
    pub fn of_context(prefix: GuidPrefix) -> Self {
        let mut bytes = [0; 16];
        let (own, mark) = bytes.split_at_mut(12);
        own.copy_from_slice(&prefix.0);
        mark.copy_from_slice(&MARK);
        Self::from_le_bytes(bytes)
    }

    /// The id of bytes in Zenoh's order.
    pub fn from_le_bytes(bytes: [u8; 16]) -> Self {
        Self(u128::from_le_bytes(bytes))
    }

    /// Bytes in Zenoh's order.
    pub fn to_le_bytes(self) -> [u8; 16] {
        self.0.to_le_bytes()
    }

    /// Whether the id has the mark of Pteros.
    pub fn is_of_pteros(self) -> bool {
        self.0.to_le_bytes().ends_with(&MARK)
    }

    /// GUID prefix of the participant that represents the session.
    pub fn prefix(self) -> GuidPrefix {
        let own = self.0.to_le_bytes();
        let mut prefix = [0; 12];
        if self.is_of_pteros() {
            prefix.copy_from_slice(own.split_at(12).0);
        } else {
            let (vendor, rest) = prefix.split_at_mut(2);
            vendor.copy_from_slice(&FOREIGN);
            let hash = xxh3_128(&own).to_le_bytes();
            rest.copy_from_slice(hash.split_at(10).0);
        }
        GuidPrefix(prefix)
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}", self.0)
    }
}

impl FromStr for SessionId {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let is_id = text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let id = u128::from_str_radix(text, 16).ok().filter(|_| is_id);
        id.map(Self).ok_or(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_of_pteros_carries_its_context() {
        let prefix = GuidPrefix([1, 0x50, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0]);
        let id = SessionId::of_context(prefix);
        assert!(id.is_of_pteros());
        assert_eq!(id.prefix(), prefix);
        assert_eq!(id.to_string(), "50707465000b0a090807060504035001");
        assert_eq!(id.to_string().parse(), Ok(id));
    }

    #[test]
    fn another_session_has_a_prefix_of_its_own() {
        let one: SessionId = "aac3178e146ba6f1fc6e6a4085e77f21".parse().unwrap();
        let other: SessionId = "aac3178e146ba6f1fc6e6a4085e77f22".parse().unwrap();
        assert!(!one.is_of_pteros());
        assert_ne!(one.prefix(), other.prefix());
        assert_eq!(one.prefix().0[..2], FOREIGN);
        assert_eq!(one.to_string(), "aac3178e146ba6f1fc6e6a4085e77f21");
        assert_eq!("0001".parse::<SessionId>().unwrap().to_string(), "1");
        for bad in ["", "+1", "g", " 1"] {
            assert_eq!(bad.parse::<SessionId>(), Err(()), "{bad:?}");
        }
    }
}
