//! What a check found, and what mends it.

use serde_json::{Value, json};

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// As it should be.
    Fine,
    /// Good to know.
    Note,
    /// Works, but not as well as it could, or not always.
    Warning,
    /// Does not work.
    Error,
}

impl Weight {
    fn word(self) -> &'static str {
        match self {
            Self::Fine => "ok",
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }

    fn coloured(self) -> &'static str {
        match self {
            Self::Fine => "\x1b[32mok     \x1b[0m",
            Self::Note => "note   ",
            Self::Warning => "\x1b[33mwarning\x1b[0m",
            Self::Error => "\x1b[31merror  \x1b[0m",
        }
    }
}

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub area: &'static str,
    pub weight: Weight,
    pub text: String,
    pub fix: Option<String>,
}

impl Finding {
    pub fn json(&self) -> Value {
        json!({
            "area": self.area,
            "result": self.weight.word(),
            "text": self.text,
            "fix": self.fix,
        })
    }

    /// A line, and one more for what mends it.
    pub fn lines(&self) -> String {
        let mut lines = format!("  {} {}\n", self.weight.coloured(), self.text);
        if let Some(fix) = &self.fix {
            lines += &format!("          fix: {fix}\n");
        }
        lines
    }
}

/// The findings of one area, in the order in which they were made.
pub struct Findings {
    area: &'static str,
    found: Vec<Finding>,
}

impl Findings {
    pub fn new(area: &'static str) -> Self {
        Self {
            area,
            found: Vec::new(),
        }
    }

    pub fn fine(&mut self, text: impl Into<String>) {
        self.add(Weight::Fine, text.into(), None);
    }

    pub fn note(&mut self, text: impl Into<String>) {
        self.add(Weight::Note, text.into(), None);
    }

    pub fn note_with(&mut self, text: impl Into<String>, fix: impl Into<String>) {
        self.add(Weight::Note, text.into(), Some(fix.into()));
    }

    pub fn warn(&mut self, text: impl Into<String>, fix: impl Into<String>) {
        self.add(Weight::Warning, text.into(), Some(fix.into()));
    }

    pub fn error(&mut self, text: impl Into<String>, fix: impl Into<String>) {
        self.add(Weight::Error, text.into(), Some(fix.into()));
    }

    pub fn into_list(self) -> Vec<Finding> {
        self.found
    }

    fn add(&mut self, weight: Weight, text: String, fix: Option<String>) {
        self.found.push(Finding {
            area: self.area,
            weight,
            text,
            fix,
        });
    }
}
