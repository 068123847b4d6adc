//! What a struct says: its name, and the fields that are layers.

use proc_macro::{Delimiter, Group, Ident, Spacing, Span, TokenStream, TokenTree};

/// A struct, and its fields but those that it leaves out.
pub struct Model {
    pub name: Ident,
    pub fields: Vec<Ident>,
}

/// Why a struct can't be a model, and where it says so.
pub struct Refusal {
    pub message: String,
    pub span: Span,
}

impl Refusal {
    fn new(span: Span, message: impl Into<String>) -> Self {
        let message = format!("derive(Model): {}", message.into());
        Self { message, span }
    }
}

type Tokens = std::iter::Peekable<proc_macro::token_stream::IntoIter>;

/// Reads a struct.
pub fn model(input: TokenStream) -> Result<Model, Refusal> {
    let mut tokens = input.into_iter().peekable();
    let mut skip = None;
    attributes(&mut tokens, &mut skip)?;
    if let Some(span) = skip {
        return Err(Refusal::new(span, "`skip` is for fields"));
    }
    visibility(&mut tokens);
    let kind = ident(&mut tokens, Span::call_site())?;
    if kind.to_string() != "struct" {
        let message = format!("expected a struct with named fields, found `{kind}`");
        return Err(Refusal::new(kind.span(), message));
    }
    let name = ident(&mut tokens, kind.span())?;
    match tokens.next() {
        Some(TokenTree::Group(body)) if body.delimiter() == Delimiter::Brace => {
            let fields = fields(&body)?;
            if fields.is_empty() {
                return Err(Refusal::new(
                    name.span(),
                    format!("`{name}` has not a single field that is a layer"),
                ));
            }
            Ok(Model { name, fields })
        }
        Some(TokenTree::Punct(open)) if open.as_char() == '<' => Err(Refusal::new(
            open.span(),
            format!(
                "`{name}` has parameters, which are not supported; a field of any layer is a \
                 `Box<dyn Layer>`"
            ),
        )),
        other => Err(Refusal::new(
            other.map_or(name.span(), |token| token.span()),
            format!("`{name}` has to have named fields"),
        )),
    }
}

/// Reads the names of the fields that are not left out.
fn fields(body: &Group) -> Result<Vec<Ident>, Refusal> {
    let mut tokens = body.stream().into_iter().peekable();
    let mut fields = Vec::new();
    while tokens.peek().is_some() {
        let mut skip = None;
        attributes(&mut tokens, &mut skip)?;
        visibility(&mut tokens);
        let name = ident(&mut tokens, body.span())?;
        pass_type(&mut tokens);
        if skip.is_none() {
            fields.push(name);
        }
    }
    Ok(fields)
}

/// Passes over attributes; sets where one of them says `model(skip)`.
fn attributes(tokens: &mut Tokens, skip: &mut Option<Span>) -> Result<(), Refusal> {
    while let Some(TokenTree::Punct(hash)) = tokens.peek() {
        if hash.as_char() != '#' {
            break;
        }
        tokens.next();
        let Some(TokenTree::Group(attribute)) = tokens.next() else {
            break;
        };
        let parts: Vec<TokenTree> = attribute.stream().into_iter().collect();
        let is_ours =
            matches!(parts.first(), Some(TokenTree::Ident(name)) if name.to_string() == "model");
        if !is_ours {
            continue;
        }
        match parts.get(1) {
            Some(TokenTree::Group(options)) if options.stream().to_string() == "skip" => {
                *skip = Some(attribute.span());
            }
            _ => {
                return Err(Refusal::new(
                    attribute.span(),
                    format!("`{attribute}` is not known, expected `[model(skip)]`"),
                ));
            }
        }
    }
    Ok(())
}

/// Passes over `pub` and `pub(...)`; a macro may have put them into a group, which may be empty.
fn visibility(tokens: &mut Tokens) {
    match tokens.peek() {
        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::None => {
            tokens.next();
        }
        Some(TokenTree::Ident(word)) if word.to_string() == "pub" => {
            tokens.next();
            let is_scope = matches!(
                tokens.peek(),
                Some(TokenTree::Group(scope)) if scope.delimiter() == Delimiter::Parenthesis
            );
            if is_scope {
                tokens.next();
            }
        }
        _ => {}
    }
}

fn ident(tokens: &mut Tokens, place: Span) -> Result<Ident, Refusal> {
    match tokens.next() {
        Some(TokenTree::Ident(name)) => Ok(name),
        other => {
            let span = other.map_or(place, |token| token.span());
            Err(Refusal::new(span, "expected a struct with named fields"))
        }
    }
}

/// Passes over a colon, a type, and the comma that ends it: one that is not between `<` and `>`.
fn pass_type(tokens: &mut Tokens) {
    let mut depth = 0_usize;
    let mut follows_dash = false;
    for token in tokens {
        let TokenTree::Punct(punct) = token else {
            follows_dash = false;
            continue;
        };
        match punct.as_char() {
            ',' if depth == 0 => return,
            '<' => depth += 1,
            // That of `->` closes nothing.
            '>' if !follows_dash => depth = depth.saturating_sub(1),
            _ => {}
        }
        follows_dash = punct.as_char() == '-' && punct.spacing() == Spacing::Joint;
    }
}
