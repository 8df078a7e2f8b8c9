//! Limits of Python expressions. An expression beyond one ends with an error that
//! names the limit.

/// Longest expression in characters.
pub const CHARACTERS_MAX: usize = 10_000;
/// Deepest nesting of an expression: brackets, operands and calls.
pub const NESTING_MAX: u32 = 100;
/// Deepest nesting during evaluation. Calls of lambdas count.
pub const EVALUATION_DEPTH_MAX: u32 = 150;
/// Deepest nesting of a value: lists in lists, functions in functions.
pub const VALUE_DEPTH_MAX: u32 = 200;
/// Steps of one evaluation: operations, loop iterations, elements that a function
/// reads. About a tenth of a second.
pub const STEPS_MAX: u64 = 1_000_000;
/// Memory of one evaluation: the sum of all values that it makes.
pub const MEMORY_BYTES_MAX: usize = 64 << 20;
/// Longest text that an operation may make.
pub const TEXT_BYTES_MAX: usize = 1 << 20;
