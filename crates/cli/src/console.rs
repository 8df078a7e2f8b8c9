//! Where answers go: lines and JSON on standard output, remarks on standard
//! error.
//!
//! Every write may fail because the reader went away (`| head`). Such an error
//! travels up to `main`, which ends quietly; nothing here panics. Colour is
//! written freely and taken out by `anstream` where there is no terminal or
//! `NO_COLOR` is set.

use serde_json::{Value, json};
use std::io::{self, IsTerminal, Write};

/// The two output streams and the form the user asked for.
#[derive(Clone, Copy, Debug)]
pub struct Console {
    /// Whether `--json` was given.
    pub json: bool,
}

impl Console {
    /// Writes one line, or several if `text` holds line breaks.
    pub fn line(self, text: impl AsRef<str>) -> io::Result<()> {
        let mut text = text.as_ref().to_string();
        text.push('\n');
        self.text(&text)
    }

    /// Writes `text` as it is and hands it to the system at once.
    pub fn text(self, text: &str) -> io::Result<()> {
        let mut stdout = anstream::stdout().lock();
        let written = stdout.write_all(text.as_bytes());
        written.and_then(|()| stdout.flush()).map_err(|error| {
            // The kind stays, since `main` looks at it.
            io::Error::new(error.kind(), format!("writing to standard output: {error}"))
        })
    }

    /// Writes a complete answer as indented JSON.
    pub fn json(self, value: &Value) -> io::Result<()> {
        self.line(format!("{value:#}"))
    }

    /// Writes names, a line each, or only how many there are.
    pub fn names(self, names: &[String], only_count: bool) -> io::Result<()> {
        match (self.json, only_count) {
            (true, true) => self.json(&json!({ "count": names.len() })),
            (true, false) => self.json(&json!(names)),
            (false, true) => self.line(names.len().to_string()),
            (false, false) => names.iter().try_for_each(|name| self.line(name)),
        }
    }

    /// Writes one element of a stream of answers as a line of JSON.
    pub fn json_line(self, value: &Value) -> io::Result<()> {
        self.line(value.to_string())
    }

    /// Writes a remark that is not part of the answer.
    pub fn remark(self, text: impl AsRef<str>) {
        // A closed standard error must not stop the answer.
        let _ = writeln!(anstream::stderr().lock(), "{}", text.as_ref());
    }

    /// Whether standard output is a terminal that can be drawn over.
    pub fn is_terminal(self) -> bool {
        !self.json
            && io::stdout().is_terminal()
            && std::env::var_os("TERM").is_none_or(|t| t != "dumb")
    }
}
