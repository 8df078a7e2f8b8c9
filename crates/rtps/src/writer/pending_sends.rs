//! Pending sends of a writer: whether readers wait for something other than new
//! changes, and who is served next.

/// Retransmissions, history replays, GAPs and heartbeats that are due.
#[derive(Debug, Default)]
pub(super) struct PendingSends {
    /// Some reader waits for one of them.
    pub any: bool,
    /// The reader to serve next; past the last reader, the heartbeats.
    pub next_requester: usize,
    /// Flow-controlled: after a burst of retransmissions a burst of new changes is
    /// due.
    pub new_data_due: bool,
}
