//! Renders `docs/` with mdBook into static HTML files: a page per chapter, a
//! search index, no network. `cargo xtask book` starts it.
//!
//! A folder with a page per module of the wheel becomes chapters below "Python
//! reference".
//!
//! Links from a page to files outside `docs/` (sources, examples) lead from the
//! rendered page to the file in the checkout.

use std::env;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, bail};
use mdbook_driver::MDBook;
use mdbook_driver::book::{Book, BookItem, Chapter};
use mdbook_driver::config::Config;

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let (output, python) = match arguments.as_slice() {
        [output] => (output, None),
        [output, python] => (output, Some(PathBuf::from(python))),
        _ => bail!("usage: pteros-book OUTPUT_FOLDER [PYTHON_PAGES]"),
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let checkout = root
        .ancestors()
        .nth(2)
        .context("the book's folder is not in a checkout")?;
    let output = checkout.join(output);
    let mut config = Config::from_disk(root.join("book.toml"))?;
    config.build.build_dir = output.clone();
    let mut book = MDBook::load_with_config(root, config)?;
    let up = path_between(&output, checkout)?;
    book.with_preprocessor(RepositoryLinks { up });
    if let Some(folder) = python {
        let pages = python_pages(&folder)?;
        book.with_preprocessor(PythonReference { pages });
    }
    book.build()
}

/// The page below which those of the Python modules are, in `docs/`.
const PYTHON_REFERENCE: &str = "reference/python_api.md";

/// Names and texts of the pages in a folder, by name.
fn python_pages(folder: &Path) -> Result<Vec<(String, String)>> {
    let entries =
        std::fs::read_dir(folder).with_context(|| format!("list {}", folder.display()))?;
    let mut pages = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if let Some(name) = path.file_stem().and_then(|name| name.to_str()) {
            let text = std::fs::read_to_string(&path)
                .with_context(|| format!("read {}", path.display()))?;
            pages.push((name.to_owned(), text));
        }
    }
    pages.sort();
    Ok(pages)
}

/// Adds the pages of Python modules as chapters.
struct PythonReference {
    pages: Vec<(String, String)>,
}

impl mdbook_preprocessor::Preprocessor for PythonReference {
    fn name(&self) -> &str {
        "python-reference"
    }

    fn run(
        &self,
        _: &mdbook_preprocessor::PreprocessorContext,
        mut book: Book,
    ) -> mdbook_driver::errors::Result<Book> {
        book.for_each_chapter_mut(|chapter| {
            if chapter.source_path.as_deref() == Some(Path::new(PYTHON_REFERENCE)) {
                self.add_to(chapter);
            }
        });
        Ok(book)
    }
}

impl PythonReference {
    fn add_to(&self, parent: &mut Chapter) {
        let mut names = parent.parent_names.clone();
        names.push(parent.name.clone());
        for (name, text) in &self.pages {
            let path = format!("reference/python_api/{name}.md");
            parent.content += &format!("- [`{name}`](python_api/{name}.md)\n");
            let chapter = Chapter::new(name, text.clone(), path, names.clone());
            parent.sub_items.push(BookItem::Chapter(chapter));
        }
    }
}

/// The relative path that leads from folder `from` to its ancestor `to`.
fn path_between(from: &Path, to: &Path) -> Result<PathBuf> {
    let below = from
        .strip_prefix(to)
        .with_context(|| format!("{} is not inside the checkout", from.display()))?;
    Ok(below.components().map(|_| "..").collect())
}

/// Rewrites links that leave `docs/` so that they lead into the checkout.
struct RepositoryLinks {
    /// From the output folder to the checkout.
    up: PathBuf,
}

impl mdbook_preprocessor::Preprocessor for RepositoryLinks {
    fn name(&self) -> &str {
        "repository-links"
    }

    fn run(
        &self,
        _: &mdbook_preprocessor::PreprocessorContext,
        mut book: Book,
    ) -> mdbook_driver::errors::Result<Book> {
        book.for_each_chapter_mut(|chapter| {
            let Some(path) = chapter.source_path.clone() else {
                return;
            };
            let folder = path.parent().unwrap_or(Path::new("")).to_owned();
            chapter.content = rewrite(&chapter.content, |link| self.resolve(&folder, link));
        });
        Ok(book)
    }
}

impl RepositoryLinks {
    /// The new target of `link` on a page in `folder`, if the link leaves `docs/`.
    fn resolve(&self, folder: &Path, link: &str) -> Option<String> {
        if link.starts_with('#') || link.contains("://") || link.starts_with("mailto:") {
            return None;
        }
        let path = folder.join(link);
        let mut kept: Vec<&str> = Vec::new();
        let mut left_docs = false;
        for part in path.components() {
            match part {
                Component::Normal(name) => kept.push(name.to_str()?),
                Component::ParentDir if kept.pop().is_none() => left_docs = true,
                _ => {}
            }
        }
        if !left_docs {
            return None;
        }
        let mut target: PathBuf = folder.components().map(|_| "..").collect();
        target.push(&self.up);
        target.extend(kept);
        Some(target.to_str()?.to_owned())
    }
}

/// Replaces the targets of inline links outside code fences.
fn rewrite(text: &str, resolve: impl Fn(&str) -> Option<String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut in_fence = false;
    for line in text.split_inclusive('\n') {
        if line.trim_start().starts_with("```") {
            in_fence = !in_fence;
        }
        let mut rest = line;
        while !in_fence && let Some(at) = rest.find("](") {
            let (before, after) = rest.split_at(at + 2);
            out.push_str(before);
            let end = after.find(')').unwrap_or(0);
            let (link, tail) = after.split_at(end);
            out.push_str(&resolve(link).unwrap_or_else(|| link.to_owned()));
            rest = tail;
        }
        out.push_str(rest);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(folder: &str, link: &str) -> Option<String> {
        let links = RepositoryLinks {
            up: PathBuf::from("../.."),
        };
        links.resolve(Path::new(folder), link)
    }

    #[test]
    fn a_link_to_a_source_file_leads_into_the_checkout() {
        assert_eq!(
            resolved("internals", "../../crates/rtps/src/lib.rs").as_deref(),
            Some("../../../crates/rtps/src/lib.rs")
        );
        assert_eq!(
            resolved("", "../README.md").as_deref(),
            Some("../../README.md")
        );
    }

    #[test]
    fn links_between_pages_and_to_the_web_stay() {
        assert_eq!(resolved("internals", "../start/install.md"), None);
        assert_eq!(resolved("internals", "#limits"), None);
        assert_eq!(resolved("", "https://example.org/x"), None);
    }

    #[test]
    fn a_python_module_is_a_chapter_below_the_reference() {
        let pages = vec![("rclpy.node".to_owned(), "# rclpy.node\n".to_owned())];
        let mut parent = Chapter::new("Python reference", String::new(), PYTHON_REFERENCE, vec![]);
        PythonReference { pages }.add_to(&mut parent);
        assert!(parent.content.contains("(python_api/rclpy.node.md)"));
        let [BookItem::Chapter(chapter)] = parent.sub_items.as_slice() else {
            panic!("{:?}", parent.sub_items);
        };
        assert_eq!(chapter.parent_names, ["Python reference"]);
        assert_eq!(
            chapter.path.as_deref(),
            Some(Path::new("reference/python_api/rclpy.node.md"))
        );
    }

    #[test]
    fn code_blocks_are_not_rewritten() {
        let text = "a [b](x) c\n```\n[d](x)\n```\n";
        assert_eq!(
            rewrite(text, |_| Some("y".to_owned())),
            "a [b](y) c\n```\n[d](x)\n```\n"
        );
    }
}
