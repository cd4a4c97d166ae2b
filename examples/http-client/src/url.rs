use std::fmt;

use crate::Failure;

/// An `http` or `https` URL, split as `wasi:http` wants it. It is not checked further here: the host judges scheme, host and port.
#[derive(Clone, Debug, PartialEq)]
pub struct Url {
    pub secure: bool,
    /// `example.com` or `example.com:8443`.
    pub authority: String,
    /// Path and query, `/` at least; the fragment is gone.
    pub path: String,
}

impl Url {
    pub fn parse(text: &str) -> Result<Self, Failure> {
        let invalid = || Failure::Url(text.into());
        let text = text.trim();
        let (scheme, rest) = text.split_once("://").ok_or_else(invalid)?;
        let secure = match scheme.to_ascii_lowercase().as_str() {
            "https" => true,
            "http" => false,
            _ => return Err(invalid()),
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        // Credentials in a URL would end up in logs and in the model's context.
        if authority.is_empty() || authority.contains('@') || text.contains(char::is_whitespace) {
            return Err(invalid());
        }
        let path = if path.starts_with('/') { path.into() } else { format!("/{path}") };
        Ok(Url {
            secure,
            authority: authority.into(),
            path,
        })
    }

    /// The URL that a `Location` header means when it came from this one (RFC 3986, 5.2; without removing dot segments, which servers do).
    pub fn join(&self, location: &str) -> Result<Self, Failure> {
        let scheme = if self.secure { "https" } else { "http" };
        let authority = &self.authority;
        if location.contains("://") {
            Self::parse(location)
        } else if location.starts_with("//") {
            Self::parse(&format!("{scheme}:{location}"))
        } else if location.starts_with('/') {
            Self::parse(&format!("{scheme}://{authority}{location}"))
        } else {
            let path = self.path.split('?').next().unwrap_or("/");
            let folder = &path[..=path.rfind('/').unwrap_or(0)];
            Self::parse(&format!("{scheme}://{authority}{folder}{location}"))
        }
    }
}

impl fmt::Display for Url {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.secure { "https" } else { "http" };
        write!(out, "{scheme}://{}{}", self.authority, self.path)
    }
}
