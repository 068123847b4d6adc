//! The language of the table of variable ops: statements such as `m += (grad - m) * (1 - beta1)`,
//! separated by semicolons.

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// A constant of the variable's type.
    Number(f32),
    /// A variable, an input or what an earlier statement has set.
    Name(&'static str),
    /// `+`, `-`, `*` or `/` of two values.
    Binary(char, Box<Expression>, Box<Expression>),
    /// A function of values.
    Call(&'static str, Vec<Expression>),
}

/// What a statement does with its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// `=`
    Set,
    /// `+=`
    Add,
    /// `-=`
    Sub,
}

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// What changes.
    pub target: &'static str,
    /// How it changes.
    pub effect: Effect,
    /// The value.
    pub value: Expression,
}

impl Expression {
    /// Whether the value depends on `name`.
    pub fn reads(&self, name: &str) -> bool {
        match self {
            Self::Number(_) => false,
            Self::Name(found) => *found == name,
            Self::Binary(_, left, right) => left.reads(name) || right.reads(name),
            Self::Call(_, arguments) => arguments.iter().any(|argument| argument.reads(name)),
        }
    }
}

/// Reads statements.
///
/// # Errors
/// The place where the text is not in the language.
pub fn parse(text: &'static str) -> Result<Vec<Statement>, String> {
    text.split(';').map(statement).collect()
}

fn statement(text: &'static str) -> Result<Statement, String> {
    let mut reader = Reader { rest: text };
    let Some(Token::Name(target)) = reader.take() else {
        return Err(format!("no target in {text:?}"));
    };
    let effect = match reader.take() {
        Some(Token::Sign('=')) => Effect::Set,
        Some(Token::Sign(sign @ ('+' | '-'))) if reader.take() == Some(Token::Sign('=')) => {
            if sign == '+' {
                Effect::Add
            } else {
                Effect::Sub
            }
        }
        _ => return Err(format!("no =, += or -= in {text:?}")),
    };
    let value = reader.sum()?;
    match reader.take() {
        None => Ok(Statement {
            target,
            effect,
            value,
        }),
        Some(token) => Err(format!("{token:?} after the value in {text:?}")),
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Token {
    Name(&'static str),
    Number(f32),
    Sign(char),
}

struct Reader {
    rest: &'static str,
}

impl Reader {
    fn take(&mut self) -> Option<Token> {
        let text = self.rest.trim_start();
        let first = text.chars().next()?;
        let part_of_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        if !part_of_word(first) {
            self.rest = &text[first.len_utf8()..];
            return Some(Token::Sign(first));
        }
        let end = text.find(|c| !part_of_word(c)).unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        self.rest = rest;
        Some(match word.parse() {
            Ok(number) if first.is_ascii_digit() => Token::Number(number),
            _ => Token::Name(word),
        })
    }

    fn peek(&self) -> Option<Token> {
        Self { rest: self.rest }.take()
    }

    fn sum(&mut self) -> Result<Expression, String> {
        self.chain(&['+', '-'], Self::product)
    }

    fn product(&mut self) -> Result<Expression, String> {
        self.chain(&['*', '/'], Self::factor)
    }

    /// Operands with operators of one rank between them, from left to right.
    fn chain(
        &mut self,
        operators: &[char],
        operand: fn(&mut Self) -> Result<Expression, String>,
    ) -> Result<Expression, String> {
        let mut value = operand(self)?;
        while let Some(Token::Sign(sign)) = self.peek() {
            if !operators.contains(&sign) {
                break;
            }
            self.take();
            let right = operand(self)?;
            value = Expression::Binary(sign, Box::new(value), Box::new(right));
        }
        Ok(value)
    }

    fn factor(&mut self) -> Result<Expression, String> {
        match self.take() {
            Some(Token::Number(number)) => Ok(Expression::Number(number)),
            Some(Token::Name(name)) if self.peek() == Some(Token::Sign('(')) => {
                self.take();
                let mut arguments = vec![self.sum()?];
                loop {
                    match self.take() {
                        Some(Token::Sign(',')) => arguments.push(self.sum()?),
                        Some(Token::Sign(')')) => return Ok(Expression::Call(name, arguments)),
                        other => return Err(format!("{other:?} among the arguments of {name}")),
                    }
                }
            }
            Some(Token::Name(name)) => Ok(Expression::Name(name)),
            Some(Token::Sign('(')) => {
                let value = self.sum()?;
                match self.take() {
                    Some(Token::Sign(')')) => Ok(value),
                    other => Err(format!("{other:?} instead of a parenthesis")),
                }
            }
            other => Err(format!("{other:?} instead of a value")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(expression: &Expression) -> String {
        match expression {
            Expression::Number(number) => number.to_string(),
            Expression::Name(name) => (*name).to_owned(),
            Expression::Binary(sign, a, b) => format!("({}{sign}{})", show(a), show(b)),
            Expression::Call(name, list) => {
                let list: Vec<_> = list.iter().map(show).collect();
                format!("{name}[{}]", list.join(" "))
            }
        }
    }

    #[test]
    fn operators_bind_as_usual() {
        for (text, expected) in [
            ("a = b - c - d * 2 / e", "((b-c)-((d*2)/e))"),
            ("a = (b - 0.5) * max(c, d + 1)", "((b-0.5)*max[c (d+1)])"),
            ("a = f(x)", "f[x]"),
        ] {
            assert_eq!(show(&parse(text).unwrap()[0].value), expected);
        }
        let found = parse("a += 1; b -= a").unwrap();
        assert_eq!(
            (found[0].effect, found[1].effect),
            (Effect::Add, Effect::Sub)
        );
        assert!(found[1].value.reads("a") && !found[1].value.reads("b"));
    }

    #[test]
    fn what_is_no_statement_is_refused() {
        for text in [
            "",
            "a",
            "a = ",
            "a = b c",
            "a * b",
            "a = (b",
            "a = f(b; c = d",
            "= b",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
