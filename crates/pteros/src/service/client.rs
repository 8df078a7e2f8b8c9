//! The side that asks.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Poll, Waker};
use std::time::Duration;

use parking_lot::Mutex;
use pteros_msg::cdr::Representation;
use pteros_msg::message::{Encode, Service as ServiceType};
use pteros_rmw::gate::Gate;
use pteros_rmw::graph::NodeKey;
use pteros_rmw::reader::{ReaderEndpoint, Wants};
use pteros_rmw::ready::{ReadyQueue, Slot, Task};
use pteros_rmw::rtps::fault;
use pteros_rmw::rtps::time::Instant;
use pteros_rmw::sample::SampleMeta;
use pteros_rmw::service::{CallId, Reply, SendError, ServiceClient};
use pteros_rmw::writer::Outgoing;

use super::introspection::{EventKind, Introspection};
use super::{Call, CallError, ServiceOptions, Types};
use crate::callback_group::{GroupCore, group_for};
use crate::error::CreateError;
use crate::event::EventTask;
use crate::executor::Home;
use crate::node::{Attach, Node, NodeCore};
use crate::payload::Payload;
use crate::payload_memory::PayloadMemory;
use crate::publisher::Borrowed;
use crate::sample::{Sample, SampleInfo};
use crate::subscription::{Decoded, Decoder, typed_decoder};
use crate::wait_set;

/// Calls a service. Cheap to clone, thread-safe; the service is left when the
/// last clone and the last of its calls is gone.
///
/// Every server of the service gets the request, and the first answer counts;
/// usually there is one server. A request goes to the servers that are there
/// when it is sent.
///
/// ```no_run
/// use std::time::Duration;
///
/// use pteros::interfaces::example_interfaces::srv::{AddTwoInts, AddTwoInts_Request};
/// use pteros::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let node = Context::new()?.node("adder")?;
/// let client = node.create_client::<AddTwoInts>("add_two_ints")?;
/// let answer = client.call(&AddTwoInts_Request { a: 2, b: 3 }, Duration::from_secs(1))?;
/// println!("{}", answer.sum);
/// # Ok(())
/// # }
/// ```
pub struct Client<S: ServiceType> {
    pub(crate) core: Arc<ClientCore<S::Response>>,
    pub(crate) service: PhantomData<fn(S)>,
}

impl<S: ServiceType> Clone for Client<S> {
    fn clone(&self) -> Self {
        Self {
            core: self.core.clone(),
            service: PhantomData,
        }
    }
}

impl<S: ServiceType> Client<S> {
    /// Asks and waits for the answer, first for a server if none is there.
    /// Blocks, at most `timeout` for both; drives the network itself, so no
    /// executor is needed, and runs no callbacks: called from a callback of the
    /// very executor that serves, it times out.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn call(
        &self,
        request: &S::Request,
        timeout: Duration,
    ) -> Result<Sample<S::Response>, CallError> {
        let start = |core: &Arc<ClientCore<S::Response>>| {
            core.start_call(&mut self.outgoing(request), request)
        };
        self.core.call(timeout, start)
    }

    /// Asks, and leaves waiting for the answer to the [`Call`]. Blocks no longer
    /// than publishing does.
    ///
    /// # Errors
    /// See [`CallError`]; [`CallError::NoServer`] if none is there now.
    pub fn call_async(&self, request: &S::Request) -> Result<Call<S::Response>, CallError> {
        self.core.start_call(&mut self.outgoing(request), request)
    }

    /// Asks, and calls `answered` from the node's executor once the answer is
    /// there, or the server is gone. Blocks no longer than publishing does.
    ///
    /// # Errors
    /// As [`Client::call_async`]; `answered` is not called then.
    pub fn call_then(
        &self,
        request: &S::Request,
        answered: impl FnOnce(Result<Sample<S::Response>, CallError>) + Send + 'static,
    ) -> Result<(), CallError> {
        let answered: Answered<_> = Box::new(answered);
        self.core
            .start(&mut self.outgoing(request), request, Some(answered))
            .map(drop)
    }

    fn outgoing<'m>(&'m self, request: &'m S::Request) -> Borrowed<'m, S::Request> {
        Borrowed::new(request, self.core.payload())
    }

    /// Whether a server is there: requests reach it and its replies reach us.
    pub fn is_ready(&self) -> bool {
        self.core.is_ready()
    }

    /// Waits until a server is there; returns whether one is. Blocks, at most
    /// `timeout` or until the context shuts down; drives the network itself and
    /// runs no callbacks.
    pub fn wait_for_service(&self, timeout: Duration) -> bool {
        self.core.wait_for_service(timeout)
    }

    /// The service's fully qualified name, after remapping.
    pub fn service_name(&self) -> &str {
        &self.core.service
    }

    /// Calls that have no answer yet.
    pub fn open_calls(&self) -> usize {
        self.core.runtime.open_count()
    }

    /// Answers that came when nobody waited for them any more, so far.
    pub fn stray_answers(&self) -> u64 {
        self.core.runtime.stray_count()
    }
}

impl<S: ServiceType> fmt::Debug for Client<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("service", &self.core.service)
            .finish()
    }
}

impl Node {
    /// A client of a service, remapped as the arguments say.
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn create_client<S: ServiceType>(&self, service: &str) -> Result<Client<S>, CreateError> {
        self.create_client_with(service, ServiceOptions::default())
    }

    /// A client with options.
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn create_client_with<S: ServiceType>(
        &self,
        service: &str,
        options: ServiceOptions,
    ) -> Result<Client<S>, CreateError> {
        let wants = Wants::Type(std::any::TypeId::of::<S::Response>());
        let types = Types::of::<S>();
        let core = self.client_core(service, types, &options, wants, typed_decoder())?;
        Ok(Client {
            core,
            service: PhantomData,
        })
    }

    pub(super) fn client_core<R: Send + Sync + 'static>(
        &self,
        service: &str,
        types: Types<'_>,
        options: &ServiceOptions,
        wants: Wants,
        decode: Decoder<R>,
    ) -> Result<Arc<ClientCore<R>>, CreateError> {
        let types_name = types.service;
        let (name, spec) = self.service_spec(service, types, options)?;
        let runtime = self.core().core();
        let client = runtime
            .create_service_client(spec, wants)
            .map_err(|source| CreateError::Service {
                service: name.clone(),
                source: Box::new(source),
            })?;
        self.core().attach_endpoint(&client.replies.data);
        self.core().attach_endpoint(&client.requests.data);
        let core = ClientCore::new(
            self.core().clone(),
            client,
            (name, types_name.into()),
            decode,
            options.qos.representation.unwrap_or_default(),
            group_for(self.core(), options.callback_group.as_ref()),
        );
        let part: Weak<ClientCore<R>> = Arc::downgrade(&core);
        self.core().add(part);
        Ok(core)
    }
}

type Answer<R> = Result<Sample<R>, CallError>;
type Answered<R> = Box<dyn FnOnce(Answer<R>) + Send>;

enum Waiting<R: 'static> {
    /// For whoever asks, and is to be woken.
    Asked(Option<Waker>),
    Callback(Answered<R>),
    Done(Came<R>),
}

/// An answer, and what a trace is to know of the sample that brought it.
struct Came<R: 'static> {
    answer: Answer<R>,
    sample: Option<(SampleMeta, usize)>,
}

/// A client without its request type.
pub(crate) struct ClientCore<R: 'static> {
    pub(crate) node: Arc<NodeCore>,
    pub(crate) runtime: ServiceClient,
    pub(crate) service: String,
    pub(crate) service_type: String,
    decode: Decoder<R>,
    representation: Representation,
    memory: PayloadMemory,
    calls: Mutex<BTreeMap<CallId, Waiting<R>>>,
    /// Answered callbacks that wait for the executor.
    due: Mutex<VecDeque<(Answered<R>, Came<R>)>>,
    due_slot: Slot,
    /// The bed of the one thread that waits for everybody's answers.
    bed: Mutex<Arc<ReadyQueue>>,
    place: Mutex<Place>,
    /// A wait set is to hear of each answer.
    is_watched: AtomicBool,
    pub(super) introspection: Introspection<(), R>,
    on_event: Arc<EventTask>,
    callback_group: Arc<GroupCore>,
}

/// Where replies are told.
#[derive(Default)]
struct Place {
    /// The executor that spins the node.
    home: Option<Arc<Home>>,
    /// A thread that waits for them goes before it.
    bed: Option<Arc<ReadyQueue>>,
}

impl<R: Send + Sync + 'static> ClientCore<R> {
    pub(crate) fn new(
        node: Arc<NodeCore>,
        runtime: ServiceClient,
        (service, service_type): (String, String),
        decode: Decoder<R>,
        representation: Representation,
        callback_group: Arc<GroupCore>,
    ) -> Arc<Self> {
        let bed = Mutex::new(node.core().ready_queue());
        let client = Arc::new_cyclic(|me: &Weak<Self>| {
            let core = me.clone();
            let look = move |_: &_| {
                if let Some(client) = core.upgrade() {
                    // What came before the end is taken first.
                    client.drain();
                    if !fault!("call-to-the-dead-stays-open") {
                        client.note_servers();
                    }
                }
            };
            Self {
                on_event: EventTask::new(
                    &runtime.requests.events,
                    Box::new(look),
                    &callback_group,
                    format!("client \"{service}\" of node \"{}\"", node.path()),
                ),
                callback_group,
                node,
                service,
                service_type,
                decode,
                representation,
                memory: PayloadMemory::default(),
                calls: Mutex::default(),
                due: Mutex::default(),
                due_slot: Slot::default(),
                bed,
                place: Mutex::default(),
                is_watched: AtomicBool::new(false),
                introspection: Introspection::default(),
                runtime,
            }
        });
        let task: Weak<Self> = Arc::downgrade(&client);
        client.runtime.replies.slot.set_task(task.clone());
        client.due_slot.set_task(task);
        client
    }

    /// Waits for a server, then for the answer to the call that `start` makes.
    pub(super) fn call(
        self: &Arc<Self>,
        timeout: Duration,
        start: impl FnOnce(&Arc<Self>) -> Result<Call<R>, CallError>,
    ) -> Result<Sample<R>, CallError> {
        let until = self.node.core().env.now().after(timeout.into());
        if !self.wait_for_service(timeout) {
            return Err(self.no_server(timeout));
        }
        let call = start(self)?;
        self.wait_until(call.id, until, timeout)
    }

    pub(super) fn start_call(
        self: &Arc<Self>,
        request: &mut dyn Outgoing,
        contents: &dyn Encode,
    ) -> Result<Call<R>, CallError> {
        let id = self.start(request, contents, None)?;
        let client = self.clone();
        Ok(Call { client, id })
    }

    pub(super) fn start(
        &self,
        request: &mut dyn Outgoing,
        contents: &dyn Encode,
        answered: Option<Answered<R>>,
    ) -> Result<CallId, CallError> {
        let core = self.node.core();
        // Held while it is sent: the answer may be quicker than we are.
        let mut calls = self.calls.lock();
        let sent = self.runtime.send(core, request, core.env.wall());
        let id = sent.map_err(|error| match error {
            SendError::NoServer => self.no_server(Duration::ZERO),
            SendError::TooManyCalls { max } => CallError::TooManyCalls {
                service: self.service.clone(),
                max,
            },
            SendError::Publish(source) => CallError::Publish {
                service: self.service.clone(),
                source,
            },
        })?;
        let waiting = match answered {
            None => Waiting::Asked(None),
            Some(answered) => Waiting::Callback(answered),
        };
        calls.insert(id, waiting);
        drop(calls);
        let own = self.runtime.requests.guid();
        if let Some(event) = self
            .introspection
            .of_sent_request(own, id.number(), contents)
        {
            event.tell();
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

    fn shut_down(&self) -> CallError {
        CallError::ShutDown {
            service: self.service.clone(),
        }
    }

    pub(super) fn wait(&self, id: CallId, timeout: Duration) -> Answer<R> {
        let until = self.node.core().env.now().after(timeout.into());
        self.wait_until(id, until, timeout)
    }

    /// Of several threads that wait, one takes the answers of all.
    fn wait_until(&self, id: CallId, until: Instant, timeout: Duration) -> Answer<R> {
        let core = self.node.core();
        let mut answer = None;
        let mut look = || {
            self.drain();
            if !fault!("wait-for-the-dead-goes-on") {
                self.note_servers();
            }
            answer = answer.take().or_else(|| self.take_answer(id));
            answer.is_some()
        };
        while !look() {
            if core.is_shut_down() {
                return Err(self.shut_down());
            }
            if core.env.now() >= until {
                return Err(CallError::TimedOut {
                    service: self.service.clone(),
                    waited_ms: millis(timeout),
                });
            }
            let Some(bed) = self.bed.try_lock() else {
                core.wait_until(until, || look() || !self.bed.is_locked());
                continue;
            };
            self.place.lock().bed = Some(bed.clone());
            self.attach_replies();
            let met = core.drive_until(&bed, until, || {
                while bed.pop().is_some() {}
                self.runtime.replies.slot.taken();
                look()
            });
            self.place.lock().bed = None;
            self.attach_replies();
            drop(bed);
            // Another of those that wait takes over.
            core.wake_waiters();
            if met {
                break;
            }
        }
        answer.unwrap_or_else(|| Err(self.shut_down()))
    }

    /// Takes all replies that are there to whoever waits for them.
    pub(super) fn drain(&self) {
        while let Some(Reply { call, item }) = self.runtime.take_reply(self.node.core()) {
            let sample = Some((item.meta, item.weight()));
            let info = SampleInfo::new(item.meta, None);
            let answer = match (self.decode)(item.body) {
                Ok(Decoded::Shared(value)) => Ok(Sample::shared(value, info)),
                Ok(Decoded::Owned(value)) => Ok(Sample::owned(value, info)),
                Err(error) => Err(CallError::Undecodable {
                    service: self.service.clone(),
                    service_type: self.service_type.clone(),
                    reason: error.to_string(),
                }),
            };
            let own = self.runtime.requests.guid();
            let event = answer.as_ref().ok().and_then(|response| {
                let kind = EventKind::ResponseReceived;
                self.introspection
                    .of_response(kind, own, call.number(), response)
            });
            if let Some(event) = event {
                event.tell();
            }
            self.answer(call, Came { answer, sample });
        }
    }

    fn answer(&self, call: CallId, answer: Came<R>) {
        let mut calls = self.calls.lock();
        match calls.remove(&call) {
            Some(Waiting::Asked(waker)) => {
                calls.insert(call, Waiting::Done(answer));
                drop(calls);
                if let Some(waker) = waker {
                    waker.wake();
                }
                // It may be another thread that waits.
                self.node.core().wake_waiters();
                if self.is_watched.load(Ordering::Acquire) {
                    self.due_slot.ready();
                }
            }
            Some(Waiting::Callback(callback)) => {
                drop(calls);
                self.due.lock().push_back((callback, answer));
                self.due_slot.ready();
            }
            Some(Waiting::Done(_)) | None => {}
        }
    }

    /// Ends the calls that nobody is left to answer.
    fn note_servers(&self) {
        for call in self.runtime.end_abandoned() {
            let service = self.service.clone();
            let answer = Err(CallError::ServerGone { service });
            let sample = None;
            self.answer(call, Came { answer, sample });
        }
    }

    /// Whoever waits for it has it now, on this thread.
    fn handed_over(&self, came: Came<R>) -> Answer<R> {
        if let (Some(tracer), Some((meta, bytes))) = (self.node.core().tracer(), &came.sample) {
            tracer.note_taken(self.runtime.replies.data.guid.entity, meta, *bytes);
        }
        came.answer
    }

    pub(super) fn take_answer(&self, id: CallId) -> Option<Answer<R>> {
        let mut calls = self.calls.lock();
        match calls.remove(&id) {
            Some(Waiting::Done(came)) => Some(self.handed_over(came)),
            Some(other) => {
                calls.insert(id, other);
                None
            }
            None => None,
        }
    }

    pub(super) fn poll_answer(&self, id: CallId, waker: &Waker) -> Poll<Answer<R>> {
        let mut calls = self.calls.lock();
        match calls.remove(&id) {
            Some(Waiting::Done(came)) => Poll::Ready(self.handed_over(came)),
            Some(_) => {
                calls.insert(id, Waiting::Asked(Some(waker.clone())));
                Poll::Pending
            }
            None => Poll::Ready(Err(self.shut_down())),
        }
    }

    pub(super) fn forget(&self, id: CallId) {
        self.runtime.forget(id);
        self.calls.lock().remove(&id);
    }

    fn attach_replies(&self) {
        // Held, so that the last word is the newest.
        let place = self.place.lock();
        let of_home = || place.home.as_ref().map(|home| home.queue.clone());
        let queue = place.bed.clone().or_else(of_home);
        let replies = &self.runtime.replies;
        replies.slot.attach(queue, || replies.has_samples());
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

impl<R: Send + Sync + 'static> Task for ClientCore<R> {
    fn run(&self) {
        self.runtime.replies.slot.taken();
        self.due_slot.taken();
        self.drain();
        let due = self.due.lock().pop_front();
        if let Some((callback, came)) = due {
            let tracer = self.node.core().tracer();
            let calling = tracer.map(|t| t.call(self.runtime.replies.data.guid.entity));
            let answer = self.handed_over(came);
            if let Some(calling) = &calling {
                calling.starts();
            }
            callback(answer);
        }
        if !self.due.lock().is_empty() {
            self.due_slot.ready();
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
        format!("client \"{}\" of node \"{node}\"", self.service)
    }
}

impl<S: ServiceType> wait_set::Entity for Client<S> {
    fn member(&self) -> Arc<dyn wait_set::Member> {
        self.core.clone()
    }
}

impl<R: Send + Sync + 'static> wait_set::Member for ClientCore<R> {
    fn node_core(&self) -> &Arc<NodeCore> {
        &self.node
    }

    /// Answers that came, and those that nobody has taken yet.
    fn rearm(&self) -> bool {
        self.runtime.replies.slot.taken();
        self.due_slot.taken();
        let is_done = |call: &Waiting<R>| matches!(call, Waiting::Done(_));
        self.runtime.replies.has_samples()
            || !self.due.lock().is_empty()
            || self.calls.lock().values().any(is_done)
    }

    fn reader(&self) -> Option<&ReaderEndpoint> {
        Some(&self.runtime.replies)
    }
}

impl<R: Send + Sync + 'static> Attach for ClientCore<R> {
    fn attach(&self, home: Option<&Arc<Home>>) {
        self.place.lock().home = home.cloned();
        let is_watched = home.is_some_and(|home| home.is_wait_set);
        self.is_watched.store(is_watched, Ordering::Release);
        self.attach_replies();
        let queue = home.map(|home| home.queue.clone());
        self.due_slot.attach(queue, || !self.due.lock().is_empty());
        self.on_event.attach(home);
    }

    fn callback_group(&self) -> &Arc<GroupCore> {
        &self.callback_group
    }
}

impl<R: 'static> Drop for ClientCore<R> {
    fn drop(&mut self) {
        let core = self.node.core();
        core.detach_endpoint(self.node.key, self.runtime.requests.guid());
        core.detach_endpoint(self.node.key, self.runtime.replies.data.guid);
        core.remove_service_client(&self.runtime);
    }
}
