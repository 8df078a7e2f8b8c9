//! Stalled subscriptions of our publishers: logged, and announced with the publisher
//! (SEDP), so that tools on any host can name them.

use std::sync::Arc;

use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::discovery::data::limits::STALLED_READERS;
use pteros_rtps::time::Instant;

use crate::core::discovery::Discovery;
use crate::endpoints::writer::WriterEndpoint;

impl Discovery {
    /// Logs and announces a change of a publisher's stalled subscriptions. Call it
    /// without a lock.
    pub(crate) fn report_stalls(&self, now: Instant, writer: &WriterEndpoint) {
        if !writer.stall_report.take_changed() {
            return;
        }
        writer.stall_report.tell(&writer.data);
        let order = self.endpoints.begin_match();
        let stalled: Vec<_> = {
            let state = writer.state.lock();
            let stalled = state.machine.readers().stalled();
            stalled.take(STALLED_READERS).collect()
        };
        let before = writer.announced();
        if before.stalled_readers == stalled {
            return;
        }
        let after = Arc::new(EndpointData {
            stalled_readers: stalled,
            ..EndpointData::clone(&before)
        });
        writer.policies.set_announced(after.clone());
        self.graph.change_own_endpoint(&after);
        self.transports.announce_endpoint(now, &after);
        drop(order);
        self.serve_participant(now);
    }
}
