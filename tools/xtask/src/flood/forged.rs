//! Forged submessages between user endpoints, from an address that speaks for no
//! participant: in the name of strangers and of the attacked participants, whose GUID
//! prefixes are public.

use std::net::{Ipv4Addr, UdpSocket};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::attacker::{GROUP, Kind, PORTS, PREFIX, Xorshift};
use super::attacking_host::ATTACKER;

/// Entity keys count from 1 in every process: those of the node's own topics and
/// services, then [`USER_KEY`] and the next.
const KEYS: usize = 32;
/// The key of the first endpoint that `ping-pong` creates for itself, a writer if it has
/// one.
const USER_KEY: u8 = 25;
/// Entity kinds of user endpoints without key (RTPS 2.5 table 9.1).
const WRITER: u8 = 3;
const READER: u8 = 4;

/// Bytes of a fragment, and of the sample that it pretends to be part of.
const FRAGMENT_BYTES: u16 = 1_024;
const SAMPLE_BYTES: u32 = 1 << 20;

/// Announcements that are read at most.
const HEARD_MAX: usize = 256;

/// Hears the announcements of the attacked participants on the attacker's host.
pub struct Listener(UdpSocket);

impl Listener {
    /// Joins the discovery group. Hears all that is announced from now on.
    pub fn open() -> Result<Self> {
        let socket = UdpSocket::bind(GROUP).context("open a socket for announcements")?;
        socket
            .join_multicast_v4(&GROUP.0, &ATTACKER)
            .context("join the discovery group")?;
        socket.set_read_timeout(Some(Duration::from_millis(200)))?;
        Ok(Self(socket))
    }

    /// The GUID prefixes heard. Waits for the first one.
    pub fn prefixes(&self) -> Result<Vec<[u8; 12]>> {
        let mut found: Vec<[u8; 12]> = Vec::new();
        let mut buffer = vec![0; 65_536];
        let end = Instant::now() + Duration::from_secs(10);
        for _ in 0..HEARD_MAX {
            let Ok(length) = self.0.recv(&mut buffer) else {
                if !found.is_empty() || Instant::now() > end {
                    break;
                }
                continue;
            };
            let prefix = buffer[..length].get(PREFIX);
            let prefix = prefix.and_then(|bytes| <[u8; 12]>::try_from(bytes).ok());
            found.extend(prefix.filter(|prefix| !found.contains(prefix)));
        }
        ensure!(!found.is_empty(), "no participant announces itself");
        Ok(found)
    }
}

/// Builds forged messages.
pub struct Forger {
    pub kind: Kind,
    /// GUID prefixes of living participants.
    pub living: Vec<[u8; 12]>,
    count: u32,
}

impl Forger {
    pub fn new(kind: Kind, living: Vec<[u8; 12]>) -> Self {
        Self {
            kind,
            living,
            count: 0,
        }
    }

    /// Where on the attacked host the next packet goes: mostly where user traffic
    /// arrives.
    pub fn destination(&self, host: Ipv4Addr, random: &mut Xorshift) -> (Ipv4Addr, u16) {
        match random.below(16) {
            0 if self.kind != Kind::SpoofedRequests => GROUP,
            other => (host, PORTS[other % 2]),
        }
    }

    /// Builds the next packet: every other one in the name of a living participant, and
    /// all spoofed ones.
    pub fn forge(&mut self, packet: &mut Vec<u8>, random: &mut Xorshift) {
        self.count = self.count.wrapping_add(1);
        packet.clear();
        packet.extend_from_slice(b"RTPS\x02\x04\x01\x50");
        let is_spoofed = self.kind == Kind::SpoofedRequests;
        if is_spoofed || self.count.is_multiple_of(2) {
            packet.extend_from_slice(&self.living[random.below(self.living.len())]);
        } else {
            packet.extend_from_slice(&random.next().to_le_bytes());
            packet.extend_from_slice(&[0, 0, 0, 1]);
        }
        let writer = match is_spoofed {
            true => [0, 0, USER_KEY, WRITER],
            false => entity(WRITER, random),
        };
        let reader = match (self.kind, random.below(2)) {
            (Kind::SpoofedRequests, other) => {
                let key = if other == 0 { USER_KEY } else { USER_KEY + 1 };
                [0, 0, key, READER]
            }
            (Kind::Requests, _) | (_, 0) => entity(READER, random),
            _ => [0; 4],
        };
        let head = [reader, writer].concat();
        let count = self.count.to_le_bytes();
        let number = u32::try_from(1 + random.below(100_000)).unwrap_or(1);
        let (id, flags, body) = match self.kind {
            Kind::Requests | Kind::SpoofedRequests => {
                // Everything from 1 on.
                let bitmap = [&32_u32.to_le_bytes()[..], &[0xff; 4]].concat();
                (6, 1, [head, sequence(1), bitmap, count.into()].concat())
            }
            Kind::Heartbeats => {
                let range = [sequence(1), sequence(number)].concat();
                (7, 1, [head, range, count.into()].concat())
            }
            Kind::Gaps => {
                let range = [sequence(1), sequence(number)].concat();
                let bitmap = [&32_u32.to_le_bytes()[..], &[0xff; 4]].concat();
                (8, 1, [head, range, bitmap].concat())
            }
            Kind::Fragments => {
                let fragment = u32::try_from(1 + random.below(1_024)).unwrap_or(1);
                let numbers = [
                    &fragment.to_le_bytes()[..],
                    &1_u16.to_le_bytes(),
                    &FRAGMENT_BYTES.to_le_bytes(),
                    &SAMPLE_BYTES.to_le_bytes(),
                ];
                let payload = vec![0xab; usize::from(FRAGMENT_BYTES)];
                let start = [vec![0, 0, 28, 0], head, sequence(number)].concat();
                (0x16, 1, [start, numbers.concat(), payload].concat())
            }
            _ => {
                let start = [vec![0, 0, 16, 0], head, sequence(number)].concat();
                let payload = [vec![0, 1, 0, 0], vec![0xab; 60]].concat();
                (0x15, 5, [start, payload].concat())
            }
        };
        let length = u16::try_from(body.len()).unwrap_or(0).to_le_bytes();
        packet.extend_from_slice(&[id, flags, length[0], length[1]]);
        packet.extend_from_slice(&body);
    }
}

fn entity(kind: u8, random: &mut Xorshift) -> [u8; 4] {
    let key = u8::try_from(1 + random.below(KEYS)).unwrap_or(1);
    [0, 0, key, kind]
}

/// A sequence number (RTPS 2.5 §9.3.2): two words.
fn sequence(number: u32) -> Vec<u8> {
    [[0; 4], number.to_le_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_its_submessage_in_the_name_of_strangers_and_of_the_living() {
        let living = [7; 12];
        for (kind, id, length) in [
            (Kind::Requests, 6, 28),
            (Kind::SpoofedRequests, 6, 28),
            (Kind::Heartbeats, 7, 28),
            (Kind::Gaps, 8, 32),
            (Kind::Fragments, 0x16, 32 + 1_024),
            (Kind::Data, 0x15, 20 + 64),
        ] {
            let mut forger = Forger::new(kind, vec![living]);
            let mut random = Xorshift(5);
            let mut packet = Vec::new();
            let mut named = 0;
            for _ in 0..100 {
                forger.forge(&mut packet, &mut random);
                named += usize::from(packet[PREFIX] == living);
                assert_eq!(packet[20], id, "{kind:?}");
                let stated = u16::from_le_bytes([packet[22], packet[23]]);
                assert_eq!(stated, length, "{kind:?}");
                assert_eq!(packet.len(), 24 + usize::from(length), "{kind:?}");
            }
            let expected = if kind == Kind::SpoofedRequests {
                100
            } else {
                50
            };
            assert_eq!(named, expected, "{kind:?}");
        }
    }
}
