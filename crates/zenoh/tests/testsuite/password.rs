//! A router that asks for user and password, by Zenoh's own configuration files.

use std::path::PathBuf;

use pteros::config::{DiscoveryRange, ZenohSettings};
use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;
use pteros_zenoh::Router;

use crate::harness::{SOON, free_port, next, text};

/// Files of one test, removed at its end.
struct Files(PathBuf);

impl Files {
    fn new() -> Self {
        let name = format!("pteros-zenoh-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_router_lets_only_known_users_in() {
    let files = Files::new();
    let port = free_port();
    let users = files.write("users.txt", "robot:secret\n");
    let users = users.display();
    let router = format!(
        r#"{{
            mode: "router",
            listen: {{ endpoints: ["tcp/127.0.0.1:{port}"] }},
            transport: {{ auth: {{ usrpwd: {{ dictionary_file: "{users}" }} }} }},
        }}"#
    );
    let _router = Router::start(&ZenohSettings {
        router_config: Some(files.write("router.json5", &router)),
        ..ZenohSettings::default()
    })
    .unwrap();
    let open = |name: &str, auth: &str| {
        let session = format!(
            r#"{{
                mode: "client",
                connect: {{ endpoints: ["tcp/127.0.0.1:{port}"] }},
                transport: {{ auth: {{ usrpwd: {{ {auth} }} }} }},
            }}"#
        );
        let settings = ZenohSettings {
            session_config: Some(files.write(name, &session)),
            router_check_attempts: Some(20),
            ..ZenohSettings::default()
        };
        Context::with_options(ContextOptions {
            discovery_range: Some(DiscoveryRange::Off),
            transports: vec![pteros_zenoh::transport(settings)],
            ..ContextOptions::default()
        })
    };
    for (name, auth) in [
        ("wrong.json5", r#"user: "robot", password: "guess""#),
        ("unknown.json5", r#"user: "other", password: "secret""#),
        ("nobody.json5", ""),
    ] {
        let refused = open(name, auth).err().map(|error| error.to_string());
        let refused = refused.unwrap_or_else(|| panic!("{name}: it is let in"));
        assert!(
            refused.contains("open a Zenoh session"),
            "{name}: {refused}"
        );
    }
    let contexts = ["one.json5", "two.json5"]
        .map(|name| open(name, r#"user: "robot", password: "secret""#).unwrap());
    let [talker, listener] = contexts
        .each_ref()
        .map(|context| context.create_node("node").unwrap());
    let publisher: Publisher<Text> = talker.create_publisher("chatter").unwrap();
    let heard: Subscription<Text> = listener.create_polled_subscription("chatter").unwrap();
    assert!(publisher.wait_for_matched(1, SOON) && heard.wait_for_matched(1, SOON));
    publisher.publish(&text("in")).unwrap();
    assert_eq!(next(&heard), "in");
}
