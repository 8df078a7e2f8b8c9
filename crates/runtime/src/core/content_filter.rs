//! Content filters: replaces the filter of a subscription, and counts samples of this
//! process that it rejects.

use std::sync::Arc;

use pteros_rtps::discovery::data::EndpointData;

use crate::core::Core;
use crate::endpoints::content_filter::FilterSpec;
use crate::endpoints::reader::ReaderEndpoint;
use crate::error::EndpointError;

impl Core {
    /// Replaces the content filter of a subscription; a blank expression removes
    /// it.
    ///
    /// Queued samples are kept. Samples that remote publishers filtered before they
    /// received the change are not sent afterwards.
    ///
    /// # Errors
    /// The expression or a parameter is invalid, or the type is unknown. The
    /// previous filter stays in force.
    pub fn set_content_filter(
        &self,
        reader: &ReaderEndpoint,
        spec: &FilterSpec,
    ) -> Result<(), EndpointError> {
        let filter = reader.filter.build(&reader.data.topic, spec)?;
        let now = self.platform.now();
        let order = self.discovery().endpoints.begin_match();
        let mut machine = reader.machine.lock();
        machine.set_content_filter(filter.clone());
        reader.filter.set(filter.clone());
        drop(machine);
        self.discovery()
            .transports
            .note_content_filter(reader.data.guid, filter.as_ref());
        let announced = Arc::new(EndpointData {
            content_filter: filter.map(|filter| filter.property().clone()),
            ..(*reader.announced()).clone()
        });
        *reader.announced.lock() = announced.clone();
        self.discovery().graph.change_own_endpoint(&announced);
        self.discovery()
            .transports
            .announce_endpoint(now, &announced);
        drop(order);
        self.discovery().serve_participant(now);
        Ok(())
    }
}
