//! Python expressions: the grammar and the semantics of Python's `eval`.
//!
//! `$(eval …)` of launch files and the filters of `topic echo` and `topic hz` use
//! it. [`Expression`] has the basics: operators, comparisons, `and`, `or`, `not`,
//! `a if b else c`, indices, slices, lists and tuples. The most common functions and
//! methods of numbers and texts belong to them. It runs nothing, and steps, memory and
//! nesting are limited ([`limits`]). Values of a program enter as [`Value`]s, a structure as an
//! [`Object`].
//!
//! An [`Evaluator`] has all of Python: it hands what the basics lack to `python3`, in a
//! process with limits. The basics cover every `$(eval …)` in the launch files of the
//! public corpus, so a robot without Python runs those.

pub mod limits;

mod arithmetic;
mod compare;
mod cost;
mod error;
mod evaluate;
mod evaluator;
mod fault;
mod functions;
mod names;
mod parser;
mod printed;
mod text_methods;
mod token;
mod tree;
mod value;

#[cfg(test)]
mod tests;

pub use error::ExpressionError;
pub use evaluate::Expression;
pub use evaluator::{Evaluator, Python};
pub use names::Names;
pub use value::{Object, Value};
