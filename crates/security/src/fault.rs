//! What is wrong with one file of a keystore, said so that whoever reads it
//! can mend the file: which file and line, which field, what it holds, why
//! that is no good and what to do.

use std::fmt;

/// One thing wrong with one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The file, or for what a peer sent: which peer.
    pub file: Box<str>,
    /// Line from 1, where the file has lines.
    pub line: Option<u32>,
    /// The field or element.
    pub field: Box<str>,
    /// What the field holds, shortened; empty where there is nothing to show.
    pub value: Box<str>,
    /// Why that is no good.
    pub reason: Box<str>,
    /// What to do about it.
    pub remedy: Box<str>,
}

impl Fault {
    /// A fault of the whole field, without a line.
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

impl fmt::Display for Fault {
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

impl std::error::Error for Fault {}

/// The first characters, without what a terminal would act upon: what a peer
/// sent ends up in logs.
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

/// Of a value that is shown: enough to recognise a topic or a subject.
const VALUE_CHARACTERS: usize = 120;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_names_file_line_field_value_reason_and_remedy() {
        let fault = Fault::new("a.xml", "default", "MAYBE", "no such word", "write DENY");
        assert_eq!(
            fault.at_line(7).to_string(),
            "a.xml:7: default 'MAYBE': no such word; write DENY"
        );
        let long = Fault::new("a", "b", "x\u{1b}[2J".repeat(99), "c", "d");
        assert!(long.value.chars().count() == VALUE_CHARACTERS + 1);
        assert!(!long.value.contains('\u{1b}'));
    }
}
