//! What the macro writes.

use proc_macro::{Group, Span, TokenStream, TokenTree};

use crate::parse::{Model, Refusal};

/// The implementations of `Fields` and `Layer`.
pub fn implementations(model: &Model) -> TokenStream {
    let name = model.name.to_string();
    let mut visits = TokenStream::new();
    for field in &model.fields {
        let field_name = field.to_string();
        let path = field_name.trim_start_matches("r#");
        let visit = format!(
            "::tfp::nn::layer::Field::each_layer_at(&self.{field_name}, \"{path}\", visit);"
        );
        // A field that is not a layer is an error there.
        visits.extend(code(&visit, field.span()));
    }
    let place = model.name.span();
    let mut all = code(
        &format!("#[automatically_derived] impl ::tfp::nn::layer::Fields for {name}"),
        place,
    );
    let mut method = code(
        "fn each_layer(
            &self,
            visit: &mut dyn ::core::ops::FnMut(&str, &dyn ::tfp::nn::layer::Layer),
        )",
        place,
    );
    method.extend([braces(visits)]);
    all.extend([braces(method)]);
    all.extend(code(
        &format!(
            "#[automatically_derived]
            impl ::tfp::nn::layer::Layer for {name} {{
                fn build(
                    &self,
                    weights: &::tfp::nn::Weights,
                    input: &[i64],
                ) -> ::tfp::Result<::tfp::nn::layer::Built> {{
                    ::tfp::nn::layer::Composed::built(self, weights, input)
                }}

                fn build_many(
                    &self,
                    weights: &::tfp::nn::Weights,
                    inputs: &[&[i64]],
                ) -> ::tfp::Result<::tfp::nn::layer::BuiltMany> {{
                    ::tfp::nn::layer::Composed::built_many(self, weights, inputs)
                }}
            }}"
        ),
        place,
    ));
    all
}

/// An error of the compiler.
pub fn refusal(refusal: &Refusal) -> TokenStream {
    code(
        &format!("::core::compile_error! {{ {:?} }}", refusal.message),
        refusal.span,
    )
}

fn braces(inside: TokenStream) -> TokenTree {
    TokenTree::Group(Group::new(proc_macro::Delimiter::Brace, inside))
}

/// Code whose errors are shown at a place.
fn code(text: &str, place: Span) -> TokenStream {
    let tokens: TokenStream = match text.parse() {
        Ok(tokens) => tokens,
        // What this file writes is Rust; without it the compiler says which implementation lacks.
        Err(_) => return TokenStream::new(),
    };
    located(tokens, place)
}

fn located(tokens: TokenStream, place: Span) -> TokenStream {
    let tokens = tokens.into_iter().map(|token| {
        let mut token = match token {
            TokenTree::Group(group) => {
                let inside = located(group.stream(), place);
                TokenTree::Group(Group::new(group.delimiter(), inside))
            }
            other => other,
        };
        token.set_span(Span::call_site().located_at(place));
        token
    });
    tokens.collect()
}
