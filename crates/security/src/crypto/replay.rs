//! What was received once is not received again: a window over the vectors of
//! one session, for senders that count (Cyclone DDS, ours). It is not for those
//! that draw vectors by lot (Fast DDS), which tell nothing of order; there, RTPS's
//! sequence numbers alone keep a repeated sample from being delivered twice.

use super::SessionId;

/// The last vectors of one sender's key.
#[derive(Debug, Clone)]
pub struct ReplayWindow {
    session: Option<SessionId>,
    /// Former sessions, which do not come back.
    closed: [Option<SessionId>; CLOSED],
    next_closed: usize,
    /// The largest vector of the session.
    newest: u64,
    /// The ones before it: bit 0 is the newest.
    seen: [u64; WORDS],
}

impl Default for ReplayWindow {
    fn default() -> Self {
        Self {
            session: None,
            closed: [None; CLOSED],
            next_closed: 0,
            newest: 0,
            seen: [0; WORDS],
        }
    }
}

impl ReplayWindow {
    /// Takes note of an authentic vector; false if it was there before, is of a
    /// session that another one followed, or is further back than
    /// [`WINDOW`](Self::WINDOW) and cannot be told.
    pub fn accept(&mut self, session: SessionId, vector: [u8; 8]) -> bool {
        let vector = u64::from_be_bytes(vector);
        if self.session != Some(session) {
            if self.closed.contains(&Some(session)) {
                return false;
            }
            if let Some(closed) = self.closed.get_mut(self.next_closed) {
                *closed = self.session;
            }
            self.next_closed = self.next_closed.saturating_add(1) % CLOSED;
            self.session = Some(session);
            self.newest = vector;
            self.seen = [0; WORDS];
            self.mark(0);
            return true;
        }
        if vector > self.newest {
            self.shift(vector.saturating_sub(self.newest));
            self.newest = vector;
            self.mark(0);
            return true;
        }
        let back = self.newest.saturating_sub(vector);
        if back >= Self::WINDOW || self.is_marked(back) {
            return false;
        }
        self.mark(back);
        true
    }

    fn shift(&mut self, by: u64) {
        if by >= Self::WINDOW {
            self.seen = [0; WORDS];
            return;
        }
        let words = usize::try_from(by / 64).unwrap_or(WORDS);
        let bits = u32::try_from(by % 64).unwrap_or(0);
        let before = self.seen;
        for (index, word) in self.seen.iter_mut().enumerate() {
            let from = |back: usize| {
                let at = index.checked_sub(words.saturating_add(back));
                at.and_then(|at| before.get(at)).copied().unwrap_or(0)
            };
            let carried = from(1)
                .checked_shr(64_u32.saturating_sub(bits))
                .unwrap_or(0);
            *word = from(0).checked_shl(bits).unwrap_or(0) | carried;
        }
    }

    fn mark(&mut self, back: u64) {
        if let Some((word, bit)) = place(back)
            && let Some(word) = self.seen.get_mut(word)
        {
            *word |= bit;
        }
    }

    fn is_marked(&self, back: u64) -> bool {
        place(back)
            .is_some_and(|(word, bit)| self.seen.get(word).is_some_and(|word| word & bit != 0))
    }

    /// How far back an old message may come: more than a full receive buffer.
    pub const WINDOW: u64 = 1024;
}

fn place(back: u64) -> Option<(usize, u64)> {
    let word = usize::try_from(back / 64).ok()?;
    Some((word, 1_u64.checked_shl(u32::try_from(back % 64).ok()?)?))
}

const WORDS: usize = 16;
/// Sessions that senders who count begin in a lifetime: one for every 2^32 messages.
const CLOSED: usize = 8;

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
}
