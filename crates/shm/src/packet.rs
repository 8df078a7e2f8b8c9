//! Packets of a connection's socket: few, small, with a fixed layout.
//!
//! ```text
//!            0        4         6      8
//! every      "PtSh"   version   kind
//! 1 hello    8 name[12]  24 ring bytes u64  32 echo 2 x u64      + 3 descriptors:
//!                                   wake page, connection memory, doorbell
//! 2 proof    8 nonce 2 x u64
//! 3 segment  8 number u32  16 bytes u64                          + 1 descriptor
//! 4 refuse   8 code u32  12 value u32
//! 5 bye
//! 6 retire   8 number u32: the segment is no longer used
//! 7 log      8 name[12]  24 bytes u64                            + 1 descriptor
//! 8 more
//! 9 wake
//! ```
//! Little-endian. The first eight bytes are the same in every version.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};

use crate::error::{DisconnectReason, PeerName};
use crate::layout::VERSION;

const MAGIC: [u8; 4] = *b"PtSh";
const PACKET_BYTES_MAX: usize = 48;
/// Descriptors of one packet. The kernel closes more.
const DESCRIPTORS_MAX: usize = 4;

/// Random words in a process's memory. Knowing them proves that the memory was
/// mapped.
pub(crate) type Nonce = [u64; 2];

/// One packet, without its descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packet {
    Hello {
        name: PeerName,
        ring_bytes: u64,
        /// The nonce in the peer's connection memory; zero in the first hello.
        echo: Nonce,
    },
    Proof(Nonce),
    Segment {
        number: u32,
        bytes: u64,
    },
    Refuse {
        code: u32,
        value: u32,
    },
    Bye,
    Retire(u32),
    /// Hands over a discovery log.
    DiscoveryLog {
        name: PeerName,
        bytes: u64,
    },
    /// The discovery log has new records.
    MoreRecords,
    /// Wakes a peer whose doorbell a misbehaving process has emptied.
    Wake,
    /// A packet of another version, which is all that is known of it.
    OtherVersion(u16),
}

impl Packet {
    fn encode(&self, version: u16) -> ([u8; PACKET_BYTES_MAX], usize) {
        let mut bytes = [0; PACKET_BYTES_MAX];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        let (kind, len) = match *self {
            Self::Hello {
                name,
                ring_bytes,
                echo,
            } => {
                put(8, &name);
                put(24, &ring_bytes.to_le_bytes());
                put(32, &echo[0].to_le_bytes());
                put(40, &echo[1].to_le_bytes());
                (1_u16, 48)
            }
            Self::Proof(nonce) => {
                put(8, &nonce[0].to_le_bytes());
                put(16, &nonce[1].to_le_bytes());
                (2, 24)
            }
            Self::Segment { number, bytes } => {
                put(8, &number.to_le_bytes());
                put(16, &bytes.to_le_bytes());
                (3, 24)
            }
            Self::Refuse { code, value } => {
                put(8, &code.to_le_bytes());
                put(12, &value.to_le_bytes());
                (4, 16)
            }
            Self::Bye => (5, 8),
            Self::Retire(number) => {
                put(8, &number.to_le_bytes());
                (6, 12)
            }
            Self::DiscoveryLog { name, bytes } => {
                put(8, &name);
                put(24, &bytes.to_le_bytes());
                (7, 32)
            }
            Self::MoreRecords => (8, 8),
            Self::Wake => (9, 8),
            Self::OtherVersion(_) => (0, 8),
        };
        put(0, &MAGIC);
        put(4, &version.to_le_bytes());
        put(6, &kind.to_le_bytes());
        (bytes, len)
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let word = |at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        let half = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        let short = |at: usize| Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        if *bytes.first_chunk()? != MAGIC {
            return None;
        }
        let version = short(4)?;
        if version != VERSION {
            return Some(Self::OtherVersion(version));
        }
        Some(match short(6)? {
            1 => Self::Hello {
                name: *bytes.get(8..)?.first_chunk()?,
                ring_bytes: word(24)?,
                echo: [word(32)?, word(40)?],
            },
            2 => Self::Proof([word(8)?, word(16)?]),
            3 => Self::Segment {
                number: half(8)?,
                bytes: word(16)?,
            },
            4 => Self::Refuse {
                code: half(8)?,
                value: half(12)?,
            },
            5 => Self::Bye,
            6 => Self::Retire(half(8)?),
            7 => Self::DiscoveryLog {
                name: *bytes.get(8..)?.first_chunk()?,
                bytes: word(24)?,
            },
            8 => Self::MoreRecords,
            9 => Self::Wake,
            _ => return None,
        })
    }
}

/// Sends one packet without waiting. The error is for callers that retry; a closed
/// peer is detected when its socket is read.
pub(crate) fn send(
    socket: BorrowedFd<'_>,
    packet: &Packet,
    descriptors: &[BorrowedFd<'_>],
) -> Result<(), Errno> {
    let (bytes, len) = packet.encode(VERSION);
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        let fits = control.push(SendAncillaryMessage::ScmRights(descriptors));
        assert!(fits, "a packet has at most {DESCRIPTORS_MAX} descriptors");
    }
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    let parts = [IoSlice::new(&bytes[..len])];
    loop {
        match rustix::net::sendmsg(socket, &parts, &mut control, flags) {
            Err(Errno::INTR) => {}
            outcome => return outcome.map(|_| ()),
        }
    }
}

/// Sends the peer the reason of a refusal. Errors are ignored.
pub(crate) fn refuse(socket: BorrowedFd<'_>, reason: DisconnectReason) {
    let (code, value) = reason.to_wire();
    let _ = send(socket, &Packet::Refuse { code, value }, &[]);
}

/// Content of a socket.
#[derive(Debug)]
pub(crate) enum Incoming {
    Packet(Packet, Vec<OwnedFd>),
    /// No packet now.
    Nothing,
    /// The peer is gone or has shut its side down.
    Closed,
    /// Not a packet of this protocol.
    Invalid,
}

/// Receives one packet without waiting.
pub(crate) fn receive(socket: BorrowedFd<'_>) -> Incoming {
    let mut bytes = [0; PACKET_BYTES_MAX];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let mut parts = [IoSliceMut::new(&mut bytes)];
    let got = loop {
        match rustix::net::recvmsg(socket, &mut parts, &mut control, flags) {
            Ok(got) => break got,
            // Reset: the peer closed with packets of ours unread. The kernel
            // reports that once; then follow the packets that the peer had sent
            // before.
            Err(Errno::INTR | Errno::CONNRESET) => {}
            Err(Errno::AGAIN) => return Incoming::Nothing,
            Err(_) => return Incoming::Closed,
        }
    };
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(list) = message {
            descriptors.extend(list);
        }
    }
    if got.bytes == 0 {
        return Incoming::Closed;
    }
    if got.flags.contains(ReturnFlags::TRUNC) {
        return Incoming::Invalid;
    }
    match Packet::decode(&bytes[..got.bytes]) {
        Some(packet) => Incoming::Packet(packet, descriptors),
        None => Incoming::Invalid,
    }
}
