//! Loans of message memory (loaned message).
//!
//! With readers in other processes the memory is a shared-memory chunk, so that
//! nothing is copied for them (zero-copy).

use pteros_rtps::qos::Reliability;
use pteros_rtps::time::Duration;

use crate::core::Core;
use crate::endpoints::writer::WriterEndpoint;
use crate::error::PublishError;
use crate::shm_transport::{CHUNK_MIN_BYTES, Chunk, PoolExhausted};

impl Core {
    /// Loans memory for a payload of `bytes`, which a user fills before publishing.
    ///
    /// `None` if no connected reader would read it there. Blocks as
    /// [`Core::publish`] does when the chunk pool is empty.
    ///
    /// # Errors
    /// [`PublishError::TooLarge`], [`PublishError::NoSharedMemory`] as in
    /// publishing, [`PublishError::ShutDown`].
    pub fn loan(
        &self,
        writer: &WriterEndpoint,
        bytes: usize,
    ) -> Result<Option<Chunk>, PublishError> {
        if self.scheduler.is_closed() {
            return Err(PublishError::ShutDown);
        }
        writer.check_size(bytes)?;
        self.chunk_for_payload(writer, bytes, writer.data.qos.max_blocking_time)
    }

    /// A chunk for a payload, where readers are connected. When none is free, a
    /// reliable writer blocks; a best-effort message will be refused by its
    /// connections.
    pub(crate) fn chunk_for_payload(
        &self,
        writer: &WriterEndpoint,
        bytes: usize,
        budget: Duration,
    ) -> Result<Option<Chunk>, PublishError> {
        if writer.connected_count() == 0 || bytes <= CHUNK_MIN_BYTES {
            return Ok(None);
        }
        let Some(shm) = self.discovery().shm_connections.get() else {
            return Ok(None);
        };
        let prefaulted = self.prefaulted_chunk(shm, writer, bytes);
        let mut chunk_result = prefaulted.map_or_else(|| shm.chunk(bytes), Ok);
        let is_reliable = writer.data.qos.reliability == Reliability::Reliable;
        let start = self.platform.now();
        if is_reliable
            && matches!(
                chunk_result,
                Err(PoolExhausted::Full { .. } | PoolExhausted::System(_))
            )
        {
            // Samples that were received but not acknowledged yet hold chunks.
            self.discovery().publishing.request_acknowledgement(writer);
            self.driver.wait_until(start.after(budget), || {
                chunk_result = shm.chunk(bytes);
                // If no connected reader is left, no chunk is needed either.
                chunk_result.is_ok() || writer.connected_count() == 0
            });
        }
        match chunk_result {
            Ok(memory) => Ok(Some(memory)),
            Err(reason) if is_reliable && writer.connected_count() > 0 => {
                if self.scheduler.is_shut_down() {
                    return Err(PublishError::ShutDown);
                }
                let waited = self.platform.now().since(start).as_nanos() / 1_000_000;
                Err(PublishError::NoSharedMemory {
                    topic: writer.data.topic.clone(),
                    reason,
                    waited_ms: u64::try_from(waited).unwrap_or(0),
                })
            }
            Err(_) => Ok(None),
        }
    }
}

impl WriterEndpoint {
    /// Checks whether a payload of so many bytes can be published.
    ///
    /// # Errors
    /// [`PublishError::TooLarge`].
    pub fn check_size(&self, bytes: usize) -> Result<(), PublishError> {
        if bytes <= self.sample_bytes_max {
            return Ok(());
        }
        Err(PublishError::TooLarge {
            topic: self.data.topic.clone(),
            size: bytes,
            max: self.sample_bytes_max,
        })
    }
}
