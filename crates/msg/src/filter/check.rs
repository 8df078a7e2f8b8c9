//! Semantic check of a content filter against a type: fields become slots in a read
//! plan, constants are converted to the compared type.

use super::FilterError;
use super::evaluate::{Condition, Operand, Predicate};
use super::field_reader::{PathStep, ReadPlan};
use super::lex::{Literal, NamedStep, Relation, SyntaxError, in_expression};
use super::parse::{Expression, Term, TermKind};
use super::scalar::Scalar;
use crate::cdr::UNBOUNDED;
use crate::dynamic::{DynamicType, Element, MessageField, Shape};
use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

pub(super) struct CheckedFilter {
    pub condition: Condition,
    pub plan: ReadPlan,
    /// Different fields; each has a slot.
    pub slots: usize,
}

/// Kinds of comparable values.
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
) -> Result<CheckedFilter, FilterError> {
    let mut checker = Checker {
        ty,
        parameters,
        paths: Vec::new(),
    };
    let condition = checker.condition(expression).map_err(in_expression(text))?;
    let mut plan = ReadPlan::default();
    for (slot, path) in checker.paths.iter().enumerate() {
        plan.insert(path, slot);
    }
    Ok(CheckedFilter {
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

/// One side of a comparison, before the other side's type is known.
enum ComparisonSide {
    Field {
        slot: usize,
        kind: Kind,
        /// As it is called in messages.
        name: String,
    },
    Constant(Literal),
}

impl Checker<'_> {
    fn condition(&mut self, expression: &Expression) -> Result<Condition, SyntaxError> {
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
                if *negated {
                    Condition::Not(Box::new(within))
                } else {
                    within
                }
            }
        })
    }

    fn conditions(&mut self, parts: &[Expression]) -> Result<Vec<Condition>, SyntaxError> {
        parts.iter().map(|part| self.condition(part)).collect()
    }

    fn compare(
        &mut self,
        left: &Term,
        relation: Relation,
        at: usize,
        right: &Term,
    ) -> Result<Condition, SyntaxError> {
        let left_side = self.side(left)?;
        let right_side = self.side(right)?;
        if relation == Relation::Like {
            return like(left, left_side, right, right_side);
        }
        let (a, b) = match (left_side, right_side) {
            (ComparisonSide::Constant(_), ComparisonSide::Constant(_)) => {
                let message = "two values are compared; one side must be a field";
                return Err(SyntaxError::new(at, message));
            }
            (ComparisonSide::Constant(value), ComparisonSide::Field { slot, kind, name }) => (
                constant(&kind, &name, value, left.at)?,
                Operand::Field(slot),
            ),
            (ComparisonSide::Field { slot, kind, name }, ComparisonSide::Constant(value)) => (
                Operand::Field(slot),
                constant(&kind, &name, value, right.at)?,
            ),
            (
                ComparisonSide::Field { slot, kind, name },
                ComparisonSide::Field {
                    slot: other,
                    kind: with,
                    name: what,
                },
            ) => {
                if (kind == Kind::Text) != (with == Kind::Text) {
                    let words = (kind.describe(), with.describe());
                    let message = format!(
                        "field {name} is {}, field {what} is {}; they do not compare",
                        words.0, words.1
                    );
                    return Err(SyntaxError::new(at, message));
                }
                (Operand::Field(slot), Operand::Field(other))
            }
        };
        Ok(Condition::Predicate(Predicate::Order(a, relation, b)))
    }

    fn side(&mut self, term: &Term) -> Result<ComparisonSide, SyntaxError> {
        match &term.what {
            TermKind::Literal(literal) => Ok(ComparisonSide::Constant(literal.clone())),
            TermKind::Parameter(number) => match self.parameters.get(*number) {
                Some(literal) => Ok(ComparisonSide::Constant(literal.clone())),
                None => Err(SyntaxError::new(
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
            TermKind::Field(steps) => self.field(steps),
        }
    }

    fn field(&mut self, steps: &[NamedStep]) -> Result<ComparisonSide, SyntaxError> {
        let mut ty = self.ty;
        let mut path = Vec::with_capacity(steps.len());
        let mut name = String::new();
        let mut rest = steps.iter();
        while let Some(step) = rest.next() {
            let Some((place, field)) = find(ty, &step.name) else {
                return Err(SyntaxError::new(step.at, unknown(ty, &step.name)));
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
                    return Err(SyntaxError::new(step.at, message));
                }
                (Element::Message(inner), _) => ty = inner,
                (element, []) => {
                    let slot = self.slot(path, step.at)?;
                    let kind = Kind::of(element);
                    return Ok(ComparisonSide::Field { slot, kind, name });
                }
                (element, [next, ..]) => {
                    let message = format!(
                        "field {name} is a {}; it has no fields",
                        element.type_text()
                    );
                    return Err(SyntaxError::new(next.at, message));
                }
            }
        }
        Err(SyntaxError::new(0, "expected a field"))
    }

    fn slot(&mut self, path: Vec<PathStep>, at: usize) -> Result<usize, SyntaxError> {
        if let Some(slot) = self.paths.iter().position(|known| *known == path) {
            return Ok(slot);
        }
        if self.paths.len() >= super::FIELDS_MAX {
            let message = format!("more than {} different fields are named", super::FIELDS_MAX);
            return Err(SyntaxError::new(at, message));
        }
        self.paths.push(path);
        Ok(self.paths.len().saturating_sub(1))
    }
}

/// A field that a user wrote, and its place.
fn find<'t>(ty: &'t DynamicType, name: &str) -> Option<(usize, &'t MessageField)> {
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

fn check_index(field: &MessageField, name: &str, step: &NamedStep) -> Result<(), SyntaxError> {
    let (at, kind) = (step.at, field.type_text());
    let elements_max = match field.shape {
        Shape::Single => 0,
        Shape::Array(count) => count,
        Shape::Sequence { bound } => bound,
    };
    match (field.shape, step.index) {
        (Shape::Single, None) => Ok(()),
        (Shape::Single, Some(_)) => Err(SyntaxError::new(
            at,
            format!("field {name} is a {kind}; it has no elements"),
        )),
        (_, None) => Err(SyntaxError::new(
            at,
            format!("field {name} is {kind}; name one element of it, such as {name}[0]"),
        )),
        (_, Some(index)) if elements_max != UNBOUNDED && index >= elements_max => {
            Err(SyntaxError::new(
                at,
                format!("field {name} is {kind}; it has no element {index}"),
            ))
        }
        (_, Some(_)) => Ok(()),
    }
}

/// `LIKE` takes a field of text and a constant pattern.
fn like(
    left: &Term,
    left_side: ComparisonSide,
    right: &Term,
    right_side: ComparisonSide,
) -> Result<Condition, SyntaxError> {
    let slot = match left_side {
        ComparisonSide::Field {
            slot,
            kind: Kind::Text,
            ..
        } => slot,
        ComparisonSide::Field { kind, name, .. } => {
            let message = format!("LIKE looks at strings; field {name} is {}", kind.describe());
            return Err(SyntaxError::new(left.at, message));
        }
        ComparisonSide::Constant(_) => {
            return Err(SyntaxError::new(left.at, "LIKE has a field on its left"));
        }
    };
    match right_side {
        ComparisonSide::Constant(Literal::Text(pattern)) => {
            let pattern = pattern.into_bytes();
            Ok(Condition::Predicate(Predicate::Like(slot, pattern)))
        }
        _ => Err(SyntaxError::new(
            right.at,
            "expected a pattern in quotes, such as 'left%', or a parameter with one",
        )),
    }
}

/// A constant in the form in which it is compared with a field.
fn constant(kind: &Kind, name: &str, value: Literal, at: usize) -> Result<Operand, SyntaxError> {
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
        // 0.1 means the nearest float32: no other one can equal it.
        (Kind::Float32, Literal::Float(value)) => Scalar::Float(f64::from(value as f32)),
        (kind, value) => {
            let found = match value {
                Literal::Bool(_) => "TRUE or FALSE",
                Literal::Text(_) => "a string",
                Literal::Integer(_) | Literal::Float(_) => "a number",
            };
            let words = kind.describe();
            let message = format!("field {name} is {words}; it does not compare with {found}");
            return Err(SyntaxError::new(at, message));
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

    fn describe(&self) -> &'static str {
        match self {
            Self::Bool => "a bool",
            Self::Byte | Self::Integer => "an integer",
            Self::Float32 | Self::Float64 => "a floating point number",
            Self::Text => "a string",
        }
    }
}
