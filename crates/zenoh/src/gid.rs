//! The gid of an endpoint: XXH3-128 of its liveliness token (rmw_zenoh_cpp
//! `liveliness_utils.cpp`), low half first, little endian.
//!
//! hiroz (0.2.1, `entity.rs`) uses SHA-256 of the session id and the entity's number
//! instead, cut to 16 bytes.

use hmac_sha256::Hash as Sha256;
use xxhash_rust::xxh3::xxh3_128;

use crate::session_id::SessionId;

/// The 16 bytes by which an attachment identifies its sender.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct Gid(pub [u8; 16]);

impl Gid {
    /// The gid of the endpoint with a token.
    pub fn of_token(token: &str) -> Self {
        Self(xxh3_128(token.as_bytes()).to_le_bytes())
    }

    /// The gid that hiroz assigns to the endpoint with this number of a session.
    pub fn of_hiroz(session: SessionId, entity_id: u64) -> Self {
        let mut hash = Sha256::new();
        hash.update(session.to_le_bytes());
        hash.update(entity_id.to_le_bytes());
        let hash = hash.finalize();
        let mut gid = [0; 16];
        gid.copy_from_slice(hash.split_at(16).0);
        Self(gid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gid_is_the_hash_of_the_token() {
        let of = |text| u128::from_le_bytes(Gid::of_token(text).0);
        assert_eq!(of(""), 0x99aa_06d3_0147_98d8_6001_c324_468d_497f);
        assert_eq!(of("abc"), 0x06b0_5ab6_733a_6185_78af_5f94_892f_3950);
        let node = "@ros2_lv/0/aac3178e146ba6f1fc6e6a4085e77f21/0/0/NN/%/%/listener";
        assert_eq!(of(node), 0x4795_c17f_4e39_c700_bbc0_53af_4d2f_d75b);
    }

    #[test]
    fn a_gid_of_hiroz_is_another_hash() {
        // As captured from a publisher of hiroz 0.2.1.
        let session = "e5b039361d4dd0ccd8e3112f9a0d960f".parse().unwrap();
        let gid = 0x7dc8_09e2_9c6c_c689_aa96_d755_86c6_08bb_u128;
        assert_eq!(Gid::of_hiroz(session, 8), Gid(gid.to_le_bytes()));
    }
}
