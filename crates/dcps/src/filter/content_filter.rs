//! Content filter of a subscription as users set it (ContentFilteredTopic, DDS 1.4
//! §2.2.2.3.3). The protocol evaluates it.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::Debug;

use pteros_msg::describe::TypeDescription;
use pteros_msg::dynamic::DynamicType;
use pteros_msg::filter::FilterError;
use pteros_rtps::content_filter::{ContentFilter, ContentFilterProperty};
use thiserror::Error;

/// An endpoint's message type, as far as it is known. It is resolved only if a
/// filter needs it.
#[derive(Clone, Debug, Default)]
pub enum MessageType {
    /// Only its name: filtering is not possible.
    #[default]
    Unknown,
    /// A generated type.
    Described {
        /// Its description, built on first use.
        describe: fn() -> &'static TypeDescription,
        /// `Message::TYPE_INFORMATION`.
        announced: &'static [u8],
    },
    /// A type built at run time.
    Dynamic(DynamicType),
    /// A type that is built when a filter needs it. It is not announced.
    OnDemand(Arc<dyn BuildType>),
}

/// A source of a dynamic type ([`MessageType::OnDemand`]).
pub trait BuildType: Debug + Send + Sync {
    /// Builds the type; `None` if its description is not valid. Allocates.
    fn build(&self) -> Option<DynamicType>;
}

impl MessageType {
    /// Builds the type; `None` if it is unknown. Allocates.
    pub fn resolve(&self) -> Option<DynamicType> {
        match self {
            Self::Unknown => None,
            Self::Described { describe, .. } => DynamicType::new(describe()).ok(),
            Self::Dynamic(ty) => Some(ty.clone()),
            Self::OnDemand(source) => source.build(),
        }
    }
}

/// The content filter of a subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterSpec {
    /// The expression in the SQL subset of DDS 1.4 Annex B.
    pub expression: String,
    /// The values of `%0`, `%1` …: literals, with strings in quotes.
    pub parameters: Vec<String>,
}

impl From<&ContentFilterProperty> for FilterSpec {
    fn from(property: &ContentFilterProperty) -> Self {
        Self {
            expression: property.expression.clone(),
            parameters: property.parameters.clone(),
        }
    }
}

impl FilterSpec {
    /// Compiles the filter for messages of type `ty` on `topic`. A blank expression
    /// means no filter; then `ty` is not called. Parentheses and `NOT` may nest
    /// `nesting_max` deep.
    ///
    /// # Errors
    /// See [`ContentFilterError`].
    pub fn build<'t>(
        &self,
        topic: &str,
        ty: impl FnOnce() -> Option<&'t DynamicType>,
        nesting_max: usize,
    ) -> Result<Option<Arc<ContentFilter>>, ContentFilterError> {
        if self.expression.trim().is_empty() {
            return Ok(None);
        }
        let ty = ty().ok_or(ContentFilterError::UnknownType)?;
        ContentFilter::with_nesting_max(topic, ty, &self.expression, &self.parameters, nesting_max)
            .map(Some)
            .map_err(ContentFilterError::Invalid)
    }
}

/// Why a content filter cannot be applied.
#[derive(Clone, Error, PartialEq, Eq)]
pub enum ContentFilterError {
    /// The filter is invalid or does not fit the type.
    #[error(transparent)]
    Invalid(FilterError),
    /// Only the name of the type is known.
    #[error(
        "a content filter needs the message type, and only its name is known; subscribe \
         with a generated or dynamic type, or filter the bytes in the application"
    )]
    UnknownType,
}

pteros_msg::debug_as_display!(ContentFilterError);
