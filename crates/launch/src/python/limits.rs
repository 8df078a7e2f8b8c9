//! Limits of Python expressions. An expression beyond one ends with an error that
//! names the limit.

use std::time::Duration;

/// Longest expression in characters.
pub const CHARACTERS_MAX: usize = 10_000;
/// Deepest nesting of an expression: brackets, operands and calls.
pub const NESTING_MAX: u32 = 100;
/// Cost of one evaluation without Python: bytes of the values that it makes, and
/// elements that it reads. About a tenth of a second.
pub const COST_MAX: usize = 64 << 20;
/// Longest text that an operation may make.
pub const TEXT_BYTES_MAX: usize = 1 << 20;
/// Time that `python3` gets for one evaluation, its start included.
pub const PYTHON_TIME_MAX: Duration = Duration::from_secs(10);
/// Longest request to `python3`: the expression and its names, as JSON.
pub const PYTHON_REQUEST_BYTES_MAX: usize = 64 << 20;
/// Longest answer of `python3`.
pub const PYTHON_ANSWER_BYTES_MAX: usize = 4 << 20;
