//! Bound-port probe: the UDP ports in use on this host, from the kernel's list for
//! our network namespace.
//!
//! ```text
//!    sl  local_address rem_address   st tx_queue rx_queue tr tm->when …
//! 21331: 0100007F:1CF2 00000000:0000 07 00000000:00000000 00:00000000 …
//! ```

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::ops::RangeInclusive;

/// An IPv6 socket may also receive IPv4 datagrams.
const LISTS: [&str; 2] = ["/proc/net/udp", "/proc/net/udp6"];

/// Bytes read of each list: some 60 000 sockets.
const BYTES_MAX: u64 = 8 << 20;

/// The ports in `range` that a socket of this host is bound to, unordered and
/// possibly repeated. Reads two files and allocates.
///
/// # Errors
/// The operating system's, where the list is not available.
pub fn bound_udp_ports(range: RangeInclusive<u16>) -> io::Result<Vec<u16>> {
    let mut ports = Vec::new();
    for (index, path) in LISTS.into_iter().enumerate() {
        let list = match File::open(path) {
            Ok(list) => list,
            // A kernel without IPv6.
            Err(_) if index > 0 => break,
            Err(e) => return Err(io::Error::new(e.kind(), format!("read {path}: {e}"))),
        };
        let lines = BufReader::with_capacity(16 << 10, list.take(BYTES_MAX)).split(b'\n');
        for line in lines.skip(1) {
            ports.extend(port_of(&line?).filter(|port| range.contains(port)));
        }
    }
    Ok(ports)
}

/// The local port in a line of the list.
fn port_of(line: &[u8]) -> Option<u16> {
    let line = std::str::from_utf8(line).ok()?;
    let local = line.split_ascii_whitespace().nth(1)?;
    let (_, port) = local.rsplit_once(':')?;
    u16::from_str_radix(port, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UdpSocket;
    use std::net::Ipv4Addr;

    #[test]
    fn a_bound_port_is_listed_until_its_socket_is_gone() {
        let socket = UdpSocket::bind_unicast(Ipv4Addr::LOCALHOST, 0).expect("bind");
        let port = socket.local_port();
        let listed = || bound_udp_ports(port..=port).expect("the list");
        assert_eq!(listed(), [port]);
        assert!(bound_udp_ports(port + 1..=u16::MAX).is_ok_and(|ports| !ports.contains(&port)));
        drop(socket);
        assert!(listed().is_empty());
    }

    #[test]
    fn lines_are_read_as_both_lists_write_them_and_others_are_not() {
        let four = b" 21331: 0100007F:1CF2 00000000:0000 07 00000000:00000000 00:00000000";
        let six = b" 2085: 00000000000000000000000000000000:1CE8 00000000000000000000000000000000:0000 07";
        assert_eq!(port_of(four), Some(7410));
        assert_eq!(port_of(six), Some(7400));
        for other in [
            &b""[..],
            b" 1: 0100007F",
            b" 1: 0100007F:12345 x",
            b"\xff \xff:1",
        ] {
            assert_eq!(port_of(other), None);
        }
    }
}
