//! Our keystores in other stacks: Cyclone DDS and Fast DDS communicate with them.
//! This also shows what to expect of our own secured nodes: verify/interop/README.md lists
//! what these two do not manage with each other.
#![allow(clippy::disallowed_methods, reason = "other vendors' programs")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use pteros_test_support::keystore::{Keys, Protections};
use pteros_test_support::peer::{Peer, program};

const TIMEOUT: Duration = Duration::from_secs(30);

#[test]
fn cyclone_talks_to_cyclone_with_our_keys() {
    let Some(cyclone) = ready("cyclone-peer") else {
        return;
    };
    let keys = Keys::new(Protections::SROS_2);
    let [first, second] = keys.initiator_first();
    check([&cyclone, &first], [&cyclone, &second]).unwrap();
    check([&cyclone, &second], [&cyclone, &first]).unwrap();
}

#[test]
fn fastdds_talks_to_fastdds_with_our_keys() {
    let Some(fastdds) = ready("fastdds-peer") else {
        return;
    };
    let keys = Keys::new(Protections::SROS_2);
    let [first, second] = keys.initiator_first();
    check([&fastdds, &first], [&fastdds, &second]).unwrap();
    check([&fastdds, &second], [&fastdds, &first]).unwrap();
}

/// Cyclone DDS has to begin: a handshake that Fast DDS 2.9 begins asks for
/// Diffie-Hellman's MODP group, in a form that Cyclone DDS 0.10 does not read.
#[test]
fn cyclone_and_fastdds_talk_with_our_keys_if_cyclone_begins() {
    let (Some(cyclone), Some(fastdds)) = (ready("cyclone-peer"), ready("fastdds-peer")) else {
        return;
    };
    let keys = Keys::new(Protections::SROS_2);
    let [first, second] = keys.initiator_first();
    check([&cyclone, &first], [&fastdds, &second]).unwrap();
    check([&fastdds, &second], [&cyclone, &first]).unwrap();
}

/// Prints a table of all that these stacks manage; four minutes.
#[test]
#[ignore = "a table of others' abilities, four minutes"]
fn every_protection_between_every_two() {
    let (Some(cyclone), Some(fastdds)) = (ready("cyclone-peer"), ready("fastdds-peer")) else {
        return;
    };
    let stacks = [("Cyclone", &cyclone), ("Fast DDS", &fastdds)];
    for protections in Protections::all() {
        let keys = Keys::new(protections);
        let [first, second] = keys.initiator_first();
        for (from, to) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            // The initiator is the writer; between the two it is Cyclone.
            let [writer, reader] = match (from, to) {
                (1, 0) => [&second, &first],
                _ => [&first, &second],
            };
            let ((one, from), (other, to)) = (stacks[from], stacks[to]);
            let outcome = check([from, writer], [to, reader]);
            let said = outcome.map_or_else(|why| why, |()| "ok".into());
            let Protections {
                rtps,
                metadata,
                data,
                ..
            } = protections;
            println!("rtps {rtps} metadata {metadata} data {data}: {one} -> {other}: {said}");
            // Fast DDS's writer waits for keys of a reader that has no use for any.
            let keyless = (one, other) == ("Fast DDS", "Cyclone");
            let expected = !(keyless && metadata == "NONE" && data != "NONE");
            assert_eq!(said == "ok", expected);
        }
    }
}

/// The program, or a line that says why it cannot run here; xtask counts these.
fn ready(name: &str) -> Option<PathBuf> {
    let found = match std::env::var_os("PTEROS_PRIVATE_NETWORK") {
        Some(_) => program(name),
        None => Err("not in a private network; run cargo xtask test".into()),
    };
    found
        .map_err(|why| writeln!(std::io::stdout(), "\nskipped: {why}"))
        .ok()
}

/// Three samples from a writer to a reader, each a program and its enclave.
/// Transient-local, since with volatile readers these stacks lose first samples.
fn check(from: [&Path; 2], to: [&Path; 2]) -> Result<(), String> {
    static DOMAIN: AtomicU32 = AtomicU32::new(0);
    let domain = 1 + DOMAIN.fetch_add(1, Ordering::Relaxed) % 100;
    let options = format!(
        "--type bytes --size 3000 --durability transient_local --count 3 --timeout 20 --domain {domain}"
    );
    let [program, enclave] = to;
    let security = |folder: &Path| format!("--security {}", folder.display());
    let mut reader = Peer::start(program, &format!("sub {options} {}", security(enclave)));
    let [program, enclave] = from;
    let mut writer = Peer::start(
        program,
        &format!(
            "pub {options} {} --wait-matched 1 --linger 20",
            security(enclave)
        ),
    );
    let end = Instant::now() + TIMEOUT;
    let status = reader
        .finish(TIMEOUT)
        .map_err(|why| format!("{why}; the reader said {:?}", reader.seen()))?;
    if status.success() {
        return Ok(());
    }
    let _ = writer.wait_for("ended", end.saturating_duration_since(Instant::now()));
    Err(format!(
        "{status}; the reader said {:?}, the writer {:?}",
        reader.seen(),
        writer.seen()
    ))
}
