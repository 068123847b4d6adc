//! Tables, lists, random generators, sparse and ragged tensors in graphs; misuse of each.

use tfp::ops;
use tfp::{
    DataType, EagerContext, ErrorKind, Graph, LookupTable, RaggedTensor, RandomAlgorithm,
    RandomGenerator, Result, Session, Shape, SparseTensor, Tensor, TensorList, initialize,
};

#[test]
fn tables_in_both_modes() -> Result<()> {
    let none = Tensor::scalar(-1_i64)?;
    let keys = Tensor::from_strings(&["a", "b"], &[2])?;
    let values = Tensor::from_array([5_i64, 6])?;
    let graph = Graph::new()?;
    let scope = graph.scope();
    let table = LookupTable::new(&scope, "table", &keys, &values, &none)?;
    let second = LookupTable::new(&scope, "table", &keys, &values, &none)?;
    assert_eq!((table.name(), second.name()), ("table", "table_1"));
    let found = table.find(&scope, ["b", "c"])?;
    let (one, two) = (Session::new(&graph)?, Session::new(&graph)?);
    table.initialize(&one)?;
    assert_eq!(one.eval(&[], &[&found])?[0].to_vec::<i64>()?, [6, -1]);
    assert!(two.eval(&[], &[&found]).is_err());

    let ctx = EagerContext::new()?;
    let table = LookupTable::mutable(
        &ctx,
        "rows",
        DataType::INT64,
        &Tensor::from_array([0.5_f32, 0.5])?,
    )?;
    table.insert(&ctx, [1, 2], [[1.0_f32, 2.0], [3.0, 4.0]])?;
    assert_eq!(table.size(&ctx)?.to_tensor()?.to_scalar::<i64>()?, 2);
    table.remove(&ctx, [1, 9])?;
    let rows = table.find(&ctx, [1, 2])?.to_tensor()?;
    assert_eq!(rows.to_vec::<f32>()?, [0.5, 0.5, 3.0, 4.0]);
    let (keys, values) = table.export(&ctx)?;
    assert_eq!(keys.to_tensor()?.to_vec::<i64>()?, [2]);
    assert_eq!(values.to_tensor()?.to_vec::<f32>()?, [3.0, 4.0]);

    let error = second.find(&ctx, ["a"]).unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::Foreign { .. })
            && error.to_string().contains("'table_1'"),
        "{error}"
    );
    let error = table.find(&ctx, ["text"]).unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::DType { .. }) && error.to_string().contains("'rows'"),
        "{error}"
    );
    let error = second.insert(&scope, ["a"], [1_i64]).unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::Argument { .. }),
        "{error}"
    );
    Ok(())
}

#[test]
fn lists_grow_and_shrink() -> Result<()> {
    let ctx = EagerContext::new()?;
    let list = TensorList::empty(&ctx, DataType::FLOAT, &Shape::from([2]))?;
    let list = list.push(&ctx, [1.0, 2.0])?.push(&ctx, [3.0, 4.0])?;
    let set = list.set(&ctx, 0, [9.0, 9.0])?;
    assert_eq!(
        list.stack(&ctx)?.to_tensor()?.to_vec::<f32>()?,
        [1.0, 2.0, 3.0, 4.0]
    );
    assert_eq!(
        set.concat(&ctx)?.to_tensor()?.to_vec::<f32>()?,
        [9.0, 9.0, 3.0, 4.0]
    );
    let (rest, last) = set.pop(&ctx)?;
    assert_eq!(last.to_tensor()?.to_vec::<f32>()?, [3.0, 4.0]);
    assert_eq!(rest.len(&ctx)?.to_tensor()?.to_scalar::<i32>()?, 1);
    assert!(rest.get(&ctx, 1).is_err());
    let error = rest.push(&ctx, ["text", "text"]).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::DType { .. }), "{error}");

    let graph = Graph::new()?;
    let scope = graph.scope();
    let rows = ops::reshape(&scope, [1.0_f32, 2.0, 3.0, 4.0], [2, 2])?;
    let list = TensorList::from_tensor(&scope, &rows)?;
    assert_eq!(list.shape, Shape::from([2]));
    let second = list.get(&scope, 1)?;
    let reserved = TensorList::reserve(&scope, 2, DataType::INT32, &Shape::scalar())?;
    let whole = reserved
        .set(&scope, 1, 7)?
        .set(&scope, 0, 8)?
        .stack(&scope)?;
    let values = Session::new(&graph)?.eval(&[], &[&second, &whole])?;
    assert_eq!(
        (values[0].to_vec::<f32>()?, values[1].to_vec::<i32>()?),
        (vec![3.0, 4.0], vec![8, 7])
    );
    Ok(())
}

#[test]
fn random_states_go_on_in_each_session() -> Result<()> {
    let graph = Graph::new()?;
    let scope = graph.scope();
    let generator = RandomGenerator::from_seed(&scope, 42, RandomAlgorithm::Philox)?;
    let numbers = generator.normal(&scope, &[3], DataType::FLOAT)?;
    let reset = generator.reset_from_seed(&scope, 42)?;
    let session = Session::new(&graph)?;
    initialize(&session, [generator.state()])?;
    let take = || {
        session
            .eval(&[], &[&numbers])
            .and_then(|values| values[0].to_vec::<f32>())
    };
    let (first, second) = (take()?, take()?);
    assert_ne!(first, second);
    session.run().target(&reset).go()?;
    assert_eq!(take()?, first);

    let ctx = EagerContext::new()?;
    let eager = RandomGenerator::from_seed(&ctx, 42, RandomAlgorithm::Philox)?;
    assert_eq!(
        eager
            .normal(&ctx, &[3], DataType::FLOAT)?
            .to_tensor()?
            .to_vec::<f32>()?,
        first
    );
    let again = RandomGenerator::from_seed(&ctx, 42, RandomAlgorithm::Philox)?;
    again.skip(&ctx, 3)?;
    assert_eq!(
        again
            .normal(&ctx, &[3], DataType::FLOAT)?
            .to_tensor()?
            .to_vec::<f32>()?,
        second
    );
    assert!(RandomGenerator::from_state(&ctx, &[1, 2], RandomAlgorithm::Philox).is_err());
    assert!(again.uniform(&ctx, &[-1], DataType::FLOAT).is_err());
    let huge = [1_i64 << 40, 1 << 40];
    assert!(again.uniform(&ctx, &huge, DataType::FLOAT).is_err());
    assert!(
        again
            .binomial(&ctx, &[-1], 1.0_f32, 0.5_f32, DataType::INT32)
            .is_err()
    );
    let error = eager.normal(&scope, &[1], DataType::FLOAT).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Foreign { .. }), "{error}");
    Ok(())
}

#[test]
fn sparse_and_ragged_tensors_in_graphs() -> Result<()> {
    let graph = Graph::new()?;
    let scope = graph.scope();
    let sparse = SparseTensor::new(&scope, [[0, 1], [1, 0]], [2.0_f32, 3.0], [2, 2])?;
    let dense = ops::reshape(&scope, [1.0_f32, 2.0, 3.0, 4.0], [2, 2])?;
    let product = sparse.mat_mul(&scope, &dense)?;
    let ragged = RaggedTensor::from_row_lengths(&scope, [1.0_f32, 2.0, 3.0], &[2, 0, 1])?;
    let sums = ragged.row_sums(&scope)?;
    let values = Session::new(&graph)?.eval(&[], &[&product, &sums])?;
    assert_eq!(values[0].to_vec::<f32>()?, [6.0, 8.0, 3.0, 6.0]);
    assert_eq!(values[1].to_vec::<f32>()?, [3.0, 0.0, 3.0]);

    let ctx = EagerContext::new()?;
    let error = SparseTensor::new(&ctx, [[0, 1, 2]], [1.0_f32], [2, 2]).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Shape { .. }), "{error}");
    let error = SparseTensor::new(&ctx, [[0.5_f32, 1.0]], [1.0_f32], [2, 2]).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::DType { .. }), "{error}");
    let sparse = SparseTensor::new(&ctx, [[0, 1]], [5.0_f32], [2, 3])?;
    let turned = sparse.transpose(&ctx, &[1, 0])?.to_dense(&ctx, 0.0)?;
    let turned = turned.to_tensor()?;
    assert_eq!(turned.dims(), [3, 2]);
    assert_eq!(turned.as_slice::<f32>()?, [0.0, 0.0, 5.0, 0.0, 0.0, 0.0]);
    for axes in [&[0_i64, 0][..], &[0], &[0, 1, 2], &[1, 2], &[-1, 0], &[]] {
        let error = sparse.transpose(&ctx, axes).unwrap_err();
        assert!(error.to_string().contains("each axis once"), "{error}");
    }
    let rows = [vec![1_i32, 2], vec![], vec![3]];
    let ragged = RaggedTensor::from_rows(&ctx, &rows)?;
    assert_eq!(ragged.to_rows::<i32>()?, rows);
    assert!(ragged.to_rows::<f32>().is_err());
    for splits in [&[0_i64, 2][..], &[1, 3], &[0, 2, 1, 3], &[]] {
        assert!(RaggedTensor::from_row_splits(&ctx, [1.0_f32, 2.0, 3.0], splits).is_err());
    }
    assert!(RaggedTensor::from_row_lengths(&ctx, [1.0_f32], &[-1, 2]).is_err());
    Ok(())
}
