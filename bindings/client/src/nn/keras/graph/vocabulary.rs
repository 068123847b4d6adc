//! What layers that were adapted know, which a file has beside their configuration.

use std::borrow::Cow;

use crate::formats::json::Json;
use crate::nn::keras::config::object;

/// The vocabularies of layers, by their place in the file.
pub type Vocabularies<'f> = dyn Fn(&str) -> Option<Json> + 'f;

/// An entry whose vocabulary is in its configuration, also if a file has it elsewhere.
pub(super) fn with_vocabulary<'j>(
    json: &'j Json,
    place: &str,
    more: &Vocabularies<'_>,
) -> Cow<'j, Json> {
    let (Some((_, config)), Json::Object(members)) = (object(json), json) else {
        return Cow::Borrowed(json);
    };
    if !config.has("vocabulary_size") || config.has("vocabulary") {
        return Cow::Borrowed(json);
    }
    let (Some(vocabulary), Json::Object(inner)) = (more(place), config.0) else {
        return Cow::Borrowed(json);
    };
    let mut inner = inner.clone();
    inner.retain(|(key, _)| key != "vocabulary");
    inner.push(("vocabulary".to_owned(), vocabulary));
    let mut members = members.clone();
    members.retain(|(key, _)| key != "config");
    members.push(("config".to_owned(), Json::Object(inner)));
    Cow::Owned(Json::Object(members))
}
