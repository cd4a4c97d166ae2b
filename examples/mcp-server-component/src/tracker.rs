use http_client::{Url, get};
use serde::de::DeserializeOwned;

const DEFAULT_URL: &str = "https://api.github.com";

/// Bytes of one answer that are read.
const MAX_JSON: usize = 8 << 20;

/// The API behind this server, which only this server's sandbox may reach.
pub struct Tracker {
    base: String,
    token: Option<String>,
}

impl Tracker {
    /// `GITHUB_API_URL` names another server than GitHub's, `GITHUB_TOKEN` who asks.
    pub fn from_environment() -> Result<Self, String> {
        let environment = wasip2::cli::environment::get_environment();
        let value = |wanted: &str| environment.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.clone());
        let base = value("GITHUB_API_URL").unwrap_or_else(|| DEFAULT_URL.into());
        Ok(Tracker { base: base.trim_end_matches('/').into(), token: value("GITHUB_TOKEN") })
    }

    /// What is at this path of a repository. An error is a sentence for a model.
    pub fn get<T: DeserializeOwned>(&self, repo: &str, path: &str) -> Result<T, String> {
        let repo = checked(repo)?;
        let url = Url::parse(&format!("{}/repos/{repo}{path}", self.base)).map_err(|failure| failure.to_string())?;
        let authorization = self.token.as_ref().map(|token| format!("Bearer {}", token.trim()));
        let mut headers = vec![("user-agent", "ambit-issues-mcp/0.1"), ("accept", "application/vnd.github+json")];
        headers.extend(authorization.as_deref().map(|value| ("authorization", value)));
        let response = get(&url, &headers, MAX_JSON).map_err(|failure| failure.to_string())?;
        match response.status {
            200 => serde_json::from_slice(&response.body).map_err(|error| format!("the tracker's answer could not be read: {error}")),
            404 | 410 => Err(format!("{repo} has no such issue, or is private")),
            status => Err(format!("the tracker answered with status {status}")),
        }
    }
}

/// `owner/name`, of characters that mean nothing else in a URL.
fn checked(repo: &str) -> Result<&str, String> {
    let is_plain = |part: &str| {
        let all = part.chars().all(|character| character.is_ascii_alphanumeric() || matches!(character, '-' | '_' | '.'));
        !part.is_empty() && part != "." && part != ".." && all
    };
    match repo.split_once('/') {
        Some((owner, name)) if is_plain(owner) && is_plain(name) => Ok(repo),
        _ => Err(format!("a repository is named as owner/name, not {repo:?}")),
    }
}
