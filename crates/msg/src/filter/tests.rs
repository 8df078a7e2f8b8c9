//! Tables of expressions, and random expressions against an oracle.

use super::*;
use crate::cdr::{Encapsulation, Encoder, Endian, HEADER_BYTES, Representation};
use crate::dynamic::{DynamicMessage, Value};
use crate::library::InterfaceLibrary;
use crate::message::{Encode, WString};
use crate::schema::InterfaceKind;
use alloc::format;
use alloc::string::ToString;
use core::cmp::Ordering;

const DEFINITIONS: &[(&str, &str)] = &[
    ("Point", "float64 x\nfloat64 y"),
    ("Named", "string name\nPoint[] trail\nPoint at"),
    (
        "Zoo",
        "bool tame\nbyte mark\nchar sex\nint8 i8\nuint8 u8\nint16 i16\nuint16 u16\nint32 i32\n\
         uint32 u32\nint64 i64\nuint64 u64\nfloat32 weight\nfloat64 size\nstring kind\n\
         wstring cry\nstring[] tags\nuint8[3] legs\nint32[<=4] ages\nNamed cage\nNamed[2] pair\n\
         Named[] herd\nfloat32[] scales\nbool[] flags\nwstring[] songs\nint16 last",
    ),
    ("Nothing", ""),
];

fn ty(name: &str) -> DynamicType {
    let mut library = InterfaceLibrary::new();
    for (name, text) in DEFINITIONS {
        library.insert_text("zoo", InterfaceKind::Message, name, *text, "test");
    }
    DynamicType::new(&library.describe(&format!("zoo/msg/{name}")).unwrap()).unwrap()
}

fn zoo() -> DynamicMessage {
    let ty = ty("Zoo");
    let mut zoo = DynamicMessage::new(&ty);
    for (path, value) in [
        ("tame", Value::Bool(true)),
        ("mark", Value::U8(0x41)),
        ("sex", Value::U8(b'f')),
        ("i8", Value::I8(-5)),
        ("i64", Value::I64(i64::MIN)),
        ("u64", Value::U64(u64::MAX)),
        ("i32", Value::I32(-70_000)),
        ("weight", Value::F32(0.1)),
        ("size", Value::F64(-2.5)),
        ("kind", Value::from("Panthera leo")),
        ("cry", Value::WString(WString::from("grüß"))),
        ("tags", Value::Strings(["big".into(), "it's".into()].into())),
        ("legs[1]", Value::U8(4)),
        ("ages", Value::I32s([3, -1].into())),
        ("cage.name", Value::from("A")),
        ("cage.at.y", Value::F64(7.0)),
        ("pair[1].name", Value::from("B")),
        ("scales", Value::F32s([1.0, f32::NAN].into())),
        ("flags", Value::Bools([false, true].into())),
        ("last", Value::I16(9)),
    ] {
        zoo.set(path, value).unwrap();
    }
    let mut named = DynamicMessage::new(&self::ty("Named"));
    let mut point = DynamicMessage::new(&self::ty("Point"));
    point.set("x", 1.5).unwrap();
    named.set("trail", Value::Messages([point].into())).unwrap();
    named.set("name", "C").unwrap();
    zoo.set("herd", Value::Messages([named.clone(), named].into()))
        .unwrap();
    zoo
}

/// Every form in which a message may travel.
fn payloads(message: &DynamicMessage) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for representation in [Representation::Xcdr1, Representation::Xcdr2] {
        for endian in [Endian::Little, Endian::Big] {
            let header = Encapsulation::plain(representation, endian);
            let mut body = Vec::new();
            message.encode(&mut Encoder::to_vec(&mut body, representation, endian));
            all.push([header.to_bytes().as_slice(), &body].concat());
        }
    }
    all
}

fn passes(message: &DynamicMessage, expression: &str, parameters: &[&str]) -> bool {
    let parameters: Vec<String> = parameters.iter().map(ToString::to_string).collect();
    let filter = Filter::new(message.ty(), expression, &parameters)
        .unwrap_or_else(|error| panic!("{expression}\n{error}"));
    let mut answers = payloads(message).into_iter().map(|payload| {
        let judged = filter.passes(&payload);
        judged.unwrap_or_else(|error| panic!("{expression}: {error}"))
    });
    let first = answers.next().unwrap();
    assert!(answers.all(|answer| answer == first), "{expression}");
    first
}

#[test]
fn expressions_that_pass_and_that_do_not() {
    let zoo = zoo();
    for holds in [
        "tame = TRUE",
        "tame = 1 and not tame = false",
        "TRUE = tame AND tame <> FALSE AND tame != FALSE",
        "mark = 'A' AND mark = 65 AND sex = 'f'",
        "i8 = -5 AND i8 < 'a' AND i8 BETWEEN -5 AND +5",
        "i64 = -9223372036854775808 AND u64 = 18446744073709551615",
        "u64 = 0xffffffffffffffff AND u64 > i64 AND i64 <= size",
        "weight = 0.1 AND NOT weight > 0.1",
        "size = -2.5 AND size < -2 AND size > -3 OR size = -25E-1",
        "kind LIKE 'Panthera%' AND kind LIKE '%_leo' AND kind > 'P' AND 'Q' > kind",
        "kind LIKE '%' AND NOT kind LIKE 'panthera%' AND kind <> 'leo'",
        "cry = 'grüß' AND cry LIKE 'gr__'",
        "tags[1] = 'it''s' AND tags[0] = `big'",
        "legs[1] = 4 AND legs[2] = 0",
        "ages[1] = -1 AND ages[0] NOT BETWEEN 4 AND 9",
        "cage.at.y = 7 AND cage.name = 'A' AND pair[1].name = 'B' AND pair[0].name = ''",
        "herd[1].trail[0].x = 1.5 AND herd[0].name = 'C' AND last = 9",
        "herd[0].at.x = herd[1].at.x AND herd[0].name = herd[1].name",
        "flags[1] = TRUE AND flags[0] < flags[1]",
        "scales[1] <> 1 AND scales[1] <> scales[1]",
        "(((i8=-5)))AND(last=9)",
        "i8 = 1 OR i8 = -5 AND last = 9",
        "not i8 = 1 and last = 9",
        "last\n  =\t9 ",
    ] {
        assert!(passes(&zoo, holds, &[]), "{holds}");
    }
    for fails in [
        "tame = FALSE",
        "NOT (last = 9)",
        "NOT last = 9 OR i8 = 1",
        "(i8 = -5 OR last = 1) AND last = 8",
        "scales[1] = 1 OR scales[1] < 1 OR scales[1] >= 1",
        "ages[3] = 0",
        "NOT ages[3] = 0",
        "ages[3] = 0 AND last = 9",
        "herd[2].trail[7].x < 1 OR NOT herd[2].trail[7].x < 1",
        "songs[0] LIKE '%'",
        "kind = 'panthera leo'",
    ] {
        assert!(!passes(&zoo, fails, &[]), "{fails}");
    }
    assert!(passes(&zoo, "ages[3] = 0 OR last = 9", &[]));
}

#[test]
fn parameters_are_literals_beside_the_expression() {
    let zoo = zoo();
    let expression = "last = %0 AND kind LIKE %1 AND size BETWEEN %2 AND %0";
    assert!(passes(&zoo, expression, &["9", " 'Pan%' ", "-1e1"]));
    assert!(!passes(&zoo, expression, &["9", "'Ban%'", "-1e1"]));
    assert!(passes(&zoo, "tame = %10", &["1"; 11]));
    assert!(passes(&zoo, "last = 9", &["'not named'"]));
}

#[test]
fn a_filter_error_has_its_position() {
    let zoo = ty("Zoo");
    let lines = include_str!("mistakes.txt").lines();
    for line in lines.filter(|line| !line.starts_with('#')) {
        let (input, expected) = line.split_once("| => ").expect(line);
        let mut parts = input.split('|').map(ToString::to_string);
        let place = parts.next().and_then(|place| place.trim().parse().ok());
        let place: usize = place.expect(line);
        let expression = &parts.next().expect(line).replace("\\n", "\n");
        let parameters: Vec<String> = parts.collect();
        let error = Filter::new(&zoo, expression, &parameters).unwrap_err();
        assert!(error.message.contains(expected), "{expression}: {error}");
        assert_eq!((error.line, error.column), (1, place), "{error}");
        assert_eq!(error.place, FilterErrorLocation::Expression);
    }
    let nothing = Filter::new(&ty("Nothing"), "a = 1", &[]).unwrap_err();
    assert!(nothing.message.contains("no fields at all"), "{nothing}");
}

#[test]
fn a_filter_error_is_shown_with_a_caret() {
    let error = Filter::new(&ty("Zoo"), "last = 9 AND\n  kind = 'ü' AND\ti8 ! 1", &[]);
    assert_eq!(
        error.unwrap_err().to_string(),
        "filter, line 2, column 21: expected a field, a value or an operator, found '!'\n    \
         kind = 'ü' AND i8 ! 1\n                      ^"
    );
    let error = Filter::new(&ty("Zoo"), "last = %0", &["nine".into()]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "filter parameter %0, line 1, column 1: expected one number, TRUE, FALSE or a string in \
         quotes: 'text'\n  nine\n  ^"
    );
    let long = format!("{} = 9", "last = 9 AND ".repeat(20) + "lost");
    let error = Filter::new(&ty("Zoo"), &long, &[]).unwrap_err().to_string();
    let lines: Vec<&str> = error.lines().collect();
    let caret = lines[2].find('^').unwrap();
    assert!(lines[1][caret..].starts_with("lost"), "{error}");
}

#[test]
fn filters_beyond_the_limits_are_rejected() {
    let zoo = ty("Zoo");
    let refused = |expression: &str, parameters: &[String]| {
        let error = Filter::new(&zoo, expression, parameters).unwrap_err();
        error.message
    };
    let nested = |depth: usize| "(".repeat(depth) + "last = 9" + &")".repeat(depth);
    assert!(Filter::new(&zoo, &nested(NESTING_MAX), &[]).is_ok());
    assert!(refused(&nested(NESTING_MAX + 1), &[]).contains("deeper than 32"));
    assert!(refused(&nested(1500), &[]).contains("deeper than 32"));
    let negated = "NOT ".repeat(NESTING_MAX + 1) + "last = 9";
    assert!(refused(&negated, &[]).contains("deeper than 32"));
    let chained = "last = 9 AND ".repeat(300) + "last = 9";
    assert!(Filter::new(&zoo, &chained, &[]).is_ok());
    assert!(refused(&"last = 9 AND ".repeat(400), &[]).contains("at most 4096"));
    let many: Vec<String> = (0..=PARAMETERS_MAX).map(|n| n.to_string()).collect();
    assert!(refused("last = 9", &many).contains("at most 100"));
    let long = format!("'{}'", "a".repeat(TEXT_BYTES_MAX + 1));
    assert!(refused(&format!("kind = {long}"), &[]).contains("at most 255"));
    assert!(refused("kind = %0", &[long]).contains("at most 255"));
    assert!(refused("kind = %0", &[" ".repeat(5000)]).contains("at most 255"));
    let fields = |count: usize| {
        let terms: Vec<String> = (0..count).map(|n| format!("scales[{n}] = 1")).collect();
        terms.join(" OR ")
    };
    assert!(Filter::new(&zoo, &fields(FIELDS_MAX), &[]).is_ok());
    assert!(refused(&fields(FIELDS_MAX + 1), &[]).contains("more than 64"));
}

#[test]
fn a_payload_that_ends_early_is_an_error_only_where_it_is_read() {
    let zoo = zoo();
    let payload = zoo.to_payload(Representation::Xcdr1);
    let first = Filter::new(zoo.ty(), "tame = TRUE", &[]).unwrap();
    let last = Filter::new(zoo.ty(), "last = 9", &[]).unwrap();
    for end in 0..payload.len() {
        let cut = &payload[..end];
        assert_eq!(first.passes(cut).is_ok(), end > HEADER_BYTES, "{end}");
        let padding = usize::from(payload[3]);
        assert_eq!(
            last.passes(cut).is_ok(),
            end >= payload.len() - padding,
            "{end}"
        );
    }
}

/// Evaluates an expression directly, without plans, slots and short circuits.
fn oracle(message: &DynamicMessage, tree: &Tree) -> Option<bool> {
    match tree {
        Tree::Compare(path, sign, literal) => {
            let value = message.get(path).ok()?;
            let order = match (value.as_ref(), literal) {
                (Value::String(a), Constant::Text(b)) => Some(a.as_bytes().cmp(b.as_bytes())),
                (Value::Bool(a), Constant::Bool(b)) => Some(a.cmp(b)),
                (value, Constant::Number(b)) => value.as_f64()?.partial_cmp(b),
                other => panic!("{other:?}"),
            };
            Some(match *sign {
                "=" => order == Some(Ordering::Equal),
                "<>" => order != Some(Ordering::Equal),
                "<" => order == Some(Ordering::Less),
                ">" => order == Some(Ordering::Greater),
                "<=" => order.is_some_and(Ordering::is_le),
                _ => order.is_some_and(Ordering::is_ge),
            })
        }
        Tree::Not(inner) => Some(!oracle(message, inner)?),
        Tree::And(a, b) => match (oracle(message, a), oracle(message, b)) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (Some(true), Some(true)) => Some(true),
            _ => None,
        },
        Tree::Or(a, b) => match (oracle(message, a), oracle(message, b)) {
            (Some(true), _) | (_, Some(true)) => Some(true),
            (Some(false), Some(false)) => Some(false),
            _ => None,
        },
    }
}

enum Tree {
    Compare(&'static str, &'static str, Constant),
    Not(alloc::boxed::Box<Tree>),
    And(alloc::boxed::Box<Tree>, alloc::boxed::Box<Tree>),
    Or(alloc::boxed::Box<Tree>, alloc::boxed::Box<Tree>),
}

#[derive(Debug)]
enum Constant {
    Number(f64),
    Text(&'static str),
    Bool(bool),
}

impl Tree {
    fn random(random: &mut fastrand::Rng, depth: u32) -> Self {
        let deeper = |random: &mut fastrand::Rng| Self::random(random, depth - 1).into();
        match random.u32(0..if depth == 0 { 1 } else { 6 }) {
            1 => Self::Not(deeper(random)),
            2 | 3 => Self::And(deeper(random), deeper(random)),
            4 | 5 => Self::Or(deeper(random), deeper(random)),
            _ => {
                let signs = ["=", "<>", "<", ">", "<=", ">="];
                let sign = signs[random.usize(..signs.len())];
                let numbers = [
                    "i8",
                    "u16",
                    "i32",
                    "size",
                    "ages[0]",
                    "ages[2]",
                    "legs[1]",
                    "cage.at.x",
                    "cage.trail[1].y",
                    "herd[0].trail[0].x",
                    "herd[1].at.y",
                    "pair[1].at.x",
                    "scales[3]",
                    "last",
                ];
                let texts = [
                    "kind",
                    "cage.name",
                    "herd[1].name",
                    "pair[0].name",
                    "tags[1]",
                ];
                match random.u32(0..10) {
                    0 => Self::Compare("flags[1]", sign, Constant::Bool(random.bool())),
                    1 => Self::Compare("tame", sign, Constant::Bool(random.bool())),
                    2 | 3 => {
                        let path = texts[random.usize(..texts.len())];
                        let text = ["", "a", "b"][random.usize(..3)];
                        Self::Compare(path, sign, Constant::Text(text))
                    }
                    _ => {
                        let path = numbers[random.usize(..numbers.len())];
                        let number = f64::from(random.i32(-2..=2));
                        Self::Compare(path, sign, Constant::Number(number))
                    }
                }
            }
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Compare(path, sign, Constant::Number(value)) => format!("{path}{sign}{value}"),
            Self::Compare(path, sign, Constant::Text(value)) => format!("{path} {sign} '{value}'"),
            Self::Compare(path, sign, Constant::Bool(value)) => format!("{path} {sign} {value}"),
            Self::Not(inner) => format!("NOT ({})", inner.text()),
            Self::And(a, b) => format!("({} AND {})", a.text(), b.text()),
            Self::Or(a, b) => format!("(({}) or {})", a.text(), b.text()),
        }
    }
}

fn random_zoo(ty: &DynamicType, random: &mut fastrand::Rng) -> DynamicMessage {
    let mut zoo = DynamicMessage::new(ty);
    let named_ty = self::ty("Named");
    let point_ty = self::ty("Point");
    let text = |random: &mut fastrand::Rng| ["", "a", "b"][random.usize(..3)];
    let point = |random: &mut fastrand::Rng| {
        let mut point = DynamicMessage::new(&point_ty);
        point.set("x", f64::from(random.i32(-2..=2))).unwrap();
        point.set("y", f64::from(random.i32(-2..=2))).unwrap();
        point
    };
    let named = |random: &mut fastrand::Rng| {
        let mut named = DynamicMessage::new(&named_ty);
        named.set("name", text(random)).unwrap();
        let trail = (0..random.usize(0..3)).map(|_| point(random)).collect();
        named.set("trail", Value::Messages(trail)).unwrap();
        named.set("at", point(random)).unwrap();
        named
    };
    for path in ["i8", "i32", "size", "last", "weight"] {
        zoo.set(path, random.i8(-2..=2)).unwrap();
    }
    for path in ["u16", "legs[1]", "u64", "mark"] {
        zoo.set(path, random.u8(0..=2)).unwrap();
    }
    zoo.set("kind", text(random)).unwrap();
    zoo.set("cry", Value::WString(text(random).into())).unwrap();
    zoo.set("tame", random.bool()).unwrap();
    let ages = (0..random.usize(0..=4))
        .map(|_| random.i32(-2..=2))
        .collect();
    zoo.set("ages", Value::I32s(ages)).unwrap();
    let scales = (0..random.usize(0..=5))
        .map(|_| f32::from(random.i8(-2..=2)))
        .collect();
    zoo.set("scales", Value::F32s(scales)).unwrap();
    let flags = (0..random.usize(0..=3)).map(|_| random.bool()).collect();
    zoo.set("flags", Value::Bools(flags)).unwrap();
    let tags = (0..random.usize(0..=3))
        .map(|_| text(random).into())
        .collect();
    zoo.set("tags", Value::Strings(tags)).unwrap();
    let songs = (0..random.usize(0..=2))
        .map(|_| text(random).into())
        .collect();
    zoo.set("songs", Value::WStrings(songs)).unwrap();
    zoo.set("cage", named(random)).unwrap();
    let herd = (0..random.usize(0..=2)).map(|_| named(random)).collect();
    zoo.set("herd", Value::Messages(herd)).unwrap();
    zoo.set("pair[0]", named(random)).unwrap();
    zoo.set("pair[1]", named(random)).unwrap();
    zoo
}

#[test]
fn filters_on_bytes_agree_with_the_oracle_on_values() {
    let mut random = fastrand::Rng::with_seed(1);
    let ty = ty("Zoo");
    let (mut held, mut judged) = (0, 0);
    for _ in 0..400 {
        let tree = Tree::random(&mut random, 4);
        let text = tree.text();
        let filter = Filter::new(&ty, &text, &[]).unwrap_or_else(|error| panic!("{error}"));
        for _ in 0..20 {
            let message = random_zoo(&ty, &mut random);
            let expected = oracle(&message, &tree).unwrap_or(false);
            for payload in payloads(&message) {
                assert_eq!(filter.passes(&payload), Ok(expected), "{text}\n{message:?}");
            }
            held += usize::from(expected);
            judged += 1;
        }
    }
    assert!(
        held > judged / 5 && held < judged * 4 / 5,
        "{held} of {judged}"
    );
}

#[test]
fn slow_patterns_exhaust_the_cost_budget() {
    let mut zoo = zoo();
    zoo.set("kind", "a".repeat(1 << 16)).unwrap();
    let payload = zoo.to_payload(Representation::Xcdr1);
    let slow = format!("kind LIKE '%{}b%'", "a".repeat(200));
    let filter = Filter::new(zoo.ty(), &slow, &[]).unwrap();
    assert_eq!(
        filter.passes(&payload),
        Err(FilterEvaluationError::TooCostly)
    );
    assert!(passes(&zoo, "kind LIKE '%a%a%a' AND kind LIKE '%'", &[]));
}

#[test]
fn members_missing_at_the_sender_have_their_defaults() {
    let described = |text: &'static str| {
        let mut library = InterfaceLibrary::new();
        library.insert_text("zoo", InterfaceKind::Message, "Grown", text, "test");
        let inner = "# @appendable\nint32 a\nint32 b 7";
        library.insert_text("zoo", InterfaceKind::Message, "Inner", inner, "test");
        DynamicType::new(&library.describe("zoo/msg/Grown").unwrap()).unwrap()
    };
    let old = described("# @appendable\nint32 id");
    let new = described("# @appendable\nint32 id\nstring name \"Leo\"\nInner inner\nuint8[2] legs");
    let mut message = DynamicMessage::new(&old);
    message.set("id", 5).unwrap();
    for (expression, expected) in [
        (
            "id = 5 AND name = 'Leo' AND inner.b = 7 AND inner.a = 0 AND legs[1] = 0",
            true,
        ),
        ("inner.b <> 7 OR name LIKE 'M%'", false),
    ] {
        let filter = Filter::new(&new, expression, &[]).unwrap();
        for representation in [Representation::Xcdr1, Representation::Xcdr2] {
            let payload = message.to_payload(representation);
            assert_eq!(filter.passes(&payload), Ok(expected), "{expression}");
        }
    }
}
