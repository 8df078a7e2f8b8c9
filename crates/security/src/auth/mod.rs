//! Authentication plug-in `DDS:Auth:PKI-DH:1.0`: authentication handshake between
//! two participants, which also agrees on a shared secret (DDS Security 1.1 §9.3).
//! Sans-IO state machines: messages and time in; messages, events and a deadline
//! out.
//!
//! ```text
//!  smaller prefix                               larger prefix
//!     | -- Req:   certificate, permissions, dh1, challenge1 ---> |
//!     | <- Reply: the same, dh2, challenge2, signature --------- |
//!     | -- Final: challenges, keys, signature -----------------> |
//! ```

mod cdr;
mod guid;
mod handshake;
mod handshake_tokens;
mod handshakes;
mod identity_token;
mod key_agreement;
mod modp;
#[cfg(test)]
mod recorded_handshakes;
mod token;

pub use guid::{adjusted_prefix, is_prefix_of};
pub use handshake::SharedSecret;
pub use handshake_tokens::{AuthenticatedPeer, HandshakeRejection};
pub use handshakes::{HandshakeEvent, Handshakes, LocalIdentity, TooManyHandshakes};
pub use token::{GenericMessage, MessageIdentity, Token};
