//! Values of parameters, their types, and the Rust types that hold them.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use pteros_interfaces::rcl_interfaces::msg;

/// The type of a parameter, with the numbers of `rcl_interfaces/msg/ParameterType`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash, Default)]
#[repr(u8)]
pub enum ParameterType {
    /// No value, or of any type.
    #[default]
    NotSet = 0,
    /// `true` or `false`.
    Bool = 1,
    /// 64 bits, with sign.
    Integer = 2,
    /// 64 bits, IEEE 754.
    Double = 3,
    /// Text.
    String = 4,
    /// Bytes.
    ByteArray = 5,
    /// Truth values.
    BoolArray = 6,
    /// Integers.
    IntegerArray = 7,
    /// Doubles.
    DoubleArray = 8,
    /// Texts.
    StringArray = 9,
}

impl ParameterType {
    /// The type of that number on the wire; `None` for numbers without a type.
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

    /// Its number on the wire.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// Whether it is a list.
    pub fn is_array(self) -> bool {
        self >= Self::ByteArray
    }
}

impl fmt::Display for ParameterType {
    /// As rclcpp writes it in its reasons: `double`, `integer_array`.
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

/// The value of a parameter.
#[derive(Clone, PartialEq, Debug, Default)]
pub enum ParameterValue {
    /// None. Setting a parameter of dynamic type to it deletes the parameter.
    #[default]
    NotSet,
    /// `true` or `false`.
    Bool(bool),
    /// 64 bits, with sign.
    Integer(i64),
    /// 64 bits, IEEE 754.
    Double(f64),
    /// Text.
    String(String),
    /// Bytes.
    ByteArray(Vec<u8>),
    /// Truth values.
    BoolArray(Vec<bool>),
    /// Integers.
    IntegerArray(Vec<i64>),
    /// Doubles.
    DoubleArray(Vec<f64>),
    /// Texts.
    StringArray(Vec<String>),
}

impl ParameterValue {
    /// Which type it is of.
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

    /// The same value as type `wanted`, where nothing is lost: integers that a
    /// double holds exactly, alone and in lists, lists of integers from 0 to 255 for
    /// bytes, which YAML has no other form for, and an empty list of any type.
    /// Everything else stays what it is.
    #[must_use]
    pub fn fitted(self, wanted: ParameterType) -> Self {
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

    /// Reads a message. Its type's number decides; `None` for one without a type.
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

    /// The message of it; the fields of other types keep their defaults.
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

/// The double that is exactly this integer.
fn exact_double(value: i64) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "looked at below")]
    let double = value as f64;
    // Converted back through i128: 2^63 is a double, but no i64.
    #[expect(clippy::cast_possible_truncation, reason = "a whole number below 2^64")]
    let back = double as i128;
    (back == i128::from(value)).then_some(double)
}

impl fmt::Display for ParameterValue {
    /// As YAML in one line.
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

/// A Rust type that a parameter can be read as. Sealed: ROS 2 has ten types.
///
/// `ParameterValue` itself stands for a parameter of dynamic type.
pub trait ParameterKind: Clone + Send + Sync + Sized + 'static {
    /// The type of the parameter.
    const TYPE: ParameterType;

    /// Where a [`Parameter`](super::Parameter) keeps the value.
    #[doc(hidden)]
    type Cell: ParameterCell<Self>;

    /// The value as a parameter.
    fn into_parameter(self) -> ParameterValue;

    /// The value in a parameter of this type.
    fn from_parameter(value: &ParameterValue) -> Option<Self>;
}

/// Holds the value that a handle reads.
#[doc(hidden)]
pub trait ParameterCell<T>: Send + Sync + 'static {
    fn with(value: T) -> Self;
    fn load(&self) -> T;
    fn store(&self, value: T);
}

/// Scalars: no lock, one relaxed load.
#[doc(hidden)]
pub struct ScalarCell(AtomicU64);

/// Whatever needs memory of its own: a lock for as long as it is copied.
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

/// What a parameter can be declared with: its kind, or something that becomes it.
pub trait IntoParameter {
    /// How the parameter is read then.
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
// No smaller numbers: `1` shall be an i64 and `1.5` an f64 wherever they stand.
becomes!(&[&str] => Vec<String>, |texts: &[&str]| texts.iter().map(|&t| t.to_owned()).collect());

impl<T: IntoParameter> From<T> for ParameterValue
where
    T: NotAValue,
{
    fn from(value: T) -> Self {
        value.into_kind().into_parameter()
    }
}

/// Everything but [`ParameterValue`], which is one already.
#[doc(hidden)]
pub trait NotAValue {}

macro_rules! not_a_value {
    ($($type:ty),*) => { $(impl NotAValue for $type {})* };
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
    fn integers_become_doubles_only_where_nothing_is_lost() {
        let fit = |value: i64| ParameterValue::from(value).fitted(ParameterType::Double);
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
        assert_eq!(list.clone().fitted(ParameterType::DoubleArray), list);
    }

    #[test]
    fn an_empty_list_is_of_whatever_type_is_wanted() {
        let empty = ParameterValue::StringArray(Vec::new());
        let wanted = ParameterType::DoubleArray;
        assert_eq!(
            empty.fitted(wanted),
            ParameterValue::DoubleArray(Vec::new())
        );
    }

    #[test]
    fn every_value_survives_its_message() {
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
