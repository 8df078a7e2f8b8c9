//! Layout of a struct of numbers: where memory and XCDR1 agree, so that values are
//! read in place.

use super::generator::Generator;
use crate::describe::Extensibility;
use crate::schema::{BaseType, Shape, StructSpec};

/// The layout of a struct of nothing but numbers without gaps.
#[derive(Clone, Copy)]
pub(super) struct Layout {
    size: u64,
    align: u64,
}

impl Layout {
    /// `None`: strings, sequences, `bool`s, a gap, or a type that may grow.
    pub(super) fn of(generator: &Generator<'_>, spec: &StructSpec) -> Option<Self> {
        if spec.fields.is_empty() || spec.extensibility == Extensibility::Appendable {
            return None;
        }
        let (mut size, mut align) = (0_u64, 1);
        for field in &spec.fields {
            let count = match field.ty.shape {
                Shape::Single => 1,
                Shape::Array(count) if count > 0 => u64::from(count),
                _ => return None,
            };
            let element = Self::of_element(generator, &field.ty.base)?;
            if !size.is_multiple_of(element.align) {
                return None;
            }
            size = size.checked_add(count.checked_mul(element.size)?)?;
            align = element.align.max(align);
        }
        size.is_multiple_of(align).then_some(Self { size, align })
    }

    fn of_element(generator: &Generator<'_>, base: &BaseType) -> Option<Self> {
        let size = match base {
            BaseType::Nested { .. } => {
                return Self::of(generator, &generator.nested_structure(base)?);
            }
            BaseType::Bool | BaseType::String(_) | BaseType::WString(_) => return None,
            BaseType::Int16 | BaseType::Uint16 => 2,
            BaseType::Int32 | BaseType::Uint32 | BaseType::Float32 => 4,
            BaseType::Int64 | BaseType::Uint64 | BaseType::Float64 => 8,
            _ => 1,
        };
        Some(Self { size, align: size })
    }
}
