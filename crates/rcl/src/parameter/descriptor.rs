//! Parameter descriptors: description, type rules and ranges.

use pteros_interfaces::rcl_interfaces::msg;

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
    from: f64,
    to: f64,
    step: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntegerRange {
    from: i64,
    to: i64,
    step: u64,
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

    /// Checks the range. The error text is that of rclcpp.
    pub fn check_range(&self, name: &str, value: &ParameterValue) -> Result<(), String> {
        let fits = match (value, self.integer_range, self.float_range) {
            (ParameterValue::Integer(value), Some(range), _) => (range.has(*value), "integer"),
            (ParameterValue::Double(value), _, Some(range)) => {
                (range.has(*value), "floating point")
            }
            _ => return Ok(()),
        };
        match fits {
            (true, _) => Ok(()),
            (false, kind) => Err(format!(
                "Parameter {{{name}}} doesn't comply with {kind} range."
            )),
        }
    }

    /// As `rcl_interfaces/msg/ParameterDescriptor`.
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

impl IntegerRange {
    fn has(self, value: i64) -> bool {
        if value == self.from || value == self.to {
            return true;
        }
        if value < self.from || value > self.to {
            return false;
        }
        let distance = value.abs_diff(self.from);
        self.step == 0 || distance.is_multiple_of(self.step)
    }
}

impl FloatRange {
    fn has(self, value: f64) -> bool {
        if are_close(value, self.from) || are_close(value, self.to) {
            return true;
        }
        // Written so that NaN is in no range.
        if !(value >= self.from && value <= self.to) {
            return false;
        }
        let steps = ((value - self.from) / self.step).round();
        self.step == 0.0 || are_close(value, self.from + steps * self.step)
    }
}

/// Equality within rounding as in rclcpp: 100 units in the last place. In rclcpp an
/// infinite value is close to everything; here only to itself.
fn are_close(one: f64, other: f64) -> bool {
    if one.is_infinite() || other.is_infinite() {
        return one.total_cmp(&other).is_eq();
    }
    (one - other).abs() <= f64::EPSILON * (one + other).abs() * 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_includes_its_bounds_and_steps() {
        let speed = ParameterDescriptor::new().float_range(0.0, 2.05, 0.1);
        let takes = |value: f64| speed.check_range("speed", &value.into()).is_ok();
        for value in [0.0, 0.3, 0.1 + 0.2, 1.7, 2.05] {
            assert!(takes(value), "{value}");
        }
        for value in [-0.1, 0.35, 2.1, f64::NAN, f64::INFINITY] {
            assert!(!takes(value), "{value}");
        }
        let count = ParameterDescriptor::new().integer_range(-3, 10, 5);
        let takes = |value: i64| count.check_range("count", &value.into()).is_ok();
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
        assert!(all.check_range("all", &(i64::MIN + 3).into()).is_ok());
        assert!(all.check_range("all", &(i64::MAX - 1).into()).is_err());
    }
}
