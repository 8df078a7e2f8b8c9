//! Types that are not known here, from those who use them.

use std::fmt;
use std::time::Duration;

use pteros_msg::dynamic::{DynamicType, TypeError};
use pteros_msg::typeobject::Foreign;
use pteros_rmw::rtps::discovery::type_lookup::ForeignType;
use pteros_rmw::rtps::id::Guid;
use pteros_rmw::rtps::time::Instant;

use super::Graph;

/// The longest wait between two looks at one endpoint's answer.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// Why a topic's type is not known from its endpoints.
#[derive(Clone, Debug, PartialEq)]
pub enum TypeNotTold {
    /// No other process has an endpoint on the topic that tells its type: many
    /// stacks do not, ROS 2's before 2025 among them.
    Silent,
    /// Those who could tell did not in time.
    NoAnswer,
    /// The type is of a kind that is not supported.
    Refused(Foreign),
    /// What was told makes no type.
    Invalid(TypeError),
}

impl fmt::Display for TypeNotTold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Silent => f.write_str("no endpoint on the topic tells its type"),
            Self::NoAnswer => f.write_str("the topic's endpoints were asked, and did not answer"),
            Self::Refused(why) => write!(f, "the type that the topic's endpoints tell: {why}"),
            Self::Invalid(why) => write!(f, "the type that the topic's endpoints tell: {why}"),
        }
    }
}

impl std::error::Error for TypeNotTold {}

impl Graph {
    /// The type of a topic as an endpoint of another process tells it (XTypes
    /// 1.3 §7.6.3), for topics whose type has no definition here. Publishers are
    /// asked first. Types of ROS 2 have their ROS name.
    ///
    /// Blocks until one has told, at most `timeout` and half a second; drives the network itself
    /// and runs no callbacks.
    ///
    /// # Errors
    /// [`TypeNotTold`] of the endpoint that came closest.
    pub fn announced_type(
        &self,
        topic: &str,
        timeout: Duration,
    ) -> Result<DynamicType, TypeNotTold> {
        let until = self.context.core().env.now().after(timeout.into());
        let endpoints = self.publishers(topic).into_iter();
        let mut problem = TypeNotTold::Silent;
        for endpoint in endpoints.chain(self.subscriptions(topic)) {
            match self.told_by(endpoint.gid, until) {
                Ok(ty) => return Ok(ty),
                Err(TypeNotTold::Silent) => {}
                Err(other) => problem = other,
            }
        }
        Err(problem)
    }

    fn told_by(&self, endpoint: Guid, until: Instant) -> Result<DynamicType, TypeNotTold> {
        loop {
            let revision = self.revision();
            match self.context.core().foreign_type(endpoint) {
                Some(ForeignType::Known(description)) => {
                    return DynamicType::new(&description).map_err(TypeNotTold::Invalid);
                }
                None | Some(ForeignType::Silent) => return Err(TypeNotTold::Silent),
                Some(ForeignType::NoAnswer) => return Err(TypeNotTold::NoAnswer),
                Some(ForeignType::Refused(why)) => return Err(TypeNotTold::Refused(why)),
                Some(ForeignType::Asked) => {}
            }
            if self.context.core().env.now() >= until || self.context.is_shut_down() {
                return Err(TypeNotTold::NoAnswer);
            }
            self.wait_for_change(revision, LOOK_AGAIN);
        }
    }
}
