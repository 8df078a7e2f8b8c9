//! `pteros interface show`: the definition, with nested definitions indented below
//! the fields that use them, and the type hash on request.

use crate::cli_context::CliContext;
use crate::interface::type_names::{find_interface, name_or_stdin};
use anyhow::{Result, anyhow, bail};
use clap::Args;
use pteros::msg::library::InterfaceLibrary;
use pteros::msg::schema::{InterfaceFile, InterfaceKind, StructSpec};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Arguments of `interface show`.
#[derive(Debug, Args)]
pub struct Show {
    /// Print all comments, including those of nested definitions
    #[arg(long, conflicts_with = "no_comments")]
    all_comments: bool,
    /// Print no comments and no empty lines
    #[arg(long)]
    no_comments: bool,
    /// Print the RIHS01 type hash at the end, as a comment
    #[arg(long)]
    type_hash: bool,
    /// Request the type from a node that uses it, instead of the local definitions
    #[arg(long, value_name = "NODE", conflicts_with_all = ["all_comments", "no_comments"])]
    from: Option<String>,
    /// Name of the interface (e.g. example_interfaces/msg/String); "-" reads it from standard input
    #[arg(value_name = "TYPE")]
    type_name: String,
}

impl Show {
    /// Prints the definition.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let type_name = name_or_stdin(self.type_name)?;
        if let Some(node) = &self.from {
            return super::remote::show(cli, node, &type_name, self.type_hash);
        }
        let library = cli.library()?;
        let name = find_interface(&library, &type_name).map_err(|unknown| {
            anyhow!("{unknown}; or ask a node that uses it: pteros interface show {type_name} --from NODE")
        })?;
        let hash = library.type_hash(&name)?;
        if cli.console.json {
            let file = library.file(&name)?;
            return Ok(cli.console.json(&json!({
                "name": name,
                "kind": file.kind.to_string(),
                "type_hash": hash.to_string(),
                "origin": library.origin(&name),
                "definition": library.text(&name),
                "parts": parts(&file),
            }))?);
        }
        let mut text = String::new();
        let listing = NestedListing {
            library: &library,
            nested_comments: self.all_comments,
        };
        listing.write(&name, !self.no_comments, 0, &mut text)?;
        if self.type_hash {
            text += &format!("# type hash: {hash}\n");
        }
        cli.console.text(&text)?;
        Ok(())
    }
}

/// Largest listing in bytes. Those of ROS 2 have 50 KB.
const LISTING_BYTES_MAX: usize = 4 << 20;

struct NestedListing<'a> {
    library: &'a InterfaceLibrary,
    nested_comments: bool,
}

impl NestedListing<'_> {
    /// Appends the definition of `name`, each line after `depth` tabs. It
    /// terminates, since describing the type has refused recursive messages.
    fn write(&self, name: &str, comments: bool, depth: usize, out: &mut String) -> Result<()> {
        let file = self.library.file(name)?;
        let nested = nested_by_line(&file);
        let text = self.library.text(name).unwrap_or_default();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim_end();
            let shown = if comments {
                line
            } else {
                without_comment(line)
            };
            if shown.is_empty() && !comments {
                continue;
            }
            if !shown.is_empty() {
                out.extend(std::iter::repeat_n('\t', depth));
                out.push_str(shown);
            }
            out.push('\n');
            if out.len() > LISTING_BYTES_MAX {
                bail!(
                    "{name} is nested so often that the listing has more than {} MiB; --json prints a definition alone",
                    LISTING_BYTES_MAX >> 20
                );
            }
            if let Some(nested) = nested.get(&(index + 1)) {
                self.write(nested, self.nested_comments, depth + 1, out)?;
            }
        }
        Ok(())
    }
}

/// The types of fields that are messages, by their lines.
fn nested_by_line(file: &InterfaceFile) -> BTreeMap<usize, String> {
    let fields = file.parts.iter().flat_map(|part| &part.fields);
    let nested = fields.filter_map(|field| {
        let line = usize::try_from(field.line).ok()?;
        Some((line, field.ty.base.nested_name()?))
    });
    nested.collect()
}

/// The line up to a `#` that is not inside quotes.
fn without_comment(line: &str) -> &str {
    let mut quote = None;
    let mut escaped = false;
    for (at, c) in line.char_indices() {
        match (quote, c) {
            _ if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, '#') => return line[..at].trim_end(),
            _ => {}
        }
    }
    line
}

fn parts(file: &InterfaceFile) -> Vec<Value> {
    let names: &[&str] = match file.kind {
        InterfaceKind::Message => &["message"],
        InterfaceKind::Service => &["request", "response"],
        InterfaceKind::Action => &["goal", "result", "feedback"],
    };
    names
        .iter()
        .zip(&file.parts)
        .map(|(name, part)| part_json(name, part))
        .collect()
}

fn part_json(name: &str, part: &StructSpec) -> Value {
    let fields: Vec<Value> = part
        .fields
        .iter()
        .map(|field| {
            json!({
                "name": field.name,
                "type": field.ty.to_string(),
                "default": field.default.as_ref().map(ToString::to_string),
                "comment": comment(&field.comments),
            })
        })
        .collect();
    let constants: Vec<Value> = part
        .constants
        .iter()
        .map(|constant| {
            json!({
                "name": constant.name,
                "type": constant.ty.to_string(),
                "value": constant.value.to_string(),
                "comment": comment(&constant.comments),
            })
        })
        .collect();
    json!({ "part": name, "fields": fields, "constants": constants })
}

fn comment(lines: &[String]) -> Option<String> {
    (!lines.is_empty()).then(|| lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::without_comment;

    #[test]
    fn a_hash_inside_quotes_does_not_start_a_comment() {
        assert_eq!(without_comment("int8 a # b"), "int8 a");
        assert_eq!(without_comment("# only"), "");
        assert_eq!(
            without_comment(r##"string c "#fff" # red"##),
            r##"string c "#fff""##
        );
        assert_eq!(
            without_comment(r#"string q 'it\'s' #"#),
            r#"string q 'it\'s'"#
        );
    }
}
