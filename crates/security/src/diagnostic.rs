//! Diagnostic: one problem in one file of a keystore, for the operator who repairs
//! it: file and line, field, value, reason and remedy.

use std::fmt;

/// One problem in one file.
#[derive(Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// The file; for a peer's data, the peer.
    pub file: Box<str>,
    /// Line from 1, where the file has lines.
    pub line: Option<u32>,
    /// The field or element.
    pub field: Box<str>,
    /// The field's value, shortened; empty if there is none to show.
    pub value: Box<str>,
    /// Why the value is wrong.
    pub reason: Box<str>,
    /// How to repair it.
    pub remedy: Box<str>,
}

// The plain text: what `main` prints of a returned error.
impl fmt::Debug for Diagnostic {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl Diagnostic {
    /// A diagnostic of the whole field, without a line.
    pub fn new(
        file: impl Into<String>,
        field: impl Into<String>,
        value: impl AsRef<str>,
        reason: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            file: file.into().into_boxed_str(),
            line: None,
            field: field.into().into_boxed_str(),
            value: shortened(value.as_ref()).into_boxed_str(),
            reason: reason.into().into_boxed_str(),
            remedy: remedy.into().into_boxed_str(),
        }
    }

    /// The same, at this line.
    pub fn at_line(mut self, line: u32) -> Self {
        self.line = Some(line);
        self
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}", self.field)?;
        if !self.value.is_empty() {
            write!(f, " '{}'", self.value)?;
        }
        write!(f, ": {}; {}", self.reason, self.remedy)
    }
}

impl std::error::Error for Diagnostic {}

/// The first characters, without terminal control characters: data of a peer gets
/// into logs.
fn shortened(value: &str) -> String {
    let mut shown: String = value
        .chars()
        .take(VALUE_CHARACTERS)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if value.chars().nth(VALUE_CHARACTERS).is_some() {
        shown.push('…');
    }
    shown
}

/// Limit of a shown value: enough to recognise a topic or a subject.
const VALUE_CHARACTERS: usize = 120;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diagnostic_names_file_line_field_value_reason_and_remedy() {
        let fault = Diagnostic::new("a.xml", "default", "MAYBE", "no such word", "write DENY");
        assert_eq!(
            fault.at_line(7).to_string(),
            "a.xml:7: default 'MAYBE': no such word; write DENY"
        );
        let long = Diagnostic::new("a", "b", "x\u{1b}[2J".repeat(99), "c", "d");
        assert!(long.value.chars().count() == VALUE_CHARACTERS + 1);
        assert!(!long.value.contains('\u{1b}'));
    }
}
