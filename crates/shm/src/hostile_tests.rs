//! A hostile peer of the same user that writes arbitrary data into the memory that
//! it may write cannot crash this process, cannot block it, and cannot damage the
//! messages of others.
//!
//! [`Raw`] implements the protocol by hand, so that it can violate it. Next to it
//! an honest pair exchanges messages all the time.

use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use crate::error::hex;
use crate::layout::{
    AT_CHUNK_WAIT, AT_HEAD, AT_MAGIC, AT_NONCE, AT_RETURNED, AT_RING, AT_SLEEPING, AT_TAIL,
    AT_VERSION, CONNECTION_MAGIC, CONTEXT_BYTES, CONTEXT_MAGIC, LOANS_MAX, VERSION,
    connection_bytes,
};
use crate::memory::OwnMemory;
use crate::packet::{self, Incoming, Packet};
use crate::sync::Ordering::Relaxed;
use crate::{
    ConnectionEvent, DisconnectReason, PeerName, SharedMemoryTransport,
    SharedMemoryTransportOptions,
};

const RING_BYTES: usize = 4096;
const SECOND: u64 = 1_000_000_000;

fn name(test: u8, number: u8) -> PeerName {
    let mut name = *b"hostile.....";
    name[8..].copy_from_slice(&(std::process::id() << 8 | u32::from(test)).to_le_bytes());
    name[7] = number;
    name
}

fn transport(test: u8, number: u8) -> SharedMemoryTransport {
    let options = SharedMemoryTransportOptions {
        pending_max: 64,
        ..SharedMemoryTransportOptions::default()
    };
    SharedMemoryTransport::open(name(test, number), options).expect("a transport")
}

fn poll(transport: &SharedMemoryTransport, now: u64) -> Vec<ConnectionEvent> {
    let mut events = Vec::new();
    transport.poll(now, &mut |event| events.push(event));
    events
}

/// Pseudo-random numbers from a fixed seed.
struct Chance(fastrand::Rng);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0.u64(..)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.0.u64(..end)
    }

    /// Small, around a power of two, or anything.
    fn number(&mut self) -> u64 {
        match self.below(4) {
            0 => self.below(16),
            1 => (1_u64 << self.below(64))
                .wrapping_add(self.below(5))
                .wrapping_sub(2),
            2 => self.below(RING_BYTES as u64 / 4),
            _ => self.next(),
        }
    }
}

/// A peer whose every word the test chooses.
struct Raw {
    name: PeerName,
    socket: OwnedFd,
    page: OwnMemory,
    memory: OwnMemory,
    descriptors: [OwnedFd; 3],
}

impl Raw {
    /// Connected to `transport`, without having sent a packet.
    fn new(name: PeerName, transport: &SharedMemoryTransport) -> Self {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let kind = SocketType::SEQPACKET;
        let socket = rustix::net::socket_with(AddressFamily::UNIX, kind, flags, None);
        let socket = socket.expect("a socket");
        let text = format!("pteros-{}", hex(&transport.name()));
        let address = SocketAddrUnix::new_abstract_name(text.as_bytes()).expect("a name");
        rustix::net::connect(&socket, &address).expect("somebody listens");
        let (page, page_fd) = OwnMemory::create("hostile", CONTEXT_BYTES).expect("memory");
        page.word(AT_MAGIC).store(CONTEXT_MAGIC, Relaxed);
        let bytes = connection_bytes(RING_BYTES);
        let (memory, memory_fd) = OwnMemory::create("hostile", bytes).expect("memory");
        memory.word(AT_MAGIC).store(CONNECTION_MAGIC, Relaxed);
        for at in [&page, &memory] {
            at.word(AT_VERSION).store(u64::from(VERSION), Relaxed);
        }
        memory.word(AT_NONCE).store(77, Relaxed);
        let bell = eventfd(1, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).expect("a bell");
        Self {
            name,
            socket,
            page,
            memory,
            descriptors: [page_fd, memory_fd, bell],
        }
    }

    fn send(&self, packet: &Packet, descriptors: &[&OwnedFd]) {
        let borrowed: Vec<_> = descriptors.iter().map(|fd| fd.as_fd()).collect();
        let _ = packet::send(self.socket.as_fd(), packet, &borrowed);
    }

    fn hello(&self) -> Packet {
        Packet::Hello {
            name: self.name,
            ring_bytes: RING_BYTES as u64,
            echo: [0, 0],
        }
    }

    fn say_hello(&self) {
        self.send(&self.hello(), &self.descriptors.each_ref());
    }

    /// Goes through with it, as it should be done; the connection's number.
    fn connection(&self, transport: &SharedMemoryTransport) -> u32 {
        self.say_hello();
        poll(transport, 0);
        let Incoming::Packet(Packet::Hello { echo, .. }, mut descriptors) =
            packet::receive(self.socket.as_fd())
        else {
            panic!("no answer");
        };
        assert_eq!(echo, [77, 0], "it read our memory");
        let len = rustix::fs::fstat(&descriptors[1]).expect("size").st_size as usize;
        let theirs = crate::memory::PeerMemory::map(descriptors[1].as_fd(), len);
        let theirs = theirs.expect("mapped");
        let nonce = theirs.words(AT_NONCE, 2);
        let proof = Packet::Proof([nonce[0].load(Relaxed), nonce[1].load(Relaxed)]);
        descriptors.clear();
        self.send(&proof, &[]);
        match poll(transport, 0)[..] {
            [ConnectionEvent::Connected { connection, .. }] => connection,
            ref other => panic!("no connection: {other:?}"),
        }
    }

    fn refusal(&self) -> Option<DisconnectReason> {
        match packet::receive(self.socket.as_fd()) {
            Incoming::Packet(Packet::Refuse { code, value }, _) => {
                Some(DisconnectReason::from_wire(code, value))
            }
            _ => None,
        }
    }

    /// One record by hand: header words, then whatever.
    fn write(&self, words: &[u64], tail: u64) {
        let ring = self.memory.words(AT_RING, RING_BYTES / 8);
        for (word, value) in ring.iter().zip(words) {
            word.store(*value, Relaxed);
        }
        self.memory.word(AT_TAIL).store(tail, Relaxed);
    }
}

/// Two correct peers.
struct Honest {
    a: SharedMemoryTransport,
    b: SharedMemoryTransport,
    ab: u32,
    count: u32,
}

impl Honest {
    fn new(test: u8) -> Self {
        let (a, b) = (transport(test, 1), transport(test, 2));
        a.connect(b.name(), 0).expect("connect");
        let mut ab = None;
        for _ in 0..4 {
            poll(&b, 0);
            for event in poll(&a, 0) {
                if let ConnectionEvent::Connected { connection, .. } = event {
                    ab = Some(connection);
                }
            }
        }
        let ab = ab.expect("a connection");
        Self { a, b, ab, count: 0 }
    }

    /// Sends a message from a to b, regardless of what b receives from others.
    fn exchange(&mut self) {
        self.count += 1;
        let head = self.count.to_le_bytes();
        let mut chunk = self.a.chunk(1000).expect("a chunk");
        chunk.fill(self.count as u8);
        let body = chunk.freeze(1000);
        self.a.send(self.ab, &head, &body, b"").expect("sent");
        drop(body);
        let mut bytes = Vec::new();
        for _ in 0..3_000 {
            let Some(record) = self.b.receive(&mut bytes) else {
                continue;
            };
            if record.peer == self.a.name() {
                assert_eq!(bytes, head);
                let body = record.body.expect("a chunk");
                assert!(body.iter().all(|b| *b == self.count as u8) && body.len() == 1000);
                return;
            }
        }
        panic!("message {} did not arrive", self.count);
    }
}

#[test]
fn random_words_in_a_peers_memory_close_its_connection_and_nothing_else() {
    let mut honest = Honest::new(1);
    let mut chance = Chance(fastrand::Rng::with_seed(0x5eed_0001));
    let mut ended = 0;
    for round in 0..400 {
        let raw = Raw::new(name(1, 100), &honest.b);
        let connection = raw.connection(&honest.b);
        // A body of ours is lent to it, so that what it returns matters.
        let body = honest.b.chunk(2000).expect("a chunk").freeze(2000);
        honest.b.send(connection, b"x", &body, b"").expect("sent");
        for _ in 0..12 {
            for _ in 0..chance.below(8) {
                let word = match chance.below(7) {
                    0 => raw.memory.word(AT_TAIL),
                    1 => raw.memory.word(AT_HEAD),
                    2 => raw.page.word(AT_SLEEPING),
                    3 => raw.page.word(AT_CHUNK_WAIT),
                    4 => raw
                        .memory
                        .word(AT_RETURNED + 8 * chance.below(LOANS_MAX as u64 / 2) as usize),
                    5 => raw.memory.word(AT_RING + 8 * chance.below(16) as usize),
                    _ => raw
                        .memory
                        .word(8 * chance.below((AT_RING + RING_BYTES) as u64 / 8) as usize),
                };
                word.store(chance.number(), Relaxed);
            }
            let _ = honest
                .b
                .send(connection, b"to the broken one", &body, &[1; 300]);
            honest.exchange();
            poll(&honest.b, round);
        }
        ended += u32::from(!honest.b.is_connected(connection));
        drop(raw);
        poll(&honest.b, round);
        // Its unread records have been read.
        honest.exchange();
        poll(&honest.b, round);
        assert!(!honest.b.is_connected(connection), "round {round}");
    }
    assert!(ended > 300, "only {ended} were noticed as broken");
    let counts = honest.b.counts();
    assert_eq!(
        (
            counts.connections,
            counts.lingering_connections,
            counts.loans
        ),
        (1, 0, 0)
    );
    assert_eq!(counts.chunks_used, 0);
}

#[test]
fn plausible_records_with_one_wrong_field_are_refused_with_the_reason() {
    // words | inline, head 8 | tail 0, body 0, -, one word of head.
    let good = [5 | 1 << 32, 8, 0, 0, 42];
    let named = |slot: u64, segment: u64, offset: u64, len: u64| {
        [
            5 | 2 << 32 | slot << 48,
            8,
            len | segment << 32,
            offset | 1 << 32,
            42,
        ]
    };
    let cases: &[([u64; 5], u64, &str)] = &[
        ([5 | 3 << 32, 8, 0, 0, 42], 5, "unknown kind"),
        ([6 | 1 << 32, 8, 0, 0, 42], 5, "beyond the end"),
        ([5 | 1 << 32, 17, 0, 0, 42], 5, "inconsistent lengths"),
        (
            [5 | 1 << 32, 8 | 8 << 32, 0, 0, 42],
            5,
            "inconsistent lengths",
        ),
        (
            [5 | 1 << 32, 8, u64::from(u32::MAX), 0, 42],
            5,
            "inconsistent lengths",
        ),
        (good, 3, "without a header"),
        (good, 513, "impossible position"),
        (good, 5 | 2 << 48, "impossible epoch"),
        (named(1024, 0, 0, 8), 5, "out of range"),
        (named(0, 9, 0, 8), 5, "unknown segment"),
        (named(0, 1, 4090, 8), 5, "beyond the end of its segment"),
        (
            named(0, 1, 0xffff_ffff, 0xffff_ffff),
            5,
            "beyond the end of its segment",
        ),
    ];
    let transport = transport(2, 1);
    for (words, tail, expected) in cases {
        let raw = Raw::new(name(2, 100), &transport);
        let connection = raw.connection(&transport);
        let (_segment, fd) = OwnMemory::create("hostile", 4096).expect("memory");
        let segment = Packet::Segment {
            number: 1,
            bytes: 4096,
        };
        raw.send(&segment, &[&fd]);
        poll(&transport, 0);
        raw.write(words, *tail);
        assert!(transport.receive(&mut Vec::new()).is_none(), "{expected}");
        match poll(&transport, 0)[..] {
            [
                ConnectionEvent::Disconnected {
                    connection: down,
                    reason,
                    ..
                },
            ] => {
                assert_eq!(down, connection);
                let text = reason.to_string();
                assert!(text.contains(expected), "{text}, not {expected}");
            }
            ref other => panic!("{expected}: {other:?}"),
        }
    }
    assert_eq!(transport.counts().protocol_violations, cases.len() as u64);
    // The good one, and a named one that is as it should be.
    let raw = Raw::new(name(2, 100), &transport);
    let connection = raw.connection(&transport);
    raw.write(&good, 5);
    let mut head = Vec::new();
    assert!(
        transport
            .receive(&mut head)
            .is_some_and(|r| r.connection == connection)
    );
    assert_eq!(head, 42_u64.to_ne_bytes());
}

#[test]
fn a_reader_with_an_impossible_position_is_disconnected() {
    let transport = transport(3, 1);
    let raw = Raw::new(name(3, 100), &transport);
    let connection = raw.connection(&transport);
    raw.memory.word(AT_HEAD).store(1 << 40, Relaxed);
    let mut sent = 0;
    while transport.send(connection, &[0; 900], b"", b"").is_ok() {
        sent += 1;
        assert!(sent < 1_000, "the ring is full at last");
    }
    let events = poll(&transport, 0);
    assert!(
        matches!(
            events[..],
            [ConnectionEvent::Disconnected {
                reason: DisconnectReason::ProtocolViolation(_),
                ..
            }]
        ),
        "{events:?}"
    );
}

/// A memfd of that many bytes with these seals.
fn memfd(bytes: u64, seals: SealFlags) -> OwnedFd {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let fd = rustix::fs::memfd_create("hostile", flags).expect("memfd");
    rustix::fs::ftruncate(&fd, bytes).expect("size");
    rustix::fs::fcntl_add_seals(&fd, seals).expect("seals");
    fd
}

#[test]
fn descriptors_of_the_wrong_kind_are_refused() {
    let transport = transport(4, 1);
    let all = SealFlags::SHRINK | SealFlags::GROW | SealFlags::FUTURE_WRITE | SealFlags::SEAL;
    let bytes = connection_bytes(RING_BYTES) as u64;
    let null = rustix::fs::open(
        "/dev/null",
        rustix::fs::OFlags::RDWR,
        rustix::fs::Mode::empty(),
    );
    let null = null.expect("/dev/null");
    let (pipe, _writer) = rustix::pipe::pipe().expect("a pipe");
    // In place of page, memory, bell; what is wrong with it.
    let wrong: Vec<(usize, OwnedFd)> = vec![
        (1, memfd(bytes, all - SealFlags::SHRINK)),
        (1, memfd(bytes, SealFlags::empty())),
        (1, memfd(bytes - 1, all)),
        (1, memfd(0, all)),
        (1, memfd(bytes, all)),
        (1, null.try_clone().expect("dup")),
        (0, memfd(1 << 40, all)),
        (0, pipe.try_clone().expect("dup")),
        (2, pipe),
        (2, null),
        (
            2,
            eventfd(0, EventfdFlags::CLOEXEC).expect("one that blocks"),
        ),
        (2, memfd(8, all)),
    ];
    let count = wrong.len() as u64;
    for (place, fd) in wrong {
        let mut raw = Raw::new(name(4, 100), &transport);
        raw.descriptors[place] = fd;
        raw.say_hello();
        assert_eq!(poll(&transport, 0), []);
        assert!(raw.refusal().is_some(), "place {place}");
        assert_eq!(raw.refusal(), None, "once");
        assert_eq!(transport.counts().pending_handshakes, 0);
    }
    // Too few, too many, and none.
    for some in [0, 1, 2, 4] {
        let raw = Raw::new(name(4, 100), &transport);
        let extra = memfd(1, all);
        let mut list: Vec<&OwnedFd> = raw.descriptors.iter().collect();
        list.push(&extra);
        raw.send(&raw.hello(), &list[..some]);
        poll(&transport, 0);
        assert!(raw.refusal().is_some(), "{some} descriptors");
    }
    assert_eq!(transport.counts().handshakes_failed, count + 4);
    // Segments of every wrong kind end the connection.
    for (bytes, fd) in [
        (4096, memfd(4096, SealFlags::empty())),
        (8192, memfd(4096, all)),
        (1 << 40, memfd(4096, all)),
        (0, memfd(0, all)),
    ] {
        let raw = Raw::new(name(4, 100), &transport);
        raw.connection(&transport);
        raw.send(&Packet::Segment { number: 0, bytes }, &[&fd]);
        let events = poll(&transport, 0);
        assert!(
            matches!(events[..], [ConnectionEvent::Disconnected { .. }]),
            "{events:?}"
        );
    }
    let raw = Raw::new(name(4, 101), &transport);
    raw.connection(&transport);
}

#[test]
fn huge_pages_are_not_taken_for_memory() {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING | MemfdFlags::HUGETLB;
    let Ok(fd) = rustix::fs::memfd_create("hostile", flags) else {
        eprintln!("skipped: the system has no huge pages");
        return;
    };
    let size = 2 << 20;
    let all = SealFlags::SHRINK | SealFlags::GROW | SealFlags::FUTURE_WRITE | SealFlags::SEAL;
    if rustix::fs::ftruncate(&fd, size).is_err() || rustix::fs::fcntl_add_seals(&fd, all).is_err() {
        eprintln!("skipped: the system's huge pages cannot be sealed");
        return;
    }
    let unfit = crate::memory::PeerMemory::map(fd.as_fd(), size as usize).expect_err("unfit");
    assert_eq!(unfit.0, "is not made of ordinary pages");
}

#[test]
fn random_packets_neither_crash_nor_keep_a_transport_busy() {
    let mut honest = Honest::new(5);
    let mut chance = Chance(fastrand::Rng::with_seed(0x5eed_0005));
    let all = SealFlags::SHRINK | SealFlags::GROW | SealFlags::FUTURE_WRITE | SealFlags::SEAL;
    for round in 0..600_u64 {
        let raw = Raw::new(name(5, 100), &honest.b);
        if chance.below(2) == 0 {
            raw.connection(&honest.b);
        }
        for _ in 0..chance.below(20) {
            let numbers = [chance.number(), chance.number(), chance.number()];
            let packet = match chance.below(7) {
                0 => raw.hello(),
                1 => Packet::Proof([numbers[0], numbers[1]]),
                2 => Packet::Segment {
                    number: numbers[0] as u32,
                    bytes: numbers[1],
                },
                3 => Packet::Refuse {
                    code: numbers[0] as u32,
                    value: numbers[1] as u32,
                },
                4 => Packet::Bye,
                5 => Packet::Retire(numbers[0] as u32),
                _ => Packet::Hello {
                    name: name(5, numbers[0] as u8),
                    ring_bytes: numbers[1],
                    echo: [numbers[2], 0],
                },
            };
            let extra = memfd(chance.below(3) * 4096, all);
            let mut list: Vec<&OwnedFd> = raw.descriptors.iter().collect();
            list.push(&extra);
            raw.send(&packet, &list[..chance.below(5) as usize]);
            if chance.below(4) == 0 {
                let mut bytes = [0; 64];
                let len = chance.below(64) as usize;
                bytes.fill_with(|| chance.next() as u8);
                if chance.below(2) == 0 {
                    bytes[..8].copy_from_slice(&[
                        b'P',
                        b't',
                        b'S',
                        b'h',
                        1,
                        0,
                        numbers[0] as u8 % 8,
                        0,
                    ]);
                }
                let flags = rustix::net::SendFlags::NOSIGNAL;
                let _ = rustix::net::send(&raw.socket, &bytes[..len.max(1)], flags);
            }
            if chance.below(3) == 0 {
                poll(&honest.b, round * SECOND);
            }
        }
        poll(&honest.b, round * SECOND);
        honest.exchange();
        drop(raw);
        poll(&honest.b, round * SECOND);
        honest.exchange();
        poll(&honest.b, round * SECOND);
    }
    poll(&honest.b, 10_000 * SECOND);
    let counts = honest.b.counts();
    assert_eq!(
        (
            counts.connections,
            counts.pending_handshakes,
            counts.lingering_connections
        ),
        (1, 0, 0)
    );
}

#[test]
fn another_version_is_refused_with_both_numbers() {
    let transport = transport(6, 1);
    let raw = Raw::new(name(6, 100), &transport);
    let mut bytes = [0; 48];
    bytes[..8].copy_from_slice(&[b'P', b't', b'S', b'h', 9, 0, 1, 0]);
    let flags = rustix::net::SendFlags::NOSIGNAL;
    rustix::net::send(&raw.socket, &bytes, flags).expect("sent");
    poll(&transport, 0);
    let refusal = raw.refusal().expect("a refusal").to_string();
    let reported = format!("version {VERSION}, ours is {VERSION}");
    assert_eq!(refusal, reported, "its version, told to us");
    let ours = DisconnectReason::OtherVersion { theirs: 9 }.to_string();
    assert_eq!(ours, format!("version 9, ours is {VERSION}"));
    let end = packet::receive(raw.socket.as_fd());
    assert!(matches!(end, Incoming::Closed), "told once: {end:?}");
}

/// An answer to a refusal would be refused in turn.
#[test]
fn a_refusal_gets_no_answer() {
    let transport = transport(11, 1);
    let raw = Raw::new(name(11, 100), &transport);
    packet::refuse(raw.socket.as_fd(), DisconnectReason::TooManyConnections);
    poll(&transport, 0);
    let end = packet::receive(raw.socket.as_fd());
    assert!(matches!(end, Incoming::Closed), "{end:?}");
    assert_eq!(transport.counts().handshakes_failed, 1);
}

#[test]
fn silent_connections_beyond_the_limit_are_refused_and_time_out() {
    let mut honest = Honest::new(7);
    let crowd: Vec<Raw> = (0..60).map(|_| Raw::new(name(7, 100), &honest.b)).collect();
    poll(&honest.b, 0);
    let more: Vec<Raw> = (0..30).map(|_| Raw::new(name(7, 100), &honest.b)).collect();
    poll(&honest.b, 0);
    assert_eq!(honest.b.counts().pending_handshakes, 64);
    assert_eq!(
        more[29].refusal(),
        Some(DisconnectReason::TooManyConnections)
    );
    honest.exchange();
    assert_eq!(honest.b.poll(SECOND, &mut |_| {}), None);
    assert_eq!(honest.b.counts().pending_handshakes, 0);
    drop(crowd);
    let late = Raw::new(name(7, 100), &honest.b);
    late.connection(&honest.b);
}

/// Another holder of the descriptor made it blocking and filled it between our look
/// at its flags and our write.
#[test]
fn a_full_blocking_doorbell_of_a_peer_does_not_block() {
    let transport = transport(8, 1);
    let raw = Raw::new(name(8, 100), &transport);
    let connection = raw.connection(&transport);
    let bell = &raw.descriptors[2];
    rustix::io::write(bell, &(u64::MAX - 2).to_ne_bytes()).expect("filled");
    let flags = rustix::fs::fcntl_getfl(bell).expect("flags");
    rustix::fs::fcntl_setfl(bell, flags - rustix::fs::OFlags::NONBLOCK).expect("blocking");
    for sleep in 0..5 {
        raw.page.word(AT_SLEEPING).store(2 * sleep + 1, Relaxed);
        transport.send(connection, b"x", b"", b"").expect("sent");
    }
    assert_eq!(transport.counts().doorbells_rung, 5);
    let flags = rustix::fs::fcntl_getfl(bell).expect("flags");
    assert!(
        !flags.contains(rustix::fs::OFlags::NONBLOCK),
        "nobody's to change"
    );
}

#[test]
fn a_peer_whose_doorbell_was_emptied_is_woken_by_a_packet() {
    let transport = transport(8, 2);
    let raw = Raw::new(name(8, 101), &transport);
    let connection = raw.connection(&transport);
    rustix::io::read(&raw.descriptors[2], &mut [0; 8]).expect("emptied");
    raw.page.word(AT_SLEEPING).store(1, Relaxed);
    let woken = || {
        let mut packets = std::iter::from_fn(|| match packet::receive(raw.socket.as_fd()) {
            Incoming::Packet(packet, _) => Some(packet),
            _ => None,
        });
        packets.any(|packet| packet == Packet::Wake)
    };
    let send = || transport.send(connection, b"x", b"", b"").expect("sent");
    send();
    assert!(!woken(), "the first message of a sleep only rings");
    send();
    assert!(
        woken(),
        "the peer still sleeps, so its doorbell is looked at"
    );
    send();
    assert!(!woken(), "once per sleep");
    assert_eq!(transport.counts().doorbells_rung, 1);
}

#[test]
fn a_peer_is_informed_of_each_retired_segment_once() {
    let options = SharedMemoryTransportOptions {
        pool_bytes: 1_200_000,
        ..SharedMemoryTransportOptions::default()
    };
    let transport = SharedMemoryTransport::open(name(9, 1), options).expect("a transport");
    let raw = Raw::new(name(9, 100), &transport);
    let connection = raw.connection(&transport);
    let send = |len: usize| {
        let mut chunk = transport.chunk(len).expect("a chunk");
        chunk.fill(1);
        let body = chunk.freeze(len);
        transport.send(connection, b"", &body, b"").expect("sent");
    };
    let packets = || {
        let mut numbers = Vec::new();
        loop {
            match packet::receive(raw.socket.as_fd()) {
                Incoming::Packet(Packet::Segment { number, .. }, _) => {
                    numbers.push(("new", number))
                }
                Incoming::Packet(Packet::Retire(number), _) => numbers.push(("retired", number)),
                Incoming::Nothing => break,
                _ => panic!("an unexpected packet"),
            }
        }
        numbers.sort_unstable();
        numbers
    };
    // Messages of two sizes in a segment each. The peer returns both.
    send(1_000);
    send(10_000);
    assert_eq!(packets(), [("new", 0), ("new", 1)]);
    raw.memory.word(AT_RETURNED).store(1 | 1 << 32, Relaxed);
    // A large chunk needs the space of both.
    let large = transport.chunk(900_000).expect("a chunk");
    assert_eq!(packets(), [("retired", 0), ("retired", 1)]);
    drop(large);
    send(900);
    assert_eq!(packets(), [("new", 3)]);
}

#[test]
fn a_connect_that_waits_for_space_reports_a_peer_that_has_left_meanwhile() {
    let (a, b) = (transport(10, 1), transport(10, 2));
    // The peer accepts no connection, so its queue of connects fills up.
    let text = format!("pteros-{}", hex(&b.name()));
    let address = SocketAddrUnix::new_abstract_name(text.as_bytes()).expect("a name");
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let mut crowd = Vec::new();
    loop {
        let kind = SocketType::SEQPACKET;
        let socket = rustix::net::socket_with(AddressFamily::UNIX, kind, flags, None);
        let socket = socket.expect("a socket");
        let connected = rustix::net::connect(&socket, &address);
        if connected == Err(rustix::io::Errno::AGAIN) {
            break;
        }
        connected.expect("somebody listens");
        crowd.push(socket);
    }
    a.connect(b.name(), 0).expect("it waits");
    assert_eq!(poll(&a, SECOND / 2), []);
    assert_eq!(a.counts().pending_handshakes, 1);
    let peer = b.name();
    drop(b);
    let reason = DisconnectReason::Unreachable;
    assert_eq!(
        poll(&a, SECOND * 3 / 4),
        [ConnectionEvent::Refused { peer, reason }]
    );
    let counts = a.counts();
    assert_eq!(
        (counts.pending_handshakes, counts.handshakes_failed),
        (0, 1)
    );
}
