//! Content filters: which messages of a topic a reader wants to see.
//!
//! The expression language is the filter part of DDS 1.4 Annex B: comparisons
//! `=` `<>` `<` `<=` `>` `>=`, `LIKE`, `[NOT] BETWEEN … AND …`, joined by `AND`,
//! `OR`, `NOT` and parentheses, keywords in any case. A term is a field
//! (`pose.position.x`, `ranges[3]`), a literal or a parameter `%0` … `%99`, whose
//! value is a literal given beside the expression. `!=` and a doubled quote
//! (`'it''s'`) are understood too; `MATCH` is not, it is no part of the standard.
//!
//! A filter is checked once against its message type and then judges payloads
//! as they are: of the message only the fields it names are read, and nothing
//! behind the last of them. An element that a sequence does not have is
//! unknown, as SQL's NULL: no comparison with it holds, and no `NOT` of one.

mod check;
mod error;
mod judge;
mod lex;
mod like;
mod parse;
mod scalar;
mod walk;

use crate::cdr::Decoder;
use crate::dynamic::DynamicType;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::cell::Cell;
use judge::{Condition, Look};
use scalar::Scalar;
use walk::Plan;

pub use error::{FilterError, FilterPlace, JudgeError};

/// The name of this language on the wire (DDS 1.4 Annex B; RTPS 2.5 §9.6.3.1).
pub const FILTER_CLASS: &str = "DDSSQL";
/// The longest expression, bytes.
pub const EXPRESSION_BYTES_MAX: usize = 4096;
/// Parentheses and `NOT`s inside one another: a parser that goes deeper as its
/// input asks is a way to overflow its stack (CVE-2026-22591).
pub const NESTING_MAX: usize = 32;
/// `%0` to `%99`.
pub const PARAMETERS_MAX: usize = 100;
/// The longest parameter and the longest string in an expression, bytes; what
/// Fast DDS keeps of one.
pub const TEXT_BYTES_MAX: usize = 255;
/// Different fields that one expression may name.
pub const FIELDS_MAX: usize = 64;
/// What the `LIKE`s of one expression may cost per message, in characters looked
/// at: some milliseconds. A peer's filter runs in its publisher's thread, where
/// all peers' filters share this.
pub const LIKE_STEPS_MAX: usize = 1 << 21;

/// A filter, checked against a message type. Cheap to judge by, any number of
/// threads at a time; another value of a parameter is another filter.
///
/// ```
/// use pteros_msg::describe::{Field, FieldType, IndividualTypeDescription, TypeDescription, type_id};
/// use pteros_msg::dynamic::{DynamicMessage, DynamicType};
/// use pteros_msg::filter::Filter;
/// # let field_type = FieldType { type_id: type_id::DOUBLE, ..FieldType::default() };
/// # let fields = vec![Field { name: "range".into(), field_type, ..Field::default() }];
/// # let type_description = IndividualTypeDescription {
/// #     type_name: "a/msg/A".into(), fields, ..Default::default()
/// # };
/// # let description = TypeDescription { type_description, referenced: vec![] };
/// let ty = DynamicType::new(&description)?;
/// let near = Filter::new(&ty, "range BETWEEN 0.1 AND %0", &["2.5".into()])?;
/// let mut message = DynamicMessage::new(&ty);
/// message.set("range", 1.5)?;
/// assert!(near.passes(&message.to_payload(Default::default()))?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Filter {
    expression: String,
    parameters: Vec<String>,
    condition: Condition,
    plan: Plan,
    slots: usize,
    ty: DynamicType,
}

impl Filter {
    /// Reads an expression over messages of type `ty`, with the values of its
    /// parameters: literals as in the expression, strings in quotes.
    ///
    /// # Errors
    /// What was expected where: bad syntax, a field that the type lacks, values
    /// that are not comparable, a parameter without value, a limit exceeded.
    pub fn new(
        ty: &DynamicType,
        expression: &str,
        parameters: &[String],
    ) -> Result<Self, FilterError> {
        Self::with_nesting_max(ty, expression, parameters, NESTING_MAX)
    }

    /// As [`Filter::new`], with another limit than [`NESTING_MAX`]. The parser's
    /// stack grows by about a kilobyte per level.
    ///
    /// # Errors
    /// As [`Filter::new`].
    pub fn with_nesting_max(
        ty: &DynamicType,
        expression: &str,
        parameters: &[String],
        nesting_max: usize,
    ) -> Result<Self, FilterError> {
        let parsed = parse::parse(expression, nesting_max)?;
        let values = parse::parameters(parameters)?;
        let checked = check::check(ty, expression, &parsed, &values)?;
        Ok(Self {
            expression: expression.into(),
            parameters: parameters.to_vec(),
            condition: checked.condition,
            plan: checked.plan,
            slots: checked.slots,
            ty: ty.clone(),
        })
    }

    /// The expression as it was given.
    pub fn expression(&self) -> &str {
        &self.expression
    }

    /// The parameters as they were given.
    pub fn parameters(&self) -> &[String] {
        &self.parameters
    }

    /// Whether a message passes: one as it travels, encapsulation header
    /// included, in any representation. Allocates nothing for up to eight
    /// fields, unless one is a `wstring`.
    ///
    /// # Errors
    /// There is no answer: see [`JudgeError`]. A message that cannot be judged
    /// should be treated as one that passes.
    pub fn passes(&self, payload: &[u8]) -> Result<bool, JudgeError> {
        self.passes_within(payload, &mut { LIKE_STEPS_MAX })
    }

    /// As [`Filter::passes`], where several filters share what their `LIKE`s may
    /// cost: what this one costs is taken from `steps_left`, see
    /// [`LIKE_STEPS_MAX`].
    ///
    /// # Errors
    /// As [`Filter::passes`].
    pub fn passes_within(
        &self,
        payload: &[u8],
        steps_left: &mut usize,
    ) -> Result<bool, JudgeError> {
        let mut few = [const { Scalar::Absent }; 8];
        let mut many;
        let slots = match few.get_mut(..self.slots) {
            Some(few) => few,
            None => {
                many = vec![Scalar::Absent; self.slots];
                many.as_mut_slice()
            }
        };
        let mut input = Decoder::from_payload(payload)?;
        walk::read(&self.ty, &self.plan, &mut input, slots)?;
        let look = Look {
            slots,
            steps_left: Cell::new(*steps_left),
        };
        let holds = self.condition.holds(&look).unwrap_or(false);
        *steps_left = look.steps_left.get();
        match *steps_left {
            0 => Err(JudgeError::TooCostly),
            _ => Ok(holds),
        }
    }
}

/// Equal when they judge alike because they are written alike.
impl PartialEq for Filter {
    fn eq(&self, other: &Self) -> bool {
        self.expression == other.expression
            && self.parameters == other.parameters
            && self.ty == other.ty
    }
}

#[cfg(test)]
mod tests;
