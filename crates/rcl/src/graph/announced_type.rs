//! Announced types: type descriptions fetched from other participants with the
//! TypeLookup service (XTypes 1.3 §7.6.3).
//!
//! For topics whose type has no definition in this process. The rtps crate sends
//! the requests; this file waits for TypeObjects and converts them.

use std::fmt;
use std::time::Duration;

use pteros_msg::dynamic::{DynamicType, TypeError};
use pteros_msg::typeobject::TypeObjectError;
use pteros_runtime::rtps::discovery::type_lookup::RemoteType;
use pteros_runtime::rtps::id::Guid;
use pteros_runtime::rtps::time::Instant;

use super::Graph;

/// The longest pause between two checks for a TypeLookup reply.
const POLL_PERIOD: Duration = Duration::from_millis(500);

/// Why a topic's type could not be learned from its endpoints.
#[derive(Clone, PartialEq)]
pub enum AnnouncedTypeError {
    /// No other process announces its type on the topic. Many implementations do
    /// not, ROS 2 before 2025 among them.
    NotAnnounced,
    /// The participants did not reply in time.
    NoReply,
    /// The type has a kind that is not supported.
    Unsupported(TypeObjectError),
    /// The received description is no valid type.
    Invalid(TypeError),
}

pteros_msg::debug_as_display!(AnnouncedTypeError);

impl fmt::Display for AnnouncedTypeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAnnounced => f.write_str("no endpoint on the topic announces its type"),
            Self::NoReply => f.write_str(
                "the topic's participants were sent a TypeLookup request and did not reply",
            ),
            Self::Unsupported(why) => {
                write!(f, "the type that the topic's endpoints announce: {why}")
            }
            Self::Invalid(why) => write!(f, "the type that the topic's endpoints announce: {why}"),
        }
    }
}

impl std::error::Error for AnnouncedTypeError {}

impl Graph {
    /// Fetches the type of a topic from an endpoint of another process (TypeLookup,
    /// XTypes 1.3 §7.6.3).
    ///
    /// For topics whose type has no definition here. Publishers are tried first.
    /// ROS 2 types get their ROS name. Blocks until a type has arrived, at most
    /// `timeout` and half a second. Drives the network itself and runs no
    /// callbacks.
    ///
    /// # Errors
    /// [`AnnouncedTypeError`] of the endpoint that came closest.
    pub fn announced_type(
        &self,
        topic: &str,
        timeout: Duration,
    ) -> Result<DynamicType, AnnouncedTypeError> {
        let until = self.core.platform.now().after(timeout.into());
        let endpoints = self.publishers(topic).into_iter();
        let mut problem = AnnouncedTypeError::NotAnnounced;
        for endpoint in endpoints.chain(self.subscriptions(topic)) {
            match self.type_of_endpoint(endpoint.gid, until) {
                Ok(ty) => return Ok(ty),
                Err(AnnouncedTypeError::NotAnnounced) => {}
                Err(other) => problem = other,
            }
        }
        Err(problem)
    }

    fn type_of_endpoint(
        &self,
        endpoint: Guid,
        until: Instant,
    ) -> Result<DynamicType, AnnouncedTypeError> {
        loop {
            let revision = self.revision();
            match self.core.discovery().remote_type(endpoint) {
                Some(RemoteType::Known(description)) => {
                    return DynamicType::new(&description).map_err(AnnouncedTypeError::Invalid);
                }
                None | Some(RemoteType::NotAnnounced) => {
                    return Err(AnnouncedTypeError::NotAnnounced);
                }
                Some(RemoteType::TimedOut) => return Err(AnnouncedTypeError::NoReply),
                Some(RemoteType::Unsupported(why)) => {
                    return Err(AnnouncedTypeError::Unsupported(why));
                }
                Some(RemoteType::Requested) => {}
            }
            if self.core.platform.now() >= until || self.core.is_shut_down() {
                return Err(AnnouncedTypeError::NoReply);
            }
            self.wait_for_change(revision, POLL_PERIOD);
        }
    }
}
