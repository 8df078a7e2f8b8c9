//! Parameter services and parameter events of a node.
//!
//! The six services answer as rclcpp's `ParameterService` does. Parameter events go
//! to `/parameter_events`.

use std::sync::{Arc, Weak};

use pteros_interfaces::rcl_interfaces::{msg, srv};
use pteros_msg::message::Service as ServiceType;

use crate::error::CreateError;
use crate::named_qos::NamedQosExt;
use crate::node::Node;
use crate::parameter::ParameterType;
use crate::parameter::SetParameterError;
use crate::parameter::{Parameter, ParameterEventSink, ParameterStore};
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
        _get_parameters: serve(node, store, "get_parameters", get, nothing)?,
        _get_parameter_types: serve(node, store, "get_parameter_types", get_types, nothing)?,
        _set_parameters: serve(node, store, "set_parameters", set, |reason| {
            let results = vec![refused_result(reason)];
            srv::SetParametersResponse { results }
        })?,
        _set_parameters_atomically: serve(
            node,
            store,
            "set_parameters_atomically",
            set_atomically,
            |reason| srv::SetParametersAtomicallyResponse {
                result: refused_result(reason),
            },
        )?,
        _describe_parameters: serve(node, store, "describe_parameters", describe, nothing)?,
        _list_parameters: serve(node, store, "list_parameters", list, nothing)?,
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
        let items = first_sequence_len(request).filter(|items| *items > ITEMS_MAX)?;
        Some(refusal(format!(
            "{name}: {items} names or parameters in one request, at most {ITEMS_MAX} are answered; ask in parts"
        )))
    }));
    node.create_service::<S>(options, move |request: Sample<_>| handler(&store, &request))
}

/// Names, prefixes or parameters in one request. Each may be short, and its answer
/// large. More than any node has, and some MiB of answers.
const ITEMS_MAX: usize = 16_384;

/// The length of the sequence with which every request of these services begins,
/// without decoding it. `None` where the request is shorter.
fn first_sequence_len(request: &[u8]) -> Option<usize> {
    let (encapsulation, body) = request.split_first_chunk::<4>()?;
    let [_, kind, ..] = *encapsulation;
    // XCDR2 puts the size of the sequence before its length (XTypes 1.3 §7.4.3.5.3).
    let at = if kind < XCDR2 { 0 } else { 4 };
    let length = body.get(at..)?.first_chunk::<4>()?;
    let length = match kind & 1 {
        0 => u32::from_be_bytes(*length),
        _ => u32::from_le_bytes(*length),
    };
    usize::try_from(length).ok()
}

/// The lowest representation identifier of XCDR2 (RTPS 2.5 §10.2, table 10.3).
const XCDR2: u8 = 6;

/// Nothing, as for an unknown name: these responses have no place for a reason.
fn nothing<R: Default>(reason: String) -> R {
    tracing::debug!("{reason}");
    R::default()
}

fn refused_result(reason: String) -> msg::SetParametersResult {
    msg::SetParametersResult {
        successful: false,
        reason,
    }
}

/// An unknown name leaves the whole response empty, as in rclcpp.
fn get(store: &ParameterStore, request: &srv::GetParametersRequest) -> srv::GetParametersResponse {
    let values: Result<Vec<_>, _> = request.names.iter().map(|name| store.get(name)).collect();
    let values = values.unwrap_or_else(|error| {
        tracing::debug!("get_parameters: {error}");
        Vec::new()
    });
    srv::GetParametersResponse {
        values: values.into_iter().map(|v| v.into_message()).collect(),
    }
}

fn get_types(
    store: &ParameterStore,
    request: &srv::GetParameterTypesRequest,
) -> srv::GetParameterTypesResponse {
    let names = request.names.iter();
    let types: Result<Vec<_>, _> = names.map(|name| store.type_of(name)).collect();
    let types = types.unwrap_or_else(|error| {
        tracing::debug!("get_parameter_types: {error}");
        Vec::new()
    });
    srv::GetParameterTypesResponse {
        types: types.into_iter().map(ParameterType::number).collect(),
    }
}

fn describe(
    store: &ParameterStore,
    request: &srv::DescribeParametersRequest,
) -> srv::DescribeParametersResponse {
    let names = request.names.iter();
    let descriptors: Result<Vec<_>, _> = names.map(|name| store.describe(name)).collect();
    srv::DescribeParametersResponse {
        descriptors: descriptors.unwrap_or_else(|error| {
            tracing::debug!("describe_parameters: {error}");
            Vec::new()
        }),
    }
}

fn list(
    store: &ParameterStore,
    request: &srv::ListParametersRequest,
) -> srv::ListParametersResponse {
    srv::ListParametersResponse {
        result: store.list(&request.prefixes, request.depth),
    }
}

/// Sets one by one; a rejected parameter does not affect the others.
fn set(store: &ParameterStore, request: &srv::SetParametersRequest) -> srv::SetParametersResponse {
    let one = |parameter| result(store.set_atomically(vec![Parameter::from_message(parameter)]));
    srv::SetParametersResponse {
        results: request.parameters.iter().map(one).collect(),
    }
}

fn set_atomically(
    store: &ParameterStore,
    request: &srv::SetParametersAtomicallyRequest,
) -> srv::SetParametersAtomicallyResponse {
    let parameters = request.parameters.iter().map(Parameter::from_message);
    let mut result = match store.set_atomically(parameters.collect()) {
        Err(SetParameterError::NotDeclared { .. }) => result(Err(UNDECLARED)),
        outcome => result(outcome),
    };
    result.reason.shrink_to_fit();
    srv::SetParametersAtomicallyResponse { result }
}

/// Text of rclcpp.
const UNDECLARED: &str = "One or more parameters were not declared before setting";

fn result<E: ToString>(outcome: Result<(), E>) -> msg::SetParametersResult {
    msg::SetParametersResult {
        successful: outcome.is_ok(),
        reason: outcome.err().map(|e| e.to_string()).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_a_request_is_read_without_decoding_it() {
        let length = |request: &[u8]| first_sequence_len(request);
        assert_eq!(length(&[0, 1, 0, 0, 7, 1, 0, 0]), Some(263));
        assert_eq!(length(&[0, 0, 0, 0, 0, 0, 1, 7]), Some(263));
        assert_eq!(length(&[0, 7, 0, 0, 9, 9, 9, 9, 7, 1, 0, 0]), Some(263));
        assert_eq!(length(&[0, 1, 0, 0, 7, 1, 0]), None);
        assert_eq!(length(&[]), None);
    }
}
