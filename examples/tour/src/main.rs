//! One small program per idea. Each file here is whole: copy it, call its
//! `main` yours. They share a binary so that they are built and linked once:
//! `cargo run -p tour -- talker`, `cargo run -p tour -- listener` …

mod action;
mod dynamic_types;
mod event_loop;
mod graph_watch;
mod in_place;
mod intra_process;
mod late_joiner;
mod listener;
mod managed;
mod parameters;
mod qos_events;
mod talker;
mod timer;

use std::error::Error;
use std::process::ExitCode;

/// A program and what it shows.
type Example = (
    &'static str,
    fn() -> Result<(), Box<dyn Error>>,
    &'static str,
);

const EXAMPLES: &[Example] = &[
    ("talker", talker::main, "publishes a greeting each second"),
    ("listener", listener::main, "prints what the talker says"),
    ("timer", timer::main, "a timer, cancelled after three ticks"),
    (
        "qos_events",
        qos_events::main,
        "learns why two do not match",
    ),
    (
        "late_joiner",
        late_joiner::main,
        "what was said before is heard",
    ),
    (
        "parameters",
        parameters::main,
        "a value that others may change",
    ),
    (
        "dynamic_types",
        dynamic_types::main,
        "a type known at run time",
    ),
    (
        "event_loop",
        event_loop::main,
        "a guest in a poll loop of your own",
    ),
    (
        "graph_watch",
        graph_watch::main,
        "prints the graph as it changes",
    ),
    (
        "intra_process",
        intra_process::main,
        "hands over without a copy",
    ),
    (
        "in_place",
        in_place::main,
        "an image written and read where it lies",
    ),
    (
        "managed",
        managed::main,
        "two managed nodes, brought up and down",
    ),
    (
        "action",
        action::main,
        "a goal that ends, and one that is cancelled",
    ),
];

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let Some(name) = std::env::args().nth(1) else {
        println!("cargo run -p tour -- NAME, one of:{}", list());
        return Ok(ExitCode::SUCCESS);
    };
    if let Some((_, example, _)) = EXAMPLES.iter().find(|(known, ..)| *known == name) {
        return example().map(|()| ExitCode::SUCCESS);
    }
    eprintln!("{name:?} is no example; name one of:{}", list());
    Ok(ExitCode::from(2))
}

/// A line for each example.
fn list() -> String {
    let line = |(name, _, idea): &Example| format!("\n  {name:14} {idea}");
    EXAMPLES.iter().map(line).collect()
}
