//! Packet capture: a thread that receives every IPv4 packet of a device.

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
use super::frame::{FrameOutcome, Reassembly};
use super::pcap::PcapWriter;

/// Receive buffer: about 100 ms of loopback at full speed.
const BUFFER_BYTES: usize = 256 << 20;
const FRAME_BYTES_MAX: usize = 1 << 17;
/// Maximum time of a packet from the device to the socket.
const DRAIN_MS: u16 = 20;

/// A running capture.
#[derive(Debug)]
pub struct Capture {
    device: String,
    received_before: u64,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<Counts>>>,
}

#[derive(Debug)]
pub struct CaptureResult {
    /// Packet counters.
    pub counts: Counts,
    /// Packets of the device that the capture did not receive: the kernel's buffer
    /// was full, or they were not IPv4.
    pub missed: u64,
}

impl Capture {
    /// Starts a capture on `device`, and writes packets to `file` if given. Writers
    /// with messages of at least `message_bytes_min` serialized bytes are followed.
    ///
    /// # Errors
    /// Unknown device, no permission for packet sockets (CAP_NET_RAW), or the file
    /// cannot be created.
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
                capture_packets(&socket, pcap, counts, &stopped)
            })
            .context("start a thread")?;
        Ok(Self {
            device: device.into(),
            received_before,
            stop,
            thread: Some(thread),
        })
    }

    /// Ends the capture once no packet is pending.
    ///
    /// # Errors
    /// Receiving packets or writing the file failed.
    pub fn stop(mut self) -> Result<CaptureResult> {
        self.stop.store(true, Ordering::Release);
        let thread = self.thread.take().context("it runs until it is stopped")?;
        let counts = thread
            .join()
            .map_err(|_| anyhow!("the capture panicked"))??;
        let received = received(&self.device)?.saturating_sub(self.received_before);
        Ok(CaptureResult {
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

/// A socket for incoming IPv4. With all protocols it would also receive outgoing
/// packets, and loopback's twice.
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
    // Forcing the size needs more privileges than capturing.
    if setsockopt(&end, sockopt::RcvBufForce, &BUFFER_BYTES).is_err() {
        let _ = setsockopt(&end, sockopt::RcvBuf, &BUFFER_BYTES);
    }
    setsockopt(&end, sockopt::ReceiveTimestampns, &true).context("ask for stamps")?;
    let address: LinkAddr = address;
    bind(end.as_raw_fd(), &address).with_context(|| format!("bind to {device}"))?;
    Ok(end)
}

/// Packets that the device has received since its creation.
fn received(device: &str) -> Result<u64> {
    let path = format!("/sys/class/net/{device}/statistics/rx_packets");
    let text = fs::read_to_string(&path).with_context(|| format!("read {path}"))?;
    text.trim()
        .parse()
        .with_context(|| format!("{path}: {text}"))
}

/// The capture loop: until it is stopped and no packet is pending.
fn capture_packets(
    socket: &OwnedFd,
    mut pcap: Option<PcapWriter>,
    mut counts: Counts,
    stop: &AtomicBool,
) -> Result<Counts> {
    let mut reassembly = Reassembly::default();
    let mut buffer = vec![0; FRAME_BYTES_MAX];
    loop {
        let was_stopped = stop.load(Ordering::Acquire);
        let mut received_any = false;
        while let Some((length, time_ns)) = receive(socket, &mut buffer)? {
            received_any = true;
            let frame = buffer
                .get(..length.min(FRAME_BYTES_MAX))
                .unwrap_or_default();
            if let Some(pcap) = &mut pcap {
                pcap.frame(time_ns, frame, length)
                    .context("write the pcap file")?;
            }
            match reassembly.handle(frame) {
                FrameOutcome::Datagram(datagram) => counts.add(&datagram, time_ns),
                FrameOutcome::Part => {}
                FrameOutcome::Other => counts.add_foreign(1, length as u64),
            }
        }
        if was_stopped && !received_any {
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

/// Receives a frame: its full length and the kernel's timestamp. `None` if none is
/// pending.
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
