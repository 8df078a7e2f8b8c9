//! Type information of endpoints (type compatibility / TypeLookup / TypeObject):
//! announcing local types, and reading remote ones (XTypes 1.3 §7.6.3.2.1).
//!
//! Types with a known description whose type name equals the description's are announced.
//! All others match by name only. The announced value of a generated type is one of its
//! constants. The type is described, serialized and hashed only when a peer requests it.

use bytes::Bytes;
use pteros_msg::describe::TypeDescription;
use pteros_msg::typeobject::{TypeObjects, is_announced};
use pteros_rtps::discovery::type_lookup::RemoteType;
use pteros_rtps::id::Guid;

use crate::core::discovery::Discovery;
use crate::endpoints::content_filter::MessageType;
use crate::transport::rtps::RtpsTransport;

impl RtpsTransport {
    /// The TypeInformation to announce; the type is served to peers from then on.
    /// `None` if nothing is announced.
    pub(crate) fn type_information(&self, ty: &MessageType, type_name: &str) -> Option<Bytes> {
        match ty {
            MessageType::Unknown | MessageType::OnDemand(_) => None,
            MessageType::Described { announced: [], .. } => None,
            &MessageType::Described {
                announced,
                describe,
            } => {
                self.participant
                    .lock()
                    .offer_type_lazily(announced, describe);
                Some(Bytes::from_static(announced))
            }
            MessageType::Dynamic(ty) => self.offer(&ty.description(), type_name),
        }
    }

    fn offer(&self, description: &TypeDescription, type_name: &str) -> Option<Bytes> {
        if !is_announced(description) {
            return None;
        }
        let objects = TypeObjects::new(description)?;
        if objects.name != type_name {
            return None;
        }
        self.participant.lock().offer_type(&objects);
        Some(objects.information().into())
    }
}

impl Discovery {
    /// The type of a remote endpoint, requested from its participant (TypeLookup).
    ///
    /// Requests missing types and does not wait. Call again when the graph has changed,
    /// after half a second at the latest. `None` if there is no such endpoint.
    pub fn remote_type(&self, remote: Guid) -> Option<RemoteType> {
        let now = self.platform.now();
        let known = self.participant().lock().remote_type(now, remote);
        self.serve_participant(now);
        known
    }
}
