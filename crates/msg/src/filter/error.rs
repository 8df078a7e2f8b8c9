//! Errors of a content filter: the caller's error, with its position.

use crate::cdr::DecodeError;
use alloc::string::String;
use core::fmt;

/// Why a text is no filter for its type, and where in the text.
#[derive(Clone, PartialEq, Eq)]
pub struct FilterError {
    /// In the expression, or in which parameter.
    pub place: FilterErrorLocation,
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    /// The expected and the found token, and the remedy.
    pub message: String,
    /// The line of the text.
    pub text: String,
}

crate::debug_as_display!(FilterError);

/// Which text a [`FilterError`] is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterErrorLocation {
    /// The filter expression itself.
    Expression,
    /// The value of `%N`.
    Parameter(usize),
}

impl FilterError {
    /// An error at byte `at` of `text`.
    pub(super) fn at(place: FilterErrorLocation, text: &str, at: usize, message: String) -> Self {
        let before = text.get(..at).unwrap_or(text);
        let start = before
            .rfind('\n')
            .map_or(0, |newline| newline.saturating_add(1));
        let line = text.get(start..).unwrap_or_default();
        let column = before.get(start..).unwrap_or_default().chars().count();
        Self {
            place,
            line: before.matches('\n').count().saturating_add(1),
            column: column.saturating_add(1),
            message,
            text: line.lines().next().unwrap_or_default().into(),
        }
    }

    /// An error in the expression.
    pub(super) fn in_expression(text: &str, at: usize, message: String) -> Self {
        Self::at(FilterErrorLocation::Expression, text, at, message)
    }
}

/// Characters of a line that are shown before and behind the error.
const SHOWN_MAX: usize = 60;

/// Two lines more than the message: the text and a caret under the place.
impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            FilterErrorLocation::Expression => f.write_str("filter, ")?,
            FilterErrorLocation::Parameter(number) => write!(f, "filter parameter %{number}, ")?,
        }
        let (line, column) = (self.line, self.column);
        writeln!(f, "line {line}, column {column}: {}", self.message)?;
        let skipped = self.column.saturating_sub(SHOWN_MAX);
        let shown = self.text.chars().skip(skipped).take(2 * SHOWN_MAX);
        let shown: String = shown.map(|c| if c == '\t' { ' ' } else { c }).collect();
        let width = self.column.saturating_sub(skipped);
        write!(f, "  {shown}\n  {:>width$}", '^')
    }
}

impl core::error::Error for FilterError {}

/// Why a filter has no answer for a message.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum FilterEvaluationError {
    /// The payload is not of the filter's type, as far as it was read.
    Payload(DecodeError),
    /// Its patterns take more than [`super::LIKE_STEPS_MAX`] on this message.
    TooCostly,
}

crate::debug_as_display!(FilterEvaluationError);

impl From<DecodeError> for FilterEvaluationError {
    fn from(error: DecodeError) -> Self {
        Self::Payload(error)
    }
}

impl fmt::Display for FilterEvaluationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Payload(error) => error.fmt(f),
            Self::TooCostly => f.write_str(
                "the patterns of its LIKEs take too long on this message; use fewer % in them",
            ),
        }
    }
}

impl core::error::Error for FilterEvaluationError {}
