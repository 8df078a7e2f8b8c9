//! Reconciler: the sans-IO state machine of the lifecycle supervisor.
//!
//! It compares the target state with the reported state of each node and emits
//! commands. `handle_` methods take inputs, [`Reconciler::poll_commands`] returns
//! what to do next. It has no clock, network or nodes.
//!
//! Only a state that the node itself reported counts. The node is queried after
//! each transition, whatever the response was. A transition event only causes
//! another query.

use std::collections::VecDeque;

use pteros_runtime::rtps::time::{Duration, Instant};

use super::event::{NodeCondition, NodeReport, SupervisorEvent, SupervisorReport};
use super::supervised_node::{LossPolicy, SupervisedNode};
use pteros_rcl::lifecycle::{
    LifecycleState as S, LifecycleTransition as T, TransitionOutcome, transition_after,
};

/// Time limit of a state query.
const RESPONSE_TIMEOUT: Duration = Duration::from_millis(2_000);
/// Delay before the next query of a node that is in a transition or did not
/// respond.
const REQUERY_DELAY: Duration = Duration::from_millis(100);
/// A node to be brought down that is not discovered within this time counts as
/// absent. Discovery of running nodes takes a fraction of it.
const DISCOVERY_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(1);

/// Target state of all nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TargetState {
    /// Leave the nodes as they are.
    Hold,
    /// Bring to active.
    Active,
    /// Bring to unconfigured.
    Unconfigured,
    /// Bring to finalized.
    Finalized,
}

/// Command for the supervisor to execute.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NodeCommand {
    /// Query the state of the node with this index.
    QueryState(usize),
    /// Request a transition.
    ChangeState(usize, T),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum NodeActivity {
    Idle,
    QueryingState { until: Instant },
    ChangingState { to: T, until: Instant },
    BackingOff { until: Instant },
}

struct ReconciledNode {
    node: SupervisedNode,
    dependencies: Vec<usize>,
    dependents: Vec<usize>,
    /// The node is present.
    is_present: bool,
    /// The node was present before.
    was_seen: bool,
    /// Its liveliness topic reports it as alive.
    is_alive: bool,
    /// Last reported state; `None` if it may have changed.
    state: Option<S>,
    /// The state reported before that.
    last_state: Option<S>,
    /// A node of this name was lost since then, perhaps the one that reported the
    /// state.
    may_be_replaced: bool,
    activity: NodeActivity,
    /// Requested transition that is not verified yet.
    requested: Option<T>,
    condition: NodeCondition,
    attempts: u32,
    /// Since when the node is absent, has not responded, or is in a transition.
    waiting_since: Option<Instant>,
    active_since: Option<Instant>,
}

/// See the module documentation.
pub(super) struct Reconciler {
    entries: Vec<ReconciledNode>,
    target: TargetState,
    events: VecDeque<SupervisorEvent>,
}

impl Reconciler {
    pub(super) fn new(nodes: Vec<(SupervisedNode, Vec<usize>)>) -> Self {
        let mut entries: Vec<ReconciledNode> = Vec::new();
        for (index, (node, dependencies)) in nodes.into_iter().enumerate() {
            for &dependency in &dependencies {
                if let Some(entry) = entries.get_mut(dependency) {
                    entry.dependents.push(index);
                }
            }
            entries.push(ReconciledNode {
                node,
                dependencies,
                dependents: Vec::new(),
                is_present: false,
                was_seen: false,
                is_alive: true,
                state: None,
                last_state: None,
                may_be_replaced: false,
                activity: NodeActivity::Idle,
                requested: None,
                condition: NodeCondition::Healthy,
                attempts: 0,
                waiting_since: None,
                active_since: None,
            });
        }
        Self {
            entries,
            target: TargetState::Hold,
            events: VecDeque::new(),
        }
    }

    /// Sets the target state of all nodes. Nodes that were given up or changed
    /// externally are managed again.
    pub(super) fn set_target(&mut self, now: Instant, target: TargetState) {
        self.target = target;
        for entry in &mut self.entries {
            entry.condition = NodeCondition::Healthy;
            entry.attempts = 0;
            entry.waiting_since = (!entry.is_present).then_some(now);
            if let NodeActivity::BackingOff { .. } = entry.activity {
                entry.activity = NodeActivity::Idle;
            }
        }
    }

    pub(super) fn poll_event(&mut self) -> Option<SupervisorEvent> {
        self.events.pop_front()
    }

    pub(super) fn report(&self) -> SupervisorReport {
        let row = |entry: &ReconciledNode| NodeReport {
            node: entry.node.name.clone(),
            state: entry.state.or(entry.last_state).unwrap_or(S::Unknown),
            condition: if entry.is_present || entry.condition == NodeCondition::GivenUp {
                entry.condition
            } else {
                NodeCondition::Missing
            },
            attempts: entry.attempts,
        };
        SupervisorReport {
            nodes: self.entries.iter().map(row).collect(),
        }
    }

    /// Whether nothing is left to do or to wait for, except external events.
    pub(super) fn is_settled(&self) -> bool {
        let targets = self.node_targets();
        self.entries
            .iter()
            .zip(targets)
            .all(|(entry, target)| match entry.condition {
                NodeCondition::Healthy if !entry.is_present => false,
                NodeCondition::Healthy | NodeCondition::ChangedExternally => {
                    entry.activity == NodeActivity::Idle
                        && entry.state.is_some_and(|state| {
                            entry.condition == NodeCondition::ChangedExternally
                                || next_transition(state, target).is_none()
                        })
                }
                NodeCondition::Missing | NodeCondition::Unresponsive | NodeCondition::GivenUp => {
                    true
                }
            })
    }

    // --- inputs ---

    /// Number of nodes present under this name.
    pub(super) fn handle_presence(&mut self, now: Instant, index: usize, count: usize) {
        let Some(entry) = self.entries.get_mut(index) else {
            return;
        };
        let node = entry.node.name.clone();
        if count > 1 {
            let node = node.clone();
            self.events
                .push_back(SupervisorEvent::DuplicateName { node, count });
        }
        match (entry.is_present, count > 0) {
            (false, true) => {
                entry.is_present = true;
                entry.was_seen = true;
                entry.waiting_since = None;
                // A back-off pause continues.
                entry.state = None;
                if entry.condition == NodeCondition::Missing {
                    entry.condition = NodeCondition::Healthy;
                }
                self.events.push_back(SupervisorEvent::Discovered { node });
            }
            (true, false) => {
                let during = entry.requested;
                entry.is_present = false;
                entry.is_alive = true;
                entry.waiting_since = Some(now);
                entry.reset();
                if let NodeCondition::ChangedExternally | NodeCondition::Unresponsive =
                    entry.condition
                {
                    entry.condition = NodeCondition::Healthy;
                }
                self.events
                    .push_back(SupervisorEvent::Lost { node, during });
                if self.target == TargetState::Active {
                    self.handle_loss(now, index, "the node was lost");
                }
            }
            _ => {}
        }
    }

    /// One of several nodes of this name was lost. A process that restarts before
    /// its lease expires appears twice for a while. The reported state shows
    /// whether the remaining node is the known one.
    pub(super) fn handle_duplicate_lost(&mut self, index: usize) {
        if let Some(entry) = self.entries.get_mut(index)
            && entry.is_present
        {
            entry.may_be_replaced = true;
            if let NodeActivity::Idle | NodeActivity::BackingOff { .. } = entry.activity {
                entry.state = None;
            }
        }
    }

    /// The liveliness of the node was lost or regained.
    pub(super) fn handle_alive(&mut self, index: usize, is_alive: bool) {
        let Some(entry) = self.entries.get_mut(index) else {
            return;
        };
        if std::mem::replace(&mut entry.is_alive, is_alive) == is_alive || !entry.is_present {
            return;
        }
        if let NodeActivity::Idle = entry.activity {
            entry.state = None;
        }
        if !is_alive {
            let lease = entry.node.liveliness_topic.as_ref().map(|sign| sign.lease);
            self.mark_unresponsive(index, lease.unwrap_or_default());
        }
    }

    /// A transition event of the node was received.
    pub(super) fn handle_event(&mut self, index: usize, goal: S) {
        if let Some(entry) = self.entries.get_mut(index)
            && entry.state != Some(goal)
            && let NodeActivity::Idle | NodeActivity::BackingOff { .. } = entry.activity
        {
            entry.state = None;
        }
    }

    /// The node reported its state, or did not respond.
    pub(super) fn handle_state(&mut self, now: Instant, index: usize, reported: Option<S>) {
        let Some(entry) = self.entries.get_mut(index) else {
            return;
        };
        if !matches!(entry.activity, NodeActivity::QueryingState { .. }) {
            return;
        }
        entry.activity = NodeActivity::Idle;
        match reported.filter(|state| state.is_primary() && *state != S::Unknown) {
            Some(state) => self.handle_verified_state(now, index, state),
            // In a transition, or silent: query again, up to the transition
            // time-out.
            None => {
                let since = *entry.waiting_since.get_or_insert(now);
                entry.activity = NodeActivity::BackingOff {
                    until: now.after(REQUERY_DELAY),
                };
                let limit = entry.node.transition_timeout;
                if now >= since.after(limit.into()) {
                    self.mark_unresponsive(index, limit);
                }
            }
        }
    }

    /// The response to a transition arrived or timed out. The state is queried
    /// next.
    pub(super) fn handle_changed(&mut self, index: usize) {
        if let Some(entry) = self.entries.get_mut(index)
            && let NodeActivity::ChangingState { .. } = entry.activity
        {
            entry.activity = NodeActivity::Idle;
            entry.state = None;
        }
    }

    // --- decisions ---

    /// Returns the commands to execute now. Call it after every input and at
    /// [`Self::next_deadline`].
    pub(super) fn poll_commands(&mut self, now: Instant) -> Vec<NodeCommand> {
        for index in 0..self.entries.len() {
            self.expire(now, index);
        }
        let targets = self.node_targets();
        let mut commands = Vec::new();
        for (index, (entry, target)) in self.entries.iter_mut().zip(targets).enumerate() {
            if !entry.is_present || entry.activity != NodeActivity::Idle {
                continue;
            }
            let Some(state) = entry.state else {
                entry.activity = NodeActivity::QueryingState {
                    until: now.after(RESPONSE_TIMEOUT),
                };
                commands.push(NodeCommand::QueryState(index));
                continue;
            };
            if let NodeCondition::ChangedExternally
            | NodeCondition::Unresponsive
            | NodeCondition::GivenUp = entry.condition
            {
                continue;
            }
            if let Some(to) = next_transition(state, target) {
                let limit: Duration = entry.node.transition_timeout.into();
                entry.requested = Some(to);
                entry.activity = NodeActivity::ChangingState {
                    to,
                    until: now.after(limit),
                };
                commands.push(NodeCommand::ChangeState(index, to));
            }
        }
        commands
    }

    /// When the next poll is due without further input.
    pub(super) fn next_deadline(&self) -> Instant {
        let of = |entry: &ReconciledNode| match entry.activity {
            NodeActivity::QueryingState { until }
            | NodeActivity::ChangingState { until, .. }
            | NodeActivity::BackingOff { until } => until,
            NodeActivity::Idle => match (entry.is_present, entry.waiting_since) {
                (false, Some(since)) if entry.is_awaited() => {
                    since.after(entry.arrival_timeout(self.target).into())
                }
                _ => Instant::FAR_FUTURE,
            },
        };
        let all = self.entries.iter().map(of);
        all.min().unwrap_or(Instant::FAR_FUTURE)
    }

    fn expire(&mut self, now: Instant, index: usize) {
        let Some(entry) = self.entries.get_mut(index) else {
            return;
        };
        match entry.activity {
            NodeActivity::BackingOff { until } if now >= until => {
                entry.activity = NodeActivity::Idle;
                // The state may have changed by now.
                entry.state = None;
            }
            NodeActivity::QueryingState { until } if now >= until => {
                self.handle_state(now, index, None)
            }
            NodeActivity::ChangingState { until, .. } if now >= until => {
                entry.state = None;
                entry.activity = NodeActivity::Idle;
                entry.waiting_since = Some(now);
                let limit = entry.node.transition_timeout;
                self.mark_unresponsive(index, limit);
            }
            _ => {}
        }
        let Some(entry) = self.entries.get_mut(index) else {
            return;
        };
        let limit = entry.arrival_timeout(self.target);
        let is_late = entry
            .waiting_since
            .is_some_and(|since| now >= since.after(limit.into()));
        if entry.is_present || !entry.is_awaited() || !is_late {
            return;
        }
        if self.target == TargetState::Active {
            entry.condition = NodeCondition::Missing;
            let node = entry.node.name.clone();
            let after = limit;
            self.events
                .push_back(SupervisorEvent::Missing { node, after });
            if !matches!(self.policy(index), LossPolicy::Restart { .. }) {
                self.give_up(index, "the node is missing");
            }
        } else {
            // An absent node counts as down.
            entry.condition = NodeCondition::Missing;
        }
    }

    /// The node reported a primary state.
    fn handle_verified_state(&mut self, now: Instant, index: usize, state: S) {
        let Some(entry) = self.entries.get_mut(index) else {
            return;
        };
        let may_be_replaced = std::mem::take(&mut entry.may_be_replaced);
        let is_elsewhere = entry
            .last_state
            .is_some_and(|last_state| last_state != state);
        if may_be_replaced && is_elsewhere && entry.requested.is_none() {
            self.handle_presence(now, index, 0);
            self.handle_presence(now, index, 1);
            return;
        }
        let node = entry.node.name.clone();
        entry.waiting_since = None;
        if entry.condition == NodeCondition::Unresponsive && entry.is_alive {
            entry.condition = NodeCondition::Healthy;
        }
        let before = entry.last_state.replace(state);
        entry.state = Some(state);
        if state == S::Active {
            let since = *entry.active_since.get_or_insert(now);
            if let LossPolicy::Restart { backoff_max, .. } = entry.node.on_loss
                && now > since.after(backoff_max.into())
            {
                entry.attempts = 0;
            }
        } else {
            entry.active_since = None;
        }
        match entry.requested.take() {
            Some(transition) if goal_state(transition) == Some(state) => {
                self.events
                    .push_back(SupervisorEvent::Reached { node, state });
            }
            Some(transition) => {
                self.events.push_back(SupervisorEvent::Failed {
                    node,
                    transition,
                    state,
                });
                self.handle_loss(now, index, "its transitions fail");
            }
            None if before.is_some_and(|before| before != state) => {
                entry.condition = NodeCondition::ChangedExternally;
                self.events
                    .push_back(SupervisorEvent::ChangedExternally { node, state });
            }
            None => {}
        }
        if state == S::Finalized && self.target == TargetState::Active {
            self.give_up(index, "it is finalized; restart its process");
        }
    }

    /// Applies the loss policy to a node that was lost or failed. Nodes that are
    /// brought down have none.
    fn handle_loss(&mut self, now: Instant, index: usize, reason: &str) {
        let policy = self.policy(index);
        let Some(entry) = self.entries.get_mut(index) else {
            return;
        };
        if let Some(since) = entry.active_since.take()
            && let LossPolicy::Restart { backoff_max, .. } = policy
            && now > since.after(backoff_max.into())
        {
            entry.attempts = 0;
        }
        match policy {
            _ if self.target == TargetState::Hold => {}
            LossPolicy::Restart {
                attempts,
                backoff,
                backoff_max,
            } if entry.attempts < attempts => {
                let pause = backoff
                    .saturating_mul(1 << entry.attempts.min(20))
                    .min(backoff_max);
                entry.attempts += 1;
                entry.activity = NodeActivity::BackingOff {
                    until: now.after(pause.into()),
                };
                let (node, attempt) = (entry.node.name.clone(), entry.attempts);
                self.events.push_back(SupervisorEvent::Retrying {
                    node,
                    pause,
                    attempt,
                });
            }
            LossPolicy::Restart { attempts, .. } => {
                self.give_up(index, &format!("{reason}, after {attempts} attempts"));
            }
            LossPolicy::BringDown | LossPolicy::Ignore => self.give_up(index, reason),
        }
    }

    fn mark_unresponsive(&mut self, index: usize, after: std::time::Duration) {
        let Some(entry) = self.entries.get_mut(index) else {
            return;
        };
        if entry.condition == NodeCondition::Healthy {
            entry.condition = NodeCondition::Unresponsive;
            let (node, transition) = (entry.node.name.clone(), entry.requested);
            self.events.push_back(SupervisorEvent::Unresponsive {
                node,
                transition,
                after,
            });
            if self.target == TargetState::Active
                && !matches!(self.policy(index), LossPolicy::Restart { .. })
            {
                self.give_up(index, "it does not respond");
            }
        }
    }

    fn give_up(&mut self, index: usize, reason: &str) {
        let Some(entry) = self.entries.get_mut(index) else {
            return;
        };
        if entry.condition != NodeCondition::GivenUp {
            entry.condition = NodeCondition::GivenUp;
            let node = entry.node.name.clone();
            let reason = reason.to_owned();
            self.events
                .push_back(SupervisorEvent::GivenUp { node, reason });
        }
    }

    fn policy(&self, index: usize) -> LossPolicy {
        let entry = self.entries.get(index);
        entry.map_or(LossPolicy::Ignore, |entry| entry.node.on_loss)
    }

    /// Current target of each node.
    fn node_targets(&self) -> Vec<TargetState> {
        let mut targets: Vec<TargetState> = Vec::with_capacity(self.entries.len());
        // Nodes, by index, whose failure brings their dependents down.
        let mut failed: Vec<bool> = Vec::with_capacity(self.entries.len());
        for entry in &self.entries {
            let dependency_failed = entry
                .dependencies
                .iter()
                .any(|&dependency| failed[dependency]);
            let ignored = entry.node.on_loss == LossPolicy::Ignore;
            let is_failed = matches!(
                entry.condition,
                NodeCondition::Missing | NodeCondition::Unresponsive | NodeCondition::GivenUp
            );
            failed.push((is_failed && !ignored) || dependency_failed);
            let is_satisfied = |&dependency: &usize| {
                let dependency = &self.entries[dependency];
                dependency.state == Some(S::Active)
                    || (dependency.is_failed() && dependency.node.on_loss == LossPolicy::Ignore)
            };
            targets.push(match self.target {
                TargetState::Hold => TargetState::Hold,
                TargetState::Active if dependency_failed => TargetState::Unconfigured,
                TargetState::Active if entry.dependencies.iter().all(is_satisfied) => {
                    TargetState::Active
                }
                TargetState::Active => TargetState::Hold,
                target => target,
            });
        }
        // No node goes down before its dependents.
        for (index, entry) in self.entries.iter().enumerate() {
            let is_down = |&by: &usize| self.entries[by].is_down(self.target);
            if matches!(
                targets[index],
                TargetState::Unconfigured | TargetState::Finalized
            ) && !entry.dependents.iter().all(is_down)
            {
                targets[index] = TargetState::Hold;
            }
        }
        targets
    }
}

impl ReconciledNode {
    /// Discards all that was known about the node.
    fn reset(&mut self) {
        self.state = None;
        self.last_state = None;
        self.may_be_replaced = false;
        self.requested = None;
        self.activity = NodeActivity::Idle;
    }

    fn is_failed(&self) -> bool {
        matches!(
            self.condition,
            NodeCondition::Missing | NodeCondition::Unresponsive | NodeCondition::GivenUp
        )
    }

    /// Whether the node's arrival is still awaited.
    fn is_awaited(&self) -> bool {
        self.condition == NodeCondition::Healthy
    }

    /// How long the node's arrival is awaited.
    fn arrival_timeout(&self, target: TargetState) -> std::time::Duration {
        match target {
            TargetState::Active => self.node.arrival_timeout,
            _ if self.was_seen => std::time::Duration::ZERO,
            _ => DISCOVERY_TIMEOUT.min(self.node.arrival_timeout),
        }
    }

    /// Whether its dependencies may go down: it is down, or given up.
    fn is_down(&self, target: TargetState) -> bool {
        let may_come = target != TargetState::Active && !self.was_seen && self.is_awaited();
        (!self.is_present && !may_come)
            || self.is_failed()
            || matches!(self.state, Some(S::Unconfigured | S::Finalized))
    }
}

/// Next transition from a state to the target.
fn next_transition(state: S, target: TargetState) -> Option<T> {
    Some(match (target, state) {
        (TargetState::Active, S::Unconfigured) => T::CONFIGURE,
        (TargetState::Active, S::Inactive) => T::ACTIVATE,
        (TargetState::Unconfigured | TargetState::Finalized, S::Active) => T::DEACTIVATE,
        (TargetState::Unconfigured | TargetState::Finalized, S::Inactive) => T::CLEANUP,
        (TargetState::Finalized, S::Unconfigured) => T::UNCONFIGURED_SHUTDOWN,
        _ => return None,
    })
}

/// State that a transition reaches on success.
fn goal_state(transition: T) -> Option<S> {
    transition_after(transition.goal, TransitionOutcome::Success).map(|end| end.goal)
}
