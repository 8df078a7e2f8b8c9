//! Creation of a node: arguments, parameter overrides, unique name, and the
//! services that every node offers.
//!
//! The order is rclcpp's: parameters first, then services, then the overrides that
//! nobody declared.

use std::sync::Arc;

use pteros_runtime::names::node_path;

use crate::args::node_identity;
use crate::context::Context;
use crate::error::CreateError;
use crate::logger::LoggerServices;
use crate::node::{Node, NodeCore, NodeOptions, NodeParts};
use crate::node_parameters::ParameterServices;
use crate::parameter::ParameterFile;
use crate::type_description::TypeDescriptionService;
use crate::unique_name::{NameConflict, ensure_unique_name};

/// The services of a node itself, dropped with its last [`Node`].
struct NodeServices {
    _parameters: ParameterServices,
    _loggers: Option<LoggerServices>,
    _type_descriptions: Option<TypeDescriptionService>,
}

impl Context {
    /// Creates a node.
    ///
    /// The options are the node's name, which the command line remaps, or
    /// [`NodeOptions`].
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn create_node(&self, options: impl Into<NodeOptions>) -> Result<Node, CreateError> {
        self.start_node(options.into())
    }

    fn start_node(&self, options: NodeOptions) -> Result<Node, CreateError> {
        let context = self;
        if context.is_shut_down() {
            return Err(CreateError::ShutDown(options.name));
        }
        let mut argument_sources = vec![&options.arguments];
        if options.use_global_arguments {
            argument_sources.push(&context.inner.arguments);
        }
        let (name, namespace) =
            node_identity(&argument_sources, &options.name, &options.namespace)?;
        let node_parameters = ParameterFile::from_arguments(&options.arguments)?;
        let global_parameters = if options.use_global_arguments {
            vec![&context.inner.parameters, &node_parameters]
        } else {
            vec![&node_parameters]
        };
        let parameters = options.parameters;
        let store = parameters.store(node_path(&namespace, &name), &global_parameters);
        let unique = options.unique_within;
        let refuse = |name: &str, namespace: &str, rival| match unique {
            Some(span) => ensure_unique_name(context, name, namespace, span, rival),
            None => Ok(()),
        };
        refuse(&name, &namespace, NameConflict::Any)?;
        let thread = store.declare_thread()?;
        let node = Node::of(NodeCore::new(NodeParts {
            context: context.clone(),
            name,
            namespace,
            arguments: options.arguments,
            use_global_arguments: options.use_global_arguments,
            as_bytes: !options.use_intra_process_comms,
            parameters: store,
            thread,
            tasks_max: options.tasks_max,
        }));
        refuse(node.name(), node.namespace(), NameConflict::Elder)?;
        let core = node.core();
        let part = |source| CreateError::Part {
            node: node.fully_qualified_name(),
            source: Box::new(source),
        };
        core.declare_sim_time(context.inner.use_sim_time)?;
        let mut services = NodeServices {
            _parameters: ParameterServices::start(&node, parameters.services, parameters.events)
                .map_err(part)?,
            _loggers: None,
            _type_descriptions: None,
        };
        if options.logger_services {
            services._loggers = Some(LoggerServices::start(&node).map_err(part)?);
        }
        services._type_descriptions =
            TypeDescriptionService::start(&node, options.type_description_service).map_err(part)?;
        core.parameters.declare_overrides()?;
        Ok(node.with_services(Arc::new(services)))
    }
}
