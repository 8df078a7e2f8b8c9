//! Loaned messages: memory of plain types that the user writes and reads in place
//! (zero-copy).
//!
//! A publisher's loan is in a chunk of the shared-memory transport if readers are
//! connected, else in private memory. A subscription's loan is the received payload
//! itself, or the publisher's struct within a context. It is a copy only if the payload
//! cannot be read as the struct. The user identifies a loan by its address, so each
//! entity has a table of them.

use std::ffi::c_void;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use pteros_runtime::outbound::SerializedPayload;
use pteros_runtime::sample::{SampleBody, SharedValue};
use pteros_runtime::shm_transport::Chunk;

use crate::error::{Failure, Outcome};
use crate::shared_message;
use crate::typesupport::{BODY_ALIGN, HEADER, PlainLayout, Program};

/// Loans of one entity. A loan keeps a chunk of the pool, so more of them would block the
/// other publishers of the process.
const LOANS_MAX: usize = 256;

/// Loans of one entity, by address.
pub(crate) struct Loans<T>(Mutex<Vec<(usize, T)>>);

impl<T> Default for Loans<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Loans<T> {
    /// # Errors
    /// The user holds [`LOANS_MAX`] loans.
    pub(crate) fn check_space(&self) -> Outcome {
        if self.0.lock().len() < LOANS_MAX {
            return Ok(());
        }
        Err(Failure::error(format!(
            "{LOANS_MAX} loaned messages are held already; return or publish some"
        )))
    }

    /// Adds a loan. Returns its address.
    pub(crate) fn add(&self, at: *mut c_void, loan: T) -> *mut c_void {
        self.0.lock().push((at.addr(), loan));
        at
    }

    /// Ends a loan.
    ///
    /// # Errors
    /// No loan has the address.
    pub(crate) fn remove(&self, at: *const c_void) -> Outcome<T> {
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
pub(crate) enum PayloadMemory {
    /// A chunk that peers can read.
    Chunk(Chunk),
    /// Memory of this process; the payload begins at an offset, so that its body is
    /// aligned.
    Own(Vec<u8>, usize),
}

impl PayloadMemory {
    /// Memory for a struct of the type behind a header, with initial values. `chunk` has
    /// that size.
    pub(crate) fn new(program: &Program, layout: &PlainLayout, chunk: Option<Chunk>) -> Self {
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
    pub(crate) fn address(&mut self) -> *mut c_void {
        self.body().as_mut_ptr().cast()
    }

    /// Completes the payload for publishing.
    pub(crate) fn into_message(mut self, layout: &PlainLayout) -> SerializedPayload {
        layout.clear_gaps(self.body());
        match self {
            Self::Chunk(chunk) => SerializedPayload::in_chunk(chunk.freeze()),
            Self::Own(bytes, begin) => SerializedPayload::new(Bytes::from(bytes).slice(begin..)),
        }
    }
}

/// A received message that the user reads in place.
#[expect(dead_code, reason = "the memory is kept until the user returns it")]
pub(crate) enum ReceivedLoan {
    /// CDR, in the memory in which it was received.
    Payload(Bytes),
    /// The shared message of a publisher of this context.
    Shared(Arc<dyn SharedValue>),
    /// A decoded copy of the payload.
    Copy(PayloadMemory),
}

/// Loans a received message, in place if possible.
///
/// # Errors
/// The payload is not of the type.
pub(crate) fn receive(
    program: &Arc<Program>,
    layout: &PlainLayout,
    body: SampleBody,
) -> Outcome<(*mut c_void, ReceivedLoan)> {
    if let SampleBody::Shared(value) = &body
        && let Some(shared) = shared_message::struct_of(value, program)
    {
        return Ok((
            shared.address().cast_mut(),
            ReceivedLoan::Shared(value.clone()),
        ));
    }
    let payload = shared_message::into_payload(body);
    if let Some(body) = layout.view(&payload) {
        let at = body.as_ptr().cast_mut().cast();
        return Ok((at, ReceivedLoan::Payload(payload)));
    }
    let mut memory = PayloadMemory::new(program, layout, None);
    let at = memory.address();
    // SAFETY: an initialized struct of the type, which is ours alone.
    unsafe { program.decode(&payload, at) }?;
    Ok((at, ReceivedLoan::Copy(memory)))
}
