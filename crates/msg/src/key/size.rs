//! Maximal size of a type's keys, which decides how they are hashed.

use crate::cdr::DEPTH_MAX;
use crate::describe::{Field, IndividualTypeDescription, TypeDescription, type_id};

/// A hash holds keys that take at most this many bytes as they are.
pub(super) const HASH_BYTES: usize = 16;

/// The maximal size in bytes of a key of this type in the hash input; `usize::MAX`
/// where that is more than the 16 bytes of a hash, 0 without a key.
///
/// Descriptions may come from the network: every member takes a byte at least, so
/// the walk ends with the seventeenth, for any references.
pub fn key_bytes_max(description: &TypeDescription) -> usize {
    let find = |name: &str| {
        let mut referenced = description.referenced.iter();
        referenced.find(|ty| ty.type_name == name)
    };
    key_bytes_max_of(&description.type_description, find)
}

/// The same where `find` looks up the types that `outermost` refers to.
pub(crate) fn key_bytes_max_of<'a>(
    outermost: &'a IndividualTypeDescription,
    find: impl Fn(&str) -> Option<&'a IndividualTypeDescription>,
) -> usize {
    if !outermost.fields.iter().any(|field| field.is_key) {
        return 0;
    }
    let mut measure = Measure { find, at: 0 };
    match measure.holder(outermost, 0) {
        Some(()) => measure.at,
        None => usize::MAX,
    }
}

/// Counts as the encoder does, with the longest value everywhere: XCDR2
/// without structure sizes. `None` as soon as it is too much.
struct Measure<F> {
    find: F,
    at: usize,
}

impl<'a, F: Fn(&str) -> Option<&'a IndividualTypeDescription>> Measure<F> {
    fn holder(&mut self, ty: &'a IndividualTypeDescription, depth: u8) -> Option<()> {
        if depth >= DEPTH_MAX {
            return None;
        }
        if ty.fields.is_empty() {
            return self.bytes(1, 1);
        }
        let all = !ty.fields.iter().any(|field| field.is_key);
        let mut members = ty.fields.iter().filter(|field| all || field.is_key);
        members.try_for_each(|field| self.member(field, depth))
    }

    fn member(&mut self, field: &'a Field, depth: u8) -> Option<()> {
        let ty = &field.field_type;
        let (element, is_sequence, count) = match ty.type_id {
            id @ 0..=48 => return self.element(field, id, depth),
            id @ 49..=96 => (id.saturating_sub(type_id::ARRAY), false, ty.capacity),
            id @ 97..=144 => (
                id.saturating_sub(type_id::BOUNDED_SEQUENCE),
                true,
                ty.capacity,
            ),
            _ => return None,
        };
        if !is_primitive(element) {
            self.bytes(4, 4)?;
        }
        if is_sequence {
            self.bytes(4, 4)?;
        }
        (0..count).try_for_each(|_| self.element(field, element, depth))
    }

    fn element(&mut self, field: &'a Field, id: u8, depth: u8) -> Option<()> {
        let bound = usize::try_from(field.field_type.string_capacity).ok()?;
        match id {
            type_id::BOOLEAN | type_id::BYTE | type_id::INT8 | type_id::UINT8 => self.bytes(1, 1),
            type_id::INT16 | type_id::UINT16 => self.bytes(2, 2),
            type_id::INT32 | type_id::UINT32 | type_id::FLOAT => self.bytes(4, 4),
            // XCDR2 aligns at most to 4.
            type_id::INT64 | type_id::UINT64 | type_id::DOUBLE => self.bytes(8, 4),
            type_id::BOUNDED_STRING => self.bytes(bound.checked_add(5)?, 4),
            type_id::BOUNDED_WSTRING => self.bytes(bound.checked_mul(4)?.checked_add(4)?, 4),
            type_id::NESTED => {
                let nested = (self.find)(&field.field_type.nested_type_name)?;
                self.holder(nested, depth.saturating_add(1))
            }
            _ => None,
        }
    }

    fn bytes(&mut self, count: usize, alignment: usize) -> Option<()> {
        let start = self.at.next_multiple_of(alignment);
        self.at = start.checked_add(count)?;
        (self.at <= HASH_BYTES).then_some(())
    }
}

fn is_primitive(id: u8) -> bool {
    !matches!(
        id,
        type_id::NESTED
            | type_id::STRING
            | type_id::WSTRING
            | type_id::BOUNDED_STRING
            | type_id::BOUNDED_WSTRING
    )
}
