//! Substitutions: `$(name argument …)` in texts.
//!
//! [`Template`] is the parsed form, with the grammar of ROS 2's
//! `launch/frontend/grammar.lark`. `evaluate` computes the values. `$(eval …)`
//! evaluates a [Python expression](crate::python).

pub mod template;

pub(crate) mod evaluate;

pub use evaluate::SUBSTITUTIONS;
pub use template::{SubstitutionCall, Template, TemplatePart};
