//! Certificates of a SROS 2 keystore that expire while sessions are up: the log names the
//! certificate and its end, other links go on, and a renewed one connects again.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use pteros_security::date::UnixTime;
use pteros_security::keystore::{Keystore, Options};
use pteros_security::zenoh::{ZenohOptions, zenoh_files};

use crate::namespaces::{Lab, Program};
use crate::zenoh_networks::host::{Host, SOON, go_on};

const ROUTER: &str = "/zenohd";
/// How long the certificate that expires is valid: enough to start all processes on a
/// loaded machine.
const VALID_SECONDS: i64 = 30;
const DAY: i64 = 86_400;

fn now() -> UnixTime {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    UnixTime(since.as_secs().try_into().unwrap())
}

/// A router in the middle of two hosts, and a keystore whose enclaves are a number of
/// sessions. One of them, or the router, has a certificate that expires soon.
struct Fleet {
    root: PathBuf,
    /// The last second in which the certificate that expires is valid.
    last_second: UnixTime,
    middle: Host,
    a: Host,
    b: Host,
}

impl Fleet {
    fn new(lab: &Lab, short_lived: &str) -> Self {
        let name = format!(
            "pteros-expiring-{}-{}",
            &short_lived[1..],
            std::process::id()
        );
        let fleet = Self {
            root: std::env::temp_dir().join(name),
            last_second: UnixTime(now().0 + VALID_SECONDS),
            middle: Host::on_zenoh(lab, ""),
            a: Host::on_zenoh(lab, ""),
            b: Host::on_zenoh(lab, ""),
        };
        lab.attach(&fleet.middle.namespace, 'm', 1, 9);
        lab.attach(&fleet.a.namespace, 'a', 1, 1);
        lab.attach(&fleet.b.namespace, 'b', 1, 2);
        let options = Options::default();
        let keystore = Keystore::create(&fleet.root, &options, now()).unwrap();
        for enclave in [ROUTER, "/one", "/two", "/ears"] {
            if enclave == short_lived {
                let a_day = Options { days: 1, ..options };
                let at = UnixTime(fleet.last_second.0 - DAY);
                keystore.create_enclave(enclave, None, &a_day, at).unwrap();
            } else {
                keystore
                    .create_enclave(enclave, None, &options, now())
                    .unwrap();
            }
        }
        let options = ZenohOptions {
            domain: 0,
            routers: vec![ROUTER.into()],
            sessions: Vec::new(),
            listen: vec!["tls/10.1.0.9:7447".into()],
            connect: vec!["tls/10.1.0.9:7447".into()],
            keystore_path: fleet.root.clone(),
        };
        zenoh_files(&keystore, &options, now())
            .unwrap()
            .write()
            .unwrap();
        fleet
    }

    /// Renews what `create_enclave` of the command renews.
    fn renew(&self, enclave: &str) {
        let keystore = self.root.display();
        let words = format!("security create_enclave {keystore} {enclave}");
        let (code, out, log) = self.a.run_to_end(self.a.pteros(&words));
        assert_eq!(code, Some(0), "{out}{log}");
    }

    fn file(&self, enclave: &str, name: &str) -> String {
        format!("{}/enclaves{enclave}/{name}", self.root.display())
    }

    #[track_caller]
    fn router(&self) -> Program {
        let mut command = self.middle.pteros("router");
        command.env(
            "ZENOH_ROUTER_CONFIG_URI",
            self.file(ROUTER, "zenoh_router.json5"),
        );
        let mut router = Program::start(command);
        router.wait_for_line(SOON, |line| line.starts_with("Zenoh router "));
        router
    }

    /// A command of a session in an enclave.
    fn session(&self, host: &Host, enclave: &str, words: &str) -> Command {
        let mut command = host.pteros(words);
        let file = self.file(enclave, "zenoh_session.json5");
        command.env("ZENOH_SESSION_CONFIG_URI", file);
        command
    }

    fn publish(&self, enclave: &str) -> Program {
        let topic = format!("/from{}", enclave.replace('/', "_"));
        let words = format!("topic pub -r 10 {topic} std_msgs/msg/Int64");
        let mut command = self.session(&self.a, enclave, &words);
        command.arg("{data: 1}");
        Program::start(command)
    }

    /// Lets the certificate expire while a session is stopped.
    ///
    /// Zenoh (1.10) closes a link at the beginning of the last second, and TLS takes the
    /// certificate until its end. A link that a session opens anew between the two stays:
    /// Zenoh's task for its expiration ends before the link exists. So no session that
    /// the test is about runs in that second.
    fn expire(&self, session: &Program, flow: &Program) {
        session.signal("STOP");
        while now().0 <= self.last_second.0 {
            let _ = flow.out.recv_timeout(Duration::from_millis(100));
        }
        session.signal("CONT");
    }

    fn echo(&self, of: &str) -> Program {
        let topic = format!("/from{}", of.replace('/', "_"));
        let words = format!("topic echo --csv {topic} std_msgs/msg/Int64");
        Program::start(self.session(&self.b, "/ears", &words))
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.root);
    }
}

/// The first line of a log with a text, which may come after the end of a certificate.
#[track_caller]
fn wait_for_log(program: &mut Program, text: &str) -> String {
    program.wait_for_log(SOON, text).text.clone()
}

#[test]
fn a_session_whose_certificate_expires_says_so_and_connects_again_when_it_is_renewed() {
    let Some(lab) = Lab::new() else { return };
    let fleet = Fleet::new(&lab, "/one");
    let _router = fleet.router();
    let mut expiring = fleet.publish("/one");
    let _steady = fleet.publish("/two");
    let [mut of_expiring, mut of_steady] = ["/one", "/two"].map(|of| fleet.echo(of));
    go_on(&mut of_expiring);
    go_on(&mut of_steady);
    fleet.expire(&expiring, &of_steady);

    let said = wait_for_log(&mut expiring, "the certificate of \"/one\" expired at ");
    assert!(said.contains(&fleet.file("/one", "cert.pem")), "{said}");
    assert!(
        said.contains("the session connects again by itself"),
        "{said}"
    );
    // The reason of the other end, which refuses it.
    let refused = wait_for_log(&mut expiring, "no Zenoh link, and none can be opened");
    assert!(
        refused.contains("the other end refuses this session's certificate"),
        "{refused}"
    );
    // Messages under way may still come.
    let end = Instant::now() + SOON;
    while of_expiring.out.recv_timeout(Duration::from_secs(2)).is_ok() {
        assert!(Instant::now() < end, "an expired session is heard");
    }
    go_on(&mut of_steady);
    assert!(
        of_expiring.out.try_recv().is_err(),
        "an expired session is heard"
    );

    fleet.renew("/one");
    go_on(&mut of_expiring);
    go_on(&mut of_steady);
}

#[test]
fn a_router_whose_certificate_expires_says_so_and_so_do_its_sessions() {
    let Some(lab) = Lab::new() else { return };
    let fleet = Fleet::new(&lab, ROUTER);
    let mut router = fleet.router();
    let mut steady = fleet.publish("/two");
    let mut of_steady = fleet.echo("/two");
    go_on(&mut of_steady);
    fleet.expire(&steady, &of_steady);

    let said = wait_for_log(&mut router, "the certificate of \"/zenohd\" expired at ");
    assert!(said.contains(&fleet.file(ROUTER, "cert.pem")), "{said}");
    assert!(said.contains("start this again"), "{said}");
    let refused = wait_for_log(&mut steady, "no Zenoh link, and none can be opened");
    let reason = "this session refuses the other end's certificate: check its dates";
    assert!(refused.contains(reason), "{refused}");

    fleet.renew(ROUTER);
    router.signal("KILL");
    router.wait_for_end(SOON);
    let _router = fleet.router();
    go_on(&mut of_steady);
}
