//! Bags that `pteros bag record` makes of publishers on other middlewares, and that
//! `pteros bag play` plays to subscriptions on them.

use crate::ros2_programs::LINE_MAX;
use crate::ros2_programs::ros2::{Program, Ros2, secured};
use crate::support::{self, Domain};
use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::msg::cdr::from_payload;
use pteros_bag::{BagMessage, BagReader};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// Messages that are recorded of a talker, at least.
const TEXTS: usize = 4;

/// A folder for the bag of one middleware, which does not exist.
fn bag_folder(ros2: &Ros2, name: &str) -> PathBuf {
    let folder = ros2.plug_in.join(format!("bag_{name}"));
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

/// Records a topic until the bag has so many messages, and returns the last lines of the
/// recorder. Nothing was lost.
#[track_caller]
fn record(command: impl Fn(&str) -> Command, folder: &Path, topic: &str, count: usize) {
    let words = format!(
        "bag record --disable-keyboard-controls -o {} {topic}",
        folder.display()
    );
    let mut recorder = support::start(command(&words));
    let end = Instant::now() + LINE_MAX;
    // The file is torn until the recorder ends, and is read as it is.
    let recorded = || {
        let bag = BagReader::open(folder);
        bag.map_or(0, |mut bag| bag.messages(Default::default()).count())
    };
    while recorded() < count {
        if Instant::now() > end {
            recorder.signal("INT");
            let answer = recorder.wait();
            panic!("{topic} is not recorded:\n{}{}", answer.out, answer.err);
        }
        std::thread::yield_now();
    }
    recorder.signal("INT");
    let answer = recorder.wait();
    assert_eq!(answer.code, Some(0), "{}{}", answer.out, answer.err);
    support::assert_contains(&answer.out, ", 0 lost");
}

/// The texts of a bag of std_msgs/msg/String, in their order.
fn texts(folder: &Path) -> Vec<String> {
    let mut bag = BagReader::open(folder).unwrap();
    assert_eq!(bag.problems(), [""; 0]);
    let text = |message: BagMessage| from_payload::<Text>(&message.payload).unwrap().data;
    bag.messages(Default::default()).map(text).collect()
}

/// Plays again and again until a listener has printed each text.
#[track_caller]
fn play_to(
    command: impl Fn(&str) -> Command,
    folder: &Path,
    mut listener: Program,
    texts: &[String],
) {
    let words = format!(
        "bag play --loop --rate 20 --disable-keyboard-controls --wait-for-matched 60 {}",
        folder.display()
    );
    let player = support::start(command(&words));
    for text in texts {
        listener.expect(&format!("I heard: [{text}]"));
    }
    drop(player);
    let heard = listener.interrupt();
    let lines = heard.lines().filter_map(|line| {
        let (_, text) = line.split_once("I heard: [")?;
        text.strip_suffix(']')
    });
    for line in lines {
        assert!(
            texts.iter().any(|text| text == line),
            "{line:?} is not in the bag"
        );
    }
}

/// The texts of a bag are those that a talker printed, one after the other.
#[track_caller]
fn check_texts(texts: &[String], printed: &str) {
    assert!(texts.len() >= TEXTS, "{texts:?}");
    let first = texts[0].rsplit(' ').next().unwrap();
    let first: usize = first.parse().unwrap();
    for (number, text) in (first..).zip(texts) {
        assert_eq!(text, &format!("Hello World: {number}"), "{texts:?}");
        support::assert_contains(printed, &format!("Publishing: '{text}'"));
    }
}

fn has_talker(ros2: &Ros2) -> bool {
    let programs = ["demo_nodes_cpp/talker", "demo_nodes_cpp/listener"];
    let missing = programs.into_iter().find(|program| !ros2.has(program));
    if let Some(program) = missing {
        println!("left out: {program} is not installed");
    }
    missing.is_none()
}

#[test]
fn texts_of_each_middleware_are_recorded_and_played_to_it() {
    let Some(ros2) = Ros2::find() else { return };
    if !has_talker(&ros2) {
        return;
    }
    for rmw in ros2.others() {
        let domain = Domain::new();
        let pteros = |words: &str| domain.command(words.split(' '));
        let folder = bag_folder(&ros2, rmw);
        let talker = ros2.start(&domain, rmw, "demo_nodes_cpp/talker");
        record(pteros, &folder, "/chatter", TEXTS);
        let printed = talker.interrupt();
        let texts = texts(&folder);
        check_texts(&texts, &printed);
        let listener = ros2.start(&domain, rmw, "demo_nodes_cpp/listener");
        play_to(pteros, &folder, listener, &texts);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

/// Latched messages from nothing to 8 MiB: the recorder comes later than the publisher,
/// and gets them all, as a subscription of the same middleware does from the player.
#[test]
fn latched_messages_of_every_size_are_recorded_and_played_whole() {
    let Some(ros2) = Ros2::find() else { return };
    let sizes = [0, 1, 1_000, 64_000, 1_000_000, 8_388_608];
    for rmw in ros2.others() {
        let domain = Domain::new();
        let pteros = |words: &str| domain.command(words.split(' '));
        let folder = bag_folder(&ros2, &format!("sizes_{rmw}"));
        let mut publisher = ros2.start_script(&domain, rmw, "ros2_sizes.py publish");
        publisher.expect("published");
        record(pteros, &folder, "/sizes", sizes.len());
        drop(publisher);
        let mut subscriber = ros2.start_script(&domain, rmw, "ros2_sizes.py subscribe");
        let words = format!(
            "bag play --loop --delay 1 --disable-keyboard-controls --wait-for-matched 60 {}",
            folder.display()
        );
        let player = support::start(pteros(&words));
        for size in sizes {
            subscriber.expect(&format!("size {size} whole"));
        }
        assert!(!subscriber.seen.contains("damaged"), "{}", subscriber.seen);
        drop(player);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

/// The same within a secured graph, for the middlewares whose DDS has the plug-ins of DDS
/// Security. A recorder outside of the graph gets nothing.
#[test]
fn secured_graphs_are_recorded_and_played() {
    let Some(ros2) = Ros2::find() else { return };
    if !has_talker(&ros2) {
        return;
    }
    let domain = Domain::new();
    let enclaves = ["/talker", "/listener", "/recorder", "/player"];
    let keystore = ros2.keystore(&domain, "keystore_of_bags", &enclaves);
    // The keystore's governance is for that domain.
    for rmw in ros2.others() {
        let of_enclave = |enclave: &'static str, words: &str| {
            let mut command = domain.command(words.split(' '));
            command.envs(secured(&keystore, enclave));
            command
        };
        let folder = bag_folder(&ros2, &format!("secured_{rmw}"));
        let secured = |enclave| ros2.secured(&keystore, enclave);
        let mut talker = secured("/talker").start(&domain, rmw, "demo_nodes_cpp/talker");
        if !talker.expect_or_end("Publishing: ") {
            // Fast DDS is often built so, and says it.
            let part = "doesn't have the security libraries";
            support::assert_contains(&talker.seen, part);
            println!("left out: {rmw} {part}");
            continue;
        }
        record(
            |words| of_enclave("/recorder", words),
            &folder,
            "/chatter",
            TEXTS,
        );
        let outside = bag_folder(&ros2, &format!("outside_{rmw}"));
        let words = format!(
            "bag record --disable-keyboard-controls -a -o {}",
            outside.display()
        );
        let mut recorder = domain.start(&words);
        // It runs, and as many messages as the other recorder got are published meanwhile.
        support::assert_contains(&recorder.error_line(), "Recording to");
        let before = talker.count_now("Publishing: ");
        talker.expect_count("Publishing: ", before + TEXTS);
        recorder.signal("INT");
        let answer = recorder.wait();
        assert_eq!(answer.code, Some(0), "{}{}", answer.out, answer.err);
        assert_eq!(texts(&outside), [""; 0]);
        std::fs::remove_dir_all(&outside).unwrap();
        let printed = talker.interrupt();
        let texts = texts(&folder);
        check_texts(&texts, &printed);
        let listener = secured("/listener").start(&domain, rmw, "demo_nodes_cpp/listener");
        play_to(
            |words| of_enclave("/player", words),
            &folder,
            listener,
            &texts,
        );
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
