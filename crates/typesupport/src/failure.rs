//! Failures of the conversion between structs and CDR: a kind and a text.

use std::fmt;

/// Why a struct could not be read or written. The text names the thing and the value.
pub struct Failure {
    /// What a caller can act on.
    pub kind: FailureKind,
    /// For the user.
    pub text: String,
}

/// What a conversion failed at; it decides the return code of rmw.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FailureKind {
    /// The struct, or its type support, is not usable.
    Struct,
    /// The type has a member that ROS 2 does not serialize.
    Unsupported,
    /// There is no memory.
    Memory,
    /// A received payload is not of the type.
    Payload,
}

/// Result of a conversion.
pub type Outcome<T = ()> = Result<T, Failure>;

pteros_msg::debug_as_display!(Failure);

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Failure {}

impl Failure {
    /// A failure of a kind.
    pub fn new(kind: FailureKind, text: impl fmt::Display) -> Self {
        Self {
            kind,
            text: text.to_string(),
        }
    }

    pub(crate) fn error(text: impl fmt::Display) -> Self {
        Self::new(FailureKind::Struct, text)
    }

    pub(crate) fn undecodable(text: impl fmt::Display) -> Self {
        Self::new(FailureKind::Payload, text)
    }

    pub(crate) fn unsupported(what: &str) -> Self {
        let text = format!("{what} is not supported");
        Self::new(FailureKind::Unsupported, text)
    }

    pub(crate) fn bad_alloc() -> Self {
        Self::new(FailureKind::Memory, "the allocator returned no memory")
    }
}
