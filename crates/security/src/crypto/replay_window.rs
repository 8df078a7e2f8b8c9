//! Replay window: rejects messages that were received before, by the initialisation
//! vectors of one session. It is for senders that count (Cyclone DDS, Pteros) and
//! whose sessions have rising numbers. It is not for senders that choose vectors at
//! random (Fast DDS), which give no order. There, only RTPS sequence numbers keep a
//! repeated sample from being delivered twice.

use super::SessionId;

/// The last initialisation vectors of one sender's key.
#[derive(Debug, Clone)]
pub struct ReplayWindow {
    /// Sessions with lower numbers are rejected.
    session: Option<SessionId>,
    /// The largest vector of the session.
    newest: u64,
    /// One bit for each vector, in a ring: a word that the newest vector enters is
    /// cleared, so nothing moves (RFC 6479).
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
    /// Records an authentic vector. Returns false if it was received before, is of
    /// an earlier session, or is older than the [`WINDOW`](Self::WINDOW).
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
            self.advance_to(vector);
        } else if self.newest.saturating_sub(vector) >= Self::WINDOW {
            return false;
        }
        self.mark(vector)
    }

    /// Makes it the newest vector, and clears the words in between.
    fn advance_to(&mut self, vector: u64) {
        let (from, to) = (self.newest / 64, vector / 64);
        let words = to.saturating_sub(from).min(WORDS);
        for word in 0..words {
            if let Some(word) = self.word(to.saturating_sub(word)) {
                *word = 0;
            }
        }
        self.newest = vector;
    }

    /// Marks a vector; returns whether it is new.
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

    /// How much older than the newest a message may be: more than a full receive
    /// buffer.
    pub const WINDOW: u64 = 1024;
}

/// The window, and the word that the newest vector enters next.
const WORDS: u64 = ReplayWindow::WINDOW / 64 + 1;

/// Whether a session comes after another. Sessions count up from any number, so
/// half of all numbers are later.
fn follows(earlier: SessionId, later: SessionId) -> bool {
    let [earlier, later] = [earlier, later].map(|session| u32::from_be_bytes(session.0));
    matches!(later.wrapping_sub(earlier), 1..=0x7fff_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_replay_window_agrees_with_a_set_of_all_vectors() {
        let session = SessionId([1, 2, 3, 4]);
        let (mut window, mut seen) = (ReplayWindow::default(), BTreeSet::new());
        let (mut newest, mut random) = (0_u64, fastrand::Rng::with_seed(5));
        for round in 0..20_000_u64 {
            let vector = (round / 2 + random.u64(..300)).saturating_sub(100)
                + if random.u64(..500) == 0 { 900 } else { 0 };
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
    fn a_new_session_resets_the_window_and_ends_the_former() {
        let mut window = ReplayWindow::default();
        assert!(window.accept(SessionId([0; 4]), 9_u64.to_be_bytes()));
        assert!(!window.accept(SessionId([0; 4]), 9_u64.to_be_bytes()));
        assert!(window.accept(SessionId([1; 4]), 9_u64.to_be_bytes()));
        assert!(!window.accept(SessionId([0; 4]), 9_u64.to_be_bytes()));
        assert!(!window.accept(SessionId([0; 4]), 10_u64.to_be_bytes()));
    }

    /// An earlier version remembered former sessions, and only eight of them. With
    /// an older session an attacker could imitate the sender, and lock out the
    /// sender itself.
    #[test]
    fn an_old_session_is_rejected() {
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
