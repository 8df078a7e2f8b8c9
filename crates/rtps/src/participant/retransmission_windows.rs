//! The retransmission window of each remote participant (`retransmission_window.rs`).
//! All writers of this participant share it.
//!
//! The window of a participant that leaves is kept while something of it is spent.
//! Leaving and coming back under the same name gives no new one.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;

use crate::id::GuidPrefix;
use crate::retransmission_window::RetransmissionWindow;

/// Windows of lost participants; the oldest is forgotten.
const FORMER_MAX: usize = 64;

/// The windows of discovered participants, and of some that left.
#[derive(Default)]
pub(super) struct RetransmissionWindows {
    present: BTreeMap<GuidPrefix, Arc<RetransmissionWindow>>,
    former: VecDeque<(GuidPrefix, Arc<RetransmissionWindow>)>,
}

impl RetransmissionWindows {
    /// The window of a participant; a new one is full.
    pub(super) fn open(&mut self, prefix: GuidPrefix) -> Arc<RetransmissionWindow> {
        let former = &mut self.former;
        let window = self.present.entry(prefix).or_insert_with(|| {
            let at = former.iter().position(|(known, _)| *known == prefix);
            let known = at.and_then(|at| former.remove(at));
            known.map_or_else(RetransmissionWindow::new, |(_, window)| window)
        });
        window.clone()
    }

    /// Closes the window of a lost participant.
    pub(super) fn close(&mut self, prefix: GuidPrefix) {
        let Some(window) = self.present.remove(&prefix) else {
            return;
        };
        if window.is_full() {
            return;
        }
        if self.former.len() >= FORMER_MAX {
            self.former.pop_front();
        }
        self.former.push_back((prefix, window));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(number: u8) -> GuidPrefix {
        GuidPrefix([number; 12])
    }

    #[test]
    fn a_participant_that_comes_back_has_what_was_left() {
        let mut windows = RetransmissionWindows::default();
        let first = windows.open(peer(1));
        assert!(Arc::ptr_eq(&first, &windows.open(peer(1))), "one for all");
        windows.close(peer(1));
        let full = windows.open(peer(1));
        assert!(!Arc::ptr_eq(&first, &full), "a full one is not kept");
        full.spend(10);
        windows.close(peer(1));
        assert!(Arc::ptr_eq(&full, &windows.open(peer(1))));
        assert!(windows.former.is_empty());
    }

    #[test]
    fn the_oldest_of_many_former_windows_is_forgotten() {
        let mut windows = RetransmissionWindows::default();
        for number in 0..=64 {
            windows.open(peer(number)).spend(10);
            windows.close(peer(number));
        }
        assert_eq!(windows.former.len(), FORMER_MAX);
        assert!(windows.open(peer(0)).is_full());
        assert!(!windows.open(peer(64)).is_full());
    }
}
