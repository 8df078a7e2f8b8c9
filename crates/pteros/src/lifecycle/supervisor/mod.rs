//! Brings managed nodes up and down in the order of their dependencies, and
//! keeps them so. `conductor` decides, this file asks the nodes.

mod conductor;
mod event;
mod plan;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use pteros_interfaces::lifecycle_msgs::msg::{Transition, TransitionEvent};
use pteros_interfaces::lifecycle_msgs::srv::{
    ChangeState, ChangeState_Request, GetState, GetState_Request,
};
use pteros_rmw::rtps::fault;
use pteros_rmw::rtps::time::Instant;

pub use event::{Condition, NodeReport, SupervisorEvent, SupervisorReport};
pub use plan::{LossPolicy, SupervisedNode, SupervisorError};

use super::machine::LifecycleState;
use crate::EndpointEvent;
use crate::context::Context;
use crate::executor::SingleThreadedExecutor;
use crate::node::{Node, NodeOptions};
use crate::qos::{LivelinessPolicy, QosProfile};
use crate::sample::Sample;
use crate::service::Client;
use crate::subscription::{Subscription, SubscriptionOptions};
use conductor::{Aim, Command, Conductor};

/// Brings managed nodes up, those first that others depend on, keeps an eye on
/// them, and brings them down the other way round.
///
/// It asks each node for its state after every transition instead of believing
/// that it went well, notices by the end of the node's `~/transition_event`
/// publisher that it is gone (at once, or after its participant's lease), and acts
/// as its [`LossPolicy`] says. Everything it waits for has a limit. What it sees
/// and does it writes to the log, or tells [`LifecycleSupervisor::on_event`].
///
/// It works while one of its methods runs, on the caller's thread; the nodes need
/// threads of their own, or processes. They are ours or ROS 2's.
///
/// ```no_run
/// use pteros::prelude::*;
/// use pteros::{LifecycleState, LifecycleSupervisor, LossPolicy, SupervisedNode};
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
pub struct LifecycleSupervisor {
    context: Context,
    conductor: Conductor,
    members: Vec<Link>,
    inbox: Arc<Inbox>,
    executor: SingleThreadedExecutor,
    _node: Node,
    on_event: Option<EventCallback>,
}

type EventCallback = Box<dyn FnMut(&SupervisorEvent) + Send>;

/// The way to a node.
struct Link {
    name: String,
    state: Client<GetState>,
    change: Client<ChangeState>,
    /// The last question's number: answers to others are too late.
    number: u64,
    _events: Subscription<TransitionEvent>,
    _sign_of_life: Option<Subscription<Bytes>>,
}

/// What has come since the last look, the newest of each kind and node.
#[derive(Default)]
struct Inbox {
    news: Mutex<Vec<News>>,
}

#[derive(Clone, Default)]
struct News {
    present: Option<usize>,
    /// One of its name has gone, whoever is there now.
    gone: bool,
    alive: Option<bool>,
    event: Option<LifecycleState>,
    /// The number of the question, and its answer.
    state: Option<(u64, Option<LifecycleState>)>,
    changed: Option<u64>,
}

impl Inbox {
    fn note(&self, at: usize, note: impl FnOnce(&mut News)) {
        if let Some(news) = self.news.lock().get_mut(at) {
            note(news);
        }
    }

    fn is_empty(&self) -> bool {
        let news = self.news.lock();
        news.iter().all(|news| {
            news.present.is_none()
                && news.alive.is_none()
                && news.event.is_none()
                && news.state.is_none()
                && news.changed.is_none()
        })
    }
}

impl LifecycleSupervisor {
    /// A supervisor of these nodes, which need not be there yet. It makes a node
    /// of its own, `lifecycle_supervisor`, unless remapped.
    ///
    /// # Errors
    /// See [`SupervisorError`].
    pub fn new(
        context: &Context,
        nodes: impl IntoIterator<Item = SupervisedNode>,
    ) -> Result<Self, SupervisorError> {
        let nodes = plan::sorted(nodes.into_iter().collect())?;
        let node = context.node_with(NodeOptions::new("lifecycle_supervisor"))?;
        let inbox = Arc::new(Inbox {
            news: Mutex::new(vec![News::default(); nodes.len()]),
        });
        let members: Result<Vec<_>, _> = nodes
            .iter()
            .enumerate()
            .map(|(at, (supervised, _))| Link::new(&node, at, supervised, &inbox))
            .collect();
        let members = members?;
        let executor = SingleThreadedExecutor::new(context);
        let added = executor.add_node(&node);
        debug_assert!(added.is_ok(), "{added:?}");
        Ok(Self {
            context: context.clone(),
            conductor: Conductor::new(nodes),
            members,
            inbox,
            executor,
            _node: node,
            on_event: None,
        })
    }

    /// Calls this for everything that happens, instead of writing it to the log.
    pub fn on_event(mut self, callback: impl FnMut(&SupervisorEvent) + Send + 'static) -> Self {
        self.on_event = Some(Box::new(callback));
        self
    }

    /// Brings all up to active, in the order of their dependencies. Blocks until
    /// each is there, or its policy has said what else becomes of it; no longer
    /// than the time-outs and pauses of the nodes in a row add up to.
    pub fn bring_up(&mut self) -> SupervisorReport {
        self.go(Aim::Up)
    }

    /// Brings all down to unconfigured, in reverse order. Blocks as
    /// [`Self::bring_up`]. What is not there is down; who has never been met is
    /// waited for for a second, or for its arrival time-out if that is shorter.
    pub fn bring_down(&mut self) -> SupervisorReport {
        self.go(Aim::Down)
    }

    /// Brings all down and then to finalized, in reverse order. Blocks as
    /// [`Self::bring_up`].
    pub fn shut_down(&mut self) -> SupervisorReport {
        self.go(Aim::End)
    }

    /// Keeps them where they were brought, for so long or until the context shuts
    /// down. Blocks.
    pub fn watch(&mut self, timeout: Duration) -> SupervisorReport {
        let until = self.now().after(timeout.into());
        self.drive(until, |_| false);
        self.report()
    }

    /// How all are, as last seen.
    pub fn report(&self) -> SupervisorReport {
        self.conductor.report()
    }

    fn now(&self) -> Instant {
        self.context.core().env.now()
    }

    fn go(&mut self, aim: Aim) -> SupervisorReport {
        // Who is there already has been met before anybody is missed.
        self.executor.spin_some();
        let now = self.now();
        self.take_news(now);
        self.conductor.aim(now, aim);
        self.drive(Instant::FAR_FUTURE, Conductor::is_settled);
        self.report()
    }

    fn drive(&mut self, until: Instant, done: impl Fn(&Conductor) -> bool) {
        loop {
            let now = self.now();
            self.take_news(now);
            for command in self.conductor.step(now) {
                self.execute(command);
            }
            while let Some(event) = self.conductor.poll_event() {
                self.tell(&event);
            }
            if done(&self.conductor) || now >= until || self.context.is_shut_down() {
                return;
            }
            let next = self.conductor.next_deadline().min(until);
            let wait = next.since(now).to_std().unwrap_or(Duration::MAX);
            self.executor.spin_until(|| !self.inbox.is_empty(), wait);
        }
    }

    fn take_news(&mut self, now: Instant) {
        let count = self.members.len();
        let news = std::mem::replace(&mut *self.inbox.news.lock(), vec![News::default(); count]);
        for (at, news) in news.into_iter().enumerate() {
            let number = self.members.get(at).map_or(0, |link| link.number);
            if let Some(count) = news.present {
                self.conductor.handle_presence(now, at, count);
                if news.gone {
                    self.conductor.handle_namesake_gone(at);
                }
            }
            if let Some(is_alive) = news.alive {
                self.conductor.handle_alive(at, is_alive);
            }
            if let Some(goal) = news.event {
                self.conductor.handle_event(at, goal);
            }
            if let Some((of, state)) = news.state
                && of == number
            {
                self.conductor.handle_state(now, at, state);
            }
            if news.changed == Some(number) {
                self.conductor.handle_changed(at);
            }
        }
    }

    fn execute(&mut self, command: Command) {
        let (Command::Ask(at) | Command::Change(at, _)) = command;
        let Some(link) = self.members.get_mut(at) else {
            return;
        };
        link.number += 1;
        let (inbox, number) = (self.inbox.clone(), link.number);
        match command {
            Command::Ask(_) => {
                let told = move |state| inbox.note(at, |news| news.state = Some((number, state)));
                // Both services are met before either is used.
                if !link.change.is_ready() {
                    return told(None);
                }
                let failed = told.clone();
                let asked = link.state.call_then(&GetState_Request {}, move |answer| {
                    let state = answer.ok().map(|answer| answer.current_state.id);
                    told(state.and_then(LifecycleState::from_id));
                });
                if let Err(error) = asked {
                    tracing::debug!(node = %link.name, "{error}");
                    failed(None);
                }
            }
            Command::Change(_, transition) => {
                let told = move || inbox.note(at, |news| news.changed = Some(number));
                let failed = told.clone();
                let request = ChangeState_Request {
                    transition: Transition {
                        id: transition.id,
                        label: transition.label.into(),
                    },
                };
                if let Err(error) = link.change.call_then(&request, move |_| told()) {
                    tracing::debug!(node = %link.name, "{error}");
                    failed();
                }
            }
        }
    }

    fn tell(&mut self, event: &SupervisorEvent) {
        match &mut self.on_event {
            Some(callback) => callback(event),
            None if event.is_trouble() => tracing::warn!("{event}"),
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

impl Link {
    fn new(
        node: &Node,
        at: usize,
        supervised: &SupervisedNode,
        inbox: &Arc<Inbox>,
    ) -> Result<Self, SupervisorError> {
        let name = supervised.name.clone();
        let (on_match, on_sample) = (inbox.clone(), inbox.clone());
        let options = SubscriptionOptions::new(QosProfile::default())
            .on_event(move |event| {
                if let EndpointEvent::Matched {
                    current, change, ..
                } = event
                {
                    on_match.note(at, |news| {
                        news.present = Some(*current);
                        news.gone |= *change < 0 && !fault!("reborn-node-not-noticed");
                    });
                }
            })
            .callback(move |event: Sample<TransitionEvent>| {
                let goal = LifecycleState::from_id(event.goal_state.id);
                on_sample.note(at, |news| news.event = goal);
            });
        let events = node.create_subscription_with(&format!("{name}/transition_event"), options)?;
        let sign_of_life = match &supervised.sign_of_life {
            None => None,
            Some(sign) => {
                let inbox = inbox.clone();
                let qos = QosProfile::default()
                    .best_effort()
                    .liveliness(LivelinessPolicy::ManualByTopic, sign.lease);
                let options = SubscriptionOptions::new(qos)
                    .on_event(move |event| {
                        if let EndpointEvent::LivelinessChanged { not_alive, .. } = event {
                            inbox.note(at, |news| news.alive = Some(*not_alive == 0));
                        }
                    })
                    .callback(|_: Sample<Bytes>| ());
                let (topic, ty) = (&sign.topic, &sign.type_name);
                Some(node.create_raw_subscription(topic, ty, None, options)?)
            }
        };
        Ok(Self {
            state: node.create_client(&format!("{name}/get_state"))?,
            change: node.create_client(&format!("{name}/change_state"))?,
            name,
            number: 0,
            _events: events,
            _sign_of_life: sign_of_life,
        })
    }
}
