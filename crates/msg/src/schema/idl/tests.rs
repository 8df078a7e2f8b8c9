//! Tests of the IDL reader.

use super::*;
use crate::schema::{BaseType, Literal, Shape, parse as parse_any};
use alloc::string::String;
use alloc::vec::Vec;

const ARM: &str = r#"
// A comment.
#include "std_msgs/msg/Header.idl"

module my_msgs {
  module msg {
    typedef double double__6[6];
    typedef sequence<double__6> unused_is_refused_only_where_it_nests;
    module Arm_Constants {
      @verbatim (language="comment", text="How many.")
      const long JOINTS = 0x6;
      const string SIDE = "le" "ft";
      const float HALF = 0.5f;
    };
    @verbatim (language="comment", text=
      "An arm" "\n"
      "with \"joints\".")
    @appendable
    struct Arm {
      std_msgs::msg::Header header;
      @key @unit (value="m")
      unsigned long long id, other;
      @default (value=TRUE)
      boolean is_left;
      @default (value=-3)
      short level;
      @default (value="(1, 2, 3)")
      sequence<int8, 4> few;
      string<JOINTS> name;
      double__6 positions;
      Leg legs[2];
      octet raw;
    };
  };
};
"#;

fn arm(text: &str) -> Result<InterfaceFile, SchemaError> {
    parse_any("my_msgs", "Arm", InterfaceKind::Message, text, "Arm.idl")
}

#[test]
fn a_message_has_the_fields_constants_and_comments_of_its_structure() {
    let text = ARM.replace(
        "    typedef sequence<double__6> unused_is_refused_only_where_it_nests;\n",
        "",
    );
    let file = arm(&text).unwrap();
    let part = &file.parts[0];
    assert_eq!(part.comments, [" An arm", " with \"joints\"."]);
    let types: Vec<String> = part
        .fields
        .iter()
        .map(|field| alloc::format!("{} {}", field.ty, field.name))
        .collect();
    assert_eq!(
        types,
        [
            "std_msgs/Header header",
            "uint64 id",
            "uint64 other",
            "bool is_left",
            "int16 level",
            "int8[<=4] few",
            "string<=6 name",
            "float64[6] positions",
            "my_msgs/Leg[2] legs",
            "byte raw",
        ]
    );
    let default = |name: &str| {
        let field = part.fields.iter().find(|field| field.name == name);
        field.and_then(|field| field.default.clone())
    };
    assert_eq!(default("is_left"), Some(Literal::Bool(true)));
    assert_eq!(default("level"), Some(Literal::Int(-3)));
    let few = [1, 2, 3].map(Literal::Int).to_vec();
    assert_eq!(default("few"), Some(Literal::List(few)));
    let id = &part.fields[1];
    assert!(id.is_key && id.comments == [" unit: m"], "{id:?}");
    assert_eq!(id.ty.shape, Shape::Single);
    let constants: Vec<_> = part
        .constants
        .iter()
        .map(|c| (&*c.name, &c.value))
        .collect();
    assert_eq!(
        constants,
        [
            ("JOINTS", &Literal::Int(6)),
            ("SIDE", &Literal::Text("left".into())),
            ("HALF", &Literal::Float(0.5)),
        ]
    );
    assert_eq!(part.constants[0].ty, BaseType::Int32);
}

#[test]
fn an_action_has_three_structures_and_empty_ones_lose_their_placeholder() {
    let text = "module m { module action {\n\
         struct Go_Goal { long to; };\n\
         struct Go_Result { uint8 structure_needs_at_least_one_member; };\n\
         struct Go_Feedback { long at; };\n}; };\n";
    let file = parse_any("m", "Go", InterfaceKind::Action, text, "Go.idl").unwrap();
    let counts: Vec<usize> = file.parts.iter().map(|part| part.fields.len()).collect();
    assert_eq!(counts, [1, 0, 1]);
}

#[test]
fn what_ros2_does_not_support_is_refused_with_line_and_reason() {
    let in_arm = |member: &str| {
        alloc::format!("module my_msgs {{ module msg {{\nstruct Arm {{\n{member}\n}}; }}; }};")
    };
    for (text, says) in [
        (
            ARM.to_string(),
            "Arm.idl:8: a sequence of sequences or arrays",
        ),
        (
            in_arm("char a;"),
            "Arm.idl:3: the type char is not supported",
        ),
        (in_arm("long a[2][3];"), "array of arrays"),
        (in_arm("long a; long a;"), "a is defined twice"),
        (
            in_arm("@default (value=300) uint8 a;"),
            "300 does not fit uint8",
        ),
        (in_arm("string<0> a;"), "a length is wrong"),
        (in_arm("other::Name a;"), "unknown type other::Name"),
        (in_arm("long a"), "\"}\" where \";\" should be"),
        (in_arm("long a; $"), "the character '$'"),
        (in_arm("@verbatim (text=\"a) long b;"), "lacks its closing"),
        (
            "module my_msgs { enum A { B }; };".into(),
            "enum is not supported",
        ),
        ("module my_msgs { module msg {".into(), "the file ends"),
        (
            "module my_msgs { module msg { struct Leg {}; }; };".into(),
            "no structure my_msgs::msg::Arm",
        ),
        ("module my_msgs { struct A : B {}; };".into(), "A inherits"),
    ] {
        let error = arm(&text).unwrap_err().to_string();
        assert!(error.contains(says), "{text}: {error}");
    }
}

#[test]
fn deep_modules_and_random_tokens_are_errors_not_crashes() {
    let deep = "module a { ".repeat(10_000);
    assert!(arm(&deep).unwrap_err().message.contains("nested too deep"));
    let deep = alloc::format!(
        "module a {{ struct Arm {{ {} long x; }}; }};",
        "sequence<".repeat(100_000)
    );
    assert!(arm(&deep).is_err());
    let words = [
        "module", "a", "{", "}", ";", "struct", "@", "(", ")", "const", "long", "=", "1", "\"",
        "<", ",", "::",
    ];
    let mut random = fastrand::Rng::with_seed(4);
    for _ in 0..20_000 {
        let count = random.usize(..30);
        let mut text = String::from("module a {");
        for _ in 0..count {
            text.push(' ');
            text.push_str(words[random.usize(..words.len())]);
        }
        let _ = arm(&text);
    }
}

#[test]
fn only_a_module_makes_a_text_idl() {
    assert!(is_idl(ARM) && is_idl("/* x */ // y\nmodule a {"));
    for text in [
        "",
        "# module a {",
        "string module",
        "int32 a\n---\n",
        "module",
        "// module a {",
    ] {
        assert!(!is_idl(text), "{text}");
    }
}
