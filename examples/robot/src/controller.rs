//! Who drives: a managed node that serves Nav2's action `navigate_to_pose`.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use pteros::clock::Time;
use pteros::component::{Component, ComponentError};
use pteros::interfaces::geometry_msgs::msg::Twist;
use pteros::interfaces::nav_msgs::srv::GetPlan;
use pteros::interfaces::sensor_msgs::msg::LaserScan;
use pteros::parameter::{ParameterDescriptor, ParameterHandle};
use pteros::prelude::*;
use pteros::tf::{Isometry, LATEST, TransformListener};
use pteros::{
    ActionServer, ActionServerOptions, CallbackReturn, GoalResponse, LifecycleCallbacks,
    LifecycleNode, LifecyclePublisher, LifecycleState, Logger, ServerGoal, TimerOptions,
};

use crate::follow::Manner;
use crate::journey::{Journey, Move, plan_request};
use crate::nav2_msgs::action::{NavigateToPose, NavigateToPose_Goal, NavigateToPose_Result};

/// How often it steers.
const PERIOD: Duration = Duration::from_millis(50);
/// What is ahead within this angle may stop it.
const AHEAD: f32 = 0.5;
/// A scan older than this says nothing about what is ahead.
const SCAN_AGE: Duration = Duration::from_secs(1);

/// Drives to a pose: action `navigate_to_pose` (`nav2_msgs/action/NavigateToPose`),
/// one goal at a time; a newer one takes the place of the older, which is aborted. Asks
/// `get_plan` for the way, looks up where it is (`map` to `base_link`), stops for what
/// `scan` sees ahead, and speaks on `cmd_vel`. Managed: it becomes active when
/// it knows where it is; goals are rejected before.
///
/// Parameters: `speed` (m/s, 0.5), `turning` (rad/s, 1.5), `lookahead` (m, 0.4),
/// `stop_distance` (m ahead of the laser, 0.18), `goal_timeout` (s, 120).
pub struct Controller(LifecycleNode);

impl Controller {
    /// Its node, to be brought up.
    pub fn managed(&self) -> &LifecycleNode {
        &self.0
    }
}

impl Component for Controller {
    fn new(context: &Context, options: NodeOptions) -> Result<Self, ComponentError> {
        let options = options.name("controller");
        Ok(Self(LifecycleNode::new(
            context,
            options,
            Managed::default(),
        )?))
    }

    fn node(&self) -> &Node {
        self.0.node()
    }
}

/// What it has while it is configured.
#[derive(Default)]
struct Managed {
    settings: Option<Settings>,
    shared: Shared,
    transforms: Option<TransformListener>,
    parts: Option<Parts>,
}

type Parts = (ActionServer<NavigateToPose>, Subscription<LaserScan>, Timer);

#[derive(Clone)]
struct Settings {
    speed: ParameterHandle<f64>,
    turning: ParameterHandle<f64>,
    lookahead: ParameterHandle<f64>,
    stop_distance: ParameterHandle<f64>,
    goal_timeout: ParameterHandle<f64>,
}

/// What callbacks share: the goal that goes on, and what is ahead.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Now>>);

#[derive(Default)]
struct Now {
    active: bool,
    journey: Option<Journey>,
    /// Metres ahead of the laser that are free, and when that was seen.
    free: Option<(Time, f64)>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Now> {
        self.0.lock().expect("no panic holds it")
    }
}

impl LifecycleCallbacks for Managed {
    fn on_configure(&mut self, node: &LifecycleNode, _: LifecycleState) -> CallbackReturn {
        match self.configure(node) {
            Ok(()) => CallbackReturn::Success,
            Err(error) => {
                pteros::error!(node.logger(), "{error}");
                CallbackReturn::Failure
            }
        }
    }

    /// Not before it knows where it is.
    fn on_activate(&mut self, node: &LifecycleNode, _: LifecycleState) -> CallbackReturn {
        let transforms = self.transforms.as_ref();
        let place = transforms.map(|known| known.lookup("map", "base_link", LATEST));
        if let Some(Err(error)) = place {
            pteros::warn!(node.logger(), "{error}");
            return CallbackReturn::Failure;
        }
        self.shared.lock().active = true;
        CallbackReturn::Success
    }

    fn on_deactivate(&mut self, _: &LifecycleNode, _: LifecycleState) -> CallbackReturn {
        let mut now = self.shared.lock();
        now.active = false;
        if let Some(journey) = now.journey.take() {
            journey.abort(
                NavigateToPose_Result::UNKNOWN,
                "the controller was deactivated",
            );
        }
        CallbackReturn::Success
    }

    fn on_cleanup(&mut self, _: &LifecycleNode, _: LifecycleState) -> CallbackReturn {
        (self.parts, self.transforms) = (None, None);
        CallbackReturn::Success
    }
}

impl Settings {
    fn declare(node: &LifecycleNode) -> Result<Self, ComponentError> {
        let declare = |name, default: f64, most| {
            let range = ParameterDescriptor::new().float_range(0.01, most, 0.0);
            node.declare_parameter_with(name, default, range)
        };
        Ok(Self {
            speed: declare("speed", 0.5, 5.0)?,
            turning: declare("turning", 1.5, 10.0)?,
            lookahead: declare("lookahead", 0.4, 5.0)?,
            stop_distance: declare("stop_distance", 0.18, 5.0)?,
            goal_timeout: declare("goal_timeout", 120.0, 86_400.0)?,
        })
    }

    fn manner(&self) -> Manner {
        Manner {
            speed: self.speed.value(),
            turning: self.turning.value(),
            lookahead: self.lookahead.value(),
        }
    }
}

impl Managed {
    fn configure(&mut self, node: &LifecycleNode) -> Result<(), ComponentError> {
        let settings = match &self.settings {
            Some(known) => known.clone(),
            None => Settings::declare(node)?,
        };
        self.settings = Some(settings.clone());
        let transforms = TransformListener::new(node)?;
        self.transforms = Some(transforms.clone());
        let (heard, clock) = (self.shared.clone(), node.clock());
        let sensor = QosProfile::sensor_data();
        let scans = node.create_subscription::<LaserScan>("scan", sensor, move |scan| {
            heard.lock().free = Some((clock.now(), free_ahead(&scan)));
        })?;
        let server = serve(node, &self.shared, &transforms)?;
        let mut driver = Driver {
            node: node.clone(),
            log: node.logger(),
            shared: self.shared.clone(),
            settings,
            transforms,
            planner: node.create_client("get_plan")?,
            commands: node.create_publisher("cmd_vel", 10)?,
            drives: false,
        };
        let every = TimerOptions::new(PERIOD).on_ros_time();
        let timer = node.create_timer_with(every, move || driver.tick())?;
        self.parts = Some((server, scans, timer));
        Ok(())
    }
}

/// The nearest thing ahead.
fn free_ahead(scan: &LaserScan) -> f64 {
    let mut angle = scan.angle_min;
    let mut nearest = f32::INFINITY;
    for range in &scan.ranges {
        if angle.abs() < AHEAD && *range >= scan.range_min {
            nearest = nearest.min(*range);
        }
        angle += scan.angle_increment;
    }
    f64::from(nearest)
}

fn serve(
    node: &LifecycleNode,
    shared: &Shared,
    transforms: &TransformListener,
) -> Result<ActionServer<NavigateToPose>, ComponentError> {
    let (asked, log) = (shared.clone(), node.logger());
    let options =
        ActionServerOptions::<NavigateToPose>::default().on_goal(move |goal| {
            match refusal(&asked, goal) {
                None => GoalResponse::AcceptAndExecute,
                Some(why) => {
                    pteros::warn!(log, "a goal is rejected: {why}");
                    GoalResponse::Reject
                }
            }
        });
    let (shared, node_of_goals) = (shared.clone(), node.clone());
    let transforms = transforms.clone();
    let accepted = move |goal: ServerGoal<NavigateToPose>| {
        let pose = &goal.goal().pose;
        let frame = transforms.lookup("map", &pose.header.frame_id, LATEST);
        let target = frame.map(|frame| {
            let target = Isometry::from(&frame.transform) * Isometry::from(&pose.pose);
            [target.translation[0], target.translation[1], target.yaw()]
        });
        let journey = Journey::new(goal, node_of_goals.now());
        match target {
            Ok(target) => {
                let older = shared.lock().journey.replace(journey.towards(target));
                if let Some(older) = older {
                    older.abort(
                        NavigateToPose_Result::UNKNOWN,
                        "a newer goal took its place",
                    );
                }
            }
            Err(error) => journey.abort(NavigateToPose_Result::TF_ERROR, &error.to_string()),
        }
    };
    Ok(node.create_action_server("navigate_to_pose", options, accepted)?)
}

fn refusal(shared: &Shared, goal: &NavigateToPose_Goal) -> Option<&'static str> {
    let (position, turned) = (&goal.pose.pose.position, &goal.pose.pose.orientation);
    let numbers = [
        position.x, position.y, turned.x, turned.y, turned.z, turned.w,
    ];
    let length: f64 = numbers[2..].iter().map(|part| part * part).sum();
    match shared.lock().active {
        false => Some("the controller is not active"),
        _ if !numbers.iter().all(|number| number.is_finite()) => Some("its pose is not finite"),
        _ if (length - 1.0).abs() > 0.01 => {
            Some("its orientation is no quaternion of length 1 (no rotation has w: 1)")
        }
        _ if goal.pose.header.frame_id.is_empty() => {
            Some("its pose has no frame; give header.frame_id, as map")
        }
        _ => None,
    }
}

struct Driver {
    node: LifecycleNode,
    log: Logger,
    shared: Shared,
    settings: Settings,
    transforms: TransformListener,
    planner: Client<GetPlan>,
    commands: LifecyclePublisher<Twist>,
    /// It was told to move when it was last told anything.
    drives: bool,
}

impl Driver {
    fn tick(&mut self) {
        let now = self.node.now();
        let place = self.transforms.lookup("map", "base_link", LATEST).ok();
        let mut state = self.shared.lock();
        let seen = state.free.filter(|(at, _)| now.since(*at) < SCAN_AGE);
        let Some(journey) = &mut state.journey else {
            drop(state);
            return self.stop();
        };
        let limit = Duration::from_secs_f64(self.settings.goal_timeout.value());
        let is_blocked = seen.is_none_or(|(_, free)| free < self.settings.stop_distance.value());
        let next = journey.step(
            now,
            place.as_ref(),
            &self.settings.manner(),
            is_blocked,
            limit,
        );
        match next {
            Move::Drive(forward, turning) => {
                drop(state);
                self.command(forward, turning);
            }
            Move::Plan(from, to) => {
                drop(state);
                self.stop();
                self.plan(from, to);
            }
            Move::Wait => {
                drop(state);
                self.stop();
            }
            Move::End(outcome) => {
                let journey = state.journey.take();
                drop(state);
                self.stop();
                if let Some(journey) = journey {
                    pteros::info!(self.log, "{outcome}");
                    journey.end(outcome);
                }
            }
        }
    }

    fn plan(&self, from: [f64; 2], to: [f64; 2]) {
        let request = plan_request(from, to, self.node.now());
        let shared = self.shared.clone();
        let asked = self.planner.call_then(&request, move |answer| {
            let mut state = shared.lock();
            if let Some(journey) = &mut state.journey {
                journey.planned(answer.map_err(|error| error.to_string()));
            }
        });
        if let Err(error) = asked
            && let Some(journey) = &mut self.shared.lock().journey
        {
            journey.planned(Err(error.to_string()));
        }
    }

    fn stop(&mut self) {
        if self.drives {
            self.command(0.0, 0.0);
        }
    }

    fn command(&mut self, forward: f64, turning: f64) {
        let mut twist = Twist::default();
        twist.linear.x = forward;
        twist.angular.z = turning;
        self.drives = forward != 0.0 || turning != 0.0;
        if let Err(error) = self.commands.publish_owned(twist) {
            pteros::warn!(self.log, "{error}");
        }
    }
}
