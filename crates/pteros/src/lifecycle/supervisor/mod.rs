//! Lifecycle supervisor: brings managed nodes up and down in dependency order.
//!
//! `reconciler` decides without clock and network; this file performs its commands
//! through the lifecycle services of the nodes.

mod event;
mod reconciler;
mod supervised_node;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use pteros_interfaces::lifecycle_msgs::msg::{Transition, TransitionEvent};
use pteros_interfaces::lifecycle_msgs::srv::{
    ChangeState, ChangeStateRequest, GetState, GetStateRequest,
};
use pteros_runtime::rtps::time::Instant;

pub use event::{NodeCondition, NodeReport, SupervisorEvent, SupervisorReport};
pub use supervised_node::{LossPolicy, SupervisedNode};

use crate::context::Context;
use crate::error::CreateError;
use crate::event_handler::EndpointEvent;
use crate::executors::SingleThreadedExecutor;
use crate::named_qos::NamedQosExt;
use crate::node::{Node, NodeOptions};
use crate::qos::{LivelinessPolicy, QosProfile};
use crate::sample::Sample;
use crate::service::Client;
use crate::subscription::{SerializedMessage, SerializedType, Subscription, SubscriptionOptions};
use pteros_rcl::lifecycle::LifecycleState;
use reconciler::{NodeCommand, Reconciler, TargetState};

/// Brings managed nodes up, dependencies first, monitors them, and brings them down
/// in reverse order.
///
/// It queries each node's state after every transition instead of trusting the
/// response. It detects the loss of a node by the end of its `~/transition_event`
/// publisher, at once or after the participant lease. It then acts by the node's
/// [`LossPolicy`]. Every wait has a time limit. Events go to the log, or to
/// [`LifecycleSupervisor::on_event`].
///
/// It works while one of its methods runs, on the caller's thread. The nodes need
/// their own threads or processes, and may be Pteros or ROS 2 nodes.
///
/// ```no_run
/// use pteros::prelude::*;
/// use pteros::lifecycle::{LifecycleState, LifecycleSupervisor, LossPolicy, SupervisedNode};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let context = Context::new()?;
/// let mut supervisor = LifecycleSupervisor::new(&context, [
///     SupervisedNode::new("/planner").depends_on("/map_server"),
///     SupervisedNode::new("/map_server").on_loss(LossPolicy::BringDown),
/// ])?;
/// let report = supervisor.bring_up();
/// if !report.all_are(LifecycleState::Active) {
///     return Err(format!("not everything is up: {report}").into());
/// }
/// while !context.is_shut_down() {
///     supervisor.watch(std::time::Duration::from_secs(1));
/// }
/// # Ok(())
/// # }
/// ```
#[must_use = "a supervisor ends when it is dropped: keep it in a variable or a field"]
pub struct LifecycleSupervisor {
    context: Context,
    reconciler: Reconciler,
    clients: Vec<NodeClients>,
    inbox: Arc<Inbox>,
    executor: SingleThreadedExecutor,
    _node: Node,
    on_event: Option<SupervisorCallback>,
}

type SupervisorCallback = Box<dyn FnMut(&SupervisorEvent) + Send>;

/// Clients and subscriptions for one node.
struct NodeClients {
    name: String,
    state: Client<GetState>,
    change: Client<ChangeState>,
    /// Number of the last request; responses to earlier ones are outdated.
    request_number: u64,
    _events: Subscription<TransitionEvent>,
    _liveliness: Option<Subscription<SerializedMessage>>,
}

/// Updates since the last poll: the newest of each kind per node.
#[derive(Default)]
struct Inbox {
    updates: Mutex<Vec<NodeUpdate>>,
}

#[derive(Clone, Default)]
struct NodeUpdate {
    node_count: Option<usize>,
    /// A node of this name was lost, although another may be present.
    is_one_lost: bool,
    alive: Option<bool>,
    event: Option<LifecycleState>,
    /// Number of the query, and its response.
    state: Option<(u64, Option<LifecycleState>)>,
    changed: Option<u64>,
}

impl Inbox {
    fn update(&self, index: usize, change: impl FnOnce(&mut NodeUpdate)) {
        if let Some(update) = self.updates.lock().get_mut(index) {
            change(update);
        }
    }

    fn is_empty(&self) -> bool {
        let update = self.updates.lock();
        update.iter().all(|update| {
            update.node_count.is_none()
                && update.alive.is_none()
                && update.event.is_none()
                && update.state.is_none()
                && update.changed.is_none()
        })
    }
}

impl LifecycleSupervisor {
    /// Creates a supervisor of these nodes, which need not be running yet. It
    /// creates its own node, `lifecycle_supervisor` unless remapped.
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn new(
        context: &Context,
        nodes: impl IntoIterator<Item = SupervisedNode>,
    ) -> Result<Self, CreateError> {
        let nodes = supervised_node::sort_by_dependencies(nodes.into_iter().collect())?;
        let node = context.create_node(NodeOptions::new("lifecycle_supervisor"))?;
        let inbox = Arc::new(Inbox {
            updates: Mutex::new(vec![NodeUpdate::default(); nodes.len()]),
        });
        let clients: Result<Vec<_>, _> = nodes
            .iter()
            .enumerate()
            .map(|(index, (supervised, _))| NodeClients::new(&node, index, supervised, &inbox))
            .collect();
        let clients = clients?;
        let executor = SingleThreadedExecutor::new(context);
        let added = executor.add_node(&node);
        debug_assert!(added.is_ok(), "{added:?}");
        Ok(Self {
            context: context.clone(),
            reconciler: Reconciler::new(nodes),
            clients,
            inbox,
            executor,
            _node: node,
            on_event: None,
        })
    }

    /// Sets a callback for events, instead of logging them.
    pub fn on_event(mut self, callback: impl FnMut(&SupervisorEvent) + Send + 'static) -> Self {
        self.on_event = Some(Box::new(callback));
        self
    }

    /// Brings all nodes to active, in dependency order. Blocks until each is active
    /// or its policy has decided otherwise. The limit is the sum of the nodes'
    /// time-outs and back-off pauses.
    pub fn bring_up(&mut self) -> SupervisorReport {
        self.drive_to(TargetState::Active)
    }

    /// Brings all nodes to unconfigured, in reverse order. Blocks as
    /// [`Self::bring_up`]. An absent node counts as down. A node that was never
    /// seen is awaited for one second, or for its arrival time-out if that is
    /// shorter.
    pub fn bring_down(&mut self) -> SupervisorReport {
        self.drive_to(TargetState::Unconfigured)
    }

    /// Brings all nodes down and then to finalized, in reverse order. Blocks as
    /// [`Self::bring_up`].
    pub fn shut_down(&mut self) -> SupervisorReport {
        self.drive_to(TargetState::Finalized)
    }

    /// Keeps the nodes in their target state until `timeout` has passed or the
    /// context shuts down. Blocks.
    pub fn watch(&mut self, timeout: Duration) -> SupervisorReport {
        let until = self.now().after(timeout.into());
        self.drive(until, |_| false);
        self.report()
    }

    /// Last known state of all nodes.
    pub fn report(&self) -> SupervisorReport {
        self.reconciler.report()
    }

    fn now(&self) -> Instant {
        self.context.core().platform.now()
    }

    fn drive_to(&mut self, target: TargetState) -> SupervisorReport {
        // Discover the running nodes before any counts as missing.
        self.executor.spin_some();
        let now = self.now();
        self.apply_updates(now);
        self.reconciler.set_target(now, target);
        self.drive(Instant::FAR_FUTURE, Reconciler::is_settled);
        self.report()
    }

    fn drive(&mut self, until: Instant, done: impl Fn(&Reconciler) -> bool) {
        loop {
            let now = self.now();
            self.apply_updates(now);
            for command in self.reconciler.poll_commands(now) {
                self.execute(command);
            }
            while let Some(event) = self.reconciler.poll_event() {
                self.report_event(&event);
            }
            if done(&self.reconciler) || now >= until || self.context.is_shut_down() {
                return;
            }
            let next = self.reconciler.next_deadline().min(until);
            let wait = next.since(now).to_std().unwrap_or(Duration::MAX);
            self.executor.spin_until(|| !self.inbox.is_empty(), wait);
        }
    }

    fn apply_updates(&mut self, now: Instant) {
        let count = self.clients.len();
        let update = std::mem::replace(
            &mut *self.inbox.updates.lock(),
            vec![NodeUpdate::default(); count],
        );
        for (index, update) in update.into_iter().enumerate() {
            let number = self
                .clients
                .get(index)
                .map_or(0, |client| client.request_number);
            if let Some(count) = update.node_count {
                self.reconciler.handle_presence(now, index, count);
                if update.is_one_lost {
                    self.reconciler.handle_duplicate_lost(index);
                }
            }
            if let Some(is_alive) = update.alive {
                self.reconciler.handle_alive(index, is_alive);
            }
            if let Some(goal) = update.event {
                self.reconciler.handle_event(index, goal);
            }
            if let Some((of, state)) = update.state
                && of == number
            {
                self.reconciler.handle_state(now, index, state);
            }
            if update.changed == Some(number) {
                self.reconciler.handle_changed(index);
            }
        }
    }

    fn execute(&mut self, command: NodeCommand) {
        let (NodeCommand::QueryState(index) | NodeCommand::ChangeState(index, _)) = command;
        let Some(client) = self.clients.get_mut(index) else {
            return;
        };
        client.request_number += 1;
        let (inbox, number) = (self.inbox.clone(), client.request_number);
        match command {
            NodeCommand::QueryState(_) => {
                let report =
                    move |state| inbox.update(index, |update| update.state = Some((number, state)));
                // Both services must be discovered before either is used.
                if !client.change.service_is_ready() {
                    return report(None);
                }
                let failed = report.clone();
                let sent = client.state.call_then(&GetStateRequest {}, move |answer| {
                    let state = answer.ok().map(|answer| answer.current_state.id);
                    report(state.and_then(LifecycleState::from_id));
                });
                if let Err(error) = sent {
                    tracing::debug!(node = %client.name, "{error}");
                    failed(None);
                }
            }
            NodeCommand::ChangeState(_, transition) => {
                let report = move || inbox.update(index, |update| update.changed = Some(number));
                let failed = report.clone();
                let request = ChangeStateRequest {
                    transition: Transition {
                        id: transition.id,
                        label: transition.label.into(),
                    },
                };
                if let Err(error) = client.change.call_then(&request, move |_| report()) {
                    tracing::debug!(node = %client.name, "{error}");
                    failed();
                }
            }
        }
    }

    fn report_event(&mut self, event: &SupervisorEvent) {
        match &mut self.on_event {
            Some(callback) => callback(event),
            None if event.needs_attention() => tracing::warn!("{event}"),
            None => tracing::info!("{event}"),
        }
    }
}

impl fmt::Debug for LifecycleSupervisor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LifecycleSupervisor")
            .field(&self.report())
            .finish()
    }
}

impl NodeClients {
    fn new(
        node: &Node,
        index: usize,
        supervised: &SupervisedNode,
        inbox: &Arc<Inbox>,
    ) -> Result<Self, CreateError> {
        let name = supervised.name.clone();
        let (on_match, on_sample) = (inbox.clone(), inbox.clone());
        let options =
            SubscriptionOptions::new(format!("{name}/transition_event")).on_event(move |event| {
                if let EndpointEvent::Matched {
                    current, change, ..
                } = event
                {
                    on_match.update(index, |update| {
                        update.node_count = Some(*current);
                        update.is_one_lost |= *change < 0;
                    });
                }
            });
        let events = node.create_subscription(options, move |event: Sample<TransitionEvent>| {
            let goal = LifecycleState::from_id(event.goal_state.id);
            on_sample.update(index, |update| update.event = goal);
        })?;
        let liveliness_topic = match &supervised.liveliness_topic {
            None => None,
            Some(sign) => {
                let inbox = inbox.clone();
                let qos = QosProfile::default()
                    .best_effort()
                    .liveliness(LivelinessPolicy::ManualByTopic, sign.lease);
                let ty = SerializedType::new(&sign.type_name, None);
                let topic = sign.topic.as_str().qos(qos);
                let options = SubscriptionOptions::of_type(&ty, topic).on_event(move |event| {
                    if let EndpointEvent::LivelinessChanged { not_alive, .. } = event {
                        inbox.update(index, |update| update.alive = Some(*not_alive == 0));
                    }
                });
                Some(node.create_subscription(options, |_: Sample<SerializedMessage>| ())?)
            }
        };
        Ok(Self {
            state: node.create_client(format!("{name}/get_state"))?,
            change: node.create_client(format!("{name}/change_state"))?,
            name,
            request_number: 0,
            _events: events,
            _liveliness: liveliness_topic,
        })
    }
}
