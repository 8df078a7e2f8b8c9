//! Syntax tree of an expression.

use std::sync::Arc;

use super::value::Value;

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
    Tuple(Vec<Node>),
    List(Vec<Node>),
    Not(Box<Node>),
    /// `+a`, `-a` or `~a`
    Unary(char, Box<Node>),
    Binary(BinaryOperator, Box<[Node; 2]>),
    /// `a and b and c`
    And(Vec<Node>),
    Or(Vec<Node>),
    /// `a < b <= c`
    Comparison(Box<Node>, Vec<(Comparator, Node)>),
    /// `then if condition else otherwise`, in the order of evaluation: the condition first.
    Conditional(Box<[Node; 3]>),
    Attribute(Box<Node>, Arc<str>),
    Item(Box<[Node; 2]>),
    Slice(Box<Node>, Vec<Option<Node>>),
    Call(Box<Node>, Vec<Node>),
}

/// A constant. Unlike a [`Value`], threads can share it.
#[derive(Clone, Debug)]
pub(super) enum Constant {
    None,
    Bool(bool),
    Integer(i128),
    Double(f64),
    Text(Arc<str>),
    Bytes(Arc<[u8]>),
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

/// Operators with their signs and binding strengths.
pub(super) const OPERATORS: [(BinaryOperator, &str, u8); 12] = [
    (BinaryOperator::BitOr, "|", 5),
    (BinaryOperator::BitXor, "^", 6),
    (BinaryOperator::BitAnd, "&", 7),
    (BinaryOperator::ShiftLeft, "<<", 8),
    (BinaryOperator::ShiftRight, ">>", 8),
    (BinaryOperator::Add, "+", 9),
    (BinaryOperator::Subtract, "-", 9),
    (BinaryOperator::Multiply, "*", 10),
    (BinaryOperator::Divide, "/", 10),
    (BinaryOperator::FloorDivide, "//", 10),
    (BinaryOperator::Modulo, "%", 10),
    (BinaryOperator::Power, "**", 12),
];

impl BinaryOperator {
    pub fn sign(self) -> &'static str {
        let mut known = OPERATORS.iter();
        known.find(|known| known.0 == self).map_or("", |one| one.1)
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

impl Constant {
    pub fn value(&self) -> Value {
        match self {
            Self::None => Value::NONE,
            Self::Bool(value) => (*value).into(),
            Self::Integer(value) => (*value).into(),
            Self::Double(value) => (*value).into(),
            Self::Text(text) => text.clone().into(),
            Self::Bytes(bytes) => Value::bytes(bytes),
        }
    }
}

impl Node {
    pub fn new(at: u32, kind: NodeKind) -> Self {
        let deepest = |nodes: &[Node]| nodes.iter().map(|node| node.depth).max().unwrap_or(0);
        let below = match &kind {
            NodeKind::Constant(_) | NodeKind::Name(_) => 0,
            NodeKind::Tuple(nodes)
            | NodeKind::List(nodes)
            | NodeKind::And(nodes)
            | NodeKind::Or(nodes) => deepest(nodes),
            NodeKind::Not(node) | NodeKind::Unary(_, node) | NodeKind::Attribute(node, _) => {
                node.depth
            }
            NodeKind::Binary(_, both) | NodeKind::Item(both) => deepest(&**both),
            NodeKind::Conditional(all) => deepest(&**all),
            NodeKind::Call(node, others) => node.depth.max(deepest(others)),
            NodeKind::Comparison(node, others) => {
                let others = others.iter().map(|(_, node)| node.depth);
                others.fold(node.depth, u32::max)
            }
            NodeKind::Slice(node, parts) => {
                let parts = parts.iter().flatten().map(|node| node.depth);
                parts.fold(node.depth, u32::max)
            }
        };
        Self {
            at,
            depth: 1 + below,
            kind,
        }
    }
}
