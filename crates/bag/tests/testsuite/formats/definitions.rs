//! Each message is decoded by the definition that its bag has for it.

use super::*;

/// Log of kinds: one topic and type with several definitions. Each message is decoded by
/// its own, in every storage, in merged bags and after a copy.
#[test]
fn each_message_is_decoded_by_its_own_definition() {
    let right = (640, 480);
    let two = Folder::absent("formats-two-channels");
    size_bag(&two, &[WIDTH_FIRST, HEIGHT_FIRST, WIDTH_FIRST]);
    let ones = [
        Folder::absent("formats-one-1"),
        Folder::absent("formats-one-2"),
    ];
    size_bag(&ones[0], &[WIDTH_FIRST]);
    size_bag(&ones[1], &[HEIGHT_FIRST]);
    let parts = [&ones[0], &ones[1]].map(|part| part.to_path_buf());
    let library = pteros::interfaces::library();
    let ros1 = ros1_bag(
        &[
            ("/size", "my_msgs/Size", WIDTH_FIRST),
            ("/size", "my_msgs/Size", HEIGHT_FIRST),
            // A type around the other one, whose text says which it is.
            (
                "/size",
                "my_msgs/Size",
                "uint32 width # of it\nuint32 height\n",
            ),
        ],
        &[
            (0, &words(&[640, 480])),
            (1, &words(&[480, 640])),
            (2, &words(&[640, 480])),
        ],
    );
    let cases: [(&str, BagReader, usize); 4] = [
        ("channels", BagReader::open(&two).unwrap(), 3),
        ("merged", BagReader::open_all(&parts, library).unwrap(), 2),
        (
            "sqlite3",
            BagReader::open(&fixture("two_definitions.db3")).unwrap(),
            2,
        ),
        ("ROS 1", BagReader::from_bytes(ros1).unwrap(), 3),
    ];
    for (name, mut reader, count) in cases {
        let types: Vec<&str> = reader
            .topics()
            .iter()
            .map(|t| t.topic.type_name.as_str())
            .collect();
        assert_eq!(types, ["my_msgs/msg/Size"; 2], "{name}");
        assert_eq!(sizes(&mut reader), vec![right; count], "{name}");
        let new = Folder::absent(&format!("formats-own-{}", name.replace(' ', "-")));
        copy(
            &mut reader,
            MessageFilter::default(),
            &new,
            BagOptions::default(),
        )
        .unwrap();
        let mut copied = BagReader::open(&new).unwrap();
        assert_eq!(sizes(&mut copied), vec![right; count], "{name}, copied");
        assert_eq!(copied.topics().len(), 2, "{name}, copied");
    }
}

/// Log of kinds: definitions in IDL and of services, as rosbag2 writes them, with nested
/// types that the bag has or lacks, and blank ones.
#[test]
fn definitions_in_idl_and_of_services_are_those_of_their_messages() {
    let line = "=".repeat(80);
    let idl = |fields: &str| {
        format!(
            "{line}\nIDL: my_msgs/msg/Size\n#include \"my_msgs/msg/Part.idl\"\nmodule my_msgs {{\n  module msg {{\n    struct Size {{ {fields} }};\n  }};\n}};\n\n{line}\nIDL: my_msgs/msg/Part\nmodule my_msgs {{ module msg {{ struct Part {{ unsigned long n; }}; }}; }};\n"
        )
    };
    let nested = "my_msgs::msg::Part width; my_msgs::msg::Part height;";
    let turned = "unsigned long height; unsigned long width;";
    let service =
        format!("{line}\nSRV: my_msgs/srv/Resize\nuint32 width\n---\nstd_msgs/Bool done\n");
    // Of one request, and of no response.
    let mut event = words(&[0; 10]);
    event.extend(words(&[1, 640, 0]));
    let string = "\u{3}\0\0\0hi\0".as_bytes();
    let cases = [
        (
            "my_msgs/msg/Size",
            idl(nested),
            words(&[640, 480]),
            r#"{"width":{"n":640},"height":{"n":480}}"#,
        ),
        (
            "my_msgs/msg/Size",
            idl(turned),
            words(&[480, 640]),
            r#"{"height":480,"width":640}"#,
        ),
        (
            "my_msgs/msg/Size",
            WIDTH_FIRST.to_owned(),
            words(&[640, 480]),
            r#"{"width":640,"height":480}"#,
        ),
        (
            "my_msgs/srv/Resize_Event",
            service,
            event,
            r#""request":[{"width":640}],"response":[]}"#,
        ),
        (
            "my_msgs/msg/Outer",
            "std_msgs/String lacking\n".to_owned(),
            string.to_vec(),
            r#"{"lacking":{"data":"hi"}}"#,
        ),
        (
            "std_msgs/msg/String",
            " \n".to_owned(),
            string.to_vec(),
            r#"{"data":"hi"}"#,
        ),
        ("std_msgs/msg/Empty", "\n".to_owned(), vec![0], "{}"),
        ("my_msgs/msg/Nothing", "\n".to_owned(), vec![0], "{}"),
    ];
    let (bag, new) = (
        Folder::absent("formats-idl"),
        Folder::absent("formats-idl-copied"),
    );
    let mut writer = BagWriter::create(&bag, BagOptions::default()).unwrap();
    for (number, (type_name, definition, message, _)) in (0..).zip(&cases) {
        let topic = BagTopic {
            name: "/topic".into(),
            type_name: (*type_name).into(),
            definition: definition.clone(),
            serialization_format: "cdr".into(),
            ..BagTopic::default()
        };
        let channel = writer.add_topic(topic).unwrap();
        let payload = [&[0, 1, 0, 0], message.as_slice()].concat();
        writer
            .write(channel, START + number, START + number, &payload)
            .unwrap();
    }
    writer.finish(&Default::default()).unwrap();
    let mut reader = BagReader::open(&bag).unwrap();
    copy(
        &mut reader,
        MessageFilter::default(),
        &new,
        BagOptions::default(),
    )
    .unwrap();
    for folder in [bag, new] {
        let mut reader = BagReader::open(&folder).unwrap();
        let messages = all(&mut reader);
        assert_eq!(messages.len(), cases.len());
        for (message, (type_name, _, _, wanted)) in messages.iter().zip(&cases) {
            let text = json(&reader, message);
            assert!(text.ends_with(wanted), "{type_name}: {text}");
        }
    }
}

/// Log of kinds: definitions that nest others of the same name, and those that only differ
/// in their text.
#[test]
fn nested_types_are_those_of_their_own_definition() {
    let line = "=".repeat(80);
    let outer = |inner: &str| format!("Inner size\n{line}\nMSG: my_msgs/Inner\n{inner}");
    let (one, other) = (outer(WIDTH_FIRST), outer(HEIGHT_FIRST));
    let bag = ros1_bag(
        &[
            ("/a", "my_msgs/Outer", &one),
            ("/b", "my_msgs/Other", &other),
        ],
        &[(0, &words(&[640, 480])), (1, &words(&[480, 640]))],
    );
    let mut reader = BagReader::from_bytes(bag).unwrap();
    let texts: Vec<String> = all(&mut reader).iter().map(|m| json(&reader, m)).collect();
    assert_eq!(
        texts,
        [
            r#"{"size":{"width":640,"height":480}}"#,
            r#"{"size":{"height":480,"width":640}}"#
        ]
    );
    // Other comments are the same type, and so is none where the hash is known.
    let new = Folder::absent("formats-comments");
    let mut writer = BagWriter::create(&new, BagOptions::default()).unwrap();
    for definition in [
        WIDTH_FIRST,
        "# pixels\nuint32 width\n\nuint32 height # of rows\n",
    ] {
        let channel = writer.add_topic(size_topic(definition)).unwrap();
        writer.write(channel, 1, 1, &cdr(&[640, 480])).unwrap();
    }
    writer.finish(&Default::default()).unwrap();
    let mut reader = BagReader::open(&new).unwrap();
    assert_eq!(reader.topics().len(), 1);
    assert_eq!(
        (reader.topics()[0].message_count, sizes(&mut reader).len()),
        (2, 2)
    );
}

/// A hash without its definition: the known one may be another version.
#[test]
fn a_known_type_with_another_hash_is_not_taken_for_the_recorded_one() {
    let library = pteros::interfaces::library();
    let mut topic = BagTopic {
        type_name: "std_msgs/msg/String".into(),
        type_hash: format!("RIHS01_{}", "0".repeat(64)),
        ..BagTopic::default()
    };
    let error = message_type(&topic, library).unwrap_err();
    assert!(
        error.contains("has the hash RIHS01_df668c") && error.contains("--interfaces"),
        "{error}"
    );
    topic.type_hash = library
        .type_hash("std_msgs/msg/String")
        .unwrap()
        .to_string();
    message_type(&topic, library).unwrap();
    topic.serialization_format = "json".into();
    let error = message_type(&topic, library).unwrap_err();
    assert!(error.contains("its messages are json"), "{error}");
}
