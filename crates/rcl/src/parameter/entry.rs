//! One declared parameter: its value, type, descriptor and observer.

use std::sync::Arc;

use super::descriptor::ParameterDescriptor;
use super::error::{ParameterError, SetParameterError};
use super::parameter_store::ParameterObserver;
use super::rules::RuleSet;
use super::value::{ParameterType, ParameterValue};

pub(super) struct ParameterEntry {
    pub(super) value: ParameterValue,
    /// Static type, or the current type under dynamic typing.
    pub(super) type_of: ParameterType,
    pub(super) descriptor: ParameterDescriptor,
    pub(super) observer: Option<Arc<dyn ParameterObserver>>,
    /// Counts declarations; a later one has a greater number.
    pub(super) order: u64,
}

impl ParameterEntry {
    /// An entry without a value.
    pub(super) fn new(type_of: ParameterType, descriptor: ParameterDescriptor) -> Self {
        Self {
            value: ParameterValue::NotSet,
            type_of,
            descriptor,
            observer: None,
            order: 0,
        }
    }

    /// The entry of a parameter that is set without a declaration.
    pub(super) fn undeclared() -> Self {
        let descriptor = ParameterDescriptor::new().dynamic_typing();
        Self::new(ParameterType::NotSet, descriptor)
    }

    pub(super) fn is_set(&self) -> bool {
        self.value != ParameterValue::NotSet
    }

    /// The value; an error if the type is static and there is none.
    pub(super) fn get(&self, node: &str, name: &str) -> Result<ParameterValue, ParameterError> {
        if self.is_set() || self.descriptor.dynamic_typing {
            return Ok(self.value.clone());
        }
        Err(ParameterError::NoValue {
            node: node.into(),
            name: name.into(),
            type_of: self.type_of,
        })
    }

    /// Checks a value against the type and the descriptor.
    pub(super) fn check(
        &self,
        rules: RuleSet,
        name: &str,
        value: &ParameterValue,
    ) -> Result<(), SetParameterError> {
        let (expected, found) = (self.type_of, value.parameter_type());
        if !self.descriptor.dynamic_typing && expected != found {
            return Err(SetParameterError::WrongType {
                name: name.into(),
                expected,
                found,
            });
        }
        let in_range = self.descriptor.check_range(rules, name, value);
        in_range.map_err(|reason| SetParameterError::OutOfRange {
            name: name.into(),
            value: value.clone(),
            reason,
        })
    }

    pub(super) fn set(&mut self, value: ParameterValue) {
        if let Some(observer) = &self.observer {
            observer.handle_value(&value);
        }
        if value != ParameterValue::NotSet || self.descriptor.dynamic_typing {
            self.type_of = value.parameter_type();
        }
        self.value = value;
    }
}
