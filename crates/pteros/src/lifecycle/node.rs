//! Lifecycle node: a node with a state machine and transition services.

use std::fmt;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;
use pteros_interfaces::lifecycle_msgs::msg::{State, Transition, TransitionEvent};
use pteros_msg::type_support::MessageTypeSupport;
use pteros_runtime::graph::NodeKey;
use pteros_runtime::mutual_exclusion::MutualExclusionGate;
use pteros_runtime::ready_queue::{ReadySlot, Task};

use super::activation::Activation;
use super::callbacks::{CallbackReturn, LifecycleCallbacks};
use super::publisher::LifecyclePublisher;
use super::services::{ChangeStateCall, LifecycleServices};
use crate::context::Context;
use crate::error::CreateError;
use crate::executor_queue::ExecutorQueue;
use crate::executors::panic_message;
use crate::node::{CallbackGroupCore, Node, NodeEntity, NodeOptions};
use crate::publisher::{Publisher, PublisherOptions};
use crate::timer::{Timer, TimerOptions};
use pteros_rcl::lifecycle::TransitionError;
use pteros_rcl::lifecycle::{
    LifecycleState, LifecycleTransition, TransitionOutcome, transition_after,
};

/// Topic of transition events, as in ROS 2.
const TRANSITION_EVENT_TOPIC: &str = "~/transition_event";

/// A managed node. Others change its state through the services `~/change_state`,
/// `~/get_state`, `~/get_available_states`, `~/get_available_transitions` and
/// `~/get_transition_graph`, and receive transitions on the topic
/// `~/transition_event`. Cheap to clone. Its callbacks and services end with the
/// last clone of the value that [`LifecycleNode::new`] returned.
///
/// Otherwise it is a [`Node`]: subscriptions, services and clients work in every
/// state. [`create_publisher`](Self::create_publisher) and
/// [`create_timer`](Self::create_timer) create publishers and timers that work
/// while the node is active. [`LifecycleNode::node`] creates the ones that always
/// work.
///
/// ```no_run
/// use std::time::Duration;
///
/// use pteros::interfaces::std_msgs::msg::String as Text;
/// use pteros::prelude::*;
/// use pteros::lifecycle::{CallbackReturn, LifecycleCallbacks, LifecycleNode, LifecycleState};
///
/// #[derive(Default)]
/// struct Talker {
///     timer: Option<Timer>,
/// }
///
/// impl LifecycleCallbacks for Talker {
///     fn on_configure(&mut self, node: &LifecycleNode, _: LifecycleState) -> CallbackReturn {
///         let Ok(publisher) = node.create_publisher::<Text>("chatter".keep_last(10)) else {
///             return CallbackReturn::Failure;
///         };
///         // Ticks while the node is active.
///         let timer = node.create_timer(Duration::from_secs(1), move || {
///             let _ = publisher.publish_owned(Text { data: "Hello".into() });
///         });
///         self.timer = timer.ok();
///         CallbackReturn::Success
///     }
///
///     fn on_cleanup(&mut self, _: &LifecycleNode, _: LifecycleState) -> CallbackReturn {
///         self.timer = None;
///         CallbackReturn::Success
///     }
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let context = Context::new()?;
/// let node = LifecycleNode::new(&context, NodeOptions::new("talker"), Talker::default())?;
/// node.spin(); // pteros lifecycle set /talker configure
/// # Ok(())
/// # }
/// ```
#[must_use = "a node leaves the graph when it and its endpoints are dropped: keep it in a variable or a field"]
#[derive(Clone)]
pub struct LifecycleNode {
    core: Arc<LifecycleCore>,
    /// Not set in the handle that callbacks get, since they may keep it.
    _owner: Option<Arc<CallbackOwner>>,
}

/// Callbacks and services, dropped with the last user handle.
pub(super) struct CallbackOwner {
    callbacks: Mutex<Box<dyn LifecycleCallbacks>>,
    _services: LifecycleServices,
}

/// Core of a managed node, without its callbacks.
pub(crate) struct LifecycleCore {
    node: Node,
    events: Publisher<TransitionEvent>,
    pub(super) activation: Arc<Activation>,
    progress: Mutex<TransitionProgress>,
    owner: OnceLock<Weak<CallbackOwner>>,
    slot: ReadySlot,
    group: Arc<CallbackGroupCore>,
    weak_self: Weak<LifecycleCore>,
}

/// Current state and transition.
struct TransitionProgress {
    state: LifecycleState,
    /// Number of transitions begun so far.
    number: u64,
    active: Option<ActiveTransition>,
    /// Deferred outcome of a callback, until the executor processes it.
    deferred_outcome: Option<(u64, TransitionOutcome)>,
}

/// A transition in progress.
struct ActiveTransition {
    requested: LifecycleTransition,
    /// Outcome of the first callback.
    outcome: Option<TransitionOutcome>,
    call: Option<ChangeStateCall>,
}

impl LifecycleNode {
    /// Creates a managed node in state unconfigured, with its services and topic.
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn new(
        context: &Context,
        options: NodeOptions,
        callbacks: impl LifecycleCallbacks,
    ) -> Result<Self, CreateError> {
        let node = context.create_node(options)?;
        Self::with_node(&node, callbacks).map_err(|source| CreateError::Part {
            node: node.fully_qualified_name(),
            source: Box::new(source),
        })
    }

    fn with_node(node: &Node, callbacks: impl LifecycleCallbacks) -> Result<Self, CreateError> {
        let events = node.create_publisher(TRANSITION_EVENT_TOPIC)?;
        let core = Arc::new_cyclic(|weak_self| LifecycleCore {
            node: node.clone(),
            events,
            activation: Arc::default(),
            progress: Mutex::new(TransitionProgress {
                state: LifecycleState::Unconfigured,
                number: 0,
                active: None,
                deferred_outcome: None,
            }),
            owner: OnceLock::new(),
            slot: ReadySlot::default(),
            group: node.core().default_callback_group.clone(),
            weak_self: weak_self.clone(),
        });
        let owner = Arc::new(CallbackOwner {
            callbacks: Mutex::new(Box::new(callbacks)),
            _services: LifecycleServices::new(node, &core.weak_self)?,
        });
        let _ = core.owner.set(Arc::downgrade(&owner));
        let task: Weak<LifecycleCore> = core.weak_self.clone();
        core.slot.set_task(task.clone());
        node.core().add_entity(task);
        Ok(Self {
            core,
            _owner: Some(owner),
        })
    }

    /// The underlying node, whose publishers and timers work in every state.
    pub fn node(&self) -> &Node {
        &self.core.node
    }

    /// State of the node now.
    pub fn state(&self) -> LifecycleState {
        self.core.state()
    }

    /// Runs a transition. The callback runs on this thread, as does `on_error` if
    /// needed. Returns the state reached: a primary state, unless the callback
    /// [defers its result](CallbackReturn::deferred). A thread that does not spin
    /// the node should call the service instead, which runs the callbacks in the
    /// executor, in the node's default callback group.
    ///
    /// # Errors
    /// See [`TransitionError`].
    pub fn change_state(
        &self,
        transition: LifecycleTransition,
    ) -> Result<LifecycleState, TransitionError> {
        self.core
            .change(&TransitionRequest::Id(transition.id), None)
    }

    /// Like [`Self::change_state`], by the label of the transition. A label such as
    /// `shutdown` exists in several states.
    ///
    /// # Errors
    /// See [`TransitionError`].
    pub fn change_state_by_label(&self, label: &str) -> Result<LifecycleState, TransitionError> {
        self.core
            .change(&TransitionRequest::Label(label.into()), None)
    }

    /// Configures: from unconfigured to inactive; see [`Self::change_state`].
    ///
    /// # Errors
    /// See [`TransitionError`].
    pub fn configure(&self) -> Result<LifecycleState, TransitionError> {
        self.change_state(LifecycleTransition::CONFIGURE)
    }

    /// Cleans up: from inactive to unconfigured; see [`Self::change_state`].
    ///
    /// # Errors
    /// See [`TransitionError`].
    pub fn cleanup(&self) -> Result<LifecycleState, TransitionError> {
        self.change_state(LifecycleTransition::CLEANUP)
    }

    /// Activates: from inactive to active; see [`Self::change_state`].
    ///
    /// # Errors
    /// See [`TransitionError`].
    pub fn activate(&self) -> Result<LifecycleState, TransitionError> {
        self.change_state(LifecycleTransition::ACTIVATE)
    }

    /// Deactivates: from active to inactive; see [`Self::change_state`].
    ///
    /// # Errors
    /// See [`TransitionError`].
    pub fn deactivate(&self) -> Result<LifecycleState, TransitionError> {
        self.change_state(LifecycleTransition::DEACTIVATE)
    }

    /// Shuts down: from any primary state to finalized; see [`Self::change_state`].
    ///
    /// # Errors
    /// See [`TransitionError`].
    pub fn shutdown(&self) -> Result<LifecycleState, TransitionError> {
        self.change_state_by_label("shutdown")
    }

    // --- managed publishers and timers ---

    /// Creates a publisher that publishes while the node is active; see
    /// [`Node::create_publisher`].
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn create_publisher<T: MessageTypeSupport>(
        &self,
        options: impl Into<PublisherOptions<T>>,
    ) -> Result<LifecyclePublisher<T>, CreateError> {
        let publisher = self.core.node.create_publisher(options)?;
        let name = self.core.node.fully_qualified_name();
        Ok(LifecyclePublisher::new(
            publisher,
            &self.core.activation,
            name,
        ))
    }

    /// Creates a timer that ticks while the node is active; see
    /// [`Node::create_timer`]. The first tick is one period after activation. A
    /// one-shot timer ticks once per activation. The next activation restarts a
    /// cancelled timer.
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn create_timer(
        &self,
        options: impl Into<TimerOptions>,
        mut callback: impl FnMut() + Send + 'static,
    ) -> Result<Timer, CreateError> {
        let activation = self.core.activation.clone();
        let timer = self.core.node.create_timer(options, move || {
            if activation.are_timers_active() {
                callback();
            }
        })?;
        self.core.activation.bind_timer(&timer);
        Ok(timer)
    }
}

impl Deref for LifecycleNode {
    type Target = Node;

    fn deref(&self) -> &Node {
        &self.core.node
    }
}

impl fmt::Debug for LifecycleNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LifecycleNode")
            .field("node", &self.core.node.fully_qualified_name())
            .field("state", &self.state())
            .finish()
    }
}

/// A requested transition, by id or by label.
#[derive(Clone, Debug)]
pub(super) enum TransitionRequest {
    Id(u8),
    Label(String),
}

impl fmt::Display for TransitionRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => write!(f, "[{id}]"),
            Self::Label(label) => write!(f, "\"{label}\""),
        }
    }
}

impl LifecycleCore {
    pub(super) fn state(&self) -> LifecycleState {
        self.progress.lock().state
    }

    fn name(&self) -> String {
        self.node.fully_qualified_name()
    }

    /// Runs a transition until it ends or its result is deferred. `call` receives
    /// the outcome of the first callback.
    pub(super) fn change(
        self: &Arc<Self>,
        request: &TransitionRequest,
        call: Option<ChangeStateCall>,
    ) -> Result<LifecycleState, TransitionError> {
        let mut call = call;
        let transition = self.begin_transition(request, &mut call);
        if let (Err(error), Some(call)) = (&transition, call) {
            tracing::warn!("{error}");
            call.respond(false);
        }
        self.run_transition(transition?, None)
    }

    /// Enters the transition state, in which the callback runs.
    fn begin_transition(
        &self,
        request: &TransitionRequest,
        call: &mut Option<ChangeStateCall>,
    ) -> Result<LifecycleTransition, TransitionError> {
        let mut progress = self.progress.lock();
        let state = progress.state;
        if progress.active.is_some() {
            return Err(TransitionError::Busy {
                node: self.name(),
                state,
                requested: request.to_string(),
            });
        }
        let all = LifecycleTransition::all().iter();
        let mut transitions = all.filter(|s| s.start == state && s.is_requestable());
        let found = transitions.find(|transition| match request {
            TransitionRequest::Id(id) => transition.id == *id,
            TransitionRequest::Label(label) => transition.label == label,
        });
        let transition = *found.ok_or_else(|| TransitionError::Illegal {
            node: self.name(),
            state,
            requested: request.to_string(),
        })?;
        progress.number += 1;
        progress.active = Some(ActiveTransition {
            requested: transition,
            outcome: None,
            call: call.take(),
        });
        self.enter_state(&mut progress, &transition);
        Ok(transition)
    }

    /// Runs callbacks until a primary state is reached or a result is deferred.
    /// `outcome` is that of the current state's callback, if known.
    fn run_transition(
        self: &Arc<Self>,
        transition: LifecycleTransition,
        mut outcome: Option<TransitionOutcome>,
    ) -> Result<LifecycleState, TransitionError> {
        loop {
            let (state, number) = {
                let progress = self.progress.lock();
                (progress.state, progress.number)
            };
            let result = match outcome.take() {
                Some(outcome) => outcome,
                None => match self.run_callback(state, transition.start)? {
                    CallbackReturn::Success => TransitionOutcome::Success,
                    CallbackReturn::Failure => TransitionOutcome::Failure,
                    CallbackReturn::Error => TransitionOutcome::Error,
                    CallbackReturn::Deferred(deferred) => {
                        match deferred.outcome_or_register(self, number) {
                            Some(outcome) => outcome,
                            None => return Ok(state),
                        }
                    }
                },
            };
            if let Some(end) = self.apply_outcome(state, result) {
                return self.report_outcome(transition, end);
            }
        }
    }

    /// Applies the outcome of a callback. Returns the transition if it has ended.
    fn apply_outcome(
        &self,
        state: LifecycleState,
        outcome: TransitionOutcome,
    ) -> Option<ActiveTransition> {
        let mut progress = self.progress.lock();
        let mut end = None;
        if let Some(transition) = transition_after(state, outcome) {
            if let Some(active) = &mut progress.active {
                active.outcome.get_or_insert(outcome);
            }
            if transition.goal.is_primary() {
                end = progress.active.take();
            }
            self.enter_state(&mut progress, &transition);
        }
        end
    }

    /// Answers the service call and returns the result.
    fn report_outcome(
        &self,
        transition: LifecycleTransition,
        end: ActiveTransition,
    ) -> Result<LifecycleState, TransitionError> {
        let outcome = end.outcome.unwrap_or(TransitionOutcome::Error);
        if let Some(call) = end.call {
            call.respond(outcome == TransitionOutcome::Success);
        }
        let (node, state) = (self.name(), self.state());
        match outcome {
            TransitionOutcome::Success => Ok(state),
            TransitionOutcome::Failure => Err(TransitionError::Failed {
                node,
                transition,
                state,
            }),
            TransitionOutcome::Error => Err(TransitionError::Error {
                node,
                transition,
                state,
            }),
        }
    }

    /// Changes the state, enables or disables publishers and timers, and publishes
    /// the event. Runs under the lock, so that events are published in order; no
    /// user code runs here.
    fn enter_state(&self, progress: &mut TransitionProgress, transition: &LifecycleTransition) {
        use LifecycleState as S;
        progress.state = transition.goal;
        match transition.goal {
            S::Activating => self.activation.activate_publishers(),
            S::Active => {
                self.activation.activate_publishers();
                self.activation.start_timers();
            }
            S::Deactivating | S::ShuttingDown => self.activation.stop_timers(),
            _ => {
                self.activation.stop_timers();
                self.activation.deactivate_publishers();
            }
        }
        let now = self.node.core().core().platform.wall_clock();
        let event = TransitionEvent {
            timestamp: u64::try_from(now.as_nanos()).unwrap_or(0),
            transition: transition_message(transition),
            start_state: state_message(transition.start),
            goal_state: state_message(transition.goal),
        };
        if let Err(error) = self.events.publish_owned(event) {
            tracing::warn!("transition event not published: {error}");
        }
        tracing::debug!(node = %self.name(), "{} to {}", transition.start, transition.goal);
    }

    /// Runs the callback of a transition state.
    fn run_callback(
        self: &Arc<Self>,
        state: LifecycleState,
        previous: LifecycleState,
    ) -> Result<CallbackReturn, TransitionError> {
        use LifecycleState as S;
        let owner = self.owner.get().and_then(Weak::upgrade);
        let owner = owner.ok_or_else(|| TransitionError::NodeDropped { node: self.name() })?;
        let handle = LifecycleNode {
            core: self.clone(),
            _owner: None,
        };
        // Never contended: one transition at a time.
        let mut callbacks = owner.callbacks.lock();
        // After a panic, `on_error` runs and can repair the user's state.
        let result = catch_unwind(AssertUnwindSafe(|| match state {
            S::Configuring => callbacks.on_configure(&handle, previous),
            S::CleaningUp => callbacks.on_cleanup(&handle, previous),
            S::Activating => callbacks.on_activate(&handle, previous),
            S::Deactivating => callbacks.on_deactivate(&handle, previous),
            S::ShuttingDown => callbacks.on_shutdown(&handle, previous),
            S::ErrorProcessing => callbacks.on_error(&handle, previous),
            // Primary states have no callback.
            _ => CallbackReturn::Success,
        }));
        Ok(result.unwrap_or_else(|payload| {
            let (node, result) = (self.name(), panic_message(&payload));
            tracing::error!("node \"{node}\" panicked while {}: {result}", state.label());
            CallbackReturn::Error
        }))
    }

    /// Stores the deferred outcome of a callback.
    pub(super) fn handle_deferred_outcome(&self, number: u64, outcome: TransitionOutcome) {
        self.progress.lock().deferred_outcome = Some((number, outcome));
        self.slot.mark_ready();
    }

    fn take_deferred_outcome(&self) -> Option<(LifecycleTransition, TransitionOutcome)> {
        let mut progress = self.progress.lock();
        let (number, outcome) = progress.deferred_outcome.take()?;
        let active = progress.active.as_ref()?;
        (number == progress.number).then_some((active.requested, outcome))
    }
}

/// Ends a transition whose result was deferred.
impl Task for LifecycleCore {
    fn run(&self) {
        self.slot.begin_take();
        let weak_self = self.weak_self.upgrade();
        if let (Some(weak_self), Some((transition, outcome))) =
            (weak_self, self.take_deferred_outcome())
        {
            // The service call has been answered.
            let _ = weak_self.run_transition(transition, Some(outcome));
        }
    }

    fn gate(&self) -> Option<&MutualExclusionGate> {
        self.group.gate()
    }

    fn node(&self) -> Option<NodeKey> {
        Some(self.group.node)
    }

    fn describe(&self) -> String {
        format!("transition of node \"{}\"", self.name())
    }
}

impl NodeEntity for LifecycleCore {
    fn attach(&self, executor_queue: Option<&Arc<ExecutorQueue>>) {
        let queue = executor_queue.map(|executor_queue| executor_queue.ready.clone());
        self.slot
            .attach(queue, || self.progress.lock().deferred_outcome.is_some());
    }

    fn callback_group(&self) -> &Arc<CallbackGroupCore> {
        &self.group
    }
}

pub(super) fn state_message(state: LifecycleState) -> State {
    State {
        id: state.id(),
        label: state.label().into(),
    }
}

pub(super) fn transition_message(transition: &LifecycleTransition) -> Transition {
    Transition {
        id: transition.id,
        label: transition.label.into(),
    }
}
