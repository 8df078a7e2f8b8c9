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
    /// The wire gets every sample, matched readers or not.
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
