//! Names that the program gives to an expression.

use std::sync::Arc;

use super::functions;
use super::value::Value;

/// Free names of an expression and their values, besides Python's own functions.
#[derive(Clone, Debug, Default)]
pub struct Names {
    pub(super) values: Vec<(Arc<str>, Value)>,
    pub(super) modules: Vec<String>,
}

impl Names {
    /// No names.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a name.
    #[must_use]
    pub fn with(mut self, name: &str, value: Value) -> Self {
        self.values.retain(|(known, _)| **known != *name);
        self.values.push((name.into(), value));
        self
    }

    /// Adds a module. As in ROS 2, the functions of `math` also get names without a
    /// prefix. Every other module needs Python.
    #[must_use]
    pub fn with_module(mut self, module: &str) -> Self {
        self.modules.push(module.into());
        self
    }

    /// The value of a name, or of a constant of `math`.
    pub(super) fn value(&self, name: &str) -> Option<Value> {
        let given = self.values.iter().find(|(known, _)| **known == *name);
        match given {
            Some((_, value)) => Some(value.clone()),
            None if self.has_module("math") => functions::constant(name),
            None => None,
        }
    }

    pub(super) fn has_module(&self, name: &str) -> bool {
        self.modules.iter().any(|module| module == name)
    }

    /// The names of values, and those of `math`.
    pub(super) fn known(&self) -> impl Iterator<Item = &str> {
        let values = self.values.iter().map(|(name, _)| &**name);
        let math = functions::MATH.iter().copied();
        values.chain(math.filter(|_| self.has_module("math")))
    }
}
