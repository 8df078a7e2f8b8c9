//! Undecodable samples of a subscription: received samples that are not messages of its
//! type.
//!
//! They are dropped and counted by publisher. The first one of each publisher is logged
//! ([`describe`]), and the subscription announces the counts (SEDP), so that tools on any
//! host can name them. The reader endpoint owns the counts. It never blocks, logs or
//! sends; `core/undecodable.rs` does.

use std::fmt::Display;
use std::sync::atomic::{AtomicU64, Ordering};

use pteros_dcps::names::{DdsTopic, from_dds_topic};
use pteros_msg::message::ros_type_name;
use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::discovery::data::limits::UNDECODABLE_WRITERS;
use pteros_rtps::id::Guid;
use pteros_rtps::time::Instant;

use crate::endpoints::loss_report::LossReport;
use crate::lock::{Mutex, rank};
use crate::log_limiter::LogLimiter;

/// Samples of one subscription that were not of its type.
#[derive(Default)]
pub(crate) struct UndecodableSamples {
    total: AtomicU64,
    /// Created with the first one.
    by_writer: Mutex<Option<Box<CountsByWriter>>, rank::UndecodableSamples>,
    unannounced: LossReport,
}

struct CountsByWriter {
    /// At most [`UNDECODABLE_WRITERS`]; samples of further ones count in the total.
    counts: Vec<(Guid, u32)>,
    log: LogLimiter,
    /// Lines that could not be logged under the locks of a publisher.
    untold: Vec<String>,
}

impl UndecodableSamples {
    /// Total of all publishers.
    pub(crate) fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// Counts a sample. Returns whether to log it: the first one of a publisher is
    /// logged.
    pub(crate) fn note(&self, now: Instant, writer: Guid) -> bool {
        self.total.fetch_add(1, Ordering::Relaxed);
        self.unannounced.add(1);
        let mut by_writer = self.by_writer.lock();
        let CountsByWriter { counts, log, .. } = &mut **by_writer.get_or_insert_with(|| {
            Box::new(CountsByWriter {
                counts: Vec::new(),
                log: LogLimiter::new(),
                untold: Vec::new(),
            })
        });
        if let Some((_, count)) = counts.iter_mut().find(|(known, _)| *known == writer) {
            *count = count.saturating_add(1);
            return false;
        }
        if counts.len() >= UNDECODABLE_WRITERS {
            return false;
        }
        counts.push((writer, 1));
        log.admits(now)
    }

    /// Drops the count of a removed publisher. The total is kept.
    pub(crate) fn forget_writer(&self, writer: Guid) {
        if self.total() == 0 {
            return;
        }
        if let Some(by_writer) = &mut *self.by_writer.lock() {
            by_writer.counts.retain(|(known, _)| *known != writer);
        }
    }

    /// Keeps a line for [`Self::take_untold`].
    pub(crate) fn tell_later(&self, line: String) {
        if let Some(by_writer) = &mut *self.by_writer.lock() {
            by_writer.untold.push(line);
        }
    }

    /// Takes the lines to log now.
    pub(crate) fn take_untold(&self) -> Vec<String> {
        let mut by_writer = self.by_writer.lock();
        by_writer
            .as_mut()
            .map_or_else(Vec::new, |by| std::mem::take(&mut by.untold))
    }

    /// When [`Self::take_due`] has counts to announce.
    pub(crate) fn due_at(&self) -> Option<Instant> {
        self.unannounced.due_at()
    }

    /// The counts to announce, if they have changed since the last call, which was some
    /// seconds ago.
    pub(crate) fn take_due(&self, now: Instant) -> Option<Vec<(Guid, u32)>> {
        self.unannounced.take_due(now)?;
        let by_writer = self.by_writer.lock();
        Some(
            by_writer
                .as_ref()
                .map_or_else(Vec::new, |by| by.counts.clone()),
        )
    }
}

/// The log line for the first sample of a publisher.
pub(crate) fn describe(reader: &EndpointData, writer: Guid, reason: &dyn Display) -> String {
    let type_name = ros_type_name(&reader.type_name);
    let type_name = type_name.as_deref().unwrap_or(&reader.type_name);
    let not_of_type = format!("is not of type {type_name}: {reason} (counted, not logged again)");
    match from_dds_topic(&reader.topic) {
        DdsTopic::Topic(topic) | DdsTopic::NonRos(topic) => format!(
            "topic \"{topic}\": our subscription dropped a message of publisher {writer}, which \
             {not_of_type}; compare the type hashes with `pteros topic info -v {topic}`"
        ),
        DdsTopic::ServiceRequest(service) => format!(
            "service \"{service}\": our server dropped a request of client {writer}, which \
             {not_of_type}; the client gets no response, for ROS 2 has none that tells an error; \
             compare the client's interface with ours"
        ),
        DdsTopic::ServiceReply(service) => format!(
            "service \"{service}\": our client dropped a response of server {writer}, which \
             {not_of_type}; compare the server's interface with ours"
        ),
    }
}

/// The log line of a publisher about messages of it that a subscription of another
/// process has dropped.
pub(crate) fn describe_refused(writer: &EndpointData, reader: Guid, count: u32) -> String {
    let messages = |noun: &str| {
        let plural = if count == 1 { "" } else { "s" };
        format!("{count} {noun}{plural}")
    };
    match from_dds_topic(&writer.topic) {
        DdsTopic::Topic(topic) | DdsTopic::NonRos(topic) => format!(
            "topic \"{topic}\": subscription {reader} of another process dropped {} of our \
             publisher, because they do not decode as its type (`pteros topic why {topic}` names \
             both; not logged again)",
            messages("message")
        ),
        DdsTopic::ServiceRequest(service) => format!(
            "service \"{service}\": server {reader} dropped {} of our client, which do not decode \
             as its type: such calls get no response; compare the server's interface with ours \
             (not logged again)",
            messages("request")
        ),
        DdsTopic::ServiceReply(service) => format!(
            "service \"{service}\": client {reader} dropped {} of our server, which do not decode \
             as its type; compare the client's interface with ours (not logged again)",
            messages("response")
        ),
    }
}

#[cfg(test)]
mod tests {
    use pteros_rtps::id::{EntityId, GuidPrefix};
    use pteros_rtps::qos::EndpointQos;

    use super::*;

    fn writer(number: u8) -> Guid {
        GuidPrefix([1; 12]).with(EntityId::new([0, 0, number], 3))
    }

    fn at(secs: u64) -> Instant {
        Instant::from_nanos(secs * 1_000_000_000)
    }

    #[test]
    fn the_first_of_each_publisher_is_told_and_all_are_counted() {
        let samples = UndecodableSamples::default();
        assert_eq!((samples.total(), samples.due_at()), (0, None));
        samples.forget_writer(writer(1));
        assert!(samples.note(at(1), writer(1)));
        assert!(!samples.note(at(1), writer(1)));
        assert!(samples.note(at(1), writer(2)));
        assert_eq!(
            samples.take_due(at(1)),
            Some(vec![(writer(1), 2), (writer(2), 1)])
        );
        assert_eq!(samples.take_due(at(1)), None, "nothing new");
        assert!(!samples.note(at(2), writer(2)));
        assert_eq!(samples.take_due(at(2)), None, "announced a second ago");
        samples.forget_writer(writer(1));
        assert_eq!(samples.take_due(at(9)), Some(vec![(writer(2), 2)]));
        assert_eq!(samples.total(), 4);
    }

    #[test]
    fn a_flood_of_publishers_takes_a_bounded_list_and_few_lines() {
        let samples = UndecodableSamples::default();
        let told = |number: u8| usize::from(samples.note(at(1), writer(number)));
        assert_eq!((0..=255).map(told).sum::<usize>(), UNDECODABLE_WRITERS);
        assert_eq!(samples.total(), 256);
        let counts = samples.take_due(at(1)).unwrap();
        assert_eq!(counts.len(), UNDECODABLE_WRITERS);
        // Endpoints that are created and removed cause few lines as well.
        let mut lines = 0;
        for number in 0..=255 {
            (0..=255).for_each(|known| samples.forget_writer(writer(known)));
            lines += usize::from(samples.note(at(2), writer(number)));
        }
        assert!(lines < 10, "{lines} lines");
    }

    #[test]
    fn a_line_says_what_was_dropped_and_whose_it_is() {
        let line = |topic: &str| {
            let reader = GuidPrefix([2; 12]).with(EntityId::new([0, 0, 1], 4));
            let data = EndpointData::new(
                reader,
                topic,
                "std_msgs::msg::dds_::String_",
                EndpointQos::default(),
            );
            let refused = EndpointData {
                guid: writer(1),
                ..data.clone()
            };
            (
                describe(&data, writer(1), &"payload ends early"),
                describe_refused(&refused, reader, 2),
            )
        };
        let (ours, theirs) = line("rt/chatter");
        assert!(
            ours.starts_with("topic \"/chatter\": our subscription"),
            "{ours}"
        );
        assert!(
            ours.contains("std_msgs/msg/String: payload ends early"),
            "{ours}"
        );
        assert!(theirs.contains("2 messages of our publisher"), "{theirs}");
        let (ours, theirs) = line("rq/addRequest");
        assert!(ours.starts_with("service \"/add\": our server"), "{ours}");
        assert!(theirs.contains("2 requests of our client"), "{theirs}");
        let (ours, theirs) = line("rr/addReply");
        assert!(ours.starts_with("service \"/add\": our client"), "{ours}");
        assert!(theirs.contains("2 responses of our server"), "{theirs}");
    }
}
