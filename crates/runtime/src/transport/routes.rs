//! Transport routes: the remote readers of a writer that further transports reach.
//!
//! Part of the writer's state, under its lock. RTPS readers are not among them.

use std::sync::Arc;

use pteros_rtps::history::CacheChange;
use pteros_rtps::id::Guid;
use pteros_rtps::time::Instant;

use super::{SampleTransport, TransportSample};

/// The matched readers on one transport.
struct TransportRoute {
    transport: Arc<dyn SampleTransport>,
    readers: Vec<Guid>,
    /// The transport needs every sample, with or without matched readers.
    is_wanted: bool,
}

/// See the module documentation.
#[derive(Default)]
pub(crate) struct TransportRoutes(Vec<TransportRoute>);

impl TransportRoutes {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The matched readers.
    pub(crate) fn readers(&self) -> impl Iterator<Item = Guid> {
        self.0
            .iter()
            .flat_map(|route| route.readers.iter().copied())
    }

    /// The number of routes that a sample may take: matched readers, and transports that
    /// want every sample.
    pub(crate) fn count(&self) -> usize {
        let wanted = self.0.iter().filter(|route| route.is_wanted).count();
        self.readers().count() + wanted
    }

    /// Adds a matched reader.
    pub(crate) fn add(&mut self, transport: &Arc<dyn SampleTransport>, reader: Guid) {
        self.route(transport).readers.push(reader);
    }

    /// Whether a transport gets every sample, matched readers or not.
    pub(crate) fn set_wanted(&mut self, transport: &Arc<dyn SampleTransport>, is_wanted: bool) {
        self.route(transport).is_wanted = is_wanted;
        self.drop_unused();
    }

    fn route(&mut self, transport: &Arc<dyn SampleTransport>) -> &mut TransportRoute {
        let known = self
            .0
            .iter()
            .position(|r| Arc::ptr_eq(&r.transport, transport));
        let at = known.unwrap_or_else(|| {
            self.0.push(TransportRoute {
                transport: transport.clone(),
                readers: Vec::new(),
                is_wanted: false,
            });
            self.0.len() - 1
        });
        &mut self.0[at]
    }

    fn drop_unused(&mut self) {
        self.0
            .retain(|route| route.is_wanted || !route.readers.is_empty());
    }

    /// Removes a reader. Returns whether it was matched.
    pub(crate) fn remove(&mut self, reader: Guid) -> bool {
        let before = self.readers().count();
        for route in &mut self.0 {
            route.readers.retain(|matched| *matched != reader);
        }
        let was_matched = self.readers().count() < before;
        self.drop_unused();
        was_matched
    }

    /// Queues a sample on every transport, for all its readers there or one.
    pub(crate) fn write(&self, now: Instant, change: &CacheChange, directed_to: Option<Guid>) {
        for route in &self.0 {
            let is_addressed = |reader: &&Guid| directed_to.is_none_or(|only| only == **reader);
            let readers: Vec<Guid> = route.readers.iter().filter(is_addressed).copied().collect();
            let is_for_all = route.is_wanted && directed_to.is_none();
            if !readers.is_empty() || is_for_all {
                let change = change.clone();
                route
                    .transport
                    .write(now, &TransportSample { change, readers });
            }
        }
    }

    /// Asserts a writer's liveliness on every transport.
    pub(crate) fn assert_writer(&self, now: Instant, writer: Guid) {
        for route in &self.0 {
            route.transport.assert_writer(now, writer);
        }
    }

    /// The transports, to flush them without the writer's lock.
    pub(crate) fn transports(&self) -> Vec<Arc<dyn SampleTransport>> {
        self.0.iter().map(|route| route.transport.clone()).collect()
    }

    /// Whether every transport has space for so many bytes of a KEEP_ALL writer.
    pub(crate) fn have_space(&self, writer: Guid, bytes: usize) -> bool {
        self.0.iter().all(|r| r.transport.has_space(writer, bytes))
    }

    /// Whether every transport has delivered everything to reliable readers.
    pub(crate) fn are_acknowledged(&self, writer: Guid) -> bool {
        self.0.iter().all(|r| r.transport.is_acknowledged(writer))
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use pteros_interfaces::rmw_dds_common::msg::ParticipantEntitiesInfo;
    use pteros_rtps::discovery::data::EndpointData;
    use pteros_rtps::id::{EntityId, GuidPrefix};
    use pteros_rtps::qos::Liveliness;
    use pteros_rtps::seq::SequenceNumber;

    use super::super::{RemoteEndpointRecord, Transport, TransportEvent};
    use super::*;
    use crate::lock::{Mutex, rank};

    /// A transport that notes the readers of what it carries.
    #[derive(Default)]
    struct NotingTransport(Mutex<Vec<Vec<Guid>>, rank::TransportHolds>);

    impl NotingTransport {
        fn take(&self) -> Vec<Vec<Guid>> {
            std::mem::take(&mut self.0.lock())
        }
    }

    impl Transport for NotingTransport {
        fn name(&self) -> &'static str {
            "noting"
        }

        fn announce(&self, _: Instant, _: &Arc<EndpointData>) {}

        fn withdraw(&self, _: Instant, _: Guid) {}

        fn assert_liveliness(&self, _: Instant, _: Liveliness) {}

        fn poll(&self, _: Instant, _: &mut Vec<TransportEvent>) {}

        fn for_each_endpoint(&self, _: &mut dyn FnMut(&dyn RemoteEndpointRecord)) {}

        fn exceeded_limit(&self) -> Option<(&'static str, usize, usize)> {
            None
        }

        fn close(&self, _: Instant) {}
    }

    impl SampleTransport for NotingTransport {
        fn announce_nodes(&self, _: Instant, _: &ParticipantEntitiesInfo) {}

        fn assert_writer(&self, _: Instant, _: Guid) {}

        fn write(&self, _: Instant, sample: &TransportSample) {
            self.0.lock().push(sample.readers.clone());
        }

        fn flush(&self, _: Instant, _: Guid) {}

        fn hold(&self, _: Guid, _: bool) {}

        fn has_space(&self, _: Guid, _: usize) -> bool {
            true
        }

        fn is_acknowledged(&self, _: Guid) -> bool {
            true
        }
    }

    #[test]
    fn a_transport_that_wants_every_sample_gets_none_that_is_for_another_reader() {
        let guid = |entity| GuidPrefix([1; 12]).with(EntityId::from_bytes([0, 0, entity, 4]));
        let [with_readers, wanting] = [(); 2].map(|()| Arc::new(NotingTransport::default()));
        let mut routes = TransportRoutes::default();
        let transport: Arc<dyn SampleTransport> = with_readers.clone();
        routes.add(&transport, guid(1));
        routes.add(&transport, guid(2));
        let transport: Arc<dyn SampleTransport> = wanting.clone();
        routes.set_wanted(&transport, true);
        let change = CacheChange::new(guid(9), SequenceNumber(1), Bytes::new());
        let carried = |directed_to: Option<Guid>| {
            routes.write(Instant::ZERO, &change, directed_to);
            (with_readers.take(), wanting.take())
        };
        assert_eq!(carried(None), (vec![vec![guid(1), guid(2)]], vec![vec![]]));
        assert_eq!(carried(Some(guid(2))), (vec![vec![guid(2)]], vec![]));
        // Its own reader counts.
        routes.add(&transport, guid(3));
        routes.write(Instant::ZERO, &change, Some(guid(3)));
        assert_eq!(
            (with_readers.take(), wanting.take()),
            (vec![], vec![vec![guid(3)]])
        );
    }
}
