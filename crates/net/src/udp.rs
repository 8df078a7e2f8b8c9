//! UDP socket with the options that RTPS needs: unicast and multicast, send buffer
//! and receive buffer.
//!
//! Non-blocking, close-on-exec. It sends with scatter/gather, so a payload is never
//! copied behind its header. Generic segmentation offload (GSO) sends up to 64
//! equal fragments with one system call. IP fragmentation stays allowed: the IP
//! layer handles a datagram above the MTU (RTPS 2.5 §8.4.14.1.2 leaves the size to
//! the implementation).

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Duration;

use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, SockaddrStorage, getsockopt, recvmsg, setsockopt, sockopt,
};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg_addr};
use socket2::{Domain, InterfaceIndexOrAddress, Protocol, SockAddr, Socket, Type};

use crate::buffers::{self, BufferGrant};
use crate::interface::Interface;
use crate::poll::timespec;
use crate::sys;

/// Largest UDP payload over IPv4: 65535 - 20 (IP header) - 8 (UDP header).
pub const DATAGRAM_BYTES_MAX: usize = 65_507;

/// Most segments in one segmented send (UDP_MAX_SEGMENTS before Linux 6.9).
pub const SEGMENTS_MAX: usize = 64;

/// A non-blocking UDP socket, of IPv4 or of IPv6 alone.
///
/// All methods take `&self` and may be called from several threads; each
/// datagram is atomic. Closing is dropping.
#[derive(Debug)]
pub struct UdpSocket {
    socket: Socket,
    local: SocketAddr,
}

/// Result of one [`UdpSocket::receive`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Bytes written to the front of the buffer.
    pub len: usize,
    /// The sender.
    pub from: SocketAddr,
    /// The interface it arrived on, for sockets of [`UdpSocket::bind_multicast`], if the
    /// kernel tells.
    pub interface_index: Option<u32>,
    /// The buffer was too small and the rest is lost: drop the datagram.
    pub truncated: bool,
}

impl UdpSocket {
    /// Opens an exclusive socket on `address` and `port` (port 0: any).
    ///
    /// SO_REUSEADDR is left off: a port of another participant must be refused,
    /// because that is how a free participant index is found (port mapping, RTPS
    /// 2.5 §9.6.2.3).
    ///
    /// # Errors
    /// `AddrInUse` when the port is taken, `AddrNotAvailable` when no interface has
    /// the address, else the operating system's; each names the address.
    pub fn bind_unicast(address: impl Into<IpAddr>, port: u16) -> io::Result<Self> {
        Self::open(SocketAddr::new(address.into(), port), |_| Ok(()))
    }

    /// Opens a socket for datagrams sent to `group`, shared with other processes
    /// that do the same. It joins no group yet: see [`UdpSocket::join`].
    ///
    /// An IPv4 socket is bound to the group's address, so it takes no unicast datagram to
    /// the same port. An IPv6 one is bound to the port alone, and takes several groups.
    /// Both SO_REUSEADDR and SO_REUSEPORT are set, since other stacks set one
    /// or the other and Linux lets only equal ones share. What arrives on an interface
    /// that only other sockets of the host have joined is not received
    /// (IP_MULTICAST_ALL off), unless the kernel refuses that option.
    ///
    /// # Errors
    /// `InvalidInput` when `group` is not a multicast address; `AddrInUse` when
    /// another socket has the port exclusively; else the operating system's.
    pub fn bind_multicast(group: impl Into<IpAddr>, port: u16) -> io::Result<Self> {
        let group = group.into();
        check_group(group)?;
        let local = match group {
            IpAddr::V4(_) => group,
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        Self::open(SocketAddr::new(local, port), |socket| {
            socket
                .set_reuse_address(true)
                .map_err(failed("SO_REUSEADDR"))?;
            socket
                .set_reuse_port(true)
                .map_err(failed("SO_REUSEPORT"))?;
            // These only filter and describe: the socket does its work without them.
            // Emulators of system calls (qemu-user) and some sandboxes refuse them.
            if group.is_ipv4() {
                let _ = socket.set_multicast_all_v4(false);
                let _ = setsockopt(socket, sockopt::Ipv4PacketInfo, &true);
            } else {
                let _ = socket.set_multicast_all_v6(false);
                let _ = setsockopt(socket, sockopt::Ipv6RecvPacketInfo, &true);
            }
            Ok(())
        })
    }

    fn open(
        local: SocketAddr,
        prepare: impl FnOnce(&Socket) -> io::Result<()>,
    ) -> io::Result<Self> {
        let open = || {
            let domain = Domain::for_address(local);
            let socket = Socket::new(domain, Type::DGRAM.nonblocking(), Some(Protocol::UDP))?;
            if local.is_ipv6() {
                socket.set_only_v6(true)?;
            }
            prepare(&socket)?;
            socket.bind(&SockAddr::from(local))?;
            let local = socket.local_addr()?.as_socket().unwrap_or(local);
            Ok(Self { socket, local })
        };
        open().map_err(|e: io::Error| io::Error::new(e.kind(), format!("bind UDP {local}: {e}")))
    }

    /// Joins `group` on one interface. Joining again on the same one is not an
    /// error.
    ///
    /// # Errors
    /// `InvalidInput` for an address that is not a group; the operating system's,
    /// naming group and interface, e.g. when the interface is gone. On one without
    /// the MULTICAST flag Linux accepts the join but delivers nothing: check
    /// [`Interface::multicast`] first.
    pub fn join(&self, group: impl Into<IpAddr>, interface: &Interface) -> io::Result<()> {
        let group = group.into();
        check_group(group)?;
        let on = InterfaceIndexOrAddress::Index(interface.index);
        let joined = match group {
            IpAddr::V4(group) => self.socket.join_multicast_v4_n(&group, &on),
            IpAddr::V6(group) => self.socket.join_multicast_v6(&group, interface.index),
        };
        match joined {
            Err(e) if e.kind() == io::ErrorKind::AddrInUse => Ok(()),
            outcome => outcome.map_err(|e| {
                io::Error::new(e.kind(), format!("join {group} on {}: {e}", interface.name))
            }),
        }
    }

    /// Leaves `group` on one interface.
    ///
    /// # Errors
    /// `AddrNotAvailable` when it was not joined there.
    pub fn leave(&self, group: impl Into<IpAddr>, interface: &Interface) -> io::Result<()> {
        let group = group.into();
        let on = InterfaceIndexOrAddress::Index(interface.index);
        let left = match group {
            IpAddr::V4(group) => self.socket.leave_multicast_v4_n(&group, &on),
            IpAddr::V6(group) => self.socket.leave_multicast_v6(&group, interface.index),
        };
        left.map_err(|e| {
            io::Error::new(
                e.kind(),
                format!("leave {group} on {}: {e}", interface.name),
            )
        })
    }

    /// Requests socket buffer sizes and returns the granted ones; never shrinks
    /// them.
    ///
    /// Tries the privileged call first (CAP_NET_ADMIN), then the one that is
    /// clamped by the sysctl that [`BufferGrant::advice`] names.
    pub fn request_buffers(&self, receive_bytes: usize, send_bytes: usize) -> BufferGrant {
        buffers::request(&self.socket, receive_bytes, send_bytes)
    }

    /// Sets the reach of multicast sent here (`ttl` in hops; the kernel's default 1
    /// stays in the subnet, 0 on the host) and whether other sockets of this host
    /// receive it (`loopback`; the kernel's default is true).
    ///
    /// # Errors
    /// The operating system's; none is expected.
    pub fn set_multicast(&self, ttl: u8, loopback: bool) -> io::Result<()> {
        if self.local.is_ipv6() {
            self.socket.set_multicast_hops_v6(ttl.into())?;
            return self.socket.set_multicast_loop_v6(loopback);
        }
        self.socket.set_multicast_ttl_v4(ttl.into())?;
        self.socket.set_multicast_loop_v4(loopback)
    }

    /// Sends the concatenation of `parts` as one datagram; returns its bytes.
    ///
    /// One system call, no copy in user space, no allocation. At most 1024
    /// parts.
    ///
    /// # Errors
    /// `WouldBlock` when the send buffer is full; message-too-long above
    /// [`DATAGRAM_BYTES_MAX`]; `NetworkUnreachable` without a route.
    pub fn send(&self, parts: &[IoSlice<'_>], to: SocketAddr) -> io::Result<usize> {
        let mut none = SendAncillaryBuffer::default();
        Ok(sendmsg_addr(
            &self.socket,
            &to,
            parts,
            &mut none,
            SendFlags::NOSIGNAL,
        )?)
    }

    /// As [`UdpSocket::send`], with a differentiated services code point (DSCP, RFC
    /// 2474), 0 to 63: 46 is expedited forwarding. The network decides what it does
    /// with it. No privilege is needed.
    ///
    /// # Errors
    /// As [`UdpSocket::send`]; `InvalidInput` above 63.
    pub fn send_with_dscp(
        &self,
        parts: &[IoSlice<'_>],
        to: SocketAddr,
        code_point: u8,
    ) -> io::Result<usize> {
        if code_point > 63 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let field = sys::Control::ServiceField(code_point << 2);
        sys::send_with(self.as_fd(), parts, to, field)
    }

    /// As [`UdpSocket::send`], from a given interface regardless of the routes.
    ///
    /// For multicast, which would otherwise use the default route only.
    ///
    /// # Errors
    /// As [`UdpSocket::send`]; `NetworkUnreachable` or no-such-device when the
    /// interface is gone.
    pub fn send_via(
        &self,
        parts: &[IoSlice<'_>],
        to: SocketAddr,
        interface: &Interface,
    ) -> io::Result<usize> {
        let (to, source) = match (to, interface.address) {
            // The kernel has no source address for multicast on loopback, and takes 0.0.0.0.
            (SocketAddr::V4(_), IpAddr::V4(own)) if interface.loopback => (to, own),
            (SocketAddr::V4(_), _) => (to, Ipv4Addr::UNSPECIFIED),
            (SocketAddr::V6(v6), _) => {
                let to = SocketAddrV6::new(*v6.ip(), v6.port(), 0, interface.index);
                (to.into(), Ipv4Addr::UNSPECIFIED)
            }
        };
        sys::send_with(
            self.as_fd(),
            parts,
            to,
            sys::Control::Interface(interface.index, source),
        )
    }

    /// Sends `parts` as datagrams of `segment_bytes` each, the last one maybe
    /// shorter, with one system call (UDP_SEGMENT). Segment borders need not
    /// fall on borders of parts. No allocation.
    ///
    /// # Errors
    /// `Unsupported` when the kernel or the interface cannot, or when a segment
    /// is larger than the MTU: fall back to [`UdpSocket::send`] per datagram.
    /// `InvalidInput` for segments of 0 bytes, above [`SEGMENTS_MAX`] of them or
    /// above [`DATAGRAM_BYTES_MAX`] in total. Else as [`UdpSocket::send`].
    pub fn send_segmented(
        &self,
        parts: &[IoSlice<'_>],
        segment_bytes: u16,
        to: SocketAddr,
    ) -> io::Result<usize> {
        let total: usize = parts.iter().map(|part| part.len()).sum();
        let segment = usize::from(segment_bytes);
        if segment == 0 || total > DATAGRAM_BYTES_MAX || total.div_ceil(segment) > SEGMENTS_MAX {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        if total <= segment {
            return self.send(parts, to);
        }
        sys::send_with(
            self.as_fd(),
            parts,
            to,
            sys::Control::Segments(segment_bytes),
        )
        .map_err(sys::segmentation_refused)
    }

    /// Waits until the send buffer has room, which the kernel signals once less
    /// than half of it is in use; `None` waits forever. Returns false after
    /// `timeout` or a signal.
    pub fn wait_writable(&self, timeout: Option<Duration>) -> bool {
        let mut sockets = [PollFd::new(&self.socket, PollFlags::OUT)];
        let timeout = timeout.map(timespec);
        poll(&mut sockets, timeout.as_ref()).is_ok_and(|ready| ready > 0)
    }

    /// Whether the kernel supports segmented sending. One system call.
    pub fn supports_segmentation(&self) -> bool {
        getsockopt(&self.socket, sockopt::UdpGsoSegment).is_ok()
    }

    /// Receives one datagram into `buffer`.
    ///
    /// One system call, no allocation. Give [`DATAGRAM_BYTES_MAX`] bytes or more: a
    /// longer datagram is cut and marked in [`Received::truncated`].
    ///
    /// # Errors
    /// `WouldBlock` when nothing is waiting; else the operating system's.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Received> {
        // Room for in6_pktinfo (40 bytes) with its header.
        let mut control = sys::ControlBuffer::default();
        let mut parts = [IoSliceMut::new(buffer)];
        let message = recvmsg::<SockaddrStorage>(
            self.socket.as_raw_fd(),
            &mut parts,
            Some(control.bytes()),
            MsgFlags::MSG_DONTWAIT,
        )?;
        let mut received = Received {
            len: message.bytes,
            from: message.address.and_then(sender).unwrap_or(NO_SENDER),
            interface_index: None,
            truncated: message.flags.contains(MsgFlags::MSG_TRUNC),
        };
        for item in message.cmsgs()? {
            received.interface_index = match item {
                ControlMessageOwned::Ipv4PacketInfo(info) => u32::try_from(info.ipi_ifindex).ok(),
                ControlMessageOwned::Ipv6PacketInfo(info) => Some(info.ipi6_ifindex),
                _ => continue,
            };
        }
        Ok(received)
    }

    /// The bound port, also when 0 was requested.
    pub fn local_port(&self) -> u16 {
        self.local.port()
    }

    /// The address and port bound.
    pub fn local_address(&self) -> SocketAddr {
        self.local
    }
}

impl AsFd for UdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Names a socket option that the kernel refused.
fn failed(option: &str) -> impl Fn(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("set {option}: {error}"))
}

/// The sender of a datagram whose address the kernel does not tell.
const NO_SENDER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// The sender of a datagram, with the interface of a link-local address.
fn sender(address: SockaddrStorage) -> Option<SocketAddr> {
    let v4 = address
        .as_sockaddr_in()
        .map(|v4| SocketAddr::V4((*v4).into()));
    v4.or_else(|| Some(SocketAddr::V6((*address.as_sockaddr_in6()?).into())))
}

fn check_group(group: IpAddr) -> io::Result<()> {
    if group.is_multicast() {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        format!(
            "{group} is not a multicast group; groups are 224.0.0.0 to 239.255.255.255 and ff00::/8"
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Events, Poller, interfaces};

    const LOCALHOST: Ipv4Addr = Ipv4Addr::LOCALHOST;

    fn open() -> UdpSocket {
        UdpSocket::bind_unicast(LOCALHOST, 0).expect("bind 127.0.0.1")
    }

    fn loopback() -> Interface {
        let mut all = interfaces().expect("list").into_iter();
        let is_it = |i: &Interface| i.address == LOCALHOST;
        all.find(is_it).expect("127.0.0.1")
    }

    /// Loopback delivers within the call, yet the wait keeps the test honest.
    fn take(socket: &UdpSocket, buffer: &mut [u8]) -> Received {
        let poller = Poller::new().expect("epoll");
        poller.add(socket, 0).expect("add");
        let ready = poller.wait(&mut Events::default(), Some(Duration::from_secs(5)));
        assert_eq!(ready.expect("wait"), 1, "a datagram arrives");
        socket.receive(buffer).expect("receive")
    }

    #[test]
    fn parts_arrive_as_one_datagram_with_their_sender() {
        let (a, b) = (open(), open());
        let parts = [
            IoSlice::new(b"head"),
            IoSlice::new(b""),
            IoSlice::new(b"payload"),
        ];
        assert_eq!(a.send(&parts, b.local_address()).expect("send"), 11);
        let mut buffer = [0u8; 64];
        let received = take(&b, &mut buffer);
        assert_eq!(&buffer[..received.len], b"headpayload");
        assert_eq!(received.from, a.local_address());
        assert!(!received.truncated);
        let empty = b.receive(&mut buffer).expect_err("nothing left");
        assert_eq!(empty.kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn a_marked_datagram_carries_its_code_point_and_the_next_one_none() {
        let (a, b) = (open(), open());
        setsockopt(&b.socket, sockopt::IpRecvTos, &true).expect("IP_RECVTOS");
        let parts = [IoSlice::new(b"urgent")];
        let to = b.local_address();
        assert_eq!(a.send_with_dscp(&parts, to, 46).expect("send"), 6);
        assert_eq!(a.send(&parts, to).expect("send"), 6);
        let refused = a.send_with_dscp(&parts, to, 64).expect_err("too high");
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
        for expected in [46 << 2, 0] {
            let (mut buffer, mut control) = ([0; 16], sys::ControlBuffer::default());
            let mut parts = [IoSliceMut::new(&mut buffer)];
            let fd = b.socket.as_raw_fd();
            let flags = MsgFlags::empty();
            let message = recvmsg::<SockaddrStorage>(fd, &mut parts, Some(control.bytes()), flags)
                .expect("receive");
            let field = message.cmsgs().expect("control").next();
            assert_eq!(field, Some(ControlMessageOwned::Ipv4Tos(expected)));
        }
    }

    #[test]
    fn the_largest_datagram_passes_and_one_byte_more_is_refused() {
        let (a, b) = (open(), open());
        let bytes = vec![7u8; DATAGRAM_BYTES_MAX + 1];
        let fits = IoSlice::new(&bytes[..DATAGRAM_BYTES_MAX]);
        assert_eq!(
            a.send(&[fits], b.local_address()).expect("send"),
            DATAGRAM_BYTES_MAX
        );
        let mut buffer = vec![0u8; 65_536];
        assert_eq!(take(&b, &mut buffer).len, DATAGRAM_BYTES_MAX);
        let error = a
            .send(&[IoSlice::new(&bytes)], b.local_address())
            .expect_err("too long");
        assert_eq!(error.raw_os_error(), Some(nix::libc::EMSGSIZE));
    }

    #[test]
    fn a_datagram_larger_than_the_buffer_is_marked_truncated() {
        let (a, b) = (open(), open());
        a.send(&[IoSlice::new(&[1; 100])], b.local_address())
            .expect("send");
        let received = take(&b, &mut [0u8; 10]);
        assert!(received.truncated);
        assert_eq!(received.len, 10);
    }

    #[test]
    fn a_taken_unicast_port_is_refused_by_name() {
        let first = open();
        let error = UdpSocket::bind_unicast(LOCALHOST, first.local_port()).expect_err("taken");
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        assert!(
            error
                .to_string()
                .contains(&first.local_address().to_string()),
            "{error}"
        );
    }

    #[test]
    fn two_sockets_share_a_group_port_and_a_wrong_group_is_refused() {
        let group = Ipv4Addr::new(239, 255, 0, 1);
        let first = UdpSocket::bind_multicast(group, 0).expect("first");
        let second = UdpSocket::bind_multicast(group, first.local_port()).expect("second");
        assert_eq!(first.local_port(), second.local_port());
        let error = UdpSocket::bind_multicast(LOCALHOST, 0).expect_err("no group");
        assert!(error.to_string().contains("127.0.0.1"), "{error}");
    }

    /// As qemu-user and gVisor refuse options, and seccomp profiles with EPERM.
    #[test]
    fn a_group_socket_does_without_the_options_that_only_filter_or_describe() {
        use nix::libc;
        let group = Ipv4Addr::new(239, 255, 0, 3);
        for option in [libc::IP_MULTICAST_ALL, libc::IP_PKTINFO] {
            for error in [libc::ENOPROTOOPT, libc::EOPNOTSUPP, libc::EPERM] {
                let opened = sys::seccomp::refusing(libc::IPPROTO_IP, option, error, || {
                    UdpSocket::bind_multicast(group, 0).map(|socket| socket.local.ip())
                });
                let Some(opened) = opened else { return };
                assert_eq!(opened.expect("opens"), group, "{option} {error}");
            }
        }
    }

    #[test]
    fn a_refused_option_that_sharing_needs_is_named() {
        use nix::libc;
        let group = Ipv4Addr::new(239, 255, 0, 3);
        for (option, name) in [
            (libc::SO_REUSEADDR, "SO_REUSEADDR"),
            (libc::SO_REUSEPORT, "SO_REUSEPORT"),
        ] {
            let opened = sys::seccomp::refusing(libc::SOL_SOCKET, option, libc::EPERM, || {
                UdpSocket::bind_multicast(group, 7_400).map(|_| ())
            });
            let Some(opened) = opened else { return };
            let error = opened.expect_err("refused");
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
            let text = error.to_string();
            assert!(
                text.contains(name) && text.contains("239.255.0.3:7400"),
                "{text}"
            );
        }
    }

    #[test]
    fn multicast_over_loopback_reaches_every_member_with_the_interface() {
        let lo = loopback();
        let group = Ipv4Addr::new(239, 255, 0, 2);
        let first = UdpSocket::bind_multicast(group, 0).expect("first");
        let second = UdpSocket::bind_multicast(group, first.local_port()).expect("second");
        let outcomes = [
            first.join(group, &lo),
            second.join(group, &lo),
            first.join(group, &lo),
        ];
        if !lo.multicast {
            // Such a kernel may refuse the join or accept it and deliver nothing.
            for error in outcomes.into_iter().filter_map(Result::err) {
                assert!(error.to_string().contains("239.255.0.2 on lo"), "{error}");
            }
            return;
        }
        outcomes
            .into_iter()
            .collect::<io::Result<()>>()
            .expect("join, twice on one");
        let sender = open();
        sender.set_multicast(1, true).expect("options");
        let to = SocketAddr::new(group.into(), first.local_port());
        assert_eq!(
            sender
                .send_via(&[IoSlice::new(b"hello")], to, &lo)
                .expect("send"),
            5
        );
        for member in [&first, &second] {
            let mut buffer = [0u8; 16];
            let received = take(member, &mut buffer);
            assert_eq!(&buffer[..received.len], b"hello");
            assert_eq!(received.interface_index, Some(lo.index));
            assert_eq!(received.from.ip(), Ipv4Addr::LOCALHOST);
        }
    }

    #[test]
    fn an_interface_that_does_not_exist_is_an_error_not_a_silent_loss() {
        let (a, b) = (open(), open());
        let mut lo = loopback();
        let index = std::mem::replace(&mut lo.index, 0x7fff_0000);
        let lost = a.send_via(&[IoSlice::new(b"x")], b.local_address(), &lo);
        assert!(lost.is_err(), "{lost:?}");
        lo.index = index;
        a.send_via(&[IoSlice::new(b"y")], b.local_address(), &lo)
            .expect("by index");
        let mut buffer = [0u8; 4];
        assert_eq!((take(&b, &mut buffer).len, buffer[0]), (1, b'y'));
    }

    #[test]
    fn one_segmented_send_arrives_as_equal_datagrams() {
        let bytes: Vec<u8> = (0..10_500).map(|i| (i / 1000) as u8).collect();
        let parts = [IoSlice::new(&bytes[..20]), IoSlice::new(&bytes[20..])];
        let (a, b) = (open(), open());
        match a.send_segmented(&parts, 1000, b.local_address()) {
            Err(e) if e.kind() == io::ErrorKind::Unsupported => return,
            outcome => assert_eq!(outcome.expect("send"), bytes.len()),
        }
        let (mut buffer, mut sizes, mut whole) = (vec![0u8; 65_536], vec![], vec![]);
        while whole.len() < bytes.len() {
            let received = take(&b, &mut buffer);
            sizes.push(received.len);
            whole.extend_from_slice(&buffer[..received.len]);
        }
        assert_eq!(whole, bytes);
        assert_eq!(sizes[..10], [1000; 10]);
        assert_eq!(sizes[10..], [500]);
    }

    #[test]
    fn segment_limits_are_refused_before_the_kernel_sees_them() {
        let (a, b) = (open(), open());
        let bytes = vec![0u8; DATAGRAM_BYTES_MAX];
        for (length, segment) in [(10, 0), (SEGMENTS_MAX + 1, 1), (DATAGRAM_BYTES_MAX, 100)] {
            let parts = [IoSlice::new(&bytes[..length])];
            let error = a
                .send_segmented(&parts, segment, b.local_address())
                .expect_err("limit");
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        }
    }

    #[test]
    fn granted_buffers_are_read_back_and_never_shrink() {
        let socket = open();
        let first = socket.request_buffers(300_000, 300_000);
        assert_eq!(
            first.advice().is_some(),
            first.receive.is_clamped() || first.send.is_clamped()
        );
        let second = socket.request_buffers(1, 1);
        assert_eq!(second.receive.got_bytes, first.receive.got_bytes);
        assert_eq!(second.advice(), None);
    }

    /// Two sockets on `::1`; `None` where the kernel has no IPv6.
    fn open_v6() -> Option<(UdpSocket, UdpSocket)> {
        let open = || UdpSocket::bind_unicast(Ipv6Addr::LOCALHOST, 0);
        open().ok().map(|first| (first, open().expect("::1")))
    }

    #[test]
    fn ipv6_carries_datagrams_segments_and_code_points() {
        let Some((a, b)) = open_v6() else { return };
        setsockopt(&b.socket, sockopt::Ipv6RecvTClass, &true).expect("IPV6_RECVTCLASS");
        let mut buffer = vec![0u8; 65_536];
        a.send(&[IoSlice::new(b"six")], b.local_address())
            .expect("send");
        let received = take(&b, &mut buffer);
        assert_eq!((received.len, received.from), (3, a.local_address()));
        let urgent = [IoSlice::new(b"urgent")];
        a.send_with_dscp(&urgent, b.local_address(), 46)
            .expect("send");
        let mut control = nix::cmsg_space!(i32);
        let mut parts = [IoSliceMut::new(&mut buffer)];
        let (fd, flags) = (b.socket.as_raw_fd(), MsgFlags::empty());
        let message =
            recvmsg::<SockaddrStorage>(fd, &mut parts, Some(&mut control), flags).expect("receive");
        let mut items = message.cmsgs().expect("control messages");
        let is_marked =
            |item| matches!(item, ControlMessageOwned::Ipv6TClass(class) if class == 46 << 2);
        assert!(items.any(is_marked));
        match a.send_segmented(&[IoSlice::new(&[7; 2_500])], 1_000, b.local_address()) {
            Err(e) if e.kind() == io::ErrorKind::Unsupported => return,
            outcome => assert_eq!(outcome.expect("send"), 2_500),
        }
        let sizes = [0; 3].map(|_| take(&b, &mut buffer).len);
        assert_eq!(sizes, [1_000, 1_000, 500]);
    }

    #[test]
    fn an_ipv6_socket_leaves_the_port_to_ipv4_and_names_a_wrong_group() {
        let Ok(six) = UdpSocket::bind_unicast(Ipv6Addr::UNSPECIFIED, 0) else {
            return;
        };
        let port = six.local_port();
        let four = UdpSocket::bind_unicast(Ipv4Addr::UNSPECIFIED, port);
        assert_eq!(four.expect("the same port").local_port(), port);
        let error = UdpSocket::bind_multicast(Ipv6Addr::LOCALHOST, 0).expect_err("no group");
        assert!(error.to_string().contains("::1 is not"), "{error}");
    }
}
