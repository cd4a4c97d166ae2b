use http_client::Url;
use wasip2::cli::environment::get_environment;

use crate::exchange::Fault;

/// Where the server is, and what is sent with every request.
pub struct Configuration {
    pub url: Url,
    pub headers: Vec<(String, String)>,
}

const URL: &str = "MCP_URL";

/// `MCP_HEADER_1=Authorization: Bearer …`: what follows the prefix has no meaning.
const HEADER: &str = "MCP_HEADER_";

impl Configuration {
    /// From the environment. No value is in an error: it may be a credential.
    pub fn read() -> Result<Self, Fault> {
        let environment = get_environment();
        let url = environment.iter().find(|(name, _)| name == URL);
        let url = url.ok_or_else(|| Fault::Misconfigured(format!("{URL} is not set")))?;
        let url = Url::parse(&url.1).map_err(|_| Fault::Misconfigured(format!("{URL} is no http or https URL")))?;
        let headers = environment.into_iter().filter(|(name, _)| name.starts_with(HEADER)).map(|(name, line)| header(&name, &line));
        Ok(Configuration { url, headers: headers.collect::<Result<_, _>>()? })
    }
}

fn header(variable: &str, line: &str) -> Result<(String, String), Fault> {
    let (name, value) = line.split_once(':').ok_or_else(|| Fault::Misconfigured(format!("{variable} is no `Header: value`")))?;
    Ok((name.trim().to_ascii_lowercase(), value.trim().into()))
}
