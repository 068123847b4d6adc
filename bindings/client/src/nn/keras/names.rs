//! Names in files of Keras.

use crate::formats::json::Json;

/// Classes whose name in a configuration is another than in Python's code, by which weights are stored.
const EXPORTED: &[(&str, &str)] = &[("GroupQueryAttention", "GroupedQueryAttention")];

/// Gives classes in a `.h5` file, which has the names of Python's code, those of a configuration.
pub(super) fn export(json: &mut Json) {
    match json {
        Json::Object(members) => {
            for (key, value) in members {
                match value {
                    Json::Text(class) if key == "class_name" => {
                        let known = EXPORTED.iter().find(|(_, own)| own == class);
                        if let Some((exported, _)) = known {
                            *class = (*exported).to_owned();
                        }
                    }
                    other => export(other),
                }
            }
        }
        Json::List(list) => list.iter_mut().for_each(export),
        _ => {}
    }
}

/// The name of a class as Keras writes it into files: `Conv2DTranspose` to `conv2d_transpose`.
pub(super) fn snake_case(class: &str) -> String {
    let known = EXPORTED.iter().find(|(exported, _)| *exported == class);
    let class = known.map_or(class, |(_, class)| class);
    let letters: Vec<char> = class.chars().filter(|one| one.is_alphanumeric()).collect();
    let is = |at: usize, test: fn(&char) -> bool| letters.get(at).is_some_and(test);
    let mut words = String::new();
    let mut at = 0;
    while at < letters.len() {
        words.push(letters[at]);
        let begins = |at| is(at, char::is_ascii_uppercase) && is(at + 1, char::is_ascii_lowercase);
        at += 1;
        if begins(at) {
            words.push('_');
            words.push(letters[at]);
            at += 1;
            while is(at, char::is_ascii_lowercase) {
                words.push(letters[at]);
                at += 1;
            }
        }
    }
    let mut snake = String::new();
    let mut before = ' ';
    for letter in words.chars() {
        if before.is_ascii_lowercase() && letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
        before = letter;
    }
    snake
}

/// A name with the number of others of this name before it, as `dense`, `dense_1`.
pub(super) fn numbered(name: &str, before: &mut Vec<String>) -> String {
    let count = before.iter().filter(|other| *other == name).count();
    before.push(name.to_owned());
    match count {
        0 => name.to_owned(),
        _ => format!("{name}_{count}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_of_python_get_their_exported_names() {
        let layer = |class: &str| {
            let text = format!(
                r#"[{{"class_name": "TimeDistributed", "config": {{"name": "GroupedQueryAttention",
                "layer": {{"class_name": "{class}", "config": {{}}}}}}}}]"#
            );
            Json::parse(text.as_bytes()).expect("JSON")
        };
        let mut json = layer("GroupedQueryAttention");
        export(&mut json);
        assert_eq!(json, layer("GroupQueryAttention"));
    }

    #[test]
    fn classes_have_the_names_of_keras() {
        for (class, name) in [
            ("Dense", "dense"),
            ("Conv2DTranspose", "conv2d_transpose"),
            ("DepthwiseConv1D", "depthwise_conv1d"),
            ("ConvLSTM2D", "conv_lstm2d"),
            ("PReLU", "p_re_lu"),
            ("GRUCell", "gru_cell"),
            ("RMSNormalization", "rms_normalization"),
            ("StackedRNNCells", "stacked_rnn_cells"),
        ] {
            assert_eq!(snake_case(class), name);
        }
    }
}
