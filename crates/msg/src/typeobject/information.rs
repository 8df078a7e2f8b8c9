//! TypeInformation, which discovery announces of a type (XTypes 1.3 §7.6.3.2.1).
//!
//! ```text
//! size, then for minimal (0x1001) and complete (0x1002): member header, size,
//!   size, TypeIdentifier, bytes of its object
//!   count of dependencies, or -1, and those listed: size, count, each as above
//! ```

use super::identifier::{EquivalenceKind, TypeIdentifier, TypeObjectId};
use super::{ENCODING, TypeObject, TypeObjects, written};
use crate::cdr::{DecodeError, Decoder, Encoder};
use alloc::vec::Vec;

/// Limit of bytes that are decoded: the limit of a discovery parameter.
pub const INFORMATION_BYTES_MAX: usize = 1 << 16;

/// Dependencies that are kept; more are left out.
const DEPENDENCIES_MAX: usize = 1024;

/// Member ids, with LC 4: the size follows in four bytes.
const MINIMAL: u32 = 0x4000_1001;
const COMPLETE: u32 = 0x4000_1002;
/// The id within a member header.
const ID_MASK: u32 = 0x0fff_ffff;

/// A type that is announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dependency {
    /// Its name.
    pub id: TypeObjectId,
    /// The size of its object.
    pub object_bytes: u32,
}

/// A peer's announcement of an endpoint's type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypeInformation {
    /// The minimal object's name.
    pub minimal: Option<Dependency>,
    /// The complete object's name.
    pub complete: Option<Dependency>,
    /// The announced types that the complete one refers to.
    pub dependencies: Vec<Dependency>,
}

impl TypeInformation {
    /// Reads PID_TYPE_INFORMATION's value.
    ///
    /// # Errors
    /// It is cut off or nests wrongly. Types without objects are left out.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let bytes = bytes.get(..INFORMATION_BYTES_MAX).unwrap_or(bytes);
        let mut input = Decoder::new(bytes, ENCODING);
        let mut information = Self::default();
        let whole = input.begin_collection()?;
        while input.remaining() >= 8 {
            let member = input.u32()?;
            // Every vendor writes LC 4 here, and nothing else has a size.
            if member >> 28 & 7 != 4 {
                break;
            }
            let part = input.begin_collection()?;
            let TypeWithDependencies { own, dependencies } = decode_part(&mut input)?;
            input.end_collection(part);
            match member & ID_MASK {
                0x1001 => information.minimal = own,
                0x1002 => {
                    information.complete = own;
                    information.dependencies = dependencies;
                }
                _ => {}
            }
        }
        input.end_collection(whole);
        Ok(information)
    }
}

/// `TypeIdentifierWithDependencies`: a type and the types that it refers to.
struct TypeWithDependencies {
    own: Option<Dependency>,
    dependencies: Vec<Dependency>,
}

fn decode_part(input: &mut Decoder<'_>) -> Result<TypeWithDependencies, DecodeError> {
    let scope = input.begin_collection()?;
    let own = decode_dependency(input)?;
    input.i32()?;
    let list = input.begin_collection()?;
    let count = input.u32()? as usize;
    let mut dependencies = Vec::new();
    for _ in 0..count.min(DEPENDENCIES_MAX) {
        if input.remaining() == 0 {
            break;
        }
        dependencies.extend(decode_dependency(input)?);
    }
    input.end_collection(list);
    input.end_collection(scope);
    Ok(TypeWithDependencies { own, dependencies })
}

fn decode_dependency(input: &mut Decoder<'_>) -> Result<Option<Dependency>, DecodeError> {
    let scope = input.begin_collection()?;
    let dependency = match TypeIdentifier::decode(input)? {
        TypeIdentifier::Object(id) => Some(Dependency {
            id,
            object_bytes: input.u32()?,
        }),
        _ => None,
    };
    input.end_collection(scope);
    Ok(dependency)
}

pub(super) fn encode(objects: &TypeObjects) -> Vec<u8> {
    written(|out| {
        let whole = out.begin_appendable();
        for (id, form) in [
            (MINIMAL, EquivalenceKind::Minimal),
            (COMPLETE, EquivalenceKind::Complete),
        ] {
            out.u32(id);
            let part = out.begin_appendable();
            let scope = out.begin_appendable();
            encode_dependency(out, objects.own.of(form));
            let count = objects.referenced.len();
            out.i32(i32::try_from(count).unwrap_or(-1));
            let list = out.begin_collection();
            out.sequence_len(count);
            for pair in &objects.referenced {
                encode_dependency(out, pair.of(form));
            }
            out.end_collection(list);
            out.end_appendable(scope);
            out.end_appendable(part);
        }
        out.end_appendable(whole);
    })
}

pub(super) fn encode_dependency(out: &mut Encoder<'_>, object: &TypeObject) {
    let scope = out.begin_appendable();
    TypeIdentifier::Object(object.id).encode(out);
    out.u32(u32::try_from(object.bytes.len()).unwrap_or(u32::MAX));
    out.end_appendable(scope);
}
