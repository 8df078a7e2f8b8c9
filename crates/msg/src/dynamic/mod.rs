//! Messages whose type is known at run time only.
