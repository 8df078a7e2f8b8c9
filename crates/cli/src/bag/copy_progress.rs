//! The progress of a long copy or check, on standard error: in a terminal one line that is
//! drawn again and again, elsewhere a line every ten seconds.

use pteros_bag::{BagMessage, BagReader};
use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

/// Moves to the start of the line and clears it.
const CLEAR_LINE: &str = "\r\x1b[K";
/// Shorter work shows no progress.
const FIRST: Duration = Duration::from_secs(1);
/// Time between two lines in a terminal.
const TERMINAL_PERIOD: Duration = Duration::from_millis(200);
/// The same elsewhere.
const PERIOD: Duration = Duration::from_secs(10);
/// Messages between two looks at the clock.
const STRIDE: u64 = 64;

/// A progress line, until it is dropped. Then it is cleared.
pub struct CopyProgress {
    /// Log times of the first and the last message.
    span: (u64, u64),
    count: u64,
    next: Instant,
    is_terminal: bool,
    is_shown: bool,
}

impl CopyProgress {
    /// Of a bag that is read from its start.
    pub fn new(bag: &BagReader) -> Self {
        let is_terminal = stderr().is_terminal();
        let first = if is_terminal { FIRST } else { PERIOD };
        Self {
            span: bag.span().unwrap_or_default(),
            count: 0,
            next: Instant::now() + first,
            is_terminal,
            is_shown: false,
        }
    }

    /// Counts a message, and shows the progress if the next line is due.
    pub fn count(&mut self, message: &BagMessage) {
        self.count += 1;
        if self.count.is_multiple_of(STRIDE)
            && let Some(line) = self.line(Instant::now(), message.log_time)
        {
            let text = if self.is_terminal {
                format!("{CLEAR_LINE}{line}")
            } else {
                format!("{line}\n")
            };
            self.is_shown = self.is_terminal;
            write(&text);
        }
    }

    /// The line, if it is due.
    fn line(&mut self, now: Instant, time: u64) -> Option<String> {
        if now < self.next {
            return None;
        }
        self.next = now
            + if self.is_terminal {
                TERMINAL_PERIOD
            } else {
                PERIOD
            };
        let (start, end) = self.span;
        let part = time.saturating_sub(start) as f64 / end.saturating_sub(start).max(1) as f64;
        let percent = (part * 100.0).min(100.0);
        Some(format!("{percent:.0} %, {} messages", self.count))
    }
}

impl Drop for CopyProgress {
    fn drop(&mut self) {
        if self.is_shown {
            write(CLEAR_LINE);
        }
    }
}

fn write(text: &str) {
    let mut stream = anstream::stderr().lock();
    // A closed standard error must not stop the work.
    let written = stream.write_all(text.as_bytes());
    let _ = written.and_then(|()| stream.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_due_after_a_second_and_has_the_part_of_the_time() {
        let start = Instant::now();
        let after = |millis| start + Duration::from_millis(millis);
        let mut progress = CopyProgress {
            span: (1000, 3000),
            count: 70,
            next: after(1000),
            is_terminal: true,
            is_shown: false,
        };
        assert_eq!(progress.line(after(999), 1500), None);
        let line = progress.line(after(1000), 1500);
        assert_eq!(line.as_deref(), Some("25 %, 70 messages"));
        assert_eq!(progress.line(after(1199), 2000), None);
        let line = progress.line(after(1200), 3000);
        assert_eq!(line.as_deref(), Some("100 %, 70 messages"));
    }
}
