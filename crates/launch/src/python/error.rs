//! Error of an expression: the expression, the position, the reason.

use std::fmt;
use std::sync::Arc;

use super::fault::Fault;

/// Longest expression that an error shows whole, in characters.
const SHOWN_MAX: usize = 200;

/// The reason why an expression has no value.
#[derive(Clone, PartialEq, Eq)]
pub struct ExpressionError {
    /// The whole expression.
    pub expression: Arc<str>,
    /// The character that the error is about, from 1.
    pub character: usize,
    /// The reason, with the value at fault.
    pub message: String,
    /// The name that has no value, if that is the reason.
    pub unknown_name: Option<Arc<str>>,
    /// Whether Python may have a value for the expression, which has more than
    /// the basics.
    pub(super) needs_python: bool,
}

pteros::msg::debug_as_display!(ExpressionError);

impl ExpressionError {
    pub(super) fn new(expression: &Arc<str>, fault: Fault) -> Self {
        Self {
            expression: expression.clone(),
            character: fault.at.map_or(1, |at| at as usize + 1),
            message: fault.message,
            unknown_name: fault.unknown_name,
            needs_python: fault.needs_python,
        }
    }
}

impl fmt::Display for ExpressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.expression.chars().count();
        let (character, message) = (self.character, &self.message);
        if count <= SHOWN_MAX {
            let shown = &self.expression;
            return write!(f, "expression {shown:?}, character {character}: {message}");
        }
        // The surroundings of the error.
        let start = character.saturating_sub(SHOWN_MAX / 2);
        let shown: String = self
            .expression
            .chars()
            .skip(start)
            .take(SHOWN_MAX)
            .collect();
        write!(
            f,
            "expression of {count} characters, at character {character} in {shown:?}: {message}"
        )
    }
}

impl std::error::Error for ExpressionError {}
