//! Decoding of received samples: drops and counts each sample that is not of its reader's
//! type.
//!
//! Matching does not prove that a sender's data has the announced type. So a sample that
//! does not decode is no error of the receiving program: it is dropped and counted, and
//! the next one is taken. The layers above provide only the decoder of their type.

use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::id::Guid;
use pteros_rtps::time::Instant;

use crate::core::discovery::Discovery;
use crate::core::take_path::TakePath;
use crate::endpoints::Endpoints;
use crate::endpoints::reader::ReaderEndpoint;
use crate::endpoints::undecodable::{describe, describe_refused};
use crate::sample::QueuedSample;

impl Endpoints {
    /// Logs that a reader of another process drops the samples of a local writer: the
    /// publisher's side of [`TakePath::note_undecodable`](crate::TakePath::note_undecodable). Once per writer.
    pub(crate) fn tell_refused(&self, remote: &EndpointData) {
        for (writer, count) in &remote.undecodable {
            if writer.prefix == self.prefix
                && let Some(writer) = self.writer(writer.entity)
                && writer.data.topic == remote.topic
                && !writer.told_undecodable.swap(true, Ordering::Relaxed)
            {
                tracing::warn!(
                    publisher = %writer.data.guid,
                    "{}", describe_refused(&writer.data, remote.guid, *count)
                );
            }
        }
    }
}

impl TakePath {
    /// Takes a reader's oldest sample that `decode` accepts. Never blocks on I/O.
    ///
    /// A refused sample is dropped, see [`TakePath::note_undecodable`](crate::TakePath::note_undecodable). `decode` runs under
    /// no lock. It returns its own errors as a part of `T`.
    pub fn take_decoded<T, E: Display>(
        &self,
        reader: &ReaderEndpoint,
        mut decode: impl FnMut(QueuedSample) -> Result<T, E>,
    ) -> Option<T> {
        loop {
            let item = self.take(reader)?;
            let publisher = item.meta.publisher;
            match decode(item) {
                Ok(decoded) => return Some(decoded),
                Err(reason) => self.note_undecodable(reader, publisher, &reason),
            }
        }
    }

    /// Counts a sample that is not of its reader's type
    /// ([`ReaderCounts::undecodable`](crate::reader::ReaderCounts::undecodable)). The
    /// first one of each publisher is logged, and the reader announces the counts. For
    /// samples that were not decoded by [`TakePath::take_decoded`](crate::TakePath::take_decoded).
    pub fn note_undecodable(&self, reader: &ReaderEndpoint, publisher: Guid, reason: &dyn Display) {
        let now = self.platform.now();
        if reader.losses.undecodable.note(now, publisher) {
            tracing::warn!(
                subscription = %reader.data.guid,
                "{}", describe(&reader.data, publisher, reason)
            );
        }
        // The driver announces it, because a caller may hold its own locks.
        reader.schedule(&self.scheduler, &reader.machine.lock());
    }
}

impl Discovery {
    /// Announces the counts of undecodable samples when due, and logs deferred lines.
    /// Call it without a lock.
    pub(crate) fn announce_undecodable(&self, now: Instant, reader: &ReaderEndpoint) {
        let Some(counts) = reader.losses.undecodable.take_due(now) else {
            return;
        };
        for line in reader.losses.undecodable.take_untold() {
            tracing::warn!(subscription = %reader.data.guid, "{line}");
        }
        let order = self.endpoints.begin_match();
        let before = reader.announced();
        if before.undecodable == counts || self.endpoints.reader(before.guid.entity).is_none() {
            return;
        }
        let after = Arc::new(EndpointData {
            undecodable: counts,
            ..EndpointData::clone(&before)
        });
        *reader.announced.lock() = after.clone();
        self.graph.change_own_endpoint(&after);
        self.transports.announce_endpoint(now, &after);
        drop(order);
        self.serve_participant(now);
    }
}
