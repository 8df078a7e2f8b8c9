//! Content filters of subscriptions: conversion to and from rmw's options.

use pteros_runtime::content_filter::FilterSpec;

use crate::abi::{Allocator, ContentFilterOptions, Ret, StringArray, Subscription};
use crate::error::{Failure, Outcome, non_null, non_null_mut, run, text};
use crate::subscription;

impl ContentFilterOptions {
    /// The filter in the options. A blank expression removes a filter.
    ///
    /// # Safety
    /// Initialized options.
    pub(crate) unsafe fn spec(&self) -> Outcome<FilterSpec> {
        // SAFETY: as for this function.
        let expression = unsafe { text(self.filter_expression, "filter_expression") }?;
        let parameters = &self.expression_parameters;
        let mut values = Vec::with_capacity(parameters.size);
        for at in 0..parameters.size {
            // SAFETY: so many strings.
            let value = unsafe {
                non_null(parameters.data, "expression_parameters")?;
                text(*parameters.data.add(at), "expression_parameters")?
            };
            values.push(value.to_owned());
        }
        Ok(FilterSpec {
            expression: expression.to_owned(),
            parameters: values,
        })
    }

    /// Writes a filter into options of the user, with memory of `allocator`.
    ///
    /// # Safety
    /// `options` has space for options, which need not be initialized.
    unsafe fn write(options: *mut Self, spec: &FilterSpec, allocator: &Allocator) -> Outcome {
        let mut expression_parameters = StringArray::ZERO;
        let filter_expression = allocator.string(&spec.expression)?;
        if !spec.parameters.is_empty() {
            let parameters = spec.parameters.iter().map(String::as_str);
            if let Err(failure) = expression_parameters.fill(allocator, parameters) {
                // SAFETY: allocated above.
                unsafe { allocator.free(filter_expression) };
                return Err(failure);
            }
        }
        // SAFETY: as for this function.
        unsafe {
            options.write(Self {
                filter_expression,
                expression_parameters,
            });
        }
        Ok(())
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_subscription_set_content_filter(
    subscription: *mut Subscription,
    options: *const ContentFilterOptions,
) -> Ret {
    run("rmw_subscription_set_content_filter", || {
        // SAFETY: by contract of rmw.
        unsafe {
            let state = subscription::state(subscription)?;
            let spec = non_null(options, "options")?.spec()?;
            state.set_content_filter(&spec)?;
            let handle = non_null_mut(subscription, "subscription")?;
            handle.is_cft_enabled = state.content_filter().is_some();
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_subscription_get_content_filter(
    subscription: *const Subscription,
    allocator: *const Allocator,
    options: *mut ContentFilterOptions,
) -> Ret {
    run("rmw_subscription_get_content_filter", || {
        // SAFETY: by contract of rmw.
        unsafe {
            let state = subscription::state(subscription)?;
            let allocator = non_null(allocator, "allocator")?;
            allocator.check()?;
            if options.is_null() {
                return Err(Failure::argument("argument options is null"));
            }
            state.check_optional_features()?;
            let spec = state
                .content_filter()
                .ok_or_else(|| Failure::error("the subscription has no content filter"))?;
            ContentFilterOptions::write(options, &spec, allocator)
        }
    })
}
