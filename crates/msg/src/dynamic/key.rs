//! Instance keys of dynamic messages: the same bytes and hashes as typed messages.

use super::codec::{decode_field, encode_value};
use super::message::DynamicMessage;
use super::types::{DynamicType, Element, MessageField, Shape};
use super::value::Value;
use crate::cdr::{DecodeError, Decoder, Encapsulation, Encoder, Representation};
use crate::key::{KeyHash, KeyOf, KeyReader, hash_decoder, hash_of, read_key};
use alloc::sync::Arc;
use alloc::vec::Vec;

impl DynamicType {
    /// Whether a field is marked as part of the key.
    pub fn is_keyed(&self) -> bool {
        self.fields().iter().any(|field| field.is_key)
    }

    /// The reader of this type's keys; `None` for a type without.
    pub fn key_reader(&self) -> Option<Arc<dyn KeyReader>> {
        let reader = || Arc::new(KeyFieldReader(self.clone())) as Arc<dyn KeyReader>;
        self.is_keyed().then(reader)
    }

    /// The fields that make up the key inside another key: those marked, or
    /// all where none is.
    fn is_key_member(&self) -> impl Fn(&MessageField) -> bool + use<> {
        let all = !self.is_keyed();
        move |field| all || field.is_key
    }
}

impl DynamicMessage {
    /// The instance that the message belongs to; all zeros without a key.
    pub fn key_hash(&self) -> KeyHash {
        if !self.ty().is_keyed() {
            return KeyHash::default();
        }
        hash_of(self.ty().key_bytes_max(), |out| self.encode_key(out))
    }

    /// The key alone as a payload with encapsulation header.
    pub fn key_payload(&self, representation: Representation) -> Vec<u8> {
        let key = KeyOf {
            encode: |out: &mut Encoder<'_>| {
                if self.ty().is_keyed() {
                    self.encode_key(out);
                }
            },
            extensibility: self.ty().extensibility(),
        };
        key.payload(representation)
    }

    /// Decodes a key payload: a message with its key fields set and defaults
    /// elsewhere.
    pub fn from_key_payload(ty: &DynamicType, payload: &[u8]) -> Result<Self, DecodeError> {
        if !ty.is_keyed() {
            return Ok(Self::new(ty));
        }
        read_key(payload, |input| Self::decode_key(ty, input))
    }

    fn encode_key(&self, out: &mut Encoder<'_>) {
        let scope = self.ty().begin(out);
        let is_member = self.ty().is_key_member();
        for (field, value) in self.ty().fields().iter().zip(self.values()) {
            if is_member(field) {
                encode_key_value(value, field.shape, out);
            }
        }
        if self.values().is_empty() {
            out.u8(0);
        }
        self.ty().end(scope, out);
    }

    fn decode_key(ty: &DynamicType, input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let scope = ty.enter(input)?;
        let is_member = ty.is_key_member();
        let mut values = Vec::with_capacity(ty.fields().len());
        for field in ty.fields() {
            values.push(if is_member(field) {
                decode_key_field(field, input)?
            } else {
                field.default_value()
            });
        }
        if ty.fields().is_empty() {
            input.u8()?;
        }
        input.end_struct(scope);
        Ok(Self::from_parts(ty.clone(), values))
    }
}

fn encode_key_value(value: &Value, shape: Shape, out: &mut Encoder<'_>) {
    match value {
        Value::Message(value) => value.encode_key(out),
        Value::Messages(values) => {
            let scope = out.begin_collection();
            if matches!(shape, Shape::Sequence { .. }) {
                out.sequence_len(values.len());
            }
            values.iter().for_each(|value| value.encode_key(out));
            out.end_collection(scope);
        }
        other => encode_value(other, shape, out),
    }
}

fn decode_key_field(field: &MessageField, input: &mut Decoder<'_>) -> Result<Value, DecodeError> {
    let Element::Message(ty) = &field.element else {
        return decode_field(field, input);
    };
    if field.shape == Shape::Single {
        return DynamicMessage::decode_key(ty, input).map(Value::Message);
    }
    let scope = input.begin_collection()?;
    let count = match field.shape {
        Shape::Sequence { bound } => input.sequence_len(1, bound)?,
        Shape::Array(count) => count,
        Shape::Single => 1,
    };
    let values = input.elements_with(count, |input| DynamicMessage::decode_key(ty, input))?;
    input.end_collection(scope);
    Ok(Value::Messages(values))
}

struct KeyFieldReader(DynamicType);

impl KeyReader for KeyFieldReader {
    fn of_sample(&self, payload: &[u8]) -> Result<KeyHash, DecodeError> {
        Ok(DynamicMessage::from_payload(&self.0, payload)?.key_hash())
    }

    fn of_key(&self, payload: &[u8]) -> Result<KeyHash, DecodeError> {
        Ok(DynamicMessage::from_key_payload(&self.0, payload)?.key_hash())
    }

    fn key_of(&self, payload: &[u8]) -> Result<Vec<u8>, DecodeError> {
        let representation = Encapsulation::read(payload)?.representation;
        Ok(DynamicMessage::from_payload(&self.0, payload)?.key_payload(representation))
    }

    fn key_of_hash(&self, hash: KeyHash) -> Option<Vec<u8>> {
        let mut key = hash_decoder(&hash, self.0.key_bytes_max())?;
        let message = DynamicMessage::decode_key(&self.0, &mut key).ok()?;
        Some(message.key_payload(Representation::Xcdr1))
    }
}
