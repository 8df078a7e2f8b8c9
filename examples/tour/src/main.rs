//! One small program per feature. Each file is complete: to use it, rename its
//! `main`. All share one binary, so that they are built and linked once:
//! `cargo run -p tour -- talker`, `cargo run -p tour -- listener` …

mod action;
mod dynamic_types;
mod event_loop;
mod graph_watch;
mod intra_process;
mod late_joiner;
mod listener;
mod loaned_message;
mod managed_nodes;
mod parameters;
mod qos_events;
mod service;
mod talker;
mod timer;

use std::error::Error;
use std::process::ExitCode;

/// Name, program and description of an example.
type Example = (
    &'static str,
    fn() -> Result<(), Box<dyn Error>>,
    &'static str,
);

const EXAMPLES: &[Example] = &[
    ("talker", talker::main, "publishes a greeting every second"),
    ("listener", listener::main, "prints the talker's messages"),
    ("timer", timer::main, "a timer, cancelled after three ticks"),
    (
        "qos_events",
        qos_events::main,
        "reports incompatible QoS on both sides",
    ),
    (
        "late_joiner",
        late_joiner::main,
        "gets earlier messages: transient local",
    ),
    (
        "parameters",
        parameters::main,
        "a parameter that another node changes",
    ),
    (
        "dynamic_types",
        dynamic_types::main,
        "a message type known at run time only",
    ),
    (
        "event_loop",
        event_loop::main,
        "a node in an external event loop",
    ),
    (
        "graph_watch",
        graph_watch::main,
        "prints the graph as it changes",
    ),
    (
        "intra_process",
        intra_process::main,
        "intra-process delivery without a copy",
    ),
    (
        "loaned_message",
        loaned_message::main,
        "an image in a loaned message, without a copy",
    ),
    (
        "managed_nodes",
        managed_nodes::main,
        "two managed nodes, brought up and down",
    ),
    (
        "service",
        service::main,
        "a server and its client, with a future and a callback",
    ),
    (
        "action",
        action::main,
        "one goal that succeeds, and one that is cancelled",
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
    eprintln!("{name:?} is not an example; name one of:{}", list());
    Ok(ExitCode::from(2))
}

/// One line per example.
fn list() -> String {
    let line = |(name, _, idea): &Example| format!("\n  {name:14} {idea}");
    EXAMPLES.iter().map(line).collect()
}
