//! What an endpoint announces of its message type, so that tools of other
//! vendors can show it (XTypes 1.3 §7.6.3.2.1), and what peers say of theirs.
//!
//! Announced are types whose description is known and whose name on the wire is
//! the description's; all others match by name alone, as ever. What is announced of
//! a generated type is one of its constants: nothing is described, serialized and
//! hashed before a peer asks for it.

use bytes::Bytes;
use pteros_msg::describe::TypeDescription;
use pteros_msg::typeobject::{TypeObjects, is_announced};
use pteros_rtps::discovery::type_lookup::ForeignType;
use pteros_rtps::id::Guid;

use crate::content_filter::MessageType;
use crate::core::Core;

impl Core {
    /// The TypeInformation to announce; from then on peers are answered that
    /// ask for the type. `None` where nothing is announced.
    pub(crate) fn type_information(&self, ty: &MessageType, type_name: &str) -> Option<Bytes> {
        match ty {
            MessageType::Unknown => None,
            MessageType::Described { announced: [], .. } => None,
            &MessageType::Described {
                announced,
                describe,
            } => {
                self.participant.lock().promise_type(announced, describe);
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

    /// What a remote endpoint's type is made of, from its own participant.
    ///
    /// Asks for what is missing and does not wait: call again when the graph
    /// has changed, at the latest after half a second. `None`: there is no such
    /// endpoint.
    pub fn foreign_type(&self, remote: Guid) -> Option<ForeignType> {
        let now = self.env.now();
        let found = self.participant.lock().foreign_type(now, remote);
        self.serve_participant(now);
        found
    }
}
