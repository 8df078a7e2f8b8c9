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
use alloc::boxed::Box;
use alloc::string::{String, ToString};
use core::fmt;
use core::ops::Deref;

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

/// A ROS string in place: bytes, UTF-8 if the sender is correct.
///
/// Comparison uses the bytes. Conversion to a `String` copies, with U+FFFD for
/// invalid UTF-8.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Str<'a>(&'a [u8]);

impl<'a> Str<'a> {
    /// These bytes, without a final NUL.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The bytes in place.
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.0
    }

    /// Bytes, not characters.
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no byte.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'a> From<&'a str> for Str<'a> {
    fn from(text: &'a str) -> Self {
        Self(text.as_bytes())
    }
}

impl PartialEq<str> for Str<'_> {
    fn eq(&self, other: &str) -> bool {
        self.0 == other.as_bytes()
    }
}

impl PartialEq<&str> for Str<'_> {
    fn eq(&self, other: &&str) -> bool {
        self.0 == other.as_bytes()
    }
}

impl fmt::Display for Str<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&text_of(self.0))
    }
}

impl fmt::Debug for Str<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_string(), f)
    }
}

/// Copied first and then checked: another process may change the bytes in between.
pub(crate) fn text_of(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec())
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// A message that is borrowed or copied as a whole: one without strings and
/// sequences, or one whose type may grow (`@appendable`), which is copied.
#[derive(Clone)]
pub enum MaybeBorrowed<'a, T> {
    /// In place.
    Borrowed(&'a T),
    /// A copy, because it could not be borrowed.
    Owned(Box<T>),
}

impl<T> Deref for MaybeBorrowed<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        match self {
            Self::Borrowed(value) => value,
            Self::Owned(value) => value,
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for MaybeBorrowed<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T> MaybeBorrowed<'_, T> {
    /// Whether it is in place.
    pub fn is_borrowed(&self) -> bool {
        matches!(self, Self::Borrowed(_))
    }
}
