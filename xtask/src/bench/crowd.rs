//! Processes that start at once, each a participant, half of them with a publisher,
//! half with a subscription: until each publisher has met all subscriptions, and how
//! many datagrams that took.

use std::fmt::Write as _;
use std::time::Instant;

use anyhow::{Context, Result};

use super::contestant::{Contestant, Pinning};

/// How many processes.
const SIZES: [usize; 3] = [10, 20, 50];
/// Until a publisher that has not met all gives up, seconds.
const TIMEOUT: &str = "60";

/// A line for each contestant: seconds and datagrams by number of processes. What
/// was not complete in time shows as nothing.
pub fn table(contestants: &[&Contestant]) -> String {
    let mut out = format!("\n{:<26}", "processes until all met");
    for size in SIZES {
        let _ = write!(out, " {size:>22}");
    }
    for contestant in contestants {
        let _ = write!(out, "\n{:<26}", contestant.name);
        for size in SIZES {
            let _ = match measure(contestant, size) {
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

fn measure(contestant: &Contestant, processes: usize) -> Result<(f64, u64)> {
    let subscriptions = processes / 2;
    let before = datagrams()?;
    let began = Instant::now();
    let start = |arguments: &[&str]| contestant.spawn(arguments, Pinning::None);
    let _subscribers = (0..subscriptions)
        .map(|_| start(&["sub", "--timeout", TIMEOUT]))
        .collect::<Result<Vec<_>>>()?;
    let matched = subscriptions.to_string();
    let line = ["pub", "--wait-matched", &matched, "--timeout", TIMEOUT];
    // They stay, so that nobody has to note that others end.
    let stays = ["--count", "1", "--settle", "0", "--linger", TIMEOUT];
    let mut publishers = (subscriptions..processes)
        .map(|_| start(&[&line[..], &stays[..]].concat()))
        .collect::<Result<Vec<_>>>()?;
    for publisher in &mut publishers {
        publisher.wait_for("sent ")?;
    }
    Ok((began.elapsed().as_secs_f64(), datagrams()? - before))
}

/// Sent in this network so far.
fn datagrams() -> Result<u64> {
    let text = std::fs::read_to_string("/proc/net/snmp").context("read /proc/net/snmp")?;
    sent(&text).context("/proc/net/snmp has no OutDatagrams")
}

/// A line of names, then one of numbers.
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
    fn what_was_sent_is_found_by_its_name() {
        let text = "Ip: A B\nIp: 1 2\nUdp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors\n\
            Udp: 17 6 0 1188 0\nUdpLite: OutDatagrams\n";
        assert_eq!(sent(text), Some(1188));
        assert_eq!(sent("Ip: A\nIp: 1\n"), None);
    }
}
