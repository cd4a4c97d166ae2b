use std::fmt;

use wasip2::http::types::ErrorCode;

use crate::Url;

/// Why there is no answer, in words that a model can act on.
#[derive(Debug)]
pub enum Failure {
    /// The text is no `http` or `https` URL.
    Url(String),
    Header(String),
    /// The host of this sandbox refused the request.
    Denied(String),
    /// The far side could not be reached or broke off.
    Unreachable(String),
    Broken(&'static str),
    Unusable(&'static str),
}

impl Failure {
    pub(crate) fn of(code: ErrorCode, url: &Url) -> Self {
        let authority = &url.authority;
        match code {
            ErrorCode::HttpRequestDenied | ErrorCode::DestinationIpProhibited => {
                Failure::Denied(format!("{authority} is not among the hosts that this tool may reach"))
            }
            ErrorCode::InternalError(Some(message)) => Failure::Unreachable(message),
            ErrorCode::DestinationNotFound | ErrorCode::DnsError(_) => Failure::Unreachable(format!("{authority} has no address")),
            ErrorCode::ConnectionRefused => Failure::Unreachable(format!("{authority} refused the connection")),
            ErrorCode::ConnectionTimeout | ErrorCode::HttpResponseTimeout | ErrorCode::DnsTimeout => {
                Failure::Unreachable(format!("{authority} did not answer in time"))
            }
            ErrorCode::TlsCertificateError | ErrorCode::TlsProtocolError | ErrorCode::TlsAlertReceived(_) => Failure::Unreachable(format!(
                "no secure connection to {authority}: its certificate or its TLS does not hold"
            )),
            other => Failure::Unreachable(format!("the request to {authority} failed: {other:?}")),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Url(text) => write!(out, "not an http or https URL: {text}"),
            Failure::Header(reason) => write!(out, "a header can't be sent: {reason}"),
            Failure::Denied(reason) | Failure::Unreachable(reason) => out.write_str(reason),
            Failure::Broken(when) => write!(out, "the connection broke {when}"),
            Failure::Unusable(reason) => write!(out, "the host's HTTP can't be used: {reason}"),
        }
    }
}

impl std::error::Error for Failure {}
