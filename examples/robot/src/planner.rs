//! Planner: a managed node with the service `get_plan`.

use std::sync::{Arc, Mutex};

use pteros::component::{Component, ComponentError};
use pteros::interfaces::geometry_msgs::msg::PoseStamped;
use pteros::interfaces::nav_msgs::msg::{OccupancyGrid, Path};
use pteros::interfaces::nav_msgs::srv::{GetPlan, GetPlanRequest, GetPlanResponse};
use pteros::parameter::{ParameterDescriptor, ParameterHandle};
use pteros::prelude::*;
use pteros::tf::Isometry;
use pteros::{
    Logger,
    error::CreateError,
    lifecycle::{
        CallbackReturn, LifecycleCallbacks, LifecycleNode, LifecyclePublisher, LifecycleState,
    },
};

use crate::floor_map::FloorMap;
use crate::path_search::shortest_path;

/// Plans the shortest path on `map` that has room for the robot. Service `get_plan`
/// (`nav_msgs/srv/GetPlan`, start and goal in frame `map`); an empty path means
/// that there is none. It publishes the plan on `plan` while it is active. It is a
/// managed node: it subscribes to the map when it is configured, and becomes active
/// once it has a map.
///
/// Parameter `robot_radius` in metres, 0.25, with a margin.
pub struct Planner(LifecycleNode);

impl Planner {
    /// Its managed node.
    pub fn managed(&self) -> &LifecycleNode {
        &self.0
    }
}

impl Component for Planner {
    fn new(context: &Context, options: NodeOptions) -> Result<Self, ComponentError> {
        let options = options.name("planner");
        Ok(Self(LifecycleNode::new(
            context,
            options,
            PlannerCallbacks::default(),
        )?))
    }

    fn node(&self) -> &Node {
        self.0.node()
    }
}

/// Lifecycle callbacks, and the entities of the configured node.
#[derive(Default)]
struct PlannerCallbacks {
    radius: Option<ParameterHandle<f64>>,
    floor: SharedFloorMap,
    parts: Option<ActiveEntities>,
}

type SharedFloorMap = Arc<Mutex<Option<FloorMap>>>;

/// Entities of the configured node. They work until they are dropped.
struct ActiveEntities {
    _maps: Subscription<OccupancyGrid>,
    _service: Service<GetPlan>,
}

impl LifecycleCallbacks for PlannerCallbacks {
    fn on_configure(&mut self, node: &LifecycleNode, _: LifecycleState) -> CallbackReturn {
        match self.configure(node) {
            Ok(()) => CallbackReturn::Success,
            Err(error) => {
                pteros::error!(node.logger(), "{error}");
                CallbackReturn::Failure
            }
        }
    }

    /// Fails until a map is received.
    fn on_activate(&mut self, node: &LifecycleNode, _: LifecycleState) -> CallbackReturn {
        match *self.floor.lock().expect("the lock is not poisoned") {
            Some(_) => CallbackReturn::Success,
            None => {
                pteros::warn!(node.logger(), "no map received yet");
                CallbackReturn::Failure
            }
        }
    }

    fn on_cleanup(&mut self, _: &LifecycleNode, _: LifecycleState) -> CallbackReturn {
        self.parts = None;
        CallbackReturn::Success
    }
}

impl PlannerCallbacks {
    fn configure(&mut self, node: &LifecycleNode) -> Result<(), ComponentError> {
        let radius = match &self.radius {
            Some(known) => known.clone(),
            None => {
                let range = ParameterDescriptor::new().float_range(0.05, 5.0, 0.0);
                node.declare_parameter_with("robot_radius", 0.25, range)?
            }
        };
        self.radius = Some(radius.clone());
        self.parts = Some(create_entities(node, radius, &self.floor)?);
        Ok(())
    }
}

fn create_entities(
    node: &LifecycleNode,
    radius: ParameterHandle<f64>,
    floor: &SharedFloorMap,
) -> Result<ActiveEntities, CreateError> {
    let (known, log) = (floor.clone(), node.logger());
    let latched = QosProfile::default().keep_last(1).transient_local();
    let maps = node.create_subscription::<OccupancyGrid>("map".qos(latched), move |map| {
        match FloorMap::from_map(&map) {
            Some(floor) => *known.lock().expect("the lock is not poisoned") = Some(floor),
            None => pteros::warn!(
                log,
                "a map of {} by {} cells with {} values is invalid",
                map.info.width,
                map.info.height,
                map.data.len()
            ),
        }
    })?;
    let search = PlanService {
        node: node.clone(),
        log: node.logger(),
        plans: node.create_publisher("plan".keep_last(10))?,
        floor: floor.clone(),
        radius,
    };
    let service =
        node.create_service("get_plan", move |request| search.handle_request(&request))?;
    Ok(ActiveEntities {
        _maps: maps,
        _service: service,
    })
}

struct PlanService {
    node: LifecycleNode,
    log: Logger,
    plans: LifecyclePublisher<Path>,
    floor: SharedFloorMap,
    radius: ParameterHandle<f64>,
}

impl PlanService {
    fn handle_request(&self, request: &GetPlanRequest) -> GetPlanResponse {
        let mut plan = Path::default();
        plan.header.frame_id = "map".into();
        plan.header.stamp = self.node.now().into();
        match self.plan_points(request) {
            Ok(points) => {
                let pose = |[x, y]: [f64; 2]| PoseStamped {
                    header: plan.header.clone(),
                    pose: Isometry::planar(x, y, 0.0).into(),
                };
                plan.poses = points.into_iter().map(pose).collect();
                if let Err(error) = self.plans.publish(&plan) {
                    pteros::warn!(self.log, "{error}");
                }
            }
            Err(why) => pteros::warn!(self.log, "no path: {why}"),
        }
        GetPlanResponse { plan }
    }

    fn plan_points(&self, request: &GetPlanRequest) -> Result<Vec<[f64; 2]>, String> {
        if self.node.state() != LifecycleState::Active {
            return Err("the planner is not active".into());
        }
        for pose in [&request.start, &request.goal] {
            if pose.header.frame_id != "map" {
                let frame = &pose.header.frame_id;
                return Err(format!("poses in frame \"{frame}\"; give them in \"map\""));
            }
        }
        let floor = self.floor.lock().expect("the lock is not poisoned");
        let floor = floor.as_ref().ok_or("no map received yet")?;
        let radius = self.radius.value();
        let point = |pose: &PoseStamped| [pose.pose.position.x, pose.pose.position.y];
        let (from, to) = (point(&request.start), point(&request.goal));
        shortest_path(floor, from, to, radius)
            .ok_or_else(|| format!("none from {from:?} to {to:?} for a radius of {radius} m"))
    }
}
