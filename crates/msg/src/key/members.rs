//! Keys of members: a key member that is a structure contributes its own key alone
//! (XTypes 1.3 §7.6.8).

use alloc::vec::Vec;

use crate::cdr::{DecodeError, Decoder, Encoder};
use crate::message::Message;

impl Decoder<'_> {
    /// The keys of `pkg/Message[N]`.
    pub fn key_array<T: Message, const N: usize>(&mut self) -> Result<[T; N], DecodeError> {
        self.array_with(T::decode_key)
    }

    /// The keys of `pkg/Message[]` or `pkg/Message[<=bound]`.
    pub fn key_sequence<T: Message>(&mut self, bound: usize) -> Result<Vec<T>, DecodeError> {
        self.sequence_with(1, bound, T::decode_key)
    }
}

impl Encoder<'_> {
    /// The keys of `pkg/Message[N]`.
    pub fn key_array<T: Message>(&mut self, values: &[T]) {
        let scope = self.begin_collection();
        values.iter().for_each(|value| value.encode_key(self));
        self.end_collection(scope);
    }

    /// The keys of `pkg/Message[]`.
    pub fn key_sequence<T: Message>(&mut self, values: &[T]) {
        let scope = self.begin_collection();
        self.sequence_len(values.len());
        values.iter().for_each(|value| value.encode_key(self));
        self.end_collection(scope);
    }
}
