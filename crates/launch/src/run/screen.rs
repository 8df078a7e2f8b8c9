//! Lines on the launcher's own output: `[talker-1] Hello`, each process in a colour
//! of its own, or as JSON.
//!
//! A reader that goes away (`| head`) does not stop the robot: what would have been
//! written is dropped.

use std::io::{self, Write};

use anstyle::{AnsiColor, Reset, Style};
use serde_json::{Value, json};

use crate::plan::Level;

/// How lines are written.
#[derive(Clone, Copy, Debug, Default)]
pub struct ScreenOptions {
    /// In colours.
    pub colour: bool,
    /// A JSON object per line.
    pub json: bool,
    /// Lines for whoever looks for a fault, too.
    pub debug: bool,
}

/// See the module.
pub struct Screen {
    options: ScreenOptions,
    writer: Box<dyn Write>,
    is_broken: bool,
    buffer: Vec<u8>,
}

/// Colours of processes, in turn; red and yellow mean something else.
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
    /// Onto `writer`, which is flushed after each turn of the launcher.
    pub fn new(options: ScreenOptions, writer: Box<dyn Write>) -> Self {
        Self {
            options,
            writer,
            is_broken: false,
            buffer: Vec::new(),
        }
    }

    /// How lines are written.
    pub fn options(&self) -> ScreenOptions {
        self.options
    }

    /// A line that a process has written.
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

    /// A line of the launcher's own; `name` is the process that it is about.
    pub fn say(&mut self, level: Level, name: Option<&str>, text: &str) {
        if level == Level::Debug && !self.options.debug {
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
            Level::Error => self.colour(AnsiColor::Red),
            Level::Warning => self.colour(AnsiColor::Yellow),
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
        // Writing to memory cannot fail.
        let _ = match style {
            Some(style) => write!(self.buffer, "{style}{text}{Reset}"),
            None => write!(self.buffer, "{text}"),
        };
    }

    /// One object, as a line.
    pub fn json(&mut self, value: &Value) {
        self.buffer.extend_from_slice(value.to_string().as_bytes());
        self.buffer.push(b'\n');
    }

    /// Text as it is.
    pub fn raw(&mut self, text: &str) {
        self.buffer.extend_from_slice(text.as_bytes());
    }

    /// Hands everything on.
    pub fn flush(&mut self) {
        if self.buffer.is_empty() {
            return;
        }
        if !self.is_broken {
            let written = self.writer.write_all(&self.buffer);
            let written = written.and_then(|()| self.writer.flush());
            self.is_broken =
                written.is_err_and(|e: io::Error| e.kind() == io::ErrorKind::BrokenPipe);
        }
        self.buffer.clear();
    }
}
