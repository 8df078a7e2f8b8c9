//! Resolver: a type from its description, with each nested type resolved once.

use super::default::read_default;
use super::types::{DynamicType, ELEMENTS_MAX, Element, MessageField, Shape, Struct, TypeError};
use crate::cdr::{DEPTH_MAX, UNBOUNDED};
use crate::describe::{Extensibility, Field, IndividualTypeDescription, TypeDescription, type_id};
use crate::key::key_bytes_max_of;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

impl DynamicType {
    /// Resolves a description.
    pub fn new(description: &TypeDescription) -> Result<Self, TypeError> {
        let mut resolver = Resolver {
            described: description
                .referenced
                .iter()
                .map(|individual| (individual.type_name.as_str(), individual))
                .collect(),
            resolved: BTreeMap::new(),
        };
        resolver.resolve(&description.type_description, 0)
    }
}

struct Resolver<'a> {
    described: BTreeMap<&'a str, &'a IndividualTypeDescription>,
    resolved: BTreeMap<&'a str, DynamicType>,
}

impl<'a> Resolver<'a> {
    fn resolve(
        &mut self,
        individual: &'a IndividualTypeDescription,
        depth: u8,
    ) -> Result<DynamicType, TypeError> {
        let type_name = &individual.type_name;
        if depth >= DEPTH_MAX {
            return Err(TypeError::TooDeep {
                type_name: type_name.clone(),
            });
        }
        let mut fields = Vec::with_capacity(individual.fields.len());
        let (mut wire_bytes_min, mut elements) = (0usize, 0usize);
        for field in &individual.fields {
            let resolved = self.field(type_name, field, depth)?;
            let (least, count) = match resolved.shape {
                Shape::Single => (resolved.element.wire_bytes_min(), 1),
                Shape::Array(count) => (
                    resolved.element.wire_bytes_min().saturating_mul(count),
                    count,
                ),
                Shape::Sequence { .. } => (4, 0),
            };
            wire_bytes_min = wire_bytes_min.saturating_add(least);
            elements = elements.saturating_add(resolved.element.elements().saturating_mul(count));
            if elements > ELEMENTS_MAX {
                return Err(TypeError::TooLarge {
                    type_name: type_name.clone(),
                });
            }
            fields.push(resolved.with_default(type_name, &field.default_value)?);
        }
        Ok(DynamicType(Arc::new(Struct {
            name: type_name.clone(),
            fields,
            extensibility: individual.extensibility,
            dds_name: individual.dds_name.clone(),
            key_bytes_max: key_bytes_max_of(individual, |name| self.described.get(name).copied()),
            wire_bytes_min: match individual.extensibility {
                Extensibility::Final => wire_bytes_min.max(1),
                // Of those that grew, senders may leave out all.
                Extensibility::Appendable => 1,
            },
            elements: elements.max(1),
        })))
    }

    fn field(
        &mut self,
        type_name: &str,
        field: &'a Field,
        depth: u8,
    ) -> Result<MessageField, TypeError> {
        let ty = &field.field_type;
        let capacity = usize::try_from(ty.capacity).unwrap_or(UNBOUNDED);
        let string_capacity = usize::try_from(ty.string_capacity).unwrap_or(UNBOUNDED);
        let (id, shape) = match ty.type_id {
            id @ 0..=48 => (id, Shape::Single),
            id @ 49..=96 => (id.saturating_sub(type_id::ARRAY), Shape::Array(capacity)),
            id @ 97..=144 => (
                id.saturating_sub(type_id::BOUNDED_SEQUENCE),
                Shape::Sequence { bound: capacity },
            ),
            id => (
                id.saturating_sub(type_id::UNBOUNDED_SEQUENCE),
                Shape::Sequence { bound: UNBOUNDED },
            ),
        };
        let element = if id == type_id::NESTED {
            Element::Message(self.nested(type_name, field, depth)?)
        } else {
            Element::of_type_id(id, string_capacity).ok_or_else(|| TypeError::UnknownTypeId {
                type_name: type_name.into(),
                field: field.name.clone(),
                type_id: ty.type_id,
            })?
        };
        Ok(MessageField {
            name: field.name.clone(),
            element,
            shape,
            default: None,
            is_key: field.is_key,
        })
    }

    fn nested(
        &mut self,
        type_name: &str,
        field: &'a Field,
        depth: u8,
    ) -> Result<DynamicType, TypeError> {
        let nested = field.field_type.nested_type_name.as_str();
        if let Some(ty) = self.resolved.get(nested) {
            return Ok(ty.clone());
        }
        let Some(&individual) = self.described.get(nested) else {
            return Err(TypeError::Missing {
                type_name: type_name.into(),
                field: field.name.clone(),
                nested: nested.into(),
            });
        };
        let ty = self.resolve(individual, depth.saturating_add(1))?;
        self.resolved.insert(nested, ty.clone());
        Ok(ty)
    }
}

impl MessageField {
    fn with_default(mut self, type_name: &str, text: &str) -> Result<Self, TypeError> {
        if !text.is_empty() {
            let Some(value) = read_default(&self, text) else {
                return Err(TypeError::BadDefault {
                    type_name: type_name.into(),
                    field: self.name,
                    text: text.into(),
                });
            };
            self.default = Some(value);
        }
        Ok(self)
    }
}
