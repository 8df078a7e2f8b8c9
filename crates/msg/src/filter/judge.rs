//! What is asked of a message once its fields are read.

use super::lex::Relation;
use super::like::is_like;
use super::scalar::Scalar;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::Cell;
use core::cmp::Ordering;

/// One look at one message.
pub(super) struct Look<'s, 'a> {
    /// Its fields' values.
    pub slots: &'s [Scalar<'a>],
    /// What matching patterns may still cost.
    pub steps_left: Cell<usize>,
}

#[derive(Clone, Debug)]
pub(super) enum Condition {
    Test(Test),
    Not(Box<Self>),
    All(Vec<Self>),
    Any(Vec<Self>),
}

#[derive(Clone, Debug)]
pub(super) enum Test {
    Order(Operand, Relation, Operand),
    /// A field's slot and the pattern.
    Like(usize, Vec<u8>),
}

#[derive(Clone, Debug)]
pub(super) enum Operand {
    /// A field's slot.
    Field(usize),
    Constant(Scalar<'static>),
}

impl Condition {
    /// Whether it holds; `None` where that hangs on an absent element.
    pub fn holds(&self, look: &Look<'_, '_>) -> Option<bool> {
        match self {
            Self::Test(test) => test.holds(look),
            Self::Not(inner) => inner.holds(look).map(|holds| !holds),
            Self::All(parts) => unless(parts, look, false),
            Self::Any(parts) => unless(parts, look, true),
        }
    }
}

/// `decisive` as soon as one part is that, else its opposite if all parts are
/// known.
fn unless(parts: &[Condition], look: &Look<'_, '_>, decisive: bool) -> Option<bool> {
    let mut all = Some(!decisive);
    for part in parts {
        match part.holds(look) {
            Some(holds) if holds == decisive => return Some(decisive),
            Some(_) => {}
            None => all = None,
        }
    }
    all
}

impl Test {
    fn holds(&self, look: &Look<'_, '_>) -> Option<bool> {
        match self {
            Self::Like(slot, pattern) => match look.slots.get(*slot) {
                Some(Scalar::Text(text)) => Some(is_like(text, pattern, &look.steps_left)),
                _ => None,
            },
            Self::Order(left, relation, right) => {
                let (left, right) = (left.value(look)?, right.value(look)?);
                if left.is_absent() || right.is_absent() {
                    return None;
                }
                Some(relation.allows(left.order(right)))
            }
        }
    }
}

impl Operand {
    fn value<'s>(&'s self, look: &Look<'s, 's>) -> Option<&'s Scalar<'s>> {
        match self {
            Self::Field(slot) => look.slots.get(*slot),
            Self::Constant(value) => Some(value),
        }
    }
}

impl Relation {
    /// Without an order one is not a number, which is unequal to everything.
    fn allows(self, order: Option<Ordering>) -> bool {
        use Ordering::{Equal, Greater, Less};
        match self {
            Self::Equal | Self::Like => order == Some(Equal),
            Self::NotEqual => order != Some(Equal),
            Self::Less => order == Some(Less),
            Self::LessOrEqual => matches!(order, Some(Less | Equal)),
            Self::Greater => order == Some(Greater),
            Self::GreaterOrEqual => matches!(order, Some(Greater | Equal)),
        }
    }
}
