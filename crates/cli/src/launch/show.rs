//! What a launch file would do, or what is wrong with it.

use crate::outcome::Failed;
use crate::shared::Shared;
use anyhow::{Result, bail};
use pteros_launch::plan::{Argument, Level, Process, Step, TimerClock};
use pteros_launch::{Faults, Plan, Request};
use serde_json::json;

/// Every fault as a line of its own.
pub fn faults(shared: &Shared, request: &Request, faults: &Faults) -> Result<()> {
    if shared.console.json {
        let list = faults.iter().map(|fault| {
            let place = fault.place.as_ref();
            json!({
                "file": place.map(|place| place.file.display().to_string()),
                "line": place.map(|place| place.line),
                "column": place.map(|place| place.column),
                "message": fault.message,
            })
        });
        let list: Vec<_> = list.collect();
        shared.console.json(&json!({
            "file": request.file.display().to_string(),
            "ok": false,
            "faults": list,
            "more": faults.more(),
        }))?;
        return Err(Failed.into());
    }
    bail!("{faults}")
}

/// That nothing is wrong.
pub fn checked(shared: &Shared, plan: &Plan) -> Result<()> {
    let console = shared.console;
    let file = plan.file.display().to_string();
    let count = plan.processes().len();
    if console.json {
        return Ok(console.json(&json!({
            "file": file,
            "ok": true,
            "faults": [],
            "more": 0,
            "remarks": plan.remarks,
            "processes": count,
        }))?);
    }
    let files = plan.files.len();
    Ok(console.line(format!(
        "{file}: nothing is wrong; {count} processes, {files} files"
    ))?)
}

/// The declared arguments, as `ros2 launch --show-args` has them.
pub fn arguments(shared: &Shared, request: &Request) -> Result<()> {
    let arguments = match Plan::arguments(request) {
        Ok(arguments) => arguments,
        Err(found) => return faults(shared, request, &found),
    };
    let console = shared.console;
    if console.json {
        let rows: Vec<_> = arguments.iter().map(Argument::to_json).collect();
        return Ok(console.json(&json!(rows))?);
    }
    if arguments.is_empty() {
        return Ok(console.line("No arguments.")?);
    }
    console.line("Arguments (pass arguments as '<name>:=<value>'):")?;
    for argument in arguments {
        console.line(format!("\n    '{}':", argument.name))?;
        let description = argument.description.as_deref();
        console.line(format!(
            "        {}",
            description.unwrap_or("no description given")
        ))?;
        if !argument.choices.is_empty() {
            let choices: Vec<String> = argument.choices.iter().map(|c| format!("'{c}'")).collect();
            console.line(format!(
                "        Valid choices are: [{}]",
                choices.join(", ")
            ))?;
        }
        if let Some(default) = argument.default {
            console.line(format!("        (default: '{default}')"))?;
        }
    }
    Ok(())
}

/// What would be started.
pub fn plan(shared: &Shared, plan: &Plan, request: &Request) -> Result<()> {
    let console = shared.console;
    if console.json {
        return Ok(console.json(&plan.to_json(&request.environment))?);
    }
    console.line(format!("{}:", plan.file.display()))?;
    for argument in &plan.arguments {
        let value = argument.value.as_deref().unwrap_or("");
        console.line(format!("  argument {} = {value}", argument.name))?;
    }
    steps(shared, &plan.steps, "  ")
}

fn steps(shared: &Shared, list: &[Step], indent: &str) -> Result<()> {
    let console = shared.console;
    let deeper = format!("{indent}  ");
    for step in list {
        match step {
            Step::Start(one) => process(shared, one, indent)?,
            Step::Load(load) => {
                console.line(format!("{indent}load into {}", load.container))?;
                for component in &load.components {
                    let name = format!("{}/{}", component.namespace, component.name);
                    console.line(format!("{deeper}{} as {name}", component.class))?;
                }
            }
            Step::Timer(timer) => {
                let seconds = timer.period.as_secs_f64();
                let clock = match timer.clock {
                    TimerClock::Steady => "",
                    TimerClock::Ros { .. } => " of ROS time",
                };
                console.line(format!("{indent}after {seconds} s{clock}"))?;
                steps(shared, &timer.steps, &deeper)?;
            }
            Step::Log(log) => {
                let level = match log.level {
                    Level::Info => String::new(),
                    other => format!(" ({})", other.label()),
                };
                console.line(format!("{indent}say{level}: {}", log.text))?;
            }
            Step::Shutdown(stop) => console.line(format!("{indent}shut down: {}", stop.reason))?,
        }
    }
    Ok(())
}

fn process(shared: &Shared, process: &Process, indent: &str) -> Result<()> {
    let console = shared.console;
    let words: Vec<String> = process.words.iter().map(|word| quoted(word)).collect();
    console.line(format!("{indent}start {}", process.name))?;
    console.line(format!("{indent}  {}", words.join(" ")))?;
    if !process.on_exit.is_empty() {
        console.line(format!("{indent}  when it has ended"))?;
        steps(shared, &process.on_exit, &format!("{indent}    "))?;
    }
    Ok(())
}

/// A word as one would type it.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_-./:=~@%+,".contains(letter);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.into(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}
