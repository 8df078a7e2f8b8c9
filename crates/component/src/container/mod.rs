//! A container: a node that loads, lists and unloads components on request, by
//! ROS 2's services (`composition_interfaces`, rclcpp_components'
//! `ComponentManager`).
//!
//! Constructors and destructors of components are user code of unknown worth, so
//! each runs on a thread of its own: one that fails, panics or hangs is
//! reported, and everybody else goes on.

mod crew;
mod request;
mod roster;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use pteros::component::Registered;
use pteros::interfaces::composition_interfaces::srv::{
    ListNodes, ListNodes_Response, LoadNode, LoadNode_Request, LoadNode_Response, UnloadNode,
    UnloadNode_Response,
};
use pteros::{
    Context, CreateError, ExecutorError, Node, NodeError, NodeOptions, Service, ServiceCall,
    ServiceOptions,
};
use thiserror::Error;

use crate::error::LoadError;
use crate::index::Index;
use crew::Crew;
use roster::{Classes, LoadedNode, Roster, UnloadError};

pub use crew::ExecutorKind;

/// What a container is called unless a remap says otherwise, as rclcpp's.
pub const NODE_NAME: &str = "ComponentManager";

/// How a container is set up.
#[derive(Clone, Debug)]
pub struct ContainerOptions {
    /// Which threads run the callbacks of components. One for all by default.
    pub executor: ExecutorKind,
    /// How long a constructor may take, and a destructor. 10 s by default.
    pub load_timeout: Duration,
    /// Classes that this program has itself, by their names; they come before those of
    /// the index, whatever package is asked for. None by default.
    pub built_in: Vec<Registered>,
    /// Where components are found. As the environment says by default.
    pub index: Index,
}

impl Default for ContainerOptions {
    fn default() -> Self {
        Self {
            executor: ExecutorKind::default(),
            load_timeout: Duration::from_secs(10),
            built_in: Vec::new(),
            index: Index::from_environment(),
        }
    }
}

/// Why there is no container, or why it ended.
#[derive(Debug, Error)]
pub enum ContainerError {
    /// No node for it.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// No services for it.
    #[error(transparent)]
    Create(#[from] CreateError),
    /// It cannot spin.
    #[error(transparent)]
    Executor(#[from] ExecutorError),
}

/// A process for components. Its node serves `~/_container/load_node`,
/// `unload_node` and `list_nodes`. What it has loaded is dropped with it.
pub struct Container {
    node: Node,
    roster: Arc<Roster>,
    _load: Service<LoadNode>,
    _unload: Service<UnloadNode>,
    _list: Service<ListNodes>,
}

impl Container {
    /// A container without components.
    ///
    /// # Errors
    /// See [`ContainerError`].
    pub fn new(context: &Context, options: ContainerOptions) -> Result<Self, ContainerError> {
        // It has none, and an eighth of a megabyte would serve them.
        let bare = NodeOptions::new(NODE_NAME)
            .start_parameter_services(false)
            .start_parameter_event_publisher(false);
        let node = context.node_with(bare)?;
        let crew = Crew::new(context, options.executor);
        crew.add_manager(&node)?;
        let classes = Classes {
            built_in: options.built_in,
            index: options.index,
        };
        let roster = Roster::new(context, &node, crew, classes, options.load_timeout);
        let (for_load, for_unload, for_list) = (roster.clone(), roster.clone(), roster.clone());
        let deferred = ServiceOptions::default;
        Ok(Self {
            _load: node.create_deferred_service::<LoadNode>(
                "~/_container/load_node",
                deferred(),
                move |call| {
                    let request = call.request().clone();
                    for_load.start_loading(&request, move |outcome| {
                        respond(call, load_response(outcome));
                    });
                },
            )?,
            _unload: node.create_deferred_service::<UnloadNode>(
                "~/_container/unload_node",
                deferred(),
                move |call| {
                    let id = call.request().unique_id;
                    for_unload.start_unloading(id, move |outcome| {
                        respond(call, unload_response(&outcome));
                    });
                },
            )?,
            _list: node.create_service("~/_container/list_nodes", move |_| {
                let (unique_ids, full_node_names) = for_list.list().into_iter().unzip();
                ListNodes_Response {
                    full_node_names,
                    unique_ids,
                }
            })?,
            node,
            roster,
        })
    }

    /// The container's own node.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// Loads a component as the service does: its number and its node's full
    /// name. Blocks until the constructor is done, or the time for it over.
    ///
    /// # Errors
    /// See [`LoadError`].
    pub fn load(&self, request: &LoadNode_Request) -> Result<(u64, String), LoadError> {
        let (done, outcome) = std::sync::mpsc::sync_channel(1);
        self.roster.start_loading(request, move |outcome| {
            // Somebody waits just below.
            let _ = done.send(outcome);
        });
        let waited = self.roster.load_timeout();
        let outcome = outcome.recv_timeout(waited.saturating_add(Duration::from_secs(1)));
        let loaded = outcome.unwrap_or_else(|_| {
            Err(LoadError::Hung {
                class: request.plugin_name.clone(),
                waited,
            })
        })?;
        Ok((loaded.id, loaded.name))
    }

    /// What is loaded: numbers and full names of nodes, in the order of loading.
    pub fn list(&self) -> Vec<(u64, String)> {
        self.roster.list()
    }

    /// Runs the callbacks of its node and of all components until the context
    /// shuts down. Blocks. A callback that panics is reported, and its node's
    /// callbacks run no more.
    ///
    /// # Errors
    /// See [`ExecutorError`].
    pub fn spin(&self) -> Result<(), ExecutorError> {
        self.roster.crew().spin()
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        self.roster.clear();
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

fn respond<Q, R>(call: ServiceCall<Q, R>, response: R) {
    if let Err(error) = call.respond(response) {
        tracing::warn!("an answer of the container could not be sent: {error}");
    }
}

fn load_response(outcome: Result<LoadedNode, LoadError>) -> LoadNode_Response {
    match outcome {
        Ok(loaded) => LoadNode_Response {
            success: true,
            full_node_name: loaded.name,
            unique_id: loaded.id,
            ..LoadNode_Response::default()
        },
        Err(error) => {
            tracing::error!("{error}");
            LoadNode_Response {
                error_message: error.to_string(),
                ..LoadNode_Response::default()
            }
        }
    }
}

fn unload_response(outcome: &Result<(), UnloadError>) -> UnloadNode_Response {
    match outcome {
        Ok(()) => UnloadNode_Response {
            success: true,
            ..UnloadNode_Response::default()
        },
        Err(error) => {
            tracing::warn!("{error}");
            UnloadNode_Response {
                error_message: error.to_string(),
                ..UnloadNode_Response::default()
            }
        }
    }
}
