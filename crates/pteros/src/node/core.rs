//! Node core: what a node's entities share.
//!
//! It resolves names (expansion and remapping) and assigns entities to executors,
//! callback groups and wait sets.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use pteros_runtime::Core;
use pteros_runtime::graph::NodeKey;
use pteros_runtime::names::{NameKind, node_path, validate_dds_topic};
use pteros_runtime::rtps::discovery::data::EndpointData;
use pteros_runtime::thread::ThreadSettings;

use super::entity::{CallbackGroupCore, CallbackGroupType, NodeEntity};
use super::future_task::SpawnedTasks;
use crate::args::{Arguments, resolve_name};
use crate::context::Context;
use crate::error::CreateError;
use crate::executor_queue::ExecutorQueue;
use crate::parameter::ParameterStore;
use crate::qos::QosProfile;
use crate::time_source::NodeTime;

/// A node without its own services. Its entities keep it alive.
pub(crate) struct NodeCore {
    pub(super) context: Context,
    pub(super) name: String,
    pub(super) namespace: String,
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
    pub(crate) timer_ran_last: AtomicBool,
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

/// The parts of a new [`NodeCore`].
pub(crate) struct NodeParts {
    pub(crate) context: Context,
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) arguments: Arguments,
    pub(crate) use_global_arguments: bool,
    pub(crate) as_bytes: bool,
    pub(crate) parameters: Arc<ParameterStore>,
    pub(crate) thread: Option<Box<ThreadSettings>>,
    pub(crate) tasks_max: usize,
}

impl NodeCore {
    /// Adds the node to the graph.
    pub(crate) fn new(parts: NodeParts) -> Arc<Self> {
        let core = parts.context.core();
        let key = core.discovery().add_node(&parts.name, &parts.namespace);
        let sequential = CallbackGroupType::MutuallyExclusive;
        Arc::new(Self {
            key,
            as_bytes: parts.as_bytes,
            parameters: parts.parameters,
            thread: parts.thread,
            default_callback_group: CallbackGroupCore::new(sequential, key),
            spawned: SpawnedTasks::new(parts.tasks_max),
            time: NodeTime::new(core, key, &parts.context.inner.sim_time),
            has_rosout_publisher: AtomicBool::new(false),
            timer_ran_last: AtomicBool::new(false),
            assignment: Mutex::default(),
            context: parts.context,
            name: parts.name,
            namespace: parts.namespace,
            arguments: parts.arguments,
            use_global_arguments: parts.use_global_arguments,
        })
    }

    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        self.context.core()
    }

    /// The node's name, after remapping.
    pub(crate) fn name(&self) -> &str {
        &self.name
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
        core.driver().wait_until(until, done)
    }

    /// Records in the graph that the endpoint belongs to this node.
    pub(crate) fn attach_endpoint(&self, data: &Arc<EndpointData>) {
        self.core().discovery().attach_endpoint(self.key, data);
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
        self.core().discovery().remove_node(self.key);
    }
}
