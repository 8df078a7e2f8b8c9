//! Sends the pending replies of a server, for callers without an executor of `pteros`:
//! the rmw plug-in and the Python module.

use std::sync::{Arc, Weak};

use super::ServiceServer;
use crate::core::Core;
use crate::ready_queue::{ReadyQueue, Task};

/// Task of a server's reply writer: when a client's reader matches, sends the pending
/// replies for it. It drains the events of the writer. It runs in the wait to whose queue
/// it is attached, and blocks as a publication does.
pub struct DeferredReplies {
    core: Arc<Core>,
    server: Arc<ServiceServer>,
}

impl DeferredReplies {
    /// The task of a server, attached to no queue.
    pub fn new(core: &Arc<Core>, server: &Arc<ServiceServer>) -> Arc<Self> {
        let replies = Arc::new(Self {
            core: core.clone(),
            server: server.clone(),
        });
        let task: Weak<Self> = Arc::downgrade(&replies);
        server.replies.events.slot.set_task(task);
        replies
    }

    /// Moves the task to a queue. Pending work runs in its next wait. A task has one
    /// queue: a server in two waits is served by the one that attached last. Returns
    /// whether another queue had it.
    pub fn attach(&self, queue: &Arc<ReadyQueue>) -> bool {
        let events = &self.server.replies.events;
        let is_pending = || !events.is_empty() || self.server.has_pending_replies();
        events.slot.attach(Some(queue.clone()), is_pending)
    }

    /// Moves the task to no queue, unless it was moved from `queue` meanwhile.
    pub fn detach(&self, queue: &Arc<ReadyQueue>) {
        self.server.replies.events.slot.detach(queue);
    }
}

impl Task for DeferredReplies {
    fn run(&self) {
        let events = &self.server.replies.events;
        events.slot.begin_take();
        while events.take().is_some() {}
        if self.server.has_pending_replies() {
            self.server.flush(&self.core);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CoreOptions;
    use crate::core::matching::EndpointSpec;
    use crate::endpoints::reader::DeliveryForm;
    use crate::outbound::SerializedPayload;
    use crate::platform::SystemPlatform;
    use crate::service::ServiceSpec;
    use bytes::Bytes;
    use pteros_rtps::qos::{EndpointQos, History};

    fn spec(topic: &str) -> EndpointSpec {
        EndpointSpec {
            topic: topic.into(),
            type_name: "Anything".into(),
            ..EndpointSpec::default()
        }
    }

    fn message() -> SerializedPayload {
        SerializedPayload::new(Bytes::from_static(&[0, 1, 0, 0, 1, 0, 0, 0]))
    }

    /// Opens a context with a server of this history, and sends it `count` requests of a
    /// client whose reader of replies is not discovered yet. It replies to each. Returns how
    /// many replies the reader gets once it is discovered, and the count of lost ones.
    fn replies_to_a_late_reader(domain_id: u32, history: History, count: usize) -> (u64, u64) {
        let options = CoreOptions {
            domain_id,
            local_only: true,
            multicast: false,
            ..CoreOptions::default()
        };
        let core = Core::open(Arc::new(SystemPlatform::new()), options).expect("open");
        let [requests, replies] = ["rq/late", "rr/late"].map(|topic| EndpointSpec {
            qos: EndpointQos {
                history,
                ..EndpointQos::default()
            },
            ..spec(topic)
        });
        let of_server = ServiceSpec {
            requests: requests.clone(),
            replies: replies.clone(),
            type_hash: None,
        };
        let server = core.create_service_server(of_server, DeliveryForm::Bytes);
        let server = Arc::new(server.expect("a server"));
        let deferred = DeferredReplies::new(&core, &server);
        let queue = core.ready_queue();
        deferred.attach(&queue);
        // The client's writer is discovered before its reader.
        let writer = core.create_writer(requests).expect("a writer");
        for _ in 0..count {
            let now = core.platform.wall_clock();
            core.publish(&writer, &mut message(), now)
                .expect("a request");
            let request = server.take_request(&core).expect("the request");
            server
                .reply(&core, &request.id, &mut message())
                .expect("a reply");
        }
        assert!(server.has_pending_replies());
        let all = EndpointSpec {
            qos: EndpointQos {
                history: History::KeepAll,
                ..EndpointQos::default()
            },
            ..replies
        };
        let reader = core.create_reader(all, DeliveryForm::Bytes, false);
        let reader = reader.expect("a reader");
        assert!(!reader.has_samples());
        while let Some(task) = queue.pop() {
            task.run();
        }
        assert!(!server.has_pending_replies());
        (reader.counts().received, server.counts().unanswerable)
    }

    /// Regression: a launch waited without end for the response of a container.
    #[test]
    fn a_reply_is_sent_when_its_reader_is_discovered_without_a_further_request() {
        assert_eq!(
            replies_to_a_late_reader(189, History::KeepLast(1), 1),
            (1, 0)
        );
    }

    /// Regression: a server with KEEP_ALL dropped all but 64 of the replies to a client that
    /// came back after an outage with many calls.
    #[test]
    fn a_server_that_keeps_all_keeps_all_replies_until_their_reader_is_discovered() {
        assert_eq!(
            replies_to_a_late_reader(190, History::KeepAll, 300),
            (300, 0)
        );
    }

    #[test]
    fn a_server_of_limited_depth_counts_the_replies_that_it_dropped() {
        assert_eq!(
            replies_to_a_late_reader(191, History::KeepLast(100), 70),
            (64, 6)
        );
    }
}
