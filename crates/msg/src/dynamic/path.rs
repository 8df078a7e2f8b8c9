//! Paths into messages: `a.b[3].c`.
//!
//! Names are fields, numbers in brackets elements. Errors have the part of the path
//! up to the problem.

use super::error::{ValueError, ValueProblem, join};
use super::message::DynamicMessage;
use super::types::{DynamicType, Element, MessageField, Shape};
use super::value::Value;
use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

impl DynamicMessage {
    /// The value at a path such as `pose.covariance[35]` or `points[3].x`.
    ///
    /// Borrowed where it stands as a [`Value`], a copy for one element of a
    /// sequence.
    pub fn get(&self, path: &str) -> Result<Cow<'_, Value>, ValueError> {
        get(self, path)
    }

    /// The field at a path; an element of a list is a single field.
    ///
    /// # Errors
    /// The path leads to no field of the type.
    pub fn field_at(&self, path: &str) -> Result<MessageField, ValueError> {
        field_at(self.ty(), path)
    }

    /// Replaces the value at a path.
    ///
    /// Numbers convert when the field's type can hold them; sequences and
    /// strings must keep their bounds, arrays their length. An index replaces
    /// an element that is there; it adds none.
    pub fn set(&mut self, path: &str, value: impl Into<Value>) -> Result<(), ValueError> {
        set(self, path, value.into())
    }
}

/// The error for a field that `ty` lacks; `outer` is where `ty` stands.
pub(super) fn unknown_field(ty: &DynamicType, outer: &str, name: &str) -> ValueError {
    ValueError {
        path: outer.into(),
        problem: ValueProblem::UnknownField {
            name: name.into(),
            type_name: ty.name().into(),
            known: ty
                .user_fields()
                .iter()
                .map(|field| field.name.clone())
                .collect(),
        },
    }
}

fn get<'a>(message: &'a DynamicMessage, path: &str) -> Result<Cow<'a, Value>, ValueError> {
    let (steps, last) = split(path)?;
    let mut message = message;
    for segment in &steps {
        let value = field_value(message, segment)?;
        message = match (value, segment.index) {
            (Value::Message(inner), None) => inner,
            (Value::Messages(inner), Some(index)) => inner
                .get(index)
                .ok_or_else(|| out_of_range(segment, index, inner.len()))?,
            _ => return Err(no_such_path(segment)),
        };
    }
    let value = field_value(message, &last)?;
    let Some(index) = last.index else {
        return Ok(Cow::Borrowed(value));
    };
    let len = value.len().ok_or_else(|| no_such_path(&last))?;
    value
        .element(index)
        .map(Cow::Owned)
        .ok_or_else(|| out_of_range(&last, index, len))
}

fn set(message: &mut DynamicMessage, path: &str, value: Value) -> Result<(), ValueError> {
    let (steps, last) = split(path)?;
    let mut message = message;
    for segment in &steps {
        let place = field_index(message.ty(), segment)?;
        message = match (message.value_mut(place), segment.index) {
            (Some(Value::Message(inner)), None) => inner,
            (Some(Value::Messages(inner)), Some(index)) => {
                let len = inner.len();
                inner
                    .get_mut(index)
                    .ok_or_else(|| out_of_range(segment, index, len))?
            }
            _ => return Err(no_such_path(segment)),
        };
    }
    let ty = message.ty().clone();
    let place = field_index(&ty, &last)?;
    let (Some(field), Some(target)) = (ty.fields().get(place), message.value_mut(place)) else {
        return Err(no_such_path(&last));
    };
    let Some(index) = last.index else {
        *target = value.fit(field, &last.walked)?;
        return Ok(());
    };
    if field.shape == Shape::Single {
        return Err(no_such_path(&last));
    }
    let element = value.fit_element(field, &last.walked)?;
    let len = target.len().unwrap_or(0);
    if !target.put_element(index, element) {
        return Err(out_of_range(&last, index, len));
    }
    Ok(())
}

/// The field at a path; an element of a list is a single field.
pub(super) fn field_at(ty: &DynamicType, path: &str) -> Result<MessageField, ValueError> {
    let (steps, last) = split(path)?;
    let mut ty = ty.clone();
    for segment in &steps {
        let place = field_index(&ty, segment)?;
        let field = ty
            .fields()
            .get(place)
            .ok_or_else(|| no_such_path(segment))?;
        let indexed = segment.index.is_some();
        ty = match &field.element {
            Element::Message(inner) if indexed == (field.shape != Shape::Single) => inner.clone(),
            _ => return Err(no_such_path(segment)),
        };
    }
    let place = field_index(&ty, &last)?;
    let mut field = ty
        .fields()
        .get(place)
        .cloned()
        .ok_or_else(|| no_such_path(&last))?;
    if last.index.is_some() {
        field.shape = Shape::Single;
    }
    Ok(field)
}

struct PathSegment<'a> {
    name: &'a str,
    index: Option<usize>,
    /// The path up to this segment, without and with it.
    outer: String,
    walked: String,
}

/// Splits a path into the segments to the last message, and the last segment.
fn split(path: &str) -> Result<(Vec<PathSegment<'_>>, PathSegment<'_>), ValueError> {
    let bad = |reason| ValueError {
        path: path.into(),
        problem: ValueProblem::BadPath { reason },
    };
    let mut steps = Vec::new();
    let mut outer = String::new();
    for part in path.split('.') {
        let (name, index) = match part.strip_suffix(']') {
            None => (part, None),
            Some(rest) => {
                let (name, index) = rest
                    .split_once('[')
                    .ok_or_else(|| bad("\"]\" without \"[\" in the path"))?;
                let index = index
                    .parse()
                    .map_err(|_| bad("brackets in a path hold a number, as in points[3].x"))?;
                (name, Some(index))
            }
        };
        if name.is_empty() || name.contains(['[', ']']) {
            return Err(bad(
                "a path is field names joined by dots, as in points[3].x",
            ));
        }
        let walked = join(&outer, part);
        steps.push(PathSegment {
            name,
            index,
            outer,
            walked: walked.clone(),
        });
        outer = walked;
    }
    let last = steps.pop().ok_or_else(|| bad("the path is empty"))?;
    Ok((steps, last))
}

fn field_index(ty: &DynamicType, segment: &PathSegment<'_>) -> Result<usize, ValueError> {
    match ty.field(segment.name) {
        Some((index, _)) => Ok(index),
        None => Err(unknown_field(ty, &segment.outer, segment.name)),
    }
}

fn field_value<'a>(
    message: &'a DynamicMessage,
    segment: &PathSegment<'_>,
) -> Result<&'a Value, ValueError> {
    let index = field_index(message.ty(), segment)?;
    message
        .values()
        .get(index)
        .ok_or_else(|| no_such_path(segment))
}

fn out_of_range(segment: &PathSegment<'_>, index: usize, len: usize) -> ValueError {
    ValueError {
        path: segment.walked.clone(),
        problem: ValueProblem::OutOfRange { index, len },
    }
}

fn no_such_path(segment: &PathSegment<'_>) -> ValueError {
    let reason = if segment.index.is_some() {
        "it is not a list, so it takes no index"
    } else {
        "it is not a message with fields; lists need an index, as in points[3].x"
    };
    ValueError {
        path: segment.walked.clone(),
        problem: ValueProblem::BadPath { reason },
    }
}
