//! Service server: receives requests and sends responses.
//!
//! [`Service`] answers in its callback, later from any thread ([`PendingRequest`])
//! or by polling. It keeps no history of requests; the reader history cache does.

use std::any::TypeId;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use pteros_msg::cdr::{DecodeError, Representation};
use pteros_msg::type_support::ServiceTypeSupport;
use pteros_runtime::error::PublishError;
use pteros_runtime::graph::NodeKey;
use pteros_runtime::mutual_exclusion::MutualExclusionGate;
use pteros_runtime::reader::{DeliveryForm, ReaderEndpoint};
use pteros_runtime::ready_queue::Task;
use pteros_runtime::rtps::id::Guid;
use pteros_runtime::sample::SampleBody;
use pteros_runtime::service::{ReceivedRequest, RequestId, ServiceServer, ServiceServerCounts};

use super::introspection::{
    ContentEncoders, EventKind, Introspection, ServiceIntrospectionState, as_encode, event_options,
};
use super::{RequestLimit, ResponseEncoder, ServerCodec, ServiceOptions, typed_encoder};
use crate::callback_groups::group_for;
use crate::error::CreateError;
use crate::event_handler::EventTask;
use crate::executor_queue::ExecutorQueue;
use crate::node::{CallbackGroupCore, Node, NodeCore, NodeEntity};
use crate::payload_memory::PayloadMemory;
use crate::qos::QosProfile;
use crate::sample::{Sample, SampleInfo};
use crate::subscription::{BodyDecoder, Decoded, typed_decoder};
use crate::task::{AsyncSlots, CallbackOutput};
use crate::waitable::{Waitable, WaitableEntity};

/// Serves a service. Thread-safe; clones share it.
///
/// Its callback runs in the node's executor, one request at a time. The service
/// ends when the last clone is dropped.
///
/// ```no_run
/// use pteros::interfaces::example_interfaces::srv::{AddTwoInts, AddTwoIntsResponse};
/// use pteros::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let node = Context::new()?.create_node("adder")?;
/// let _service = node.create_service::<AddTwoInts>("add_two_ints", |request| {
///     AddTwoIntsResponse { sum: request.a + request.b }
/// })?;
/// node.spin();
/// # Ok(())
/// # }
/// ```
#[must_use = "a service ends when it is dropped: keep it in a variable or a field"]
pub struct Service<S: ServiceTypeSupport> {
    pub(crate) core: Arc<ServerCore<S::Request, S::Response>>,
    pub(crate) support: S::Support,
}

impl<S: ServiceTypeSupport> Clone for Service<S> {
    fn clone(&self) -> Self {
        Self {
            core: self.core.clone(),
            support: self.support.clone(),
        }
    }
}

impl<S: ServiceTypeSupport> Service<S> {
    /// Creates a service whose responses may be sent later, from any thread.
    ///
    /// `take` runs in the node's executor. If it returns a boxed future, the executor
    /// runs that ([`DeferredCallback`]).
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn deferred(
        node: &Node,
        options: impl Into<ServiceOptions<S>>,
        take: impl DeferredCallback<S::Request, S::Response>,
    ) -> Result<Self, CreateError> {
        let options = options.into();
        let handler = node.deferred_handler(&options, take);
        node.serve(options, handler)
    }

    /// Creates a service without callback: requests wait for
    /// [`Service::take_request`].
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn polled(node: &Node, options: impl Into<ServiceOptions<S>>) -> Result<Self, CreateError> {
        node.serve(options.into(), RequestHandler::Polled)
    }

    /// The service's fully qualified name, after remapping.
    pub fn service_name(&self) -> &str {
        &self.core.service
    }

    /// As [`Client::configure_introspection`](super::Client::configure_introspection), for the requests received and the
    /// responses sent.
    ///
    /// # Errors
    /// See [`CreateError`]; everything stays as it was then.
    pub fn configure_introspection(
        &self,
        qos: impl Into<QosProfile>,
        state: ServiceIntrospectionState,
    ) -> Result<(), CreateError> {
        let core = &self.core;
        core.introspection.configure(
            &core.node,
            || event_options::<S>(&self.support, &core.service, qos.into()),
            state,
            ContentEncoders {
                request: Some(as_encode::<S::Request>),
                response: as_encode::<S::Response>,
            },
        )
    }

    /// Takes the oldest waiting request. Never blocks and reads no socket.
    ///
    /// For [polled](Service::polled) services; with a callback there is usually
    /// nothing to take.
    pub fn take_request(&self) -> Option<PendingRequest<S::Request, S::Response>> {
        let (id, request) = self.core.take_request()?;
        Some(PendingRequest {
            request,
            id,
            server: ServerReference::Strong(self.core.clone()),
        })
    }

    /// Number of clients matched in both directions: requests and responses.
    pub fn client_count(&self) -> usize {
        self.core.runtime.client_count(self.core.node.core())
    }

    /// Requests that could not be decoded. They were dropped, and get no response; the log
    /// names their clients.
    pub fn undecodable_count(&self) -> u64 {
        self.core.runtime.requests.counts().undecodable
    }

    /// Totals since it was created.
    pub fn counts(&self) -> ServiceServerCounts {
        self.core.runtime.counts()
    }
}

impl<S: ServiceTypeSupport> fmt::Debug for Service<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service")
            .field("service", &self.core.service)
            .finish()
    }
}

/// A received request, to be answered now or later, from any thread.
///
/// See [`Service::deferred`]. If
/// it is dropped without a response, its client waits until its own time limit.
pub struct PendingRequest<Q: 'static, R: 'static> {
    request: Sample<Q>,
    id: RequestId,
    server: ServerReference<Q, R>,
}

/// The server of a pending request.
enum ServerReference<Q: 'static, R: 'static> {
    /// The request keeps the service alive.
    Strong(Arc<ServerCore<Q, R>>),
    /// The service owns the future that owns the request, and cancels it.
    Weak(Weak<ServerCore<Q, R>>, Arc<str>),
}

impl<Q: 'static, R: 'static> ServerReference<Q, R> {
    fn weaken(&mut self) {
        if let Self::Strong(server) = self {
            let service = server.service.as_str().into();
            *self = Self::Weak(Arc::downgrade(server), service);
        }
    }
}

impl<Q: 'static, R: 'static> PendingRequest<Q, R> {
    /// The request, with its client and timestamps.
    pub fn request(&self) -> &Sample<Q> {
        &self.request
    }

    /// The fully qualified name of the service.
    pub fn service_name(&self) -> &str {
        match &self.server {
            ServerReference::Strong(server) => &server.service,
            ServerReference::Weak(_, service) => service,
        }
    }

    /// The client's endpoint.
    pub(crate) fn client(&self) -> Guid {
        self.id.client
    }

    /// Sends the response. Blocks no longer than publishing does. Does nothing if an
    /// async callback's service was dropped.
    ///
    /// # Errors
    /// See [`PublishError`]; the client waits in vain then.
    pub fn respond(self, response: R) -> Result<(), PublishError> {
        match self.server {
            ServerReference::Strong(server) => server.respond(&self.id, response),
            ServerReference::Weak(server, _) => match server.upgrade() {
                Some(server) => server.respond(&self.id, response),
                None => Ok(()),
            },
        }
    }
}

/// A deferred service's callback: a closure that takes a [`PendingRequest`] and returns
/// nothing, or a boxed future for the node's executor to run
/// (`Box::pin(async move { … })`).
///
/// A mutually exclusive group runs one future at a time. In a reentrant group up to
/// [`ServiceOptions::pending_max`] are pending at once. Further requests wait in the
/// queue.
pub trait DeferredCallback<Q: 'static, R: 'static>:
    FnMut(PendingRequest<Q, R>) -> <Self as DeferredCallback<Q, R>>::Returned + Send + 'static
{
    /// Nothing, or a future.
    type Returned: CallbackOutput;
}

impl<Q: 'static, R: 'static, F, O> DeferredCallback<Q, R> for F
where
    F: FnMut(PendingRequest<Q, R>) -> O + Send + 'static,
    O: CallbackOutput,
{
    type Returned = O;
}

impl<Q: fmt::Debug, R> fmt::Debug for PendingRequest<Q, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceCall")
            .field("service", &self.service_name())
            .field("request", &self.request)
            .finish()
    }
}

impl Node {
    /// Creates a service.
    ///
    /// The options are the service's name, which is expanded and remapped, or
    /// [`ServiceOptions`]. `answer` runs in the node's executor and returns the
    /// response. A response of another dynamic type is not sent and logged as a
    /// warning.
    ///
    /// [`Service::deferred`] responds later, [`Service::polled`] has no callback.
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn create_service<S: ServiceTypeSupport>(
        &self,
        options: impl Into<ServiceOptions<S>>,
        answer: impl FnMut(Sample<S::Request>) -> S::Response + Send + 'static,
    ) -> Result<Service<S>, CreateError> {
        self.serve(options.into(), RequestHandler::Immediate(Box::new(answer)))
    }

    fn deferred_handler<S: ServiceTypeSupport, C>(
        &self,
        options: &ServiceOptions<S>,
        mut take: C,
    ) -> RequestHandler<S::Request, S::Response>
    where
        C: DeferredCallback<S::Request, S::Response>,
    {
        if !C::Returned::IS_FUTURE {
            let take = move |request: PendingRequest<_, _>| drop(take(request));
            return RequestHandler::Deferred(Box::new(take), None);
        }
        let description = format!(
            "async service \"{}\" of node \"{}\"",
            options.service,
            self.core().fully_qualified_name()
        );
        let (group, pending_max) = (options.callback_group.as_ref(), options.pending_max);
        let async_slots = AsyncSlots::new(self.core(), group, description, pending_max);
        let task_slots = async_slots.clone();
        let take = move |mut request: PendingRequest<_, _>| {
            request.server.weaken();
            if let Some(future) = take(request).into_future() {
                task_slots.start(future);
            }
        };
        RequestHandler::Deferred(Box::new(take), Some(async_slots))
    }

    pub(crate) fn serve<S: ServiceTypeSupport>(
        &self,
        options: ServiceOptions<S>,
        handler: RequestHandler<S::Request, S::Response>,
    ) -> Result<Service<S>, CreateError> {
        let support = options.support;
        let (name, spec) = self.service_spec::<S>(&options.service, &support, &options.qos)?;
        let form = DeliveryForm::Type(TypeId::of::<S::Request>());
        let runtime = self.core().core();
        let server = runtime
            .create_service_server(spec, form)
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
            ServerCodec {
                decode: typed_decoder(S::request(&support)),
                encode: typed_encoder(S::response(&support)),
                refuse: options.refuse,
            },
            options.qos.representation.unwrap_or_default(),
            handler,
            group_for(self.core(), options.callback_group.as_ref()),
        );
        let part: Weak<ServerCore<S::Request, S::Response>> = Arc::downgrade(&core);
        self.core().add_entity(part);
        Ok(Service { core, support })
    }
}

/// How requests are handled.
pub(crate) enum RequestHandler<Q: 'static, R: 'static> {
    /// The caller takes them.
    Polled,
    /// The callback returns the response.
    Immediate(Box<dyn FnMut(Sample<Q>) -> R + Send>),
    /// The callback responds later, or its futures do.
    Deferred(
        Box<dyn FnMut(PendingRequest<Q, R>) + Send>,
        Option<Arc<AsyncSlots>>,
    ),
}

/// A server with its request and response types.
pub(crate) struct ServerCore<Q: 'static, R: 'static> {
    pub(crate) node: Arc<NodeCore>,
    pub(crate) runtime: ServiceServer,
    pub(crate) service: String,
    decode: BodyDecoder<Q>,
    encode: ResponseEncoder<R>,
    representation: Representation,
    memory: PayloadMemory,
    handler: Mutex<RequestHandler<Q, R>>,
    /// The running futures of an async callback.
    async_slots: Option<Arc<AsyncSlots>>,
    refuse: Option<RequestLimit<R>>,
    /// Requests that were too large to be decoded.
    refused: AtomicU64,
    pub(super) introspection: Introspection<Q, R>,
    on_event: Arc<EventTask>,
    callback_group: Arc<CallbackGroupCore>,
    me: Weak<Self>,
}

impl<Q: Send + 'static, R: Send + 'static> ServerCore<Q, R> {
    pub(crate) fn new(
        node: Arc<NodeCore>,
        runtime: ServiceServer,
        service: String,
        codec: ServerCodec<Q, R>,
        representation: Representation,
        handler: RequestHandler<Q, R>,
        callback_group: Arc<CallbackGroupCore>,
    ) -> Arc<Self> {
        let async_slots = match &handler {
            RequestHandler::Deferred(_, async_slots) => async_slots.clone(),
            RequestHandler::Polled | RequestHandler::Immediate(_) => None,
        };
        if let Some(async_slots) = &async_slots {
            let requests = runtime.requests.clone();
            async_slots.on_free_slot(move || {
                if requests.has_samples() {
                    requests.slot.mark_ready();
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
                    format!(
                        "service \"{service}\" of node \"{}\"",
                        node.fully_qualified_name()
                    ),
                ),
                callback_group,
                node,
                service,
                decode: codec.decode,
                encode: codec.encode,
                representation,
                memory: PayloadMemory::default(),
                handler: Mutex::new(handler),
                async_slots,
                refuse: codec.refuse,
                refused: AtomicU64::new(0),
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
            event.publish_event();
        }
        sent
    }

    fn respond_or_warn(&self, id: &RequestId, response: R) {
        if let Err(error) = self.respond(id, response) {
            tracing::warn!(service = %self.service, client = %id.client, "response not sent: {error}");
        }
    }

    /// Answers a request that was not decoded; logs the first one.
    fn respond_with_refusal(&self, id: &RequestId, bytes: usize, response: R) {
        if self.refused.fetch_add(1, Ordering::Relaxed) == 0 {
            tracing::warn!(
                service = %self.service, client = %id.client,
                "refused a request of {bytes} bytes, which asks for too much at once; later ones are refused without a word"
            );
        }
        self.respond_or_warn(id, response);
    }

    fn take_request(&self) -> Option<(RequestId, Sample<Q>)> {
        loop {
            let decode = |received| self.decode_or_refuse(received);
            let core = self.node.core();
            let Some((id, request)) = self.runtime.take_decoded_request(core, decode)? else {
                continue;
            };
            let kind = EventKind::RequestReceived;
            let event = self
                .introspection
                .of_request(kind, id.client, id.sequence, &request);
            if let Some(event) = event {
                event.publish_event();
            }
            return Some((id, request));
        }
    }

    /// Decodes a request. `None` for one that asks for too much, which is answered so.
    fn decode_or_refuse(
        &self,
        received: ReceivedRequest,
    ) -> Result<Option<(RequestId, Sample<Q>)>, DecodeError> {
        let ReceivedRequest { id, item } = received;
        let info = SampleInfo::new(item.meta, None);
        if let (Some(refuse), SampleBody::Serialized(bytes)) = (&self.refuse, &item.body)
            && let Some(response) = refuse(bytes)
        {
            self.respond_with_refusal(&id, bytes.len(), response);
            return Ok(None);
        }
        let request = match (self.decode)(item.body)? {
            Decoded::Shared(value) => Sample::shared(value, info),
            Decoded::Owned(value) => Sample::owned(value, info),
        };
        Ok(Some((id, request)))
    }
}

impl<Q: Send + 'static, R: Send + 'static> Task for ServerCore<Q, R> {
    fn run(&self) {
        let requests = &self.runtime.requests;
        requests.slot.begin_take();
        // A full queue made writers wait: taking a request must look for more.
        if self
            .async_slots
            .as_ref()
            .is_some_and(|async_slots| !async_slots.has_free_slot())
        {
            return;
        }
        // The lock is held when the callback itself spins, or still runs on the
        // previous executor. Its holder looks for more requests afterwards.
        let Some(mut handler) = self.handler.try_lock() else {
            return;
        };
        if matches!(*handler, RequestHandler::Polled) {
            return;
        }
        let core = self.node.core();
        let calling = core
            .tracer()
            .map(|t| t.begin_callback(requests.data.guid.entity));
        if let (Some((id, request)), Some(server)) = (self.take_request(), self.me.upgrade()) {
            if let Some(calling) = &calling {
                calling.note_user_code_start();
            }
            match &mut *handler {
                RequestHandler::Polled => {}
                RequestHandler::Immediate(answer) => {
                    let response = answer(request);
                    self.respond_or_warn(&id, response);
                }
                RequestHandler::Deferred(take, _) => take(PendingRequest {
                    request,
                    id,
                    server: ServerReference::Strong(server),
                }),
            }
        }
        drop(calling);
        drop(handler);
        if requests.has_samples() {
            requests.slot.mark_ready();
        }
    }

    fn gate(&self) -> Option<&MutualExclusionGate> {
        self.callback_group.gate()
    }

    fn node(&self) -> Option<NodeKey> {
        Some(self.callback_group.node)
    }

    fn describe(&self) -> String {
        let node = self.node.fully_qualified_name();
        format!("service \"{}\" of node \"{node}\"", self.service)
    }
}

impl<S: ServiceTypeSupport> Waitable for Service<S> {
    fn waitable_entity(&self) -> Arc<dyn WaitableEntity> {
        self.core.clone()
    }
}

impl<Q: Send + 'static, R: Send + 'static> WaitableEntity for ServerCore<Q, R> {
    fn node_core(&self) -> &Arc<NodeCore> {
        &self.node
    }

    fn rearm(&self) -> bool {
        self.runtime.requests.slot.begin_take();
        self.runtime.requests.has_samples()
    }

    fn reader(&self) -> Option<&ReaderEndpoint> {
        Some(&self.runtime.requests)
    }
}

impl<Q: Send + 'static, R: Send + 'static> NodeEntity for ServerCore<Q, R> {
    fn attach(&self, executor_queue: Option<&Arc<ExecutorQueue>>) {
        let queue = executor_queue.map(|executor_queue| executor_queue.ready.clone());
        let requests = &self.runtime.requests;
        requests.slot.attach(queue, || requests.has_samples());
        self.on_event.attach(executor_queue);
    }

    fn callback_group(&self) -> &Arc<CallbackGroupCore> {
        &self.callback_group
    }
}

impl<Q: 'static, R: 'static> Drop for ServerCore<Q, R> {
    fn drop(&mut self) {
        let core = self.node.core();
        core.discovery()
            .detach_endpoint(self.node.key, self.runtime.requests.data.guid);
        core.discovery()
            .detach_endpoint(self.node.key, self.runtime.replies.guid());
        core.remove_service_server(&self.runtime);
    }
}
