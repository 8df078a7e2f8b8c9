//! Dynamic messages through all their forms.

use super::*;
use crate::cdr::{DecodeError, Encapsulation, Encoder, Endian, Representation};
use crate::library::InterfaceLibrary;
use crate::message::{Encode, WString};
use crate::schema::InterfaceKind;
use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

const DEFINITIONS: &[(&str, &str, &str)] = &[
    ("builtin_interfaces", "Time", "int32 sec\nuint32 nanosec"),
    (
        "std_msgs",
        "Header",
        "builtin_interfaces/Time stamp\nstring frame_id",
    ),
    ("std_msgs", "String", "string data"),
    ("std_msgs", "Empty", ""),
    (
        "sensor_msgs",
        "JointState",
        "std_msgs/Header header\nstring[] name\nfloat64[] position\nfloat64[] velocity\nfloat64[] effort",
    ),
    (
        "sensor_msgs",
        "PointField",
        "string name\nuint32 offset\nuint8 datatype\nuint32 count",
    ),
    (
        "sensor_msgs",
        "PointCloud2",
        "std_msgs/Header header\nuint32 height\nuint32 width\nPointField[] fields\nbool is_bigendian\n\
         uint32 point_step\nuint32 row_step\nuint8[] data\nbool is_dense",
    ),
    (
        "my_msgs",
        "Everything",
        "bool a\nbyte b\nchar c\nint8 d\nuint8 e\nint16 f\nuint16 g\nint32 h\nuint32 i\nint64 j\n\
         uint64 k\nfloat32 l\nfloat64 m\nstring n\nwstring o\nstring<=4 p\nwstring<=3 q\n\
         std_msgs/Header r\nstd_msgs/Empty s",
    ),
    (
        "my_msgs",
        "Lists",
        "bool[] a\nbyte[] b\nint8[<=4] d\nuint8[3] e\nint16[] f\nuint16[] g\nint32[] h\nuint32[] i\n\
         int64[] j\nuint64[2] k\nfloat32[] l\nfloat64[2] m\nstring[] n\nstring[2] o\nwstring[] p\n\
         string<=3[<=2] q\nEverything[] r\nbuiltin_interfaces/Time[2] s\nstd_msgs/Empty[] t\nbool[3] u",
    ),
    (
        "my_msgs",
        "Defaults",
        "int32 count 5\nfloat64[3] gains [1.0, -0.5, 2e3]\nstring name \"two words\"\n\
         string[] tags ['a, b', \"it's\"]\nbool on true\nuint8[<=4] bytes [1, 255]",
    ),
];

fn ty(name: &str) -> DynamicType {
    let mut library = InterfaceLibrary::new();
    for (package, name, text) in DEFINITIONS {
        library.insert_text(package, InterfaceKind::Message, name, *text, "test");
    }
    DynamicType::new(&library.describe(name).unwrap()).unwrap()
}

fn random_text(random: &mut fastrand::Rng, max: usize) -> String {
    let alphabet: Vec<char> = "ab -:#'\"\\\n\t,[]{}&*!|>%@`~0.é🦉\u{85}\u{2028}\u{202e}\u{7f}\0yno"
        .chars()
        .collect();
    let mut text = String::new();
    for _ in 0..random.usize(0..8) {
        let c = alphabet[random.usize(0..alphabet.len())];
        if text.len() + c.len_utf8() <= max {
            text.push(c);
        }
    }
    text
}

fn random_value(field: &MessageField, random: &mut fastrand::Rng) -> Value {
    let count = match field.shape {
        Shape::Single => return random_one(&field.element, random),
        Shape::Array(count) => count,
        Shape::Sequence { bound } => random.usize(0..4).min(bound),
    };
    let items = (0..count)
        .map(|_| random_one(&field.element, random))
        .collect();
    Value::gather(&field.element, items).unwrap()
}

fn random_one(element: &Element, random: &mut fastrand::Rng) -> Value {
    let float = match random.u8(0..6) {
        0 => f64::INFINITY,
        1 => -0.0,
        2 => random.f64(),
        3 => f64::from(random.i16(..)),
        4 => f64::from_bits(random.u64(..)),
        _ => random.f64() * 1e-30,
    };
    // NaN is not equal to itself; it has its own test.
    let float = if float.is_nan() { 1.0 } else { float };
    match element {
        Element::Bool => Value::Bool(random.bool()),
        Element::F32 => Value::F32(float as f32),
        Element::F64 => Value::F64(float),
        Element::String { bound } => Value::String(random_text(random, *bound)),
        Element::WString { bound } => {
            let text = WString::from(random_text(random, (*bound).min(8)));
            Value::WString(if text.0.len() <= *bound {
                text
            } else {
                WString::default()
            })
        }
        Element::Message(ty) => Value::Message(random_message(ty, random)),
        number => {
            let wide = i128::from(random.u64(..)) >> random.u32(0..64);
            let signed = if random.bool() { wide } else { -wide };
            Value::integer(number, signed)
                .or_else(|| Value::integer(number, wide))
                .unwrap_or_else(|| Value::zero(number, Shape::Single))
        }
    }
}

fn random_message(ty: &DynamicType, random: &mut fastrand::Rng) -> DynamicMessage {
    let values = ty.fields().iter().map(|field| {
        if field.name == types::PLACEHOLDER {
            field.default_value()
        } else {
            random_value(field, random)
        }
    });
    DynamicMessage::from_parts(ty.clone(), values.collect())
}

fn hex(text: &str) -> Vec<u8> {
    (0..text.len() / 2)
        .map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap())
        .collect()
}

/// Written by the `rosbags` Python package, an independent implementation.
#[test]
fn bytes_agree_with_another_implementation() {
    let payload = hex(
        "000100000100000002000000040000006d6170000200000002000000610000000400000062636400\
         01000000000000000000f83f000000000200000000000000000000c00000000000000840",
    );
    let message =
        DynamicMessage::from_payload(&ty("sensor_msgs/msg/JointState"), &payload).unwrap();
    assert_eq!(*message.get("header.stamp.nanosec").unwrap(), Value::U32(2));
    assert_eq!(*message.get("name[1]").unwrap(), Value::from("bcd"));
    assert_eq!(*message.get("position").unwrap(), Value::F64s(vec![1.5]));
    assert!(message.get("velocity").unwrap().is_empty());
    assert_eq!(*message.get("effort[0]").unwrap(), Value::F64(-2.0));
    assert_eq!(message.to_payload(Representation::Xcdr1), payload);

    let payload = hex(
        "000100000100000002000000040000006d6170000100000002000000020000000200000078000000\
         000000000700000001000000040000007267620004000000060000000100000000000000080000001\
         000000010000000000102030405060708090a0b0c0d0e0f01",
    );
    let cloud = DynamicMessage::from_payload(&ty("sensor_msgs/msg/PointCloud2"), &payload).unwrap();
    assert_eq!(*cloud.get("fields[1].offset").unwrap(), Value::U32(4));
    assert_eq!(*cloud.get("is_dense").unwrap(), Value::Bool(true));
    assert!(
        matches!(cloud.get("data").unwrap(), Cow::Borrowed(Value::Bytes(data)) if data.len() == 16)
    );
    let mut again = cloud.to_payload(Representation::Xcdr1);
    again.truncate(payload.len());
    again[3] = 0;
    assert_eq!(again, payload);
}

#[test]
fn any_message_survives_cdr_of_both_versions_and_byte_orders() {
    let mut random = fastrand::Rng::with_seed(1);
    for name in ["my_msgs/msg/Everything", "my_msgs/msg/Lists"] {
        let ty = ty(name);
        for _ in 0..200 {
            let message = random_message(&ty, &mut random);
            for representation in [Representation::Xcdr1, Representation::Xcdr2] {
                for endian in [Endian::Little, Endian::Big] {
                    let mut payload = Encapsulation::plain(representation, endian)
                        .to_bytes()
                        .to_vec();
                    message.encode(&mut Encoder::to_vec(&mut payload, representation, endian));
                    let back = DynamicMessage::from_payload(&ty, &payload);
                    assert_eq!(back.as_ref(), Ok(&message));
                    assert!(payload.len() >= 4 + ty.wire_bytes_min());
                    let cut = random.usize(4..payload.len());
                    assert!(DynamicMessage::from_payload(&ty, &payload[..cut]).is_err());
                }
            }
        }
    }
}

#[test]
fn random_bytes_are_an_error_or_a_message_that_round_trips() {
    let ty = ty("my_msgs/msg/Lists");
    let mut random = fastrand::Rng::with_seed(2);
    for round in 0..5_000 {
        let mut payload = vec![0u8; random.usize(4..200)];
        random.fill(&mut payload);
        payload[..4].copy_from_slice(&[0, [0, 1, 6, 7, 8, 9][round % 6], 0, 0]);
        for byte in payload.iter_mut().skip(4) {
            if random.u8(0..4) > 0 {
                *byte &= 1;
            }
        }
        if let Ok(message) = DynamicMessage::from_payload(&ty, &payload) {
            message.check_bounds().unwrap();
        }
    }
}

#[cfg(feature = "std")]
#[test]
fn any_message_survives_yaml_and_json() {
    let mut random = fastrand::Rng::with_seed(3);
    for name in ["my_msgs/msg/Everything", "my_msgs/msg/Lists"] {
        let ty = ty(name);
        for _ in 0..300 {
            let message = random_message(&ty, &mut random);
            let flow = YamlOptions {
                flow_style: true,
                ..YamlOptions::default()
            };
            for text in [
                message.to_yaml(&YamlOptions::default()),
                message.to_yaml(&flow),
                message.to_json(),
            ] {
                match DynamicMessage::from_yaml(&ty, &text) {
                    Ok(back) => assert_eq!(back, message, "{text}"),
                    Err(error) => panic!("{error}\n{text}"),
                }
            }
        }
    }
}

#[cfg(feature = "std")]
#[test]
fn not_a_number_and_bytes_survive_text() {
    let ty = ty("my_msgs/msg/Lists");
    let text = "{l: [nan, -inf, 0.1, 1e-45], m: [.nan, 5], b: [A, '1', 1, \"\\0\", \"\\xFF\"], e: [1, 2, 3]}";
    let message = DynamicMessage::from_yaml(&ty, text).unwrap();
    assert_eq!(
        *message.get("b").unwrap(),
        Value::Bytes(vec![65, 49, 1, 0, 255])
    );
    let json = message.to_json();
    assert!(
        json.contains(r#""l":["nan","-inf",0.1,1e-45],"m":["nan",5.0]"#),
        "{json}"
    );
    assert!(json.contains(r#""b":[65,49,1,0,255]"#), "{json}");
    let back = DynamicMessage::from_yaml(&ty, &json).unwrap();
    assert_eq!(back.to_json(), json);
    let yaml = message.to_yaml(&YamlOptions::default());
    assert!(
        yaml.contains("b:\n- A\n- '1'\n- \"\\x01\"\n- \"\\0\"\n- ÿ\n"),
        "{yaml}"
    );
    assert!(
        yaml.contains("l:\n- .nan\n- -.inf\n- 0.10000000149011612\n"),
        "{yaml}"
    );
    assert_eq!(
        DynamicMessage::from_yaml(&ty, &yaml).unwrap().to_json(),
        json
    );
}

#[test]
fn yaml_looks_as_ros2_topic_echo_prints_it() {
    let mut cloud = DynamicMessage::new(&ty("sensor_msgs/msg/PointCloud2"));
    let field_ty = ty("sensor_msgs/msg/PointField");
    let mut fields = vec![DynamicMessage::new(&field_ty); 2];
    fields[0].set("name", "x").unwrap();
    fields[1].set("name", "").unwrap();
    cloud.set("fields", Value::Messages(fields)).unwrap();
    cloud.set("header.frame_id", "Hello World: 1").unwrap();
    cloud.set("data", vec![1u8, 2, 3]).unwrap();
    let head = "header:\n  stamp:\n    sec: 0\n    nanosec: 0\n  frame_id: 'Hello World: 1'\n\
                height: 0\nwidth: 0\n";
    assert_eq!(
        cloud.to_yaml(&YamlOptions::default()),
        format!(
            "{head}fields:\n- name: x\n  offset: 0\n  datatype: 0\n  count: 0\n\
             - name: ''\n  offset: 0\n  datatype: 0\n  count: 0\n\
             is_bigendian: false\npoint_step: 0\nrow_step: 0\ndata:\n- 1\n- 2\n- 3\nis_dense: false\n"
        )
    );
    let options = YamlOptions {
        no_arr: true,
        no_str: true,
        ..YamlOptions::default()
    };
    let short = cloud.to_yaml(&options);
    assert!(
        short.contains("frame_id: '<string length: <14>>'\n"),
        "{short}"
    );
    assert!(
        short.contains("fields: '<sequence type: sensor_msgs/msg/PointField, length: 2>'\n"),
        "{short}"
    );
    assert!(
        short.contains("data: '<sequence type: uint8, length: 3>'\n"),
        "{short}"
    );
    let options = YamlOptions {
        truncate_length: Some(2),
        flow_style: true,
        ..YamlOptions::default()
    };
    let flow = cloud.to_yaml(&options);
    assert!(flow.contains("  frame_id: He...\nheight: 0\n"), "{flow}");
    assert!(
        flow.contains("fields: [{name: x, offset: 0, datatype: 0, count: 0}, {name: '',"),
        "{flow}"
    );
    assert!(flow.contains("data: [1, 2, '...']\n"), "{flow}");
    let json = cloud.to_json_with(&options);
    assert!(json.contains(r#""frame_id":"He...""#), "{json}");
    assert!(json.contains(r#""data":[1,2,"..."]"#), "{json}");
    assert_eq!(
        cloud.to_json_at("data", &options).unwrap(),
        r#"[1,2,"..."]"#
    );
    let without = YamlOptions {
        no_arr: true,
        no_str: true,
        ..YamlOptions::default()
    };
    let json = cloud.to_json_with(&without);
    assert!(
        json.contains(r#""frame_id":"<string length: <14>>""#),
        "{json}"
    );
    let summary = r#""<sequence type: uint8, length: 3>""#;
    assert!(json.contains(&format!("\"data\":{summary}")), "{json}");
    assert_eq!(cloud.to_json_at("data", &without).unwrap(), summary);
    assert_eq!(
        cloud.to_json_with(&YamlOptions::default()),
        cloud.to_json(),
        "nothing is left out unless asked"
    );

    let empty = DynamicMessage::new(&ty("std_msgs/msg/Empty"));
    assert_eq!(empty.to_yaml(&YamlOptions::default()), "{}\n");
    assert_eq!(empty.to_json(), "{}");
    assert_eq!(empty.to_payload(Representation::Xcdr1).len(), 8);
    let lists = DynamicMessage::new(&ty("my_msgs/msg/Lists"));
    let yaml = lists.to_yaml(&YamlOptions {
        no_arr: true,
        ..YamlOptions::default()
    });
    assert!(yaml.contains("b: '<sequence type: octet, length: 0>'\nd: '<sequence type: int8[4], length: 0>'\ne: '<array type: uint8[3]>'\n"), "{yaml}");
}

#[test]
fn fields_print_alone_and_lines_as_csv() {
    let mut state = DynamicMessage::new(&ty("sensor_msgs/msg/JointState"));
    state
        .set("name", Value::Strings(vec!["a".into(), "b: c".into()]))
        .unwrap();
    state.set("position", vec![1.0, f64::NAN]).unwrap();
    state.set("header.stamp.sec", 7i64).unwrap();
    let options = YamlOptions::default();
    assert_eq!(state.to_csv(&options), "7,0,,a,b: c,1.0,nan,,");
    let at = |path| state.to_yaml_at(path, &options).unwrap();
    assert_eq!(at("header.stamp"), "sec: 7\nnanosec: 0\n");
    assert_eq!(at("header.stamp.sec"), "7\n");
    assert_eq!(at("name"), "- a\n- 'b: c'\n");
    assert_eq!(at("name[1]"), "b: c\n");
    assert_eq!(at("effort"), "[]\n");
    let short = YamlOptions {
        truncate_length: Some(1),
        no_str: true,
        ..options
    };
    assert_eq!(
        state.to_csv(&short),
        "7,0,<string length: <0>>,<string length: <1>>,...,1.0,...,,"
    );
    let mut nothing_first = DynamicMessage::new(&ty("sensor_msgs/msg/JointState"));
    nothing_first.set("header.frame_id", "map").unwrap();
    nothing_first
        .set("name", Value::Strings(vec![String::new(), "b".into()]))
        .unwrap();
    assert_eq!(nothing_first.to_csv(&options), "0,0,map,b,,,");
    let log = DynamicMessage::new(&ty("std_msgs/msg/String"));
    assert_eq!(log.to_csv(&options), "");
    let mut all = DynamicMessage::new(&ty("my_msgs/msg/Everything"));
    all.set("b", 1u8).unwrap();
    assert!(all.to_csv(&options).starts_with("False,b'\\x01',0,"));
}

#[test]
fn path_errors_name_the_position() {
    let mut cloud = DynamicMessage::new(&ty("sensor_msgs/msg/PointCloud2"));
    cloud.set("data", vec![1u8]).unwrap();
    let said = |error: ValueError| error.to_string();
    let get = |path| said(cloud.get(path).unwrap_err());
    assert_eq!(
        get("header.stam.sec"),
        "field \"header\": std_msgs/msg/Header has no field \"stam\"; its fields are stamp, frame_id"
    );
    assert_eq!(
        get("data[1]"),
        "field \"data[1]\": index 1 is beyond its 1 elements"
    );
    assert!(get("height.x").contains("not a message with fields"));
    assert!(get("height[0]").contains("not a list"));
    assert!(get("fields.name").contains("lists need an index"));
    assert!(get("").contains("field names joined by dots"));
    assert!(get("data[x]").contains("hold a number"));

    let mut set = |path, value: Value| cloud.set(path, value).map_err(said);
    assert_eq!(set("data[0]", Value::I64(255)), Ok(()));
    assert_eq!(
        set("data[0]", Value::I64(300)),
        Err("field \"data[0]\": expected uint8 (0 to 255), found 300".into())
    );
    assert_eq!(
        set("header.frame_id", Value::I64(3)),
        Err("field \"header.frame_id\": expected string, found 3".into())
    );
    let mut lists = DynamicMessage::new(&ty("my_msgs/msg/Lists"));
    assert_eq!(
        lists.set("m", vec![1.0]).map_err(said),
        Err("field \"m\": expected exactly 2 elements, found 1".into())
    );
    assert_eq!(
        lists.set("d", vec![0i8; 5]).map_err(said),
        Err("field \"d\": expected at most 4 elements, found 5".into())
    );
    assert_eq!(lists.set("m[1]", 2i32).map_err(said), Ok(()));
    assert_eq!(lists.field("m"), Some(&Value::F64s(vec![0.0, 2.0])));
}

#[cfg(feature = "std")]
#[test]
fn partial_yaml_keeps_defaults() {
    let ty = ty("my_msgs/msg/Defaults");
    let message = DynamicMessage::from_yaml(&ty, "{on: false, name: ~}").unwrap();
    assert_eq!(
        message.to_json(),
        r#"{"count":5,"gains":[1.0,-0.5,2000.0],"name":"two words","tags":["a, b","it's"],"on":false,"bytes":[1,255]}"#
    );
    for empty in ["", "{}", "---\n", "# nothing"] {
        assert_eq!(
            DynamicMessage::from_yaml(&ty, empty),
            Ok(DynamicMessage::new(&ty))
        );
    }
}

#[cfg(feature = "std")]
#[test]
fn yaml_errors_name_field_value_and_remedy() {
    let everything = ty("my_msgs/msg/Everything");
    let lists = ty("my_msgs/msg/Lists");
    for (ty, cases) in [
        (
            &everything,
            r#"e: 300 => field "e": expected uint8 (0 to 255), found 300
d: -129 => field "d": expected int8 (-128 to 127), found -129
h: 1.5 => field "h": expected int32 (-2147483648 to 2147483647), found 1.5
a: maybe => field "a": expected bool (true or false), found maybe
m: fast => field "m": expected float64, found fast
n: [x] => field "n": expected string, found a list of 1
p: 12345 => field "p": expected a string of at most 4 bytes, found 5
r: auto => field "r": expected a mapping {NAME: VALUE} of the fields of std_msgs/msg/Header, found auto
{r: {stamp: {secs: 1}}} => field "r.stamp": builtin_interfaces/msg/Time has no field "secs"; its fields are sec, nanosec
{s: {x: 1}} => field "s": std_msgs/msg/Empty has no field "x"; it has none at all
{a: 1, a: 0} => field "a": given more than once; keep one"#,
        ),
        (
            &lists,
            r#"e: [1, 2] => field "e": expected exactly 3 elements, found 2
f: 5 => field "f": expected a list of int16 (-32768 to 32767), found 5
f: [1, 40000] => field "f[1]": expected int16 (-32768 to 32767), found 40000
{r: [{}, {e: 256}]} => field "r[1].e": expected uint8 (0 to 255), found 256
q: [a, b, c] => field "q": expected at most 2 elements, found 3
hello => expected a mapping {NAME: VALUE} of the fields of my_msgs/msg/Lists, found hello"#,
        ),
    ] {
        for case in cases.lines() {
            let (text, said) = case.split_once(" => ").unwrap();
            let error = DynamicMessage::from_yaml(ty, text).unwrap_err();
            assert_eq!(error.to_string(), said, "{text}");
        }
    }
    for broken in [
        "{a: 1",
        "a: &x 1\nb: *x",
        "a: 1\n---\nb: 2",
        "{{}: 1}",
        "\"\\q\"",
    ] {
        let error = DynamicMessage::from_yaml(&everything, broken).unwrap_err();
        assert!(
            matches!(error.problem, ValueProblem::Syntax { .. }),
            "{broken}: {error}"
        );
    }
    let deep = "[".repeat(1000);
    assert!(DynamicMessage::from_yaml(&everything, &deep).is_err());
}

#[cfg(feature = "std")]
#[test]
fn ros2_topic_pub_input_is_accepted() {
    let string = ty("std_msgs/msg/String");
    for (text, data) in [
        ("data: hello", "hello"),
        ("{data: hello}", "hello"),
        ("{'data': 'hello'}", "hello"),
        ("{\"data\":\"a\\tb\"}", "a\tb"),
        ("data: 5", "5"),
        ("data: true", "true"),
        ("data: |\n  two\n  lines\n", "two\nlines\n"),
    ] {
        let message = DynamicMessage::from_yaml(&string, text).unwrap();
        assert_eq!(message.field("data").and_then(Value::as_str), Some(data));
    }
    let everything = ty("my_msgs/msg/Everything");
    let message = DynamicMessage::from_yaml(
        &everything,
        "{a: yes, b: 7, c: 65, e: 0xff, h: 1.0, i: '5', k: 18446744073709551615, l: 1, m: 1e3}",
    )
    .unwrap();
    for (path, value) in [
        ("a", Value::Bool(true)),
        ("b", Value::U8(7)),
        ("e", Value::U8(255)),
        ("h", Value::I32(1)),
        ("i", Value::U32(5)),
        ("k", Value::U64(u64::MAX)),
        ("l", Value::F32(1.0)),
        ("m", Value::F64(1000.0)),
    ] {
        assert_eq!(*message.get(path).unwrap(), value, "{path}");
    }
}

#[cfg(feature = "std")]
#[test]
fn auto_headers_and_now_are_found_and_filled() {
    let lists = ty("my_msgs/msg/Lists");
    let (mut message, stamps) = DynamicMessage::from_yaml_with_stamps(
        &lists,
        "{r: [{r: auto}, {r: {stamp: now, frame_id: map}}], s: [{}, now]}",
    )
    .unwrap();
    assert_eq!(stamps, ["r[0].r.stamp", "r[1].r.stamp", "s[1]"]);
    for path in &stamps {
        message.set_stamp(path, 3, 4).unwrap();
    }
    assert_eq!(*message.get("r[0].r.stamp.sec").unwrap(), Value::I32(3));
    assert_eq!(*message.get("s[1].nanosec").unwrap(), Value::U32(4));
    message.set_yaml("r[1].r.frame_id", "'odom: 1'").unwrap();
    message.set_yaml("s[0]", "{sec: 9}").unwrap();
    assert_eq!(
        *message.get("r[1].r.frame_id").unwrap(),
        Value::from("odom: 1")
    );
    assert_eq!(*message.get("s[0].sec").unwrap(), Value::I32(9));
}

#[test]
fn bad_descriptions_are_refused() {
    use crate::describe::{Field, FieldType, IndividualTypeDescription, TypeDescription, type_id};
    let described = |id: u8, capacity, nested: &str, default: &str| {
        let individual = IndividualTypeDescription {
            type_name: "a/msg/A".into(),
            fields: vec![Field {
                name: "f".into(),
                field_type: FieldType {
                    type_id: id,
                    capacity,
                    string_capacity: 0,
                    nested_type_name: nested.into(),
                },
                default_value: default.into(),
                ..Field::default()
            }],
            ..IndividualTypeDescription::default()
        };
        DynamicType::new(&TypeDescription {
            type_description: individual.clone(),
            referenced: vec![individual],
        })
    };
    let array = type_id::DOUBLE + type_id::ARRAY;
    assert!(described(array, 3, "", "(1, 2, 3)").is_ok());
    assert!(matches!(
        described(array, u64::MAX, "", ""),
        Err(TypeError::TooLarge { .. })
    ));
    assert!(matches!(
        described(array, 3, "", "(1, 2)"),
        Err(TypeError::BadDefault { .. })
    ));
    assert!(matches!(
        described(12, 0, "", ""),
        Err(TypeError::UnknownTypeId { .. })
    ));
    assert!(matches!(
        described(0, 0, "", ""),
        Err(TypeError::UnknownTypeId { .. })
    ));
    assert!(matches!(
        described(1, 0, "a/msg/B", ""),
        Err(TypeError::Missing { .. })
    ));
    assert!(matches!(
        described(1, 0, "a/msg/A", ""),
        Err(TypeError::TooDeep { .. })
    ));
}

#[test]
fn hostile_counts_are_refused() {
    let ty = ty("my_msgs/msg/Lists");
    let mut payload = vec![0, 1, 0, 0];
    payload.extend_from_slice(&u32::MAX.to_le_bytes());
    payload.extend_from_slice(&[0; 64]);
    assert_eq!(
        DynamicMessage::from_payload(&ty, &payload),
        Err(DecodeError::UnexpectedEnd {
            offset: 4,
            needed: u32::MAX as usize
        })
    );
}
