//! A thread that hears every IPv4 packet a device receives, until it is told to stop.

use std::fs;
use std::io::{ErrorKind, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use anyhow::{Context, Result, anyhow, bail};
use nix::ifaddrs::getifaddrs;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType, bind,
    recvmsg, setsockopt, socket, sockopt,
};

use super::count::Counts;
use super::frame::{Reassembly, Taken};
use super::pcap::PcapWriter;

/// What the kernel may keep for us; at full speed some 100 ms of loopback.
const BUFFER_BYTES: usize = 256 << 20;
const FRAME_BYTES_MAX: usize = 1 << 17;
/// How long packets take at most from the device to the socket.
const DRAIN_MS: u16 = 20;

/// A capture that runs.
#[derive(Debug)]
pub struct Capture {
    device: String,
    received_before: u64,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<Counts>>>,
}

/// What was heard.
#[derive(Debug)]
pub struct Heard {
    /// What the packets were.
    pub counts: Counts,
    /// Packets that the device received meanwhile and the capture did not hear: the
    /// kernel's buffer was full, or they were no IPv4.
    pub missed: u64,
}

impl Capture {
    /// Begins to hear `device`; packets also go to `file` if there is one. Followed are
    /// writers with messages of `message_bytes_min` serialized bytes and more.
    ///
    /// # Errors
    /// No such device, no right to open packet sockets (CAP_NET_RAW), or the file cannot
    /// be made.
    pub fn start(device: &str, file: Option<&Path>, message_bytes_min: u64) -> Result<Self> {
        let socket = open(device)?;
        let pcap = file
            .map(|path| {
                PcapWriter::create(path).with_context(|| format!("write {}", path.display()))
            })
            .transpose()?;
        let received_before = received(device)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::Builder::new()
            .name("capture".into())
            .spawn(move || {
                let counts = Counts::of_messages(message_bytes_min);
                hear(&socket, pcap, counts, &stopped)
            })
            .context("start a thread")?;
        Ok(Self {
            device: device.into(),
            received_before,
            stop,
            thread: Some(thread),
        })
    }

    /// Ends it once nothing more waits to be heard.
    ///
    /// # Errors
    /// Reading packets or writing the file failed meanwhile.
    pub fn stop(mut self) -> Result<Heard> {
        self.stop.store(true, Ordering::Release);
        let thread = self.thread.take().context("it runs until it is stopped")?;
        let counts = thread
            .join()
            .map_err(|_| anyhow!("the capture panicked"))??;
        let received = received(&self.device)?.saturating_sub(self.received_before);
        Ok(Heard {
            missed: received.saturating_sub(counts.packets()),
            counts,
        })
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
    }
}

/// A socket that hears incoming IPv4. With all protocols it would hear what goes out,
/// too: loopback's packets twice.
fn open(device: &str) -> Result<OwnedFd> {
    let address = getifaddrs()?
        .filter(|each| each.interface_name == device)
        .find_map(|each| each.address?.as_link_addr().copied())
        .with_context(|| format!("{device}: no such network device"))?;
    let end = socket(
        AddressFamily::Packet,
        SockType::Raw,
        SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC,
        SockProtocol::EthIp,
    );
    let end = match end {
        Ok(end) => end,
        Err(nix::errno::Errno::EPERM) => bail!(
            "capturing on {device} needs CAP_NET_RAW: run as root, or where users may make network namespaces (sysctl kernel.unprivileged_userns_clone=1)"
        ),
        Err(error) => return Err(error).context("open a packet socket"),
    };
    // Forcing needs more rights than capturing; as much as is allowed will do.
    if setsockopt(&end, sockopt::RcvBufForce, &BUFFER_BYTES).is_err() {
        let _ = setsockopt(&end, sockopt::RcvBuf, &BUFFER_BYTES);
    }
    setsockopt(&end, sockopt::ReceiveTimestampns, &true).context("ask for stamps")?;
    let address: LinkAddr = address;
    bind(end.as_raw_fd(), &address).with_context(|| format!("bind to {device}"))?;
    Ok(end)
}

/// Packets that the device has received since it is there.
fn received(device: &str) -> Result<u64> {
    let path = format!("/sys/class/net/{device}/statistics/rx_packets");
    let text = fs::read_to_string(&path).with_context(|| format!("read {path}"))?;
    text.trim()
        .parse()
        .with_context(|| format!("{path}: {text}"))
}

/// The thread: until it is stopped and nothing waits any more.
fn hear(
    socket: &OwnedFd,
    mut pcap: Option<PcapWriter>,
    mut counts: Counts,
    stop: &AtomicBool,
) -> Result<Counts> {
    let mut reassembly = Reassembly::default();
    let mut buffer = vec![0; FRAME_BYTES_MAX];
    loop {
        let was_stopped = stop.load(Ordering::Acquire);
        let mut heard = false;
        while let Some((length, time_ns)) = receive(socket, &mut buffer)? {
            heard = true;
            let frame = buffer
                .get(..length.min(FRAME_BYTES_MAX))
                .unwrap_or_default();
            if let Some(pcap) = &mut pcap {
                pcap.frame(time_ns, frame, length)
                    .context("write the pcap file")?;
            }
            match reassembly.handle(frame) {
                Taken::Datagram(datagram) => counts.add(&datagram, time_ns),
                Taken::Part => {}
                Taken::Other => counts.add_foreign(1, length as u64),
            }
        }
        if was_stopped && !heard {
            break;
        }
        let mut wait = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
        match poll(&mut wait, PollTimeout::from(DRAIN_MS)) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(error) => return Err(error).context("wait for packets"),
        }
    }
    counts.add_foreign(reassembly.incomplete_packets(), 0);
    if let Some(pcap) = pcap {
        pcap.finish().context("write the pcap file")?;
    }
    Ok(counts)
}

/// One frame: its whole length, and when the kernel saw it. `None` when none waits.
fn receive(socket: &OwnedFd, buffer: &mut [u8]) -> Result<Option<(usize, i64)>> {
    let mut space = nix::cmsg_space!(nix::sys::time::TimeSpec);
    let mut parts = [IoSliceMut::new(buffer)];
    let got = recvmsg::<LinkAddr>(
        socket.as_raw_fd(),
        &mut parts,
        Some(&mut space),
        MsgFlags::MSG_TRUNC,
    );
    let got = match got.map_err(|errno| (std::io::Error::from(errno).kind(), errno)) {
        Ok(got) => got,
        Err((ErrorKind::WouldBlock | ErrorKind::Interrupted, _)) => return Ok(None),
        Err((_, errno)) => return Err(errno).context("receive a packet"),
    };
    let stamp = got
        .cmsgs()
        .context("read a packet's stamp")?
        .find_map(|message| match message {
            ControlMessageOwned::ScmTimestampns(time) => {
                Some(time.tv_sec() * 1_000_000_000 + time.tv_nsec())
            }
            _ => None,
        });
    Ok(Some((got.bytes, stamp.unwrap_or(0))))
}
