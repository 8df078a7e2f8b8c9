//! Peer authenticator: keeps other processes of the same user out of a connection,
//! with a secret that only both sides have.

use std::fmt;
use std::os::fd::BorrowedFd;

use crate::error::{DisconnectReason, PeerName};
use crate::packet::Nonce;

/// Authenticates this process to a peer and the peer to this process. A transport
/// with an authenticator connects only to peers that it accepts.
pub trait PeerAuthenticator: Send + Sync + fmt::Debug {
    /// Message authentication code of a statement under the secret that this side
    /// and `peer` have agreed on. `None` if there is no secret, or if no connection
    /// to the peer is wanted.
    fn mac(&self, peer: &PeerName, statement: &[u8]) -> Option<[u8; 16]>;
}

/// Which packet of a handshake carries the proof.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ProofKind {
    Echo,
    Proof,
}

/// The statement that a proof authenticates.
pub(crate) struct ProofStatement {
    pub(crate) kind: ProofKind,
    /// Read from the receiver's memory.
    pub(crate) nonce: Nonce,
    pub(crate) sender: PeerName,
    pub(crate) receiver: PeerName,
    /// Process id of the sender. A process in the middle has another one.
    pub(crate) pid: u32,
}

impl ProofStatement {
    /// The proof of the statement: a MAC, or without a peer authenticator the nonce
    /// itself.
    pub(crate) fn proof(
        &self,
        with: Option<(&dyn PeerAuthenticator, &PeerName)>,
    ) -> Result<Nonce, DisconnectReason> {
        let Some((authenticator, peer)) = with else {
            return Ok(self.nonce);
        };
        let kind = match self.kind {
            ProofKind::Echo => 1_u8,
            ProofKind::Proof => 2,
        };
        let [a, b] = self.nonce.map(u64::to_le_bytes);
        let process = self.pid.to_le_bytes();
        let parts = [&[kind][..], &a, &b, &self.sender, &self.receiver, &process];
        let code = authenticator
            .mac(peer, &parts.concat())
            .ok_or(DisconnectReason::Unauthenticated)?;
        let [low, high] = [0, 8].map(|at| {
            let mut word = [0; 8];
            word.copy_from_slice(&code[at..at + 8]);
            u64::from_le_bytes(word)
        });
        Ok([low, high])
    }
}

/// Our process id, as a peer in the same PID namespace sees it. In another
/// namespace it is a different number, so no connection is made.
pub(crate) fn own_pid() -> u32 {
    std::process::id()
}

/// The process id at the other end of a socket, from the kernel.
pub(crate) fn peer_pid(socket: BorrowedFd<'_>) -> Result<u32, DisconnectReason> {
    let peer = rustix::net::sockopt::socket_peercred(socket);
    let peer =
        peer.map_err(|_| DisconnectReason::SystemCall("read the peer credentials of a socket"))?;
    u32::try_from(peer.pid.as_raw_nonzero().get()).map_err(|_| DisconnectReason::Unauthenticated)
}
