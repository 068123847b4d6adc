use super::*;

/// A masked LSTM over what a layer makes of `in`, whose mask follows from `from`.
fn problems(layer: &str, from: &str) -> Result<Vec<String>> {
    let tensor = |of: &str| {
        let config = format!(r#"{{"keras_history": ["{of}", 0, 0]}}"#);
        format!(r#"{{"class_name": "__keras_tensor__", "config": {config}}}"#)
    };
    let node = |class: &str, name: &str, config: &str, of: &str, kwargs: &str| {
        format!(
            r#"{{"class_name": "{class}", "name": "{name}", "config": {{"name": "{name}", {config}}},
                "inbound_nodes": [{{"args": [{}], "kwargs": {{{kwargs}}}}}]}}"#,
            tensor(of)
        )
    };
    let mask = format!(r#""mask": {}"#, tensor("differs"));
    let layers = [
        r#"{"class_name": "InputLayer", "name": "in", "inbound_nodes": [],
            "config": {"name": "in", "batch_shape": [null, 5], "dtype": "int32"}}"#
            .to_owned(),
        node("Embedding", "words", layer, "in", ""),
        node("NotEqual", "differs", r#""trainable": true"#, from, ""),
        node("LSTM", "lstm", r#""units": 3"#, "words", &mask),
    ];
    let json = format!(
        r#"{{"class_name": "Functional", "config": {{"name": "m", "layers": [{}],
            "input_layers": [["in", 0, 0]], "output_layers": [["lstm", 0, 0]]}}}}"#,
        layers.join(", ")
    );
    let mut problems = Vec::new();
    Graph::parse(&Json::parse(json.as_bytes())?, "", &mut problems)?;
    Ok(problems)
}

#[test]
fn a_mask_that_does_not_come_with_the_values_is_a_problem() -> Result<()> {
    let embedding = r#""input_dim": 9, "output_dim": 4, "mask_zero": true"#;
    let of_words = problems(embedding, "in")?;
    assert!(
        !of_words.iter().any(|one| one.contains("mask")),
        "{of_words:?}"
    );
    let by_hand = problems(embedding, "words")?;
    assert!(
        by_hand.iter().any(|one| one.starts_with("'lstm': a mask")),
        "{by_hand:?}"
    );
    Ok(())
}
