//! Attacker of the flood test: sends captured datagrams with false source GUID
//! prefixes, truncated, with flipped bits and forged, at a steady rate.

use std::fs;
use std::net::{Ipv4Addr, UdpSocket};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::checkout::root;

/// Name of the attacker task.
pub const TASK: &str = "flood-attacker";

/// Domain 0: the multicast discovery address and the unicast ports of its first two
/// participants.
const GROUP: (Ipv4Addr, u16) = (Ipv4Addr::new(239, 255, 0, 1), 7400);
const PORTS: [u16; 2] = [7410, 7412];

/// Position of the source GUID prefix in an RTPS message (RTPS 2.5 §8.3.3).
const PREFIX: std::ops::Range<usize> = 8..20;

/// Submessages of unknown endpoints with extreme numbers: GAPs and heartbeats over
/// the whole range, a fragment of a sample of 4 GB, requests for every sequence
/// number.
const FORGED: [&[u8]; 5] = [
    // HEARTBEAT 1 ..= i64::MAX
    &[
        0x07, 1, 28, 0, 0, 0, 0, 0, 0, 0, 1, 3, 0, 0, 0, 0, 1, 0, 0, 0, 0xff, 0xff, 0xff, 0x7f,
        0xff, 0xff, 0xff, 0xff, 1, 0, 0, 0,
    ],
    // GAP 1 up to 2^62, and a full bitmap
    &[
        0x08, 1, 32, 0, 0, 0, 0, 0, 0, 0, 1, 3, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, 0,
        32, 0, 0, 0, 0xff, 0xff, 0xff, 0xff,
    ],
    // DATA_FRAG: one fragment of a sample of 4 GB
    &[
        0x16, 1, 36, 0, 0, 0, 28, 0, 0, 0, 0, 0, 0, 0, 1, 3, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1,
        0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 1, 2, 3,
    ],
    // ACKNACK for everything from 1 on
    &[
        0x06, 1, 28, 0, 0, 0, 1, 4, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 32, 0, 0, 0, 0xff, 0xff,
        0xff, 0xff, 1, 0, 0, 0,
    ],
    // A submessage longer than its message.
    &[0x15, 1, 0xf0, 0xff, 0, 0, 16, 0],
];

/// Sends packets and prints their number.
pub fn run(arguments: &[String]) -> Result<()> {
    let [rate, seconds] = arguments else {
        bail!("usage: {TASK} RATE SECONDS");
    };
    let rate: u64 = rate.parse().context("RATE")?;
    let seconds: u64 = seconds.parse().context("SECONDS")?;
    let captured = captured()?;
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).context("open a socket")?;
    let mut random = Xorshift(0x5eed);
    let mut packet = Vec::new();
    let (mut sent, mut refused) = (0u64, 0u64);
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(seconds) {
        let due = rate * u64::try_from(start.elapsed().as_millis())? / 1000;
        if sent >= due {
            std::thread::sleep(Duration::from_micros(200));
        }
        while sent < due {
            forge(&mut packet, &captured, &mut random);
            let to = match random.below(8) {
                0 => GROUP,
                other => (Ipv4Addr::LOCALHOST, PORTS[other % 2]),
            };
            refused += u64::from(socket.send_to(&packet, to).is_err());
            sent += 1;
        }
    }
    let per_second = sent / seconds.max(1);
    println!("sent {sent} packets, {per_second} a second, {refused} refused by the kernel");
    Ok(())
}

/// Builds the next packet, each with another false source GUID prefix.
fn forge(packet: &mut Vec<u8>, captured: &[Vec<u8>], random: &mut Xorshift) {
    packet.clear();
    packet.extend_from_slice(&captured[random.below(captured.len())]);
    match random.below(6) {
        // As captured: discovery data of participants that do not exist.
        0 | 1 => {}
        2 => {
            for _ in 0..4 {
                let at = PREFIX.end + random.below(packet.len() - PREFIX.end);
                packet[at] ^= 1 << random.below(8);
            }
        }
        3 => packet.truncate(PREFIX.end + random.below(packet.len() - PREFIX.end)),
        4 => {
            packet.truncate(PREFIX.end);
            packet.extend((0..random.below(200)).map(|_| random.next().to_le_bytes()[0]));
        }
        _ => {
            packet.truncate(PREFIX.end);
            for _ in 0..=random.below(3) {
                packet.extend_from_slice(FORGED[random.below(FORGED.len())]);
            }
        }
    }
    let name = random.next().to_le_bytes();
    packet[PREFIX.start..PREFIX.start + 8].copy_from_slice(&name);
}

/// Returns every captured datagram that is long enough to have a body.
fn captured() -> Result<Vec<Vec<u8>>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root().join("crates/rtps/tests/vectors"))? {
        let path = entry?.path();
        if path.extension().is_none_or(|e| e != "rtps") {
            continue;
        }
        let file = fs::read(&path).with_context(|| format!("read {}", path.display()))?;
        let mut rest = file.strip_prefix(b"RTPSVEC1").unwrap_or_default();
        while let Some((head, after)) = rest.split_at_checked(20) {
            let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
            let Some((message, after)) = after.split_at_checked(length) else {
                break;
            };
            rest = after;
            if message.len() > PREFIX.end && message.len() < 1_400 {
                found.push(message.to_vec());
            }
        }
    }
    ensure!(
        !found.is_empty(),
        "no captures in crates/rtps/tests/vectors"
    );
    Ok(found)
}

/// xorshift64*: the same flood in every run.
struct Xorshift(u64);

impl Xorshift {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() >> 33).unwrap_or(0) % limit.max(1)
    }
}
