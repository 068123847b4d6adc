//! An accelerator that works on its own: blocking runs, pending runs, and the ways to lose one.

use tvmgen_default::{BIAS_DATA, Error, InputX, Inputs, Model, OutputY, Outputs, Slot};

static INPUT: Slot<InputX> = Slot::new(InputX([1.0, 2.0, 3.0, 4.0]));
static OUTPUT: Slot<OutputY> = Slot::new(OutputY::new());

#[test]
fn whole_life() {
    let mut model = Model::take().unwrap();
    assert!(
        Model::take().is_none(),
        "a second model would share the accelerator"
    );
    assert_eq!(BIAS_DATA, [-83, 80]);
    let input = InputX([1.5, -2.0, 0.25, 8.0]);
    let mut output = OutputY::new();

    // The vendor's start function was not called: its error code comes through.
    let error = model
        .run(&Inputs::new(&input), &mut Outputs::new(&mut output))
        .unwrap_err();
    assert_eq!(
        error,
        Error::Crt {
            category: 3,
            code: 5
        }
    );
    assert_eq!(error.code(), 0x305);
    model.ti_npu_init();

    // Blocking.
    for _ in 0..3 {
        output = OutputY::new();
        model
            .run(&Inputs::new(&input), &mut Outputs::new(&mut output))
            .unwrap();
        assert_eq!(output.0, [3.0, -4.0, 0.5, 16.0]);
    }

    // Pending: the buffers come back with the result.
    let (inputs, outputs) = (
        Inputs::new(INPUT.take().unwrap()),
        Outputs::new(OUTPUT.take().unwrap()),
    );
    assert!(INPUT.take().is_none());
    let mut pending = model
        .start(inputs, outputs)
        .map_err(|(error, _)| error)
        .unwrap();
    let mut polls = 0u64;
    let (model, inputs, outputs) = loop {
        match pending.poll() {
            Ok(parts) => break parts,
            Err(still) => pending = still,
        }
        polls += 1;
    };
    assert!(polls > 0, "the run was not asynchronous");
    assert_eq!(*outputs.y, [2.0, 4.0, 6.0, 8.0]);
    outputs.y.fill(0.0);

    // Dropped: waits, so that the accelerator writes to nobody's memory.
    let before = std::time::Instant::now();
    drop(
        model
            .start(inputs, outputs)
            .map_err(|(error, _)| error)
            .unwrap(),
    );
    assert!(before.elapsed() >= std::time::Duration::from_millis(15));
}
