//! Every standard message type with random values through the PyPI libraries `mcap`,
//! `mcap-ros2-support` and `rosbags`, and back through ours, in MCAP and sqlite3.
//!
//! `cargo xtask peers` installs them, and `PTEROS_PEERS` names the folder with
//! `bag-python`. `PTEROS_BAG_PYTHON` names another Python that has them.
#![allow(
    clippy::disallowed_methods,
    reason = "finds the Python whose libraries read our bags"
)]

use pteros_test_support::folder::Folder;
use std::path::Path;
use std::process::Command;

use crate::support::{assert_contains, finish};
use pteros::msg::dynamic::{DynamicMessage, DynamicType, Element, Shape};
use pteros_bag::definitions::definition_text;
use pteros_bag::{BagOptions, BagReader, BagTopic, BagWriter};

/// Values of each type.
const ROUNDS: u64 = 3;

/// A stream of numbers from a seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: u64) -> usize {
        usize::try_from(self.next() % limit.max(1)).unwrap()
    }
}

/// Appends a random message as CDR.
fn random_message(ty: &DynamicType, random: &mut Random, out: &mut Vec<u8>) {
    for field in ty.fields() {
        let count = match field.shape {
            Shape::Single => 1,
            Shape::Array(count) => count,
            Shape::Sequence { bound } => {
                let count = random.below(4).min(bound);
                align(out, 4);
                out.extend(u32::try_from(count).unwrap().to_le_bytes());
                count
            }
        };
        for _ in 0..count {
            random_element(&field.element, random, out);
        }
    }
}

fn align(out: &mut Vec<u8>, bytes: usize) {
    while !(out.len() - 4).is_multiple_of(bytes) {
        out.push(0);
    }
}

fn random_element(element: &Element, random: &mut Random, out: &mut Vec<u8>) {
    let mut number = |bytes: usize| {
        align(out, bytes);
        out.extend(&random.next().to_le_bytes()[..bytes]);
    };
    match element {
        Element::Bool => out.push((random.next() % 2) as u8),
        Element::Byte | Element::I8 | Element::U8 => number(1),
        Element::I16 | Element::U16 => number(2),
        Element::I32 | Element::U32 => number(4),
        Element::I64 | Element::U64 => number(8),
        // Any value but NaN, which is not equal to itself.
        Element::F32 => {
            align(out, 4);
            out.extend((random.below(1 << 20) as f32 / 7.0 - 1000.0).to_le_bytes());
        }
        Element::F64 => {
            align(out, 8);
            out.extend((random.below(1 << 40) as f64 / 7.0 - 1e9).to_le_bytes());
        }
        Element::String { bound } => {
            let letters = ["a", "é", " ", "🦉", "\"", "Z"];
            let mut text = String::new();
            for _ in 0..random.below(6) {
                let letter = letters[random.below(6)];
                if text.len() + letter.len() <= *bound {
                    text += letter;
                }
            }
            align(out, 4);
            out.extend(u32::try_from(text.len() + 1).unwrap().to_le_bytes());
            out.extend(text.as_bytes());
            out.push(0);
        }
        // Those libraries have no wide strings.
        Element::WString { .. } => {
            align(out, 4);
            out.extend([0; 4]);
        }
        Element::Message(ty) => random_message(ty, random, out),
    }
}

fn has_wide_strings(ty: &DynamicType) -> bool {
    ty.fields().iter().any(|field| match &field.element {
        Element::WString { .. } => true,
        Element::Message(inner) => has_wide_strings(inner),
        _ => false,
    })
}

/// The Python with the libraries, if there is one.
fn python() -> Option<Command> {
    if let Some(python) = std::env::var_os("PTEROS_BAG_PYTHON") {
        return Some(Command::new(python));
    }
    let peers = std::env::var_os("PTEROS_PEERS")?;
    let program = Path::new(&peers).join("bag-python");
    program.exists().then(|| Command::new(program))
}

#[test]
fn every_message_type_is_the_same_after_the_libraries_of_others() {
    let Some(mut python) = python() else {
        eprintln!(
            "skipped: neither PTEROS_PEERS nor PTEROS_BAG_PYTHON leads to mcap-ros2-support and rosbags"
        );
        return;
    };
    let library = pteros::interfaces::library();
    let [ours, theirs, sqlite] = ["ours", "theirs", "sqlite"].map(Folder::absent);
    let mut writer = BagWriter::create(&ours, BagOptions::default()).unwrap();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut expected = Vec::new();
    let mut count = 0u64;
    let mut names = Vec::new();
    for name in library.names() {
        names.extend(library.derived_names(name).unwrap());
    }
    for name in names.iter().filter(|name| !name.ends_with("_Event")) {
        let Ok(described) = library.describe(name) else {
            continue;
        };
        let is_message = name.split('/').nth(1) == Some("msg");
        let ty = DynamicType::new(&described).unwrap();
        if !is_message || has_wide_strings(&ty) {
            continue;
        }
        let definition = definition_text(&described, library);
        // rosbags 0.11.9 takes char for another type id than rosidl does, and refuses a
        // hash that is not its own.
        let has_char = definition.lines().any(|line| line.starts_with("char"));
        let hash = library.type_hash(name).unwrap().to_string();
        let channel = writer
            .add_topic(BagTopic {
                name: format!("/{}", name.replace('/', "_")),
                type_name: name.clone(),
                definition,
                serialization_format: "cdr".into(),
                type_hash: if has_char { String::new() } else { hash },
                ..BagTopic::default()
            })
            .unwrap();
        count += 1;
        for round in 0..ROUNDS {
            let mut payload = vec![0, 1, 0, 0];
            random_message(&ty, &mut random, &mut payload);
            let again = DynamicMessage::from_payload(&ty, &payload).unwrap();
            let json = again.to_json();
            let time = 1000 * count + round;
            writer.write(channel, time, time, &payload).unwrap();
            expected.push((time, json));
        }
    }
    writer.finish(&Default::default()).unwrap();
    assert!(count > 150, "{count}");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bag_types.py");
    python.arg(script).arg(&ours).arg(&theirs).arg(&sqlite);
    let out = finish(python).ok();
    assert_contains(
        &out,
        &format!("mcap: {} messages, {count} types", count * ROUNDS),
    );
    assert_contains(
        &out,
        &format!("rosbags: {} messages, {count} types", count * ROUNDS),
    );
    for bag in [&theirs, &sqlite] {
        let mut reader = BagReader::open(bag).unwrap();
        let topics: Vec<BagTopic> = reader.topics().iter().map(|t| t.topic.clone()).collect();
        let mut read = Vec::new();
        for message in reader.messages(Default::default()) {
            let topic = &topics[message.topic];
            let known =
                pteros_bag::definitions::type_of(&topic.type_name, &topic.definition, library);
            let message = DynamicMessage::from_payload(&known.unwrap(), &message.payload)
                .map(|decoded| (message.log_time, decoded.to_json()));
            read.push(message.unwrap());
        }
        assert_eq!(reader.problems(), [""; 0]);
        assert_eq!(read.len(), expected.len(), "{}", bag.display());
        for (read, expected) in read.iter().zip(&expected) {
            assert_eq!(read, expected, "{}", bag.display());
        }
    }
}
