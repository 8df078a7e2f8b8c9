//! Load request of a component, translated to node options (rclcpp_components'
//! `ComponentManager::create_node_options`).

use pteros::args::Arguments;
use pteros::interfaces::composition_interfaces::srv::LoadNodeRequest;
use pteros::interfaces::rcl_interfaces::msg::{Parameter, ParameterType};
use pteros::log::Severity;
use pteros::parameter::{Parameter as NodeParameter, ParameterValue};
use pteros::{NodeOptions, thread::ThreadSettings};

use crate::error::LoadError;

/// The options of a load request.
pub(super) struct LoadOptions {
    pub(super) options: NodeOptions,
    /// Settings of the component's own thread, if it gets one.
    pub(super) thread_settings: Option<ThreadSettings>,
    /// Log level of the node's logger, if the request sets one.
    pub(super) log_level: Option<Severity>,
}

impl LoadOptions {
    pub(super) fn read(request: &LoadNodeRequest) -> Result<Self, LoadError> {
        let mut extra = ExtraArguments::default();
        for argument in &request.extra_arguments {
            extra
                .apply(argument)
                .map_err(|reason| LoadError::Argument {
                    class: request.plugin_name.clone(),
                    argument: format!("extra argument {:?}", argument.name),
                    reason,
                })?;
        }
        let log_level = match request.log_level {
            0 => None,
            number => Some(
                Severity::try_from(number).map_err(|error| LoadError::Argument {
                    class: request.plugin_name.clone(),
                    argument: "log_level".into(),
                    reason: error.to_string(),
                })?,
            ),
        };
        let mut overrides = Vec::new();
        for given in &request.parameters {
            let value = ParameterValue::from_message(&given.value).ok_or_else(|| {
                let number = given.value.r#type;
                LoadError::Argument {
                    class: request.plugin_name.clone(),
                    argument: format!("parameter {:?}", given.name),
                    reason: format!("has the type {number}, which does not exist; use 0 to 9"),
                }
            })?;
            let name = given.name.clone();
            overrides.push(NodeParameter { name, value });
        }
        let options = NodeOptions::default()
            .arguments(arguments(request)?)
            .parameter_overrides(overrides)
            .use_global_arguments(extra.forward_global_arguments)
            .use_intra_process_comms(extra.use_intra_process_comms);
        Ok(Self {
            options,
            thread_settings: extra.thread_settings,
            log_level,
        })
    }
}

/// The request's remap rules and names as ROS arguments. The first matching rule
/// wins, so the rules of the request precede its names.
fn arguments(request: &LoadNodeRequest) -> Result<Arguments, LoadError> {
    let mut words = vec!["--ros-args".to_string()];
    let mut remap = |rule: String| words.extend(["-r".into(), rule]);
    request.remap_rules.iter().cloned().for_each(&mut remap);
    if !request.node_name.is_empty() {
        remap(format!("__node:={}", request.node_name));
    }
    if !request.node_namespace.is_empty() {
        remap(format!("__ns:={}", request.node_namespace));
    }
    let (arguments, _) = Arguments::parse(words).map_err(|error| LoadError::Remap {
        class: request.plugin_name.clone(),
        source: Box::new(error),
    })?;
    Ok(arguments)
}

/// Extra arguments: those of rclcpp, and Pteros' thread settings.
struct ExtraArguments {
    use_intra_process_comms: bool,
    forward_global_arguments: bool,
    thread_settings: Option<ThreadSettings>,
}

impl Default for ExtraArguments {
    fn default() -> Self {
        Self {
            // ROS 2's default is off, since intra-process communication is
            // experimental there.
            use_intra_process_comms: true,
            forward_global_arguments: false,
            thread_settings: None,
        }
    }
}

impl ExtraArguments {
    fn apply(&mut self, argument: &Parameter) -> Result<(), String> {
        let value = &argument.value;
        let boolean = || match value.r#type {
            ParameterType::PARAMETER_BOOL => Ok(value.bool_value),
            _ => Err("must be a boolean; write true or false".to_string()),
        };
        match argument.name.as_str() {
            "use_intra_process_comms" => self.use_intra_process_comms = boolean()?,
            "forward_global_arguments" => self.forward_global_arguments = boolean()?,
            "own_thread" => {
                let own = boolean()?;
                self.thread_settings = own.then(|| self.thread_settings.take().unwrap_or_default());
            }
            "thread.priority" => {
                let text = match value.r#type {
                    ParameterType::PARAMETER_INTEGER => value.integer_value.to_string(),
                    _ => return Err("must be an integer from 1 to 99".into()),
                };
                let priority = text.parse().map_err(|e| format!("{e}"))?;
                self.thread_settings.get_or_insert_default().priority = Some(priority);
            }
            "thread.cpus" => {
                let text = match value.r#type {
                    ParameterType::PARAMETER_INTEGER => value.integer_value.to_string(),
                    ParameterType::PARAMETER_STRING => value.string_value.clone(),
                    _ => return Err("must be a CPU, or a list of CPUs as '0,4-7'".into()),
                };
                let cpus = text.parse().map_err(|e| format!("{e}"))?;
                self.thread_settings.get_or_insert_default().cpus = Some(cpus);
            }
            _ => {
                return Err("is unknown; known are use_intra_process_comms, \
                            forward_global_arguments, own_thread, thread.priority and thread.cpus"
                    .into());
            }
        }
        Ok(())
    }
}
