//! Content filter: selects the messages of a topic that a reader receives.
//!
//! The expression language is the filter part of DDS 1.4 Annex B: comparisons `=`
//! `<>` `<` `<=` `>` `>=`, `LIKE`, `[NOT] BETWEEN … AND …`, joined by `AND`, `OR`,
//! `NOT` and parentheses, keywords in any case. A term is a field
//! (`pose.position.x`, `ranges[3]`), a literal or a parameter `%0` … `%99`, whose
//! value is a literal given beside the expression. `!=` and a doubled quote
//! (`'it''s'`) are accepted too. `MATCH` is not, because it is not in the standard.
//!
//! A filter is checked once against its message type and then evaluated on
//! serialized payloads. It reads only the fields it names, and nothing after the
//! last of them. A missing element of a sequence is unknown, like SQL's NULL: no
//! comparison with it is true, and no `NOT` of one.

mod check;
mod error;
mod evaluate;
mod field_reader;
mod lex;
mod like;
mod limits;
mod parse;
mod scalar;

use crate::cdr::Decoder;
use crate::dynamic::DynamicType;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::cell::Cell;
use evaluate::{Condition, Evaluation};
use field_reader::ReadPlan;
use scalar::Scalar;

pub use error::{FilterError, FilterErrorLocation, FilterEvaluationError};
pub use limits::{
    EXPRESSION_BYTES_MAX, FIELDS_MAX, LIKE_STEPS_MAX, NESTING_MAX, PARAMETERS_MAX, TEXT_BYTES_MAX,
};

/// The name of this language on the wire (DDS 1.4 Annex B; RTPS 2.5 §9.6.3.1).
pub const FILTER_CLASS: &str = "DDSSQL";

/// A content filter, checked against a message type. Thread-safe and cheap to
/// evaluate. Another parameter value needs another filter.
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
    plan: ReadPlan,
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
    /// There is no answer: see [`FilterEvaluationError`]. A message that cannot be judged
    /// should be treated as one that passes.
    pub fn passes(&self, payload: &[u8]) -> Result<bool, FilterEvaluationError> {
        self.passes_within(payload, &mut { LIKE_STEPS_MAX })
    }

    /// As [`Filter::passes`], with a cost budget that several filters share: the
    /// cost of this filter's `LIKE`s is taken from `steps_left`, see
    /// [`LIKE_STEPS_MAX`].
    ///
    /// # Errors
    /// As [`Filter::passes`].
    pub fn passes_within(
        &self,
        payload: &[u8],
        steps_left: &mut usize,
    ) -> Result<bool, FilterEvaluationError> {
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
        field_reader::read(&self.ty, &self.plan, &mut input, slots)?;
        let evaluation = Evaluation {
            slots,
            steps_left: Cell::new(*steps_left),
        };
        let passes = self.condition.evaluate(&evaluation).unwrap_or(false);
        *steps_left = evaluation.steps_left.get();
        match *steps_left {
            0 => Err(FilterEvaluationError::TooCostly),
            _ => Ok(passes),
        }
    }
}

/// Equal when expression and parameters have the same text.
impl PartialEq for Filter {
    fn eq(&self, other: &Self) -> bool {
        self.expression == other.expression
            && self.parameters == other.parameters
            && self.ty == other.ty
    }
}

#[cfg(test)]
mod tests;
