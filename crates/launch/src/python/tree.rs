//! Syntax tree of an expression.

use std::sync::Arc;

/// A node, with the position of its first or its operator's character.
#[derive(Debug)]
pub(super) struct Node {
    pub at: u32,
    /// Number of nodes from here down to the deepest one.
    pub depth: u32,
    pub kind: NodeKind,
}

#[derive(Debug)]
pub(super) enum NodeKind {
    Constant(Constant),
    Name(Arc<str>),
    /// An f-string.
    Formatted(Vec<FormattedPart>),
    Tuple(Vec<Element>),
    List(Vec<Element>),
    Set(Vec<Element>),
    Dictionary(Vec<Entry>),
    Unary(UnaryOperator, Box<Node>),
    Binary(BinaryOperator, Box<Node>, Box<Node>),
    /// `a and b and c`
    And(Vec<Node>),
    Or(Vec<Node>),
    /// `a < b <= c`
    Comparison(Box<Node>, Vec<(Comparator, Node)>),
    /// `a if b else c`
    Conditional(Box<Conditional>),
    Attribute(Box<Node>, Arc<str>),
    Item(Box<Node>, Box<Node>),
    Slice(Box<[Option<Node>; 3]>),
    Call(Box<Node>, Vec<Argument>),
    Lambda(Arc<LambdaNode>),
    Comprehension(ComprehensionKind, Arc<ComprehensionNode>),
}

#[derive(Clone, Debug)]
pub(super) enum Constant {
    None,
    Ellipsis,
    Bool(bool),
    Integer(i128),
    Double(f64),
    Text(Arc<str>),
    Bytes(Arc<[u8]>),
}

#[derive(Debug)]
pub(super) struct Conditional {
    pub then: Node,
    pub condition: Node,
    pub otherwise: Node,
}

/// An element of a list, tuple or set.
#[derive(Debug)]
pub(super) enum Element {
    One(Node),
    /// `*values`
    Spread(Node),
}

#[derive(Debug)]
pub(super) enum Entry {
    Pair(Node, Node),
    /// `**values`
    Spread(Node),
}

#[derive(Debug)]
pub(super) enum Argument {
    Positional(Node),
    Named(Arc<str>, Node),
    /// `*values`
    Spread(Node),
    /// `**values`
    NamedSpread(Node),
}

#[derive(Debug)]
pub(super) enum FormattedPart {
    Text(Arc<str>),
    Field {
        value: Node,
        /// `!r`, `!s` or `!a`.
        conversion: Option<char>,
        specification: Vec<FormattedPart>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnaryOperator {
    Plus,
    Minus,
    Invert,
    Not,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BinaryOperator {
    Add,
    Subtract,
    Multiply,
    Divide,
    FloorDivide,
    Modulo,
    Power,
    ShiftLeft,
    ShiftRight,
    BitAnd,
    BitOr,
    BitXor,
}

impl BinaryOperator {
    pub fn sign(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::FloorDivide => "//",
            Self::Modulo => "%",
            Self::Power => "**",
            Self::ShiftLeft => "<<",
            Self::ShiftRight => ">>",
            Self::BitAnd => "&",
            Self::BitOr => "|",
            Self::BitXor => "^",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparator {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    In,
    NotIn,
    Is,
    IsNot,
}

#[derive(Debug)]
pub(super) struct LambdaNode {
    pub parameters: Vec<Parameter>,
    /// `*name`
    pub rest: Option<Arc<str>>,
    pub body: Node,
}

#[derive(Debug)]
pub(super) struct Parameter {
    pub name: Arc<str>,
    pub default: Option<Node>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ComprehensionKind {
    List,
    Set,
    Dictionary,
    Generator,
}

#[derive(Debug)]
pub(super) struct ComprehensionNode {
    /// The element, or a key.
    pub element: Node,
    /// The value of a dictionary's entry.
    pub value: Option<Node>,
    pub loops: Vec<Loop>,
}

/// `for target in values if condition …`
#[derive(Debug)]
pub(super) struct Loop {
    pub target: Target,
    pub values: Node,
    pub conditions: Vec<Node>,
}

/// The names that a loop binds.
#[derive(Debug)]
pub(super) enum Target {
    Name(Arc<str>),
    Several(Vec<Target>),
}

impl Node {
    pub fn new(at: u32, kind: NodeKind) -> Self {
        let depth = 1 + kind.depth_below();
        Self { at, depth, kind }
    }
}

impl NodeKind {
    fn depth_below(&self) -> u32 {
        let deepest = |nodes: &mut dyn Iterator<Item = &Node>| {
            nodes.map(|node| node.depth).max().unwrap_or(0)
        };
        match self {
            Self::Constant(_) | Self::Name(_) => 0,
            Self::Formatted(parts) => depth_of_parts(parts),
            Self::Tuple(elements) | Self::List(elements) | Self::Set(elements) => {
                deepest(&mut elements.iter().map(|one| match one {
                    Element::One(node) | Element::Spread(node) => node,
                }))
            }
            Self::Dictionary(entries) => entries
                .iter()
                .map(|entry| match entry {
                    Entry::Pair(key, value) => key.depth.max(value.depth),
                    Entry::Spread(node) => node.depth,
                })
                .max()
                .unwrap_or(0),
            Self::Unary(_, node) | Self::Attribute(node, _) => node.depth,
            Self::Binary(_, left, right) | Self::Item(left, right) => left.depth.max(right.depth),
            Self::And(nodes) | Self::Or(nodes) => deepest(&mut nodes.iter()),
            Self::Comparison(first, others) => first
                .depth
                .max(deepest(&mut others.iter().map(|(_, node)| node))),
            Self::Conditional(all) => {
                deepest(&mut [&all.then, &all.condition, &all.otherwise].into_iter())
            }
            Self::Slice(parts) => deepest(&mut parts.iter().flatten()),
            Self::Call(function, arguments) => {
                let arguments = arguments.iter().map(|argument| match argument {
                    Argument::Positional(node)
                    | Argument::Named(_, node)
                    | Argument::Spread(node)
                    | Argument::NamedSpread(node) => node,
                });
                deepest(&mut arguments.chain([&**function]))
            }
            Self::Lambda(lambda) => {
                let defaults = lambda.parameters.iter();
                let defaults = defaults.filter_map(|one| one.default.as_ref());
                deepest(&mut defaults.chain([&lambda.body]))
            }
            Self::Comprehension(_, comprehension) => {
                let ComprehensionNode {
                    element,
                    value,
                    loops,
                } = &**comprehension;
                let nodes = loops
                    .iter()
                    .flat_map(|one| one.conditions.iter().chain([&one.values]));
                // Loops nest in each other.
                loops.len() as u32 + deepest(&mut nodes.chain(value).chain([element]))
            }
        }
    }
}

fn depth_of_parts(parts: &[FormattedPart]) -> u32 {
    let depths = parts.iter().map(|part| match part {
        FormattedPart::Text(_) => 0,
        FormattedPart::Field {
            value,
            specification,
            ..
        } => value.depth.max(1 + depth_of_parts(specification)),
    });
    depths.max().unwrap_or(0)
}
