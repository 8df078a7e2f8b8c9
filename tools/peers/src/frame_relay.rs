//! Frame relay: a software link emulator between two interfaces.
//!
//! It carries Ethernet frames with a delay, a rate limit and loss, for kernels
//! without a traffic shaper that does so. On request it also translates addresses.

use std::collections::VecDeque;
use std::io::{ErrorKind, IoSlice};
use std::net::Ipv4Addr;
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

use crate::address_translation::AddressTranslation;
use crate::ipv4_frame::Ipv4Frame;

/// Command-line word with which a program relays frames until it is killed.
pub const TASK: &str = "relay-frames";

/// The option that loses segments of TCP, too.
pub const LOSE_TCP: &str = "--lose-tcp";

/// Maximum frames in flight per direction. More are dropped, as by a full switch.
const FRAMES_MAX: usize = 10_000;
/// Size of the kernel's socket buffers.
const BUFFER_BYTES: usize = 32 << 20;

const USAGE: &str = "usage: relay-frames IF IF LOSS_PER_MILLE DELAY_MICROSECONDS SEED \
                     BITS_PER_SECOND [--lose-tcp] [--translate ADDRESS]";

/// The settings of the command line.
struct Settings {
    loss_per_mille: u64,
    /// Whether TCP is lost, too.
    loses_tcp: bool,
    /// The first interface is inside.
    translation: Option<AddressTranslation>,
}

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
    let [a, b, loss, delay, seed, rate, options @ ..] = arguments else {
        bail!(USAGE);
    };
    let mut settings = Settings::new(loss.parse().context(USAGE)?, options)?;
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
        for (index, direction) in directions.iter_mut().enumerate() {
            let leaves = index == 0;
            direction.read_frames(|frame| settings.pass(frame, leaves, &mut chance))?;
        }
    }
}

impl Settings {
    fn new(loss_per_mille: u64, options: &[String]) -> Result<Self> {
        let mut settings = Self {
            loss_per_mille,
            loses_tcp: false,
            translation: None,
        };
        let mut rest = options.iter();
        while let Some(option) = rest.next() {
            match option.as_str() {
                LOSE_TCP => settings.loses_tcp = true,
                "--translate" => {
                    let outer: Ipv4Addr = rest.next().context(USAGE)?.parse().context(USAGE)?;
                    settings.translation = Some(AddressTranslation::new(outer));
                }
                _ => bail!(USAGE),
            }
        }
        Ok(settings)
    }

    /// Whether a frame passes. Changes its addresses and completes its checksum.
    fn pass(&mut self, frame: &mut [u8], leaves: bool, chance: &mut LossGenerator) -> bool {
        let Some(mut frame) = Ipv4Frame::parse(frame) else {
            // Lost ARP frames would cost seconds.
            return true;
        };
        let may_be_lost = frame.is_udp() || self.loses_tcp;
        if may_be_lost && chance.next() % 1000 < self.loss_per_mille {
            return false;
        }
        let passes = match &mut self.translation {
            None => true,
            Some(translation) if leaves => translation.leave(&mut frame),
            Some(translation) => translation.enter(&mut frame),
        };
        if passes {
            frame.complete_checksum();
        }
        passes
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

    fn read_frames(&mut self, mut pass: impl FnMut(&mut [u8]) -> bool) -> Result<()> {
        let mut frame = [0; 2048];
        loop {
            let length = match recv(self.from.as_raw_fd(), &mut frame, MsgFlags::empty()) {
                Ok(length) => length,
                Err(errno) if std::io::Error::from(errno).kind() == ErrorKind::WouldBlock => {
                    return Ok(());
                }
                Err(errno) => return Err(errno).context("receive a frame"),
            };
            let frame = &mut frame[..length];
            if self.in_flight.len() >= FRAMES_MAX || !pass(frame) {
                continue;
            }
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
    use crate::ipv4_frame::tests::tcp_frame;

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
        let lost_of = |options: &[&str]| {
            let options: Vec<String> = options.iter().map(ToString::to_string).collect();
            let mut settings = Settings::new(300, &options).unwrap();
            let mut chance = LossGenerator(7);
            let mut passes = |_: &u32| settings.pass(&mut tcp_frame(0x10), true, &mut chance);
            100_000 - (0..100_000).filter(|number| passes(number)).count()
        };
        assert_eq!(lost_of(&[]), 0, "TCP");
        let lost = lost_of(&["--lose-tcp"]);
        assert!((29_000..31_000).contains(&lost), "{lost}");
        assert_eq!(
            lost_of(&["--translate", "10.9.0.9"]),
            100_000,
            "never opened"
        );
    }

    #[test]
    fn options_that_are_unknown_or_lack_a_value_are_refused() {
        for options in [&["--lose"][..], &["--translate"], &["--translate", "here"]] {
            let options: Vec<String> = options.iter().map(ToString::to_string).collect();
            let error = Settings::new(0, &options).err().unwrap();
            assert!(
                format!("{error:#}").contains("usage: relay-frames"),
                "{error:#}"
            );
        }
    }
}
