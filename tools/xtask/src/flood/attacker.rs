//! Attacker of the flood test: sends hostile datagrams at a steady rate. See
//! [`Kind`]. It prints `listens`, waits for a line on its standard input, prints
//! `begins` and sends.

use std::collections::BTreeSet;
use std::fs;
use std::net::{Ipv4Addr, UdpSocket};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::ValueEnum as _;

use super::attacking_host::{ATTACKER, VICTIM};
use super::forged::{Forger, Listener};
use crate::checkout::root;

/// Name of the attacker task.
pub const TASK: &str = "flood-attacker";

/// Domain 0: the multicast discovery address and the unicast ports of its first two
/// participants, for discovery and user traffic.
pub(super) const GROUP: (Ipv4Addr, u16) = (Ipv4Addr::new(239, 255, 0, 1), 7400);
pub(super) const PORTS: [u16; 2] = [7410, 7412];

/// The unicast port of the next participant. Participants announce themselves to
/// every bound port of this host.
const FREE_PORT: u16 = 7414;

/// Position of the source GUID prefix in an RTPS message (RTPS 2.5 §8.3.3).
pub(super) const PREFIX: std::ops::Range<usize> = 8..20;

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

/// Entity id of the SPDP writer (RTPS 2.5 §9.3.1.2).
const SPDP_WRITER: [u8; 4] = [0, 1, 0, 0xc2];

/// Datagrams of the attacked participants that are recorded to repeat them.
const RECORDED_MAX: usize = 16;

/// What the attacker sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Kind {
    /// Captured datagrams with false source GUID prefixes, truncated, with flipped
    /// bits and forged.
    Mixed,
    /// Valid announcements, each of another participant that does not exist.
    Announcements,
    /// The announcements of the attacked participants, again and again.
    Duplicates,
    /// ACKNACKs for everything. Like the kinds below they come from a host of the
    /// attacker's own, in the name of strangers and of the attacked participants.
    Requests,
    /// Heartbeats of a long history.
    Heartbeats,
    /// GAPs over much.
    Gaps,
    /// Single fragments of large samples.
    Fragments,
    /// Samples.
    Data,
    /// ACKNACKs with rising counts, each in the name of an attacked participant and from
    /// its address, to writers that it has matched. A process of the attacked host sends
    /// them.
    SpoofedRequests,
}

impl Kind {
    /// The word for it on the command line.
    pub fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// Whether it comes from a host of the attacker's own. Otherwise a process of the
    /// attacked host sends it.
    pub fn is_from_attacking_host(self) -> bool {
        !matches!(
            self,
            Self::Mixed | Self::Announcements | Self::Duplicates | Self::SpoofedRequests
        )
    }
}

/// The words of the attacker's command line.
#[derive(clap::Args)]
pub struct Attack {
    rate: u64,
    seconds: u64,
    #[arg(value_enum)]
    kind: Kind,
}

impl Attack {
    /// Sends packets and prints their number.
    pub fn run(self) -> Result<()> {
        let Self {
            rate,
            seconds,
            kind,
        } = self;
        let listener = match kind.is_from_attacking_host() {
            true => Some(Listener::open()?),
            false => None,
        };
        // Opened before the attacked processes start, so that it has their announcements when
        // the flood begins.
        let recorder =
            UdpSocket::bind((Ipv4Addr::LOCALHOST, FREE_PORT)).context("open a socket")?;
        println!("listens");
        std::io::stdin().read_line(&mut String::new())?;
        let mut source = match listener {
            Some(listener) => PacketSource::Forged(Forger::new(kind, listener.prefixes()?), VICTIM),
            None => PacketSource::of_the_attacked_host(kind, &recorder)?,
        };
        let address = match kind.is_from_attacking_host() {
            true => ATTACKER,
            false => Ipv4Addr::LOCALHOST,
        };
        let socket = UdpSocket::bind((address, 0)).context("open a socket")?;
        let mut random = Xorshift(0x5eed);
        let mut packet = Vec::new();
        let (mut sent, mut refused) = (0u64, 0u64);
        println!("begins");
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(seconds) {
            let due = rate * u64::try_from(start.elapsed().as_millis())? / 1000;
            if sent >= due {
                std::thread::sleep(Duration::from_micros(200));
            }
            while sent < due {
                let to = source.next(&mut packet, &mut random);
                refused += u64::from(socket.send_to(&packet, to).is_err());
                sent += 1;
            }
        }
        let per_second = sent / seconds.max(1);
        println!("sent {sent} packets, {per_second} a second, {refused} refused by the kernel");
        Ok(())
    }
}

/// Where the packets of a kind come from.
enum PacketSource {
    /// Captured or recorded ones, and where the GUID prefix stands in each.
    Recorded(Kind, Vec<Vec<u8>>, Vec<Vec<usize>>),
    /// Forged ones, and the address they go to.
    Forged(Forger, Ipv4Addr),
}

impl PacketSource {
    /// The source of a kind that a process of the attacked host sends.
    fn of_the_attacked_host(kind: Kind, recorder: &UdpSocket) -> Result<Self> {
        if kind == Kind::SpoofedRequests {
            let mut living: Vec<[u8; 12]> = Vec::new();
            for packet in recorded(recorder)? {
                let prefix = <[u8; 12]>::try_from(&packet[PREFIX])?;
                if !living.contains(&prefix) {
                    living.push(prefix);
                }
            }
            // The participant that pings comes later, and is sent requests all the same.
            ensure!(!living.is_empty(), "no participant announces itself");
            return Ok(Self::Forged(Forger::new(kind, living), Ipv4Addr::LOCALHOST));
        }
        let is_announcement = |packet: &Vec<u8>| packet.windows(4).any(|four| four == SPDP_WRITER);
        let packets: Vec<Vec<u8>> = match kind {
            Kind::Announcements => {
                let captured = captured()?.into_iter().filter(is_announcement);
                captured.map(relocate).collect()
            }
            Kind::Duplicates => recorded(recorder)?
                .into_iter()
                .filter(is_announcement)
                .collect(),
            _ => captured()?,
        };
        ensure!(!packets.is_empty(), "there is nothing to send");
        let positions = packets.iter().map(|p| prefix_positions(p)).collect();
        Ok(Self::Recorded(kind, packets, positions))
    }

    /// Builds the next packet. Returns where it goes.
    fn next(&mut self, packet: &mut Vec<u8>, random: &mut Xorshift) -> (Ipv4Addr, u16) {
        match self {
            Self::Forged(forger, host) => {
                forger.forge(packet, random);
                return forger.destination(*host, random);
            }
            Self::Recorded(Kind::Mixed, packets, _) => forge(packet, packets, random),
            Self::Recorded(kind, packets, positions) => {
                let index = random.below(packets.len());
                packet.clone_from(&packets[index]);
                if *kind == Kind::Announcements {
                    rename(packet, &positions[index], random);
                }
            }
        }
        match random.below(8) {
            0 => GROUP,
            other => (Ipv4Addr::LOCALHOST, PORTS[other % 2]),
        }
    }
}

/// Records what the attacked participants send to the port of the next participant
/// of this host, until each has announced itself.
fn recorded(socket: &UdpSocket) -> Result<Vec<Vec<u8>>> {
    socket.set_read_timeout(Some(Duration::from_millis(100)))?;
    let (mut found, mut senders) = (Vec::new(), BTreeSet::new());
    let mut buffer = vec![0; 65_536];
    let mut end = Instant::now() + Duration::from_secs(10);
    while senders.len() < PORTS.len() && found.len() < RECORDED_MAX && Instant::now() < end {
        let Ok(length) = socket.recv(&mut buffer) else {
            continue;
        };
        // The others announce themselves soon, if they run.
        end = end.min(Instant::now() + Duration::from_secs(1));
        let packet = &buffer[..length];
        if let Some(prefix) = packet.get(PREFIX) {
            senders.insert(prefix.to_vec());
            found.push(packet.to_vec());
        }
    }
    Ok(found)
}

/// Where the source GUID prefix stands in a packet: in the header and in GUIDs.
fn prefix_positions(packet: &[u8]) -> Vec<usize> {
    let prefix = &packet[PREFIX];
    let starts = packet.windows(prefix.len()).enumerate();
    let same = starts.filter(|(_, bytes)| *bytes == prefix);
    same.map(|(at, _)| at).collect()
}

/// Moves the unicast locators of an announcement to this host: an announcement
/// without a reachable address is dropped at once. A UDPv4 locator is a kind, a
/// port, twelve zeros and the address (RTPS 2.5 §9.3.2).
fn relocate(mut packet: Vec<u8>) -> Vec<u8> {
    for at in (PREFIX.end..packet.len().saturating_sub(24)).step_by(4) {
        let is_locator = packet[at..at + 4] == [1, 0, 0, 0] && packet[at + 8..at + 20] == [0; 12];
        let is_multicast = (224..240).contains(&packet[at + 20]);
        if is_locator && !is_multicast {
            packet[at + 20..at + 24].copy_from_slice(&[127, 0, 0, 1]);
        }
    }
    packet
}

/// Turns an announcement into that of another participant that does not exist.
fn rename(packet: &mut [u8], positions: &[usize], random: &mut Xorshift) {
    let name = random.next().to_le_bytes();
    for at in positions {
        packet[*at..*at + name.len()].copy_from_slice(&name);
    }
}

/// Builds the next packet of [`Kind::Mixed`], each with another false source GUID prefix.
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
pub(super) struct Xorshift(pub u64);

impl Xorshift {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() >> 33).unwrap_or(0) % limit.max(1)
    }
}
