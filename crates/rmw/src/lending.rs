//! Memory for a message before it is written: shared with the readers of other
//! processes if there are any, so that nothing of it is copied for them.

use pteros_rtps::qos::Reliability;
use pteros_rtps::time::Duration;

use crate::core::Core;
use crate::error::PublishError;
use crate::links::{CHUNK_MIN_BYTES, Chunk, Exhausted};
use crate::writer::WriterEndpoint;

impl Core {
    /// Memory for a payload of `bytes` that a user fills before it is published;
    /// `None` where no linked reader would read it there. Waits as
    /// [`Core::publish`] does when there is none.
    ///
    /// # Errors
    /// [`PublishError::TooLarge`], [`PublishError::NoSharedMemory`] as when it
    /// would be published, [`PublishError::ShutDown`].
    pub fn lend(
        &self,
        writer: &WriterEndpoint,
        bytes: usize,
    ) -> Result<Option<Chunk>, PublishError> {
        if self.is_closed() {
            return Err(PublishError::ShutDown);
        }
        writer.check_size(bytes)?;
        self.shared_chunk(writer, bytes, writer.data.qos.max_blocking_time)
    }

    /// Where readers are linked, a payload of some size is written into memory
    /// that they can read. When there is none, a reliable writer waits; for a
    /// best-effort one the links will refuse the message.
    pub(crate) fn shared_chunk(
        &self,
        writer: &WriterEndpoint,
        bytes: usize,
        patience: Duration,
    ) -> Result<Option<Chunk>, PublishError> {
        if writer.linked_count() == 0 || bytes <= CHUNK_MIN_BYTES {
            return Ok(None);
        }
        let Some(links) = self.linking.get() else {
            return Ok(None);
        };
        let warm = self.warm_chunk(links, writer, bytes);
        let mut found = warm.map_or_else(|| links.chunk(bytes), Ok);
        let is_reliable = writer.data.qos.reliability == Reliability::Reliable;
        let start = self.env.now();
        if is_reliable && matches!(found, Err(Exhausted::Full { .. } | Exhausted::System(_))) {
            // What has arrived and was not acknowledged yet holds memory.
            self.hurry(writer);
            self.wait_until(start.after(patience), || {
                found = links.chunk(bytes);
                // Nobody linked is left: then no memory is needed either.
                found.is_ok() || writer.linked_count() == 0
            });
        }
        match found {
            Ok(memory) => Ok(Some(memory)),
            Err(reason) if is_reliable && writer.linked_count() > 0 => {
                if self.is_shut_down() {
                    return Err(PublishError::ShutDown);
                }
                let waited = self.env.now().since(start).as_nanos() / 1_000_000;
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
    /// Whether a payload of so many bytes can be published.
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
