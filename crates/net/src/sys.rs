//! System calls that the safe crates lack, and all `unsafe` of this crate.
//!
//! Sending with a control message without allocating (nix allocates for each), the
//! MTU of an interface, SCHED_FIFO, and signal handlers.

use std::io::{self, IoSlice};
use std::mem;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use nix::libc;

/// A control message of a send.
#[derive(Clone, Copy)]
pub(crate) enum Control {
    /// Cut into datagrams of this many bytes (UDP_SEGMENT).
    Segments(u16),
    /// Send from this interface and, with IPv4, address (IP_PKTINFO, IPV6_PKTINFO).
    Interface(u32, Ipv4Addr),
    /// Set this differentiated services field (IP_TOS, IPV6_TCLASS).
    ServiceField(u8),
}

/// Control messages of one call: 64 bytes, aligned as `cmsghdr` wants.
#[repr(C, align(8))]
#[derive(Default)]
pub(crate) struct ControlBuffer([u64; 8]);

impl ControlBuffer {
    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        let length = mem::size_of_val(&self.0);
        // SAFETY: u64s are initialised bytes without padding, and the slice
        // borrows self for its whole life.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast(), length) }
    }
}

pub(crate) fn send_with(
    fd: BorrowedFd<'_>,
    parts: &[IoSlice<'_>],
    to: SocketAddr,
    control: Control,
) -> io::Result<usize> {
    let mut buffer = ControlBuffer::default();
    let address = socket2::SockAddr::from(to);
    // SAFETY: msghdr is plain data for which all zeroes is a valid value.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_name = address.as_ptr().cast_mut().cast();
    message.msg_namelen = address.len();
    message.msg_iov = parts.as_ptr().cast_mut().cast();
    message.msg_iovlen = parts.len() as _;
    message.msg_control = ptr::from_mut(&mut buffer).cast();
    message.msg_controllen = mem::size_of_val(&buffer) as _;
    let used = match control {
        Control::Segments(bytes) => {
            put_control(&mut message, libc::SOL_UDP, libc::UDP_SEGMENT, bytes)
        }
        Control::Interface(index, _) if to.is_ipv6() => {
            let info = libc::in6_pktinfo {
                ipi6_addr: libc::in6_addr { s6_addr: [0; 16] },
                ipi6_ifindex: index,
            };
            put_control(&mut message, libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, info)
        }
        Control::Interface(index, source) => {
            let info = libc::in_pktinfo {
                ipi_ifindex: index as libc::c_int,
                ipi_spec_dst: libc::in_addr {
                    s_addr: u32::from_ne_bytes(source.octets()),
                },
                ipi_addr: libc::in_addr { s_addr: 0 },
            };
            put_control(&mut message, libc::IPPROTO_IP, libc::IP_PKTINFO, info)
        }
        Control::ServiceField(field) => {
            let field = libc::c_int::from(field);
            let (level, kind) = match to {
                SocketAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_TOS),
                SocketAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_TCLASS),
            };
            put_control(&mut message, level, kind, field)
        }
    };
    message.msg_controllen = used as _;
    // SAFETY: address, buffer and parts outlive the call, which only reads
    // them (std guarantees that IoSlice has iovec's layout); lengths are theirs.
    let sent = unsafe { libc::sendmsg(fd.as_raw_fd(), &message, libc::MSG_NOSIGNAL) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Writes one control message to the front of the buffer; returns its space.
fn put_control<T: Copy>(message: &mut libc::msghdr, level: i32, kind: i32, value: T) -> u32 {
    let bytes = mem::size_of::<T>() as u32;
    // SAFETY: CMSG_SPACE computes from a number only.
    let space = unsafe { libc::CMSG_SPACE(bytes) };
    assert!(
        space as usize <= mem::size_of::<ControlBuffer>(),
        "control fits"
    );
    // SAFETY: the buffer is aligned for cmsghdr and, by the assertion above,
    // long enough for header and value; CMSG_DATA may be unaligned for T,
    // therefore the unaligned write.
    unsafe {
        let header = libc::CMSG_FIRSTHDR(message);
        (*header).cmsg_level = level;
        (*header).cmsg_type = kind;
        (*header).cmsg_len = libc::CMSG_LEN(bytes) as _;
        libc::CMSG_DATA(header).cast::<T>().write_unaligned(value);
    }
    space
}

/// Whether the error means that the kernel or the device does not support
/// segmentation.
///
/// Seen in Linux' net/ipv4/udp.c: EINVAL or (since 6.x) EMSGSIZE for a segment
/// above the MTU, EIO for a device without checksum offload, ENOPROTOOPT and
/// EOPNOTSUPP before 4.18.
pub(crate) fn segmentation_refused(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(libc::EINVAL | libc::EMSGSIZE | libc::EIO | libc::ENOPROTOOPT | libc::EOPNOTSUPP) => {
            io::ErrorKind::Unsupported.into()
        }
        _ => error,
    }
}

/// Reads an interface's MTU in bytes. Not from /sys, which may show another
/// network namespace.
pub(crate) fn interface_mtu(name: &str) -> io::Result<u32> {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM, None)?;
    // SAFETY: ifreq is plain data for which all zeroes is a valid value.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    let room = request.ifr_name.len() - 1;
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes().take(room)) {
        *to = from as libc::c_char;
    }
    // SAFETY: SIOCGIFMTU reads the name (terminated by the zero left above)
    // and writes the int of the union, both inside `request`.
    let outcome = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFMTU as _, &mut request) };
    if outcome < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call above succeeded, so this member of the union is set.
    let mtu = unsafe { request.ifr_ifru.ifru_mtu };
    u32::try_from(mtu).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// Puts the calling thread under SCHED_FIFO.
pub(crate) fn set_fifo(priority: libc::c_int) -> io::Result<()> {
    // SAFETY: sched_param is plain data for which all zeroes is a valid value. musl's has
    // more fields than glibc's.
    let mut parameters: libc::sched_param = unsafe { mem::zeroed() };
    parameters.sched_priority = priority;
    // The system call itself, since musl's function of that name answers ENOSYS: POSIX
    // means the process by it, and Linux the thread.
    // SAFETY: reads `parameters`, which outlives the call and begins with the kernel's
    // struct; on Linux 0 is the calling thread.
    let outcome = unsafe {
        libc::syscall(
            libc::SYS_sched_setscheduler,
            0,
            libc::SCHED_FIFO,
            &raw const parameters,
        )
    };
    match outcome {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Signals that ask a process to end, and the slot each one has below.
const SIGNALS: [libc::c_int; 2] = [libc::SIGINT, libc::SIGTERM];

static NOTIFY_FD: AtomicI32 = AtomicI32::new(-1);
static SIGNAL_COUNT: AtomicU32 = AtomicU32::new(0);
/// The first signal: 256 times the milliseconds of the monotonic clock, and its number. 0:
/// none yet.
static FIRST_SIGNAL: AtomicU64 = AtomicU64::new(0);
/// The same signal again, sooner than this after the first, is the same request.
/// `timeout` signals its command and then the whole process group.
const SAME_REQUEST_MS: u64 = 200;
/// Whether another signal ends the process, if no handler was there before ours.
static IS_FATAL_AGAIN: AtomicBool = AtomicBool::new(false);
/// The previous handlers: leaked boxes, read by our handler.
static PREVIOUS: [AtomicPtr<libc::sigaction>; 2] = [
    AtomicPtr::new(ptr::null_mut()),
    AtomicPtr::new(ptr::null_mut()),
];

/// Signals seen since the start or the last [`forget_signals`].
pub(crate) fn signal_count() -> u32 {
    SIGNAL_COUNT.load(Ordering::Acquire)
}

/// The number of the first signal since then; 0 without one.
pub(crate) fn first_signal_number() -> u8 {
    FIRST_SIGNAL.load(Ordering::Acquire).to_le_bytes()[0]
}

/// Lets a second signal end the process.
pub(crate) fn end_at_second_signal() {
    IS_FATAL_AGAIN.store(true, Ordering::Release);
}

/// Counts a shutdown requested without a signal.
pub(crate) fn count_request() {
    SIGNAL_COUNT.fetch_add(1, Ordering::AcqRel);
}

pub(crate) fn forget_signals() {
    FIRST_SIGNAL.store(0, Ordering::Release);
    SIGNAL_COUNT.store(0, Ordering::Release);
}

/// Lets the handlers write to an eventfd, which stays open for the life of the process.
pub(crate) fn notify_of_signals(fd: OwnedFd) {
    NOTIFY_FD.store(fd.as_raw_fd(), Ordering::Release);
    mem::forget(fd);
}

/// Installs our handler for the signal of a slot: 0 is SIGINT, 1 is SIGTERM.
///
/// It calls the handler that is installed now. The caller has called
/// [`notify_of_signals`], and calls this one thread at a time, and not again before
/// [`restore_signal_handler`].
pub(crate) fn install_signal_handler(slot: usize) -> io::Result<()> {
    let old = signal_handler(SIGNALS[slot])?;
    let known = PREVIOUS[slot].load(Ordering::Acquire);
    // SAFETY: either null or a leaked box that nobody changes.
    let is_known = unsafe { known.as_ref() }.is_some_and(|known| is_same_handler(known, &old));
    // A program may put our own handler back, which must not call itself.
    let is_ours = old.sa_sigaction == on_signal as extern "C" fn(_, _, _) as usize;
    let is_kept = is_known || (is_ours && !known.is_null());
    if !is_kept {
        PREVIOUS[slot].store(Box::into_raw(Box::new(old)), Ordering::Release);
    }
    // SAFETY: sigaction is plain data for which all zeroes is valid.
    let mut new: libc::sigaction = unsafe { mem::zeroed() };
    new.sa_sigaction = on_signal as extern "C" fn(_, _, _) as usize;
    new.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK;
    // SAFETY: `new` names a handler that is async-signal-safe (see there) and PREVIOUS
    // is set before it can run.
    match unsafe { libc::sigaction(SIGNALS[slot], &new, ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Puts the handler back that [`install_signal_handler`] found.
pub(crate) fn restore_signal_handler(slot: usize) -> io::Result<()> {
    let previous = PREVIOUS[slot].load(Ordering::Acquire);
    // SAFETY: null, or a leaked box with an action that this process had for the signal.
    match unsafe { libc::sigaction(SIGNALS[slot], previous, ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn signal_handler(signal: libc::c_int) -> io::Result<libc::sigaction> {
    // SAFETY: sigaction is plain data for which all zeroes is valid.
    let mut handler: libc::sigaction = unsafe { mem::zeroed() };
    // SAFETY: a null new action only queries; `handler` is ours.
    match unsafe { libc::sigaction(signal, ptr::null(), &mut handler) } {
        0 => Ok(handler),
        _ => Err(io::Error::last_os_error()),
    }
}

fn is_same_handler(one: &libc::sigaction, other: &libc::sigaction) -> bool {
    one.sa_sigaction == other.sa_sigaction
        && one.sa_flags == other.sa_flags
        && one.sa_mask == other.sa_mask
}

/// Gives SIGXFSZ an empty handler, if it has its default action.
pub(crate) fn handle_file_size_signal() -> io::Result<()> {
    extern "C" fn on_file_size(_: libc::c_int) {}
    if signal_handler(libc::SIGXFSZ)?.sa_sigaction != libc::SIG_DFL {
        return Ok(());
    }
    // SAFETY: sigaction is plain data for which all zeroes is valid.
    let mut new: libc::sigaction = unsafe { mem::zeroed() };
    new.sa_sigaction = on_file_size as extern "C" fn(_) as usize;
    new.sa_flags = libc::SA_RESTART | libc::SA_ONSTACK;
    // SAFETY: the handler does nothing, so it is async-signal-safe.
    match unsafe { libc::sigaction(libc::SIGXFSZ, &new, ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The monotonic clock in milliseconds. Async-signal-safe.
fn monotonic_ms() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `now` is ours; a monotonic clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(now.tv_nsec).unwrap_or(0);
    seconds
        .saturating_mul(1000)
        .saturating_add(nanos / 1_000_000)
}

/// Runs in signal context: only atomics, clock_gettime, write, sigaction and raise,
/// which are all async-signal-safe, and errno is put back.
extern "C" fn on_signal(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    // SAFETY: the thread's own errno.
    let errno = unsafe { *libc::__errno_location() };
    let number = u64::from(signal.unsigned_abs() & 0xff);
    let now = monotonic_ms();
    let earlier = SIGNAL_COUNT.fetch_add(1, Ordering::AcqRel);
    // Two threads may handle one signal each at a time: whichever is first notes its own.
    let own = now << 8 | number;
    let noted = FIRST_SIGNAL.compare_exchange(0, own, Ordering::AcqRel, Ordering::Acquire);
    let first = noted.map_or_else(|first| first, |_| own);
    let is_same = first & 0xff == number && now.saturating_sub(first >> 8) < SAME_REQUEST_MS;
    let again = IS_FATAL_AGAIN.load(Ordering::Acquire) && earlier > 0 && !is_same;
    let one = 1u64.to_ne_bytes();
    // SAFETY: the descriptor is an eventfd that is never closed; 8 bytes.
    unsafe { libc::write(NOTIFY_FD.load(Ordering::Acquire), one.as_ptr().cast(), 8) };
    let slot = SIGNALS.iter().position(|s| *s == signal).unwrap_or(0);
    // SAFETY: either null or a leaked box that nobody changes.
    if let Some(previous) = unsafe { PREVIOUS[slot].load(Ordering::Acquire).as_ref() } {
        forward_to_previous(signal, info, context, previous, again);
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

/// Calls the previous handler. Without one, the first signal is handled here alone,
/// and the second kills the process as usual after [`end_at_second_signal`].
///
/// A signal that was ignored (a script's background job inherits that) counts as one that
/// had its default action: as with rclcpp, `kill -INT` ends a node however it was started.
fn forward_to_previous(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
    previous: &libc::sigaction,
    again: bool,
) {
    match previous.sa_sigaction {
        libc::SIG_DFL | libc::SIG_IGN if again => {
            // SAFETY: puts the default action back, which is all zeroes; the raised
            // signal stays pending until this handler returns, then ends the process.
            unsafe {
                let default: libc::sigaction = mem::zeroed();
                libc::sigaction(signal, &default, ptr::null_mut());
                libc::raise(signal);
            }
        }
        libc::SIG_DFL | libc::SIG_IGN => {}
        handler if previous.sa_flags & libc::SA_SIGINFO != 0 => {
            // SAFETY: the kernel would have called it with these arguments;
            // SA_SIGINFO says that it has this type.
            let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) =
                unsafe { mem::transmute(handler) };
            handler(signal, info, context);
        }
        handler => {
            // SAFETY: without SA_SIGINFO a handler takes the number alone.
            let handler: extern "C" fn(libc::c_int) = unsafe { mem::transmute(handler) };
            handler(signal);
        }
    }
}

/// System call filters, for tests of what sandboxes and emulators refuse.
#[cfg(test)]
pub(crate) mod seccomp {
    use std::io;

    use nix::libc::{self, sock_filter};

    /// Runs `work` on a thread whose `setsockopt` fails with `error` for one option.
    /// `None` where there are no filters of system calls.
    #[allow(clippy::disallowed_methods, reason = "the filter ends with its thread")]
    pub(crate) fn refusing<R: Send>(
        level: libc::c_int,
        option: libc::c_int,
        error: libc::c_int,
        work: impl FnOnce() -> R + Send,
    ) -> Option<R> {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                install(level, option, error).ok()?;
                Some(work())
            });
            thread.join().expect("the work does not panic")
        })
    }

    /// Of the calling thread, for its whole life.
    fn install(level: libc::c_int, option: libc::c_int, error: libc::c_int) -> io::Result<()> {
        // struct seccomp_data: number, architecture, instruction pointer, arguments of 64 bits.
        let low_half = if cfg!(target_endian = "big") { 4 } else { 0 };
        let argument = |index: u32| 16 + 8 * index + low_half;
        let load = |at| step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, at);
        let skip_unless =
            |value, steps| step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, steps, value);
        let answer = |value| step(libc::BPF_RET | libc::BPF_K, 0, value);
        let mut steps = [
            load(0),
            skip_unless(libc::SYS_setsockopt as u32, 5),
            load(argument(1)),
            skip_unless(level as u32, 3),
            load(argument(2)),
            skip_unless(option as u32, 1),
            answer(libc::SECCOMP_RET_ERRNO | error as u32),
            answer(libc::SECCOMP_RET_ALLOW),
        ];
        let program = libc::sock_fprog {
            len: steps.len() as u16,
            filter: steps.as_mut_ptr(),
        };
        // SAFETY: the kernel copies the program, which outlives the calls. The filter holds
        // for this thread alone, without the flag TSYNC.
        let outcome = unsafe {
            match libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) {
                0 => libc::prctl(
                    libc::PR_SET_SECCOMP,
                    libc::SECCOMP_MODE_FILTER,
                    &raw const program,
                ),
                failed => failed,
            }
        };
        match outcome {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn step(code: u32, when_false: u8, value: u32) -> sock_filter {
        sock_filter {
            code: code as u16,
            jt: 0,
            jf: when_false,
            k: value,
        }
    }
}
