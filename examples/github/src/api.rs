use http_client::{Failure, Response, Url, get};
use serde::de::DeserializeOwned;

use crate::exports::ambit::github::repositories::Error;

const DEFAULT_URL: &str = "https://api.github.com";

/// Bytes of one answer that are read as JSON: a page of issues with long texts stays well below.
const MAX_JSON: usize = 8 << 20;

pub struct Api {
    base: String,
}

impl Api {
    /// `GITHUB_API_URL` names another server: GitHub Enterprise, or one that stands in for GitHub in tests.
    pub fn from_environment() -> Result<Self, Error> {
        let configured = wasip2::cli::environment::get_environment()
            .into_iter()
            .find(|(name, _)| name == "GITHUB_API_URL");
        let base = configured.map_or_else(|| DEFAULT_URL.into(), |(_, url)| url);
        Ok(Api {
            base: base.trim_end_matches('/').into(),
        })
    }

    pub fn json<T: DeserializeOwned>(&self, path: &str) -> Result<T, Error> {
        let response = self.request(path, "application/vnd.github+json", MAX_JSON)?;
        serde_json::from_slice(&response.body).map_err(|error| Error::Unavailable(format!("GitHub's answer could not be read: {error}")))
    }

    /// The bytes of a file, up to so many.
    pub fn raw(&self, path: &str, max: usize) -> Result<Response, Error> {
        self.request(path, "application/vnd.github.raw+json", max)
    }

    fn request(&self, path: &str, accept: &str, max: usize) -> Result<Response, Error> {
        let url = Url::parse(&format!("{}{path}", self.base)).map_err(failed)?;
        let headers = [
            ("user-agent", "ambit-github/0.1"),
            ("accept", accept),
            ("x-github-api-version", "2022-11-28"),
        ];
        let response = get(&url, &headers, max).map_err(failed)?;
        match response.status {
            200 => Ok(response),
            301 | 302 | 307 | 308 => Err(Error::NotFound("the repository has moved: ask for it by its new name".into())),
            404 | 410 => Err(Error::NotFound(format!("GitHub has no {}, or it is private", thing(path)))),
            403 | 429 if response.header("x-ratelimit-remaining") == Some("0") || response.status == 429 => {
                Err(Error::RateLimited(when(&response)))
            }
            status => Err(Error::Unavailable(format!("GitHub answered with status {status}"))),
        }
    }
}

/// What a path of the API is about, for a person: `octo/spoon issues/7`.
fn thing(path: &str) -> String {
    path.trim_start_matches("/repos/")
        .split('?')
        .next()
        .unwrap_or_default()
        .replacen('/', "\u{0}", 1)
        .replacen('/', " ", 1)
        .replace('\u{0}', "/")
}

fn when(response: &Response) -> String {
    match (response.header("retry-after"), response.header("x-ratelimit-reset")) {
        (Some(seconds), _) => format!("too many requests; try again in {seconds} seconds"),
        (None, Some(time)) => format!("too many requests; try again at Unix time {time}"),
        (None, None) => "too many requests; try again later".into(),
    }
}

fn failed(failure: Failure) -> Error {
    match failure {
        Failure::Denied(reason) => Error::Denied(reason),
        other => Error::Unavailable(other.to_string()),
    }
}
