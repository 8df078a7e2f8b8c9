//! Who finds the way: a managed node with the service `get_plan`.

use std::sync::{Arc, Mutex};

use pteros::component::{Component, ComponentError};
use pteros::interfaces::geometry_msgs::msg::PoseStamped;
use pteros::interfaces::nav_msgs::msg::{OccupancyGrid, Path};
use pteros::interfaces::nav_msgs::srv::{GetPlan, GetPlan_Request, GetPlan_Response};
use pteros::parameter::{ParameterDescriptor, ParameterHandle};
use pteros::prelude::*;
use pteros::tf::Isometry;
use pteros::{
    CallbackReturn, CreateError, LifecycleCallbacks, LifecycleNode, LifecyclePublisher,
    LifecycleState, Logger,
};

use crate::floor::Floor;
use crate::search::path;

/// Finds the shortest way on `map` that has room for the robot. Service `get_plan`
/// (`nav_msgs/srv/GetPlan`, start and goal in frame `map`; no way is an empty one);
/// what it found goes out on `plan` while it is active. Managed: it hears the map once it
/// is configured, and becomes active when it has one.
///
/// Parameter `robot_radius` in metres, 0.25, with some room to spare.
pub struct Planner(LifecycleNode);

impl Planner {
    /// Its node, to be brought up.
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
    radius: Option<ParameterHandle<f64>>,
    floor: Known,
    parts: Option<Parts>,
}

type Known = Arc<Mutex<Option<Floor>>>;

type Parts = (Subscription<OccupancyGrid>, Service<GetPlan>);

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

    /// Not before there is a map.
    fn on_activate(&mut self, node: &LifecycleNode, _: LifecycleState) -> CallbackReturn {
        match *self.floor.lock().expect("no panic holds it") {
            Some(_) => CallbackReturn::Success,
            None => {
                pteros::warn!(node.logger(), "no map has come yet");
                CallbackReturn::Failure
            }
        }
    }

    fn on_cleanup(&mut self, _: &LifecycleNode, _: LifecycleState) -> CallbackReturn {
        self.parts = None;
        CallbackReturn::Success
    }
}

impl Managed {
    fn configure(&mut self, node: &LifecycleNode) -> Result<(), ComponentError> {
        let radius = match &self.radius {
            Some(known) => known.clone(),
            None => {
                let range = ParameterDescriptor::new().float_range(0.05, 5.0, 0.0);
                node.declare_parameter_with("robot_radius", 0.25, range)?
            }
        };
        self.radius = Some(radius.clone());
        self.parts = Some(parts(node, radius, &self.floor)?);
        Ok(())
    }
}

fn parts(
    node: &LifecycleNode,
    radius: ParameterHandle<f64>,
    floor: &Known,
) -> Result<Parts, CreateError> {
    let (known, log) = (floor.clone(), node.logger());
    let latched = QosProfile::default().keep_last(1).transient_local();
    let maps =
        node.create_subscription::<OccupancyGrid>("map", latched, move |map| match Floor::of_map(
            &map,
        ) {
            Some(floor) => *known.lock().expect("no panic holds it") = Some(floor),
            None => pteros::warn!(
                log,
                "a map of {} by {} cells with {} values is none",
                map.info.width,
                map.info.height,
                map.data.len()
            ),
        })?;
    let search = Search {
        node: node.clone(),
        log: node.logger(),
        plans: node.create_publisher("plan", 10)?,
        floor: floor.clone(),
        radius,
    };
    let service = node.create_service("get_plan", move |request| search.answer(&request))?;
    Ok((maps, service))
}

struct Search {
    node: LifecycleNode,
    log: Logger,
    plans: LifecyclePublisher<Path>,
    floor: Known,
    radius: ParameterHandle<f64>,
}

impl Search {
    fn answer(&self, request: &GetPlan_Request) -> GetPlan_Response {
        let mut plan = Path::default();
        plan.header.frame_id = "map".into();
        plan.header.stamp = self.node.now().into();
        match self.points(request) {
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
            Err(why) => pteros::warn!(self.log, "no way: {why}"),
        }
        GetPlan_Response { plan }
    }

    fn points(&self, request: &GetPlan_Request) -> Result<Vec<[f64; 2]>, String> {
        if self.node.state() != LifecycleState::Active {
            return Err("the planner is not active".into());
        }
        for pose in [&request.start, &request.goal] {
            if pose.header.frame_id != "map" {
                let frame = &pose.header.frame_id;
                return Err(format!("poses in frame \"{frame}\"; give them in \"map\""));
            }
        }
        let floor = self.floor.lock().expect("no panic holds it");
        let floor = floor.as_ref().ok_or("no map has come yet")?;
        let radius = self.radius.value();
        let point = |pose: &PoseStamped| [pose.pose.position.x, pose.pose.position.y];
        let (from, to) = (point(&request.start), point(&request.goal));
        path(floor, from, to, radius)
            .ok_or_else(|| format!("none from {from:?} to {to:?} for a radius of {radius} m"))
    }
}
