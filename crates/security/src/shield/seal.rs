//! What goes out.

use std::ops::Deref;

use parking_lot::Mutex;
use pteros_rtps::id::{EntityId, GuidPrefix};

use super::datagram::Gather;
use super::own::OwnEndpoint;
use super::protection::Role;
use super::submessage::{
    DATA, DATA_FRAG, Ends, HEADER_BYTES, Head, INFO_DESTINATION, INFO_SOURCE, INFO_SOURCE_BYTES,
    RTPS_HEADER_BYTES, ends, is_of_endpoint, payload_at,
};
use super::{Shield, State};
use crate::crypto::{KeyMaterial, Layer, SealError, Sealer};

/// Why a datagram is not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unsealed {
    /// No message of ours.
    #[error("it is no RTPS message")]
    Malformed,
    /// Of an endpoint that the shield does not know.
    #[error("nothing is known of how its endpoint {0:?} is to be protected")]
    Endpoint(EntityId),
    /// Keys for somebody, but for nobody in particular.
    #[error("keys are for one participant, and it names none")]
    NoDestination,
    /// For a participant that has not authenticated.
    #[error("participant {0} has not authenticated")]
    Stranger(GuidPrefix),
    /// It could not be protected.
    #[error(transparent)]
    Seal(#[from] SealError),
}

/// What is taken along of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Share {
    /// What is never protected as a whole message: there before keys are.
    Early,
    /// All else.
    Rest,
}

impl Share {
    fn of(role: Role) -> Self {
        match role {
            Role::Bootstrap | Role::KeyExchange => Self::Early,
            Role::Secured | Role::Builtin | Role::User => Self::Rest,
        }
    }
}

/// One submessage that is about to be written.
struct Next {
    id: u8,
    flags: u8,
    /// With its header.
    bytes: usize,
    ends: Option<Ends>,
}

impl Next {
    fn of<P: Deref<Target = [u8]>>(gather: &Gather<'_, P>) -> Option<Self> {
        let head = Head::read(&gather.peek::<HEADER_BYTES>()?)?;
        let bytes = head.length.checked_add(HEADER_BYTES)?;
        if bytes > gather.len() {
            return None;
        }
        let ends = match is_of_endpoint(head.id) {
            false => None,
            true => {
                let start = gather.peek::<16>().filter(|_| bytes >= 16);
                let start = start.as_ref().and_then(|start| start.get(HEADER_BYTES..));
                Some(ends(head.id, start?)?)
            }
        };
        Some(Self {
            id: head.id,
            flags: head.flags,
            bytes,
            ends,
        })
    }
}

impl Shield {
    /// Writes the protected form of a datagram of ours, given in parts, to `out`,
    /// whose former content is lost. Returns how many bytes of it are the first
    /// datagram; what follows, if anything, is a second one to the same
    /// destinations: announcements are never protected together with the rest.
    /// A payload must lie whole in one part, behind all that precedes it, as
    /// [`Outbox`](pteros_rtps::outbox::Outbox) has it.
    ///
    /// # Errors
    /// See [`Unsealed`]; nothing may be sent then, and `out` is empty.
    pub fn seal<P: Deref<Target = [u8]>>(
        &self,
        parts: &[P],
        out: &mut Vec<u8>,
    ) -> Result<usize, Unsealed> {
        out.clear();
        let sealed = self.seal_shares(&Gather::new(parts), out);
        if sealed.is_err() {
            out.clear();
        }
        sealed
    }

    fn seal_shares<P: Deref<Target = [u8]>>(
        &self,
        gather: &Gather<'_, P>,
        out: &mut Vec<u8>,
    ) -> Result<usize, Unsealed> {
        let mut shares = [false; 2];
        let mut rest = gather.clone();
        if rest.len() < RTPS_HEADER_BYTES {
            return Err(Unsealed::Malformed);
        }
        rest.skip(RTPS_HEADER_BYTES);
        while rest.len() > 0 {
            let next = Next::of(&rest).ok_or(Unsealed::Malformed)?;
            if let Some(ends) = next.ends {
                let [early, others] = &mut shares;
                match Share::of(Role::of(ends.sender)) {
                    Share::Early => *early = true,
                    Share::Rest => *others = true,
                }
            }
            rest.skip(next.bytes);
        }
        let [early, others] = shares;
        if early {
            self.seal_share(Share::Early, gather.clone(), out)?;
        }
        let first = out.len();
        if !others {
            return Ok(first);
        }
        self.seal_share(Share::Rest, gather.clone(), out)?;
        Ok(match early {
            true => first,
            false => out.len(),
        })
    }

    fn seal_share<P: Deref<Target = [u8]>>(
        &self,
        share: Share,
        mut gather: Gather<'_, P>,
        out: &mut Vec<u8>,
    ) -> Result<(), Unsealed> {
        let header = gather.peek::<RTPS_HEADER_BYTES>();
        let header = header.ok_or(Unsealed::Malformed)?;
        gather.copy(RTPS_HEADER_BYTES, out);
        let whole = match share == Share::Rest && self.message.is_on() {
            false => None,
            true => {
                let begun = begin(&self.participant, Layer::Message, out)?;
                // The header is outside, so it is told inside once more.
                let [_, _, _, _, source @ ..] = header;
                let length = Head::length_bytes(1, INFO_SOURCE_LENGTH);
                out.extend([INFO_SOURCE, 1]);
                out.extend(length);
                out.extend([0; 4]);
                out.extend(source);
                Some(begun)
            }
        };
        let state = self.state.read();
        let mut destination = GuidPrefix::UNKNOWN;
        let mut only_for = None;
        while gather.len() > 0 {
            let next = Next::of(&gather).ok_or(Unsealed::Malformed)?;
            let Some(ends) = next.ends else {
                if next.id == INFO_DESTINATION
                    && let Some(bytes) = gather.peek::<16>()
                {
                    let [_, _, _, _, prefix @ ..] = bytes;
                    destination = GuidPrefix(prefix);
                }
                gather.copy(next.bytes, out);
                continue;
            };
            let role = Role::of(ends.sender);
            if Share::of(role) != share {
                gather.skip(next.bytes);
                continue;
            }
            only_for = match only_for {
                None => Some(destination),
                Some(before) if before == destination => Some(before),
                Some(_) => Some(GuidPrefix::UNKNOWN),
            };
            match role {
                Role::Bootstrap | Role::Builtin => gather.copy(next.bytes, out),
                Role::KeyExchange => state.seal_exchange(&next, destination, &mut gather, out)?,
                Role::Secured | Role::User => {
                    let endpoint = state.own.get(&ends.sender);
                    let endpoint = endpoint.ok_or(Unsealed::Endpoint(ends.sender))?;
                    seal_endpoint(endpoint, &next, ends, destination, &mut gather, out)?;
                }
            }
        }
        if let Some(whole) = whole {
            let to = only_for.unwrap_or(GuidPrefix::UNKNOWN);
            whole.end(&self.message_receivers(&state, to), out)?;
        }
        Ok(())
    }

    /// Whose codes a whole message has.
    fn message_receivers<'s>(&self, state: &'s State, to: GuidPrefix) -> Vec<&'s KeyMaterial> {
        if !self.message.authenticates_origin() {
            return Vec::new();
        }
        let is_meant = |prefix: GuidPrefix| to == GuidPrefix::UNKNOWN || to == prefix;
        let peers = state.peers.iter();
        let peers = peers.filter(|(prefix, peer)| is_meant(**prefix) && peer.kx.is_some());
        peers.map(|(_, peer)| &peer.own_keys).collect()
    }
}

impl State {
    fn seal_exchange<P: Deref<Target = [u8]>>(
        &self,
        next: &Next,
        destination: GuidPrefix,
        gather: &mut Gather<'_, P>,
        out: &mut Vec<u8>,
    ) -> Result<(), Unsealed> {
        if destination == GuidPrefix::UNKNOWN {
            return Err(Unsealed::NoDestination);
        }
        let peer = self.peers.get(&destination);
        let exchange = peer.and_then(|peer| peer.kx.as_ref());
        let exchange = exchange.ok_or(Unsealed::Stranger(destination))?;
        let begun = begin(&exchange.sealer, Layer::Submessage, out)?;
        gather.copy(next.bytes, out);
        Ok(begun.end(&[], out)?)
    }
}

fn seal_endpoint<P: Deref<Target = [u8]>>(
    endpoint: &OwnEndpoint,
    next: &Next,
    ends: Ends,
    destination: GuidPrefix,
    gather: &mut Gather<'_, P>,
    out: &mut Vec<u8>,
) -> Result<(), Unsealed> {
    let sealer = endpoint.submessage.as_ref();
    let begun = sealer.map(|sealer| begin(sealer, Layer::Submessage, out));
    let begun = begun.transpose()?;
    match &endpoint.payload {
        Some(payload) if matches!(next.id, DATA | DATA_FRAG) => {
            seal_payload(payload, next, gather, out)?;
        }
        _ => gather.copy(next.bytes, out),
    }
    let Some(begun) = begun else {
        return Ok(());
    };
    if !endpoint.protection.submessage.authenticates_origin() {
        return Ok(begun.end(&[], out)?);
    }
    let is_meant = |prefix: GuidPrefix, entity: EntityId| {
        (destination == GuidPrefix::UNKNOWN || destination == prefix)
            && (ends.receiver == EntityId::UNKNOWN || ends.receiver == entity)
    };
    let receivers = endpoint.receivers.iter();
    let receivers = receivers.filter(|(guid, _)| is_meant(guid.prefix, guid.entity));
    let receivers: Vec<_> = receivers.map(|(_, keys)| keys).collect();
    Ok(begun.end(&receivers, out)?)
}

/// Writes a DATA or DATA_FRAG with its payload protected, if it has one.
fn seal_payload<P: Deref<Target = [u8]>>(
    sealer: &Mutex<Sealer>,
    next: &Next,
    gather: &mut Gather<'_, P>,
    out: &mut Vec<u8>,
) -> Result<(), Unsealed> {
    let start = out.len();
    let front = gather.front();
    let front = front.get(..next.bytes.min(front.len())).unwrap_or_default();
    let Some(at) = payload_at(front) else {
        if has_payload(next) {
            return Err(Unsealed::Malformed);
        }
        gather.copy(next.bytes, out);
        return Ok(());
    };
    gather.copy(at, out);
    let begun = begin(sealer, Layer::Payload, out)?;
    gather.copy(next.bytes.saturating_sub(at), out);
    begun.end(&[], out)?;
    let length = out.len().saturating_sub(start).saturating_sub(HEADER_BYTES);
    let short = u16::try_from(length).map_err(|_| SealError::TooLong(length))?;
    let bytes = Head::length_bytes(next.flags, short);
    let place = out.get_mut(start..).and_then(|out| out.get_mut(2..4));
    if let Some(place) = place {
        place.copy_from_slice(&bytes);
    }
    Ok(())
}

fn has_payload(next: &Next) -> bool {
    next.id == DATA_FRAG || next.flags & 0x0c != 0
}

fn begin(
    sealer: &Mutex<Sealer>,
    layer: Layer,
    out: &mut Vec<u8>,
) -> Result<crate::crypto::Begun, SealError> {
    sealer.lock().begin(layer, DATAGRAM_BYTES_MAX, out)
}

/// Nothing that is sealed here is longer.
const DATAGRAM_BYTES_MAX: usize = 1 << 16;
#[expect(clippy::cast_possible_truncation, reason = "it is 20")]
const INFO_SOURCE_LENGTH: u16 = (INFO_SOURCE_BYTES - HEADER_BYTES) as u16;
