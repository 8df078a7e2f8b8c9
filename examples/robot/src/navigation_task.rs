//! Navigation task of one goal: decides the next command, without network and
//! clock.

use std::fmt;
use std::time::Duration;

use pteros::action::ServerGoalHandle;
use pteros::clock::Time;
use pteros::interfaces::geometry_msgs::msg::{PoseStamped, TransformStamped};
use pteros::interfaces::nav_msgs::srv::{GetPlanRequest, GetPlanResponse};
use pteros::prelude::*;
use pteros::tf::Isometry;

use crate::nav2_msgs::action::{NavigateToPose, NavigateToPoseFeedback, NavigateToPoseResult};
use crate::pure_pursuit::{DriveLimits, normalize_angle, steer};

/// Goal tolerances in metres and radians.
const POSITION_TOLERANCE: f64 = 0.08;
const YAW_TOLERANCE: f64 = 0.08;
/// Without a pose for this long the task fails.
const LOCALIZATION_TIMEOUT: Duration = Duration::from_secs(5);
/// An older transform is ignored.
const TRANSFORM_AGE_MAX: Duration = Duration::from_millis(500);
/// An obstacle for this long triggers a recovery.
const BLOCKED_TIMEOUT: Duration = Duration::from_secs(2);
/// Duration and speed (m/s) of backing off.
const BACK: (Duration, f64) = (Duration::from_secs(1), -0.15);
/// Delay before a new plan is requested.
const REPLAN_DELAY: Duration = Duration::from_secs(1);
/// Largest number of recoveries.
const RECOVERIES_MAX: i16 = 6;
/// Period of the feedback.
const FEEDBACK_PERIOD: Duration = Duration::from_millis(200);

/// The next command.
pub enum NavigationCommand {
    /// Forward and turning speed.
    Drive(f64, f64),
    /// Request a plan from one point to another.
    Plan([f64; 2], [f64; 2]),
    /// Stop.
    Wait,
    /// The task has ended.
    End(NavigationOutcome),
}

/// Outcome of a task.
pub enum NavigationOutcome {
    /// The goal is reached.
    Reached,
    /// The client has cancelled it.
    Canceled,
    /// The goal cannot be reached: Nav2's error code and the reason.
    Failed(u16, String),
}

/// The task of an active goal.
pub struct NavigationTask {
    goal: ServerGoalHandle<NavigateToPose>,
    target: [f64; 3],
    start_time: Time,
    plan: PlanState,
    /// Time and value of the last known pose.
    last_pose: (Time, [f64; 3]),
    blocked_since: Option<Time>,
    back_until: Option<Time>,
    recoveries: i16,
    arrived: bool,
    last_feedback: Time,
}

enum PlanState {
    /// To be requested at this time.
    RequestAt(Time),
    Requested,
    Planned(Vec<[f64; 2]>),
    Failed(String),
}

impl NavigationTask {
    /// A task for an accepted goal.
    pub fn new(goal: ServerGoalHandle<NavigateToPose>, now: Time) -> Self {
        Self {
            goal,
            target: [0.0; 3],
            start_time: now,
            plan: PlanState::RequestAt(now),
            last_pose: (now, [0.0; 3]),
            blocked_since: None,
            back_until: None,
            recoveries: 0,
            arrived: false,
            last_feedback: Time::default(),
        }
    }

    /// Sets the target: x, y and yaw in the map.
    pub fn towards(self, target: [f64; 3]) -> Self {
        Self { target, ..self }
    }

    /// Handles the response of the planner.
    pub fn handle_plan(&mut self, answer: Result<Sample<GetPlanResponse>, String>) {
        if !matches!(self.plan, PlanState::Requested) {
            return;
        }
        let point = |pose: &PoseStamped| [pose.pose.position.x, pose.pose.position.y];
        self.plan = match answer {
            Ok(answer) if answer.plan.poses.is_empty() => {
                PlanState::Failed("there is no path".into())
            }
            Ok(answer) => PlanState::Planned(answer.plan.poses.iter().map(point).collect()),
            Err(error) => PlanState::Failed(error),
        };
    }

    /// Decides the next command, and publishes feedback. `place` is the base in the
    /// map.
    pub fn update(
        &mut self,
        now: Time,
        place: Option<&TransformStamped>,
        limits: &DriveLimits,
        is_blocked: bool,
        limit: Duration,
    ) -> NavigationCommand {
        if self.goal.is_canceling() {
            return NavigationCommand::End(NavigationOutcome::Canceled);
        }
        if now.since(self.start_time) > limit {
            let why = format!("goal not reached within {} s", limit.as_secs_f64());
            return failed(NavigateToPoseResult::TIMEOUT, why);
        }
        let fresh =
            place.filter(|place| now.since(Time::from(&place.header.stamp)) < TRANSFORM_AGE_MAX);
        let Some(place) = fresh else {
            if now.since(self.last_pose.0) > LOCALIZATION_TIMEOUT {
                let why = "no transform from base_link to map".into();
                return failed(NavigateToPoseResult::TF_ERROR, why);
            }
            return NavigationCommand::Wait;
        };
        let pose = Isometry::from(&place.transform);
        let here = [pose.translation[0], pose.translation[1], pose.yaw()];
        self.last_pose = (now, here);
        let next = self.follow_plan(now, here, limits, is_blocked);
        if now.since(self.last_feedback) >= FEEDBACK_PERIOD {
            self.last_feedback = now;
            self.publish_feedback(now, place, limits);
        }
        next
    }

    fn follow_plan(
        &mut self,
        now: Time,
        here: [f64; 3],
        limits: &DriveLimits,
        is_blocked: bool,
    ) -> NavigationCommand {
        let [x, y, yaw] = here;
        let near = (self.target[0] - x).hypot(self.target[1] - y) < POSITION_TOLERANCE;
        self.arrived |= near;
        if self.arrived {
            let off = normalize_angle(self.target[2] - yaw);
            return if off.abs() < YAW_TOLERANCE {
                NavigationCommand::End(NavigationOutcome::Reached)
            } else {
                NavigationCommand::Drive(0.0, (off * 2.0).clamp(-limits.turning, limits.turning))
            };
        }
        if let Some(until) = self.back_until {
            if now < until {
                return NavigationCommand::Drive(BACK.1, 0.0);
            }
            self.back_until = None;
            self.plan = PlanState::RequestAt(now);
        }
        match &self.plan {
            PlanState::RequestAt(time) if now >= *time => {
                self.plan = PlanState::Requested;
                NavigationCommand::Plan([x, y], [self.target[0], self.target[1]])
            }
            PlanState::RequestAt(_) | PlanState::Requested => NavigationCommand::Wait,
            PlanState::Failed(why) => {
                let why = why.clone();
                self.recover(now, &why, false)
            }
            PlanState::Planned(path) => {
                let steering = steer(path, here, limits);
                if !is_blocked || steering.forward == 0.0 {
                    self.blocked_since = None;
                    return NavigationCommand::Drive(steering.forward, steering.turning);
                }
                let since = *self.blocked_since.get_or_insert(now);
                if now.since(since) > BLOCKED_TIMEOUT {
                    self.recover(now, "an obstacle blocks the path", true)
                } else {
                    NavigationCommand::Drive(0.0, steering.turning)
                }
            }
        }
    }

    /// Plans again, after backing off if there is an obstacle.
    fn recover(&mut self, now: Time, why: &str, backs_off: bool) -> NavigationCommand {
        if self.recoveries >= RECOVERIES_MAX {
            let why = format!("{why}, after {} recoveries", self.recoveries);
            return failed(NavigateToPoseResult::UNKNOWN, why);
        }
        self.recoveries += 1;
        self.blocked_since = None;
        self.plan = PlanState::RequestAt(now + REPLAN_DELAY);
        self.back_until = backs_off.then(|| now + BACK.0);
        NavigationCommand::Wait
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "Nav2's feedback is single precision"
    )]
    fn publish_feedback(&self, now: Time, place: &TransformStamped, limits: &DriveLimits) {
        let left = match &self.plan {
            PlanState::Planned(path) => steer(path, self.last_pose.1, limits).remaining,
            _ => (self.target[0] - self.last_pose.1[0]).hypot(self.target[1] - self.last_pose.1[1]),
        };
        let seconds = left / limits.speed;
        let current_pose = PoseStamped {
            header: place.header.clone(),
            pose: Isometry::from(&place.transform).into(),
        };
        self.goal.publish_feedback(NavigateToPoseFeedback {
            current_pose,
            navigation_time: now.since(self.start_time).into(),
            estimated_time_remaining: Duration::try_from_secs_f64(seconds)
                .unwrap_or_default()
                .into(),
            number_of_recoveries: self.recoveries,
            distance_remaining: left as f32,
        });
    }

    /// Ends the goal with this outcome.
    pub fn finish(self, outcome: NavigationOutcome) {
        // The server may be gone. Then the goal has ended already.
        let _ = match outcome {
            NavigationOutcome::Reached => self.goal.succeed(result(NavigateToPoseResult::NONE, "")),
            NavigationOutcome::Canceled => {
                self.goal.canceled(result(NavigateToPoseResult::NONE, ""))
            }
            NavigationOutcome::Failed(code, why) => self.goal.abort(result(code, &why)),
        };
    }

    /// Aborts the goal.
    pub fn abort(self, code: u16, why: &str) {
        self.finish(NavigationOutcome::Failed(code, why.into()));
    }
}

/// The plan request.
pub fn plan_request(from: [f64; 2], to: [f64; 2], now: Time) -> GetPlanRequest {
    let pose = |[x, y]: [f64; 2]| {
        let mut pose = PoseStamped {
            pose: Isometry::planar(x, y, 0.0).into(),
            ..PoseStamped::default()
        };
        pose.header.frame_id = "map".into();
        pose.header.stamp = now.into();
        pose
    };
    GetPlanRequest {
        start: pose(from),
        goal: pose(to),
        tolerance: 0.0,
    }
}

fn failed(code: u16, why: String) -> NavigationCommand {
    NavigationCommand::End(NavigationOutcome::Failed(code, why))
}

fn result(error_code: u16, error_msg: &str) -> NavigateToPoseResult {
    NavigateToPoseResult {
        error_code,
        error_msg: error_msg.into(),
    }
}

impl fmt::Display for NavigationOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reached => f.write_str("the goal is reached"),
            Self::Canceled => f.write_str("the goal is cancelled"),
            Self::Failed(code, why) => write!(f, "the goal is aborted: {why} ({code})"),
        }
    }
}
