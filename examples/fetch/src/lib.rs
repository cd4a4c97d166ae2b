//! Fetches a URL and gives a model its text.

mod html;
mod media;

wit_bindgen::generate!({ world: "fetch", path: "wit" });

use exports::ambit::fetch::web::{FetchArgs, Guest, Page, PageForm};
use http_client::{Response, Url, get};

const DEFAULT_LENGTH: u32 = 20_000;
const MAX_LENGTH: u32 = 200_000;

/// Bytes that are received of one page; markup is several times its text.
const MAX_BODY: usize = 4 << 20;
const MAX_REDIRECTS: u32 = 5;

/// How much of an error page is shown.
const EXCERPT: usize = 300;

const HEADERS: [(&str, &str); 2] = [
    ("user-agent", "ambit-fetch/0.1"),
    ("accept", "text/html, text/*, application/json;q=0.9, */*;q=0.5"),
];

struct Fetch;

impl Guest for Fetch {
    fn fetch(args: FetchArgs) -> Result<Page, String> {
        let (url, response) = follow(&args.url)?;
        let media_type = response.header("content-type").map(media::media_type);
        let charset = response.header("content-type").and_then(media::charset);
        if !media_type.as_deref().is_none_or(media::is_text) {
            let kind = media_type.unwrap_or_default();
            return Err(format!("{url} is {kind}, not text."));
        }
        let source = media::decoded(&response.body, charset.as_deref());
        let is_html = media_type.as_deref().is_some_and(media::is_html);
        let reduce = is_html && args.form.unwrap_or(PageForm::Text) == PageForm::Text;
        let text = if reduce { html::text(&source) } else { source.clone() };
        if response.status >= 400 {
            return Err(format!("{url} answered with status {}. {}", response.status, excerpt(&text)));
        }
        let max = args.max_length.unwrap_or(DEFAULT_LENGTH).clamp(1, MAX_LENGTH) as usize;
        let end = text.char_indices().nth(max).map(|(end, _)| end);
        Ok(Page {
            url: url.to_string(),
            title: if is_html { html::title(&source) } else { None },
            media_type,
            truncated: end.is_some() || response.truncated,
            text: text[..end.unwrap_or(text.len())].into(),
        })
    }
}

/// Each hop is a request of its own, which the host judges as it judged the first.
fn follow(text: &str) -> Result<(Url, Response), String> {
    let mut url = Url::parse(text).map_err(|failure| failure.to_string())?;
    for _ in 0..=MAX_REDIRECTS {
        let response = get(&url, &HEADERS, MAX_BODY).map_err(|failure| failure.to_string())?;
        let target = match response.header("location") {
            Some(location) if matches!(response.status, 301 | 302 | 303 | 307 | 308) => url.join(location),
            _ => return Ok((url, response)),
        };
        url = target.map_err(|failure| format!("{url} redirects to what can't be fetched: {failure}"))?;
    }
    Err(format!("{text} redirects more than {MAX_REDIRECTS} times."))
}

fn excerpt(text: &str) -> &str {
    &text[..text.floor_char_boundary(EXCERPT)]
}

export!(Fetch);
