//! Controller: a managed node that serves Nav2's action `navigate_to_pose`.

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
    Logger, TimerOptions,
    action::{ActionServer, ActionServerOptions, GoalResponse, ServerGoalHandle},
    lifecycle::{
        CallbackReturn, LifecycleCallbacks, LifecycleNode, LifecyclePublisher, LifecycleState,
    },
};

use crate::nav2_msgs::action::{NavigateToPose, NavigateToPoseGoal, NavigateToPoseResult};
use crate::navigation_task::{NavigationCommand, NavigationTask, plan_request};
use crate::pure_pursuit::DriveLimits;

/// Period of the control loop.
const PERIOD: Duration = Duration::from_millis(50);
/// Obstacles within this angle ahead stop the robot.
const OBSTACLE_ANGLE: f32 = 0.5;
/// A scan older than this is ignored.
const SCAN_AGE_MAX: Duration = Duration::from_secs(1);

/// Drives to a pose: action `navigate_to_pose` (`nav2_msgs/action/NavigateToPose`),
/// one goal at a time. A newer goal replaces the older one, which is aborted. It
/// requests a path with `get_plan`, looks up its pose (`map` to `base_link`), stops
/// for obstacles in `scan` and publishes `cmd_vel`.
///
/// It is a managed node that becomes active once its pose is known. It rejects
/// goals before that.
///
/// Parameters: `speed` (m/s, 0.5), `turning` (rad/s, 1.5), `lookahead` (m, 0.4),
/// `stop_distance` (m ahead of the laser, 0.18), `goal_timeout` (s, 120).
pub struct Controller(LifecycleNode);

impl Controller {
    /// Its managed node.
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
            ControllerCallbacks::default(),
        )?))
    }

    fn node(&self) -> &Node {
        self.0.node()
    }
}

/// Lifecycle callbacks, and the entities of the configured node.
#[derive(Default)]
struct ControllerCallbacks {
    settings: Option<ControllerParameters>,
    shared: SharedState,
    transforms: Option<TransformListener>,
    parts: Option<ActiveEntities>,
}

/// Entities of the configured node. They work until they are dropped.
struct ActiveEntities {
    _server: ActionServer<NavigateToPose>,
    _scans: Subscription<LaserScan>,
    _timer: Timer,
}

#[derive(Clone)]
struct ControllerParameters {
    speed: ParameterHandle<f64>,
    turning: ParameterHandle<f64>,
    lookahead: ParameterHandle<f64>,
    stop_distance: ParameterHandle<f64>,
    goal_timeout: ParameterHandle<f64>,
}

/// State that the callbacks share: the active goal and the distance to an obstacle.
#[derive(Clone, Default)]
struct SharedState(Arc<Mutex<ControllerState>>);

#[derive(Default)]
struct ControllerState {
    active: bool,
    task: Option<NavigationTask>,
    /// Free distance ahead of the laser in metres, and the time of the scan.
    free_distance: Option<(Time, f64)>,
}

impl SharedState {
    fn lock(&self) -> MutexGuard<'_, ControllerState> {
        self.0.lock().expect("the lock is not poisoned")
    }
}

impl LifecycleCallbacks for ControllerCallbacks {
    fn on_configure(&mut self, node: &LifecycleNode, _: LifecycleState) -> CallbackReturn {
        match self.configure(node) {
            Ok(()) => CallbackReturn::Success,
            Err(error) => {
                pteros::error!(node.logger(), "{error}");
                CallbackReturn::Failure
            }
        }
    }

    /// Fails until the pose is known.
    fn on_activate(&mut self, node: &LifecycleNode, _: LifecycleState) -> CallbackReturn {
        let transforms = self.transforms.as_ref();
        let place = transforms.map(|known| known.lookup_transform("map", "base_link", LATEST));
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
        if let Some(task) = now.task.take() {
            task.abort(
                NavigateToPoseResult::UNKNOWN,
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

impl ControllerParameters {
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

    fn limits(&self) -> DriveLimits {
        DriveLimits {
            speed: self.speed.value(),
            turning: self.turning.value(),
            lookahead: self.lookahead.value(),
        }
    }
}

impl ControllerCallbacks {
    fn configure(&mut self, node: &LifecycleNode) -> Result<(), ComponentError> {
        let settings = match &self.settings {
            Some(known) => known.clone(),
            None => ControllerParameters::declare(node)?,
        };
        self.settings = Some(settings.clone());
        let transforms = TransformListener::new(node)?;
        self.transforms = Some(transforms.clone());
        let (shared, clock) = (self.shared.clone(), node.clock());
        let sensor = QosProfile::sensor_data();
        let scans = node.create_subscription::<LaserScan>("scan".qos(sensor), move |scan| {
            shared.lock().free_distance = Some((clock.now(), free_distance(&scan)));
        })?;
        let server = create_server(node, &self.shared, &transforms)?;
        let mut driver = ControlLoop {
            node: node.clone(),
            log: node.logger(),
            shared: self.shared.clone(),
            settings,
            transforms,
            planner: node.create_client("get_plan")?,
            commands: node.create_publisher("cmd_vel".keep_last(10))?,
            is_moving: false,
        };
        let every = TimerOptions::new(PERIOD).on_ros_time();
        let timer = node.create_timer(every, move || driver.tick())?;
        self.parts = Some(ActiveEntities {
            _server: server,
            _scans: scans,
            _timer: timer,
        });
        Ok(())
    }
}

/// Distance to the nearest obstacle ahead.
fn free_distance(scan: &LaserScan) -> f64 {
    let mut angle = scan.angle_min;
    let mut nearest = f32::INFINITY;
    for range in &scan.ranges {
        if angle.abs() < OBSTACLE_ANGLE && *range >= scan.range_min {
            nearest = nearest.min(*range);
        }
        angle += scan.angle_increment;
    }
    f64::from(nearest)
}

fn create_server(
    node: &LifecycleNode,
    shared: &SharedState,
    transforms: &TransformListener,
) -> Result<ActionServer<NavigateToPose>, ComponentError> {
    let (goal_state, log) = (shared.clone(), node.logger());
    let options =
        ActionServerOptions::<NavigateToPose>::new("navigate_to_pose").on_goal(move |goal| {
            match rejection_reason(&goal_state, goal) {
                None => GoalResponse::AcceptAndExecute,
                Some(why) => {
                    pteros::warn!(log, "a goal is rejected: {why}");
                    GoalResponse::Reject
                }
            }
        });
    let (shared, node_of_goals) = (shared.clone(), node.clone());
    let transforms = transforms.clone();
    let accepted = move |goal: ServerGoalHandle<NavigateToPose>| {
        let pose = &goal.goal().pose;
        let frame = transforms.lookup_transform("map", &pose.header.frame_id, LATEST);
        let target = frame.map(|frame| {
            let target = Isometry::from(&frame.transform) * Isometry::from(&pose.pose);
            [target.translation[0], target.translation[1], target.yaw()]
        });
        let task = NavigationTask::new(goal, node_of_goals.now());
        match target {
            Ok(target) => {
                let older = shared.lock().task.replace(task.towards(target));
                if let Some(older) = older {
                    older.abort(
                        NavigateToPoseResult::UNKNOWN,
                        "a newer goal has replaced it",
                    );
                }
            }
            Err(error) => task.abort(NavigateToPoseResult::TF_ERROR, &error.to_string()),
        }
    };
    Ok(node.create_action_server(options, accepted)?)
}

fn rejection_reason(shared: &SharedState, goal: &NavigateToPoseGoal) -> Option<&'static str> {
    let (position, turned) = (&goal.pose.pose.position, &goal.pose.pose.orientation);
    let numbers = [
        position.x, position.y, turned.x, turned.y, turned.z, turned.w,
    ];
    let length: f64 = numbers[2..].iter().map(|part| part * part).sum();
    match shared.lock().active {
        false => Some("the controller is not active"),
        _ if !numbers.iter().all(|number| number.is_finite()) => Some("its pose is not finite"),
        _ if (length - 1.0).abs() > 0.01 => {
            Some("its orientation is not a unit quaternion (no rotation has w: 1)")
        }
        _ if goal.pose.header.frame_id.is_empty() => {
            Some("its pose has no frame; give header.frame_id, as map")
        }
        _ => None,
    }
}

struct ControlLoop {
    node: LifecycleNode,
    log: Logger,
    shared: SharedState,
    settings: ControllerParameters,
    transforms: TransformListener,
    planner: Client<GetPlan>,
    commands: LifecyclePublisher<Twist>,
    /// Whether the last command was a motion.
    is_moving: bool,
}

impl ControlLoop {
    fn tick(&mut self) {
        let now = self.node.now();
        let place = self
            .transforms
            .lookup_transform("map", "base_link", LATEST)
            .ok();
        let mut state = self.shared.lock();
        let seen = state
            .free_distance
            .filter(|(at, _)| now.since(*at) < SCAN_AGE_MAX);
        let Some(task) = &mut state.task else {
            drop(state);
            return self.stop();
        };
        let limit = Duration::from_secs_f64(self.settings.goal_timeout.value());
        let is_blocked = seen.is_none_or(|(_, free)| free < self.settings.stop_distance.value());
        let next = task.update(
            now,
            place.as_ref(),
            &self.settings.limits(),
            is_blocked,
            limit,
        );
        match next {
            NavigationCommand::Drive(forward, turning) => {
                drop(state);
                self.command(forward, turning);
            }
            NavigationCommand::Plan(from, to) => {
                drop(state);
                self.stop();
                self.plan(from, to);
            }
            NavigationCommand::Wait => {
                drop(state);
                self.stop();
            }
            NavigationCommand::End(outcome) => {
                let task = state.task.take();
                drop(state);
                self.stop();
                if let Some(task) = task {
                    pteros::info!(self.log, "{outcome}");
                    task.finish(outcome);
                }
            }
        }
    }

    fn plan(&self, from: [f64; 2], to: [f64; 2]) {
        let request = plan_request(from, to, self.node.now());
        let shared = self.shared.clone();
        let call = self.planner.call_then(&request, move |answer| {
            let mut state = shared.lock();
            if let Some(task) = &mut state.task {
                task.handle_plan(answer.map_err(|error| error.to_string()));
            }
        });
        if let Err(error) = call
            && let Some(task) = &mut self.shared.lock().task
        {
            task.handle_plan(Err(error.to_string()));
        }
    }

    fn stop(&mut self) {
        if self.is_moving {
            self.command(0.0, 0.0);
        }
    }

    fn command(&mut self, forward: f64, turning: f64) {
        let mut twist = Twist::default();
        twist.linear.x = forward;
        twist.angular.z = turning;
        self.is_moving = forward != 0.0 || turning != 0.0;
        if let Err(error) = self.commands.publish_owned(twist) {
            pteros::warn!(self.log, "{error}");
        }
    }
}
