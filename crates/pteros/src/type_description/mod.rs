//! Type descriptions: `~/get_type_description` for the types a node uses (REP 2016,
//! rcl `node_type_cache.c`).
//!
//! A context records each endpoint's type once, by RIHS01 type hash, as the
//! function that describes it. Descriptions and sources are generated on request.
//! rcl keeps a list and a service per node, Pteros a list per context, and by default
//! one service, on its first node.

mod client;
mod topic_type;

use std::sync::Arc;

pub use client::RemoteTypeDescription;
pub use pteros_rcl::type_description::{SEPARATOR_WIDTH, definition_text, definition_text_of};
pub use topic_type::{TopicTypeError, description_server};

use pteros_interfaces::type_description_interfaces::srv;
use pteros_rcl::type_description::handle_request;

use crate::error::CreateError;
use crate::known_types::KnownTypes;
use crate::node::{Node, NodeOptions};
use crate::service::Service;

/// Kept alive by the node's handles.
pub(crate) struct TypeDescriptionService {
    _service: Service<srv::GetTypeDescription>,
    types: Arc<KnownTypes>,
}

impl TypeDescriptionService {
    /// Starts the service of a node if the parameter, the option or the default says
    /// so, and declares the parameter.
    pub(crate) fn start(node: &Node, option: Option<bool>) -> Result<Option<Self>, CreateError> {
        let types = node.context().inner.known_types.clone();
        let declared = node.core().declare_type_descriptions(option)?;
        let is_server = match declared {
            Some(true) => {
                types.add_server();
                true
            }
            Some(false) => false,
            None => types.add_first_server(),
        };
        if !is_server {
            return Ok(None);
        }
        let described = types.clone();
        let answer = move |asked: crate::Sample<_>| handle_request(&described, &asked);
        let service = node.create_service("~/get_type_description", answer);
        match service {
            Ok(service) => Ok(Some(Self {
                _service: service,
                types,
            })),
            Err(error) => {
                types.remove_server();
                Err(error)
            }
        }
    }
}

impl Drop for TypeDescriptionService {
    fn drop(&mut self) {
        self.types.remove_server();
    }
}

impl NodeOptions {
    /// Whether the node offers `~/get_type_description`, which describes the types of
    /// all endpoints of the context.
    ///
    /// By default the first node of a context offers it, and a later one once that
    /// node is dropped. ROS 2 has it on every node; here each takes 8 to 13 KB. The
    /// parameter `start_type_description_service` overrides the option. DDS TypeLookup
    /// requests (XTypes 1.3) are answered without it.
    #[must_use]
    pub fn start_type_description_service(mut self, yes: bool) -> Self {
        self.type_description_service = Some(yes);
        self
    }
}
