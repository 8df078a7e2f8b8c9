//! Simultaneous start of processes: each has a participant, half of them a
//! publisher and half a subscription. Measures the time until each publisher has
//! matched all subscriptions, and the datagrams sent until then.

use std::fmt::Write as _;
use std::time::Instant;

use anyhow::{Context, Result};

use super::wire_peer::{Pinning, WirePeer};

/// Numbers of processes.
const SIZES: [usize; 3] = [10, 20, 50];
/// Seconds until a publisher that has not matched all subscriptions gives up.
const TIMEOUT: &str = "60";

/// Returns a line for each implementation: seconds and datagrams by number of
/// processes. An incomplete start leaves an empty field.
pub fn table(implementations: &[&WirePeer]) -> String {
    let mut out = format!("\n{:<26}", "processes until all matched");
    for size in SIZES {
        let _ = write!(out, " {size:>22}");
    }
    for implementation in implementations {
        let _ = write!(out, "\n{:<26}", implementation.name);
        for size in SIZES {
            let _ = match measure(implementation, size) {
                Ok((seconds, datagrams)) => {
                    let cell = format!("{seconds:.2} s, {datagrams}");
                    write!(out, " {cell:>22}")
                }
                Err(error) => {
                    eprintln!("{size} processes: {error:#}");
                    write!(out, " {:>22}", "-")
                }
            };
        }
    }
    out.push('\n');
    out
}

fn measure(implementation: &WirePeer, processes: usize) -> Result<(f64, u64)> {
    let subscriptions = processes / 2;
    let before = datagrams()?;
    let began = Instant::now();
    let start = |arguments: &[&str]| implementation.spawn(arguments, Pinning::None);
    let _subscribers = (0..subscriptions)
        .map(|_| start(&["sub", "--timeout", TIMEOUT]))
        .collect::<Result<Vec<_>>>()?;
    let matched = subscriptions.to_string();
    let line = ["pub", "--wait-matched", &matched, "--timeout", TIMEOUT];
    // The processes stay, so that no datagrams announce that others end.
    let stays = ["--count", "1", "--settle", "0", "--linger", TIMEOUT];
    let mut publishers = (subscriptions..processes)
        .map(|_| start(&[&line[..], &stays[..]].concat()))
        .collect::<Result<Vec<_>>>()?;
    for publisher in &mut publishers {
        publisher.wait_for("sent ")?;
    }
    Ok((began.elapsed().as_secs_f64(), datagrams()? - before))
}

/// Datagrams sent in this network so far.
fn datagrams() -> Result<u64> {
    let text = std::fs::read_to_string("/proc/net/snmp").context("read /proc/net/snmp")?;
    sent(&text).context("/proc/net/snmp has no OutDatagrams")
}

/// Parses OutDatagrams from a line of names and a line of numbers.
fn sent(text: &str) -> Option<u64> {
    let mut lines = text.lines().filter(|line| line.starts_with("Udp:"));
    let (names, numbers) = (lines.next()?, lines.next()?);
    let at = names.split(' ').position(|name| name == "OutDatagrams")?;
    numbers.split(' ').nth(at)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_sent_datagrams_is_found_by_name() {
        let text = "Ip: A B\nIp: 1 2\nUdp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors\n\
            Udp: 17 6 0 1188 0\nUdpLite: OutDatagrams\n";
        assert_eq!(sent(text), Some(1188));
        assert_eq!(sent("Ip: A\nIp: 1\n"), None);
    }
}
