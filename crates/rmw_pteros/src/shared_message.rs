//! Shared messages: structs of the user within a context, without CDR.
//!
//! The publisher copies the user's struct once. Each subscription copies it into its
//! user's struct, and the last one moves it. CDR is written only for readers that need
//! it. These are readers of another process or of another typesupport (C and C++ in one
//! process), serialized takes, and content filters.

use std::any::{Any, TypeId};
use std::ffi::c_void;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use pteros_msg::cdr::Representation;
use pteros_runtime::reader::DeliveryForm;
use pteros_runtime::sample::{SampleBody, SharedValue};

use crate::error::Outcome;
use pteros_typesupport::{Program, Struct};

/// A publisher's message for subscriptions of its context.
pub(crate) struct SharedMessage {
    message: Struct,
    /// CDR for readers that need it. Absent if the message is kept for late joiners, so
    /// that it is not stored twice.
    payload: Option<OnceLock<Bytes>>,
}

/// The form in which subscriptions take messages.
pub(crate) const DELIVERY_FORM: DeliveryForm = DeliveryForm::Type(TypeId::of::<SharedMessage>());

impl SharedMessage {
    /// Copies the user's struct. `is_kept`: the copy is kept for late joiners.
    ///
    /// # Safety
    /// As for [`Struct::copy_of`].
    ///
    /// # Errors
    /// As for [`Struct::copy_of`].
    pub(crate) unsafe fn copy_of(
        program: &Arc<Program>,
        message: *const c_void,
        is_kept: bool,
    ) -> Outcome<Arc<Self>> {
        Ok(Arc::new(Self {
            // SAFETY: as for this function.
            message: unsafe { Struct::copy_of(program, message) }?,
            payload: (!is_kept).then(OnceLock::new),
        }))
    }

    fn encode(&self) -> Bytes {
        let (program, message) = (self.message.program(), self.message.address());
        // SAFETY: an initialized struct of the type, which nothing changes.
        let encoded = unsafe {
            program.serialized_len(message).map(|len| {
                let (bytes, encoded) = program.encode_to_vec(message, len);
                encoded.map(|()| bytes)
            })
        };
        match encoded.and_then(|bytes| bytes) {
            Ok(bytes) => bytes.into(),
            Err(failure) => {
                tracing::error!("serialize a message of this process: {}", failure.text);
                Bytes::new()
            }
        }
    }
}

impl SharedValue for SharedMessage {
    /// Plain CDR, the only representation of the plug-in's publishers. Empty, and logged,
    /// if the message cannot be serialized; copying has checked that.
    fn payload(&self, _representation: Representation) -> Bytes {
        match &self.payload {
            Some(payload) => payload.get_or_init(|| self.encode()).clone(),
            None => self.encode(),
        }
    }

    fn size_bytes(&self) -> usize {
        let (program, message) = (self.message.program(), self.message.address());
        // SAFETY: an initialized struct of the type, which nothing changes.
        unsafe { program.serialized_len(message) }.unwrap_or_default()
    }
}

/// The struct behind a sample, if it has the type and the layout of `program`.
pub(crate) fn struct_of<'v>(
    value: &'v Arc<dyn SharedValue>,
    program: &Arc<Program>,
) -> Option<&'v Struct> {
    let shared: &SharedMessage = value.downcast_ref()?;
    Arc::ptr_eq(shared.message.program(), program).then_some(&shared.message)
}

/// The bytes of a sample. Serializes a shared message, at most once for all takers if
/// it is not kept for late joiners.
pub(crate) fn into_payload(body: SampleBody) -> Bytes {
    match body {
        SampleBody::Serialized(payload) => payload,
        SampleBody::Shared(value) => value.payload(Representation::Xcdr1),
    }
}

/// Takes a sample into a struct of the user. The last owner of a shared message moves it.
///
/// # Safety
/// `message` points to an initialized struct of the type of `program`, which nothing
/// else uses.
///
/// # Errors
/// The bytes are not of the type, or there is no memory.
pub(crate) unsafe fn take_into(
    mut body: SampleBody,
    program: &Arc<Program>,
    message: *mut c_void,
) -> Outcome {
    if let SampleBody::Shared(value) = &mut body {
        if let Some(own) = own_struct_of(value, program) {
            // SAFETY: as for this function; the other struct is ours alone.
            return Ok(unsafe { program.move_into(own.address_mut(), message) }?);
        }
        if let Some(shared) = struct_of(value, program) {
            // SAFETY: as for this function.
            return Ok(unsafe { program.copy(shared.address(), message) }?);
        }
    }
    // SAFETY: as for this function.
    Ok(unsafe { program.decode(&into_payload(body), message) }?)
}

/// As [`struct_of`], mutable; `None` if there is another owner.
fn own_struct_of<'v>(
    value: &'v mut Arc<dyn SharedValue>,
    program: &Arc<Program>,
) -> Option<&'v mut Struct> {
    let value: &mut dyn Any = Arc::get_mut(value)?;
    let shared: &mut SharedMessage = value.downcast_mut()?;
    Arc::ptr_eq(shared.message.program(), program).then_some(&mut shared.message)
}
