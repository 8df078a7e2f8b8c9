//! Command line of the peers in Rust: a verb, then options with a value each. README.md
//! of `verify/interop` describes them. ZENOH_CONFIG_OVERRIDE has the endpoints.

use std::process::exit;

const USAGE: &str = "usage: VERB [--topic NAME] [--node NAME] [--count N] [--durability volatile|transient_local] [--start now|stdin]; VERB is pub, sub, server or client";

pub struct Options {
    pub verb: String,
    pub topic: String,
    pub node: String,
    pub count: u64,
    pub is_transient_local: bool,
    /// Waits for a line before it sends.
    pub waits: bool,
}

impl Options {
    /// Reads the command line; a wrong one ends the program with 2.
    pub fn read(node: &str) -> Self {
        let mut words = std::env::args().skip(1);
        let mut options = Self {
            verb: words.next().unwrap_or_else(|| refuse(USAGE)),
            topic: "chatter".to_owned(),
            node: node.to_owned(),
            count: 3,
            is_transient_local: false,
            waits: false,
        };
        while let Some(name) = words.next() {
            let value = words.next();
            let value = value.unwrap_or_else(|| refuse(&format!("{name} lacks a value")));
            let is = |no: &str, yes: &str| match value.as_str() {
                word if word == yes => true,
                word if word == no => false,
                word => refuse(&format!("{name} {word}: expected {no} or {yes}")),
            };
            match name.as_str() {
                "--topic" => options.topic = value,
                "--node" => options.node = value,
                "--count" => {
                    let count = value.parse();
                    options.count =
                        count.unwrap_or_else(|e| refuse(&format!("{name} {value}: {e}")));
                }
                "--durability" => options.is_transient_local = is("volatile", "transient_local"),
                "--start" => options.waits = is("now", "stdin"),
                _ => refuse(&format!("{name}: no such option; {USAGE}")),
            }
        }
        options
    }

    /// Waits for a line if the command line asks for that.
    pub fn wait_for_start(&self) {
        if self.waits {
            wait_for_line();
        }
    }
}

pub fn wait_for_line() {
    let mut line = String::new();
    let _ = std::io::stdin().read_line(&mut line);
}

/// Ends the program, as a wrong command line does.
pub fn refuse(why: &str) -> ! {
    eprintln!("{why}");
    exit(2);
}
