//! Generated key of a type: `encode_key`, `decode_key` and its constants.

use super::codec::{begin_text, decode_call, encode_call};
use super::generator::Generator;
use super::names::escaped;
use crate::describe::TypeDescription;
use crate::key::key_bytes_max;
use crate::schema::{BaseType, FieldSpec, Shape, StructSpec};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// The constants of `Message` for a keyed type; empty for others.
pub(super) fn constants_text(spec: &StructSpec, description: &TypeDescription) -> String {
    if !has_key(spec) {
        return String::new();
    }
    let bytes_max = match key_bytes_max(description) {
        usize::MAX => "usize::MAX".into(),
        bytes_max => format!("{bytes_max}"),
    };
    format!(
        "        const KEYED: bool = true;
        const KEY_BYTES_MAX: usize = {bytes_max};
"
    )
}

/// The key methods of `Message`; empty where nothing is marked, at any depth.
///
/// A type without key whose members have one gets them too: inside another type's
/// key it contributes its members' keys.
pub(super) fn methods_text(generator: &Generator<'_>, spec: &StructSpec) -> String {
    if !holds_keys(generator, spec) {
        return String::new();
    }
    let msg = &generator.options.msg_path;
    let (mut encode, mut decode) = (String::new(), String::new());
    for field in members(spec) {
        let by_key = nested_holds_keys(generator, &field.ty.base);
        encode.push_str(&format!(
            "            {};\n",
            if by_key {
                encode_key_call(msg, field)
            } else {
                encode_call(msg, field)
            }
        ));
        decode.push_str(&format!(
            "            value.{} = {}?;\n",
            escaped(&field.name),
            if by_key {
                decode_key_call(msg, field)
            } else {
                decode_call(msg, &field.ty)
            }
        ));
    }
    let (open, close) = begin_text(spec.extensibility);
    let begin = super::codec::begin_name(spec.extensibility);
    format!(
        "
        fn encode_key(&self, out: &mut {msg}::cdr::Encoder<'_>) {{
{open}{encode}{close}        }}

        fn decode_key(
            input: &mut {msg}::cdr::Decoder<'_>,
        ) -> ::core::result::Result<Self, {msg}::cdr::DecodeError> {{
            let mut value = Self::default();
            let scope = input.{begin}()?;
{decode}            input.end_struct(scope);
            Ok(value)
        }}
"
    )
}

/// The key members: those marked, or all where none is.
fn members(spec: &StructSpec) -> Vec<&FieldSpec> {
    let all = !has_key(spec);
    let fields = spec.fields.iter();
    fields.filter(|field| all || field.is_key).collect()
}

fn has_key(spec: &StructSpec) -> bool {
    spec.fields.iter().any(|field| field.is_key)
}

fn holds_keys(generator: &Generator<'_>, spec: &StructSpec) -> bool {
    let mut fields = spec.fields.iter();
    fields.any(|field| field.is_key || nested_holds_keys(generator, &field.ty.base))
}

fn nested_holds_keys(generator: &Generator<'_>, base: &BaseType) -> bool {
    generator
        .nested_structure(base)
        .is_some_and(|spec| holds_keys(generator, &spec))
}

fn encode_key_call(msg: &str, field: &FieldSpec) -> String {
    let place = format!("self.{}", escaped(&field.name));
    match field.ty.shape {
        Shape::Single => format!("{msg}::Message::encode_key(&{place}, out)"),
        Shape::Array(_) => format!("out.key_array(&{place})"),
        Shape::Bounded(_) | Shape::Unbounded => format!("out.key_sequence(&{place})"),
    }
}

fn decode_key_call(msg: &str, field: &FieldSpec) -> String {
    match field.ty.shape {
        Shape::Single => format!("{msg}::Message::decode_key(input)"),
        Shape::Array(_) => "input.key_array()".into(),
        Shape::Bounded(bound) => format!("input.key_sequence({bound})"),
        Shape::Unbounded => "input.key_sequence(usize::MAX)".into(),
    }
}
