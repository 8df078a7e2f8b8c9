//! Errors of a value that a user gives.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// A value does not fit its field, or the field does not exist.
#[derive(Clone, PartialEq, Eq)]
pub struct ValueError {
    /// For example `points[3].x`; empty for the message itself.
    pub path: String,
    /// Why the value at the path is refused.
    pub problem: ValueProblem,
}

crate::debug_as_display!(ValueError);

/// See [`ValueError`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueProblem {
    /// The type has no such field.
    UnknownField {
        /// The field asked for.
        name: String,
        /// Full name of the message type, `package/msg/Name`.
        type_name: String,
        /// The fields that it has.
        known: Vec<String>,
    },
    /// A field is given twice.
    Duplicate,
    /// The value is not of the field's type, or out of its range.
    WrongType {
        /// The type, with the range of numbers.
        expected: String,
        /// The value.
        found: String,
    },
    /// Too many or too few elements.
    WrongLength {
        /// For example `exactly 3 elements`.
        expected: String,
        /// The length found.
        found: usize,
    },
    /// An index beyond the last element.
    OutOfRange {
        /// The index asked for, from 0.
        index: usize,
        /// Elements present.
        len: usize,
    },
    /// The path is malformed or continues after a number or string.
    BadPath {
        /// Why.
        reason: &'static str,
    },
    /// The text is not YAML.
    Syntax {
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
        /// The parser's message.
        message: String,
    },
}

/// `outer.name`, or `name` at the top.
pub(super) fn join(outer: &str, name: &str) -> String {
    if outer.is_empty() {
        name.into()
    } else {
        format!("{outer}.{name}")
    }
}

/// Whether a key of the YAML is the field and its value, as in `{data:1}` or `{data 1}`.
fn is_field_and_value(key: &str, field: &str) -> bool {
    let rest = key.strip_prefix(field);
    rest.is_some_and(|rest| rest.starts_with([':', ' ', '=']))
}

impl fmt::Display for ValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "field \"{}\": ", self.path)?;
        }
        match &self.problem {
            ValueProblem::UnknownField {
                name,
                type_name,
                known,
            } => {
                write!(f, "{type_name} has no field \"{name}\"; ")?;
                if known.is_empty() {
                    f.write_str("it has none at all")
                } else {
                    write!(f, "its fields are {}", known.join(", "))?;
                    match known.iter().find(|known| is_field_and_value(name, known)) {
                        Some(field) => {
                            write!(f, "; write {field}: VALUE, with a blank after the colon")
                        }
                        None => Ok(()),
                    }
                }
            }
            ValueProblem::Duplicate => f.write_str("given more than once; keep one"),
            ValueProblem::WrongType { expected, found } => {
                write!(f, "expected {expected}, found {found}")
            }
            ValueProblem::WrongLength { expected, found } => {
                write!(f, "expected {expected}, found {found}")
            }
            ValueProblem::OutOfRange { index, len } => {
                write!(f, "index {index} is beyond its {len} elements")
            }
            ValueProblem::BadPath { reason } => f.write_str(reason),
            ValueProblem::Syntax {
                line,
                column,
                message,
            } => write!(f, "not YAML at line {line}, column {column}: {message}"),
        }
    }
}

impl core::error::Error for ValueError {}
