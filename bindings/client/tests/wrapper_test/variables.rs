//! Variables keep, change and give back their values; misuse is refused by name.

use tfp::{DataType, Result, ops};
use tfp::{
    EagerContext, ErrorKind, Graph, Session, Shape, Tensor, Variable, VariableOptions, initialize,
    set_in, values_in,
};

fn floats(tensor: &Tensor) -> Vec<f32> {
    tensor.to_vec().expect("floats")
}

/// How much memory this process holds.
pub fn resident_mib() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages = statm
        .split(' ')
        .nth(1)
        .and_then(|pages| pages.parse::<usize>().ok());
    pages.expect("a number of pages") * 4 / 1024
}

#[test]
fn eager_variables_change() -> Result<()> {
    let ctx = EagerContext::new()?;
    let v = Variable::new(&ctx, "v", [[1.0_f32, 2.0], [3.0, 4.0], [5.0, 6.0]])?;
    assert_eq!(
        (v.name(), v.dtype(), v.shape()),
        ("v", DataType::FLOAT, &Shape::from([3, 2]))
    );
    assert!(v.is_trainable() && v.has_value()?);
    v.assign_add(&ctx, [[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]])?;
    v.scatter_update(&ctx, [0, 2], [[10.0, 20.0], [30.0, 40.0]])?;
    v.scatter_add(&ctx, [1], [[0.5, 0.25]])?;
    assert_eq!(floats(&v.to_tensor()?), [10.0, 20.0, 4.5, 5.25, 30.0, 40.0]);
    v.scatter_sub(&ctx, [1], 0.5)?;
    v.scatter_mul(&ctx, [0], 2.0)?;
    v.scatter_div(&ctx, [2], 10.0)?;
    v.scatter_min(&ctx, [1], 4.5)?;
    v.scatter_max(&ctx, [1], 4.25)?;
    assert_eq!(floats(&v.to_tensor()?), [20.0, 40.0, 4.25, 4.5, 3.0, 4.0]);
    v.scatter_nd_update(&ctx, [[0, 0], [2, 1]], [7.0, 8.0])?;
    v.scatter_nd_add(&ctx, [[0, 0]], [1.0])?;
    v.scatter_nd_sub(&ctx, [[2, 1]], [1.0])?;
    v.scatter_nd_min(&ctx, [[0, 1]], [39.0])?;
    v.scatter_nd_max(&ctx, [[2, 0]], [3.5])?;
    assert_eq!(floats(&v.to_tensor()?), [8.0, 39.0, 4.25, 4.5, 3.5, 7.0]);
    assert_eq!(
        floats(&v.gather(&ctx, [2, 0])?.to_tensor()?),
        [3.5, 7.0, 8.0, 39.0]
    );
    assert_eq!(floats(&v.gather_nd(&ctx, [[0, 1]])?.to_tensor()?), [39.0]);
    v.assign_sub(&ctx, [[8.0, 39.0], [4.25, 4.5], [3.5, 7.0]])?;
    assert_eq!(floats(&v.to_tensor()?), [0.0; 6]);
    Ok(())
}

#[test]
fn eager_variables_are_each_their_own_and_die_with_their_handles() -> Result<()> {
    let ctx = EagerContext::new()?;
    let (a, b) = (
        Variable::new(&ctx, "v", 1.0_f32)?,
        Variable::new(&ctx, "v", 2.0_f32)?,
    );
    a.assign(&ctx, 3.0)?;
    assert_eq!(
        (floats(&a.to_tensor()?), floats(&b.to_tensor()?)),
        (vec![3.0], vec![2.0])
    );
    let handle = a.handle_in(&ctx)?;
    drop(a);
    assert_eq!(
        floats(&ops::read_variable_op(&ctx, &handle, DataType::FLOAT)?.to_tensor()?),
        [3.0]
    );
    // 16 MiB each.
    let before = resident_mib();
    for _ in 0..64 {
        let shape = Shape::from([1 << 22]);
        let big = Variable::uninitialized(&ctx, "big", DataType::FLOAT, &shape, false)?;
        big.assign(&ctx, ops::fill(&ctx, [1 << 22], 1.0_f32)?)?;
    }
    assert!(resident_mib() < before + 512);
    Ok(())
}

#[test]
fn graph_variables_have_a_value_per_session() -> Result<()> {
    let graph = Graph::new()?;
    let scope = graph.scope().sub_scope("net");
    let v = Variable::new(&scope, "v", [1.0_f32, 2.0])?;
    let w = Variable::new(&scope, "v", [5_i64])?;
    assert_eq!((v.name(), w.name()), ("net/v", "net/v_1"));
    let doubled = ops::mul(&scope, v.read(&scope)?, 2.0_f32)?;
    let add = v.assign_add(&scope, [1.0, 1.0])?;
    let is_there = v.is_initialized(&scope)?;
    let (one, two) = (Session::new(&graph)?, Session::new(&graph)?);
    assert!(!one.eval(&[], &[&is_there])?[0].to_scalar::<bool>()?);
    for session in [&one, &two] {
        initialize(session, [&v, &w])?;
    }
    one.run().target(&add).go()?;
    assert_eq!(floats(&one.eval(&[], &[&doubled])?[0]), [4.0, 6.0]);
    assert_eq!(floats(&two.eval(&[], &[&doubled])?[0]), [2.0, 4.0]);
    set_in(&two, &[(&v, &Tensor::from_array([7.0_f32, 8.0])?)])?;
    set_in(&two, &[(&v, &Tensor::from_array([8.0_f32, 9.0])?)])?;
    let both = values_in(&two, &[v.clone(), w])?;
    assert_eq!(
        (floats(&both[0]), both[1].to_vec::<i64>()?),
        (vec![8.0, 9.0], vec![5])
    );
    let before = graph.operations().count();
    assert_eq!(floats(&v.value_in(&one)?), [2.0, 3.0]);
    assert_eq!(graph.operations().count(), before);
    Ok(())
}

#[test]
fn misuse_names_the_variable() -> Result<()> {
    let (graph, other) = (Graph::new()?, Graph::new()?);
    let ctx = EagerContext::new()?;
    let v = Variable::new(&graph.scope(), "weight", [1.0_f32, 2.0])?;
    let e = Variable::new(&ctx, "bias", [1.0_f32, 2.0])?;
    let is_foreign = |error: tfp::Error, name: &str| {
        assert!(matches!(error.kind(), ErrorKind::Foreign { .. }), "{error}");
        assert!(error.to_string().contains(name), "{error}");
    };
    is_foreign(v.read(&other.scope()).unwrap_err(), "weight");
    is_foreign(
        v.assign(&other.scope(), [0.0_f32, 0.0]).unwrap_err(),
        "weight",
    );
    is_foreign(v.read(&ctx).unwrap_err(), "weight");
    is_foreign(v.to_tensor().unwrap_err(), "weight");
    is_foreign(e.read(&graph.scope()).unwrap_err(), "bias");
    is_foreign(e.read(&EagerContext::new()?).unwrap_err(), "bias");
    is_foreign(
        initialize(&Session::new(&other)?, [&v]).unwrap_err(),
        "weight",
    );
    is_foreign(v.value_in(&Session::new(&other)?).unwrap_err(), "weight");
    let error = e.assign(&ctx, [1.0_f32]).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Shape { .. }), "{error}");
    assert!(
        error.to_string().contains("'bias'") && error.to_string().contains("[2]"),
        "{error}"
    );
    let error = v
        .assign(&graph.scope(), &Tensor::from_array([1_i32, 2])?)
        .unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::DType { .. }), "{error}");
    let error = e.assign_add(&ctx, "text").unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::DType { .. }), "{error}");
    let options = VariableOptions {
        shape: Some(Shape::from([-1, 3])),
        ..Default::default()
    };
    let error = Variable::with_options(&ctx, "wide", [1.0_f32], &options).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Shape { .. }), "{error}");
    let empty = Variable::uninitialized(
        &graph.scope(),
        "empty",
        DataType::FLOAT,
        &Shape::scalar(),
        true,
    )?;
    let session = Session::new(&graph)?;
    let error = initialize(&session, [&empty]).unwrap_err();
    assert!(error.to_string().contains("'empty'"), "{error}");
    assert!(empty.value_in(&session).is_err());
    Ok(())
}

#[test]
fn a_name_that_a_refused_operation_had_is_passed_over() -> Result<()> {
    let graph = Graph::new()?;
    let scope = graph.scope();
    let refused = ops::add_v2(&scope.named("v"), [1.0_f32, 2.0], [1.0_f32, 2.0, 3.0]);
    assert!(refused.is_err());
    let v = Variable::new(&scope, "v", 1.0_f32)?;
    let session = Session::new(&graph)?;
    initialize(&session, [&v])?;
    assert_eq!(v.value_in(&session)?.to_scalar::<f32>()?, 1.0);
    Ok(())
}
