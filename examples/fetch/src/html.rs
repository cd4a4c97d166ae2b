//! HTML as a reader sees it: no tags, no scripts, blocks on lines of their own. It is not a parser: what it gets wrong is layout, which costs
//! nothing here, while a whole parser would cost ten times the size of this tool.

/// Elements whose content nobody reads.
const HIDDEN: [&str; 6] = ["script", "style", "noscript", "template", "svg", "head"];

/// Elements that begin and end a line.
const BLOCKS: [&str; 29] = [
    "address",
    "article",
    "aside",
    "blockquote",
    "br",
    "dd",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figure",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hr",
    "li",
    "main",
    "nav",
    "ol",
    "p",
    "pre",
    "table",
    "tr",
];

pub fn text(html: &str) -> String {
    let mut out = Lines::default();
    let mut rest = html;
    while let Some(start) = rest.find('<') {
        out.add(&rest[..start]);
        rest = &rest[start..];
        let Some(tag) = Tag::at(rest) else {
            out.add("<");
            rest = &rest[1..];
            continue;
        };
        rest = &rest[tag.length..];
        if !tag.closing && HIDDEN.contains(&tag.name.as_str()) {
            rest = after_closing(rest, &tag.name);
        } else if tag.name == "li" && !tag.closing {
            out.end_line();
            out.add("- ");
        } else if BLOCKS.contains(&tag.name.as_str()) {
            out.end_line();
        } else if matches!(tag.name.as_str(), "td" | "th") && tag.closing {
            out.add(" ");
        }
    }
    out.add(rest);
    out.finish()
}

pub fn title(html: &str) -> Option<String> {
    let start = find_ignoring_case(html, "<title")?;
    let rest = &html[start..];
    let content = &rest[rest.find('>')? + 1..];
    let end = find_ignoring_case(content, "</title")?;
    let mut out = Lines::default();
    out.add(&content[..end]);
    Some(out.finish()).filter(|title| !title.is_empty())
}

struct Tag {
    name: String,
    closing: bool,
    /// Bytes up to and with the `>`.
    length: usize,
}

impl Tag {
    /// The tag or comment that the text begins with; nothing where its `<` is only a character.
    fn at(text: &str) -> Option<Self> {
        if text.starts_with("<!--") {
            let length = text.find("-->").map_or(text.len(), |end| end + 3);
            return Some(Tag {
                name: String::new(),
                closing: false,
                length,
            });
        }
        let closing = text.starts_with("</");
        let inner = &text[if closing { 2 } else { 1 }..];
        if !inner.starts_with(|first: char| first.is_ascii_alphabetic() || first == '!' || first == '?') {
            return None;
        }
        let name = inner
            .chars()
            .take_while(char::is_ascii_alphanumeric)
            .collect::<String>()
            .to_ascii_lowercase();
        Some(Tag {
            name,
            closing,
            length: end_of_tag(text),
        })
    }
}

/// Past the `>` that is in no quoted attribute.
fn end_of_tag(text: &str) -> usize {
    let mut quote = None;
    for (at, byte) in text.bytes().enumerate() {
        match (quote, byte) {
            (None, b'>') => return at + 1,
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), _) if open == byte => quote = None,
            _ => {}
        }
    }
    text.len()
}

fn after_closing<'a>(text: &'a str, name: &str) -> &'a str {
    match find_ignoring_case(text, &format!("</{name}")) {
        Some(start) => &text[start + end_of_tag(&text[start..])..],
        None => "",
    }
}

/// `needle` is ASCII, so a match begins and ends between characters.
fn find_ignoring_case(text: &str, needle: &str) -> Option<usize> {
    text.as_bytes()
        .windows(needle.len())
        .position(|window| window.eq_ignore_ascii_case(needle.as_bytes()))
}

/// Text whose white space runs together, as a browser shows it.
#[derive(Default)]
struct Lines {
    done: String,
    line: String,
    space: bool,
}

impl Lines {
    fn add(&mut self, source: &str) {
        let text = unescaped(source);
        for character in text.chars() {
            if character.is_whitespace() {
                self.space = true;
                continue;
            }
            if self.space && !self.line.is_empty() {
                self.line.push(' ');
            }
            self.space = false;
            self.line.push(character);
        }
    }

    fn end_line(&mut self) {
        if !self.line.is_empty() {
            if !self.done.is_empty() {
                self.done.push('\n');
            }
            self.done.push_str(&self.line);
            self.line.clear();
        }
        self.space = false;
    }

    fn finish(mut self) -> String {
        self.end_line();
        self.done
    }
}

/// Numbers and the few names that text is full of; others stay as they are.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('&') {
        out.push_str(&rest[..start]);
        rest = &rest[start..];
        match rest
            .find(';')
            .filter(|end| *end <= 10)
            .and_then(|end| Some((character(&rest[1..end])?, end)))
        {
            Some((character, end)) => {
                out.push(character);
                rest = &rest[end + 1..];
            }
            None => {
                out.push('&');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

fn character(name: &str) -> Option<char> {
    if let Some(number) = name.strip_prefix('#') {
        let hex = number.strip_prefix(['x', 'X']);
        let code = hex.map_or_else(|| number.parse().ok(), |digits| u32::from_str_radix(digits, 16).ok());
        return code.and_then(char::from_u32);
    }
    Some(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => ' ',
        "ndash" => '–',
        "mdash" => '—',
        "hellip" => '…',
        "lsquo" => '‘',
        "rsquo" => '’',
        "ldquo" => '“',
        "rdquo" => '”',
        "copy" => '©',
        _ => return None,
    })
}
