/// `text/html; charset=utf-8` without its parameters, in lower case.
pub fn media_type(content_type: &str) -> String {
    content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// The charset parameter, in lower case.
pub fn charset(content_type: &str) -> Option<String> {
    content_type.split(';').skip(1).find_map(|parameter| {
        let (key, value) = parameter.split_once('=')?;
        key.trim()
            .eq_ignore_ascii_case("charset")
            .then(|| value.trim().trim_matches('"').to_ascii_lowercase())
    })
}

pub fn is_html(media_type: &str) -> bool {
    matches!(media_type, "text/html" | "application/xhtml+xml")
}

pub fn is_text(media_type: &str) -> bool {
    let structured = media_type.ends_with("+json") || media_type.ends_with("+xml");
    let known = [
        "application/json",
        "application/xml",
        "application/javascript",
        "application/yaml",
        "application/x-ndjson",
        "application/toml",
    ];
    media_type.starts_with("text/") || structured || known.contains(&media_type)
}

/// Latin-1 and its like are bytes that are code points; everything else is read as UTF-8, with marks where it is none.
pub fn decoded(bytes: &[u8], charset: Option<&str>) -> String {
    match charset {
        Some("iso-8859-1" | "latin1" | "us-ascii") => bytes.iter().map(|byte| char::from(*byte)).collect(),
        _ => String::from_utf8_lossy(bytes).into_owned(),
    }
}
