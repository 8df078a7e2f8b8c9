//! Python expressions of `topic echo --filter` and `topic hz --filter`, evaluated over
//! the message `m`, as ros2 does. `pteros_launch::python` evaluates the basics itself,
//! and hands the rest to one Python process, with limits of time and memory.

use anyhow::{Result, anyhow};
use pteros::msg::dynamic::{DynamicMessage, Element, MessageField, Value as Field};
use pteros_launch::python::{Evaluator, ExpressionError, Names, Object, Python, Value};
use std::rc::Rc;

pub struct PythonFilter(Evaluator);

impl PythonFilter {
    /// Parses the expression. Starts Python if the expression needs it.
    ///
    /// # Errors
    /// Its text, the position and the reason.
    pub fn parse(text: &str) -> Result<Self> {
        let python = Python::of(|name| std::env::var(name).ok());
        Evaluator::new(text, python).map(Self).map_err(explained)
    }

    /// Whether the expression is true of a message, or of a part of one. Blocks for the
    /// time limit of Python at most.
    ///
    /// # Errors
    /// The expression has no value for it: an unknown field, a division by zero.
    pub fn accepts(&mut self, message: &Field) -> Result<bool> {
        let names = Names::new().with("m", python_value(message, None));
        self.0.truth(&names).map_err(explained)
    }
}

fn explained(error: ExpressionError) -> anyhow::Error {
    anyhow!("--filter: {error}; {SYNTAX_HINT}")
}

const SYNTAX_HINT: &str = "write a Python expression over the message m, as in \"m.pose.position.x > 1.5 and m.header.frame_id == 'map'\" or \"len(m.ranges) > 3\"";

/// A field as rclpy has it: a `byte` is a `bytes` of length 1.
fn python_value(value: &Field, field: Option<&MessageField>) -> Value {
    let is_byte = field.is_some_and(|field| field.element == Element::Byte);
    match value {
        Field::Bool(value) => Value::from(*value),
        Field::F32(value) => Value::from(f64::from(*value)),
        Field::F64(value) => Value::from(*value),
        Field::String(text) => Value::from(text.as_str()),
        Field::WString(text) => Value::from(text.to_string()),
        Field::Message(message) => Value::object(MessageObject(message.clone())),
        Field::U8(value) if is_byte => Value::bytes(&[*value]),
        list if list.len().is_some() => Value::object(ArrayObject {
            list: Rc::new(list.clone()),
            field: field.cloned(),
        }),
        number => number.as_integer().map_or(Value::NONE, Value::from),
    }
}

struct MessageObject(DynamicMessage);

impl Object for MessageObject {
    fn type_name(&self) -> String {
        let name = self.0.ty().name();
        name.rsplit('/').next().unwrap_or(name).into()
    }

    fn attribute(&self, name: &str) -> Option<Value> {
        let (_, field) = self.0.ty().field(name)?;
        Some(python_value(self.0.field(name)?, Some(field)))
    }

    fn attribute_names(&self) -> Vec<String> {
        let fields = self.0.ty().user_fields().iter();
        fields.map(|field| field.name.clone()).collect()
    }
}

/// An array or a sequence. Its elements become Python values when they are read.
struct ArrayObject {
    list: Rc<Field>,
    field: Option<MessageField>,
}

impl Object for ArrayObject {
    fn type_name(&self) -> String {
        "array".into()
    }

    fn attribute(&self, _: &str) -> Option<Value> {
        None
    }

    fn attribute_names(&self) -> Vec<String> {
        Vec::new()
    }

    fn length(&self) -> Option<usize> {
        self.list.len()
    }

    fn item(&self, index: usize) -> Option<Value> {
        let element = self.list.element(index)?;
        Some(python_value(&element, self.field.as_ref()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pteros::msg::dynamic::DynamicType;

    fn accepts(filter: &str, type_name: &str, yaml: &str) -> Result<bool> {
        let description = pteros::interfaces::library().describe(type_name)?;
        let message = DynamicMessage::from_yaml(&DynamicType::new(&description)?, yaml)?;
        PythonFilter::parse(filter)?.accepts(&Field::Message(message))
    }

    /// Whether there is a Python for expressions beyond the basics.
    fn has_python() -> bool {
        PythonFilter::parse("[x for x in ()]").is_ok()
    }

    #[test]
    fn any_python_expression_over_m_selects_messages() {
        let scan = "{header: {frame_id: laser}, range_max: 10, ranges: [0.5, 2, 3, 4]}";
        for (filter, expected) in [
            ("m.range_max > 5", true),
            ("len(m.ranges) > 3 and m.header.frame_id == 'laser'", true),
            ("m.ranges[0] >= 0.5 and m.ranges[-1] == 4", true),
            ("min(m.ranges) < 0.5", false),
            ("any(r > 3.5 for r in m.ranges)", true),
            ("sum(r for r in m.ranges) > 100", false),
            (
                "type(m).__name__ == 'LaserScan' and f'{m.header}'[:6] == 'Header' and [x for x in ()] == []",
                true,
            ),
            ("m.header.frame_id in ('map', 'odom')", false),
            ("m.range_max ** 2 == 100 if m.ranges else False", true),
            ("m.intensities", false),
        ] {
            if filter.contains(" for ") && !has_python() {
                eprintln!("skipped, for it needs Python: {filter}");
                continue;
            }
            let outcome = accepts(filter, "sensor_msgs/msg/LaserScan", scan);
            assert_eq!(outcome.unwrap(), expected, "{filter}");
        }
        let byte = accepts("m.data == b'A'", "std_msgs/msg/Byte", "data: 65");
        assert!(byte.unwrap());
    }

    #[test]
    fn a_wrong_filter_names_the_expression_and_the_reason() {
        for filter in ["m.dta > 1", "m.data >", "data > 1", "m.data / 0"] {
            let error = accepts(filter, "std_msgs/msg/Int32", "data: 1").unwrap_err();
            let text = error.to_string();
            assert!(
                text.contains("--filter") && text.contains("len(m.ranges)"),
                "{text}"
            );
        }
    }
}
