//! Outbound message: a struct of the user while it is published.
//!
//! Each form is created at most once, when a reader needs it: CDR, in a chunk of shared
//! memory if there is one, or a copy of the struct for readers of the context.

use std::any::TypeId;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::Arc;

use bytes::Bytes;
use pteros_runtime::outbound::OutboundMessage;
use pteros_runtime::sample::SharedValue;
use pteros_runtime::shm_transport::Chunk;

use crate::error::Outcome;
use crate::shared_message::SharedMessage;
use pteros_typesupport::Program;

/// A message of the user that is being published.
pub(crate) struct UserMessage<'m> {
    program: &'m Arc<Program>,
    message: *const c_void,
    /// Size of the CDR, once computed.
    len: Option<usize>,
    chunk: Option<Chunk>,
    payload: Option<Bytes>,
    /// Absent if readers of the context receive CDR as well.
    copies: Option<Copies>,
}

/// Copies of the struct for readers of the context.
struct Copies {
    next: Option<Arc<SharedMessage>>,
    /// Number of readers that take the copy; the last one may move it. `None` if the copy
    /// is also kept for late joiners.
    takers: Option<usize>,
}

impl<'m> UserMessage<'m> {
    /// A message that all readers receive as CDR. Checks it and computes its size.
    ///
    /// # Safety
    /// `message` points to an initialized struct of the type, which must not change while
    /// this value exists.
    ///
    /// # Errors
    /// A sequence exceeds its bound, or a string was not initialized.
    pub(crate) unsafe fn new(program: &'m Arc<Program>, message: *const c_void) -> Outcome<Self> {
        Ok(Self {
            program,
            message,
            // SAFETY: as for this function.
            len: Some(unsafe { program.serialized_len(message) }?),
            chunk: None,
            payload: None,
            copies: None,
        })
    }

    /// A message that readers of the context receive as a copy of the struct, which is
    /// made now. If `takers` is given, that many readers take it and nothing keeps it.
    ///
    /// # Safety
    /// As for [`Self::new`].
    ///
    /// # Errors
    /// As for [`Self::new`], or there is no memory.
    pub(crate) unsafe fn shared(
        program: &'m Arc<Program>,
        message: *const c_void,
        takers: Option<usize>,
    ) -> Outcome<Self> {
        // SAFETY: as for this function.
        let copy = unsafe { SharedMessage::copy_of(program, message, takers.is_none()) }?;
        Ok(Self {
            program,
            message,
            len: None,
            chunk: None,
            payload: None,
            copies: Some(Copies {
                next: Some(copy),
                takers,
            }),
        })
    }

    fn encode(&self, memory: &mut [u8]) {
        // SAFETY: bytes that stay initialized.
        let memory = unsafe { &mut *(std::ptr::from_mut(memory) as *mut [MaybeUninit<u8>]) };
        // SAFETY: as for `new`.
        report(unsafe { self.program.encode(self.message, memory) });
    }

    fn encode_to_vec(&self, len: usize) -> Vec<u8> {
        // SAFETY: as for `new`.
        let (bytes, encoded) = unsafe { self.program.encode_to_vec(self.message, len) };
        report(encoded);
        bytes
    }
}

/// Logs a failure. A message that another thread changes meanwhile can no longer be
/// refused.
fn report(encoded: pteros_typesupport::Outcome) {
    if let Err(failure) = encoded {
        tracing::error!("{}", failure.text);
    }
}

impl OutboundMessage for UserMessage<'_> {
    fn message_type(&self) -> TypeId {
        match &self.copies {
            Some(_) => TypeId::of::<SharedMessage>(),
            None => TypeId::of::<Bytes>(),
        }
    }

    fn shared(&mut self) -> Option<Arc<dyn SharedValue>> {
        let copies = self.copies.as_mut()?;
        let copy = match copies.next.take() {
            Some(copy) => copy,
            // More readers than when publishing started.
            None => {
                let is_kept = copies.takers.is_none();
                // SAFETY: as for `new`.
                unsafe { SharedMessage::copy_of(self.program, self.message, is_kept) }.ok()?
            }
        };
        let is_last = copies.takers.is_some_and(|takers| takers <= 1);
        if !is_last {
            copies.takers = copies.takers.map(|takers| takers - 1);
            copies.next = Some(copy.clone());
        }
        Some(copy)
    }

    fn serialized(&mut self) -> Bytes {
        if let Some(payload) = &self.payload {
            return payload.clone();
        }
        let len = self.serialized_len();
        let payload = match self.chunk.take() {
            Some(mut chunk) if chunk.len() == len => {
                self.encode(&mut chunk);
                chunk.freeze()
            }
            _ => self.encode_to_vec(len).into(),
        };
        self.payload = Some(payload.clone());
        payload
    }

    fn wants_buffer(&self) -> bool {
        self.payload.is_none()
    }

    fn offer_buffer(&mut self, memory: Chunk) {
        self.chunk = Some(memory);
    }

    fn serialized_len(&mut self) -> usize {
        if let Some(len) = self.len {
            return len;
        }
        // SAFETY: as for `new`. The copy was checked, so only a message that another
        // thread changes fails; then no bytes are written.
        let len = match unsafe { self.program.serialized_len(self.message) } {
            Ok(len) => len,
            Err(failure) => {
                report(Err(failure));
                0
            }
        };
        self.len = Some(len);
        len
    }
}
