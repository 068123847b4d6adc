//! Lines of `shaders.txt`, and definitions and repetitions in the text of a shader.

/// One module: a line such as `name: first.wgsl second.wgsl V=vec4<f32>`.
pub struct Module<'a> {
    pub name: &'a str,
    pub files: Vec<&'a str>,
    pub definitions: Vec<(&'a str, &'a str)>,
}

impl<'a> Module<'a> {
    /// `None` for a line that is empty or a comment.
    ///
    /// # Errors
    /// For a line without a colon or a file.
    pub fn parse(line: &'a str) -> Result<Option<Self>, String> {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            return Ok(None);
        }
        let (name, rest) = line
            .split_once(':')
            .ok_or_else(|| format!("shaders.txt: `{line}` has no colon after the name"))?;
        let (definitions, files): (Vec<&str>, Vec<&str>) =
            rest.split_whitespace().partition(|word| word.contains('='));
        if files.is_empty() {
            return Err(format!("shaders.txt: `{name}` has no file"));
        }
        let definitions = definitions.iter().filter_map(|word| word.split_once('='));
        Ok(Some(Self {
            name: name.trim(),
            files,
            definitions: definitions.collect(),
        }))
    }
}

/// The text with `$NAME` replaced by the definition of `NAME`, which is of capital letters.
///
/// # Errors
/// For a name that has no definition.
pub fn define(text: &str, definitions: &[(&str, &str)]) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out += &rest[..at];
        rest = &rest[at + 1..];
        let end = rest
            .find(|c: char| !c.is_ascii_uppercase())
            .unwrap_or(rest.len());
        let name = &rest[..end];
        let found = definitions.iter().find(|(defined, _)| *defined == name);
        out += found
            .ok_or_else(|| format!("`${name}` has no definition"))?
            .1;
        rest = &rest[end..];
    }
    Ok(out + rest)
}

/// The text with the lines from `#repeat NAME COUNT` to `#end` as often as `COUNT` says, `#NAME` replaced by the
/// number of the repetition.
///
/// # Errors
/// For a repetition without an end or a count, and the other way round.
pub fn repeat(text: &str) -> Result<String, String> {
    let mut lines = text.lines();
    let out = block(&mut lines, false)?;
    Ok(out)
}

fn block(lines: &mut std::str::Lines<'_>, inner: bool) -> Result<String, String> {
    let mut out = String::new();
    while let Some(line) = lines.next() {
        if line == "#end" {
            return if inner {
                Ok(out)
            } else {
                Err("`#end` without `#repeat`".into())
            };
        }
        let Some(rest) = line.strip_prefix("#repeat ") else {
            out += line;
            out.push('\n');
            continue;
        };
        let bad = || format!("`{line}` is not `#repeat NAME COUNT`");
        let (name, count) = rest.split_once(' ').ok_or_else(bad)?;
        let count: usize = count.parse().map_err(|_| bad())?;
        let body = block(lines, true)?;
        for number in 0..count {
            out += &body.replace(&format!("#{name}"), &number.to_string());
        }
    }
    if inner {
        return Err("`#repeat` without `#end`".into());
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_files_and_definitions() {
        let module = Module::parse("map4: a.wgsl b.wgsl V=vec4<f32>")
            .unwrap()
            .unwrap();
        assert_eq!(module.name, "map4");
        assert_eq!(module.files, ["a.wgsl", "b.wgsl"]);
        assert_eq!(module.definitions, [("V", "vec4<f32>")]);
        assert!(Module::parse("# text").unwrap().is_none());
        assert!(Module::parse("a b.wgsl").is_err());
        assert!(Module::parse("a: V=1").is_err());
    }

    #[test]
    fn names_are_replaced_and_unknown_ones_refused() {
        let text = define("var a: array<$V>; $V(0)", &[("V", "f32")]).unwrap();
        assert_eq!(text, "var a: array<f32>; f32(0)");
        assert_eq!(
            define("$W", &[("V", "f32")]).unwrap_err(),
            "`$W` has no definition"
        );
    }

    #[test]
    fn repetitions_nest() {
        let text = "#repeat i 2\n#repeat j 2\na#i#j\n#end\n#end\nb\n";
        assert_eq!(repeat(text).unwrap(), "a00\na01\na10\na11\nb\n");
        assert!(repeat("#end\n").is_err());
        assert!(repeat("#repeat i 2\n").is_err());
        assert!(repeat("#repeat i\n#end\n").is_err());
    }
}
