//! How two hubs come to a link: three packets that prove that each can map
//! the other's memory.
//!
//! ```text
//! A connects            B accepts (SO_PEERCRED on both sides: the same user)
//! hello(A) + memory ──►   maps A's, reads A's nonce
//!   maps B's        ◄──  hello(B, A's nonce) + memory
//! proof(B's nonce)  ──►  up
//! up
//! ```
//! Where a hub has a [`Warrant`](crate::Warrant) both show codes of the nonces
//! instead, which only they can make. A step never waits. Whoever dies, stays silent or sends anything else costs
//! one entry of a short list until its time is over.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use crate::doorbell::{Bell, Context};
use crate::error::{Name, Reason, hex};
use crate::layout::{
    AT_MAGIC, AT_NONCE, AT_VERSION, CONTEXT_BYTES, CONTEXT_MAGIC, LINK_MAGIC, RING_BYTES_MAX,
    RING_BYTES_MIN, VERSION, link_bytes,
};
use crate::life::Life;
use crate::link::Ends;
use crate::memory::{OwnMemory, PeerMemory};
use crate::packet::{self, Incoming, Nonce, Packet};
use crate::sync::{Ordering, load_theirs};
use crate::warrant::{Shown, Statement, Warrant, own_process, peer_process};

/// Connections that the kernel keeps until we accept them.
const BACKLOG: i32 = 64;

/// Where the hub of that name listens: in the abstract namespace, which is in
/// no file system and belongs to a network namespace.
fn address(name: &Name) -> Result<SocketAddrUnix, Errno> {
    let text = format!("pteros-{}", hex(name));
    SocketAddrUnix::new_abstract_name(text.as_bytes())
}

pub(crate) fn socket() -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
}

/// Opens the door.
pub(crate) fn listen(name: &Name) -> Result<OwnedFd, Errno> {
    let listener = socket()?;
    rustix::net::bind(&listener, &address(name)?)?;
    rustix::net::listen(&listener, BACKLOG)?;
    Ok(listener)
}

/// The next that knocked, if it is one of us.
pub(crate) fn accept(listener: BorrowedFd<'_>) -> Option<Result<OwnedFd, Reason>> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = match rustix::net::accept_with(listener, flags) {
        Ok(socket) => socket,
        Err(Errno::AGAIN) => return None,
        Err(_) => return Some(Err(Reason::System("accept a connection"))),
    };
    if let Err(reason) = same_user(socket.as_fd()) {
        packet::refuse(socket.as_fd(), reason);
        return Some(Err(reason));
    }
    Some(Ok(socket))
}

pub(crate) fn same_user(socket: BorrowedFd<'_>) -> Result<(), Reason> {
    let peer = rustix::net::sockopt::socket_peercred(socket);
    let peer = peer.map_err(|_| Reason::System("ask whose socket it is"))?;
    match peer.uid == rustix::process::geteuid() {
        true => Ok(()),
        false => Err(Reason::OtherUser {
            uid: peer.uid.as_raw(),
        }),
    }
}

/// What this side shows the other, besides its link memory.
pub(crate) struct Ours<'a> {
    pub(crate) name: Name,
    pub(crate) context: &'a Context,
    pub(crate) ring_bytes: usize,
    pub(crate) warrant: Option<&'a dyn Warrant>,
}

impl Ours<'_> {
    /// What we show `peer`, who has this nonce.
    fn shows(&self, shown: Shown, peer: &Name, nonce: Nonce) -> Result<Nonce, Reason> {
        let statement = Statement {
            shown,
            nonce,
            sender: self.name,
            receiver: *peer,
            process: own_process(),
        };
        statement.code(self.warrant.map(|warrant| (warrant, peer)))
    }

    /// Whether `peer`, at the other end of the socket, has shown what belongs to
    /// our nonce.
    fn check(
        &self,
        shown: Shown,
        (peer, socket): (&Name, BorrowedFd<'_>),
        nonce: Nonce,
        code: Nonce,
    ) -> Result<(), Reason> {
        let process = match self.warrant {
            Some(_) => peer_process(socket)?,
            None => 0,
        };
        let statement = Statement {
            shown,
            nonce,
            sender: *peer,
            receiver: self.name,
            process,
        };
        if statement.code(self.warrant.map(|warrant| (warrant, peer)))? == code {
            return Ok(());
        }
        Err(match self.warrant {
            Some(_) => Reason::Unproven,
            None => Reason::Nonsense("it has not read our memory"),
        })
    }
}

/// A handshake under way.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) socket: OwnedFd,
    /// Whom we called, or who says to be calling.
    pub(crate) peer: Option<Name>,
    /// When it is given up, and for one not yet connected when it is tried again.
    pub(crate) deadline: u64,
    pub(crate) retry: Option<u64>,
    stage: Stage,
    own: OwnMemory,
    own_fd: Option<OwnedFd>,
    nonce: Nonce,
}

#[derive(Debug)]
enum Stage {
    /// The kernel had no room for the connection yet.
    Connecting,
    /// We called and wait for the answer.
    Called,
    /// Somebody called and has yet to say who.
    Answering,
    /// We answered and wait for the proof.
    Answered(Box<Theirs>),
    Over,
}

/// What the other side handed over.
#[derive(Debug)]
pub(crate) struct Theirs {
    memory: PeerMemory,
    context: PeerMemory,
    bell: Bell,
}

/// What a step came to.
#[derive(Debug)]
pub(crate) enum Step {
    /// Wait for more.
    Wait,
    /// Somebody said who they are; go on with [`Pending::answer`] or refuse.
    Asked(Name),
    /// There is a link.
    Up(Name, Box<Theirs>),
    /// There will be none.
    Failed(Reason),
}

impl Pending {
    fn new(socket: OwnedFd, ours: &Ours<'_>, nonce: Nonce, deadline: u64) -> Result<Self, Reason> {
        let bytes = link_bytes(ours.ring_bytes);
        let made = OwnMemory::create("pteros-link", bytes);
        let (own, own_fd) = made.map_err(|_| Reason::System("make a link's memory"))?;
        own.word(AT_MAGIC).store(LINK_MAGIC, Ordering::Relaxed);
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
            stage: Stage::Answering,
            own,
            own_fd: Some(own_fd),
            nonce,
        })
    }

    /// Begins with somebody who knocked.
    pub(crate) fn incoming(
        socket: OwnedFd,
        ours: &Ours<'_>,
        nonce: Nonce,
        deadline: u64,
    ) -> Result<Self, Reason> {
        Self::new(socket, ours, nonce, deadline)
    }

    /// Knocks at the door of `peer`.
    pub(crate) fn outgoing(
        peer: Name,
        ours: &Ours<'_>,
        nonce: Nonce,
        deadline: u64,
    ) -> Result<Self, Reason> {
        let socket = socket().map_err(|_| Reason::System("make a socket"))?;
        let mut pending = Self::new(socket, ours, nonce, deadline)?;
        pending.peer = Some(peer);
        pending.stage = Stage::Connecting;
        pending.connect(ours)?;
        Ok(pending)
    }

    /// Whether it still has to get through to the other side.
    pub(crate) fn is_connecting(&self) -> bool {
        matches!(self.stage, Stage::Connecting)
    }

    /// Whether we began it.
    pub(crate) fn is_outgoing(&self) -> bool {
        matches!(self.stage, Stage::Connecting | Stage::Called)
    }

    /// Tries to get through, and says hello.
    pub(crate) fn connect(&mut self, ours: &Ours<'_>) -> Result<(), Reason> {
        let (Stage::Connecting, Some(peer)) = (&self.stage, self.peer) else {
            return Ok(());
        };
        let address = address(&peer).map_err(|_| Reason::System("name a socket"))?;
        match rustix::net::connect(&self.socket, &address) {
            Ok(()) => {}
            Err(Errno::AGAIN | Errno::INTR) => return Ok(()),
            Err(Errno::CONNREFUSED) => return Err(Reason::Unreachable),
            Err(_) => return Err(Reason::System("connect a socket")),
        }
        same_user(self.socket.as_fd())?;
        self.hello(ours, [0, 0])?;
        crate::fault!("hello-sent");
        self.stage = Stage::Called;
        self.retry = None;
        Ok(())
    }

    fn hello(&mut self, ours: &Ours<'_>, echo: Nonce) -> Result<(), Reason> {
        let Some(own_fd) = self.own_fd.take() else {
            return Err(Reason::Nonsense("a second hello"));
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
            .map_err(|_| Reason::System("hand over descriptors"))
    }

    /// Goes on with what came. Never waits.
    pub(crate) fn step(&mut self, ours: &Ours<'_>) -> Step {
        let (packet, descriptors) = match packet::receive(self.socket.as_fd()) {
            Incoming::Nothing => return Step::Wait,
            Incoming::End => return Step::Failed(Reason::Ended),
            Incoming::Nonsense => return Step::Failed(Reason::Nonsense("not a packet")),
            Incoming::Packet(packet, descriptors) => (packet, descriptors),
        };
        match self.handle(ours, packet, descriptors) {
            Ok(step) => step,
            Err(reason) => {
                packet::refuse(self.socket.as_fd(), reason);
                Step::Failed(reason)
            }
        }
    }

    fn handle(
        &mut self,
        ours: &Ours<'_>,
        packet: Packet,
        descriptors: Vec<OwnedFd>,
    ) -> Result<Step, Reason> {
        match packet {
            Packet::Foreign(theirs) => return Err(Reason::OtherVersion { theirs }),
            Packet::Refuse { code, value } => {
                return Ok(Step::Failed(Reason::from_wire(code, value)));
            }
            Packet::Bye => return Ok(Step::Failed(Reason::Closed)),
            _ => {}
        }
        match (std::mem::replace(&mut self.stage, Stage::Over), packet) {
            (
                Stage::Answering,
                Packet::Hello {
                    name, ring_bytes, ..
                },
            ) => {
                let theirs = Theirs::take(ring_bytes, descriptors)?;
                self.peer = Some(name);
                self.stage = Stage::Answered(Box::new(theirs));
                crate::fault!("hello-read");
                Ok(Step::Asked(name))
            }
            (
                Stage::Called,
                Packet::Hello {
                    name,
                    ring_bytes,
                    echo,
                },
            ) => {
                if Some(name) != self.peer {
                    return Err(Reason::Nonsense("another name than the one called"));
                }
                let peer = (&name, self.socket.as_fd());
                ours.check(Shown::Echo, peer, self.nonce, echo)?;
                let theirs = Theirs::take(ring_bytes, descriptors)?;
                crate::fault!("answer-read");
                let proof = ours.shows(Shown::Proof, &name, theirs.nonce())?;
                let proof = Packet::Proof(proof);
                packet::send(self.socket.as_fd(), &proof, &[])
                    .map_err(|_| Reason::System("send a proof"))?;
                crate::fault!("proof-sent");
                Ok(Step::Up(name, Box::new(theirs)))
            }
            (Stage::Answered(theirs), Packet::Proof(code)) => {
                let name = self.peer.ok_or(Reason::Nonsense("nobody asked"))?;
                let peer = (&name, self.socket.as_fd());
                ours.check(Shown::Proof, peer, self.nonce, code)?;
                Ok(Step::Up(name, theirs))
            }
            _ => Err(Reason::Nonsense("a packet out of place")),
        }
    }

    /// Answers whoever asked: shows our memory and that we read theirs.
    pub(crate) fn answer(&mut self, ours: &Ours<'_>) -> Result<(), Reason> {
        let (Stage::Answered(theirs), Some(peer)) = (&self.stage, self.peer) else {
            return Err(Reason::Nonsense("nobody asked"));
        };
        let echo = ours.shows(Shown::Echo, &peer, theirs.nonce())?;
        self.hello(ours, echo)?;
        crate::fault!("hello-answered");
        Ok(())
    }

    /// What the link stands on, once it is up.
    pub(crate) fn into_ends(self, theirs: Theirs) -> Arc<Ends> {
        crate::fault!("link-up");
        Arc::new(Ends {
            own: self.own,
            theirs: theirs.memory,
            context: theirs.context,
            bell: theirs.bell,
            life: Life::of(self.socket.as_fd()),
            socket: self.socket,
        })
    }
}

impl Theirs {
    /// Maps what came with a hello, if it is what it should be.
    fn take(ring_bytes: u64, descriptors: Vec<OwnedFd>) -> Result<Self, Reason> {
        let Ok([context, memory, bell]) = <[OwnedFd; 3]>::try_from(descriptors) else {
            return Err(Reason::Nonsense("a hello without its descriptors"));
        };
        let ring_bytes = usize::try_from(ring_bytes).unwrap_or(usize::MAX);
        if !ring_bytes.is_power_of_two() || !(RING_BYTES_MIN..=RING_BYTES_MAX).contains(&ring_bytes)
        {
            return Err(Reason::Nonsense("a ring of impossible size"));
        }
        let unfit = |unfit: crate::memory::Unfit| Reason::Unfit(unfit.0);
        let theirs = Self {
            memory: PeerMemory::map(memory.as_fd(), link_bytes(ring_bytes)).map_err(unfit)?,
            context: PeerMemory::map(context.as_fd(), CONTEXT_BYTES).map_err(unfit)?,
            bell: Bell::of_peer(bell).map_err(unfit)?,
        };
        for (memory, magic) in [
            (&theirs.memory, LINK_MAGIC),
            (&theirs.context, CONTEXT_MAGIC),
        ] {
            if load_theirs(memory.word(AT_MAGIC)) != magic
                || load_theirs(memory.word(AT_VERSION)) != u64::from(VERSION)
            {
                return Err(Reason::Nonsense("memory of another kind"));
            }
        }
        Ok(theirs)
    }

    /// The proof that it is mapped.
    fn nonce(&self) -> Nonce {
        let words = self.memory.words(AT_NONCE, 2);
        [load_theirs(&words[0]), load_theirs(&words[1])]
    }
}
