//! Helpers of several tests: fixtures, parts of a keystore.

use pteros_security::certificate::Certificate;
use pteros_security::date::{UnixTime, Validity};
use pteros_security::issue;
use pteros_security::key::PrivateKey;
use pteros_security::keystore::{Keystore, Options};
use std::path::{Path, PathBuf};

/// 2030-01-01: all fixtures are valid then.
pub const NOW: UnixTime = UnixTime(1_893_456_000);

pub fn fixture(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(path)
}

pub fn read(path: &str) -> Vec<u8> {
    std::fs::read(fixture(path)).unwrap()
}

pub fn certificate(path: &str) -> Certificate {
    let mut all = Certificate::from_pem(path, &read(path)).unwrap();
    all.remove(0)
}

pub fn validity() -> Validity {
    Validity {
        not_before: UnixTime(NOW.0 - 86_400),
        not_after: NOW.after_days(365),
    }
}

/// A fixed sequence of numbers that look random.
pub fn numbers(mut state: u64) -> impl FnMut() -> usize {
    move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize
    }
}

/// The folder of an enclave that a keystore creates, or creates again.
pub fn enclave(keystore: &Keystore, name: &str) -> PathBuf {
    let made = keystore.create_enclave(name, None, &Options::default(), NOW);
    made.unwrap()
}

/// An authority and its key.
pub fn authority(name: &str) -> (Certificate, PrivateKey) {
    let key = PrivateKey::generate().unwrap();
    let certificate = issue::authority(name, &key, validity()).unwrap();
    (certificate, key)
}

/// A certificate by that authority, and its key.
pub fn member(name: &str, by: &(Certificate, PrivateKey)) -> (Certificate, PrivateKey) {
    let key = PrivateKey::generate().unwrap();
    let certificate = issue::identity(name, &key.public_key(), &by.0, &by.1, validity()).unwrap();
    (certificate, key)
}

/// Runs OpenSSL with this input. Returns its output and success; `None` where it is
/// not installed.
pub fn openssl(arguments: &[&str], input: &[u8]) -> Option<(bool, String)> {
    use std::io::Write;
    use std::process::{Command, Stdio};
    let mut child = Command::new("openssl")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| eprintln!("skipped: openssl does not start: {error}"))
        .ok()?;
    // It may have said no before it read all of that.
    let _ = child.stdin.take().unwrap().write_all(input);
    let output = child.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    Some((
        output.status.success(),
        String::from_utf8_lossy(&said).into_owned(),
    ))
}
