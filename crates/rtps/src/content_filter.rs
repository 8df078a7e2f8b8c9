//! Content-filtered topics (DDS 1.4 §2.2.2.3.3): the announced content filter of a
//! reader, and the filter results that a writer sends with a change (RTPS 2.5
//! §8.7.3, §9.6.3.1, §9.6.4.1).

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use pteros_msg::dynamic::DynamicType;
use pteros_msg::filter::{FILTER_CLASS, Filter, FilterError, LIKE_STEPS_MAX, NESTING_MAX};

use crate::id::Guid;
use crate::wire::Cursor;

/// Identifies a filter: the MD5 of all its strings, each with its final NUL.
pub type FilterSignature = [u8; 16];

/// A reader's content filter as discovery carries it (ContentFilterProperty_t).
#[derive(Clone, PartialEq, Eq, Debug, Default, Hash)]
pub struct ContentFilterProperty {
    /// The name of the content-filtered topic; any.
    pub filtered_topic: String,
    /// The filtered topic.
    pub related_topic: String,
    /// The filter class: the language of the expression.
    pub class: String,
    /// The filter expression.
    pub expression: String,
    /// The values of `%0`, `%1` …
    pub parameters: Vec<String>,
}

impl ContentFilterProperty {
    /// The property of a local reader on `topic`, in DDS SQL.
    pub fn new(topic: &str, expression: &str, parameters: &[String]) -> Self {
        Self {
            // One name for all: readers with equal filters share a signature, and a
            // writer evaluates the filter once for them.
            filtered_topic: alloc::format!("{topic}_filtered"),
            related_topic: topic.into(),
            class: FILTER_CLASS.into(),
            expression: expression.into(),
            parameters: parameters.to_vec(),
        }
    }

    /// The signature that identifies it beside a change.
    pub fn signature(&self) -> FilterSignature {
        let mut md5 = md5::Context::new();
        let names = [
            &self.filtered_topic,
            &self.related_topic,
            &self.class,
            &self.expression,
        ];
        for text in names.into_iter().chain(&self.parameters) {
            md5.consume(text.as_bytes());
            md5.consume([0]);
        }
        md5.finalize().into()
    }
}

/// `data LIKE %0` with `'a%'`.
impl fmt::Display for ContentFilterProperty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.expression)?;
        for (number, parameter) in self.parameters.iter().enumerate() {
            write!(f, ", %{number} = {parameter}")?;
        }
        Ok(())
    }
}

/// A filter that can be evaluated: announced, and checked against the topic's type.
#[derive(Clone, PartialEq, Debug)]
pub struct ContentFilter {
    property: ContentFilterProperty,
    signature: FilterSignature,
    filter: Filter,
}

impl ContentFilter {
    /// A local filter on the topic with this wire name.
    ///
    /// # Errors
    /// See [`Filter::new`].
    pub fn new(
        topic: &str,
        ty: &DynamicType,
        expression: &str,
        parameters: &[String],
    ) -> Result<Arc<Self>, FilterError> {
        Self::with_nesting_max(topic, ty, expression, parameters, NESTING_MAX)
    }

    /// As [`ContentFilter::new`], with another limit than [`NESTING_MAX`].
    ///
    /// # Errors
    /// See [`Filter::new`].
    pub fn with_nesting_max(
        topic: &str,
        ty: &DynamicType,
        expression: &str,
        parameters: &[String],
        nesting_max: usize,
    ) -> Result<Arc<Self>, FilterError> {
        let property = ContentFilterProperty::new(topic, expression, parameters);
        Self::checked(property, ty, nesting_max)
    }

    /// A peer's filter; `None` when it cannot be applied here.
    ///
    /// So for another class, another topic, no expression, an unsupported
    /// expression, or one that nests deeper than `nesting_max`. Such a reader gets
    /// everything and filters by itself.
    pub fn from_peer(
        property: &ContentFilterProperty,
        topic: &str,
        ty: &DynamicType,
        nesting_max: usize,
    ) -> Option<Arc<Self>> {
        let is_ours = property.class == FILTER_CLASS
            && property.related_topic == topic
            && !property.expression.trim().is_empty();
        if !is_ours {
            return None;
        }
        match Self::checked(property.clone(), ty, nesting_max) {
            Ok(filter) => Some(filter),
            Err(error) => {
                tracing::debug!(topic, %error, "the content filter of a reader is not applied by its writer");
                None
            }
        }
    }

    fn checked(
        property: ContentFilterProperty,
        ty: &DynamicType,
        nesting_max: usize,
    ) -> Result<Arc<Self>, FilterError> {
        let (expression, parameters) = (&property.expression, &property.parameters);
        let filter = Filter::with_nesting_max(ty, expression, parameters, nesting_max)?;
        Ok(Arc::new(Self {
            signature: property.signature(),
            property,
            filter,
        }))
    }

    /// The announced property.
    pub fn property(&self) -> &ContentFilterProperty {
        &self.property
    }

    /// The signature that identifies it beside a change.
    pub fn signature(&self) -> &FilterSignature {
        &self.signature
    }

    /// Whether a sample passes, encapsulation header included. A malformed sample
    /// passes: decoding it will report the error.
    pub fn passes(&self, payload: &[u8]) -> bool {
        self.filter.passes(payload).unwrap_or(true)
    }

    /// The same within a budget shared by several evaluations. `None` if it is
    /// malformed or the budget is spent.
    pub(crate) fn evaluate(&self, payload: &[u8], steps_left: &mut usize) -> Option<bool> {
        self.filter.passes_within(payload, steps_left).ok()
    }
}

/// The results of the readers' filters for one change.
#[derive(Clone, Debug)]
pub(crate) struct FilterOutcome {
    /// The value of PID_CONTENT_FILTER_INFO, sent with the change.
    pub results: Vec<u8>,
    /// The readers that reject it, sorted.
    pub rejected_by: Vec<Guid>,
}

/// The filters applied to one change, and their results.
#[derive(Debug)]
pub(crate) struct FilterResults {
    /// `None` without a result.
    evaluated: Vec<(FilterSignature, Option<bool>)>,
    /// The remaining cost of all filters. Without it each reader's filter would add
    /// some milliseconds to every write.
    steps_left: usize,
}

impl Default for FilterResults {
    fn default() -> Self {
        Self {
            evaluated: Vec::new(),
            steps_left: LIKE_STEPS_MAX,
        }
    }
}

/// Different filters that a writer applies and names beside a change, in half a
/// kilobyte; Fast DDS names as many. Readers with further filters filter by
/// themselves.
pub(crate) const FILTERS_MAX: usize = 32;

impl FilterResults {
    /// Whether `filter` lets `payload` pass. Equal filters are evaluated once. A
    /// filter without a result passes and is not named, so that the reader filters
    /// by itself.
    pub fn evaluate(&mut self, filter: &ContentFilter, payload: &[u8]) -> bool {
        let known = self.evaluated.iter().find(|(s, _)| *s == filter.signature);
        if let Some((_, result)) = known {
            return result.unwrap_or(true);
        }
        if self.evaluated.len() >= FILTERS_MAX {
            return true;
        }
        let result = filter.evaluate(payload, &mut self.steps_left);
        self.evaluated.push((filter.signature, result));
        result.unwrap_or(true)
    }

    /// ```text
    /// 0               4               8               12
    /// +---------------+---------------+---------------+---- - -
    /// | bitmaps: 1    | results       | signatures    | 16 bytes each …
    /// +---------------+---------------+---------------+---- - -
    /// ```
    /// ContentFilterInfo_t, little endian (RTPS 2.5 §9.6.4.1).
    pub fn to_bytes(&self) -> Vec<u8> {
        let named = || {
            let results = self.evaluated.iter();
            results.filter_map(|(signature, result)| Some((signature, (*result)?)))
        };
        let mut bitmap = 0;
        let mut count = 0_u32;
        for (at, (_, passes)) in named().enumerate() {
            bitmap |= if passes { result_mask(at) } else { 0 };
            count = count.saturating_add(1);
        }
        let mut out =
            Vec::with_capacity(self.evaluated.len().saturating_mul(16).saturating_add(12));
        for number in [1, bitmap, count] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        named().for_each(|(signature, _)| out.extend_from_slice(signature));
        out
    }
}

/// A filter's bit among the 32 of its bitmap.
fn result_mask(at: usize) -> u32 {
    0x8000_0000_u32 >> (at % 32)
}

/// The result for one filter in PID_CONTENT_FILTER_INFO; `None` if it is not named,
/// or the value is malformed.
pub(crate) fn filter_result_of(mut value: Cursor<'_>, signature: &FilterSignature) -> Option<bool> {
    let count = usize::try_from(value.u32().ok()?).ok()?;
    let mut bitmaps = value;
    value.bytes(count.checked_mul(4)?).ok()?;
    let named = value.u32().ok()?;
    // The available bytes end the loop, whatever the count.
    let at = (0..named).find_map(|at| match value.array::<16>() {
        Ok(found) if found == *signature => Some(Some(at)),
        Ok(_) => None,
        Err(_) => Some(None),
    })??;
    let at = usize::try_from(at).ok()?;
    if at / 32 >= count {
        return None;
    }
    bitmaps.bytes((at / 32).saturating_mul(4)).ok()?;
    Some(bitmaps.u32().ok()? & result_mask(at) != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use pteros_msg::describe::{
        Field, FieldType, IndividualTypeDescription, TypeDescription, type_id,
    };
    use pteros_msg::dynamic::DynamicMessage;

    #[test]
    fn filters_of_many_readers_share_one_cost_budget() {
        let field_type = FieldType {
            type_id: type_id::STRING,
            ..FieldType::default()
        };
        let fields = vec![Field {
            name: "data".into(),
            field_type,
            ..Field::default()
        }];
        let type_description = IndividualTypeDescription {
            type_name: "a/msg/A".into(),
            fields,
            ..Default::default()
        };
        let ty = DynamicType::new(&TypeDescription {
            type_description,
            referenced: vec![],
        });
        let ty = ty.unwrap();
        let mut message = DynamicMessage::new(&ty);
        message.set("data", "a".repeat(5_000)).unwrap();
        let payload = message.to_payload(Default::default());
        // A million steps each: it is tried again at every place.
        let costly = |last: char| {
            let expression = alloc::format!("data LIKE '%{}{last}'", "a".repeat(200));
            ContentFilter::new("t", &ty, &expression, &[]).unwrap()
        };
        let mut results = FilterResults::default();
        assert!(!results.evaluate(&costly('b'), &payload));
        assert!(!results.evaluate(&costly('c'), &payload));
        let unevaluated = costly('d');
        assert!(results.evaluate(&unevaluated, &payload) && !unevaluated.passes(&payload));
        assert_eq!(results.to_bytes().len(), 12 + 2 * 16);
    }
}
