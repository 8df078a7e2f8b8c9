//! Fault: the reason why an expression has no value, while its position is still
//! being found out.

use std::sync::Arc;

/// A reason, and its position once it is known.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fault {
    pub message: String,
    /// Index of the character that the fault is about.
    pub at: Option<u32>,
    /// The name that has no value, if that is the reason.
    pub unknown_name: Option<Arc<str>>,
    /// Whether Python may have a value for the expression.
    pub needs_python: bool,
}

pub(super) type Outcome<T> = Result<T, Fault>;

impl Fault {
    /// A fault at a character.
    pub fn at(at: u32, message: impl Into<String>) -> Self {
        Self::from(message.into()).or_at(at)
    }

    /// Something that only Python evaluates.
    pub fn needs_python(what: impl Into<String>) -> Self {
        Self {
            needs_python: true,
            ..Self::from(what.into())
        }
    }

    /// The fault with a position, unless it has one already.
    pub fn or_at(mut self, at: u32) -> Self {
        self.at.get_or_insert(at);
        self
    }
}

impl From<String> for Fault {
    fn from(message: String) -> Self {
        Self {
            message,
            at: None,
            unknown_name: None,
            needs_python: false,
        }
    }
}

impl From<&str> for Fault {
    fn from(message: &str) -> Self {
        message.to_owned().into()
    }
}
