//! Nodes: named parts of a robot's software with publishers, subscriptions
//! and timers.

mod options;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use pteros_msg::dynamic::{DynamicMessage, DynamicType};
use pteros_msg::hash::TypeHash;
use pteros_msg::key::key_reader;
use pteros_msg::message::{Message, dds_type_name};
use pteros_rmw::content_filter::MessageType;
use pteros_rmw::graph::NodeKey;
use pteros_rmw::instance::Keying;
use pteros_rmw::names::{NameKind, dds_topic, node_path, validate_dds_topic};
use pteros_rmw::reader::Wants;
use pteros_rmw::rtps::discovery::data::EndpointData;
use pteros_rmw::store::default_name;
use pteros_rmw::thread::ThreadSettings;
use pteros_rmw::{Core, EndpointSpec};

use crate::args::{Arguments, node_identity, resolve_name};
use crate::callback_group::{CallbackGroupKind, GroupCore, group_for};
use crate::clock::NodeTime;
use crate::context::Context;
use crate::dynamic::{DynamicPublisher, dynamic_decoder, dynamic_key_decoder, raw_decoder};
use crate::error::{CreateError, NodeError};
use crate::event::EventTask;
use crate::executor::{Home, SingleThreadedExecutor};
use crate::logger::LoggerServices;
use crate::parameter::{ParameterFile, ParameterServices, ParameterStore};
use crate::payload_memory::PayloadMemory;
use crate::publisher::{Publisher, PublisherOptions, RawPublisher};
use crate::qos::{DurabilityPolicy, QosProfile};
use crate::sample::Sample;
use crate::set_qos::InForce;
use crate::subscription::{
    Decoder, KeyDecoder, Subscription, SubscriptionCore, SubscriptionOptions, starting,
    typed_decoder, typed_key_decoder,
};
use crate::task::{Lanes, Spawned, Watch};
use crate::timer::{Timer, TimerCore, TimerOptions};
use crate::type_description::{Definitions, Described, TypeDescriptionService, TypesInUse};
use crate::unique_name::{Rival, refuse_twin};

pub use options::NodeOptions;

/// A node. Cheap to clone; it leaves the graph when the last clone and the
/// last of its publishers, subscriptions and timers is gone.
#[derive(Clone)]
pub struct Node {
    core: Arc<NodeCore>,
    /// Not of the core, which endpoints keep.
    _parameter_services: Arc<ParameterServices>,
    _logger_services: Option<Arc<LoggerServices>>,
    _type_descriptions: Option<Arc<TypeDescriptionService>>,
}

/// Something that works in a node's executor.
pub(crate) trait Attach: Send + Sync {
    /// Moves to the executor that spins its group now, or to none.
    fn attach(&self, home: Option<&Arc<Home>>);

    /// The group its callback is in.
    fn callback_group(&self) -> &Arc<GroupCore>;
}

pub(crate) struct NodeCore {
    context: Context,
    name: String,
    namespace: String,
    arguments: Arguments,
    use_global_arguments: bool,
    pub(crate) key: NodeKey,
    /// Its endpoints neither share values nor take any.
    pub(crate) as_bytes: bool,
    pub(crate) parameters: Arc<ParameterStore>,
    /// What its parameters say of the thread that spins it.
    pub(crate) thread: Option<Box<ThreadSettings>>,
    /// Of the callbacks that were made without one.
    pub(crate) own_group: Arc<GroupCore>,
    pub(crate) spawned: Spawned,
    /// Its ROS time.
    pub(crate) time: Arc<NodeTime>,
    /// It is named as one of those whose words `/rosout` has.
    pub(crate) is_on_rosout: AtomicBool,
    /// Of [`Node::spin_once`], whose executors live for one callback.
    timer_was_last: AtomicBool,
    place: Mutex<Place>,
}

#[derive(Default)]
struct Place {
    /// The executors that have the node, the last of which spins it: those
    /// before get it back.
    homes: Vec<Arc<Home>>,
    parts: Vec<Weak<dyn Attach>>,
    /// Parts in wait sets, by their addresses.
    apart: Vec<(usize, Arc<Home>)>,
}

impl NodeCore {
    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        self.context.core()
    }

    /// Moves the node to an executor.
    pub(crate) fn move_to(&self, home: &Arc<Home>) {
        let mut place = self.place.lock();
        place.homes.push(home.clone());
        let _parts = place.attach();
        drop(place);
    }

    /// Takes the node from an executor; the one that had it before gets it
    /// back, unless another has taken it meanwhile.
    pub(crate) fn leave(&self, home: &Arc<Home>) {
        let mut place = self.place.lock();
        place.homes.retain(|h| !Arc::ptr_eq(h, home));
        let _parts = place.attach();
        drop(place);
    }

    pub(crate) fn add(&self, part: Weak<dyn Attach>) {
        let mut place = self.place.lock();
        if let Some(part) = part.upgrade() {
            place.attach_one(&*part);
        }
        place.parts.retain(|part| part.strong_count() > 0);
        place.parts.push(part);
    }

    /// Moves one of its groups to an executor.
    pub(crate) fn move_group_to(&self, group: &GroupCore, home: &Arc<Home>) {
        let mut place = self.place.lock();
        group.homes.lock().push(home.clone());
        let _parts = place.attach();
        drop(place);
    }

    /// Takes one of its groups from an executor.
    pub(crate) fn take_group_from(&self, group: &GroupCore, home: &Arc<Home>) {
        let mut place = self.place.lock();
        group.homes.lock().retain(|h| !Arc::ptr_eq(h, home));
        let _parts = place.attach();
        drop(place);
    }

    /// Moves one of its parts to a wait set. False if it is in one.
    pub(crate) fn set_apart(&self, address: usize, part: &dyn Attach, home: &Arc<Home>) -> bool {
        let mut place = self.place.lock();
        if place.apart.iter().any(|(apart, _)| *apart == address) {
            return false;
        }
        place.apart.push((address, home.clone()));
        place.attach_one(part);
        true
    }

    /// Takes one of its parts from a wait set.
    pub(crate) fn end_apart(&self, address: usize, part: &dyn Attach) {
        let mut place = self.place.lock();
        place.apart.retain(|(apart, _)| *apart != address);
        place.attach_one(part);
    }

    /// `/namespace/name`.
    pub(crate) fn path(&self) -> String {
        node_path(&self.namespace, &self.name)
    }

    /// Drives the network until `done` says so or `timeout` has passed.
    pub(crate) fn wait_until(&self, timeout: Duration, done: impl FnMut() -> bool) -> bool {
        let core = self.core();
        let until = core.env.now().after(timeout.into());
        core.wait_until(until, done)
    }

    /// Says that an endpoint is the node's.
    pub(crate) fn attach_endpoint(&self, data: &Arc<EndpointData>) {
        self.core().attach_endpoint(self.key, data);
    }

    fn sources(&self) -> Vec<&Arguments> {
        let mut sources = vec![&self.arguments];
        if self.use_global_arguments {
            sources.push(&self.context.inner.arguments);
        }
        sources
    }

    /// The full name after remapping; as it is given where the profile avoids
    /// ROS's conventions.
    fn resolve(&self, topic: &str, qos: &QosProfile) -> Result<String, CreateError> {
        if qos.avoid_ros_namespace_conventions {
            validate_dds_topic(topic)?;
            return Ok(topic.into());
        }
        self.resolve_as(NameKind::Topic, topic)
    }

    /// The full name of something of that kind after remapping.
    pub(crate) fn resolve_as(&self, kind: NameKind, name: &str) -> Result<String, CreateError> {
        let sources = self.sources();
        let full = resolve_name(&sources, kind, name, &self.name, &self.namespace)?;
        Ok(full)
    }
}

impl NodeCore {
    pub(crate) fn raw_publisher(
        self: &Arc<Self>,
        topic: &str,
        ty: TypeFacts<'_>,
        mut options: PublisherOptions,
    ) -> Result<Arc<RawPublisher>, CreateError> {
        let topic = self.resolve(topic, &options.qos)?;
        if let Some(overrides) = &options.qos_overrides {
            let store = &self.parameters;
            overrides.apply(store, (&topic, "publisher"), &mut options.qos)?;
        }
        ty.note_in(&self.context().inner.types);
        let mut spec = spec(&topic, ty, &options.qos, |qos| qos.to_endpoint())?;
        spec.group = options.group;
        spec.as_bytes = self.as_bytes;
        let runtime = self.core();
        let own_name = || {
            let domain_id = runtime.options().domain_id;
            default_name(domain_id, &self.path(), &topic)
        };
        spec.store = match options.qos.durability {
            DurabilityPolicy::Transient | DurabilityPolicy::Persistent => {
                Some(options.store.unwrap_or_else(own_name))
            }
            _ => None,
        };
        let created = match &options.pace {
            Some(pace) => runtime.create_paced_writer(spec, pace),
            None => runtime.create_writer(spec),
        };
        let endpoint = created.map_err(|source| CreateError::Endpoint {
            topic: topic.clone(),
            source,
        })?;
        self.attach_endpoint(&endpoint.data);
        let callback_group = group_for(self, options.callback_group.as_ref());
        let what = format!("publisher \"{topic}\" of node \"{}\"", self.path());
        let raw = Arc::new(RawPublisher {
            node: self.clone(),
            endpoint: endpoint.clone(),
            topic,
            representation: options.qos.representation.unwrap_or_default(),
            qos: InForce::new(options.qos),
            on_event: options
                .on_event
                .map(|callback| EventTask::new(&endpoint.events, callback, &callback_group, what)),
            callback_group,
            memory: PayloadMemory::default(),
        });
        let part: Weak<RawPublisher> = Arc::downgrade(&raw);
        self.add(part);
        Ok(raw)
    }
}

impl Place {
    /// The parts are handed out so that none is dropped, which may run user
    /// code, before the lock is released.
    #[must_use]
    fn attach(&mut self) -> Vec<Arc<dyn Attach>> {
        self.parts.retain(|part| part.strong_count() > 0);
        let parts: Vec<_> = self.parts.iter().filter_map(Weak::upgrade).collect();
        for part in &parts {
            self.attach_one(&**part);
        }
        parts
    }

    fn attach_one(&self, part: &dyn Attach) {
        let address = std::ptr::from_ref(part).cast::<()>().addr();
        let apart = self.apart.iter().find(|(apart, _)| *apart == address);
        if let Some((_, home)) = apart {
            return part.attach(Some(home));
        }
        let of_group = part.callback_group().homes.lock().last().cloned();
        part.attach(of_group.as_ref().or(self.homes.last()));
    }
}

impl Drop for NodeCore {
    fn drop(&mut self) {
        self.core().remove_node(self.key);
    }
}

impl Node {
    pub(crate) fn new(context: &Context, options: NodeOptions) -> Result<Self, NodeError> {
        if context.is_shut_down() {
            return Err(NodeError::ShutDown(options.name));
        }
        let mut sources = vec![&options.arguments];
        if options.use_global_arguments {
            sources.push(&context.inner.arguments);
        }
        let (name, namespace) = node_identity(&sources, &options.name, &options.namespace)?;
        let own = ParameterFile::of_arguments(&options.arguments)?;
        let said = match options.use_global_arguments {
            true => vec![&context.inner.parameters, &own],
            false => vec![&own],
        };
        let parameters = options.parameters;
        let store = parameters.store(node_path(&namespace, &name), &said);
        let unique = options.unique_within;
        let refuse = |name: &str, namespace: &str, rival| match unique {
            Some(span) => refuse_twin(context, name, namespace, span, rival),
            None => Ok(()),
        };
        refuse(&name, &namespace, Rival::Any)?;
        let thread = store.declare_thread()?;
        let key = context.core().add_node(&name, &namespace);
        let mut node = Self {
            core: Arc::new(NodeCore {
                context: context.clone(),
                name,
                namespace,
                arguments: options.arguments,
                use_global_arguments: options.use_global_arguments,
                key,
                as_bytes: !options.use_intra_process_comms,
                parameters: store,
                thread,
                own_group: GroupCore::new(CallbackGroupKind::MutuallyExclusive, key),
                spawned: Spawned::new(options.tasks_max),
                is_on_rosout: AtomicBool::new(false),
                timer_was_last: AtomicBool::new(false),
                time: NodeTime::new(context.core(), key, &context.inner.sim_time),
                place: Mutex::default(),
            }),
            _parameter_services: Arc::default(),
            _logger_services: None,
            _type_descriptions: None,
        };
        refuse(node.name(), node.namespace(), Rival::Elder)?;
        node.core.declare_sim_time(context.inner.use_sim_time)?;
        let services = ParameterServices::start(&node, parameters.services, parameters.events)?;
        node._parameter_services = Arc::new(services);
        if options.logger_services {
            node._logger_services = Some(Arc::new(LoggerServices::start(&node)?));
        }
        let describes = options.type_description_service;
        if node.core.declare_type_descriptions(describes)? {
            node._type_descriptions = Some(TypeDescriptionService::start(&node)?);
        }
        node.core.parameters.declare_overrides()?;
        Ok(node)
    }

    pub(crate) fn core(&self) -> &Arc<NodeCore> {
        &self.core
    }

    pub(crate) fn is_same(&self, other: &Node) -> bool {
        Arc::ptr_eq(&self.core, &other.core)
    }

    /// The node's name, after remapping.
    pub fn name(&self) -> &str {
        &self.core.name
    }

    /// The node's namespace, after remapping; `/` is the root.
    pub fn namespace(&self) -> &str {
        &self.core.namespace
    }

    /// `/namespace/name`.
    pub fn fully_qualified_name(&self) -> String {
        self.core.path()
    }

    /// The name its log lines carry: `namespace.name`.
    pub fn logger_name(&self) -> String {
        self.fully_qualified_name()
            .trim_start_matches('/')
            .replace('/', ".")
    }

    /// What its parameters `thread.priority`, `thread.cpus` and `thread.lock_memory`
    /// ask for; nothing unless they are given. The executor's thread asks the kernel
    /// for it when it begins to spin, for all its nodes: the highest priority and all
    /// their CPUs. What the kernel refuses is an error of
    /// [`IsolatedExecutor::spin`](crate::IsolatedExecutor::spin) and
    /// [`MultiThreadedExecutor::spin`](crate::MultiThreadedExecutor::spin), and a
    /// warning where spinning returns none.
    pub fn thread_settings(&self) -> ThreadSettings {
        self.core.thread.as_deref().cloned().unwrap_or_default()
    }

    /// The context it was made in.
    pub fn context(&self) -> &Context {
        &self.core.context
    }

    // --- publishers ---

    /// A publisher on `topic`, remapped as the arguments say.
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn create_publisher<T: Message>(
        &self,
        topic: &str,
        qos: impl Into<QosProfile>,
    ) -> Result<Publisher<T>, CreateError> {
        self.create_publisher_with(topic, PublisherOptions::new(qos))
    }

    /// A publisher with options.
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn create_publisher_with<T: Message>(
        &self,
        topic: &str,
        options: PublisherOptions,
    ) -> Result<Publisher<T>, CreateError> {
        let raw = self.raw_publisher(topic, TypeFacts::of::<T>(), options)?;
        Ok(Publisher::new(raw))
    }

    /// A publisher whose type is known at run time.
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn create_dynamic_publisher(
        &self,
        topic: &str,
        ty: &DynamicType,
        qos: impl Into<QosProfile>,
    ) -> Result<DynamicPublisher, CreateError> {
        self.create_dynamic_publisher_with(topic, ty, PublisherOptions::new(qos))
    }

    /// A publisher whose type is known at run time, with options.
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn create_dynamic_publisher_with(
        &self,
        topic: &str,
        ty: &DynamicType,
        options: PublisherOptions,
    ) -> Result<DynamicPublisher, CreateError> {
        let raw = self.raw_publisher(topic, TypeFacts::of_dynamic(ty), options)?;
        Ok(DynamicPublisher {
            raw,
            ty: ty.clone(),
        })
    }

    fn raw_publisher(
        &self,
        topic: &str,
        ty: TypeFacts<'_>,
        options: PublisherOptions,
    ) -> Result<Arc<RawPublisher>, CreateError> {
        self.core.raw_publisher(topic, ty, options)
    }

    // --- subscriptions ---

    /// A subscription whose callback runs in the node's executor.
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn create_subscription<T: Message>(
        &self,
        topic: &str,
        qos: impl Into<QosProfile>,
        callback: impl FnMut(Sample<T>) + Send + 'static,
    ) -> Result<Subscription<T>, CreateError> {
        self.create_subscription_with(topic, SubscriptionOptions::new(qos).callback(callback))
    }

    /// A subscription that is polled with [`Subscription::take`].
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn create_polled_subscription<T: Message>(
        &self,
        topic: &str,
        qos: impl Into<QosProfile>,
    ) -> Result<Subscription<T>, CreateError> {
        self.create_subscription_with(topic, SubscriptionOptions::new(qos))
    }

    /// A subscription with options.
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn create_subscription_with<T: Message>(
        &self,
        topic: &str,
        options: SubscriptionOptions<T>,
    ) -> Result<Subscription<T>, CreateError> {
        self.typed_subscription::<T, T>(topic, (typed_decoder(), typed_key_decoder()), options)
    }

    /// A subscription to messages of type `M`, handed over as `T`.
    pub(crate) fn typed_subscription<M: Message, T: Send + 'static>(
        &self,
        topic: &str,
        decoders: (Decoder<T>, KeyDecoder<T>),
        options: SubscriptionOptions<T>,
    ) -> Result<Subscription<T>, CreateError> {
        let wants = Wants::Type(std::any::TypeId::of::<M>());
        self.subscription(topic, TypeFacts::of::<M>(), wants, decoders, options)
    }

    /// A subscription whose type is known at run time.
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn create_dynamic_subscription(
        &self,
        topic: &str,
        ty: &DynamicType,
        options: SubscriptionOptions<DynamicMessage>,
    ) -> Result<Subscription<DynamicMessage>, CreateError> {
        let decoders = (dynamic_decoder(ty), dynamic_key_decoder(ty));
        let facts = TypeFacts::of_dynamic(ty);
        let wants = Wants::Type(std::any::TypeId::of::<DynamicMessage>());
        self.subscription(topic, facts, wants, decoders, options)
    }

    /// A subscription to serialized messages, which are never decoded. The
    /// type need not be known beyond its name: ROS's, or DDS's, which has no
    /// slashes. Types with a `@dds_name` are met by that name alone
    /// ([`DynamicType::dds_type_name`]). Of an instance's end it gets the
    /// serialized key if its options have a
    /// [`key_reader`](SubscriptionOptions::key_reader). Without one the topic's
    /// publishers of this moment say whether it has a key; other DDS
    /// implementations' publishers that come later and have one do not match a
    /// subscription without, which is warned of.
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn create_raw_subscription(
        &self,
        topic: &str,
        type_name: &str,
        hash: Option<TypeHash>,
        options: SubscriptionOptions<Bytes>,
    ) -> Result<Subscription<Bytes>, CreateError> {
        let keying = match &options.key_reader {
            Some(reader) => Keying::Keyed(reader.clone()),
            None => Keying::Keyless,
        };
        let facts = TypeFacts {
            name: type_name,
            dds_name: match type_name.contains('/') {
                true => dds_type_name(type_name),
                false => type_name.into(),
            },
            hash,
            keying,
            message_type: options.message_type.clone(),
            definitions: || None,
        };
        let decoders: (_, KeyDecoder<Bytes>) = (raw_decoder(), Box::new(|key| Ok(key.clone())));
        self.subscription(topic, facts, Wants::Bytes, decoders, options)
    }

    fn subscription<T: Send + 'static>(
        &self,
        topic: &str,
        mut ty: TypeFacts<'_>,
        wants: Wants,
        (decode, decode_key): (Decoder<T>, KeyDecoder<T>),
        mut options: SubscriptionOptions<T>,
    ) -> Result<Subscription<T>, CreateError> {
        let topic = self.core.resolve(topic, &options.qos)?;
        if let Some(overrides) = &options.qos_overrides {
            let store = &self.core.parameters;
            overrides.apply(store, (&topic, "subscription"), &mut options.qos)?;
        }
        if options.on_async.is_some() && options.group.is_some() {
            return Err(CreateError::AsyncInGroup { topic });
        }
        let runtime = self.core.core();
        let dds = dds_topic(&topic, options.qos.avoid_ros_namespace_conventions);
        let known = runtime.graph().endpoints_on(&dds);
        let publishers: Vec<_> = known.iter().filter(|e| e.data.is_writer()).collect();
        let has_key = publishers.iter().any(|e| e.data.guid.entity.is_keyed());
        if has_key && matches!(ty.keying, Keying::Keyless) {
            // Other stacks match endpoints only if both have a key.
            ty.keying = Keying::Unread;
        }
        let qos = options
            .qos
            .for_publishers(publishers.iter().map(|publisher| &*publisher.data.qos));
        ty.note_in(&self.context().inner.types);
        let mut spec = spec(&topic, ty, &qos, |qos| qos.to_reader())?;
        spec.content_filter = options.content_filter;
        spec.as_bytes = self.core.as_bytes;
        spec.subscription_group = options.group.as_ref().map(|group| group.group.clone());
        let endpoint = runtime
            .create_reader(spec, wants, options.ignore_local_publications)
            .map_err(|source| CreateError::Endpoint {
                topic: topic.clone(),
                source,
            })?;
        self.core.attach_endpoint(&endpoint.announced());
        let callback_group = group_for(&self.core, options.callback_group.as_ref());
        let what = format!("subscription \"{topic}\" of node \"{}\"", self.core.path());
        let on_event = options
            .on_event
            .map(|callback| EventTask::new(&endpoint.events, callback, &callback_group, what));
        let lanes = options.on_async.is_some().then(|| {
            let what = format!(
                "async subscription \"{topic}\" of node \"{}\"",
                self.core.path()
            );
            let (group, most) = (options.callback_group.as_ref(), options.pending_max);
            Lanes::new(&self.core, group, what, most)
        });
        let callback = match (options.on_async, &lanes) {
            (Some(callback), Some(lanes)) => Some(starting(callback, lanes, &endpoint)),
            _ => options.callback,
        };
        let core = Arc::new(SubscriptionCore {
            node: self.core.clone(),
            endpoint: endpoint.clone(),
            topic,
            qos: InForce::new(qos),
            decode,
            decode_key,
            callback: callback.map(Mutex::new),
            lanes,
            on_event,
            callback_group,
            own_queue: runtime.ready_queue(),
            bed: Mutex::new(()),
            watch: Mutex::new(Watch::default()),
            undecodable: AtomicU64::new(0),
            group: options.group,
        });
        if let Some(group) = &core.group {
            let member: Weak<SubscriptionCore<T>> = Arc::downgrade(&core);
            group.note(endpoint.data.guid, member);
        }
        let weak: Weak<SubscriptionCore<T>> = Arc::downgrade(&core);
        endpoint.slot.set_task(weak.clone());
        if core.callback.is_none() {
            endpoint.slot.attach(Some(core.own_queue.clone()), || false);
        }
        self.core.add(weak);
        Ok(Subscription::new(core))
    }

    // --- timers ---

    /// A timer that calls `callback` every `period`, first after one period.
    ///
    /// # Errors
    /// [`CreateError::ZeroPeriod`].
    pub fn create_timer(
        &self,
        period: Duration,
        callback: impl FnMut() + Send + 'static,
    ) -> Result<Timer, CreateError> {
        self.create_timer_with(TimerOptions::new(period), callback)
    }

    /// A timer that calls `callback` once, after `delay`.
    ///
    /// # Errors
    /// [`CreateError::ZeroPeriod`].
    pub fn create_one_shot_timer(
        &self,
        delay: Duration,
        callback: impl FnMut() + Send + 'static,
    ) -> Result<Timer, CreateError> {
        self.create_timer_with(TimerOptions::new(delay).one_shot(), callback)
    }

    /// A timer with options.
    ///
    /// # Errors
    /// [`CreateError::ZeroPeriod`].
    pub fn create_timer_with(
        &self,
        options: TimerOptions,
        callback: impl FnMut() + Send + 'static,
    ) -> Result<Timer, CreateError> {
        let TimerOptions {
            period,
            repeats,
            on_ros_time,
            callback_group,
        } = options;
        if period.is_zero() {
            return Err(CreateError::ZeroPeriod);
        }
        let period_nanos = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX);
        let group = group_for(&self.core, callback_group.as_ref());
        let pace = (period_nanos, repeats, on_ros_time);
        let callback = Box::new(callback);
        Ok(TimerCore::start(&self.core, pace, &group, callback))
    }

    // --- spinning ---

    fn executor(&self) -> SingleThreadedExecutor {
        let executor = SingleThreadedExecutor::new(&self.core.context);
        // A new executor of the node's own context.
        let added = executor.add_node(self);
        debug_assert!(added.is_ok(), "{added:?}");
        executor
    }

    /// Runs the node's callbacks until the context shuts down. Blocks.
    pub fn spin(&self) {
        self.executor().spin();
    }

    /// Runs at most one callback, waiting for it at most `timeout`; returns
    /// whether one ran. In a loop an executor of your own is cheaper.
    pub fn spin_once(&self, timeout: Duration) -> bool {
        let timer_was_last = &self.core.timer_was_last;
        self.executor().spin_once_after(timeout, timer_was_last)
    }

    /// Runs callbacks until `done` says so, `timeout` has passed or the
    /// context shuts down. Returns `done`'s last word. Blocks.
    pub fn spin_until(&self, done: impl FnMut() -> bool, timeout: Duration) -> bool {
        self.executor().spin_until(done, timeout)
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Node")
            .field(&self.fully_qualified_name())
            .finish()
    }
}

/// What an endpoint must know of its type.
pub(crate) struct TypeFacts<'a> {
    name: &'a str,
    /// As it is announced.
    dds_name: String,
    hash: Option<TypeHash>,
    keying: Keying,
    message_type: MessageType,
    definitions: Definitions,
}

impl<'a> TypeFacts<'a> {
    pub(crate) fn of<T: Message>() -> Self {
        Self {
            name: T::TYPE_NAME,
            dds_name: T::dds_type_name(),
            hash: Some(T::TYPE_HASH),
            keying: key_reader::<T>().map_or(Keying::Keyless, Keying::Keyed),
            message_type: MessageType::Described {
                describe: T::type_description,
                announced: T::TYPE_INFORMATION,
            },
            definitions: T::definitions,
        }
    }

    pub(crate) fn of_dynamic(ty: &'a DynamicType) -> Self {
        Self {
            name: ty.name(),
            dds_name: match ty.name().contains('/') {
                true => ty.dds_type_name(),
                false => ty.dds_name().unwrap_or(ty.name()).into(),
            },
            hash: Some(ty.hash()),
            keying: ty.key_reader().map_or(Keying::Keyless, Keying::Keyed),
            message_type: MessageType::Dynamic(ty.clone()),
            definitions: || None,
        }
    }

    /// Lets the context describe it to whoever asks.
    pub(crate) fn note_in(&self, types: &TypesInUse) {
        types.note(self.hash, || {
            Described::Message(self.message_type.clone(), self.definitions)
        });
    }
}

/// What an endpoint announces: names as DDS has them, and the type's hash
/// where ROS 2 puts it.
pub(crate) fn spec(
    topic: &str,
    ty: TypeFacts<'_>,
    qos: &QosProfile,
    announced: impl FnOnce(&QosProfile) -> pteros_rmw::rtps::qos::EndpointQos,
) -> Result<EndpointSpec, CreateError> {
    // Names of DDS's have no slashes and are taken as they are.
    if ty.name.is_empty() || !matches!(ty.name.split('/').count(), 1 | 3) {
        return Err(CreateError::TypeName(ty.name.into()));
    }
    qos.validate().map_err(|source| CreateError::Qos {
        topic: topic.into(),
        source,
    })?;
    let mut endpoint_qos = announced(qos);
    if let Some(hash) = ty.hash {
        let entry = format!("typehash={hash};");
        endpoint_qos.user_data.splice(0..0, entry.into_bytes());
    }
    Ok(EndpointSpec {
        topic: dds_topic(topic, qos.avoid_ros_namespace_conventions),
        type_name: ty.dds_name,
        qos: endpoint_qos,
        keying: ty.keying,
        lifecycle: qos.lifecycle(),
        group: None,
        subscription_group: None,
        store: None,
        as_bytes: false,
        message_type: ty.message_type,
        content_filter: None,
    })
}
