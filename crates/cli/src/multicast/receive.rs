//! `pteros multicast receive`.

use super::{GroupFlags, multicast_interfaces};
use crate::cli_context::CliContext;
use crate::exit_errors::Interrupted;
use crate::value_parsers::positive_seconds;
use anyhow::{Context as _, Result, bail};
use clap::Args;
use pteros_net::{Events, Poller, UdpSocket, shutdown_signal};
use serde_json::json;
use std::io::ErrorKind;
use std::time::{Duration, Instant};

/// Largest datagram that is printed, as in ros2multicast.
const BYTES_MAX: usize = 4_096;

/// Arguments of `multicast receive`.
#[derive(Debug, Args)]
pub struct Receive {
    #[command(flatten)]
    group: GroupFlags,
    /// Stop after this many seconds; it is an error if no datagram was received
    #[arg(long, value_name = "SECONDS", value_parser = positive_seconds)]
    timeout: Option<Duration>,
}

impl Receive {
    /// Prints one datagram.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let signal = shutdown_signal()?;
        let at = self.group.address();
        let socket = UdpSocket::bind_multicast(at.ip(), at.port())?;
        let mut join_errors = Vec::new();
        let interfaces = multicast_interfaces(at.ip())?;
        for interface in &interfaces {
            if let Err(error) = socket.join(at.ip(), interface) {
                join_errors.push(error.to_string());
            }
        }
        if join_errors.len() == interfaces.len() {
            bail!(
                "no interface can join {} ({}); see: ip address",
                at.ip(),
                join_errors.join(", ")
            );
        }
        for error in join_errors {
            cli.console.note(format!("WARNING: {error}"));
        }
        let poller = Poller::new()?;
        poller.add(&socket, 0)?;
        poller.add(signal, 1)?;
        if !cli.console.json {
            cli.console.line("Waiting for UDP multicast datagram...")?;
        }
        let end = self.timeout.map(|timeout| Instant::now() + timeout);
        let mut events = Events::with_capacity(2);
        let mut buffer = [0; BYTES_MAX];
        loop {
            if signal.is_requested() {
                return Err(Interrupted::now().into());
            }
            match socket.receive(&mut buffer) {
                Ok(received) => {
                    let bytes = buffer.get(..received.len).unwrap_or_default();
                    let text = String::from_utf8_lossy(bytes);
                    let from = received.from;
                    if cli.console.json {
                        let output = json!({ "from": from.to_string(), "text": text });
                        cli.console.json(&output)?;
                    } else {
                        cli.console
                            .line(format!("Received from {from}: '{text}'"))?;
                    }
                    return Ok(());
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error).context("receiving a datagram"),
            }
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                bail!(
                    "no datagram for {at} within {} s: send one on the other host with: pteros multicast send; if it does not come, find the reason with: pteros doctor",
                    self.timeout.unwrap_or_default().as_secs_f64()
                );
            }
            poller.wait(&mut events, left)?;
        }
    }
}
