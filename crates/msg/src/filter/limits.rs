//! Limits of a content filter: a peer may send one.

/// The longest expression, bytes.
pub const EXPRESSION_BYTES_MAX: usize = 4096;

/// Limit of nested parentheses and `NOT`s. A parser without a limit can overflow
/// its stack (CVE-2026-22591).
pub const NESTING_MAX: usize = 32;

/// `%0` to `%99`.
pub const PARAMETERS_MAX: usize = 100;

/// Limit of a parameter and of a string in an expression, bytes; the limit of Fast
/// DDS.
pub const TEXT_BYTES_MAX: usize = 255;

/// Different fields that one expression may name.
pub const FIELDS_MAX: usize = 64;

/// Limit of the cost of all `LIKE`s in one expression per message, in compared
/// characters: some milliseconds. A peer's filter runs in its publisher's thread,
/// where all peers' filters share this budget.
pub const LIKE_STEPS_MAX: usize = 1 << 21;
