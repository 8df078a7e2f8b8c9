//! Types of the product stay small: at most 60 methods over all inherent `impl` blocks
//! of a crate, and at most 20 fields.
//!
//! A type that grows beyond that owns fields of several verbs. It is split so that each
//! part owns its fields; a part that forwards does not count as one.

use std::collections::BTreeMap;

use crate::finding::Finding;

/// Most methods of a type.
const METHODS_MAX: usize = 60;
/// Most fields of a struct.
const FIELDS_MAX: usize = 20;

/// Folders of crates that are left out: structs of the command are argument lists, and
/// each verb has its own types of the same name.
const LEFT_OUT: &[&str] = &["cli"];

/// A type over the limits, with its present numbers. They may only fall.
struct Exception(&'static str, &'static str, usize, usize);

/// Crate folder, type, methods and fields. No line may be added, and no number raised.
/// Those without methods over the limit are lists of values: policies, settings, counters.
const EXCEPTIONS: &[Exception] = &[
    Exception("dcps", "QosProfile", 60, 26),
    Exception("rtps", "EndpointQos", 60, 22),
    Exception("runtime", "Config", 60, 25),
    Exception("shm", "ShmCounts", 60, 24),
];

/// What one type of a crate has.
#[derive(Default)]
struct TypeSize {
    path: String,
    line: usize,
    methods: usize,
    fields: usize,
}

/// The types of the product's crates, by crate folder and name.
#[derive(Default)]
pub struct TypeSizes(BTreeMap<(String, String), TypeSize>);

impl TypeSizes {
    /// Counts the methods and fields of a source file. Tests and other crates than the
    /// product's are left out, generated files too.
    pub fn add(&mut self, path: &str, text: &str) {
        let Some((folder, file)) = path
            .strip_prefix("crates/")
            .and_then(|path| path.split_once("/src/"))
        else {
            return;
        };
        if LEFT_OUT.contains(&folder) || !file.ends_with(".rs") || file.contains("generated") {
            return;
        }
        let text = text.split("\n#[cfg(test)]\nmod ").next().unwrap_or(text);
        let mut block: Option<Block> = None;
        for (index, line) in text.lines().enumerate() {
            let Some(within) = &block else {
                block = Block::begin(line);
                if let Some(begun) = &block {
                    let size = self.size(folder, begun);
                    if begun.is_struct || size.path.is_empty() {
                        path.clone_into(&mut size.path);
                        size.line = index + 1;
                    }
                }
                continue;
            };
            let size = self.size(folder, within);
            if line.starts_with('}') {
                block = None;
            } else if within.is_struct {
                size.fields += usize::from(is_field(line));
            } else {
                size.methods += usize::from(is_method(line));
            }
        }
    }

    fn size(&mut self, folder: &str, block: &Block) -> &mut TypeSize {
        let key = (folder.to_owned(), block.name.clone());
        self.0.entry(key).or_default()
    }

    /// The types over the limits, and the exceptions that no longer hold.
    pub fn findings(&self) -> Vec<Finding> {
        let over = self.0.iter().filter_map(|((folder, name), size)| {
            let known = EXCEPTIONS
                .iter()
                .find(|Exception(of, known, ..)| of == folder && known == name);
            let (methods, fields) = match known {
                Some(Exception(_, _, methods, fields)) => (*methods, *fields),
                None => (METHODS_MAX, FIELDS_MAX),
            };
            let present = (size.methods.max(METHODS_MAX), size.fields.max(FIELDS_MAX));
            let message = if size.methods > methods || size.fields > fields {
                format!(
                    "{name} has {} methods and {} fields, over {methods} and {fields}: split it \
                     so that each part owns its fields",
                    size.methods, size.fields
                )
            } else if present != (methods, fields) {
                format!(
                    "{name} has {} methods and {} fields: lower its exception ({methods}, \
                     {fields}) in xtask/src/tidy/type_sizes.rs",
                    size.methods, size.fields
                )
            } else {
                return None;
            };
            Some(Finding {
                path: size.path.clone(),
                line: size.line,
                message,
            })
        });
        over.collect()
    }
}

/// A struct or an inherent `impl` at the top of a file.
struct Block {
    name: String,
    is_struct: bool,
}

impl Block {
    fn begin(line: &str) -> Option<Self> {
        if !line.ends_with('{') {
            return None;
        }
        let line = without_visibility(line);
        if let Some(rest) = line.strip_prefix("struct ") {
            let name = leading_name(rest);
            return Some(Self {
                name,
                is_struct: true,
            });
        }
        let rest = line.strip_prefix("impl")?;
        let rest = without_parameters(rest).trim_start();
        if rest.contains(" for ") {
            return None;
        }
        let name = leading_name(rest.rsplit("::").next().unwrap_or(rest));
        Some(Self {
            name,
            is_struct: false,
        })
    }
}

/// What follows the generic parameters of an `impl`.
fn without_parameters(rest: &str) -> &str {
    if !rest.starts_with('<') {
        return rest;
    }
    let mut depth = 0;
    for (at, character) in rest.char_indices() {
        match character {
            '<' => depth += 1,
            '>' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return rest.get(at + 1..).unwrap_or_default();
        }
    }
    rest
}

fn leading_name(text: &str) -> String {
    text.chars()
        .take_while(|character| character.is_alphanumeric() || *character == '_')
        .collect()
}

/// Whether a line in an `impl` begins a method.
fn is_method(line: &str) -> bool {
    let Some(line) = line.strip_prefix("    ") else {
        return false;
    };
    let head = without_visibility(line).split(['(', '<']).next();
    let is_comment = line.starts_with('/');
    !is_comment
        && !line.starts_with(' ')
        && head.is_some_and(|head| head.split(' ').any(|word| word == "fn"))
}

/// Whether a line in a struct is a field.
fn is_field(line: &str) -> bool {
    let Some(line) = line.strip_prefix("    ") else {
        return false;
    };
    let line = without_visibility(line);
    let name = leading_name(line);
    !name.is_empty() && line[name.len()..].starts_with(": ")
}

fn without_visibility(line: &str) -> &str {
    ["pub(crate) ", "pub(super) ", "pub "]
        .iter()
        .find_map(|visibility| line.strip_prefix(visibility))
        .unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(text: &str) -> (usize, usize) {
        let mut sizes = TypeSizes::default();
        sizes.add("crates/runtime/src/a.rs", text);
        sizes.add("crates/runtime/tests/a.rs", text);
        let size = &sizes.0[&("runtime".to_owned(), "A".to_owned())];
        (size.methods, size.fields)
    }

    #[test]
    fn methods_are_counted_over_all_inherent_blocks_and_fields_once() {
        let text = "pub struct A<'a> {\n    /// One: two.\n    pub(crate) one: &'a u8,\n    two: Vec<u8>,\n}\n\n\
                    impl<'a> A<'a> {\n    /// fn none.\n    pub(crate) const fn new(one: u8) -> Self {\n        let fn_ = one;\n    }\n}\n\n\
                    impl A<'_> {\n    fn second(\n        &self,\n    ) {\n    }\n}\n\n\
                    impl Clone for A<'_> {\n    fn clone(&self) -> Self {\n    }\n}\n\n\
                    #[cfg(test)]\nmod tests {\n}\nimpl A<'_> {\n    fn in_a_test() {\n    }\n}\n";
        assert_eq!(sizes(text), (2, 2));
    }

    #[test]
    fn a_type_over_the_limit_is_found() {
        let methods: String = (0..=METHODS_MAX)
            .map(|number| format!("    fn m{number}(&self) {{\n    }}\n"))
            .collect();
        let mut sizes = TypeSizes::default();
        sizes.add(
            "crates/runtime/src/a.rs",
            &format!("impl A {{\n{methods}}}\n"),
        );
        let found = sizes.findings();
        assert_eq!(found.len(), 1);
        assert!(
            found[0].message.contains("61 methods"),
            "{}",
            found[0].message
        );
    }
}
