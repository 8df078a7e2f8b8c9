//! Node: a named set of publishers, subscriptions, services and timers.
//!
//! [`Node`] resolves names (expansion and remapping), creates endpoints and assigns
//! them to executors. It owns no socket and no thread: the [`Context`] does. Names
//! follow the ROS 2 design page "Topic and Service name mapping to DDS".

mod message_type_info;
mod options;

use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use pteros_runtime::Core;
use pteros_runtime::graph::NodeKey;
use pteros_runtime::names::{NameKind, node_path, validate_dds_topic};
use pteros_runtime::rtps::discovery::data::EndpointData;
use pteros_runtime::thread::ThreadSettings;

use crate::args::{Arguments, node_identity, resolve_name};
use crate::callback_groups::{CallbackGroupCore, CallbackGroupType};
use crate::clock::NodeTime;
use crate::context::Context;
use crate::error::{CreateError, NodeError};
use crate::executors::{ExecutorQueue, SingleThreadedExecutor};
use crate::logger::LoggerServices;
use crate::parameter::{ParameterFile, ParameterServices, ParameterStore};
use crate::qos::QosProfile;
use crate::task::SpawnedTasks;
use crate::type_description::TypeDescriptionService;
use crate::unique_name::{NameConflict, ensure_unique_name};

pub(crate) use message_type_info::{MessageTypeInfo, endpoint_spec};
pub use options::NodeOptions;

/// A node of the ROS graph. Cheap to clone, thread-safe.
///
/// It leaves the graph when the last clone and the last of its publishers,
/// subscriptions, services and timers is dropped.
#[derive(Clone)]
pub struct Node {
    core: Arc<NodeCore>,
    /// Held here, not in the core: endpoints keep the core alive.
    _parameter_services: Arc<ParameterServices>,
    _logger_services: Option<Arc<LoggerServices>>,
    _type_descriptions: Option<Arc<TypeDescriptionService>>,
}

/// An entity of a node whose callbacks an executor runs.
pub(crate) trait NodeEntity: Send + Sync {
    /// Moves to the executor that now spins its callback group, or to none.
    fn attach(&self, executor_queue: Option<&Arc<ExecutorQueue>>);

    /// The callback group of its callbacks.
    fn callback_group(&self) -> &Arc<CallbackGroupCore>;
}

pub(crate) struct NodeCore {
    context: Context,
    name: String,
    namespace: String,
    arguments: Arguments,
    use_global_arguments: bool,
    pub(crate) key: NodeKey,
    /// Intra-process sharing is off: its endpoints only send and take serialized
    /// data.
    pub(crate) as_bytes: bool,
    pub(crate) parameters: Arc<ParameterStore>,
    /// Thread settings from the node's parameters, for the thread that spins it.
    pub(crate) thread: Option<Box<ThreadSettings>>,
    /// The group of callbacks that were created without a group.
    pub(crate) default_callback_group: Arc<CallbackGroupCore>,
    pub(crate) spawned: SpawnedTasks,
    /// The node's ROS time.
    pub(crate) time: Arc<NodeTime>,
    /// The graph lists the node as an owner of the process's `/rosout` publisher.
    pub(crate) has_rosout_publisher: AtomicBool,
    /// For [`Node::spin_once`], whose executor exists for one callback only.
    timer_ran_last: AtomicBool,
    assignment: Mutex<ExecutorAssignment>,
}

#[derive(Default)]
struct ExecutorAssignment {
    /// Executors that the node was added to. The last one spins it; when that one
    /// is removed, the one before takes over.
    executor_queues: Vec<Arc<ExecutorQueue>>,
    entities: Vec<Weak<dyn NodeEntity>>,
    /// Entities in wait sets, by address.
    in_wait_sets: Vec<(usize, Arc<ExecutorQueue>)>,
}

impl NodeCore {
    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        self.context.core()
    }

    /// Adds the node to an executor.
    pub(crate) fn add_to_executor(&self, executor_queue: &Arc<ExecutorQueue>) {
        let mut assignment = self.assignment.lock();
        assignment.executor_queues.push(executor_queue.clone());
        let _parts = assignment.attach_all();
        drop(assignment);
    }

    /// Removes the node from an executor. The previous executor spins it again,
    /// unless another one has been added meanwhile.
    pub(crate) fn remove_from_executor(&self, executor_queue: &Arc<ExecutorQueue>) {
        let mut assignment = self.assignment.lock();
        assignment
            .executor_queues
            .retain(|h| !Arc::ptr_eq(h, executor_queue));
        let _parts = assignment.attach_all();
        drop(assignment);
    }

    pub(crate) fn add_entity(&self, part: Weak<dyn NodeEntity>) {
        let mut assignment = self.assignment.lock();
        if let Some(part) = part.upgrade() {
            assignment.attach_entity(&*part);
        }
        assignment.entities.retain(|part| part.strong_count() > 0);
        assignment.entities.push(part);
    }

    /// Adds one of its callback groups to an executor.
    pub(crate) fn add_group_to_executor(
        &self,
        group: &CallbackGroupCore,
        executor_queue: &Arc<ExecutorQueue>,
    ) {
        let mut assignment = self.assignment.lock();
        group.executor_queues.lock().push(executor_queue.clone());
        let _parts = assignment.attach_all();
        drop(assignment);
    }

    /// Removes one of its callback groups from an executor.
    pub(crate) fn remove_group_from_executor(
        &self,
        group: &CallbackGroupCore,
        executor_queue: &Arc<ExecutorQueue>,
    ) {
        let mut assignment = self.assignment.lock();
        group
            .executor_queues
            .lock()
            .retain(|h| !Arc::ptr_eq(h, executor_queue));
        let _parts = assignment.attach_all();
        drop(assignment);
    }

    /// Moves one of its entities to a wait set. False if it is in one already.
    pub(crate) fn add_to_wait_set(
        &self,
        address: usize,
        part: &dyn NodeEntity,
        executor_queue: &Arc<ExecutorQueue>,
    ) -> bool {
        let mut assignment = self.assignment.lock();
        if assignment
            .in_wait_sets
            .iter()
            .any(|(in_wait_sets, _)| *in_wait_sets == address)
        {
            return false;
        }
        assignment
            .in_wait_sets
            .push((address, executor_queue.clone()));
        assignment.attach_entity(part);
        true
    }

    /// Removes one of its entities from a wait set.
    pub(crate) fn remove_from_wait_set(&self, address: usize, part: &dyn NodeEntity) {
        let mut assignment = self.assignment.lock();
        assignment
            .in_wait_sets
            .retain(|(in_wait_sets, _)| *in_wait_sets != address);
        assignment.attach_entity(part);
    }

    /// `/namespace/name`.
    pub(crate) fn fully_qualified_name(&self) -> String {
        node_path(&self.namespace, &self.name)
    }

    /// Drives the network until `done` returns true or `timeout` has passed.
    pub(crate) fn wait_until(&self, timeout: Duration, done: impl FnMut() -> bool) -> bool {
        let core = self.core();
        let until = core.platform.now().after(timeout.into());
        core.wait_until(until, done)
    }

    /// Records in the graph that the endpoint belongs to this node.
    pub(crate) fn attach_endpoint(&self, data: &Arc<EndpointData>) {
        self.core().attach_endpoint(self.key, data);
    }

    fn argument_sources(&self) -> Vec<&Arguments> {
        let mut argument_sources = vec![&self.arguments];
        if self.use_global_arguments {
            argument_sources.push(&self.context.inner.arguments);
        }
        argument_sources
    }

    /// The topic's full name after remapping. Unchanged if the profile avoids ROS
    /// namespace conventions.
    pub(crate) fn resolve_topic(
        &self,
        topic: &str,
        qos: &QosProfile,
    ) -> Result<String, CreateError> {
        if qos.avoid_ros_namespace_conventions {
            validate_dds_topic(topic)?;
            return Ok(topic.into());
        }
        self.resolve_name(NameKind::Topic, topic)
    }

    /// The full name after expansion and remapping, for that kind of name.
    pub(crate) fn resolve_name(&self, kind: NameKind, name: &str) -> Result<String, CreateError> {
        let argument_sources = self.argument_sources();
        let full = resolve_name(&argument_sources, kind, name, &self.name, &self.namespace)?;
        Ok(full)
    }
}

impl ExecutorAssignment {
    /// Returns the upgraded entities. The caller drops them after it has released
    /// the lock, since dropping one may run user code.
    #[must_use]
    fn attach_all(&mut self) -> Vec<Arc<dyn NodeEntity>> {
        self.entities.retain(|part| part.strong_count() > 0);
        let entities: Vec<_> = self.entities.iter().filter_map(Weak::upgrade).collect();
        for part in &entities {
            self.attach_entity(&**part);
        }
        entities
    }

    fn attach_entity(&self, part: &dyn NodeEntity) {
        let address = std::ptr::from_ref(part).cast::<()>().addr();
        let in_wait_sets = self
            .in_wait_sets
            .iter()
            .find(|(in_wait_sets, _)| *in_wait_sets == address);
        if let Some((_, executor_queue)) = in_wait_sets {
            return part.attach(Some(executor_queue));
        }
        let of_group = part.callback_group().executor_queues.lock().last().cloned();
        part.attach(of_group.as_ref().or(self.executor_queues.last()));
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
        let mut argument_sources = vec![&options.arguments];
        if options.use_global_arguments {
            argument_sources.push(&context.inner.arguments);
        }
        let (name, namespace) =
            node_identity(&argument_sources, &options.name, &options.namespace)?;
        let node_parameters = ParameterFile::from_arguments(&options.arguments)?;
        let global_parameters = if options.use_global_arguments {
            vec![&context.inner.parameters, &node_parameters]
        } else {
            vec![&node_parameters]
        };
        let parameters = options.parameters;
        let store = parameters.store(node_path(&namespace, &name), &global_parameters);
        let unique = options.unique_within;
        let refuse = |name: &str, namespace: &str, rival| match unique {
            Some(span) => ensure_unique_name(context, name, namespace, span, rival),
            None => Ok(()),
        };
        refuse(&name, &namespace, NameConflict::Any)?;
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
                default_callback_group: CallbackGroupCore::new(
                    CallbackGroupType::MutuallyExclusive,
                    key,
                ),
                spawned: SpawnedTasks::new(options.tasks_max),
                has_rosout_publisher: AtomicBool::new(false),
                timer_ran_last: AtomicBool::new(false),
                time: NodeTime::new(context.core(), key, &context.inner.sim_time),
                assignment: Mutex::default(),
            }),
            _parameter_services: Arc::default(),
            _logger_services: None,
            _type_descriptions: None,
        };
        refuse(node.name(), node.namespace(), NameConflict::Elder)?;
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
        self.core.fully_qualified_name()
    }

    /// The node's logger name: `namespace.name`.
    pub fn logger_name(&self) -> String {
        self.fully_qualified_name()
            .trim_start_matches('/')
            .replace('/', ".")
    }

    /// Thread settings that the node's parameters request.
    ///
    /// The parameters are `thread.priority`, `thread.cpus` and
    /// `thread.lock_memory`; without them nothing is requested. The executor's
    /// thread applies them when it begins to spin: the highest priority and all
    /// CPUs of its nodes. If the kernel refuses,
    /// [`IsolatedExecutor::spin`](crate::executors::IsolatedExecutor::spin) and
    /// [`MultiThreadedExecutor::spin`](crate::executors::MultiThreadedExecutor::spin) return
    /// an error; executors whose `spin` returns nothing log a warning.
    pub fn thread_settings(&self) -> ThreadSettings {
        self.core.thread.as_deref().cloned().unwrap_or_default()
    }

    /// The context that created it.
    pub fn context(&self) -> &Context {
        &self.core.context
    }

    // --- spinning ---

    fn executor(&self) -> SingleThreadedExecutor {
        let executor = SingleThreadedExecutor::new(&self.core.context);
        // Cannot fail: the executor is new and of the node's own context.
        let added = executor.add_node(self);
        debug_assert!(added.is_ok(), "{added:?}");
        executor
    }

    /// Runs the node's callbacks until the context shuts down. Blocks.
    pub fn spin(&self) {
        self.executor().spin();
    }

    /// Runs at most one callback, waiting for it at most `timeout`; true if one
    /// ran.
    ///
    /// In a loop, an executor of your own costs less.
    pub fn spin_once(&self, timeout: Duration) -> bool {
        let timer_ran_last = &self.core.timer_ran_last;
        self.executor().spin_once_after(timeout, timer_ran_last)
    }

    /// Runs callbacks until `done` returns true, `timeout` passes or the context
    /// shuts down.
    ///
    /// Returns the last result of `done`. Blocks.
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
