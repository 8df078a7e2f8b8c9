//! A message whose type is known at run time only.

use super::error::{ValueError, join};
use super::length::check_length;
use super::types::{DynamicType, MessageField};
use super::value::Value;
use alloc::format;
use alloc::vec::Vec;
use core::fmt;

/// A value of a [`DynamicType`]: one [`Value`] per field, always of its type.
#[derive(Clone)]
pub struct DynamicMessage {
    ty: DynamicType,
    values: Vec<Value>,
}

impl DynamicMessage {
    /// A message of default values.
    pub fn new(ty: &DynamicType) -> Self {
        Self {
            ty: ty.clone(),
            values: ty
                .fields()
                .iter()
                .map(MessageField::default_value)
                .collect(),
        }
    }

    /// `values` fit `ty`: made by the decoder for just these fields.
    pub(super) fn from_parts(ty: DynamicType, values: Vec<Value>) -> Self {
        debug_assert_eq!(ty.fields().len(), values.len());
        Self { ty, values }
    }

    /// Its type.
    pub fn ty(&self) -> &DynamicType {
        &self.ty
    }

    /// All values in the order of the type's fields.
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// The fields that a user wrote, with their values.
    pub fn fields(&self) -> impl ExactSizeIterator<Item = (&MessageField, &Value)> {
        self.ty.user_fields().iter().zip(&self.values)
    }

    /// One field's value.
    pub fn field(&self, name: &str) -> Option<&Value> {
        let (index, _) = self.ty.field(name)?;
        self.values.get(index)
    }

    pub(super) fn value_mut(&mut self, index: usize) -> Option<&mut Value> {
        self.values.get_mut(index)
    }

    /// Checks array lengths and the bounds of sequences and strings, all the
    /// way down.
    ///
    /// [`Self::set`] and the readers keep them; decoding does, too.
    pub fn check_bounds(&self) -> Result<(), ValueError> {
        if self.is_within_bounds() {
            return Ok(());
        }
        // Only an error needs the path.
        self.check_within("")
    }

    /// Allocates nothing.
    fn is_within_bounds(&self) -> bool {
        let pairs = self.ty.fields().iter().zip(&self.values);
        pairs.into_iter().all(|(field, value)| {
            let is_short = |len| check_length(field.shape, len, "").is_ok();
            value.len().is_none_or(is_short)
                && value.check_strings(&field.element, "").is_ok()
                && match value {
                    Value::Message(message) => message.is_within_bounds(),
                    Value::Messages(messages) => messages.iter().all(Self::is_within_bounds),
                    _ => true,
                }
        })
    }

    fn check_within(&self, outer: &str) -> Result<(), ValueError> {
        for (field, value) in self.ty.fields().iter().zip(&self.values) {
            let path = join(outer, &field.name);
            if let Some(len) = value.len() {
                check_length(field.shape, len, &path)?;
            }
            value.check_strings(&field.element, &path)?;
            match value {
                Value::Message(message) => message.check_within(&path)?,
                Value::Messages(messages) => {
                    for (index, message) in messages.iter().enumerate() {
                        message.check_within(&format!("{path}[{index}]"))?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}

impl PartialEq for DynamicMessage {
    fn eq(&self, other: &Self) -> bool {
        self.ty == other.ty && self.values == other.values
    }
}

impl fmt::Debug for DynamicMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct(self.ty.name());
        for (field, value) in self.fields() {
            out.field(&field.name, value);
        }
        out.finish()
    }
}
