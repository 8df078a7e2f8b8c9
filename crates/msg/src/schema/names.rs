//! Names that ROS 2 allows in interface files (`rosidl_adapter`'s patterns).

/// `[a-z][a-z0-9_]*`, no `__`, no `_` at the end.
pub fn is_package_name(name: &str) -> bool {
    is_lower_snake(name)
}

/// `[a-z][a-z0-9_]*`, no `__`, no `_` at the end.
pub fn is_field_name(name: &str) -> bool {
    is_lower_snake(name)
}

/// `[A-Z][A-Za-z0-9]*`.
pub fn is_interface_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_uppercase())
        && name.chars().all(|c| c.is_ascii_alphanumeric())
}

/// Capitals, digits and single underscores, a capital first, no `_` at the end.
pub fn is_constant_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_uppercase())
        && name
            .chars()
            .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
        && !name.contains("__")
        && !name.ends_with('_')
}

fn is_lower_snake(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        && !name.contains("__")
        && !name.ends_with('_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_ros_patterns() {
        assert!(is_field_name("frame_id2"));
        for bad in ["", "A", "_a", "a_", "a__b", "a-b", "1a", "ä"] {
            assert!(!is_field_name(bad), "{bad}");
        }
        assert!(is_interface_name("Int8MultiArray"));
        for bad in ["", "int8", "A_B", "8A"] {
            assert!(!is_interface_name(bad), "{bad}");
        }
        assert!(is_constant_name("MOVE_3D"));
        for bad in ["", "move", "A_", "A__B", "_A", "3D"] {
            assert!(!is_constant_name(bad), "{bad}");
        }
    }
}
