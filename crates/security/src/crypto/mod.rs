//! `DDS:Crypto:AES_GCM_GMAC`: keys, and the protection of submessages, messages and
//! payloads (DDS Security 1.1 §9.5). Bytes in, bytes out; no allocation once a
//! session's key is derived.
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
mod output_buffer;
mod receiver_key;
mod replay_window;
mod sealer;

pub use framing::{Frame, FrameError};
pub use keys::{KeyMaterial, KeyMaterialError, TransformKind, key_exchange_material};
pub use opener::{OpenError, Opened, Opener};
pub use receiver_key::ReceiverKey;
pub use replay_window::ReplayWindow;
pub use sealer::{ProtectionLayer, SealError, Sealer};

pub(crate) use output_buffer::OutputBuffer;
pub(crate) use sealer::{Plaintext, SealInProgress};

/// Identifies a key among those of one sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyId(pub [u8; 4]);

/// A session of a key: four octets that the sender chooses, in any order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SessionId(pub [u8; 4]);

/// A message authentication code.
pub(crate) type Mac = [u8; 16];
