//! XML read strictly: every element is asked for by name, and one that nobody
//! asked for is a fault. `roxmltree` refuses DTDs, so entities cannot grow.

use std::collections::BTreeMap;
use std::ops::Range;

use roxmltree::{Document as Tree, Node, ParsingOptions};

use crate::fault::Fault;

/// The text of a document and where it came from.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// The file, or which peer sent it.
    pub file: &'a str,
    /// The line of `file` on which `text` begins, from 1: a signed document
    /// stands some lines down in its file.
    pub first_line: u32,
    /// The document.
    pub text: &'a str,
}

impl<'a> Source<'a> {
    /// The text as a tree, handed to `read` with its root, which has this name.
    pub(crate) fn read<T>(
        self,
        root: &str,
        read: impl FnOnce(Element<'_, '_>) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let remedy = match root {
            "policy" => "write an SROS 2 policy, or begin with `pteros security generate_policy`",
            _ => "write the XML of DDS Security 1.1 §9.4.1, or have `pteros security` write it",
        };
        let fault = |reason: String| Fault::new(self.file, "document", "", reason, remedy);
        if self.text.len() > DOCUMENT_BYTES {
            return Err(fault(format!("larger than {DOCUMENT_BYTES} bytes")));
        }
        // Before the parser, which descends into what is nested.
        if let Some(line) = too_deep(self.text) {
            let fault = fault(format!("elements nested more than {DEPTH} deep"));
            return Err(fault.at_line(self.first_line.saturating_add(line)));
        }
        let options = ParsingOptions {
            nodes_limit: NODES,
            ..ParsingOptions::default()
        };
        let tree = Tree::parse_with_options(self.text, options).map_err(|error| {
            let line = error.pos().row.saturating_sub(1);
            fault(format!("not well-formed XML: {error}"))
                .at_line(self.first_line.saturating_add(line))
        })?;
        let element = Element {
            source: self,
            node: tree.root_element(),
        };
        if element.name() != root {
            return Err(element.fault(
                element.name(),
                format!("the document begins with another element than <{root}>"),
                "is it the right file?",
            ));
        }
        read(element)
    }
}

/// The line, from 0, on which tags nest too deep. Counts what looks like a
/// tag; comments and CDATA can only make it count more.
fn too_deep(text: &str) -> Option<u32> {
    let mut depth = 0_usize;
    for (at, _) in text.match_indices('<') {
        let rest = text.get(at.saturating_add(1)..).unwrap_or_default();
        match rest.as_bytes().first() {
            Some(b'/') => depth = depth.saturating_sub(1),
            Some(b'!' | b'?') | None => {}
            Some(_) => {
                let tag = rest.split('>').next().unwrap_or_default();
                if !tag.ends_with('/') {
                    depth = depth.saturating_add(1);
                }
            }
        }
        if depth > DEPTH {
            let line = text.get(..at).unwrap_or_default().matches('\n').count();
            return Some(u32::try_from(line).unwrap_or(u32::MAX));
        }
    }
    None
}

/// One element.
#[derive(Clone, Copy)]
pub(crate) struct Element<'a, 'i> {
    source: Source<'a>,
    node: Node<'a, 'i>,
}

impl<'a, 'i: 'a> Element<'a, 'i> {
    pub fn name(&self) -> &'a str {
        self.node.tag_name().name()
    }

    /// The line in its file, from 1.
    pub fn line(&self) -> u32 {
        let at = self.node.document().text_pos_at(self.node.range().start);
        self.source
            .first_line
            .saturating_add(at.row.saturating_sub(1))
    }

    pub fn attribute(&self, name: &str) -> Option<&'a str> {
        self.node.attribute(name)
    }

    /// A fault of this element.
    pub fn fault(
        &self,
        value: impl AsRef<str>,
        reason: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Fault {
        let name = format!("<{}>", self.name());
        Fault::new(self.source.file, name, value, reason, remedy).at_line(self.line())
    }

    /// Its elements in their order. Text among them is a fault.
    pub fn elements(&self) -> Result<Vec<Element<'a, 'i>>, Fault> {
        let mut elements = Vec::new();
        for node in self.node.children() {
            if node.is_element() {
                elements.push(Element {
                    source: self.source,
                    node,
                });
            } else if node.is_text()
                && let Some(text) = node.text()
                && !text.trim().is_empty()
            {
                return Err(self.fault(
                    text.trim(),
                    "text among elements",
                    "remove it, or make it a comment",
                ));
            }
        }
        Ok(elements)
    }

    /// Its elements by name, each of which must be known.
    pub fn fields(&self, known: &[&str]) -> Result<Fields<'a, 'i>, Fault> {
        let mut fields: BTreeMap<&'a str, Vec<Element<'a, 'i>>> = BTreeMap::new();
        for element in self.elements()? {
            if !known.contains(&element.name()) {
                return Err(element.unknown(self.name(), known));
            }
            fields.entry(element.name()).or_default().push(element);
        }
        Ok(Fields { of: *self, fields })
    }

    /// The fault of an element that is not known where it stands.
    pub fn unknown(&self, within: &str, known: &[&str]) -> Fault {
        self.fault(
            "",
            format!("no such element in <{within}>"),
            format!("remove it; known there: {}", known.join(", ")),
        )
    }

    /// Its text without space around it; elements within are a fault.
    pub fn text(&self) -> Result<&'a str, Fault> {
        if let Some(inner) = self.node.children().find(Node::is_element) {
            return Err(self.fault(
                inner.tag_name().name(),
                "an element where text is expected",
                "write the value itself",
            ));
        }
        // More than one text node stands beside comments.
        let mut texts = self
            .node
            .children()
            .filter_map(|node| node.is_text().then(|| node.text()).flatten())
            .map(str::trim)
            .filter(|text| !text.is_empty());
        let first = texts.next().unwrap_or_default();
        match texts.next() {
            None => Ok(first),
            Some(_) => Err(self.fault(first, "a comment divides the value", "move the comment")),
        }
    }

    /// Its text, read by `parse`; `expected` says what it should have been.
    pub fn value<T>(
        &self,
        parse: impl FnOnce(&str) -> Option<T>,
        expected: &str,
    ) -> Result<T, Fault> {
        let text = self.text()?;
        parse(text).ok_or_else(|| {
            let reason = if text.is_empty() {
                "empty"
            } else {
                "no value that this field can have"
            };
            self.fault(text, reason, format!("write {expected}"))
        })
    }

    /// `true` or `false`, as XML Schema spells them and in any case, since
    /// vendors' files have `TRUE`, too.
    pub fn boolean(&self) -> Result<bool, Fault> {
        self.value(
            |text| match text.to_ascii_lowercase().as_str() {
                "true" | "1" => Some(true),
                "false" | "0" => Some(false),
                _ => None,
            },
            "true or false",
        )
    }
}

/// The elements of one element by name.
pub(crate) struct Fields<'a, 'i> {
    of: Element<'a, 'i>,
    fields: BTreeMap<&'a str, Vec<Element<'a, 'i>>>,
}

impl<'a, 'i: 'a> Fields<'a, 'i> {
    /// The one element of this name.
    pub fn one(&self, name: &str) -> Result<Element<'a, 'i>, Fault> {
        self.optional(name)?.ok_or_else(|| {
            self.of.fault(
                "",
                format!("<{name}> is missing"),
                format!("add one <{name}> to it"),
            )
        })
    }

    /// The element of this name, if there is one; two are a fault.
    pub fn optional(&self, name: &str) -> Result<Option<Element<'a, 'i>>, Fault> {
        match self.all(name) {
            [] => Ok(None),
            [one] => Ok(Some(*one)),
            [_, second, ..] => Err(second.fault(
                "",
                format!("there is a <{name}> already"),
                "keep the one that is meant",
            )),
        }
    }

    /// All elements of this name.
    pub fn all(&self, name: &str) -> &[Element<'a, 'i>] {
        self.fields.get(name).map_or(&[], Vec::as_slice)
    }
}

/// The `<domains>` of a rule: ids and ranges of ids, both ends included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Domains(Vec<Range<u64>>);

impl Domains {
    /// Whether this domain is among them.
    pub fn contains(&self, domain: u32) -> bool {
        self.0
            .iter()
            .any(|range| range.contains(&u64::from(domain)))
    }

    /// A domain that is named, as an id or an end of a range, and is beyond `last`.
    pub(crate) fn named_beyond(&self, last: u64) -> Option<u64> {
        let ends = self.0.iter().flat_map(|range| {
            // A range without an upper end names none.
            let high = (range.end != u64::MAX).then(|| range.end.saturating_sub(1));
            [Some(range.start), high]
        });
        ends.flatten().find(|id| *id > last)
    }

    pub(crate) fn read(element: Element<'_, '_>) -> Result<Self, Fault> {
        const KNOWN: &[&str] = &["id", "id_range"];
        let id = |element: Element<'_, '_>| {
            element.value(
                |text| text.parse::<u32>().ok().map(u64::from),
                "a domain id, 0 to 232",
            )
        };
        let mut ranges = Vec::new();
        for inner in element.elements()? {
            match inner.name() {
                "id" => {
                    let id = id(inner)?;
                    ranges.push(id..id.saturating_add(1));
                }
                "id_range" => {
                    let fields = inner.fields(&["min", "max"])?;
                    let low = fields.optional("min")?.map(id).transpose()?;
                    let high = fields.optional("max")?.map(id).transpose()?;
                    if low.is_none() && high.is_none() {
                        return Err(inner.fault("", "neither min nor max", "add one of them"));
                    }
                    let end = high.map_or(u64::MAX, |high| high.saturating_add(1));
                    let start = low.unwrap_or(0);
                    if start >= end {
                        return Err(inner.fault(
                            format!("{start} to {}", end.saturating_sub(1)),
                            "holds no domain",
                            "write the smaller id as min",
                        ));
                    }
                    ranges.push(start..end);
                }
                _ => return Err(inner.unknown("domains", KNOWN)),
            }
        }
        if ranges.is_empty() {
            return Err(element.fault("", "names no domain", "add <id>0</id>"));
        }
        Ok(Self(ranges))
    }
}

/// A thousand topics fit many times.
const DOCUMENT_BYTES: usize = 1 << 20;
/// Elements, texts and comments of one document.
const NODES: u32 = 100_000;
/// The schemas of governance and permissions need 8.
const DEPTH: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Domains, Fault> {
        let source = Source {
            file: "f",
            first_line: 5,
            text,
        };
        source.read("domains", Domains::read)
    }

    #[test]
    fn domains_are_ids_and_ranges() {
        let domains = read(
            "<domains><id>3</id><id_range><min>10</min><max>12</max></id_range>\
             <id_range><min>200</min></id_range></domains>",
        )
        .unwrap();
        let inside: Vec<u32> = (0..240).filter(|id| domains.contains(*id)).collect();
        assert_eq!(inside[..4], [3, 10, 11, 12]);
        assert_eq!(inside.len(), 44);
    }

    #[test]
    fn a_fault_names_the_line_of_the_file_that_holds_the_document() {
        let fault = read("<domains>\n<id>\n-1</id></domains>").unwrap_err();
        assert_eq!((fault.line, &*fault.value), (Some(6), "-1"));
        let fault = read("<domains>\n\n<iid>1</iid></domains>").unwrap_err();
        assert_eq!((fault.line, &*fault.field), (Some(7), "<iid>"));
        for bad in [
            "<domains/>",
            "<domains><id/></domains>",
            "<domains>1</domains>",
            "<domains><id>1</id",
            "<domain/>",
            "<domains><id>1<!-- -->2</id></domains>",
            "<domains><id_range><min>4</min><max>3</max></id_range></domains>",
            "<domains><id_range/></domains>",
            "<!DOCTYPE d [<!ENTITY a 'b'>]><domains><id>&a;</id></domains>",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn nesting_and_size_have_limits() {
        let deep = "<a>".repeat(200_000) + &"</a>".repeat(200_000);
        assert!(read(&deep[..900_000]).unwrap_err().reason.contains("deep"));
        assert!(read(&" ".repeat(DOCUMENT_BYTES + 1)).is_err());
        let many = format!("<domains>{}</domains>", "<id>1</id>".repeat(60_000));
        assert!(read(&many).is_err());
    }
}
