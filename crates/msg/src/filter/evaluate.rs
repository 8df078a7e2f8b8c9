//! Evaluation of a content filter once the message's fields are read.

use super::lex::Relation;
use super::like::is_like;
use super::scalar::Scalar;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::Cell;
use core::cmp::Ordering;

/// One look at one message.
pub(super) struct Evaluation<'s, 'a> {
    /// Its fields' values.
    pub slots: &'s [Scalar<'a>],
    /// Remaining cost budget for `LIKE`.
    pub steps_left: Cell<usize>,
}

#[derive(Clone, Debug)]
pub(super) enum Condition {
    Predicate(Predicate),
    Not(Box<Self>),
    All(Vec<Self>),
    Any(Vec<Self>),
}

#[derive(Clone, Debug)]
pub(super) enum Predicate {
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
    pub fn evaluate(&self, evaluation: &Evaluation<'_, '_>) -> Option<bool> {
        match self {
            Self::Predicate(test) => test.evaluate(evaluation),
            Self::Not(inner) => inner.evaluate(evaluation).map(|value| !value),
            Self::All(parts) => any_or_all(parts, evaluation, false),
            Self::Any(parts) => any_or_all(parts, evaluation, true),
        }
    }
}

/// `decisive` as soon as one part is; its opposite if all parts are known.
fn any_or_all(
    parts: &[Condition],
    evaluation: &Evaluation<'_, '_>,
    decisive: bool,
) -> Option<bool> {
    let mut all = Some(!decisive);
    for part in parts {
        match part.evaluate(evaluation) {
            Some(value) if value == decisive => return Some(decisive),
            Some(_) => {}
            None => all = None,
        }
    }
    all
}

impl Predicate {
    fn evaluate(&self, evaluation: &Evaluation<'_, '_>) -> Option<bool> {
        match self {
            Self::Like(slot, pattern) => match evaluation.slots.get(*slot) {
                Some(Scalar::Text(text)) => Some(is_like(text, pattern, &evaluation.steps_left)),
                _ => None,
            },
            Self::Order(left, relation, right) => {
                let (left, right) = (left.value(evaluation)?, right.value(evaluation)?);
                if left.is_absent() || right.is_absent() {
                    return None;
                }
                Some(relation.allows(left.order(right)))
            }
        }
    }
}

impl Operand {
    fn value<'s>(&'s self, evaluation: &Evaluation<'s, 's>) -> Option<&'s Scalar<'s>> {
        match self {
            Self::Field(slot) => evaluation.slots.get(*slot),
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
