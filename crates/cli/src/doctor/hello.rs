//! `pteros doctor hello`: whether hosts hear each other, by multicast and by topic.
//! Speaks as `ros2 doctor hello` does, so both hear each other.

use crate::session::Session;
use crate::shared::Shared;
use crate::values::positive_seconds;
use anyhow::{Context as _, Result};
use clap::Args;
use pteros::QosProfile;
use pteros::config::{Config, DiscoveryRange};
use pteros::interfaces::std_msgs::msg::String as Text;
use pteros_net::{Interface, UdpSocket, interfaces};
use serde_json::json;
use std::collections::BTreeMap;
use std::io::IoSlice;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::{Duration, Instant};

/// Of ros2multicast.
const GROUP: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(225, 0, 0, 1), 49_150);
/// Callers that are told apart, by each way.
const CALLERS_MAX: usize = 1_000;

/// Arguments of `doctor hello`.
#[derive(Debug, Args)]
pub struct Hello {
    /// Name of the topic that greetings are published on
    #[arg(long, short = 't', default_value = "/canyouhearme")]
    topic: String,
    /// Seconds between two greetings
    #[arg(long, short = 'e', value_name = "SECONDS", value_parser = positive_seconds, default_value = "0.1")]
    emit_period: Duration,
    /// Seconds between two summaries
    #[arg(long, short = 'p', value_name = "SECONDS", value_parser = positive_seconds, default_value = "1.0")]
    print_period: Duration,
    /// Routers that a greeting by multicast may pass
    #[arg(long, default_value_t = 1)]
    ttl: u8,
    /// Print one summary and end
    #[arg(long, short = '1')]
    once: bool,
}

/// Who was heard, and how often since the last summary.
#[derive(Default)]
struct Heard(BTreeMap<String, u64>);

impl Heard {
    fn note(&mut self, caller: &str) {
        if self.0.len() < CALLERS_MAX || self.0.contains_key(caller) {
            *self.0.entry(caller.to_owned()).or_default() += 1;
        }
    }

    fn text(&self) -> String {
        match self.0.is_empty() {
            true => "    nobody\n".into(),
            false => self
                .0
                .iter()
                .map(|(caller, count)| format!("    {caller}: {count}\n"))
                .collect(),
        }
    }
}

impl Hello {
    /// Greets until Ctrl-C, or once.
    pub fn run(self, shared: &Shared) -> Result<()> {
        let session = Session::open(shared, None)?;
        let qos = QosProfile::default();
        let publisher = session
            .node
            .create_publisher::<Text>(&self.topic, qos.clone())?;
        let subscription = session
            .node
            .create_polled_subscription::<Text>(&self.topic, qos)?;
        let range = Config::from_environment()?.discovery_range;
        let here_only = matches!(range, DiscoveryRange::Localhost | DiscoveryRange::Off);
        let list: Vec<Interface> = interfaces()?
            .into_iter()
            .filter(|i| i.multicast && (i.loopback || !here_only))
            .collect();
        let receiver = UdpSocket::bind_multicast(*GROUP.ip(), GROUP.port())
            .context("listening for greetings by multicast")?;
        let sender = UdpSocket::bind_unicast(Ipv4Addr::UNSPECIFIED, 0)?;
        sender.set_multicast(self.ttl, true)?;
        let mut deaf = Vec::new();
        for interface in &list {
            if let Err(error) = receiver.join(*GROUP.ip(), interface) {
                deaf.push(error.to_string());
            }
        }
        for text in &deaf {
            shared.console.remark(format!("WARNING: {text}"));
        }
        let host = super::host::read("/proc/sys/kernel/hostname").unwrap_or_default();
        let me = format!("{host}:{}", std::process::id());
        let greeting = format!("hello, it's me {me}");
        let (mut by_topic, mut by_multicast) = (Heard::default(), Heard::default());
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
                        // What cannot be sent is not heard, which is the answer.
                        let parts = [IoSlice::new(greeting.as_bytes())];
                        let _ = sender.send_via(&parts, GROUP, interface.index);
                    }
                }
            }
            while let Some(text) = subscription.take() {
                if let Some(caller) = caller(&text.data, &me) {
                    by_topic.note(caller);
                }
            }
            while let Ok(received) = receiver.receive(&mut buffer) {
                let bytes = buffer.get(..received.len).unwrap_or_default();
                let text = String::from_utf8_lossy(bytes);
                if let Some(caller) = caller(&text, &me) {
                    by_multicast.note(&format!("{caller} at {}", received.from.ip()));
                }
            }
            if now >= print_at {
                print_at = now + self.print_period;
                let topic = std::mem::take(&mut by_topic);
                let multicast = std::mem::take(&mut by_multicast);
                match shared.console.json {
                    true => shared.console.json_line(&json!({
                        "topic": topic.0,
                        "multicast": multicast.0,
                    }))?,
                    false => shared.console.text(&format!(
                        "heard as {me}\n  on {}:\n{}  by multicast, {GROUP}:\n{}",
                        self.topic,
                        topic.text(),
                        multicast.text()
                    ))?,
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

/// Who greets, unless it is us: the last word, as ros2's command reads it.
fn caller<'t>(text: &'t str, me: &str) -> Option<&'t str> {
    let caller = text.split_whitespace().next_back()?;
    (caller != me).then_some(caller)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_are_heard_and_we_are_not() {
        assert_eq!(caller("hello, it's me arm", "leg:7"), Some("arm"));
        assert_eq!(caller("hello, it's me leg:7", "leg:7"), None);
        assert_eq!(caller("  ", "leg:7"), None);
        let mut heard = Heard::default();
        assert_eq!(heard.text(), "    nobody\n");
        heard.note("arm");
        heard.note("arm");
        assert_eq!(heard.text(), "    arm: 2\n");
    }
}
