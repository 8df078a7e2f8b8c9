//! Launch plan as JSON, for `--dry-run --json`.

mod parameters;

use std::collections::BTreeMap;

use pteros::parameter::ParameterValue;
use serde_json::{Value, json};

use super::{
    ComponentSpec, LaunchArgument, LaunchPlan, LogLevel, NodeKind, OutputDestinations, PlanStep,
    ProcessSpec, TimerClock,
};

impl LaunchPlan {
    /// The whole plan. Each environment lists only the differences to
    /// `environment`, the launcher's own; a null marks a variable that is unset.
    pub fn to_json(&self, environment: &BTreeMap<String, String>) -> Value {
        json!({
            "file": self.file.display().to_string(),
            "files": self.files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>(),
            "arguments": self.arguments.iter().map(LaunchArgument::to_json).collect::<Vec<_>>(),
            "remarks": self.notes,
            "left_out": self.left_out,
            "steps": steps(&self.steps, environment),
        })
    }
}

impl LaunchArgument {
    /// The argument, for `--show-args --json`.
    pub fn to_json(&self) -> Value {
        json!({
            "name": self.name,
            "default": self.default,
            "description": self.description,
            "choices": self.choices,
            "value": self.value,
            "declared_at": self.location.to_string(),
        })
    }
}

impl LogLevel {
    /// The label in log lines.
    pub fn label(self) -> &'static str {
        match self {
            Self::Debug => "DEBUG",
            Self::Info => "INFO",
            Self::Warning => "WARNING",
            Self::Error => "ERROR",
        }
    }
}

fn steps(list: &[PlanStep], environment: &BTreeMap<String, String>) -> Vec<Value> {
    list.iter().map(|step| one(step, environment)).collect()
}

fn one(step: &PlanStep, environment: &BTreeMap<String, String>) -> Value {
    match step {
        PlanStep::Start(start) => process(start, environment),
        PlanStep::Load(load) => json!({
            "step": "load",
            "container": load.container,
            "components": load.components.iter().map(component).collect::<Vec<_>>(),
            "at": load.location.to_string(),
        }),
        PlanStep::Timer(timer) => json!({
            "step": "timer",
            "period_s": timer.period.as_secs_f64(),
            "clock": match timer.clock {
                TimerClock::Steady => "steady",
                TimerClock::Ros { simulated: false } => "ros",
                TimerClock::Ros { simulated: true } => "simulated",
            },
            "cancel_on_shutdown": timer.cancel_on_shutdown,
            "steps": steps(&timer.steps, environment),
            "at": timer.location.to_string(),
        }),
        PlanStep::Log(log) => json!({
            "step": "log",
            "level": log.level.label(),
            "message": log.text,
            "at": log.location.to_string(),
        }),
        PlanStep::Shutdown(shutdown) => json!({
            "step": "shutdown",
            "reason": shutdown.reason,
            "at": shutdown.location.to_string(),
        }),
    }
}

fn process(process: &ProcessSpec, environment: &BTreeMap<String, String>) -> Value {
    let unset = environment.keys();
    let unset = unset.filter(|name| !process.environment.contains_key(*name));
    let set = process.environment.iter();
    let set = set.filter(|(name, value)| environment.get(*name) != Some(value));
    let changed: serde_json::Map<String, Value> = set
        .map(|(name, value)| (name.clone(), json!(value)))
        .chain(unset.map(|name| (name.clone(), Value::Null)))
        .collect();
    let node = process.node.as_ref().map(|node| {
        let (kind, autostart) = match node.kind {
            NodeKind::Plain => ("plain", None),
            NodeKind::Container => ("container", None),
            NodeKind::Lifecycle { autostart } => ("lifecycle", Some(autostart)),
        };
        json!({
            "package": node.package,
            "executable": node.executable,
            "name": node.name,
            "namespace": node.namespace,
            "full_name": node.full_name(),
            "kind": kind,
            "autostart": autostart,
            "depends_on": node.depends_on,
        })
    });
    let respawn = process.respawn.map(|respawn| {
        json!({ "delay_s": respawn.delay.as_secs_f64(), "retries_max": respawn.retries_max })
    });
    json!({
        "step": "start",
        "process": process.name,
        "command": process.command,
        "environment": changed,
        "cwd": process.working_folder.as_ref().map(|folder| folder.display().to_string()),
        "output": { "stdout": destinations(process.output.stdout), "stderr": destinations(process.output.stderr) },
        "emulate_tty": process.emulate_tty,
        "respawn": respawn,
        "sigterm_timeout_s": process.sigterm_timeout.as_secs_f64(),
        "sigkill_timeout_s": process.sigkill_timeout.as_secs_f64(),
        "on_exit": steps(&process.on_exit, environment),
        "node": node,
        "parameters": parameters::sources(process),
        "at": process.location.to_string(),
    })
}

fn destinations(to: OutputDestinations) -> Vec<&'static str> {
    let all = [
        (to.screen, "screen"),
        (to.log, "log"),
        (to.own_files, "own_log"),
    ];
    all.into_iter()
        .filter_map(|(is_on, name)| is_on.then_some(name))
        .collect()
}

fn component(component: &ComponentSpec) -> Value {
    json!({
        "package": component.package,
        "plugin": component.class,
        "name": component.name,
        "namespace": component.namespace,
        "parameters": named(&component.parameters),
        "remaps": component.remaps,
        "extra_arguments": named(&component.extra_arguments),
        "at": component.location.to_string(),
    })
}

fn named(values: &[(String, ParameterValue)]) -> Value {
    let values = values.iter();
    values
        .map(|(name, value)| (name.clone(), json(value)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

pub(super) fn json(value: &ParameterValue) -> Value {
    match value {
        ParameterValue::Bool(value) => json!(value),
        ParameterValue::Integer(value) => json!(value),
        ParameterValue::Double(value) => json!(value),
        ParameterValue::String(value) => json!(value),
        ParameterValue::ByteArray(values) => json!(values),
        ParameterValue::BoolArray(values) => json!(values),
        ParameterValue::IntegerArray(values) => json!(values),
        ParameterValue::DoubleArray(values) => json!(values),
        ParameterValue::StringArray(values) => json!(values),
        _ => Value::Null,
    }
}
