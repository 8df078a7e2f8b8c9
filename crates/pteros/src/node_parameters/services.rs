//! Parameter services and parameter events of a node.
//!
//! The answers of the six services come from `pteros_rcl::parameter::services`. Parameter
//! events go to `/parameter_events`.

use std::sync::{Arc, Weak};

use pteros_interfaces::rcl_interfaces::{msg, srv};
use pteros_msg::message::Service as ServiceType;

use crate::error::CreateError;
use crate::named_qos::NamedQosExt;
use crate::node::Node;
use crate::parameter::{ParameterEventSink, ParameterStore, services};
use crate::publisher::Publisher;
use crate::qos::QosProfile;
use crate::sample::Sample;
use crate::service::{Service, ServiceOptions};

/// Owned by the node handles, not by its endpoints: dropped with the last [`Node`].
#[derive(Default)]
pub(crate) struct ParameterServices {
    _services: Option<ParameterServiceHandles>,
    _events: Option<Arc<ParameterEventPublisher>>,
}

struct ParameterServiceHandles {
    _get_parameters: Service<srv::GetParameters>,
    _get_parameter_types: Service<srv::GetParameterTypes>,
    _set_parameters: Service<srv::SetParameters>,
    _set_parameters_atomically: Service<srv::SetParametersAtomically>,
    _describe_parameters: Service<srv::DescribeParameters>,
    _list_parameters: Service<srv::ListParameters>,
}

struct ParameterEventPublisher(Publisher<msg::ParameterEvent>);

impl ParameterEventSink for ParameterEventPublisher {
    fn publish_event(&self, mut event: msg::ParameterEvent) {
        if self.0.matched_count() == 0 {
            return;
        }
        event.stamp = self.0.raw.node.time.now().into();
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
        let events = if with_events {
            let qos = QosProfile::parameter_events();
            let publisher = node.create_publisher("/parameter_events".qos(qos))?;
            let events = Arc::new(ParameterEventPublisher(publisher));
            let weak: Weak<ParameterEventPublisher> = Arc::downgrade(&events);
            store.set_event_sink(weak);
            Some(events)
        } else {
            None
        };
        let services = if with_services {
            Some(services(node, store)?)
        } else {
            None
        };
        Ok(Self {
            _services: services,
            _events: events,
        })
    }
}

fn services(
    node: &Node,
    store: &Arc<ParameterStore>,
) -> Result<ParameterServiceHandles, CreateError> {
    Ok(ParameterServiceHandles {
        _get_parameters: serve(node, store, "get_parameters", services::get, nothing)?,
        _get_parameter_types: serve(
            node,
            store,
            "get_parameter_types",
            services::get_types,
            nothing,
        )?,
        _set_parameters: serve(
            node,
            store,
            "set_parameters",
            // A callback in Rust does not stop a change.
            |store, asked| services::set(store, &store.callbacks, asked).unwrap_or_default(),
            |reason| srv::SetParametersResponse {
                results: vec![services::rejected(reason)],
            },
        )?,
        _set_parameters_atomically: serve(
            node,
            store,
            "set_parameters_atomically",
            |store, asked| {
                services::set_atomically(store, &store.callbacks, asked).unwrap_or_default()
            },
            |reason| srv::SetParametersAtomicallyResponse {
                result: services::rejected(reason),
            },
        )?,
        _describe_parameters: serve(
            node,
            store,
            "describe_parameters",
            services::describe,
            nothing,
        )?,
        _list_parameters: serve(node, store, "list_parameters", services::list, nothing)?,
    })
}

fn serve<S: ServiceType>(
    node: &Node,
    store: &Arc<ParameterStore>,
    name: &'static str,
    handler: impl Fn(&ParameterStore, &S::Request) -> S::Response + Send + 'static,
    refusal: fn(String) -> S::Response,
) -> Result<Service<S>, CreateError> {
    let store = store.clone();
    let mut options = ServiceOptions::new(format!("~/{name}").qos(QosProfile::parameters()));
    options.refuse = Some(Box::new(move |request| {
        services::refusal(name, request).map(refusal)
    }));
    node.create_service::<S>(options, move |request: Sample<_>| handler(&store, &request))
}

/// Nothing, as for an unknown name: these responses have no place for a reason.
fn nothing<R: Default>(reason: String) -> R {
    tracing::debug!("{reason}");
    R::default()
}
