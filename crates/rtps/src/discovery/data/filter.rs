//! Content filter of a reader in its announcement: PID_CONTENT_FILTER_PROPERTY
//! (RTPS 2.5 §9.6.3.1, ContentFilterProperty_t).
//!
//! ```text
//! filtered topic, related topic, class, expression: strings
//! parameters: their count, then strings
//! ```

use alloc::string::String;
use alloc::vec::Vec;

use pteros_msg::filter::{EXPRESSION_BYTES_MAX, PARAMETERS_MAX, TEXT_BYTES_MAX};

use super::value::{put_string, put_u32, string_bytes};
use crate::content_filter::ContentFilterProperty;
use crate::wire::{Cursor, Parameter, begin_parameter, end_parameter, pid};

/// Reads the property. Returns `None` when it is malformed or exceeds a limit; the
/// reader then receives all samples and filters by itself.
pub(super) fn read_filter(
    parameter: Parameter<'_>,
    name_bytes: usize,
) -> Option<ContentFilterProperty> {
    let mut at = parameter.value;
    let filtered_topic = text(&mut at, name_bytes)?;
    let related_topic = text(&mut at, name_bytes)?;
    let class = text(&mut at, name_bytes)?;
    let expression = text(&mut at, EXPRESSION_BYTES_MAX)?;
    let count = usize::try_from(at.u32().ok()?).ok()?;
    if count > PARAMETERS_MAX {
        return None;
    }
    // The text with its quotes and some blanks.
    let mut parameter = || text(&mut at, TEXT_BYTES_MAX + 8);
    let parameters: Option<Vec<String>> = (0..count).map(|_| parameter()).collect();
    Some(ContentFilterProperty {
        filtered_topic,
        related_topic,
        class,
        expression,
        parameters: parameters?,
    })
}

fn text(at: &mut Cursor<'_>, bytes_max: usize) -> Option<String> {
    let bytes = string_bytes(at).ok()?;
    let text = core::str::from_utf8(bytes).ok()?;
    (text.len() <= bytes_max).then(|| text.into())
}

pub(super) fn write_filter(out: &mut Vec<u8>, filter: &ContentFilterProperty) {
    let at = begin_parameter(out, pid::CONTENT_FILTER_PROPERTY);
    for text in [
        &filter.filtered_topic,
        &filter.related_topic,
        &filter.class,
        &filter.expression,
    ] {
        put_string(out, text);
    }
    put_u32(
        out,
        u32::try_from(filter.parameters.len()).unwrap_or(u32::MAX),
    );
    filter
        .parameters
        .iter()
        .for_each(|text| put_string(out, text));
    end_parameter(out, at);
}
