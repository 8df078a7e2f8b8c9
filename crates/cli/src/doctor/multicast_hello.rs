//! `pteros doctor hello`: tests multicast and a topic between hosts. It is
//! compatible with `ros2 doctor hello`.

use crate::cli_context::CliContext;
use crate::session::Session;
use crate::value_parsers::positive_seconds;
use anyhow::{Context as _, Result};
use clap::Args;
use pteros::NamedQosExt;
use pteros::QosProfile;
use pteros::config::{Config, DiscoveryRange};
use pteros::interfaces::std_msgs::msg::String as Text;
use pteros_net::{Interface, UdpSocket, interfaces};
use serde_json::json;
use std::collections::BTreeMap;
use std::io::IoSlice;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

/// Multicast group and port of ros2multicast.
const GROUP: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(225, 0, 0, 1)), 49_150);
/// The same on a host whose RTPS uses IPv6 alone.
const GROUP_V6: SocketAddr = SocketAddr::new(
    IpAddr::V6(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0xffff, 0xe100, 1)),
    49_150,
);
/// Largest number of callers that are counted separately, per transport.
const CALLERS_MAX: usize = 1_000;

/// Arguments of `doctor hello`.
#[derive(Debug, Args)]
pub struct Hello {
    /// Topic of the greetings
    #[arg(long, short = 't', default_value = "/canyouhearme")]
    topic: String,
    /// Seconds between two greetings (also -ep)
    #[arg(long, short = 'e', value_name = "SECONDS", value_parser = positive_seconds, default_value = "0.1")]
    emit_period: Duration,
    /// Seconds between two summaries (also -pp)
    #[arg(long, short = 'p', value_name = "SECONDS", value_parser = positive_seconds, default_value = "1.0")]
    print_period: Duration,
    /// TTL of multicast greetings: largest number of routers they pass
    #[arg(long, default_value_t = 1)]
    ttl: u8,
    /// Print one summary and exit
    #[arg(long, short = '1')]
    once: bool,
}

/// Number of greetings per caller since the last summary.
#[derive(Default)]
struct CallerCounts(BTreeMap<String, u64>);

impl CallerCounts {
    fn record(&mut self, caller: &str) {
        if self.0.len() < CALLERS_MAX || self.0.contains_key(caller) {
            *self.0.entry(caller.to_owned()).or_default() += 1;
        }
    }

    fn text(&self) -> String {
        if self.0.is_empty() {
            "    nobody\n".into()
        } else {
            self.0
                .iter()
                .map(|(caller, count)| format!("    {caller}: {count}\n"))
                .collect()
        }
    }
}

impl Hello {
    /// Sends greetings until Ctrl-C, or prints one summary.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let session = Session::open(cli, None)?;
        let qos = QosProfile::default();
        let publisher = session
            .node
            .create_publisher::<Text>(self.topic.as_str().qos(qos.clone()))?;
        let subscription = session
            .node
            .create_polled_subscription::<Text>(self.topic.as_str().qos(qos))?;
        let config = Config::from_environment()?;
        let range = config.discovery_range;
        let here_only = matches!(range, DiscoveryRange::Localhost | DiscoveryRange::Off);
        let mut list = config.network.ip_versions.in_use(interfaces()?);
        list.retain(|i| i.multicast && (i.loopback || !here_only));
        // A host without IPv4 on its networks has 127.0.0.1 all the same.
        let uses_v4 = |i: &Interface| i.address.is_ipv4() && (here_only || !i.loopback);
        let is_v6 = !list.is_empty() && !list.iter().any(uses_v4);
        list.retain(|i| i.address.is_ipv6() == is_v6);
        let (group, own): (_, IpAddr) = match is_v6 {
            true => (GROUP_V6, Ipv6Addr::UNSPECIFIED.into()),
            false => (GROUP, Ipv4Addr::UNSPECIFIED.into()),
        };
        let receiver = UdpSocket::bind_multicast(group.ip(), group.port())
            .context("receiving multicast greetings")?;
        let sender = UdpSocket::bind_unicast(own, 0)?;
        sender.set_multicast(self.ttl, true)?;
        let mut join_errors = Vec::new();
        for interface in &list {
            if let Err(error) = receiver.join(group.ip(), interface) {
                join_errors.push(error.to_string());
            }
        }
        for text in &join_errors {
            cli.console.note(format!("WARNING: {text}"));
        }
        let host = super::host::read_kernel_file("/proc/sys/kernel/hostname").unwrap_or_default();
        let own_name = format!("{host}:{}", std::process::id());
        let greeting = format!("hello, it's me {own_name}");
        let (mut by_topic, mut by_multicast) = (CallerCounts::default(), CallerCounts::default());
        let mut emit_at = Instant::now();
        let mut print_at = emit_at + self.print_period;
        let mut buffer = [0; 2_048];
        while !session.context.is_shut_down() {
            let now = Instant::now();
            if now >= emit_at {
                emit_at = now + self.emit_period;
                publisher.publish(&Text {
                    data: greeting.clone(),
                })?;
                let mut sent_on = Vec::new();
                for interface in &list {
                    if !sent_on.contains(&interface.index) {
                        sent_on.push(interface.index);
                        // A send error shows as a missing greeting.
                        let parts = [IoSlice::new(greeting.as_bytes())];
                        let _ = sender.send_via(&parts, group, interface);
                    }
                }
            }
            while let Some(text) = subscription.take() {
                if let Some(caller) = caller_name(&text.data, &own_name) {
                    by_topic.record(caller);
                }
            }
            while let Ok(received) = receiver.receive(&mut buffer) {
                let bytes = buffer.get(..received.len).unwrap_or_default();
                let text = String::from_utf8_lossy(bytes);
                if let Some(caller) = caller_name(&text, &own_name) {
                    by_multicast.record(&format!("{caller} at {}", received.from.ip()));
                }
            }
            if now >= print_at {
                print_at = now + self.print_period;
                let topic = std::mem::take(&mut by_topic);
                let multicast = std::mem::take(&mut by_multicast);
                if cli.console.json {
                    cli.console.json_line(&json!({
                        "topic": topic.0,
                        "multicast": multicast.0,
                    }))?
                } else {
                    cli.console.text(&format!(
                        "sent as {own_name}\n  received on {}:\n{}  received by multicast, {group}:\n{}",
                        self.topic,
                        topic.text(),
                        multicast.text()
                    ))?
                }
                if self.once {
                    return Ok(());
                }
            }
            session.spin_once(Duration::from_millis(20).min(self.emit_period));
        }
        Ok(())
    }
}

/// The sender of a greeting: its last word, as ros2's command parses it. `None` for
/// our own.
fn caller_name<'t>(text: &'t str, me: &str) -> Option<&'t str> {
    let caller = text.split_whitespace().next_back()?;
    (caller != me).then_some(caller)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greetings_of_others_are_counted_and_our_own_are_not() {
        assert_eq!(caller_name("hello, it's me arm", "leg:7"), Some("arm"));
        assert_eq!(caller_name("hello, it's me leg:7", "leg:7"), None);
        assert_eq!(caller_name("  ", "leg:7"), None);
        let mut counts = CallerCounts::default();
        assert_eq!(counts.text(), "    nobody\n");
        counts.record("arm");
        counts.record("arm");
        assert_eq!(counts.text(), "    arm: 2\n");
    }
}
