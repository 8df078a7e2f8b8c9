//! Loans of publishers: payloads of plain types that the user writes in place
//! (zero-copy). The user identifies a loan by its address, so each entity has a table of
//! them.

use std::ffi::c_void;

use bytes::Bytes;
use parking_lot::Mutex;
use pteros_runtime::outbound::SerializedPayload;
use pteros_runtime::shm_transport::Chunk;

use crate::encode::HEADER;
use crate::failure::{Failure, Outcome};
use crate::plain::{BODY_ALIGN, PlainLayout};
use crate::program::Program;

/// Loans of one entity. A loan keeps a chunk of the pool, so more of them would block the
/// other publishers of the process.
const LOANS_MAX: usize = 256;

/// Loans of one entity, by address.
pub struct Loans<T>(Mutex<Vec<(usize, T)>>);

impl<T> Default for Loans<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Loans<T> {
    /// # Errors
    /// The user holds 256 loans, the most that there may be.
    pub fn check_space(&self) -> Outcome {
        if self.0.lock().len() < LOANS_MAX {
            return Ok(());
        }
        Err(Failure::error(format!(
            "{LOANS_MAX} loaned messages are held already; return or publish some"
        )))
    }

    /// Adds a loan. Returns its address.
    pub fn add(&self, at: *mut c_void, loan: T) -> *mut c_void {
        self.0.lock().push((at.addr(), loan));
        at
    }

    /// Ends a loan.
    ///
    /// # Errors
    /// No loan has the address.
    pub fn remove(&self, at: *const c_void) -> Outcome<T> {
        let mut loans = self.0.lock();
        let found = loans.iter().position(|(address, _)| *address == at.addr());
        match found {
            Some(index) => Ok(loans.swap_remove(index).1),
            None => Err(Failure::error(
                "the message is no loan of this publisher or subscription",
            )),
        }
    }
}

/// A payload that the user writes in place.
pub enum PayloadMemory {
    /// A chunk that peers can read.
    Chunk(Chunk),
    /// Memory of this process; the payload begins at an offset, so that its body is
    /// aligned.
    Own(Vec<u8>, usize),
}

impl PayloadMemory {
    /// Memory for a struct of the type behind a header, with initial values. `chunk` has
    /// that size.
    pub fn new(program: &Program, layout: &PlainLayout, chunk: Option<Chunk>) -> Self {
        let len = HEADER.len() + layout.size_of;
        let is_aligned = |chunk: &Chunk| {
            chunk.len() == len && (chunk.as_ptr().addr() + HEADER.len()).is_multiple_of(BODY_ALIGN)
        };
        let mut memory = match chunk.filter(is_aligned) {
            Some(chunk) => Self::Chunk(chunk),
            None => Self::own(len),
        };
        let payload = memory.payload();
        if let Some((header, body)) = payload.split_first_chunk_mut() {
            *header = HEADER;
            // SAFETY: memory of the size and alignment of the struct.
            unsafe { program.initialize(body) };
        }
        memory
    }

    fn own(len: usize) -> Self {
        let mut bytes = vec![0; len + BODY_ALIGN];
        let begin = (bytes.as_ptr().addr() + HEADER.len()).wrapping_neg() % BODY_ALIGN;
        bytes.truncate(begin + len);
        Self::Own(bytes, begin)
    }

    fn payload(&mut self) -> &mut [u8] {
        match self {
            Self::Chunk(chunk) => chunk,
            Self::Own(bytes, begin) => bytes.get_mut(*begin..).unwrap_or_default(),
        }
    }

    fn body(&mut self) -> &mut [u8] {
        self.payload().get_mut(HEADER.len()..).unwrap_or_default()
    }

    /// Address of the struct, which does not move.
    pub fn address(&mut self) -> *mut c_void {
        self.body().as_mut_ptr().cast()
    }

    /// Completes the payload for publishing.
    pub fn into_message(mut self, layout: &PlainLayout) -> SerializedPayload {
        layout.clear_gaps(self.body());
        match self {
            Self::Chunk(chunk) => SerializedPayload::in_chunk(chunk.freeze()),
            Self::Own(bytes, begin) => SerializedPayload::new(Bytes::from(bytes).slice(begin..)),
        }
    }
}
