//! TypeLookup service messages (XTypes 1.3 §7.6.3.3.4), request and reply of
//! DDS-RPC 1.0 in their basic form: the header is part of the payload.
//!
//! ```text
//! request   identity: GUID of the requester's writer, number; instance name
//!           size, operation, size, members by id:
//!             type_ids: the requested types; continuation_point
//! reply     identity of the request, exception code 0
//!           size, operation, size, return code 0, size, members by id:
//!             types: pairs of TypeIdentifier and TypeObject, complete_to_minimal; or
//!             dependent_typeids: types that the requested ones refer to,
//!             continuation_point
//! ```
//!
//! The last member of each is empty here. It is written nevertheless: Dust DDS 0.16 drops
//! a message without it, and then matches none of our endpoints.

use super::identifier::{EquivalenceHash, TypeIdentifier, TypeObjectId};
use super::information::encode_dependency;
use super::{ENCODING, TypeObject};
use crate::cdr::{DecodeError, Decoder, Encoder};
use alloc::string::String;
use alloc::vec::Vec;

/// Types in a request that are looked at; more are left out.
pub const IDS_MAX: usize = 256;

/// Limit of the objects in a reply, bytes; further ones are left out. More than a
/// ROS 2 type with all its dependencies needs.
pub const OBJECTS_BYTES_MAX: usize = 128 << 10;

/// DDS-RPC's InstanceName, bytes.
const INSTANCE_BYTES_MAX: usize = 255;

/// Hashes of the operations' names.
const GET_TYPES: i32 = 0x0182_52d3;
const GET_DEPENDENCIES: i32 = 0x05aa_fb31;

/// Hashes of the members' names.
const TYPE_IDS: u32 = 0x0c53_6065;
const TYPES: u32 = 0x0280_4ad1;
const COMPLETE_TO_MINIMAL: u32 = 0x0b8e_6577;
const DEPENDENT_TYPEIDS: u32 = 0x0ba4_dfc9;
const CONTINUATION_POINT: u32 = 0x0508_e3d2;

/// Member header: the size follows in four bytes (LC 4).
const LC_SIZE_FOLLOWS: u32 = 4 << 28;

/// Which request a reply answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleIdentity {
    /// GUID of the requester's writer, as on the wire.
    pub writer: [u8; 16],
    /// Chosen by the asker.
    pub number: i64,
}

/// Which of the two operations of the TypeLookup service is meant (DDS-XTypes 1.3
/// §7.6.3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookupOperation {
    /// The objects of types.
    Types,
    /// The names of the types that types refer to, at any depth.
    Dependencies,
}

/// A question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LookupRequest {
    /// The request's identity, which its reply repeats.
    pub identity: SampleIdentity,
    /// `dds.builtin.TOS.` and the GUID of the participant that is asked, or
    /// anything: some stacks write zeros, and none checks it.
    pub instance: String,
    /// Types, or what types depend on.
    pub operation: LookupOperation,
    /// About these types.
    pub ids: Vec<TypeObjectId>,
}

impl LookupRequest {
    /// Reads a payload, encapsulation header included.
    ///
    /// # Errors
    /// It is cut off, nests wrongly or is not XCDR2. Ids that name no object
    /// are left out, and so is all that follows one that is not understood.
    /// `Ok(None)`: an operation that does not exist.
    pub fn decode(payload: &[u8]) -> Result<Option<Self>, DecodeError> {
        let mut input = Decoder::from_payload(payload)?;
        let identity = decode_identity(&mut input)?;
        let instance = input.string(INSTANCE_BYTES_MAX)?;
        let call = input.begin_collection()?;
        let operation = match input.i32()? {
            GET_TYPES => LookupOperation::Types,
            GET_DEPENDENCIES => LookupOperation::Dependencies,
            _ => return Ok(None),
        };
        let mut ids = Vec::new();
        decode_member(&mut input, TYPE_IDS, |input| decode_ids(input, &mut ids))?;
        input.end_collection(call);
        Ok(Some(Self {
            identity,
            instance,
            operation,
            ids,
        }))
    }

    /// The payload, encapsulation header included.
    pub fn encode(&self) -> Vec<u8> {
        payload(|out| {
            encode_identity(out, &self.identity);
            out.string(&self.instance);
            let call = out.begin_appendable();
            out.i32(match self.operation {
                LookupOperation::Types => GET_TYPES,
                LookupOperation::Dependencies => GET_DEPENDENCIES,
            });
            let arguments = out.begin_appendable();
            out.u32(LC_SIZE_FOLLOWS | TYPE_IDS);
            let member = out.begin_appendable();
            let list = out.begin_collection();
            out.sequence_len(self.ids.len());
            for id in &self.ids {
                TypeIdentifier::Object(*id).encode(out);
            }
            out.end_collection(list);
            out.end_appendable(member);
            if self.operation == LookupOperation::Dependencies {
                encode_no_continuation(out);
            }
            out.end_appendable(arguments);
            out.end_appendable(call);
        })
    }
}

/// The reply to [`LookupOperation::Types`]; objects beyond [`OBJECTS_BYTES_MAX`] are
/// left out.
pub fn encode_types<'a>(
    identity: &SampleIdentity,
    objects: impl IntoIterator<Item = &'a TypeObject>,
) -> Vec<u8> {
    let mut room = OBJECTS_BYTES_MAX;
    let objects: Vec<&TypeObject> = objects
        .into_iter()
        .take_while(|object| {
            let left = room.checked_sub(object.bytes.len());
            room = left.unwrap_or_default();
            left.is_some()
        })
        .collect();
    encode_reply(identity, LookupOperation::Types, objects.len(), |out| {
        for object in &objects {
            TypeIdentifier::Object(object.id).encode(out);
            // Aligned as it was when it was written alone: XCDR2 aligns to
            // four bytes at most, and the size before it is aligned so.
            let content = object.bytes.get(4..).unwrap_or_default();
            out.sequence_len(content.len());
            out.primitive_array(content);
        }
    })
}

/// The reply to [`LookupOperation::Dependencies`].
pub fn encode_dependencies<'a>(
    identity: &SampleIdentity,
    objects: impl IntoIterator<Item = &'a TypeObject>,
) -> Vec<u8> {
    let objects: Vec<&TypeObject> = objects.into_iter().take(IDS_MAX).collect();
    let count = objects.len();
    encode_reply(identity, LookupOperation::Dependencies, count, |out| {
        objects
            .iter()
            .for_each(|object| encode_dependency(out, object));
    })
}

/// Decodes a reply to [`LookupOperation::Types`]: the request's identity, and the
/// objects whose bytes match their identifier. Other objects are left out.
///
/// # Errors
/// It is truncated, nests wrongly or is not XCDR2. `Ok(None)`: a reply to another
/// operation, or one that reports a failure.
pub fn decode_types(
    payload: &[u8],
) -> Result<Option<(SampleIdentity, Vec<TypeObject>)>, DecodeError> {
    let mut input = Decoder::from_payload(payload)?;
    let identity = decode_identity(&mut input)?;
    let exception = input.i32()?;
    let call = input.begin_collection()?;
    if exception != 0 || input.i32()? != GET_TYPES {
        return Ok(None);
    }
    let result = input.begin_collection()?;
    if input.i32()? != 0 {
        return Ok(None);
    }
    let mut objects = Vec::new();
    decode_member(&mut input, TYPES, |input| {
        decode_objects(input, &mut objects)
    })?;
    input.end_collection(result);
    input.end_collection(call);
    Ok(Some((identity, objects)))
}

fn decode_objects(
    input: &mut Decoder<'_>,
    objects: &mut Vec<TypeObject>,
) -> Result<(), DecodeError> {
    let mut room = OBJECTS_BYTES_MAX;
    let list = input.begin_collection()?;
    let count = input.u32()? as usize;
    for _ in 0..count.min(IDS_MAX) {
        let id = TypeIdentifier::decode(input)?;
        if matches!(id, TypeIdentifier::Other(_)) || input.remaining() < 4 {
            break;
        }
        let size = input.u32()?;
        let content = input.primitive_vec::<u8>(size as usize)?;
        let Some(left) = room.checked_sub(content.len()) else {
            break;
        };
        room = left;
        let bytes = [&size.to_le_bytes()[..], &content].concat();
        if let TypeIdentifier::Object(id) = id
            && id.hash == EquivalenceHash::of(&bytes)
        {
            objects.push(TypeObject {
                id,
                bytes: bytes.into(),
            });
        }
    }
    input.end_collection(list);
    Ok(())
}

fn encode_reply(
    identity: &SampleIdentity,
    operation: LookupOperation,
    count: usize,
    write: impl FnOnce(&mut Encoder<'_>),
) -> Vec<u8> {
    let (number, member_id) = match operation {
        LookupOperation::Types => (GET_TYPES, TYPES),
        LookupOperation::Dependencies => (GET_DEPENDENCIES, DEPENDENT_TYPEIDS),
    };
    payload(|out| {
        encode_identity(out, identity);
        out.i32(0);
        let call = out.begin_appendable();
        out.i32(number);
        let result = out.begin_appendable();
        out.i32(0);
        let values = out.begin_appendable();
        out.u32(LC_SIZE_FOLLOWS | member_id);
        let member = out.begin_appendable();
        let list = out.begin_collection();
        out.sequence_len(count);
        write(out);
        out.end_collection(list);
        out.end_appendable(member);
        match operation {
            LookupOperation::Types => {
                out.u32(LC_SIZE_FOLLOWS | COMPLETE_TO_MINIMAL);
                let member = out.begin_appendable();
                let list = out.begin_collection();
                out.sequence_len(0);
                out.end_collection(list);
                out.end_appendable(member);
            }
            LookupOperation::Dependencies => encode_no_continuation(out),
        }
        out.end_appendable(values);
        out.end_appendable(result);
        out.end_appendable(call);
    })
}

/// The last part of a list: none follows.
fn encode_no_continuation(out: &mut Encoder<'_>) {
    out.u32(LC_SIZE_FOLLOWS | CONTINUATION_POINT);
    let member = out.begin_appendable();
    out.sequence_len(0);
    out.end_appendable(member);
}

fn payload(write: impl FnOnce(&mut Encoder<'_>)) -> Vec<u8> {
    let mut bytes = ENCODING.to_bytes().to_vec();
    write(&mut Encoder::to_vec(
        &mut bytes,
        ENCODING.representation,
        ENCODING.endian,
    ));
    bytes
}

fn encode_identity(out: &mut Encoder<'_>, identity: &SampleIdentity) {
    out.primitive_array(&identity.writer);
    out.i32((identity.number >> 32) as i32);
    out.u32(identity.number as u32);
}

fn decode_identity(input: &mut Decoder<'_>) -> Result<SampleIdentity, DecodeError> {
    let writer = super::identifier::read_bytes(input)?;
    let (high, low) = (input.i32()?, input.u32()?);
    Ok(SampleIdentity {
        writer,
        number: i64::from(high) << 32 | i64::from(low),
    })
}

fn decode_ids(input: &mut Decoder<'_>, ids: &mut Vec<TypeObjectId>) -> Result<(), DecodeError> {
    let list = input.begin_collection()?;
    let count = input.u32()? as usize;
    for _ in 0..count.min(IDS_MAX) {
        match TypeIdentifier::decode(input)? {
            TypeIdentifier::Object(id) => ids.push(id),
            TypeIdentifier::Other(_) => break,
            _ => {}
        }
    }
    input.end_collection(list);
    Ok(())
}

/// One member of a mutable structure (XTypes 1.3 §7.4.3.4.2, EMHEADER), which
/// begins with its own size; the others are passed over.
fn decode_member(
    input: &mut Decoder<'_>,
    wanted: u32,
    mut read: impl FnMut(&mut Decoder<'_>) -> Result<(), DecodeError>,
) -> Result<(), DecodeError> {
    let whole = input.begin_collection()?;
    while input.remaining() >= 4 {
        let header = input.u32()?;
        let is_wanted = header & 0x0fff_ffff == wanted;
        match header >> 28 & 7 {
            // A number of 1, 2, 4 or 8 bytes.
            code @ 0..=3 => input.skip_primitives(1 << code, 1)?,
            // A size, then the member.
            4 => {
                let scope = input.begin_collection()?;
                if is_wanted {
                    read(input)?;
                }
                input.end_collection(scope);
            }
            // The size is the member's own.
            5 if is_wanted => read(input)?,
            // The member's own count of bytes, or of numbers of 4 or 8 bytes.
            code => {
                let count = input.u32()? as usize;
                let bytes_each = match code {
                    5 => 1,
                    6 => 4,
                    _ => 8,
                };
                input.skip_primitives(1, count.saturating_mul(bytes_each))?;
            }
        }
    }
    input.end_collection(whole);
    Ok(())
}
