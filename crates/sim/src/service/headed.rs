//! The ends of a service as rmw_cyclonedds has them: 16 bytes before the message
//! name the client and its number for the request, a reply goes to all clients,
//! and each end's two endpoints are paired by USER_DATA.
//!
//! Who speaks so is taken for Cyclone DDS by its vendor, which the simulated
//! network writes into what such a process sends. The rest of it is Pteros.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use bytes::Bytes;
use pteros_rmw::error::PublishError;
use pteros_rmw::reader::{ReaderEndpoint, Wants};
use pteros_rmw::sample::{Body, Item, SharedValue};
use pteros_rmw::service::ServiceSpec;
use pteros_rmw::writer::{Outgoing, WriterEndpoint};
use pteros_rmw::{Core, EndpointSpec};
use pteros_rtps::id::{Guid, VendorId};

use crate::message::Message;

/// The client and its number for a request.
pub(super) type Head = (u64, i64);

/// One end: what it asks or answers by, and what it hears by.
pub(super) struct End {
    pub speaks: Arc<WriterEndpoint>,
    pub hears: Arc<ReaderEndpoint>,
}

/// A client of that kind.
pub(super) struct HeadedClient {
    pub end: End,
    number: u64,
    last: AtomicI64,
}

impl HeadedClient {
    pub fn new(core: &Core, spec: ServiceSpec, number: u64) -> Option<Self> {
        let id = format!("clientid={number:x};");
        Some(Self {
            end: End::new(core, (spec.requests, spec.replies), &id)?,
            number,
            last: AtomicI64::new(0),
        })
    }

    /// Sends a request; the client's number for it.
    pub fn send(&self, core: &Core, message: &Message) -> Result<i64, PublishError> {
        let sequence = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        self.end.send(core, (self.number, sequence), message)?;
        Ok(sequence)
    }

    /// Takes a reply to this client; others' are passed over.
    pub fn take(&self, core: &Core) -> Option<(i64, Item)> {
        while let Some(item) = core.take(&self.end.hears) {
            match open(item) {
                Some(((number, sequence), item)) if number == self.number => {
                    return Some((sequence, item));
                }
                _ => {}
            }
        }
        None
    }
}

impl End {
    /// A writer and a reader that an id makes a pair.
    pub fn new(core: &Core, (out, back): (EndpointSpec, EndpointSpec), id: &str) -> Option<Self> {
        let marked = |mut spec: EndpointSpec| {
            spec.qos.user_data = id.as_bytes().to_vec();
            spec
        };
        Some(Self {
            hears: core.create_reader(marked(back), Wants::Bytes, false).ok()?,
            speaks: core.create_writer(marked(out)).ok()?,
        })
    }

    /// Sends a message with a head before it, to all.
    pub fn send(&self, core: &Core, head: Head, message: &Message) -> Result<(), PublishError> {
        let mut headed = Headed(headed(head, message.clone().serialized()));
        core.publish(&self.speaks, &mut headed, core.env.wall())?;
        Ok(())
    }

    /// Takes what came, and whose it is.
    pub fn take(&self, core: &Core) -> Option<(Head, Item)> {
        while let Some(item) = core.take(&self.hears) {
            if let Some(opened) = open(item) {
                return Some(opened);
            }
        }
        None
    }

    /// How many processes have both ends matched with these.
    pub fn peers(&self) -> Vec<Guid> {
        let speakers = self.hears.matched();
        let mut listeners = self.speaks.matched();
        listeners.retain(|l| speakers.iter().any(|s| s.prefix == l.prefix));
        listeners
    }
}

struct Headed(Bytes);

impl Outgoing for Headed {
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

/// Bytes of the encapsulation, which comes first.
const ENCAPSULATION: usize = 4;

/// Bytes of a [`Head`].
const HEAD: usize = 16;

fn headed((client, sequence): Head, payload: Bytes) -> Bytes {
    let mut headed = payload[..ENCAPSULATION].to_vec();
    headed.extend_from_slice(&client.to_le_bytes());
    headed.extend_from_slice(&sequence.to_le_bytes());
    headed.extend_from_slice(&payload[ENCAPSULATION..]);
    headed.into()
}

fn open(mut item: Item) -> Option<(Head, Item)> {
    let Body::Serialized(payload) = &item.body else {
        return None;
    };
    let head = payload.get(ENCAPSULATION..ENCAPSULATION + HEAD)?;
    let (client, sequence) = head.split_first_chunk::<8>()?;
    let sequence = i64::from_le_bytes(sequence.try_into().ok()?);
    let head = (u64::from_le_bytes(*client), sequence);
    let message = [&payload[..ENCAPSULATION], &payload[ENCAPSULATION + HEAD..]];
    item.body = Body::Serialized(message.concat().into());
    Some((head, item))
}

/// Lets a datagram come from Cyclone DDS: in its header and wherever the
/// parameter PID_VENDOR_ID (RTPS 2.5 §9.6.2) names ours.
pub(crate) fn disguise(datagram: &mut [u8]) {
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
