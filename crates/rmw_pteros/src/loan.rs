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
use pteros_runtime::sample::{SampleBody, SharedValue};

use crate::error::Outcome;
use crate::shared_message;
use pteros_typesupport::{PayloadMemory, PlainLayout, Program};

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
