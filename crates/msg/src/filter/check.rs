//! A parsed expression against a type: fields become places in a plan for
//! reading, constants take the form in which they are compared.

use super::FilterError;
use super::judge::{Condition, Operand, Test};
use super::lex::{Literal, Mistake, Relation, Step, in_expression};
use super::parse::{Expression, Term, What};
use super::scalar::Scalar;
use super::walk::{PathStep, Plan};
use crate::cdr::UNBOUNDED;
use crate::dynamic::{DynamicField, DynamicType, Element, Shape};
use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// What a filter is made of.
pub(super) struct Checked {
    pub condition: Condition,
    pub plan: Plan,
    /// Different fields; each has a slot.
    pub slots: usize,
}

/// What can be compared with what.
#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Bool,
    /// One byte: a number, or a character.
    Byte,
    Integer,
    Float32,
    Float64,
    Text,
}

pub(super) fn check(
    ty: &DynamicType,
    text: &str,
    expression: &Expression,
    parameters: &[Literal],
) -> Result<Checked, FilterError> {
    let mut checker = Checker {
        ty,
        parameters,
        paths: Vec::new(),
    };
    let condition = checker.condition(expression).map_err(in_expression(text))?;
    let mut plan = Plan::default();
    for (slot, path) in checker.paths.iter().enumerate() {
        plan.insert(path, slot);
    }
    Ok(Checked {
        condition,
        plan,
        slots: checker.paths.len(),
    })
}

struct Checker<'a> {
    ty: &'a DynamicType,
    parameters: &'a [Literal],
    /// The fields met so far; their positions are their slots.
    paths: Vec<Vec<PathStep>>,
}

/// One side of a comparison, before it is known what with.
enum Side {
    Field {
        slot: usize,
        kind: Kind,
        /// As it is called in messages.
        name: String,
    },
    Constant(Literal),
}

impl Checker<'_> {
    fn condition(&mut self, expression: &Expression) -> Result<Condition, Mistake> {
        Ok(match expression {
            Expression::Not(inner) => Condition::Not(Box::new(self.condition(inner)?)),
            Expression::All(parts) => Condition::All(self.conditions(parts)?),
            Expression::Any(parts) => Condition::Any(self.conditions(parts)?),
            Expression::Compare {
                left,
                relation,
                at,
                right,
            } => self.compare(left, *relation, *at, right)?,
            Expression::Between {
                field,
                negated,
                low,
                high,
            } => {
                let least = self.compare(field, Relation::GreaterOrEqual, low.at, low)?;
                let most = self.compare(field, Relation::LessOrEqual, high.at, high)?;
                let within = Condition::All([least, most].into());
                match negated {
                    true => Condition::Not(Box::new(within)),
                    false => within,
                }
            }
        })
    }

    fn conditions(&mut self, parts: &[Expression]) -> Result<Vec<Condition>, Mistake> {
        parts.iter().map(|part| self.condition(part)).collect()
    }

    fn compare(
        &mut self,
        left: &Term,
        relation: Relation,
        at: usize,
        right: &Term,
    ) -> Result<Condition, Mistake> {
        let sides = (self.side(left)?, self.side(right)?);
        if relation == Relation::Like {
            return like(left, sides, right);
        }
        let (a, b) = match sides {
            (Side::Constant(_), Side::Constant(_)) => {
                let message = "two values are compared; one side must be a field";
                return Err((at, message.into()));
            }
            (Side::Constant(value), Side::Field { slot, kind, name }) => (
                constant(&kind, &name, value, left.at)?,
                Operand::Field(slot),
            ),
            (Side::Field { slot, kind, name }, Side::Constant(value)) => (
                Operand::Field(slot),
                constant(&kind, &name, value, right.at)?,
            ),
            (
                Side::Field { slot, kind, name },
                Side::Field {
                    slot: other,
                    kind: with,
                    name: what,
                },
            ) => {
                if (kind == Kind::Text) != (with == Kind::Text) {
                    let words = (kind.words(), with.words());
                    let message = format!(
                        "field {name} is {}, field {what} is {}; they do not compare",
                        words.0, words.1
                    );
                    return Err((at, message));
                }
                (Operand::Field(slot), Operand::Field(other))
            }
        };
        Ok(Condition::Test(Test::Order(a, relation, b)))
    }

    fn side(&mut self, term: &Term) -> Result<Side, Mistake> {
        match &term.what {
            What::Literal(literal) => Ok(Side::Constant(literal.clone())),
            What::Parameter(number) => match self.parameters.get(*number) {
                Some(literal) => Ok(Side::Constant(literal.clone())),
                None => Err((
                    term.at,
                    match self.parameters.len() {
                        0 => format!("parameter %{number} has no value; none are given"),
                        given => format!(
                            "parameter %{number} has no value; {given} are given, %0 to %{}",
                            given.saturating_sub(1)
                        ),
                    },
                )),
            },
            What::Field(steps) => self.field(steps),
        }
    }

    fn field(&mut self, steps: &[Step]) -> Result<Side, Mistake> {
        let mut ty = self.ty;
        let mut path = Vec::with_capacity(steps.len());
        let mut name = String::new();
        let mut rest = steps.iter();
        while let Some(step) = rest.next() {
            let Some((place, field)) = find(ty, &step.name) else {
                return Err((step.at, unknown(ty, &step.name)));
            };
            if !name.is_empty() {
                name.push('.');
            }
            name.push_str(&step.name);
            check_index(field, &name, step)?;
            if let Some(index) = step.index {
                name.push_str(&format!("[{index}]"));
            }
            path.push(PathStep {
                place,
                index: step.index,
            });
            match (&field.element, rest.as_slice()) {
                (Element::Message(inner), []) => {
                    let message = format!(
                        "field {name} is a {}; name a field of it, such as {name}.{}",
                        inner.name(),
                        inner.user_fields().first().map_or("…", |f| f.name.as_str())
                    );
                    return Err((step.at, message));
                }
                (Element::Message(inner), _) => ty = inner,
                (element, []) => {
                    let slot = self.slot(path, step.at)?;
                    let kind = Kind::of(element);
                    return Ok(Side::Field { slot, kind, name });
                }
                (element, [next, ..]) => {
                    let message = format!(
                        "field {name} is a {}; it has no fields",
                        element.type_text()
                    );
                    return Err((next.at, message));
                }
            }
        }
        Err((0, "expected a field".into()))
    }

    fn slot(&mut self, path: Vec<PathStep>, at: usize) -> Result<usize, Mistake> {
        if let Some(slot) = self.paths.iter().position(|known| *known == path) {
            return Ok(slot);
        }
        if self.paths.len() >= super::FIELDS_MAX {
            let message = format!("more than {} different fields are named", super::FIELDS_MAX);
            return Err((at, message));
        }
        self.paths.push(path);
        Ok(self.paths.len().saturating_sub(1))
    }
}

/// A field that a user wrote, and its place.
fn find<'t>(ty: &'t DynamicType, name: &str) -> Option<(usize, &'t DynamicField)> {
    let mut fields = ty.user_fields().iter().enumerate();
    fields.find(|(_, field)| field.name == name)
}

fn unknown(ty: &DynamicType, name: &str) -> String {
    const SHOWN_MAX: usize = 12;
    let fields = ty.user_fields();
    let shown = fields.iter().take(SHOWN_MAX).map(|f| f.name.as_str());
    let mut known = shown.collect::<Vec<_>>().join(", ");
    if fields.len() > SHOWN_MAX {
        known.push_str(", …");
    }
    match known.as_str() {
        "" => format!(
            "{} has no field \"{name}\", and no fields at all",
            ty.name()
        ),
        _ => format!("{} has no field \"{name}\"; it has {known}", ty.name()),
    }
}

fn check_index(field: &DynamicField, name: &str, step: &Step) -> Result<(), Mistake> {
    let (at, kind) = (step.at, field.type_text());
    let elements_max = match field.shape {
        Shape::Single => 0,
        Shape::Array(count) => count,
        Shape::Sequence { bound } => bound,
    };
    match (field.shape, step.index) {
        (Shape::Single, None) => Ok(()),
        (Shape::Single, Some(_)) => {
            Err((at, format!("field {name} is a {kind}; it has no elements")))
        }
        (_, None) => Err((
            at,
            format!("field {name} is {kind}; name one element of it, such as {name}[0]"),
        )),
        (_, Some(index)) if elements_max != UNBOUNDED && index >= elements_max => Err((
            at,
            format!("field {name} is {kind}; it has no element {index}"),
        )),
        (_, Some(_)) => Ok(()),
    }
}

/// `LIKE` takes a field of text and a constant pattern.
fn like(left: &Term, sides: (Side, Side), right: &Term) -> Result<Condition, Mistake> {
    let slot = match sides.0 {
        Side::Field {
            slot,
            kind: Kind::Text,
            ..
        } => slot,
        Side::Field { kind, name, .. } => {
            let message = format!("LIKE looks at strings; field {name} is {}", kind.words());
            return Err((left.at, message));
        }
        Side::Constant(_) => {
            return Err((left.at, "LIKE has a field on its left".into()));
        }
    };
    match sides.1 {
        Side::Constant(Literal::Text(pattern)) => {
            let pattern = pattern.into_bytes();
            Ok(Condition::Test(Test::Like(slot, pattern)))
        }
        _ => Err((
            right.at,
            "expected a pattern in quotes, such as 'left%', or a parameter with one".into(),
        )),
    }
}

/// A constant in the form in which it is compared with a field.
fn constant(kind: &Kind, name: &str, value: Literal, at: usize) -> Result<Operand, Mistake> {
    let scalar = match (kind, value) {
        (Kind::Text, Literal::Text(text)) => Scalar::Text(Cow::Owned(text.into_bytes())),
        (Kind::Byte, Literal::Text(text)) if text.is_ascii() && text.len() == 1 => {
            Scalar::Integer(text.bytes().next().map_or(0, i128::from))
        }
        (Kind::Bool, Literal::Bool(value)) => Scalar::Bool(value),
        // As Fast DDS has it.
        (Kind::Bool, Literal::Integer(value @ (0 | 1))) => Scalar::Integer(value),
        (Kind::Byte | Kind::Integer | Kind::Float32 | Kind::Float64, Literal::Integer(value)) => {
            Scalar::Integer(value)
        }
        (Kind::Byte | Kind::Integer | Kind::Float64, Literal::Float(value)) => Scalar::Float(value),
        // 0.1 means the float32 that comes nearest: no other can equal it.
        (Kind::Float32, Literal::Float(value)) => Scalar::Float(f64::from(value as f32)),
        (kind, value) => {
            let found = match value {
                Literal::Bool(_) => "TRUE or FALSE",
                Literal::Text(_) => "a string",
                Literal::Integer(_) | Literal::Float(_) => "a number",
            };
            let words = kind.words();
            let message = format!("field {name} is {words}; it does not compare with {found}");
            return Err((at, message));
        }
    };
    Ok(Operand::Constant(scalar))
}

impl Kind {
    fn of(element: &Element) -> Self {
        match element {
            Element::Bool => Self::Bool,
            Element::Byte | Element::U8 | Element::I8 => Self::Byte,
            Element::F32 => Self::Float32,
            Element::F64 => Self::Float64,
            Element::String { .. } | Element::WString { .. } => Self::Text,
            Element::I16
            | Element::U16
            | Element::I32
            | Element::U32
            | Element::I64
            | Element::U64
            | Element::Message(_) => Self::Integer,
        }
    }

    fn words(&self) -> &'static str {
        match self {
            Self::Bool => "a bool",
            Self::Byte | Self::Integer => "an integer",
            Self::Float32 | Self::Float64 => "a floating point number",
            Self::Text => "a string",
        }
    }
}
