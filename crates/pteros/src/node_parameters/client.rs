//! Parameter client: reads and sets parameters of another node over its services.

use std::fmt;
use std::sync::OnceLock;
use std::time::Duration;

use pteros_interfaces::rcl_interfaces::{msg, srv};
use pteros_msg::message::Service as ServiceType;
use pteros_msg::suggest::did_you_mean;

use crate::error::CreateError;
use crate::named_qos::NamedQosExt;
use crate::node::Node;
use crate::parameter::Parameter;
use crate::parameter::ParameterFile;
use crate::parameter::ParameterText;
use crate::parameter::{ParameterType, ParameterValue};
use crate::qos::QosProfile;
use crate::sample::Sample;
use crate::service::{CallError, Client};
use crate::subscription::Subscription;

/// Whether a parameter was set; the reason of the node if not.
pub type SetParameterResult = Result<(), String>;

/// Reads and sets the parameters of another node. Thread-safe. Each service client
/// is created on first use.
///
/// All calls block for the service and its response, at most the given time in
/// total. They drive the network themselves and run no callbacks. So a client
/// cannot reach a node that is spun by the calling thread.
///
/// ```no_run
/// use std::time::Duration;
///
/// use pteros::parameter::{Parameter, ParameterClient};
/// use pteros::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let node = Context::new()?.create_node("tuner")?;
/// let wheels = ParameterClient::new(&node, "/wheels");
/// let timeout = Duration::from_secs(1);
/// let speed = wheels.get(&["speed"], timeout)?;
/// println!("{}", speed[0]);
/// let results = wheels.set(vec![Parameter::new("speed", 0.5)], timeout)?;
/// assert_eq!(results, [Ok(())]);
/// # Ok(())
/// # }
/// ```
pub struct ParameterClient {
    node: Node,
    remote: String,
    get: OnceLock<Client<srv::GetParameters>>,
    types: OnceLock<Client<srv::GetParameterTypes>>,
    set: OnceLock<Client<srv::SetParameters>>,
    set_atomically: OnceLock<Client<srv::SetParametersAtomically>>,
    describe: OnceLock<Client<srv::DescribeParameters>>,
    list: OnceLock<Client<srv::ListParameters>>,
}

impl ParameterClient {
    /// Creates a client of `node` for the parameters of the node with the fully
    /// qualified name `remote`.
    pub fn new(node: &Node, remote: &str) -> Self {
        Self {
            node: node.clone(),
            remote: remote.into(),
            get: OnceLock::new(),
            types: OnceLock::new(),
            set: OnceLock::new(),
            set_atomically: OnceLock::new(),
            describe: OnceLock::new(),
            list: OnceLock::new(),
        }
    }

    /// Fully qualified name of the remote node.
    pub fn remote(&self) -> &str {
        &self.remote
    }

    /// Returns the values of parameters, in the order of `names`.
    ///
    /// # Errors
    /// See [`CallError`]; also if a name is unknown.
    pub fn get(&self, names: &[&str], timeout: Duration) -> Result<Vec<ParameterValue>, CallError> {
        let request = srv::GetParametersRequest {
            names: owned(names),
        };
        let response = self.call(&self.get, "get_parameters", &request, timeout)?;
        self.check_count(names, response.values.len(), timeout)?;
        let values = response.values.iter();
        Ok(values
            .map(|value| ParameterValue::from_message(value).unwrap_or_default())
            .collect())
    }

    /// Returns the types of parameters, in the order of `names`.
    ///
    /// # Errors
    /// See [`CallError`]; also if a name is unknown.
    pub fn types(
        &self,
        names: &[&str],
        timeout: Duration,
    ) -> Result<Vec<ParameterType>, CallError> {
        let request = srv::GetParameterTypesRequest {
            names: owned(names),
        };
        let response = self.call(&self.types, "get_parameter_types", &request, timeout)?;
        self.check_count(names, response.types.len(), timeout)?;
        let types = response.types.iter();
        Ok(types
            .map(|number| ParameterType::from_number(*number).unwrap_or_default())
            .collect())
    }

    /// Returns the descriptors of parameters, in the order of `names`.
    ///
    /// # Errors
    /// See [`CallError`]; also if a name is unknown.
    pub fn describe(
        &self,
        names: &[&str],
        timeout: Duration,
    ) -> Result<Vec<msg::ParameterDescriptor>, CallError> {
        let request = srv::DescribeParametersRequest {
            names: owned(names),
        };
        let response = self.call(&self.describe, "describe_parameters", &request, timeout)?;
        self.check_count(names, response.descriptors.len(), timeout)?;
        Ok(response.descriptors.clone())
    }

    /// Lists parameter names that equal one of `prefixes` or begin with it and a
    /// dot; without prefixes, all names. `depth` limits the parts between dots
    /// below the prefix; 0 means no limit.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn list(
        &self,
        prefixes: &[&str],
        depth: u64,
        timeout: Duration,
    ) -> Result<Vec<String>, CallError> {
        let request = srv::ListParametersRequest {
            prefixes: owned(prefixes),
            depth,
        };
        let response = self.call(&self.list, "list_parameters", &request, timeout)?;
        Ok(response.result.names.clone())
    }

    /// Sets parameters one by one. Returns the result of each.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn set(
        &self,
        parameters: Vec<Parameter>,
        timeout: Duration,
    ) -> Result<Vec<SetParameterResult>, CallError> {
        let requested = parameters.len();
        let request = srv::SetParametersRequest {
            parameters: messages(parameters),
        };
        let response = self.call(&self.set, "set_parameters", &request, timeout)?;
        let found = response.results.len();
        if found != requested {
            return Err(self.wrong_count(found, requested));
        }
        Ok(response.results.iter().map(outcome).collect())
    }

    /// Sets parameters from texts, one by one. If the node refuses a value, its
    /// declared type decides how the text is read. Returns the result of each.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn set_texts(
        &self,
        texts: &[(String, ParameterText)],
        timeout: Duration,
    ) -> Result<Vec<SetParameterResult>, CallError> {
        let parameters = texts.iter();
        let parameters = parameters.map(|(name, text)| Parameter::new(name, text.value().clone()));
        let mut results = self.set(parameters.collect(), timeout)?;
        for ((name, text), result) in texts.iter().zip(&mut results) {
            if result.is_ok() {
                continue;
            }
            // The node is there, so these calls take no longer than the first.
            let Ok(descriptors) = self.describe(&[name.as_str()], timeout) else {
                continue;
            };
            let declared = descriptors.first();
            let declared = declared.filter(|descriptor| !descriptor.dynamic_typing);
            let declared = declared.and_then(|found| ParameterType::from_number(found.r#type));
            let value = text.value_as(declared.unwrap_or_default());
            if value == *text.value() {
                continue;
            }
            let again = self.set(vec![Parameter::new(name, value)], timeout)?;
            if let Some(again) = again.into_iter().next() {
                *result = again;
            }
        }
        Ok(results)
    }

    /// Sets all of these parameters or none.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn set_atomically(
        &self,
        parameters: Vec<Parameter>,
        timeout: Duration,
    ) -> Result<SetParameterResult, CallError> {
        let request = srv::SetParametersAtomicallyRequest {
            parameters: messages(parameters),
        };
        let name = "set_parameters_atomically";
        let response = self.call(&self.set_atomically, name, &request, timeout)?;
        Ok(outcome(&response.result))
    }

    /// Deletes parameters of dynamic type. Returns the result of each.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn delete(
        &self,
        names: &[&str],
        timeout: Duration,
    ) -> Result<Vec<SetParameterResult>, CallError> {
        let nothing = |name: &&str| Parameter::new(*name, ParameterValue::NotSet);
        self.set(names.iter().map(nothing).collect(), timeout)
    }

    /// Sets the parameters that a file has for the node. Returns the result of each
    /// by name. Without `wildcards`, only entries that name the node apply. A value that the
    /// node has already counts as set, also of a read-only parameter: a dump loads again.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn load(
        &self,
        file: &ParameterFile,
        wildcards: bool,
        timeout: Duration,
    ) -> Result<Vec<(String, SetParameterResult)>, CallError> {
        let texts = file.texts_of(&self.remote, wildcards);
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        let mut outcomes = self.set_texts(&texts, timeout)?;
        let refused = texts
            .iter()
            .zip(&mut outcomes)
            .filter(|(_, set)| set.is_err());
        for ((name, text), set) in refused {
            // One by one: a node answers for no name if it lacks one of them.
            let values = match self.get(&[name], timeout) {
                Ok(values) => values,
                // Refused: it lacks the name. Without an answer there is none for the next.
                Err(CallError::Refused { .. }) => continue,
                Err(_) => break,
            };
            if values
                .iter()
                .any(|has| *has == text.value_as(has.parameter_type()))
            {
                *set = Ok(());
            }
        }
        let names = texts.into_iter().map(|(name, _)| name);
        Ok(names.zip(outcomes).collect())
    }

    /// Subscribes to the parameter events of the remote node on
    /// `/parameter_events`. The executor of this client's node calls `changed`, as
    /// long as the subscription is kept.
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn on_events(
        &self,
        mut changed: impl FnMut(Sample<msg::ParameterEvent>) + Send + 'static,
    ) -> Result<Subscription<msg::ParameterEvent>, CreateError> {
        let remote = self.remote.clone();
        let qos = QosProfile::parameter_events();
        self.node
            .create_subscription("/parameter_events".qos(qos), move |event: Sample<_>| {
                let event: Sample<msg::ParameterEvent> = event;
                if event.node == remote {
                    changed(event);
                }
            })
    }

    fn call<S: ServiceType>(
        &self,
        slot: &OnceLock<Client<S>>,
        name: &str,
        request: &S::Request,
        timeout: Duration,
    ) -> Result<Sample<S::Response>, CallError> {
        self.client(slot, name)?.call(request, timeout)
    }

    fn client<S: ServiceType>(
        &self,
        slot: &OnceLock<Client<S>>,
        name: &str,
    ) -> Result<Client<S>, CreateError> {
        if let Some(client) = slot.get() {
            return Ok(client.clone());
        }
        let service = format!("{}/{name}", self.remote);
        let options = service.as_str().qos(QosProfile::parameters());
        let client = self.node.create_client::<S>(options)?;
        Ok(slot.get_or_init(|| client).clone())
    }

    fn check_count(
        &self,
        names: &[&str],
        found: usize,
        timeout: Duration,
    ) -> Result<(), CallError> {
        let requested = names.len();
        match found {
            _ if found == requested => Ok(()),
            // An unknown name leaves the whole response empty, as in rclcpp.
            0 => Err(CallError::Refused {
                node: self.remote.clone(),
                reason: self.why_empty(names, timeout),
            }),
            _ => Err(self.wrong_count(found, requested)),
        }
    }

    /// Which names are undeclared. It asks the node, which has just responded.
    fn why_empty(&self, names: &[&str], timeout: Duration) -> String {
        let declared = self.list(&[], 0, timeout).unwrap_or_default();
        let declared = || declared.iter().map(String::as_str);
        let is_unknown = |name: &&&str| declared().all(|known| known != **name);
        let (what, similar) = match names.iter().find(is_unknown) {
            Some(name) => (
                format!("has no parameter '{name}'"),
                did_you_mean(name, declared()),
            ),
            None => (
                format!("has no value for '{}'", names.join("', '")),
                ".".into(),
            ),
        };
        format!(
            "{what}{similar} See all of them with: pteros param list {}",
            self.remote
        )
    }

    fn wrong_count(&self, found: usize, requested: usize) -> CallError {
        CallError::Refused {
            node: self.remote.clone(),
            reason: format!(
                "returned {found} results for {requested} names; its parameter services are broken"
            ),
        }
    }
}

impl fmt::Debug for ParameterClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParameterClient")
            .field("remote", &self.remote)
            .finish_non_exhaustive()
    }
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn messages(parameters: Vec<Parameter>) -> Vec<msg::Parameter> {
    parameters
        .into_iter()
        .map(Parameter::into_message)
        .collect()
}

fn outcome(result: &msg::SetParametersResult) -> SetParameterResult {
    if result.successful {
        Ok(())
    } else {
        Err(result.reason.clone())
    }
}
