//! Key agreement: Diffie-Hellman for one handshake. On P-256
//! (`ECDH+prime256v1-CEUM`, points uncompressed), which our requests use, or in the
//! group of RFC 5114 §2.3 (`DH+MODP-2048-256`), which Fast DDS 2 requests. The
//! shared secret is SHA-256 of the agreed value (DDS Security 1.1 §9.3.2.5.2).

use aws_lc_rs::agreement::{ECDH_P256, PrivateKey, UnparsedPublicKey, agree};
use aws_lc_rs::digest::{SHA256, digest};

use super::modp::{Encoding, Modp};
use crate::key::RandomnessFailed;

/// A key pair for one handshake.
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

    /// The key pair for a reply to a request with the public key `theirs` and this
    /// algorithm name; `None` if the algorithm is unknown.
    pub fn answering(name: &str, theirs: &[u8]) -> Result<Option<Self>, RandomnessFailed> {
        Ok(match name {
            NAME => Some(Self::generate()?),
            // The specification has the second name, all implementations the first.
            "DH+MODP-2048-256" | "DHE+MODP-2048-256" => {
                let private = Box::new(Modp::generate()?);
                let public = private.public(Encoding::of(theirs));
                Some(Self::Group { private, public })
            }
            _ => None,
        })
    }

    /// The public key.
    pub fn public(&self) -> &[u8] {
        match self {
            Self::Curve { public, .. } | Self::Group { public, .. } => public,
        }
    }

    /// The shared secret; `None` if the peer's key is not on the curve or in the
    /// group.
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

/// Algorithm of our requests.
pub(super) const NAME: &str = "ECDH+prime256v1-CEUM";
