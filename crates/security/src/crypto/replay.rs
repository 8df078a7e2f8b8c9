//! What was received once is not received again: a window over the vectors of
//! one session, for senders that count (Cyclone DDS, ours) and whose sessions have
//! rising numbers. It is not for those
//! that draw vectors by lot (Fast DDS), which tell nothing of order; there, RTPS's
//! sequence numbers alone keep a repeated sample from being delivered twice.

use super::SessionId;

/// The last vectors of one sender's key.
#[derive(Debug, Clone)]
pub struct ReplayWindow {
    /// Those with lower numbers do not come back.
    session: Option<SessionId>,
    /// The largest vector of the session.
    newest: u64,
    /// One bit for each vector, in a ring: a word that the newest one enters is
    /// cleared, so nothing moves as it goes on (RFC 6479).
    seen: [u64; WORDS as usize],
}

impl Default for ReplayWindow {
    fn default() -> Self {
        Self {
            session: None,
            newest: 0,
            seen: [0; WORDS as usize],
        }
    }
}

impl ReplayWindow {
    /// Takes note of an authentic vector; false if it was there before, is of an
    /// earlier session, or is further back than
    /// [`WINDOW`](Self::WINDOW) and cannot be told.
    pub fn accept(&mut self, session: SessionId, vector: [u8; 8]) -> bool {
        let vector = u64::from_be_bytes(vector);
        if self.session != Some(session) {
            if self.session.is_some_and(|now| !follows(now, session)) {
                return false;
            }
            self.session = Some(session);
            self.newest = vector;
            self.seen = [0; WORDS as usize];
        } else if vector > self.newest {
            self.enter(vector);
        } else if self.newest.saturating_sub(vector) >= Self::WINDOW {
            return false;
        }
        self.mark(vector)
    }

    /// Makes it the newest, and the words between it and the one before empty.
    fn enter(&mut self, vector: u64) {
        let (from, to) = (self.newest / 64, vector / 64);
        let words = to.saturating_sub(from).min(WORDS);
        for word in 0..words {
            if let Some(word) = self.word(to.saturating_sub(word)) {
                *word = 0;
            }
        }
        self.newest = vector;
    }

    /// Whether it was not there before.
    fn mark(&mut self, vector: u64) -> bool {
        let bit = 1_u64.rotate_left(u32::try_from(vector % 64).unwrap_or(0));
        let Some(word) = self.word(vector / 64) else {
            return false;
        };
        let is_fresh = *word & bit == 0;
        *word |= bit;
        is_fresh
    }

    fn word(&mut self, number: u64) -> Option<&mut u64> {
        self.seen.get_mut(usize::try_from(number % WORDS).ok()?)
    }

    /// How far back an old message may come: more than a full receive buffer.
    pub const WINDOW: u64 = 1024;
}

/// The window, and the word that the newest vector is about to fill.
const WORDS: u64 = ReplayWindow::WINDOW / 64 + 1;

/// Whether a session comes after another: they are counted up from anywhere, so
/// half of all numbers are ahead.
fn follows(earlier: SessionId, later: SessionId) -> bool {
    let [earlier, later] = [earlier, later].map(|session| u32::from_be_bytes(session.0));
    matches!(later.wrapping_sub(earlier), 1..=0x7fff_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_window_agrees_with_a_set_of_all_that_was_seen() {
        let session = SessionId([1, 2, 3, 4]);
        let (mut window, mut seen) = (ReplayWindow::default(), BTreeSet::new());
        let (mut newest, mut state) = (0_u64, 5_u64);
        for round in 0..20_000_u64 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let vector = (round / 2 + (state >> 33) % 300).saturating_sub(100)
                + if (state >> 20) % 500 == 0 { 900 } else { 0 };
            let fresh =
                !seen.contains(&vector) && newest.saturating_sub(vector) < ReplayWindow::WINDOW;
            assert_eq!(
                window.accept(session, vector.to_be_bytes()),
                fresh,
                "{vector}"
            );
            seen.insert(vector);
            newest = newest.max(vector);
        }
    }

    #[test]
    fn a_new_session_begins_anew_and_the_former_ends() {
        let mut window = ReplayWindow::default();
        assert!(window.accept(SessionId([0; 4]), 9_u64.to_be_bytes()));
        assert!(!window.accept(SessionId([0; 4]), 9_u64.to_be_bytes()));
        assert!(window.accept(SessionId([1; 4]), 9_u64.to_be_bytes()));
        assert!(!window.accept(SessionId([0; 4]), 9_u64.to_be_bytes()));
        assert!(!window.accept(SessionId([0; 4]), 10_u64.to_be_bytes()));
    }

    /// Former sessions were remembered once, and only eight of them: with an older
    /// one its sender could be imitated, and was not heard any more itself.
    #[test]
    fn a_session_of_long_ago_does_not_come_back() {
        let session = |n: u32| SessionId(0xffff_fff0_u32.wrapping_add(n).to_be_bytes());
        let mut window = ReplayWindow::default();
        for now in 0..40 {
            assert!(window.accept(session(now), 1_u64.to_be_bytes()));
            for former in 0..now {
                assert!(!window.accept(session(former), 2_u64.to_be_bytes()));
            }
            assert!(window.accept(session(now), 2_u64.to_be_bytes()));
        }
    }
}
