//! Bridge between ROS 1 and ROS 2 for strings: one topic, one direction. Pteros
//! runs here, roscpp in another program (verify/interop/host/bridge.cpp), with a pipe
//! between them.
//!
//! It loses no message. The ROS 2 side is reliable, KEEP_ALL and transient local,
//! and it subscribes once the ROS 1 side has a subscriber. A full pipe blocks the
//! callback, and so the publisher (back-pressure).

use std::io::{self, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;
use pteros::qos::{DurabilityPolicy, HistoryPolicy};
use rustix::mm::{MlockAllFlags, mlockall};

/// The limit of the other program as well.
const BYTES_MAX: u32 = 64 << 20;

const USAGE: &str = "in|out PROGRAM TOPIC-OF-ROS-1 TOPIC [--deadline MS] [--lock-memory yes]";

/// Directions of the messages.
const DIRECTIONS: [&str; 2] = ["in", "out"];

/// Bridges until the other program ends: `in` from ROS 1, `out` to ROS 1. Prints
/// `ready` once published messages arrive.
pub fn run(arguments: &[String]) -> Result<()> {
    let [direction, program, ros1_topic, topic, rest @ ..] = arguments else {
        bail!("usage: bridge {USAGE}");
    };
    let mut qos = QosProfile {
        history: HistoryPolicy::KeepAll,
        durability: DurabilityPolicy::TransientLocal,
        ..QosProfile::default()
    };
    for option in rest.chunks(2) {
        match option {
            [name, value] if name == "--lock-memory" && value == "yes" => {
                mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE)
                    .context("--lock-memory")?;
            }
            [name, ms] if name == "--deadline" => {
                let ms = ms.parse().with_context(|| format!("--deadline {ms}"))?;
                qos.deadline = Some(Duration::from_millis(ms));
            }
            other => bail!("bridge {}: expected {USAGE}", other.join(" ")),
        }
    }
    if !DIRECTIONS.contains(&direction.as_str()) {
        bail!("bridge {direction}: expected in or out");
    }
    let mut half = Command::new(program)
        .args([direction, ros1_topic])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("start {program}"))?;
    let pipes = half.stdin.take().zip(half.stdout.take());
    let (to, mut from) = pipes.context("no pipes to the ROS 1 program")?;
    if read_frame(&mut from)?.is_none() {
        bail!("{program} ended with {}", half.wait()?);
    }
    let context = Context::new()?;
    let node = context.create_node("bridge")?;
    match direction.as_str() {
        "in" => from_ros1(&node.create_publisher(topic.qos(qos))?, from),
        _ => to_ros1(&node, topic, qos, to, &mut half),
    }
}

fn from_ros1(publisher: &Publisher<Text>, mut from: ChildStdout) -> Result<()> {
    say_ready();
    while let Some(bytes) = read_frame(&mut from)? {
        match String::from_utf8(bytes) {
            Ok(data) => publisher.publish(&Text { data })?,
            Err(_) => eprintln!("from ROS 1: skipped a string that is not UTF-8"),
        }
    }
    Ok(())
}

fn to_ros1(
    node: &Node,
    topic: &str,
    qos: QosProfile,
    mut to: ChildStdin,
    half: &mut Child,
) -> Result<()> {
    let pass_on = move |message: Sample<Text>| {
        if let Err(error) = write_frame(&mut to, message.data.as_bytes()) {
            eprintln!("to ROS 1: {error}");
        }
    };
    let _subscription = node.create_subscription(topic.qos(qos), pass_on)?;
    say_ready();
    node.spin();
    // Asked to stop: everything received has been forwarded.
    half.kill()?;
    Ok(())
}

fn say_ready() {
    println!("ready");
}

/// Reads a message. `None` when the other program has ended.
fn read_frame(from: &mut impl Read) -> Result<Option<Vec<u8>>> {
    let mut length = [0; 4];
    match from.read_exact(&mut length) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        outcome => outcome.context("read from the ROS 1 program")?,
    }
    let length = u32::from_ne_bytes(length);
    if length > BYTES_MAX {
        bail!(
            "the ROS 1 program announces a message of {length} bytes; the maximum is {BYTES_MAX}"
        );
    }
    let mut bytes = Vec::new();
    let read = from.take(u64::from(length)).read_to_end(&mut bytes);
    if read.context("read from the ROS 1 program")? < length as usize {
        return Ok(None);
    }
    Ok(Some(bytes))
}

fn write_frame(to: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    let length = u32::try_from(bytes.len()).ok().filter(|n| *n <= BYTES_MAX);
    let length = length.ok_or_else(|| io::Error::other("a message of more than 64 MiB"))?;
    to.write_all(&length.to_ne_bytes())?;
    to.write_all(bytes)?;
    to.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_survives_the_pipe_and_a_truncated_one_is_none() {
        let mut pipe = Vec::new();
        write_frame(&mut pipe, b"").unwrap();
        write_frame(&mut pipe, b"hello").unwrap();
        let mut from = pipe.as_slice();
        assert_eq!(read_frame(&mut from).unwrap(), Some(Vec::new()));
        assert_eq!(read_frame(&mut from).unwrap(), Some(b"hello".to_vec()));
        assert_eq!(read_frame(&mut from).unwrap(), None);
        let cut = &pipe[..pipe.len() - 1];
        assert_eq!(read_frame(&mut &cut[4..]).unwrap(), None);
        let error = read_frame(&mut u32::MAX.to_ne_bytes().as_slice()).unwrap_err();
        assert!(error.to_string().contains("4294967295 bytes"), "{error}");
    }
}
