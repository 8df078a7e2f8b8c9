//! Connection handshake: three packets that prove that each side can map the
//! other's memory.
//!
//! ```text
//! A connects            B accepts (SO_PEERCRED on both sides: the same user)
//! hello(A) + memory ──►   maps A's, reads A's nonce
//!   maps B's        ◄──  hello(B, A's nonce) + memory
//! proof(B's nonce)  ──►  connected
//! connected
//! ```
//! With a [`PeerAuthenticator`](crate::PeerAuthenticator) both sides send message
//! authentication codes of the nonces instead. No step waits. A peer that dies,
//! stays silent or sends anything else costs one entry of a short list until the
//! handshake times out.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use crate::connection::ConnectionResources;
use crate::doorbell::{Doorbell, WakePage};
use crate::error::{DisconnectReason, PeerName, hex};
use crate::layout::{
    AT_MAGIC, AT_NONCE, AT_VERSION, CONNECTION_MAGIC, CONTEXT_BYTES, CONTEXT_MAGIC, RING_BYTES_MAX,
    RING_BYTES_MIN, VERSION, connection_bytes,
};
use crate::memory::{OwnMemory, PeerMemory};
use crate::packet::{self, Incoming, Nonce, Packet};
use crate::peer_authenticator::{PeerAuthenticator, ProofKind, ProofStatement, own_pid, peer_pid};
use crate::process_watch::ProcessWatch;
use crate::sync::{Ordering, load_peer_word};

/// Connections that the kernel queues until they are accepted.
const BACKLOG: i32 = 64;

/// Socket address of the transport with that name: in the abstract namespace, which
/// is in no file system and belongs to a network namespace.
fn address(name: &PeerName) -> Result<SocketAddrUnix, Errno> {
    let text = format!("pteros-{}", hex(name));
    SocketAddrUnix::new_abstract_name(text.as_bytes())
}

pub(crate) fn socket() -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
}

/// Opens the listening socket.
pub(crate) fn listen(name: &PeerName) -> Result<OwnedFd, Errno> {
    let listener = socket()?;
    rustix::net::bind(&listener, &address(name)?)?;
    rustix::net::listen(&listener, BACKLOG)?;
    Ok(listener)
}

/// Accepts the next connection, if it is from a process of the same user.
pub(crate) fn accept(listener: BorrowedFd<'_>) -> Option<Result<OwnedFd, DisconnectReason>> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = match rustix::net::accept_with(listener, flags) {
        Ok(socket) => socket,
        Err(Errno::AGAIN) => return None,
        Err(_) => return Some(Err(DisconnectReason::SystemCall("accept a connection"))),
    };
    if let Err(reason) = same_user(socket.as_fd()) {
        packet::refuse(socket.as_fd(), reason);
        return Some(Err(reason));
    }
    Some(Ok(socket))
}

pub(crate) fn same_user(socket: BorrowedFd<'_>) -> Result<(), DisconnectReason> {
    let peer = rustix::net::sockopt::socket_peercred(socket);
    let peer =
        peer.map_err(|_| DisconnectReason::SystemCall("read the peer credentials of a socket"))?;
    if peer.uid == rustix::process::geteuid() {
        Ok(())
    } else {
        Err(DisconnectReason::OtherUser {
            uid: peer.uid.as_raw(),
        })
    }
}

/// Values that this side sends to the other, besides its connection memory.
pub(crate) struct LocalSide<'a> {
    pub(crate) name: PeerName,
    pub(crate) context: &'a WakePage,
    pub(crate) ring_bytes: usize,
    pub(crate) peer_authenticator: Option<&'a dyn PeerAuthenticator>,
}

impl LocalSide<'_> {
    /// The proof for `peer`, whose nonce this is.
    fn proof_for(
        &self,
        kind: ProofKind,
        peer: &PeerName,
        nonce: Nonce,
    ) -> Result<Nonce, DisconnectReason> {
        let statement = ProofStatement {
            kind,
            nonce,
            sender: self.name,
            receiver: *peer,
            pid: own_pid(),
        };
        statement.proof(
            self.peer_authenticator
                .map(|authenticator| (authenticator, peer)),
        )
    }

    /// Checks that `peer`, at the other end of the socket, sent the proof that
    /// belongs to our nonce.
    fn check(
        &self,
        kind: ProofKind,
        peer: &PeerName,
        socket: BorrowedFd<'_>,
        nonce: Nonce,
        received: Nonce,
    ) -> Result<(), DisconnectReason> {
        let process = match self.peer_authenticator {
            Some(_) => peer_pid(socket)?,
            None => 0,
        };
        let statement = ProofStatement {
            kind,
            nonce,
            sender: *peer,
            receiver: self.name,
            pid: process,
        };
        if statement.proof(
            self.peer_authenticator
                .map(|authenticator| (authenticator, peer)),
        )? == received
        {
            return Ok(());
        }
        Err(match self.peer_authenticator {
            Some(_) => DisconnectReason::Unauthenticated,
            None => {
                DisconnectReason::ProtocolViolation("a wrong nonce: it did not read our memory")
            }
        })
    }
}

/// A handshake in progress.
#[derive(Debug)]
pub(crate) struct PendingHandshake {
    pub(crate) socket: OwnedFd,
    /// The peer that this side connects to, or that the incoming hello names.
    pub(crate) peer: Option<PeerName>,
    /// When it times out; and, if not connected yet, when the connect is retried.
    pub(crate) deadline: u64,
    pub(crate) retry: Option<u64>,
    state: HandshakeState,
    own: OwnMemory,
    own_fd: Option<OwnedFd>,
    nonce: Nonce,
}

#[derive(Debug)]
enum HandshakeState {
    /// The kernel's queue for the connection was full.
    Connecting,
    /// Hello sent; waits for the reply.
    HelloSent,
    /// Accepted; waits for the peer's hello.
    AwaitingHello,
    /// Replied; waits for the proof.
    AwaitingProof(Box<PeerResources>),
    Finished,
}

/// The memory and doorbell that the peer handed over.
#[derive(Debug)]
pub(crate) struct PeerResources {
    memory: PeerMemory,
    context: PeerMemory,
    bell: Doorbell,
}

/// Result of polling a handshake.
#[derive(Debug)]
pub(crate) enum HandshakeProgress {
    /// Needs more packets.
    Wait,
    /// The peer sent its name: continue with [`PendingHandshake::reply`] or refuse.
    Requested(PeerName),
    /// The connection is established.
    Established(PeerName, Box<PeerResources>),
    /// The handshake failed.
    Failed(DisconnectReason),
}

impl PendingHandshake {
    fn new(
        socket: OwnedFd,
        ours: &LocalSide<'_>,
        nonce: Nonce,
        deadline: u64,
    ) -> Result<Self, DisconnectReason> {
        let bytes = connection_bytes(ours.ring_bytes);
        let made = OwnMemory::create("pteros-connection", bytes);
        let (own, own_fd) =
            made.map_err(|_| DisconnectReason::SystemCall("create the memory of a connection"))?;
        own.word(AT_MAGIC)
            .store(CONNECTION_MAGIC, Ordering::Relaxed);
        own.word(AT_VERSION)
            .store(u64::from(VERSION), Ordering::Relaxed);
        for (word, value) in own.words(AT_NONCE, 2).iter().zip(nonce) {
            word.store(value, Ordering::Release);
        }
        Ok(Self {
            socket,
            peer: None,
            deadline,
            retry: None,
            state: HandshakeState::AwaitingHello,
            own,
            own_fd: Some(own_fd),
            nonce,
        })
    }

    /// Starts a handshake with a process that connected.
    pub(crate) fn incoming(
        socket: OwnedFd,
        ours: &LocalSide<'_>,
        nonce: Nonce,
        deadline: u64,
    ) -> Result<Self, DisconnectReason> {
        Self::new(socket, ours, nonce, deadline)
    }

    /// Connects to `peer` and starts a handshake.
    pub(crate) fn outgoing(
        peer: PeerName,
        ours: &LocalSide<'_>,
        nonce: Nonce,
        deadline: u64,
    ) -> Result<Self, DisconnectReason> {
        let socket = socket().map_err(|_| DisconnectReason::SystemCall("create a socket"))?;
        let mut pending = Self::new(socket, ours, nonce, deadline)?;
        pending.peer = Some(peer);
        pending.state = HandshakeState::Connecting;
        pending.connect(ours)?;
        Ok(pending)
    }

    /// Whether the socket is not connected yet.
    pub(crate) fn is_connecting(&self) -> bool {
        matches!(self.state, HandshakeState::Connecting)
    }

    /// Whether this side started it.
    pub(crate) fn is_outgoing(&self) -> bool {
        matches!(
            self.state,
            HandshakeState::Connecting | HandshakeState::HelloSent
        )
    }

    /// Tries to connect, then sends the hello.
    pub(crate) fn connect(&mut self, ours: &LocalSide<'_>) -> Result<(), DisconnectReason> {
        let (HandshakeState::Connecting, Some(peer)) = (&self.state, self.peer) else {
            return Ok(());
        };
        let address =
            address(&peer).map_err(|_| DisconnectReason::SystemCall("build a socket address"))?;
        match rustix::net::connect(&self.socket, &address) {
            Ok(()) => {}
            Err(Errno::AGAIN | Errno::INTR) => return Ok(()),
            Err(Errno::CONNREFUSED) => return Err(DisconnectReason::Unreachable),
            Err(_) => return Err(DisconnectReason::SystemCall("connect a socket")),
        }
        same_user(self.socket.as_fd())?;
        self.send_hello(ours, [0, 0])?;
        self.state = HandshakeState::HelloSent;
        self.retry = None;
        Ok(())
    }

    fn send_hello(&mut self, ours: &LocalSide<'_>, echo: Nonce) -> Result<(), DisconnectReason> {
        let Some(own_fd) = self.own_fd.take() else {
            return Err(DisconnectReason::ProtocolViolation("a second hello"));
        };
        let hello = Packet::Hello {
            name: ours.name,
            ring_bytes: ours.ring_bytes as u64,
            echo,
        };
        let context = ours.context;
        let descriptors = [
            context.page_fd.as_fd(),
            own_fd.as_fd(),
            context.bell.as_fd(),
        ];
        packet::send(self.socket.as_fd(), &hello, &descriptors)
            .map_err(|_| DisconnectReason::SystemCall("send descriptors"))
    }

    /// Reads packets and advances the handshake. Never waits.
    pub(crate) fn poll(&mut self, ours: &LocalSide<'_>) -> HandshakeProgress {
        let (packet, descriptors) = match packet::receive(self.socket.as_fd()) {
            Incoming::Nothing => return HandshakeProgress::Wait,
            Incoming::Closed => return HandshakeProgress::Failed(DisconnectReason::ProcessEnded),
            Incoming::Invalid => {
                return HandshakeProgress::Failed(DisconnectReason::ProtocolViolation(
                    "an invalid packet",
                ));
            }
            Incoming::Packet(packet, descriptors) => (packet, descriptors),
        };
        match self.handle_packet(ours, packet, descriptors) {
            Ok(step) => step,
            Err(reason) => {
                packet::refuse(self.socket.as_fd(), reason);
                HandshakeProgress::Failed(reason)
            }
        }
    }

    fn handle_packet(
        &mut self,
        ours: &LocalSide<'_>,
        packet: Packet,
        descriptors: Vec<OwnedFd>,
    ) -> Result<HandshakeProgress, DisconnectReason> {
        match packet {
            Packet::OtherVersion(theirs) => return Err(DisconnectReason::OtherVersion { theirs }),
            Packet::Refuse { code, value } => {
                return Ok(HandshakeProgress::Failed(DisconnectReason::from_wire(
                    code, value,
                )));
            }
            Packet::Bye => return Ok(HandshakeProgress::Failed(DisconnectReason::ClosedByPeer)),
            _ => {}
        }
        match (
            std::mem::replace(&mut self.state, HandshakeState::Finished),
            packet,
        ) {
            (
                HandshakeState::AwaitingHello,
                Packet::Hello {
                    name, ring_bytes, ..
                },
            ) => {
                let theirs = PeerResources::map(ring_bytes, descriptors)?;
                self.peer = Some(name);
                self.state = HandshakeState::AwaitingProof(Box::new(theirs));
                Ok(HandshakeProgress::Requested(name))
            }
            (
                HandshakeState::HelloSent,
                Packet::Hello {
                    name,
                    ring_bytes,
                    echo,
                },
            ) => {
                if Some(name) != self.peer {
                    return Err(DisconnectReason::ProtocolViolation(
                        "a name that differs from the one that was connected to",
                    ));
                }
                ours.check(
                    ProofKind::Echo,
                    &name,
                    self.socket.as_fd(),
                    self.nonce,
                    echo,
                )?;
                let theirs = PeerResources::map(ring_bytes, descriptors)?;
                let proof = ours.proof_for(ProofKind::Proof, &name, theirs.nonce())?;
                let proof = Packet::Proof(proof);
                packet::send(self.socket.as_fd(), &proof, &[])
                    .map_err(|_| DisconnectReason::SystemCall("send a proof"))?;
                Ok(HandshakeProgress::Established(name, Box::new(theirs)))
            }
            (HandshakeState::AwaitingProof(theirs), Packet::Proof(code)) => {
                let name = self.peer.ok_or(DisconnectReason::ProtocolViolation(
                    "a reply without a request",
                ))?;
                ours.check(
                    ProofKind::Proof,
                    &name,
                    self.socket.as_fd(),
                    self.nonce,
                    code,
                )?;
                Ok(HandshakeProgress::Established(name, theirs))
            }
            _ => Err(DisconnectReason::ProtocolViolation("an unexpected packet")),
        }
    }

    /// Replies to the hello: sends our memory and the proof that we read theirs.
    pub(crate) fn reply(&mut self, ours: &LocalSide<'_>) -> Result<(), DisconnectReason> {
        let (HandshakeState::AwaitingProof(theirs), Some(peer)) = (&self.state, self.peer) else {
            return Err(DisconnectReason::ProtocolViolation(
                "a reply without a request",
            ));
        };
        let echo = ours.proof_for(ProofKind::Echo, &peer, theirs.nonce())?;
        self.send_hello(ours, echo)?;
        Ok(())
    }

    /// The resources of the connection, once it is established.
    pub(crate) fn into_resources(self, theirs: PeerResources) -> Arc<ConnectionResources> {
        Arc::new(ConnectionResources {
            own: self.own,
            peer: theirs.memory,
            context: theirs.context,
            bell: theirs.bell,
            process: ProcessWatch::of_peer(self.socket.as_fd()),
            socket: self.socket,
        })
    }
}

impl PeerResources {
    /// Maps the memory that came with a hello, after checking it.
    fn map(ring_bytes: u64, descriptors: Vec<OwnedFd>) -> Result<Self, DisconnectReason> {
        let Ok([context, memory, bell]) = <[OwnedFd; 3]>::try_from(descriptors) else {
            return Err(DisconnectReason::ProtocolViolation(
                "a hello without its descriptors",
            ));
        };
        let ring_bytes = usize::try_from(ring_bytes).unwrap_or(usize::MAX);
        if !ring_bytes.is_power_of_two() || !(RING_BYTES_MIN..=RING_BYTES_MAX).contains(&ring_bytes)
        {
            return Err(DisconnectReason::ProtocolViolation(
                "a ring size out of range",
            ));
        }
        let unfit = |unfit: crate::memory::UnusableDescriptor| {
            DisconnectReason::UnusableDescriptor(unfit.0)
        };
        let theirs = Self {
            memory: PeerMemory::map(memory.as_fd(), connection_bytes(ring_bytes)).map_err(unfit)?,
            context: PeerMemory::map(context.as_fd(), CONTEXT_BYTES).map_err(unfit)?,
            bell: Doorbell::of_peer(bell).map_err(unfit)?,
        };
        for (memory, magic) in [
            (&theirs.memory, CONNECTION_MAGIC),
            (&theirs.context, CONTEXT_MAGIC),
        ] {
            if load_peer_word(memory.word(AT_MAGIC)) != magic
                || load_peer_word(memory.word(AT_VERSION)) != u64::from(VERSION)
            {
                return Err(DisconnectReason::ProtocolViolation(
                    "memory with a wrong magic number",
                ));
            }
        }
        Ok(theirs)
    }

    /// The nonce in the peer's memory, which proves that it is mapped.
    fn nonce(&self) -> Nonce {
        let words = self.memory.words(AT_NONCE, 2);
        [load_peer_word(&words[0]), load_peer_word(&words[1])]
    }
}
