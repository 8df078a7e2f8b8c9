//! One component as its own program.

use component_package::Counter;
use pteros::component::ComponentError;

fn main() -> Result<(), ComponentError> {
    pteros::component::run::<Counter>()
}
