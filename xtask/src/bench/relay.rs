//! A lossy cable: carries Ethernet frames between two interfaces, late and not
//! all of them. For machines whose kernel has no shaper that loses packets.

use std::collections::VecDeque;
use std::io::{ErrorKind, IoSlice};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::ifaddrs::getifaddrs;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::socket::{
    AddressFamily, LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType, bind, recv, sendmsg,
    socket,
};
use nix::sys::time::TimeSpec;

/// The task that carries frames until it is killed.
pub const TASK: &str = "bench-relay";

/// Frames on their way in one direction; more are lost, as in a full switch.
const FRAMES_MAX: usize = 10_000;

const USAGE: &str = "usage: bench-relay IF IF LOSS_PER_MILLE DELAY_MICROSECONDS SEED";

/// Frames that have entered at one end.
struct Direction {
    from: OwnedFd,
    to: OwnedFd,
    under_way: VecDeque<(Instant, Vec<u8>)>,
}

/// Carries frames both ways; returns only with an error.
pub fn run(arguments: &[String]) -> Result<()> {
    let [a, b, loss, delay, seed] = arguments else {
        bail!(USAGE);
    };
    let loss: u64 = loss.parse().context(USAGE)?;
    let delay = Duration::from_micros(delay.parse().context(USAGE)?);
    let mut chance = Chance(seed.parse().context(USAGE)?);
    let (a, b) = (open(a)?, open(b)?);
    let mut directions = [
        Direction::new(a.try_clone()?, b.try_clone()?),
        Direction::new(b, a),
    ];
    println!("ready");
    loop {
        let now = Instant::now();
        for direction in &mut directions {
            direction.deliver(now)?;
        }
        let due = directions.iter().filter_map(Direction::due).min();
        let wait = due.map(|at| TimeSpec::from(at.saturating_duration_since(now)));
        let mut ends = directions
            .each_ref()
            .map(|d| PollFd::new(d.from.as_fd(), PollFlags::POLLIN));
        ppoll(&mut ends, wait, None).context("wait for frames")?;
        for direction in &mut directions {
            direction.take_in(delay, || chance.next() % 1000 < loss)?;
        }
    }
}

/// A socket that hears every frame of one interface.
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
    bind(end.as_raw_fd(), &address).with_context(|| format!("bind to {interface}"))?;
    Ok(end)
}

impl Direction {
    fn new(from: OwnedFd, to: OwnedFd) -> Self {
        Self {
            from,
            to,
            under_way: VecDeque::new(),
        }
    }

    fn due(&self) -> Option<Instant> {
        Some(self.under_way.front()?.0)
    }

    fn take_in(&mut self, delay: Duration, mut lost: impl FnMut() -> bool) -> Result<()> {
        let mut frame = [0; 2048];
        loop {
            let length = match recv(self.from.as_raw_fd(), &mut frame, MsgFlags::empty()) {
                Ok(length) => length,
                Err(errno) if std::io::Error::from(errno).kind() == ErrorKind::WouldBlock => {
                    return Ok(());
                }
                Err(errno) => return Err(errno).context("receive a frame"),
            };
            // Only datagrams are lost: address resolution would cost seconds.
            let frame = &mut frame[..length];
            if self.under_way.len() >= FRAMES_MAX || (is_udp(frame) && lost()) {
                continue;
            }
            drop_checksum(frame);
            self.under_way
                .push_back((Instant::now() + delay, frame.to_vec()));
        }
    }

    fn deliver(&mut self, now: Instant) -> Result<()> {
        while self.due().is_some_and(|at| at <= now) {
            let Some((_, frame)) = self.under_way.pop_front() else {
                break;
            };
            let parts = [IoSlice::new(&frame)];
            let sent = sendmsg::<()>(self.to.as_raw_fd(), &parts, &[], MsgFlags::empty(), None);
            match sent.map_err(std::io::Error::from) {
                Ok(_) => {}
                // A full cable loses the frame.
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

/// The kernel leaves the sum over a datagram to the network card, and there is
/// none: without a sum nobody checks it (RFC 768).
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

/// xorshift64*: which frames are lost is the same for everybody.
struct Chance(u64);

impl Chance {
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
    fn whole_datagrams_lose_their_checksum_and_nothing_else() {
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
    fn about_as_many_are_lost_as_asked_for() {
        let mut chance = Chance(7);
        let lost = (0..100_000).filter(|_| chance.next() % 1000 < 300).count();
        assert!((29_000..31_000).contains(&lost), "{lost}");
    }
}
