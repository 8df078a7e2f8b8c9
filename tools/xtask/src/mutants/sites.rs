//! Places in a source that a mutant changes.
//!
//! They are expressions of the syntax tree, so comments, strings, patterns and the
//! arguments of macros (asserts, log lines) are left alone. Code of tests and code
//! that this build leaves out does not count.

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

/// Words of a `cfg` whose code this build leaves out, or which are of tests.
const CONDITIONS_LEFT_OUT: &[&str] = &["test", "loom", "faults", "not"];

impl Site {
    /// `crates/rtps/src/seq.rs:12: < becomes <=`.
    pub fn title(&self) -> String {
        let Self {
            file,
            line,
            from,
            to,
            ..
        } = self;
        format!("{}:{line}: {from} becomes {to}", file.display())
    }
}

/// All places in a source, in order.
pub fn sites_in(crate_name: &'static str, file: &Path, source: &str) -> Result<Vec<Site>> {
    let tree = syn::parse_file(source).with_context(|| file.display().to_string())?;
    let mut finder = Finder {
        crate_name,
        file,
        source,
        sites: Vec::new(),
    };
    finder.visit_file(&tree);
    finder.sites.sort_by_key(|site| site.range.start);
    Ok(finder.sites)
}

struct Finder<'s> {
    crate_name: &'static str,
    file: &'s Path,
    source: &'s str,
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
        self.sites.push(Site {
            crate_name: self.crate_name,
            file: self.file.to_owned(),
            line: word.span().start().line,
            range,
            mutated,
            from,
            to,
        });
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
        if !left_out && !is_left_out(attributes) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item(&mut self, item: &'ast syn::ImplItem) {
        if let syn::ImplItem::Fn(function) = item
            && function.sig.constness.is_none()
            && !is_left_out(&function.attrs)
        {
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_trait_item(&mut self, item: &'ast syn::TraitItem) {
        if let syn::TraitItem::Fn(function) = item {
            visit::visit_trait_item_fn(self, function);
        }
    }

    fn visit_stmt(&mut self, statement: &'ast syn::Stmt) {
        let attributes: &[syn::Attribute] = match statement {
            syn::Stmt::Local(local) => &local.attrs,
            syn::Stmt::Expr(syn::Expr::Block(block), _) => &block.attrs,
            syn::Stmt::Expr(syn::Expr::If(branch), _) => &branch.attrs,
            _ => &[],
        };
        if !is_left_out(attributes) {
            visit::visit_stmt(self, statement);
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
            self.add(binary, &binary.op, OPERATORS);
        }
        visit::visit_expr_binary(self, binary);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        self.add(call, &call.method, METHODS);
        visit::visit_expr_method_call(self, call);
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
                "a.rs:11: any becomes all",
                "a.rs:5: + becomes -",
                "a.rs:5: < becomes <=",
                "a.rs:5: == becomes !=",
                "a.rs:5: || becomes &&",
                "a.rs:6: true becomes false",
                "a.rs:8: < becomes <=",
                "a.rs:8: == becomes !=",
                "a.rs:8: first becomes last",
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
}
