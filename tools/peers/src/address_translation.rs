//! Network address and port translation (NAPT, RFC 3022), as a home or mobile network has
//! it: connections are opened from inside only, and all of them come from one address.
//!
//! It keeps ports as they are, and drops what is not TCP.

use std::collections::HashMap;
use std::net::Ipv4Addr;

use crate::ipv4_frame::Ipv4Frame;

/// Most connections at a time. Further ones are not opened.
const CONNECTIONS_MAX: usize = 1024;

/// A connection as seen from outside: the port inside, and the other end.
type OuterEnds = (u16, Ipv4Addr, u16);

/// The translation, with its table of connections. Entries stay to the end.
pub struct AddressTranslation {
    outer: Ipv4Addr,
    /// The address inside that opened each connection.
    connections: HashMap<OuterEnds, Ipv4Addr>,
}

impl AddressTranslation {
    /// Connections appear to come from `outer`.
    pub fn new(outer: Ipv4Addr) -> Self {
        Self {
            outer,
            connections: HashMap::new(),
        }
    }

    /// Changes a frame that leaves. `false` if it must not.
    pub fn leave(&mut self, frame: &mut Ipv4Frame) -> bool {
        let Some([own_port, port]) = frame.tcp_ports() else {
            return false;
        };
        let ends = (own_port, frame.destination(), port);
        let source = frame.source();
        if frame.opens_a_connection()
            && !self.connections.contains_key(&ends)
            && self.connections.len() < CONNECTIONS_MAX
        {
            self.connections.insert(ends, source);
        }
        // Another host inside may have the same port to the same end.
        if self.connections.get(&ends) != Some(&source) {
            return false;
        }
        frame.set_source(self.outer);
        true
    }

    /// Changes a frame that enters. `false` if it belongs to no connection that was
    /// opened from inside.
    pub fn enter(&self, frame: &mut Ipv4Frame) -> bool {
        let Some([port, own_port]) = frame.tcp_ports() else {
            return false;
        };
        let ends = (own_port, frame.source(), port);
        let inner = self.connections.get(&ends);
        match inner {
            Some(inner) if frame.destination() == self.outer && !frame.opens_a_connection() => {
                frame.set_destination(*inner);
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ipv4_frame::tests::tcp_frame;

    const SYN: u8 = 0x02;
    const SYN_ACK: u8 = 0x12;
    const ACK: u8 = 0x10;

    /// The frame of the other direction, to the address outside.
    fn answer(flags: u8) -> Vec<u8> {
        let mut frame = tcp_frame(flags);
        frame[26..34].copy_from_slice(&[10, 2, 0, 1, 10, 9, 0, 9]);
        frame[34..36].copy_from_slice(&7447_u16.to_be_bytes());
        frame[36..38].copy_from_slice(&5000_u16.to_be_bytes());
        frame
    }

    #[test]
    fn connections_are_opened_from_inside_only() {
        let outer = Ipv4Addr::new(10, 9, 0, 9);
        let mut translation = AddressTranslation::new(outer);
        let enters = |translation: &AddressTranslation, frame: &mut [u8]| {
            translation.enter(&mut Ipv4Frame::parse(frame).unwrap())
        };
        for flags in [SYN, SYN_ACK, ACK] {
            assert!(!enters(&translation, &mut answer(flags)), "{flags:#x}");
        }
        let mut out = tcp_frame(ACK);
        let mut out = Ipv4Frame::parse(&mut out).unwrap();
        assert!(!translation.leave(&mut out), "never opened");
        let mut open = tcp_frame(SYN);
        let mut open = Ipv4Frame::parse(&mut open).unwrap();
        assert!(translation.leave(&mut open));
        assert_eq!(open.source(), outer);

        let mut reply = answer(SYN_ACK);
        assert!(enters(&translation, &mut reply));
        let reply = Ipv4Frame::parse(&mut reply).unwrap();
        assert_eq!(reply.destination(), Ipv4Addr::new(10, 1, 0, 2));
        assert!(!enters(&translation, &mut answer(SYN)));
        // Another host inside with the same ports is not taken for the first one.
        let mut other = tcp_frame(SYN);
        other[29] = 3;
        assert!(!translation.leave(&mut Ipv4Frame::parse(&mut other).unwrap()));
    }
}
