//! Scenarios of supervised nodes, in simulated time.

use std::time::Duration;

use pteros_runtime::rtps::time::{Duration as Span, Instant};

use super::event::{NodeCondition, SupervisorEvent as E};
use super::reconciler::{NodeCommand, Reconciler, TargetState};
use super::supervised_node::{LossPolicy, SupervisedNode, sort_by_dependencies};
use pteros_rcl::lifecycle::{
    LifecycleState as S, LifecycleTransition as T, TransitionOutcome, transition_after,
};

/// A simulated node.
struct Node {
    name: &'static str,
    is_present: bool,
    state: S,
    /// How the node executes transitions.
    behavior: Behavior,
    /// Transition in progress.
    active: Option<T>,
}

#[derive(Clone, Copy, PartialEq)]
enum Behavior {
    Succeeds,
    /// Reports success although the transition failed.
    ReportsFalseSuccess,
    /// The transition never ends.
    NeverEnds,
    /// The process ends during the transition.
    Exits,
}

/// An event scheduled for a later time.
enum ScheduledEvent {
    StateReported(usize, Option<S>),
    TransitionEnded(usize),
}

struct Harness {
    now: Instant,
    reconciler: Reconciler,
    nodes: Vec<Node>,
    scheduled: Vec<(Instant, ScheduledEvent)>,
    /// Requested transitions.
    requested: Vec<String>,
    events: Vec<E>,
}

const QUESTION: Span = Span::from_millis(1);
const TRANSITION: Span = Span::from_millis(50);

fn node(name: &str) -> SupervisedNode {
    SupervisedNode::new(name)
}

impl Harness {
    fn new(nodes: impl IntoIterator<Item = SupervisedNode>) -> Self {
        let nodes = sort_by_dependencies(nodes.into_iter().collect()).unwrap();
        let made = nodes.iter().map(|(node, _)| Node {
            name: node.name.clone().leak(),
            is_present: false,
            state: S::Unconfigured,
            behavior: Behavior::Succeeds,
            active: None,
        });
        Self {
            now: Instant::ZERO,
            nodes: made.collect(),
            reconciler: Reconciler::new(nodes),
            scheduled: Vec::new(),
            requested: Vec::new(),
            events: Vec::new(),
        }
    }

    /// `/planner` depends on `/map`, which depends on `/lidar`; all are present.
    fn robot(policy: LossPolicy) -> Self {
        let mut harness = Self::new([
            node("planner").depends_on("map"),
            node("lidar").on_loss(policy),
            node("map").depends_on("/lidar"),
        ]);
        for name in ["/lidar", "/map", "/planner"] {
            harness.arrive(name);
        }
        harness
    }

    fn index(&self, name: &str) -> usize {
        self.nodes
            .iter()
            .position(|node| node.name == name)
            .unwrap()
    }

    fn node(&mut self, name: &str) -> &mut Node {
        let index = self.index(name);
        &mut self.nodes[index]
    }

    fn state(&self, name: &str) -> S {
        self.nodes[self.index(name)].state
    }

    fn condition(&self, name: &str) -> NodeCondition {
        self.reconciler.report().nodes[self.index(name)].condition
    }

    /// Starts a process with the node.
    fn arrive(&mut self, name: &str) {
        let node = self.node(name);
        node.is_present = true;
        node.state = S::Unconfigured;
        node.active = None;
        self.reconciler
            .handle_presence(self.now, self.index(name), 1);
    }

    fn die(&mut self, name: &str) {
        let index = self.index(name);
        self.nodes[index].is_present = false;
        self.scheduled.retain(|(_, scheduled)| match scheduled {
            ScheduledEvent::StateReported(of, _) | ScheduledEvent::TransitionEnded(of) => {
                *of != index
            }
        });
        self.reconciler.handle_presence(self.now, index, 0);
    }

    /// Runs the simulation for the given seconds.
    fn run(&mut self, seconds: f64) {
        let end = self.now.after(Duration::from_secs_f64(seconds).into());
        self.run_until(end, |_| false);
    }

    /// Runs until nothing is left to do, as `bring_up` does.
    fn settle(&mut self, target: TargetState) {
        self.reconciler.set_target(self.now, target);
        let end = self.now.after(Span::from_secs(600));
        self.run_until(end, Reconciler::is_settled);
        assert!(self.now < end, "it never settles");
    }

    fn run_until(&mut self, end: Instant, done: impl Fn(&Reconciler) -> bool) {
        loop {
            self.deliver_due_events();
            for command in self.reconciler.poll_commands(self.now) {
                self.execute(command);
            }
            self.events
                .extend(std::iter::from_fn(|| self.reconciler.poll_event()));
            if done(&self.reconciler) || self.now >= end {
                return;
            }
            let next = self.scheduled.iter().map(|(index, _)| *index).min();
            let next = next.unwrap_or(end).min(self.reconciler.next_deadline());
            assert!(next > self.now, "it spins");
            self.now = next.min(end);
        }
    }

    fn deliver_due_events(&mut self) {
        let due: Vec<_> = self
            .scheduled
            .extract_if(.., |(index, _)| *index <= self.now)
            .collect();
        for (_, scheduled) in due {
            match scheduled {
                ScheduledEvent::StateReported(index, state) => {
                    self.reconciler.handle_state(self.now, index, state)
                }
                ScheduledEvent::TransitionEnded(index) => {
                    let node = &mut self.nodes[index];
                    let transition = node.active.take().unwrap();
                    let outcome = match node.behavior {
                        Behavior::Succeeds => TransitionOutcome::Success,
                        _ => TransitionOutcome::Failure,
                    };
                    node.state = transition_after(transition.goal, outcome).unwrap().goal;
                    self.reconciler.handle_event(index, node.state);
                    self.reconciler.handle_changed(index);
                }
            }
        }
    }

    fn execute(&mut self, command: NodeCommand) {
        match command {
            NodeCommand::QueryState(index) => {
                let node = &self.nodes[index];
                let state = node.is_present.then_some(node.state);
                let when = self.now.after(QUESTION);
                self.scheduled
                    .push((when, ScheduledEvent::StateReported(index, state)));
            }
            NodeCommand::ChangeState(index, transition) => {
                let node = &mut self.nodes[index];
                assert_eq!(
                    node.state, transition.start,
                    "{} is not asked first",
                    node.name
                );
                self.requested
                    .push(format!("{} {}", node.name, transition.label));
                node.state = transition.goal;
                node.active = Some(transition);
                let when = self.now.after(TRANSITION);
                match node.behavior {
                    Behavior::Succeeds | Behavior::ReportsFalseSuccess => self
                        .scheduled
                        .push((when, ScheduledEvent::TransitionEnded(index))),
                    Behavior::NeverEnds => {}
                    Behavior::Exits => {
                        let name = node.name;
                        self.die(name);
                    }
                }
            }
        }
    }

    fn requested(&mut self) -> Vec<String> {
        std::mem::take(&mut self.requested)
    }

    #[track_caller]
    fn reported(&mut self, wanted: &str) {
        let words: Vec<_> = self
            .events
            .drain(..)
            .map(|event| event.to_string())
            .collect();
        assert!(words.iter().any(|w| w.contains(wanted)), "{words:#?}");
    }
}

#[test]
fn nodes_go_up_in_dependency_order_and_down_in_reverse() {
    let mut harness = Harness::robot(LossPolicy::default());
    harness.settle(TargetState::Active);
    let up = [
        "/lidar configure",
        "/lidar activate",
        "/map configure",
        "/map activate",
        "/planner configure",
        "/planner activate",
    ];
    assert_eq!(harness.requested(), up);
    assert!(harness.reconciler.report().all_are(S::Active));
    harness.settle(TargetState::Unconfigured);
    let down = [
        "/planner deactivate",
        "/planner cleanup",
        "/map deactivate",
        "/map cleanup",
        "/lidar deactivate",
        "/lidar cleanup",
    ];
    assert_eq!(harness.requested(), down);
    harness.settle(TargetState::Finalized);
    assert!(harness.reconciler.report().all_are(S::Finalized));
    assert!(harness.events.iter().all(|event| !event.needs_attention()));
}

/// `supervise --down` once ended before it had discovered any node, and reported
/// all as down.
#[test]
fn nodes_are_discovered_before_they_are_brought_down_in_order() {
    let mut harness = Harness::new([node("lidar"), node("map").depends_on("lidar"), node("gone")]);
    harness
        .reconciler
        .set_target(harness.now, TargetState::Unconfigured);
    harness.run(0.2);
    assert!(!harness.reconciler.is_settled());
    harness.arrive("/lidar");
    harness.node("/lidar").state = S::Inactive;
    harness.run(0.2);
    assert!(
        harness.requested().is_empty(),
        "map, which needs it, may come yet"
    );
    harness.arrive("/map");
    harness.node("/map").state = S::Inactive;
    harness.run(0.2);
    assert_eq!(harness.requested(), ["/map cleanup", "/lidar cleanup"]);
    assert!(!harness.reconciler.is_settled());
    harness.run(0.5);
    assert!(harness.reconciler.is_settled(), "the third is not there");
    assert_eq!(harness.condition("/gone"), NodeCondition::Missing);
}

#[test]
fn independent_nodes_go_up_at_the_same_time() {
    let mut harness = Harness::new(["a", "b", "c"].map(node));
    for name in ["/a", "/b", "/c"] {
        harness.arrive(name);
    }
    harness.settle(TargetState::Active);
    assert_eq!(
        harness.requested()[..3],
        ["/a configure", "/b configure", "/c configure"]
    );
    assert!(harness.now < Instant::ZERO.after(Span::from_millis(150)));
}

#[test]
fn a_node_that_is_already_inactive_is_only_activated() {
    let mut harness = Harness::robot(LossPolicy::default());
    harness.node("/lidar").state = S::Active;
    harness.node("/map").state = S::Inactive;
    harness.settle(TargetState::Active);
    assert_eq!(harness.requested()[0], "/map activate");
}

#[test]
fn a_missing_node_is_reported_and_its_dependents_wait() {
    let mut harness = Harness::robot(LossPolicy::default());
    harness.die("/lidar");
    harness.settle(TargetState::Active);
    assert_eq!(harness.now, Instant::ZERO.after(Span::from_secs(10)));
    harness.reported("/lidar is missing for 10s; start its process");
    assert!(harness.requested().is_empty());
    harness.run(60.0);
    harness.arrive("/lidar");
    harness.run(1.0);
    assert!(harness.reconciler.report().all_are(S::Active));
}

#[test]
fn a_restarted_node_is_brought_up_again_after_a_back_off() {
    let mut harness = Harness::robot(LossPolicy::default());
    harness.settle(TargetState::Active);
    harness.run(60.0);
    harness.requested();
    harness.die("/lidar");
    harness.run(0.1);
    harness.reported("/lidar is retried in 500ms (attempt 1)");
    harness.arrive("/lidar");
    harness.run(0.3);
    assert_eq!(harness.state("/lidar"), S::Unconfigured, "it pauses");
    harness.run(1.0);
    assert_eq!(harness.requested(), ["/lidar configure", "/lidar activate"]);
    // Its dependents were not affected.
    assert_eq!(harness.state("/planner"), S::Active);
}

#[test]
fn a_node_that_restarts_before_its_loss_is_reported_is_brought_up_again() {
    let mut harness = Harness::robot(LossPolicy::default());
    harness.settle(TargetState::Active);
    harness.run(60.0);
    harness.requested();
    let lidar = harness.index("/lidar");
    harness.reconciler.handle_presence(harness.now, lidar, 2);
    harness.node("/lidar").state = S::Unconfigured;
    harness.run(10.0);
    assert!(
        harness.requested().is_empty(),
        "the dead one is taken for alive"
    );
    harness.reconciler.handle_presence(harness.now, lidar, 1);
    harness.reconciler.handle_duplicate_lost(lidar);
    harness.run(0.1);
    harness.reported("/lidar is retried in 500ms (attempt 1)");
    harness.run(1.0);
    assert_eq!(harness.requested(), ["/lidar configure", "/lidar activate"]);
    assert!(harness.reconciler.report().all_are(S::Active));
}

#[test]
fn a_duplicate_node_that_comes_and_goes_is_no_loss() {
    let mut harness = Harness::robot(LossPolicy::BringDown);
    harness.settle(TargetState::Active);
    harness.requested();
    let lidar = harness.index("/lidar");
    for count in [2, 1] {
        harness
            .reconciler
            .handle_presence(harness.now, lidar, count);
    }
    harness.reconciler.handle_duplicate_lost(lidar);
    harness.run(10.0);
    assert!(harness.requested().is_empty());
    assert!(harness.reconciler.report().all_are(S::Active));
}

#[test]
fn dependents_of_a_lost_node_are_brought_down_and_up_again_later() {
    let mut harness = Harness::robot(LossPolicy::default());
    harness.settle(TargetState::Active);
    harness.requested();
    harness.die("/lidar");
    harness.run(12.0);
    let down = [
        "/planner deactivate",
        "/planner cleanup",
        "/map deactivate",
        "/map cleanup",
    ];
    assert_eq!(harness.requested(), down);
    assert_eq!(harness.condition("/lidar"), NodeCondition::Missing);
    harness.arrive("/lidar");
    harness.run(2.0);
    assert!(harness.reconciler.report().all_are(S::Active));
}

#[test]
fn the_policies_bring_down_and_ignore_are_followed() {
    let mut harness = Harness::robot(LossPolicy::BringDown);
    harness.settle(TargetState::Active);
    harness.die("/lidar");
    harness.run(1.0);
    harness.reported("/lidar is given up: the node was lost");
    assert_eq!(harness.state("/map"), S::Unconfigured);
    harness.arrive("/lidar");
    harness.requested();
    harness.run(30.0);
    assert!(harness.requested().is_empty(), "it is given up");
    // After a new command it is tried again.
    harness.settle(TargetState::Active);
    assert!(harness.reconciler.report().all_are(S::Active));

    let mut harness = Harness::robot(LossPolicy::Ignore);
    harness.node("/lidar").behavior = Behavior::ReportsFalseSuccess;
    harness.settle(TargetState::Active);
    assert_eq!(harness.condition("/lidar"), NodeCondition::GivenUp);
    assert_eq!(harness.state("/planner"), S::Active);
}

#[test]
fn a_node_lost_during_a_transition_is_retried_when_it_is_back() {
    let mut harness = Harness::robot(LossPolicy::default());
    harness.node("/lidar").behavior = Behavior::Exits;
    harness
        .reconciler
        .set_target(harness.now, TargetState::Active);
    harness.run(0.2);
    harness.reported("/lidar was lost during configure");
    harness.node("/lidar").behavior = Behavior::Succeeds;
    harness.arrive("/lidar");
    harness.run(1.0);
    assert!(harness.reconciler.report().all_are(S::Active));
}

#[test]
fn an_unending_transition_is_reported_and_dependents_go_down() {
    let mut harness = Harness::robot(LossPolicy::default());
    harness.settle(TargetState::Active);
    harness.node("/lidar").behavior = Behavior::NeverEnds;
    // It comes back and hangs.
    harness.die("/lidar");
    harness.arrive("/lidar");
    harness.run(12.0);
    harness.reported("/lidar: configure has not ended within 10s");
    assert_eq!(harness.condition("/lidar"), NodeCondition::Unresponsive);
    assert_eq!(harness.state("/map"), S::Unconfigured);
    // It responds after all.
    let lidar = harness.node("/lidar");
    lidar.behavior = Behavior::Succeeds;
    lidar.active = None;
    lidar.state = S::Inactive;
    harness.run(2.0);
    assert!(harness.reconciler.report().all_are(S::Active));
}

#[test]
fn a_response_is_verified_and_a_node_is_given_up_after_its_attempts() {
    let mut harness = Harness::robot(LossPolicy::Restart {
        attempts: 3,
        backoff: Duration::from_secs(1),
        backoff_max: Duration::from_secs(3),
    });
    harness.node("/lidar").behavior = Behavior::ReportsFalseSuccess;
    harness.settle(TargetState::Active);
    assert_eq!(harness.requested(), ["/lidar configure"; 4]);
    let pauses = harness.events.iter().filter_map(|event| match event {
        E::Retrying { pause, .. } => Some(pause.as_secs()),
        _ => None,
    });
    assert_eq!(pauses.collect::<Vec<_>>(), [1, 2, 3]);
    harness.reported("/lidar is given up: its transitions fail, after 3 attempts");
    assert_eq!(harness.state("/map"), S::Unconfigured);
}

#[test]
fn a_node_changed_by_another_client_is_reported_and_left_unmanaged() {
    let mut harness = Harness::robot(LossPolicy::default());
    harness.settle(TargetState::Active);
    harness.requested();
    harness.node("/lidar").state = S::Inactive;
    harness
        .reconciler
        .handle_event(harness.index("/lidar"), S::Inactive);
    harness.run(30.0);
    harness.reported("/lidar is inactive: changed by another client");
    assert!(harness.requested().is_empty());
    harness.settle(TargetState::Active);
    assert_eq!(harness.requested(), ["/lidar activate"]);
}

#[test]
fn a_node_that_loses_liveliness_is_unresponsive_until_it_returns() {
    let mut harness = Harness::robot(LossPolicy::default());
    harness.settle(TargetState::Active);
    let lidar = harness.index("/lidar");
    harness.reconciler.handle_alive(lidar, false);
    harness.run(1.0);
    assert_eq!(harness.condition("/lidar"), NodeCondition::Unresponsive);
    assert_eq!(harness.state("/planner"), S::Unconfigured);
    harness.reconciler.handle_alive(lidar, true);
    harness.run(1.0);
    assert!(harness.reconciler.report().all_are(S::Active));
}

#[test]
fn a_finalized_node_is_given_up_and_duplicate_names_are_reported() {
    let mut harness = Harness::robot(LossPolicy::default());
    harness.node("/lidar").state = S::Finalized;
    harness.settle(TargetState::Active);
    harness.reported("it is finalized; restart its process");
    harness
        .reconciler
        .handle_presence(harness.now, harness.index("/map"), 2);
    harness.run(0.1);
    harness.reported("2 nodes have the name /map");
}

#[test]
fn unmet_dependencies_are_named() {
    let error = |nodes: &[SupervisedNode]| sort_by_dependencies(nodes.to_vec()).unwrap_err();
    let twice = error(&[node("a"), node("/a")]);
    assert_eq!(
        twice.to_string(),
        "node \"/a\" is listed twice; list it once"
    );
    let unknown = error(&[node("a").depends_on("b")]);
    assert_eq!(
        unknown.to_string(),
        "node \"/a\" depends on \"/b\", which is not supervised; add it, or leave the dependency out"
    );
    let circle = error(&[
        node("a").depends_on("b"),
        node("b").depends_on("a"),
        node("c"),
    ]);
    assert!(
        circle
            .to_string()
            .contains("dependency cycle among the nodes /a, /b;")
    );
}
