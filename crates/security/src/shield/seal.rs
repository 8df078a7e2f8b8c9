//! What goes out.

use std::ops::Deref;

use pteros_rtps::id::{EntityId, GuidPrefix};

use super::datagram::Gather;
use super::own::OwnEndpoint;
use super::protection::Role;
use super::submessage::{
    DATA, DATA_FRAG, Ends, HEADER_BYTES, Head, INFO_DESTINATION, INFO_SOURCE, INFO_SOURCE_BYTES,
    INFO_TIMESTAMP, RTPS_HEADER_BYTES, ends, is_of_endpoint, payload_at,
};
use super::{Shield, State};
use crate::crypto::{Begun, Layer, Page, Plain, Receiver, SealError, Sealer};

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

impl Unsealed {
    /// Whether only this submessage cannot be sent.
    const fn is_of_keys(self) -> bool {
        matches!(
            self,
            Self::Endpoint(_) | Self::NoDestination | Self::Stranger(_)
        )
    }
}

/// Datagrams as they go out, one behind the other. Used again and again, it
/// keeps its memory.
#[derive(Debug, Clone, Default)]
pub struct Sealed {
    bytes: Page,
    ends: Vec<usize>,
}

impl Sealed {
    /// The datagrams in their order.
    pub fn datagrams(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let places = starts.zip(&self.ends);
        places.filter_map(|(start, end)| self.bytes.written().get(start..*end))
    }

    fn clear(&mut self) {
        self.bytes.truncate(0);
        self.ends.clear();
    }
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
        let start = gather.peek::<16>();
        let head = match &start {
            Some(start) => Head::read(start)?,
            None => Head::read(&gather.peek::<HEADER_BYTES>()?)?,
        };
        let bytes = head.length.checked_add(HEADER_BYTES)?;
        if bytes > gather.len() {
            return None;
        }
        let ends = match is_of_endpoint(head.id) {
            false => None,
            true => {
                let start = start.as_ref().filter(|_| bytes >= 16)?;
                Some(ends(head.id, start.get(HEADER_BYTES..)?)?)
            }
        };
        Some(Self {
            id: head.id,
            flags: head.flags,
            bytes,
            ends,
        })
    }

    fn has_payload(&self) -> bool {
        self.id == DATA_FRAG || self.id == DATA && self.flags & 0x0c != 0
    }
}

impl Shield {
    /// Protects a datagram of ours, given in parts, and writes to `out`, whose
    /// former content is lost, what is to be sent to the same destinations. That
    /// is one datagram; or several, where it has grown beyond a frame of the
    /// network that it fitted before, or beyond what a datagram can be, or where
    /// announcements, which are not protected as whole messages, stand beside
    /// something else. A payload must lie whole in one part, behind all that
    /// precedes it, as [`Outbox`](pteros_rtps::outbox::Outbox) has it.
    ///
    /// A submessage that is for somebody else than who can read it, or of an unknown
    /// endpoint, is left out.
    ///
    /// # Errors
    /// See [`Unsealed`]; nothing may be sent then, and `out` is empty. That a
    /// submessage was left out is an error when nothing else is in it.
    pub fn seal<P: Deref<Target = [u8]>>(
        &self,
        parts: &[P],
        out: &mut Sealed,
    ) -> Result<(), Unsealed> {
        out.clear();
        let gather = Gather::new(parts);
        let mut sealed = self.seal_shares(&gather, out);
        if sealed == Err(Unsealed::Seal(SealError::WornOut)) {
            out.clear();
            self.state.write().renew();
            sealed = self.seal_shares(&gather, out);
        }
        if sealed.is_err() {
            out.clear();
        }
        sealed
    }

    fn seal_shares<P: Deref<Target = [u8]>>(
        &self,
        gather: &Gather<'_, P>,
        out: &mut Sealed,
    ) -> Result<(), Unsealed> {
        let header = gather.peek::<RTPS_HEADER_BYTES>();
        let header = header.ok_or(Unsealed::Malformed)?;
        let state = self.state.read();
        let mut share = None;
        let mut unsealed = None;
        loop {
            let writing = Writing {
                shield: self,
                state: &state,
                share,
                left_out: None,
                header,
                bytes_max: match gather.len() <= FRAME_BYTES_MAX {
                    true => FRAME_BYTES_MAX,
                    false => DATAGRAM_BYTES_MAX,
                },
                destination: GuidPrefix::UNKNOWN,
                timestamp: None,
                datagram: None,
                unsealed: &mut unsealed,
                out: &mut *out,
            };
            match writing.all(gather.clone())? {
                // Once more, for what may not stand beside the first.
                Some(other) if share.is_none() => share = Some(other),
                _ => break,
            }
        }
        match unsealed {
            Some(unsealed) if out.ends.is_empty() => Err(unsealed),
            _ => Ok(()),
        }
    }

    /// Whose codes a whole message has.
    fn message_receivers<'s>(
        &self,
        state: &'s State,
        to: GuidPrefix,
    ) -> impl Iterator<Item = &'s Receiver> + Clone {
        let proves_origin = self.message.authenticates_origin();
        let peers = proves_origin.then(|| state.peers.iter());
        let is_meant = move |prefix: GuidPrefix| to == GuidPrefix::UNKNOWN || to == prefix;
        let peers = peers.into_iter().flatten();
        let peers = peers.filter(move |(prefix, peer)| is_meant(**prefix) && peer.kx.is_some());
        peers.map(|(_, peer)| &peer.own_keys)
    }
}

/// A share of a datagram on its way into others.
struct Writing<'w> {
    shield: &'w Shield,
    state: &'w State,
    /// The first submessage's, if it is not said.
    share: Option<Share>,
    left_out: Option<Share>,
    header: [u8; RTPS_HEADER_BYTES],
    bytes_max: usize,
    /// What holds for the submessages that follow.
    destination: GuidPrefix,
    timestamp: Option<([u8; 12], usize)>,
    datagram: Option<Datagram<'w>>,
    /// Why something was left out for good.
    unsealed: &'w mut Option<Unsealed>,
    out: &'w mut Sealed,
}

/// The one that is being written.
struct Datagram<'w> {
    start: usize,
    /// It is protected as a whole.
    whole: Option<Begun<'w>>,
    /// The one participant that all of it is for.
    only_for: Option<GuidPrefix>,
}

impl Writing<'_> {
    /// Which share was left out, if there is anything of it.
    fn all<P: Deref<Target = [u8]>>(
        mut self,
        mut gather: Gather<'_, P>,
    ) -> Result<Option<Share>, Unsealed> {
        gather.skip(RTPS_HEADER_BYTES);
        while gather.len() > 0 {
            let next = Next::of(&gather).ok_or(Unsealed::Malformed)?;
            let Some(ends) = next.ends else {
                self.info(&next, &mut gather);
                continue;
            };
            let role = Role::of(ends.sender);
            let share = Share::of(role);
            if *self.share.get_or_insert(share) != share {
                self.left_out = Some(share);
                gather.skip(next.bytes);
                continue;
            }
            match self.submessage(&next, (role, ends), &mut gather) {
                Err(unsealed) if unsealed.is_of_keys() => {
                    // Nothing of it was written.
                    self.unsealed.get_or_insert(unsealed);
                    gather.skip(next.bytes);
                }
                done => done?,
            }
        }
        self.close()?;
        Ok(self.left_out)
    }

    /// Takes note of what holds for those that follow, and tells it.
    fn info<P: Deref<Target = [u8]>>(&mut self, next: &Next, gather: &mut Gather<'_, P>) {
        if next.id == INFO_DESTINATION
            && let Some(bytes) = gather.peek::<16>()
        {
            let [_, _, _, _, prefix @ ..] = bytes;
            self.destination = GuidPrefix(prefix);
        }
        if next.id == INFO_TIMESTAMP {
            let stamp = gather.peek::<12>().filter(|_| next.bytes == 12);
            self.timestamp = stamp.map(|stamp| (stamp, next.bytes));
        }
        match self.datagram {
            Some(_) => gather.copy(next.bytes, &mut self.out.bytes),
            // It is told when one begins.
            None => gather.skip(next.bytes),
        }
    }

    fn submessage<P: Deref<Target = [u8]>>(
        &mut self,
        next: &Next,
        (role, ends): (Role, Ends),
        gather: &mut Gather<'_, P>,
    ) -> Result<(), Unsealed> {
        let endpoint = match role {
            Role::Secured | Role::User => {
                let endpoint = self.state.own.get(&ends.sender);
                Some(endpoint.ok_or(Unsealed::Endpoint(ends.sender))?)
            }
            Role::KeyExchange => {
                self.state.exchange_with(self.destination)?;
                None
            }
            _ => None,
        };
        let receivers = endpoint.map_or(0, |endpoint| endpoint.receivers.len());
        self.make_room(next, receivers)?;
        self.begin()?;
        if let Some(datagram) = &mut self.datagram {
            datagram.only_for = match datagram.only_for {
                None => Some(self.destination),
                Some(before) if before == self.destination => Some(before),
                Some(_) => Some(GuidPrefix::UNKNOWN),
            };
        }
        let (state, out) = (self.state, &mut self.out.bytes);
        match (role, endpoint) {
            (Role::KeyExchange, _) => state.seal_exchange(next, self.destination, gather, out),
            (_, Some(endpoint)) => {
                seal_endpoint(endpoint, next, ends, self.destination, gather, out)
            }
            _ => {
                gather.copy(next.bytes, out);
                Ok(())
            }
        }
    }

    /// Ends the datagram if this, protected, does not fit in.
    fn make_room(&mut self, next: &Next, receivers: usize) -> Result<(), Unsealed> {
        let Some(datagram) = &self.datagram else {
            return Ok(());
        };
        let codes = match self.shield.message.authenticates_origin() {
            true => self.state.peers.len(),
            false => 0,
        };
        let payload = match next.has_payload() {
            true => Sealer::overhead_bytes(Layer::Payload, 0),
            false => 0,
        };
        let grown = [
            self.out.bytes.len().saturating_sub(datagram.start),
            next.bytes,
            Sealer::overhead_bytes(Layer::Submessage, receivers),
            payload,
            // What ends the message.
            Sealer::overhead_bytes(Layer::Message, codes),
        ];
        match grown.into_iter().fold(0, usize::saturating_add) > self.bytes_max {
            true => self.close(),
            false => Ok(()),
        }
    }

    /// Begins a datagram unless there is one.
    fn begin(&mut self) -> Result<(), Unsealed> {
        if self.datagram.is_some() {
            return Ok(());
        }
        let out = &mut self.out.bytes;
        let start = out.len();
        out.put_array(self.header);
        let whole = match self.share == Some(Share::Rest) && self.shield.message.is_on() {
            false => None,
            true => {
                let begun = begin(&self.state.participant, Layer::Message, out)?;
                // The header is outside, so it is told inside once more.
                let [_, _, _, _, source @ ..] = self.header;
                let [low, high] = Head::length_bytes(1, INFO_SOURCE_LENGTH);
                out.put_array([INFO_SOURCE, 1, low, high, 0, 0, 0, 0]);
                out.put_array(source);
                Some(begun)
            }
        };
        if self.destination != GuidPrefix::UNKNOWN {
            let [low, high] = Head::length_bytes(1, 12);
            out.put_array([INFO_DESTINATION, 1, low, high]);
            out.put_array(self.destination.0);
        }
        if let Some((stamp, length)) = &self.timestamp {
            out.put(stamp.get(..*length).unwrap_or_default());
        }
        self.datagram = Some(Datagram {
            start,
            whole,
            only_for: None,
        });
        Ok(())
    }

    fn close(&mut self) -> Result<(), Unsealed> {
        let Some(datagram) = self.datagram.take() else {
            return Ok(());
        };
        if let Some(whole) = datagram.whole {
            let to = datagram.only_for.unwrap_or(GuidPrefix::UNKNOWN);
            let receivers = self.shield.message_receivers(self.state, to);
            whole.end(Plain::Written, receivers, &mut self.out.bytes)?;
        }
        self.out.ends.push(self.out.bytes.len());
        Ok(())
    }
}

impl State {
    fn exchange_with(&self, to: GuidPrefix) -> Result<&Sealer, Unsealed> {
        if to == GuidPrefix::UNKNOWN {
            return Err(Unsealed::NoDestination);
        }
        let exchange = self.peers.get(&to).and_then(|peer| peer.kx.as_ref());
        exchange.ok_or(Unsealed::Stranger(to))
    }

    fn seal_exchange<P: Deref<Target = [u8]>>(
        &self,
        next: &Next,
        destination: GuidPrefix,
        gather: &mut Gather<'_, P>,
        out: &mut Page,
    ) -> Result<(), Unsealed> {
        let exchange = self.exchange_with(destination)?;
        let begun = begin(exchange, Layer::Submessage, out)?;
        let plain = plain(next.bytes, gather, out);
        Ok(begun.end(plain, [], out)?)
    }
}

fn seal_endpoint<P: Deref<Target = [u8]>>(
    endpoint: &OwnEndpoint,
    next: &Next,
    ends: Ends,
    destination: GuidPrefix,
    gather: &mut Gather<'_, P>,
    out: &mut Page,
) -> Result<(), Unsealed> {
    let sealer = endpoint.submessage.as_ref();
    let begun = sealer.map(|sealer| begin(sealer, Layer::Submessage, out));
    let begun = begun.transpose()?;
    let plain = match (&endpoint.payload, &begun) {
        (Some(payload), _) if next.has_payload() => {
            seal_payload(payload, next, gather, out)?;
            Plain::Written
        }
        (_, Some(_)) => plain(next.bytes, gather, out),
        (_, None) => {
            gather.copy(next.bytes, out);
            Plain::Written
        }
    };
    let Some(begun) = begun else {
        return Ok(());
    };
    if !endpoint.protection.submessage.authenticates_origin() {
        return Ok(begun.end(plain, [], out)?);
    }
    let is_meant = |prefix: GuidPrefix, entity: EntityId| {
        (destination == GuidPrefix::UNKNOWN || destination == prefix)
            && (ends.receiver == EntityId::UNKNOWN || ends.receiver == entity)
    };
    let receivers = endpoint.receivers.iter();
    let receivers = receivers.filter(|(guid, _)| is_meant(guid.prefix, guid.entity));
    Ok(begun.end(plain, receivers.map(|(_, keys)| keys), out)?)
}

/// The next bytes, where they lie if that is one piece; else they are written.
fn plain<'a, P: Deref<Target = [u8]>>(
    count: usize,
    gather: &mut Gather<'a, P>,
    out: &mut Page,
) -> Plain<'a> {
    if let Some(piece) = gather.front().get(..count) {
        gather.skip(count);
        return Plain::Elsewhere(piece);
    }
    gather.copy(count, out);
    Plain::Written
}

/// Writes a DATA or DATA_FRAG with its payload protected.
fn seal_payload<P: Deref<Target = [u8]>>(
    sealer: &Sealer,
    next: &Next,
    gather: &mut Gather<'_, P>,
    out: &mut Page,
) -> Result<(), Unsealed> {
    let start = out.len();
    let front = gather.front();
    let front = front.get(..next.bytes.min(front.len())).unwrap_or_default();
    let at = payload_at(front).ok_or(Unsealed::Malformed)?;
    gather.copy(at, out);
    let begun = begin(sealer, Layer::Payload, out)?;
    let plain = plain(next.bytes.saturating_sub(at), gather, out);
    begun.end(plain, [], out)?;
    let length = out.len().saturating_sub(start);
    let length = length.saturating_sub(HEADER_BYTES);
    let short = u16::try_from(length).map_err(|_| SealError::TooLong(length))?;
    let bytes = Head::length_bytes(next.flags, short);
    let place = out.written_from(start.saturating_add(2));
    if let Some(place) = place.first_chunk_mut() {
        *place = bytes;
    }
    Ok(())
}

fn begin<'s>(sealer: &'s Sealer, layer: Layer, out: &mut Page) -> Result<Begun<'s>, SealError> {
    sealer.begin(layer, DATAGRAM_BYTES_MAX, out)
}

/// The largest UDP payload over IPv4.
const DATAGRAM_BYTES_MAX: usize = 65_507;
/// UDP payload of an Ethernet frame.
const FRAME_BYTES_MAX: usize = 1_472;
#[expect(clippy::cast_possible_truncation, reason = "it is 20")]
const INFO_SOURCE_LENGTH: u16 = (INFO_SOURCE_BYTES - HEADER_BYTES) as u16;
