//! Who is asked for what, when: the supervisor without clock, network or nodes.
//! `handle_` takes in what happened, [`Conductor::step`] says what to do next.
//!
//! A state is believed when the node itself has told it: after each transition it
//! is asked, whatever the answer to the transition was, and an event only says
//! that it had better be asked again.

use std::collections::VecDeque;

use pteros_rmw::rtps::fault;
use pteros_rmw::rtps::time::{Duration, Instant};

use super::event::{Condition, NodeReport, SupervisorEvent, SupervisorReport};
use super::plan::{LossPolicy, SupervisedNode};
use crate::lifecycle::machine::{LifecycleState as S, LifecycleTransition as T, Verdict, end_of};

/// A node's answer to a question is waited for so long.
const ANSWER: Duration = Duration::from_millis(2_000);
/// A node that is in the middle of something, or has not answered, is asked again
/// after this.
const AGAIN: Duration = Duration::from_millis(100);
/// Who is to go down and has not been met after this is not there: discovery of
/// those that run takes a fraction of it.
const MEETING: std::time::Duration = std::time::Duration::from_secs(1);

/// Where all nodes are to go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Aim {
    /// Nowhere.
    Rest,
    /// To active.
    Up,
    /// To unconfigured.
    Down,
    /// To finalized.
    End,
}

/// What the driver is to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Command {
    /// Ask the node of that place for its state.
    Ask(usize),
    /// Ask it for a transition.
    Change(usize, T),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Doing {
    Nothing,
    Asking { until: Instant },
    Changing { to: T, until: Instant },
    Resting { until: Instant },
}

struct Member {
    node: SupervisedNode,
    needs: Vec<usize>,
    needed_by: Vec<usize>,
    /// It is there.
    present: bool,
    /// It has been there.
    is_met: bool,
    /// Its sign of life has not stopped.
    is_alive: bool,
    /// What it said last; none when that may have changed.
    state: Option<S>,
    /// What it said before that.
    last: Option<S>,
    /// One of its name has gone since then, who may have been the one that said so.
    may_be_another: bool,
    doing: Doing,
    /// Asked for, and not yet verified.
    asked_for: Option<T>,
    condition: Condition,
    attempts: u32,
    /// Since when it has not been there, has not answered, or has been under way.
    waits_since: Option<Instant>,
    active_since: Option<Instant>,
}

/// See the module's head.
pub(super) struct Conductor {
    members: Vec<Member>,
    aim: Aim,
    events: VecDeque<SupervisorEvent>,
}

impl Conductor {
    pub(super) fn new(nodes: Vec<(SupervisedNode, Vec<usize>)>) -> Self {
        let mut members: Vec<Member> = Vec::new();
        for (at, (node, needs)) in nodes.into_iter().enumerate() {
            for &need in &needs {
                if let Some(member) = members.get_mut(need) {
                    member.needed_by.push(at);
                }
            }
            members.push(Member {
                node,
                needs,
                needed_by: Vec::new(),
                present: false,
                is_met: false,
                is_alive: true,
                state: None,
                last: None,
                may_be_another: false,
                doing: Doing::Nothing,
                asked_for: None,
                condition: Condition::Well,
                attempts: 0,
                waits_since: None,
                active_since: None,
            });
        }
        Self {
            members,
            aim: Aim::Rest,
            events: VecDeque::new(),
        }
    }

    /// Says where all are to go. What was given up or left alone is tried again.
    pub(super) fn aim(&mut self, now: Instant, aim: Aim) {
        self.aim = aim;
        for member in &mut self.members {
            member.condition = Condition::Well;
            member.attempts = 0;
            member.waits_since = (!member.present).then_some(now);
            if let Doing::Resting { .. } = member.doing {
                member.doing = Doing::Nothing;
            }
        }
    }

    pub(super) fn poll_event(&mut self) -> Option<SupervisorEvent> {
        self.events.pop_front()
    }

    pub(super) fn report(&self) -> SupervisorReport {
        let row = |member: &Member| NodeReport {
            node: member.node.name.clone(),
            state: member.state.or(member.last).unwrap_or(S::Unknown),
            condition: match member.present {
                true => member.condition,
                false if member.condition == Condition::GivenUp => Condition::GivenUp,
                false => Condition::Missing,
            },
            attempts: member.attempts,
        };
        SupervisorReport {
            nodes: self.members.iter().map(row).collect(),
        }
    }

    /// Whether there is nothing to do and nothing to wait for but what may happen
    /// by itself.
    pub(super) fn is_settled(&self) -> bool {
        let verdicts = self.wishes();
        self.members
            .iter()
            .zip(verdicts)
            .all(|(member, wish)| match member.condition {
                Condition::Well if !member.present => false,
                Condition::Well | Condition::LeftAlone => {
                    member.doing == Doing::Nothing
                        && member.state.is_some_and(|state| {
                            member.condition == Condition::LeftAlone
                                || next_step(state, wish).is_none()
                        })
                }
                Condition::Missing | Condition::Hanging | Condition::GivenUp => true,
            })
    }

    // --- what happened ---

    /// Nodes of that name are there, or are not.
    pub(super) fn handle_presence(&mut self, now: Instant, at: usize, count: usize) {
        let Some(member) = self.members.get_mut(at) else {
            return;
        };
        let node = member.node.name.clone();
        if count > 1 {
            let node = node.clone();
            self.events
                .push_back(SupervisorEvent::Twins { node, count });
        }
        match (member.present, count > 0) {
            (false, true) => {
                member.present = true;
                member.is_met = true;
                member.waits_since = None;
                // A pause before the next try goes on.
                member.state = None;
                if member.condition == Condition::Missing {
                    member.condition = Condition::Well;
                }
                self.events.push_back(SupervisorEvent::Arrived { node });
            }
            (true, false) => {
                let during = member.asked_for;
                member.present = false;
                member.is_alive = true;
                member.waits_since = Some(now);
                member.forget();
                if let Condition::LeftAlone | Condition::Hanging = member.condition {
                    member.condition = Condition::Well;
                }
                self.events
                    .push_back(SupervisorEvent::Gone { node, during });
                if self.aim == Aim::Up {
                    self.lost(now, at, "it went away");
                }
            }
            _ => {}
        }
    }

    /// Of several nodes of that name one has gone. A process that comes back before
    /// its lease is over is two for a while: whether it is the known one that is left,
    /// its state tells.
    pub(super) fn handle_namesake_gone(&mut self, at: usize) {
        if let Some(member) = self.members.get_mut(at)
            && member.present
        {
            member.may_be_another = true;
            if let Doing::Nothing | Doing::Resting { .. } = member.doing {
                member.state = None;
            }
        }
    }

    /// Its sign of life has stopped, or has come again.
    pub(super) fn handle_alive(&mut self, at: usize, is_alive: bool) {
        let Some(member) = self.members.get_mut(at) else {
            return;
        };
        if std::mem::replace(&mut member.is_alive, is_alive) == is_alive || !member.present {
            return;
        }
        if let Doing::Nothing = member.doing {
            member.state = None;
        }
        if !is_alive {
            let lease = member.node.sign_of_life.as_ref().map(|sign| sign.lease);
            self.hangs(at, lease.unwrap_or_default());
        }
    }

    /// A transition of the node was told on its topic.
    pub(super) fn handle_event(&mut self, at: usize, goal: S) {
        if let Some(member) = self.members.get_mut(at)
            && member.state != Some(goal)
            && let Doing::Nothing | Doing::Resting { .. } = member.doing
        {
            member.state = None;
        }
    }

    /// The node told its state, or did not.
    pub(super) fn handle_state(&mut self, now: Instant, at: usize, told: Option<S>) {
        let Some(member) = self.members.get_mut(at) else {
            return;
        };
        if !matches!(member.doing, Doing::Asking { .. }) {
            return;
        }
        member.doing = Doing::Nothing;
        match told.filter(|state| state.is_primary() && *state != S::Unknown) {
            Some(state) => self.verified(now, at, state),
            // On its way, or silent: asked again, for as long as a transition may last.
            None => {
                let since = *member.waits_since.get_or_insert(now);
                member.doing = Doing::Resting {
                    until: now.after(AGAIN),
                };
                let limit = member.node.transition_timeout;
                if now >= since.after(limit.into()) {
                    self.hangs(at, limit);
                }
            }
        }
    }

    /// The answer to a transition has come, or will not. What it says is looked
    /// up.
    pub(super) fn handle_changed(&mut self, at: usize) {
        if let Some(member) = self.members.get_mut(at)
            && let Doing::Changing { .. } = member.doing
        {
            member.doing = Doing::Nothing;
            member.state = None;
        }
    }

    // --- what follows ---

    /// What is to be done now. Call it after whatever happened, and at
    /// [`Self::next_deadline`].
    pub(super) fn step(&mut self, now: Instant) -> Vec<Command> {
        for at in 0..self.members.len() {
            self.expire(now, at);
        }
        let wishes = self.wishes();
        let mut commands = Vec::new();
        for (at, (member, wish)) in self.members.iter_mut().zip(wishes).enumerate() {
            if !member.present || member.doing != Doing::Nothing {
                continue;
            }
            let Some(state) = member.state else {
                member.doing = Doing::Asking {
                    until: now.after(ANSWER),
                };
                commands.push(Command::Ask(at));
                continue;
            };
            if let Condition::LeftAlone | Condition::Hanging | Condition::GivenUp = member.condition
            {
                continue;
            }
            if let Some(to) = next_step(state, wish) {
                let limit: Duration = member.node.transition_timeout.into();
                member.asked_for = Some(to);
                member.doing = Doing::Changing {
                    to,
                    until: now.after(limit),
                };
                commands.push(Command::Change(at, to));
            }
        }
        commands
    }

    /// When the next step is due if nothing happens.
    pub(super) fn next_deadline(&self) -> Instant {
        let of = |member: &Member| match member.doing {
            Doing::Asking { until } | Doing::Changing { until, .. } | Doing::Resting { until } => {
                until
            }
            Doing::Nothing => match (member.present, member.waits_since) {
                (false, Some(since)) if member.is_awaited() => {
                    since.after(member.patience(self.aim).into())
                }
                _ => Instant::FAR_FUTURE,
            },
        };
        let all = self.members.iter().map(of);
        all.min().unwrap_or(Instant::FAR_FUTURE)
    }

    fn expire(&mut self, now: Instant, at: usize) {
        let Some(member) = self.members.get_mut(at) else {
            return;
        };
        match member.doing {
            Doing::Resting { until } if now >= until => {
                member.doing = Doing::Nothing;
                // It may be elsewhere by now.
                member.state = None;
            }
            Doing::Asking { until } if now >= until => self.handle_state(now, at, None),
            Doing::Changing { until, .. } if now >= until => {
                member.state = None;
                member.doing = Doing::Nothing;
                member.waits_since = Some(now);
                let limit = member.node.transition_timeout;
                self.hangs(at, limit);
            }
            _ => {}
        }
        let Some(member) = self.members.get_mut(at) else {
            return;
        };
        let limit = member.patience(self.aim);
        let is_late = member
            .waits_since
            .is_some_and(|since| now >= since.after(limit.into()));
        if member.present || !member.is_awaited() || !is_late {
            return;
        }
        if self.aim == Aim::Up {
            member.condition = Condition::Missing;
            let node = member.node.name.clone();
            let after = limit;
            self.events
                .push_back(SupervisorEvent::Missing { node, after });
            if !matches!(self.policy(at), LossPolicy::Restart { .. }) {
                self.give_up(at, "it is missing");
            }
        } else {
            // What is not there is as far down as can be.
            member.condition = Condition::Missing;
        }
    }

    /// A state that lasts.
    fn verified(&mut self, now: Instant, at: usize, state: S) {
        let Some(member) = self.members.get_mut(at) else {
            return;
        };
        let may_be_another = std::mem::take(&mut member.may_be_another);
        let is_elsewhere = member.last.is_some_and(|last| last != state);
        if may_be_another && is_elsewhere && member.asked_for.is_none() {
            self.handle_presence(now, at, 0);
            self.handle_presence(now, at, 1);
            return;
        }
        let node = member.node.name.clone();
        member.waits_since = None;
        if member.condition == Condition::Hanging && member.is_alive {
            member.condition = Condition::Well;
        }
        let before = member.last.replace(state);
        member.state = Some(state);
        if state == S::Active {
            let since = *member.active_since.get_or_insert(now);
            if let LossPolicy::Restart { backoff_max, .. } = member.node.on_loss
                && now > since.after(backoff_max.into())
            {
                member.attempts = 0;
            }
        } else {
            member.active_since = None;
        }
        match member.asked_for.take() {
            Some(transition) if goal_of(transition) == Some(state) => {
                self.events
                    .push_back(SupervisorEvent::Reached { node, state });
            }
            Some(transition) => {
                self.events.push_back(SupervisorEvent::Failed {
                    node,
                    transition,
                    state,
                });
                self.lost(now, at, "it fails in its transitions");
            }
            None if before.is_some_and(|before| before != state) => {
                member.condition = Condition::LeftAlone;
                self.events
                    .push_back(SupervisorEvent::ChangedByOthers { node, state });
            }
            None => {}
        }
        if state == S::Finalized && self.aim == Aim::Up {
            self.give_up(at, "it is finalized; only its process can make it anew");
        }
    }

    /// Its policy says what becomes of one that went or failed. Whoever is
    /// going down anyway has none.
    fn lost(&mut self, now: Instant, at: usize, reason: &str) {
        let policy = self.policy(at);
        let Some(member) = self.members.get_mut(at) else {
            return;
        };
        if let Some(since) = member.active_since.take()
            && let LossPolicy::Restart { backoff_max, .. } = policy
            && now > since.after(backoff_max.into())
        {
            member.attempts = 0;
        }
        match policy {
            _ if self.aim == Aim::Rest => {}
            LossPolicy::Restart {
                attempts,
                backoff,
                backoff_max,
            } if member.attempts < attempts => {
                let pause = backoff
                    .saturating_mul(1 << member.attempts.min(20))
                    .min(backoff_max);
                member.attempts += 1;
                member.doing = Doing::Resting {
                    until: now.after(pause.into()),
                };
                let (node, attempt) = (member.node.name.clone(), member.attempts);
                self.events.push_back(SupervisorEvent::Retrying {
                    node,
                    pause,
                    attempt,
                });
            }
            LossPolicy::Restart { attempts, .. } => {
                self.give_up(at, &format!("{reason}, after {attempts} attempts"));
            }
            LossPolicy::BringDown | LossPolicy::Ignore => self.give_up(at, reason),
        }
    }

    fn hangs(&mut self, at: usize, after: std::time::Duration) {
        let Some(member) = self.members.get_mut(at) else {
            return;
        };
        if member.condition == Condition::Well {
            member.condition = Condition::Hanging;
            let (node, transition) = (member.node.name.clone(), member.asked_for);
            self.events.push_back(SupervisorEvent::Hung {
                node,
                transition,
                after,
            });
            if self.aim == Aim::Up && !matches!(self.policy(at), LossPolicy::Restart { .. }) {
                self.give_up(at, "it hangs");
            }
        }
    }

    fn give_up(&mut self, at: usize, reason: &str) {
        let Some(member) = self.members.get_mut(at) else {
            return;
        };
        if member.condition != Condition::GivenUp {
            member.condition = Condition::GivenUp;
            let node = member.node.name.clone();
            let reason = reason.to_owned();
            self.events
                .push_back(SupervisorEvent::GivenUp { node, reason });
        }
    }

    fn policy(&self, at: usize) -> LossPolicy {
        let member = self.members.get(at);
        member.map_or(LossPolicy::Ignore, |member| member.node.on_loss)
    }

    /// Where each is to go now.
    fn wishes(&self) -> Vec<Aim> {
        let mut wishes: Vec<Aim> = Vec::with_capacity(self.members.len());
        // Without these, others are to be down: by place.
        let mut failed: Vec<bool> = Vec::with_capacity(self.members.len());
        for member in &self.members {
            let needs_failed = member.needs.iter().any(|&need| failed[need]);
            let ignored = member.node.on_loss == LossPolicy::Ignore;
            let is_bad = matches!(
                member.condition,
                Condition::Missing | Condition::Hanging | Condition::GivenUp
            );
            failed.push((is_bad && !ignored) || needs_failed);
            let there = |&need: &usize| {
                let need = &self.members[need];
                need.state == Some(S::Active)
                    || (need.is_bad() && need.node.on_loss == LossPolicy::Ignore)
            };
            wishes.push(match self.aim {
                Aim::Rest => Aim::Rest,
                Aim::Up if needs_failed => Aim::Down,
                Aim::Up if fault!("dependency-not-awaited") => Aim::Up,
                Aim::Up if member.needs.iter().all(there) => Aim::Up,
                Aim::Up => Aim::Rest,
                aim => aim,
            });
        }
        // Nobody goes down before those that need it.
        for (at, member) in self.members.iter().enumerate() {
            let is_down = |&by: &usize| self.members[by].is_down(self.aim);
            if matches!(wishes[at], Aim::Down | Aim::End) && !member.needed_by.iter().all(is_down) {
                wishes[at] = Aim::Rest;
            }
        }
        wishes
    }
}

impl Member {
    /// Whatever was known or begun of it holds no more.
    fn forget(&mut self) {
        self.state = None;
        self.last = None;
        self.may_be_another = false;
        self.asked_for = None;
        self.doing = Doing::Nothing;
    }

    fn is_bad(&self) -> bool {
        matches!(
            self.condition,
            Condition::Missing | Condition::Hanging | Condition::GivenUp
        )
    }

    /// Whether its coming is still waited for.
    fn is_awaited(&self) -> bool {
        self.condition == Condition::Well
    }

    /// How long its coming is waited for.
    fn patience(&self, aim: Aim) -> std::time::Duration {
        match aim {
            Aim::Up => self.node.arrival_timeout,
            _ if self.is_met => std::time::Duration::ZERO,
            _ => MEETING.min(self.node.arrival_timeout),
        }
    }

    /// Nothing holds those that it needs: it is down, or cannot be helped.
    fn is_down(&self, aim: Aim) -> bool {
        let may_come = aim != Aim::Up && !self.is_met && self.is_awaited();
        (!self.present && !may_come)
            || self.is_bad()
            || matches!(self.state, Some(S::Unconfigured | S::Finalized))
    }
}

/// The transition that leads on from a state.
fn next_step(state: S, wish: Aim) -> Option<T> {
    Some(match (wish, state) {
        (Aim::Up, S::Unconfigured) => T::CONFIGURE,
        (Aim::Up, S::Inactive) => T::ACTIVATE,
        (Aim::Down | Aim::End, S::Active) => T::DEACTIVATE,
        (Aim::Down | Aim::End, S::Inactive) => T::CLEANUP,
        (Aim::End, S::Unconfigured) => T::UNCONFIGURED_SHUTDOWN,
        _ => return None,
    })
}

/// Where a transition leads when it succeeds.
fn goal_of(transition: T) -> Option<S> {
    end_of(transition.goal, Verdict::Success).map(|end| end.goal)
}
