//! Parameters of all nodes, named `/node.parameter`. Nodes are asked at the same time, so
//! that one which does not answer delays the others no longer than its timeout.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use data_encoding::BASE64;
use parking_lot::Mutex;
use pteros::parameter::{Parameter, ParameterClient, ParameterType, ParameterValue};
use pteros::service::CallError;
use serde_json::{Value, json};

use crate::client::Client;
use crate::protocol;
use crate::server::Server;

/// Time for a node to answer.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Nodes that are asked at the same time.
const CONCURRENT_MAX: usize = 8;

/// Answers `getParameters`; without names it has all parameters of all nodes.
///
/// # Errors
/// Nodes that do not answer, with the reason. The values of others were sent.
pub fn get(server: &Server, client: &Client, message: &Value) -> Result<(), String> {
    let names = message["parameterNames"].as_array();
    let names: Vec<&str> = names
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let mut wanted: BTreeMap<String, Vec<String>> = BTreeMap::new();
    if names.is_empty() {
        wanted = nodes(server)
            .into_iter()
            .map(|node| (node, Vec::new()))
            .collect();
    }
    for (node, parameter) in names.into_iter().filter_map(|name| name.split_once('.')) {
        wanted
            .entry(node.to_owned())
            .or_default()
            .push(parameter.to_owned());
    }
    let (values, failures) = ask(server, &wanted, |remote, names: &Vec<String>| {
        let listed;
        let names = if names.is_empty() {
            listed = remote.list(&[], 0, TIMEOUT)?;
            &listed
        } else {
            names
        };
        let words: Vec<&str> = names.iter().map(String::as_str).collect();
        let values = remote.get(&words, TIMEOUT)?;
        Ok(names.iter().cloned().zip(values).collect())
    });
    answer(client, message, &values);
    failures
}

/// Answers `setParameters` with the values that the parameters have afterwards.
///
/// # Errors
/// Not allowed, or refused by a node.
pub fn set(server: &Server, client: &Client, message: &Value) -> Result<(), String> {
    if !server.options.allowed.parameters {
        return Err(
            "setting parameters is not allowed; start pteros view with --allow params".into(),
        );
    }
    let mut wanted: BTreeMap<String, Vec<Assignment>> = BTreeMap::new();
    for one in message["parameters"].as_array().into_iter().flatten() {
        let name = one["name"].as_str().unwrap_or_default();
        let (node, parameter) = name
            .split_once('.')
            .ok_or_else(|| format!("{name}: a parameter is named /node.parameter"))?;
        let assignment = Assignment {
            name: parameter.to_owned(),
            value: one["value"].clone(),
            kind: one["type"].as_str().unwrap_or_default().to_owned(),
        };
        wanted.entry(node.to_owned()).or_default().push(assignment);
    }
    let refused = Mutex::new(Vec::new());
    let (values, failures) = ask(server, &wanted, |remote, assignments: &Vec<Assignment>| {
        let names: Vec<&str> = assignments.iter().map(|one| one.name.as_str()).collect();
        let types = remote.types(&names, TIMEOUT)?;
        let parameters = assignments.iter().zip(types).filter_map(|(one, ty)| {
            let value = one.parameter_value(ty);
            if value.is_none() {
                let reason = format!("{}.{}: no value of its type", remote.remote(), one.name);
                refused.lock().push(reason);
            }
            Some(Parameter::new(one.name.as_str(), value?))
        });
        let parameters: Vec<Parameter> = parameters.collect();
        let results = remote.set(parameters, TIMEOUT)?;
        let reasons = results.into_iter().filter_map(Result::err);
        refused
            .lock()
            .extend(reasons.map(|reason| format!("{}: {reason}", remote.remote())));
        let values = remote.get(&names, TIMEOUT)?;
        Ok(names
            .iter()
            .map(|name| (*name).to_owned())
            .zip(values)
            .collect())
    });
    answer(client, message, &values);
    failures?;
    let refused = refused.into_inner();
    if refused.is_empty() {
        return Ok(());
    }
    Err(refused.join("; "))
}

/// Nodes with parameter services that viewers may see.
fn nodes(server: &Server) -> BTreeSet<String> {
    let services = server
        .snapshot()
        .services
        .keys()
        .cloned()
        .collect::<Vec<_>>();
    let nodes = services
        .iter()
        .filter_map(|name| name.strip_suffix("/list_parameters"));
    nodes.map(str::to_owned).collect()
}

/// Values by full name.
type Values = BTreeMap<String, ParameterValue>;

/// Asks nodes at the same time. Returns the values, and the errors of nodes.
fn ask<T: Sync>(
    server: &Server,
    wanted: &BTreeMap<String, T>,
    work: impl Fn(&ParameterClient, &T) -> Result<Vec<(String, ParameterValue)>, CallError> + Sync,
) -> (Values, Result<(), String>) {
    let known = nodes(server);
    let (known, unknown): (Vec<_>, Vec<_>) =
        wanted.iter().partition(|(node, _)| known.contains(*node));
    let errors = unknown
        .iter()
        .map(|(node, _)| format!("{node}: no such node with parameters"));
    let errors: Mutex<Vec<String>> = Mutex::new(errors.collect());
    let (next, values) = (AtomicUsize::new(0), Mutex::new(Values::new()));
    std::thread::scope(|scope| {
        for _ in 0..known.len().min(CONCURRENT_MAX) {
            scope.spawn(|| {
                while let Some((node, asked)) = known.get(next.fetch_add(1, Ordering::Relaxed)) {
                    match work(&ParameterClient::new(&server.node, node), asked) {
                        Ok(read) => values.lock().extend(
                            read.into_iter()
                                .map(|(name, value)| (format!("{node}.{name}"), value)),
                        ),
                        Err(error) => errors.lock().push(format!("{node}: {error}")),
                    }
                }
            });
        }
    });
    let errors = errors.into_inner();
    let outcome = if errors.is_empty() {
        Ok(())
    } else {
        Err(errors.join("; "))
    };
    (values.into_inner(), outcome)
}

fn answer(client: &Client, message: &Value, values: &Values) {
    let parameters: Vec<Value> = values
        .iter()
        .map(|(name, value)| row(name, value))
        .collect();
    let mut answer = json!({ "op": "parameterValues", "parameters": parameters });
    if let Some(id) = message.get("id") {
        answer["id"] = id.clone();
    }
    client.outbox.send(protocol::text(&answer));
}

/// A parameter as the protocol has it. Types distinguish 1 from 1.0, and bytes from texts.
pub fn row(name: &str, value: &ParameterValue) -> Value {
    let typed = |value: Value, kind: &str| json!({ "name": name, "value": value, "type": kind });
    let plain = |value: Value| json!({ "name": name, "value": value });
    match value {
        ParameterValue::NotSet => json!({ "name": name }),
        ParameterValue::Bool(value) => plain(json!(value)),
        ParameterValue::Integer(value) => plain(json!(value)),
        ParameterValue::Double(value) => typed(json!(value), "float64"),
        ParameterValue::String(value) => plain(json!(value)),
        ParameterValue::ByteArray(bytes) => typed(json!(BASE64.encode(bytes)), "byte_array"),
        ParameterValue::BoolArray(values) => plain(json!(values)),
        ParameterValue::IntegerArray(values) => plain(json!(values)),
        ParameterValue::DoubleArray(values) => typed(json!(values), "float64_array"),
        ParameterValue::StringArray(values) => plain(json!(values)),
    }
}

/// A value that a viewer sets.
struct Assignment {
    name: String,
    value: Value,
    /// `float64`, `float64_array`, `byte_array` or nothing.
    kind: String,
}

impl Assignment {
    /// The value as the type that the parameter has, or of its own if that is not known.
    /// JSON of a browser does not distinguish 1 from 1.0.
    fn parameter_value(&self, known: ParameterType) -> Option<ParameterValue> {
        let value = &self.value;
        let array = || value.as_array();
        let doubles = || {
            array()?
                .iter()
                .map(Value::as_f64)
                .collect::<Option<Vec<f64>>>()
        };
        match (known, self.kind.as_str()) {
            (ParameterType::Double, _) | (ParameterType::NotSet, "float64") => {
                return value.as_f64().map(ParameterValue::Double);
            }
            (ParameterType::DoubleArray, _) | (ParameterType::NotSet, "float64_array") => {
                return doubles().map(ParameterValue::DoubleArray);
            }
            (ParameterType::ByteArray, _) | (_, "byte_array") => {
                let bytes = BASE64.decode(value.as_str()?.as_bytes()).ok()?;
                return Some(ParameterValue::ByteArray(bytes));
            }
            (ParameterType::BoolArray, _) if array().is_some_and(Vec::is_empty) => {
                return Some(ParameterValue::BoolArray(Vec::new()));
            }
            (ParameterType::IntegerArray, _) if array().is_some_and(Vec::is_empty) => {
                return Some(ParameterValue::IntegerArray(Vec::new()));
            }
            _ => {}
        }
        let integers = || {
            array()?
                .iter()
                .map(Value::as_i64)
                .collect::<Option<Vec<i64>>>()
        };
        let bools = || {
            array()?
                .iter()
                .map(Value::as_bool)
                .collect::<Option<Vec<bool>>>()
        };
        let texts = || {
            let texts = array()?.iter().map(|text| text.as_str().map(str::to_owned));
            texts.collect::<Option<Vec<String>>>()
        };
        match value {
            Value::Null => Some(ParameterValue::NotSet),
            Value::Bool(value) => Some(ParameterValue::Bool(*value)),
            Value::String(text) => Some(ParameterValue::String(text.clone())),
            Value::Number(number) => number
                .as_i64()
                .map(ParameterValue::Integer)
                .or_else(|| number.as_f64().map(ParameterValue::Double)),
            Value::Array(_) => texts()
                .map(ParameterValue::StringArray)
                .or_else(|| bools().map(ParameterValue::BoolArray))
                .or_else(|| integers().map(ParameterValue::IntegerArray))
                .or_else(|| doubles().map(ParameterValue::DoubleArray)),
            Value::Object(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_get_the_type_that_the_parameter_has() {
        let read = |value: Value, kind: &str, known| {
            let kind = kind.to_owned();
            Assignment {
                name: String::new(),
                value,
                kind,
            }
            .parameter_value(known)
        };
        let unset = ParameterType::NotSet;
        assert_eq!(
            read(json!(1), "", ParameterType::Double),
            Some(ParameterValue::Double(1.0))
        );
        assert_eq!(read(json!(1), "", unset), Some(ParameterValue::Integer(1)));
        assert_eq!(
            read(json!(1), "float64", unset),
            Some(ParameterValue::Double(1.0))
        );
        assert_eq!(
            read(json!([1, 2]), "", ParameterType::DoubleArray),
            Some(ParameterValue::DoubleArray(vec![1.0, 2.0]))
        );
        assert_eq!(
            read(json!("AQI="), "byte_array", unset),
            Some(ParameterValue::ByteArray(vec![1, 2]))
        );
        assert_eq!(read(json!("x"), "", ParameterType::Double), None);
        assert_eq!(read(json!({}), "", unset), None);
    }
}
