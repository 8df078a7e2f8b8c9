//! `DDS:Auth:PKI-DH:1.0`: two participants prove to each other who they are and
//! agree on a secret (DDS Security 1.1 §9.3). Machines without IO: messages and
//! time in, messages, events and a deadline out.
//!
//! ```text
//!  smaller prefix                               larger prefix
//!     | -- Req:   certificate, permissions, dh1, challenge1 ---> |
//!     | <- Reply: the same, dh2, challenge2, signature --------- |
//!     | -- Final: challenges, keys, signature -----------------> |
//! ```

mod agreement;
mod announced;
mod cdr;
mod exchange;
mod guid;
mod handshake;
mod handshakes;
mod modp;
#[cfg(test)]
mod recorded;
mod token;

pub use exchange::{Peer, Rejection};
pub use guid::{adjusted_prefix, is_prefix_of};
pub use handshake::SharedSecret;
pub use handshakes::{Event, Full, Handshakes, Own};
pub use token::{GenericMessage, Token};
