//! Dynamic messages in CDR: the same bytes as typed messages.

use super::message::DynamicMessage;
use super::types::{DynamicType, Element, MessageField, Shape};
use super::value::{Value, with_numbers};
use crate::cdr::{
    DecodeError, Decoder, Encapsulation, Encoder, Endian, HEADER_BYTES, Representation,
    from_payload,
};
use crate::describe::Extensibility;
use crate::message::{Encode, Message};
use alloc::vec::Vec;

impl DynamicMessage {
    /// Reads a payload with encapsulation header.
    pub fn from_payload(ty: &DynamicType, payload: &[u8]) -> Result<Self, DecodeError> {
        Self::decode(ty, &mut Decoder::from_payload(payload)?)
    }

    /// Decodes one value at the decoder's position.
    pub fn decode(ty: &DynamicType, input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let scope = ty.enter(input)?;
        let may_lack = ty.extensibility() == Extensibility::Appendable;
        let mut values = Vec::with_capacity(ty.fields().len());
        for field in ty.fields() {
            values.push(if may_lack && !input.has_more(field.default_bytes())? {
                field.default_value()
            } else {
                decode_field(field, input)?
            });
        }
        if ty.fields().is_empty() && !may_lack {
            input.u8()?;
        }
        input.end_struct(scope);
        Ok(Self::from_parts(ty.clone(), values))
    }

    /// Converts a typed message to a dynamic one, through its CDR bytes.
    ///
    /// `ty` is `DynamicType::new(M::type_description())`, created once and kept.
    /// Fails when the message exceeds a bound of its type.
    pub fn from_message<M: Message>(ty: &DynamicType, message: &M) -> Result<Self, DecodeError> {
        let mut bytes = Vec::new();
        message.encode(&mut Encoder::to_vec(
            &mut bytes,
            Representation::Xcdr1,
            Endian::NATIVE,
        ));
        let header = Encapsulation::plain(Representation::Xcdr1, Endian::NATIVE);
        Self::decode(ty, &mut Decoder::new(&bytes, header))
    }

    /// Converts to a typed message, through its CDR bytes. `M` must be the same
    /// type; another one is rejected only if the bytes do not fit.
    pub fn to_message<M: Message>(&self) -> Result<M, DecodeError> {
        from_payload(&self.to_payload(Representation::Xcdr1))
    }

    /// As a payload with encapsulation header.
    pub fn to_payload(&self, representation: Representation) -> Vec<u8> {
        crate::cdr::to_payload(self, representation)
    }

    /// The size of [`Self::to_payload`]'s result before padding.
    pub fn payload_bytes(&self, representation: Representation) -> usize {
        let mut counter = Encoder::counting(representation);
        self.encode(&mut counter);
        counter.len().saturating_add(HEADER_BYTES)
    }
}

impl Encode for DynamicMessage {
    fn encode(&self, out: &mut Encoder<'_>) {
        let scope = self.ty().begin(out);
        for (field, value) in self.ty().fields().iter().zip(self.values()) {
            encode_value(value, field.shape, out);
        }
        if self.values().is_empty() {
            out.u8(0);
        }
        self.ty().end(scope, out);
    }

    fn extensibility(&self) -> Extensibility {
        self.ty().extensibility()
    }
}

macro_rules! define_codec {
    ($($one:ident $many:ident $ty:ident),*) => {
        pub(super) fn encode_value(value: &Value, shape: Shape, out: &mut Encoder<'_>) {
            let counted = matches!(shape, Shape::Sequence { .. });
            match value {
                $(
                    Value::$one(value) => out.$ty(*value),
                    Value::$many(values) if counted => out.primitive_sequence(values),
                    Value::$many(values) => out.primitive_array(values),
                )*
                Value::Bool(value) => out.bool(*value),
                Value::Bools(values) if counted => out.bool_sequence(values),
                Value::Bools(values) => out.bool_array(values),
                Value::String(value) => out.string(value),
                Value::Strings(values) if counted => out.string_sequence(values),
                Value::Strings(values) => out.string_array(values),
                Value::WString(value) => out.wstring(value),
                Value::WStrings(values) if counted => out.wstring_sequence(values),
                Value::WStrings(values) => out.wstring_array(values),
                Value::Message(value) => value.encode(out),
                Value::Messages(values) if counted => out.message_sequence(values),
                Value::Messages(values) => out.message_array(values),
            }
        }

        fn decode_one(element: &Element, input: &mut Decoder<'_>) -> Result<Value, DecodeError> {
            Ok(match element {
                $(Element::$one => Value::$one(input.$ty()?),)*
                Element::Byte => Value::U8(input.u8()?),
                Element::Bool => Value::Bool(input.bool()?),
                Element::String { bound } => Value::String(input.string(*bound)?),
                Element::WString { bound } => Value::WString(input.wstring(*bound)?),
                Element::Message(ty) => Value::Message(DynamicMessage::decode(ty, input)?),
            })
        }

        /// `count` primitives, or `None` for an element type that is not one.
        fn decode_primitives(
            element: &Element,
            count: usize,
            input: &mut Decoder<'_>,
        ) -> Result<Option<Value>, DecodeError> {
            Ok(Some(match element {
                $(Element::$one => Value::$many(input.primitive_vec(count)?),)*
                Element::Byte => Value::Bytes(input.primitive_vec(count)?),
                Element::Bool => Value::Bools(input.bool_vec(count)?),
                Element::String { .. } | Element::WString { .. } | Element::Message(_) => {
                    return Ok(None);
                }
            }))
        }
    };
}
with_numbers!(define_codec);

pub(super) fn decode_field(
    field: &MessageField,
    input: &mut Decoder<'_>,
) -> Result<Value, DecodeError> {
    let element = &field.element;
    if field.shape == Shape::Single {
        return decode_one(element, input);
    }
    let is_primitive = !matches!(
        element,
        Element::String { .. } | Element::WString { .. } | Element::Message(_)
    );
    // XCDR2 puts a size before collections, except those of primitives.
    let scope = if is_primitive {
        None
    } else {
        Some(input.begin_collection()?)
    };
    let count = match field.shape {
        Shape::Array(count) => count,
        Shape::Sequence { bound } => input.sequence_len(element.wire_bytes_min(), bound)?,
        Shape::Single => 1,
    };
    let value = match decode_primitives(element, count, input)? {
        Some(value) => value,
        None => decode_elements(element, count, input)?,
    };
    if let Some(scope) = scope {
        input.end_collection(scope);
    }
    Ok(value)
}

fn decode_elements(
    element: &Element,
    count: usize,
    input: &mut Decoder<'_>,
) -> Result<Value, DecodeError> {
    Ok(match element {
        Element::String { bound } => {
            Value::Strings(input.elements_with(count, |input| input.string(*bound))?)
        }
        Element::WString { bound } => {
            Value::WStrings(input.elements_with(count, |input| input.wstring(*bound))?)
        }
        Element::Message(ty) => {
            Value::Messages(input.elements_with(count, |input| DynamicMessage::decode(ty, input))?)
        }
        _ => Value::zero(element, Shape::Array(0)),
    })
}
