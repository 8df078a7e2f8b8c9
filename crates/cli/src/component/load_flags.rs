//! Flags of a component load, with ros2's names.

use anyhow::{Result, anyhow};
use clap::Args;
use pteros::args::RemapRule;
use pteros::interfaces::composition_interfaces::srv::LoadNodeRequest;
use pteros::interfaces::rcl_interfaces::msg::Parameter;
use pteros::log::Severity;
use pteros::parameter::ParameterText;

/// The component and its node options.
#[derive(Debug, Args)]
pub struct LoadFlags {
    /// Package of the component (e.g. pteros_demo_components)
    package_name: String,
    /// Class of the component (e.g. pteros_demo_components::Talker)
    plugin_name: String,
    /// Name of the node [default: set by the component]
    #[arg(
        short = 'n',
        long,
        value_name = "NAME",
        default_value = "",
        hide_default_value = true
    )]
    node_name: String,
    /// Namespace of the node [default: set by the component]
    #[arg(
        long,
        value_name = "NAMESPACE",
        default_value = "",
        hide_default_value = true
    )]
    node_namespace: String,
    /// Log level of the node
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<Severity>,
    /// Remap rule, FROM:=TO; may be repeated
    #[arg(short = 'r', long = "remap-rule", value_name = "RULE", value_parser = remap_rule)]
    remap_rules: Vec<String>,
    /// Parameter, NAME:=VALUE with the value in YAML; may be repeated
    #[arg(short = 'p', long = "parameter", value_name = "PARAMETER", value_parser = assignment)]
    parameters: Vec<Assignment>,
    /// Extra argument for the container, NAME:=VALUE (e.g. own_thread:=true); may be repeated
    #[arg(short = 'e', long = "extra-argument", value_name = "ARGUMENT", value_parser = assignment)]
    extra_arguments: Vec<Assignment>,
}

impl LoadFlags {
    /// The load request with these flags.
    pub fn request(&self) -> LoadNodeRequest {
        LoadNodeRequest {
            package_name: self.package_name.clone(),
            plugin_name: self.plugin_name.clone(),
            node_name: self.node_name.clone(),
            node_namespace: self.node_namespace.clone(),
            log_level: self.log_level.map_or(0, |level| level as u8),
            remap_rules: self.remap_rules.clone(),
            parameters: parameters(&self.parameters),
            extra_arguments: parameters(&self.extra_arguments),
        }
    }

    /// The same as arguments of a container program, which loads the component at
    /// its start.
    pub fn container_arguments(&self) -> Vec<String> {
        let mut words = vec!["--load".into()];
        words.extend([self.package_name.clone(), self.plugin_name.clone()]);
        let mut add = |flag: &str, value: &str| words.extend([flag.into(), value.into()]);
        for (flag, value) in [
            ("-n", &self.node_name),
            ("--node-namespace", &self.node_namespace),
        ] {
            if !value.is_empty() {
                add(flag, value);
            }
        }
        if let Some(level) = self.log_level {
            add("--log-level", &level.to_string());
        }
        self.remap_rules.iter().for_each(|rule| add("-r", rule));
        self.parameters.iter().for_each(|one| add("-p", &one.text));
        self.extra_arguments
            .iter()
            .for_each(|one| add("-e", &one.text));
        words
    }

    /// The class, for messages.
    pub fn class(&self) -> &str {
        &self.plugin_name
    }
}

/// Validates a remap rule as the container does.
fn remap_rule(text: &str) -> Result<String, String> {
    match RemapRule::parse("-r", text) {
        Ok(_) => Ok(text.into()),
        Err(error) => Err(error.to_string()),
    }
}

/// A parsed `NAME:=VALUE`.
#[derive(Clone, Debug)]
struct Assignment {
    text: String,
    parameter: Parameter,
}

fn parameters(assignments: &[Assignment]) -> Vec<Parameter> {
    let parameters = assignments.iter().map(|one| one.parameter.clone());
    parameters.collect()
}

fn assignment(text: &str) -> Result<Assignment> {
    let (name, value) = text
        .split_once(":=")
        .filter(|(name, _)| !name.is_empty())
        .ok_or_else(|| anyhow!("write NAME:=VALUE"))?;
    let value = ParameterText::lenient(value).value().clone();
    Ok(Assignment {
        text: text.into(),
        parameter: Parameter {
            name: name.into(),
            value: value.into_message(),
        },
    })
}
