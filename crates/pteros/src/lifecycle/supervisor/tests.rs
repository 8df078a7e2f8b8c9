//! Stories of supervised nodes, on fake time.

use std::time::Duration;

use pteros_rmw::rtps::time::{Duration as Span, Instant};

use super::conductor::{Aim, Command, Conductor};
use super::event::{Condition, SupervisorEvent as E};
use super::plan::{LossPolicy, SupervisedNode, SupervisorError, sorted};
use crate::lifecycle::machine::{LifecycleState as S, LifecycleTransition as T, Verdict, end_of};

/// A node as its supervisor sees it.
struct Node {
    name: &'static str,
    is_there: bool,
    state: S,
    /// What becomes of a transition.
    obeys: Obeys,
    /// A transition goes on.
    under_way: Option<T>,
}

#[derive(Clone, Copy, PartialEq)]
enum Obeys {
    Yes,
    /// Says that it did, and did not.
    Lies,
    /// Stays in the middle.
    Hangs,
    /// Its process ends.
    Dies,
}

/// What will have happened at some time.
enum Later {
    Told(usize, Option<S>),
    Ended(usize),
}

struct World {
    now: Instant,
    conductor: Conductor,
    nodes: Vec<Node>,
    later: Vec<(Instant, Later)>,
    /// Transitions asked for, with seconds.
    asked: Vec<String>,
    events: Vec<E>,
}

const QUESTION: Span = Span::from_millis(1);
const TRANSITION: Span = Span::from_millis(50);

fn node(name: &str) -> SupervisedNode {
    SupervisedNode::new(name)
}

impl World {
    fn new(nodes: impl IntoIterator<Item = SupervisedNode>) -> Self {
        let nodes = sorted(nodes.into_iter().collect()).unwrap();
        let made = nodes.iter().map(|(node, _)| Node {
            name: node.name.clone().leak(),
            is_there: false,
            state: S::Unconfigured,
            obeys: Obeys::Yes,
            under_way: None,
        });
        Self {
            now: Instant::ZERO,
            nodes: made.collect(),
            conductor: Conductor::new(nodes),
            later: Vec::new(),
            asked: Vec::new(),
            events: Vec::new(),
        }
    }

    /// `/lidar`, which `/map` needs, which `/planner` needs; all are there.
    fn robot(policy: LossPolicy) -> Self {
        let mut world = Self::new([
            node("planner").depends_on("map"),
            node("lidar").on_loss(policy),
            node("map").depends_on("/lidar"),
        ]);
        for name in ["/lidar", "/map", "/planner"] {
            world.arrive(name);
        }
        world
    }

    fn at(&self, name: &str) -> usize {
        self.nodes
            .iter()
            .position(|node| node.name == name)
            .unwrap()
    }

    fn node(&mut self, name: &str) -> &mut Node {
        let at = self.at(name);
        &mut self.nodes[at]
    }

    fn state(&self, name: &str) -> S {
        self.nodes[self.at(name)].state
    }

    fn condition(&self, name: &str) -> Condition {
        self.conductor.report().nodes[self.at(name)].condition
    }

    /// A process with the node starts.
    fn arrive(&mut self, name: &str) {
        let node = self.node(name);
        node.is_there = true;
        node.state = S::Unconfigured;
        node.under_way = None;
        self.conductor.handle_presence(self.now, self.at(name), 1);
    }

    fn die(&mut self, name: &str) {
        let at = self.at(name);
        self.nodes[at].is_there = false;
        self.later.retain(|(_, later)| match later {
            Later::Told(of, _) | Later::Ended(of) => *of != at,
        });
        self.conductor.handle_presence(self.now, at, 0);
    }

    /// What is to happen in the next seconds.
    fn run(&mut self, seconds: f64) {
        let end = self.now.after(Duration::from_secs_f64(seconds).into());
        self.run_until(end, |_| false);
    }

    /// Until nothing is left to do, as `bring_up` does.
    fn settle(&mut self, aim: Aim) {
        self.conductor.aim(self.now, aim);
        let end = self.now.after(Span::from_secs(600));
        self.run_until(end, Conductor::is_settled);
        assert!(self.now < end, "it never settles");
    }

    fn run_until(&mut self, end: Instant, done: impl Fn(&Conductor) -> bool) {
        loop {
            self.happen();
            for command in self.conductor.step(self.now) {
                self.execute(command);
            }
            self.events
                .extend(std::iter::from_fn(|| self.conductor.poll_event()));
            if done(&self.conductor) || self.now >= end {
                return;
            }
            let next = self.later.iter().map(|(at, _)| *at).min();
            let next = next.unwrap_or(end).min(self.conductor.next_deadline());
            assert!(next > self.now, "it spins");
            self.now = next.min(end);
        }
    }

    fn happen(&mut self) {
        let due: Vec<_> = self
            .later
            .extract_if(.., |(at, _)| *at <= self.now)
            .collect();
        for (_, later) in due {
            match later {
                Later::Told(at, state) => self.conductor.handle_state(self.now, at, state),
                Later::Ended(at) => {
                    let node = &mut self.nodes[at];
                    let transition = node.under_way.take().unwrap();
                    let verdict = match node.obeys {
                        Obeys::Yes => Verdict::Success,
                        _ => Verdict::Failure,
                    };
                    node.state = end_of(transition.goal, verdict).unwrap().goal;
                    self.conductor.handle_event(at, node.state);
                    self.conductor.handle_changed(at);
                }
            }
        }
    }

    fn execute(&mut self, command: Command) {
        match command {
            Command::Ask(at) => {
                let node = &self.nodes[at];
                let state = node.is_there.then_some(node.state);
                let when = self.now.after(QUESTION);
                self.later.push((when, Later::Told(at, state)));
            }
            Command::Change(at, transition) => {
                let node = &mut self.nodes[at];
                assert_eq!(
                    node.state, transition.start,
                    "{} is not asked first",
                    node.name
                );
                self.asked
                    .push(format!("{} {}", node.name, transition.label));
                node.state = transition.goal;
                node.under_way = Some(transition);
                let when = self.now.after(TRANSITION);
                match node.obeys {
                    Obeys::Yes | Obeys::Lies => self.later.push((when, Later::Ended(at))),
                    Obeys::Hangs => {}
                    Obeys::Dies => {
                        let name = node.name;
                        self.die(name);
                    }
                }
            }
        }
    }

    fn asked(&mut self) -> Vec<String> {
        std::mem::take(&mut self.asked)
    }

    #[track_caller]
    fn told(&mut self, wanted: &str) {
        let words: Vec<_> = self
            .events
            .drain(..)
            .map(|event| event.to_string())
            .collect();
        assert!(words.iter().any(|w| w.contains(wanted)), "{words:#?}");
    }
}

#[test]
fn nodes_go_up_in_the_order_of_their_dependencies_and_down_in_the_other() {
    let mut world = World::robot(LossPolicy::default());
    world.settle(Aim::Up);
    let up = [
        "/lidar configure",
        "/lidar activate",
        "/map configure",
        "/map activate",
        "/planner configure",
        "/planner activate",
    ];
    assert_eq!(world.asked(), up);
    assert!(world.conductor.report().all_are(S::Active));
    world.settle(Aim::Down);
    let down = [
        "/planner deactivate",
        "/planner cleanup",
        "/map deactivate",
        "/map cleanup",
        "/lidar deactivate",
        "/lidar cleanup",
    ];
    assert_eq!(world.asked(), down);
    world.settle(Aim::End);
    assert!(world.conductor.report().all_are(S::Finalized));
    assert!(world.events.iter().all(|event| !event.is_trouble()));
}

/// `supervise --down` once ended before it had met anybody, and said that all
/// were down.
#[test]
fn who_is_to_go_down_is_met_first_and_in_the_right_order() {
    let mut world = World::new([node("lidar"), node("map").depends_on("lidar"), node("gone")]);
    world.conductor.aim(world.now, Aim::Down);
    world.run(0.2);
    assert!(!world.conductor.is_settled());
    world.arrive("/lidar");
    world.node("/lidar").state = S::Inactive;
    world.run(0.2);
    assert!(
        world.asked().is_empty(),
        "map, which needs it, may come yet"
    );
    world.arrive("/map");
    world.node("/map").state = S::Inactive;
    world.run(0.2);
    assert_eq!(world.asked(), ["/map cleanup", "/lidar cleanup"]);
    assert!(!world.conductor.is_settled());
    world.run(0.5);
    assert!(world.conductor.is_settled(), "the third is not there");
    assert_eq!(world.condition("/gone"), Condition::Missing);
}

#[test]
fn what_does_not_depend_on_each_other_goes_up_at_the_same_time() {
    let mut world = World::new(["a", "b", "c"].map(node));
    for name in ["/a", "/b", "/c"] {
        world.arrive(name);
    }
    world.settle(Aim::Up);
    assert_eq!(
        world.asked()[..3],
        ["/a configure", "/b configure", "/c configure"]
    );
    assert!(world.now < Instant::ZERO.after(Span::from_millis(150)));
}

#[test]
fn a_node_that_is_half_way_up_already_goes_on_from_there() {
    let mut world = World::robot(LossPolicy::default());
    world.node("/lidar").state = S::Active;
    world.node("/map").state = S::Inactive;
    world.settle(Aim::Up);
    assert_eq!(world.asked()[0], "/map activate");
}

#[test]
fn who_is_missing_is_named_and_who_needs_it_waits_until_it_comes() {
    let mut world = World::robot(LossPolicy::default());
    world.die("/lidar");
    world.settle(Aim::Up);
    assert_eq!(world.now, Instant::ZERO.after(Span::from_secs(10)));
    world.told("/lidar is missing for 10s; start its process");
    assert!(world.asked().is_empty());
    world.run(60.0);
    world.arrive("/lidar");
    world.run(1.0);
    assert!(world.conductor.report().all_are(S::Active));
}

#[test]
fn a_node_that_dies_and_comes_back_is_brought_up_again_after_a_pause() {
    let mut world = World::robot(LossPolicy::default());
    world.settle(Aim::Up);
    world.run(60.0);
    world.asked();
    world.die("/lidar");
    world.run(0.1);
    world.told("/lidar is tried again in 500ms (attempt 1)");
    world.arrive("/lidar");
    world.run(0.3);
    assert_eq!(world.state("/lidar"), S::Unconfigured, "it pauses");
    world.run(1.0);
    assert_eq!(world.asked(), ["/lidar configure", "/lidar activate"]);
    // Those that need it were not disturbed.
    assert_eq!(world.state("/planner"), S::Active);
}

#[test]
fn a_node_that_is_back_before_its_end_is_told_is_brought_up_again() {
    let mut world = World::robot(LossPolicy::default());
    world.settle(Aim::Up);
    world.run(60.0);
    world.asked();
    let lidar = world.at("/lidar");
    world.conductor.handle_presence(world.now, lidar, 2);
    world.node("/lidar").state = S::Unconfigured;
    world.run(10.0);
    assert!(world.asked().is_empty(), "the dead one is taken for alive");
    world.conductor.handle_presence(world.now, lidar, 1);
    world.conductor.handle_namesake_gone(lidar);
    world.run(0.1);
    world.told("/lidar is tried again in 500ms (attempt 1)");
    world.run(1.0);
    assert_eq!(world.asked(), ["/lidar configure", "/lidar activate"]);
    assert!(world.conductor.report().all_are(S::Active));
}

#[test]
fn a_namesake_that_comes_and_goes_is_nobodys_loss() {
    let mut world = World::robot(LossPolicy::BringDown);
    world.settle(Aim::Up);
    world.asked();
    let lidar = world.at("/lidar");
    for count in [2, 1] {
        world.conductor.handle_presence(world.now, lidar, count);
    }
    world.conductor.handle_namesake_gone(lidar);
    world.run(10.0);
    assert!(world.asked().is_empty());
    assert!(world.conductor.report().all_are(S::Active));
}

#[test]
fn who_needs_a_node_that_does_not_come_back_is_brought_down_and_up_again_later() {
    let mut world = World::robot(LossPolicy::default());
    world.settle(Aim::Up);
    world.asked();
    world.die("/lidar");
    world.run(12.0);
    let down = [
        "/planner deactivate",
        "/planner cleanup",
        "/map deactivate",
        "/map cleanup",
    ];
    assert_eq!(world.asked(), down);
    assert_eq!(world.condition("/lidar"), Condition::Missing);
    world.arrive("/lidar");
    world.run(2.0);
    assert!(world.conductor.report().all_are(S::Active));
}

#[test]
fn bring_down_and_ignore_do_what_they_say() {
    let mut world = World::robot(LossPolicy::BringDown);
    world.settle(Aim::Up);
    world.die("/lidar");
    world.run(1.0);
    world.told("/lidar is given up: it went away");
    assert_eq!(world.state("/map"), S::Unconfigured);
    world.arrive("/lidar");
    world.asked();
    world.run(30.0);
    assert!(world.asked().is_empty(), "it is given up");
    // Told anew, it is tried again.
    world.settle(Aim::Up);
    assert!(world.conductor.report().all_are(S::Active));

    let mut world = World::robot(LossPolicy::Ignore);
    world.node("/lidar").obeys = Obeys::Lies;
    world.settle(Aim::Up);
    assert_eq!(world.condition("/lidar"), Condition::GivenUp);
    assert_eq!(world.state("/planner"), S::Active);
}

#[test]
fn a_node_that_dies_in_the_middle_of_a_transition_is_tried_again_when_it_is_back() {
    let mut world = World::robot(LossPolicy::default());
    world.node("/lidar").obeys = Obeys::Dies;
    world.conductor.aim(world.now, Aim::Up);
    world.run(0.2);
    world.told("/lidar is gone in the middle of configure");
    world.node("/lidar").obeys = Obeys::Yes;
    world.arrive("/lidar");
    world.run(1.0);
    assert!(world.conductor.report().all_are(S::Active));
}

#[test]
fn a_transition_that_does_not_end_is_told_and_what_needs_the_node_goes_down() {
    let mut world = World::robot(LossPolicy::default());
    world.settle(Aim::Up);
    world.node("/lidar").obeys = Obeys::Hangs;
    // It comes back, and gets stuck.
    world.die("/lidar");
    world.arrive("/lidar");
    world.run(12.0);
    world.told("/lidar: configure has not ended within 10s");
    assert_eq!(world.condition("/lidar"), Condition::Hanging);
    assert_eq!(world.state("/map"), S::Unconfigured);
    // It wakes up after all.
    let lidar = world.node("/lidar");
    lidar.obeys = Obeys::Yes;
    lidar.under_way = None;
    lidar.state = S::Inactive;
    world.run(2.0);
    assert!(world.conductor.report().all_are(S::Active));
}

#[test]
fn an_answer_is_not_believed_and_a_node_is_given_up_after_its_attempts() {
    let mut world = World::robot(LossPolicy::Restart {
        attempts: 3,
        backoff: Duration::from_secs(1),
        backoff_max: Duration::from_secs(3),
    });
    world.node("/lidar").obeys = Obeys::Lies;
    world.settle(Aim::Up);
    assert_eq!(world.asked(), ["/lidar configure"; 4]);
    let pauses = world.events.iter().filter_map(|event| match event {
        E::Retrying { pause, .. } => Some(pause.as_secs()),
        _ => None,
    });
    assert_eq!(pauses.collect::<Vec<_>>(), [1, 2, 3]);
    world.told("/lidar is given up: it fails in its transitions, after 3 attempts");
    assert_eq!(world.state("/map"), S::Unconfigured);
}

#[test]
fn what_somebody_else_changes_is_told_and_left_alone() {
    let mut world = World::robot(LossPolicy::default());
    world.settle(Aim::Up);
    world.asked();
    world.node("/lidar").state = S::Inactive;
    world
        .conductor
        .handle_event(world.at("/lidar"), S::Inactive);
    world.run(30.0);
    world.told("/lidar is inactive: somebody else changed that");
    assert!(world.asked().is_empty());
    world.settle(Aim::Up);
    assert_eq!(world.asked(), ["/lidar activate"]);
}

#[test]
fn a_node_whose_sign_of_life_stops_counts_as_hanging_until_it_comes_again() {
    let mut world = World::robot(LossPolicy::default());
    world.settle(Aim::Up);
    let lidar = world.at("/lidar");
    world.conductor.handle_alive(lidar, false);
    world.run(1.0);
    assert_eq!(world.condition("/lidar"), Condition::Hanging);
    assert_eq!(world.state("/planner"), S::Unconfigured);
    world.conductor.handle_alive(lidar, true);
    world.run(1.0);
    assert!(world.conductor.report().all_are(S::Active));
}

#[test]
fn a_finalized_node_is_given_up_and_twins_are_told() {
    let mut world = World::robot(LossPolicy::default());
    world.node("/lidar").state = S::Finalized;
    world.settle(Aim::Up);
    world.told("only its process can make it anew");
    world
        .conductor
        .handle_presence(world.now, world.at("/map"), 2);
    world.run(0.1);
    world.told("2 nodes are called /map");
}

#[test]
fn dependencies_that_cannot_be_met_are_named() {
    let error = |nodes: &[SupervisedNode]| sorted(nodes.to_vec()).unwrap_err();
    let twice = error(&[node("a"), node("/a")]);
    assert!(matches!(twice, SupervisorError::Twice { node } if node == "/a"));
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
            .contains("in a circle, so none can be first: /a, /b;")
    );
}
