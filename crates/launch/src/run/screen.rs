//! Console output of a launch: `[talker-1] Hello`, each process in its own colour,
//! or JSON.
//!
//! A closed pipe (`| head`) does not stop the launch. The lines are dropped.

use std::io::{self, Write};

use anstyle::{AnsiColor, Reset, Style};
use serde_json::{Value, json};

use crate::plan::LogLevel;

/// Format of the console output.
#[derive(Clone, Copy, Debug, Default)]
pub struct ScreenOptions {
    /// Whether names of processes and levels have ANSI colours.
    pub colour: bool,
    /// One JSON object per line.
    pub json: bool,
    /// Debug lines too.
    pub debug: bool,
    /// A status line at the bottom, for terminals.
    pub status: bool,
}

/// Console output of a launch; see the module.
pub struct Screen {
    options: ScreenOptions,
    writer: Box<dyn Write>,
    is_broken: bool,
    buffer: Vec<u8>,
    /// The status line to show, and the one that is shown.
    status: String,
    shown: String,
}

/// Largest length of the status line. A wrapped line could not be erased.
const STATUS_CHARACTERS_MAX: usize = 79;

/// Colours of processes, used in rotation. Red and yellow mark errors and warnings.
const COLOURS: [AnsiColor; 8] = [
    AnsiColor::Cyan,
    AnsiColor::Green,
    AnsiColor::Magenta,
    AnsiColor::Blue,
    AnsiColor::BrightCyan,
    AnsiColor::BrightGreen,
    AnsiColor::BrightMagenta,
    AnsiColor::BrightBlue,
];

impl Screen {
    /// Output to `writer`, which is flushed after each round of the supervisor.
    pub fn new(options: ScreenOptions, writer: Box<dyn Write>) -> Self {
        Self {
            options,
            writer,
            is_broken: false,
            buffer: Vec::new(),
            status: String::new(),
            shown: String::new(),
        }
    }

    /// Writes a line of process output.
    pub fn output(&mut self, task: usize, name: &str, stream: &str, text: &[u8]) {
        if self.options.json {
            let text = String::from_utf8_lossy(text);
            return self.json(&json!({
                "event": "output",
                "process": name,
                "stream": stream,
                "text": text,
            }));
        }
        let colour = self.colour(COLOURS[task % COLOURS.len()]);
        self.start(colour, &format!("[{name}]"));
        self.buffer.push(b' ');
        self.buffer.extend_from_slice(text);
        self.buffer.push(b'\n');
    }

    /// Writes a log line of the launcher; `name` is the process that it is about.
    pub fn log(&mut self, level: LogLevel, name: Option<&str>, text: &str) {
        if level == LogLevel::Debug && !self.options.debug {
            return;
        }
        if self.options.json {
            return self.json(&json!({
                "event": "log",
                "level": level.label(),
                "process": name,
                "text": text,
            }));
        }
        let colour = match level {
            LogLevel::Error => self.colour(AnsiColor::Red),
            LogLevel::Warning => self.colour(AnsiColor::Yellow),
            _ => None,
        };
        let name = name.unwrap_or("launch");
        self.start(colour, &format!("[{}] [{name}]:", level.label()));
        self.buffer.push(b' ');
        self.buffer.extend_from_slice(text.as_bytes());
        self.buffer.push(b'\n');
    }

    fn colour(&self, colour: AnsiColor) -> Option<Style> {
        self.options
            .colour
            .then(|| Style::new().fg_color(Some(colour.into())))
    }

    fn start(&mut self, style: Option<Style>, text: &str) {
        // A write to memory cannot fail.
        let _ = match style {
            Some(style) => write!(self.buffer, "{style}{text}{Reset}"),
            None => write!(self.buffer, "{text}"),
        };
    }

    /// Writes one object as a line.
    pub fn json(&mut self, value: &Value) {
        self.buffer.extend_from_slice(value.to_string().as_bytes());
        self.buffer.push(b'\n');
    }

    /// Sets the status line, shown from the next flush on until it is replaced.
    pub fn status(&mut self, text: &str) {
        if self.options.status {
            self.status = text.chars().take(STATUS_CHARACTERS_MAX).collect();
        }
    }

    /// Writes the buffered lines and redraws the status line.
    pub fn flush(&mut self) {
        if self.buffer.is_empty() && self.status == self.shown {
            return;
        }
        if self.options.status {
            // Erase the status line, write the new lines, and draw the status line
            // below them.
            self.buffer.splice(0..0, *b"\r\x1b[K");
            self.buffer.extend_from_slice(self.status.as_bytes());
            self.shown.clone_from(&self.status);
        }
        if !self.is_broken {
            let written = self.writer.write_all(&self.buffer);
            let written = written.and_then(|()| self.writer.flush());
            self.is_broken =
                written.is_err_and(|error: io::Error| error.kind() == io::ErrorKind::BrokenPipe);
        }
        self.buffer.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct SharedBuffer(Arc<Mutex<Vec<u8>>>);

    impl Write for SharedBuffer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl SharedBuffer {
        fn take(&self) -> String {
            String::from_utf8(std::mem::take(&mut self.0.lock().unwrap())).unwrap()
        }
    }

    #[test]
    fn the_status_line_stays_below_the_output() {
        let paper = SharedBuffer::default();
        let options = ScreenOptions {
            status: true,
            ..ScreenOptions::default()
        };
        let mut screen = Screen::new(options, Box::new(paper.clone()));
        screen.status("2 running");
        screen.flush();
        assert_eq!(paper.take(), "\r\x1b[K2 running");
        screen.output(0, "a-1", "stdout", b"hello");
        screen.flush();
        assert_eq!(paper.take(), "\r\x1b[K[a-1] hello\n2 running");
        screen.flush();
        assert_eq!(paper.take(), "", "nothing is new");
        screen.status("");
        screen.flush();
        assert_eq!(paper.take(), "\r\x1b[K");
    }

    #[test]
    fn colours_mark_processes_and_json_has_one_object_per_line() {
        let paper = SharedBuffer::default();
        let coloured = ScreenOptions {
            colour: true,
            ..ScreenOptions::default()
        };
        let mut screen = Screen::new(coloured, Box::new(paper.clone()));
        screen.output(1, "b-2", "stdout", b"hello");
        screen.flush();
        assert_eq!(paper.take(), "\x1b[32m[b-2]\x1b[0m hello\n");
        let json = ScreenOptions {
            json: true,
            ..ScreenOptions::default()
        };
        let mut screen = Screen::new(json, Box::new(paper.clone()));
        screen.output(1, "b-2", "stderr", b"say \"x\"");
        screen.log(LogLevel::Debug, None, "not without debug");
        screen.flush();
        let line: Value = serde_json::from_str(&paper.take()).unwrap();
        let expected =
            json!({ "event": "output", "process": "b-2", "stream": "stderr", "text": "say \"x\"" });
        assert_eq!(line, expected);
    }
}
