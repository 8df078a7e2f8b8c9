//! Python expressions: the grammar and the semantics of Python's `eval`, without
//! statements and without side effects.
//!
//! `$(eval …)` of launch files and the filters of `topic echo` and `topic hz` use
//! it. [`Expression::parse`] checks the grammar once. [`Expression::evaluate`] may
//! run any number of times, each time with other values of the free names. Values
//! of a program enter as [`Value`]s. A structure enters as an [`Object`].
//!
//! It never writes a file, starts a program or imports a module of Python. Steps,
//! memory, nesting and the size of numbers are limited ([`limits`]).
//!
//! Differences to Python: integers have 127 bits, sets keep the order of insertion,
//! and a variable that a lambda captures never changes afterwards. Methods that
//! change a value work on values without another name, as in `'a b'.split().pop()`.

pub mod limits;

mod arithmetic;
mod builtin;
mod bytes_methods;
mod call;
mod compare;
mod comprehension;
mod dictionary;
mod dictionary_methods;
mod error;
mod evaluate;
mod fault;
mod format_spec;
mod formatted_text;
mod given_arguments;
mod item;
mod iterate;
mod iterator_functions;
mod list_methods;
mod machine;
mod math_module;
mod names;
mod number_functions;
mod number_text;
mod os_module;
mod parser;
mod percent_format;
mod printed;
mod set_methods;
mod text_format;
mod text_methods;
mod token;
mod tree;
mod value;

#[cfg(test)]
mod tests;

pub use error::ExpressionError;
pub use evaluate::Expression;
pub use names::Names;
pub use value::{Object, Value};
