//! Opens the stores of transient and persistent writers.

use std::sync::Arc;

use pteros_net::file_size_limit;
use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::qos::Durability;
use pteros_store::{Safety, Store, StoreError, StoreSpec, StoredSample, default_name};

use crate::core::Core;
use crate::endpoints::durable_store::{is_durable, retention};
use crate::endpoints::event::{EndpointEvent, EndpointEvents};

impl Core {
    /// Opens the store of a durable writer. Returns its samples, oldest first.
    /// Blocks for disk I/O.
    pub(crate) fn open_store(
        &self,
        data: &EndpointData,
        name: Option<String>,
        events: &Arc<EndpointEvents>,
    ) -> Result<Option<(Store, Vec<StoredSample>)>, StoreError> {
        if !is_durable(&data.qos) {
            return Ok(None);
        }
        let options = &self.options.store;
        let spec = StoreSpec {
            folder: options.folder.clone().ok_or(StoreError::NoFolder)?,
            name: name.unwrap_or_else(|| default_name(self.options.domain_id, "", &data.topic)),
            topic: data.topic.clone(),
            type_name: data.type_name.clone(),
            retention: retention(&data.qos, options.bytes_max),
            safety: match data.qos.durability {
                Durability::Persistent => Safety::Disk,
                _ => Safety::Process,
            },
            file_bytes_max: file_size_limit(),
        };
        let (events, topic) = (events.clone(), data.topic.clone());
        let on_loss = move |loss: pteros_store::Loss| {
            tracing::warn!("topic {topic:?}: {}", loss.reason);
            events.push(EndpointEvent::NotStored {
                total: loss.total,
                queued: loss.waiting,
                reason: loss.reason,
            });
        };
        self.platform.open_store(spec, Box::new(on_loss)).map(Some)
    }
}
