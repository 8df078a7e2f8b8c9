//! `DDS:Crypto:AES_GCM_GMAC`: keys, and how submessages, messages and payloads
//! are protected with them (DDS Security 1.1 §9.5). Bytes in, bytes out; no
//! allocation once a session's key is known.
//!
//! ```text
//!  CryptoHeader, 20 bytes          CryptoContent, if encrypted
//! +------+--------+------------+  +--------+----------------+
//! | kind | key id | session id |  | length | ciphertext ... |
//! +------+--------+------------+  +--------+----------------+
//! | initialisation vector, 8   |
//! +----------------------------+   CryptoFooter
//!                                 +------------+-------+--------------------------+
//! all numbers big-endian          | common MAC | count | count x { key id, MAC }  |
//!                                 +------------+-------+--------------------------+
//! ```

mod framing;
mod keys;
mod opener;
mod page;
mod receiver;
mod replay;
mod sealer;

pub use framing::{Frame, FrameError};
pub use keys::{KeyMaterial, KeyMaterialError, TransformKind, key_exchange_material};
pub use opener::{OpenError, Opened, Opener};
pub use receiver::Receiver;
pub use replay::ReplayWindow;
pub use sealer::{Layer, SealError, Sealer};

pub(crate) use page::Page;
pub(crate) use sealer::{Begun, Plain};

/// Identifies a key among those of one sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyId(pub [u8; 4]);

/// A session of a key: four octets of the sender's choice, in whatever order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SessionId(pub [u8; 4]);

/// A message authentication code.
pub(crate) type Mac = [u8; 16];
