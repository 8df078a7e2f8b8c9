//! Instance keys of a topic (instance, dispose, unregister).
//!
//! A type's key is the fields marked `@key` in its definition. Two samples with
//! equal keys belong to one instance; [`KeyHash`] is the 16 bytes that identify it
//! on the wire and in tables. A sample that disposes or unregisters an instance has
//! only its key: [`key_payload`].
//!
//! ```text
//! key hash    key members, XCDR2, big endian, no structure sizes
//!             at most 16 bytes for every value: they and zeros
//!             else: their MD5
//! ```
//! RTPS 2.5 §9.6.4.8, XTypes 1.3 §7.6.8. A member that is a message contributes its
//! own key, or all its fields if it has none.

mod members;
mod size;

use crate::cdr::{
    DecodeError, Decoder, Encapsulation, Encoder, Endian, Representation, to_payload,
};
use crate::describe::Extensibility;
use crate::message::{Encode, Message};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;
use size::HASH_BYTES;
pub use size::key_bytes_max;
pub(crate) use size::key_bytes_max_of;

/// An instance's name on the wire; equal for equal keys. All zeros for types
/// without a key.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyHash(pub [u8; 16]);

impl KeyHash {
    /// The hash of `key`, serialized as the module describes, for a type whose keys
    /// take at most `bytes_max` bytes.
    fn of_bytes(key: &[u8], bytes_max: usize) -> Self {
        let mut hash = [0; HASH_BYTES];
        match hash.get_mut(..key.len()) {
            Some(start) if bytes_max <= HASH_BYTES => start.copy_from_slice(key),
            _ => hash = md5::compute(key).into(),
        }
        Self(hash)
    }
}

/// 32 hexadecimal digits.
impl fmt::Display for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Key access of a keyed type for the runtime.
///
/// Payloads have their encapsulation header, in any representation. Each call
/// decodes its payload.
pub trait KeyReader: Send + Sync {
    /// The instance of a whole sample.
    fn of_sample(&self, payload: &[u8]) -> Result<KeyHash, DecodeError>;

    /// The instance of a key that travels alone.
    fn of_key(&self, payload: &[u8]) -> Result<KeyHash, DecodeError>;

    /// The key of a whole sample as a payload of its own, in the sample's
    /// representation, little endian.
    fn key_of(&self, payload: &[u8]) -> Result<Vec<u8>, DecodeError>;

    /// The key behind a hash as a payload of its own, in XCDR1; `None` where
    /// the hash is an MD5. Some stacks send an instance's end with nothing else.
    fn key_of_hash(&self, hash: KeyHash) -> Option<Vec<u8>>;
}

/// The instance that `value` belongs to; all zeros without a key.
pub fn key_hash<T: Message>(value: &T) -> KeyHash {
    if !T::KEYED {
        return KeyHash::default();
    }
    hash_of(T::KEY_BYTES_MAX, |out| value.encode_key(out))
}

/// The key of `value` alone, as a payload: header, key members, padding.
///
/// The header is that of the type, but in XCDR2 no structure has its size before
/// it. XTypes requires the sizes of appendable ones. Cyclone DDS, which ignores key
/// hashes, writes none and accepts no other form. Zeros follow where it would be 16
/// bytes or fewer: Fast DDS takes so short a payload for the key's hash.
pub fn key_payload<T: Message>(value: &T, representation: Representation) -> Vec<u8> {
    let key = KeyOf {
        encode: |out: &mut Encoder<'_>| value.encode_key(out),
        extensibility: T::EXTENSIBILITY,
    };
    key.payload(representation)
}

/// Decodes the result of [`key_payload`], or another stack's: a value with its key
/// members set and defaults elsewhere.
pub fn from_key_payload<T: Message>(payload: &[u8]) -> Result<T, DecodeError> {
    read_key(payload, T::decode_key)
}

/// The reader of this type's keys; `None` for a type without.
pub fn key_reader<T: Message>() -> Option<Arc<dyn KeyReader>> {
    T::KEYED.then(|| Arc::new(TypedKeyReader::<T>(PhantomData)) as Arc<dyn KeyReader>)
}

struct TypedKeyReader<T>(PhantomData<fn() -> T>);

impl<T: Message> KeyReader for TypedKeyReader<T> {
    fn of_sample(&self, payload: &[u8]) -> Result<KeyHash, DecodeError> {
        Ok(key_hash(&crate::from_payload::<T>(payload)?))
    }

    fn of_key(&self, payload: &[u8]) -> Result<KeyHash, DecodeError> {
        Ok(key_hash(&from_key_payload::<T>(payload)?))
    }

    fn key_of(&self, payload: &[u8]) -> Result<Vec<u8>, DecodeError> {
        let representation = Encapsulation::read(payload)?.representation;
        let value = crate::from_payload::<T>(payload)?;
        Ok(key_payload(&value, representation))
    }

    fn key_of_hash(&self, hash: KeyHash) -> Option<Vec<u8>> {
        let value = T::decode_key(&mut hash_decoder(&hash, T::KEY_BYTES_MAX)?).ok()?;
        Some(key_payload(&value, Representation::Xcdr1))
    }
}

/// Reads a key that travels alone, with sizes of appendable structures or
/// without. With sizes it is only if that explains every byte.
pub(crate) fn read_key<V>(
    payload: &[u8],
    decode: impl Fn(&mut Decoder<'_>) -> Result<V, DecodeError>,
) -> Result<V, DecodeError> {
    let mut input = Decoder::from_payload(payload)?;
    let value = decode(&mut input);
    let sizes_fit = value.is_ok() && input.is_exact();
    if input.representation() == Representation::Xcdr1 || sizes_fit {
        return value;
    }
    decode(&mut Decoder::from_payload(payload)?.undelimited()).or(value)
}

pub(crate) fn hash_of(bytes_max: usize, encode: impl Fn(&mut Encoder<'_>)) -> KeyHash {
    let mut key = Vec::new();
    encode(&mut Encoder::to_vec(&mut key, Representation::Xcdr2, Endian::Big).undelimited());
    KeyHash::of_bytes(&key, bytes_max)
}

/// Reads the key in a hash that is one itself, not its MD5.
pub(crate) fn hash_decoder(hash: &KeyHash, bytes_max: usize) -> Option<Decoder<'_>> {
    let header = Encapsulation::plain(Representation::Xcdr2, Endian::Big);
    (bytes_max <= HASH_BYTES).then(|| Decoder::new(&hash.0, header).undelimited())
}

/// Something that writes a key, seen as a value with a payload.
pub(crate) struct KeyOf<F> {
    pub(crate) encode: F,
    pub(crate) extensibility: Extensibility,
}

impl<F: Fn(&mut Encoder<'_>)> KeyOf<F> {
    /// The key with a header, longer than a hash.
    pub(crate) fn payload(&self, representation: Representation) -> Vec<u8> {
        let mut payload = to_payload(self, representation);
        if payload.len() <= HASH_BYTES {
            payload.resize(HASH_BYTES + 4, 0);
        }
        payload
    }
}

impl<F: Fn(&mut Encoder<'_>)> Encode for KeyOf<F> {
    fn encode(&self, out: &mut Encoder<'_>) {
        out.undelimit();
        (self.encode)(out);
    }

    fn extensibility(&self) -> Extensibility {
        self.extensibility
    }
}
