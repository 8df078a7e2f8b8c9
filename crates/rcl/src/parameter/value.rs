//! Parameter values, their types, and the Rust types that hold them.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use pteros_interfaces::rcl_interfaces::msg;

/// Type of a parameter, numbered as in `rcl_interfaces/msg/ParameterType`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash, Default)]
#[repr(u8)]
#[allow(missing_docs, reason = "the names without a comment say it all")]
pub enum ParameterType {
    /// No value, or any type.
    #[default]
    NotSet = 0,
    /// `true` or `false`.
    Bool = 1,
    /// 64-bit signed integer.
    Integer = 2,
    /// 64-bit IEEE 754 number.
    Double = 3,
    String = 4,
    ByteArray = 5,
    /// Booleans.
    BoolArray = 6,
    IntegerArray = 7,
    DoubleArray = 8,
    StringArray = 9,
}

impl ParameterType {
    /// Type with the given number on the wire, if there is one.
    pub fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            0 => Self::NotSet,
            1 => Self::Bool,
            2 => Self::Integer,
            3 => Self::Double,
            4 => Self::String,
            5 => Self::ByteArray,
            6 => Self::BoolArray,
            7 => Self::IntegerArray,
            8 => Self::DoubleArray,
            9 => Self::StringArray,
            _ => return None,
        })
    }

    /// Number of the type on the wire.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// Whether it is an array type.
    pub fn is_array(self) -> bool {
        self >= Self::ByteArray
    }
}

impl fmt::Display for ParameterType {
    /// Name as in rclcpp's messages: `double`, `integer_array`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::NotSet => "not set",
            Self::Bool => "bool",
            Self::Integer => "integer",
            Self::Double => "double",
            Self::String => "string",
            Self::ByteArray => "byte_array",
            Self::BoolArray => "bool_array",
            Self::IntegerArray => "integer_array",
            Self::DoubleArray => "double_array",
            Self::StringArray => "string_array",
        })
    }
}

/// A value with its type. The arrays have any length.
#[derive(Clone, PartialEq, Debug, Default)]
#[allow(missing_docs, reason = "the names without a comment say it all")]
pub enum ParameterValue {
    /// No value. Setting a parameter of dynamic type to it deletes the parameter.
    #[default]
    NotSet,
    /// `true` or `false`.
    Bool(bool),
    /// 64-bit signed integer.
    Integer(i64),
    /// 64-bit IEEE 754 number.
    Double(f64),
    String(String),
    ByteArray(Vec<u8>),
    /// Booleans.
    BoolArray(Vec<bool>),
    IntegerArray(Vec<i64>),
    DoubleArray(Vec<f64>),
    StringArray(Vec<String>),
}

impl ParameterValue {
    /// Type of the value.
    pub fn parameter_type(&self) -> ParameterType {
        match self {
            Self::NotSet => ParameterType::NotSet,
            Self::Bool(_) => ParameterType::Bool,
            Self::Integer(_) => ParameterType::Integer,
            Self::Double(_) => ParameterType::Double,
            Self::String(_) => ParameterType::String,
            Self::ByteArray(_) => ParameterType::ByteArray,
            Self::BoolArray(_) => ParameterType::BoolArray,
            Self::IntegerArray(_) => ParameterType::IntegerArray,
            Self::DoubleArray(_) => ParameterType::DoubleArray,
            Self::StringArray(_) => ParameterType::StringArray,
        }
    }

    /// Bytes of the value in memory.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::NotSet => 0,
            Self::Bool(_) => 1,
            Self::Integer(_) | Self::Double(_) => 8,
            Self::String(text) => text.len(),
            Self::ByteArray(values) => values.len(),
            Self::BoolArray(values) => values.len(),
            Self::IntegerArray(values) => size_of_val(values.as_slice()),
            Self::DoubleArray(values) => size_of_val(values.as_slice()),
            // An empty string costs a `String`, too.
            Self::StringArray(values) => {
                let texts: usize = values.iter().map(String::len).sum();
                texts + size_of_val(values.as_slice())
            }
        }
    }

    /// Converts to type `wanted` where nothing is lost, otherwise returns the value
    /// unchanged. It converts integers that a double represents exactly, alone and
    /// in arrays. It converts arrays of integers from 0 to 255 to bytes, for which
    /// YAML has no other form, and an empty array to any array type.
    #[must_use]
    pub fn coerced(self, wanted: ParameterType) -> Self {
        match (self, wanted) {
            (Self::Integer(value), ParameterType::Double) => match exact_double(value) {
                Some(double) => Self::Double(double),
                None => Self::Integer(value),
            },
            (Self::IntegerArray(values), ParameterType::DoubleArray) => {
                let doubles: Option<Vec<f64>> = values.iter().copied().map(exact_double).collect();
                doubles.map_or(Self::IntegerArray(values), Self::DoubleArray)
            }
            (Self::IntegerArray(values), ParameterType::ByteArray) => {
                let bytes: Result<Vec<u8>, _> = values.iter().map(|v| u8::try_from(*v)).collect();
                bytes.map_or(Self::IntegerArray(values), Self::ByteArray)
            }
            (value, _) if value.is_empty_array() => match wanted {
                ParameterType::ByteArray => Self::ByteArray(Vec::new()),
                ParameterType::BoolArray => Self::BoolArray(Vec::new()),
                ParameterType::IntegerArray => Self::IntegerArray(Vec::new()),
                ParameterType::DoubleArray => Self::DoubleArray(Vec::new()),
                ParameterType::StringArray => Self::StringArray(Vec::new()),
                _ => value,
            },
            (value, _) => value,
        }
    }

    fn is_empty_array(&self) -> bool {
        match self {
            Self::ByteArray(values) => values.is_empty(),
            Self::BoolArray(values) => values.is_empty(),
            Self::IntegerArray(values) => values.is_empty(),
            Self::DoubleArray(values) => values.is_empty(),
            Self::StringArray(values) => values.is_empty(),
            _ => false,
        }
    }

    /// Converts from a message, by its type number. `None` for an invalid type.
    pub fn from_message(value: &msg::ParameterValue) -> Option<Self> {
        Some(match ParameterType::from_number(value.r#type)? {
            ParameterType::NotSet => Self::NotSet,
            ParameterType::Bool => Self::Bool(value.bool_value),
            ParameterType::Integer => Self::Integer(value.integer_value),
            ParameterType::Double => Self::Double(value.double_value),
            ParameterType::String => Self::String(value.string_value.clone()),
            ParameterType::ByteArray => Self::ByteArray(value.byte_array_value.clone()),
            ParameterType::BoolArray => Self::BoolArray(value.bool_array_value.clone()),
            ParameterType::IntegerArray => Self::IntegerArray(value.integer_array_value.clone()),
            ParameterType::DoubleArray => Self::DoubleArray(value.double_array_value.clone()),
            ParameterType::StringArray => Self::StringArray(value.string_array_value.clone()),
        })
    }

    /// Converts into a message; fields of other types keep their defaults.
    pub fn into_message(self) -> msg::ParameterValue {
        let mut message = msg::ParameterValue {
            r#type: self.parameter_type().number(),
            ..Default::default()
        };
        match self {
            Self::NotSet => {}
            Self::Bool(value) => message.bool_value = value,
            Self::Integer(value) => message.integer_value = value,
            Self::Double(value) => message.double_value = value,
            Self::String(value) => message.string_value = value,
            Self::ByteArray(values) => message.byte_array_value = values,
            Self::BoolArray(values) => message.bool_array_value = values,
            Self::IntegerArray(values) => message.integer_array_value = values,
            Self::DoubleArray(values) => message.double_array_value = values,
            Self::StringArray(values) => message.string_array_value = values,
        }
        message
    }
}

/// The double that equals this integer exactly, if there is one.
fn exact_double(value: i64) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "checked below")]
    let double = value as f64;
    // Converted back through i128: 2^63 is a double, but not an i64.
    #[expect(clippy::cast_possible_truncation, reason = "a whole number below 2^64")]
    let back = double as i128;
    (back == i128::from(value)).then_some(double)
}

impl fmt::Display for ParameterValue {
    /// One line of YAML.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn list<T: fmt::Debug>(f: &mut fmt::Formatter<'_>, values: &[T]) -> fmt::Result {
            f.debug_list().entries(values).finish()
        }
        match self {
            Self::NotSet => f.pad("not set"),
            Self::Bool(value) => value.fmt(f),
            Self::Integer(value) => value.fmt(f),
            Self::Double(value) => fmt::Debug::fmt(value, f),
            Self::String(value) => fmt::Debug::fmt(value, f),
            Self::ByteArray(values) => list(f, values),
            Self::BoolArray(values) => list(f, values),
            Self::IntegerArray(values) => list(f, values),
            Self::DoubleArray(values) => list(f, values),
            Self::StringArray(values) => list(f, values),
        }
    }
}

/// Rust type that a parameter can be read as. Sealed: ROS 2 has ten types.
///
/// `ParameterValue` itself stands for a parameter of dynamic type.
#[diagnostic::on_unimplemented(
    message = "a parameter cannot be read as `{Self}`",
    label = "not one of ROS 2's parameter types",
    note = "use `bool`, `i64`, `f64`, `String`, a `Vec` of one of these or of `u8`, or `pteros::parameter::ParameterValue`"
)]
pub trait ParameterKind: Clone + Send + Sync + Sized + 'static {
    /// The type of the parameter.
    const TYPE: ParameterType;

    /// Storage of the value in a handle.
    #[doc(hidden)]
    type Cell: ParameterCell<Self>;

    /// Converts to a parameter value.
    fn into_parameter(self) -> ParameterValue;

    /// Converts from a parameter value, if it has this type.
    fn from_parameter(value: &ParameterValue) -> Option<Self>;
}

/// Storage of the value that a handle reads.
#[doc(hidden)]
pub trait ParameterCell<T>: Send + Sync + 'static {
    fn with(value: T) -> Self;
    fn load(&self) -> T;
    fn store(&self, value: T);
}

/// Storage of scalars: lock-free, one atomic load.
#[doc(hidden)]
pub struct ScalarCell(AtomicU64);

/// Storage of strings and arrays: a lock held while the value is copied.
#[doc(hidden)]
pub struct LockedCell<T>(Mutex<T>);

impl<T: Clone + Send + Sync + 'static> ParameterCell<T> for LockedCell<T> {
    fn with(value: T) -> Self {
        Self(Mutex::new(value))
    }

    fn load(&self) -> T {
        self.0.lock().clone()
    }

    fn store(&self, value: T) {
        *self.0.lock() = value;
    }
}

macro_rules! scalar {
    ($type:ty, $variant:ident, $to_bits:expr, $from_bits:expr) => {
        impl ParameterCell<$type> for ScalarCell {
            fn with(value: $type) -> Self {
                Self(AtomicU64::new($to_bits(value)))
            }

            fn load(&self) -> $type {
                $from_bits(self.0.load(Ordering::Acquire))
            }

            fn store(&self, value: $type) {
                self.0.store($to_bits(value), Ordering::Release);
            }
        }

        impl ParameterKind for $type {
            const TYPE: ParameterType = ParameterType::$variant;
            type Cell = ScalarCell;

            fn into_parameter(self) -> ParameterValue {
                ParameterValue::$variant(self)
            }

            fn from_parameter(value: &ParameterValue) -> Option<Self> {
                match value {
                    ParameterValue::$variant(value) => Some(*value),
                    _ => None,
                }
            }
        }
    };
}

scalar!(bool, Bool, u64::from, |bits| bits != 0);
scalar!(i64, Integer, i64::cast_unsigned, u64::cast_signed);
scalar!(f64, Double, f64::to_bits, f64::from_bits);

macro_rules! owned {
    ($type:ty, $variant:ident) => {
        impl ParameterKind for $type {
            const TYPE: ParameterType = ParameterType::$variant;
            type Cell = LockedCell<Self>;

            fn into_parameter(self) -> ParameterValue {
                ParameterValue::$variant(self)
            }

            fn from_parameter(value: &ParameterValue) -> Option<Self> {
                match value {
                    ParameterValue::$variant(value) => Some(value.clone()),
                    _ => None,
                }
            }
        }
    };
}

owned!(String, String);
owned!(Vec<u8>, ByteArray);
owned!(Vec<bool>, BoolArray);
owned!(Vec<i64>, IntegerArray);
owned!(Vec<f64>, DoubleArray);
owned!(Vec<String>, StringArray);

impl ParameterKind for ParameterValue {
    const TYPE: ParameterType = ParameterType::NotSet;
    type Cell = LockedCell<Self>;

    fn into_parameter(self) -> ParameterValue {
        self
    }

    fn from_parameter(value: &ParameterValue) -> Option<Self> {
        Some(value.clone())
    }
}

/// Default values accepted by a declaration: a parameter kind, or a type that
/// converts to one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a parameter value",
    label = "not one of ROS 2's parameter types",
    note = "use `bool`, `i64`, `f64`, text, a `Vec` of one of these or of `u8`, or `pteros::parameter::ParameterValue`; convert other numbers, as `i64::from(x)`"
)]
pub trait IntoParameter {
    /// Type as which the parameter is read.
    type Kind: ParameterKind;

    /// The value.
    fn into_kind(self) -> Self::Kind;
}

impl<K: ParameterKind> IntoParameter for K {
    type Kind = K;

    fn into_kind(self) -> K {
        self
    }
}

macro_rules! becomes {
    ($type:ty => $kind:ty, $convert:expr) => {
        impl IntoParameter for $type {
            type Kind = $kind;

            fn into_kind(self) -> $kind {
                $convert(self)
            }
        }
    };
}

becomes!(&str => String, str::to_owned);
// No smaller number types: literals such as `1` and `1.5` must infer i64 and f64.
becomes!(&[&str] => Vec<String>, |texts: &[&str]| texts.iter().map(|&t| t.to_owned()).collect());

impl<T: IntoParameter> From<T> for ParameterValue
where
    T: NotParameterValue,
{
    fn from(value: T) -> Self {
        value.into_kind().into_parameter()
    }
}

/// All default types except [`ParameterValue`] itself.
#[doc(hidden)]
pub trait NotParameterValue {}

macro_rules! not_a_value {
    ($($type:ty),*) => { $(impl NotParameterValue for $type {})* };
}

not_a_value!(
    bool,
    i64,
    f64,
    String,
    Vec<u8>,
    Vec<bool>,
    Vec<i64>,
    Vec<f64>,
    Vec<String>,
    &str,
    i32,
    u32,
    f32,
    &[&str]
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_become_doubles_only_without_loss() {
        let fit = |value: i64| ParameterValue::from(value).coerced(ParameterType::Double);
        assert_eq!(fit(3), ParameterValue::Double(3.0));
        let exact = 1_i64 << 53;
        assert_eq!(fit(exact), ParameterValue::Double(9_007_199_254_740_992.0));
        assert_eq!(fit(exact + 1), ParameterValue::Integer(exact + 1));
        assert_eq!(fit(i64::MAX), ParameterValue::Integer(i64::MAX));
        assert_eq!(
            fit(i64::MIN),
            ParameterValue::Double(-9_223_372_036_854_775_808.0)
        );
        let list = ParameterValue::IntegerArray(vec![1, exact + 1]);
        assert_eq!(list.clone().coerced(ParameterType::DoubleArray), list);
    }

    #[test]
    fn an_empty_array_takes_any_array_type() {
        let empty = ParameterValue::StringArray(Vec::new());
        let wanted = ParameterType::DoubleArray;
        assert_eq!(
            empty.coerced(wanted),
            ParameterValue::DoubleArray(Vec::new())
        );
    }

    #[test]
    fn every_value_converts_to_its_message_and_back() {
        let values = [
            ParameterValue::NotSet,
            true.into(),
            (-7).into(),
            0.5.into(),
            "text".into(),
            vec![1_u8, 2].into(),
            vec![true, false].into(),
            vec![1_i64, -2].into(),
            vec![0.5, f64::INFINITY].into(),
            ["a", "b"].as_slice().into(),
        ];
        for value in values {
            let message = value.clone().into_message();
            assert_eq!(ParameterValue::from_message(&message), Some(value));
        }
        let unknown = msg::ParameterValue {
            r#type: 10,
            ..Default::default()
        };
        assert_eq!(ParameterValue::from_message(&unknown), None);
    }
}
