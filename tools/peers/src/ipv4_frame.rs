//! Ethernet frame with an IPv4 packet (RFC 791): the fields that a relay of frames reads
//! and changes, and the checksums of UDP and TCP.
//!
//! The kernel leaves checksums to the network card, and virtual devices have none. So a
//! frame that was read from one carries none that holds.

use std::net::Ipv4Addr;

/// Length of the Ethernet header.
const ETHERNET: usize = 14;
const TCP: u8 = 6;
const UDP: u8 = 17;
/// Flags of the TCP header (RFC 9293 §3.1).
const SYN_OR_ACK: u8 = 0x12;
const SYN: u8 = 0x02;

/// A frame whose packet is whole. Fragments count as such, too.
pub struct Ipv4Frame<'a> {
    packet: &'a mut [u8],
    header_bytes: usize,
}

impl<'a> Ipv4Frame<'a> {
    /// `None` for other protocols, and for frames that are too short.
    pub fn parse(frame: &'a mut [u8]) -> Option<Self> {
        if frame.get(12..ETHERNET)? != [0x08, 0x00] {
            return None;
        }
        let all = &mut frame[ETHERNET..];
        let first = *all.first()?;
        let header_bytes = usize::from(first & 0x0f) * 4;
        let total = usize::from(u16::from_be_bytes([*all.get(2)?, *all.get(3)?]));
        if first >> 4 != 4 || header_bytes < 20 || total < header_bytes || total > all.len() {
            return None;
        }
        // Beyond the packet there may be padding of Ethernet.
        Some(Self {
            packet: &mut all[..total],
            header_bytes,
        })
    }

    /// Where the packet comes from.
    pub fn source(&self) -> Ipv4Addr {
        self.address(12)
    }

    /// Where it goes.
    pub fn destination(&self) -> Ipv4Addr {
        self.address(16)
    }

    /// Changes the source. The checksum of the header is right afterwards.
    pub fn set_source(&mut self, address: Ipv4Addr) {
        self.set_address(12, address);
    }

    /// Changes the destination, likewise.
    pub fn set_destination(&mut self, address: Ipv4Addr) {
        self.set_address(16, address);
    }

    /// Ports of source and destination, where it is a TCP segment that is not
    /// fragmented.
    pub fn tcp_ports(&self) -> Option<[u16; 2]> {
        let segment = self.segment(TCP)?;
        let port = |at: usize| u16::from_be_bytes([segment[at], segment[at + 1]]);
        Some([port(0), port(2)])
    }

    /// Whether it is a TCP segment that opens a connection.
    pub fn opens_a_connection(&self) -> bool {
        let segment = self.segment(TCP);
        segment.is_some_and(|segment| segment[13] & SYN_OR_ACK == SYN)
    }

    /// Whether it carries UDP, fragments included.
    pub fn is_udp(&self) -> bool {
        self.packet[9] == UDP
    }

    /// Clears the checksum of UDP, which is not verified then (RFC 768), and computes
    /// that of TCP. Fragments stay as they are: the kernel has completed them.
    pub fn complete_checksum(&mut self) {
        let header = self.header_bytes;
        if self.segment(UDP).is_some() {
            self.packet[header + 6..header + 8].fill(0);
        } else if self.segment(TCP).is_some() {
            self.packet[header + 16..header + 18].fill(0);
            let segment = &self.packet[header..];
            let length = u32::try_from(segment.len()).unwrap_or(u32::MAX);
            let pseudo_header = sum_of(&self.packet[12..20]) + u32::from(TCP) + length;
            let checksum = folded(pseudo_header + sum_of(segment));
            self.packet[header + 16..header + 18].copy_from_slice(&checksum);
        }
    }

    /// The payload of a protocol with its whole header, unless it is a fragment.
    fn segment(&self, protocol: u8) -> Option<&[u8]> {
        let segment = &self.packet[self.header_bytes..];
        let least = if protocol == TCP { 20 } else { 8 };
        let is_fragment = self.packet[6] & 0x3f != 0 || self.packet[7] != 0;
        let is_it = self.packet[9] == protocol && !is_fragment && segment.len() >= least;
        is_it.then_some(segment)
    }

    fn address(&self, at: usize) -> Ipv4Addr {
        let octets: [u8; 4] = self.packet[at..at + 4]
            .try_into()
            .expect("four octets of a header of twenty");
        octets.into()
    }

    fn set_address(&mut self, at: usize, address: Ipv4Addr) {
        self.packet[at..at + 4].copy_from_slice(&address.octets());
        self.packet[10..12].fill(0);
        let checksum = folded(sum_of(&self.packet[..self.header_bytes]));
        self.packet[10..12].copy_from_slice(&checksum);
    }
}

/// The sum of the 16-bit words (RFC 1071). A packet has at most 65 535 bytes, so that
/// 32 bits hold it.
fn sum_of(bytes: &[u8]) -> u32 {
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
    bytes.chunks(2).map(word).sum()
}

fn folded(mut sum: u32) -> [u8; 2] {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    (!u16::try_from(sum).unwrap_or(u16::MAX)).to_be_bytes()
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A frame from 10.1.0.2:5000 to 10.2.0.1:7447, with 3 bytes of payload.
    pub fn tcp_frame(flags: u8) -> Vec<u8> {
        let mut frame = vec![0; ETHERNET + 20 + 20];
        frame[12..14].copy_from_slice(&[0x08, 0x00]);
        frame.extend([1, 2, 3]);
        let packet = &mut frame[ETHERNET..];
        packet[0] = 0x45;
        packet[2..4].copy_from_slice(&43_u16.to_be_bytes());
        packet[8] = 64;
        packet[9] = TCP;
        packet[12..20].copy_from_slice(&[10, 1, 0, 2, 10, 2, 0, 1]);
        packet[20..22].copy_from_slice(&5000_u16.to_be_bytes());
        packet[22..24].copy_from_slice(&7447_u16.to_be_bytes());
        packet[32] = 0x50;
        packet[33] = flags;
        frame
    }

    fn datagram(fragment: [u8; 2]) -> Vec<u8> {
        let mut frame = vec![0xff; 50];
        frame[12..14].copy_from_slice(&[0x08, 0x00]);
        frame[14] = 0x45;
        frame[16..18].copy_from_slice(&[0, 36]);
        frame[20..22].copy_from_slice(&fragment);
        frame[23] = UDP;
        frame
    }

    #[test]
    fn unfragmented_datagrams_lose_only_their_checksum() {
        for (fragment, kept) in [([0x40, 0], false), ([0x20, 0], true), ([0, 1], true)] {
            let mut frame = datagram(fragment);
            let before = frame.clone();
            Ipv4Frame::parse(&mut frame).unwrap().complete_checksum();
            assert_eq!(frame == before, kept, "{fragment:?}");
            frame[40..42].fill(0xff);
            assert_eq!(frame, before);
        }
        let mut short = datagram([0, 0]);
        short.truncate(30);
        assert!(Ipv4Frame::parse(&mut short).is_none());
    }

    #[test]
    fn checksums_hold_after_a_change_of_addresses() {
        let mut frame = tcp_frame(SYN);
        let mut parsed = Ipv4Frame::parse(&mut frame).unwrap();
        parsed.set_source([10, 9, 0, 9].into());
        parsed.set_destination([10, 9, 0, 1].into());
        parsed.complete_checksum();
        assert_eq!(parsed.source(), Ipv4Addr::new(10, 9, 0, 9));
        assert_eq!(parsed.tcp_ports(), Some([5000, 7447]));
        // What a receiver checks: the sum with the checksum is all ones (RFC 1071).
        let packet = &frame[ETHERNET..];
        assert_eq!(folded(sum_of(&packet[..20])), [0, 0]);
        let segment = sum_of(&packet[20..]) + sum_of(&packet[12..20]) + u32::from(TCP) + 23;
        assert_eq!(folded(segment), [0, 0]);
    }

    #[test]
    fn only_a_segment_with_syn_alone_opens_a_connection() {
        for (flags, opens) in [(0x02, true), (0x12, false), (0x10, false), (0x18, false)] {
            let mut frame = tcp_frame(flags);
            let parsed = Ipv4Frame::parse(&mut frame).unwrap();
            assert_eq!(parsed.opens_a_connection(), opens, "{flags:#x}");
        }
    }
}
