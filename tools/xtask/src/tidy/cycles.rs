//! Import cycles: strongly connected components of the files of a crate, and of
//! its folders.
//!
//! A component of up to [`COMPONENT_FILES_MAX`] files may be one thing in several
//! files. A larger one can only be understood as a whole, and so can two folders
//! that import each other.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;

use super::modules::{Import, ImportGraph, import_graph};
use crate::finding::Finding;

/// Largest number of files that import each other in a circle.
const COMPONENT_FILES_MAX: usize = 3;

/// Checks the crate of these root files. A package may have two: a library and a
/// program.
pub fn check(roots: &[String], read: &mut dyn FnMut(&Path) -> Option<String>) -> Vec<Finding> {
    let graphs = roots.iter().map(|root| import_graph(Path::new(root), read));
    graphs.flat_map(|graph| check_graph(&graph)).collect()
}

fn check_graph(graph: &ImportGraph) -> Vec<Finding> {
    let mut findings = Vec::new();
    for component in file_components(graph) {
        findings.extend(file_findings(graph, &component));
    }
    for level in folder_levels(graph) {
        for component in level.components() {
            findings.extend(level.findings(graph, &component));
        }
    }
    findings
}

/// Components of files over the limit.
fn file_components(graph: &ImportGraph) -> Vec<BTreeSet<usize>> {
    let arrows: BTreeSet<(usize, usize)> = graph.imports.iter().map(|i| (i.from, i.to)).collect();
    let mut all = components(graph.files.len(), &arrows);
    all.retain(|component| component.len() > COMPONENT_FILES_MAX);
    all
}

fn file_findings(graph: &ImportGraph, component: &BTreeSet<usize>) -> Vec<Finding> {
    let inside = |i: &&Import| component.contains(&i.from) && component.contains(&i.to);
    let imports: Vec<&Import> = graph.imports.iter().filter(inside).collect();
    let weights: BTreeMap<(usize, usize), usize> = imports
        .iter()
        .map(|i| ((i.from, i.to), i.names.len()))
        .collect();
    let back = closing_arrows(component, &weights);
    let name = |file: usize| graph.files[file].display().to_string();
    let closing = imports
        .iter()
        .filter(|i| back.contains(&(i.from, i.to)))
        .map(|import| {
            let path = shortest_path(import.to, import.from, &weights);
            let path: Vec<String> = path.into_iter().map(name).collect();
            Finding {
                path: name(import.from),
                line: import.line,
                message: format!(
                    "closes an import cycle of {} files (at most {COMPONENT_FILES_MAX}): it uses {}, and {} \
                     leads back to this file. Move what both need into a file below them",
                    component.len(),
                    listed(&import.names),
                    path.join(" -> "),
                ),
            }
        });
    closing.collect()
}

/// The files and folders of one folder, and the imports between them.
struct Level {
    /// Name and whether it is a folder. `x.rs` and `x/` are one folder.
    nodes: Vec<(String, bool)>,
    /// Indexes of the imports between two nodes.
    arrows: BTreeMap<(usize, usize), Vec<usize>>,
}

impl Level {
    /// Components with two folders or more.
    fn components(&self) -> Vec<BTreeSet<usize>> {
        let arrows: BTreeSet<(usize, usize)> = self.arrows.keys().copied().collect();
        let mut all = components(self.nodes.len(), &arrows);
        all.retain(|component| component.iter().filter(|node| self.nodes[**node].1).count() > 1);
        all
    }

    fn findings(&self, graph: &ImportGraph, component: &BTreeSet<usize>) -> Vec<Finding> {
        let inside =
            |(from, to): &(usize, usize)| component.contains(from) && component.contains(to);
        let weights: BTreeMap<(usize, usize), usize> = self
            .arrows
            .iter()
            .filter(|(arrow, _)| inside(arrow))
            .map(|(arrow, imports)| (*arrow, imports.len()))
            .collect();
        let mut findings = Vec::new();
        for arrow in closing_arrows(component, &weights) {
            let back = shortest_path(arrow.1, arrow.0, &weights);
            let back: Vec<&str> = back
                .iter()
                .map(|node| self.nodes[*node].0.as_str())
                .collect();
            for index in &self.arrows[&arrow] {
                let import = &graph.imports[*index];
                findings.push(Finding {
                    path: graph.files[import.from].display().to_string(),
                    line: import.line,
                    message: format!(
                        "closes an import cycle between folders ({} files and folders): it uses {} of {}, \
                         and {} leads back to this one. Move what both need into a file below them",
                        component.len(),
                        listed(&import.names),
                        graph.files[import.to].display(),
                        back.join(" -> "),
                    ),
                });
            }
        }
        findings
    }
}

/// One level for each folder of the crate.
fn folder_levels(graph: &ImportGraph) -> Vec<Level> {
    let root = graph.files.first().and_then(|root| root.parent());
    let top = root.unwrap_or(Path::new(""));
    // Each file as its folders below the root and its name.
    let parts = |file: usize| -> Vec<String> {
        let path = &graph.files[file];
        let path = path.strip_prefix(top).unwrap_or(path).with_extension("");
        let parts = path.iter().map(|part| part.to_string_lossy().into_owned());
        parts.collect()
    };
    let files: Vec<Vec<String>> = (0..graph.files.len()).map(parts).collect();
    let folders: BTreeSet<&[String]> = files
        .iter()
        .flat_map(|file| (0..file.len()).map(|depth| &file[..depth]))
        .collect();
    let mut levels = Vec::new();
    for folder in &folders {
        let mut level = Level {
            nodes: Vec::new(),
            arrows: BTreeMap::new(),
        };
        let mut node_of: BTreeMap<&str, usize> = BTreeMap::new();
        for file in files.iter().filter(|file| file.starts_with(folder)) {
            let Some(name) = file.get(folder.len()) else {
                continue;
            };
            let node = *node_of.entry(name).or_insert_with(|| {
                level.nodes.push((name.clone(), false));
                level.nodes.len() - 1
            });
            level.nodes[node].1 |= folders.contains(&file[..=folder.len()]);
        }
        for (index, import) in graph.imports.iter().enumerate() {
            let node = |file: usize| {
                let parts = files[file].strip_prefix(*folder)?;
                node_of.get(parts.first()?.as_str()).copied()
            };
            if let (Some(from), Some(to)) = (node(import.from), node(import.to))
                && from != to
            {
                level.arrows.entry((from, to)).or_default().push(index);
            }
        }
        levels.push(level);
    }
    levels
}

/// Up to four names, for a message.
fn listed(names: &BTreeSet<String>) -> String {
    let shown: Vec<String> = names
        .iter()
        .take(4)
        .map(|name| format!("`{name}`"))
        .collect();
    let more = names.len().saturating_sub(shown.len());
    let more = if more == 0 {
        String::new()
    } else {
        format!(" and {more} more")
    };
    format!("{}{more}", shown.join(", "))
}

/// Strongly connected components (Tarjan 1972) of more than one node.
fn components(nodes: usize, arrows: &BTreeSet<(usize, usize)>) -> Vec<BTreeSet<usize>> {
    let mut search = ComponentSearch {
        arrows,
        index: vec![None; nodes],
        low: vec![0; nodes],
        next: 0,
        stack: Vec::new(),
        found: Vec::new(),
    };
    for node in 0..nodes {
        if search.index[node].is_none() {
            search.visit(node);
        }
    }
    search.found.retain(|component| component.len() > 1);
    search.found
}

struct ComponentSearch<'a> {
    arrows: &'a BTreeSet<(usize, usize)>,
    index: Vec<Option<usize>>,
    low: Vec<usize>,
    next: usize,
    stack: Vec<usize>,
    found: Vec<BTreeSet<usize>>,
}

impl ComponentSearch<'_> {
    fn visit(&mut self, node: usize) {
        let own = self.next;
        self.index[node] = Some(own);
        self.low[node] = own;
        self.next += 1;
        self.stack.push(node);
        for (_, to) in self.arrows.range((node, 0)..=(node, usize::MAX)) {
            match self.index[*to] {
                None => {
                    self.visit(*to);
                    self.low[node] = self.low[node].min(self.low[*to]);
                }
                Some(index) if self.stack.contains(to) => {
                    self.low[node] = self.low[node].min(index);
                }
                Some(_) => {}
            }
        }
        if self.low[node] == own {
            let from = self.stack.iter().position(|other| *other == node);
            let component = self.stack.split_off(from.unwrap_or(0));
            self.found.push(component.into_iter().collect());
        }
    }
}

/// Arrows without which the component has no cycle: few, and of little weight.
/// The greedy order of Eades, Lin and Smyth (1993).
fn closing_arrows(
    component: &BTreeSet<usize>,
    weights: &BTreeMap<(usize, usize), usize>,
) -> BTreeSet<(usize, usize)> {
    let mut left = component.clone();
    let mut head = Vec::new();
    let mut tail = Vec::new();
    while !left.is_empty() {
        let sum = |node: usize, out: bool| -> usize {
            let own = weights.iter().filter(|((from, to), _)| {
                let (end, other) = if out { (from, to) } else { (to, from) };
                *end == node && left.contains(other)
            });
            own.map(|(_, weight)| weight).sum()
        };
        let sink = left.iter().copied().find(|node| sum(*node, true) == 0);
        let source = left.iter().copied().find(|node| sum(*node, false) == 0);
        let next = match (sink, source) {
            (Some(sink), _) => {
                tail.push(sink);
                sink
            }
            (None, Some(source)) => {
                head.push(source);
                source
            }
            (None, None) => {
                let best = left
                    .iter()
                    .copied()
                    .max_by_key(|node| sum(*node, true) as i64 - sum(*node, false) as i64);
                let best = best.unwrap_or_default();
                head.push(best);
                best
            }
        };
        left.remove(&next);
    }
    head.extend(tail.into_iter().rev());
    let place: BTreeMap<usize, usize> = head.iter().enumerate().map(|(at, n)| (*n, at)).collect();
    let arrows = weights.keys().copied();
    arrows
        .filter(|(from, to)| place[from] > place[to])
        .collect()
}

/// The nodes of a shortest path, with both ends.
fn shortest_path(from: usize, to: usize, weights: &BTreeMap<(usize, usize), usize>) -> Vec<usize> {
    let mut before = BTreeMap::from([(from, from)]);
    let mut queue = VecDeque::from([from]);
    while let Some(node) = queue.pop_front() {
        if node == to {
            break;
        }
        for ((_, next), _) in weights.range((node, 0)..=(node, usize::MAX)) {
            if !before.contains_key(next) {
                before.insert(*next, node);
                queue.push_back(*next);
            }
        }
    }
    let mut path = vec![to];
    let mut node = to;
    while node != from {
        let Some(previous) = before.get(&node) else {
            break;
        };
        node = *previous;
        path.push(node);
    }
    path.reverse();
    path
}

#[cfg(test)]
mod tests {
    use super::super::modules::tests::graph_of;
    use super::*;

    /// A crate of files that import the next one in a circle.
    fn circle(files: usize) -> ImportGraph {
        let name = |file: usize| format!("f{}", file % files);
        let declarations: String = (0..files).map(|f| format!("mod {};", name(f))).collect();
        let mut sources = vec![("lib.rs".to_owned(), declarations)];
        for file in 0..files {
            let text = format!("\nuse crate::{}::T;\npub struct T;", name(file + 1));
            sources.push((format!("{}.rs", name(file)), text));
        }
        let sources: Vec<(&str, &str)> = sources
            .iter()
            .map(|(name, text)| (name.as_str(), text.as_str()))
            .collect();
        graph_of(&sources)
    }

    fn messages(graph: &ImportGraph) -> Vec<String> {
        let found = check_graph(graph);
        found.iter().map(Finding::to_string).collect()
    }

    #[test]
    fn a_cycle_of_four_files_is_found_and_one_of_three_is_allowed() {
        assert_eq!(messages(&circle(3)), [""; 0]);
        let found = messages(&circle(4));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0]
                .contains(":2: closes an import cycle of 4 files (at most 3): it uses `T`, and"),
            "{found:?}"
        );
    }

    #[test]
    fn a_cycle_between_two_folders_is_found() {
        let root = ("lib.rs", "mod a;\nmod b;");
        let a = ("a/mod.rs", "mod x;");
        let b = ("b/mod.rs", "pub mod y;");
        let x = ("a/x.rs", "use crate::b::y::Y;");
        let one_way = [root, a, b, x, ("b/y.rs", "pub struct Y;")];
        assert_eq!(messages(&graph_of(&one_way)), [""; 0]);
        let a = ("a/mod.rs", "mod x;\npub struct A;");
        let back = ("b/y.rs", "use crate::a::A;\npub struct Y;");
        let found = messages(&graph_of(&[root, a, b, x, back]));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("cycle between folders"), "{found:?}");
    }

    #[test]
    fn closing_arrows_leave_no_cycle() {
        let graph = circle(9);
        let component = file_components(&graph).remove(0);
        let arrows: BTreeMap<(usize, usize), usize> =
            graph.imports.iter().map(|i| ((i.from, i.to), 1)).collect();
        let closing = closing_arrows(&component, &arrows);
        let left = arrows.keys().filter(|arrow| !closing.contains(arrow));
        let left = left.copied().collect();
        assert_eq!(closing.len(), 1);
        assert_eq!(components(graph.files.len(), &left), []);
    }
}
