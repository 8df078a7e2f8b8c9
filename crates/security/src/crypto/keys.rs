//! Key material (DDS Security 1.1 §9.5.2.1): master keys as tokens carry them, and
//! the session keys derived from them.

use std::fmt;

use aws_lc_rs::aead::{AES_128_GCM, AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::hmac;

use super::{KeyId, Mac, SessionId};
use crate::key::RandomnessFailed;

/// Crypto transformation and its key length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TransformKind {
    /// Signed with AES-128 (GMAC).
    Aes128Gmac,
    /// Encrypted and signed with AES-128 (GCM).
    Aes128Gcm,
    /// Signed with AES-256 (GMAC).
    Aes256Gmac,
    /// Encrypted and signed with AES-256 (GCM).
    Aes256Gcm,
}

impl TransformKind {
    /// The transformation with this identifier.
    pub const fn of(octets: [u8; 4]) -> Option<Self> {
        Some(match octets {
            [0, 0, 0, 1] => Self::Aes128Gmac,
            [0, 0, 0, 2] => Self::Aes128Gcm,
            [0, 0, 0, 3] => Self::Aes256Gmac,
            [0, 0, 0, 4] => Self::Aes256Gcm,
            _ => return None,
        })
    }

    /// The identifier in a CryptoHeader.
    pub const fn octets(self) -> [u8; 4] {
        let last = match self {
            Self::Aes128Gmac => 1,
            Self::Aes128Gcm => 2,
            Self::Aes256Gmac => 3,
            Self::Aes256Gcm => 4,
        };
        [0, 0, 0, last]
    }

    /// Whether it encrypts, besides signing.
    pub const fn encrypts(self) -> bool {
        matches!(self, Self::Aes128Gcm | Self::Aes256Gcm)
    }

    /// Length of its keys and salts, bytes.
    pub const fn key_bytes(self) -> usize {
        match self {
            Self::Aes128Gmac | Self::Aes128Gcm => 16,
            Self::Aes256Gmac | Self::Aes256Gcm => 32,
        }
    }
}

/// Master keys of one sender for one purpose (§9.5.2.1.1). Debug output hides them.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyMaterial {
    /// The transformation.
    pub kind: TransformKind,
    salt: Secret,
    /// Id of the sender's key.
    pub sender_key_id: KeyId,
    sender_key: Secret,
    /// Id of the receiver-specific key, if there is one.
    pub receiver_key_id: Option<KeyId>,
    receiver_key: Secret,
}

/// Up to 32 secret bytes, overwritten when dropped.
#[derive(Clone, PartialEq, Eq)]
struct Secret {
    bytes: [u8; 32],
    length: usize,
}

impl Secret {
    const EMPTY: Self = Self {
        bytes: [0; 32],
        length: 0,
    };

    fn of(given: &[u8]) -> Option<Self> {
        let mut secret = Self::EMPTY;
        secret.bytes.get_mut(..given.len())?.copy_from_slice(given);
        secret.length = given.len();
        Some(secret)
    }

    fn random(length: usize) -> Result<Self, RandomnessFailed> {
        let mut secret = Self::EMPTY;
        secret.length = length.min(32);
        let own = secret.bytes.get_mut(..secret.length).unwrap_or_default();
        aws_lc_rs::rand::fill(own).map_err(|_| RandomnessFailed)?;
        Ok(secret)
    }

    fn get(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.bytes = std::hint::black_box([0; 32]);
    }
}

impl fmt::Debug for KeyMaterial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyMaterial({:?}, {:?})", self.kind, self.sender_key_id)
    }
}

/// Why bytes are not key material.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyMaterialError {
    /// Too short, or followed by more bytes.
    #[error("the token is too short, or has bytes after its end")]
    Length,
    /// Unknown transformation.
    #[error("the token names an unknown transformation")]
    Kind,
    /// A salt or key whose length does not fit the transformation, or that is all
    /// zero.
    #[error("the token has a salt or key of the wrong length, or all zero")]
    Key,
}

impl KeyMaterial {
    /// Generates keys. `for_receiver` adds a receiver-specific key, with which one
    /// receiver can distinguish the sender from other holders of the common key.
    pub fn generate(kind: TransformKind, for_receiver: bool) -> Result<Self, RandomnessFailed> {
        let length = kind.key_bytes();
        let receiver_key_id = for_receiver.then(random_id).transpose()?;
        let receiver_key = if for_receiver {
            Secret::random(length)?
        } else {
            Secret::EMPTY
        };
        Ok(Self {
            kind,
            salt: Secret::random(length)?,
            sender_key_id: random_id()?,
            sender_key: Secret::random(length)?,
            receiver_key_id,
            receiver_key,
        })
    }

    /// Whether both are of the same sender for the same purpose, regardless of the
    /// receiver.
    pub fn is_same_sender(&self, other: &Self) -> bool {
        self.kind == other.kind
            && self.sender_key_id == other.sender_key_id
            && self.salt == other.salt
            && self.sender_key == other.sender_key
    }

    /// The same sender's keys with a new receiver-specific key.
    pub fn for_another_receiver(&self) -> Result<Self, RandomnessFailed> {
        Ok(Self {
            receiver_key_id: Some(random_id()?),
            receiver_key: Secret::random(self.kind.key_bytes())?,
            ..self.clone()
        })
    }

    /// Encodes the property `dds.cryp.keymat` of a token: CDR, big-endian, without
    /// encapsulation.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(120);
        let mut put = |secret: &Secret, id: [u8; 4]| {
            bytes.extend(id);
            let length = u32::try_from(secret.length).unwrap_or_default();
            bytes.extend(length.to_be_bytes());
            bytes.extend(secret.get());
        };
        put(&self.salt, self.kind.octets());
        put(&self.sender_key, self.sender_key_id.0);
        let receiver_key = self.receiver_key_id.map_or([0; 4], |id| id.0);
        put(&self.receiver_key, receiver_key);
        bytes
    }

    /// Decodes the property of a token.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, KeyMaterialError> {
        let mut rest = bytes;
        let (kind, salt) = take(&mut rest)?;
        let kind = TransformKind::of(kind).ok_or(KeyMaterialError::Kind)?;
        let (sender_key_id, sender_key) = take(&mut rest)?;
        let (receiver_key_id, receiver_key) = take(&mut rest)?;
        if !rest.is_empty() {
            return Err(KeyMaterialError::Length);
        }
        let good = |secret: &Secret| {
            secret.length == kind.key_bytes() && secret.get().iter().any(|byte| *byte != 0)
        };
        let receiver_key_id = (receiver_key_id != [0; 4]).then_some(KeyId(receiver_key_id));
        let receiver_good = receiver_key_id.is_none() || good(&receiver_key);
        if !good(&salt) || !good(&sender_key) || !receiver_good {
            return Err(KeyMaterialError::Key);
        }
        Ok(Self {
            kind,
            salt,
            sender_key_id: KeyId(sender_key_id),
            sender_key,
            receiver_key_id,
            receiver_key,
        })
    }

    /// The common session key, which all receivers have (§9.5.3.3.3).
    pub(crate) fn session_key(&self, session: SessionId) -> SessionKey {
        self.derive(self.sender_key.get(), b"SessionKey", session)
    }

    /// The receiver-specific session key.
    pub(crate) fn receiver_session_key(&self, session: SessionId) -> Option<SessionKey> {
        self.receiver_key_id?;
        Some(self.derive(self.receiver_key.get(), b"SessionReceiverKey", session))
    }

    /// A MAC of data other than messages, which only holders of these keys can
    /// compute. `label` separates it from everything else that is derived.
    pub(crate) fn mac(&self, label: &[u8], statement: &[u8]) -> [u8; 16] {
        let key = hmac::Key::new(hmac::HMAC_SHA256, self.sender_key.get());
        let mut context = hmac::Context::with_key(&key);
        context.update(label);
        context.update(self.salt.get());
        context.update(statement);
        let mac = context.sign();
        mac.as_ref().first_chunk().copied().unwrap_or_default()
    }

    fn derive(&self, master: &[u8], label: &[u8], session: SessionId) -> SessionKey {
        let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, master));
        context.update(label);
        context.update(self.salt.get());
        context.update(&session.0);
        SessionKey::new(self.kind, context.sign().as_ref())
    }
}

/// The key-exchange material, from the handshake's shared secret and challenges
/// (§9.5.2.1.2). Only the volatile secure endpoints use it.
pub fn key_exchange_material(
    shared_secret: &[u8],
    challenge_1: &[u8; 32],
    challenge_2: &[u8; 32],
) -> KeyMaterial {
    let cookie = |first: &[u8], word: &[u8], last: &[u8]| {
        let key = digest(&SHA256, &[first, word, last].concat());
        let key = hmac::Key::new(hmac::HMAC_SHA256, key.as_ref());
        Secret::of(hmac::sign(&key, shared_secret).as_ref()).unwrap_or(Secret::EMPTY)
    };
    KeyMaterial {
        kind: TransformKind::Aes256Gcm,
        salt: cookie(challenge_1, b"keyexchange salt", challenge_2),
        sender_key_id: KeyId([0; 4]),
        sender_key: cookie(challenge_2, b"key exchange key", challenge_1),
        receiver_key_id: None,
        receiver_key: Secret::EMPTY,
    }
}

/// A key that is ready for use.
pub(crate) struct SessionKey(Option<LessSafeKey>);

impl SessionKey {
    fn new(kind: TransformKind, hash: &[u8]) -> Self {
        let algorithm = match kind.key_bytes() {
            16 => &AES_128_GCM,
            _ => &AES_256_GCM,
        };
        let key = hash.get(..kind.key_bytes());
        // Only a key of the wrong length fails, which this is not. Without a key,
        // sealing and opening always fail.
        let key = key.and_then(|key| UnboundKey::new(algorithm, key).ok());
        Self(key.map(LessSafeKey::new))
    }

    /// Encrypts in place.
    pub fn seal(&self, nonce: [u8; 12], content: &mut [u8]) -> Option<Mac> {
        let nonce = Nonce::assume_unique_for_key(nonce);
        let key = self.0.as_ref()?;
        let tag = key.seal_in_place_separate_tag(nonce, Aad::empty(), content);
        tag.ok()?.as_ref().try_into().ok()
    }

    /// Encrypts into a buffer of the same length.
    pub fn seal_from(&self, nonce: [u8; 12], plain: &[u8], content: &mut [u8]) -> Option<Mac> {
        let nonce = Nonce::assume_unique_for_key(nonce);
        let key = self.0.as_ref()?;
        let mut mac = [0; 16];
        key.seal_out_of_place_scatter(nonce, Aad::empty(), plain, content, &[], &mut mac)
            .ok()?;
        Some(mac)
    }

    /// Decrypts into a buffer of the same length; `None` if the MAC is wrong.
    pub fn open(&self, nonce: [u8; 12], content: &[u8], mac: &Mac, plain: &mut [u8]) -> Option<()> {
        let nonce = Nonce::assume_unique_for_key(nonce);
        let key = self.0.as_ref()?;
        key.open_separate_gather(nonce, Aad::empty(), content, mac, plain)
            .ok()
    }

    /// The MAC of data that is not encrypted.
    pub fn sign(&self, nonce: [u8; 12], content: &[u8]) -> Option<Mac> {
        let nonce = Nonce::assume_unique_for_key(nonce);
        let key = self.0.as_ref()?;
        let tag = key.seal_in_place_separate_tag(nonce, Aad::from(content), &mut []);
        tag.ok()?.as_ref().try_into().ok()
    }

    /// Whether this is the MAC of the data, in constant time.
    pub fn verifies(&self, nonce: [u8; 12], content: &[u8], mac: &Mac) -> bool {
        let own = self.sign(nonce, content);
        own.is_some_and(|own| aws_lc_rs::constant_time::verify_slices_are_equal(&own, mac).is_ok())
    }
}

/// Never zero, which means no key.
fn random_id() -> Result<KeyId, RandomnessFailed> {
    let mut id = [0; 4];
    while id == [0; 4] {
        aws_lc_rs::rand::fill(&mut id).map_err(|_| RandomnessFailed)?;
    }
    Ok(KeyId(id))
}

/// Reads four octets, then a sequence of octets. Lengths are multiples of four, so
/// CDR adds no padding.
fn take(rest: &mut &[u8]) -> Result<([u8; 4], Secret), KeyMaterialError> {
    let mut word = || {
        let (word, after) = rest.split_first_chunk::<4>()?;
        *rest = after;
        Some(*word)
    };
    let id = word().ok_or(KeyMaterialError::Length)?;
    let length = word().ok_or(KeyMaterialError::Length)?;
    let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
    if !matches!(length, 0 | 16 | 32) {
        return Err(KeyMaterialError::Key);
    }
    let (secret, after) = rest
        .split_at_checked(length)
        .ok_or(KeyMaterialError::Length)?;
    *rest = after;
    Ok((id, Secret::of(secret).ok_or(KeyMaterialError::Key)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// NIST's and McGrew's test cases of AES-GCM: ciphertext and MAC of sixteen
    /// zeros under a key of zeros, and a MAC alone.
    #[test]
    fn aes_gcm_matches_the_standard_test_vectors() {
        let zero_128 = SessionKey::new(TransformKind::Aes128Gcm, &[0; 32]);
        let zero_256 = SessionKey::new(TransformKind::Aes256Gcm, &[0; 32]);
        for (key, first, mac) in [
            (
                zero_128,
                [0x03, 0x88, 0xda, 0xce],
                0xab6e_47d4_2cec_13bd_f53a_67b2_1257_bddf_u128,
            ),
            (
                zero_256,
                [0xce, 0xa7, 0x40, 0x3d],
                0xd0d1_c8a7_9999_6bf0_265b_98b5_d48a_b919,
            ),
        ] {
            let mut content = [0; 16];
            assert_eq!(key.seal([0; 12], &mut content), Some(mac.to_be_bytes()));
            assert_eq!(content[..4], first);
            let mut plain = [1; 16];
            let opened = key.open([0; 12], &content, &mac.to_be_bytes(), &mut plain);
            assert_eq!((opened, plain), (Some(()), [0; 16]));
        }
        let key = 0x77be_6370_8971_c4e2_40d1_cb79_e8d7_7feb_u128.to_be_bytes();
        let key = SessionKey::new(TransformKind::Aes128Gmac, &key);
        let nonce = [
            0xe0, 0xe0, 0x0f, 0x19, 0xfe, 0xd7, 0xba, 0x01, 0x36, 0xa7, 0x97, 0xf3,
        ];
        let signed = 0x7a43_ec1d_9c0a_5a78_a0b1_6533_a621_3cab_u128.to_be_bytes();
        let mac = 0x209f_cc8d_3675_ed93_8e9c_7166_709d_d946_u128.to_be_bytes();
        assert_eq!(key.sign(nonce, &signed), Some(mac));
        assert!(key.verifies(nonce, &signed, &mac) && !key.verifies(nonce, &signed[1..], &mac));
    }
}
