//! Diffie-Hellman for one handshake: on P-256 (`ECDH+prime256v1-CEUM`, points
//! uncompressed), which ours begin with, or in the group of RFC 5114 §2.3
//! (`DH+MODP-2048-256`), which Fast DDS 2 begins with. The secret is SHA-256 of
//! what is agreed upon (DDS Security 1.1 §9.3.2.5.2).

use aws_lc_rs::agreement::{ECDH_P256, PrivateKey, UnparsedPublicKey, agree};
use aws_lc_rs::digest::{SHA256, digest};

use super::modp::{Encoding, Modp};
use crate::key::RandomnessFailed;

/// A key for one handshake.
pub(super) enum Agreement {
    Curve {
        private: PrivateKey,
        public: Vec<u8>,
    },
    Group {
        private: Box<Modp>,
        public: Vec<u8>,
    },
}

impl Agreement {
    /// On P-256.
    pub fn generate() -> Result<Self, RandomnessFailed> {
        let private = PrivateKey::generate(&ECDH_P256).map_err(|_| RandomnessFailed)?;
        let public = private.compute_public_key().map_err(|_| RandomnessFailed)?;
        let public = public.as_ref().to_vec();
        Ok(Self::Curve { private, public })
    }

    /// In answer to one that sent `theirs` and named its way of agreeing;
    /// nothing if that is unknown here.
    pub fn answering(name: &str, theirs: &[u8]) -> Result<Option<Self>, RandomnessFailed> {
        Ok(match name {
            NAME => Some(Self::generate()?),
            // The second is the text's, the first everybody's.
            "DH+MODP-2048-256" | "DHE+MODP-2048-256" => {
                let private = Box::new(Modp::generate()?);
                let public = private.public(Encoding::of(theirs));
                Some(Self::Group { private, public })
            }
            _ => None,
        })
    }

    /// For the peer.
    pub fn public(&self) -> &[u8] {
        match self {
            Self::Curve { public, .. } | Self::Group { public, .. } => public,
        }
    }

    /// With the peer's; nothing if that is not of the curve or group.
    pub fn secret(&self, peer: &[u8]) -> Option<[u8; 32]> {
        let hash = |agreed: &[u8]| digest(&SHA256, agreed).as_ref().try_into().map_err(|_| ());
        match self {
            Self::Curve { private, .. } => {
                let peer = UnparsedPublicKey::new(&ECDH_P256, peer);
                agree(private, peer, (), hash).ok()
            }
            Self::Group { private, .. } => hash(&private.agree(peer)?).ok(),
        }
    }
}

/// How ours begin.
pub(super) const NAME: &str = "ECDH+prime256v1-CEUM";
