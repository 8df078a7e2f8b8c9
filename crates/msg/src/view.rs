//! Message views: zero-copy access to serialized messages. Large parts are not
//! copied out of the bytes.
//!
//! Beside each message type `Image` there is a view `view::Image<'a>` with the same
//! fields. Single numbers are copied. Sequences and arrays of numbers, or of
//! messages of fixed layout ([`FixedLayout`](crate::plain::FixedLayout)), are
//! slices of the payload. Strings are its bytes ([`Str`]). Sequences of other
//! messages are vectors of views. A sequence is copied if it cannot be borrowed: in
//! the other byte order, or not aligned to its type; the [`Cow`] shows that.
//!
//! The bytes may be memory that another process writes (`pteros-shm`). A correct
//! process leaves a message unchanged while it is read. With a misbehaving one,
//! numbers may change under the reader, and nothing worse: text and `bool`s, which
//! must be valid, are copied before they are checked.

use crate::cdr::{DecodeError, Decoder};
use crate::message::Message;
use core::fmt;

pub use crate::borrowed::{MaybeBorrowed, Str};
pub use alloc::borrow::Cow;

/// A message type that can be read in place. Generated code implements it for
/// every message of a `.msg` file.
pub trait Viewable: Message {
    /// The message with its large parts borrowed.
    type View<'a>: Clone + fmt::Debug;

    /// Decodes one value and borrows what can be borrowed.
    ///
    /// # Errors
    /// As [`Decode::decode`](crate::Decode::decode).
    fn view<'a>(input: &mut Decoder<'a>) -> Result<Self::View<'a>, DecodeError>;

    /// A view of an own value. Copies nothing large; sequences of messages become a
    /// vector of views.
    fn as_view(&self) -> Self::View<'_>;
}

/// Views the message in a payload with header; bytes after it are ignored.
///
/// ```
/// use pteros_msg::cdr::{DecodeError, Representation, to_payload};
/// use pteros_msg::view::{Viewable, view_payload};
///
/// fn show<M: Viewable>(message: &M) -> Result<(), DecodeError> {
///     let payload = to_payload(message, Representation::Xcdr1);
///     println!("{:?}", view_payload::<M>(&payload)?);
///     Ok(())
/// }
/// ```
///
/// # Errors
/// As [`from_payload`](crate::from_payload).
pub fn view_payload<M: Viewable>(payload: &[u8]) -> Result<M::View<'_>, DecodeError> {
    M::view(&mut Decoder::from_payload(payload)?)
}
