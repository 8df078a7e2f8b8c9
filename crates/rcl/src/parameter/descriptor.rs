//! Parameter descriptors: description, type rules and ranges.

use pteros_interfaces::rcl_interfaces::msg;

use super::rules::RuleSet;
use super::value::{ParameterType, ParameterValue};

/// Descriptor of a parameter, given when it is declared. The default has the static
/// type of the default value, no range and no description.
///
/// ```
/// use pteros::parameter::ParameterDescriptor;
///
/// let speed = ParameterDescriptor::new()
///     .description("how fast to drive, m/s")
///     .float_range(0.0, 2.0, 0.1);
/// let frame = ParameterDescriptor::new().read_only();
/// # let _ = (speed, frame);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParameterDescriptor {
    pub(super) description: String,
    pub(super) additional_constraints: String,
    pub(super) read_only: bool,
    /// Whether a change may change the type.
    pub dynamic_typing: bool,
    pub(super) float_range: Option<FloatRange>,
    pub(super) integer_range: Option<IntegerRange>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FloatRange {
    pub(super) from: f64,
    pub(super) to: f64,
    pub(super) step: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntegerRange {
    pub(super) from: i64,
    pub(super) to: i64,
    pub(super) step: u64,
}

impl ParameterDescriptor {
    /// Creates a descriptor without restrictions.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the description for users, including the unit.
    #[must_use]
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.description = text.into();
        self
    }

    /// Describes further constraints for users. A callback has to check them
    /// (`Node::add_on_set_parameters_callback`).
    #[must_use]
    pub fn additional_constraints(mut self, text: impl Into<String>) -> Self {
        self.additional_constraints = text.into();
        self
    }

    /// Makes it read-only: it keeps the value from its declaration, including
    /// overrides.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }

    /// Allows values of other types, and deletion.
    #[must_use]
    pub fn dynamic_typing(mut self) -> Self {
        self.dynamic_typing = true;
        self
    }

    /// Sets an inclusive integer range. Between the bounds, values must be a
    /// multiple of `step` above `from`; 0 allows all.
    #[must_use]
    pub fn integer_range(mut self, from: i64, to: i64, step: u64) -> Self {
        self.integer_range = Some(IntegerRange { from, to, step });
        self
    }

    /// Sets an inclusive range of doubles. Between the bounds, values must be a
    /// multiple of `step` above `from`, within rounding; 0.0 allows all.
    #[must_use]
    pub fn float_range(mut self, from: f64, to: f64, step: f64) -> Self {
        self.float_range = Some(FloatRange { from, to, step });
        self
    }

    /// Checks the range.
    ///
    /// # Errors
    /// The reason, in the words of the client library.
    #[doc(hidden)]
    pub fn check_range(
        &self,
        rules: RuleSet,
        name: &str,
        value: &ParameterValue,
    ) -> Result<(), String> {
        match (value, self.integer_range, self.float_range) {
            (ParameterValue::Integer(value), Some(range), _) => {
                rules.check_integer(name, range, *value)
            }
            (ParameterValue::Double(value), _, Some(range)) => {
                rules.check_double(name, range, *value)
            }
            _ => Ok(()),
        }
    }

    /// From a message, whose name and type count nothing.
    pub fn from_message(message: &msg::ParameterDescriptor) -> Self {
        let floats = message.floating_point_range.first();
        let integers = message.integer_range.first();
        Self {
            description: message.description.clone(),
            additional_constraints: message.additional_constraints.clone(),
            read_only: message.read_only,
            dynamic_typing: message.dynamic_typing,
            float_range: floats.map(|range| FloatRange {
                from: range.from_value,
                to: range.to_value,
                step: range.step,
            }),
            integer_range: integers.map(|range| IntegerRange {
                from: range.from_value,
                to: range.to_value,
                step: range.step,
            }),
        }
    }

    /// As `rcl_interfaces/msg/ParameterDescriptor`.
    #[doc(hidden)]
    pub fn message(&self, name: &str, type_of: ParameterType) -> msg::ParameterDescriptor {
        let floats = self.float_range.map(|range| msg::FloatingPointRange {
            from_value: range.from,
            to_value: range.to,
            step: range.step,
        });
        let integers = self.integer_range.map(|range| msg::IntegerRange {
            from_value: range.from,
            to_value: range.to,
            step: range.step,
        });
        msg::ParameterDescriptor {
            name: name.into(),
            r#type: type_of.number(),
            description: self.description.clone(),
            additional_constraints: self.additional_constraints.clone(),
            read_only: self.read_only,
            dynamic_typing: self.dynamic_typing,
            floating_point_range: floats.into_iter().collect(),
            integer_range: integers.into_iter().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_includes_its_bounds_and_steps() {
        let speed = ParameterDescriptor::new().float_range(0.0, 2.05, 0.1);
        let takes = |value: f64| {
            speed
                .check_range(RuleSet::Rclcpp, "speed", &value.into())
                .is_ok()
        };
        for value in [0.0, 0.3, 0.1 + 0.2, 1.7, 2.05] {
            assert!(takes(value), "{value}");
        }
        for value in [-0.1, 0.35, 2.1, f64::NAN, f64::INFINITY] {
            assert!(!takes(value), "{value}");
        }
        let count = ParameterDescriptor::new().integer_range(-3, 10, 5);
        let takes = |value: i64| {
            count
                .check_range(RuleSet::Rclcpp, "count", &value.into())
                .is_ok()
        };
        for value in [-3, 2, 7, 10] {
            assert!(takes(value), "{value}");
        }
        for value in [-4, 0, 8, 11, i64::MIN, i64::MAX] {
            assert!(!takes(value), "{value}");
        }
    }

    #[test]
    fn the_widest_range_does_not_overflow() {
        let all = ParameterDescriptor::new().integer_range(i64::MIN, i64::MAX, 3);
        assert!(
            all.check_range(RuleSet::Rclcpp, "all", &(i64::MIN + 3).into())
                .is_ok()
        );
        assert!(
            all.check_range(RuleSet::Rclcpp, "all", &(i64::MAX - 1).into())
                .is_err()
        );
    }
}
