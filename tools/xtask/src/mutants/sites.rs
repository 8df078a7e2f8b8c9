//! Places in a source that a mutant changes.
//!
//! They are expressions of the syntax tree, so comments, strings, patterns and the
//! arguments of macros (asserts, log lines) are left alone. Code of tests and code
//! that this build leaves out does not count.
//!
//! A change that no test can notice is not made:
//! - the capacity that a collection of the standard library reserves;
//! - an implementation of `Debug`;
//! - the condition of a block that only writes log lines for developers (debug, trace);
//! - a comparison with the present instant by its neighbour, `now < at` by `now <= at`:
//!   they differ in one nanosecond. Its opposite, `now >= at`, takes the place.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// The crates that are mutated: protocol, runtime, shared memory, security.
pub const CRATES: &[&str] = &["rtps", "runtime", "shm", "security"];

/// One change of one source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// The crate, without `pteros-`.
    pub crate_name: &'static str,
    /// Path below the root.
    pub file: PathBuf,
    /// From 1.
    pub line: usize,
    /// The function that contains the expression; empty outside of functions.
    pub function: String,
    /// The place in words that stay the same when other parts of the file change: the
    /// order of a sample depends on it.
    pub identity: String,
    /// Bytes of the expression.
    pub range: Range<usize>,
    /// The expression with the change.
    pub mutated: String,
    from: &'static str,
    to: &'static str,
}

/// Binary operators and what they become.
const OPERATORS: &[(&str, &str)] = &[
    ("==", "!="),
    ("!=", "=="),
    ("<", "<="),
    ("<=", "<"),
    (">", ">="),
    (">=", ">"),
    ("&&", "||"),
    ("||", "&&"),
    ("+", "-"),
    ("-", "+"),
    ("+=", "-="),
    ("-=", "+="),
];

/// Comparisons with the present instant and what they become.
const CLOCK_COMPARISONS: &[(&str, &str)] = &[("<", ">="), ("<=", ">"), (">", "<="), (">=", "<")];

/// Methods and what they become.
const METHODS: &[(&str, &str)] = &[
    ("min", "max"),
    ("max", "min"),
    ("saturating_add", "saturating_sub"),
    ("saturating_sub", "saturating_add"),
    ("is_some", "is_none"),
    ("is_none", "is_some"),
    ("is_some_and", "is_none_or"),
    ("is_none_or", "is_some_and"),
    ("any", "all"),
    ("all", "any"),
    ("first", "last"),
];

/// Collections whose capacity is a matter of speed alone.
const COLLECTIONS: &[&str] = &[
    "Vec",
    "VecDeque",
    "String",
    "BytesMut",
    "HashMap",
    "HashSet",
    "BinaryHeap",
];

/// Functions of [`COLLECTIONS`] that reserve or return memory.
const CAPACITY_METHODS: &[&str] = &["reserve", "reserve_exact", "shrink_to", "with_capacity"];

/// Macros that write log lines for developers.
const DEVELOPER_LOGS: &[&str] = &["debug", "trace"];

/// Words of a `cfg` whose code this build leaves out, or which are of tests.
const CONDITIONS_LEFT_OUT: &[&str] = &["test", "loom", "not"];

impl Site {
    /// `crates/rtps/src/seq.rs:12: < becomes <= in next`.
    pub fn title(&self) -> String {
        let (file, line) = (self.file.display(), self.line);
        let (from, to) = (self.from, self.to);
        match self.function.as_str() {
            "" => format!("{file}:{line}: {from} becomes {to}"),
            function => format!("{file}:{line}: {from} becomes {to} in {function}"),
        }
    }
}

/// All places in a source, in order.
pub fn sites_in(crate_name: &'static str, file: &Path, source: &str) -> Result<Vec<Site>> {
    let tree = syn::parse_file(source).with_context(|| file.display().to_string())?;
    let mut finder = Finder {
        crate_name,
        file,
        source,
        function: String::new(),
        sites: Vec::new(),
    };
    finder.visit_file(&tree);
    finder.sites.sort_by_key(|site| site.range.start);
    number_alike(&mut finder.sites);
    Ok(finder.sites)
}

/// Completes identities: two places of a function may have the same words.
fn number_alike(sites: &mut [Site]) {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for site in sites {
        let count = seen.entry(site.identity.clone()).or_default();
        *count += 1;
        site.identity += &format!(" #{count}");
    }
}

struct Finder<'s> {
    crate_name: &'static str,
    file: &'s Path,
    source: &'s str,
    function: String,
    sites: Vec<Site>,
}

impl Finder<'_> {
    /// Adds a place: `word`, at these bytes of the expression, becomes another.
    fn add(&mut self, whole: &dyn Spanned, word: &dyn Spanned, changes: &'static [(&str, &str)]) {
        let range = whole.span().byte_range();
        let at = word.span().byte_range();
        let text = |range| self.source.get(range).unwrap_or_default();
        let word_text = text(at.clone());
        let Some((from, to)) = changes.iter().find(|(from, _)| *from == word_text) else {
            return;
        };
        let (before, after) = (text(range.start..at.start), text(at.end..range.end));
        // An `||` that becomes `&&` binds more tightly.
        let mutated = match word_text {
            "&&" | "||" => format!("({before}) {to} ({after})"),
            _ => format!("{before}{to}{after}"),
        };
        let words: Vec<&str> = text(range.clone()).split_whitespace().collect();
        let (file, function) = (self.file.display(), &self.function);
        self.sites.push(Site {
            crate_name: self.crate_name,
            file: self.file.to_owned(),
            line: word.span().start().line,
            function: function.clone(),
            identity: format!("{file} {function} {from} {to} {}", words.join(" ")),
            range,
            mutated,
            from,
            to,
        });
    }

    /// Visits a function, whose name its places have.
    fn within(&mut self, name: &syn::Ident, visit: impl FnOnce(&mut Self)) {
        let outer = std::mem::replace(&mut self.function, name.to_string());
        visit(self);
        self.function = outer;
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        use syn::Item;
        let (attributes, left_out) = match item {
            Item::Fn(item) => (&item.attrs, item.sig.constness.is_some()),
            Item::Mod(item) => (&item.attrs, false),
            Item::Impl(item) => (&item.attrs, is_debug(item)),
            Item::Trait(item) => (&item.attrs, false),
            // Types, constants and macros.
            _ => return,
        };
        if left_out || is_left_out(attributes) {
            return;
        }
        match item {
            Item::Fn(function) => {
                self.within(&function.sig.ident, |finder| {
                    visit::visit_item(finder, item)
                });
            }
            _ => visit::visit_item(self, item),
        }
    }

    fn visit_impl_item(&mut self, item: &'ast syn::ImplItem) {
        if let syn::ImplItem::Fn(function) = item
            && function.sig.constness.is_none()
            && !is_left_out(&function.attrs)
        {
            self.within(&function.sig.ident, |finder| {
                visit::visit_impl_item_fn(finder, function);
            });
        }
    }

    fn visit_trait_item(&mut self, item: &'ast syn::TraitItem) {
        if let syn::TraitItem::Fn(function) = item {
            self.within(&function.sig.ident, |finder| {
                visit::visit_trait_item_fn(finder, function);
            });
        }
    }

    fn visit_stmt(&mut self, statement: &'ast syn::Stmt) {
        let attributes: &[syn::Attribute] = match statement {
            syn::Stmt::Local(local) => &local.attrs,
            syn::Stmt::Expr(syn::Expr::Block(block), _) => &block.attrs,
            syn::Stmt::Expr(syn::Expr::If(branch), _) => &branch.attrs,
            _ => &[],
        };
        match statement {
            // Calls of this name that decide something have a result.
            syn::Stmt::Expr(syn::Expr::MethodCall(call), Some(_))
                if CAPACITY_METHODS.iter().any(|name| call.method == name) => {}
            _ if !is_left_out(attributes) => visit::visit_stmt(self, statement),
            _ => {}
        }
    }

    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}
    fn visit_macro(&mut self, _: &'ast syn::Macro) {}
    fn visit_pat(&mut self, _: &'ast syn::Pat) {}
    fn visit_type(&mut self, _: &'ast syn::Type) {}
    fn visit_generic_argument(&mut self, _: &'ast syn::GenericArgument) {}
    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}

    fn visit_expr_repeat(&mut self, repeat: &'ast syn::ExprRepeat) {
        self.visit_expr(&repeat.expr);
    }

    fn visit_expr_binary(&mut self, binary: &'ast syn::ExprBinary) {
        if !has_let(&binary.left) && !has_let(&binary.right) {
            let compares_with_now = is_present(&binary.left) || is_present(&binary.right);
            let op = self.source.get(binary.op.span().byte_range());
            let is_order = CLOCK_COMPARISONS.iter().any(|(from, _)| Some(*from) == op);
            if compares_with_now && is_order {
                self.add(binary, &binary.op, CLOCK_COMPARISONS);
            } else {
                self.add(binary, &binary.op, OPERATORS);
            }
        }
        visit::visit_expr_binary(self, binary);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        self.add(call, &call.method, METHODS);
        visit::visit_expr_method_call(self, call);
    }

    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        if !reserves_memory(&call.func) {
            visit::visit_expr_call(self, call);
        }
    }

    fn visit_expr_if(&mut self, branch: &'ast syn::ExprIf) {
        if branch.else_branch.is_some() || !only_logs(&branch.then_branch) {
            visit::visit_expr_if(self, branch);
        }
    }

    fn visit_expr_lit(&mut self, literal: &'ast syn::ExprLit) {
        if literal.attrs.is_empty() {
            self.add(literal, literal, &[("true", "false"), ("false", "true")]);
        }
    }

    fn visit_expr_break(&mut self, end: &'ast syn::ExprBreak) {
        if end.expr.is_none() {
            self.add(end, &end.break_token, &[("break", "continue")]);
        }
        visit::visit_expr_break(self, end);
    }
}

/// `if let … && …`: its parts are no expressions of their own.
fn has_let(expression: &syn::Expr) -> bool {
    match expression {
        syn::Expr::Let(_) => true,
        syn::Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        _ => false,
    }
}

/// The present instant, or a time since or until it.
fn is_present(expression: &syn::Expr) -> bool {
    use syn::Expr;
    match expression {
        Expr::Path(path) => path.path.is_ident("now"),
        Expr::Field(field) => matches!(&field.member, syn::Member::Named(name) if name == "now"),
        Expr::MethodCall(call) => call.method == "now" || call.method == "elapsed",
        Expr::Paren(inner) => is_present(&inner.expr),
        Expr::Unary(inner) => is_present(&inner.expr),
        Expr::Binary(sum) => is_present(&sum.left) || is_present(&sum.right),
        _ => false,
    }
}

/// `Vec::with_capacity` and the like.
fn reserves_memory(function: &syn::Expr) -> bool {
    let syn::Expr::Path(path) = function else {
        return false;
    };
    let mut names = path
        .path
        .segments
        .iter()
        .rev()
        .map(|segment| &segment.ident);
    let is_named = |name: Option<&syn::Ident>, list: &[&str]| {
        name.is_some_and(|name| list.iter().any(|listed| name == listed))
    };
    is_named(names.next(), CAPACITY_METHODS) && is_named(names.next(), COLLECTIONS)
}

/// Whether a block writes log lines for developers and does nothing else.
fn only_logs(block: &syn::Block) -> bool {
    let is_log = |statement: &syn::Stmt| {
        let syn::Stmt::Macro(call) = statement else {
            return false;
        };
        let name = call.mac.path.segments.last().map(|segment| &segment.ident);
        name.is_some_and(|name| DEVELOPER_LOGS.iter().any(|log| name == log))
    };
    !block.stmts.is_empty() && block.stmts.iter().all(is_log)
}

fn is_debug(item: &syn::ItemImpl) -> bool {
    let name = item
        .trait_
        .as_ref()
        .and_then(|(_, path, _)| path.segments.last());
    name.is_some_and(|name| name.ident == "Debug")
}

fn is_left_out(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let syn::Meta::List(list) = &attribute.meta else {
            return attribute.path().is_ident("test");
        };
        let condition = list.tokens.to_string();
        let mut words = condition.split(|c: char| !c.is_alphanumeric());
        list.path.is_ident("cfg") && words.any(|word| CONDITIONS_LEFT_OUT.contains(&word))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "\
// a == b, true
const C: bool = 1 < 2;
fn f<T>(a: u32, b: Vec<T>) -> bool {
    let größe = \"x == true\";
    if größe.len() < 3 || a + 1 == 2 {
        return true;
    }
    if let Some(x) = b.first() && a < 7 && debug(x == 1) {
        assert!(a == 1);
    }
    b.iter().any(|_| matches!(a, 1 if true))
}
#[cfg(not(loom))]
fn g() -> bool { true }
#[cfg(test)]
mod tests { fn h() -> bool { true } }
";

    fn sites() -> Vec<Site> {
        sites_in("shm", Path::new("a.rs"), SOURCE).unwrap()
    }

    #[test]
    fn expressions_outside_of_macros_constants_and_tests_are_found() {
        let mut titles: Vec<String> = sites().iter().map(Site::title).collect();
        titles.sort();
        assert_eq!(
            titles,
            [
                "a.rs:11: any becomes all in f",
                "a.rs:5: + becomes - in f",
                "a.rs:5: < becomes <= in f",
                "a.rs:5: == becomes != in f",
                "a.rs:5: || becomes && in f",
                "a.rs:6: true becomes false in f",
                "a.rs:8: < becomes <= in f",
                "a.rs:8: == becomes != in f",
                "a.rs:8: first becomes last in f",
            ]
        );
    }

    #[test]
    fn the_changed_expression_keeps_its_grouping() {
        let sites = sites();
        let mutated = |word: &str| {
            let site = sites.iter().find(|site| site.from == word).unwrap();
            (&SOURCE[site.range.clone()], site.mutated.clone())
        };
        let (whole, changed) = mutated("||");
        assert_eq!(whole, "größe.len() < 3 || a + 1 == 2");
        assert_eq!(changed, "(größe.len() < 3 ) && ( a + 1 == 2)");
        assert_eq!(mutated("first").1, "b.last()");
    }

    fn titles(body: &str) -> Vec<String> {
        let sites = sites_in("shm", Path::new("a.rs"), &format!("fn f() {{ {body} }}")).unwrap();
        let titles = sites.iter().map(Site::title);
        titles
            .map(|title| title.replace("a.rs:1: ", "").replace(" in f", ""))
            .collect()
    }

    #[test]
    fn changes_that_no_test_can_notice_are_not_made() {
        for unnoticeable in [
            "let v = Vec::with_capacity(a + 1);",
            "v.reserve(a.max(2));",
            "if a > 1 { tracing::debug!(a); trace!(b); }",
        ] {
            assert!(titles(unnoticeable).is_empty(), "{unnoticeable}");
        }
        for (noticeable, title) in [
            ("let v = Ring::with_capacity(a + 1);", "+ becomes -"),
            ("budget.reserve(a + 1)?;", "+ becomes -"),
            ("if a > 1 { warn!(a); }", "> becomes >="),
            ("if a > 1 { debug!(a); return; }", "> becomes >="),
            ("if a > 1 { debug!(a) } else { g() }", "> becomes >="),
        ] {
            assert_eq!(titles(noticeable), [title], "{noticeable}");
        }
    }

    #[test]
    fn a_comparison_with_the_present_becomes_its_opposite() {
        assert_eq!(titles("now < at;"), ["< becomes >="]);
        assert_eq!(titles("at <= self.now;"), ["<= becomes >"]);
        assert_eq!(titles("clock.now() == at;"), ["== becomes !="]);
        assert_eq!(titles("since.elapsed() >= limit;"), [">= becomes <"]);
        assert_eq!(
            titles("now - since > limit;"),
            ["> becomes <=", "- becomes +"]
        );
    }

    #[test]
    fn an_identity_survives_changes_elsewhere() {
        let identities = |source: &str| -> Vec<String> {
            let sites = sites_in("shm", Path::new("a.rs"), source).unwrap();
            sites.into_iter().map(|site| site.identity).collect()
        };
        let before = identities("fn f() { a < b; a < b; }");
        let after = identities("// A line.\nfn g() { c == d; }\nfn f() {\n a  < b; a < b; }");
        assert_eq!(before, after[1..]);
        assert_ne!(before[0], before[1]);
    }
}
