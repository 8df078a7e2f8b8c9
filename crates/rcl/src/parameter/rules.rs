//! Rule sets: where the parameters of rclcpp and rclpy behave differently.
//!
//! The store takes one of them at creation. Each method is one rule and names its source:
//! `node_parameters.cpp` of rclcpp 28.1, `node.py` of rclpy 7.1 (Jazzy).

use super::descriptor::{FloatRange, IntegerRange};
use super::error::SetParameterError;
use super::parameter_text::ParameterText;
use super::value::{ParameterType, ParameterValue};

/// The client library whose rules a parameter store follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RuleSet {
    /// rclcpp. Beyond it, values are converted where nothing is lost
    /// ([`ParameterValue::coerced`]), and undeclaring publishes a parameter event.
    #[default]
    Rclcpp,
    /// rclpy. Beyond it, the text of an override is read as the declared type where one of
    /// both types is a string.
    Rclpy,
}

impl RuleSet {
    /// Whether a callback, or meanwhile another thread, may change parameters.
    /// rclcpp refuses it with `ParameterMutationRecursionGuard`, and other threads wait.
    /// rclpy has neither guard nor lock.
    pub(super) fn allows_nested_changes(self) -> bool {
        self == Self::Rclpy
    }

    /// Whether each pre-set callback gets the list of the caller, and the results are
    /// joined. In rclcpp each one changes the list that the one before left.
    /// rclpy: `_call_pre_set_parameters_callback`.
    pub(super) fn joins_pre_set_results(self) -> bool {
        self == Self::Rclpy
    }

    /// Whether an empty list is an error although no pre-set callback ran.
    /// rclpy sets nothing, and publishes an empty event.
    pub(super) fn refuses_empty_lists(self) -> bool {
        self == Self::Rclcpp
    }

    /// Whether the event is published before the post-set callbacks run.
    /// rclcpp: `__set_parameters_atomically_common` calls them, the caller publishes.
    pub(super) fn publishes_before_post_set(self) -> bool {
        self == Self::Rclpy
    }

    /// Whether a parameter of static type can be undeclared.
    /// rclcpp: `undeclare_parameter` throws `InvalidParameterTypeException`.
    pub(super) fn undeclares_static_types(self) -> bool {
        self == Self::Rclpy
    }

    /// Whether undeclaring publishes an event. Neither rclcpp nor rclpy does it; Rust nodes
    /// do (`docs/tutorials/parameters.md`).
    pub(super) fn publishes_undeclared(self) -> bool {
        self == Self::Rclcpp
    }

    /// Whether a declaration without a value calls callbacks and publishes the parameter.
    /// rclcpp: `__declare_parameter_common` returns before them.
    pub(super) fn reports_missing_values(self) -> bool {
        self == Self::Rclpy
    }

    /// Whether a parameter that gets its first value is new in the event. In rclcpp it is
    /// changed, since it was declared.
    pub(super) fn first_values_are_new(self) -> bool {
        self == Self::Rclpy
    }

    /// Whether a parameter that is set to nothing is deleted although it is not declared
    /// or has no value. rclcpp declares it without a value.
    pub(super) fn deletes_without_value(self) -> bool {
        self == Self::Rclpy
    }

    /// Whether parameters that are declared from overrides have the type of their value
    /// for good. rclcpp: `perform_automatically_declare_parameters_from_overrides` sets
    /// `dynamic_typing`.
    pub(super) fn declares_overrides_statically(self) -> bool {
        self == Self::Rclpy
    }

    /// Whether lists have the order of declaration: a `dict` in rclpy, a `std::map` in
    /// rclcpp.
    pub(super) fn lists_in_order_of_declaration(self) -> bool {
        self == Self::Rclpy
    }

    /// Whether the description of an undeclared parameter, where those are allowed, has
    /// its name.
    pub(super) fn describes_undeclared_by_name(self) -> bool {
        self == Self::Rclcpp
    }

    /// The value as a parameter of a static type takes it.
    pub(super) fn converted(
        self,
        value: ParameterValue,
        declared: ParameterType,
    ) -> ParameterValue {
        match self {
            Self::Rclcpp => value.coerced(declared),
            Self::Rclpy => value,
        }
    }

    /// The value of an override as a parameter of a static type takes it. Between numbers
    /// rclpy converts nothing, not even 1 to 1.0.
    pub(super) fn override_value(
        self,
        text: &ParameterText,
        declared: ParameterType,
    ) -> ParameterValue {
        let is_text = |of| matches!(of, ParameterType::String | ParameterType::StringArray);
        let found = text.value().parameter_type();
        match self {
            Self::Rclpy if declared == found || !(is_text(declared) || is_text(found)) => {
                text.value().clone()
            }
            _ => text.value_as(declared),
        }
    }

    /// Checks an integer range.
    ///
    /// # Errors
    /// The reason, in the words of the client library.
    pub(super) fn check_integer(
        self,
        name: &str,
        range: IntegerRange,
        value: i64,
    ) -> Result<(), String> {
        let IntegerRange { from, to, step } = range;
        if value == from || value == to {
            return Ok(());
        }
        let (low, high) = match self {
            Self::Rclcpp => (from, to),
            // rclpy: `_apply_integer_range` sorts the bounds.
            Self::Rclpy => (from.min(to), from.max(to)),
        };
        let is_inside = low < value && value < high;
        if is_inside && (step == 0 || value.abs_diff(low).is_multiple_of(step)) {
            return Ok(());
        }
        Err(match self {
            Self::Rclcpp => format!("Parameter {{{name}}} doesn't comply with integer range."),
            Self::Rclpy if is_inside => format!(
                "The parameter value for {name} is not a valid step. Min: {low}, max: {high}, value: {value}, step: {step}"
            ),
            Self::Rclpy => {
                format!("Parameter {name} out of range. Min: {low}, Max: {high}, value: {value}")
            }
        })
    }

    /// Checks a range of doubles; NaN is in none.
    ///
    /// # Errors
    /// The reason, in the words of the client library.
    pub(super) fn check_double(
        self,
        name: &str,
        range: FloatRange,
        value: f64,
    ) -> Result<(), String> {
        let FloatRange { from, to, step } = range;
        let (low, high) = match self {
            Self::Rclcpp => (from, to),
            // rclpy: `_apply_floating_point_range` sorts the bounds.
            Self::Rclpy => (from.min(to), from.max(to)),
        };
        if self.are_close(value, low) || self.are_close(value, high) {
            return Ok(());
        }
        let is_inside = low < value && value < high;
        // Halves go away from zero in C, to the even number in Python.
        let steps = match self {
            Self::Rclcpp => ((value - low) / step).round(),
            Self::Rclpy => ((value - low) / step).round_ties_even(),
        };
        if is_inside && (step == 0.0 || self.are_close(value, low + steps * step)) {
            return Ok(());
        }
        let [low, high, value, step] = [low, high, value, step].map(python_text);
        Err(match self {
            Self::Rclcpp => {
                format!("Parameter {{{name}}} doesn't comply with floating point range.")
            }
            Self::Rclpy if is_inside => format!(
                "The parameter value for {name} is not close enough to a valid step. Min: {low}, max: {high}, value: {value}, step: {step}"
            ),
            Self::Rclpy => {
                format!("Parameter {name} out of range Min: {low}, Max: {high}, value: {value}")
            }
        })
    }

    /// Equality within rounding. rclcpp: 100 units in the last place
    /// (`__are_doubles_equal`); an infinite value is close to everything there, here only to
    /// itself. rclpy: `math.isclose` with the relative tolerance 1e-6 (`PARAM_REL_TOL`).
    fn are_close(self, one: f64, other: f64) -> bool {
        if one.is_infinite() || other.is_infinite() {
            return one.total_cmp(&other).is_eq();
        }
        let distance = (one - other).abs();
        match self {
            Self::Rclcpp => distance <= f64::EPSILON * (one + other).abs() * 100.0,
            Self::Rclpy => distance <= 1e-6 * one.abs().max(other.abs()),
        }
    }

    /// The reason that the caller and other nodes get.
    pub fn reason(self, error: &SetParameterError) -> String {
        use SetParameterError as Error;
        match (self, error) {
            // rclpy: the text of `ParameterNotDeclaredException`.
            (Self::Rclpy, Error::NotDeclared { names }) => {
                let names: Vec<_> = names.iter().map(|name| format!("'{name}'")).collect();
                let names = names.join(", ");
                format!("Invalid access to undeclared parameter(s): [{names}]")
            }
            (Self::Rclpy, Error::ReadOnly { name }) => {
                format!("Trying to set a read-only parameter: {name}.")
            }
            (Self::Rclpy, Error::StaticType { .. }) => {
                "Static parameter cannot be undeclared".into()
            }
            (
                Self::Rclpy,
                Error::WrongType {
                    expected, found, ..
                },
            ) => format!(
                "Wrong parameter type, expected 'Type.{}' got 'Type.{}'",
                self.type_name(*expected),
                self.type_name(*found)
            ),
            _ => error.to_string(),
        }
    }

    /// The name of a type: `double_array` in rclcpp, a member of `Parameter.Type` in rclpy.
    pub fn type_name(self, of: ParameterType) -> String {
        match self {
            Self::Rclcpp => of.to_string(),
            Self::Rclpy => of.to_string().to_uppercase().replace(' ', "_"),
        }
    }
}

/// A double as Python writes it.
fn python_text(value: f64) -> String {
    let text = format!("{value:?}");
    match text.split_once('e') {
        None => text.replace("NaN", "nan"),
        Some((digits, exponent)) => match exponent.strip_prefix('-') {
            Some(exponent) => format!("{digits}e-{exponent:0>2}"),
            None => format!("{digits}e+{exponent:0>2}"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_are_written_as_in_python() {
        for (value, text) in [
            (0.5, "0.5"),
            (-2.0, "-2.0"),
            (1e-7, "1e-07"),
            (1.5e300, "1.5e+300"),
            (1e16, "1e+16"),
            (123_456_789.0, "123456789.0"),
            (f64::NAN, "nan"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(python_text(value), text);
        }
    }
}
