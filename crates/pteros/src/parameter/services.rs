//! The six parameter services of a node and its part of `/parameter_events`,
//! answering as rclcpp's `ParameterService` does.

use std::sync::{Arc, Weak};

use pteros_interfaces::rcl_interfaces::{msg, srv};
use pteros_msg::message::Service as ServiceType;

use super::error::SetParameterError;
use super::store::{Announce, Parameter, ParameterStore};
use super::value::ParameterType;
use crate::error::CreateError;
use crate::node::Node;
use crate::publisher::Publisher;
use crate::qos::QosProfile;
use crate::sample::Sample;
use crate::service::{Service, ServiceOptions};

/// Kept by the node's handles, not by its endpoints: it leaves with the last
/// [`Node`].
#[derive(Default)]
pub(crate) struct ParameterServices {
    _services: Option<Services>,
    _events: Option<Arc<Events>>,
}

type Services = (
    Service<srv::GetParameters>,
    Service<srv::GetParameterTypes>,
    Service<srv::SetParameters>,
    Service<srv::SetParametersAtomically>,
    Service<srv::DescribeParameters>,
    Service<srv::ListParameters>,
);

struct Events(Publisher<msg::ParameterEvent>);

impl Announce for Events {
    fn announce(&self, mut event: msg::ParameterEvent) {
        if self.0.matched_count() == 0 {
            return;
        }
        event.stamp = self.0.raw.node.time.now().into();
        if pteros_rmw::rtps::fault!("parameter-events-not-told") {
            return;
        }
        if let Err(error) = self.0.publish_owned(event) {
            tracing::warn!("/parameter_events: {error}");
        }
    }
}

impl ParameterServices {
    pub(crate) fn start(
        node: &Node,
        with_services: bool,
        with_events: bool,
    ) -> Result<Self, CreateError> {
        let store = &node.core().parameters;
        let events = match with_events {
            true => {
                let qos = QosProfile::parameter_events();
                let publisher = node.create_publisher("/parameter_events", qos)?;
                let events = Arc::new(Events(publisher));
                let weak: Weak<Events> = Arc::downgrade(&events);
                store.announce_through(weak);
                Some(events)
            }
            false => None,
        };
        let services = match with_services {
            true => Some(services(node, store)?),
            false => None,
        };
        Ok(Self {
            _services: services,
            _events: events,
        })
    }
}

fn services(node: &Node, store: &Arc<ParameterStore>) -> Result<Services, CreateError> {
    Ok((
        serve(node, store, "get_parameters", get)?,
        serve(node, store, "get_parameter_types", get_types)?,
        serve(node, store, "set_parameters", set)?,
        serve(node, store, "set_parameters_atomically", set_atomically)?,
        serve(node, store, "describe_parameters", describe)?,
        serve(node, store, "list_parameters", list)?,
    ))
}

fn serve<S: ServiceType>(
    node: &Node,
    store: &Arc<ParameterStore>,
    name: &str,
    answer: impl Fn(&ParameterStore, &S::Request) -> S::Response + Send + 'static,
) -> Result<Service<S>, CreateError> {
    let store = store.clone();
    let options = ServiceOptions::new(QosProfile::parameters());
    node.create_service_with::<S>(&format!("~/{name}"), options, move |request: Sample<_>| {
        answer(&store, &request)
    })
}

/// One name that cannot be answered leaves the whole answer empty, as in rclcpp.
fn get(store: &ParameterStore, asked: &srv::GetParameters_Request) -> srv::GetParameters_Response {
    let values: Result<Vec<_>, _> = asked.names.iter().map(|name| store.get(name)).collect();
    let values = values.unwrap_or_else(|error| {
        tracing::debug!("get_parameters: {error}");
        Vec::new()
    });
    srv::GetParameters_Response {
        values: values.into_iter().map(|v| v.into_message()).collect(),
    }
}

fn get_types(
    store: &ParameterStore,
    asked: &srv::GetParameterTypes_Request,
) -> srv::GetParameterTypes_Response {
    let names = asked.names.iter();
    let types: Result<Vec<_>, _> = names.map(|name| store.type_of(name)).collect();
    let types = types.unwrap_or_else(|error| {
        tracing::debug!("get_parameter_types: {error}");
        Vec::new()
    });
    srv::GetParameterTypes_Response {
        types: types.into_iter().map(ParameterType::number).collect(),
    }
}

fn describe(
    store: &ParameterStore,
    asked: &srv::DescribeParameters_Request,
) -> srv::DescribeParameters_Response {
    let names = asked.names.iter();
    let descriptors: Result<Vec<_>, _> = names.map(|name| store.describe(name)).collect();
    srv::DescribeParameters_Response {
        descriptors: descriptors.unwrap_or_else(|error| {
            tracing::debug!("describe_parameters: {error}");
            Vec::new()
        }),
    }
}

fn list(
    store: &ParameterStore,
    asked: &srv::ListParameters_Request,
) -> srv::ListParameters_Response {
    srv::ListParameters_Response {
        result: store.list(&asked.prefixes, asked.depth),
    }
}

/// One by one: what is refused does not keep the others.
fn set(store: &ParameterStore, asked: &srv::SetParameters_Request) -> srv::SetParameters_Response {
    let one = |parameter| result(store.set_atomically(vec![Parameter::from_message(parameter)]));
    srv::SetParameters_Response {
        results: asked.parameters.iter().map(one).collect(),
    }
}

fn set_atomically(
    store: &ParameterStore,
    asked: &srv::SetParametersAtomically_Request,
) -> srv::SetParametersAtomically_Response {
    let parameters = asked.parameters.iter().map(Parameter::from_message);
    let mut result = match store.set_atomically(parameters.collect()) {
        Err(SetParameterError::NotDeclared { .. }) => result(Err(UNDECLARED)),
        outcome => result(outcome),
    };
    result.reason.shrink_to_fit();
    srv::SetParametersAtomically_Response { result }
}

/// In rclcpp's words.
const UNDECLARED: &str = "One or more parameters were not declared before setting";

fn result<E: ToString>(outcome: Result<(), E>) -> msg::SetParametersResult {
    msg::SetParametersResult {
        successful: outcome.is_ok(),
        reason: outcome.err().map(|e| e.to_string()).unwrap_or_default(),
    }
}
