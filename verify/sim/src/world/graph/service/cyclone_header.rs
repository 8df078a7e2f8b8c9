//! Services as rmw_cyclonedds implements them.
//!
//! A header of 16 bytes before the message names the client and its request number.
//! Replies go to all clients. USER_DATA pairs the two endpoints of a client or
//! server.
//!
//! The simulated network writes the vendor id of Cyclone DDS into all that such a
//! process sends. Everything else of the process is Pteros.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use bytes::Bytes;
use pteros_rtps::id::{Guid, VendorId};
use pteros_runtime::error::PublishError;
use pteros_runtime::reader::{DeliveryForm, ReaderEndpoint};
use pteros_runtime::sample::{QueuedSample, SampleBody, SharedValue};
use pteros_runtime::service::ServiceSpec;
use pteros_runtime::writer::{OutboundMessage, WriterEndpoint};
use pteros_runtime::{Core, EndpointSpec};

use crate::world::graph::message::Message;

/// Header of a request or reply.
#[derive(Clone, Copy)]
pub struct CycloneHeader {
    /// The client id.
    pub client: u64,
    /// Its request number.
    pub sequence: i64,
}

/// The writer and the reader of a client or server.
pub struct CycloneEnd {
    pub writer: Arc<WriterEndpoint>,
    pub reader: Arc<ReaderEndpoint>,
}

/// A client with the Cyclone header.
pub struct CycloneClient {
    pub end: CycloneEnd,
    number: u64,
    last: AtomicI64,
}

impl CycloneClient {
    pub fn new(core: &Core, spec: ServiceSpec, number: u64) -> Option<Self> {
        let id = format!("clientid={number:x};");
        Some(Self {
            end: CycloneEnd::new(core, spec.requests, spec.replies, &id)?,
            number,
            last: AtomicI64::new(0),
        })
    }

    /// Sends a request and returns its number.
    pub fn send(&self, core: &Core, message: &Message) -> Result<i64, PublishError> {
        let sequence = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let header = CycloneHeader {
            client: self.number,
            sequence,
        };
        self.end.send(core, header, message)?;
        Ok(sequence)
    }

    /// Takes a reply to this client, and skips those to others.
    pub fn take(&self, core: &Core) -> Option<(i64, QueuedSample)> {
        while let Some(item) = core.taking().take(&self.end.reader) {
            match open(item) {
                Some((header, item)) if header.client == self.number => {
                    return Some((header.sequence, item));
                }
                _ => {}
            }
        }
        None
    }
}

impl CycloneEnd {
    /// Creates a writer and a reader that an id in USER_DATA pairs.
    pub fn new(core: &Core, writer: EndpointSpec, reader: EndpointSpec, id: &str) -> Option<Self> {
        let marked = |mut spec: EndpointSpec| {
            spec.qos.user_data = id.as_bytes().to_vec();
            spec
        };
        Some(Self {
            reader: core
                .create_reader(marked(reader), DeliveryForm::Bytes, false)
                .ok()?,
            writer: core.create_writer(marked(writer)).ok()?,
        })
    }

    /// Publishes a message with a header to all.
    pub fn send(
        &self,
        core: &Core,
        header: CycloneHeader,
        message: &Message,
    ) -> Result<(), PublishError> {
        let mut with_cyclone_header =
            MessageWithHeader(with_cyclone_header(header, message.clone().serialized()));
        core.publish(
            &self.writer,
            &mut with_cyclone_header,
            core.platform.wall_clock(),
        )?;
        Ok(())
    }

    /// Takes a message and its header.
    pub fn take(&self, core: &Core) -> Option<(CycloneHeader, QueuedSample)> {
        while let Some(item) = core.taking().take(&self.reader) {
            if let Some(opened) = open(item) {
                return Some(opened);
            }
        }
        None
    }

    /// The peers' endpoints that are matched in both directions.
    pub fn peers(&self) -> Vec<Guid> {
        let speakers = self.reader.matched();
        let mut listeners = self.writer.matched();
        listeners.retain(|l| speakers.iter().any(|s| s.prefix == l.prefix));
        listeners
    }
}

struct MessageWithHeader(Bytes);

impl OutboundMessage for MessageWithHeader {
    fn message_type(&self) -> std::any::TypeId {
        std::any::TypeId::of::<Bytes>()
    }

    fn shared(&mut self) -> Option<Arc<dyn SharedValue>> {
        None
    }

    fn serialized(&mut self) -> Bytes {
        self.0.clone()
    }

    fn serialized_len(&mut self) -> usize {
        self.0.len()
    }
}

/// Bytes of the CDR encapsulation, which comes first.
const ENCAPSULATION_BYTES: usize = 4;

const CYCLONE_HEADER_BYTES: usize = 16;

fn with_cyclone_header(header: CycloneHeader, payload: Bytes) -> Bytes {
    let mut with_cyclone_header = payload[..ENCAPSULATION_BYTES].to_vec();
    with_cyclone_header.extend_from_slice(&header.client.to_le_bytes());
    with_cyclone_header.extend_from_slice(&header.sequence.to_le_bytes());
    with_cyclone_header.extend_from_slice(&payload[ENCAPSULATION_BYTES..]);
    with_cyclone_header.into()
}

fn open(mut item: QueuedSample) -> Option<(CycloneHeader, QueuedSample)> {
    let SampleBody::Serialized(payload) = &item.body else {
        return None;
    };
    let head = payload.get(ENCAPSULATION_BYTES..ENCAPSULATION_BYTES + CYCLONE_HEADER_BYTES)?;
    let (client, sequence) = head.split_first_chunk::<8>()?;
    let header = CycloneHeader {
        client: u64::from_le_bytes(*client),
        sequence: i64::from_le_bytes(sequence.try_into().ok()?),
    };
    let message = [
        &payload[..ENCAPSULATION_BYTES],
        &payload[ENCAPSULATION_BYTES + CYCLONE_HEADER_BYTES..],
    ];
    item.body = SampleBody::Serialized(message.concat().into());
    Some((header, item))
}

/// Rewrites the vendor id to that of Cyclone DDS, in the RTPS header and in each
/// PID_VENDOR_ID (RTPS 2.5 §9.6.2).
pub fn rewrite_vendor_id(datagram: &mut [u8]) {
    let (ours, theirs) = (VendorId::PTEROS.0, VendorId::CYCLONE.0);
    if let Some(vendor) = datagram.get_mut(6..8).filter(|vendor| **vendor == ours) {
        vendor.copy_from_slice(&theirs);
    }
    let parameter = [0x16, 0x00, 0x04, 0x00, ours[0], ours[1]];
    for at in 0..datagram.len() {
        if let Some(found) = datagram.get_mut(at..at + parameter.len())
            && found == parameter
        {
            found[4..].copy_from_slice(&theirs);
        }
    }
}
