//! One component as a program of its own.

use component_package::Counter;
use pteros::component::ComponentError;

fn main() -> Result<(), ComponentError> {
    pteros::component::run::<Counter>()
}
