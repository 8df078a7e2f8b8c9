//! TLS with both ends' certificates, by Zenoh's own configuration files, and the
//! certificates of a SROS 2 keystore.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use pteros::config::{DiscoveryRange, ZenohSettings};
use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;
use pteros_security::date::UnixTime;
use pteros_security::keystore::{Keystore, Options};
use pteros_zenoh::Router;

use crate::harness::{SOON, free_port, next, text, until};

/// A keystore of one test, removed at its end.
pub struct Files(pub PathBuf);

impl Files {
    pub fn new(test: &str) -> Self {
        let name = format!("pteros-zenoh-{test}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// A keystore with these enclaves, and one whose certificate expired days ago.
    fn keystore(&self, name: &str) -> PathBuf {
        let root = self.0.join(name);
        let before = UnixTime(now().0 - 10 * 86_400);
        let keystore = Keystore::create(&root, &Options::default(), before).unwrap();
        let create = |enclave: &str, days: u32, at: UnixTime| {
            let options = Options {
                days,
                ..Options::default()
            };
            let made = keystore.create_enclave(enclave, None, &options, at);
            made.unwrap();
        };
        for enclave in ["/router", "/talker", "/listener"] {
            create(enclave, 30, now());
        }
        create("/expired", 1, before);
        root
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub fn now() -> UnixTime {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    UnixTime(since.as_secs().try_into().unwrap())
}

/// The settings below `transport/link/tls` for an enclave.
fn tls(enclave: &Path) -> String {
    let folder = enclave.display();
    format!(
        r#"{{
            root_ca_certificate: "{folder}/identity_ca.cert.pem",
            listen_private_key: "{folder}/key.pem",
            listen_certificate: "{folder}/cert.pem",
            connect_private_key: "{folder}/key.pem",
            connect_certificate: "{folder}/cert.pem",
            enable_mtls: true,
            verify_name_on_connect: false,
        }}"#
    )
}

fn router(port: u16, tls: &str) -> String {
    format!(
        r#"{{
            mode: "router",
            listen: {{ endpoints: ["tls/127.0.0.1:{port}"] }},
            transport: {{ link: {{ tls: {tls} }} }},
        }}"#
    )
}

fn client(port: u16, tls: &str) -> String {
    format!(
        r#"{{
            mode: "client",
            connect: {{ endpoints: ["tls/127.0.0.1:{port}"] }},
            transport: {{ link: {{ tls: {tls} }} }},
        }}"#
    )
}

pub fn start_router(file: PathBuf) -> Result<Router, String> {
    Router::start(&ZenohSettings {
        router_config: Some(file),
        ..ZenohSettings::default()
    })
}

/// A context whose session has this configuration file.
pub fn open(file: PathBuf) -> Result<Context, String> {
    let settings = ZenohSettings {
        session_config: Some(file),
        router_check_attempts: Some(20),
        ..ZenohSettings::default()
    };
    let context = Context::with_options(ContextOptions {
        discovery_range: Some(DiscoveryRange::Off),
        transports: vec![pteros_zenoh::transport(settings)],
        ..ContextOptions::default()
    });
    context.map_err(|error| error.to_string())
}

#[test]
fn only_valid_certificates_of_the_authority_open_a_session_and_it_survives_the_router() {
    let files = Files::new("tls");
    let enclave = |root: &Path, name: &str| root.join(format!("enclaves/{name}"));
    let [own, other] = ["own", "other"].map(|name| files.keystore(name));
    let port = free_port();
    let file = |name: &str, text: String| files.write(name, &text);
    let router_tls = tls(&enclave(&own, "router"));
    let router_file = file("router.json5", router(port, &router_tls));
    let running = start_router(router_file.clone()).unwrap();

    let authority = |root: &Path| {
        let path = enclave(root, "talker").join("identity_ca.cert.pem");
        path.display().to_string()
    };
    let anonymous = format!(
        r#"{{ root_ca_certificate: "{}", verify_name_on_connect: false }}"#,
        authority(&own)
    );
    let foreign = tls(&enclave(&other, "talker"));
    // It trusts the router, but has a certificate of another authority.
    let forged = foreign.replace(&authority(&other), &authority(&own));
    for (name, tls, reason) in [
        (
            "anonymous",
            &anonymous,
            "CertificateRequired; the other end refuses",
        ),
        (
            "foreign",
            &foreign,
            "this session refuses the other end's certificate",
        ),
        (
            "forged",
            &forged,
            "; the other end refuses this session's certificate",
        ),
    ] {
        let session = file(&format!("{name}.json5"), client(port, tls));
        let refused = open(session).err();
        let refused = refused.unwrap_or_else(|| panic!("{name}: it is let in"));
        let begin = "open a Zenoh session: connect to [\"tls/127.0.0.1:";
        assert!(refused.contains(begin), "{name}: {refused}");
        assert!(refused.contains(reason), "{name}: {refused}");
    }

    let [here, there] = ["talker", "listener"].map(|name| {
        let session = client(port, &tls(&enclave(&own, name)));
        open(file(&format!("{name}.json5"), session)).unwrap()
    });
    let talker = here.create_node("talker").unwrap();
    let listener = there.create_node("listener").unwrap();
    let publisher: Publisher<Text> = talker.create_publisher("chatter").unwrap();
    let heard: Subscription<Text> = listener.create_polled_subscription("chatter").unwrap();
    assert!(publisher.wait_for_matched(1, SOON) && heard.wait_for_matched(1, SOON));
    publisher.publish(&text("in")).unwrap();
    assert_eq!(next(&heard), "in");

    drop(running);
    until(&here, || publisher.matched_count() == 0);
    until(&there, || heard.matched_count() == 0);
    let _again = start_router(router_file).unwrap();
    assert!(publisher.wait_for_matched(1, SOON) && heard.wait_for_matched(1, SOON));
    publisher.publish(&text("again")).unwrap();
    assert_eq!(next(&heard), "again");
}

#[test]
fn an_expired_certificate_is_named_at_both_ends() {
    let files = Files::new("expired");
    let root = files.keystore("keystore");
    let enclave = |name: &str| tls(&root.join(format!("enclaves/{name}")));
    let port = free_port();
    let file = |name: &str, text: String| files.write(name, &text);
    let own = client(port, &enclave("expired"));
    let session = open(file("session.json5", own)).err().unwrap();
    let old = file("router.json5", router(port, &enclave("expired")));
    let routing = start_router(old.clone()).err().unwrap();
    for (error, setting) in [
        (session, "connect_certificate"),
        (routing, "listen_certificate"),
    ] {
        let path = root.join("enclaves/expired/cert.pem");
        let begin = format!("Zenoh setting transport/link/tls/{setting}={path:?}: ");
        assert!(error.contains(&begin), "{error}");
        let wrong = "the certificate of \"/expired\" expired at ";
        assert!(error.contains(wrong), "{error}");
        assert!(error.contains("create_enclave renews"), "{error}");
    }

    // A router that is not of Pteros starts with it.
    let config = zenoh::Config::from_file(old).unwrap();
    let _other = zenoh::Wait::wait(zenoh::open(config)).unwrap();
    let late = client(port, &enclave("talker"));
    let refused = open(file("late.json5", late)).err().unwrap();
    let reason = "this session refuses the other end's certificate: check its dates";
    assert!(refused.contains("expired"), "{refused}");
    assert!(refused.contains(reason), "{refused}");
}
