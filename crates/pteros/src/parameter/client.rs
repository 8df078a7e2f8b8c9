//! Parameters of another node, asked for and set over its services.

use std::fmt;
use std::sync::OnceLock;
use std::time::Duration;

use pteros_interfaces::rcl_interfaces::{msg, srv};
use pteros_msg::message::Service as ServiceType;
use thiserror::Error;

use super::file::ParameterFile;
use super::store::Parameter;
use super::value::{ParameterType, ParameterValue};
use crate::error::CreateError;
use crate::node::Node;
use crate::qos::QosProfile;
use crate::sample::Sample;
use crate::service::{CallError, Client, ServiceOptions};
use crate::subscription::Subscription;

/// Why another node's parameters are not read or set.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ParameterClientError {
    /// A client could not be made.
    #[error(transparent)]
    Create(#[from] CreateError),
    /// No answer.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The node answers without one of the names that were asked for: one of them
    /// is not declared, or has no value, which leaves rclcpp's whole answer empty.
    #[error(
        "node \"{node}\" does not tell {names}: one of them is not declared or has no value; `pteros param list {node}` shows what there is"
    )]
    NotTold {
        /// The node.
        node: String,
        /// What was asked for.
        names: String,
    },
    /// The answer has other parts than were asked for.
    #[error(
        "node \"{node}\" answers {found} times to {asked} questions; its parameter services are broken"
    )]
    WrongCount {
        /// The node.
        node: String,
        /// Parts of the answer.
        found: usize,
        /// Parts of the question.
        asked: usize,
    },
}

/// Whether a node has set what it was asked to; its reason if not.
pub type SetOutcome = Result<(), String>;

/// Reads and sets another node's parameters. Thread-safe; a service is looked up
/// when it is first used.
///
/// All calls block, for the service to be there and for its answer, at most the
/// given time in all; they drive the network themselves and run no callbacks. So
/// a client does not reach a node that is spun by the thread that calls.
///
/// ```no_run
/// use std::time::Duration;
///
/// use pteros::parameter::{Parameter, ParameterClient};
/// use pteros::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let node = Context::new()?.node("tuner")?;
/// let wheels = ParameterClient::new(&node, "/wheels");
/// let patience = Duration::from_secs(1);
/// let speed = wheels.get(&["speed"], patience)?;
/// println!("{}", speed[0]);
/// let refused = wheels.set(vec![Parameter::new("speed", 0.5)], patience)?;
/// assert_eq!(refused, [Ok(())]);
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
    /// A client, of `node`, of the parameters of the node with that full name.
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

    /// The full name of the node whose parameters these are.
    pub fn remote(&self) -> &str {
        &self.remote
    }

    /// Values of parameters, in the order of `names`.
    ///
    /// # Errors
    /// See [`ParameterClientError`]; also when one name is unknown there.
    pub fn get(
        &self,
        names: &[&str],
        timeout: Duration,
    ) -> Result<Vec<ParameterValue>, ParameterClientError> {
        let request = srv::GetParameters_Request {
            names: owned(names),
        };
        let answer = self.call(&self.get, "get_parameters", &request, timeout)?;
        self.check_told(names, answer.values.len())?;
        let values = answer.values.iter();
        Ok(values
            .map(|value| ParameterValue::from_message(value).unwrap_or_default())
            .collect())
    }

    /// Types of parameters, in the order of `names`.
    ///
    /// # Errors
    /// See [`ParameterClientError`]; also when one name is unknown there.
    pub fn types(
        &self,
        names: &[&str],
        timeout: Duration,
    ) -> Result<Vec<ParameterType>, ParameterClientError> {
        let request = srv::GetParameterTypes_Request {
            names: owned(names),
        };
        let answer = self.call(&self.types, "get_parameter_types", &request, timeout)?;
        self.check_told(names, answer.types.len())?;
        let types = answer.types.iter();
        Ok(types
            .map(|number| ParameterType::from_number(*number).unwrap_or_default())
            .collect())
    }

    /// What is said about parameters, in the order of `names`.
    ///
    /// # Errors
    /// See [`ParameterClientError`]; also when one name is unknown there.
    pub fn describe(
        &self,
        names: &[&str],
        timeout: Duration,
    ) -> Result<Vec<msg::ParameterDescriptor>, ParameterClientError> {
        let request = srv::DescribeParameters_Request {
            names: owned(names),
        };
        let answer = self.call(&self.describe, "describe_parameters", &request, timeout)?;
        self.check_told(names, answer.descriptors.len())?;
        Ok(answer.descriptors.clone())
    }

    /// Names of parameters that are one of `prefixes` or begin with it and a dot, all
    /// for none; at most `depth` parts between dots below their prefix, 0 for any.
    ///
    /// # Errors
    /// See [`ParameterClientError`].
    pub fn list(
        &self,
        prefixes: &[&str],
        depth: u64,
        timeout: Duration,
    ) -> Result<Vec<String>, ParameterClientError> {
        let request = srv::ListParameters_Request {
            prefixes: owned(prefixes),
            depth,
        };
        let answer = self.call(&self.list, "list_parameters", &request, timeout)?;
        Ok(answer.result.names.clone())
    }

    /// Sets parameters one by one; whether each was set, or why not.
    ///
    /// # Errors
    /// See [`ParameterClientError`].
    pub fn set(
        &self,
        parameters: Vec<Parameter>,
        timeout: Duration,
    ) -> Result<Vec<SetOutcome>, ParameterClientError> {
        let asked = parameters.len();
        let request = srv::SetParameters_Request {
            parameters: messages(parameters),
        };
        let answer = self.call(&self.set, "set_parameters", &request, timeout)?;
        let found = answer.results.len();
        if found != asked {
            return Err(ParameterClientError::WrongCount {
                node: self.remote.clone(),
                found,
                asked,
            });
        }
        Ok(answer.results.iter().map(outcome).collect())
    }

    /// Sets all of these parameters or none; whether they were set, or why not.
    ///
    /// # Errors
    /// See [`ParameterClientError`].
    pub fn set_atomically(
        &self,
        parameters: Vec<Parameter>,
        timeout: Duration,
    ) -> Result<SetOutcome, ParameterClientError> {
        let request = srv::SetParametersAtomically_Request {
            parameters: messages(parameters),
        };
        let name = "set_parameters_atomically";
        let answer = self.call(&self.set_atomically, name, &request, timeout)?;
        Ok(outcome(&answer.result))
    }

    /// Deletes parameters of dynamic type; whether each was, or why not.
    ///
    /// # Errors
    /// See [`ParameterClientError`].
    pub fn delete(
        &self,
        names: &[&str],
        timeout: Duration,
    ) -> Result<Vec<SetOutcome>, ParameterClientError> {
        let nothing = |name: &&str| Parameter::new(*name, ParameterValue::NotSet);
        self.set(names.iter().map(nothing).collect(), timeout)
    }

    /// Sets what a file has for the node; each parameter's name with whether it was
    /// set, or why not. Without `wildcards` only what the file says for it by name.
    ///
    /// # Errors
    /// See [`ParameterClientError`].
    pub fn load(
        &self,
        file: &ParameterFile,
        wildcards: bool,
        timeout: Duration,
    ) -> Result<Vec<(String, SetOutcome)>, ParameterClientError> {
        let parameters = file.parameters_of(&self.remote, wildcards);
        if parameters.is_empty() {
            return Ok(Vec::new());
        }
        let names: Vec<_> = parameters.iter().map(|p| p.name.clone()).collect();
        let outcomes = self.set(parameters, timeout)?;
        Ok(names.into_iter().zip(outcomes).collect())
    }

    /// Calls `changed` for the node's changes on `/parameter_events`, in the
    /// executor of this client's node, for as long as the subscription is kept.
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
            .create_subscription("/parameter_events", qos, move |event: Sample<_>| {
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
    ) -> Result<Sample<S::Response>, ParameterClientError> {
        Ok(self.client(slot, name)?.call(request, timeout)?)
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
        let options = ServiceOptions::new(QosProfile::parameters());
        let client = self.node.create_client_with::<S>(&service, options)?;
        Ok(slot.get_or_init(|| client).clone())
    }

    fn check_told(&self, names: &[&str], found: usize) -> Result<(), ParameterClientError> {
        let (node, asked) = (self.remote.clone(), names.len());
        match found {
            _ if found == asked => Ok(()),
            0 => Err(ParameterClientError::NotTold {
                node,
                names: names.join(", "),
            }),
            _ => Err(ParameterClientError::WrongCount { node, found, asked }),
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

fn outcome(result: &msg::SetParametersResult) -> SetOutcome {
    match result.successful {
        true => Ok(()),
        false => Err(result.reason.clone()),
    }
}
