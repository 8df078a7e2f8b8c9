//! The progress line of `bag play`, on standard error: in a terminal it is drawn again
//! and again, elsewhere each is a line.

use super::selection::seconds;
use pteros_bag::PlaybackProgress;
use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

/// Moves to the start of the line and clears it.
const CLEAR_LINE: &str = "\r\x1b[K";

/// A progress line, until it is dropped. Then it is cleared.
pub struct ProgressLine {
    /// Time between two lines; `None` shows none.
    period: Option<Duration>,
    next: Option<Instant>,
    is_terminal: bool,
    is_shown: bool,
    /// Empty lines above it in a terminal.
    separation_lines: u16,
}

impl ProgressLine {
    /// A line that is updated so many times per second: never with 0, and each time it is
    /// shown with a negative number. In a terminal it has empty lines above.
    pub fn new(rate: i32, separation_lines: u16) -> Self {
        let period = match u32::try_from(rate) {
            Ok(0) => None,
            Ok(rate) => Some(Duration::from_secs(1) / rate),
            Err(_) => Some(Duration::ZERO),
        };
        Self {
            period,
            next: None,
            is_terminal: stderr().is_terminal(),
            is_shown: false,
            separation_lines,
        }
    }

    /// Shows the progress if the next line is due.
    pub fn show(&mut self, now: Instant, progress: impl FnOnce() -> PlaybackProgress) {
        let Some(period) = self.period else {
            return;
        };
        if self.next.is_some_and(|next| now < next) {
            return;
        }
        self.next = Some(now + period);
        let text = text_of(&progress());
        let line = if self.is_shown {
            format!("{CLEAR_LINE}{text}")
        } else if self.is_terminal {
            let space = "\n".repeat(self.separation_lines.into());
            format!("{CLEAR_LINE}{space}{text}")
        } else {
            format!("{text}\n")
        };
        self.is_shown = self.is_terminal;
        write(&line);
    }

    /// Makes room for another line.
    pub fn clear(&mut self) {
        if !std::mem::take(&mut self.is_shown) {
            return;
        }
        match self.separation_lines {
            0 => write(CLEAR_LINE),
            // Up to where it began, and clear to the end of the screen.
            lines => write(&format!("\r\x1b[{lines}A\x1b[J")),
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.clear();
    }
}

fn write(text: &str) {
    let mut stream = anstream::stderr().lock();
    // A closed standard error must not stop playback.
    let written = stream.write_all(text.as_bytes());
    let _ = written.and_then(|()| stream.flush());
}

/// The time of the bag, and how much of it has been played, as `ros2 bag play` shows it.
fn text_of(progress: &PlaybackProgress) -> String {
    let played = progress.time.saturating_sub(progress.start);
    let all = progress.end.saturating_sub(progress.start);
    let short = |nanos: u64| format!("{:.2}", Duration::from_nanos(nanos).as_secs_f64());
    let state = if progress.is_paused { 'P' } else { 'R' };
    format!(
        "[{}] Duration {}/{} [{state}]",
        seconds(progress.time),
        short(played),
        short(all)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_has_the_time_and_the_part_that_was_played() {
        let progress = PlaybackProgress {
            time: 1_700_000_001_500_000_000,
            start: 1_700_000_000_000_000_000,
            end: 1_700_000_004_000_000_000,
            is_paused: false,
        };
        assert_eq!(
            text_of(&progress),
            "[1700000001.500000000] Duration 1.50/4.00 [R]"
        );
    }

    #[test]
    fn lines_are_due_at_the_rate() {
        let progress = PlaybackProgress::default;
        let start = Instant::now();
        let after = |millis| start + Duration::from_millis(millis);
        let shown = |rate: i32| {
            let mut line = ProgressLine::new(rate, 0);
            line.is_terminal = false;
            let asked = std::cell::Cell::new(0);
            for at in [0, 10, 240, 260, 270, 499, 510] {
                line.show(after(at), || {
                    asked.set(asked.get() + 1);
                    progress()
                });
            }
            asked.get()
        };
        assert_eq!([shown(0), shown(4), shown(-1)], [0, 3, 7]);
    }
}
