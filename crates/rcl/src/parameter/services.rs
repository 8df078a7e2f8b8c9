//! Parameter services: the answers of the six services, from the store.
//!
//! They are those of rclcpp's and rclpy's `ParameterService`. A client library passes each
//! request with its callbacks ([`ParameterHooks`]).

use pteros_interfaces::rcl_interfaces::{msg, srv};
use pteros_msg::{Decode, Encode, Representation};

use super::callbacks::ParameterHooks;
use super::error::{ParameterError, SetParameterError};
use super::parameter_store::{Parameter, ParameterStore};
use super::rules::RuleSet;
use super::value::ParameterType;

/// Names, prefixes or parameters in one request. More than any node has.
const ITEMS_MAX: usize = 16_384;

/// Bytes of the values or descriptors of one answer. A request can name a large one many
/// times. The first one is answered whatever its size.
const ANSWER_BYTES_MAX: usize = 16 << 20;

/// Why a request for too many items is refused. A server in Rust asks before it decodes the
/// request; a node in Python has decoded it already.
pub fn refusal(service: &str, request: &[u8]) -> Option<String> {
    let items = first_sequence_len(request).filter(|items| *items > ITEMS_MAX)?;
    Some(format!(
        "{service}: {items} names or parameters in one request, at most {ITEMS_MAX} are answered; ask in parts"
    ))
}

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

/// The values. An unknown name, one without a value, or more than 16 MiB leave the whole
/// response empty.
pub fn get(
    store: &ParameterStore,
    request: &srv::GetParametersRequest,
) -> srv::GetParametersResponse {
    let values = request.names.iter().map(|name| {
        let value = store.get(name)?;
        Ok((value.bytes(), value.into_message()))
    });
    srv::GetParametersResponse {
        values: all_or_none("get_parameters", values),
    }
}

/// The parts of an answer, which come with their sizes. None if one is an error, or if they
/// have more than [`ANSWER_BYTES_MAX`].
fn all_or_none<T>(
    service: &str,
    parts: impl Iterator<Item = Result<(usize, T), ParameterError>>,
) -> Vec<T> {
    let mut found = Vec::new();
    let mut bytes = 0_usize;
    for part in parts {
        let (size, part) = match part {
            Ok(part) => part,
            Err(error) => {
                tracing::debug!("{service}: {error}");
                return Vec::new();
            }
        };
        bytes = bytes.saturating_add(size);
        if bytes > ANSWER_BYTES_MAX && !found.is_empty() {
            tracing::debug!(
                "{service}: the answer has more than {ANSWER_BYTES_MAX} bytes; ask in parts"
            );
            return Vec::new();
        }
        found.push(part);
    }
    found
}

/// The types. An unknown name leaves the whole response empty.
pub fn get_types(
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

/// The descriptors. An unknown name, or more than 16 MiB, leaves the whole response empty.
pub fn describe(
    store: &ParameterStore,
    request: &srv::DescribeParametersRequest,
) -> srv::DescribeParametersResponse {
    let names = request.names.iter();
    let descriptors = names.map(|name| {
        let found = store.describe(name)?;
        let bytes = found.name.len() + found.description.len() + found.additional_constraints.len();
        Ok((bytes, found))
    });
    srv::DescribeParametersResponse {
        descriptors: all_or_none("describe_parameters", descriptors),
    }
}

/// The names and their prefixes.
pub fn list(
    store: &ParameterStore,
    request: &srv::ListParametersRequest,
) -> srv::ListParametersResponse {
    srv::ListParametersResponse {
        result: store.list(&request.prefixes, request.depth),
    }
}

/// Sets one by one; a rejected parameter does not affect the others.
///
/// # Errors
/// [`SetParameterError::Stopped`]: a callback failed.
pub fn set(
    store: &ParameterStore,
    hooks: &dyn ParameterHooks,
    request: &srv::SetParametersRequest,
) -> Result<srv::SetParametersResponse, SetParameterError> {
    let one = |parameter: &msg::Parameter| {
        let outcome = set_all(store, hooks, std::slice::from_ref(parameter));
        result(store.rules().rule_set, outcome)
    };
    let results: Result<Vec<_>, _> = request.parameters.iter().map(one).collect();
    Ok(srv::SetParametersResponse { results: results? })
}

/// Sets all or none.
///
/// # Errors
/// [`SetParameterError::Stopped`]: a callback failed.
pub fn set_atomically(
    store: &ParameterStore,
    hooks: &dyn ParameterHooks,
    request: &srv::SetParametersAtomicallyRequest,
) -> Result<srv::SetParametersAtomicallyResponse, SetParameterError> {
    let outcome = set_all(store, hooks, &request.parameters);
    let result = match (store.rules().rule_set, outcome) {
        (RuleSet::Rclcpp, Err(SetParameterError::NotDeclared { .. })) => rejected(UNDECLARED),
        (rules, outcome) => result(rules, outcome)?,
    };
    Ok(srv::SetParametersAtomicallyResponse { result })
}

/// Text of rclcpp.
const UNDECLARED: &str = "One or more parameters were not declared before setting";

fn set_all(
    store: &ParameterStore,
    hooks: &dyn ParameterHooks,
    parameters: &[msg::Parameter],
) -> Result<(), SetParameterError> {
    for parameter in parameters {
        if ParameterType::from_number(parameter.value.r#type).is_none() {
            let reason = format!(
                "parameter '{}' has a value of type {}, which does not exist; use 0 to 9",
                parameter.name, parameter.value.r#type
            );
            return Err(SetParameterError::Rejected { reason });
        }
    }
    let parameters = parameters.iter().map(Parameter::from_message).collect();
    store.set_atomically_with(hooks, parameters)
}

/// The result of a change.
///
/// # Errors
/// [`SetParameterError::Stopped`] is none.
pub fn result(
    rules: RuleSet,
    outcome: Result<(), SetParameterError>,
) -> Result<msg::SetParametersResult, SetParameterError> {
    match outcome {
        Ok(()) => Ok(msg::SetParametersResult {
            successful: true,
            reason: String::new(),
        }),
        Err(SetParameterError::Stopped) => Err(SetParameterError::Stopped),
        Err(error) => Ok(rejected(rules.reason(&error))),
    }
}

/// The result of a change that is refused.
pub fn rejected(reason: impl Into<String>) -> msg::SetParametersResult {
    let mut reason = reason.into();
    reason.shrink_to_fit();
    msg::SetParametersResult {
        successful: false,
        reason,
    }
}

/// The names of the services below that of the node.
pub const NAMES: [&str; 6] = [
    "describe_parameters",
    "get_parameters",
    "get_parameter_types",
    "list_parameters",
    "set_parameters",
    "set_parameters_atomically",
];

/// The serialized answer to a serialized request of one of the services [`NAMES`], for a
/// language that has no messages of Rust. `None` if it cannot be decoded.
///
/// # Errors
/// [`SetParameterError::Stopped`]: a callback failed.
pub fn answer(
    store: &ParameterStore,
    hooks: &dyn ParameterHooks,
    service: &str,
    request: &[u8],
) -> Result<Option<Vec<u8>>, SetParameterError> {
    let refusal = refusal(service, request);
    Ok(match service {
        "describe_parameters" => read(request, refusal, |asked| describe(store, asked)),
        "get_parameters" => read(request, refusal, |asked| get(store, asked)),
        "get_parameter_types" => read(request, refusal, |asked| get_types(store, asked)),
        "list_parameters" => read(request, refusal, |asked| list(store, asked)),
        "set_parameters" => {
            if let Some(reason) = refusal {
                let results = vec![rejected(reason)];
                return Ok(Some(written(&srv::SetParametersResponse { results })));
            }
            let Ok(asked) = pteros_msg::from_payload(request) else {
                return Ok(None);
            };
            Some(written(&set(store, hooks, &asked)?))
        }
        "set_parameters_atomically" => {
            if let Some(reason) = refusal {
                let result = rejected(reason);
                let response = srv::SetParametersAtomicallyResponse { result };
                return Ok(Some(written(&response)));
            }
            let Ok(asked) = pteros_msg::from_payload(request) else {
                return Ok(None);
            };
            Some(written(&set_atomically(store, hooks, &asked)?))
        }
        _ => None,
    })
}

/// The answer of a service whose response has no place for the reason of a refusal.
fn read<Q: Decode, R: Encode + Default>(
    request: &[u8],
    refusal: Option<String>,
    answer: impl FnOnce(&Q) -> R,
) -> Option<Vec<u8>> {
    if let Some(reason) = refusal {
        tracing::debug!("{reason}");
        return Some(written(&R::default()));
    }
    let asked = pteros_msg::from_payload(request).ok()?;
    Some(written(&answer(&asked)))
}

fn written(response: &impl Encode) -> Vec<u8> {
    pteros_msg::to_payload(response, Representation::Xcdr1)
}

#[cfg(test)]
mod tests {
    use super::super::{ParameterDeclaration, ParameterDescriptor, ParameterValue};
    use super::*;

    #[test]
    fn a_value_of_an_unknown_type_is_refused_and_deletes_nothing() {
        let store = ParameterStore::new("/n".into(), Default::default(), Default::default());
        let declaration = ParameterDeclaration {
            name: "x".into(),
            type_of: ParameterType::NotSet,
            default: 1.into(),
            descriptor: ParameterDescriptor::new().dynamic_typing(),
            ignore_override: false,
        };
        store.declare(declaration, |_| None).unwrap();
        let mut parameter = Parameter::new("x", 2).into_message();
        parameter.value.r#type = 42;
        let request = srv::SetParametersRequest {
            parameters: vec![parameter],
        };
        let request = written(&request);
        let answer = answer(&store, &store.callbacks, "set_parameters", &request);
        let answer: srv::SetParametersResponse =
            pteros_msg::from_payload(&answer.unwrap().unwrap()).unwrap();
        let reason = "parameter 'x' has a value of type 42, which does not exist; use 0 to 9";
        assert_eq!(answer.results, [rejected(reason)]);
        assert_eq!(store.get("x").unwrap(), ParameterValue::Integer(1));
    }

    #[test]
    fn a_request_for_too_many_items_is_refused_undecoded() {
        let store = ParameterStore::new("/n".into(), Default::default(), Default::default());
        let request = [0, 1, 0, 0, 0xFF, 0xFF, 0xFF, 0];
        for service in NAMES {
            let answer = answer(&store, &store.callbacks, service, &request);
            let answer = answer.unwrap().unwrap();
            let is_told = answer.windows(7).any(|text| text == b"at most");
            assert_eq!(is_told, service.starts_with("set_"), "{service}");
        }
        let wrong = answer(&store, &store.callbacks, "set_parameters", &[0, 1]);
        assert_eq!(wrong.unwrap(), None);
    }

    #[test]
    fn the_bytes_of_an_answer_are_limited_though_a_name_comes_again() {
        let store = ParameterStore::new("/n".into(), Default::default(), Default::default());
        let text = "x".repeat(300_000);
        let array = vec![text.clone(); 3];
        let large = "x".repeat(ANSWER_BYTES_MAX + 1);
        let values: [(&str, ParameterValue); 3] = [
            ("text", text.clone().into()),
            ("array", array.into()),
            ("large", large.into()),
        ];
        for (name, default) in values {
            let declaration = ParameterDeclaration {
                name: name.into(),
                type_of: default.parameter_type(),
                default,
                descriptor: ParameterDescriptor::new().description(text.clone()),
                ignore_override: false,
            };
            store.declare(declaration, |_| None).unwrap();
        }
        let answered = |name: &str, count| {
            let names = vec![name.to_owned(); count];
            get(&store, &srv::GetParametersRequest { names })
                .values
                .len()
        };
        for (name, count) in [("text", 55), ("array", 18), ("large", 1)] {
            assert_eq!(answered(name, count), count, "{name}");
            assert_eq!(answered(name, count + 1), 0, "{name}");
            assert_eq!(answered(name, ITEMS_MAX), 0, "{name}");
        }
        let described = |count| {
            let names = vec!["text".to_owned(); count];
            let request = srv::DescribeParametersRequest { names };
            describe(&store, &request).descriptors.len()
        };
        assert_eq!((described(55), described(ITEMS_MAX)), (55, 0));
    }

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
