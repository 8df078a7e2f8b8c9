//! Module tree of one crate and the imports between its files. [`super::cycles`]
//! searches them for cycles.
//!
//! It reads `mod` declarations from the crate's root file on, and every path: in
//! `use` trees, in bodies, in macros. A path is resolved as the compiler does:
//! `crate`, `self` and `super`, then names in scope, through imports, re-exports
//! and globs, to the file that defines the item. Neither a declaration nor a
//! re-export is an import by itself. A module that is named without an item is
//! none either. Tests (`#[cfg(test)]`) do not count.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

use super::tokens::{Kind, Token, tokens};

/// A file and another file of the crate that it imports from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// Index of the file that imports.
    pub from: usize,
    /// Index of the file that defines the names.
    pub to: usize,
    /// The first line that names one of them.
    pub line: usize,
    /// The imported names.
    pub names: BTreeSet<String>,
}

/// The files of a crate and the imports between them.
#[derive(Debug)]
pub struct ImportGraph {
    /// Paths of the files.
    pub files: Vec<PathBuf>,
    /// One entry for each pair of files.
    pub imports: Vec<Import>,
}

/// Reads the crate that begins at `root`. `read` returns the text of a file, or
/// `None` if there is none.
pub fn import_graph(root: &Path, read: &mut dyn FnMut(&Path) -> Option<String>) -> ImportGraph {
    let mut tree = ModuleTree::default();
    let folder = root.parent().unwrap_or(Path::new("")).to_owned();
    if let Some(text) = read(root) {
        tree.add_file(root.to_owned(), folder, None, &text, read);
    }
    let imports = tree.imports();
    ImportGraph {
        files: tree.files,
        imports,
    }
}

/// Words that begin an item.
const ITEM_WORDS: &[&str] = &[
    "async", "const", "enum", "extern", "fn", "impl", "mod", "pub", "static", "struct", "trait",
    "type", "union", "unsafe", "use",
];

/// A path in the source and its line.
#[derive(Debug)]
struct Reference {
    segments: Vec<String>,
    line: usize,
}

/// A name that a `use` brings into scope.
#[derive(Debug)]
struct UsedName {
    segments: Vec<String>,
    line: usize,
    /// `pub use`, in any visibility.
    is_reexport: bool,
}

#[derive(Debug, Default)]
struct Module {
    file: usize,
    parent: Option<usize>,
    /// Folder of its child files.
    folder: PathBuf,
    children: HashMap<String, usize>,
    items: HashSet<String>,
    used: HashMap<String, Vec<UsedName>>,
    globs: Vec<Vec<String>>,
    references: Vec<Reference>,
}

/// What a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Module(usize),
    /// An item that this file defines.
    Item(usize),
}

#[derive(Debug, Default)]
struct ModuleTree {
    files: Vec<PathBuf>,
    modules: Vec<Module>,
}

type Read<'r> = dyn FnMut(&Path) -> Option<String> + 'r;

impl ModuleTree {
    fn add_file(
        &mut self,
        path: PathBuf,
        folder: PathBuf,
        parent: Option<usize>,
        text: &str,
        read: &mut Read<'_>,
    ) -> usize {
        let file = self.files.len();
        self.files.push(path);
        let all = tokens(text);
        self.add_module(file, folder, parent, &all, read)
    }

    fn add_module(
        &mut self,
        file: usize,
        folder: PathBuf,
        parent: Option<usize>,
        body: &[Token<'_>],
        read: &mut Read<'_>,
    ) -> usize {
        let module = self.modules.len();
        self.modules.push(Module {
            file,
            parent,
            folder,
            ..Module::default()
        });
        let mut parser = Parser {
            tree: self,
            read,
            module,
            body,
            at: 0,
            depth: 0,
            has_path_attribute: false,
        };
        while parser.step() {}
        module
    }

    /// The imports between files, one for each pair.
    fn imports(&self) -> Vec<Import> {
        let mut found: BTreeMap<(usize, usize), Import> = BTreeMap::new();
        for (index, module) in self.modules.iter().enumerate() {
            let used = module.used.values().flatten();
            let own = used
                .filter(|name| !name.is_reexport)
                .map(|name| (&name.segments, name.line));
            let paths = module.references.iter().map(|r| (&r.segments, r.line));
            for (segments, line) in own.chain(paths) {
                let Some(Target::Item(to)) = self.resolve(index, segments) else {
                    continue;
                };
                let from = module.file;
                if from == to {
                    continue;
                }
                let import = found.entry((from, to)).or_insert_with(|| Import {
                    from,
                    to,
                    line,
                    names: BTreeSet::new(),
                });
                import.line = import.line.min(line);
                import.names.extend(segments.last().cloned());
            }
        }
        found.into_values().collect()
    }

    fn resolve(&self, module: usize, segments: &[String]) -> Option<Target> {
        self.resolve_within(module, segments, &mut HashSet::new())
    }

    /// `seen` holds the names under resolution: an import may lead back to itself.
    fn resolve_within(
        &self,
        module: usize,
        segments: &[String],
        seen: &mut HashSet<(usize, String)>,
    ) -> Option<Target> {
        let (first, rest) = segments.split_first()?;
        let mut target = match first.as_str() {
            "crate" => Target::Module(0),
            "self" => Target::Module(module),
            "super" => Target::Module(self.modules[module].parent?),
            name => self.look_up(module, name, rest.is_empty(), seen)?,
        };
        for (at, name) in rest.iter().enumerate() {
            let Target::Module(inner) = target else {
                break;
            };
            let is_last = at + 1 == rest.len();
            target = match name.as_str() {
                "super" => Target::Module(self.modules[inner].parent?),
                "self" => target,
                name => self.look_up(inner, name, is_last, seen)?,
            };
        }
        Some(target)
    }

    fn look_up(
        &self,
        module: usize,
        name: &str,
        is_last: bool,
        seen: &mut HashSet<(usize, String)>,
    ) -> Option<Target> {
        if !seen.insert((module, name.to_owned())) {
            return None;
        }
        let found = self.look_up_once(module, name, is_last, seen);
        seen.remove(&(module, name.to_owned()));
        found
    }

    fn look_up_once(
        &self,
        module: usize,
        name: &str,
        is_last: bool,
        seen: &mut HashSet<(usize, String)>,
    ) -> Option<Target> {
        let scope = &self.modules[module];
        let child = scope.children.get(name).map(|child| Target::Module(*child));
        let item = scope
            .items
            .contains(name)
            .then_some(Target::Item(scope.file));
        // A module and a function may share a name.
        let own = if is_last {
            item.or(child)
        } else {
            child.or(item)
        };
        if own.is_some() {
            return own;
        }
        let used = scope.used.get(name).into_iter().flatten();
        for used in used {
            if let Some(target) = self.resolve_within(module, &used.segments, seen) {
                return Some(target);
            }
        }
        scope.globs.iter().find_map(|path| {
            // A glob over an enum names its variants, which are no items.
            let Target::Module(inner) = self.resolve_within(module, path, seen)? else {
                return None;
            };
            self.look_up(inner, name, is_last, seen)
        })
    }
}

/// Reads the tokens of one module.
struct Parser<'p, 'a, 'r> {
    tree: &'p mut ModuleTree,
    read: &'p mut Read<'r>,
    module: usize,
    body: &'p [Token<'a>],
    at: usize,
    /// Braces that are open: 0 is the module itself.
    depth: usize,
    /// After `#[path = "…"]`: the module lies in another crate's folder, and is left
    /// out.
    has_path_attribute: bool,
}

impl<'a> Parser<'_, 'a, '_> {
    fn peek(&self, ahead: usize) -> Option<Token<'a>> {
        self.body.get(self.at + ahead).copied()
    }

    fn scope(&mut self) -> &mut Module {
        &mut self.tree.modules[self.module]
    }

    fn step(&mut self) -> bool {
        let Some(token) = self.peek(0) else {
            return false;
        };
        match token.kind {
            Kind::Punctuation('#') => self.attribute(),
            Kind::Punctuation(character) => {
                match character {
                    '{' => self.depth += 1,
                    '}' => self.depth = self.depth.saturating_sub(1),
                    _ => {}
                }
                self.at += 1;
            }
            Kind::PathSeparator => self.at += 1,
            Kind::Word(word) => self.word(word, token.line),
        }
        true
    }

    /// Skips an attribute, with its item if the item exists in tests only.
    fn attribute(&mut self) {
        let is_inner = self.peek(1).is_some_and(|token| token.is('!'));
        let open = if is_inner { 2 } else { 1 };
        if !self.peek(open).is_some_and(|token| token.is('[')) {
            self.at += 1;
            return;
        }
        let end = closing(self.body, self.at + open);
        let inside = &self.body[self.at..end];
        let is_test = is_test_attribute(inside);
        if inside.get(2).is_some_and(|token| token.is_word("path")) {
            self.has_path_attribute = true;
        }
        self.at = end;
        if !is_test {
            return;
        }
        if is_inner {
            self.at = self.body.len();
            return;
        }
        self.skip_item();
    }

    /// Skips to the end of an item: `;`, or the brace that closes its body. A field
    /// or an arm ends at its comma.
    fn skip_item(&mut self) {
        let first = self.peek(0).and_then(|token| token.word());
        let is_item = first.is_some_and(|word| ITEM_WORDS.contains(&word));
        while let Some(token) = self.peek(0) {
            match token.kind {
                Kind::Punctuation('(' | '[') => self.at = closing(self.body, self.at),
                Kind::Punctuation('{') => {
                    self.at = closing(self.body, self.at);
                    return;
                }
                Kind::Punctuation(';') => {
                    self.at += 1;
                    return;
                }
                Kind::Punctuation(',') if !is_item => return,
                Kind::Punctuation('}') => return,
                _ => self.at += 1,
            }
        }
    }

    fn word(&mut self, word: &'a str, line: usize) {
        match word {
            "use" => self.use_declaration(),
            "mod" if self.depth == 0 => self.module_declaration(),
            "struct" | "enum" | "union" | "trait" | "fn" | "type" | "const" | "static"
                if self.depth == 0 =>
            {
                self.at += 1;
                if self.peek(0).is_some_and(|token| token.is_word("mut")) {
                    self.at += 1;
                }
                let name = self.peek(0).and_then(|token| token.word());
                let is_name = name.is_some_and(|name| !["fn", "unsafe", "extern"].contains(&name));
                if let (Some(name), true) = (name, is_name) {
                    self.scope().items.insert(name.to_owned());
                    self.at += 1;
                }
            }
            "macro_rules" => {
                let name = self.peek(2).and_then(|token| token.word());
                if let Some(name) = name {
                    self.scope().items.insert(name.to_owned());
                }
                self.at += 1;
            }
            _ => self.path(line),
        }
    }

    /// A path in a body or a signature.
    fn path(&mut self, line: usize) {
        let before = self.at.checked_sub(1).map(|at| self.body[at]);
        // A method, a field, or the rest of a path that begins with a type.
        let continues =
            before.is_some_and(|token| token.is('.') || token.kind == Kind::PathSeparator);
        let mut segments = Vec::new();
        while let Some(word) = self.peek(0).and_then(|token| token.word()) {
            segments.push(word.to_owned());
            self.at += 1;
            let next = self.peek(1).and_then(|token| token.word());
            if self.peek(0).map(|token| token.kind) != Some(Kind::PathSeparator) || next.is_none() {
                break;
            }
            self.at += 1;
        }
        if !continues {
            self.scope().references.push(Reference { segments, line });
        }
    }

    fn module_declaration(&mut self) {
        let name = self.peek(1).and_then(|token| token.word());
        let has_path = std::mem::take(&mut self.has_path_attribute);
        let (Some(name), Some(after)) = (name, self.peek(2)) else {
            self.at += 1;
            return;
        };
        let (file, folder) = {
            let scope = self.scope();
            (scope.file, scope.folder.clone())
        };
        let inner_folder = folder.join(name);
        let child = if after.is('{') {
            let end = closing(self.body, self.at + 2);
            let inner = &self.body[self.at + 3..end.saturating_sub(1)];
            self.at = end;
            Some(
                self.tree
                    .add_module(file, inner_folder, Some(self.module), inner, self.read),
            )
        } else {
            self.at += 3;
            let candidates = [
                folder.join(format!("{name}.rs")),
                inner_folder.join("mod.rs"),
            ];
            let found = candidates
                .into_iter()
                .filter(|_| !has_path)
                .find_map(|path| (self.read)(&path).map(|text| (path, text)));
            found.map(|(path, text)| {
                self.tree
                    .add_file(path, inner_folder, Some(self.module), &text, self.read)
            })
        };
        if let Some(child) = child {
            self.scope().children.insert(name.to_owned(), child);
        }
    }

    fn use_declaration(&mut self) {
        // `impl Trait + use<'a>` is no import.
        if self.peek(1).is_some_and(|token| token.is('<')) {
            self.at += 1;
            return;
        }
        let before = self.at.checked_sub(1).map(|at| self.body[at]);
        let is_reexport = before.is_some_and(|token| token.is_word("pub") || token.is(')'));
        self.at += 1;
        self.use_tree(&[], is_reexport);
    }

    /// One tree of a `use` declaration, after `prefix`.
    fn use_tree(&mut self, prefix: &[String], is_reexport: bool) {
        let mut segments = prefix.to_vec();
        let mut line = 0;
        while let Some(token) = self.peek(0) {
            match token.kind {
                Kind::Word("as") => {
                    let name = self.peek(1).and_then(|token| token.word());
                    self.at += 2;
                    self.add_used(name.unwrap_or("_"), segments, line, is_reexport);
                    return;
                }
                Kind::Word(word) => {
                    line = token.line;
                    // `{self}` names the module itself.
                    if word != "self" || segments.is_empty() {
                        segments.push(word.to_owned());
                    }
                    self.at += 1;
                }
                Kind::PathSeparator => self.at += 1,
                Kind::Punctuation('*') => {
                    self.at += 1;
                    self.scope().globs.push(segments);
                    return;
                }
                Kind::Punctuation('{') => {
                    self.at += 1;
                    while self.peek(0).is_some_and(|token| !token.is('}')) {
                        self.use_tree(&segments, is_reexport);
                        if self.peek(0).is_some_and(|token| token.is(',')) {
                            self.at += 1;
                        }
                    }
                    self.at += 1;
                    return;
                }
                Kind::Punctuation(_) => break,
            }
        }
        if let Some(name) = segments.last().cloned() {
            self.add_used(&name, segments, line, is_reexport);
        }
    }

    fn add_used(&mut self, name: &str, segments: Vec<String>, line: usize, is_reexport: bool) {
        let used = UsedName {
            segments,
            line,
            is_reexport,
        };
        let names = &mut self.scope().used;
        names.entry(name.to_owned()).or_default().push(used);
    }
}

/// Whether an attribute restricts its item to tests.
fn is_test_attribute(attribute: &[Token<'_>]) -> bool {
    let mut words = attribute.iter().filter_map(Token::word);
    words.next() == Some("cfg")
        && words.clone().any(|word| word == "test")
        && !words.any(|word| word == "not" || word == "any")
}

/// Index after the bracket that closes the one at `open`.
fn closing(body: &[Token<'_>], open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, token) in body.iter().enumerate().skip(open) {
        match token.kind {
            Kind::Punctuation('(' | '[' | '{') => depth += 1,
            Kind::Punctuation(')' | ']' | '}') => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
    }
    body.len()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The graph of a crate of these files; the first is the root.
    pub fn graph_of(files: &[(&str, &str)]) -> ImportGraph {
        import_graph(Path::new(files[0].0), &mut |path| {
            let found = files.iter().find(|(name, _)| Path::new(name) == path);
            found.map(|(_, text)| (*text).to_owned())
        })
    }

    /// `a.rs>b.rs:line` for each import.
    fn imports(files: &[(&str, &str)]) -> Vec<String> {
        let graph = graph_of(files);
        let name = |file: usize| graph.files[file].display().to_string();
        let all = graph.imports.iter();
        all.map(|i| format!("{}>{}:{}", name(i.from), name(i.to), i.line))
            .collect()
    }

    #[test]
    fn an_import_leads_to_the_file_that_defines_the_name() {
        let found = imports(&[
            ("lib.rs", "mod a;\nmod b;\npub use b::B;"),
            ("a.rs", "use crate::b::{deep::D, B};"),
            ("b/mod.rs", "mod deep;\nmod own;\npub use own::B;"),
            ("b/deep.rs", "pub struct D;"),
            ("b/own.rs", "pub struct B;"),
        ]);
        assert_eq!(found, ["a.rs>b/deep.rs:1", "a.rs>b/own.rs:1"]);
    }

    #[test]
    fn a_reexport_counts_only_where_the_name_is_used() {
        let own = ("b/own.rs", "use super::Base;\npub struct B;");
        let reexport = "mod own;\npub use own::B;\npub struct Base;";
        let found = imports(&[("lib.rs", "mod b;"), ("b/mod.rs", reexport), own]);
        assert_eq!(found, ["b/own.rs>b/mod.rs:1"]);
        let used = format!("{reexport}\nfn f() -> B {{}}");
        let found = imports(&[("lib.rs", "mod b;"), ("b/mod.rs", &used), own]);
        assert_eq!(found, ["b/mod.rs>b/own.rs:4", "b/own.rs>b/mod.rs:1"]);
    }

    #[test]
    fn paths_in_bodies_macros_and_through_globs_and_aliases_count() {
        let a = "use crate::b;\nuse crate::c::*;\nuse super::d as e;\n\
                 fn f() {\n b::g();\n vec![C];\n e::inner::h(x.i, Self::J)\n}";
        let found = imports(&[
            ("lib.rs", "mod a;\nmod b;\nmod c;\nmod d;"),
            ("a.rs", a),
            ("b.rs", "pub fn g() {}\npub struct J;"),
            ("c.rs", "pub struct C;\npub fn i() {}"),
            ("d.rs", "pub mod inner { pub fn h() {} }"),
        ]);
        assert_eq!(found, ["a.rs>b.rs:5", "a.rs>c.rs:6", "a.rs>d.rs:7"]);
    }

    #[test]
    fn tests_comments_strings_and_other_crates_do_not_count() {
        let a = "//! See crate::b::B.\n#[cfg(test)]\nmod tests { use crate::b::B; }\n\
                 #[cfg(test)]\nuse crate::b::B;\nconst X: &str = \"crate::b::B\";\n\
                 use other::b::B;\n#[cfg(not(test))]\nuse crate::c::C;";
        let found = imports(&[
            ("lib.rs", "mod a;\nmod b;\nmod c;\n#[cfg(test)]\nmod tests;"),
            ("a.rs", a),
            ("b.rs", "pub struct B;"),
            ("c.rs", "pub struct C;"),
            ("tests.rs", "use crate::a::X;"),
        ]);
        assert_eq!(found, ["a.rs>c.rs:9"]);
    }
}
