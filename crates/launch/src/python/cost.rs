//! Cost of an evaluation, and its limit.

use super::fault::Outcome;
use super::limits::{COST_MAX, TEXT_BYTES_MAX};
use super::value::{Kind, Value};

/// Bytes and elements that an evaluation may still spend.
pub(super) struct Cost(usize);

impl Cost {
    pub fn new() -> Self {
        Self(COST_MAX)
    }

    /// Counts bytes of values, or elements that are read.
    pub fn add(&mut self, count: usize) -> Outcome<()> {
        let left = self.0.checked_sub(count);
        self.0 = left.ok_or_else(|| {
            let mebibytes = COST_MAX >> 20;
            format!("the evaluation makes or reads more than {mebibytes} MiB; use smaller values")
        })?;
        Ok(())
    }

    /// Counts a text before it is made.
    pub fn add_text(&mut self, bytes: usize) -> Outcome<()> {
        if bytes > TEXT_BYTES_MAX {
            let mebibytes = TEXT_BYTES_MAX >> 20;
            return Err(format!("a text is longer than {mebibytes} MiB").into());
        }
        self.add(bytes + 16)
    }

    /// Counts a list or tuple before it is made.
    pub fn add_items(&mut self, count: usize) -> Outcome<()> {
        self.add(count.saturating_add(2).saturating_mul(size_of::<Value>()))
    }

    pub fn text(&mut self, text: String) -> Outcome<Value> {
        self.add_text(text.len())?;
        Ok(text.into())
    }

    pub fn list(&mut self, items: Vec<Value>) -> Outcome<Value> {
        self.add_items(items.len())?;
        Ok(Value(Kind::List(items.into())))
    }
}
