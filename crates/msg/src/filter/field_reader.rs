//! Field reader: reads the fields that a filter uses out of a payload, and skips
//! the others.

use super::scalar::Scalar;
use crate::cdr::{DecodeError, Decoder};
use crate::describe::Extensibility;
use crate::dynamic::{DynamicType, Element, MessageField, Shape, Value};
use alloc::borrow::Cow;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// One step from a message to a field: the field's place, and the element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PathStep {
    pub place: usize,
    pub index: Option<usize>,
}

/// The fields of a structure to read, in serialization order.
#[derive(Clone, Debug, Default)]
pub(super) struct ReadPlan(Vec<(PathStep, PlanNode)>);

/// The action for a field, or for one element.
#[derive(Clone, Debug)]
enum PlanNode {
    Value { slot: usize },
    Inside(ReadPlan),
}

impl ReadPlan {
    /// Adds a field; each path once.
    pub fn insert(&mut self, path: &[PathStep], slot: usize) {
        let Some((step, rest)) = path.split_first() else {
            return;
        };
        let found = self.0.binary_search_by_key(step, |(step, _)| *step);
        let at = match found {
            Ok(at) => at,
            Err(at) => {
                let take = match rest {
                    [] => PlanNode::Value { slot },
                    _ => PlanNode::Inside(Self::default()),
                };
                self.0.insert(at, (*step, take));
                at
            }
        };
        if let Some((_, PlanNode::Inside(plan))) = self.0.get_mut(at) {
            plan.insert(rest, slot);
        }
    }

    fn slots(&self) -> usize {
        self.0.iter().map(|(_, take)| take.slots()).sum()
    }
}

impl PlanNode {
    fn slots(&self) -> usize {
        match self {
            Self::Value { .. } => 1,
            Self::Inside(plan) => plan.slots(),
        }
    }
}

/// Reads a whole message's fields into their slots.
pub(super) fn read<'a>(
    ty: &DynamicType,
    plan: &ReadPlan,
    input: &mut Decoder<'a>,
    slots: &mut [Scalar<'a>],
) -> Result<(), DecodeError> {
    let mut walk = FieldWalk {
        open: slots.len(),
        slots,
        input,
    };
    walk.structure(ty, plan)
}

struct FieldWalk<'w, 'a> {
    input: &'w mut Decoder<'a>,
    slots: &'w mut [Scalar<'a>],
    /// Empty slots; at zero the rest of the payload is skipped.
    open: usize,
}

impl<'a> FieldWalk<'_, 'a> {
    fn structure(&mut self, ty: &DynamicType, plan: &ReadPlan) -> Result<(), DecodeError> {
        let scope = ty.enter(self.input)?;
        let may_lack = ty.extensibility() == Extensibility::Appendable;
        let mut wanted = plan.0.as_slice();
        for (place, field) in ty.fields().iter().enumerate() {
            let count = wanted.iter().take_while(|(step, _)| step.place == place);
            let (here, rest) = wanted.split_at(count.count());
            wanted = rest;
            match here {
                _ if may_lack && !self.input.has_more(0)? => self.default(field, here),
                [] => self.skip_field(field)?,
                [(_, take)] if field.shape == Shape::Single => self.one(&field.element, take)?,
                elements => self.elements(field, elements)?,
            }
            if self.open == 0 {
                return Ok(());
            }
        }
        self.input.end_struct(scope);
        Ok(())
    }

    /// The sender's type has fewer members: this one has its default.
    fn default(&mut self, field: &MessageField, wanted: &[(PathStep, PlanNode)]) {
        if !wanted.is_empty() {
            let value = field.default_value();
            for (step, take) in wanted {
                self.take(&value, step.index, take);
            }
        }
    }

    fn take(&mut self, value: &Value, index: Option<usize>, take: &PlanNode) {
        let element = index.map_or(Some(Cow::Borrowed(value)), |index| {
            value.element(index).map(Cow::Owned)
        });
        match (element.as_deref(), take) {
            (None, _) => self.close(take.slots()),
            (Some(Value::Message(message)), PlanNode::Inside(plan)) => {
                for (step, take) in &plan.0 {
                    match message.values().get(step.place) {
                        Some(value) => self.take(value, step.index, take),
                        None => self.close(take.slots()),
                    }
                }
            }
            (Some(value), PlanNode::Value { slot }) => self.put(*slot, scalar_of(value)),
            (Some(_), PlanNode::Inside(plan)) => self.close(plan.slots()),
        }
    }

    fn put(&mut self, slot: usize, value: Scalar<'a>) {
        if let Some(place) = self.slots.get_mut(slot) {
            *place = value;
        }
        self.close(1);
    }

    /// Reduces the number of fields still to be found.
    fn close(&mut self, slots: usize) {
        self.open = self.open.saturating_sub(slots);
    }

    /// Reads some elements of a collection, in their order.
    fn elements(
        &mut self,
        field: &MessageField,
        wanted: &[(PathStep, PlanNode)],
    ) -> Result<(), DecodeError> {
        let element = &field.element;
        // XCDR2 puts a size before collections, except those of primitives.
        let scope = match element.fixed_bytes() {
            Some(_) => None,
            None => Some(self.input.begin_collection()?),
        };
        let count = self.count(field)?;
        let mut at = 0;
        for (step, take) in wanted {
            match step.index {
                Some(index) if index < count => {
                    self.skip(element, index.saturating_sub(at))?;
                    self.one(element, take)?;
                    at = index.saturating_add(1);
                }
                _ => self.close(take.slots()),
            }
            if self.open == 0 {
                return Ok(());
            }
        }
        match scope {
            Some(scope) => {
                self.skip(element, count.saturating_sub(at))?;
                self.input.end_collection(scope);
            }
            None => self.skip(element, count.saturating_sub(at))?,
        }
        Ok(())
    }

    fn count(&mut self, field: &MessageField) -> Result<usize, DecodeError> {
        match field.shape {
            Shape::Single => Ok(1),
            Shape::Array(count) => Ok(count),
            Shape::Sequence { bound } => {
                let least = field.element.fixed_bytes().unwrap_or(1);
                self.input.sequence_len(least, bound)
            }
        }
    }

    fn one(&mut self, element: &Element, take: &PlanNode) -> Result<(), DecodeError> {
        let slot = match (take, element) {
            (PlanNode::Value { slot }, _) => *slot,
            (PlanNode::Inside(plan), Element::Message(ty)) => return self.structure(ty, plan),
            // The checker descends into messages only.
            (PlanNode::Inside(_), _) => return self.skip(element, 1),
        };
        let value = self.scalar(element)?;
        self.put(slot, value);
        Ok(())
    }

    fn scalar(&mut self, element: &Element) -> Result<Scalar<'a>, DecodeError> {
        let input = &mut *self.input;
        Ok(match element {
            Element::Bool => Scalar::Bool(input.bool()?),
            Element::Byte | Element::U8 => Scalar::Integer(input.u8()?.into()),
            Element::I8 => Scalar::Integer(input.i8()?.into()),
            Element::I16 => Scalar::Integer(input.i16()?.into()),
            Element::U16 => Scalar::Integer(input.u16()?.into()),
            Element::I32 => Scalar::Integer(input.i32()?.into()),
            Element::U32 => Scalar::Integer(input.u32()?.into()),
            Element::I64 => Scalar::Integer(input.i64()?.into()),
            Element::U64 => Scalar::Integer(input.u64()?.into()),
            Element::F32 => Scalar::Float(input.f32()?.into()),
            Element::F64 => Scalar::Float(input.f64()?),
            Element::String { bound } => Scalar::Text(Cow::Borrowed(input.string_bytes(*bound)?)),
            Element::WString { bound } => {
                let text = input.wstring(*bound)?.to_string();
                Scalar::Text(Cow::Owned(text.into_bytes()))
            }
            // The checker allows only fields of a message.
            Element::Message(_) => Scalar::Absent,
        })
    }

    fn skip_field(&mut self, field: &MessageField) -> Result<(), DecodeError> {
        if field.shape == Shape::Single {
            return self.skip(&field.element, 1);
        }
        let scope = match field.element.fixed_bytes() {
            Some(_) => None,
            None => Some(self.input.begin_collection()?),
        };
        let count = self.count(field)?;
        self.skip(&field.element, count)?;
        if let Some(scope) = scope {
            self.input.end_collection(scope);
        }
        Ok(())
    }

    fn skip(&mut self, element: &Element, count: usize) -> Result<(), DecodeError> {
        if let Some(width) = element.fixed_bytes() {
            return self.input.skip_primitives(width, count);
        }
        for _ in 0..count {
            match element {
                Element::Message(ty) => {
                    let scope = ty.enter(self.input)?;
                    let may_lack = ty.extensibility() == Extensibility::Appendable;
                    for field in ty.fields() {
                        if !may_lack || self.input.has_more(0)? {
                            self.skip_field(field)?;
                        }
                    }
                    self.input.end_struct(scope);
                }
                Element::WString { bound } => {
                    let units = self.input.sequence_len(4, *bound)?;
                    self.input.skip_primitives(4, units)?;
                }
                _ => {
                    self.input.string_bytes(usize::MAX)?;
                }
            }
        }
        Ok(())
    }
}

/// A single value as filters see it.
fn scalar_of(value: &Value) -> Scalar<'static> {
    let text = |text: String| Scalar::Text(Cow::Owned(text.into_bytes()));
    match value {
        Value::Bool(value) => Scalar::Bool(*value),
        Value::String(value) => text(value.clone()),
        Value::WString(value) => text(value.to_string()),
        _ => match (value.as_integer(), value.as_f64()) {
            (Some(value), _) => Scalar::Integer(value),
            (None, Some(value)) => Scalar::Float(value),
            (None, None) => Scalar::Absent,
        },
    }
}
