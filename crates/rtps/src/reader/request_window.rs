//! The window of numbers that one ACKNACK may request. A reader that requests more
//! samples than its reassembly and its reorder buffer can hold lets the writer send
//! them in vain. So the window shrinks to what was held when a sample was refused,
//! and grows with progress, as a congestion window does in TCP.

use crate::wire::SequenceSet;

/// The numbers that one ACKNACK can name.
const NUMBERS_MAX: i64 = SequenceSet::SPAN_MAX as i64;

/// The smallest window: the default number of partial samples. Within it requests need
/// not wait for each other.
const NUMBERS_MIN: i64 = 8;
/// After progress without a refusal, the window grows by this part of it.
const GROWTH_DIVISOR: i64 = 4;

/// The window of one writer's numbers, counted from the first missing one.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestWindow {
    numbers: i64,
    was_refused: bool,
}

impl RequestWindow {
    /// All numbers that an ACKNACK can name.
    pub const FULL: Self = Self {
        numbers: NUMBERS_MAX,
        was_refused: false,
    };

    /// Notes that a sample or a fragment was refused for lack of space, while `held`
    /// samples of the writer waited for earlier ones or for their other fragments.
    pub fn note_refused(&mut self, held: usize) {
        let held = i64::try_from(held).unwrap_or(i64::MAX);
        self.numbers = self.numbers.min(held.max(NUMBERS_MIN));
        self.was_refused = true;
    }

    /// The count of numbers that the next request may name. It grows if there was
    /// progress and no refusal since the last one.
    pub fn next_request(&mut self, has_progress: bool) -> i64 {
        if !core::mem::take(&mut self.was_refused) && has_progress {
            let more = self.numbers.saturating_div(GROWTH_DIVISOR).max(1);
            self.numbers = self.numbers.saturating_add(more).min(NUMBERS_MAX);
        }
        self.numbers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_shrinks_to_what_was_held_and_grows_with_progress_only() {
        let mut window = RequestWindow::FULL;
        assert_eq!(window.next_request(true), NUMBERS_MAX);
        window.note_refused(40);
        window.note_refused(60);
        assert_eq!(
            window.next_request(true),
            40,
            "refused since the last request"
        );
        assert_eq!(window.next_request(false), 40, "no progress");
        assert_eq!(window.next_request(true), 50);
        for _ in 0..20 {
            window.next_request(true);
        }
        assert_eq!(window.next_request(true), NUMBERS_MAX);
    }

    #[test]
    fn it_never_closes() {
        let mut window = RequestWindow::FULL;
        window.note_refused(0);
        assert_eq!(window.next_request(false), NUMBERS_MIN);
    }
}
