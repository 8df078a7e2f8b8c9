//! Latency of a message: round trips between two processes, spinning and sleeping,
//! next to those of the bare kernel; and the cost of sending and receiving alone.
//!
//! `cargo run --release -p pteros-shm --example round_trips [-- ROUNDS]`
//!
//! Both ends write and read the first and the last word of each body, as with a
//! loaned message; nothing is filled or copied. Times are for the whole round trip.
#![allow(clippy::disallowed_methods, reason = "measures a real machine")]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pteros_shm::{ConnectionEvent, PeerName, SharedMemoryTransport, SharedMemoryTransportOptions};
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, eventfd};

/// Body sizes; none means a message of 64 bytes in the ring.
const BODIES: [usize; 4] = [0, 64 << 10, 1 << 20, 4 << 20];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["echo", name, how] => echo(name, how == "spin"),
        [] => measure(20_000),
        [rounds] => measure(rounds.parse().expect("ROUNDS is a number")),
        _ => eprintln!("usage: round_trips [ROUNDS]"),
    }
}

fn measure(rounds: usize) {
    println!(
        "{:<44}{:>10}{:>10}{:>10}",
        "microseconds", "p50", "p95", "min"
    );
    alone(rounds);
    let rows = ["spin", "sleep"];
    for how in rows {
        let spin = how == "spin";
        for body in BODIES {
            let label = match body {
                0 => format!("{how}: 64 B in the ring"),
                _ => format!("{how}: {} KiB zero-copy", body >> 10),
            };
            report(&label, round_trips(body, spin, rounds));
        }
        if spin {
            report("spin: two words, two threads (floor)", words(rounds));
        } else {
            report(
                "sleep: two eventfds read, two threads (floor)",
                bells(rounds, false),
            );
            report(
                "sleep: two eventfds, epoll, two threads (floor)",
                bells(rounds, true),
            );
        }
    }
}

fn report(label: &str, mut times: Vec<Duration>) {
    times.sort();
    let at = |part: f64| times[((times.len() - 1) as f64 * part) as usize].as_nanos() as f64 / 1e3;
    println!(
        "{label:<44}{:>10.3}{:>10.3}{:>10.3}",
        at(0.5),
        at(0.95),
        at(0.0)
    );
}

/// A transport, its connection, and how it waits.
struct End {
    transport: SharedMemoryTransport,
    epoll: std::os::fd::OwnedFd,
    connection: Option<u32>,
    spin: bool,
    head: Vec<u8>,
}

impl End {
    fn new(name: PeerName, spin: bool) -> Self {
        let transport = SharedMemoryTransport::open(name, SharedMemoryTransportOptions::default())
            .expect("a transport");
        let epoll = epoll::create(CreateFlags::CLOEXEC).expect("epoll");
        let (bell, descriptor) = (EventData::new_u64(0), EventData::new_u64(1));
        let edge = EventFlags::IN | EventFlags::ET;
        epoll::add(&epoll, transport.doorbell(), bell, edge).expect("watch");
        epoll::add(&epoll, transport.descriptor(), descriptor, EventFlags::IN).expect("watch");
        Self {
            transport,
            epoll,
            connection: None,
            spin,
            head: Vec::new(),
        }
    }

    /// Waits for the connection, or for its end.
    fn turn_until(&mut self, up: bool) {
        while self.connection.is_some() != up {
            let connection = &mut self.connection;
            self.transport.poll(0, &mut |event| match event {
                ConnectionEvent::Connected {
                    connection: number, ..
                } => *connection = Some(number),
                ConnectionEvent::Disconnected { .. } => *connection = None,
                _ => {}
            });
            self.transport.receive(&mut self.head);
        }
    }

    fn send(&self, body: usize, word: u64) {
        let connection = self.connection.expect("linked");
        if body == 0 {
            let mut head = [0; 64];
            head[..8].copy_from_slice(&word.to_ne_bytes());
            self.transport
                .send(connection, &head, b"", b"")
                .expect("sent");
            return;
        }
        let mut chunk = self.transport.chunk(body).expect("a chunk");
        chunk[..8].copy_from_slice(&word.to_ne_bytes());
        chunk[body - 8..].copy_from_slice(&word.to_ne_bytes());
        let body = chunk.freeze(body);
        self.transport
            .send(connection, &[0; 64], &body, b"")
            .expect("sent");
    }

    /// The next message: its body's length and its word. `None` when the peer has
    /// disconnected.
    fn receive(&mut self) -> Option<(usize, u64)> {
        let mut events = Vec::with_capacity(4);
        loop {
            if let Some(record) = self.transport.receive(&mut self.head) {
                let word = |bytes: &[u8]| u64::from_ne_bytes(*bytes.first_chunk().expect("a word"));
                return Some(match record.body {
                    None => (0, word(&self.head)),
                    Some(body) => {
                        let last = word(&body[body.len() - 8..]);
                        assert_eq!(word(&body), last);
                        (body.len(), last)
                    }
                });
            }
            if self.spin {
                std::hint::spin_loop();
                continue;
            }
            if self.transport.arm_doorbell() {
                events.clear();
                let spare = rustix::buffer::spare_capacity(&mut events);
                let _ = epoll::wait(&self.epoll, spare, None);
            }
            self.transport.disarm_doorbell();
            if events
                .iter()
                .any(|event: &epoll::Event| event.data.u64() == 1)
            {
                let mut down = false;
                self.transport.poll(0, &mut |event| {
                    down |= matches!(event, ConnectionEvent::Disconnected { .. })
                });
                if down {
                    return None;
                }
            }
        }
    }
}

fn name(process: u32, number: u8) -> PeerName {
    let mut name = [number; 12];
    name[..4].copy_from_slice(&process.to_le_bytes());
    name
}

/// The other process: sends back whatever comes, of the same size.
fn echo(parent: &str, spin: bool) {
    let parent: u32 = parent.parse().expect("a process");
    let mut end = End::new(name(parent, 2), spin);
    println!("ready");
    end.turn_until(true);
    if spin {
        let mut idle = 0_u64;
        // A spinning process gets no event of a disconnect; it polls now and then.
        loop {
            match end.transport.receive(&mut end.head) {
                Some(record) => {
                    let len = record.body.as_ref().map_or(0, |body| body.len());
                    let from = record.body.as_deref().unwrap_or(&end.head);
                    let word = u64::from_ne_bytes(*from.first_chunk().expect("a word"));
                    drop(record);
                    end.send(len, word);
                }
                None => {
                    idle += 1;
                    if idle.is_multiple_of(1 << 16) {
                        let mut down = false;
                        end.transport.poll(0, &mut |e| {
                            down |= matches!(e, ConnectionEvent::Disconnected { .. })
                        });
                        if down {
                            return;
                        }
                    }
                    std::hint::spin_loop();
                }
            }
        }
    }
    while let Some((len, word)) = end.receive() {
        end.send(len, word);
    }
}

fn round_trips(body: usize, spin: bool, rounds: usize) -> Vec<Duration> {
    let own = std::process::id();
    let mut child = spawn_echo(own, spin);
    let mut end = End::new(name(own, 1), spin);
    end.transport
        .connect(name(own, 2), 0)
        .expect("the other listens");
    end.turn_until(true);
    let mut times = Vec::with_capacity(rounds);
    for round in 0..(rounds + rounds / 10) as u64 {
        let began = Instant::now();
        end.send(body, round);
        let (len, word) = end.receive().expect("an answer");
        let time = began.elapsed();
        assert_eq!((len, word), (body, round));
        if round >= rounds as u64 / 10 {
            times.push(time);
        }
    }
    drop(end);
    let _ = child.wait();
    times
}

fn spawn_echo(own: u32, spin: bool) -> Child {
    let how = if spin { "spin" } else { "sleep" };
    let path = std::env::current_exe().expect("our own path");
    let mut child = Command::new(path)
        .args(["echo", &own.to_string(), how])
        .stdout(Stdio::piped())
        .spawn()
        .expect("a process");
    let mut line = String::new();
    let output = child.stdout.take().expect("piped");
    BufReader::new(output).read_line(&mut line).expect("a line");
    child
}

/// Sending and receiving without anybody else, a hundred at a time.
fn alone(rounds: usize) {
    let own = std::process::id();
    let (mut a, mut b) = (End::new(name(own, 3), true), End::new(name(own, 4), true));
    a.transport
        .connect(b.transport.name(), 0)
        .expect("it listens");
    b.transport.poll(0, &mut |_| {});
    a.turn_until(true);
    b.turn_until(true);
    for (label, body) in [("64 B", 0), ("1 MiB zero-copy", 1 << 20)] {
        const BATCH: u32 = 50;
        let (mut sends, mut receives) = (Vec::new(), Vec::new());
        for round in 0..rounds / BATCH as usize {
            let began = Instant::now();
            for _ in 0..BATCH {
                a.send(body, round as u64);
            }
            sends.push(began.elapsed() / BATCH);
            let began = Instant::now();
            for _ in 0..BATCH {
                b.receive().expect("it is there");
            }
            receives.push(began.elapsed() / BATCH);
        }
        report(&format!("send alone: {label}"), sends);
        report(&format!("receive alone: {label}"), receives);
    }
}

/// The floor of two that spin: a cache line there and one back.
fn words(rounds: usize) -> Vec<Duration> {
    let words = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
    let there = Arc::clone(&words);
    let echo = std::thread::spawn(move || {
        for round in 1..=rounds as u64 {
            while there[0].load(Ordering::Acquire) != round {
                std::hint::spin_loop();
            }
            there[1].store(round, Ordering::Release);
        }
    });
    let mut times = Vec::with_capacity(rounds);
    for round in 1..=rounds as u64 {
        let began = Instant::now();
        words[0].store(round, Ordering::Release);
        while words[1].load(Ordering::Acquire) != round {
            std::hint::spin_loop();
        }
        times.push(began.elapsed());
    }
    let _ = echo.join();
    times
}

/// The floor of two that sleep: an eventfd there and one back.
fn bells(rounds: usize, with_epoll: bool) -> Vec<Duration> {
    let flags = if with_epoll {
        EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK
    } else {
        EventfdFlags::CLOEXEC
    };
    let bell = || Arc::new(eventfd(0, flags).expect("eventfd"));
    let (there, back) = (bell(), bell());
    let wait = move |bell: &std::os::fd::OwnedFd, set: &std::os::fd::OwnedFd| {
        if with_epoll {
            let mut events: Vec<epoll::Event> = Vec::with_capacity(1);
            let spare = rustix::buffer::spare_capacity(&mut events);
            let _ = epoll::wait(set, spare, None);
        } else {
            let _ = rustix::io::read(bell, &mut [0; 8]);
        }
    };
    let set = move |bell: &std::os::fd::OwnedFd| {
        let set = epoll::create(CreateFlags::CLOEXEC).expect("epoll");
        let edge = EventFlags::IN | EventFlags::ET;
        epoll::add(&set, bell, EventData::new_u64(0), edge).expect("watch");
        set
    };
    let ring = |bell: &std::os::fd::OwnedFd| rustix::io::write(bell, &1_u64.to_ne_bytes());
    let (far_there, far_back) = (Arc::clone(&there), Arc::clone(&back));
    let echo = std::thread::spawn(move || {
        let set = set(&far_there);
        for _ in 0..rounds {
            wait(&far_there, &set);
            let _ = rustix::io::write(&*far_back, &1_u64.to_ne_bytes());
        }
    });
    let near = set(&back);
    let mut times = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        let began = Instant::now();
        let _ = ring(&there);
        wait(&back, &near);
        times.push(began.elapsed());
    }
    let _ = echo.join();
    times
}
