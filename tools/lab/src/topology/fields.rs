//! An object of a topology file. Fields are read by name and form, and errors name
//! their place.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use pteros::msg::suggest::did_you_mean;
use serde_json::{Map, Value};

use super::problem::TopologyProblem;

/// The fields of an object. It tracks which ones were read.
pub(super) struct Fields<'v> {
    file: PathBuf,
    place: String,
    map: &'v Map<String, Value>,
    taken: BTreeSet<String>,
}

impl<'v> Fields<'v> {
    pub(super) fn new(file: &Path, place: &str, value: &'v Value) -> Result<Self, TopologyProblem> {
        let map = value.as_object().ok_or_else(|| TopologyProblem {
            file: file.into(),
            place: place.into(),
            value: short(value),
            message: "an object in braces is expected".into(),
        })?;
        Ok(Self {
            file: file.into(),
            place: place.into(),
            map,
            taken: BTreeSet::new(),
        })
    }

    /// A problem with one field.
    pub(super) fn problem(&self, field: &str, message: String) -> TopologyProblem {
        TopologyProblem {
            file: self.file.clone(),
            place: format!("{}, {field}", self.place),
            value: self.map.get(field).map(short).unwrap_or_default(),
            message,
        }
    }

    pub(super) fn peek(&self, field: &str) -> Option<&'v Value> {
        self.map.get(field)
    }

    pub(super) fn take(&mut self, field: &str) -> Option<&'v Value> {
        let value = self.map.get(field)?;
        self.taken.insert(field.into());
        Some(value)
    }

    pub(super) fn text(&mut self, field: &str) -> Result<Option<&'v str>, TopologyProblem> {
        let Some(value) = self.take(field) else {
            return Ok(None);
        };
        let text = value.as_str().filter(|text| !text.is_empty());
        let wrong = || self.problem(field, "a text in quotes is expected".into());
        text.map(Some).ok_or_else(wrong)
    }

    pub(super) fn needed(&mut self, field: &str, form: &str) -> Result<&'v str, TopologyProblem> {
        let missing = self.problem(field, format!("is missing; {form} is needed"));
        self.text(field)?.ok_or(missing)
    }

    /// One of several words.
    pub(super) fn word(
        &mut self,
        field: &str,
        words: &[&'static str],
    ) -> Result<Option<&'static str>, TopologyProblem> {
        let Some(text) = self.text(field)? else {
            return Ok(None);
        };
        let found = words.iter().find(|word| **word == text);
        let wrong = || {
            let list = words.join(", ");
            self.problem(field, format!("is not known; one of {list} is expected"))
        };
        found.map(|word| Some(*word)).ok_or_else(wrong)
    }

    /// A whole number within limits.
    pub(super) fn integer(
        &mut self,
        field: &str,
        least: u64,
        most: u64,
    ) -> Result<Option<u64>, TopologyProblem> {
        let Some(value) = self.take(field) else {
            return Ok(None);
        };
        let number = value.as_u64().filter(|n| (least..=most).contains(n));
        let form = format!("a whole number from {least} to {most} is expected");
        number.map(Some).ok_or_else(|| self.problem(field, form))
    }

    pub(super) fn signed(&mut self, field: &str) -> Result<Option<i64>, TopologyProblem> {
        let Some(value) = self.take(field) else {
            return Ok(None);
        };
        let wrong = || self.problem(field, "a whole number is expected".into());
        value.as_i64().map(Some).ok_or_else(wrong)
    }

    /// `true` or `false`, the default.
    pub(super) fn flag(&mut self, field: &str) -> Result<bool, TopologyProblem> {
        let Some(value) = self.take(field) else {
            return Ok(false);
        };
        let wrong = || self.problem(field, "true or false is expected".into());
        value.as_bool().ok_or_else(wrong)
    }

    pub(super) fn number(
        &mut self,
        field: &str,
        least: f64,
        most: f64,
    ) -> Result<Option<f64>, TopologyProblem> {
        let Some(value) = self.take(field) else {
            return Ok(None);
        };
        let number = value.as_f64().filter(|n| (least..=most).contains(n));
        let form = format!("a number from {least} to {most} is expected");
        number.map(Some).ok_or_else(|| self.problem(field, form))
    }

    pub(super) fn list(&mut self, field: &str) -> Result<&'v [Value], TopologyProblem> {
        match self.take(field) {
            None => Ok(&[]),
            Some(Value::Array(values)) => Ok(values),
            Some(_) => Err(self.problem(field, "a list in brackets is expected".into())),
        }
    }

    /// Fields that were not read.
    pub(super) fn unknown(&self, known: &[&str]) -> Vec<TopologyProblem> {
        let names = self.map.keys().filter(|name| !self.taken.contains(*name));
        names
            .map(|name| {
                if known.contains(&name.as_str()) {
                    self.problem(name, "means nothing here and is ignored".into())
                } else {
                    let hint = did_you_mean(name, known.iter().copied());
                    self.problem(
                        name,
                        format!("is no field of a topology and is ignored{hint}"),
                    )
                }
            })
            .collect()
    }
}

/// A value as in the file, shortened.
fn short(value: &Value) -> String {
    const CHARS: usize = 60;
    let text = value.to_string();
    match text.char_indices().nth(CHARS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}
