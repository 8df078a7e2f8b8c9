//! What comes in.

use parking_lot::MutexGuard;
use pteros_rtps::id::{EntityId, GuidPrefix, VendorId};

use super::peers::{Keys, Peer, Remote};
use super::protection::Role;
use super::refusals::Refusal;
use super::submessage::{
    Ends, HEADER_BYTES, Head, INFO_DESTINATION, INFO_REPLY, INFO_REPLY_IP4, INFO_SOURCE,
    INFO_TIMESTAMP, PAD, RTPS_HEADER_BYTES, SEC_PREFIX, SRTPS_PREFIX, Submessage,
};
use super::{Shield, State};
use crate::crypto::{Frame, KeyId};
use crate::governance::PayloadProtection;

/// Memory in which messages and submessages are opened: 128 KiB, made once.
#[derive(Debug, Clone)]
pub struct Workspace {
    message: Box<[u8]>,
    submessage: Box<[u8]>,
}

impl Default for Workspace {
    fn default() -> Self {
        let memory = || vec![0; DATAGRAM_BYTES_MAX].into_boxed_slice();
        Self {
            message: memory(),
            submessage: memory(),
        }
    }
}

/// Where clean submessages go.
struct Out<'o> {
    bytes: &'o mut [u8],
    len: usize,
    has_content: bool,
}

impl Out<'_> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), Refusal> {
        let place = self.tail().get_mut(..bytes.len());
        place.ok_or(Refusal::Malformed)?.copy_from_slice(bytes);
        self.note(bytes.len());
        Ok(())
    }

    /// What is not written yet.
    fn tail(&mut self) -> &mut [u8] {
        self.bytes.get_mut(self.len..).unwrap_or_default()
    }

    /// So many bytes of the tail were written.
    fn note(&mut self, count: usize) {
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
    shield: &'s Shield,
    state: &'s State,
    from: GuidPrefix,
    peer: Option<&'s Peer>,
    keys: Option<MutexGuard<'s, Keys>>,
    /// It came as a protected message.
    is_whole: bool,
}

impl Shield {
    /// Writes what may be believed of a datagram to the beginning of `out` as a
    /// message without protection, and how many bytes that are. Nothing if
    /// nothing is left: [`Shield::take_refusals`] tells why. Never panics,
    /// whatever it holds; `out` needs at most as many bytes as the datagram has.
    pub fn open(
        &self,
        datagram: &[u8],
        workspace: &mut Workspace,
        out: &mut [u8],
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
            shield: self,
            state: &state,
            from,
            peer,
            keys: peer.map(|peer| peer.keys.lock()),
            is_whole: false,
        };
        let mut out = Out {
            bytes: out,
            len: 0,
            has_content: false,
        };
        if let Err(refusal) = out
            .put(header)
            .and_then(|()| opening.open(content, workspace, &mut out))
        {
            self.refusals.note(from, refusal);
        }
        out.has_content.then_some(out.len)
    }
}

impl<'s> Opening<'s> {
    fn open(
        mut self,
        content: &[u8],
        workspace: &mut Workspace,
        out: &mut Out<'_>,
    ) -> Result<(), Refusal> {
        if content.first() != Some(&SRTPS_PREFIX) {
            return self.submessages(content, &mut workspace.submessage, out);
        }
        let keys = self.keys.as_mut().ok_or(Refusal::Stranger)?;
        let frame = Frame::of_message(content).map_err(|_| Refusal::Malformed)?;
        let incoming = keys.participant.as_mut().ok_or(Refusal::Key)?;
        let opened = incoming.open(&frame, &mut workspace.message, true)?;
        self.is_whole = true;
        let content = match opened {
            None => frame.content,
            Some(length) => workspace.message.get(..length).unwrap_or_default(),
        };
        self.submessages(content, &mut workspace.submessage, out)
    }

    /// One after the other; those that are refused are left out.
    fn submessages(
        &mut self,
        mut rest: &[u8],
        scratch: &mut [u8],
        out: &mut Out<'_>,
    ) -> Result<(), Refusal> {
        let mut is_for_us = true;
        while !rest.is_empty() {
            let (submessage, after) = Submessage::take(rest).ok_or(Refusal::Malformed)?;
            let before = rest;
            rest = after;
            if submessage.id == INFO_SOURCE {
                self.check_source(&submessage, out)?;
                continue;
            }
            if let Some(to) = submessage.destination() {
                is_for_us = to == GuidPrefix::UNKNOWN || to == self.shield.own;
            }
            let is_sealed = submessage.id == SEC_PREFIX;
            let handled = match submessage.id {
                SEC_PREFIX => {
                    let frame = Frame::of_submessage(before);
                    let (frame, after) = frame.map_err(|_| Refusal::Malformed)?;
                    rest = after;
                    match is_for_us {
                        true => self.sealed(&frame, scratch, out),
                        false => Ok(()),
                    }
                }
                INFO_TIMESTAMP | INFO_DESTINATION => out.put(submessage.whole),
                // Where answers go is not for strangers to say.
                INFO_REPLY | INFO_REPLY_IP4 if self.is_whole || !self.must_be_whole() => {
                    out.put(submessage.whole)
                }
                _ if !submessage.is_of_endpoint() || !is_for_us => Ok(()),
                _ => self.plain(&submessage, out),
            };
            match handled {
                Ok(()) if is_for_us && (is_sealed || submessage.is_of_endpoint()) => {
                    out.has_content = true;
                }
                Ok(()) => {}
                Err(refusal) => self.shield.refusals.note(self.from, refusal),
            }
        }
        Ok(())
    }

    /// Nobody speaks for another participant than its own. What a protected
    /// message has of its header is better than what stands before it.
    fn check_source(&self, submessage: &Submessage<'_>, out: &mut Out<'_>) -> Result<(), Refusal> {
        let body = submessage.body.get(4..).unwrap_or_default();
        let Some((version_and_vendor, prefix)) = body.split_first_chunk::<4>() else {
            return Err(Refusal::Malformed);
        };
        if !prefix.starts_with(&self.from.0) {
            return Err(Refusal::AnotherSource);
        }
        let [a, b, c, d] = *version_and_vendor;
        if self.is_whole {
            out.fill_in(4, [a, b]);
            out.fill_in(6, [c, d]);
        }
        Ok(())
    }

    fn must_be_whole(&self) -> bool {
        self.shield.message.is_on()
    }

    /// A submessage that is not protected by itself.
    fn plain(&mut self, submessage: &Submessage<'_>, out: &mut Out<'_>) -> Result<(), Refusal> {
        let ends = submessage.ends().ok_or(Refusal::Malformed)?;
        match role_of(ends)? {
            Role::Bootstrap => out.put(submessage.whole),
            Role::KeyExchange => Err(Refusal::Unprotected),
            Role::Secured => {
                let own = self.state.own.get(&ends.sender);
                let is_open = own.is_some_and(|own| own.protection.is_none());
                let peer = self.peer.filter(|peer| peer.kx.is_some());
                peer.ok_or(Refusal::Stranger)?;
                if !is_open || self.must_be_whole() && !self.is_whole {
                    return Err(Refusal::Unprotected);
                }
                out.put(submessage.whole)
            }
            Role::Builtin => {
                let peer = self.peer.ok_or(Refusal::Stranger)?;
                if self.must_be_whole() && !self.is_whole && !self.is_lenient(peer) {
                    return Err(match peer.vendor == VendorId::CYCLONE {
                        true => Refusal::Bare,
                        false => Refusal::Unprotected,
                    });
                }
                out.put(submessage.whole)
            }
            Role::User => {
                let remote = self.remote(ends.sender)?;
                let is_less = remote.protection.submessage.is_on();
                if is_less || self.must_be_whole() && !self.is_whole {
                    return Err(Refusal::Unprotected);
                }
                self.with_payload(submessage, ends.sender, remote, out)
            }
        }
    }

    /// Cyclone DDS does not protect the messages of built-in endpoints that have
    /// no protection of their own, so where discovery has none they come bare.
    fn is_lenient(&self, peer: &Peer) -> bool {
        let is_cyclone = peer.vendor == VendorId::CYCLONE && peer.kx.is_some();
        is_cyclone && self.shield.discovery_is_open
    }

    fn remote(&self, sender: EntityId) -> Result<&'s Remote, Refusal> {
        let peer = self.peer.ok_or(Refusal::Stranger)?;
        peer.remote(sender).ok_or(Refusal::Unmatched)
    }

    /// A submessage that is protected by itself.
    fn sealed(
        &mut self,
        frame: &Frame<'_>,
        scratch: &mut [u8],
        out: &mut Out<'_>,
    ) -> Result<(), Refusal> {
        let is_too_open = self.must_be_whole() && !self.is_whole;
        let keys = self.keys.as_mut().ok_or(Refusal::Stranger)?;
        if frame.key == KEY_FOR_KEYS {
            let exchange = keys.exchange.as_mut().ok_or(Refusal::Stranger)?;
            let opened = exchange.open(frame, scratch, true)?;
            let inner = opened_bytes(frame, scratch, opened)?;
            let inner = only_submessage(inner)?;
            if inner.id == INFO_TIMESTAMP {
                return out.put(inner.whole);
            }
            let ends = inner.ends().ok_or(Refusal::Malformed)?;
            return match role_of(ends)? {
                Role::KeyExchange => out.put(inner.whole),
                _ => Err(Refusal::Key),
            };
        }
        if is_too_open {
            return Err(Refusal::Unprotected);
        }
        let (of, incoming) = keys.endpoints.get_mut(&frame.key).ok_or(Refusal::Key)?;
        let of = *of;
        let peer = self.peer.ok_or(Refusal::Stranger)?;
        let remote = peer.remote(of).ok_or(Refusal::Unmatched)?;
        if remote.protection.submessage.encrypts() && !frame.kind.encrypts() {
            return Err(Refusal::Unprotected);
        }
        // Within a protected message its window is enough.
        let is_once = !self.is_whole;
        let has_payload = remote.protection.payload != PayloadProtection::None;
        if has_payload || !frame.kind.encrypts() {
            let opened = incoming.open(frame, scratch, is_once)?;
            let inner = only_submessage(opened_bytes(frame, scratch, opened)?)?;
            check_sender(&inner, of)?;
            return self.with_payload(&inner, of, remote, out);
        }
        let opened = incoming.open(frame, out.tail(), is_once)?;
        let inner = only_submessage(opened_bytes(frame, out.tail(), opened)?)?;
        check_sender(&inner, of)?;
        let length = inner.whole.len();
        out.note(length);
        Ok(())
    }

    /// Writes a submessage whose payload may be protected.
    fn with_payload(
        &mut self,
        submessage: &Submessage<'_>,
        sender: EntityId,
        remote: &Remote,
        out: &mut Out<'_>,
    ) -> Result<(), Refusal> {
        let wanted = remote.protection.payload;
        let (PayloadProtection::Sign | PayloadProtection::Encrypt, Some(at)) =
            (wanted, submessage.payload_at())
        else {
            return out.put(submessage.whole);
        };
        let (head, payload) = submessage
            .whole
            .split_at_checked(at)
            .ok_or(Refusal::Malformed)?;
        let frame = Frame::of_payload(payload).map_err(|_| Refusal::Malformed)?;
        let keys = self.keys.as_mut().ok_or(Refusal::Stranger)?;
        let (of, incoming) = keys.endpoints.get_mut(&frame.key).ok_or(Refusal::Key)?;
        if *of != sender {
            return Err(Refusal::Key);
        }
        if wanted == PayloadProtection::Encrypt && !frame.kind.encrypts() {
            return Err(Refusal::Unprotected);
        }
        let tail = out.tail().get_mut(head.len()..).unwrap_or_default();
        let length = match incoming.open(&frame, tail, false)? {
            Some(length) => length,
            None => {
                let place = tail.get_mut(..frame.content.len());
                place
                    .ok_or(Refusal::Malformed)?
                    .copy_from_slice(frame.content);
                frame.content.len()
            }
        };
        let padding = length.wrapping_neg() & 3;
        let place = tail
            .get_mut(length..)
            .and_then(|tail| tail.get_mut(..padding));
        place.ok_or(Refusal::Malformed)?.fill(0);
        let start = out.len;
        out.put(head)?;
        out.note(length.saturating_add(padding));
        let length = out.len.saturating_sub(start).saturating_sub(HEADER_BYTES);
        let length = u16::try_from(length).map_err(|_| Refusal::Malformed)?;
        let at = start.saturating_add(2);
        out.fill_in(at, Head::length_bytes(submessage.flags, length));
        Ok(())
    }
}

/// The role of both ends, which must be of one kind.
fn role_of(ends: Ends) -> Result<Role, Refusal> {
    let role = Role::of(ends.sender);
    let is_any = ends.receiver == EntityId::UNKNOWN;
    let is_pair = match role {
        Role::User => Role::of(ends.receiver) == role,
        _ => ends.receiver.key == ends.sender.key,
    };
    match is_any || is_pair {
        true => Ok(role),
        false => Err(Refusal::Malformed),
    }
}

/// What a frame holds; `scratch` is what it was opened into.
fn opened_bytes<'a>(
    frame: &Frame<'a>,
    scratch: &'a [u8],
    opened: Option<usize>,
) -> Result<&'a [u8], Refusal> {
    match opened {
        None => Ok(frame.content),
        Some(length) => scratch.get(..length).ok_or(Refusal::Malformed),
    }
}

/// The one submessage that a frame holds; padding may follow it.
fn only_submessage(bytes: &[u8]) -> Result<Submessage<'_>, Refusal> {
    let (submessage, mut rest) = Submessage::take(bytes).ok_or(Refusal::Malformed)?;
    while !rest.is_empty() {
        let (more, after) = Submessage::take(rest).ok_or(Refusal::Malformed)?;
        if more.id != PAD {
            return Err(Refusal::Malformed);
        }
        rest = after;
    }
    Ok(submessage)
}

/// Fast DDS protects the time of what follows as well, by itself.
fn check_sender(submessage: &Submessage<'_>, sender: EntityId) -> Result<(), Refusal> {
    if submessage.id == INFO_TIMESTAMP {
        return Ok(());
    }
    let ends = submessage.ends().ok_or(Refusal::Malformed)?;
    role_of(ends)?;
    match ends.sender == sender {
        true => Ok(()),
        false => Err(Refusal::Key),
    }
}

const KEY_FOR_KEYS: KeyId = KeyId([0; 4]);
/// No datagram is longer.
const DATAGRAM_BYTES_MAX: usize = 1 << 16;
