//! Diffie-Hellman on P-256 (`ECDH+prime256v1-CEUM`): points go over the wire
//! uncompressed, 65 bytes. The secret is SHA-256 of what is agreed upon.

use aws_lc_rs::agreement::{ECDH_P256, PrivateKey, UnparsedPublicKey, agree};
use aws_lc_rs::digest::{SHA256, digest};

use crate::key::RandomnessFailed;

/// A key for one handshake.
pub(super) struct Agreement {
    private: PrivateKey,
    public: Vec<u8>,
}

impl Agreement {
    pub fn generate() -> Result<Self, RandomnessFailed> {
        let private = PrivateKey::generate(&ECDH_P256).map_err(|_| RandomnessFailed)?;
        let public = private.compute_public_key().map_err(|_| RandomnessFailed)?;
        Ok(Self {
            public: public.as_ref().to_vec(),
            private,
        })
    }

    /// For the peer.
    pub fn public(&self) -> &[u8] {
        &self.public
    }

    /// With the peer's; nothing if that is no point of the curve.
    pub fn secret(&self, peer: &[u8]) -> Option<[u8; 32]> {
        let peer = UnparsedPublicKey::new(&ECDH_P256, peer);
        agree(&self.private, peer, (), |agreed| {
            digest(&SHA256, agreed).as_ref().try_into().map_err(|_| ())
        })
        .ok()
    }
}

/// Its name in tokens.
pub(super) const NAME: &str = "ECDH+prime256v1-CEUM";
