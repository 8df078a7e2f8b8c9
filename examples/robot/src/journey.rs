//! One goal from its beginning to its end: what to do next, decided without network
//! and clock.

use std::fmt;
use std::time::Duration;

use pteros::ServerGoal;
use pteros::clock::Time;
use pteros::interfaces::geometry_msgs::msg::{PoseStamped, TransformStamped};
use pteros::interfaces::nav_msgs::srv::{GetPlan_Request, GetPlan_Response};
use pteros::prelude::*;
use pteros::tf::Isometry;

use crate::follow::{Manner, pursue, within_pi};
use crate::nav2_msgs::action::{NavigateToPose, NavigateToPose_Feedback, NavigateToPose_Result};

/// There when so near, metres and radians.
const NEAR: f64 = 0.08;
const TURNED: f64 = 0.08;
/// Without knowing for so long where it is, it gives up.
const LOST: Duration = Duration::from_secs(5);
/// A transform older than this does not say where it is.
const STALE: Duration = Duration::from_millis(500);
/// Something ahead for so long makes it look for another way.
const BLOCKED: Duration = Duration::from_secs(2);
/// And back off for so long at so many metres a second first.
const BACK: (Duration, f64) = (Duration::from_secs(1), -0.15);
/// Before it looks for a way again.
const PAUSE: Duration = Duration::from_secs(1);
/// After so many recoveries it gives up.
const RECOVERIES_MAX: i16 = 6;
/// How often feedback is given.
const FEEDBACK: Duration = Duration::from_millis(200);

/// What is to be done now.
pub enum Move {
    /// Forward and turning speed.
    Drive(f64, f64),
    /// Ask for a way from here to there.
    Plan([f64; 2], [f64; 2]),
    /// Stand.
    Wait,
    /// It is over.
    End(Outcome),
}

/// How a goal ends.
pub enum Outcome {
    /// It is there.
    Reached,
    /// Its client wants it no more.
    Canceled,
    /// It cannot be reached: Nav2's code, and why.
    Failed(u16, String),
}

/// A goal that goes on.
pub struct Journey {
    goal: ServerGoal<NavigateToPose>,
    target: [f64; 3],
    began: Time,
    way: Way,
    /// Where it was when that was last known.
    seen: (Time, [f64; 3]),
    blocked_since: Option<Time>,
    back_until: Option<Time>,
    recoveries: i16,
    arrived: bool,
    told: Time,
}

enum Way {
    /// To be asked for, then.
    After(Time),
    Asked,
    Known(Vec<[f64; 2]>),
    None(String),
}

impl Journey {
    /// Of a goal that was accepted.
    pub fn new(goal: ServerGoal<NavigateToPose>, now: Time) -> Self {
        Self {
            goal,
            target: [0.0; 3],
            began: now,
            way: Way::After(now),
            seen: (now, [0.0; 3]),
            blocked_since: None,
            back_until: None,
            recoveries: 0,
            arrived: false,
            told: Time::default(),
        }
    }

    /// x, y and yaw in the map.
    pub fn towards(self, target: [f64; 3]) -> Self {
        Self { target, ..self }
    }

    /// The answer of who finds ways.
    pub fn planned(&mut self, answer: Result<Sample<GetPlan_Response>, String>) {
        if !matches!(self.way, Way::Asked) {
            return;
        }
        let point = |pose: &PoseStamped| [pose.pose.position.x, pose.pose.position.y];
        self.way = match answer {
            Ok(answer) if answer.plan.poses.is_empty() => Way::None("there is no way".into()),
            Ok(answer) => Way::Known(answer.plan.poses.iter().map(point).collect()),
            Err(error) => Way::None(error),
        };
    }

    /// Decides what to do now, and gives feedback. `place` is the base in the map.
    pub fn step(
        &mut self,
        now: Time,
        place: Option<&TransformStamped>,
        manner: &Manner,
        is_blocked: bool,
        limit: Duration,
    ) -> Move {
        if self.goal.is_canceling() {
            return Move::End(Outcome::Canceled);
        }
        if now.since(self.began) > limit {
            let why = format!("not there after {} s", limit.as_secs_f64());
            return failed(NavigateToPose_Result::TIMEOUT, why);
        }
        let fresh = place.filter(|place| now.since(Time::from(&place.header.stamp)) < STALE);
        let Some(place) = fresh else {
            if now.since(self.seen.0) > LOST {
                let why = "nobody says where base_link is in map".into();
                return failed(NavigateToPose_Result::TF_ERROR, why);
            }
            return Move::Wait;
        };
        let pose = Isometry::from(&place.transform);
        let here = [pose.translation[0], pose.translation[1], pose.yaw()];
        self.seen = (now, here);
        let next = self.follow(now, here, manner, is_blocked);
        if now.since(self.told) >= FEEDBACK {
            self.told = now;
            self.tell(now, place, manner);
        }
        next
    }

    fn follow(&mut self, now: Time, here: [f64; 3], manner: &Manner, is_blocked: bool) -> Move {
        let [x, y, yaw] = here;
        let near = (self.target[0] - x).hypot(self.target[1] - y) < NEAR;
        self.arrived |= near;
        if self.arrived {
            let off = within_pi(self.target[2] - yaw);
            return match off.abs() < TURNED {
                true => Move::End(Outcome::Reached),
                false => Move::Drive(0.0, (off * 2.0).clamp(-manner.turning, manner.turning)),
            };
        }
        if let Some(until) = self.back_until {
            if now < until {
                return Move::Drive(BACK.1, 0.0);
            }
            self.back_until = None;
            self.way = Way::After(now);
        }
        match &self.way {
            Way::After(time) if now >= *time => {
                self.way = Way::Asked;
                Move::Plan([x, y], [self.target[0], self.target[1]])
            }
            Way::After(_) | Way::Asked => Move::Wait,
            Way::None(why) => {
                let why = why.clone();
                self.recover(now, &why, false)
            }
            Way::Known(way) => {
                let steering = pursue(way, here, manner);
                if !is_blocked || steering.forward == 0.0 {
                    self.blocked_since = None;
                    return Move::Drive(steering.forward, steering.turning);
                }
                let since = *self.blocked_since.get_or_insert(now);
                match now.since(since) > BLOCKED {
                    true => self.recover(now, "something is in the way", true),
                    false => Move::Drive(0.0, steering.turning),
                }
            }
        }
    }

    /// Tries again, after backing off where that may help.
    fn recover(&mut self, now: Time, why: &str, backs_off: bool) -> Move {
        if self.recoveries >= RECOVERIES_MAX {
            let why = format!("{why}, after {} recoveries", self.recoveries);
            return failed(NavigateToPose_Result::UNKNOWN, why);
        }
        self.recoveries += 1;
        self.blocked_since = None;
        self.way = Way::After(now + PAUSE);
        self.back_until = backs_off.then(|| now + BACK.0);
        Move::Wait
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "Nav2's feedback is single precision"
    )]
    fn tell(&self, now: Time, place: &TransformStamped, manner: &Manner) {
        let left = match &self.way {
            Way::Known(way) => pursue(way, self.seen.1, manner).left,
            _ => (self.target[0] - self.seen.1[0]).hypot(self.target[1] - self.seen.1[1]),
        };
        let seconds = left / manner.speed;
        let current_pose = PoseStamped {
            header: place.header.clone(),
            pose: Isometry::from(&place.transform).into(),
        };
        self.goal.publish_feedback(NavigateToPose_Feedback {
            current_pose,
            navigation_time: now.since(self.began).into(),
            estimated_time_remaining: Duration::try_from_secs_f64(seconds)
                .unwrap_or_default()
                .into(),
            number_of_recoveries: self.recoveries,
            distance_remaining: left as f32,
        });
    }

    /// Ends it so.
    pub fn end(self, outcome: Outcome) {
        // What ended meanwhile, for its server is gone, needs no end.
        let _ = match outcome {
            Outcome::Reached => self.goal.succeed(result(NavigateToPose_Result::NONE, "")),
            Outcome::Canceled => self.goal.canceled(result(NavigateToPose_Result::NONE, "")),
            Outcome::Failed(code, why) => self.goal.abort(result(code, &why)),
        };
    }

    /// Ends it without having got there.
    pub fn abort(self, code: u16, why: &str) {
        self.end(Outcome::Failed(code, why.into()));
    }
}

/// The question for a way.
pub fn plan_request(from: [f64; 2], to: [f64; 2], now: Time) -> GetPlan_Request {
    let pose = |[x, y]: [f64; 2]| {
        let mut pose = PoseStamped {
            pose: Isometry::planar(x, y, 0.0).into(),
            ..PoseStamped::default()
        };
        pose.header.frame_id = "map".into();
        pose.header.stamp = now.into();
        pose
    };
    GetPlan_Request {
        start: pose(from),
        goal: pose(to),
        tolerance: 0.0,
    }
}

fn failed(code: u16, why: String) -> Move {
    Move::End(Outcome::Failed(code, why))
}

fn result(error_code: u16, error_msg: &str) -> NavigateToPose_Result {
    NavigateToPose_Result {
        error_code,
        error_msg: error_msg.into(),
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reached => f.write_str("the goal is reached"),
            Self::Canceled => f.write_str("the goal is cancelled"),
            Self::Failed(code, why) => write!(f, "the goal is given up: {why} ({code})"),
        }
    }
}
