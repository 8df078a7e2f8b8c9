//! `$(name argument …)` in texts.
//!
//! [`Template`] is a text taken apart (the grammar of ROS 2's
//! `launch/frontend/grammar.lark`); `evaluate` is what each substitution gives.
//! `$(eval …)` is Python in ROS 2; here it is the part of it that launch files use,
//! [`expression`].

pub mod expression;
pub mod template;

pub(crate) mod evaluate;

pub use evaluate::SUBSTITUTIONS;
pub use template::{Call, Part, Template};
