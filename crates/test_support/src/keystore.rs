//! Keystores for tests with secured peers: two enclaves, every domain, and the
//! requested protection kinds.

use crate::folder::Folder;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use pteros_rtps::id::GuidPrefix;
use pteros_security::auth::adjusted_prefix;
use pteros_security::certificate::Certificate;
use pteros_security::date::UnixTime;
use pteros_security::keystore::{Keystore, Options};

/// Protection kinds of a governance document: `NONE`, `SIGN`, `ENCRYPT`; the first
/// two fields also with origin authentication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Protections {
    /// RTPS messages.
    pub rtps: &'static str,
    /// Submessages of user topics.
    pub metadata: &'static str,
    /// Payloads of user topics.
    pub data: &'static str,
    /// Discovery and liveliness.
    pub discovery: &'static str,
}

impl Protections {
    /// The protection kinds of SROS 2's keystores.
    pub const SROS_2: Protections = Protections::of("SIGN", "ENCRYPT", "ENCRYPT");

    /// With SROS 2's kinds for discovery and liveliness.
    pub const fn of(rtps: &'static str, metadata: &'static str, data: &'static str) -> Self {
        Protections {
            rtps,
            metadata,
            data,
            discovery: "ENCRYPT",
        }
    }

    /// All combinations, with SROS 2's kinds for discovery and liveliness.
    pub fn all() -> impl Iterator<Item = Protections> {
        let kinds = ["NONE", "SIGN", "ENCRYPT"];
        (0..27).map(move |n| Protections::of(kinds[n / 9], kinds[n / 3 % 3], kinds[n % 3]))
    }
}

/// A keystore in a temporary folder, removed when dropped.
pub struct Keys(Folder);

impl Keys {
    /// With the enclaves `/one` and `/two`, which may do everything.
    pub fn new(protections: Protections) -> Keys {
        Keys::of(&["/one", "/two"], protections)
    }

    /// With enclaves of these names, which may do everything.
    pub fn of(enclaves: &[&str], protections: Protections) -> Keys {
        let keys = Keys(Folder::absent("keystore"));
        let options = Options::default();
        let keystore = Keystore::create(&keys.0, &options, now()).expect("a keystore");
        for name in enclaves {
            let made = keystore.create_enclave(name, None, &options, now());
            keys.edit(&made.expect("an enclave").join("permissions.xml"), &[]);
        }
        let Protections {
            rtps,
            metadata,
            data,
            discovery,
        } = protections;
        let told = (discovery != "NONE").to_string();
        let words: [(&str, &str); 7] = [
            ("rtps_protection_kind", rtps),
            ("metadata_protection_kind", metadata),
            ("data_protection_kind", data),
            ("discovery_protection_kind", discovery),
            ("liveliness_protection_kind", discovery),
            ("enable_discovery_protection", &told),
            ("enable_liveliness_protection", &told),
        ];
        keys.edit(&keys.0.join("enclaves/governance.xml"), &words);
        keystore.sign(now()).expect("valid documents");
        keys
    }

    /// The folder of the keystore, for `ROS_SECURITY_KEYSTORE`.
    pub fn root(&self) -> &Path {
        &self.0
    }

    /// The folder of an enclave, for a peer's `--security`.
    pub fn enclave(&self, name: &str) -> PathBuf {
        self.0.join("enclaves").join(name.trim_start_matches('/'))
    }

    /// Replaces a text in an enclave's permissions, and signs them again.
    pub fn edit_permissions(&self, name: &str, from: &str, to: &str) {
        let file = self.enclave(name).join("permissions.xml");
        let text = std::fs::read_to_string(&file).expect("a document");
        assert!(text.contains(from), "{from} is not in {text}");
        std::fs::write(&file, text.replace(from, to)).expect("write the document");
        let keystore = Keystore::open(&self.0).expect("a keystore");
        keystore.sign(now()).expect("valid documents");
    }

    /// Revokes the certificate of an enclave.
    pub fn revoke(&self, name: &str) {
        let keystore = Keystore::open(&self.0).expect("a keystore");
        let taken = keystore.revoke(name, &Options::default(), now());
        taken.expect("a revocation list");
    }

    /// The two enclaves: first the one whose participants begin the authentication
    /// handshake.
    pub fn initiator_first(&self) -> [PathBuf; 2] {
        let both = self.in_order(["/one", "/two"]);
        both.map(|name| self.enclave(name))
    }

    /// Enclaves in the order of the hash of their subjects. Participants of an
    /// earlier one begin handshakes with those of a later one.
    pub fn in_order<const N: usize>(&self, mut names: [&'static str; N]) -> [&'static str; N] {
        names.sort_by_key(|name| {
            let file = self.enclave(name).join("cert.pem");
            let text = std::fs::read(&file).expect("a certificate");
            let chain = Certificate::from_pem("cert.pem", &text).expect("a certificate");
            adjusted_prefix(&chain[0], GuidPrefix([0; 12])).0
        });
        names
    }

    /// Replaces the text of elements, and the domain by all domains.
    fn edit(&self, file: &Path, words: &[(&str, &str)]) {
        let mut text = std::fs::read_to_string(file).expect("a document");
        // Cyclone DDS 0.10 refuses documents with a domain above 230.
        let domains = "<id_range><min>0</min><max>230</max></id_range>";
        text = text.replace("<id>0</id>", domains);
        for (element, word) in words {
            let (begin, end) = (format!("<{element}>"), format!("</{element}>"));
            let from = text.find(&begin).expect("an element") + begin.len();
            let to = from + text[from..].find(&end).expect("its end");
            text.replace_range(from..to, word);
        }
        std::fs::write(file, text).expect("write the document");
    }
}

fn now() -> UnixTime {
    let since = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .expect("a clock after 1970");
    UnixTime(since.as_secs() as i64)
}
