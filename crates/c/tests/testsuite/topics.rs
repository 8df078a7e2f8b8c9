//! Publishers, subscriptions, timers and executors of C, beside those of Rust.

use std::sync::mpsc;

use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;

use crate::harness::{TIMEOUT, c_compilers, start};

fn node(domain: u32, name: &str) -> Node {
    let context = Context::with_options(ContextOptions::local(domain)).unwrap();
    context.create_node(name).unwrap()
}

#[test]
fn a_talker_of_c_is_heard_by_rust() {
    for (at, compiler) in (0..).zip(c_compilers()) {
        let domain = 170 + at;
        let node = node(domain, "rust_listener");
        let (sender, heard) = mpsc::channel();
        let _subscription = node
            .create_subscription::<Text>("chatter".keep_last(50), move |text| {
                let _ = sender.send(text.data.clone());
            })
            .unwrap();
        let talker = start(&compiler.build("examples/talker.c"), domain, &["20"]);
        let mut texts = Vec::new();
        node.spin_until(
            || {
                texts.extend(heard.try_iter());
                texts.len() >= 3
            },
            TIMEOUT,
        );
        assert!(texts.len() >= 3, "{compiler:?}: {texts:?}");
        assert!(texts.iter().all(|text| text.starts_with("Hello World: ")));
        assert!(talker.finish().contains("Hello World: 20"));
    }
}

#[test]
fn a_listener_of_c_hears_rust_in_an_event_loop_of_its_own() {
    for (at, compiler) in (0..).zip(c_compilers()) {
        let domain = 172 + at;
        let node = node(domain, "rust_talker");
        let publisher = node
            .create_publisher::<Text>("chatter".keep_last(50))
            .unwrap();
        let mut listener = start(&compiler.build("examples/listener.c"), domain, &["2"]);
        assert!(publisher.wait_for_matched(1, TIMEOUT));
        for text in ["naïve 🦉", ""] {
            publisher.publish(&Text { data: text.into() }).unwrap();
            listener.expect(&format!("I heard: [{text}]"));
        }
        listener.finish();
    }
}

#[test]
fn programs_of_c_hear_each_other() {
    let [compiler, ..] = c_compilers()[..] else {
        return;
    };
    let mut listener = start(&compiler.build("examples/listener.c"), 174, &["3"]);
    let _talker = start(&compiler.build("examples/talker.c"), 174, &["400"]);
    listener.expect("I heard: [Hello World: ");
    listener.finish();
}
