//! Functions, branches, loops, variables and random numbers.

use tfp::{
    AnyContext, AnyValue, Context, DataType, Graph, GraphFunction, LookupTable, RandomAlgorithm,
    RandomGenerator, Result, Session, Shape, Tensor, TensorList, Variable, case, cond, ops,
    while_loop,
};

use crate::place::{CPU, DEVICE, check, check_with_host, eager, numbers};

/// A tensor of a place, which is not a constant that a graph's rewriting takes to the host.
fn at(cx: &AnyContext, tensor: &Tensor) -> Result<AnyValue> {
    ops::identity(cx, cx.constant(tensor)?)
}

fn sum(cx: &AnyContext, x: &AnyValue) -> Result<AnyValue> {
    let flat = ops::reshape(cx, x, [-1])?;
    ops::sum(cx, flat, [0], ops::SumOptions::default())
}

#[test]
fn functions_and_their_gradients() -> Result<()> {
    let matrix = numbers(&[4, 4])?;
    check("function", 2e-5, |work| {
        let kernel = work.variable("kernel", &matrix)?;
        let x = at(&work.cx, &numbers(&[3, 4])?)?;
        let argument = (DataType::FLOAT, Shape::from([-1, 4]));
        let inner = GraphFunction::trace(&work.cx, "inner", &[argument.clone()], |cx, args| {
            Ok(vec![ops::tanh(cx, &args[0])?])
        })?;
        let function = GraphFunction::trace(&work.cx, "outer", &[argument], |cx, args| {
            let y = ops::mat_mul(cx, &args[0], kernel.read(cx)?, Default::default())?;
            inner.call(cx, &[y])
        })?;
        work.slopes(&[x.clone(), kernel.handle().clone()], |cx| {
            let y = function.call(cx, &[x.clone()])?;
            sum(cx, &ops::square(cx, &y[0])?)
        })
    })
}

#[test]
fn branches_and_their_gradients() -> Result<()> {
    for number in [-1.5_f32, 2.5] {
        check("cond", 2e-5, |work| {
            let scale = work.variable("scale", &numbers(&[4])?)?;
            let x = at(&work.cx, &numbers(&[3, 4])?)?;
            let number = at(&work.cx, &Tensor::scalar(number)?)?;
            work.slopes(&[x.clone(), scale.handle().clone()], |cx| {
                let predicate = ops::greater(cx, &number, 0.0_f32)?;
                let scale = scale.read(cx)?;
                let y = cond(
                    cx,
                    &predicate,
                    |cx| Ok(vec![ops::mul(cx, &x, &scale)?]),
                    |cx| Ok(vec![ops::sub(cx, ops::exp(cx, &x)?, &scale)?]),
                )?;
                sum(cx, &y[0])
            })
        })?;
    }
    for number in [0_i32, 1, 7] {
        check("case", 2e-5, |work| {
            let x = at(&work.cx, &numbers(&[3, 4])?)?;
            let number = work.cx.constant(&Tensor::scalar(number)?)?;
            work.slopes(&[x.clone()], |cx| {
                let y = case(
                    cx,
                    &number,
                    vec![
                        Box::new(|cx: &AnyContext| Ok(vec![ops::square(cx, &x)?])),
                        Box::new(|cx: &AnyContext| Ok(vec![ops::sin(cx, &x)?])),
                        Box::new(|cx: &AnyContext| Ok(vec![ops::neg(cx, &x)?])),
                    ],
                )?;
                sum(cx, &y[0])
            })
        })?;
    }
    Ok(())
}

#[test]
fn loops_and_their_gradients() -> Result<()> {
    check("while_loop", 2e-5, |work| {
        let kernel = work.variable("kernel", &numbers(&[4, 4])?)?;
        let x = at(&work.cx, &numbers(&[3, 4])?)?;
        let zero = work.cx.constant(&Tensor::scalar(0_i32)?)?;
        work.slopes(&[x.clone(), kernel.handle().clone()], |cx| {
            let last = while_loop(
                cx,
                &[zero.clone(), x.clone()],
                |cx, vars| ops::less(cx, &vars[0], 5_i32),
                |cx, vars| {
                    let y = ops::mat_mul(cx, &vars[1], kernel.read(cx)?, Default::default())?;
                    Ok(vec![ops::add_v2(cx, &vars[0], 1_i32)?, ops::tanh(cx, y)?])
                },
            )?;
            sum(cx, &last[1])
        })
    })
}

#[test]
fn lists_of_tensors() -> Result<()> {
    check("tensor list", 2e-5, |work| {
        let x = at(&work.cx, &numbers(&[3, 4])?)?;
        work.slopes(&[x.clone()], |cx| {
            let list = TensorList::from_tensor(cx, &x)?;
            let list = list.push(cx, ops::exp(cx, list.get(cx, 1)?)?)?;
            sum(cx, &ops::square(cx, list.stack(cx)?)?)
        })
    })
}

#[test]
fn variables_change() -> Result<()> {
    check("assignments", 0.0, |work| {
        let v = work.variable("v", &numbers(&[3, 2])?)?;
        work.then(v.assign_add(&work.cx, &numbers(&[3, 2])?)?)?;
        work.then(v.assign_sub(&work.cx, [[0.5_f32, 0.25], [0.0, 1.0], [2.0, 2.0]])?)?;
        let value = v.read(&work.cx)?;
        work.then(v.assign(&work.cx, ops::mul(&work.cx, &value, 2.0)?)?)?;
        let rows = v.gather(&work.cx, [2_i32, 0])?;
        Ok(vec![value, rows, v.read(&work.cx)?])
    })?;
    check("scatters", 1e-6, |work| {
        let v = work.variable("v", &numbers(&[3, 2])?)?;
        let rows = [[10.0_f32, 20.0], [30.0, 40.0]];
        work.then(v.scatter_update(&work.cx, [0_i32, 2], rows)?)?;
        work.then(v.scatter_add(&work.cx, [1_i32], [[0.5_f32, 0.25]])?)?;
        work.then(v.scatter_sub(&work.cx, [1_i32], 0.5_f32)?)?;
        work.then(v.scatter_mul(&work.cx, [0_i32], 2.0_f32)?)?;
        work.then(v.scatter_div(&work.cx, [2_i32], 10.0_f32)?)?;
        work.then(v.scatter_min(&work.cx, [1_i32], 0.0_f32)?)?;
        work.then(v.scatter_max(&work.cx, [1_i32], -0.25_f32)?)?;
        work.then(v.scatter_nd_update(&work.cx, [[0_i32, 0]], [7.0_f32])?)?;
        work.then(v.scatter_nd_add(&work.cx, [[0_i32, 1]], [1.0_f32])?)?;
        work.then(v.scatter_nd_sub(&work.cx, [[2_i32, 1]], [1.0_f32])?)?;
        let one = v.gather_nd(&work.cx, [[0_i32, 1]])?;
        Ok(vec![one, v.read(&work.cx)?])
    })
}

#[test]
fn variables_and_tables_of_the_host_are_used_on_the_device() -> Result<()> {
    let at_host = [
        "VarHandleOp",
        "ReadVariableOp",
        "AssignAddVariableOp",
        "ResourceScatterUpdate",
        "ResourceGather",
        "HashTableV2",
        "Identity",
        "LookupTableFindV2",
    ];
    check_with_host(&at_host, "host", 1e-6, |work| {
        let host = work.cx.on_device(CPU)?;
        let v = Variable::new(&host, "v", &numbers(&[3, 2])?)?;
        work.variables.push(v.clone());
        let before = v.read(&work.cx)?;
        work.then(v.assign_add(&work.cx, ops::mul(&work.cx, &before, 2.0_f32)?)?)?;
        work.then(v.scatter_update(&work.cx, [1_i32], [[4.0_f32, 5.0]])?)?;
        let rows = v.gather(&work.cx, [2_i32, 1])?;
        let (keys, values) = (
            Tensor::from_array([3_i64, 5])?,
            Tensor::from_array([0.5_f32, 2.0])?,
        );
        let table = LookupTable::new(&work.cx, "t", &keys, &values, &Tensor::scalar(-1.0_f32)?)?;
        work.tables.push(table.clone());
        let found = table.find(&work.cx, [5_i64, 3, 4])?;
        let f = GraphFunction::trace(&work.cx, "reads", &[], |cx, _| {
            Ok(vec![ops::square(cx, v.read(cx)?)?])
        })?;
        let squares = f.call(&work.cx, &[])?.remove(0);
        let all = [before, rows, found, squares];
        all.iter().map(|value| ops::neg(&work.cx, value)).collect()
    })
}

#[test]
fn random_numbers() -> Result<()> {
    let at_host = ["RngReadAndSkip", "VarHandleOp"];
    check_with_host(&at_host, "generator", 1e-6, |work| {
        let generator = RandomGenerator::from_seed(&work.cx, 17, RandomAlgorithm::Philox)?;
        work.variables.push(generator.state().clone());
        let normal = generator.normal(&work.cx, &[5, 3], DataType::FLOAT)?;
        Ok(vec![normal])
    })
}

#[test]
fn an_op_without_a_kernel_is_refused() -> Result<()> {
    let text = Tensor::from_string("Text")?;
    let eager = eager(DEVICE)?;
    let error = ops::string_lower(&eager, &text, Default::default()).unwrap_err();
    assert!(error.to_string().contains("StringLower"), "{error}");
    let scope = Graph::new()?.scope().on_device(DEVICE)?;
    let y = ops::string_lower(&scope, &text, Default::default())?;
    let error = Session::new(scope.graph())?.eval(&[], &[&y]).unwrap_err();
    assert!(error.to_string().contains(DEVICE), "{error}");
    Ok(())
}
