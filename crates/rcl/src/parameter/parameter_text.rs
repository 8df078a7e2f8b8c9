//! Parameter values as text, whose type the declaration decides.

use pteros_msg::dynamic::{yaml_float, yaml_string};
use pteros_msg::yaml::{YamlContent, YamlNode};

use super::value::{ParameterType, ParameterValue};
use super::yaml::{self, TypingRule, YamlValueError};

/// A parameter value as text, which the declared type decides.
///
/// ```
/// use pteros::parameter::{ParameterText, ParameterType, ParameterValue, TypingRule};
///
/// let text = ParameterText::read("0483", TypingRule::Rcl)?;
/// assert_eq!(text.value(), &ParameterValue::Double(483.0));
/// assert_eq!(text.value_as(ParameterType::String), "0483".into());
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ParameterText {
    value: ParameterValue,
    written: Option<Box<Written>>,
    /// Whether a declared type changes nothing.
    is_exact: bool,
}

/// The text, where the value does not hold it.
#[derive(Clone, Debug, Default, PartialEq)]
struct Written {
    /// The value for a declared string.
    whole: Option<String>,
    /// The value for a declared array of strings.
    items: Option<Vec<String>>,
}

impl ParameterText {
    /// Reads one line of YAML.
    ///
    /// # Errors
    /// The text is not YAML, or YAML that is no parameter value: the problem, and
    /// what to write instead.
    pub fn read(text: &str, rule: TypingRule) -> Result<Self, String> {
        let node =
            YamlNode::read(text).map_err(|error| format!("{text:?} is not valid YAML: {error}"))?;
        Self::of_node(&node, rule).map_err(|error| format!("{}; {}", error.problem, error.hint))
    }

    /// Reads a text as `ros2 param set` and the launch files of ROS 2 do: by
    /// [`TypingRule::Yaml11`]. A text that YAML makes no parameter value of is a
    /// string.
    pub fn lenient(text: &str) -> Self {
        let as_string = || ParameterValue::String(text.into());
        let Ok(node) = YamlNode::read(text) else {
            return as_string().into();
        };
        if matches!(node.content, YamlContent::Scalar { .. }) {
            let read = Self::of_node(&node, TypingRule::Yaml11);
            return read.unwrap_or_else(|_| as_string().into());
        }
        let value = yaml::value(&node, TypingRule::Yaml11);
        let written = Written {
            whole: Some(text.into()),
            items: items(&node),
        };
        Self {
            value: value.unwrap_or_else(|_| as_string()),
            written: Some(Box::new(written)),
            is_exact: false,
        }
    }

    /// A value that keeps its type, whatever type is declared.
    pub fn exact(value: ParameterValue) -> Self {
        Self {
            value,
            written: None,
            is_exact: true,
        }
    }

    /// Value of a YAML node.
    pub(super) fn of_node(node: &YamlNode, rule: TypingRule) -> Result<Self, YamlValueError> {
        let value = yaml::value(node, rule)?;
        let written = match (&value, &node.content) {
            (ParameterValue::String(_) | ParameterValue::StringArray(_), _) => None,
            (_, YamlContent::Scalar { text, .. }) => Some(Written {
                whole: Some(text.clone()),
                items: None,
            }),
            _ => Some(Written {
                whole: None,
                items: items(node),
            }),
        };
        Ok(Self {
            value,
            written: written.map(Box::new),
            is_exact: false,
        })
    }

    /// Value of a node, of which a list of several types is one of texts.
    pub(super) fn of_mixed(node: &YamlNode, rule: TypingRule) -> Result<Self, YamlValueError> {
        Self::of_node(node, rule).or_else(|error| {
            let texts = items(node).map(ParameterValue::StringArray);
            texts.map(Self::from).ok_or(error)
        })
    }

    /// The value without a declared type.
    pub fn value(&self) -> &ParameterValue {
        &self.value
    }

    /// The value as a parameter of the declared type takes it. A string takes the
    /// text as written. A number or boolean takes a text that is one by either rule.
    /// A value that is not of the declared type keeps its own.
    pub fn value_as(&self, declared: ParameterType) -> ParameterValue {
        if self.is_exact {
            return self.value.clone();
        }
        let written = self.written.as_deref();
        let read = match (declared, &self.value) {
            (ParameterType::String, _) => {
                let whole = written.and_then(|written| written.whole.clone());
                whole.map(ParameterValue::String)
            }
            (ParameterType::StringArray, _) => {
                let items = written.and_then(|written| written.items.clone());
                items.map(ParameterValue::StringArray)
            }
            (_, ParameterValue::StringArray(texts)) => list_as(texts, declared),
            (_, ParameterValue::String(text)) => match written.and_then(|it| it.items.as_ref()) {
                Some(items) => list_as(items, declared),
                None => scalar_as(text, declared),
            },
            _ => None,
        };
        let value = read.unwrap_or_else(|| self.value.clone());
        value.coerced(declared)
    }
}

impl From<ParameterValue> for ParameterText {
    /// A value without a text.
    fn from(value: ParameterValue) -> Self {
        Self {
            value,
            written: None,
            is_exact: false,
        }
    }
}

impl ParameterValue {
    /// Parses a value as `-p` does: one line of YAML, typed as by rcl.
    ///
    /// ```
    /// use pteros::parameter::ParameterValue;
    ///
    /// assert_eq!(ParameterValue::from_yaml("yes"), Ok(ParameterValue::Bool(true)));
    /// assert_eq!(ParameterValue::from_yaml("0777"), Ok(ParameterValue::Integer(511)));
    /// assert_eq!(ParameterValue::from_yaml("[1.5, 2.0]"), Ok(vec![1.5, 2.0].into()));
    /// assert_eq!(ParameterValue::from_yaml("'5'"), Ok("5".into()));
    /// assert!(ParameterValue::from_yaml("[1, two]").is_err());
    /// ```
    ///
    /// # Errors
    /// The problem, and what to write instead.
    pub fn from_yaml(text: &str) -> Result<Self, String> {
        Ok(ParameterText::read(text, TypingRule::Rcl)?.value)
    }

    /// The value as YAML for `-p` and parameter files, on one line. Readers of YAML 1.1
    /// and 1.2, and rcl, read the same value and type. `null` for a value that is not set.
    /// Allocates.
    ///
    /// ```
    /// use pteros::parameter::ParameterValue;
    ///
    /// assert_eq!(ParameterValue::from("0483").to_yaml(), "'0483'");
    /// assert_eq!(ParameterValue::from(vec![1.0, 2.5]).to_yaml(), "[1.0, 2.5]");
    /// ```
    pub fn to_yaml(&self) -> String {
        fn list<T>(values: &[T], text: impl Fn(&T) -> String) -> String {
            let values: Vec<String> = values.iter().map(text).collect();
            format!("[{}]", values.join(", "))
        }
        match self {
            Self::NotSet => "null".into(),
            Self::Bool(value) => value.to_string(),
            Self::Integer(value) => value.to_string(),
            Self::Double(value) => yaml_float(*value),
            Self::String(value) => yaml_string(value),
            Self::ByteArray(values) => list(values, u8::to_string),
            Self::BoolArray(values) => list(values, bool::to_string),
            Self::IntegerArray(values) => list(values, i64::to_string),
            Self::DoubleArray(values) => list(values, |value| yaml_float(*value)),
            Self::StringArray(values) => list(values, |value| yaml_string(value)),
        }
    }
}

/// The texts of a list of scalars.
fn items(node: &YamlNode) -> Option<Vec<String>> {
    let YamlContent::List(items) = &node.content else {
        return None;
    };
    let texts = items.iter().map(|item| match &item.content {
        YamlContent::Scalar { text, .. } => Some(text.clone()),
        _ => None,
    });
    texts.collect()
}

/// A text as a number or boolean, by either rule.
fn scalar_as(text: &str, declared: ParameterType) -> Option<ParameterValue> {
    let rules = [TypingRule::Rcl, TypingRule::Yaml11].into_iter();
    let mut read = rules.map(|rule| yaml::plain(text, rule).coerced(declared));
    read.find(|value| value.parameter_type() == declared)
}

fn list_as(texts: &[String], declared: ParameterType) -> Option<ParameterValue> {
    let one = match declared {
        ParameterType::BoolArray => ParameterType::Bool,
        ParameterType::IntegerArray => ParameterType::Integer,
        ParameterType::DoubleArray => ParameterType::Double,
        _ => return None,
    };
    let values = texts.iter().map(|text| scalar_as(text, one));
    Some(yaml::array(values.collect::<Option<Vec<_>>>()?, one))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ParameterType::{Bool, Double, Integer, NotSet, String as Text, StringArray};

    /// The table of the typing rule: a text, its value by rcl (files, `-p`), by YAML
    /// 1.1 (launch files, `param set`), and what declared types make of it. The two
    /// middle columns are those of ROS 2 Jazzy.
    #[test]
    fn the_declared_type_wins_in_every_rule() {
        let text = |text: &str| ParameterValue::from(text);
        let (int, float) = (ParameterValue::Integer, ParameterValue::Double);
        for (written, rcl, yaml11) in [
            ("0483", float(483.0), text("0483")),
            ("123E5", float(123e5), text("123E5")),
            ("y", true.into(), text("y")),
            ("N", false.into(), text("N")),
            ("inf", float(f64::INFINITY), text("inf")),
            ("1e-3", float(1e-3), text("1e-3")),
            ("08", float(8.0), text("08")),
            ("010", int(8), int(8)),
            ("0x1F", int(31), int(31)),
            ("0b101", text("0b101"), int(5)),
            ("1_000", text("1_000"), int(1000)),
            ("1:30", text("1:30"), int(90)),
            ("off", false.into(), false.into()),
            ("tRuE", text("tRuE"), text("tRuE")),
            (".5", float(0.5), float(0.5)),
            ("1.5e+3", float(1500.0), float(1500.0)),
            ("2001-01-01", text("2001-01-01"), text("2001-01-01")),
            ("1:30.5", text("1:30.5"), float(90.5)),
            ("1_", text("1_"), int(1)),
            ("1_x", text("1_x"), text("1_x")),
            ("99999999999999999999", float(1e20), float(1e20)),
        ] {
            let values = [(TypingRule::Rcl, rcl), (TypingRule::Yaml11, yaml11)];
            for (rule, value) in values {
                let read = ParameterText::read(written, rule).unwrap();
                assert_eq!(read.value(), &value, "{written} by {rule:?}");
                assert_eq!(read.value_as(NotSet), value, "{written} by {rule:?}");
                assert_eq!(read.value_as(Text), text(written), "{written} by {rule:?}");
            }
        }
        let nan = ParameterText::read("nan", TypingRule::Rcl).unwrap();
        assert!(matches!(nan.value(), ParameterValue::Double(value) if value.is_nan()));
        assert_eq!(nan.value_as(Text), text("nan"));
        for (written, declared, value) in [
            ("1e-3", Double, float(1e-3)),
            ("1", Double, float(1.0)),
            ("y", Bool, true.into()),
            ("1_000", Integer, int(1000)),
            ("[]", Text, text("[]")),
            ("[]", ParameterType::DoubleArray, Vec::<f64>::new().into()),
            ("[0483, y]", StringArray, ["0483", "y"].as_slice().into()),
            ("[1, a]", StringArray, ["1", "a"].as_slice().into()),
            (
                "[1e3, 2]",
                ParameterType::DoubleArray,
                vec![1e3, 2.0].into(),
            ),
            ("{a: 1}", Text, text("{a: 1}")),
            ("@home", Text, text("@home")),
            ("a: b", Text, text("a: b")),
            ("'5'", Text, text("5")),
            ("", Text, text("")),
            // Not of the declared type, so a node refuses it.
            ("fast", Double, text("fast")),
            ("1.5", Integer, float(1.5)),
            ("1", Bool, int(1)),
        ] {
            let read = ParameterText::lenient(written).value_as(declared);
            assert_eq!(read, value, "{written} as {declared}");
        }
    }
}
