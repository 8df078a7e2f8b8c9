//! Service route: serves a server of one side on the other side.
//!
//! Requests and replies are forwarded unchanged. A request is open until its reply
//! arrives, its server is removed, its timeout ends, or too many others are open. Without
//! a reply it ends silently. When the server is removed, the bridge's server is removed
//! as well, and clients see that.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use pteros_rtps::time::{Duration, Instant};
use pteros_runtime::EndpointSpec;
use pteros_runtime::error::EndpointError;
use pteros_runtime::outbound::SerializedPayload;
use pteros_runtime::reader::DeliveryForm;
use pteros_runtime::ready_queue::Task;
use pteros_runtime::sample::SampleBody;
use pteros_runtime::service::{
    CALLS_MAX, CallId, DeferredReplies, RequestId, ServiceClient, ServiceServer, ServiceSpec,
};

use super::counters::RouteCounters;
use super::network::{Changed, MatchWatch, Network};
use super::plan::{ServiceKey, WantedService, service_qos};
use crate::bridge_path::BridgePath;
use crate::key::{RESULT_SERVICE_END, reply_names, request_names};

/// Timeout of a request, as in rmw_zenoh_cpp.
const CALL_TIMEOUT: Duration = Duration::from_secs(600);
/// Timeout for the result of an action, which is sent when the action ends.
const RESULT_TIMEOUT: Duration = Duration::from_secs(24 * 3600);
/// Requests or replies handled in one task.
const PER_TURN: usize = 16;

/// Client on one side and server on the other. Dropping it ends both.
pub struct ServiceRoute {
    here: Arc<Network>,
    there: Arc<Network>,
    wanted: WantedService,
    own: BridgePath,
    type_name: String,
    calls: Arc<Calls>,
    changed: Arc<Changed>,
    replies: Arc<ReplyTask>,
    _watch: Arc<MatchWatch>,
    serving: Option<Serving>,
}

/// Server on the other side. It exists once the real server is matched.
struct Serving {
    server: Arc<ServiceServer>,
    _requests: Arc<RequestTask>,
    _deferred: Arc<DeferredReplies>,
}

/// Client and its requests without a reply.
struct Calls {
    client: ServiceClient,
    open: Mutex<BTreeMap<CallId, OpenCall>>,
    timeout: Duration,
    counters: Arc<RouteCounters>,
}

struct OpenCall {
    request: RequestId,
    server: Arc<ServiceServer>,
    until: Instant,
}

impl ServiceRoute {
    /// Creates the client. [`ServiceRoute::update`] creates the server.
    ///
    /// # Errors
    /// See [`EndpointError`].
    pub fn new(
        here: &Arc<Network>,
        there: &Arc<Network>,
        own: &BridgePath,
        (key, wanted): (&ServiceKey, &WantedService),
        counters: &Arc<RouteCounters>,
        changed: &Arc<Changed>,
    ) -> Result<Self, EndpointError> {
        let spec = service_spec(&key.name, &key.type_name, wanted, own);
        let client = here.core.create_service_client(spec, DeliveryForm::Bytes)?;
        let is_result = key.name.ends_with(RESULT_SERVICE_END);
        let calls = Arc::new(Calls {
            client,
            open: Mutex::default(),
            timeout: if is_result {
                RESULT_TIMEOUT
            } else {
                CALL_TIMEOUT
            },
            counters: counters.clone(),
        });
        let watch = MatchWatch::new(here, &calls.client.requests.events, changed);
        let replies = Arc::new(ReplyTask {
            here: here.clone(),
            there: there.clone(),
            calls: calls.clone(),
        });
        let reader = &calls.client.replies;
        let task: Weak<ReplyTask> = Arc::downgrade(&replies);
        reader.slot.set_task(task);
        let queue = Some(here.queue.clone());
        reader.slot.attach(queue, || reader.has_samples());
        here.attach(own, &calls.client.replies.announced());
        here.attach(own, &calls.client.requests.announced());
        Ok(Self {
            here: here.clone(),
            there: there.clone(),
            wanted: wanted.clone(),
            own: own.clone(),
            type_name: key.type_name.clone(),
            calls,
            changed: changed.clone(),
            replies,
            _watch: watch,
            serving: None,
        })
    }

    /// Serves the other side once the real server is matched. Ends requests whose server
    /// is removed or whose timeout has ended.
    ///
    /// # Errors
    /// See [`EndpointError`].
    pub fn update(&mut self) -> Result<(), EndpointError> {
        // Replies that arrived before their server was removed count.
        for _ in 0..CALLS_MAX {
            if !self.replies.forward_next() {
                break;
            }
        }
        self.calls.end_abandoned(self.here.core.platform.now());
        if self.serving.is_some() || self.calls.client.server_count(&self.here.core) == 0 {
            return Ok(());
        }
        let there = &self.there;
        let path = &self.wanted.path;
        let name = &self.wanted.name_there;
        let spec = service_spec(name, &self.type_name, &self.wanted, path);
        let server = there
            .core
            .create_service_server(spec, DeliveryForm::Bytes)?;
        let server = Arc::new(server);
        let deferred = DeferredReplies::new(&there.core, &server);
        deferred.attach(&there.queue);
        let requests = Arc::new(RequestTask {
            here: self.here.clone(),
            there: there.clone(),
            server: server.clone(),
            calls: self.calls.clone(),
            changed: self.changed.clone(),
        });
        let reader = &server.requests;
        let task: Weak<RequestTask> = Arc::downgrade(&requests);
        reader.slot.set_task(task);
        let queue = Some(there.queue.clone());
        reader.slot.attach(queue, || reader.has_samples());
        there.attach(path, &server.replies.announced());
        there.attach(path, &server.requests.announced());
        self.serving = Some(Serving {
            server,
            _requests: requests,
            _deferred: deferred,
        });
        Ok(())
    }
}

impl Drop for ServiceRoute {
    fn drop(&mut self) {
        if let Some(serving) = self.serving.take() {
            let server = &serving.server;
            self.there
                .detach(&self.wanted.path, server.requests.data.guid);
            self.there.detach(&self.wanted.path, server.replies.guid());
            self.there.core.remove_service_server(server);
        }
        let client = &self.calls.client;
        self.here.detach(&self.own, client.requests.guid());
        self.here.detach(&self.own, client.replies.data.guid);
        self.here.core.remove_service_client(client);
        let open = std::mem::take(&mut *self.calls.open.lock());
        self.calls.counters.note_failed(open.len());
    }
}

fn service_spec(
    name: &str,
    type_name: &str,
    wanted: &WantedService,
    path: &BridgePath,
) -> ServiceSpec {
    let spec = |(topic, type_name): (String, String)| EndpointSpec {
        topic,
        type_name,
        qos: service_qos(wanted.hash, path),
        serialize_only: true,
        ..EndpointSpec::default()
    };
    ServiceSpec {
        requests: spec(request_names(name, type_name)),
        replies: spec(reply_names(name, type_name)),
        type_hash: wanted.hash,
    }
}

impl Calls {
    /// Ends requests that will not get a reply.
    fn end_abandoned(&self, now: Instant) {
        let mut open = self.open.lock();
        let before = open.len();
        for call in self.client.close_abandoned() {
            open.remove(&call);
        }
        open.retain(|call, of| {
            let stays = of.until > now;
            if !stays {
                self.client.close_call(*call);
            }
            stays
        });
        self.counters.note_failed(before.saturating_sub(open.len()));
    }

    /// Ends the oldest request if another one does not fit.
    fn make_room(&self, open: &mut BTreeMap<CallId, OpenCall>) {
        if open.len() < CALLS_MAX {
            return;
        }
        if let Some((oldest, _)) = open.pop_first() {
            self.client.close_call(oldest);
            self.counters.note_failed(1);
        }
    }
}

/// Forwards requests, on the thread of the clients' side.
struct RequestTask {
    here: Arc<Network>,
    there: Arc<Network>,
    server: Arc<ServiceServer>,
    calls: Arc<Calls>,
    changed: Arc<Changed>,
}

impl RequestTask {
    fn forward_next(&self) -> bool {
        let Some(request) = self.server.take_request(&self.there.core) else {
            return false;
        };
        let SampleBody::Serialized(payload) = request.item.body else {
            return true;
        };
        let core = &self.here.core;
        let meta = &request.item.meta;
        let stamp = meta.source.unwrap_or(meta.reception);
        // Held while sending, because the reply may arrive before the call is noted.
        let mut open = self.calls.open.lock();
        self.calls.make_room(&mut open);
        let mut message = SerializedPayload::new(payload);
        match self.calls.client.send(core, &mut message, stamp) {
            Ok(call) => {
                let until = core.platform.now().after(self.calls.timeout);
                let call_of = OpenCall {
                    request: request.id,
                    server: self.server.clone(),
                    until,
                };
                open.insert(call, call_of);
            }
            Err(error) => {
                drop(open);
                self.calls.counters.note_failed(1);
                self.changed.set();
                tracing::debug!(topic = %self.server.requests.data.topic, "request not forwarded: {error}");
            }
        }
        true
    }
}

impl Task for RequestTask {
    fn run(&self) {
        let requests = &self.server.requests;
        requests.slot.begin_take();
        for _ in 0..PER_TURN {
            if !self.forward_next() {
                return;
            }
        }
        if requests.has_samples() {
            requests.slot.mark_ready();
        }
    }
}

/// Forwards replies, on the thread of the server's side.
struct ReplyTask {
    here: Arc<Network>,
    there: Arc<Network>,
    calls: Arc<Calls>,
}

impl ReplyTask {
    fn forward_next(&self) -> bool {
        let Some(reply) = self.calls.client.take_reply(&self.here.core) else {
            return false;
        };
        let Some(call) = self.calls.open.lock().remove(&reply.call) else {
            return true;
        };
        let SampleBody::Serialized(payload) = reply.message.body else {
            return true;
        };
        let mut message = SerializedPayload::new(payload);
        let sent = call
            .server
            .reply(&self.there.core, &call.request, &mut message);
        match sent {
            Ok(()) => self.calls.counters.note_forwarded(),
            Err(error) => {
                self.calls.counters.note_failed(1);
                tracing::debug!(topic = %call.server.replies.data.topic, "reply not forwarded: {error}");
            }
        }
        true
    }
}

impl Task for ReplyTask {
    fn run(&self) {
        let replies = &self.calls.client.replies;
        replies.slot.begin_take();
        for _ in 0..PER_TURN {
            if !self.forward_next() {
                return;
            }
        }
        if replies.has_samples() {
            replies.slot.mark_ready();
        }
    }
}
