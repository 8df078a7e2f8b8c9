//! Programs of hand-made C types: what introspection says of them, and CDR.

use std::ffi::c_void;
use std::ptr::null;

use super::*;
use crate::abi::{MessageMember, MessageMembers};

fn member(name: &'static CStr, type_id: u8, offset: usize) -> MessageMember {
    MessageMember {
        name: name.as_ptr(),
        type_id,
        string_upper_bound: 0,
        members: null(),
        is_key: false,
        is_array: false,
        array_size: 0,
        is_upper_bound: false,
        offset: u32::try_from(offset).unwrap(),
        default_value: null(),
        size_function: None,
        get_const_function: None,
        get_function: None,
        fetch_function: None,
        assign_function: None,
        resize_function: null(),
    }
}

fn members(name: &'static CStr, size_of: usize, list: &[MessageMember]) -> MessageMembers {
    MessageMembers {
        message_namespace: c"test__msg".as_ptr(),
        message_name: name.as_ptr(),
        member_count: u32::try_from(list.len()).unwrap(),
        size_of,
        has_any_key_member: false,
        members: list.as_ptr(),
        init_function: None,
        fini_function: None,
    }
}

/// Numbers of several widths, a boolean and a string.
#[repr(C)]
struct Mixed {
    small: u8,
    x: f64,
    y: f64,
    flag: u8,
    text: [usize; 3],
}

fn mixed_members() -> Vec<MessageMember> {
    use std::mem::offset_of;
    vec![
        member(c"small", 8, offset_of!(Mixed, small)),
        member(c"x", 2, offset_of!(Mixed, x)),
        member(c"y", 2, offset_of!(Mixed, y)),
        member(c"flag", 6, offset_of!(Mixed, flag)),
        member(c"text", 16, offset_of!(Mixed, text)),
    ]
}

fn pointer<T>(value: &mut T) -> *mut c_void {
    std::ptr::from_mut(value).cast()
}

#[test]
fn a_struct_survives_cdr_and_adjacent_numbers_are_one_copy() {
    let list = mixed_members();
    let members = members(c"Mixed", size_of::<Mixed>(), &list);
    // SAFETY: the members are those of `Mixed`.
    let (name, program) = unsafe {
        (
            members::dds_name(&members),
            Program::compile(&members, Language::C).unwrap(),
        )
    };
    assert_eq!(name, "test::msg::dds_::Mixed_");
    assert_eq!(program.ops.len(), 4, "x and y are one step");
    let mut text = *b"hi\0";
    let mut sent = Mixed {
        small: 7,
        x: 1.5,
        y: -2.0,
        flag: 1,
        text: [text.as_mut_ptr().expose_provenance(), 2, 3],
    };
    // SAFETY: an initialized struct of the type.
    let payload = unsafe {
        let len = program.serialized_len(pointer(&mut sent)).unwrap();
        let mut payload = vec![0xee; len];
        program.encode(pointer(&mut sent), &mut payload).unwrap();
        payload
    };
    let expected = [
        &[0, 1, 0, 0][..],
        &[7, 0, 0, 0, 0, 0, 0, 0],
        &1.5_f64.to_le_bytes(),
        &(-2.0_f64).to_le_bytes(),
        &[1, 0, 0, 0],
        &[3, 0, 0, 0],
        b"hi\0",
    ];
    assert_eq!(payload, expected.concat());
    let mut received = Mixed {
        small: 0,
        x: 0.0,
        y: 0.0,
        flag: 0,
        text: [0; 3],
    };
    // SAFETY: as above; a zeroed C string is empty.
    unsafe { program.decode(&payload, pointer(&mut received)) }.unwrap();
    assert_eq!(
        (received.small, received.x, received.y, received.flag),
        (7, 1.5, -2.0, 1)
    );
    // SAFETY: a string of two bytes that `decode` has allocated.
    let text: &[u8] =
        unsafe { strings::read(Language::C, std::ptr::from_ref(&received.text).cast()) }.unwrap();
    assert_eq!(text, b"hi");
}

#[test]
fn a_message_that_ends_early_or_lies_about_a_length_is_refused() {
    let list = mixed_members();
    let members = members(c"Mixed", size_of::<Mixed>(), &list);
    // SAFETY: the members are those of `Mixed`.
    let program = unsafe { Program::compile(&members, Language::C) }.unwrap();
    let good = [
        &[0, 1, 0, 0][..],
        &[0; 24],
        &[1, 0, 0, 0],
        &[3, 0, 0, 0],
        b"hi\0",
    ]
    .concat();
    let decode = |payload: &[u8]| {
        let mut received = Mixed {
            small: 0,
            x: 0.0,
            y: 0.0,
            flag: 0,
            text: [0; 3],
        };
        // SAFETY: an initialized struct of the type.
        unsafe { program.decode(payload, pointer(&mut received)) }
    };
    assert!(decode(&good).is_ok());
    for end in 0..good.len() {
        assert!(decode(&good[..end]).is_err(), "{end}");
    }
    let mut lie = good;
    lie[32..36].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(decode(&lie).unwrap_err().text.contains("bytes are left"));
}
