//! `cargo xtask peers --check`: tests the peers with each other, each pair in both
//! directions, with strings and bytes up to 4 MB, in a private network. A failure
//! here is not caused by Pteros, and tests of Pteros with these peers are
//! meaningless until it is fixed.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use pteros_test_support::peer::{Peer, value};

use crate::namespace;
use crate::peers::Peers;

/// The task that runs inside of the namespace; its argument is the folder.
const INSIDE_TASK: &str = "peers-check-inside";

const TIMEOUT: Duration = Duration::from_secs(30);
const COUNT: usize = 3;
const CASES: [&str; 8] = [
    "--type string",
    "--type string --size 0",
    "--type bytes --size 0",
    "--type bytes --size 1",
    "--type bytes --size 64512",
    "--type bytes --size 65536",
    "--type bytes --size 1000000",
    "--type bytes --size 4000000",
];

/// Runs the checks in a namespace with multicast on loopback, then in one without.
pub fn run_in_namespace(peers: &Peers) -> Result<()> {
    for multicast in [true, false] {
        let own = std::env::current_exe()?;
        let mut command = namespace::command(multicast, &own.to_string_lossy())?;
        let status = command.arg(INSIDE_TASK).arg(&peers.folder).status()?;
        if !status.success() {
            bail!("some peers do not interoperate with each other, see above");
        }
    }
    Ok(())
}

/// Runs every pair of the programs in `folder`, inside of the namespace.
pub fn run_inside(arguments: &[String]) -> Result<()> {
    let [folder] = arguments else {
        bail!("usage: {INSIDE_TASK} FOLDER");
    };
    let names = ["cyclone-peer", "fastdds-peer", "python-peer"];
    let names = names.map(|name| Path::new(folder).join(name));
    let present: Vec<_> = names.iter().filter(|path| path.exists()).collect();
    let network = std::env::var(namespace::VARIABLE).unwrap_or_default();
    let mut failures = 0;
    for (from, to) in present
        .iter()
        .flat_map(|a| present.iter().map(move |b| (a, b)))
    {
        for case in CASES {
            let outcome = check_pair(from, to, case);
            let said = outcome
                .as_ref()
                .map_or_else(|why| format!("{why:#}"), |()| "ok".into());
            failures += usize::from(outcome.is_err());
            println!(
                "{network:12} {} -> {} {case}: {said}",
                file_name(from),
                file_name(to)
            );
        }
    }
    if failures > 0 {
        bail!("{failures} pairs failed");
    }
    Ok(())
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// Checks that all samples arrive, complete and in order. They are transient local,
/// since these stacks lose the first samples of volatile readers
/// (verify/interop/README.md).
fn check_pair(from: &Path, to: &Path, case: &str) -> Result<()> {
    let common = format!("{case} --durability transient_local --count {COUNT} --timeout 25");
    let mut reader = Peer::start(to, &format!("sub {common}"));
    let mut writer = Peer::start(
        from,
        &format!("pub {common} --wait-matched 1 --start stdin"),
    );
    for peer in [&mut reader, &mut writer] {
        peer.wait_for("matched 1", TIMEOUT)
            .map_err(|e| anyhow!("not matched: {e}"))?;
    }
    writer.release();
    let received = received_fields(&mut reader, "received")?;
    let sent = received_fields(&mut writer, "sent")?;
    if sent != received {
        bail!("sent {sent:?}, received {received:?}");
    }
    Ok(())
}

/// Size and checksum of each sample in the lines of a peer.
fn received_fields(peer: &mut Peer, word: &str) -> Result<Vec<(String, String)>> {
    let status = peer.finish(TIMEOUT).map_err(|e| anyhow!(e))?;
    if !status.success() {
        bail!(
            "{word}: the peer ended with {status}: {}",
            peer.seen().join("; ")
        );
    }
    let field = |line: &str, key: &str| value(line, key).unwrap_or("?").to_owned();
    let lines = peer.seen().iter().filter(|line| line.starts_with(word));
    Ok(lines
        .map(|line| (field(line, "size"), field(line, "crc")))
        .collect())
}
