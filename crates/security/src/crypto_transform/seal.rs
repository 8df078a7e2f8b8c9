//! Sealing: encrypts and signs outgoing datagrams.

use std::ops::Deref;

use pteros_rtps::id::{EntityId, GuidPrefix};

use super::datagram::Gather;
use super::local_endpoint::LocalEndpoint;
use super::protection::EndpointRole;
use super::submessage::{
    DATA, DATA_FRAG, EndpointIds, HEADER_BYTES, INFO_DESTINATION, INFO_SOURCE, INFO_SOURCE_BYTES,
    INFO_TIMESTAMP, RTPS_HEADER_BYTES, SubmessageHeader, endpoint_ids, is_of_endpoint, payload_at,
};
use super::{CryptoTransform, State};
use crate::crypto::{
    OutputBuffer, Plaintext, ProtectionLayer, ReceiverKey, SealError, SealInProgress, Sealer,
};

/// Why a datagram cannot be sealed and is not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TransformError {
    /// It is not an RTPS message.
    #[error("it is not an RTPS message")]
    Malformed,
    /// It is of an endpoint that the crypto transform does not know.
    #[error("the protection of its endpoint {0:?} is not known")]
    UnknownEndpoint(EntityId),
    /// It carries keys, but names no destination participant.
    #[error("keys are for one participant, and it names none as its destination")]
    NoDestination,
    /// It is for a participant that has not authenticated.
    #[error("participant {0} has not authenticated")]
    Unauthenticated(GuidPrefix),
    /// The cipher failed.
    #[error(transparent)]
    Seal(#[from] SealError),
}

impl TransformError {
    /// Whether only this submessage cannot be sent.
    const fn is_of_keys(self) -> bool {
        matches!(
            self,
            Self::UnknownEndpoint(_) | Self::NoDestination | Self::Unauthenticated(_)
        )
    }
}

/// Sealed datagrams, one after another in one buffer. Reuse keeps the buffer's
/// memory.
#[derive(Debug, Clone, Default)]
pub struct SealedDatagrams {
    bytes: OutputBuffer,
    ends: Vec<usize>,
}

impl SealedDatagrams {
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

/// Classes of submessages that must not share a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SubmessageClass {
    /// Never protected as a whole message, because it is sent before keys exist.
    Bootstrap,
    /// All others.
    Regular,
}

impl SubmessageClass {
    fn of(role: EndpointRole) -> Self {
        match role {
            EndpointRole::Bootstrap | EndpointRole::KeyExchange => Self::Bootstrap,
            EndpointRole::Secured | EndpointRole::Builtin | EndpointRole::User => Self::Regular,
        }
    }
}

/// The submessage to seal next.
struct NextSubmessage {
    id: u8,
    flags: u8,
    /// Including its header.
    bytes: usize,
    endpoint_ids: Option<EndpointIds>,
}

impl NextSubmessage {
    fn of<P: Deref<Target = [u8]>>(gather: &Gather<'_, P>) -> Option<Self> {
        let start = gather.peek::<16>();
        let head = match &start {
            Some(start) => SubmessageHeader::read(start)?,
            None => SubmessageHeader::read(&gather.peek::<HEADER_BYTES>()?)?,
        };
        let bytes = head.length.checked_add(HEADER_BYTES)?;
        if bytes > gather.len() {
            return None;
        }
        let endpoint_ids = if is_of_endpoint(head.id) {
            let body = start.as_ref()?.get(HEADER_BYTES..bytes.min(16))?;
            Some(endpoint_ids(head.id, body)?)
        } else {
            None
        };
        Some(Self {
            id: head.id,
            flags: head.flags,
            bytes,
            endpoint_ids,
        })
    }

    fn has_payload(&self) -> bool {
        self.id == DATA_FRAG || self.id == DATA && self.flags & 0x0c != 0
    }
}

impl CryptoTransform {
    /// Seals an own datagram, given in parts, and writes the datagrams to send to
    /// the same destinations to `out`, replacing its content. That is usually one.
    /// There are several if the result exceeds a frame of the network that the
    /// original fitted, or the largest datagram, or if announcements, which are not
    /// protected as whole messages, share the datagram with other submessages. A
    /// payload must be in one part, after all that precedes it, as
    /// [`Outbox`](pteros_rtps::outbox::Outbox) arranges it.
    ///
    /// A submessage for a destination that cannot read it, or of an unknown
    /// endpoint, is left out.
    ///
    /// # Errors
    /// See [`TransformError`]; nothing may be sent then, and `out` is empty. A
    /// left-out submessage is an error only when nothing else is in the datagram.
    pub fn seal<P: Deref<Target = [u8]>>(
        &self,
        parts: &[P],
        out: &mut SealedDatagrams,
    ) -> Result<(), TransformError> {
        out.clear();
        let gather = Gather::new(parts);
        let mut sealed = self.seal_classes(&gather, out);
        if sealed == Err(TransformError::Seal(SealError::SessionExhausted)) {
            out.clear();
            self.state.write().renew_worn_keys();
            sealed = self.seal_classes(&gather, out);
        }
        if sealed.is_err() {
            out.clear();
        }
        sealed
    }

    fn seal_classes<P: Deref<Target = [u8]>>(
        &self,
        gather: &Gather<'_, P>,
        out: &mut SealedDatagrams,
    ) -> Result<(), TransformError> {
        let header = gather.peek::<RTPS_HEADER_BYTES>();
        let header = header.ok_or(TransformError::Malformed)?;
        let state = self.state.read();
        let mut class = None;
        let mut transform_error = None;
        loop {
            let writing = MessageSealing {
                transform: self,
                state: &state,
                class,
                left_out: None,
                header,
                bytes_max: if gather.len() <= FRAME_BYTES_MAX {
                    FRAME_BYTES_MAX
                } else {
                    DATAGRAM_BYTES_MAX
                },
                destination: GuidPrefix::UNKNOWN,
                timestamp: None,
                datagram: None,
                transform_error: &mut transform_error,
                out: &mut *out,
            };
            match writing.seal_all(gather.clone())? {
                // A second pass for the submessages that must not share the first
                // datagram.
                Some(other) if class.is_none() => class = Some(other),
                _ => break,
            }
        }
        match transform_error {
            Some(transform_error) if out.ends.is_empty() => Err(transform_error),
            _ => Ok(()),
        }
    }

    /// The receivers whose receiver-specific MACs a whole message carries.
    fn message_receivers<'s>(
        &self,
        state: &'s State,
        to: GuidPrefix,
    ) -> impl Iterator<Item = &'s ReceiverKey> + Clone {
        let proves_origin = self.message.authenticates_origin();
        let peers = proves_origin.then(|| state.peers.iter());
        let is_meant = move |prefix: GuidPrefix| to == GuidPrefix::UNKNOWN || to == prefix;
        let peers = peers.into_iter().flatten();
        let peers =
            peers.filter(move |(prefix, peer)| is_meant(**prefix) && peer.key_exchange.is_some());
        peers.map(|(_, peer)| &peer.own_keys)
    }
}

/// Seals one class of submessages of a datagram.
struct MessageSealing<'w> {
    transform: &'w CryptoTransform,
    state: &'w State,
    /// The class; that of the first submessage if not set.
    class: Option<SubmessageClass>,
    left_out: Option<SubmessageClass>,
    header: [u8; RTPS_HEADER_BYTES],
    bytes_max: usize,
    /// Applies to the submessages that follow.
    destination: GuidPrefix,
    timestamp: Option<([u8; 12], usize)>,
    datagram: Option<OutgoingDatagram<'w>>,
    /// Why a submessage was left out for good.
    transform_error: &'w mut Option<TransformError>,
    out: &'w mut SealedDatagrams,
}

/// The datagram being written.
struct OutgoingDatagram<'w> {
    start: usize,
    /// Protection of the whole message.
    message_protection: Option<SealInProgress<'w>>,
    /// The only participant that all its submessages are for.
    sole_destination: Option<GuidPrefix>,
}

impl MessageSealing<'_> {
    /// Returns the class that was left out, if there is one.
    fn seal_all<P: Deref<Target = [u8]>>(
        mut self,
        mut gather: Gather<'_, P>,
    ) -> Result<Option<SubmessageClass>, TransformError> {
        gather.skip(RTPS_HEADER_BYTES);
        while gather.len() > 0 {
            let next = NextSubmessage::of(&gather).ok_or(TransformError::Malformed)?;
            let Some(endpoint_ids) = next.endpoint_ids else {
                self.handle_info(&next, &mut gather);
                continue;
            };
            let role = EndpointRole::of(endpoint_ids.sender);
            let class = SubmessageClass::of(role);
            if *self.class.get_or_insert(class) != class {
                self.left_out = Some(class);
                gather.skip(next.bytes);
                continue;
            }
            match self.seal_submessage(&next, role, endpoint_ids, &mut gather) {
                Err(transform_error) if transform_error.is_of_keys() => {
                    // Nothing of it was written.
                    self.transform_error.get_or_insert(transform_error);
                    gather.skip(next.bytes);
                }
                done => done?,
            }
        }
        self.close()?;
        Ok(self.left_out)
    }

    /// Stores an INFO submessage, which applies to the following ones, and writes
    /// it.
    fn handle_info<P: Deref<Target = [u8]>>(
        &mut self,
        next: &NextSubmessage,
        gather: &mut Gather<'_, P>,
    ) {
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
            // It is written when a datagram begins.
            None => gather.skip(next.bytes),
        }
    }

    fn seal_submessage<P: Deref<Target = [u8]>>(
        &mut self,
        next: &NextSubmessage,
        role: EndpointRole,
        endpoint_ids: EndpointIds,
        gather: &mut Gather<'_, P>,
    ) -> Result<(), TransformError> {
        let endpoint = match role {
            EndpointRole::Secured | EndpointRole::User => {
                let endpoint = self.state.own.get(&endpoint_ids.sender);
                Some(endpoint.ok_or(TransformError::UnknownEndpoint(endpoint_ids.sender))?)
            }
            EndpointRole::KeyExchange => {
                self.state.exchange_with(self.destination)?;
                None
            }
            _ => None,
        };
        let receivers = endpoint.map_or(0, |endpoint| endpoint.receivers.len());
        self.make_room(next, receivers)?;
        self.begin()?;
        if let Some(datagram) = &mut self.datagram {
            datagram.sole_destination = match datagram.sole_destination {
                None => Some(self.destination),
                Some(before) if before == self.destination => Some(before),
                Some(_) => Some(GuidPrefix::UNKNOWN),
            };
        }
        let (state, out) = (self.state, &mut self.out.bytes);
        match (role, endpoint) {
            (EndpointRole::KeyExchange, _) => {
                state.seal_exchange(next, self.destination, gather, out)
            }
            (_, Some(endpoint)) => {
                seal_endpoint(endpoint, next, endpoint_ids, self.destination, gather, out)
            }
            _ => {
                gather.copy(next.bytes, out);
                Ok(())
            }
        }
    }

    /// Closes the datagram if this submessage, protected, does not fit.
    fn make_room(&mut self, next: &NextSubmessage, receivers: usize) -> Result<(), TransformError> {
        let Some(datagram) = &self.datagram else {
            return Ok(());
        };
        let codes = if self.transform.message.authenticates_origin() {
            self.state.peers.len()
        } else {
            0
        };
        let payload = if next.has_payload() {
            Sealer::overhead_bytes(ProtectionLayer::Payload, 0)
        } else {
            0
        };
        let grown = [
            self.out.bytes.len().saturating_sub(datagram.start),
            next.bytes,
            Sealer::overhead_bytes(ProtectionLayer::Submessage, receivers),
            payload,
            // The postfix of the message.
            Sealer::overhead_bytes(ProtectionLayer::Message, codes),
        ];
        if grown.into_iter().fold(0, usize::saturating_add) > self.bytes_max {
            self.close()
        } else {
            Ok(())
        }
    }

    /// Begins a datagram unless one is open.
    fn begin(&mut self) -> Result<(), TransformError> {
        if self.datagram.is_some() {
            return Ok(());
        }
        let out = &mut self.out.bytes;
        let start = out.len();
        out.put_array(self.header);
        let message_protection =
            if self.class == Some(SubmessageClass::Regular) && self.transform.message.is_on() {
                let begun = begin(&self.state.participant, ProtectionLayer::Message, out)?;
                // The header is outside the protection, so INFO_SRC repeats it
                // inside.
                let [_, _, _, _, source @ ..] = self.header;
                let [low, high] = SubmessageHeader::length_bytes(1, INFO_SOURCE_LENGTH);
                out.put_array([INFO_SOURCE, 1, low, high, 0, 0, 0, 0]);
                out.put_array(source);
                Some(begun)
            } else {
                None
            };
        if self.destination != GuidPrefix::UNKNOWN {
            let [low, high] = SubmessageHeader::length_bytes(1, 12);
            out.put_array([INFO_DESTINATION, 1, low, high]);
            out.put_array(self.destination.0);
        }
        if let Some((stamp, length)) = &self.timestamp {
            out.put(stamp.get(..*length).unwrap_or_default());
        }
        self.datagram = Some(OutgoingDatagram {
            start,
            message_protection,
            sole_destination: None,
        });
        Ok(())
    }

    fn close(&mut self) -> Result<(), TransformError> {
        let Some(datagram) = self.datagram.take() else {
            return Ok(());
        };
        if let Some(message_protection) = datagram.message_protection {
            let to = datagram.sole_destination.unwrap_or(GuidPrefix::UNKNOWN);
            let receivers = self.transform.message_receivers(self.state, to);
            message_protection.end(Plaintext::Written, receivers, &mut self.out.bytes)?;
        }
        self.out.ends.push(self.out.bytes.len());
        Ok(())
    }
}

impl State {
    fn exchange_with(&self, to: GuidPrefix) -> Result<&Sealer, TransformError> {
        if to == GuidPrefix::UNKNOWN {
            return Err(TransformError::NoDestination);
        }
        let exchange = self
            .peers
            .get(&to)
            .and_then(|peer| peer.key_exchange.as_ref());
        exchange.ok_or(TransformError::Unauthenticated(to))
    }

    fn seal_exchange<P: Deref<Target = [u8]>>(
        &self,
        next: &NextSubmessage,
        destination: GuidPrefix,
        gather: &mut Gather<'_, P>,
        out: &mut OutputBuffer,
    ) -> Result<(), TransformError> {
        let exchange = self.exchange_with(destination)?;
        let begun = begin(exchange, ProtectionLayer::Submessage, out)?;
        let plaintext = contiguous_plaintext(next.bytes, gather, out);
        Ok(begun.end(plaintext, [], out)?)
    }
}

fn seal_endpoint<P: Deref<Target = [u8]>>(
    endpoint: &LocalEndpoint,
    next: &NextSubmessage,
    endpoint_ids: EndpointIds,
    destination: GuidPrefix,
    gather: &mut Gather<'_, P>,
    out: &mut OutputBuffer,
) -> Result<(), TransformError> {
    let sealer = endpoint.submessage.as_ref();
    let begun = sealer.map(|sealer| begin(sealer, ProtectionLayer::Submessage, out));
    let begun = begun.transpose()?;
    let plaintext = match (&endpoint.payload, &begun) {
        (Some(payload), _) if next.has_payload() => {
            seal_payload(payload, next, gather, out)?;
            Plaintext::Written
        }
        (_, Some(_)) => contiguous_plaintext(next.bytes, gather, out),
        (_, None) => {
            gather.copy(next.bytes, out);
            Plaintext::Written
        }
    };
    let Some(begun) = begun else {
        return Ok(());
    };
    if !endpoint.protection.submessage.authenticates_origin() {
        return Ok(begun.end(plaintext, [], out)?);
    }
    let is_meant = |prefix: GuidPrefix, entity: EntityId| {
        (destination == GuidPrefix::UNKNOWN || destination == prefix)
            && (endpoint_ids.receiver == EntityId::UNKNOWN || endpoint_ids.receiver == entity)
    };
    let receivers = endpoint.receivers.iter();
    let receivers = receivers.filter(|(guid, _)| is_meant(guid.prefix, guid.entity));
    Ok(begun.end(plaintext, receivers.map(|(_, keys)| keys), out)?)
}

/// The next bytes in place if they are contiguous; otherwise they are copied to the
/// output.
fn contiguous_plaintext<'a, P: Deref<Target = [u8]>>(
    count: usize,
    gather: &mut Gather<'a, P>,
    out: &mut OutputBuffer,
) -> Plaintext<'a> {
    if let Some(piece) = gather.front().get(..count) {
        gather.skip(count);
        return Plaintext::Elsewhere(piece);
    }
    gather.copy(count, out);
    Plaintext::Written
}

/// Writes a DATA or DATA_FRAG with its payload protected.
fn seal_payload<P: Deref<Target = [u8]>>(
    sealer: &Sealer,
    next: &NextSubmessage,
    gather: &mut Gather<'_, P>,
    out: &mut OutputBuffer,
) -> Result<(), TransformError> {
    let start = out.len();
    let front = gather.front();
    let front = front.get(..next.bytes.min(front.len())).unwrap_or_default();
    let at = payload_at(front).ok_or(TransformError::Malformed)?;
    gather.copy(at, out);
    let begun = begin(sealer, ProtectionLayer::Payload, out)?;
    let plaintext = contiguous_plaintext(next.bytes.saturating_sub(at), gather, out);
    begun.end(plaintext, [], out)?;
    let length = out.len().saturating_sub(start);
    let length = length.saturating_sub(HEADER_BYTES);
    let short = u16::try_from(length).map_err(|_| SealError::TooLong(length))?;
    let bytes = SubmessageHeader::length_bytes(next.flags, short);
    let place = out.written_from(start.saturating_add(2));
    if let Some(place) = place.first_chunk_mut() {
        *place = bytes;
    }
    Ok(())
}

fn begin<'s>(
    sealer: &'s Sealer,
    layer: ProtectionLayer,
    out: &mut OutputBuffer,
) -> Result<SealInProgress<'s>, SealError> {
    sealer.begin(layer, DATAGRAM_BYTES_MAX, out)
}

/// The largest UDP payload over IPv4.
const DATAGRAM_BYTES_MAX: usize = 65_507;
/// UDP payload of an Ethernet frame.
const FRAME_BYTES_MAX: usize = 1_472;
#[expect(clippy::cast_possible_truncation, reason = "it is 20")]
const INFO_SOURCE_LENGTH: u16 = (INFO_SOURCE_BYTES - HEADER_BYTES) as u16;
