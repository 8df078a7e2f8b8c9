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
    /// A line at the bottom that says how all are; for terminals.
    pub status: bool,
}

/// See the module.
pub struct Screen {
    options: ScreenOptions,
    writer: Box<dyn Write>,
    is_broken: bool,
    buffer: Vec<u8>,
    /// The line at the bottom, as it is to be and as it is.
    status: String,
    shown: String,
}

/// The longest line at the bottom: it must not be broken, else it cannot be wiped.
const STATUS_LETTERS_MAX: usize = 79;

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
            status: String::new(),
            shown: String::new(),
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

    /// What the line at the bottom says from the next flush on; nothing takes it away.
    pub fn status(&mut self, text: &str) {
        if self.options.status {
            self.status = text.chars().take(STATUS_LETTERS_MAX).collect();
        }
    }

    /// Hands everything on.
    pub fn flush(&mut self) {
        if self.buffer.is_empty() && self.status == self.shown {
            return;
        }
        if self.options.status {
            // Wipe the line, write what is new, and the line again below it.
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
    struct Paper(Arc<Mutex<Vec<u8>>>);

    impl Write for Paper {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Paper {
        fn take(&self) -> String {
            String::from_utf8(std::mem::take(&mut self.0.lock().unwrap())).unwrap()
        }
    }

    #[test]
    fn the_line_at_the_bottom_stays_below_what_is_written() {
        let paper = Paper::default();
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
    fn colours_name_the_process_and_json_has_a_line_each() {
        let paper = Paper::default();
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
        screen.say(Level::Debug, None, "not without debug");
        screen.flush();
        let line: Value = serde_json::from_str(&paper.take()).unwrap();
        let expected =
            json!({ "event": "output", "process": "b-2", "stream": "stderr", "text": "say \"x\"" });
        assert_eq!(line, expected);
    }
}
