//! Interface types: the definitions that are known, and their Python classes, made when
//! they are first used.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use pteros_msg::dynamic::DynamicType;
use pteros_msg::hash::TypeHash;
use pteros_msg::library::split_full_name;
use pteros_msg::schema::{BaseType, InterfaceKind, Literal, Shape, StructSpec};
use pyo3::exceptions::{PyLookupError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyType};

use crate::definitions::{library, library_with, library_with_used, package_of};
use crate::program::Program;

/// The attribute of a class that names its type.
const TYPE_NAME: &str = "_pteros_type_name";

/// Programs and classes by full name. The lock is never held while Python code runs.
#[derive(Default)]
struct Registry {
    programs: HashMap<String, Arc<Program>>,
    outer: HashMap<String, Py<PyType>>,
}

fn registry() -> &'static Mutex<Registry> {
    static REGISTRY: OnceLock<Mutex<Registry>> = OnceLock::new();
    REGISTRY.get_or_init(Mutex::default)
}

fn unknown(error: impl std::fmt::Display) -> PyErr {
    PyLookupError::new_err(error.to_string())
}

/// The compiled type of a message, or of a part of a service or action.
///
/// # Errors
/// LookupError: there is no such type.
pub(crate) fn program(py: Python<'_>, name: &str) -> PyResult<Arc<Program>> {
    if let Some(known) = registry().lock().programs.get(name) {
        return Ok(known.clone());
    }
    let mut library = library_with(py, package_of(name))?;
    let description = match library.describe(name) {
        Ok(description) => description,
        Err(_) => {
            library = library_with_used(py, package_of(name))?;
            library.describe(name).map_err(unknown)?
        }
    };
    let ty =
        DynamicType::new(&description).map_err(|error| PyValueError::new_err(error.to_string()))?;
    let spec = library.structure(name).map_err(unknown)?;
    let class = message_class(py, name, &spec)?;
    let program = Arc::new(Program::compile(py, name, ty, class)?);
    let mut registry = registry().lock();
    // Another thread may have been quicker: there is one class per type.
    Ok(registry
        .programs
        .entry(name.into())
        .or_insert(program)
        .clone())
}

/// The program of a message class.
///
/// # Errors
/// TypeError: it is none.
pub(crate) fn program_of(class: &Bound<'_, PyAny>) -> PyResult<Arc<Program>> {
    let name = type_name(class)?;
    let py = class.py();
    let is_outer = split_full_name(&name)
        .is_some_and(|(_, kind, short)| kind != InterfaceKind::Message && !is_part(kind, short));
    if is_outer {
        return Err(PyTypeError::new_err(format!(
            "{name} is not a message type; use one of its parts"
        )));
    }
    program(py, &name)
}

/// Whether the name of a service or action is that of one of its messages.
fn is_part(kind: InterfaceKind, name: &str) -> bool {
    let suffixes: &[&str] = match kind {
        InterfaceKind::Message => return true,
        InterfaceKind::Service => &["_Request", "_Response", "_Event"],
        InterfaceKind::Action => &[
            "_Goal",
            "_Result",
            "_Feedback",
            "_FeedbackMessage",
            "_Request",
            "_Response",
            "_Event",
        ],
    };
    suffixes.iter().any(|suffix| name.ends_with(suffix))
}

/// The full name of the type of a class.
///
/// # Errors
/// TypeError: it is no class of an interface.
pub(crate) fn type_name(class: &Bound<'_, PyAny>) -> PyResult<String> {
    let found = class
        .cast::<PyType>()
        .ok()
        .and_then(|class| class.getattr(TYPE_NAME).ok())
        .and_then(|name| name.extract::<String>().ok());
    found.ok_or_else(|| {
        PyTypeError::new_err(format!(
            "{} is no interface type; pass a class such as std_msgs.msg.String",
            class
                .repr()
                .map_or_else(|_| "it".into(), |text| text.to_string())
        ))
    })
}

/// The hash of a type.
pub(crate) fn type_hash(name: &str) -> PyResult<TypeHash> {
    library().type_hash(name).map_err(unknown)
}

fn message_class<'py>(
    py: Python<'py>,
    name: &str,
    spec: &StructSpec,
) -> PyResult<Bound<'py, PyType>> {
    let (package, kind, short) = split_full_name(name).ok_or_else(|| unknown(name))?;
    let mut fields = Vec::new();
    for field in &spec.fields {
        let nested = match nested_name(&field.ty.base) {
            Some(nested) => Some(program(py, &nested)?.class.clone_ref(py)),
            None => None,
        };
        let (shape, count) = match field.ty.shape {
            Shape::Single => ("single", 0),
            Shape::Array(count) => ("array", count),
            Shape::Bounded(bound) => ("bounded", bound),
            Shape::Unbounded => ("unbounded", 0),
        };
        let bound = match field.ty.base {
            BaseType::String(bound) | BaseType::WString(bound) => bound,
            _ => None,
        };
        let default = match &field.default {
            Some(literal) => literal_object(py, &field.ty.base, literal)?,
            None => py.None().into_bound(py),
        };
        fields.push((
            &field.name,
            base_word(&field.ty.base),
            shape,
            count,
            bound,
            nested,
            default,
        ));
    }
    let mut constants = Vec::new();
    for constant in &spec.constants {
        constants.push((
            &constant.name,
            literal_object(py, &constant.ty, &constant.value)?,
        ));
    }
    let made = py.import("pteros._message")?.call_method1(
        "make_message_class",
        (name, package, kind.word(), short, fields, constants),
    )?;
    Ok(made.cast_into::<PyType>()?)
}

/// The full name of a nested type. Derived structures name their siblings with the kind
/// in the package.
fn nested_name(base: &BaseType) -> Option<String> {
    match base {
        BaseType::Nested { package, name } if package.contains('/') => {
            Some(format!("{package}/{name}"))
        }
        other => other.nested_name(),
    }
}

fn base_word(base: &BaseType) -> String {
    match base {
        BaseType::String(_) => "string".into(),
        BaseType::WString(_) => "wstring".into(),
        BaseType::Nested { package, name } => format!("{package}/{name}"),
        other => other.to_string(),
    }
}

fn literal_object<'py>(
    py: Python<'py>,
    base: &BaseType,
    literal: &Literal,
) -> PyResult<Bound<'py, PyAny>> {
    Ok(match literal {
        Literal::Bool(value) => value.into_pyobject(py)?.to_owned().into_any(),
        Literal::Int(value) if *base == BaseType::Byte => {
            PyBytes::new(py, &[u8::try_from(*value & 0xFF).unwrap_or(0)]).into_any()
        }
        Literal::Int(value) => match i64::try_from(*value) {
            Ok(value) => value.into_pyobject(py)?.into_any(),
            Err(_) => u64::try_from(*value)
                .unwrap_or(u64::MAX)
                .into_pyobject(py)?
                .into_any(),
        },
        Literal::Float(value) => value.into_pyobject(py)?.into_any(),
        Literal::Text(text) => text.into_pyobject(py)?.into_any(),
        Literal::List(items) => {
            let items: PyResult<Vec<_>> = items
                .iter()
                .map(|item| literal_object(py, base, item))
                .collect();
            PyList::new(py, items?)?.into_any()
        }
    })
}

/// The class of a service or action, which cannot be instantiated.
fn outer_class(py: Python<'_>, name: &str) -> PyResult<Py<PyType>> {
    if let Some(known) = registry().lock().outer.get(name) {
        return Ok(known.clone_ref(py));
    }
    let (package, kind, short) = split_full_name(name).ok_or_else(|| unknown(name))?;
    let part = |suffix: &str| -> PyResult<Py<PyType>> {
        Ok(program(py, &format!("{name}{suffix}"))?.class.clone_ref(py))
    };
    let module = py.import("pteros._message")?;
    let made = match kind {
        InterfaceKind::Action if !is_service_of_action(short) => {
            let parts = (
                part("_Goal")?,
                part("_Result")?,
                part("_Feedback")?,
                outer_class(py, &format!("{name}_SendGoal"))?,
                outer_class(py, &format!("{name}_GetResult"))?,
                part("_FeedbackMessage")?,
                outer_class(py, "action_msgs/srv/CancelGoal")?,
                program(py, "action_msgs/msg/GoalStatusArray")?
                    .class
                    .clone_ref(py),
            );
            module.call_method1("make_action_class", (name, package, short, parts))?
        }
        _ => {
            let parts = (part("_Request")?, part("_Response")?, part("_Event")?);
            module.call_method1(
                "make_service_class",
                (name, package, kind.word(), short, parts),
            )?
        }
    };
    let class = made.cast_into::<PyType>()?.unbind();
    let mut registry = registry().lock();
    Ok(registry
        .outer
        .entry(name.into())
        .or_insert(class)
        .clone_ref(py))
}

/// Whether a name of an action's package names one of the two services of an action.
fn is_service_of_action(short: &str) -> bool {
    short.ends_with("_SendGoal") || short.ends_with("_GetResult")
}

/// The programs of a service's request, response and event.
pub(crate) struct ServiceType {
    pub(crate) name: String,
    pub(crate) request: Arc<Program>,
    pub(crate) response: Arc<Program>,
    pub(crate) event: Arc<Program>,
}

impl ServiceType {
    /// # Errors
    /// TypeError: the class is none of a service.
    pub(crate) fn of(class: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = class.py();
        if !is_service_class(class) {
            return Err(PyTypeError::new_err(format!(
                "{} is no service type; pass a class such as std_srvs.srv.Trigger",
                class.repr()?
            )));
        }
        let name = type_name(class)?;
        Ok(Self {
            request: program(py, &format!("{name}_Request"))?,
            response: program(py, &format!("{name}_Response"))?,
            event: program(py, &format!("{name}_Event"))?,
            name,
        })
    }
}

/// The class of a type name.
#[pyfunction]
fn get_message_class(py: Python<'_>, type_name: &str) -> PyResult<Py<PyType>> {
    let library = library_with(py, package_of(type_name))?;
    let full = match split_full_name(type_name) {
        Some(_) => type_name.to_owned(),
        None => library
            .full_name(type_name)
            .unwrap_or_else(|| type_name.into()),
    };
    match split_full_name(&full) {
        Some((_, InterfaceKind::Message, _)) | None => Ok(program(py, &full)?.class.clone_ref(py)),
        Some((_, kind, short)) if is_part(kind, short) => {
            Ok(program(py, &full)?.class.clone_ref(py))
        }
        Some(_) => {
            // Names the near ones if there is none.
            library.structure(&full).map_err(unknown)?;
            outer_class(py, &full)
        }
    }
}

/// The full name of a class.
#[pyfunction]
fn get_type_name(cls: &Bound<'_, PyAny>) -> PyResult<String> {
    type_name(cls)
}

/// The RIHS01 hash of a class.
#[pyfunction]
fn get_type_hash(cls: &Bound<'_, PyAny>) -> PyResult<String> {
    Ok(type_hash(&type_name(cls)?)?.to_string())
}

/// The packages that have interfaces: those of the wheel, and those that were loaded.
#[pyfunction]
fn get_interface_packages() -> Vec<String> {
    library().packages().into_iter().map(Into::into).collect()
}

/// The interfaces of a package.
#[pyfunction]
fn get_interfaces(py: Python<'_>, package: &str) -> PyResult<Vec<String>> {
    let library = library_with(py, package)?;
    let names = library.names();
    let found: Vec<String> = names
        .filter_map(|name| {
            let (of, rest) = name.split_once('/')?;
            (of == package).then(|| rest.to_owned())
        })
        .collect();
    if found.is_empty() {
        return Err(unknown(format!(
            "there is no interface package {package:?}; name the folder that holds it in PTEROS_INTERFACE_PATH, or source its workspace"
        )));
    }
    Ok(found)
}

/// The text of a definition.
#[pyfunction]
fn get_interface_definition(py: Python<'_>, type_name: &str) -> PyResult<String> {
    match library_with(py, package_of(type_name))?.text(type_name) {
        Some(text) => Ok(text.into()),
        None => Err(unknown(format!("there is no interface {type_name:?}"))),
    }
}

/// Whether it is the class of a message, or of a part of a service or action.
#[pyfunction]
fn is_message_class(cls: &Bound<'_, PyAny>) -> bool {
    named_kind(cls)
        .is_some_and(|(kind, short)| kind == InterfaceKind::Message || is_part(kind, &short))
}

/// Whether it is the class of a service, also of those of an action.
#[pyfunction]
fn is_service_class(cls: &Bound<'_, PyAny>) -> bool {
    named_kind(cls).is_some_and(|(kind, short)| match kind {
        InterfaceKind::Message => false,
        InterfaceKind::Service => !is_part(kind, &short),
        InterfaceKind::Action => is_service_of_action(&short),
    })
}

/// Whether it is the class of an action.
#[pyfunction]
fn is_action_class(cls: &Bound<'_, PyAny>) -> bool {
    named_kind(cls).is_some_and(|(kind, short)| {
        kind == InterfaceKind::Action && !is_part(kind, &short) && !is_service_of_action(&short)
    })
}

fn named_kind(cls: &Bound<'_, PyAny>) -> Option<(InterfaceKind, String)> {
    let name = type_name(cls).ok()?;
    let (_, kind, short) = split_full_name(&name)?;
    Some((kind, short.into()))
}

/// CDR with its header.
#[pyfunction]
fn serialize_message<'py>(message: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    let program = program_of(message.get_type().as_any())?;
    let payload = program.encode(message)?;
    Ok(PyBytes::new(message.py(), &payload))
}

/// A message of CDR with its header.
#[pyfunction]
fn deserialize_message<'py>(
    payload: &Bound<'py, PyAny>,
    cls: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let program = program_of(cls)?;
    let buffer = crate::ffi::Buffer::read(payload)?;
    program.decode(payload.py(), buffer.bytes())
}

/// A filled `GetTypeDescription.Response` for a type of the standard definitions.
#[pyfunction]
fn get_type_description<'py>(
    py: Python<'py>,
    _node: &Bound<'py, PyAny>,
    type_name: &str,
    type_hash: &str,
    include_sources: bool,
) -> PyResult<Bound<'py, PyAny>> {
    use pteros_interfaces::type_description_interfaces::srv::GetTypeDescriptionRequest;
    let asked = GetTypeDescriptionRequest {
        type_name: type_name.to_owned(),
        type_hash: type_hash.to_owned(),
        include_type_sources: include_sources,
    };
    let answer = pteros_rcl::type_description::answer(&asked, |hash| {
        let description = library().describe(type_name).ok()?;
        (pteros_msg::hash::rihs01(&description) == *hash).then_some((description, None))
    });
    let payload = pteros_msg::to_payload(&answer, pteros_msg::Representation::Xcdr1);
    program(
        py,
        "type_description_interfaces/srv/GetTypeDescription_Response",
    )?
    .decode(py, &payload)
}

/// Adds the functions to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(get_message_class, module)?)?;
    module.add_function(wrap_pyfunction!(get_type_name, module)?)?;
    module.add_function(wrap_pyfunction!(get_type_hash, module)?)?;
    module.add_function(wrap_pyfunction!(get_interface_packages, module)?)?;
    module.add_function(wrap_pyfunction!(get_interfaces, module)?)?;
    module.add_function(wrap_pyfunction!(get_interface_definition, module)?)?;
    module.add_function(wrap_pyfunction!(is_message_class, module)?)?;
    module.add_function(wrap_pyfunction!(is_service_class, module)?)?;
    module.add_function(wrap_pyfunction!(is_action_class, module)?)?;
    module.add_function(wrap_pyfunction!(serialize_message, module)?)?;
    module.add_function(wrap_pyfunction!(deserialize_message, module)?)?;
    module.add_function(wrap_pyfunction!(get_type_description, module)?)
}
