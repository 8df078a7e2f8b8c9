//! Dynamic messages: messages whose type is known at run time only.
//!
//! A [`DynamicType`] is made from a type description of any origin, and a
//! [`DynamicMessage`] is a value of it: decoded from and encoded to CDR, YAML, JSON
//! and CSV, read and changed by path (`points[3].x`). Sequences of numbers stay
//! vectors of numbers. Typed messages convert to dynamic ones and back through
//! their CDR bytes.

mod action;
mod codec;
mod csv;
mod default;
mod describe;
mod error;
#[cfg(feature = "std")]
mod from_yaml;
mod json;
mod key;
mod length;
mod literal;
mod message;
mod number;
mod number_type;
mod path;
mod resolver;
mod service;
mod types;
mod value;
mod yaml;
mod yaml_scalar;

pub use action::DynamicAction;
pub use error::{ValueError, ValueProblem};
pub use message::DynamicMessage;
pub use number::yaml_float;
pub use number_type::Number;
pub use service::{DynamicService, InterfaceTypeError};
pub use types::{DynamicType, ELEMENTS_MAX, Element, MessageField, Shape, TypeError};
pub use value::Value;
pub use yaml::YamlOptions;
pub use yaml_scalar::{is_invisible, is_joiner, yaml_string};

#[cfg(test)]
mod tests;
