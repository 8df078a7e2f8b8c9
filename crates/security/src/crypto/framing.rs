//! Framing of protected data (DDS Security 1.1 §9.5.2): finds the parts of a
//! protected payload, submessage (SEC_PREFIX, SEC_BODY, SEC_POSTFIX) or message
//! (SRTPS_PREFIX, SRTPS_POSTFIX). A view over received bytes: nothing is copied,
//! nothing is verified.

use super::{KeyId, Mac, SessionId, TransformKind};

/// Protected data, divided into its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The transformation.
    pub kind: TransformKind,
    /// The sender's key id.
    pub key: KeyId,
    /// The session id.
    pub session: SessionId,
    /// The sender's initialisation vector.
    pub vector: [u8; 8],
    /// Ciphertext, or plaintext that is only signed.
    pub content: &'a [u8],
    /// The common MAC, for all receivers.
    pub(crate) mac: Mac,
    /// Receiver-specific MACs with their key ids, 20 bytes each.
    pub(crate) receiver_macs: &'a [u8],
}

/// Why bytes are not a protected frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Too short.
    #[error("too short")]
    Short,
    /// An unexpected submessage.
    #[error("submessage {0:#04x} is in the wrong place")]
    Order(u8),
    /// Unknown transformation.
    #[error("unknown transformation")]
    Kind,
    /// More receiver-specific MACs than are accepted.
    #[error("more receiver-specific MACs than are accepted")]
    TooMany,
}

impl<'a> Frame<'a> {
    /// A protected payload.
    pub fn of_payload(bytes: &'a [u8]) -> Result<Self, FrameError> {
        let (header, rest) = CryptoHeader::take(bytes)?;
        let (content, footer) = if header.kind.encrypts() {
            let (length, rest) = word(rest)?;
            let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
            rest.split_at_checked(length).ok_or(FrameError::Short)?
        } else {
            // A signed payload has no receiver-specific MACs (§9.5.3.3.4.4).
            let end = rest.len().checked_sub(FOOTER_BYTES);
            rest.split_at_checked(end.ok_or(FrameError::Short)?)
                .ok_or(FrameError::Short)?
        };
        header.with(content, footer)
    }

    /// A protected submessage, and the bytes after its postfix.
    pub fn of_submessage(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), FrameError> {
        let (prefix, rest) = SecSubmessage::take(bytes)?;
        prefix.expect(SEC_PREFIX)?;
        let (header, _) = CryptoHeader::take(prefix.body)?;
        let (body, rest) = SecSubmessage::take(rest)?;
        let content = match (header.kind.encrypts(), body.id) {
            (true, SEC_BODY) => content_of(body.body)?,
            (true, other) => return Err(FrameError::Order(other)),
            (false, _) => body.whole,
        };
        let (postfix, rest) = SecSubmessage::take(rest)?;
        postfix.expect(SEC_POSTFIX)?;
        Ok((header.with(content, postfix.body)?, rest))
    }

    /// A protected message without its RTPS header: it begins with SRTPS_PREFIX.
    /// Bytes after the postfix are ignored.
    pub fn of_message(bytes: &'a [u8]) -> Result<Self, FrameError> {
        let (prefix, rest) = SecSubmessage::take(bytes)?;
        prefix.expect(SRTPS_PREFIX)?;
        let (header, _) = CryptoHeader::take(prefix.body)?;
        if header.kind.encrypts() {
            let (body, rest) = SecSubmessage::take(rest)?;
            body.expect(SEC_BODY)?;
            let (postfix, _) = SecSubmessage::take(rest)?;
            postfix.expect(SRTPS_POSTFIX)?;
            return header.with(content_of(body.body)?, postfix.body);
        }
        let mut after = rest;
        for _ in 0..SUBMESSAGES {
            let (submessage, next) = SecSubmessage::take(after)?;
            if submessage.id == SRTPS_POSTFIX {
                let length = rest.len().saturating_sub(after.len());
                let content = rest.get(..length).ok_or(FrameError::Short)?;
                return header.with(content, submessage.body);
            }
            after = next;
        }
        Err(FrameError::Short)
    }

    /// The MAC for the receiver with this key.
    pub(crate) fn receiver_mac(&self, key: KeyId) -> Option<Mac> {
        let mut entries = self.receiver_macs.chunks_exact(RECEIVER_BYTES);
        let entry = entries.find(|entry| entry.starts_with(&key.0))?;
        entry.last_chunk::<16>().copied()
    }

    pub(crate) fn nonce(&self) -> [u8; 12] {
        nonce(self.session, self.vector)
    }
}

/// Fields of a CryptoHeader.
struct CryptoHeader {
    kind: TransformKind,
    key: KeyId,
    session: SessionId,
    vector: [u8; 8],
}

impl CryptoHeader {
    fn take(bytes: &[u8]) -> Result<(Self, &[u8]), FrameError> {
        let (kind, rest) = word(bytes)?;
        let (key, rest) = word(rest)?;
        let (session, rest) = word(rest)?;
        let (vector, rest) = rest.split_first_chunk::<8>().ok_or(FrameError::Short)?;
        let header = Self {
            kind: TransformKind::of(kind).ok_or(FrameError::Kind)?,
            key: KeyId(key),
            session: SessionId(session),
            vector: *vector,
        };
        Ok((header, rest))
    }

    fn with<'a>(self, content: &'a [u8], footer: &'a [u8]) -> Result<Frame<'a>, FrameError> {
        let (mac, rest) = footer.split_first_chunk::<16>().ok_or(FrameError::Short)?;
        let (count, rest) = word(rest)?;
        let count = usize::try_from(u32::from_be_bytes(count)).unwrap_or(usize::MAX);
        if count > RECEIVERS {
            return Err(FrameError::TooMany);
        }
        let length = count.saturating_mul(RECEIVER_BYTES);
        let receiver_macs = rest.get(..length).ok_or(FrameError::Short)?;
        Ok(Frame {
            kind: self.kind,
            key: self.key,
            session: self.session,
            vector: self.vector,
            content,
            mac: *mac,
            receiver_macs,
        })
    }
}

struct SecSubmessage<'a> {
    id: u8,
    body: &'a [u8],
    whole: &'a [u8],
}

impl<'a> SecSubmessage<'a> {
    fn take(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), FrameError> {
        let ([id, flags, a, b], rest) = bytes.split_first_chunk::<4>().ok_or(FrameError::Short)?;
        let length = match flags & 1 {
            1 => u16::from_le_bytes([*a, *b]),
            _ => u16::from_be_bytes([*a, *b]),
        };
        // Zero means the rest of the message (RTPS 2.5 §9.4.5.1.3), which is
        // impossible before a postfix.
        let length = usize::from(length);
        let (body, after) = rest.split_at_checked(length).ok_or(FrameError::Short)?;
        let whole = bytes
            .get(..length.saturating_add(4))
            .ok_or(FrameError::Short)?;
        let submessage = Self {
            id: *id,
            body,
            whole,
        };
        Ok((submessage, after))
    }

    fn expect(&self, id: u8) -> Result<(), FrameError> {
        if self.id == id {
            Ok(())
        } else {
            Err(FrameError::Order(self.id))
        }
    }
}

fn content_of(body: &[u8]) -> Result<&[u8], FrameError> {
    let (length, rest) = word(body)?;
    let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
    rest.get(..length).ok_or(FrameError::Short)
}

fn word(bytes: &[u8]) -> Result<([u8; 4], &[u8]), FrameError> {
    let (word, rest) = bytes.split_first_chunk::<4>().ok_or(FrameError::Short)?;
    Ok((*word, rest))
}

pub(crate) fn nonce(session: SessionId, vector: [u8; 8]) -> [u8; 12] {
    let ([a, b, c, d], [e, f, g, h, i, j, k, l]) = (session.0, vector);
    [a, b, c, d, e, f, g, h, i, j, k, l]
}

pub(crate) const SEC_BODY: u8 = 0x30;
pub(crate) const SEC_PREFIX: u8 = 0x31;
pub(crate) const SEC_POSTFIX: u8 = 0x32;
pub(crate) const SRTPS_PREFIX: u8 = 0x33;
pub(crate) const SRTPS_POSTFIX: u8 = 0x34;
/// A common MAC and a count of zero.
const FOOTER_BYTES: usize = 20;
/// A key id and a MAC.
pub(crate) const RECEIVER_BYTES: usize = 20;
/// Limit of receivers: as many as fit a datagram with some content.
pub(crate) const RECEIVERS: usize = 2048;
/// Limit of submessages in a message: a datagram of 64 KiB of the shortest ones.
const SUBMESSAGES: usize = 16_384;
