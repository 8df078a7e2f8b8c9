//! Component container: a node that loads, lists and unloads components on request, through
//! ROS 2's services (`composition_interfaces`, as rclcpp_components' `ComponentManager`).
//!
//! Constructors and destructors of components are untrusted user code, so each one runs
//! on its own thread. A failure, panic or hang is reported, and the other components go
//! on.

mod component_registry;
mod executors;
mod request;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use pteros::component::ComponentClass;
use pteros::interfaces::composition_interfaces::srv::{
    ListNodes, ListNodesResponse, LoadNode, LoadNodeRequest, LoadNodeResponse, UnloadNode,
    UnloadNodeResponse,
};
use pteros::{
    Context, Node, NodeOptions, Service, error::CreateError, executors::ExecutorError,
    service::PendingRequest,
};
use thiserror::Error;

use crate::error::LoadError;
use crate::index::ComponentIndex;
use component_registry::{ComponentRegistry, ComponentSources, LoadedNode, UnloadError};
use executors::ContainerExecutors;

pub use executors::ExecutorKind;

/// Default node name of a container, as in rclcpp.
pub const NODE_NAME: &str = "ComponentManager";

/// How a container runs components, and where it searches them.
#[derive(Clone, Debug)]
pub struct ContainerOptions {
    /// Threads that run the callbacks of components. Default: one for all.
    pub executor: ExecutorKind,
    /// Time limit of a constructor or destructor. Default: 10 s.
    pub load_timeout: Duration,
    /// Component classes of this program, by name. They precede those of the index,
    /// in any package. Default: none.
    pub built_in: Vec<ComponentClass>,
    /// Component classes that stand in for those of packages which are not installed.
    /// Default: none.
    pub substitutes: &'static [ComponentClass],
    /// Index in which components are searched. Default: as the environment says.
    pub index: ComponentIndex,
}

impl Default for ContainerOptions {
    fn default() -> Self {
        Self {
            executor: ExecutorKind::default(),
            load_timeout: Duration::from_secs(10),
            built_in: Vec::new(),
            substitutes: &[],
            index: ComponentIndex::from_environment(),
        }
    }
}

/// Error of a container that could not be created or has ended.
#[derive(Error)]
pub enum ContainerError {
    /// The node or one of its services could not be created.
    #[error(transparent)]
    Create(#[from] CreateError),
    /// The executor could not spin.
    #[error(transparent)]
    Executor(#[from] ExecutorError),
}

pteros::msg::debug_as_display!(ContainerError);

/// A component container. Its node serves `~/_container/load_node`, `unload_node`
/// and `list_nodes`. Dropping it drops the loaded components.
pub struct Container {
    node: Node,
    registry: Arc<ComponentRegistry>,
    _load: Service<LoadNode>,
    _unload: Service<UnloadNode>,
    _list: Service<ListNodes>,
}

impl Container {
    /// Creates a container without components.
    ///
    /// # Errors
    /// See [`ContainerError`].
    pub fn new(context: &Context, options: ContainerOptions) -> Result<Self, ContainerError> {
        // The container has no parameters, and their services would cost an eighth
        // of a megabyte.
        let bare = NodeOptions::new(NODE_NAME)
            .start_parameter_services(false)
            .start_parameter_event_publisher(false);
        let node = context.create_node(bare)?;
        let executors = ContainerExecutors::new(context, options.executor);
        executors.add_manager(&node)?;
        let classes = ComponentSources {
            built_in: options.built_in,
            substitutes: options.substitutes,
            index: options.index,
        };
        let registry =
            ComponentRegistry::new(context, &node, executors, classes, options.load_timeout);
        let (for_load, for_unload, for_list) =
            (registry.clone(), registry.clone(), registry.clone());
        Ok(Self {
            _load: Service::<LoadNode>::deferred(&node, "~/_container/load_node", move |call| {
                let request = call.request().clone();
                for_load.start_loading(&request, move |outcome| {
                    respond(call, load_response(outcome));
                });
            })?,
            _unload: Service::<UnloadNode>::deferred(
                &node,
                "~/_container/unload_node",
                move |call| {
                    let id = call.request().unique_id;
                    for_unload.start_unloading(id, move |outcome| {
                        respond(call, unload_response(&outcome));
                    });
                },
            )?,
            _list: node.create_service("~/_container/list_nodes", move |_| {
                let (unique_ids, full_node_names) = for_list.list().into_iter().unzip();
                ListNodesResponse {
                    full_node_names,
                    unique_ids,
                }
            })?,
            node,
            registry,
        })
    }

    /// The container's own node.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// Loads a component as the service does. Returns its number and its node's
    /// full name. Blocks until the constructor returns or the timeout expires.
    ///
    /// # Errors
    /// See [`LoadError`].
    pub fn load(&self, request: &LoadNodeRequest) -> Result<(u64, String), LoadError> {
        let (done, outcome) = std::sync::mpsc::sync_channel(1);
        self.registry.start_loading(request, move |outcome| {
            // The receiver waits below.
            let _ = done.send(outcome);
        });
        let timeout = self.registry.load_timeout();
        let outcome = outcome.recv_timeout(timeout.saturating_add(Duration::from_secs(1)));
        let loaded = outcome.unwrap_or_else(|_| {
            Err(LoadError::TimedOut {
                class: request.plugin_name.clone(),
                timeout,
            })
        })?;
        Ok((loaded.id, loaded.name))
    }

    /// The loaded components: number and full node name, in the order of loading.
    pub fn list(&self) -> Vec<(u64, String)> {
        self.registry.list()
    }

    /// Runs the callbacks of the container and of all components until the context
    /// shuts down. Blocks. A panic in a callback is reported and ends the callbacks
    /// of its node.
    ///
    /// # Errors
    /// See [`ExecutorError`].
    pub fn spin(&self) -> Result<(), ExecutorError> {
        self.registry.executors().spin()
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        self.registry.clear();
    }
}

impl fmt::Debug for Container {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Container")
            .field("node", &self.node)
            .field("loaded", &self.list())
            .finish()
    }
}

fn respond<Q, R>(call: PendingRequest<Q, R>, response: R) {
    if let Err(error) = call.respond(response) {
        tracing::warn!("the container could not send a response: {error}");
    }
}

fn load_response(outcome: Result<LoadedNode, LoadError>) -> LoadNodeResponse {
    match outcome {
        Ok(loaded) => LoadNodeResponse {
            success: true,
            full_node_name: loaded.name,
            unique_id: loaded.id,
            ..LoadNodeResponse::default()
        },
        Err(error) => {
            tracing::error!("{error}");
            LoadNodeResponse {
                error_message: error.to_string(),
                ..LoadNodeResponse::default()
            }
        }
    }
}

fn unload_response(outcome: &Result<(), UnloadError>) -> UnloadNodeResponse {
    match outcome {
        Ok(()) => UnloadNodeResponse {
            success: true,
            ..UnloadNodeResponse::default()
        },
        Err(error) => {
            tracing::warn!("{error}");
            UnloadNodeResponse {
                error_message: error.to_string(),
                ..UnloadNodeResponse::default()
            }
        }
    }
}
