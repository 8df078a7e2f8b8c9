//! A node with a state, and how it changes it.

use std::fmt;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use pteros_interfaces::lifecycle_msgs::msg::{State, Transition, TransitionEvent};
use pteros_msg::message::Message;
use pteros_rmw::gate::Gate;
use pteros_rmw::graph::NodeKey;
use pteros_rmw::ready::{Slot, Task};
use pteros_rmw::rtps::fault;

use super::activation::Activation;
use super::callbacks::{CallbackReturn, LifecycleCallbacks};
use super::error::TransitionError;
use super::machine::{LifecycleState, LifecycleTransition, Verdict, end_of};
use super::publisher::LifecyclePublisher;
use super::services::{Asked, Services};
use crate::callback_group::GroupCore;
use crate::context::Context;
use crate::error::{CreateError, NodeError};
use crate::executor::{Home, panic_text};
use crate::node::{Attach, Node, NodeOptions};
use crate::publisher::{Publisher, PublisherOptions};
use crate::qos::QosProfile;
use crate::timer::{Timer, TimerOptions};

/// Transitions are announced on this topic, as in ROS 2.
const EVENTS: &str = "~/transition_event";

/// A managed node: one with a state, which others change through the services
/// `~/change_state`, `~/get_state`, `~/get_available_states`,
/// `~/get_available_transitions` and `~/get_transition_graph`, and hear of on the
/// topic `~/transition_event`. Cheap to clone; its callbacks are dropped, and its
/// services end, with the last clone of the one that [`LifecycleNode::new`]
/// returned.
///
/// It is a [`Node`] in everything else: subscriptions, services and clients work
/// in every state. [`create_publisher`](Self::create_publisher) and
/// [`create_timer`](Self::create_timer) make those that work while it is active;
/// [`LifecycleNode::node`] has the others.
///
/// ```no_run
/// use std::time::Duration;
///
/// use pteros::interfaces::std_msgs::msg::String as Text;
/// use pteros::prelude::*;
/// use pteros::{CallbackReturn, LifecycleCallbacks, LifecycleNode, LifecycleState};
///
/// #[derive(Default)]
/// struct Talker {
///     timer: Option<Timer>,
/// }
///
/// impl LifecycleCallbacks for Talker {
///     fn on_configure(&mut self, node: &LifecycleNode, _: LifecycleState) -> CallbackReturn {
///         let Ok(publisher) = node.create_publisher::<Text>("chatter", 10) else {
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
#[derive(Clone)]
pub struct LifecycleNode {
    core: Arc<LifecycleCore>,
    /// Not with the handle that callbacks get, which they may keep.
    _owner: Option<Arc<Owner>>,
}

/// What is dropped when the last of its users' handles is.
pub(super) struct Owner {
    callbacks: Mutex<Box<dyn LifecycleCallbacks>>,
    _services: Services,
}

/// A managed node without its callbacks.
pub(crate) struct LifecycleCore {
    node: Node,
    events: Publisher<TransitionEvent>,
    pub(super) activation: Arc<Activation>,
    progress: Mutex<Progress>,
    owner: OnceLock<Weak<Owner>>,
    slot: Slot,
    group: Arc<GroupCore>,
    me: Weak<LifecycleCore>,
}

/// Where it is.
struct Progress {
    state: LifecycleState,
    /// Transitions begun so far.
    number: u64,
    under_way: Option<UnderWay>,
    /// The answer that a callback has given later, until the executor looks.
    answer: Option<(u64, Verdict)>,
}

/// A transition that has begun.
struct UnderWay {
    asked_for: LifecycleTransition,
    /// What its first callback said.
    verdict: Option<Verdict>,
    asked: Option<Asked>,
}

impl LifecycleNode {
    /// A managed node, unconfigured, with its services and its topic.
    ///
    /// # Errors
    /// See [`NodeError`].
    pub fn new(
        context: &Context,
        options: NodeOptions,
        callbacks: impl LifecycleCallbacks,
    ) -> Result<Self, NodeError> {
        let node = context.node_with(options)?;
        Self::with_node(&node, callbacks).map_err(|source| NodeError::Part {
            node: node.fully_qualified_name(),
            source: Box::new(source),
        })
    }

    fn with_node(node: &Node, callbacks: impl LifecycleCallbacks) -> Result<Self, CreateError> {
        let events = node.create_publisher(EVENTS, QosProfile::default())?;
        let core = Arc::new_cyclic(|me| LifecycleCore {
            node: node.clone(),
            events,
            activation: Arc::default(),
            progress: Mutex::new(Progress {
                state: LifecycleState::Unconfigured,
                number: 0,
                under_way: None,
                answer: None,
            }),
            owner: OnceLock::new(),
            slot: Slot::default(),
            group: node.core().own_group.clone(),
            me: me.clone(),
        });
        let owner = Arc::new(Owner {
            callbacks: Mutex::new(Box::new(callbacks)),
            _services: Services::new(node, &core.me)?,
        });
        let _ = core.owner.set(Arc::downgrade(&owner));
        let part: Weak<LifecycleCore> = core.me.clone();
        core.slot.set_task(part.clone());
        node.core().add(part);
        Ok(Self {
            core,
            _owner: Some(owner),
        })
    }

    /// The node itself, whose publishers and timers work in every state.
    pub fn node(&self) -> &Node {
        &self.core.node
    }

    /// Where it is now.
    pub fn state(&self) -> LifecycleState {
        self.core.state()
    }

    /// Goes to another state: runs the callback on this thread, and `on_error` if
    /// need be. Returns where it is then: a state that lasts, unless the callback
    /// [answers later](CallbackReturn::later). Other threads than those that spin
    /// the node had better call its service, which runs the callbacks in the
    /// executor, in the node's own group.
    ///
    /// # Errors
    /// See [`TransitionError`].
    pub fn change_state(
        &self,
        transition: LifecycleTransition,
    ) -> Result<LifecycleState, TransitionError> {
        self.core.change(&Wanted::Id(transition.id), None)
    }

    /// As [`Self::change_state`], by the transition's label, which may lead away
    /// from several states: `shutdown`.
    ///
    /// # Errors
    /// See [`TransitionError`].
    pub fn change_state_by_label(&self, label: &str) -> Result<LifecycleState, TransitionError> {
        self.core.change(&Wanted::Label(label.into()), None)
    }

    /// From unconfigured to inactive, as [`Self::change_state`].
    ///
    /// # Errors
    /// See [`TransitionError`].
    pub fn configure(&self) -> Result<LifecycleState, TransitionError> {
        self.change_state(LifecycleTransition::CONFIGURE)
    }

    /// From inactive to unconfigured, as [`Self::change_state`].
    ///
    /// # Errors
    /// See [`TransitionError`].
    pub fn cleanup(&self) -> Result<LifecycleState, TransitionError> {
        self.change_state(LifecycleTransition::CLEANUP)
    }

    /// From inactive to active, as [`Self::change_state`].
    ///
    /// # Errors
    /// See [`TransitionError`].
    pub fn activate(&self) -> Result<LifecycleState, TransitionError> {
        self.change_state(LifecycleTransition::ACTIVATE)
    }

    /// From active to inactive, as [`Self::change_state`].
    ///
    /// # Errors
    /// See [`TransitionError`].
    pub fn deactivate(&self) -> Result<LifecycleState, TransitionError> {
        self.change_state(LifecycleTransition::DEACTIVATE)
    }

    /// From wherever it is to finalized, as [`Self::change_state`].
    ///
    /// # Errors
    /// See [`TransitionError`].
    pub fn shutdown(&self) -> Result<LifecycleState, TransitionError> {
        self.change_state_by_label("shutdown")
    }

    // --- what works while it is active ---

    /// A publisher that speaks while the node is active.
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn create_publisher<T: Message>(
        &self,
        topic: &str,
        qos: impl Into<QosProfile>,
    ) -> Result<LifecyclePublisher<T>, CreateError> {
        self.create_publisher_with(topic, PublisherOptions::new(qos))
    }

    /// A publisher that speaks while the node is active, with options.
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn create_publisher_with<T: Message>(
        &self,
        topic: &str,
        options: PublisherOptions,
    ) -> Result<LifecyclePublisher<T>, CreateError> {
        let publisher = self.core.node.create_publisher_with(topic, options)?;
        let name = self.core.node.fully_qualified_name();
        Ok(LifecyclePublisher::new(
            publisher,
            &self.core.activation,
            name,
        ))
    }

    /// A timer that ticks while the node is active, first one period after it has
    /// become so.
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn create_timer(
        &self,
        period: Duration,
        callback: impl FnMut() + Send + 'static,
    ) -> Result<Timer, CreateError> {
        self.create_timer_with(TimerOptions::new(period), callback)
    }

    /// A timer with options that ticks while the node is active. One that ticks
    /// once does so in each activation; one that was cancelled is started again by
    /// the next.
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn create_timer_with(
        &self,
        options: TimerOptions,
        mut callback: impl FnMut() + Send + 'static,
    ) -> Result<Timer, CreateError> {
        let activation = self.core.activation.clone();
        let timer = self.core.node.create_timer_with(options, move || {
            if activation.is_ticking() {
                callback();
            }
        })?;
        self.core.activation.bind(&timer);
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

/// A transition as it is asked for.
#[derive(Clone, Debug)]
pub(super) enum Wanted {
    Id(u8),
    Label(String),
}

impl fmt::Display for Wanted {
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

    /// Begins a transition and goes on until it ends or waits for its answer.
    /// `asked` is told how the first callback ended.
    pub(super) fn change(
        self: &Arc<Self>,
        wanted: &Wanted,
        asked: Option<Asked>,
    ) -> Result<LifecycleState, TransitionError> {
        let mut asked = asked;
        let begun = self.begin(wanted, &mut asked);
        if let (Err(error), Some(asked)) = (&begun, asked) {
            tracing::warn!("{error}");
            asked.answer(false);
        }
        self.go_on(begun?, None)
    }

    /// Enters the state in which the callback runs.
    fn begin(
        &self,
        wanted: &Wanted,
        asked: &mut Option<Asked>,
    ) -> Result<LifecycleTransition, TransitionError> {
        let mut progress = self.progress.lock();
        let state = progress.state;
        if progress.under_way.is_some() {
            return Err(TransitionError::Busy {
                node: self.name(),
                state,
                asked: wanted.to_string(),
            });
        }
        let of_any = fault!("transition-of-any-state-taken");
        let all = LifecycleTransition::all().iter();
        let mut steps = all.filter(|s| (of_any || s.start == state) && s.can_be_asked_for());
        let found = steps.find(|step| match wanted {
            Wanted::Id(id) => step.id == *id,
            Wanted::Label(label) => step.label == label,
        });
        let transition = *found.ok_or_else(|| TransitionError::Illegal {
            node: self.name(),
            state,
            asked: wanted.to_string(),
        })?;
        progress.number += 1;
        progress.under_way = Some(UnderWay {
            asked_for: transition,
            verdict: None,
            asked: asked.take(),
        });
        self.enter(&mut progress, &transition);
        Ok(transition)
    }

    /// Runs callbacks until a state is reached that lasts, or an answer is to
    /// come. `verdict` is that of the state's callback, if it has come.
    fn go_on(
        self: &Arc<Self>,
        transition: LifecycleTransition,
        mut verdict: Option<Verdict>,
    ) -> Result<LifecycleState, TransitionError> {
        loop {
            let (state, number) = {
                let progress = self.progress.lock();
                (progress.state, progress.number)
            };
            let said = match verdict.take() {
                Some(verdict) => verdict,
                None => match self.run_callback(state, transition.start)? {
                    CallbackReturn::Success => Verdict::Success,
                    CallbackReturn::Failure => Verdict::Failure,
                    CallbackReturn::Error => Verdict::Error,
                    CallbackReturn::Later(later) => match later.wait_for(self, number) {
                        Some(verdict) => verdict,
                        None => return Ok(state),
                    },
                },
            };
            if let Some(end) = self.conclude(state, said) {
                return self.outcome(transition, end);
            }
        }
    }

    /// Goes where a callback's answer leads. The end, if the transition has come
    /// to it.
    fn conclude(&self, state: LifecycleState, verdict: Verdict) -> Option<UnderWay> {
        let mut progress = self.progress.lock();
        let mut end = None;
        if let Some(step) = end_of(state, verdict) {
            if let Some(under_way) = &mut progress.under_way {
                under_way.verdict.get_or_insert(verdict);
            }
            if step.goal.is_primary() {
                end = progress.under_way.take();
            }
            self.enter(&mut progress, &step);
        }
        end
    }

    /// Tells who asked, and says it in words.
    fn outcome(
        &self,
        transition: LifecycleTransition,
        end: UnderWay,
    ) -> Result<LifecycleState, TransitionError> {
        let verdict = end.verdict.unwrap_or(Verdict::Error);
        if let Some(asked) = end.asked {
            asked.answer(verdict == Verdict::Success);
        }
        let (node, state) = (self.name(), self.state());
        match verdict {
            Verdict::Success => Ok(state),
            Verdict::Failure => Err(TransitionError::Failed {
                node,
                transition,
                state,
            }),
            Verdict::Error => Err(TransitionError::Error {
                node,
                transition,
                state,
            }),
        }
    }

    /// Changes the state, and all that depends on it, and says so. Under the
    /// lock, so that the topic tells it in the order it happened; no user code
    /// runs there.
    fn enter(&self, progress: &mut Progress, step: &LifecycleTransition) {
        use LifecycleState as S;
        progress.state = step.goal;
        match step.goal {
            S::Activating => self.activation.open(),
            S::Active => {
                self.activation.open();
                self.activation.start_timers();
            }
            S::Deactivating | S::ShuttingDown => self.activation.stop_timers(),
            _ => {
                self.activation.stop_timers();
                self.activation.close();
            }
        }
        let now = self.node.core().core().env.wall();
        let event = TransitionEvent {
            timestamp: u64::try_from(now.as_nanos()).unwrap_or(0),
            transition: message_of(step),
            start_state: state_message(step.start),
            goal_state: state_message(step.goal),
        };
        if !fault!("transition-not-told")
            && let Err(error) = self.events.publish_owned(event)
        {
            tracing::warn!("a transition is not told: {error}");
        }
        tracing::debug!(node = %self.name(), "{} to {}", step.start, step.goal);
    }

    /// Runs the callback of a state that lasts as long as it does.
    fn run_callback(
        self: &Arc<Self>,
        state: LifecycleState,
        previous: LifecycleState,
    ) -> Result<CallbackReturn, TransitionError> {
        use LifecycleState as S;
        let owner = self.owner.get().and_then(Weak::upgrade);
        let owner = owner.ok_or_else(|| TransitionError::Gone { node: self.name() })?;
        let handle = LifecycleNode {
            core: self.clone(),
            _owner: None,
        };
        // Never held by another: one transition at a time.
        let mut callbacks = owner.callbacks.lock();
        // What a panic leaves behind in the user's callbacks, `on_error` is told.
        let said = catch_unwind(AssertUnwindSafe(|| match state {
            S::Configuring => callbacks.on_configure(&handle, previous),
            S::CleaningUp => callbacks.on_cleanup(&handle, previous),
            S::Activating => callbacks.on_activate(&handle, previous),
            S::Deactivating => callbacks.on_deactivate(&handle, previous),
            S::ShuttingDown => callbacks.on_shutdown(&handle, previous),
            S::ErrorProcessing => callbacks.on_error(&handle, previous),
            // Primary states have none.
            _ => CallbackReturn::Success,
        }));
        Ok(said.unwrap_or_else(|payload| {
            let (node, said) = (self.name(), panic_text(&payload));
            tracing::error!("node \"{node}\" panicked while {}: {said}", state.label());
            CallbackReturn::Error
        }))
    }

    /// Takes in an answer that a callback has given later.
    pub(super) fn answered_later(&self, number: u64, verdict: Verdict) {
        self.progress.lock().answer = Some((number, verdict));
        self.slot.ready();
    }

    fn take_answer(&self) -> Option<(LifecycleTransition, Verdict)> {
        let mut progress = self.progress.lock();
        let (number, verdict) = progress.answer.take()?;
        let under_way = progress.under_way.as_ref()?;
        (number == progress.number).then_some((under_way.asked_for, verdict))
    }
}

/// Ends a transition whose callback has answered later.
impl Task for LifecycleCore {
    fn run(&self) {
        self.slot.taken();
        let me = self.me.upgrade();
        if let (Some(me), Some((transition, verdict))) = (me, self.take_answer()) {
            // Who asked has been told.
            let _ = me.go_on(transition, Some(verdict));
        }
    }

    fn gate(&self) -> Option<&Gate> {
        self.group.gate()
    }

    fn node(&self) -> Option<NodeKey> {
        Some(self.group.node)
    }

    fn describe(&self) -> String {
        format!("transition of node \"{}\"", self.name())
    }
}

impl Attach for LifecycleCore {
    fn attach(&self, home: Option<&Arc<Home>>) {
        let queue = home.map(|home| home.queue.clone());
        self.slot
            .attach(queue, || self.progress.lock().answer.is_some());
    }

    fn callback_group(&self) -> &Arc<GroupCore> {
        &self.group
    }
}

pub(super) fn state_message(state: LifecycleState) -> State {
    State {
        id: state.id(),
        label: state.label().into(),
    }
}

pub(super) fn message_of(step: &LifecycleTransition) -> Transition {
    Transition {
        id: step.id,
        label: step.label.into(),
    }
}
