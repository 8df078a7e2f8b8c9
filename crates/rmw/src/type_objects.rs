//! What an endpoint announces of its message type, so that tools of other
//! vendors can show it (XTypes 1.3 §7.6.3.2.1), and what peers say of theirs.
//!
//! Announced are types whose description is known and whose name on the wire is
//! the description's; all others match by name alone, as ever.

use std::collections::BTreeMap;
use std::ptr;

use bytes::Bytes;
use parking_lot::Mutex;
use pteros_msg::describe::TypeDescription;
use pteros_msg::typeobject::{TypeObjects, is_announced};
use pteros_rtps::discovery::type_lookup::ForeignType;
use pteros_rtps::id::Guid;

use crate::content_filter::MessageType;
use crate::core::Core;

/// What is announced of generated types: once for all their endpoints, by where
/// their descriptions lie.
#[derive(Default)]
pub(crate) struct Announced(Mutex<BTreeMap<usize, Announcement>>);

/// The name and the information; none where none is announced.
type Announcement = Option<(String, Bytes)>;

impl Core {
    /// The TypeInformation to announce; from then on peers are answered that
    /// ask for the type. `None` where nothing is announced.
    pub(crate) fn type_information(&self, ty: &MessageType, type_name: &str) -> Option<Bytes> {
        let of_name = |known: &Announcement| {
            let (name, information) = known.as_ref()?;
            (name == type_name).then(|| information.clone())
        };
        match ty {
            MessageType::Unknown => None,
            MessageType::Described(description) => {
                let description = description();
                let mut known = self.announced_types.0.lock();
                let known = known.entry(ptr::from_ref(description).addr());
                of_name(known.or_insert_with(|| self.offer(description)))
            }
            MessageType::Dynamic(ty) => of_name(&self.offer(&ty.description())),
        }
    }

    fn offer(&self, description: &TypeDescription) -> Announcement {
        if !is_announced(description) {
            return None;
        }
        let objects = TypeObjects::new(description)?;
        self.participant.lock().offer_type(&objects);
        Some((objects.name.clone(), objects.information().into()))
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
