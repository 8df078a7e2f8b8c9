//! Opening: decrypts and verifies incoming datagrams.

use parking_lot::MutexGuard;
use pteros_rtps::id::{EntityId, GuidPrefix, VendorId};

use super::drop_counts::DropReason;
use super::protection::EndpointRole;
use super::remote_participant::{RemoteEndpoint, RemoteKeys, RemoteParticipant};
use super::submessage::{
    EndpointIds, HEADER_BYTES, INFO_DESTINATION, INFO_REPLY, INFO_REPLY_IP4, INFO_SOURCE,
    INFO_TIMESTAMP, PAD, RTPS_HEADER_BYTES, SEC_PREFIX, SRTPS_PREFIX, Submessage, SubmessageHeader,
};
use super::{CryptoTransform, State};
use crate::crypto::{Frame, KeyId};
use crate::governance::PayloadProtection;

/// Buffers in which messages and submessages are opened: 128 KiB, allocated once.
#[derive(Debug, Clone)]
pub struct OpenBuffers {
    message: Box<[u8]>,
    submessage: Box<[u8]>,
}

impl Default for OpenBuffers {
    fn default() -> Self {
        let memory = || vec![0; DATAGRAM_BYTES_MAX].into_boxed_slice();
        Self {
            message: memory(),
            submessage: memory(),
        }
    }
}

/// The output: a message without protection.
struct CleanMessage<'o> {
    bytes: &'o mut [u8],
    len: usize,
    has_content: bool,
}

impl CleanMessage<'_> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), DropReason> {
        let place = self.tail().get_mut(..bytes.len());
        place.ok_or(DropReason::Malformed)?.copy_from_slice(bytes);
        self.advance(bytes.len());
        Ok(())
    }

    /// The unwritten rest of the output.
    fn tail(&mut self) -> &mut [u8] {
        self.bytes.get_mut(self.len..).unwrap_or_default()
    }

    /// Marks bytes of the tail as written.
    fn advance(&mut self, count: usize) {
        self.len = self.len.saturating_add(count);
    }

    fn fill_in(&mut self, at: usize, bytes: [u8; 2]) {
        let place = self.bytes.get_mut(at..).and_then(<[u8]>::first_chunk_mut);
        if let Some(place) = place {
            *place = bytes;
        }
    }
}

/// One message that is being opened.
struct Opening<'s> {
    transform: &'s CryptoTransform,
    state: &'s State,
    from: GuidPrefix,
    peer: Option<&'s RemoteParticipant>,
    keys: Option<MutexGuard<'s, RemoteKeys>>,
    /// It arrived as a protected message (SRTPS).
    is_message_protected: bool,
}

impl CryptoTransform {
    /// Opens a datagram: writes its authentic content to the beginning of `clean`
    /// as a message without protection, and returns its length. Returns `None` if
    /// nothing is left; [`CryptoTransform::take_drops`] reports why. Never panics,
    /// for any content. `clean` needs at most as many bytes as the datagram has.
    pub fn open(
        &self,
        datagram: &[u8],
        workspace: &mut OpenBuffers,
        clean: &mut [u8],
    ) -> Option<usize> {
        let (header, content) = datagram.split_first_chunk::<RTPS_HEADER_BYTES>()?;
        let [b'R', b'T', b'P', b'S', _, _, _, _, prefix @ ..] = *header else {
            return None;
        };
        let from = GuidPrefix(prefix);
        if from == self.own {
            return None;
        }
        let state = self.state.read();
        let peer = state.peers.get(&from);
        let opening = Opening {
            transform: self,
            state: &state,
            from,
            peer,
            keys: peer.map(|peer| peer.keys.lock()),
            is_message_protected: false,
        };
        let mut clean = CleanMessage {
            bytes: clean,
            len: 0,
            has_content: false,
        };
        if let Err(reason) = clean
            .put(header)
            .and_then(|()| opening.open(content, workspace, &mut clean))
        {
            self.drop_counts.record(from, reason);
        }
        clean.has_content.then_some(clean.len)
    }
}

impl<'s> Opening<'s> {
    fn open(
        mut self,
        content: &[u8],
        workspace: &mut OpenBuffers,
        clean: &mut CleanMessage<'_>,
    ) -> Result<(), DropReason> {
        if content.first() != Some(&SRTPS_PREFIX) {
            return self.handle_submessages(content, &mut workspace.submessage, clean);
        }
        let keys = self.keys.as_mut().ok_or(DropReason::Unauthenticated)?;
        let frame = Frame::of_message(content).map_err(|_| DropReason::Malformed)?;
        let incoming = keys.participant.as_mut().ok_or(DropReason::Key)?;
        let opened = incoming.open(&frame, &mut workspace.message, true)?;
        self.is_message_protected = true;
        let content = match opened {
            None => frame.content,
            Some(length) => workspace.message.get(..length).unwrap_or_default(),
        };
        self.handle_submessages(content, &mut workspace.submessage, clean)
    }

    /// Opens submessages one by one; dropped ones are left out.
    fn handle_submessages(
        &mut self,
        mut rest: &[u8],
        scratch: &mut [u8],
        clean: &mut CleanMessage<'_>,
    ) -> Result<(), DropReason> {
        let mut is_for_us = true;
        while !rest.is_empty() {
            let (submessage, after) = Submessage::take(rest).ok_or(DropReason::Malformed)?;
            let before = rest;
            rest = after;
            if submessage.id == INFO_SOURCE {
                self.check_source(&submessage, clean)?;
                continue;
            }
            if let Some(to) = submessage.destination() {
                is_for_us = to == GuidPrefix::UNKNOWN || to == self.transform.own;
            }
            let is_sealed = submessage.id == SEC_PREFIX;
            let handled = match submessage.id {
                SEC_PREFIX => {
                    let frame = Frame::of_submessage(before);
                    let (frame, after) = frame.map_err(|_| DropReason::Malformed)?;
                    rest = after;
                    if is_for_us {
                        self.handle_protected(&frame, scratch, clean)
                    } else {
                        Ok(())
                    }
                }
                INFO_TIMESTAMP | INFO_DESTINATION => clean.put(submessage.whole),
                // Unauthenticated senders must not redirect replies.
                INFO_REPLY | INFO_REPLY_IP4
                    if self.is_message_protected || !self.requires_message_protection() =>
                {
                    clean.put(submessage.whole)
                }
                _ if !submessage.is_of_endpoint() || !is_for_us => Ok(()),
                _ => self.handle_plain(&submessage, clean),
            };
            match handled {
                Ok(()) if is_for_us && (is_sealed || submessage.is_of_endpoint()) => {
                    clean.has_content = true;
                }
                Ok(()) => {}
                Err(reason) => self.transform.drop_counts.record(self.from, reason),
            }
        }
        Ok(())
    }

    /// Checks that no participant sends in another's name. The source inside a
    /// protected message overrides the unprotected header.
    fn check_source(
        &self,
        submessage: &Submessage<'_>,
        clean: &mut CleanMessage<'_>,
    ) -> Result<(), DropReason> {
        let body = submessage.body.get(4..).unwrap_or_default();
        let Some((version_and_vendor, prefix)) = body.split_first_chunk::<4>() else {
            return Err(DropReason::Malformed);
        };
        if !prefix.starts_with(&self.from.0) {
            return Err(DropReason::SourceMismatch);
        }
        let [a, b, c, d] = *version_and_vendor;
        if self.is_message_protected {
            clean.fill_in(4, [a, b]);
            clean.fill_in(6, [c, d]);
        }
        Ok(())
    }

    fn requires_message_protection(&self) -> bool {
        self.transform.message.is_on()
    }

    /// Handles a submessage that is not protected itself.
    fn handle_plain(
        &mut self,
        submessage: &Submessage<'_>,
        clean: &mut CleanMessage<'_>,
    ) -> Result<(), DropReason> {
        let endpoint_ids = submessage.endpoint_ids().ok_or(DropReason::Malformed)?;
        match role_of(endpoint_ids)? {
            EndpointRole::Bootstrap => clean.put(submessage.whole),
            EndpointRole::KeyExchange => Err(DropReason::Unprotected),
            EndpointRole::Secured => {
                let own = self.state.own.get(&endpoint_ids.sender);
                let is_open = own.is_some_and(|own| own.protection.is_none());
                let peer = self.peer.filter(|peer| peer.key_exchange.is_some());
                peer.ok_or(DropReason::Unauthenticated)?;
                if !is_open || self.requires_message_protection() && !self.is_message_protected {
                    return Err(DropReason::Unprotected);
                }
                clean.put(submessage.whole)
            }
            EndpointRole::Builtin => {
                let peer = self.peer.ok_or(DropReason::Unauthenticated)?;
                if self.requires_message_protection()
                    && !self.is_message_protected
                    && !self.is_lenient(peer)
                {
                    return Err(if peer.vendor == VendorId::CYCLONE {
                        DropReason::UnprotectedBuiltin
                    } else {
                        DropReason::Unprotected
                    });
                }
                clean.put(submessage.whole)
            }
            EndpointRole::User => {
                let remote = self.remote(endpoint_ids.sender)?;
                let is_less = remote.protection.submessage.is_on();
                if is_less || self.requires_message_protection() && !self.is_message_protected {
                    return Err(DropReason::Unprotected);
                }
                self.open_payload(submessage, endpoint_ids.sender, remote, clean)
            }
        }
    }

    /// Cyclone DDS does not protect the messages of built-in endpoints that have no
    /// protection of their own, so where discovery has none they come unprotected.
    fn is_lenient(&self, peer: &RemoteParticipant) -> bool {
        let is_cyclone = peer.vendor == VendorId::CYCLONE && peer.key_exchange.is_some();
        is_cyclone && self.transform.discovery_is_open
    }

    fn remote(&self, sender: EntityId) -> Result<&'s RemoteEndpoint, DropReason> {
        let peer = self.peer.ok_or(DropReason::Unauthenticated)?;
        peer.remote(sender).ok_or(DropReason::Unmatched)
    }

    /// Handles a submessage that is protected itself.
    fn handle_protected(
        &mut self,
        frame: &Frame<'_>,
        scratch: &mut [u8],
        clean: &mut CleanMessage<'_>,
    ) -> Result<(), DropReason> {
        let is_too_open = self.requires_message_protection() && !self.is_message_protected;
        let keys = self.keys.as_mut().ok_or(DropReason::Unauthenticated)?;
        if frame.key == KEY_FOR_KEYS {
            let exchange = keys.exchange.as_mut().ok_or(DropReason::Unauthenticated)?;
            let opened = exchange.open(frame, scratch, true)?;
            let inner = opened_bytes(frame, scratch, opened)?;
            let inner = only_submessage(inner)?;
            if inner.id == INFO_TIMESTAMP {
                return clean.put(inner.whole);
            }
            let endpoint_ids = inner.endpoint_ids().ok_or(DropReason::Malformed)?;
            return match role_of(endpoint_ids)? {
                EndpointRole::KeyExchange => clean.put(inner.whole),
                _ => Err(DropReason::Key),
            };
        }
        if is_too_open {
            return Err(DropReason::Unprotected);
        }
        let (of, incoming) = keys.endpoints.get_mut(&frame.key).ok_or(DropReason::Key)?;
        let of = *of;
        let peer = self.peer.ok_or(DropReason::Unauthenticated)?;
        let remote = peer.remote(of).ok_or(DropReason::Unmatched)?;
        if remote.protection.submessage.encrypts() && !frame.kind.encrypts() {
            return Err(DropReason::Unprotected);
        }
        // Within a protected message the message's replay window is enough.
        let is_once = !self.is_message_protected;
        let has_payload = remote.protection.payload != PayloadProtection::None;
        if has_payload || !frame.kind.encrypts() {
            let opened = incoming.open(frame, scratch, is_once)?;
            let inner = only_submessage(opened_bytes(frame, scratch, opened)?)?;
            check_sender(&inner, of)?;
            return self.open_payload(&inner, of, remote, clean);
        }
        let opened = incoming.open(frame, clean.tail(), is_once)?;
        let inner = only_submessage(opened_bytes(frame, clean.tail(), opened)?)?;
        check_sender(&inner, of)?;
        let length = inner.whole.len();
        clean.advance(length);
        Ok(())
    }

    /// Writes a submessage whose payload may be protected.
    fn open_payload(
        &mut self,
        submessage: &Submessage<'_>,
        sender: EntityId,
        remote: &RemoteEndpoint,
        clean: &mut CleanMessage<'_>,
    ) -> Result<(), DropReason> {
        let wanted = remote.protection.payload;
        let (PayloadProtection::Sign | PayloadProtection::Encrypt, Some(at)) =
            (wanted, submessage.payload_at())
        else {
            return clean.put(submessage.whole);
        };
        let (head, payload) = submessage
            .whole
            .split_at_checked(at)
            .ok_or(DropReason::Malformed)?;
        let frame = Frame::of_payload(payload).map_err(|_| DropReason::Malformed)?;
        let keys = self.keys.as_mut().ok_or(DropReason::Unauthenticated)?;
        let (of, incoming) = keys.endpoints.get_mut(&frame.key).ok_or(DropReason::Key)?;
        if *of != sender {
            return Err(DropReason::Key);
        }
        if wanted == PayloadProtection::Encrypt && !frame.kind.encrypts() {
            return Err(DropReason::Unprotected);
        }
        let tail = clean.tail().get_mut(head.len()..).unwrap_or_default();
        let length = match incoming.open(&frame, tail, false)? {
            Some(length) => length,
            None => {
                let place = tail.get_mut(..frame.content.len());
                place
                    .ok_or(DropReason::Malformed)?
                    .copy_from_slice(frame.content);
                frame.content.len()
            }
        };
        let padding = length.wrapping_neg() & 3;
        let place = tail
            .get_mut(length..)
            .and_then(|tail| tail.get_mut(..padding));
        place.ok_or(DropReason::Malformed)?.fill(0);
        let start = clean.len;
        clean.put(head)?;
        clean.advance(length.saturating_add(padding));
        let length = clean.len.saturating_sub(start).saturating_sub(HEADER_BYTES);
        let length = u16::try_from(length).map_err(|_| DropReason::Malformed)?;
        let at = start.saturating_add(2);
        clean.fill_in(at, SubmessageHeader::length_bytes(submessage.flags, length));
        Ok(())
    }
}

/// The role of both endpoints, which must agree.
fn role_of(endpoint_ids: EndpointIds) -> Result<EndpointRole, DropReason> {
    let role = EndpointRole::of(endpoint_ids.sender);
    let is_any = endpoint_ids.receiver == EntityId::UNKNOWN;
    let is_pair = match role {
        EndpointRole::User => EndpointRole::of(endpoint_ids.receiver) == role,
        _ => endpoint_ids.receiver.key == endpoint_ids.sender.key,
    };
    if is_any || is_pair {
        Ok(role)
    } else {
        Err(DropReason::Malformed)
    }
}

/// The content of a frame; `scratch` is the buffer that it was opened into.
fn opened_bytes<'a>(
    frame: &Frame<'a>,
    scratch: &'a [u8],
    opened: Option<usize>,
) -> Result<&'a [u8], DropReason> {
    match opened {
        None => Ok(frame.content),
        Some(length) => scratch.get(..length).ok_or(DropReason::Malformed),
    }
}

/// The one submessage that a frame holds. Padding may follow it.
fn only_submessage(bytes: &[u8]) -> Result<Submessage<'_>, DropReason> {
    let (submessage, mut rest) = Submessage::take(bytes).ok_or(DropReason::Malformed)?;
    while !rest.is_empty() {
        let (more, after) = Submessage::take(rest).ok_or(DropReason::Malformed)?;
        if more.id != PAD {
            return Err(DropReason::Malformed);
        }
        rest = after;
    }
    Ok(submessage)
}

/// Fast DDS also protects the INFO_TS of the following submessage, by itself.
fn check_sender(submessage: &Submessage<'_>, sender: EntityId) -> Result<(), DropReason> {
    if submessage.id == INFO_TIMESTAMP {
        return Ok(());
    }
    let endpoint_ids = submessage.endpoint_ids().ok_or(DropReason::Malformed)?;
    role_of(endpoint_ids)?;
    if endpoint_ids.sender == sender {
        Ok(())
    } else {
        Err(DropReason::Key)
    }
}

const KEY_FOR_KEYS: KeyId = KeyId([0; 4]);
/// The largest datagram.
const DATAGRAM_BYTES_MAX: usize = 1 << 16;
