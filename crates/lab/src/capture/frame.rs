//! Ethernet, IPv4 and UDP taken apart; IP fragments put together again.
//!
//! What is cut short or contradicts itself gives nothing, and is counted by whoever
//! asks. At most 64 datagrams are incomplete at a time: then the oldest goes.

use std::net::{Ipv4Addr, SocketAddrV4};

const ETHERNET_BYTES: usize = 14;
const ETHERTYPE_IPV4: [u8; 2] = [0x08, 0x00];
const PROTOCOL_UDP: u8 = 17;
const INCOMPLETE_MAX: usize = 64;
/// The largest datagram of IPv4.
const DATAGRAM_BYTES_MAX: usize = 65_535;

/// A UDP datagram, and what it took to carry it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// From where.
    pub source: SocketAddrV4,
    /// To where.
    pub destination: SocketAddrV4,
    /// IP packets it came in: one, or its fragments.
    pub packets: u64,
    /// Bytes of those, from the IP header on.
    pub bytes: u64,
    /// What it carries.
    pub payload: Vec<u8>,
}

/// What became of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It completes a datagram.
    Datagram(Datagram),
    /// It is a part of one.
    Part,
    /// It is no UDP over IPv4, or broken.
    Other,
}

/// What tells one datagram's fragments from others': RFC 791, 3.2.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Key {
    source: Ipv4Addr,
    destination: Ipv4Addr,
    identification: u16,
}

/// A datagram of which some is there.
#[derive(Debug)]
struct Incomplete {
    key: Key,
    packets: u64,
    bytes: u64,
    /// What is known of its length, once the last fragment came.
    length: Option<usize>,
    received: usize,
    data: Vec<u8>,
}

/// Puts fragments together.
#[derive(Debug, Default)]
pub struct Reassembly {
    incomplete: Vec<Incomplete>,
    dropped_packets: u64,
}

impl Reassembly {
    /// Takes in one Ethernet frame.
    pub fn handle(&mut self, frame: &[u8]) -> Taken {
        self.take(frame).unwrap_or(Taken::Other)
    }

    fn take(&mut self, frame: &[u8]) -> Option<Taken> {
        if frame.get(12..ETHERNET_BYTES)? != ETHERTYPE_IPV4 {
            return None;
        }
        let packet = frame.get(ETHERNET_BYTES..)?;
        let header_bytes = usize::from(packet.first()? & 0x0f) * 4;
        let number = |at: usize| Some(u16::from_be_bytes(*packet.get(at..at + 2)?.first_chunk()?));
        let address = |at: usize| Some(Ipv4Addr::from(*packet.get(at..at + 4)?.first_chunk()?));
        let total = usize::from(number(2)?);
        let (first, flags) = (packet.first()? >> 4, number(6)?);
        if first != 4 || header_bytes < 20 || *packet.get(9)? != PROTOCOL_UDP {
            return None;
        }
        let data = packet.get(header_bytes..total)?;
        let key = Key {
            source: address(12)?,
            destination: address(16)?,
            identification: number(4)?,
        };
        let (more, offset) = (flags & 0x2000 != 0, usize::from(flags & 0x1fff) * 8);
        if !more && offset == 0 {
            return datagram(key, 1, total as u64, data).map(Taken::Datagram);
        }
        self.add(key, (offset, more), total as u64, data)
    }

    fn add(
        &mut self,
        key: Key,
        (offset, more): (usize, bool),
        bytes: u64,
        data: &[u8],
    ) -> Option<Taken> {
        let end = offset + data.len();
        if end > DATAGRAM_BYTES_MAX {
            return None;
        }
        let at = match self.incomplete.iter().position(|one| one.key == key) {
            Some(at) => at,
            None => {
                if self.incomplete.len() == INCOMPLETE_MAX {
                    self.dropped_packets += self.incomplete.remove(0).packets;
                }
                self.incomplete.push(Incomplete {
                    key,
                    packets: 0,
                    bytes: 0,
                    length: None,
                    received: 0,
                    data: Vec::new(),
                });
                self.incomplete.len() - 1
            }
        };
        let one = self.incomplete.get_mut(at)?;
        one.packets += 1;
        one.bytes += bytes;
        // Devices of one host neither repeat nor overlap fragments.
        one.received += data.len();
        if one.data.len() < end {
            one.data.resize(end, 0);
        }
        one.data.get_mut(offset..end)?.copy_from_slice(data);
        if !more {
            one.length = Some(end);
        }
        if one.length != Some(one.received) {
            return Some(Taken::Part);
        }
        let whole = self.incomplete.remove(at);
        datagram(key, whole.packets, whole.bytes, &whole.data).map(Taken::Datagram)
    }

    /// Packets of datagrams that never were complete.
    pub fn incomplete_packets(&self) -> u64 {
        let waiting = self.incomplete.iter().map(|one| one.packets);
        self.dropped_packets + waiting.sum::<u64>()
    }
}

fn datagram(key: Key, packets: u64, bytes: u64, data: &[u8]) -> Option<Datagram> {
    let port = |at: usize| Some(u16::from_be_bytes(*data.get(at..at + 2)?.first_chunk()?));
    let length = usize::from(port(4)?);
    Some(Datagram {
        source: SocketAddrV4::new(key.source, port(0)?),
        destination: SocketAddrV4::new(key.destination, port(2)?),
        packets,
        bytes,
        payload: data.get(8..length)?.to_vec(),
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// An Ethernet frame with (a part of) a datagram of `payload`.
    pub(in super::super) fn frames(payload: &[u8], mtu: usize) -> Vec<Vec<u8>> {
        let mut datagram = Vec::new();
        datagram.extend(7411_u16.to_be_bytes());
        datagram.extend(7410_u16.to_be_bytes());
        datagram.extend((payload.len() as u16 + 8).to_be_bytes());
        datagram.extend([0, 0]);
        datagram.extend(payload);
        let room = (mtu - 20) / 8 * 8;
        let parts: Vec<&[u8]> = datagram.chunks(room).collect();
        let last = parts.len() - 1;
        let frame = |(index, part): (usize, &&[u8])| {
            let mut frame = vec![0; 12];
            frame.extend(ETHERTYPE_IPV4);
            let flags = (index * room / 8) as u16 | if index == last { 0 } else { 0x2000 };
            frame.extend([0x45, 0]);
            frame.extend((part.len() as u16 + 20).to_be_bytes());
            frame.extend([0x12, 0x34]);
            frame.extend(flags.to_be_bytes());
            frame.extend([64, PROTOCOL_UDP, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1]);
            frame.extend(*part);
            frame
        };
        parts.iter().enumerate().map(frame).collect()
    }

    #[test]
    fn a_datagram_in_fragments_is_the_same_in_any_order() {
        let payload: Vec<u8> = (0..5000_u32).map(|n| n as u8).collect();
        let mut parts = frames(&payload, 1500);
        assert_eq!(parts.len(), 4);
        for turn in 0..2 {
            let mut reassembly = Reassembly::default();
            let (last, rest) = parts.split_last().expect("some");
            for part in rest {
                assert_eq!(reassembly.handle(part), Taken::Part, "turn {turn}");
            }
            let Taken::Datagram(whole) = reassembly.handle(last) else {
                panic!("incomplete");
            };
            assert_eq!((whole.packets, whole.bytes), (4, 5000 + 8 + 4 * 20));
            assert_eq!(whole.payload, payload);
            assert_eq!(whole.destination.port(), 7410);
            assert_eq!(reassembly.incomplete_packets(), 0);
            parts.reverse();
        }
    }

    #[test]
    fn what_is_cut_short_gives_nothing_and_incomplete_ones_are_few() {
        let mut reassembly = Reassembly::default();
        let frame = frames(b"RTPS", 1500).remove(0);
        for length in 0..frame.len() {
            assert_eq!(
                reassembly.handle(&frame[..length]),
                Taken::Other,
                "{length}"
            );
        }
        assert!(matches!(reassembly.handle(&frame), Taken::Datagram(_)));
        for number in 0..100_u16 {
            let mut part = frames(&[1; 3000], 1500).remove(0);
            part[18..20].copy_from_slice(&number.to_be_bytes());
            assert_eq!(reassembly.handle(&part), Taken::Part);
        }
        assert_eq!(reassembly.incomplete.len(), INCOMPLETE_MAX);
        assert_eq!(reassembly.incomplete_packets(), 100);
    }
}
