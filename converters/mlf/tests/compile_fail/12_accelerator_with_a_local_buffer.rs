// crate: vendor_async
// error: E0597
use tvmgen_default::{InputX, Inputs, Model, OutputY, Outputs, Slot};

static INPUT: Slot<InputX> = Slot::new(InputX::new());
static OUTPUT: Slot<OutputY> = Slot::new(OutputY::new());

fn main() {
    let local = OutputY::new(); // misuse
    let mut local = local; // misuse
    let output = &mut local; // misuse
    let output = OUTPUT.take().unwrap(); // right
    let model = Model::take().unwrap();
    let inputs = Inputs::new(INPUT.take().unwrap());
    drop(model.start(inputs, Outputs::new(output)));
    let _ = &OUTPUT;
}
