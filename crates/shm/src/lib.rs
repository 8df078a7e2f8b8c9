//! Shared-memory transport between processes of one host and one user.
//!
//! A [`SharedMemoryTransport`] per process exchanges messages with the transports
//! of other processes of the same user. It transports bytes only: a message is a
//! head, a body and a tail. Heads and tails are copied through a descriptor ring in
//! shared memory. A body that was written into a chunk of the chunk pool
//! ([`SharedMemoryTransport::chunk`]) is not copied (zero-copy): every receiver
//! reads it in place. A [`DiscoveryLog`] per process publishes discovery data to
//! the other processes of the host.
//!
//! ```text
//!  process A                                     process B
//!  pool segments   ══ mapped read-only ═════════►  Bytes of a body
//!  connection memory: ring, tail ════════════════►  receive
//!     head, returned loans  ◄═══════════════════ connection memory of B
//!  wake page: sleeping, chunk wait ═════════════►  ring A's doorbell, or not
//!     socket ◄─────────── unix, abstract ─────────► socket
//! ```
//!
//! # Rules
//! - No byte of shared memory has two writers. A process writes only memory that it
//!   created. Others map it read-only, which memfd seals enforce. A process that is
//!   killed leaves nothing half done that another would have to repair.
//! - Reference counts of chunks are in private memory.
//! - All memory is anonymous and is passed as a descriptor over a Unix socket of
//!   the abstract namespace. The kernel frees everything, and nothing has a name in
//!   a file system.
//! - Nothing read from a peer's memory is trusted: it is read once and checked. Invalid
//!   data closes the connection. Some attacks between processes of one user cannot be
//!   prevented. A *malicious* peer may change a body while it is read, keep up to half
//!   of the pool on loan, or ring the doorbell needlessly.
//! - No call waits for a peer: there is no lock and no futex in shared memory.
//!
//! The crate has no thread, no clock and no environment: the owner of a transport
//! calls its `poll`.
//!
//! # Example
//! ```
//! use pteros_shm::{SharedMemoryTransport, SharedMemoryTransportOptions, ConnectionEvent};
//!
//! let name = |n: u8| { let mut name = [n; 12]; name[..4].copy_from_slice(&std::process::id().to_le_bytes()); name };
//! let a = SharedMemoryTransport::open(name(1), SharedMemoryTransportOptions::default())?;
//! let b = SharedMemoryTransport::open(name(2), SharedMemoryTransportOptions::default())?;
//! a.connect(b.name(), 0)?;
//! let mut connection = None;
//! while connection.is_none() {
//!     b.poll(0, &mut |_| {});
//!     a.poll(0, &mut |event| {
//!         if let ConnectionEvent::Connected { connection: number, .. } = event { connection = Some(number) }
//!     });
//! }
//! b.poll(0, &mut |_| {});
//!
//! let mut chunk = a.chunk(5000)?;
//! chunk.fill(7);
//! let body = chunk.freeze(5000);
//! a.send(connection.unwrap(), b"head", &body, b"tail")?;
//!
//! let mut head = Vec::new();
//! let message = b.receive(&mut head).expect("it is there");
//! assert_eq!(head, b"headtail");
//! assert_eq!(message.body.unwrap(), body);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![deny(unsafe_code)]
#![deny(missing_docs)]
#![cfg_attr(loom, allow(dead_code, unused_imports))]

#[cfg(not(loom))]
#[allow(unsafe_code, reason = "slices of shared memory are made here")]
mod chunk;
#[cfg(not(loom))]
mod connection;
#[cfg(not(loom))]
mod counts;
#[cfg(not(loom))]
mod discovery_log;
mod doorbell;
#[cfg(not(loom))]
mod error;
#[cfg(not(loom))]
mod handshake;
mod holder_count;
#[cfg(all(test, not(loom)))]
mod hostile_tests;
mod layout;
mod loans;
#[cfg(all(loom, test))]
mod loom_tests;
#[cfg(not(loom))]
#[allow(unsafe_code, reason = "memory is mapped here")]
mod memory;
#[cfg(not(loom))]
mod packet;
#[cfg(not(loom))]
mod peer_authenticator;
#[cfg(not(loom))]
mod poll;
#[cfg(not(loom))]
mod pool;
mod process_watch;
mod ring;
mod sync;
#[cfg(not(loom))]
mod transport;

#[cfg(not(loom))]
pub use chunk::ChunkMut;
#[cfg(not(loom))]
pub use counts::ShmCounts;
#[cfg(not(loom))]
pub use discovery_log::{
    DiscoveryLog, DiscoveryLogEvent, DiscoveryLogFull, DiscoveryLogOptions, Totals,
};
#[cfg(not(loom))]
pub use error::{DisconnectReason, PeerName, SendRefusal, ShmError};
pub use layout::{
    LOANS_MAX, RING_BYTES_MAX, RING_BYTES_MIN, SEGMENT_BYTES_MAX, SEGMENTS_MAX, VERSION,
};
#[cfg(not(loom))]
pub use peer_authenticator::PeerAuthenticator;
#[cfg(not(loom))]
pub use pool::PoolExhausted;
#[cfg(not(loom))]
pub use transport::{
    ConnectionEvent, ReceivedMessage, SharedMemoryTransport, SharedMemoryTransportOptions,
};
