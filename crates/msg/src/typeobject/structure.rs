//! TypeObjects of structures (XTypes 1.3 §7.3.4.5, Annex B).
//!
//! ```text
//! TypeObject          size, form (EK_), kind TK_STRUCTURE
//!   flags             final or appendable
//!   header            size, base type (none); complete: no annotations, name
//!   members           size, count, each:
//!     size, number, flags, TypeIdentifier
//!     minimal: hash of the name; complete: name, no annotations
//! ```

use super::identifier::{EquivalenceHash, EquivalenceKind, TypeIdentifier, TypeObjectId};
use super::kinds::*;
use super::{ObjectPair, TypeObject, dds_name, written};
use crate::cdr::Encoder;
use crate::describe::{Extensibility, Field, FieldType, IndividualTypeDescription, type_id};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

/// Types by the name in their description.
type Built = BTreeMap<String, ObjectPair>;

/// One structure's object; `None` if a member cannot be named.
pub(super) fn object(
    ty: &IndividualTypeDescription,
    form: EquivalenceKind,
    built: &Built,
) -> Option<TypeObject> {
    let identifiers: Option<Vec<TypeIdentifier>> = ty
        .fields
        .iter()
        .map(|field| identifier(&field.field_type, form, built))
        .collect();
    let members: Vec<(&Field, TypeIdentifier)> = ty.fields.iter().zip(identifiers?).collect();
    let bytes = written(|out| encode(out, ty, form, &members));
    Some(TypeObject {
        id: TypeObjectId {
            form,
            hash: EquivalenceHash::of(&bytes),
        },
        bytes: bytes.into(),
    })
}

fn encode(
    out: &mut Encoder<'_>,
    ty: &IndividualTypeDescription,
    form: EquivalenceKind,
    members: &[(&Field, TypeIdentifier)],
) {
    let object = out.begin_appendable();
    out.u8(form.kind());
    out.u8(TK_STRUCTURE);
    out.u16(match ty.extensibility {
        Extensibility::Final => IS_FINAL,
        Extensibility::Appendable => IS_APPENDABLE,
    });
    let header = out.begin_appendable();
    out.u8(TK_NONE);
    if form == EquivalenceKind::Complete {
        no_annotations(out);
        out.string(&dds_name(ty));
    }
    out.end_appendable(header);
    let list = out.begin_collection();
    out.sequence_len(members.len());
    for (number, (field, identifier)) in (0..).zip(members) {
        let member = out.begin_appendable();
        out.u32(number);
        out.u16(if field.is_key {
            TRY_CONSTRUCT1 | IS_KEY
        } else {
            TRY_CONSTRUCT1
        });
        identifier.encode(out);
        match form {
            EquivalenceKind::Minimal => out.primitive_array(&name_hash(&field.name)),
            EquivalenceKind::Complete => {
                out.string(&field.name);
                no_annotations(out);
            }
        }
        out.end_appendable(member);
    }
    out.end_collection(list);
    out.end_appendable(object);
}

/// Neither built-in nor custom annotations: two absent optional members.
fn no_annotations(out: &mut Encoder<'_>) {
    out.bool(false);
    out.bool(false);
}

/// NameHash: the first four bytes of the name's MD5.
fn name_hash(name: &str) -> [u8; 4] {
    let digest: [u8; 16] = md5::compute(name.as_bytes()).into();
    [digest[0], digest[1], digest[2], digest[3]]
}

fn identifier(field: &FieldType, form: EquivalenceKind, built: &Built) -> Option<TypeIdentifier> {
    let element_id = field.type_id % type_id::ARRAY;
    let string_bound = u32::try_from(field.string_capacity).ok()?;
    let element = match element_id {
        type_id::NESTED => {
            let pair = built.get(&field.nested_type_name)?;
            TypeIdentifier::Object(pair.of(form).id)
        }
        type_id::STRING => TypeIdentifier::String {
            wide: false,
            bound: 0,
        },
        type_id::WSTRING => TypeIdentifier::String {
            wide: true,
            bound: 0,
        },
        type_id::BOUNDED_STRING => TypeIdentifier::String {
            wide: false,
            bound: string_bound,
        },
        type_id::BOUNDED_WSTRING => TypeIdentifier::String {
            wide: true,
            bound: string_bound,
        },
        primitive => TypeIdentifier::Primitive(primitive_kind(primitive)?),
    };
    let bound = u32::try_from(field.capacity).ok()?;
    Some(match field.type_id.saturating_sub(element_id) {
        0 => element,
        type_id::ARRAY => TypeIdentifier::Array {
            bounds: vec![bound],
            element: Box::new(element),
        },
        _ => TypeIdentifier::Sequence {
            bound,
            element: Box::new(element),
        },
    })
}

/// `byte` is `uint8`, as `rmw_cyclonedds` has it.
fn primitive_kind(id: u8) -> Option<u8> {
    Some(match id {
        type_id::INT8 => TK_INT8,
        type_id::UINT8 | type_id::BYTE => TK_UINT8,
        type_id::INT16 => TK_INT16,
        type_id::UINT16 => TK_UINT16,
        type_id::INT32 => TK_INT32,
        type_id::UINT32 => TK_UINT32,
        type_id::INT64 => TK_INT64,
        type_id::UINT64 => TK_UINT64,
        type_id::FLOAT => TK_FLOAT32,
        type_id::DOUBLE => TK_FLOAT64,
        type_id::BOOLEAN => TK_BOOLEAN,
        _ => return None,
    })
}
