//! The parameters whose updates a viewer wants. The newest row of each name waits for the
//! viewer's thread, so that a slow viewer skips old values instead of being cut off.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::mem;
use std::sync::Arc;

/// Names that one viewer may ask for, and the longest.
const NAMES_MAX: usize = 4096;
const NAME_BYTES_MAX: usize = 1024;
/// Rows that wait for one viewer, and their bytes.
const ROWS_MAX: usize = 16_384;
const ROW_BYTES_MAX: usize = 16 << 20;
/// Bytes of the rows of one message; one row is sent in any case.
const MESSAGE_BYTES: usize = 64 << 10;

/// The parameters whose updates a viewer wants, and the updates that wait for it.
#[derive(Default)]
pub struct WantedParameters {
    is_all: bool,
    names: BTreeSet<String>,
    waiting: Rows,
}

/// The newest row of each name, as JSON, in the order of the names' first updates.
#[derive(Default)]
struct Rows {
    order: VecDeque<Arc<str>>,
    rows: BTreeMap<Arc<str>, Arc<str>>,
    bytes: usize,
    skipped: u64,
}

impl Rows {
    fn insert(&mut self, name: &Arc<str>, row: &Arc<str>) {
        let before = self.rows.get(name);
        let kept = self.bytes - before.map_or(0, |row| row.len());
        let is_full = before.is_none() && self.rows.len() >= ROWS_MAX;
        if is_full || kept + row.len() > ROW_BYTES_MAX {
            self.skipped += 1;
            return;
        }
        self.bytes = kept + row.len();
        if self.rows.insert(name.clone(), row.clone()).is_none() {
            self.order.push_back(name.clone());
        }
    }

    fn pop(&mut self) -> Option<Arc<str>> {
        let row = self.rows.remove(&self.order.pop_front()?)?;
        self.bytes -= row.len();
        Some(row)
    }
}

impl WantedParameters {
    /// Adds names; none at all means every parameter.
    ///
    /// # Errors
    /// Too many, or a name that is too long.
    pub fn add(&mut self, names: &[&str]) -> Result<(), String> {
        if names.is_empty() {
            self.is_all = true;
        }
        for name in names {
            if self.names.len() >= NAMES_MAX || name.len() > NAME_BYTES_MAX {
                return Err(format!(
                    "subscribeParameterUpdates: a viewer has at most {NAMES_MAX} names of {NAME_BYTES_MAX} bytes"
                ));
            }
            self.names.insert((*name).to_owned());
        }
        Ok(())
    }

    /// Removes names; none at all means every parameter.
    pub fn remove(&mut self, names: &[&str]) {
        if names.is_empty() {
            *self = Self::default();
        }
        for name in names {
            self.names.remove(*name);
        }
    }

    /// Whether nothing is wanted.
    pub fn is_empty(&self) -> bool {
        !self.is_all && self.names.is_empty()
    }

    /// What is told the viewer next: updates, or how many were skipped.
    pub fn next(&mut self) -> Option<ParameterUpdate> {
        let rows = &mut self.waiting;
        if rows.order.is_empty() && rows.skipped > 0 {
            return Some(ParameterUpdate::Skipped(mem::take(&mut rows.skipped)));
        }
        let mut text = String::new();
        while text.len() < MESSAGE_BYTES
            && let Some(row) = rows.pop()
        {
            if !text.is_empty() {
                text.push(',');
            }
            text.push_str(&row);
        }
        (!text.is_empty()).then_some(ParameterUpdate::Rows(text))
    }

    /// Lets the newest row of a wanted parameter wait. Returns false for another one.
    pub fn note(&mut self, name: &Arc<str>, row: &Arc<str>) -> bool {
        let is_wanted = self.is_all || self.names.contains(&**name);
        if is_wanted {
            self.waiting.insert(name, row);
        }
        is_wanted
    }
}

/// What one viewer is told of parameters.
#[derive(Debug, PartialEq, Eq)]
pub enum ParameterUpdate {
    /// Rows, as JSON with commas.
    Rows(String),
    /// So many were skipped.
    Skipped(u64),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn insert(wanted: &mut WantedParameters, name: &str, row: &str) {
        wanted.waiting.insert(&name.into(), &row.into());
    }

    #[test]
    fn the_newest_row_of_each_name_waits() {
        let mut wanted = WantedParameters::default();
        for row in ["1", "2"] {
            insert(&mut wanted, "b", row);
            insert(&mut wanted, "a", row);
        }
        assert_eq!(wanted.next(), Some(ParameterUpdate::Rows("2,2".into())));
        assert!(wanted.next().is_none() && wanted.waiting.bytes == 0);
    }

    #[test]
    fn waiting_rows_are_bounded_and_the_skipped_counted() {
        let mut wanted = WantedParameters::default();
        for name in 0..ROWS_MAX + 5 {
            insert(&mut wanted, &name.to_string(), "1");
        }
        let large = "1".repeat(ROW_BYTES_MAX);
        insert(&mut wanted, "0", &large);
        assert_eq!(wanted.waiting.rows.len(), ROWS_MAX);
        assert!(wanted.waiting.bytes <= ROW_BYTES_MAX);
        let told = std::iter::from_fn(|| wanted.next());
        assert_eq!(told.last(), Some(ParameterUpdate::Skipped(6)));
    }

    #[test]
    fn a_message_is_short_however_many_rows_wait() {
        let mut wanted = WantedParameters::default();
        let row = "1".repeat(MESSAGE_BYTES / 2);
        (0..9).for_each(|name| insert(&mut wanted, &name.to_string(), &row));
        let told = std::iter::from_fn(|| wanted.next());
        let is_short = |update: &ParameterUpdate| matches!(update, ParameterUpdate::Rows(text) if text.len() < 2 * MESSAGE_BYTES);
        let told: Vec<ParameterUpdate> = told.collect();
        assert!(told.len() > 2 && told.iter().all(is_short));
    }
}
