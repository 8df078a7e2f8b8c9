//! `nav2_map_server map_server`: a managed node that offers an occupancy grid, as Nav2's.
//!
//! It loads `yaml_filename` when configured, publishes `map`, transient local, when
//! active, and offers the services `~/map` and `~/load_map`.

use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use pteros::component::ComponentError;
use pteros::interfaces::nav_msgs::msg::OccupancyGrid;
use pteros::interfaces::nav_msgs::srv::{GetMap, GetMapResponse, LoadMapResponse};
use pteros::lifecycle::{
    CallbackReturn, LifecycleCallbacks, LifecycleNode, LifecyclePublisher, LifecycleState,
};
use pteros::msg::dynamic::{DynamicMessage, DynamicService};
use pteros::msg::schema::InterfaceKind;
use pteros::parameter::ParameterHandle;
use pteros::prelude::*;
use pteros::service::Service;
use pteros::{ServiceOptions, error, info, warn};

use crate::map_file::{self, MapError};
use crate::running_node::RunningNode;

/// Nav2's service, whose type no standard package has.
const LOAD_MAP: &str = "nav2_msgs/srv/LoadMap";

/// Starts the node, unconfigured.
pub(crate) fn start(
    context: &Context,
    options: NodeOptions,
    _: &[String],
) -> Result<RunningNode, ComponentError> {
    let callbacks = MapServer::default();
    let parameters = callbacks.parameters.clone();
    let node = LifecycleNode::new(context, options.name("map_server"), callbacks)?;
    *parameters.lock() = Some(Parameters {
        file: node.declare_parameter("yaml_filename", "")?,
        topic: node.declare_parameter("topic_name", "map")?,
        frame: node.declare_parameter("frame_id", "map")?,
    });
    Ok(RunningNode::new(node.node().clone(), node))
}

struct Parameters {
    file: ParameterHandle<String>,
    topic: ParameterHandle<String>,
    frame: ParameterHandle<String>,
}

#[derive(Default)]
struct MapServer {
    parameters: Arc<Mutex<Option<Parameters>>>,
    /// While configured.
    map: Option<Arc<ServedMap>>,
    services: Option<(Service<GetMap>, Service<DynamicService>)>,
}

/// The map, and where it is published.
struct ServedMap {
    node: Node,
    frame: String,
    publisher: LifecyclePublisher<OccupancyGrid>,
    grid: Mutex<Option<OccupancyGrid>>,
}

impl LifecycleCallbacks for MapServer {
    fn on_configure(&mut self, node: &LifecycleNode, _: LifecycleState) -> CallbackReturn {
        match self.configure(node) {
            Ok(()) => CallbackReturn::Success,
            Err(problem) => {
                error!(node.logger(), "{problem}");
                CallbackReturn::Failure
            }
        }
    }

    fn on_activate(&mut self, _: &LifecycleNode, _: LifecycleState) -> CallbackReturn {
        if let Some(map) = &self.map {
            map.publish();
        }
        CallbackReturn::Success
    }

    fn on_cleanup(&mut self, _: &LifecycleNode, _: LifecycleState) -> CallbackReturn {
        self.services = None;
        self.map = None;
        CallbackReturn::Success
    }
}

impl MapServer {
    fn configure(&mut self, node: &LifecycleNode) -> Result<(), ComponentError> {
        let parameters = self.parameters.lock();
        let parameters = parameters.as_ref().ok_or("it is not started yet")?;
        let topic = parameters.topic.value();
        let map = Arc::new(ServedMap {
            node: node.node().clone(),
            frame: parameters.frame.value(),
            publisher: node.create_publisher(topic.keep_last(1).transient_local())?,
            grid: Mutex::default(),
        });
        let file = parameters.file.value();
        if !file.is_empty() {
            map.load(&file).map_err(|problem| match problem {
                MapError::Missing(text) | MapError::Metadata(text) | MapError::Data(text) => {
                    format!("Failed to load map yaml file: {text}")
                }
            })?;
        }
        let served = map.clone();
        let get_map = node.create_service::<GetMap>("~/map", move |_| GetMapResponse {
            map: if served.is_active("GetMap") {
                served.grid.lock().clone().unwrap_or_default()
            } else {
                OccupancyGrid::default()
            },
        })?;
        let ty = load_map_type()?;
        let (served, response) = (map.clone(), ty.response().clone());
        let options = ServiceOptions::<DynamicService>::of_type(&ty, "~/load_map");
        let load_map = node.create_service(options, move |request| {
            let url = request.field("map_url").and_then(|url| url.as_str());
            let loaded = served.handle_load(url.unwrap_or_default());
            // Both types have the same fields.
            DynamicMessage::from_message(&response, &loaded)
                .unwrap_or_else(|_| DynamicMessage::new(&response))
        })?;
        self.services = Some((get_map, load_map));
        self.map = Some(map);
        Ok(())
    }
}

impl ServedMap {
    /// Whether the node is active; requests of others are not served, as upstream.
    fn is_active(&self, service: &str) -> bool {
        let is_active = self.publisher.is_activated();
        if !is_active {
            warn!(
                self.node.logger(),
                "Received {service} request but not in ACTIVE state, ignoring!"
            );
        }
        is_active
    }

    fn load(&self, url: &str) -> Result<(), MapError> {
        if url.is_empty() {
            return Err(MapError::Missing(
                "YAML file name is empty, can't load! Give the path of the map's YAML file".into(),
            ));
        }
        let path = url.strip_prefix("file://").unwrap_or(url);
        let mut grid = map_file::read(Path::new(path))?;
        grid.header.frame_id.clone_from(&self.frame);
        grid.header.stamp = self.node.now().into();
        grid.info.map_load_time = grid.header.stamp;
        let info = &grid.info;
        info!(
            self.node.logger(),
            "Read map {path}: {} X {} map @ {} m/cell", info.width, info.height, info.resolution
        );
        *self.grid.lock() = Some(grid);
        Ok(())
    }

    fn publish(&self) {
        let Some(grid) = self.grid.lock().clone() else {
            return;
        };
        if let Err(problem) = self.publisher.publish_owned(grid) {
            error!(self.node.logger(), "{problem}");
        }
    }

    fn handle_load(&self, url: &str) -> LoadMapResponse {
        let mut response = LoadMapResponse::default();
        if !self.is_active("LoadMap") {
            response.result = LoadMapResponse::RESULT_UNDEFINED_FAILURE;
            return response;
        }
        let (result, problem) = match self.load(url) {
            Ok(()) => {
                self.publish();
                response.map = self.grid.lock().clone().unwrap_or_default();
                return response;
            }
            Err(MapError::Missing(text)) => (LoadMapResponse::RESULT_MAP_DOES_NOT_EXIST, text),
            Err(MapError::Metadata(text)) => (LoadMapResponse::RESULT_INVALID_MAP_METADATA, text),
            Err(MapError::Data(text)) => (LoadMapResponse::RESULT_INVALID_MAP_DATA, text),
        };
        error!(self.node.logger(), "{problem}");
        response.result = result;
        response
    }
}

/// Nav2's type: the standard one under another name.
fn load_map_type() -> Result<DynamicService, ComponentError> {
    let mut library = pteros::interfaces::library().clone();
    let text = library
        .text("nav_msgs/srv/LoadMap")
        .unwrap_or_default()
        .to_owned();
    let (package, name) = ("nav2_msgs", "LoadMap");
    library.insert_text(package, InterfaceKind::Service, name, text, LOAD_MAP);
    Ok(DynamicService::new(&library, LOAD_MAP)?)
}
