//! The side that answers.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use pteros_msg::cdr::Representation;
use pteros_msg::message::Service as ServiceType;
use pteros_rmw::error::PublishError;
use pteros_rmw::gate::Gate;
use pteros_rmw::graph::NodeKey;
use pteros_rmw::reader::{ReaderEndpoint, Wants};
use pteros_rmw::ready::Task;
use pteros_rmw::rtps::id::Guid;
use pteros_rmw::service::{Request, RequestId, ServerCounts, ServiceServer};

use super::introspection::{EventKind, Introspection};
use super::{Encoder, ServiceOptions, Types, typed_encoder};
use crate::callback_group::{GroupCore, group_for};
use crate::error::CreateError;
use crate::event::EventTask;
use crate::executor::Home;
use crate::node::{Attach, Node, NodeCore};
use crate::payload_memory::PayloadMemory;
use crate::sample::{Sample, SampleInfo};
use crate::subscription::{Decoded, Decoder, typed_decoder};
use crate::task::Lanes;
use crate::wait_set;

/// Serves a service: its callback runs in the node's executor, one request at a
/// time. Thread-safe; clones share it, and it ends when the last one is dropped.
///
/// ```no_run
/// use pteros::interfaces::example_interfaces::srv::{AddTwoInts, AddTwoInts_Response};
/// use pteros::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let node = Context::new()?.node("adder")?;
/// let _service = node.create_service::<AddTwoInts>("add_two_ints", |request| {
///     AddTwoInts_Response { sum: request.a + request.b }
/// })?;
/// node.spin();
/// # Ok(())
/// # }
/// ```
pub struct Service<S: ServiceType> {
    pub(crate) core: Arc<ServerCore<S::Request, S::Response>>,
}

impl<S: ServiceType> Clone for Service<S> {
    fn clone(&self) -> Self {
        Self {
            core: self.core.clone(),
        }
    }
}

impl<S: ServiceType> Service<S> {
    /// The service's fully qualified name, after remapping.
    pub fn service_name(&self) -> &str {
        &self.core.service
    }

    /// Takes the oldest request that waits. Never blocks and looks at no socket:
    /// for services that are polled
    /// ([`Node::create_polled_service`](crate::Node::create_polled_service)); with
    /// a callback there is usually nothing to take.
    pub fn take_request(&self) -> Option<ServiceCall<S::Request, S::Response>> {
        let (id, request) = self.core.request()?;
        Some(ServiceCall {
            request,
            id,
            server: self.core.clone(),
        })
    }

    /// Clients that are there now: their requests reach us and our answers reach
    /// them.
    pub fn client_count(&self) -> usize {
        self.core.runtime.client_count(self.core.node.core())
    }

    /// Requests that were not of the type, so far.
    pub fn undecodable_count(&self) -> u64 {
        self.core.undecodable.load(Ordering::Relaxed)
    }

    /// Totals since it was created.
    pub fn counts(&self) -> ServerCounts {
        self.core.runtime.counts()
    }
}

impl<S: ServiceType> fmt::Debug for Service<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service")
            .field("service", &self.core.service)
            .finish()
    }
}

/// A request to be answered now or later, from any thread
/// ([`Node::create_deferred_service`](crate::Node::create_deferred_service)).
/// Dropped without an answer, its client waits in vain.
pub struct ServiceCall<Q: 'static, R: 'static> {
    request: Sample<Q>,
    id: RequestId,
    server: Arc<ServerCore<Q, R>>,
}

impl<Q: 'static, R: 'static> ServiceCall<Q, R> {
    /// What is asked, by whom and when.
    pub fn request(&self) -> &Sample<Q> {
        &self.request
    }

    /// The fully qualified name of the service that is asked.
    pub fn service_name(&self) -> &str {
        &self.server.service
    }

    /// The endpoint that sent it.
    pub(crate) fn client(&self) -> Guid {
        self.id.client
    }

    /// Answers. Blocks no longer than publishing does.
    ///
    /// # Errors
    /// See [`PublishError`]; the client waits in vain then.
    pub fn respond(self, response: R) -> Result<(), PublishError> {
        self.server.respond(&self.id, response)
    }

    /// The request, and what answers it without keeping the service.
    pub(crate) fn into_parts(self) -> (Sample<Q>, Answerer<Q, R>) {
        let server = Arc::downgrade(&self.server);
        let Self { request, id, .. } = self;
        (request, Answerer { id, server })
    }
}

/// Answers one request, if the service is still there.
pub(crate) struct Answerer<Q: 'static, R: 'static> {
    id: RequestId,
    server: Weak<ServerCore<Q, R>>,
}

impl<Q: 'static, R: 'static> Answerer<Q, R> {
    pub(crate) fn answer(&self, response: R) {
        if let Some(server) = self.server.upgrade() {
            server.respond_or_warn(&self.id, response);
        }
    }
}

impl<Q: fmt::Debug, R> fmt::Debug for ServiceCall<Q, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceCall")
            .field("service", &self.server.service)
            .field("request", &self.request)
            .finish()
    }
}

impl Node {
    /// Serves a service, remapped as the arguments say; `answer` runs in the
    /// node's executor.
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn create_service<S: ServiceType>(
        &self,
        service: &str,
        answer: impl FnMut(Sample<S::Request>) -> S::Response + Send + 'static,
    ) -> Result<Service<S>, CreateError> {
        self.create_service_with(service, ServiceOptions::default(), answer)
    }

    /// Serves a service, with options.
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn create_service_with<S: ServiceType>(
        &self,
        service: &str,
        options: ServiceOptions,
        answer: impl FnMut(Sample<S::Request>) -> S::Response + Send + 'static,
    ) -> Result<Service<S>, CreateError> {
        self.serve(service, options, Handler::Answer(Box::new(answer)))
    }

    /// Serves a service whose answers may come later, from any thread; `take`
    /// runs in the node's executor.
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn create_deferred_service<S: ServiceType>(
        &self,
        service: &str,
        options: ServiceOptions,
        take: impl FnMut(ServiceCall<S::Request, S::Response>) + Send + 'static,
    ) -> Result<Service<S>, CreateError> {
        self.serve(service, options, Handler::Defer(Box::new(take), None))
    }

    /// A service without a callback: requests wait for
    /// [`Service::take_request`].
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn create_polled_service<S: ServiceType>(
        &self,
        service: &str,
        options: ServiceOptions,
    ) -> Result<Service<S>, CreateError> {
        self.serve(service, options, Handler::Polled)
    }

    pub(crate) fn serve<S: ServiceType>(
        &self,
        service: &str,
        options: ServiceOptions,
        handler: Handler<S::Request, S::Response>,
    ) -> Result<Service<S>, CreateError> {
        let wants = Wants::Type(std::any::TypeId::of::<S::Request>());
        let codec = (typed_decoder(), typed_encoder());
        let core = self.server_core(service, Types::of::<S>(), &options, wants, codec, handler)?;
        Ok(Service { core })
    }

    pub(super) fn server_core<Q: Send + 'static, R: Send + 'static>(
        &self,
        service: &str,
        types: Types<'_>,
        options: &ServiceOptions,
        wants: Wants,
        codec: (Decoder<Q>, Encoder<R>),
        handler: Handler<Q, R>,
    ) -> Result<Arc<ServerCore<Q, R>>, CreateError> {
        let (name, spec) = self.service_spec(service, types, options)?;
        let runtime = self.core().core();
        let server = runtime
            .create_service_server(spec, wants)
            .map_err(|source| CreateError::Service {
                service: name.clone(),
                source: Box::new(source),
            })?;
        self.core().attach_endpoint(&server.replies.data);
        self.core().attach_endpoint(&server.requests.data);
        let core = ServerCore::new(
            self.core().clone(),
            server,
            name,
            codec,
            options.qos.representation.unwrap_or_default(),
            handler,
            group_for(self.core(), options.callback_group.as_ref()),
        );
        let part: Weak<ServerCore<Q, R>> = Arc::downgrade(&core);
        self.core().add(part);
        Ok(core)
    }
}

/// What is done with requests.
pub(crate) enum Handler<Q: 'static, R: 'static> {
    /// They are taken by whoever asks for them.
    Polled,
    /// Answered at once.
    Answer(Box<dyn FnMut(Sample<Q>) -> R + Send>),
    /// Answered when the callback likes; by its futures, if it has some.
    Defer(Box<dyn FnMut(ServiceCall<Q, R>) + Send>, Option<Arc<Lanes>>),
}

/// A server of some types.
pub(crate) struct ServerCore<Q: 'static, R: 'static> {
    pub(crate) node: Arc<NodeCore>,
    pub(crate) runtime: ServiceServer,
    pub(crate) service: String,
    decode: Decoder<Q>,
    encode: Encoder<R>,
    representation: Representation,
    memory: PayloadMemory,
    handler: Mutex<Handler<Q, R>>,
    /// Of an async callback's futures.
    lanes: Option<Arc<Lanes>>,
    undecodable: AtomicU64,
    pub(super) introspection: Introspection<Q, R>,
    on_event: Arc<EventTask>,
    callback_group: Arc<GroupCore>,
    me: Weak<Self>,
}

impl<Q: Send + 'static, R: Send + 'static> ServerCore<Q, R> {
    pub(crate) fn new(
        node: Arc<NodeCore>,
        runtime: ServiceServer,
        service: String,
        (decode, encode): (Decoder<Q>, Encoder<R>),
        representation: Representation,
        handler: Handler<Q, R>,
        callback_group: Arc<GroupCore>,
    ) -> Arc<Self> {
        let lanes = match &handler {
            Handler::Defer(_, lanes) => lanes.clone(),
            Handler::Polled | Handler::Answer(_) => None,
        };
        if let Some(lanes) = &lanes {
            let requests = runtime.requests.clone();
            lanes.on_room(move || {
                if requests.has_samples() {
                    requests.slot.ready();
                }
            });
        }
        let server = Arc::new_cyclic(|me: &Weak<Self>| {
            let core = me.clone();
            let look = move |_: &_| {
                if let Some(server) = core.upgrade() {
                    server.runtime.flush(server.node.core());
                }
            };
            Self {
                on_event: EventTask::new(
                    &runtime.replies.events,
                    Box::new(look),
                    &callback_group,
                    format!("service \"{service}\" of node \"{}\"", node.path()),
                ),
                callback_group,
                node,
                service,
                decode,
                encode,
                representation,
                memory: PayloadMemory::default(),
                handler: Mutex::new(handler),
                lanes,
                undecodable: AtomicU64::new(0),
                introspection: Introspection::default(),
                me: me.clone(),
                runtime,
            }
        });
        let task: Weak<Self> = Arc::downgrade(&server);
        server.runtime.requests.slot.set_task(task);
        server
    }
}

impl<Q: 'static, R: 'static> ServerCore<Q, R> {
    fn respond(&self, id: &RequestId, response: R) -> Result<(), PublishError> {
        let core = self.node.core();
        let mut sent = Ok(());
        let kind = EventKind::ResponseSent;
        let event = self
            .introspection
            .of_response(kind, id.client, id.sequence, &response);
        (self.encode)(
            response,
            &self.memory,
            self.representation,
            &mut |message| {
                sent = self.runtime.reply(core, id, message);
            },
        );
        if let (Ok(()), Some(event)) = (&sent, event) {
            event.tell();
        }
        sent
    }

    fn respond_or_warn(&self, id: &RequestId, response: R) {
        if let Err(error) = self.respond(id, response) {
            tracing::warn!(service = %self.service, client = %id.client, "no answer sent: {error}");
        }
    }

    fn request(&self) -> Option<(RequestId, Sample<Q>)> {
        loop {
            let Request { id, item } = self.runtime.take_request(self.node.core())?;
            let info = SampleInfo::new(item.meta, None);
            match (self.decode)(item.body) {
                Ok(decoded) => {
                    let request = match decoded {
                        Decoded::Shared(value) => Sample::shared(value, info),
                        Decoded::Owned(value) => Sample::owned(value, info),
                    };
                    let kind = EventKind::RequestReceived;
                    let event =
                        self.introspection
                            .of_request(kind, id.client, id.sequence, &request);
                    if let Some(event) = event {
                        event.tell();
                    }
                    return Some((id, request));
                }
                Err(error) => {
                    if self.undecodable.fetch_add(1, Ordering::Relaxed) == 0 {
                        tracing::warn!(
                            service = %self.service, client = %id.client,
                            "a request is not of the type {}: {error}; compare the client's interface with ours",
                            self.runtime.requests.data.type_name
                        );
                    }
                }
            }
        }
    }
}

impl<Q: Send + 'static, R: Send + 'static> Task for ServerCore<Q, R> {
    fn run(&self) {
        let requests = &self.runtime.requests;
        requests.slot.taken();
        // Whoever makes room looks for more.
        if self.lanes.as_ref().is_some_and(|lanes| !lanes.has_room()) {
            return;
        }
        // Locked when the callback itself spins, or runs on the executor that
        // had the node before: whoever holds it looks for more afterwards.
        let Some(mut handler) = self.handler.try_lock() else {
            return;
        };
        if matches!(*handler, Handler::Polled) {
            return;
        }
        let core = self.node.core();
        let calling = core.tracer().map(|t| t.call(requests.data.guid.entity));
        if let (Some((id, request)), Some(server)) = (self.request(), self.me.upgrade()) {
            if let Some(calling) = &calling {
                calling.starts();
            }
            match &mut *handler {
                Handler::Polled => {}
                Handler::Answer(answer) => {
                    let response = answer(request);
                    self.respond_or_warn(&id, response);
                }
                Handler::Defer(take, _) => take(ServiceCall {
                    request,
                    id,
                    server,
                }),
            }
        }
        drop(calling);
        drop(handler);
        if requests.has_samples() {
            requests.slot.ready();
        }
    }

    fn gate(&self) -> Option<&Gate> {
        self.callback_group.gate()
    }

    fn node(&self) -> Option<NodeKey> {
        Some(self.callback_group.node)
    }

    fn describe(&self) -> String {
        let node = self.node.path();
        format!("service \"{}\" of node \"{node}\"", self.service)
    }
}

impl<S: ServiceType> wait_set::Entity for Service<S> {
    fn member(&self) -> Arc<dyn wait_set::Member> {
        self.core.clone()
    }
}

impl<Q: Send + 'static, R: Send + 'static> wait_set::Member for ServerCore<Q, R> {
    fn node_core(&self) -> &Arc<NodeCore> {
        &self.node
    }

    fn rearm(&self) -> bool {
        self.runtime.requests.slot.taken();
        self.runtime.requests.has_samples()
    }

    fn reader(&self) -> Option<&ReaderEndpoint> {
        Some(&self.runtime.requests)
    }
}

impl<Q: Send + 'static, R: Send + 'static> Attach for ServerCore<Q, R> {
    fn attach(&self, home: Option<&Arc<Home>>) {
        let queue = home.map(|home| home.queue.clone());
        let requests = &self.runtime.requests;
        requests.slot.attach(queue, || requests.has_samples());
        self.on_event.attach(home);
    }

    fn callback_group(&self) -> &Arc<GroupCore> {
        &self.callback_group
    }
}

impl<Q: 'static, R: 'static> Drop for ServerCore<Q, R> {
    fn drop(&mut self) {
        let core = self.node.core();
        core.detach_endpoint(self.node.key, self.runtime.requests.data.guid);
        core.detach_endpoint(self.node.key, self.runtime.replies.guid());
        core.remove_service_server(&self.runtime);
    }
}
