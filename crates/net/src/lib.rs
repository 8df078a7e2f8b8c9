//! UDP for the RTPS protocol: sockets, interfaces, readiness; and scheduling
//! settings of threads.
//!
//! Everything here is non-blocking except [`Poller::wait`]. It contains no
//! protocol, starts no thread and reads no clock. Sending and receiving allocate
//! nothing. IPv4 and Linux only: RTPS over UDPv4 is ROS 2's default (RTPS 2.5
//! §9.6.1).
//!
//! `unsafe` is in `sys.rs` alone; the rest uses rustix, nix and socket2.

#![deny(unsafe_code)]
#![deny(missing_docs)]

mod bound_ports;
mod buffers;
mod clock;
mod interface;
mod interface_watch;
mod limits;
mod poll;
mod shutdown;
#[allow(
    unsafe_code,
    reason = "the one file with system calls that the safe crates lack"
)]
mod sys;
pub mod thread;
mod timer;
mod udp;
mod wake;

pub use bound_ports::bound_udp_ports;
pub use buffers::{BufferGrant, GrantedSize};
pub use clock::monotonic_nanos;
pub use interface::{Interface, interfaces};
pub use interface_watch::InterfaceWatch;
pub use limits::{
    Descriptors, allocate_file, check_file_size, descriptors, file_size_limit,
    report_file_size_errors, scarce_descriptors,
};
pub use poll::{EVENTS_DEFAULT, Event, Events, Poller};
pub use shutdown::{
    ReceivedSignal, ShutdownSignal, ShutdownSignals, handle_shutdown_signals, shutdown_request,
    shutdown_signal,
};
pub use timer::Timer;
pub use udp::{DATAGRAM_BYTES_MAX, Received, SEGMENTS_MAX, UdpSocket};
pub use wake::Waker;
