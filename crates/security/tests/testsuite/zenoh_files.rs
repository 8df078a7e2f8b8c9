//! Zenoh's configuration files for a keystore: what is in them, and which keystores get
//! none.

use pteros_test_support::folder::Folder;
use std::path::{Path, PathBuf};

use pteros_security::date::UnixTime;
use pteros_security::diagnostic::Diagnostic;
use pteros_security::keystore::{Keystore, Options};
use pteros_security::policy::{Policy, PolicyAction};
use pteros_security::zenoh::{ZenohFiles, ZenohOptions, zenoh_files};

const NOW: UnixTime = UnixTime(1_800_000_000);
const YEAR: i64 = 365 * 86_400;

/// A keystore of one test, removed at its end.
struct Store {
    root: Folder,
    keystore: Keystore,
}

impl Store {
    fn new(test: &str) -> Self {
        let root = Folder::absent(test);
        let keystore = Keystore::create(&root, &Options::default(), NOW).unwrap();
        let store = Self { root, keystore };
        let mut policy = Policy::default();
        policy.allow("/talker", "/", "talker", PolicyAction::Publish, "/chatter");
        policy.allow("/arm", "/", "arm", PolicyAction::Subscribe, "/chatter");
        policy.allow("/zenohd", "/", "router", PolicyAction::Publish, "/none");
        for enclave in &policy.enclaves {
            let options = Options {
                days: 300,
                ..Options::default()
            };
            let made = store
                .keystore
                .create_enclave(&enclave.path, Some(enclave), &options, NOW);
            made.unwrap();
        }
        store
    }

    fn file(&self, name: &str) -> PathBuf {
        self.root.join("enclaves").join(name)
    }

    fn options(&self) -> ZenohOptions {
        ZenohOptions {
            domain: 0,
            routers: vec!["/zenohd".into()],
            sessions: Vec::new(),
            listen: vec!["tls/[::]:7447".into()],
            connect: vec!["tls/localhost:7447".into()],
            keystore_path: "/etc/\"robot\"".into(),
        }
    }

    fn made(&self) -> Result<ZenohFiles, Vec<Diagnostic>> {
        zenoh_files(&self.keystore, &self.options(), NOW)
    }

    /// The only fault: file name, field and text.
    #[track_caller]
    fn fault(&self, options: &ZenohOptions, now: UnixTime) -> String {
        let faults = zenoh_files(&self.keystore, options, now).unwrap_err();
        let texts: Vec<String> = faults.iter().map(ToString::to_string).collect();
        texts.join("\n")
    }
}

fn text_of<'a>(made: &'a ZenohFiles, path: &Path) -> &'a str {
    let file = made.files.iter().find(|(own, _)| own == path);
    &file.unwrap_or_else(|| panic!("no {}", path.display())).1
}

#[test]
fn every_enclave_gets_a_file_and_the_router_knows_all() {
    let store = Store::new("all");
    let made = store.made().unwrap();
    assert_eq!(made.warnings, []);
    let router = text_of(&made, &store.file("zenohd/zenoh_router.json5"));
    let talker = text_of(&made, &store.file("talker/zenoh_session.json5"));
    assert_eq!(made.files.len(), 3);
    for part in [
        "mode: \"router\"",
        "endpoints: [\"tls/[::]:7447\"]",
        "listen_certificate: \"/etc/\\\"robot\\\"/enclaves/zenohd/cert.pem\"",
        "enable_mtls: true",
        "default_permission: \"deny\"",
        "{ id: \"/talker\", cert_common_names: [\"/talker\"], link_protocols: [\"tls\"] }",
        "{ id: \"/arm\", cert_common_names: [\"/arm\"], link_protocols: [\"tls\"] }",
        "\"0/chatter/*/*\"",
    ] {
        assert!(router.contains(part), "{part}: {router}");
    }
    for part in [
        "mode: \"client\"",
        "endpoints: [\"tls/localhost:7447\"]",
        "connect_private_key: \"/etc/\\\"robot\\\"/enclaves/talker/key.pem\"",
        "cert_common_names: [\"/zenohd\"]",
    ] {
        assert!(talker.contains(part), "{part}: {talker}");
    }
    let arm = text_of(&made, &store.file("arm/zenoh_session.json5"));
    let puts = |flow| format!("flows: [\"{flow}\"],\n        messages: [\"put\", \"reply\"]");
    assert!(talker.contains(&puts("egress")) && !talker.contains(&puts("ingress")));
    assert!(arm.contains(&puts("ingress")) && !arm.contains(&puts("egress")));
    assert!(talker.contains("\"0/chatter/*/*\"") && !talker.contains("/arm"));
    assert!(!talker.contains("PRIVATE KEY"));

    assert!(made.existing().is_empty());
    made.write().unwrap();
    assert!(made.existing().is_empty(), "their content is the same");
    std::fs::write(store.file("arm/zenoh_session.json5"), "{}").unwrap();
    assert_eq!(made.existing(), [store.file("arm/zenoh_session.json5")]);
}

#[test]
fn an_unknown_enclave_and_another_domain_are_named() {
    let store = Store::new("unknown");
    let with = |change: fn(&mut ZenohOptions)| {
        let mut options = store.options();
        change(&mut options);
        store.fault(&options, NOW)
    };
    let fault = with(|options| options.sessions = vec!["/leg".into()]);
    assert!(
        fault.contains("enclave '/leg': the keystore has no enclave"),
        "{fault}"
    );
    let fault = with(|options| options.routers = vec!["../x".into()]);
    assert!(fault.contains("does not begin with /"), "{fault}");
    let fault = with(|options| options.domain = 5);
    assert!(
        fault.contains("no domain rule names this domain"),
        "{fault}"
    );
}

#[test]
fn permissions_that_cannot_be_trusted_or_read_stop_it() {
    let store = Store::new("permissions");
    let permissions = store.file("talker/permissions.p7s");
    let own = std::fs::read(&permissions).unwrap();
    let foreign = Store::new("foreign");
    std::fs::copy(foreign.file("talker/permissions.p7s"), &permissions).unwrap();
    let fault = store.fault(&store.options(), NOW);
    assert!(
        fault.contains("talker/permissions.p7s") && fault.contains("sign"),
        "{fault}"
    );
    std::fs::write(&permissions, "nothing").unwrap();
    let fault = store.fault(&store.options(), NOW);
    assert!(fault.contains("talker/permissions.p7s"), "{fault}");
    std::fs::remove_file(&permissions).unwrap();
    let fault = store.fault(&store.options(), NOW);
    assert!(
        fault.contains("talker/permissions.p7s: file: cannot be read"),
        "{fault}"
    );
    std::fs::write(&permissions, own).unwrap();
    std::fs::copy(
        foreign.file("talker/cert.pem"),
        store.file("talker/cert.pem"),
    )
    .unwrap();
    let fault = store.fault(&store.options(), NOW);
    assert!(fault.contains("talker/"), "{fault}");
}

#[test]
fn an_expired_certificate_stops_it() {
    let store = Store::new("expired");
    let fault = store.fault(&store.options(), UnixTime(NOW.0 + YEAR));
    assert!(fault.contains("talker/cert.pem: certificate"), "{fault}");
}

#[test]
fn a_revoked_enclave_gets_no_rights() {
    let store = Store::new("revoked");
    store
        .keystore
        .revoke("/arm", &Options::default(), NOW)
        .unwrap();
    let made = store.made().unwrap();
    let warnings: Vec<String> = made.warnings.iter().map(ToString::to_string).collect();
    assert!(
        warnings[0].contains("enclave '/arm': is revoked"),
        "{warnings:?}"
    );
    let router = text_of(&made, &store.file("zenohd/zenoh_router.json5"));
    assert!(!router.contains("/arm"));
    let named = ZenohOptions {
        sessions: vec!["/arm".into()],
        ..store.options()
    };
    let fault = store.fault(&named, NOW);
    assert!(fault.contains("was revoked"), "{fault}");
    // Whatever its own folder says of revocations.
    std::fs::remove_file(store.file("arm/crl.pem")).unwrap();
    assert!(store.fault(&named, NOW).contains("was revoked"));
}

#[test]
fn a_renewed_enclave_shares_its_rights_with_the_revoked_certificate_and_a_warning_says_so() {
    let store = Store::new("renewed");
    let options = Options::default();
    store.keystore.revoke("/arm", &options, NOW).unwrap();
    let renewed = store.keystore.create_enclave("/arm", None, &options, NOW);
    renewed.unwrap();
    let made = store.made().unwrap();
    let warnings: Vec<String> = made.warnings.iter().map(ToString::to_string).collect();
    assert!(
        warnings.iter().any(|text| text.contains("crl.pem")
            && text.contains("revoked certificate has the rights of the one that replaced it")),
        "{warnings:?}"
    );
}

#[test]
fn two_enclaves_with_one_common_name_are_refused() {
    let store = Store::new("twice");
    let copy = store.file("copy");
    std::fs::create_dir(&copy).unwrap();
    for entry in std::fs::read_dir(store.file("talker")).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), copy.join(entry.file_name())).unwrap();
    }
    let fault = store.fault(&store.options(), NOW);
    assert!(fault.contains("is also that of the enclave"), "{fault}");
}
