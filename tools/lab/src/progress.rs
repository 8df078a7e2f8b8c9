//! Progress display on standard error: one line that is overwritten on a terminal,
//! otherwise one line every ten seconds.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Pause between lines without a terminal.
const PAUSE: Duration = Duration::from_secs(10);
const BAR: usize = 24;

/// Progress of a run.
#[derive(Debug)]
pub struct Progress {
    begin: Instant,
    printed_at: Option<Instant>,
    total: f64,
    done: f64,
    is_terminal: bool,
}

impl Progress {
    /// For configurations with an estimated duration of `total` seconds.
    pub fn new(total: f64) -> Self {
        Self {
            begin: Instant::now(),
            printed_at: None,
            total: total.max(1e-3),
            done: 0.0,
            is_terminal: std::io::stderr().is_terminal(),
        }
    }

    /// Displays that `what` begins.
    pub fn begin(&mut self, what: &str) {
        let due = self
            .printed_at
            .is_none_or(|printed_at| printed_at.elapsed() >= PAUSE);
        if !(self.is_terminal || due) {
            return;
        }
        self.printed_at = Some(Instant::now());
        let share = (self.done / self.total).clamp(0.0, 1.0);
        let full = (share * BAR as f64) as usize;
        let bar = "#".repeat(full) + &"-".repeat(BAR - full);
        let left = time_text(self.left());
        let line = format!("[{bar}] {:3.0} %  {left} left  {what}", share * 100.0);
        // Standard error may be closed.
        let _ = if self.is_terminal {
            write!(std::io::stderr(), "\r\x1b[K{line}")
        } else {
            writeln!(std::io::stderr(), "{line}")
        };
    }

    /// Adds the estimated duration of what has ended.
    pub fn end(&mut self, seconds: f64) {
        self.done += seconds;
    }

    /// Clears the line at the end.
    pub fn close(&self) {
        if self.is_terminal {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }

    /// Remaining time by the estimates, corrected by their accuracy so far.
    fn left(&self) -> Duration {
        let left = self.total - self.done;
        // The first seconds have little weight.
        let weight = 10.0;
        let factor = (self.begin.elapsed().as_secs_f64() + weight) / (self.done + weight);
        Duration::from_secs_f64((left * factor).max(0.0))
    }
}

/// A duration as `1:02:03` or `2:03`.
pub fn time_text(time: Duration) -> String {
    let seconds = time.as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match hours {
        0 => format!("{minutes}:{seconds:02}"),
        _ => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}
