//! Tests of the encoder and decoder together.
