//! A talker sends to all its connections, checks what it receives, and keeps some
//! of it for a while.

use std::collections::{HashMap, VecDeque};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use bytes::Bytes;
use pteros_shm::{ConnectionEvent, PeerName, SharedMemoryTransport, SharedMemoryTransportOptions};
use rustix::event::{PollFd, PollFlags, Timespec, epoll};

use crate::crash::process::from_text;

/// Bodies that are kept.
const KEPT: usize = 4;
/// Sizes of bodies: in the ring, and in chunks of several classes.
const SIZES: [usize; 5] = [40, 700, 3_000, 20_000, 90_000];
/// Messages after which a talker that is to stop there says goodbye.
const GOODBYE_AFTER: u64 = 30;

/// The expected body, by its number.
fn fill(body: &mut [u8], number: u64) {
    for (index, word) in body.chunks_mut(8).enumerate() {
        let value = (number + index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        word.copy_from_slice(&value.to_le_bytes()[..word.len()]);
    }
}

fn is_right(body: &[u8], number: u64) -> bool {
    let mut expected = vec![0; body.len()];
    fill(&mut expected, number);
    body == expected
}

pub struct Talker {
    pub transport: SharedMemoryTransport,
    /// Doorbell and descriptor.
    watched: OwnedFd,
    /// Messages that were not what was sent.
    pub wrong: u64,
    connections: Vec<(u32, PeerName)>,
    received: HashMap<PeerName, u64>,
    kept: VecDeque<(Bytes, u64)>,
    number: u64,
    began: Instant,
}

impl Talker {
    pub fn new(name: PeerName) -> Self {
        let mut options = SharedMemoryTransportOptions::default();
        options.pool_bytes = 8 << 20;
        options.seed = u64::from(std::process::id());
        let transport = SharedMemoryTransport::open(name, options).expect("a transport");
        let watched = epoll::create(epoll::CreateFlags::CLOEXEC).expect("an epoll");
        let edge = epoll::EventFlags::IN | epoll::EventFlags::ET;
        for (fd, flags) in [
            (transport.doorbell(), edge),
            (transport.descriptor(), epoll::EventFlags::IN),
        ] {
            epoll::add(&watched, fd, epoll::EventData::new_u64(0), flags).expect("watched");
        }
        Self {
            transport,
            watched,
            wrong: 0,
            connections: Vec::new(),
            received: HashMap::new(),
            kept: VecDeque::new(),
            number: 0,
            began: Instant::now(),
        }
    }

    pub fn name(&self) -> PeerName {
        self.transport.name()
    }

    pub fn received_from(&self, name: PeerName) -> u64 {
        self.received.get(&name).copied().unwrap_or_default()
    }

    fn now(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    pub fn connect(&mut self, peer: PeerName) {
        let _ = self.transport.connect(peer, self.now());
    }

    /// Turns, receives all there is, sends one message to each, sleeps for at
    /// most a millisecond.
    pub fn step(&mut self) {
        let mut events = Vec::new();
        self.transport
            .poll(self.now(), &mut |event| events.push(event));
        for event in events {
            match event {
                ConnectionEvent::Connected { peer, connection } => {
                    self.connections.push((connection, peer))
                }
                ConnectionEvent::Disconnected { connection, .. } => {
                    self.connections.retain(|(number, _)| *number != connection)
                }
                _ => {}
            }
        }
        self.receive();
        for (connection, _) in &self.connections {
            self.number += 1;
            let number = self.number;
            let len = SIZES[number as usize % SIZES.len()];
            let head = number.to_le_bytes();
            if len > 256
                && let Ok(mut chunk) = self.transport.chunk(len)
            {
                fill(&mut chunk, number);
                let _ = self
                    .transport
                    .send(*connection, &head, &chunk.freeze(len), b"tail");
            } else {
                let mut body = vec![0; len];
                fill(&mut body, number);
                let _ = self.transport.send(*connection, &head, &body, b"tail");
            }
        }
        self.sleep();
    }

    fn receive(&mut self) {
        let mut head = Vec::new();
        while let Some(record) = self.transport.receive(&mut head) {
            *self.received.entry(record.peer).or_default() += 1;
            let number = head
                .first_chunk()
                .map_or(0, |bytes| u64::from_le_bytes(*bytes));
            let tail = head.ends_with(b"tail");
            let right = match &record.body {
                Some(body) => head.len() == 12 && is_right(body, number),
                None => is_right(&head[8..head.len() - 4], number),
            };
            self.wrong += u64::from(!tail || !right);
            if let Some(body) = record.body {
                self.kept.push_back((body, number));
            }
            if self.kept.len() > KEPT
                && let Some((body, number)) = self.kept.pop_front()
            {
                // It was ours all the time.
                self.wrong += u64::from(!is_right(&body, number));
            }
        }
    }

    fn sleep(&self) {
        if self.transport.arm_doorbell() {
            let millisecond = Timespec {
                tv_sec: 0,
                tv_nsec: 1_000_000,
            };
            let mut events = Vec::with_capacity(2);
            let buffer = rustix::buffer::spare_capacity(&mut events);
            let _ = epoll::wait(&self.watched, buffer, Some(&millisecond));
        }
        self.transport.disarm_doorbell();
    }

    /// Steps until something is so; false when that takes too long.
    pub fn try_until(&mut self, mut so: impl FnMut(&Self) -> bool) -> bool {
        let began = Instant::now();
        while !so(self) {
            if began.elapsed() > Duration::from_secs(30) {
                return false;
            }
            self.step();
        }
        true
    }

    pub fn step_until(&mut self, so: impl FnMut(&Self) -> bool) {
        let in_time = self.try_until(so);
        assert!(in_time, "{:?}", self.transport.counts());
    }
}

/// Actions of a child: its name, the peer it connects to, the point where it stops.
pub fn be(words: &[&str]) {
    let [own, partners, stop, passes] = words[..] else {
        panic!("{words:?}");
    };
    let stops = pteros_seeded_bugs::stop_at(stop, passes.parse().expect("a number"));
    assert!(stops || stop == "-", "{stop} is no step");
    let mut talker = Talker::new(from_text(own));
    println!("> ready");
    for partner in partners.split(',') {
        talker.connect(from_text(partner));
    }
    loop {
        talker.step();
        if stop == "bye-sent" && talker.received.values().sum::<u64>() > GOODBYE_AFTER {
            let connections = talker.connections.clone();
            connections
                .iter()
                .for_each(|(_, peer)| talker.transport.disconnect(*peer));
        }
        let input = std::io::stdin();
        let mut watched = [PollFd::new(&input, PollFlags::IN)];
        let at_once = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        if rustix::event::poll(&mut watched, Some(&at_once)) == Ok(1) {
            break;
        }
    }
    let received: u64 = talker.received.values().sum();
    println!("> wrong {} of {received}", talker.wrong);
}
