//! Running a model on an accelerator that works while the processor does something else.
//!
//! Crate: the vendor's header and library of the hand-made case `vendor_async`.

use tvmgen_default::{Error, InputX, Inputs, Model, OutputY, Outputs, Slot};

static INPUT: Slot<InputX> = Slot::new(InputX([1.0, 2.0, 3.0, 4.0]));
static OUTPUT: Slot<OutputY> = Slot::new(OutputY::new());

fn main() -> Result<(), Error> {
    let mut model = Model::take().expect("the first and only use");
    model.ti_npu_init();
    let inputs = Inputs::new(INPUT.take().expect("first use"));
    let outputs = Outputs::new(OUTPUT.take().expect("first use"));

    let pending = model.start(inputs, outputs).map_err(|(error, _)| error)?;
    let mut other_work = 0u64;
    while !pending.is_done() {
        other_work += 1;
    }
    let (_model, _inputs, outputs) = pending.wait();

    assert_eq!(*outputs.y, [2.0, 4.0, 6.0, 8.0]);
    println!("{:?} after {other_work} steps of other work", outputs.y);
    Ok(())
}
