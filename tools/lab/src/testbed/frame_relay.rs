//! Frame relay: a software link emulator between two interfaces.
//!
//! It carries Ethernet frames with a delay, a rate limit and loss, for kernels
//! without a traffic shaper that does so.

use std::collections::VecDeque;
use std::io::{ErrorKind, IoSlice};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::ifaddrs::getifaddrs;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::socket::{
    AddressFamily, LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType, bind, recv, sendmsg,
    setsockopt, socket, sockopt,
};
use nix::sys::time::TimeSpec;

/// Command-line word with which a program relays frames until it is killed.
pub const TASK: &str = "relay-frames";

/// Maximum frames in flight per direction. More are dropped, as by a full switch.
const FRAMES_MAX: usize = 10_000;
/// Size of the kernel's socket buffers.
const BUFFER_BYTES: usize = 32 << 20;

const USAGE: &str =
    "usage: relay-frames IF IF LOSS_PER_MILLE DELAY_MICROSECONDS SEED BITS_PER_SECOND";

/// Frames that entered at one end.
struct Direction {
    from: OwnedFd,
    to: OwnedFd,
    wire: Wire,
    in_flight: VecDeque<(Instant, Vec<u8>)>,
}

/// A wire that serializes frames.
#[derive(Clone, Copy, Debug)]
struct Wire {
    /// Rate limit. 0 is none.
    bits_per_second: u64,
    delay: Duration,
    free_at: Instant,
}

impl Wire {
    /// Arrival time of a frame that enters now.
    fn arrival(&mut self, now: Instant, bytes: usize) -> Instant {
        let nanos = (bytes as u64 * 8 * 1_000_000_000).checked_div(self.bits_per_second);
        let takes = Duration::from_nanos(nanos.unwrap_or(0));
        self.free_at = self.free_at.max(now) + takes;
        self.free_at + self.delay
    }
}

/// Relays frames in both directions. Returns only with an error.
///
/// # Errors
/// A wrong command line, an unknown interface, or no permission for packet sockets.
pub fn run(arguments: &[String]) -> Result<()> {
    let [a, b, loss, delay, seed, rate] = arguments else {
        bail!(USAGE);
    };
    let loss: u64 = loss.parse().context(USAGE)?;
    let wire = Wire {
        bits_per_second: rate.parse().context(USAGE)?,
        delay: Duration::from_micros(delay.parse().context(USAGE)?),
        free_at: Instant::now(),
    };
    let mut chance = LossGenerator(seed.parse().context(USAGE)?);
    let (a, b) = (open(a)?, open(b)?);
    let mut directions = [
        Direction::new(a.try_clone()?, b.try_clone()?, wire),
        Direction::new(b, a, wire),
    ];
    println!("ready");
    loop {
        let now = Instant::now();
        for direction in &mut directions {
            direction.send_due_frames(now)?;
        }
        let due = directions.iter().filter_map(Direction::due).min();
        let wait = due.map(|at| TimeSpec::from(at.saturating_duration_since(now)));
        let mut ends = directions
            .each_ref()
            .map(|d| PollFd::new(d.from.as_fd(), PollFlags::POLLIN));
        ppoll(&mut ends, wait, None).context("wait for frames")?;
        for direction in &mut directions {
            direction.read_frames(|| chance.next() % 1000 < loss)?;
        }
    }
}

/// A packet socket that receives every frame of one interface.
fn open(interface: &str) -> Result<OwnedFd> {
    let address = getifaddrs()?
        .filter(|each| each.interface_name == interface)
        .find_map(|each| each.address?.as_link_addr().copied())
        .with_context(|| format!("{interface}: no such interface"))?;
    let address: LinkAddr = address;
    let end = socket(
        AddressFamily::Packet,
        SockType::Raw,
        SockFlag::SOCK_NONBLOCK,
        SockProtocol::EthAll,
    )
    .context("open a packet socket")?;
    // The default buffer holds a hundred frames, fewer than a large message has.
    if setsockopt(&end, sockopt::RcvBufForce, &BUFFER_BYTES).is_err() {
        let _ = setsockopt(&end, sockopt::RcvBuf, &BUFFER_BYTES);
    }
    if setsockopt(&end, sockopt::SndBufForce, &BUFFER_BYTES).is_err() {
        let _ = setsockopt(&end, sockopt::SndBuf, &BUFFER_BYTES);
    }
    bind(end.as_raw_fd(), &address).with_context(|| format!("bind to {interface}"))?;
    Ok(end)
}

impl Direction {
    fn new(from: OwnedFd, to: OwnedFd, wire: Wire) -> Self {
        Self {
            from,
            to,
            wire,
            in_flight: VecDeque::new(),
        }
    }

    fn due(&self) -> Option<Instant> {
        Some(self.in_flight.front()?.0)
    }

    fn read_frames(&mut self, mut lost: impl FnMut() -> bool) -> Result<()> {
        let mut frame = [0; 2048];
        loop {
            let length = match recv(self.from.as_raw_fd(), &mut frame, MsgFlags::empty()) {
                Ok(length) => length,
                Err(errno) if std::io::Error::from(errno).kind() == ErrorKind::WouldBlock => {
                    return Ok(());
                }
                Err(errno) => return Err(errno).context("receive a frame"),
            };
            // Only UDP is lost: lost ARP frames would cost seconds.
            let frame = &mut frame[..length];
            if self.in_flight.len() >= FRAMES_MAX || (is_udp(frame) && lost()) {
                continue;
            }
            drop_checksum(frame);
            let arrival = self.wire.arrival(Instant::now(), frame.len());
            self.in_flight.push_back((arrival, frame.to_vec()));
        }
    }

    fn send_due_frames(&mut self, now: Instant) -> Result<()> {
        while self.due().is_some_and(|at| at <= now) {
            let Some((_, frame)) = self.in_flight.pop_front() else {
                break;
            };
            let parts = [IoSlice::new(&frame)];
            let sent = sendmsg::<()>(self.to.as_raw_fd(), &parts, &[], MsgFlags::empty(), None);
            match sent.map_err(std::io::Error::from) {
                Ok(_) => {}
                // A full link drops the frame.
                Err(e) if e.kind() == ErrorKind::WouldBlock => {}
                Err(e) => return Err(e).context("send a frame"),
            }
        }
        Ok(())
    }
}

fn is_ipv4(frame: &[u8]) -> bool {
    frame.get(12..14) == Some(&[0x08, 0x00])
}

fn is_udp(frame: &[u8]) -> bool {
    is_ipv4(frame) && frame.get(23) == Some(&17)
}

/// Clears the UDP checksum. The kernel leaves it to the network card, and there is
/// none. A checksum of 0 is not verified (RFC 768).
fn drop_checksum(frame: &mut [u8]) {
    let whole = frame
        .get(20..22)
        .is_some_and(|fragment| fragment[0] & 0x3f == 0 && fragment[1] == 0);
    if !is_udp(frame) || !whole {
        return;
    }
    let header = usize::from(frame[14] & 0x0f) * 4;
    if let Some(sum) = frame.get_mut(14 + header + 6..14 + header + 8) {
        sum.fill(0);
    }
}

/// Deterministic loss generator (xorshift64*).
struct LossGenerator(u64);

impl LossGenerator {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn datagram(fragment: [u8; 2]) -> Vec<u8> {
        let mut frame = vec![0xff; 50];
        frame[12..14].copy_from_slice(&[0x08, 0x00]);
        frame[14] = 0x45;
        frame[20..22].copy_from_slice(&fragment);
        frame[23] = 17;
        frame
    }

    #[test]
    fn unfragmented_datagrams_lose_only_their_checksum() {
        for (fragment, kept) in [([0x40, 0], false), ([0x20, 0], true), ([0, 1], true)] {
            let mut frame = datagram(fragment);
            let before = frame.clone();
            drop_checksum(&mut frame);
            assert_eq!(frame == before, kept, "{fragment:?}");
            frame[40..42].fill(0xff);
            assert_eq!(frame, before);
        }
        let mut short = datagram([0, 0]);
        short.truncate(30);
        drop_checksum(&mut short);
    }

    #[test]
    fn frames_enter_one_by_one_at_the_rate_of_the_wire() {
        let begin = Instant::now();
        let mut wire = Wire {
            bits_per_second: 100_000_000,
            delay: Duration::from_micros(500),
            free_at: begin,
        };
        let us = |at: Instant| (at - begin).as_micros();
        assert_eq!(us(wire.arrival(begin, 1250)), 600);
        assert_eq!(us(wire.arrival(begin, 1250)), 700);
        let later = begin + Duration::from_millis(1);
        assert_eq!(us(wire.arrival(later, 125)), 1510);
        wire.bits_per_second = 0;
        assert_eq!(us(wire.arrival(later, 1250)), 1510);
    }

    #[test]
    fn the_loss_rate_matches_the_configuration() {
        let mut chance = LossGenerator(7);
        let lost = (0..100_000).filter(|_| chance.next() % 1000 < 300).count();
        assert!((29_000..31_000).contains(&lost), "{lost}");
    }
}
