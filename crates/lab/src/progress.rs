//! How far a run is and how long it will take, on standard error: one line that
//! is written over on a terminal, one every ten seconds elsewhere.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Between two lines where nothing can be written over.
const PAUSE: Duration = Duration::from_secs(10);
const BAR: usize = 24;

/// Told before each repeat of a cell.
#[derive(Debug)]
pub struct Progress {
    begin: Instant,
    said: Option<Instant>,
    total: f64,
    done: f64,
    is_terminal: bool,
}

impl Progress {
    /// For cells that will take `total` seconds by their own estimate.
    pub fn new(total: f64) -> Self {
        Self {
            begin: Instant::now(),
            said: None,
            total: total.max(1e-3),
            done: 0.0,
            is_terminal: std::io::stderr().is_terminal(),
        }
    }

    /// `what` begins.
    pub fn begin(&mut self, what: &str) {
        let due = self.said.is_none_or(|said| said.elapsed() >= PAUSE);
        if !(self.is_terminal || due) {
            return;
        }
        self.said = Some(Instant::now());
        let share = (self.done / self.total).clamp(0.0, 1.0);
        let full = (share * BAR as f64) as usize;
        let bar = "#".repeat(full) + &"-".repeat(BAR - full);
        let left = time_text(self.left());
        let line = format!("[{bar}] {:3.0} %  {left} left  {what}", share * 100.0);
        // Nobody is left to tell if standard error is closed.
        let _ = match self.is_terminal {
            true => write!(std::io::stderr(), "\r\x1b[K{line}"),
            false => writeln!(std::io::stderr(), "{line}"),
        };
    }

    /// What began, with that estimate, is over.
    pub fn end(&mut self, seconds: f64) {
        self.done += seconds;
    }

    /// Nothing begins any more.
    pub fn close(&self) {
        if self.is_terminal {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }

    /// By the estimates, corrected by how good they were so far.
    fn left(&self) -> Duration {
        let left = self.total - self.done;
        // A few seconds say little about all of it.
        let weight = 10.0;
        let factor = (self.begin.elapsed().as_secs_f64() + weight) / (self.done + weight);
        Duration::from_secs_f64((left * factor).max(0.0))
    }
}

/// `1:02:03` or `2:03`.
pub fn time_text(time: Duration) -> String {
    let seconds = time.as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match hours {
        0 => format!("{minutes}:{seconds:02}"),
        _ => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}
