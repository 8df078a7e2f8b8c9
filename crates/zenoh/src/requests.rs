//! Open requests: queries to servers of this context that have no reply yet.
//!
//! An open query keeps its payload, so requests are limited in number and bytes. Above
//! the limit the client with the most requests loses its oldest one.

use std::collections::{BTreeMap, VecDeque};

use pteros_rtps::id::Guid;

/// Requests without a reply.
const REQUESTS_MAX: usize = 1_000;
/// Bytes of their payloads: four requests of the largest size by default.
const BYTES_MAX: usize = 256 << 20;

/// See the module documentation. `Q` is the handle by which the reply is sent.
pub struct OpenRequests<Q> {
    /// Oldest first.
    open: VecDeque<OpenRequest<Q>>,
    bytes: usize,
}

/// A request without a reply.
pub struct OpenRequest<Q> {
    /// The server's reader of requests.
    pub server: Guid,
    /// The client's reader of replies.
    pub client: Guid,
    /// Sequence number of the client.
    pub sequence: i64,
    /// Size of the payload.
    pub bytes: usize,
    /// The handle by which the reply is sent.
    pub query: Q,
}

impl<Q> OpenRequests<Q> {
    /// No requests.
    pub fn new() -> Self {
        Self {
            open: VecDeque::new(),
            bytes: 0,
        }
    }

    /// Adds a request. Returns the number of requests closed without a reply to make
    /// space.
    pub fn push(&mut self, request: OpenRequest<Q>) -> u64 {
        self.bytes = self.bytes.saturating_add(request.bytes);
        self.open.push_back(request);
        let mut closed = 0;
        while self.open.len() > 1 && (self.open.len() > REQUESTS_MAX || self.bytes > BYTES_MAX) {
            self.close_one();
            closed += 1;
        }
        closed
    }

    /// Takes the request of a client to a server by its number.
    pub fn take(&mut self, server: Guid, client: Guid, sequence: i64) -> Option<Q> {
        let is_it = |of: &OpenRequest<Q>| {
            of.server == server && of.client == client && of.sequence == sequence
        };
        let at = self.open.iter().position(is_it)?;
        self.remove(at).map(|request| request.query)
    }

    /// Closes the requests of a removed client.
    pub fn remove_client(&mut self, client: Guid) {
        self.retain(|request| request.client != client);
    }

    /// Closes the requests to a removed server.
    pub fn remove_server(&mut self, server: Guid) {
        self.retain(|request| request.server != server);
    }

    /// Closes all requests.
    pub fn clear(&mut self) {
        self.retain(|_| false);
    }

    fn close_one(&mut self) {
        let is_long = self.open.len() > REQUESTS_MAX;
        let mut of_client: BTreeMap<Guid, usize> = BTreeMap::new();
        for request in &self.open {
            let weight = if is_long { 1 } else { request.bytes };
            *of_client.entry(request.client).or_default() += weight;
        }
        let most = of_client.iter().max_by_key(|(_, weight)| **weight);
        let Some(client) = most.map(|(client, _)| *client) else {
            return;
        };
        let at = self.open.iter().position(|of| of.client == client);
        at.and_then(|at| self.remove(at));
    }

    fn remove(&mut self, at: usize) -> Option<OpenRequest<Q>> {
        let request = self.open.remove(at)?;
        self.bytes = self.bytes.saturating_sub(request.bytes);
        Some(request)
    }

    fn retain(&mut self, keeps: impl FnMut(&OpenRequest<Q>) -> bool) {
        self.open.retain(keeps);
        self.bytes = self.open.iter().map(|request| request.bytes).sum();
    }
}

#[cfg(test)]
mod tests {
    use pteros_rtps::id::{EntityId, GuidPrefix};

    use super::*;

    const SERVER: Guid = GuidPrefix([100; 12]).with(EntityId::PARTICIPANT);

    fn guid(byte: u8) -> Guid {
        GuidPrefix([byte; 12]).with(EntityId::PARTICIPANT)
    }

    fn request(client: u8, sequence: i64, bytes: usize) -> OpenRequest<()> {
        OpenRequest {
            server: SERVER,
            client: guid(client),
            sequence,
            bytes,
            query: (),
        }
    }

    #[test]
    fn the_client_with_the_most_requests_loses_its_oldest() {
        let mut open = OpenRequests::new();
        assert_eq!(open.push(request(1, 1, 8)), 0);
        let closed: u64 = (0..5_000).map(|of| open.push(request(2, of, 8))).sum();
        assert_eq!(closed, 4_001);
        assert!(open.take(SERVER, guid(1), 1).is_some());
        assert!(open.take(SERVER, guid(2), 0).is_none());
        assert!(open.take(SERVER, guid(2), 4_999).is_some());
        assert_eq!(open.bytes, 998 * 8);
    }

    #[test]
    fn the_client_with_the_most_bytes_loses_its_oldest() {
        let mut open = OpenRequests::new();
        open.push(request(1, 1, 8));
        open.push(request(2, 1, BYTES_MAX / 2));
        assert_eq!(open.push(request(2, 2, BYTES_MAX / 2)), 1);
        assert!(open.take(SERVER, guid(2), 1).is_none() && open.take(SERVER, guid(1), 1).is_some());
        assert_eq!(open.bytes, BYTES_MAX / 2);
    }

    #[test]
    fn two_servers_of_a_service_have_a_request_each() {
        let mut open = OpenRequests::new();
        open.push(request(1, 1, 8));
        let server = guid(101);
        open.push(OpenRequest {
            server,
            ..request(1, 1, 9)
        });
        assert!(open.take(server, guid(1), 1).is_some());
        assert_eq!(open.bytes, 8, "the other server still owes its reply");
        assert!(open.take(server, guid(1), 1).is_none());
        assert!(open.take(SERVER, guid(1), 1).is_some());
    }

    #[test]
    fn requests_end_with_their_server_or_client() {
        let mut open = OpenRequests::new();
        open.push(request(1, 1, 8));
        open.push(request(2, 1, 8));
        open.remove_client(guid(1));
        assert!(open.take(SERVER, guid(1), 1).is_none());
        open.remove_server(guid(99));
        assert_eq!(open.bytes, 8);
        open.remove_server(SERVER);
        assert!(open.take(SERVER, guid(2), 1).is_none());
        assert_eq!(open.bytes, 0);
    }
}
