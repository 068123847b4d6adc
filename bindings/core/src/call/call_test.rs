//! Calls against a context that only records them.

use std::cell::RefCell;

use crate::*;

/// A value that is nothing but its type.
#[derive(Clone, Debug, PartialEq)]
struct Fake(DataType);

impl Value for Fake {
    fn dtype(&self) -> DataType {
        self.0
    }
}

/// Records the constants and the types of the inputs of each call.
#[derive(Default)]
struct Recorder {
    inputs: RefCell<Vec<Vec<DataType>>>,
    constants: RefCell<Vec<Tensor>>,
}

impl Context for Recorder {
    type Value = Fake;
    type Operation = ();

    fn constant(&self, tensor: &Tensor) -> Result<Fake> {
        self.constants.borrow_mut().push(tensor.share()?);
        Ok(Fake(tensor.dtype()))
    }

    fn execute(
        &self,
        call: &mut Call<'_, Fake>,
        attrs: &[AttrValue<'_>],
    ) -> Result<Results<Fake, ()>> {
        let call = call.prepare(self, attrs)?;
        self.inputs
            .borrow_mut()
            .push(call.values().map(Value::dtype).collect());
        let dtype = call.values().next().map_or(DataType::FLOAT, Value::dtype);
        let values = (0..call.output_count()).map(|_| Fake(dtype)).collect();
        call.results(values, ())
    }
}

const NUMBERS: TypeSet = TypeSet::of(&[
    DataType::FLOAT,
    DataType::DOUBLE,
    DataType::HALF,
    DataType::INT64,
]);

static ADD: OpDesc = OpDesc {
    name: c"Add",
    inputs: &[
        ArgDesc::one(c"x", TypeOf::Attr(0)),
        ArgDesc::one(c"y", TypeOf::Attr(0)),
    ],
    outputs: &[ArgDesc::one(c"z", TypeOf::Attr(0))],
    attrs: &[AttrDesc::new(c"T", AttrKind::Type)
        .inferred()
        .types(NUMBERS)],
};

static CONCAT: OpDesc = OpDesc {
    name: c"Concat",
    inputs: &[
        ArgDesc::many(c"values", 0, TypeOf::Attr(1)),
        ArgDesc::one(c"axis", TypeOf::Attr(2)),
    ],
    outputs: &[ArgDesc::one(c"output", TypeOf::Attr(1))],
    attrs: &[
        AttrDesc::new(c"N", AttrKind::Int).inferred().minimum(2),
        AttrDesc::new(c"T", AttrKind::Type).inferred(),
        AttrDesc::new(c"Tidx", AttrKind::Type)
            .inferred()
            .default(AttrDefault::Type(DataType::INT32))
            .types(TypeSet::of(&[DataType::INT32, DataType::INT64])),
    ],
};

static SPLIT: OpDesc = OpDesc {
    name: c"Split",
    inputs: &[ArgDesc::one(c"value", TypeOf::Attr(2))],
    outputs: &[
        ArgDesc::many(c"parts", 0, TypeOf::Attr(2)),
        ArgDesc::one(c"rest", TypeOf::Attr(2)),
        ArgDesc::types(c"more", 3),
    ],
    attrs: &[
        AttrDesc::new(c"num", AttrKind::Int).minimum(1),
        AttrDesc::new(c"mode", AttrKind::String)
            .default(AttrDefault::Other)
            .strings(&["EVEN", "ODD"]),
        AttrDesc::new(c"T", AttrKind::Type).inferred(),
        AttrDesc::new(c"Tmore", AttrKind::TypeList)
            .default(AttrDefault::Types(&[DataType::FLOAT, DataType::BOOL])),
    ],
};

fn add<'a, C: Context + ?Sized>(
    ctx: &C,
    x: impl IntoOperand<'a, C::Value>,
    y: impl IntoOperand<'a, C::Value>,
) -> Result<C::Value> {
    let mut call = Call::new(&ADD);
    call.input(x).input(y);
    ctx.execute(&mut call, &[])?.one()
}

fn concat<'a, C: Context + ?Sized>(
    ctx: &C,
    values: impl IntoOperands<'a, C::Value>,
    axis: impl IntoOperand<'a, C::Value>,
) -> Result<C::Value> {
    let mut call = Call::new(&CONCAT);
    call.list(values).input(axis);
    ctx.execute(&mut call, &[])?.one()
}

/// What a user writes once for both modes.
fn polynomial<C: Context + ?Sized>(ctx: &C, x: &C::Value) -> Result<C::Value> {
    add(ctx, add(ctx, x, 1.0)?, x)
}

fn types(recorder: &Recorder) -> Vec<DataType> {
    recorder.inputs.borrow().last().cloned().unwrap_or_default()
}

fn constant(recorder: &Recorder) -> Result<Tensor> {
    recorder
        .constants
        .borrow()
        .last()
        .ok_or_else(|| Error::argument("none"))?
        .share()
}

#[test]
fn literals_take_the_type_of_the_values_beside_them() -> Result<()> {
    let ctx = Recorder::default();
    let x = Fake(DataType::HALF);
    polynomial(&ctx, &x)?;
    assert_eq!(constant(&ctx)?.as_slice::<Half>()?, [Half::from_f32(1.0)]);
    add(&ctx, [[1, 2], [3, 4]], &Fake(DataType::DOUBLE))?;
    assert_eq!(constant(&ctx)?.as_slice::<f64>()?, [1.0, 2.0, 3.0, 4.0]);
    assert_eq!(constant(&ctx)?.dims(), [2, 2]);
    add(&ctx, &x, (&[1.5_f32, 2.5][..], &[1, 2, 1][..]))?;
    assert_eq!(constant(&ctx)?.dims(), [1, 2, 1]);
    assert_eq!(types(&ctx), [DataType::HALF; 2]);
    Ok(())
}

#[test]
fn literals_alone_keep_their_type_where_it_is_allowed() -> Result<()> {
    let ctx = Recorder::default();
    add(&ctx, 1.0, 2)?;
    assert_eq!(types(&ctx), [DataType::DOUBLE; 2]);
    add(&ctx, 1.0_f32, vec![2.0_f64; 3])?;
    assert_eq!(types(&ctx), [DataType::FLOAT; 2]);
    // int32 is not allowed: the first allowed type that holds both.
    add(&ctx, 1, 2)?;
    assert_eq!(types(&ctx), [DataType::FLOAT; 2]);
    concat(&ctx, [1.0, 2.0], 0)?;
    assert_eq!(
        types(&ctx),
        [DataType::DOUBLE, DataType::DOUBLE, DataType::INT32]
    );
    concat(&ctx, (&Fake(DataType::INT8), 2, [3_u64]), 0_usize)?;
    assert_eq!(types(&ctx)[..3], [DataType::INT8; 3]);
    Ok(())
}

#[track_caller]
fn refused<T>(result: Result<T>, parts: &[&str]) {
    let message = result
        .err()
        .map(|error| error.to_string())
        .unwrap_or_default();
    for part in parts {
        assert!(
            message.contains(part),
            "{message:?} does not contain {part:?}"
        );
    }
}

#[test]
fn errors_name_the_op_and_the_culprit() {
    let ctx = Recorder::default();
    let (x, i) = (Fake(DataType::FLOAT), Fake(DataType::INT64));
    refused(
        add(&ctx, &x, &i),
        &["Add: input 'y'", "expected float32", "found int64"],
    );
    refused(add(&ctx, &i, 1.5), &["Add: input 'y'", "float64", "int64"]);
    refused(
        add(&ctx, "a", "b"),
        &["Add: attribute 'T'", "float16", "string"],
    );
    let b = Fake(DataType::BOOL);
    refused(
        add(&ctx, &b, &b),
        &["Add: attribute 'T'", "bool is not allowed", "float32"],
    );
    refused(
        concat(&ctx, [&x], 0),
        &["Concat: attribute 'N'", "1 tensors", "minimum is 2"],
    );
    refused(concat(&ctx, [&x, &i], 0), &["Concat: input 'values'"]);
    refused(
        concat(&ctx, [&x, &x], 1.5),
        &["Concat: attribute 'Tidx'", "int32, int64"],
    );
    refused(
        concat(&ctx, (&Fake(DataType::INT8), 300), 0),
        &["Concat: input 'values'", "int8"],
    );
    let ragged = (&[1.0_f32, 2.0][..], &[3][..]);
    refused(add(&ctx, &x, ragged), &["Add: input 'y'", "2 elements"]);
    assert!(ctx.inputs.borrow().is_empty());
}

#[test]
fn given_attributes_are_checked_and_counted() -> Result<()> {
    let ctx = Recorder::default();
    let x = Fake(DataType::FLOAT);
    let split = |attrs: &[AttrValue<'_>]| {
        let mut call = Call::new(&SPLIT);
        call.input(&x);
        ctx.execute(&mut call, attrs)
    };
    let mut out = split(&[3.into(), "ODD".into(), AttrValue::Default])?;
    assert_eq!(out.list()?.len(), 3);
    out.one()?;
    assert_eq!(out.list()?.len(), 2);
    assert!(out.one().is_err());
    let types = [DataType::INT8];
    let out = split(&[1.into(), None::<&str>.into(), types[..].into()])?;
    assert_eq!(out.lengths(), [1, 1, 1]);
    refused(
        split(&[0.into(), AttrValue::Default, AttrValue::Default]),
        &["Split: attribute 'num'", "minimum is 1"],
    );
    refused(
        split(&[AttrValue::Default, AttrValue::Default, AttrValue::Default]),
        &["Split: attribute 'num'", "required"],
    );
    refused(
        split(&[1.into(), "odd".into(), AttrValue::Default]),
        &["Split: attribute 'mode'", "\"odd\"", "EVEN, ODD"],
    );
    refused(
        split(&[1.into(), AttrValue::Default]),
        &["Split", "3 attributes, 2"],
    );
    refused(
        split(&[1.5_f32.into(), AttrValue::Default, AttrValue::Default]),
        &["Split: attribute 'num'", "Int"],
    );
    Ok(())
}
