//! Keystores of the secured workload: SROS 2's layout in a temporary folder, which
//! goes with the run.

use pteros_test_support::folder::Folder;
use std::path::{Path, PathBuf};

use pteros_security::date::UnixTime;
use pteros_security::governance::Protection;
use pteros_security::keystore::{Keystore, Options};

/// Start of the simulated wall clock.
const NOW: UnixTime = UnixTime(1_790_000_000);

/// The rule for a topic that everybody may use.
const OPEN_TOPIC: &str = "<topic_access_rules>
        <topic_rule>
          <topic_expression>rt/open</topic_expression>
          <enable_discovery_protection>false</enable_discovery_protection>
          <enable_liveliness_protection>false</enable_liveliness_protection>
          <enable_read_access_control>false</enable_read_access_control>
          <enable_write_access_control>false</enable_write_access_control>
          <metadata_protection_kind>NONE</metadata_protection_kind>
          <data_protection_kind>NONE</data_protection_kind>
        </topic_rule>";

/// The protection that the governance demands.
#[derive(Clone, Copy, Debug)]
pub struct GovernanceKind {
    /// Protection of whole messages.
    pub rtps: Protection,
    /// Submessages of user data are signed only, instead of encrypted.
    pub signs_submessages: bool,
    /// Participants without an identity may use the open topic.
    pub allows_unauthenticated: bool,
}

/// A keystore and its folder.
pub struct SimKeystore {
    root: Folder,
    keystore: Keystore,
    options: Options,
}

impl SimKeystore {
    /// A new one with this governance.
    pub fn new(kind: GovernanceKind) -> Self {
        let root = Folder::absent("sim-keystore");
        let options = Options {
            rtps: kind.rtps,
            ..Options::default()
        };
        let keystore = Keystore::create(&root, &options, NOW).expect("a writable folder");
        let made = Self {
            root,
            keystore,
            options,
        };
        made.edit_governance(kind);
        made
    }

    fn edit_governance(&self, kind: GovernanceKind) {
        let path = self.root.join("enclaves/governance.xml");
        let mut text = std::fs::read_to_string(&path).expect("it was just written");
        let mut edit = |from: &str, to: &str| {
            assert!(text.contains(from), "{from} is not in the governance");
            text = text.replacen(from, to, 1);
        };
        if kind.signs_submessages {
            let of = |kind: &str| format!("<metadata_protection_kind>{kind}<");
            edit(&of("ENCRYPT"), &of("SIGN"));
        }
        if kind.allows_unauthenticated {
            let of = |value: bool| format!("<allow_unauthenticated_participants>{value}<");
            edit(&of(false), &of(true));
            edit("<topic_access_rules>", OPEN_TOPIC);
        }
        std::fs::write(&path, text).expect("a writable folder");
        self.keystore.sign(NOW).expect("a valid governance");
    }

    /// The folder of a new enclave that may do everything.
    pub fn enclave(&self, name: &str) -> PathBuf {
        let made = self.keystore.create_enclave(name, None, &self.options, NOW);
        made.expect("a writable folder")
    }

    /// An enclave with the signed documents of another keystore's enclave. An
    /// attacker reads them in handshakes.
    pub fn enclave_with_documents(&self, name: &str, other: &Path) -> PathBuf {
        let folder = self.enclave(name);
        for file in [
            "permissions_ca.cert.pem",
            "governance.p7s",
            "permissions.p7s",
        ] {
            let content = std::fs::read(other.join(file)).expect("a complete enclave");
            std::fs::remove_file(folder.join(file)).expect("a complete enclave");
            std::fs::write(folder.join(file), content).expect("a writable folder");
        }
        folder
    }
}
