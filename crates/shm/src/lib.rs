//! Shared memory between processes of one host that cleans up after itself.
//!
//! A [`Hub`] per process exchanges messages with hubs of other processes of
//! the same user. It knows bytes only: a message is a head, a body and a tail.
//! Heads and tails are copied through a ring of shared memory; a body that was
//! written into a chunk of the hub's pool ([`Hub::chunk`]) stays where it is and
//! is read there by everybody it is sent to.
//!
//! ```text
//!  process A                                     process B
//!  pool segments   ══ mapped read-only ═════════►  Bytes of a body
//!  link memory: ring, tail ═════════════════════►  receive
//!     head, loans given back  ◄═══════════════════ link memory of B
//!  context page: sleeping, starved ═════════════►  ring A's doorbell, or not
//!     socket ◄─────────── unix, abstract ─────────► socket
//! ```
//!
//! # Rules
//! - No byte of shared memory has two writers. A process writes what it made
//!   itself; others map it read-only, which seals enforce. Whoever is killed
//!   leaves nothing half done that somebody else would have to repair.
//! - Who holds which chunk is counted in private memory.
//! - All memory is anonymous and handed over by descriptor on a Unix socket of
//!   the abstract namespace. The kernel frees everything; nothing has a name in
//!   a file system.
//! - Nothing read from a peer's memory is trusted: it is read once, checked,
//!   and nonsense closes the link. What nobody can prevent between processes of
//!   one user: a *malicious* peer may change a body while it is read, hold on
//!   to up to half of the pool, or ring for nothing.
//! - Nobody waits for a peer: there is no lock and no futex in shared memory.
//!
//! No thread, no clock, no environment: whoever owns the hub turns it.
//!
//! # Example
//! ```
//! use pteros_shm::{Hub, HubOptions, LinkEvent};
//!
//! let name = |n: u8| { let mut name = [n; 12]; name[..4].copy_from_slice(&std::process::id().to_le_bytes()); name };
//! let a = Hub::open(name(1), HubOptions::default())?;
//! let b = Hub::open(name(2), HubOptions::default())?;
//! a.connect(b.name(), 0)?;
//! let mut link = None;
//! while link.is_none() {
//!     b.turn(0, &mut |_| {});
//!     a.turn(0, &mut |event| if let LinkEvent::Up { link: number, .. } = event { link = Some(number) });
//! }
//! b.turn(0, &mut |_| {});
//!
//! let mut chunk = a.chunk(5000)?;
//! chunk.fill(7);
//! let body = chunk.freeze(5000);
//! a.send(link.unwrap(), b"head", &body, b"tail")?;
//!
//! let mut head = Vec::new();
//! let record = b.receive(&mut head).expect("it is there");
//! assert_eq!(head, b"headtail");
//! assert_eq!(record.body.unwrap(), body);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![deny(unsafe_code)]
#![deny(missing_docs)]
#![cfg_attr(loom, allow(dead_code, unused_imports))]

#[cfg(not(loom))]
mod board;
#[cfg(not(loom))]
#[allow(unsafe_code, reason = "slices of shared memory are made here")]
mod chunk;
#[cfg(not(loom))]
mod counts;
mod doorbell;
#[cfg(not(loom))]
mod error;
#[doc(hidden)]
pub mod fault;
#[cfg(not(loom))]
mod file_words;
#[cfg(not(loom))]
mod handshake;
#[cfg(all(test, not(loom)))]
mod hostile_tests;
#[cfg(not(loom))]
mod hub;
mod layout;
mod life;
#[cfg(not(loom))]
mod link;
mod loans;
#[cfg(all(loom, test))]
mod loom_tests;
#[cfg(not(loom))]
#[allow(unsafe_code, reason = "memory is mapped here")]
mod memory;
#[cfg(not(loom))]
mod packet;
#[cfg(not(loom))]
mod pool;
mod ring;
mod sync;
#[cfg(not(loom))]
mod turn;
#[cfg(not(loom))]
mod warrant;

#[cfg(not(loom))]
pub use board::{Board, BoardEvent, BoardFull, BoardOptions, Totals};
#[cfg(not(loom))]
pub use chunk::ChunkMut;
#[cfg(not(loom))]
pub use counts::ShmCounts;
#[cfg(not(loom))]
pub use error::{Name, Reason, Refused, ShmError};
#[cfg(not(loom))]
pub use file_words::FileWords;
#[cfg(not(loom))]
pub use hub::{Hub, HubOptions, LinkEvent, Record};
pub use layout::{
    LOANS_MAX, RING_BYTES_MAX, RING_BYTES_MIN, SEGMENT_BYTES_MAX, SEGMENTS_MAX, VERSION,
};
#[cfg(not(loom))]
pub use pool::Exhausted;
#[cfg(not(loom))]
pub use warrant::Warrant;
