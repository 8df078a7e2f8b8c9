//! Parser of expressions: precedence climbing over Python's operators.
//!
//! A construct beyond the basics is no error here: it is a fault that only Python
//! can mend.

use std::sync::Arc;

use super::fault::{Fault, Outcome};
use super::limits::NESTING_MAX;
use super::token::{Token, TokenKind, tokens};
use super::tree::{BinaryOperator, Comparator, Constant, Node, NodeKind, OPERATORS};

/// Binding strengths, weakest first; [`OPERATORS`] has the others.
const OR: u8 = 1;
const AND: u8 = 2;
const NOT: u8 = 3;
const COMPARISON: u8 = 4;
const BIT_OR: u8 = 5;
const UNARY: u8 = 11;

/// Words that are no names.
const KEYWORDS: &[&str] = &[
    "and", "or", "not", "if", "else", "for", "in", "is", "lambda", "await", "async", "yield",
    "assert", "class", "def", "del", "from", "global", "import", "nonlocal", "pass", "raise",
    "return", "try", "while", "with", "except", "finally", "break", "continue", "as", "elif",
];

const ASSIGNS: &str = "an expression assigns nothing; write == to compare";

/// Parses a whole expression.
pub(super) fn parse(letters: &[char]) -> Outcome<Node> {
    let mut parser = Parser {
        tokens: tokens(letters)?,
        index: 0,
        depth: 0,
    };
    let node = parser.several()?;
    if *parser.peek() == TokenKind::End {
        return Ok(node);
    }
    Err(parser.unexpected(|found| format!("unexpected {found} after the end of the expression")))
}

struct Parser {
    tokens: Vec<Token>,
    index: usize,
    depth: u32,
}

impl Parser {
    fn token(&self) -> &Token {
        // The last token is `End`, and it is never passed.
        &self.tokens[self.index.min(self.tokens.len() - 1)]
    }

    fn peek(&self) -> &TokenKind {
        &self.token().kind
    }

    fn at(&self) -> u32 {
        self.token().at
    }

    fn is_sign(&self, sign: &str) -> bool {
        matches!(self.peek(), TokenKind::Sign(found) if *found == sign)
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), TokenKind::Name(found) if **found == *word)
    }

    fn take_sign(&mut self, sign: &str) -> bool {
        let found = self.is_sign(sign);
        self.index += usize::from(found);
        found
    }

    fn take_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        self.index += usize::from(found);
        found
    }

    fn expect(&mut self, sign: &str) -> Outcome<()> {
        match self.take_sign(sign) {
            true => Ok(()),
            false => Err(self.unexpected(|found| format!("{sign} is missing before {found}"))),
        }
    }

    /// The fault of a token that the basics do not have here.
    fn unexpected(&self, message: impl Fn(String) -> String) -> Fault {
        let python = match self.peek() {
            TokenKind::Sign("=") if self.depth == 0 => return Fault::at(self.at(), ASSIGNS),
            TokenKind::Sign("=") => "an argument with a name",
            TokenKind::Sign(":=") => ":=",
            TokenKind::Sign("@") => "the operator @",
            TokenKind::Sign("*" | "**") => "a spread (*)",
            TokenKind::Sign("{" | ":" | "}") => "a dictionary or set",
            TokenKind::Sign("...") => "the value ...",
            TokenKind::Name(word) if matches!(&**word, "for" | "async") => "a comprehension",
            TokenKind::Name(word) if **word == *"lambda" => "a lambda",
            found => return Fault::at(self.at(), message(shown(found))),
        };
        Fault::needs_python(python).or_at(self.at())
    }

    fn node(&self, at: u32, kind: NodeKind) -> Outcome<Node> {
        let node = Node::new(at, kind);
        if node.depth > NESTING_MAX {
            return Err(too_deep(at));
        }
        Ok(node)
    }

    /// Parses something one level deeper.
    fn deeper(&mut self, parse: impl FnOnce(&mut Self) -> Outcome<Node>) -> Outcome<Node> {
        self.depth += 1;
        if self.depth > NESTING_MAX {
            return Err(too_deep(self.at()));
        }
        let node = parse(self)?;
        self.depth -= 1;
        Ok(node)
    }

    /// `a, b` without brackets is a tuple.
    fn several(&mut self) -> Outcome<Node> {
        let at = self.at();
        let first = self.expression()?;
        if !self.is_sign(",") {
            return Ok(first);
        }
        let nodes = self.more(vec![first])?;
        self.node(at, NodeKind::Tuple(nodes))
    }

    /// The expressions after the first one, up to a token that starts none.
    fn more(&mut self, mut nodes: Vec<Node>) -> Outcome<Vec<Node>> {
        while self.take_sign(",") {
            if matches!(self.peek(), TokenKind::End | TokenKind::Sign(")" | "]")) {
                break;
            }
            nodes.push(self.deeper(Self::expression)?);
        }
        Ok(nodes)
    }

    /// `a`, or `a if b else c`.
    fn expression(&mut self) -> Outcome<Node> {
        let then = self.binary(OR)?;
        let at = self.at();
        if !self.take_word("if") {
            return Ok(then);
        }
        let condition = self.binary(OR)?;
        if !self.take_word("else") {
            let message =
                |found| format!("else is missing before {found}; write A if CONDITION else B");
            return Err(self.unexpected(message));
        }
        let otherwise = self.deeper(Self::expression)?;
        self.node(
            at,
            NodeKind::Conditional(Box::new([condition, then, otherwise])),
        )
    }

    /// Operators that bind at least as strongly as `least`.
    fn binary(&mut self, least: u8) -> Outcome<Node> {
        let mut left = self.prefixed(least)?;
        loop {
            let at = self.at();
            if least <= COMPARISON && self.comparator_length() > 0 {
                left = self.comparison(left)?;
            } else if least <= AND && self.is_word("and") {
                left = self.chain(left, "and", NOT, NodeKind::And)?;
            } else if least <= OR && self.is_word("or") {
                left = self.chain(left, "or", AND, NodeKind::Or)?;
            } else if let Some((operator, strength)) = self.operator(least) {
                self.index += 1;
                // `2 ** -1`, `2 ** 3 ** 2`: the right operand may be a signed power.
                let strength = match operator {
                    BinaryOperator::Power => UNARY,
                    _ => strength + 1,
                };
                let right = self.deeper(|parser| parser.binary(strength))?;
                left = self.node(at, NodeKind::Binary(operator, Box::new([left, right])))?;
            } else {
                return Ok(left);
            }
        }
    }

    fn chain(
        &mut self,
        first: Node,
        word: &str,
        strength: u8,
        kind: fn(Vec<Node>) -> NodeKind,
    ) -> Outcome<Node> {
        let at = self.at();
        let mut nodes = vec![first];
        while self.take_word(word) {
            nodes.push(self.binary(strength)?);
        }
        self.node(at, kind(nodes))
    }

    /// Number of tokens of the comparison's sign that is next; 0 if none is.
    fn comparator_length(&self) -> usize {
        let word_after = |word: &str| {
            let next = self.tokens.get(self.index + 1).map(|token| &token.kind);
            matches!(next, Some(TokenKind::Name(found)) if **found == *word)
        };
        match self.peek() {
            TokenKind::Sign("==" | "!=" | "<" | "<=" | ">" | ">=") => 1,
            TokenKind::Name(word) => match &**word {
                "in" => 1,
                "is" => 1 + usize::from(word_after("not")),
                "not" if word_after("in") => 2,
                _ => 0,
            },
            _ => 0,
        }
    }

    fn comparison(&mut self, first: Node) -> Outcome<Node> {
        let at = self.at();
        let mut others = Vec::new();
        loop {
            let length = self.comparator_length();
            let comparator = match self.peek() {
                _ if length == 0 => break,
                TokenKind::Sign("==") => Comparator::Equal,
                TokenKind::Sign("!=") => Comparator::NotEqual,
                TokenKind::Sign("<") => Comparator::Less,
                TokenKind::Sign("<=") => Comparator::LessEqual,
                TokenKind::Sign(">") => Comparator::Greater,
                TokenKind::Sign(_) => Comparator::GreaterEqual,
                _ if self.is_word("in") => Comparator::In,
                _ if self.is_word("not") => Comparator::NotIn,
                _ if length == 2 => Comparator::IsNot,
                _ => Comparator::Is,
            };
            self.index += length;
            others.push((comparator, self.binary(BIT_OR)?));
        }
        self.node(at, NodeKind::Comparison(Box::new(first), others))
    }

    fn operator(&self, least: u8) -> Option<(BinaryOperator, u8)> {
        let mut known = OPERATORS.iter();
        let found = known.find(|known| self.is_sign(known.1) && known.2 >= least)?;
        Some((found.0, found.2))
    }

    fn prefixed(&mut self, least: u8) -> Outcome<Node> {
        let at = self.at();
        if least <= NOT && self.take_word("not") {
            let operand = self.deeper(|parser| parser.binary(NOT))?;
            return self.node(at, NodeKind::Not(Box::new(operand)));
        }
        let sign = match self.peek() {
            TokenKind::Sign("-") => '-',
            TokenKind::Sign("+") => '+',
            TokenKind::Sign("~") => '~',
            _ => return self.postfixed(),
        };
        self.index += 1;
        let operand = self.deeper(|parser| parser.binary(UNARY))?;
        self.node(at, NodeKind::Unary(sign, Box::new(operand)))
    }

    fn postfixed(&mut self) -> Outcome<Node> {
        let mut node = self.atom()?;
        loop {
            let at = self.at();
            let kind = if self.take_sign("(") {
                let arguments = match self.is_sign(")") {
                    true => Vec::new(),
                    false => {
                        let first = self.deeper(Self::expression)?;
                        // `f(a=1)` is no assignment.
                        self.depth += 1;
                        let all = self.more(vec![first])?;
                        if self.is_sign("=") || !self.is_sign(")") {
                            self.expect(")")?;
                        }
                        self.depth -= 1;
                        all
                    }
                };
                self.expect(")")?;
                NodeKind::Call(Box::new(node), arguments)
            } else if self.take_sign("[") {
                let kind = self.index(node)?;
                self.expect("]")?;
                kind
            } else if self.take_sign(".") {
                match self.peek().clone() {
                    TokenKind::Name(name) if !KEYWORDS.contains(&&*name) => {
                        self.index += 1;
                        NodeKind::Attribute(Box::new(node), name)
                    }
                    _ => {
                        let message =
                            |found| format!("an attribute's name is missing before {found}");
                        return Err(self.unexpected(message));
                    }
                }
            } else {
                return Ok(node);
            };
            node = self.node(at, kind)?;
        }
    }

    /// An index or a slice, up to the closing bracket.
    fn index(&mut self, of: Node) -> Outcome<NodeKind> {
        if self.is_sign("]") {
            return Err(Fault::at(self.at(), "an index is missing between [ and ]"));
        }
        let mut parts = Vec::new();
        if !self.is_sign(":") {
            let first = self.deeper(Self::several)?;
            if !self.is_sign(":") {
                return Ok(NodeKind::Item(Box::new([of, first])));
            }
            parts.push(Some(first));
        } else {
            parts.push(None);
        }
        while parts.len() < 3 && self.take_sign(":") {
            let is_empty = self.is_sign(":") || self.is_sign("]");
            parts.push(match is_empty {
                true => None,
                false => Some(self.deeper(Self::expression)?),
            });
        }
        parts.resize_with(3, || None);
        Ok(NodeKind::Slice(Box::new(of), parts))
    }

    fn atom(&mut self) -> Outcome<Node> {
        let Token { kind, at } = self.token().clone();
        let constant = match kind {
            TokenKind::Integer(value) => Constant::Integer(value),
            TokenKind::Double(value) => Constant::Double(value),
            TokenKind::Text(text) => return self.texts(at, text),
            TokenKind::Bytes(bytes) => Constant::Bytes(bytes.into()),
            TokenKind::Sign("(") => return self.bracketed(at, ")", NodeKind::Tuple),
            TokenKind::Sign("[") => return self.bracketed(at, "]", NodeKind::List),
            TokenKind::Name(word) => match &*word {
                "True" => Constant::Bool(true),
                "False" => Constant::Bool(false),
                "None" => Constant::None,
                _ if KEYWORDS.contains(&&*word) => return Err(self.missing_value()),
                _ => {
                    self.index += 1;
                    return self.node(at, NodeKind::Name(word));
                }
            },
            TokenKind::End => return Err(Fault::at(at, "a value is missing at the end")),
            TokenKind::Sign(_) => return Err(self.missing_value()),
        };
        self.index += 1;
        self.node(at, NodeKind::Constant(constant))
    }

    fn missing_value(&self) -> Fault {
        match self.peek() {
            TokenKind::Sign(sign @ ("}" | ":")) => {
                Fault::at(self.at(), format!("a value is missing before {sign}"))
            }
            _ => self.unexpected(|found| format!("a value is missing before {found}")),
        }
    }

    /// Adjacent texts, which are one.
    fn texts(&mut self, at: u32, mut whole: String) -> Outcome<Node> {
        self.index += 1;
        while let TokenKind::Text(text) = self.peek() {
            whole += text;
            self.index += 1;
        }
        self.node(at, NodeKind::Constant(Constant::Text(Arc::from(whole))))
    }

    /// A list, a tuple, or an expression in brackets.
    fn bracketed(&mut self, at: u32, end: &str, kind: fn(Vec<Node>) -> NodeKind) -> Outcome<Node> {
        self.index += 1;
        if self.take_sign(end) {
            return self.node(at, kind(Vec::new()));
        }
        let first = self.deeper(Self::expression)?;
        let is_single = end == ")" && !self.is_sign(",");
        self.depth += 1;
        let mut nodes = self.more(vec![first])?;
        let closed = self.expect(end);
        self.depth -= 1;
        closed?;
        match nodes.pop() {
            Some(node) if is_single => Ok(node),
            last => {
                nodes.extend(last);
                self.node(at, kind(nodes))
            }
        }
    }
}

fn too_deep(at: u32) -> Fault {
    Fault::at(
        at,
        format!("the expression is nested more than {NESTING_MAX} deep; split it"),
    )
}

/// A token for an error text.
fn shown(kind: &TokenKind) -> String {
    match kind {
        TokenKind::Integer(value) => value.to_string(),
        TokenKind::Double(value) => value.to_string(),
        TokenKind::Text(text) => format!("the text {text:?}"),
        TokenKind::Bytes(_) => "bytes".into(),
        TokenKind::Name(name) => format!("the word {name}"),
        TokenKind::Sign(sign) => (*sign).into(),
        TokenKind::End => "the end".into(),
    }
}
