//! Wrong inputs of every noun: each ends within seconds, with a nonzero exit code and
//! an error that names the thing, the value and the way out.

#![allow(
    clippy::disallowed_methods,
    reason = "a deadline for commands that hang"
)]

use crate::support::Domain;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

/// A command line, and what its error says.
struct WrongInput {
    words: Vec<&'static str>,
    /// 2 if the parser refuses it.
    code: i32,
    /// The thing, its value, and the way out.
    says: Vec<&'static str>,
}

impl WrongInput {
    /// Parses a line of `wrong_inputs.txt`; `None` for one of a build without Zenoh in
    /// one with it.
    fn parse(line: &'static str) -> Option<Self> {
        let line = match line.strip_prefix("[without zenoh] ") {
            Some(_) if cfg!(feature = "zenoh") => return None,
            rest => rest.unwrap_or(line),
        };
        let (input, says) = line.split_once(" => ").expect(line);
        let (code, words) = input.split_once(' ').expect(line);
        // Every second part is between backquotes.
        let words = words.split('`').enumerate().flat_map(|(at, part)| {
            let is_one_word = at % 2 == 1;
            let separator = if is_one_word { '`' } else { ' ' };
            let parts = part.split(separator);
            parts.filter(move |word| is_one_word || !word.is_empty())
        });
        Some(Self {
            words: words.collect(),
            code: code.parse().expect(line),
            says: says.split(" | ").collect(),
        })
    }
}

/// Far more than a command needs on a busy machine; a hang takes longer.
const DEADLINE: Duration = Duration::from_secs(60);
/// Words that leave the reader without a way out.
const POOR_WORDS: [&str; 7] = [
    "\" is no ",
    "' is no ",
    "does not tell",
    "panicked",
    "os error",
    "Err(",
    "None",
];

/// The exit code and the error output; `None` for a command that hangs.
fn run(mut command: Command) -> Option<(Option<i32>, String)> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let id = child.id();
    let (sender, receiver) = channel();
    std::thread::spawn(move || drop(sender.send(child.wait_with_output())));
    match receiver.recv_timeout(DEADLINE) {
        Ok(output) => {
            let output = output.unwrap();
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            Some((output.status.code(), text))
        }
        Err(_) => {
            let _ = Command::new("kill").arg(id.to_string()).status();
            None
        }
    }
}

/// The faults of the answer to a wrong input.
fn fault(domain: &Domain, input: &WrongInput) -> Option<String> {
    let mut command = domain.command(&input.words);
    for variable in [
        "ROS_SECURITY_KEYSTORE",
        "PTEROS_COMPONENT_PATH",
        "PTEROS_PREFIX",
    ] {
        command.env_remove(variable);
    }
    command.current_dir(env!("CARGO_TARGET_TMPDIR"));
    let Some((code, text)) = run(command) else {
        return Some("hangs".into());
    };
    if code != Some(input.code) {
        return Some(format!(
            "exit code {code:?} instead of {}:\n{text}",
            input.code
        ));
    }
    if let Some(part) = input.says.iter().find(|part| !text.contains(**part)) {
        return Some(format!("does not say {part:?}:\n{text}"));
    }
    let poor = POOR_WORDS.iter().find(|word| text.contains(**word));
    poor.map(|word| format!("says {word:?}:\n{text}"))
}

#[test]
fn every_wrong_input_ends_with_the_thing_the_value_and_the_way_out() {
    let lines = include_str!("wrong_inputs.txt").lines();
    let inputs = lines.filter(|line| !line.starts_with('#'));
    let inputs: Vec<_> = inputs.filter_map(WrongInput::parse).collect();
    assert!(inputs.len() >= 120);
    let domain = Domain::new();
    let words = "topic pub /chatter std_msgs/msg/String -r 20 -p 0 -n greeter";
    let mut publisher = domain.start_with(words, "data: Hello");
    assert_eq!(publisher.line(), "publisher: beginning loop");
    let _talker = domain.start("demo talker --ros-args -r chatter:=hello");
    domain.run_until("param list /talker", |answer| answer.code == Some(0));
    let (next, faults) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while let Some(input) = inputs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Some(fault) = fault(&domain, input) {
                        let line = format!("pteros {}: {fault}", input.words.join(" "));
                        faults.lock().unwrap().push(line);
                    }
                }
            });
        }
    });
    let faults = faults.into_inner().unwrap();
    assert!(
        faults.is_empty(),
        "{} faults:\n{}",
        faults.len(),
        faults.join("\n")
    );
}

/// The limit of a file's size is an error, not a signal that ends the process.
#[test]
fn output_beyond_the_limit_of_a_file_is_an_error() {
    let domain = Domain::new();
    let verb = domain.command(["interface", "list"]);
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("beyond_the_limit.txt");
    let mut command = Command::new("sh");
    command.args([
        "-c",
        "ulimit -f 1; out=\"$1\"; shift; exec \"$@\" > \"$out\"",
        "sh",
    ]);
    command.arg(&file).arg(verb.get_program());
    command.args(verb.get_args());
    // The limit holds for shared memory too.
    command.args(["--ros-args", "--shared-memory", "off"]);
    let (code, text) = run(command).expect("ends");
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.contains("writing to standard output: File too large"),
        "{text}"
    );
}
