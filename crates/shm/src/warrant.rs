//! What keeps others of the same user out of a link: a secret that both ends
//! have and nobody else.

use std::fmt;
use std::os::fd::BorrowedFd;

use crate::error::{Name, Reason};
use crate::packet::Nonce;

/// Proves to a peer that we are who we say, and lets us see the same of it. A hub
/// that has one links with nobody whom it does not vouch for.
pub trait Warrant: Send + Sync + fmt::Debug {
    /// The code of a statement under a secret that this side and `peer` have
    /// agreed on; the peer's has the same. `None` if there is none, or if no link
    /// to it is wanted.
    fn code(&self, peer: &Name, statement: &[u8]) -> Option<[u8; 16]>;
}

/// Which packet of a handshake shows a nonce.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shown {
    Echo,
    Proof,
}

/// Who shows it, and to whom.
pub(crate) struct Statement {
    pub(crate) shown: Shown,
    /// Read out of the receiver's memory.
    pub(crate) nonce: Nonce,
    pub(crate) sender: Name,
    pub(crate) receiver: Name,
    /// The process: whoever stands between has another.
    pub(crate) process: u32,
}

impl Statement {
    /// What is shown for it: without a warrant the nonce alone.
    pub(crate) fn code(&self, with: Option<(&dyn Warrant, &Name)>) -> Result<Nonce, Reason> {
        let Some((warrant, peer)) = with else {
            return Ok(self.nonce);
        };
        let kind = match self.shown {
            Shown::Echo => 1_u8,
            Shown::Proof => 2,
        };
        let [a, b] = self.nonce.map(u64::to_le_bytes);
        let process = self.process.to_le_bytes();
        let parts = [&[kind][..], &a, &b, &self.sender, &self.receiver, &process];
        let code = warrant
            .code(peer, &parts.concat())
            .ok_or(Reason::Unproven)?;
        let [low, high] = [0, 8].map(|at| {
            let mut word = [0; 8];
            word.copy_from_slice(&code[at..at + 8]);
            u64::from_le_bytes(word)
        });
        Ok([low, high])
    }
}

/// Our process, as a peer in the same PID namespace sees it. In another one it
/// is a different number, and there is no link.
pub(crate) fn own_process() -> u32 {
    std::process::id()
}

/// The process at the other end of a socket, as the kernel tells it.
pub(crate) fn peer_process(socket: BorrowedFd<'_>) -> Result<u32, Reason> {
    let peer = rustix::net::sockopt::socket_peercred(socket);
    let peer = peer.map_err(|_| Reason::System("ask whose socket it is"))?;
    u32::try_from(peer.pid.as_raw_nonzero().get()).map_err(|_| Reason::Unproven)
}
