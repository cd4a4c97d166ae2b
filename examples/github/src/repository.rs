use std::fmt;

use crate::exports::ambit::github::repositories::Error;

/// A repository's `owner/name`, of characters that mean nothing else in a URL.
pub struct Repository(String);

impl Repository {
    pub fn parse(text: &str) -> Result<Self, Error> {
        let valid = |part: &str| {
            let plain = part
                .chars()
                .all(|character| character.is_ascii_alphanumeric() || matches!(character, '-' | '_' | '.'));
            !part.is_empty() && part != "." && part != ".." && plain
        };
        match text.split_once('/') {
            Some((owner, name)) if valid(owner) && valid(name) => Ok(Repository(text.into())),
            _ => Err(Error::Invalid(format!("a repository is named as owner/name, not {text:?}"))),
        }
    }
}

impl fmt::Display for Repository {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// A path with each part percent-encoded.
pub fn encoded_path(path: &str) -> Result<String, Error> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    if parts.is_empty() || parts.iter().any(|part| matches!(*part, "." | "..")) {
        return Err(Error::Invalid(format!(
            "a path leads from the top of the repository, such as src/main.rs, not {path:?}"
        )));
    }
    Ok(parts.iter().map(|part| encoded(part)).collect::<Vec<_>>().join("/"))
}

/// Percent-encodes everything but unreserved characters (RFC 3986, 2.3).
pub fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}
