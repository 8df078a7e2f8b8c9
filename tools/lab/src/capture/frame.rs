//! Decoder of Ethernet, IPv4 and UDP with IP fragment reassembly.
//!
//! Truncated or inconsistent packets give nothing. At most 64 datagrams are
//! incomplete at a time; then the oldest is dropped.

use std::net::{Ipv4Addr, SocketAddrV4};

const ETHERNET_BYTES: usize = 14;
const ETHERTYPE_IPV4: [u8; 2] = [0x08, 0x00];
const PROTOCOL_UDP: u8 = 17;
const INCOMPLETE_MAX: usize = 64;
/// Maximum IPv4 datagram.
const DATAGRAM_BYTES_MAX: usize = 65_535;

/// A UDP datagram and its IP packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Source address.
    pub source: SocketAddrV4,
    /// Destination address.
    pub destination: SocketAddrV4,
    /// Number of IP packets: one, or its fragments.
    pub packets: u64,
    /// Bytes of these packets from the IP header on.
    pub bytes: u64,
    /// UDP payload.
    pub payload: Vec<u8>,
}

/// Result of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FrameOutcome {
    /// The frame completes a datagram.
    Datagram(Datagram),
    /// The frame is a part of a datagram.
    Part,
    /// The frame is not UDP over IPv4, or is broken.
    Other,
}

/// Identifies the fragments of a datagram (RFC 791, 3.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct FragmentKey {
    source: Ipv4Addr,
    destination: Ipv4Addr,
    identification: u16,
}

#[derive(Debug)]
struct IncompleteDatagram {
    key: FragmentKey,
    packets: u64,
    bytes: u64,
    /// Its length, once the last fragment came.
    length: Option<usize>,
    received: usize,
    data: Vec<u8>,
}

/// IP fragment reassembly.
#[derive(Debug, Default)]
pub struct Reassembly {
    incomplete: Vec<IncompleteDatagram>,
    dropped_packets: u64,
}

impl Reassembly {
    /// Handles an Ethernet frame.
    pub fn handle(&mut self, frame: &[u8]) -> FrameOutcome {
        self.take(frame).unwrap_or(FrameOutcome::Other)
    }

    fn take(&mut self, frame: &[u8]) -> Option<FrameOutcome> {
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
        let key = FragmentKey {
            source: address(12)?,
            destination: address(16)?,
            identification: number(4)?,
        };
        let (more, offset) = (flags & 0x2000 != 0, usize::from(flags & 0x1fff) * 8);
        if !more && offset == 0 {
            return datagram(key, 1, total as u64, data).map(FrameOutcome::Datagram);
        }
        self.add(key, offset, more, total as u64, data)
    }

    fn add(
        &mut self,
        key: FragmentKey,
        offset: usize,
        more: bool,
        bytes: u64,
        data: &[u8],
    ) -> Option<FrameOutcome> {
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
                self.incomplete.push(IncompleteDatagram {
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
        // Devices of one host neither duplicate nor overlap fragments.
        one.received += data.len();
        if one.data.len() < end {
            one.data.resize(end, 0);
        }
        one.data.get_mut(offset..end)?.copy_from_slice(data);
        if !more {
            one.length = Some(end);
        }
        if one.length != Some(one.received) {
            return Some(FrameOutcome::Part);
        }
        let whole = self.incomplete.remove(at);
        datagram(key, whole.packets, whole.bytes, &whole.data).map(FrameOutcome::Datagram)
    }

    /// Packets of datagrams that were never completed.
    pub fn incomplete_packets(&self) -> u64 {
        let waiting = self.incomplete.iter().map(|one| one.packets);
        self.dropped_packets + waiting.sum::<u64>()
    }
}

fn datagram(key: FragmentKey, packets: u64, bytes: u64, data: &[u8]) -> Option<Datagram> {
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

    /// Ethernet frames of a datagram with `payload`, fragmented at `mtu`.
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
                assert_eq!(reassembly.handle(part), FrameOutcome::Part, "turn {turn}");
            }
            let FrameOutcome::Datagram(whole) = reassembly.handle(last) else {
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
    fn truncated_datagrams_yield_nothing_and_incomplete_ones_are_bounded() {
        let mut reassembly = Reassembly::default();
        let frame = frames(b"RTPS", 1500).remove(0);
        for length in 0..frame.len() {
            assert_eq!(
                reassembly.handle(&frame[..length]),
                FrameOutcome::Other,
                "{length}"
            );
        }
        assert!(matches!(
            reassembly.handle(&frame),
            FrameOutcome::Datagram(_)
        ));
        for number in 0..100_u16 {
            let mut part = frames(&[1; 3000], 1500).remove(0);
            part[18..20].copy_from_slice(&number.to_be_bytes());
            assert_eq!(reassembly.handle(&part), FrameOutcome::Part);
        }
        assert_eq!(reassembly.incomplete.len(), INCOMPLETE_MAX);
        assert_eq!(reassembly.incomplete_packets(), 100);
    }
}
