//! Wire routes: the remote readers of a writer that further wires reach.
//!
//! Part of the writer's state, under its lock. RTPS readers are not among them.

use std::sync::Arc;

use pteros_rtps::history::CacheChange;
use pteros_rtps::id::Guid;
use pteros_rtps::time::Instant;

use super::{SampleWire, WireSample};

/// The matched readers on one wire.
struct WireRoute {
    wire: Arc<dyn SampleWire>,
    readers: Vec<Guid>,
    /// The wire needs every sample, with or without matched readers.
    is_wanted: bool,
}

/// See the module documentation.
#[derive(Default)]
pub(crate) struct WireRoutes(Vec<WireRoute>);

impl WireRoutes {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The matched readers.
    pub(crate) fn readers(&self) -> impl Iterator<Item = Guid> {
        self.0
            .iter()
            .flat_map(|route| route.readers.iter().copied())
    }

    /// The number of routes that a sample may take: matched readers, and wires that
    /// want every sample.
    pub(crate) fn count(&self) -> usize {
        let wanted = self.0.iter().filter(|route| route.is_wanted).count();
        self.readers().count() + wanted
    }

    /// Adds a matched reader.
    pub(crate) fn add(&mut self, wire: &Arc<dyn SampleWire>, reader: Guid) {
        self.route(wire).readers.push(reader);
    }

    /// Whether a wire gets every sample, matched readers or not.
    pub(crate) fn set_wanted(&mut self, wire: &Arc<dyn SampleWire>, is_wanted: bool) {
        self.route(wire).is_wanted = is_wanted;
        self.drop_unused();
    }

    fn route(&mut self, wire: &Arc<dyn SampleWire>) -> &mut WireRoute {
        let known = self.0.iter().position(|r| Arc::ptr_eq(&r.wire, wire));
        let at = known.unwrap_or_else(|| {
            self.0.push(WireRoute {
                wire: wire.clone(),
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

    /// Queues a sample on every wire, for all its readers there or one.
    pub(crate) fn write(&self, now: Instant, change: &CacheChange, directed_to: Option<Guid>) {
        for route in &self.0 {
            let is_addressed = |reader: &&Guid| directed_to.is_none_or(|only| only == **reader);
            let readers: Vec<Guid> = route.readers.iter().filter(is_addressed).copied().collect();
            let is_for_all = route.is_wanted && directed_to.is_none();
            if !readers.is_empty() || is_for_all {
                let change = change.clone();
                route.wire.write(now, &WireSample { change, readers });
            }
        }
    }

    /// Asserts a writer's liveliness on every wire.
    pub(crate) fn assert_writer(&self, now: Instant, writer: Guid) {
        for route in &self.0 {
            route.wire.assert_writer(now, writer);
        }
    }

    /// The wires, to flush them without the writer's lock.
    pub(crate) fn wires(&self) -> Vec<Arc<dyn SampleWire>> {
        self.0.iter().map(|route| route.wire.clone()).collect()
    }

    /// Whether every wire has space for so many bytes of a KEEP_ALL writer.
    pub(crate) fn have_space(&self, writer: Guid, bytes: usize) -> bool {
        self.0.iter().all(|r| r.wire.has_space(writer, bytes))
    }

    /// Whether every wire has delivered everything to reliable readers.
    pub(crate) fn are_acknowledged(&self, writer: Guid) -> bool {
        self.0.iter().all(|r| r.wire.is_acknowledged(writer))
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

    use super::super::{RemoteEndpointRecord, Wire, WireEvent};
    use super::*;
    use crate::lock::{Mutex, rank};

    /// A wire that notes the readers of what it carries.
    #[derive(Default)]
    struct NotingWire(Mutex<Vec<Vec<Guid>>, rank::WireHolds>);

    impl NotingWire {
        fn take(&self) -> Vec<Vec<Guid>> {
            std::mem::take(&mut self.0.lock())
        }
    }

    impl Wire for NotingWire {
        fn name(&self) -> &'static str {
            "noting"
        }

        fn announce(&self, _: Instant, _: &Arc<EndpointData>) {}

        fn withdraw(&self, _: Instant, _: Guid) {}

        fn assert_liveliness(&self, _: Instant, _: Liveliness) {}

        fn poll(&self, _: Instant, _: &mut Vec<WireEvent>) {}

        fn for_each_endpoint(&self, _: &mut dyn FnMut(&dyn RemoteEndpointRecord)) {}

        fn exceeded_limit(&self) -> Option<(&'static str, usize, usize)> {
            None
        }

        fn close(&self, _: Instant) {}
    }

    impl SampleWire for NotingWire {
        fn announce_nodes(&self, _: Instant, _: &ParticipantEntitiesInfo) {}

        fn assert_writer(&self, _: Instant, _: Guid) {}

        fn write(&self, _: Instant, sample: &WireSample) {
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
    fn a_wire_that_wants_every_sample_gets_none_that_is_for_another_reader() {
        let guid = |entity| GuidPrefix([1; 12]).with(EntityId::from_bytes([0, 0, entity, 4]));
        let [with_readers, wanting] = [(); 2].map(|()| Arc::new(NotingWire::default()));
        let mut routes = WireRoutes::default();
        let wire: Arc<dyn SampleWire> = with_readers.clone();
        routes.add(&wire, guid(1));
        routes.add(&wire, guid(2));
        let wire: Arc<dyn SampleWire> = wanting.clone();
        routes.set_wanted(&wire, true);
        let change = CacheChange::new(guid(9), SequenceNumber(1), Bytes::new());
        let carried = |directed_to: Option<Guid>| {
            routes.write(Instant::ZERO, &change, directed_to);
            (with_readers.take(), wanting.take())
        };
        assert_eq!(carried(None), (vec![vec![guid(1), guid(2)]], vec![vec![]]));
        assert_eq!(carried(Some(guid(2))), (vec![vec![guid(2)]], vec![]));
        // Its own reader counts.
        routes.add(&wire, guid(3));
        routes.write(Instant::ZERO, &change, Some(guid(3)));
        assert_eq!(
            (with_readers.take(), wanting.take()),
            (vec![], vec![vec![guid(3)]])
        );
    }
}
