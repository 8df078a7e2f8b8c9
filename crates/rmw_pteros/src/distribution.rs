//! Differences between the C ABIs of ROS 2's distributions: layouts, constants and what
//! they mean. Everything else of the plug-in is the same for all.
//!
//! `build.rs` chooses the distribution by the package. Each file beside this one defines
//! the same names. A further distribution is a file, a line of `build.rs` and a package
//! below `distributions`; `header_check` says what its headers have otherwise.

#![allow(
    missing_docs,
    reason = "the names and meanings are those of rmw's headers"
)]

use pteros_msg::hash;
use pteros_rcl::event_status::StatusKind;
use pteros_runtime::config::DiscoveryRange;

#[cfg_attr(distribution = "humble", path = "distribution/humble.rs")]
#[cfg_attr(distribution = "jazzy", path = "distribution/jazzy.rs")]
#[cfg_attr(distribution = "kilted", path = "distribution/kilted.rs")]
#[cfg_attr(distribution = "lyrical", path = "distribution/lyrical.rs")]
mod chosen;
#[cfg(any(distribution = "humble", distribution = "lyrical"))]
#[path = "distribution/copied_members.rs"]
mod copied_members;
#[cfg(not(distribution = "humble"))]
#[path = "distribution/since_iron.rs"]
mod since_iron;
#[cfg(any(distribution = "jazzy", distribution = "kilted"))]
#[path = "distribution/until_kilted.rs"]
mod until_kilted;

pub use chosen::*;

/// Fields that came with Lyrical.
#[cfg(not(distribution = "lyrical"))]
mod before_lyrical {
    /// `acceptable_buffer_backends` of the options of a subscription: there is none.
    pub type BufferBackends = ();
    /// `is_cft_supported` of a subscription: there is none.
    pub type FilterSupport = ();
    pub(crate) fn filter_support(_: bool) -> FilterSupport {}
}
#[cfg(not(distribution = "lyrical"))]
pub use before_lyrical::*;

/// How far a context reaches, as rcl or the environment says.
pub(crate) struct Discovery {
    pub(crate) range: DiscoveryRange,
    /// Host names or addresses.
    pub(crate) static_peers: Vec<String>,
}

/// Type hashes of a service and its messages, if the distribution has them.
#[derive(Default)]
pub(crate) struct ServiceHashes {
    pub(crate) service: Option<hash::TypeHash>,
    pub(crate) request: Option<hash::TypeHash>,
    pub(crate) response: Option<hash::TypeHash>,
}

/// An event type of rmw: a status of one side.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct EventType {
    pub(crate) status: StatusKind,
    pub(crate) of_subscription: bool,
}

const fn subscription(status: StatusKind) -> EventType {
    EventType {
        status,
        of_subscription: true,
    }
}

const fn publisher(status: StatusKind) -> EventType {
    EventType {
        status,
        of_subscription: false,
    }
}

impl EventType {
    /// The event with that number in `rmw_event_type_t`.
    pub(crate) fn of_number(number: u32) -> Option<Self> {
        let at = number.checked_sub(FIRST_EVENT_TYPE)?;
        EVENT_TYPES.get(at as usize).copied()
    }
}

/// The number in `rmw_event_type_t` of the event of a status, for tests. `None`: the
/// distribution has no such event.
pub fn event_number(status: StatusKind, of_subscription: bool) -> Option<u32> {
    let wanted = EventType {
        status,
        of_subscription,
    };
    let at = EVENT_TYPES.iter().position(|event| *event == wanted)?;
    Some(FIRST_EVENT_TYPE + u32::try_from(at).ok()?)
}
