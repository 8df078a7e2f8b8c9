//! Console output of `pteros-lab`: results on standard output, notes and errors on
//! standard error.
//!
//! Every write of a result can fail when the reader closes the pipe (`| head`).
//! Such an error goes up to the program's end, which is quiet. Colour codes are
//! always written; `anstream` removes them if the output is not a terminal.

use serde_json::{Value, json};
use std::io::{self, Write};
use std::process::ExitCode;

/// The output streams and the requested format.
#[derive(Clone, Copy, Debug)]
pub struct Console {
    /// Whether `--json` was given.
    pub json: bool,
}

impl Console {
    /// Writes one line, or several if `text` contains line breaks.
    pub fn line(self, text: impl AsRef<str>) -> io::Result<()> {
        self.text(&format!("{}\n", text.as_ref()))
    }

    /// Writes `text` unchanged and flushes.
    pub fn text(self, text: &str) -> io::Result<()> {
        let mut stdout = anstream::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        stdout.flush()
    }

    /// Writes a complete result as indented JSON.
    pub fn json(self, value: &Value) -> io::Result<()> {
        self.line(format!("{value:#}"))
    }

    /// Writes a note. It is not part of the result.
    pub fn note(self, text: impl AsRef<str>) {
        // A closed standard error must not stop the verb.
        let _ = writeln!(anstream::stderr().lock(), "{}", text.as_ref());
    }

    /// Writes an error in the requested format, and returns the exit code.
    pub fn error(self, text: &str, code: u8) -> ExitCode {
        let text = text.trim();
        self.note(if self.json {
            json!({ "error": text }).to_string()
        } else {
            format!("\x1b[1;31merror:\x1b[0m {text}")
        });
        ExitCode::from(code)
    }
}
