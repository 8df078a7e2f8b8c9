//! Findings of a check, each with its fix.

use pteros::log::escape_line;
use serde_json::{Value, json};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FindingSeverity {
    /// Correct.
    Ok,
    /// Information.
    Note,
    /// It works, but not well or not always.
    Warning,
    /// It does not work.
    Error,
}

impl FindingSeverity {
    fn label(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }

    fn coloured(self) -> &'static str {
        match self {
            Self::Ok => "\x1b[32mok     \x1b[0m",
            Self::Note => "note   ",
            Self::Warning => "\x1b[33mwarning\x1b[0m",
            Self::Error => "\x1b[31merror  \x1b[0m",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub area: &'static str,
    pub severity: FindingSeverity,
    pub text: String,
    pub fix: Option<String>,
}

impl Finding {
    pub fn json(&self) -> Value {
        json!({
            "area": self.area,
            "result": self.severity.label(),
            "text": self.text,
            "fix": self.fix,
        })
    }

    /// One line, and a second one for the fix.
    pub fn lines(&self) -> String {
        let mut lines = format!(
            "  {} {}\n",
            self.severity.coloured(),
            escape_line(&self.text)
        );
        if let Some(fix) = &self.fix {
            lines += &format!("          fix: {}\n", escape_line(fix));
        }
        lines
    }
}

/// The findings of one area, in order of detection.
pub struct Findings {
    area: &'static str,
    list: Vec<Finding>,
}

impl Findings {
    pub fn new(area: &'static str) -> Self {
        Self {
            area,
            list: Vec::new(),
        }
    }

    pub fn ok(&mut self, text: impl Into<String>) {
        self.add(FindingSeverity::Ok, text.into(), None);
    }

    pub fn note(&mut self, text: impl Into<String>) {
        self.add(FindingSeverity::Note, text.into(), None);
    }

    pub fn note_with(&mut self, text: impl Into<String>, fix: impl Into<String>) {
        self.add(FindingSeverity::Note, text.into(), Some(fix.into()));
    }

    pub fn warn(&mut self, text: impl Into<String>, fix: impl Into<String>) {
        self.add(FindingSeverity::Warning, text.into(), Some(fix.into()));
    }

    pub fn error(&mut self, text: impl Into<String>, fix: impl Into<String>) {
        self.add(FindingSeverity::Error, text.into(), Some(fix.into()));
    }

    pub fn into_list(self) -> Vec<Finding> {
        self.list
    }

    fn add(&mut self, weight: FindingSeverity, text: String, fix: Option<String>) {
        self.list.push(Finding {
            area: self.area,
            severity: weight,
            text,
            fix,
        });
    }
}
