//! Two hubs, and turns until something is so.

use std::sync::atomic::{AtomicU32, Ordering};

use pteros_shm::{Hub, HubOptions, LinkEvent, Name, Record};

/// A name that no other test on this machine has.
pub fn name() -> Name {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let mut name = *b"test........";
    name[4..8].copy_from_slice(&std::process::id().to_le_bytes());
    name[8..].copy_from_slice(&NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes());
    name
}

pub fn options() -> HubOptions {
    HubOptions::default()
}

pub fn open(options: HubOptions) -> Hub {
    Hub::open(name(), options).expect("a hub")
}

/// One turn; what it told.
pub fn turn(hub: &Hub, now: u64) -> Vec<LinkEvent> {
    let mut events = Vec::new();
    hub.turn(now, &mut |event| events.push(event));
    events
}

/// The number of the link that an event announces.
pub fn up(events: &[LinkEvent]) -> Option<u32> {
    events.iter().find_map(|event| match event {
        LinkEvent::Up { link, .. } => Some(*link),
        _ => None,
    })
}

/// Hubs `a` and `b`, linked; `ab` is the link as `a` calls it.
pub struct Pair {
    pub a: Hub,
    pub b: Hub,
    pub ab: u32,
    pub ba: u32,
}

impl Pair {
    pub fn new(of_a: HubOptions, of_b: HubOptions) -> Self {
        let (a, b) = (open(of_a), open(of_b));
        let (ab, ba) = link(&a, &b);
        Self { a, b, ab, ba }
    }
}

/// Links two hubs; the link as each calls it.
pub fn link(a: &Hub, b: &Hub) -> (u32, u32) {
    a.connect(b.name(), 0).expect("connect");
    let (mut ab, mut ba) = (None, None);
    for _ in 0..10 {
        ba = ba.or(up(&turn(b, 0)));
        ab = ab.or(up(&turn(a, 0)));
        if let (Some(ab), Some(ba)) = (ab, ba) {
            return (ab, ba);
        }
    }
    panic!("no link: {:?} {:?}", a.counts(), b.counts());
}

/// What came next: the bytes of the whole message, and the record.
pub fn receive(hub: &Hub) -> Option<(Vec<u8>, Record)> {
    let mut head = Vec::new();
    let record = hub.receive(&mut head)?;
    assert_eq!(head.len(), record.head_len + record.tail_len);
    let mut whole = head[..record.head_len].to_vec();
    whole.extend_from_slice(record.body.as_deref().unwrap_or_default());
    whole.extend_from_slice(&head[record.head_len..]);
    Some((whole, record))
}

/// A chunk of that many bytes that can be told from others.
pub fn pattern(len: usize, seed: u8) -> Vec<u8> {
    let byte = |i: usize| (i as u8).wrapping_mul(31).wrapping_add(seed);
    (0..len).map(byte).collect()
}
