use std::fmt;

/// A path relative to the workspace, `/` between its parts, without `.` and `..`; `.` is the workspace itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Path(String);

impl Path {
    pub fn root() -> Self {
        Path(".".into())
    }

    /// What a model writes: a leading `/` or `./` means the workspace, `..` is worked out as far as it stays within.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.contains('\0') {
            return Err("A path can't contain the character U+0000.".into());
        }
        let mut parts: Vec<&str> = Vec::new();
        for part in text.split('/') {
            match part {
                "" | "." => {}
                ".." => {
                    if parts.pop().is_none() {
                        return Err(format!(
                            "{text} leads out of the workspace. Paths are relative to the workspace, such as src/main.rs."
                        ));
                    }
                }
                _ => parts.push(part),
            }
        }
        Ok(if parts.is_empty() { Path::root() } else { Path(parts.join("/")) })
    }

    /// The workspace where there is no text.
    pub fn parse_or_root(text: Option<&str>) -> Result<Self, String> {
        text.map_or_else(|| Ok(Path::root()), Path::parse)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn is_root(&self) -> bool {
        self.0 == "."
    }

    pub fn name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or_default()
    }

    pub fn join(&self, name: &str) -> Self {
        Path(if self.is_root() {
            name.into()
        } else {
            format!("{}/{name}", self.0)
        })
    }

    pub fn sibling(&self, name: &str) -> Self {
        Path(match self.0.rsplit_once('/') {
            Some((folder, _)) => format!("{folder}/{name}"),
            None => name.into(),
        })
    }

    /// The folders that lead here, outermost first, without the workspace itself.
    pub fn parents(&self) -> Vec<Path> {
        self.0.match_indices('/').map(|(end, _)| Path(self.0[..end].into())).collect()
    }

    /// Whether this is the other path or lies below it.
    pub fn is_within(&self, other: &Path) -> bool {
        other.is_root() || self == other || self.0.strip_prefix(&other.0).is_some_and(|rest| rest.starts_with('/'))
    }
}

impl fmt::Display for Path {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(if self.is_root() { "the workspace" } else { &self.0 })
    }
}
