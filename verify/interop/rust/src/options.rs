//! Command line of the peers in Rust: a verb, then options with a value each. README.md
//! of `verify/interop` describes them. ZENOH_CONFIG_OVERRIDE has the endpoints of Zenoh.

#![allow(dead_code, reason = "each stack supports a part of it")]

use std::process::exit;
use std::str::FromStr;
use std::time::Duration;

const USAGE: &str = "usage: VERB [--option value]...; verify/interop/README.md has the options";

pub struct Options {
    pub verb: String,
    pub topic: String,
    pub node: String,
    pub domain: u16,
    /// 0: unlimited, over DDS.
    pub count: u64,
    /// Between two samples; zero is as fast as possible.
    pub period: Duration,
    pub is_bytes: bool,
    /// Exact bytes of each sample.
    pub size: Option<usize>,
    pub is_transient_local: bool,
    pub is_reliable: bool,
    /// None: all samples are kept.
    pub depth: Option<u32>,
    /// Matched readers before the first sample.
    pub readers: usize,
    /// Waits for a line before it sends.
    pub waits: bool,
    /// To stay after the last sample.
    pub linger: Duration,
    /// Zero: none.
    pub timeout: Duration,
}

impl Options {
    /// Reads the command line; a wrong one ends the program with 2.
    pub fn read(topic: &str, node: &str, count: u64) -> Self {
        let mut words = std::env::args().skip(1);
        let mut options = Self {
            verb: words.next().unwrap_or_else(|| refuse(USAGE)),
            topic: topic.to_owned(),
            node: node.to_owned(),
            domain: 0,
            count,
            period: Duration::from_millis(100),
            is_bytes: false,
            size: None,
            is_transient_local: false,
            is_reliable: true,
            depth: Some(10),
            readers: 0,
            waits: false,
            linger: Duration::ZERO,
            timeout: Duration::ZERO,
        };
        while let Some(name) = words.next() {
            let value = words.next();
            let value = value.unwrap_or_else(|| refuse(&format!("{name} lacks a value")));
            options.set(&name, &value);
        }
        options
    }

    fn set(&mut self, name: &str, value: &str) {
        let is = |no: &str, yes: &str| match value {
            word if word == yes => true,
            word if word == no => false,
            word => refuse(&format!("{name} {word}: expected {no} or {yes}")),
        };
        match name {
            "--topic" => self.topic = value.to_owned(),
            "--node" => self.node = value.to_owned(),
            "--domain" => self.domain = number(name, value),
            "--count" => self.count = number(name, value),
            "--rate" => self.period = period(number(name, value)),
            "--type" => self.is_bytes = is("string", "bytes"),
            "--size" => self.size = Some(number(name, value)),
            "--durability" => self.is_transient_local = is("volatile", "transient_local"),
            "--reliability" => self.is_reliable = is("best_effort", "reliable"),
            "--history" => {
                let depth = value.strip_prefix("keep_last:");
                self.depth = depth.map(|depth| number(name, depth));
                if depth.is_none() {
                    is("keep_last:N", "keep_all");
                }
            }
            "--wait-matched" => self.readers = number(name, value),
            "--start" => self.waits = is("now", "stdin"),
            "--linger" => self.linger = Duration::from_secs(number(name, value)),
            "--timeout" => self.timeout = Duration::from_secs(number(name, value)),
            _ => refuse(&format!("{name}: no such option; {USAGE}")),
        }
    }

    /// Waits for a line if the command line asks for that.
    pub fn wait_for_start(&self) {
        if self.waits {
            wait_for_line();
        }
    }
}

fn number<T: FromStr<Err: std::fmt::Display>>(name: &str, value: &str) -> T {
    let number = value.parse();
    number.unwrap_or_else(|error| refuse(&format!("{name} {value}: {error}")))
}

fn period(rate: f64) -> Duration {
    Duration::try_from_secs_f64(1.0 / rate).unwrap_or(Duration::ZERO)
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
