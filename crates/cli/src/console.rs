//! Console output: results as lines or JSON on standard output, notes on standard
//! error.
//!
//! Every write can fail when the reader closes the pipe (`| head`). Such an error
//! goes up to `main`, which exits quietly. Colour codes are always written;
//! `anstream` removes them if the output is not a terminal or `NO_COLOR` is set.

use pteros::log::{escape_json, escape_line, escape_lines, escape_row};
use serde_json::{Value, json};
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// The output streams and the requested format.
#[derive(Clone, Copy, Debug)]
pub struct Console {
    /// Whether `--json` was given.
    pub json: bool,
}

impl Console {
    /// Writes exactly one line: line breaks, control and invisible characters in names
    /// are escaped. For every line with names from outside.
    pub fn row(self, text: impl AsRef<str>) -> io::Result<()> {
        self.styled(&format!("{}\n", escape_row(text.as_ref())))
    }

    /// Writes one line, or several if `text` contains line breaks.
    pub fn line(self, text: impl AsRef<str>) -> io::Result<()> {
        let mut text = text.as_ref().to_string();
        text.push('\n');
        self.text(&text)
    }

    /// Writes `text` and flushes. It escapes data of peers: control
    /// characters other than line feeds and tabs, and bidirectional controls.
    pub fn text(self, text: &str) -> io::Result<()> {
        self.styled(&escape_lines(text))
    }

    /// Writes `text` with colours or cursor movements of ours and flushes. The
    /// caller has escaped what comes from peers.
    pub fn styled(self, text: &str) -> io::Result<()> {
        let mut stdout = anstream::stdout().lock();
        let written = stdout.write_all(text.as_bytes());
        written.and_then(|()| stdout.flush()).map_err(|error| {
            // `main` checks the error kind.
            io::Error::new(error.kind(), format!("writing to standard output: {error}"))
        })
    }

    /// Writes a complete result as indented JSON.
    pub fn json(self, value: &Value) -> io::Result<()> {
        self.styled(&format!("{}\n", escape_json(&format!("{value:#}"))))
    }

    /// Writes what a verb does, which is not its result. A full disk behind standard
    /// output does not end the verb: one note reports it. A closed pipe does.
    pub fn progress(self, written: io::Result<()>) -> io::Result<()> {
        static IS_REPORTED: AtomicBool = AtomicBool::new(false);
        match written {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                if !IS_REPORTED.swap(true, Ordering::Relaxed) {
                    self.note(format!("{error}; going on without this output"));
                }
                Ok(())
            }
            written => written,
        }
    }

    /// Writes names, one per line, or only their number.
    pub fn names(self, names: &[String], only_count: bool) -> io::Result<()> {
        match (self.json, only_count) {
            (true, true) => self.json(&json!({ "count": names.len() })),
            (true, false) => self.json(&json!(names)),
            (false, true) => self.line(names.len().to_string()),
            (false, false) => names
                .iter()
                .try_for_each(|name| self.line(escape_line(name))),
        }
    }

    /// Writes names with their types, one per line, or only their number. The text
    /// has the types if `show_types`.
    pub fn typed_names<'a>(
        self,
        rows: impl Iterator<Item = (&'a str, &'a [String])>,
        show_types: bool,
        only_count: bool,
    ) -> io::Result<()> {
        if self.json && !only_count {
            let row = |(name, types)| json!({ "name": name, "types": types });
            return self.json(&rows.map(row).collect::<Value>());
        }
        let shown = |(name, types): (&str, &[String])| {
            if show_types {
                format!("{name} [{}]", types.join(", "))
            } else {
                name.to_owned()
            }
        };
        self.names(&rows.map(shown).collect::<Vec<_>>(), only_count)
    }

    /// Writes one element of a continuous result as a line of JSON.
    pub fn json_line(self, value: &Value) -> io::Result<()> {
        self.styled(&format!("{}\n", escape_json(&value.to_string())))
    }

    /// Writes a note to standard error. It is not part of the result.
    pub fn note(self, text: impl AsRef<str>) {
        // A closed standard error must not stop the verb.
        let _ = writeln!(anstream::stderr().lock(), "{}", escape_lines(text.as_ref()));
    }

    /// As [`note`](Self::note), exactly one line, as [`row`](Self::row) writes it.
    pub fn note_row(self, text: impl AsRef<str>) {
        self.note(escape_row(text.as_ref()));
    }

    /// Whether standard output is a terminal that supports redrawing.
    pub fn is_terminal(self) -> bool {
        !self.json
            && io::stdout().is_terminal()
            && std::env::var_os("TERM").is_none_or(|t| t != "dumb")
    }
}
