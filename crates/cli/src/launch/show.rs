//! Output of `--check`, `--show-args`, `--dry-run` and of launch file errors.

use crate::cli_context::CliContext;
use crate::exit_errors::Failed;
use anyhow::{Result, bail};
use pteros_launch::plan::{LaunchArgument, LogLevel, PlanStep, ProcessSpec, TimerClock};
use pteros_launch::{LaunchFileErrors, LaunchPlan, LaunchRequest};
use serde_json::json;

/// Prints one line per error.
pub fn print_errors(
    cli: &CliContext,
    request: &LaunchRequest,
    errors: &LaunchFileErrors,
) -> Result<()> {
    if cli.console.json {
        let list = errors.iter().map(|error| {
            let place = error.location.as_ref();
            json!({
                "file": place.map(|place| place.file.display().to_string()),
                "line": place.map(|place| place.line),
                "column": place.map(|place| place.column),
                "message": error.message,
            })
        });
        let list: Vec<_> = list.collect();
        cli.console.json(&json!({
            "file": request.file.display().to_string(),
            "ok": false,
            "faults": list,
            "more": errors.more(),
        }))?;
        return Err(Failed.into());
    }
    bail!("{errors}")
}

/// Reports that the launch file has no errors.
pub fn print_checked(cli: &CliContext, plan: &LaunchPlan) -> Result<()> {
    let console = cli.console;
    let file = plan.file.display().to_string();
    let count = plan.processes().len();
    if console.json {
        return Ok(console.json(&json!({
            "file": file,
            "ok": true,
            "faults": [],
            "more": 0,
            "remarks": plan.notes,
            "left_out": plan.left_out,
            "processes": count,
        }))?);
    }
    let processes = if count == 1 { "process" } else { "processes" };
    let files = match plan.files.len() {
        1 => "1 file".to_owned(),
        count => format!("{count} files"),
    };
    let left_out = match plan.left_out.len() {
        0 => String::new(),
        count => format!(", {count} left out"),
    };
    Ok(console.line(format!(
        "{file}: no errors; {count} {processes}, {files}{left_out}"
    ))?)
}

/// Prints the declared arguments as `ros2 launch --show-args` does.
pub fn print_arguments(cli: &CliContext, request: &LaunchRequest) -> Result<()> {
    let arguments = match LaunchPlan::arguments(request) {
        Ok(arguments) => arguments,
        Err(found) => return print_errors(cli, request, &found),
    };
    let console = cli.console;
    if console.json {
        let rows: Vec<_> = arguments.iter().map(LaunchArgument::to_json).collect();
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

pub fn print_plan(cli: &CliContext, plan: &LaunchPlan, request: &LaunchRequest) -> Result<()> {
    let console = cli.console;
    if console.json {
        return Ok(console.json(&plan.to_json(&request.environment))?);
    }
    console.line(format!("{}:", plan.file.display()))?;
    for argument in &plan.arguments {
        let value = argument.value.as_deref().unwrap_or("");
        console.line(format!("  argument {} = {value}", argument.name))?;
    }
    print_steps(cli, &plan.steps, "  ")
}

fn print_steps(cli: &CliContext, list: &[PlanStep], indent: &str) -> Result<()> {
    let console = cli.console;
    let deeper = format!("{indent}  ");
    for step in list {
        match step {
            PlanStep::Start(one) => print_process(cli, one, indent)?,
            PlanStep::Load(load) => {
                console.line(format!("{indent}load into {}", load.container))?;
                for component in &load.components {
                    let name = format!("{}/{}", component.namespace, component.name);
                    console.line(format!("{deeper}{} as {name}", component.class))?;
                }
            }
            PlanStep::Timer(timer) => {
                let seconds = timer.period.as_secs_f64();
                let clock = match timer.clock {
                    TimerClock::Steady => "",
                    TimerClock::Ros { .. } => " of ROS time",
                };
                console.line(format!("{indent}after {seconds} s{clock}"))?;
                print_steps(cli, &timer.steps, &deeper)?;
            }
            PlanStep::Log(log) => {
                let level = match log.level {
                    LogLevel::Info => String::new(),
                    other => format!(" ({})", other.label()),
                };
                console.line(format!("{indent}log{level}: {}", log.text))?;
            }
            PlanStep::Shutdown(stop) => {
                console.line(format!("{indent}shut down: {}", stop.reason))?
            }
        }
    }
    Ok(())
}

fn print_process(cli: &CliContext, process: &ProcessSpec, indent: &str) -> Result<()> {
    let console = cli.console;
    let words: Vec<String> = process.command.iter().map(|word| quoted(word)).collect();
    console.line(format!("{indent}start {}", process.name))?;
    console.line(format!("{indent}  {}", words.join(" ")))?;
    if !process.on_exit.is_empty() {
        console.line(format!("{indent}  when it has exited"))?;
        print_steps(cli, &process.on_exit, &format!("{indent}    "))?;
    }
    Ok(())
}

/// A word, quoted for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_-./:=~@%+,".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.into()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}
