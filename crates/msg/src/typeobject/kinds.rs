//! The numbers of XTypes 1.3 §7.3.4 and Annex B.
#![allow(missing_docs, reason = "the names are those of the specification")]

pub(super) const EK_MINIMAL: u8 = 0xf1;
pub(super) const EK_COMPLETE: u8 = 0xf2;
pub(super) const EK_BOTH: u8 = 0xf3;

pub(super) const TK_NONE: u8 = 0x00;
pub(super) const TK_BOOLEAN: u8 = 0x01;
pub(super) const TK_BYTE: u8 = 0x02;
pub(super) const TK_INT16: u8 = 0x03;
pub(super) const TK_INT32: u8 = 0x04;
pub(super) const TK_INT64: u8 = 0x05;
pub(super) const TK_UINT16: u8 = 0x06;
pub(super) const TK_UINT32: u8 = 0x07;
pub(super) const TK_UINT64: u8 = 0x08;
pub(super) const TK_FLOAT32: u8 = 0x09;
pub(super) const TK_FLOAT64: u8 = 0x0a;
pub(super) const TK_FLOAT128: u8 = 0x0b;
pub(super) const TK_INT8: u8 = 0x0c;
pub(super) const TK_UINT8: u8 = 0x0d;
pub(super) const TK_CHAR8: u8 = 0x10;
pub(super) const TK_CHAR16: u8 = 0x11;
pub(super) const TK_ALIAS: u8 = 0x30;
pub(super) const TK_ENUM: u8 = 0x40;
pub(super) const TK_STRUCTURE: u8 = 0x51;

pub(super) const TI_STRING8_SMALL: u8 = 0x70;
pub(super) const TI_STRING8_LARGE: u8 = 0x71;
pub(super) const TI_STRING16_SMALL: u8 = 0x72;
pub(super) const TI_STRING16_LARGE: u8 = 0x73;
pub(super) const TI_PLAIN_SEQUENCE_SMALL: u8 = 0x80;
pub(super) const TI_PLAIN_SEQUENCE_LARGE: u8 = 0x81;
pub(super) const TI_PLAIN_ARRAY_SMALL: u8 = 0x90;
pub(super) const TI_PLAIN_ARRAY_LARGE: u8 = 0x91;

/// Type flags.
pub(super) const IS_FINAL: u16 = 1 << 0;
pub(super) const IS_APPENDABLE: u16 = 1 << 1;
pub(super) const IS_MUTABLE: u16 = 1 << 2;

/// Member flags. TRY_CONSTRUCT1 alone: values that cannot be decoded are discarded.
pub(super) const TRY_CONSTRUCT1: u16 = 1 << 0;
pub(super) const IS_OPTIONAL: u16 = 1 << 3;
pub(super) const IS_KEY: u16 = 1 << 5;
