//! Bounds of strings and sequences in structs that a C table describes.
//!
//! [`Program`](crate::Program) does not know the names of members, and the rmw plug-in
//! sends strings above their bound, as Cyclone DDS and Fast DDS do. C programs get the
//! error of the other languages.

use std::ffi::c_void;

use pteros_msg::message::BoundError;

use crate::c_table::{ARRAY, CMember, CMessageTable, CMessageType, SEQUENCE, text};
use crate::members::type_id;
use crate::sequence::CSequence;

impl CMessageType {
    /// Checks the bounds of a message. Visits nothing if the type has none.
    ///
    /// # Safety
    /// `message` points to an initialized struct of the type.
    ///
    /// # Errors
    /// A string or sequence is too long. The error names the field.
    pub unsafe fn check_bounds(&self, message: *const c_void) -> Result<(), BoundError> {
        match self.bounded_table() {
            // SAFETY: as for this function.
            Some(table) => unsafe { table.check_bounds(message.cast()) },
            None => Ok(()),
        }
    }
}

impl CMessageTable {
    /// Whether a string or sequence in it has a bound.
    pub(crate) fn is_bounded(&self) -> bool {
        self.members().iter().any(|member| {
            member.string_bound > 0
                || member.sequence_bound().is_some()
                || member.nested().is_some_and(Self::is_bounded)
        })
    }

    unsafe fn check_bounds(&self, message: *const u8) -> Result<(), BoundError> {
        for member in self.members() {
            // SAFETY: offsets of the type.
            unsafe { member.check_bounds(message.add(member.offset as usize)) }?;
        }
        Ok(())
    }
}

impl CMember {
    fn nested(&self) -> Option<&CMessageTable> {
        // SAFETY: the table of a nested message, or null, by contract of `CMessageType::of`.
        unsafe { self.message.as_ref() }
    }

    fn sequence_bound(&self) -> Option<usize> {
        (self.collection == SEQUENCE && self.size > 0).then_some(self.size as usize)
    }

    unsafe fn check_bounds(&self, at: *const u8) -> Result<(), BoundError> {
        let (first, count) = match self.collection {
            SEQUENCE => {
                // SAFETY: a sequence of the message.
                let sequence = unsafe { &*at.cast::<CSequence>() };
                self.check(None, sequence.size, self.sequence_bound())?;
                (sequence.data.cast_const().cast(), sequence.owned_len())
            }
            ARRAY => (at, self.size as usize),
            _ => (at, 1),
        };
        let is_string = matches!(self.kind, type_id::STRING | type_id::WSTRING);
        for index in 0..count {
            if let Some(nested) = self.nested() {
                // SAFETY: an element of the member.
                let of = unsafe { nested.check_bounds(first.add(index * nested.size_of as usize)) };
                of.map_err(|error| error.within(&self.field(Some(index))))?;
            } else if is_string && self.string_bound > 0 {
                // SAFETY: an element of the member. A string has the layout of a sequence.
                let string = unsafe { &*first.cast::<CSequence>().add(index) };
                self.check(Some(index), string.size, Some(self.string_bound as usize))?;
            }
        }
        Ok(())
    }

    fn check(
        &self,
        index: Option<usize>,
        len: usize,
        bound: Option<usize>,
    ) -> Result<(), BoundError> {
        match bound.filter(|bound| len > *bound) {
            Some(bound) => BoundError::check(&self.field(index), len, bound),
            None => Ok(()),
        }
    }

    /// Name of the member or of one of its elements, as `points[3]`.
    fn field(&self, index: Option<usize>) -> String {
        // SAFETY: a string of the table, by contract of `CMessageType::of`.
        let name = unsafe { text(self.name) };
        match index.filter(|_| self.collection != 0) {
            Some(index) => format!("{name}[{index}]"),
            None => name.into(),
        }
    }
}
