//! Service client: sends requests and matches responses to them.
//!
//! [`Client`] blocks, returns a future or runs a callback. Service correlation
//! (request id: client GID and sequence number) follows the rmw dialects and lives
//! in the runtime; this file keeps the table of pending calls. Responses are taken
//! by the executor, or by a thread that waits.

use std::any::TypeId;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Poll, Waker};
use std::time::Duration;

use parking_lot::Mutex;
use pteros_msg::cdr::{DecodeError, Representation};
use pteros_msg::message::Encode;
use pteros_msg::type_support::{MessageTypeSupport, ServiceTypeSupport};
use pteros_runtime::error::PublishError;
use pteros_runtime::graph::NodeKey;
use pteros_runtime::lock;
use pteros_runtime::mutual_exclusion::MutualExclusionGate;
use pteros_runtime::reader::{DeliveryForm, ReaderEndpoint};
use pteros_runtime::ready_queue::{ReadyQueue, ReadySlot, Task};
use pteros_runtime::rtps::time::Instant;
use pteros_runtime::sample::{QueuedSample, SampleMeta};
use pteros_runtime::service::{CallId, ReceivedReply, SendRequestError, ServiceClient};
use pteros_runtime::writer::OutboundMessage;

use super::introspection::{
    ContentEncoders, EventKind, Introspection, ServiceIntrospectionState, as_encode, event_options,
};
use super::{CallError, ClientOptions, ResponseFuture};
use crate::callback_groups::group_for;
use crate::error::CreateError;
use crate::event_handler::EventTask;
use crate::executor_queue::ExecutorQueue;
use crate::node::{CallbackGroupCore, Node, NodeCore, NodeEntity};
use crate::outbound_message::BorrowedMessage;
use crate::payload::Payload;
use crate::payload_memory::PayloadMemory;
use crate::qos::QosProfile;
use crate::sample::{Sample, SampleInfo};
use crate::subscription::{BodyDecoder, Decoded, typed_decoder};
use crate::waitable::{Waitable, WaitableEntity};

/// Calls a service. Cheap to clone, thread-safe.
///
/// The client leaves the service when its last clone and last pending call are
/// dropped. Every matched server receives the request, and the first response
/// counts; usually there is one server. A request goes to the servers that are
/// matched when it is sent.
///
/// ```no_run
/// use std::time::Duration;
///
/// use pteros::interfaces::example_interfaces::srv::{AddTwoInts, AddTwoIntsRequest};
/// use pteros::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let node = Context::new()?.create_node("adder")?;
/// let client = node.create_client::<AddTwoInts>("add_two_ints")?;
/// let answer = client.call(&AddTwoIntsRequest { a: 2, b: 3 }, Duration::from_secs(1))?;
/// println!("{}", answer.sum);
/// # Ok(())
/// # }
/// ```
#[must_use = "a client ends when it is dropped: keep it in a variable or a field"]
pub struct Client<S: ServiceTypeSupport> {
    pub(crate) core: Arc<ClientCore<S::Response>>,
    pub(crate) support: S::Support,
    pub(crate) service: PhantomData<fn(S)>,
}

impl<S: ServiceTypeSupport> Clone for Client<S> {
    fn clone(&self) -> Self {
        Self {
            core: self.core.clone(),
            support: self.support.clone(),
            service: PhantomData,
        }
    }
}

impl<S: ServiceTypeSupport> Client<S> {
    /// Sends a request and waits for the response, and first for a server if there
    /// is none.
    ///
    /// Blocks, at most `timeout` for both. Drives the network itself, so no
    /// executor is needed, and runs no callbacks. Called from a callback of the
    /// executor that also runs the server, it times out.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn call(
        &self,
        request: &S::Request,
        timeout: Duration,
    ) -> Result<Sample<S::Response>, CallError> {
        let start = |core: &Arc<ClientCore<S::Response>>| {
            core.start_call(&mut self.outgoing(request)?, request)
        };
        self.core.call(timeout, start)
    }

    /// Sends a request and returns a [`ResponseFuture`]. Blocks no longer than
    /// publishing does.
    ///
    /// # Errors
    /// See [`CallError`]; [`CallError::NoServer`] if none is there now.
    pub fn call_async(
        &self,
        request: &S::Request,
    ) -> Result<ResponseFuture<S::Response>, CallError> {
        self.core.start_call(&mut self.outgoing(request)?, request)
    }

    /// The error for a caller that has waited this long for a response and gives up:
    /// [`CallError::Unanswered`] where the server's stack may not understand us, else
    /// [`CallError::TimedOut`].
    pub fn timed_out(&self, waited: Duration) -> CallError {
        self.core.timed_out(waited)
    }

    /// Sends a request; `callback` gets the response.
    ///
    /// It runs in the node's executor when the response has arrived, or the server
    /// has left.
    ///
    /// Blocks no longer than publishing does.
    ///
    /// # Errors
    /// As [`Client::call_async`]; `callback` is not called then.
    pub fn call_then(
        &self,
        request: &S::Request,
        callback: impl FnOnce(Result<Sample<S::Response>, CallError>) + Send + 'static,
    ) -> Result<(), CallError> {
        let callback: ResponseCallback<_> = Box::new(callback);
        self.core
            .send_request(&mut self.outgoing(request)?, request, Some(callback))
            .map(drop)
    }

    /// Checks the request's type and bounds.
    fn outgoing<'m>(
        &'m self,
        request: &'m S::Request,
    ) -> Result<BorrowedMessage<'m, S::Request>, CallError> {
        let service = &self.core.service;
        let valid = request.validate(S::request(&self.support));
        valid.map_err(|reason| CallError::Publish {
            service: service.clone(),
            source: PublishError::Invalid {
                topic: service.clone(),
                reason,
            },
        })?;
        Ok(BorrowedMessage::new(request, self.core.payload()))
    }

    /// Sets service introspection of this client: events on
    /// `<service>/_service_event`.
    ///
    /// [`ServiceIntrospectionState::Off`] ends it. `qos` is the profile of the
    /// events; rclcpp's demos use the default. May be called again at any time.
    ///
    /// # Errors
    /// See [`CreateError`]; everything stays as it was then.
    /// [`CreateError::NoEventType`] where the library that dynamic types come from does
    /// not have those of events.
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
                request: None,
                response: as_encode::<S::Response>,
            },
        )
    }

    /// Whether a server is matched in both directions: requests and responses.
    pub fn service_is_ready(&self) -> bool {
        self.core.is_ready()
    }

    /// Waits until a server is matched; true if one is.
    ///
    /// Blocks, at most `timeout` or until the context shuts down. Drives the
    /// network itself and runs no callbacks.
    pub fn wait_for_service(&self, timeout: Duration) -> bool {
        self.core.wait_for_service(timeout)
    }

    /// The service's fully qualified name, after remapping.
    pub fn service_name(&self) -> &str {
        &self.core.service
    }

    /// Requests that have no response yet.
    pub fn pending_request_count(&self) -> usize {
        self.core.runtime.open_count()
    }

    /// Responses that arrived after their call was dropped or had timed out.
    pub fn unmatched_response_count(&self) -> u64 {
        self.core.runtime.unmatched_reply_count()
    }
}

impl<S: ServiceTypeSupport> fmt::Debug for Client<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("service", &self.core.service)
            .finish()
    }
}

impl Node {
    /// Creates a client of a service.
    ///
    /// The options are the service's name, which is expanded and remapped, or
    /// [`ClientOptions`].
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn create_client<S: ServiceTypeSupport>(
        &self,
        options: impl Into<ClientOptions<S>>,
    ) -> Result<Client<S>, CreateError> {
        let ClientOptions {
            service,
            support,
            qos,
            callback_group,
        } = options.into();
        let (name, spec) = self.service_spec::<S>(&service, &support, &qos)?;
        let form = DeliveryForm::Type(TypeId::of::<S::Response>());
        let runtime = self.core().core();
        let client = runtime
            .create_service_client(spec, form)
            .map_err(|source| CreateError::Service {
                service: name.clone(),
                source: Box::new(source),
            })?;
        self.core().attach_endpoint(&client.replies.data);
        self.core().attach_endpoint(&client.requests.data);
        let core = ClientCore::new(
            self.core().clone(),
            client,
            name,
            S::service_name(&support).into(),
            typed_decoder(S::response(&support)),
            qos.representation.unwrap_or_default(),
            group_for(self.core(), callback_group.as_ref()),
        );
        let part: Weak<ClientCore<S::Response>> = Arc::downgrade(&core);
        self.core().add_entity(part);
        Ok(Client {
            core,
            support,
            service: PhantomData,
        })
    }
}

type CallResult<R> = Result<Sample<R>, CallError>;
type ResponseCallback<R> = Box<dyn FnOnce(CallResult<R>) + Send>;

enum PendingCall<R: 'static> {
    /// Polled or awaited; the waker of the task that awaits it.
    Awaited(Option<Waker>),
    Callback(ResponseCallback<R>),
    Done(ReceivedResponse<R>),
}

/// A response, and the sample metadata that a trace needs.
struct ReceivedResponse<R: 'static> {
    result: CallResult<R>,
    sample: Option<(SampleMeta, usize)>,
}

/// A client without its request type.
pub(crate) struct ClientCore<R: 'static> {
    pub(crate) node: Arc<NodeCore>,
    pub(crate) runtime: ServiceClient,
    pub(crate) service: String,
    pub(crate) service_type: String,
    decode: BodyDecoder<R>,
    representation: Representation,
    memory: PayloadMemory,
    calls: lock::Mutex<BTreeMap<CallId, PendingCall<R>>, lock::rank::ClientCalls>,
    /// Callbacks with their responses, waiting for the executor.
    pending_callbacks: Mutex<VecDeque<(ResponseCallback<R>, ReceivedResponse<R>)>>,
    callback_slot: ReadySlot,
    /// Queue of the one thread that waits for the responses of all callers.
    wait_queue: Mutex<Arc<ReadyQueue>>,
    binding: Mutex<ExecutorBinding>,
    /// A wait set needs a notification for each response.
    is_watched: AtomicBool,
    pub(super) introspection: Introspection<(), R>,
    on_event: Arc<EventTask>,
    callback_group: Arc<CallbackGroupCore>,
}

/// Which queue is notified of responses.
#[derive(Default)]
struct ExecutorBinding {
    /// The executor that spins the node.
    executor_queue: Option<Arc<ExecutorQueue>>,
    /// A thread that waits for responses takes precedence.
    wait_queue: Option<Arc<ReadyQueue>>,
}

impl<R: Send + Sync + 'static> ClientCore<R> {
    pub(crate) fn new(
        node: Arc<NodeCore>,
        runtime: ServiceClient,
        service: String,
        service_type: String,
        decode: BodyDecoder<R>,
        representation: Representation,
        callback_group: Arc<CallbackGroupCore>,
    ) -> Arc<Self> {
        let wait_queue = Mutex::new(node.core().ready_queue());
        let client = Arc::new_cyclic(|me: &Weak<Self>| {
            let core = me.clone();
            let drain_and_check = move |_: &_| {
                if let Some(client) = core.upgrade() {
                    // Responses that arrived before the server left are taken
                    // first.
                    client.drain();
                    client.handle_server_loss();
                }
            };
            Self {
                on_event: EventTask::new(
                    &runtime.requests.events,
                    Box::new(drain_and_check),
                    &callback_group,
                    format!(
                        "client \"{service}\" of node \"{}\"",
                        node.fully_qualified_name()
                    ),
                ),
                callback_group,
                node,
                service,
                service_type,
                decode,
                representation,
                memory: PayloadMemory::default(),
                calls: lock::Mutex::default(),
                pending_callbacks: Mutex::default(),
                callback_slot: ReadySlot::default(),
                wait_queue,
                binding: Mutex::default(),
                is_watched: AtomicBool::new(false),
                introspection: Introspection::default(),
                runtime,
            }
        });
        let task: Weak<Self> = Arc::downgrade(&client);
        client.runtime.replies.slot.set_task(task.clone());
        client.callback_slot.set_task(task);
        client
    }

    /// Waits for a server, then for the response to the call that `send_request` sends.
    pub(super) fn call(
        self: &Arc<Self>,
        timeout: Duration,
        start: impl FnOnce(&Arc<Self>) -> Result<ResponseFuture<R>, CallError>,
    ) -> Result<Sample<R>, CallError> {
        let until = self.node.core().platform.now().after(timeout.into());
        if !self.wait_for_service(timeout) {
            return Err(self.no_server(timeout));
        }
        let call = start(self)?;
        self.wait_until(call.id, until, timeout)
    }

    pub(super) fn start_call(
        self: &Arc<Self>,
        request: &mut dyn OutboundMessage,
        contents: &dyn Encode,
    ) -> Result<ResponseFuture<R>, CallError> {
        let id = self.send_request(request, contents, None)?;
        let client = self.clone();
        Ok(ResponseFuture { client, id })
    }

    pub(super) fn send_request(
        &self,
        request: &mut dyn OutboundMessage,
        contents: &dyn Encode,
        callback: Option<ResponseCallback<R>>,
    ) -> Result<CallId, CallError> {
        let core = self.node.core();
        // Held while sending: the response may arrive before the call is recorded.
        let mut calls = self.calls.lock();
        let sent = self.runtime.send(core, request, core.platform.wall_clock());
        let id = sent.map_err(|error| match error {
            SendRequestError::NoServer => self.no_server(Duration::ZERO),
            SendRequestError::TooManyCalls { max } => CallError::TooManyCalls {
                service: self.service.clone(),
                max,
            },
            SendRequestError::Publish(source) => CallError::Publish {
                service: self.service.clone(),
                source,
            },
        })?;
        let waiting = match callback {
            None => PendingCall::Awaited(None),
            Some(callback) => PendingCall::Callback(callback),
        };
        calls.insert(id, waiting);
        drop(calls);
        let client_gid = self.runtime.requests.guid();
        if let Some(event) = self
            .introspection
            .of_sent_request(client_gid, id.number(), contents)
        {
            event.publish_event();
        }
        Ok(id)
    }
}

impl<R: 'static> ClientCore<R> {
    pub(super) fn payload(&self) -> Payload<'_> {
        Payload::new(&self.memory, self.representation)
    }

    pub(super) fn is_ready(&self) -> bool {
        self.runtime.server_count(self.node.core()) > 0
    }

    pub(super) fn wait_for_service(&self, timeout: Duration) -> bool {
        self.is_ready() || self.node.wait_until(timeout, || self.is_ready())
    }

    fn no_server(&self, waited: Duration) -> CallError {
        CallError::NoServer {
            service: self.service.clone(),
            service_type: self.service_type.clone(),
            waited_ms: millis(waited),
        }
    }

    fn timed_out(&self, waited: Duration) -> CallError {
        let (service, waited_ms) = (self.service.clone(), millis(waited));
        match self.runtime.unanswered_reason(self.node.core()) {
            None => CallError::TimedOut { service, waited_ms },
            Some(reason) => CallError::Unanswered {
                service,
                waited_ms,
                reason,
            },
        }
    }

    fn shut_down(&self) -> CallError {
        CallError::ShutDown {
            service: self.service.clone(),
        }
    }

    pub(super) fn wait(&self, id: CallId, timeout: Duration) -> CallResult<R> {
        let until = self.node.core().platform.now().after(timeout.into());
        self.wait_until(id, until, timeout)
    }

    /// If several threads wait, one of them takes the responses of all.
    fn wait_until(&self, id: CallId, until: Instant, timeout: Duration) -> CallResult<R> {
        let core = self.node.core();
        let mut answer = None;
        let mut drain_and_check = || {
            self.drain();
            self.handle_server_loss();
            answer = answer.take().or_else(|| self.take_response(id));
            answer.is_some()
        };
        while !drain_and_check() {
            if core.is_shut_down() {
                return Err(self.shut_down());
            }
            if core.platform.now() >= until {
                return Err(self.timed_out(timeout));
            }
            let Some(wait_queue) = self.wait_queue.try_lock() else {
                core.driver()
                    .wait_until(until, || drain_and_check() || !self.wait_queue.is_locked());
                continue;
            };
            self.binding.lock().wait_queue = Some(wait_queue.clone());
            self.attach_replies();
            let met = core.driver().drive_until(&wait_queue, until, || {
                while wait_queue.pop().is_some() {}
                self.runtime.replies.slot.begin_take();
                drain_and_check()
            });
            self.binding.lock().wait_queue = None;
            self.attach_replies();
            drop(wait_queue);
            // Another waiting thread takes over.
            core.wake_waiters();
            if met {
                break;
            }
        }
        answer.unwrap_or_else(|| Err(self.shut_down()))
    }

    /// Takes all responses from the reader and completes their calls.
    pub(super) fn drain(&self) {
        let decode = |item: QueuedSample| {
            let sample = (item.meta, item.weight());
            let info = SampleInfo::new(item.meta, None);
            let response = match (self.decode)(item.body)? {
                Decoded::Shared(value) => Sample::shared(value, info),
                Decoded::Owned(value) => Sample::owned(value, info),
            };
            Ok::<_, DecodeError>((response, sample))
        };
        let core = self.node.core();
        while let Some(reply) = self.runtime.take_decoded_reply(core, decode) {
            let ReceivedReply { call, message } = reply;
            let (answer, sample) = match message {
                Ok((response, sample)) => (Ok(response), Some(sample)),
                Err(error) => {
                    let error = CallError::Undecodable {
                        service: self.service.clone(),
                        service_type: self.service_type.clone(),
                        reason: error.to_string(),
                    };
                    (Err(error), None)
                }
            };
            let client_gid = self.runtime.requests.guid();
            let event = answer.as_ref().ok().and_then(|response| {
                let kind = EventKind::ResponseReceived;
                self.introspection
                    .of_response(kind, client_gid, call.number(), response)
            });
            if let Some(event) = event {
                event.publish_event();
            }
            self.handle_response(
                call,
                ReceivedResponse {
                    result: answer,
                    sample,
                },
            );
        }
    }

    fn handle_response(&self, call: CallId, answer: ReceivedResponse<R>) {
        let mut calls = self.calls.lock();
        match calls.remove(&call) {
            Some(PendingCall::Awaited(waker)) => {
                calls.insert(call, PendingCall::Done(answer));
                drop(calls);
                if let Some(waker) = waker {
                    waker.wake();
                }
                // Another thread may wait for this response.
                self.node.core().wake_waiters();
                if self.is_watched.load(Ordering::Acquire) {
                    self.callback_slot.mark_ready();
                }
            }
            Some(PendingCall::Callback(callback)) => {
                drop(calls);
                self.pending_callbacks.lock().push_back((callback, answer));
                self.callback_slot.mark_ready();
            }
            Some(PendingCall::Done(_)) | None => {}
        }
    }

    /// Fails the calls for which no server is left.
    fn handle_server_loss(&self) {
        for call in self.runtime.close_abandoned() {
            let service = self.service.clone();
            let answer = Err(CallError::ServerLost { service });
            let sample = None;
            self.handle_response(
                call,
                ReceivedResponse {
                    result: answer,
                    sample,
                },
            );
        }
    }

    /// Records in the trace that the caller has the response, on this thread.
    fn trace_taken(&self, response: ReceivedResponse<R>) -> CallResult<R> {
        if let (Some(tracer), Some((meta, bytes))) = (self.node.core().tracer(), &response.sample) {
            tracer.note_taken(self.runtime.replies.data.guid.entity, meta, *bytes);
        }
        response.result
    }

    pub(super) fn take_response(&self, id: CallId) -> Option<CallResult<R>> {
        let mut calls = self.calls.lock();
        match calls.remove(&id) {
            Some(PendingCall::Done(response)) => Some(self.trace_taken(response)),
            Some(other) => {
                calls.insert(id, other);
                None
            }
            None => None,
        }
    }

    pub(super) fn poll_response(&self, id: CallId, waker: &Waker) -> Poll<CallResult<R>> {
        let mut calls = self.calls.lock();
        match calls.remove(&id) {
            Some(PendingCall::Done(response)) => Poll::Ready(self.trace_taken(response)),
            Some(_) => {
                calls.insert(id, PendingCall::Awaited(Some(waker.clone())));
                Poll::Pending
            }
            None => Poll::Ready(Err(self.shut_down())),
        }
    }

    pub(super) fn cancel(&self, id: CallId) {
        self.runtime.close_call(id);
        self.calls.lock().remove(&id);
    }

    /// Whether a response is not taken yet.
    fn has_response(&self) -> bool {
        let is_done = |call: &PendingCall<R>| matches!(call, PendingCall::Done(_));
        self.calls.lock().values().any(is_done)
    }

    fn attach_replies(&self) {
        // The lock is held so that the last update wins.
        let binding = self.binding.lock();
        let of_executor = || {
            binding
                .executor_queue
                .as_ref()
                .map(|executor_queue| executor_queue.ready.clone())
        };
        let queue = binding.wait_queue.clone().or_else(of_executor);
        let replies = &self.runtime.replies;
        replies.slot.attach(queue, || replies.has_samples());
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

impl<R: Send + Sync + 'static> Task for ClientCore<R> {
    fn run(&self) {
        self.runtime.replies.slot.begin_take();
        self.callback_slot.begin_take();
        self.drain();
        let pending_callbacks = self.pending_callbacks.lock().pop_front();
        if let Some((callback, response)) = pending_callbacks {
            let tracer = self.node.core().tracer();
            let calling = tracer.map(|t| t.begin_callback(self.runtime.replies.data.guid.entity));
            let answer = self.trace_taken(response);
            if let Some(calling) = &calling {
                calling.note_user_code_start();
            }
            callback(answer);
        }
        if !self.pending_callbacks.lock().is_empty() {
            self.callback_slot.mark_ready();
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
        format!("client \"{}\" of node \"{node}\"", self.service)
    }
}

impl<S: ServiceTypeSupport> Waitable for Client<S> {
    fn waitable_entity(&self) -> Arc<dyn WaitableEntity> {
        self.core.clone()
    }
}

impl<R: Send + Sync + 'static> WaitableEntity for ClientCore<R> {
    fn node_core(&self) -> &Arc<NodeCore> {
        &self.node
    }

    /// Considers responses that arrived and responses not taken yet.
    fn rearm(&self) -> bool {
        self.runtime.replies.slot.begin_take();
        self.callback_slot.begin_take();
        self.runtime.replies.has_samples()
            || !self.pending_callbacks.lock().is_empty()
            || self.has_response()
    }

    fn reader(&self) -> Option<&ReaderEndpoint> {
        Some(&self.runtime.replies)
    }
}

impl<R: Send + Sync + 'static> NodeEntity for ClientCore<R> {
    fn attach(&self, executor_queue: Option<&Arc<ExecutorQueue>>) {
        self.binding.lock().executor_queue = executor_queue.cloned();
        let is_watched = executor_queue.is_some_and(|executor_queue| executor_queue.is_wait_set);
        self.is_watched.store(is_watched, Ordering::Release);
        self.attach_replies();
        let queue = executor_queue.map(|executor_queue| executor_queue.ready.clone());
        // A wait set waits for responses that are not taken, too.
        self.callback_slot.attach(queue, || {
            !self.pending_callbacks.lock().is_empty() || (is_watched && self.has_response())
        });
        self.on_event.attach(executor_queue);
    }

    fn callback_group(&self) -> &Arc<CallbackGroupCore> {
        &self.callback_group
    }
}

impl<R: 'static> Drop for ClientCore<R> {
    fn drop(&mut self) {
        let core = self.node.core();
        core.discovery()
            .detach_endpoint(self.node.key, self.runtime.requests.guid());
        core.discovery()
            .detach_endpoint(self.node.key, self.runtime.replies.data.guid);
        core.remove_service_client(&self.runtime);
    }
}
