//! Parameters of a node. Values, types and checks are the client library's.

use std::ffi::{CString, c_char, c_int, c_void};

use pteros::parameter::{Parameter, ParameterCallbackHandle, ParameterType, ParameterValue};
use pteros_typesupport::Language;

use crate::argument::{array, c_text, null, optional_text, output, put, required, text};
use crate::callback::{FreeUser, UserData};
use crate::error::{self, Error, Outcome, Status};
use crate::node::PterosNode;

/// `pteros_parameter_value_t`.
#[repr(C)]
pub struct CValue {
    /// Numbers of `rcl_interfaces/msg/ParameterType`.
    value_type: c_int,
    /// Uninitialized where another field counts.
    bool_value: u8,
    integer_value: i64,
    double_value: f64,
    string_value: *const c_char,
    /// Elements of an array: bool, i64, f64, u8 or C strings.
    array_value: *const c_void,
    array_size: usize,
}

// `tests/programs/services.c` has the same numbers.
#[cfg(target_pointer_width = "64")]
const _: () = assert!(
    size_of::<CValue>() == 48
        && std::mem::offset_of!(CValue, bool_value) == 4
        && std::mem::offset_of!(CValue, integer_value) == 8
        && std::mem::offset_of!(CValue, string_value) == 24
        && std::mem::offset_of!(CValue, array_size) == 40
);

impl CValue {
    fn elements<T: Copy>(&self) -> Outcome<Vec<T>> {
        let first: *const T = self.array_value.cast();
        Ok(array(first, self.array_size, "value->array_value")?.to_vec())
    }

    fn parameter_type(&self) -> Outcome<ParameterType> {
        let number = u8::try_from(self.value_type).ok();
        number.and_then(ParameterType::from_number).ok_or_else(|| {
            Error::argument(format!(
                "value->value_type is {}; use one of PTEROS_PARAMETER_...",
                self.value_type
            ))
        })
    }

    fn value(&self) -> Outcome<ParameterValue> {
        let string = |pointer, what| text(pointer, what).map(String::from);
        Ok(match self.parameter_type()? {
            ParameterType::NotSet => ParameterValue::NotSet,
            ParameterType::Bool => ParameterValue::Bool(self.bool_value != 0),
            ParameterType::Integer => ParameterValue::Integer(self.integer_value),
            ParameterType::Double => ParameterValue::Double(self.double_value),
            ParameterType::String => {
                ParameterValue::String(string(self.string_value, "value->string_value")?)
            }
            ParameterType::ByteArray => ParameterValue::ByteArray(self.elements()?),
            ParameterType::BoolArray => {
                let bytes: Vec<u8> = self.elements()?;
                ParameterValue::BoolArray(bytes.into_iter().map(|byte| byte != 0).collect())
            }
            ParameterType::IntegerArray => ParameterValue::IntegerArray(self.elements()?),
            ParameterType::DoubleArray => ParameterValue::DoubleArray(self.elements()?),
            ParameterType::StringArray => {
                let texts: Vec<*const c_char> = self.elements()?;
                let texts = texts
                    .into_iter()
                    .map(|one| string(one, "a string of value"));
                ParameterValue::StringArray(texts.collect::<Outcome<_>>()?)
            }
        })
    }
}

/// A value as C sees it, with the memory of its strings.
struct View {
    value: CValue,
    _texts: Vec<CString>,
    _pointers: Vec<*const c_char>,
}

impl View {
    /// The view is valid while `value` and it exist.
    fn of(value: &ParameterValue) -> Self {
        let mut view = Self {
            value: CValue {
                value_type: value.parameter_type() as c_int,
                bool_value: 0,
                integer_value: 0,
                double_value: 0.0,
                string_value: std::ptr::null(),
                array_value: std::ptr::null(),
                array_size: 0,
            },
            _texts: Vec::new(),
            _pointers: Vec::new(),
        };
        match value {
            ParameterValue::NotSet => {}
            ParameterValue::Bool(value) => view.value.bool_value = u8::from(*value),
            ParameterValue::Integer(value) => view.value.integer_value = *value,
            ParameterValue::Double(value) => view.value.double_value = *value,
            ParameterValue::String(value) => {
                view._texts.push(c_text(value));
                view.value.string_value = view._texts[0].as_ptr();
            }
            ParameterValue::ByteArray(values) => view.set(values),
            ParameterValue::BoolArray(values) => view.set(values),
            ParameterValue::IntegerArray(values) => view.set(values),
            ParameterValue::DoubleArray(values) => view.set(values),
            ParameterValue::StringArray(values) => {
                view._texts = values.iter().map(|text| c_text(text)).collect();
                view._pointers = view._texts.iter().map(|text| text.as_ptr()).collect();
                view.value.array_value = view._pointers.as_ptr().cast();
                view.value.array_size = values.len();
            }
        }
        view
    }

    fn set<T>(&mut self, values: &[T]) {
        self.value.array_value = values.as_ptr().cast();
        self.value.array_size = values.len();
    }
}

/// `pteros_parameter_callbacks_t`: keeps a callback registered.
pub struct PterosParameterCallback(#[expect(dead_code, reason = "held")] ParameterCallbackHandle);

/// `pteros_set_parameter_callback_t`. Returns null, or the reason for a refusal.
type SetCallback = Option<
    extern "C" fn(name: *const c_char, value: *const CValue, user: *mut c_void) -> *const c_char,
>;

/// `pteros_parameter_visitor_t`.
type ValueVisitor =
    Option<extern "C" fn(name: *const c_char, value: *const CValue, user: *mut c_void)>;

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_node_declare_parameter(
    node: Option<&PterosNode>,
    name: *const c_char,
    default: Option<&CValue>,
) -> Status {
    error::run("pteros_node_declare_parameter", || {
        let node = &required(node, "node")?.node;
        let name = text(name, "name")?;
        match required(default, "value")?.value()? {
            // A value of no type declares a parameter of any type.
            value @ ParameterValue::NotSet => node.declare_parameter(name, value).map(drop),
            ParameterValue::Bool(value) => node.declare_parameter(name, value).map(drop),
            ParameterValue::Integer(value) => node.declare_parameter(name, value).map(drop),
            ParameterValue::Double(value) => node.declare_parameter(name, value).map(drop),
            ParameterValue::String(value) => node.declare_parameter(name, value).map(drop),
            ParameterValue::ByteArray(value) => node.declare_parameter(name, value).map(drop),
            ParameterValue::BoolArray(value) => node.declare_parameter(name, value).map(drop),
            ParameterValue::IntegerArray(value) => node.declare_parameter(name, value).map(drop),
            ParameterValue::DoubleArray(value) => node.declare_parameter(name, value).map(drop),
            ParameterValue::StringArray(value) => node.declare_parameter(name, value).map(drop),
        }?;
        Ok(())
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_node_set_parameter(
    node: Option<&PterosNode>,
    name: *const c_char,
    value: Option<&CValue>,
) -> Status {
    error::run("pteros_node_set_parameter", || {
        let node = &required(node, "node")?.node;
        let value = required(value, "value")?.value()?;
        node.set_parameter(text(name, "name")?, value)
            .map_err(|failure| Error::new(Status::Rejected, failure))
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_node_has_parameter(
    node: Option<&PterosNode>,
    name: *const c_char,
) -> bool {
    error::value("pteros_node_has_parameter", false, || {
        let node = &required(node, "node")?.node;
        Ok(node.has_parameter(text(name, "name")?))
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_node_visit_parameters(
    node: Option<&PterosNode>,
    prefix: *const c_char,
    visitor: ValueVisitor,
    user: *mut c_void,
) -> Status {
    error::run("pteros_node_visit_parameters", || {
        let node = &required(node, "node")?.node;
        let visitor = visitor.ok_or_else(|| null("visitor"))?;
        let prefix = optional_text(prefix, "prefix")?.unwrap_or("");
        for name in node.parameter_names(prefix) {
            let value = node.parameter(&name)?;
            let view = View::of(&value);
            visitor(c_text(&name).as_ptr(), &raw const view.value, user);
        }
        Ok(())
    })
}

/// The value of a parameter, if `wanted` takes it.
fn read<T>(
    node: Option<&PterosNode>,
    name: *const c_char,
    wanted: &str,
    take: impl FnOnce(ParameterValue) -> Result<T, ParameterValue>,
) -> Outcome<T> {
    let node = &required(node, "node")?.node;
    let name = text(name, "name")?;
    take(node.parameter(name)?).map_err(|other| {
        Error::argument(format!(
            "parameter {name:?} of {:?} is {:?}, not {wanted}; read it by its type",
            node.fully_qualified_name(),
            other.parameter_type()
        ))
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_node_get_bool(
    node: Option<&PterosNode>,
    name: *const c_char,
    value: *mut bool,
) -> Status {
    error::run("pteros_node_get_bool", || {
        let found = read(node, name, "a bool", |value| match value {
            ParameterValue::Bool(value) => Ok(value),
            other => Err(other),
        })?;
        put(value, found, "value")
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_node_get_integer(
    node: Option<&PterosNode>,
    name: *const c_char,
    value: Option<&mut i64>,
) -> Status {
    error::run("pteros_node_get_integer", || {
        *output(value, "value")? = read(node, name, "an integer", |value| match value {
            ParameterValue::Integer(value) => Ok(value),
            other => Err(other),
        })?;
        Ok(())
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_node_get_double(
    node: Option<&PterosNode>,
    name: *const c_char,
    value: Option<&mut f64>,
) -> Status {
    error::run("pteros_node_get_double", || {
        *output(value, "value")? = read(node, name, "a double", |value| match value {
            ParameterValue::Double(value) => Ok(value),
            other => Err(other),
        })?;
        Ok(())
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_node_get_string(
    node: Option<&PterosNode>,
    name: *const c_char,
    value: *mut c_void,
) -> Status {
    error::run("pteros_node_get_string", || {
        if value.is_null() {
            return Err(null("value"));
        }
        let found = read(node, name, "a string", |value| match value {
            ParameterValue::String(value) => Ok(value),
            other => Err(other),
        })?;
        // SAFETY: the contract of C (lib.rs).
        unsafe { pteros_typesupport::write_string(Language::C, value, found.as_bytes()) }?;
        Ok(())
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_parameter_callback_new(
    node: Option<&PterosNode>,
    callback: SetCallback,
    user: *mut c_void,
    free_user: FreeUser,
) -> Option<Box<PterosParameterCallback>> {
    let user = UserData::new(user, free_user);
    error::create("pteros_parameter_callback_new", || {
        let node = &required(node, "node")?.node;
        let callback = callback.ok_or_else(|| null("callback"))?;
        let check = move |parameters: &[Parameter]| {
            for Parameter { name, value } in parameters {
                let (name, view) = (c_text(name), View::of(value));
                let reason = callback(name.as_ptr(), &raw const view.value, user.pointer());
                match optional_text(reason, "reason") {
                    Ok(None) => {}
                    Ok(Some(reason)) => return Err(reason.into()),
                    Err(failure) => return Err(failure.text().into()),
                }
            }
            Ok(())
        };
        Ok(PterosParameterCallback(
            node.add_on_set_parameters_callback(check),
        ))
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_parameter_callback_free(callback: Option<Box<PterosParameterCallback>>) {
    error::free("pteros_parameter_callback_free", callback);
}
