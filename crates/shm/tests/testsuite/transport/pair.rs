//! Two transports, and polls until a condition holds.

use std::sync::atomic::{AtomicU32, Ordering};

use pteros_shm::{
    ConnectionEvent, PeerName, ReceivedMessage, SharedMemoryTransport, SharedMemoryTransportOptions,
};

/// A name that no other test on this machine has.
pub fn name() -> PeerName {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let mut name = *b"test........";
    name[4..8].copy_from_slice(&std::process::id().to_le_bytes());
    name[8..].copy_from_slice(&NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes());
    name
}

pub fn options() -> SharedMemoryTransportOptions {
    SharedMemoryTransportOptions::default()
}

pub fn open(options: SharedMemoryTransportOptions) -> SharedMemoryTransport {
    SharedMemoryTransport::open(name(), options).expect("a transport")
}

/// One poll; its events.
pub fn poll(transport: &SharedMemoryTransport, now: u64) -> Vec<ConnectionEvent> {
    let mut events = Vec::new();
    transport.poll(now, &mut |event| events.push(event));
    events
}

/// The number of the connection that an event announces.
pub fn up(events: &[ConnectionEvent]) -> Option<u32> {
    events.iter().find_map(|event| match event {
        ConnectionEvent::Connected { connection, .. } => Some(*connection),
        _ => None,
    })
}

/// Two connected transports; `ab` is the connection's number at `a`.
pub struct Pair {
    pub a: SharedMemoryTransport,
    pub b: SharedMemoryTransport,
    pub ab: u32,
    pub ba: u32,
}

impl Pair {
    pub fn new(of_a: SharedMemoryTransportOptions, of_b: SharedMemoryTransportOptions) -> Self {
        let (a, b) = (open(of_a), open(of_b));
        let (ab, ba) = connection(&a, &b);
        Self { a, b, ab, ba }
    }
}

/// Connects two transports; the connection's number at each.
pub fn connection(a: &SharedMemoryTransport, b: &SharedMemoryTransport) -> (u32, u32) {
    a.connect(b.name(), 0).expect("connect");
    let (mut ab, mut ba) = (None, None);
    for _ in 0..10 {
        ba = ba.or(up(&poll(b, 0)));
        ab = ab.or(up(&poll(a, 0)));
        if let (Some(ab), Some(ba)) = (ab, ba) {
            return (ab, ba);
        }
    }
    panic!("no connection: {:?} {:?}", a.counts(), b.counts());
}

/// The next message: its bytes, and the record.
pub fn receive(transport: &SharedMemoryTransport) -> Option<(Vec<u8>, ReceivedMessage)> {
    let mut head = Vec::new();
    let record = transport.receive(&mut head)?;
    assert_eq!(head.len(), record.head_len + record.tail_len);
    let mut whole = head[..record.head_len].to_vec();
    whole.extend_from_slice(record.body.as_deref().unwrap_or_default());
    whole.extend_from_slice(&head[record.head_len..]);
    Some((whole, record))
}

/// Bytes with a recognisable pattern.
pub fn pattern(len: usize, seed: u8) -> Vec<u8> {
    let byte = |i: usize| (i as u8).wrapping_mul(31).wrapping_add(seed);
    (0..len).map(byte).collect()
}
