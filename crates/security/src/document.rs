//! Strict XML reader: every element is requested by name, and an unknown element is
//! an error. `roxmltree` refuses DTDs, so entities cannot expand.

use std::collections::BTreeMap;
use std::ops::Range;

use roxmltree::{Document as Tree, Node, ParsingOptions};

use crate::diagnostic::Diagnostic;

/// The text of a document and its origin.
#[derive(Debug, Clone, Copy)]
pub struct DocumentSource<'a> {
    /// The file; for a peer's document, the peer.
    pub file: &'a str,
    /// Line of `file` on which `text` begins, from 1: a signed document does not
    /// begin on the first line of its file.
    pub first_line: u32,
    /// The document.
    pub text: &'a str,
}

impl<'a> DocumentSource<'a> {
    /// Parses the text and passes the root, which must have this name, to `read`.
    pub(crate) fn read<T>(
        self,
        root: &str,
        read: impl FnOnce(Element<'_, '_>) -> Result<T, Diagnostic>,
    ) -> Result<T, Diagnostic> {
        let remedy = match root {
            "policy" => "write an SROS 2 policy, or begin with `pteros security generate_policy`",
            _ => "write the XML of DDS Security 1.1 §9.4.1, or have `pteros security` write it",
        };
        let fault = |reason: String| Diagnostic::new(self.file, "document", "", reason, remedy);
        if self.text.len() > DOCUMENT_BYTES {
            return Err(fault(format!("larger than {DOCUMENT_BYTES} bytes")));
        }
        // Before the parser, which recurses into nested elements.
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

/// The line, from 0, on which tags nest too deep. Counts everything that looks like
/// a tag; comments and CDATA can only increase the count.
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

#[derive(Clone, Copy)]
pub(crate) struct Element<'a, 'i> {
    source: DocumentSource<'a>,
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

    /// A diagnostic for this element.
    pub fn fault(
        &self,
        value: impl AsRef<str>,
        reason: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Diagnostic {
        let name = format!("<{}>", self.name());
        Diagnostic::new(self.source.file, name, value, reason, remedy).at_line(self.line())
    }

    /// Its child elements in order. Text among them is an error.
    pub fn elements(&self) -> Result<Vec<Element<'a, 'i>>, Diagnostic> {
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

    /// Its child elements by name. An unknown name is an error.
    pub fn fields(&self, known: &[&str]) -> Result<ElementFields<'a, 'i>, Diagnostic> {
        let mut fields: BTreeMap<&'a str, Vec<Element<'a, 'i>>> = BTreeMap::new();
        for element in self.elements()? {
            if !known.contains(&element.name()) {
                return Err(element.unknown(self.name(), known));
            }
            fields.entry(element.name()).or_default().push(element);
        }
        Ok(ElementFields { of: *self, fields })
    }

    /// The diagnostic for an element that is unknown at this place.
    pub fn unknown(&self, within: &str, known: &[&str]) -> Diagnostic {
        self.fault(
            "",
            format!("no such element in <{within}>"),
            format!("remove it; allowed there: {}", known.join(", ")),
        )
    }

    /// Its text without surrounding space. Child elements are an error.
    pub fn text(&self) -> Result<&'a str, Diagnostic> {
        if let Some(inner) = self.node.children().find(Node::is_element) {
            return Err(self.fault(
                inner.tag_name().name(),
                "an element instead of text",
                "write the value",
            ));
        }
        // Comments divide text into several nodes.
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

    /// Its text, parsed by `parse`; `expected` describes valid values.
    pub fn value<T>(
        &self,
        parse: impl FnOnce(&str) -> Option<T>,
        expected: &str,
    ) -> Result<T, Diagnostic> {
        let text = self.text()?;
        parse(text).ok_or_else(|| {
            let reason = if text.is_empty() {
                "empty"
            } else {
                "not a valid value of this field"
            };
            self.fault(text, reason, format!("write {expected}"))
        })
    }

    /// `true` or `false`, in any case, since vendors' files have `TRUE`, too.
    pub fn boolean(&self) -> Result<bool, Diagnostic> {
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

/// The child elements of one element by name.
pub(crate) struct ElementFields<'a, 'i> {
    of: Element<'a, 'i>,
    fields: BTreeMap<&'a str, Vec<Element<'a, 'i>>>,
}

impl<'a, 'i: 'a> ElementFields<'a, 'i> {
    /// The one child element with this name.
    pub fn one(&self, name: &str) -> Result<Element<'a, 'i>, Diagnostic> {
        self.optional(name)?.ok_or_else(|| {
            self.of.fault(
                "",
                format!("<{name}> is missing"),
                format!("add one <{name}> to it"),
            )
        })
    }

    /// The child element with this name, if there is one. Two are an error.
    pub fn optional(&self, name: &str) -> Result<Option<Element<'a, 'i>>, Diagnostic> {
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

    /// All child elements with this name.
    pub fn all(&self, name: &str) -> &[Element<'a, 'i>] {
        self.fields.get(name).map_or(&[], Vec::as_slice)
    }
}

/// The `<domains>` of a rule: ids and ranges of ids, both ends included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainSet(Vec<Range<u64>>);

impl DomainSet {
    /// Whether this domain is among them.
    pub fn contains(&self, domain: u32) -> bool {
        self.0
            .iter()
            .any(|range| range.contains(&u64::from(domain)))
    }

    /// An id, or an end of a range, that is greater than `last`.
    pub(crate) fn has_id_beyond(&self, last: u64) -> Option<u64> {
        let ends = self.0.iter().flat_map(|range| {
            // A range without an upper end has no such id.
            let high = (range.end != u64::MAX).then(|| range.end.saturating_sub(1));
            [Some(range.start), high]
        });
        ends.flatten().find(|id| *id > last)
    }

    pub(crate) fn read(element: Element<'_, '_>) -> Result<Self, Diagnostic> {
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

/// Limit of a document, bytes. A thousand topics take a fraction of it.
/// #85
const DOCUMENT_BYTES: usize = 1 << 20;
/// Elements, texts and comments of one document.
const NODES: u32 = 100_000;
/// The schemas of governance and permissions need 8.
const DEPTH: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<DomainSet, Diagnostic> {
        let source = DocumentSource {
            file: "f",
            first_line: 5,
            text,
        };
        source.read("domains", DomainSet::read)
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
    fn a_diagnostic_names_the_line_of_the_signed_file() {
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
