//! Parser of expressions: precedence climbing over Python's operators.

use std::sync::Arc;

use super::fault::{Fault, Outcome};
use super::formatted_text;
use super::limits::NESTING_MAX;
use super::token::{Token, TokenKind, tokens};
use super::tree::{
    Argument, BinaryOperator, Comparator, ComprehensionKind, ComprehensionNode, Conditional,
    Constant, Element, Entry, LambdaNode, Loop, Node, NodeKind, Parameter, Target, UnaryOperator,
};

/// Binding strengths, weakest first.
const OR: u8 = 1;
const AND: u8 = 2;
const NOT: u8 = 3;
const COMPARISON: u8 = 4;
const BIT_OR: u8 = 5;
const UNARY: u8 = 11;
const POWER: u8 = 12;

/// Words that are no names.
const KEYWORDS: &[&str] = &[
    "and", "or", "not", "if", "else", "for", "in", "is", "lambda", "await", "async", "yield",
    "assert", "class", "def", "del", "from", "global", "import", "nonlocal", "pass", "raise",
    "return", "try", "while", "with", "except", "finally", "break", "continue", "as", "elif",
];

/// Parses a whole expression. `offset` is the position of its first character and
/// `depth` the nesting around it.
pub(super) fn parse(letters: &[char], offset: u32, depth: u32) -> Outcome<Node> {
    let mut parser = Parser {
        tokens: tokens(letters, offset)?,
        index: 0,
        depth,
    };
    let node = parser.several()?;
    match parser.peek() {
        TokenKind::End => Ok(node),
        TokenKind::Sign(":=" | "=") => Err(Fault::at(
            parser.at(),
            "an expression assigns nothing; write == to compare",
        )),
        kind => Err(Fault::at(
            parser.at(),
            format!("unexpected {} after the end of the expression", shown(kind)),
        )),
    }
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
        if self.take_sign(sign) {
            return Ok(());
        }
        let message = match self.peek() {
            TokenKind::Sign(":=" | "=") => {
                "an expression assigns nothing; write == to compare".into()
            }
            kind => format!("{sign} is missing before {}", shown(kind)),
        };
        Err(Fault::at(self.at(), message))
    }

    fn node(&self, at: u32, kind: NodeKind) -> Outcome<Node> {
        let node = Node::new(at, kind);
        if node.depth > NESTING_MAX {
            return Err(too_deep(at));
        }
        Ok(node)
    }

    /// `a, b` without brackets is a tuple.
    fn several(&mut self) -> Outcome<Node> {
        let at = self.at();
        let first = self.element()?;
        match first {
            Element::One(node) if !self.is_sign(",") => Ok(node),
            Element::Spread(_) if !self.is_sign(",") => {
                Err(Fault::at(at, "*values stand in brackets or before a comma"))
            }
            first => {
                let elements = self.elements_after(first)?;
                self.node(at, NodeKind::Tuple(elements))
            }
        }
    }

    /// The elements after the first one, up to a token that starts none.
    fn elements_after(&mut self, first: Element) -> Outcome<Vec<Element>> {
        let mut elements = vec![first];
        while self.take_sign(",") {
            if self.ends_elements() {
                break;
            }
            elements.push(self.element()?);
        }
        Ok(elements)
    }

    fn ends_elements(&self) -> bool {
        match self.peek() {
            TokenKind::End => true,
            TokenKind::Sign(sign) => matches!(*sign, ")" | "]" | "}" | ":" | "=" | ":="),
            _ => false,
        }
    }

    fn element(&mut self) -> Outcome<Element> {
        if self.take_sign("*") {
            return Ok(Element::Spread(self.binary(BIT_OR)?));
        }
        Ok(Element::One(self.expression()?))
    }

    /// A lambda, or `a if b else c`.
    fn expression(&mut self) -> Outcome<Node> {
        self.depth += 1;
        if self.depth > NESTING_MAX {
            return Err(too_deep(self.at()));
        }
        let node = if self.is_word("lambda") {
            self.lambda()?
        } else {
            self.conditional()?
        };
        self.depth -= 1;
        Ok(node)
    }

    fn conditional(&mut self) -> Outcome<Node> {
        let then = self.binary(OR)?;
        let at = self.at();
        if !self.take_word("if") {
            return Ok(then);
        }
        let condition = self.binary(OR)?;
        if !self.take_word("else") {
            return Err(Fault::at(
                self.at(),
                format!(
                    "else is missing before {}; write A if CONDITION else B",
                    shown(self.peek())
                ),
            ));
        }
        let otherwise = self.expression()?;
        let all = Conditional {
            then,
            condition,
            otherwise,
        };
        self.node(at, NodeKind::Conditional(Box::new(all)))
    }

    fn lambda(&mut self) -> Outcome<Node> {
        let at = self.at();
        self.index += 1;
        let mut parameters = Vec::new();
        let mut rest = None;
        while !self.is_sign(":") {
            if self.take_sign("*") {
                rest = Some(self.name("a name")?);
            } else {
                let name = self.name("a parameter's name")?;
                let default = match self.take_sign("=") {
                    true => Some(self.expression()?),
                    false => None,
                };
                parameters.push(Parameter { name, default });
            }
            if !self.take_sign(",") {
                break;
            }
        }
        self.expect(":")?;
        let body = self.expression()?;
        let lambda = LambdaNode {
            parameters,
            rest,
            body,
        };
        self.node(at, NodeKind::Lambda(Arc::new(lambda)))
    }

    fn name(&mut self, wanted: &str) -> Outcome<Arc<str>> {
        match self.peek() {
            TokenKind::Name(name) if !KEYWORDS.contains(&&**name) => {
                let name = name.clone();
                self.index += 1;
                Ok(name)
            }
            kind => Err(Fault::at(
                self.at(),
                format!("{wanted} is missing before {}", shown(kind)),
            )),
        }
    }

    /// Operators that bind at least as strongly as `least`.
    fn binary(&mut self, least: u8) -> Outcome<Node> {
        let mut left = self.prefixed(least)?;
        loop {
            let at = self.at();
            let is_comparison = least <= COMPARISON && self.comparator_ahead();
            if is_comparison {
                left = self.comparison(left)?;
            } else if least <= AND && self.is_word("and") {
                left = self.chain(left, "and", NOT, NodeKind::And)?;
            } else if least <= OR && self.is_word("or") {
                left = self.chain(left, "or", AND, NodeKind::Or)?;
            } else if let Some((operator, strength)) =
                self.operator().filter(|found| found.1 >= least)
            {
                self.index += 1;
                // `2 ** -1`, `2 ** 3 ** 2`: the right operand may be a signed power.
                let right = match operator {
                    BinaryOperator::Power => self.nested(UNARY)?,
                    _ => self.nested(strength + 1)?,
                };
                let kind = NodeKind::Binary(operator, Box::new(left), Box::new(right));
                left = self.node(at, kind)?;
            } else {
                return Ok(left);
            }
        }
    }

    /// An operand, one level deeper.
    fn nested(&mut self, least: u8) -> Outcome<Node> {
        self.depth += 1;
        if self.depth > NESTING_MAX {
            return Err(too_deep(self.at()));
        }
        let node = self.binary(least)?;
        self.depth -= 1;
        Ok(node)
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

    fn comparator_ahead(&self) -> bool {
        match self.peek() {
            TokenKind::Sign(sign) => matches!(*sign, "==" | "!=" | "<" | "<=" | ">" | ">="),
            TokenKind::Name(word) => match &**word {
                "in" | "is" => true,
                "not" => {
                    let next = self.tokens.get(self.index + 1).map(|token| &token.kind);
                    matches!(next, Some(TokenKind::Name(word)) if **word == *"in")
                }
                _ => false,
            },
            _ => false,
        }
    }

    fn comparison(&mut self, first: Node) -> Outcome<Node> {
        let at = self.at();
        let mut others = Vec::new();
        while self.comparator_ahead() {
            let comparator = match self.peek() {
                TokenKind::Sign("==") => Comparator::Equal,
                TokenKind::Sign("!=") => Comparator::NotEqual,
                TokenKind::Sign("<") => Comparator::Less,
                TokenKind::Sign("<=") => Comparator::LessEqual,
                TokenKind::Sign(">") => Comparator::Greater,
                TokenKind::Sign(_) => Comparator::GreaterEqual,
                _ if self.is_word("in") => Comparator::In,
                _ if self.is_word("not") => {
                    self.index += 1;
                    Comparator::NotIn
                }
                _ => Comparator::Is,
            };
            self.index += 1;
            let comparator = match comparator {
                Comparator::Is if self.take_word("not") => Comparator::IsNot,
                other => other,
            };
            others.push((comparator, self.binary(BIT_OR)?));
        }
        self.node(at, NodeKind::Comparison(Box::new(first), others))
    }

    fn operator(&self) -> Option<(BinaryOperator, u8)> {
        let TokenKind::Sign(sign) = self.peek() else {
            return None;
        };
        Some(match *sign {
            "|" => (BinaryOperator::BitOr, BIT_OR),
            "^" => (BinaryOperator::BitXor, 6),
            "&" => (BinaryOperator::BitAnd, 7),
            "<<" => (BinaryOperator::ShiftLeft, 8),
            ">>" => (BinaryOperator::ShiftRight, 8),
            "+" => (BinaryOperator::Add, 9),
            "-" => (BinaryOperator::Subtract, 9),
            "*" => (BinaryOperator::Multiply, 10),
            "/" => (BinaryOperator::Divide, 10),
            "//" => (BinaryOperator::FloorDivide, 10),
            "%" => (BinaryOperator::Modulo, 10),
            "**" => (BinaryOperator::Power, POWER),
            _ => return None,
        })
    }

    fn prefixed(&mut self, least: u8) -> Outcome<Node> {
        let at = self.at();
        if least <= NOT && self.take_word("not") {
            let operand = self.nested(NOT)?;
            return self.node(at, NodeKind::Unary(UnaryOperator::Not, Box::new(operand)));
        }
        let operator = match self.peek() {
            TokenKind::Sign("-") => UnaryOperator::Minus,
            TokenKind::Sign("+") => UnaryOperator::Plus,
            TokenKind::Sign("~") => UnaryOperator::Invert,
            _ => return self.postfixed(),
        };
        self.index += 1;
        let operand = self.nested(UNARY)?;
        self.node(at, NodeKind::Unary(operator, Box::new(operand)))
    }

    fn postfixed(&mut self) -> Outcome<Node> {
        let mut node = self.atom()?;
        loop {
            let at = self.at();
            let kind = if self.take_sign("(") {
                NodeKind::Call(Box::new(node), self.arguments()?)
            } else if self.take_sign("[") {
                let index = self.index_expression()?;
                self.expect("]")?;
                NodeKind::Item(Box::new(node), Box::new(index))
            } else if self.take_sign(".") {
                NodeKind::Attribute(Box::new(node), self.name("an attribute's name")?)
            } else {
                return Ok(node);
            };
            node = self.node(at, kind)?;
        }
    }

    fn index_expression(&mut self) -> Outcome<Node> {
        let at = self.at();
        if self.is_sign("]") {
            return Err(Fault::at(at, "an index is missing between [ and ]"));
        }
        let first = match self.is_sign(":") {
            true => None,
            false => Some(self.several()?),
        };
        if !self.is_sign(":") {
            return first.ok_or_else(|| Fault::at(at, "an index is missing"));
        }
        let mut parts = [first, None, None];
        for part in &mut parts[1..] {
            if !self.take_sign(":") {
                break;
            }
            if !self.is_sign(":") && !self.is_sign("]") {
                *part = Some(self.expression()?);
            }
        }
        self.node(at, NodeKind::Slice(Box::new(parts)))
    }

    fn arguments(&mut self) -> Outcome<Vec<Argument>> {
        let mut arguments = Vec::new();
        while !self.take_sign(")") {
            let at = self.at();
            let is_named = matches!(self.peek(), TokenKind::Name(_))
                && self.tokens.get(self.index + 1).map(|token| &token.kind)
                    == Some(&TokenKind::Sign("="));
            if self.take_sign("**") {
                arguments.push(Argument::NamedSpread(self.expression()?));
            } else if self.take_sign("*") {
                arguments.push(Argument::Spread(self.expression()?));
            } else if is_named {
                let name = self.name("an argument's name")?;
                self.index += 1;
                arguments.push(Argument::Named(name, self.expression()?));
            } else {
                let value = self.expression()?;
                let value = match self.comprehension_ahead() {
                    true => self.comprehension(at, ComprehensionKind::Generator, value, None)?,
                    false => value,
                };
                arguments.push(Argument::Positional(value));
            }
            if !self.take_sign(",") {
                self.expect(")")?;
                break;
            }
        }
        Ok(arguments)
    }

    fn atom(&mut self) -> Outcome<Node> {
        let Token { kind, at } = self.token().clone();
        let constant = match kind {
            TokenKind::Integer(value) => Constant::Integer(value),
            TokenKind::Double(value) => Constant::Double(value),
            TokenKind::Text(_) | TokenKind::Formatted { .. } => return self.texts(),
            TokenKind::Bytes(mut bytes) => {
                self.index += 1;
                while let TokenKind::Bytes(more) = self.peek() {
                    bytes.extend_from_slice(more);
                    self.index += 1;
                }
                return self.node(at, NodeKind::Constant(Constant::Bytes(bytes.into())));
            }
            TokenKind::Sign("(") => return self.bracketed(),
            TokenKind::Sign("[") => return self.list(),
            TokenKind::Sign("{") => return self.braced(),
            TokenKind::Sign("...") => Constant::Ellipsis,
            TokenKind::Name(word) => match &*word {
                "True" => Constant::Bool(true),
                "False" => Constant::Bool(false),
                "None" => Constant::None,
                "lambda" => return self.lambda(),
                _ if KEYWORDS.contains(&&*word) => {
                    return Err(Fault::at(
                        at,
                        format!("a value is missing before the word {word}"),
                    ));
                }
                _ => {
                    self.index += 1;
                    return self.node(at, NodeKind::Name(word));
                }
            },
            TokenKind::End => return Err(Fault::at(at, "a value is missing at the end")),
            TokenKind::Sign(sign) => {
                return Err(Fault::at(at, format!("a value is missing before {sign}")));
            }
        };
        self.index += 1;
        self.node(at, NodeKind::Constant(constant))
    }

    /// Adjacent texts, which are one.
    fn texts(&mut self) -> Outcome<Node> {
        let at = self.at();
        let mut plain = String::new();
        let mut parts = Vec::new();
        loop {
            let place = self.at();
            match self.peek().clone() {
                TokenKind::Text(text) => plain += &text,
                TokenKind::Formatted { letters, raw } => {
                    if !plain.is_empty() {
                        parts.push(super::tree::FormattedPart::Text(
                            std::mem::take(&mut plain).into(),
                        ));
                    }
                    let more = formatted_text::parts(&letters, raw, place, self.depth + 1);
                    parts.extend(more.map_err(|fault| fault.or_at(place))?);
                }
                _ => break,
            }
            self.index += 1;
        }
        if parts.is_empty() {
            return self.node(at, NodeKind::Constant(Constant::Text(plain.into())));
        }
        if !plain.is_empty() {
            parts.push(super::tree::FormattedPart::Text(plain.into()));
        }
        self.node(at, NodeKind::Formatted(parts))
    }

    /// `(a)`, `(a, b)`, `()` or a generator.
    fn bracketed(&mut self) -> Outcome<Node> {
        let at = self.at();
        self.index += 1;
        if self.take_sign(")") {
            return self.node(at, NodeKind::Tuple(Vec::new()));
        }
        let first = self.element()?;
        let node = match first {
            Element::One(node) if self.comprehension_ahead() => {
                self.comprehension(at, ComprehensionKind::Generator, node, None)?
            }
            Element::One(node) if !self.is_sign(",") => node,
            first => {
                let elements = self.elements_after(first)?;
                self.node(at, NodeKind::Tuple(elements))?
            }
        };
        self.expect(")")?;
        Ok(node)
    }

    fn list(&mut self) -> Outcome<Node> {
        let at = self.at();
        self.index += 1;
        if self.take_sign("]") {
            return self.node(at, NodeKind::List(Vec::new()));
        }
        let node = match self.element()? {
            Element::One(node) if self.comprehension_ahead() => {
                self.comprehension(at, ComprehensionKind::List, node, None)?
            }
            first => {
                let elements = self.elements_after(first)?;
                self.node(at, NodeKind::List(elements))?
            }
        };
        self.expect("]")?;
        Ok(node)
    }

    /// A set or a dictionary.
    fn braced(&mut self) -> Outcome<Node> {
        let at = self.at();
        self.index += 1;
        if self.take_sign("}") {
            return self.node(at, NodeKind::Dictionary(Vec::new()));
        }
        let node = if self.is_sign("**") {
            self.dictionary(at, Vec::new())?
        } else {
            let first = self.element()?;
            match first {
                Element::One(key) if self.take_sign(":") => {
                    let value = self.expression()?;
                    if self.comprehension_ahead() {
                        self.comprehension(at, ComprehensionKind::Dictionary, key, Some(value))?
                    } else {
                        let entries = vec![Entry::Pair(key, value)];
                        match self.take_sign(",") {
                            true => self.dictionary(at, entries)?,
                            false => self.node(at, NodeKind::Dictionary(entries))?,
                        }
                    }
                }
                Element::One(node) if self.comprehension_ahead() => {
                    self.comprehension(at, ComprehensionKind::Set, node, None)?
                }
                first => {
                    let elements = self.elements_after(first)?;
                    self.node(at, NodeKind::Set(elements))?
                }
            }
        };
        self.expect("}")?;
        Ok(node)
    }

    fn dictionary(&mut self, at: u32, mut entries: Vec<Entry>) -> Outcome<Node> {
        while !self.is_sign("}") {
            if self.take_sign("**") {
                entries.push(Entry::Spread(self.binary(BIT_OR)?));
            } else {
                let key = self.expression()?;
                self.expect(":")?;
                entries.push(Entry::Pair(key, self.expression()?));
            }
            if !self.take_sign(",") {
                break;
            }
        }
        self.node(at, NodeKind::Dictionary(entries))
    }

    fn comprehension_ahead(&self) -> bool {
        self.is_word("for") || self.is_word("async")
    }

    fn comprehension(
        &mut self,
        at: u32,
        kind: ComprehensionKind,
        element: Node,
        value: Option<Node>,
    ) -> Outcome<Node> {
        let mut loops = Vec::new();
        while self.comprehension_ahead() {
            if !self.take_word("for") {
                return Err(Fault::at(self.at(), "async is not supported; write for"));
            }
            let target = self.targets()?;
            if !self.take_word("in") {
                return Err(Fault::at(
                    self.at(),
                    format!(
                        "in is missing before {}; write for NAME in VALUES",
                        shown(self.peek())
                    ),
                ));
            }
            let values = self.binary(OR)?;
            let mut conditions = Vec::new();
            while self.take_word("if") {
                conditions.push(self.binary(OR)?);
            }
            loops.push(Loop {
                target,
                values,
                conditions,
            });
        }
        let node = ComprehensionNode {
            element,
            value,
            loops,
        };
        self.node(at, NodeKind::Comprehension(kind, Arc::new(node)))
    }

    /// `a`, `a, b`, `(a, b), c`
    fn targets(&mut self) -> Outcome<Target> {
        let first = self.target()?;
        if !self.is_sign(",") {
            return Ok(first);
        }
        let mut all = vec![first];
        while self.take_sign(",") && !self.is_word("in") && !self.is_sign(")") && !self.is_sign("]")
        {
            all.push(self.target()?);
        }
        Ok(Target::Several(all))
    }

    fn target(&mut self) -> Outcome<Target> {
        let end = if self.take_sign("(") {
            ")"
        } else if self.take_sign("[") {
            "]"
        } else {
            return Ok(Target::Name(self.name("a loop variable")?));
        };
        self.depth += 1;
        if self.depth > NESTING_MAX {
            return Err(too_deep(self.at()));
        }
        let targets = self.targets()?;
        self.depth -= 1;
        self.expect(end)?;
        Ok(targets)
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
        TokenKind::Formatted { .. } => "an f-string".into(),
        TokenKind::Name(name) => format!("the word {name}"),
        TokenKind::Sign(sign) => (*sign).into(),
        TokenKind::End => "the end".into(),
    }
}
