//! Borrowed values of a view: text that lies in the payload, and values of fixed
//! layout that are read in place or copied.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use core::fmt;
use core::ops::Deref;

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
