//! Services on two topics: requests one way, replies the other.
//!
//! A client has a writer of requests and a reader of replies, a server the
//! reverse, all reliable. A reply names its request ([`Dialect`] says how) and
//! goes to the reader of that client alone; within a process both are shared
//! values. Clients and servers are told what they need by their endpoints'
//! matches: nobody is asked whether a service exists.

mod client;
mod dialect;
mod server;

use std::fmt::Write as _;

use pteros_rtps::fault;
use pteros_rtps::id::{Guid, GuidPrefix, VendorId};

pub use client::{CALLS_MAX, CallId, Reply, SendError, ServiceClient};
pub use dialect::Dialect;
pub use server::{PARKED_MAX, Request, RequestId, ServerCounts, ServiceServer};

use crate::core::Core;
use crate::graph::user_data_value;
use crate::matching::EndpointSpec;

/// The two topics of a service, as one side announces them.
#[derive(Clone, Debug, Default)]
pub struct ServiceSpec {
    /// The topic of requests.
    pub requests: EndpointSpec,
    /// The topic of replies.
    pub replies: EndpointSpec,
}

/// USER_DATA of a client's endpoints, and of a server's: it says which two
/// belong together (rmw_cyclonedds).
const CLIENT_ID: &str = "clientid";
const SERVICE_ID: &str = "serviceid";

impl ServiceSpec {
    /// Marks both endpoints as one pair.
    fn mark(&mut self, key: &str, id: &str) {
        let entry = format!("{key}={id};").into_bytes();
        self.requests.qos.user_data.extend_from_slice(&entry);
        self.replies.qos.user_data.extend_from_slice(&entry);
    }
}

/// A pair's name among all: the participant and a number in it, as 16 bytes in
/// the spelling of rmw_cyclonedds, of which only the first is padded.
fn pair_id(prefix: GuidPrefix, number: [u8; 4]) -> String {
    let mut id = String::new();
    for (at, byte) in prefix.0.iter().chain(&number).enumerate() {
        let _ = match at {
            0 => write!(id, "{byte:2x}"),
            _ => write!(id, ".{byte:x}"),
        };
    }
    id
}

impl Core {
    fn new_pair_id(&self) -> String {
        let [a, b, c] = self.next_entity_key();
        pair_id(self.prefix, [0, a, b, c])
    }

    /// How a participant of that prefix relates replies to requests.
    fn dialect_of(&self, prefix: GuidPrefix) -> Dialect {
        if prefix == self.prefix {
            return Dialect::Related;
        }
        let vendor = self.graph.participant(prefix).map(|data| data.vendor);
        match vendor {
            Some(VendorId::CYCLONE) if !fault!("dialect-not-asked-for") => Dialect::Headed,
            _ => Dialect::Related,
        }
    }

    /// Whether two endpoints of another participant are the two sides of one
    /// client or server: their ids say so, or nothing speaks against it.
    fn are_pair(&self, key: &str, one: Guid, other: Guid) -> bool {
        if one.prefix != other.prefix {
            return false;
        }
        if one.prefix == self.prefix {
            return true;
        }
        let id = |guid| {
            let user_data = self.graph.user_data_of(guid)?;
            user_data_value(&user_data, key)
        };
        match (id(one), id(other)) {
            (Some(one), Some(other)) => one == other,
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_is_named_as_cyclone_names_it() {
        let prefix = GuidPrefix([1, 0x10, 0xab, 0, 5, 6, 7, 8, 9, 10, 11, 255]);
        assert_eq!(
            pair_id(prefix, [0, 0, 0, 4]),
            " 1.10.ab.0.5.6.7.8.9.a.b.ff.0.0.0.4"
        );
    }
}
