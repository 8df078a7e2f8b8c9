//! The shapes program that every DDS vendor has: `shapes -P -t Square -c BLUE` in
//! one terminal, any vendor's `-S -t Square` in another.
//!
//! Options and lines are those of the OMG's interoperability test program, so
//! that its scripts can also control this program. The long options below its own
//! set the policies that it omits. The program ends with Ctrl-C, or after `--num-iterations`.

mod arguments;
mod publish;
mod report;
mod subscribe;

use std::process::ExitCode;

use clap::Parser;
use pteros::prelude::*;

use arguments::Arguments;

/// The topics of `--num-topics`: Square, Square1, Square2 ...
fn topics(arguments: &Arguments) -> Vec<String> {
    numbered(&arguments.topic, arguments.num_topics)
}

/// A name, then the name with the suffixes 1, 2, ...
fn numbered(name: &str, count: usize) -> Vec<String> {
    (0..count)
        .map(|n| match n {
            0 => name.to_owned(),
            n => format!("{name}{n}"),
        })
        .collect()
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(()) => {
            println!("Done.");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("shapes: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let profile = arguments.profile()?;
    let context = Context::with_options(ContextOptions {
        use_environment: true,
        domain_id: arguments.domain,
        store_folder: arguments.store_folder.clone(),
        ..ContextOptions::default()
    })?;
    let node = context.create_node("shapes")?;
    if arguments.publish {
        publish::run(&node, arguments, &profile)
    } else {
        subscribe::run(&node, arguments, &profile)
    }
}

#[cfg(test)]
mod tests {
    use super::numbered;

    #[test]
    fn further_topics_and_colors_are_numbered() {
        assert_eq!(numbered("BLUE", 3), ["BLUE", "BLUE1", "BLUE2"]);
    }
}
